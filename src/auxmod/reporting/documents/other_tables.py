"""Blocks about Table 2 and Table 6 (the 16 configurations), as far as run: the paper's figures beside ours."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from auxmod.checked import OF_LINEAR
from auxmod.config import TAUS
from auxmod.experiments import recipes, setup_search
from auxmod.experiments.wants import LARGE, Facts
from auxmod.reporting import results, tables
from auxmod.reporting.cells import NEAR, Cell, by_facts
from auxmod.reporting.documents.blocks import NONE, by_case, compared, ends, known, nearness, problem
from auxmod.reporting.render import amount, markdown_table

PRESETS = ("stated", "paper", setup_search.SMALL_THROUGHOUT, "best")
TAU = 0.05


def table2(place: Path) -> str:
    """τ-accuracy at large N and q."""

    def case(facts: Facts) -> str:
        return f"{problem('angular', facts['n'], facts['q'])}, {amount(facts['samples'])} samples"

    stored = results.read(place)
    shown = _as_run(stored, "table2", case, f"τ-accuracy (%) at τ = {TAU}", taus=[TAU])
    return shown if shown == NONE else f"{shown}\n\n{_closer(stored)}"


def _closer(stored: results.Index) -> str:
    """The same runs' accuracy at their smallest τ, as a range over q."""
    least, samples = TAUS[0], LARGE
    cells = tables.build("table2", "best", stored, [samples], taus=[least]).cells
    lines = []
    for (n,), own in by_facts(cells, ["n"]).items():
        by_method = [[cell for cell in own if cell.facts["method"] == method] for method in ("aux", "sparse")]
        lines.append([str(n), f"{own[0].chance:.1f}", *map(_ends, by_method)])
    note = (
        f"The same within τ = {least}, the least and the greatest over q, and of how many q: "
        f"`auxmod table table2 --tau {least} --preset best --samples {amount(samples)}`."
    )
    return f"{markdown_table(['N', 'chance', 'aux, `best`', 'sparse, `best`'], lines)}\n\n{note}"


def _ends(cells: Sequence[Cell]) -> str:
    """96.1 to 97.3 (4 of 4)"""
    return ends(cells, f" ({len(known(cells))} of {len(cells)})")


def configs(place: Path) -> str:
    """The 16 configurations."""

    def case(facts: Facts) -> str:
        bias = "biases" if facts["bias"] else "no biases"
        init = facts["init"].removeprefix(OF_LINEAR)
        return f"{facts['norm']}-norm, {bias}, init {init}, dropout {facts['dropout']:g}"

    stored = results.read(place)
    shown = _as_run(stored, "configs", case, "Match accuracy (%) at N = 8, q = 97, tokens, 1M samples")
    return shown if shown == NONE else f"{shown}\n\n{_by_name(stored)}"


def _by_name(stored: results.Index) -> str:
    """Our distance from the paper's figures, with its rows as named and with the names of one switch exchanged."""
    lines = []
    for method, preset in itertools.product(("aux", "sparse"), PRESETS):
        cells = [c for c in tables.build("configs", preset, stored).cells if c.facts["method"] == method]
        run = [cell for cell in cells if cell.ours is not None]
        if run:
            apart = [nearness(tables.exchanged(run, switch)) for switch in recipes.SWITCHES]
            lines.append([f"{method}, `{preset}`", nearness(run), *apart])
    names = {"norm": "norms", "bias": "biases", "init": "initial weights", "dropout": "dropout"}
    heads = ["ours", "as named", *(f"{names[switch]} exchanged" for switch in recipes.SWITCHES)]
    note = (
        f"How many of those run are within {NEAR:g} points of the paper's figures, and the mean distance from them: as "
        "the paper names its rows, and with a switch's two names exchanged."
    )
    return f"{markdown_table(heads, lines)}\n\n{note}"


def _as_run(stored: results.Index, item: str, case: Callable[[Facts], str], what: str, **chosen: Any) -> str:
    """A row for each case, and a column for each method and preset, in which something was run."""
    found = by_case(item, PRESETS, stored, case, **chosen)
    rows = {name: cells for name, cells in found.items() if any(map(_run, cells.values()))}
    if not rows:
        return NONE
    ways = [
        way for way in itertools.product(("aux", "sparse"), PRESETS) if any(_run(cells[way]) for cells in rows.values())
    ]
    of = f"{len(rows)} of its {len(found)} cases, those of which something was run"
    made = results.origins(stored, recipes.cells(item, PRESETS, seeds=1))
    note = f"{what}: {of}; mean ± standard deviation over seeds, their number in brackets. {made}"
    return f"{compared(rows, ways)}\n\n{note}: `auxmod reproduce {item}`."


def _run(cell: Cell) -> bool:
    return bool(cell.count or cell.failed)
