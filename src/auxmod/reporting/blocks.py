"""What blocks of the pages have in common: a Markdown table, and how a figure over seeds is written."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from auxmod.reporting.cells import Cell

Rows = Iterable[Sequence[str]]
NONE = "None of it has been run."


def markdown(columns: Sequence[str], rows: Rows) -> str:
    """A Markdown table; the first column is text, the others figures."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


def problem(embedding: str, n: int, q: int) -> str:
    """A problem, in words."""
    return f"{embedding}, N = {n}, q = {q}"


def over_seeds(shares: Sequence[float], digits: int = 1) -> str:
    """Shares as one figure in percent: their mean and spread."""
    return f"{100 * statistics.fmean(shares):.{digits}f} ± {100 * statistics.stdev(shares):.{digits}f}"


def asked(cells: Sequence[Cell]) -> str:
    """The figures of one method (asked once and, where there are two, asked often), and how many seeds there are."""
    if not any(cell.count or cell.failed for cell in cells):
        return "not run" if cells else ""
    figures = " / ".join(
        "–" if cell.ours is None else f"{cell.ours:.1f}" + ("" if cell.std is None else f" ± {cell.std:.1f}")
        for cell in cells
    )
    return f"{figures} ({cells[0].count}" + (f", {cells[0].failed} failed)" if cells[0].failed else ")")


def distance(cells: Sequence[Cell]) -> float:
    """Points between ours and the paper's, in the mean over the cells that have both."""
    return statistics.fmean(abs(cell.difference) for cell in cells if cell.difference is not None)


def nearness(cells: Sequence[Cell]) -> str:
    """How many of those run agree with the paper's, and the mean distance from it."""
    sides = [cell.beside_paper() for cell in cells if cell.difference is not None]
    return f"{sides.count(0)} of {len(sides)}, {distance(cells):.1f}" if sides else ""


def epochs(count: int) -> str:
    """So many epochs, in words."""
    return f"{count} epoch{'s' * (count != 1)}"
