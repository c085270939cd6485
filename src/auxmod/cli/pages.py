"""Tables on a terminal: as wide as it is, groups of columns under their name, agreement in colour."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from auxmod.cli.display import console
from auxmod.reporting.cells import NEAR

if TYPE_CHECKING:
    from auxmod.reporting.cells import Table
    from auxmod.reporting.render import Layout

Format = Literal["text", "markdown", "latex", "csv", "json"]


def show_tables(made: Sequence[Table], form: Format) -> None:
    """Print tables in any form."""
    from auxmod.reporting.render import render

    if form != "text":
        sys.stdout.write(render(made, form) + "\n")
        return
    for each in made:
        _show(each)


def _show(made: Table) -> None:
    """A table as rich draws it, in as many parts as the width asks for, and its notes."""
    from auxmod.reporting.render import layout

    out, words = console(), layout(made)
    out.print(made.title, style="italic", markup=False)
    for columns in _parts(words, out.width):
        out.print(_page(words, columns))
        out.print()
    for note in made.notes:
        out.print(note, style="dim", markup=False)
    out.print()


def _parts(words: Layout, width: int) -> list[list[int]]:
    """The columns of each part: the labels, and as many groups beside them as fit."""
    sizes = [max(map(len, (*head, *column))) + 2 for head, *column in zip(words.heads, *words.rows, strict=True)]
    ungrouped = [at for at, (group, _) in enumerate(words.heads) if not group]
    parts, room = [list(ungrouped)], width + 1 - sum(sizes[at] for at in ungrouped)
    left = room
    for _, run in itertools.groupby(
        (at for at in range(len(sizes)) if at not in ungrouped), lambda at: words.heads[at][0]
    ):
        group = list(run)
        need = sum(sizes[at] for at in group)
        if need > left and len(parts[-1]) > len(ungrouped):
            parts.append(list(ungrouped))
            left = room
        parts[-1] += group
        left -= need
    return parts


def _page(words: Layout, columns: Sequence[int]) -> Any:
    from rich import box
    from rich.table import Table as Page

    grouped = any(group and name for group, name in words.heads)
    page = Page(header_style="bold", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for at in columns:
        group, name = words.heads[at]
        over = "" if name in ("paper", "Δ") else group
        side: Literal["left", "right"] = "left" if at < words.labels else "right"
        page.add_column(f"{over}\n{name}" if grouped else name or group, justify=side, no_wrap=True)
    for number, row in enumerate(words.rows):
        last = words.labels > 1 and number + 1 < len(words.rows) and words.rows[number + 1][0] != row[0]
        page.add_row(*(_styled(row[at], words.heads[at][1]) for at in columns), end_section=last)
    return page


def _styled(word: str, name: str) -> str:
    if word in ("not run", "–"):
        return f"[dim]{word}[/]"
    if word == "failed":
        return f"[red]{word}[/]"
    if name != "Δ" or not word:
        return word
    gap = float(word.replace("−", "-"))
    return f"[{'green' if abs(gap) <= NEAR else 'red' if gap < 0 else 'cyan'}]{word}[/]"
