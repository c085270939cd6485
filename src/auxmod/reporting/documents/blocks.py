"""What the generated blocks share: wording, figures over seeds, and our results beside the paper's."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from auxmod.experiments.results_file import read_results
from auxmod.experiments.wants import Facts
from auxmod.reporting import results, tables
from auxmod.reporting.cells import Cell
from auxmod.reporting.render import figure, markdown, markdown_table, with_spread

Way = tuple[str, str]
"""A method and a preset."""
Key = TypeVar("Key")
NONE = "None of it has been run."


def item(name: str, place: Path) -> str:
    """The table of an item that is the same in every preset."""
    return markdown(tables.build(name, "", results.read(place)))


def problem(embedding: str, n: int, q: int) -> str:
    """A problem, in words."""
    return f"{embedding}, N = {n}, q = {q}"


def finished(path: Path) -> list[dict[str, Any]]:
    """The runs of a results file that have figures, each once: of a run's rows the last with figures counts."""
    return [row for row in read_results(path) if "scores" in row]


def over_seeds(shares: Sequence[float], digits: int = 1) -> str:
    """The mean of some shares in percent, with their standard deviation if there are several."""
    spread = 100 * statistics.stdev(shares) if len(shares) > 1 else None
    return with_spread(100 * statistics.fmean(shares), spread, digits)


def asked(cells: Sequence[Cell]) -> str:
    """One method's figures (asked once and, if there are two cells, asked often) and its number of seeds."""
    if not any(cell.count or cell.failed for cell in cells):
        return "not run" if cells else ""
    figures = " / ".join(with_spread(cell.ours, cell.std) for cell in cells)
    return f"{figures} ({cells[0].count}" + (f", {cells[0].failed} failed)" if cells[0].failed else ")")


def by_case(
    item: str, presets: Sequence[str], stored: results.Index, case: Callable[[Facts], Key], **chosen: Any
) -> dict[Key, dict[Way, Cell]]:
    """An item's cells in these presets, by ``case`` of their facts and then by method and preset."""
    found: dict[Key, dict[Way, Cell]] = {}
    for preset in presets:
        for cell in tables.build(item, preset, stored, **chosen).cells:
            found.setdefault(case(cell.facts), {})[cell.facts["method"], preset] = cell
    return found


def compared(found: Mapping[str, Mapping[Way, Cell]], ways: Sequence[Way]) -> str:
    """A row per case: chance, then for each method the paper's figure, if it has any, and ours in each preset."""
    heads, rows = ["case", "chance"], [[name, figure(cells[ways[0]].chance, 1)] for name, cells in found.items()]
    for method in dict.fromkeys(method for method, _ in ways):
        own = [way for way in ways if way[0] == method]
        papers = [cells[own[0]].paper for cells in found.values()]
        known = any(paper is not None for paper in papers)
        heads += [f"{method}, the paper's"] * known + [f"{method}, `{preset}`" for _, preset in own]
        for row, paper, cells in zip(rows, papers, found.values(), strict=True):
            row += [figure(paper, 1)] * known + [asked([cells[way]]) for way in own]
    return markdown_table(heads, rows)


def known(cells: Iterable[Cell]) -> list[float]:
    """Our figures, of the cells that have one."""
    return [cell.ours for cell in cells if cell.ours is not None]


def ends(cells: Iterable[Cell], after: str = " %") -> str:
    """The least and the greatest of our figures, as in 96.1 to 97.3 %; one of them if they print alike."""
    ours = known(cells)
    words = dict.fromkeys(f"{figure:.1f}" for figure in (min(ours), max(ours))) if ours else ()
    return " to ".join(words) + after if ours else "not run"


def distance(cells: Sequence[Cell]) -> float:
    """The mean distance between our figures and the paper's, in points, over the cells that have both."""
    return statistics.fmean(abs(cell.difference) for cell in cells if cell.difference is not None)


def nearness(cells: Sequence[Cell]) -> str:
    """How many of the cells run agree with the paper's figures, and their mean distance from them."""
    sides = [cell.beside_paper() for cell in cells if cell.difference is not None]
    return f"{sides.count(0)} of {len(sides)}, {distance(cells):.1f}" if sides else ""
