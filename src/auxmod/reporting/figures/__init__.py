"""Figures by matplotlib: `by_item.draw` makes one by its item's name, `looks.save` writes it."""
