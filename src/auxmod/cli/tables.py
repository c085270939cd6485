"""Tables on a terminal: fitted to its width, groups of columns under their names, agreement in colour."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from auxmod.cli.display import console, printable, verbatim
from auxmod.reporting.cells import Cell, Table
from auxmod.reporting.render import Format, Kind, Layout, layout, render

LEAST = 14
"""The least width, padding included, to which the widest label column is folded."""
SIDES = {0: "green", 1: "cyan", -1: "red"}
"""The colour of a difference if our figure is near the paper's (0), above it (1) or below it (−1)."""


def show_tables(made: Sequence[Table], form: Format) -> None:
    """Print tables in any form."""
    if form != "text":
        lines = render(made, form).split("\n")
        sys.stdout.write("\n".join(lines if form == "json" else map(printable, lines)) + "\n")
        return
    for each in made:
        _show(each)


def _show(made: Table) -> None:
    """Print a table, in as many parts as the width requires, and its notes."""
    out, words = console(), layout(made)
    sizes = _sizes(words, out.width)
    out.print(printable(made.title), style="italic", markup=False)
    for columns in _parts(words, sizes, out.width):
        out.print(_page(words, {at: sizes[at] for at in columns}))
        out.print()
    for note in made.notes:
        out.print(printable(note), style="dim", markup=False)
    _show_origin(made)
    out.print()


def _show_origin(made: Table) -> None:
    """Print what a table was made on, with its commits if the line has room for them, or else with their number."""
    out, lines = console(), [made.origin(named).replace("`", "") for named in (True, False)]
    line = lines[0] if len(lines[0]) <= out.width else lines[1]
    if line:
        out.print(line, style="dim", markup=False)


def _sizes(words: Layout, width: int) -> list[int]:
    """The width of each column. If a group would not fit beside the label columns, these fold: first the words of the
    widest, such as a setup's, then headings longer than the cells below them. No figure is cut."""
    columns = list(zip(*words.rows, strict=True))
    sizes = [max(map(len, (*head[:2], *column))) + 2 for head, column in zip(words.heads, columns, strict=True)]
    labels, groups = _columns(words)
    over = sum(sizes[at] for at in labels) - width - 1
    over += max((sum(sizes[at] for at in group) for group in groups), default=0)
    folds = [(at, LEAST) for at in sorted(labels, key=sizes.__getitem__)[-1:]]
    for at, least in folds + [(at, max(map(len, columns[at])) + 2) for at in labels]:
        fold = max(0, min(over, sizes[at] - least))
        sizes[at], over = sizes[at] - fold, over - fold
    return sizes


def _parts(words: Layout, sizes: Sequence[int], width: int) -> list[list[int]]:
    """The columns of each part: those without a group, and as many groups beside them as fit."""
    ungrouped, groups = _columns(words)
    parts, room = [list(ungrouped)], width + 1 - sum(sizes[at] for at in ungrouped)
    left = room
    for group in groups:
        need = sum(sizes[at] for at in group)
        if need > left and len(parts[-1]) > len(ungrouped):
            parts.append(list(ungrouped))
            left = room
        parts[-1] += group
        left -= need
    return parts


def _columns(words: Layout) -> tuple[list[int], list[list[int]]]:
    """The columns without a group, which every part repeats, and the columns of each group."""
    names = [head.group for head in words.heads]
    grouped = itertools.groupby((at for at, name in enumerate(names) if name), names.__getitem__)
    return [at for at, name in enumerate(names) if not name], [list(group) for _, group in grouped]


def _page(words: Layout, sizes: Mapping[int, int]) -> Any:
    from rich import box
    from rich.table import Table as Page

    grouped = any(head.group and head.name for head in words.heads)
    look: dict[str, Any] = {"header_style": "bold", "box": box.SIMPLE_HEAD, "padding": (0, 1, 0, 0), "show_edge": False}
    page = Page(**look, min_width=sum(sizes.values()) - 1)
    for at, size in sizes.items():
        group, name, kind = words.heads[at]
        over = "" if kind in ("paper", "difference") else group
        side: Literal["left", "right"] = "left" if at < words.labels else "right"
        page.add_column(f"{over}\n{name}" if grouped else name or group, justify=side, width=size - 2, overflow="fold")
    for number, row in enumerate(words.rows):
        last = words.labels > 1 and number + 1 < len(words.rows) and words.rows[number + 1][0] != row[0]
        behind = words.cells[number]
        page.add_row(*(_styled(row[at], behind[at], words.heads[at].kind) for at in sizes), end_section=last)
    return page


def _styled(word: str, cell: Cell | None, kind: Kind) -> str:
    """A word with a colour that shows a missing or failed figure, or how ours compares with the paper's."""
    side = cell.beside_paper() if cell and kind == "difference" else None
    colour = (
        SIDES[side]
        if side is not None
        else {"not run": "dim", "unfinished": "dim", "–": "dim", "failed": "red"}.get(word)
    )
    return f"[{colour}]{word}[/]" if colour else verbatim(word)
