"""Blocks about Table 1, cell by cell: the paper's figures beside ours in two presets. `verdicts` counts them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auxmod.experiments import recipes, wants
from auxmod.reporting import published, results
from auxmod.reporting.cells import LEVEL, Cell, side
from auxmod.reporting.documents.blocks import Way, by_case, compared, problem
from auxmod.reporting.render import amount

PRESETS = ("paper", "best")


class Case(NamedTuple):
    """A setting of Table 1, with the cell of each method in each preset."""

    embedding: str
    size: tuple[int, int]
    cells: dict[Way, Cell]


def cases(stored: results.Index, samples: int = wants.SMALL) -> Iterator[Case]:
    """All 18 settings, from stored results."""
    for embedding, item in published.HALVES.items():
        found = by_case(item, PRESETS, stored, lambda facts: (facts["n"], facts["q"]), samples=(samples,))
        for size, cells in found.items():
            yield Case(embedding, size, cells)


def table(place: Path, samples: int = wants.SMALL) -> str:
    """Table 1 cell by cell."""
    stored = results.read(place)
    return _cell_by_cell(list(cases(stored, samples)), stored, samples)


def _cell_by_cell(every: Sequence[Case], stored: results.Index, samples: int) -> str:
    ways = list(itertools.product(("aux", "sparse"), PRESETS)) + [("naive", "best")] * (samples == wants.SMALL)
    shown = compared({problem(case.embedding, *case.size): case.cells for case in every}, ways)
    note = f"Match accuracy (%), {amount(samples)} samples: mean ± standard deviation over seeds, their number in"
    return f"{shown}\n\n{note} brackets. {_origin(stored, samples)}\n\n{_baseline(every)}"


def _baseline(every: Sequence[Case]) -> str:
    """Whether the baseline, in its best setup, comes up to the paper's: else a comparison would flatter `aux`."""
    run = [cell for case in every if (cell := case.cells["sparse", "best"]).difference is not None]
    lower = [cell for cell in run if (cell.difference or 0.0) < -max(LEVEL, cell.std or 0.0)]
    counted = f"{len(run) - len(lower)} of {len(run)} cells run"
    return f"In `best`, `sparse` is level with the paper's baseline or above it in {counted}."


def larger(place: Path) -> str:
    """Table 1 cell by cell with 1M samples, and where the preset `best` is not the best."""
    stored = results.read(place)
    every = list(cases(stored, wants.LARGE))
    return f"{_cell_by_cell(every, stored, wants.LARGE)}\n\n{_where_best_is_not(every)}"


def _where_best_is_not(every: Sequence[Case]) -> str:
    """The cells in which a method learns more in the preset `paper` than in `best`, which was tuned at 100K."""
    said = []
    for method in ("aux", "sparse"):
        cells = [case for case in every if side(*(case.cells[method, preset] for preset in PRESETS)) == 1]
        named = "; ".join(problem(case.embedding, *case.size) for case in cells)
        said.append(f"`{method}` in {named or 'no cell'}")
    return f"`best` was tuned on 100K samples. Here `paper` learns more with {', and with '.join(said)}."


def _origin(stored: results.Index, samples: int) -> str:
    runs = (
        run for item in published.HALVES.values() for run in recipes.cells(item, PRESETS, seeds=1, samples=(samples,))
    )
    made = results.origins(stored, runs)
    return f"{made}: `auxmod reproduce table1a --samples {samples:_}`, and `table1b`."
