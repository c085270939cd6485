"""Blocks about Table 1: the paper's figures, ours in two presets, and how they compare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from auxmod.experiments import recipes, wants
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import LEVEL, NEAR, Cell, side, values
from auxmod.reporting.documents.blocks import Way, by_case, compared, problem
from auxmod.reporting.render import amount

PRESETS = ("paper", "best")
LEVELS = f"Level is within {LEVEL:g} point, or within the spread of a method's own seeds where that is wider."


class Case(NamedTuple):
    """A setting of Table 1, with the cell of each method in each preset."""

    embedding: str
    size: tuple[int, int]
    cells: dict[Way, Cell]
    searched: Cell | None = None
    """`aux` in the preset `paper` at its best of the 24 pairs (K, r), as the paper chose; None if any is missing."""

    def paper(self, method: str) -> Cell:
        """The paper's figure of a method, in the place of ours."""
        cell = self.cells[method, "paper"]
        return replace(cell, ours=cell.paper, std=None)


def cases(stored: results.Index, samples: int = wants.SMALL) -> Iterator[Case]:
    """All 18 settings, from stored results."""
    searched = {
        values(cell, "embedding", "n", "q"): cell
        for cell in tables.build("table3", "paper", stored, (samples,)).cells
        if cell.facts["statistic"] == "max" and cell.ours is not None
    }
    for embedding, item in published.HALVES.items():
        found = by_case(item, PRESETS, stored, lambda facts: (facts["n"], facts["q"]), samples=(samples,))
        for size, cells in found.items():
            yield Case(embedding, size, cells, searched.get((embedding, *size)))


def table(place: Path, samples: int = wants.SMALL) -> str:
    """Table 1 cell by cell."""
    stored = results.read(place)
    return _cell_by_cell(list(cases(stored, samples)), stored, samples)


def _cell_by_cell(every: Sequence[Case], stored: results.Index, samples: int) -> str:
    ways = list(itertools.product(("aux", "sparse"), PRESETS)) + [("naive", "best")] * (samples == wants.SMALL)
    shown = compared({problem(case.embedding, *case.size): case.cells for case in every}, ways)
    note = f"Match accuracy (%), {amount(samples)} samples: mean ± standard deviation over seeds, their number in"
    return f"{shown}\n\n{note} brackets. {_origin(stored, samples)}"


def larger(place: Path) -> str:
    """Table 1 cell by cell with 1M samples, then how many cells agree with the paper's."""
    stored = results.read(place)
    every = list(cases(stored, wants.LARGE))
    lines = []
    for method, preset in itertools.product(("aux", "sparse"), PRESETS):
        sides = [case.cells[method, preset].beside_paper() for case in every]
        counts = [sides.count(side) for side in (0, 1, -1)]
        if not any(counts):
            continue
        lines.append(
            f"- In the preset `{preset}`, `{method}` is within {NEAR:g} points of the paper's figure in "
            f"{counts[0]} of the {sum(counts)} cells run, above that in {counts[1]}, and below in {counts[2]}."
        )
    lines += [f"- {line}" for line in (_methods(every), _where_best_is_not(every))]
    return "\n\n".join((_cell_by_cell(every, stored, wants.LARGE), "\n".join(lines), LEVELS))


def _methods(every: Sequence[Case]) -> str:
    """How `aux` and `sparse` compare, each in its own best setup."""
    sides = [side(case.cells["aux", "best"], case.cells["sparse", "best"]) for case in every]
    ahead, level, behind = (f"{sides.count(side)} of {len(sides)}" for side in (1, 0, -1))
    return (
        f"With each method at its best, `aux` is ahead of `sparse` in {ahead} cells, level in {level}, and behind in "
        f"{behind}."
    )


def _where_best_is_not(every: Sequence[Case]) -> str:
    """The cells in which a method learns more in the preset `paper` than in `best`, which was tuned at 100K."""
    said = []
    for method in ("aux", "sparse"):
        cells = [case for case in every if side(*(case.cells[method, preset] for preset in PRESETS)) == 1]
        named = "; ".join(problem(case.embedding, *case.size) for case in cells)
        said.append(f"`{method}` in {len(cells)} of {len(every)} cells{f' ({named})' if cells else ''}")
    return f"`best` was tuned on 100K samples. Here `paper` learns more: {', '.join(said)}."


def in_short(place: Path) -> str:
    """How many cells agree with the paper's, and how the methods compare, each at its best."""
    every = list(cases(results.read(place)))
    searched = [case.searched.beside_paper() for case in every if case.searched]

    def count(holds: Callable[[Case], bool], embedding: str = "") -> str:
        chosen = [case for case in every if embedding in ("", case.embedding)]
        return f"{sum(map(holds, chosen))} of {len(chosen)}"

    def near(method: str) -> Callable[[Case], bool]:
        return lambda case: case.cells[method, "paper"].beside_paper() == 0

    def above(method: str) -> Callable[[Case], bool]:
        return lambda case: case.cells[method, "best"].beside_paper() == 1

    def guessed(case: Case) -> bool:
        cell = case.cells["sparse", "paper"]
        return (cell.paper or 0.0) - (cell.chance or 0.0) <= LEVEL

    def no_worse(case: Case) -> bool:
        return side(case.cells["sparse", "best"], case.paper("sparse")) in (0, 1)

    lines = (
        f"In the preset `paper`, `aux` is within {NEAR:g} points of the paper's figure in {count(near('aux'))} "
        f"cells: {count(near('aux'), 'token')} for tokens, {count(near('aux'), 'angular')} for angles. `sparse` is in "
        f"{count(near('sparse'))}; in {count(guessed)} the paper's own is no more than {LEVEL:g} point above chance.",
        *_with_own_pairs(searched),
        f"In the preset `best`, `aux` is more than {NEAR:g} points above the paper's figure in "
        f"{count(above('aux'))} cells. `sparse` is above the paper's or level with it in {count(no_worse)}.",
        _methods(every),
    )
    return "\n".join(f"- {line}" for line in lines) + f"\n\n{LEVELS}"


def _with_own_pairs(sides: Sequence[int | None]) -> Iterator[str]:
    """How many cells agree if the best of the 24 pairs (K, r) is chosen from our runs, as the paper did from its."""
    if sides:
        yield (
            f"At its own best of the 24 pairs (K, r), in place of the paper's, `aux` in the preset `paper` is within "
            f"{NEAR:g} points in {sides.count(0)} of the {len(sides)} cells whose pairs have all been run, above that "
            f"in {sides.count(1)}, and below in {sides.count(-1)}."
        )


def _origin(stored: results.Index, samples: int) -> str:
    runs = (
        run for item in published.HALVES.values() for run in recipes.cells(item, PRESETS, seeds=1, samples=(samples,))
    )
    made = results.origins(stored, runs)
    return f"{made}: `auxmod reproduce table1a --samples {samples:_}`, and `table1b`."
