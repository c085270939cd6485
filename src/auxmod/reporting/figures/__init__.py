"""Matplotlib figures: `by_item.draw` makes one by its item's name, `looks.save` writes it."""
