"""Blocks about Table 2 and the 16 configurations, as far as they were run: the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from auxmod.experiments import recipes
from auxmod.experiments.wants import Facts
from auxmod.reporting import results, tables
from auxmod.reporting.blocks import asked, markdown, problem
from auxmod.reporting.cells import Cell
from auxmod.reporting.render import amount

PRESETS = ("stated", "paper", "best")
TAU = 0.05
NONE = "None of it has been run."


def table2(place: Path) -> str:
    """τ-accuracy at large N and q."""

    def case(facts: Facts) -> str:
        return f"{problem('angular', facts['n'], facts['q'])}, {amount(facts['samples'])} samples"

    return _as_run(place, "table2", case, f"τ-accuracy (%) at τ = {TAU}", lambda facts: facts["tau"] == TAU)


def configs(place: Path) -> str:
    """The 16 configurations."""

    def case(facts: Facts) -> str:
        bias = "biases" if facts["bias"] else "no biases"
        return f"{facts['norm']}-norm, {bias}, init {facts['init']}, dropout {facts['dropout']:g}"

    return _as_run(place, "configs", case, "Match accuracy (%) at N = 8, q = 97, tokens, 1M samples")


def _as_run(
    place: Path, item: str, case: Callable[[Facts], str], what: str, keep: Callable[[Facts], bool] = lambda _: True
) -> str:
    """A row for each case of which something was run, a column for each method and preset in which something was."""
    stored = results.read(place)
    found: dict[str, dict[tuple[str, str], Cell]] = {}
    for preset in PRESETS:
        for cell in tables.build(item, preset, stored).cells:
            if keep(cell.facts):
                found.setdefault(case(cell.facts), {})[cell.facts["method"], preset] = cell
    rows = {name: cells for name, cells in found.items() if any(map(_run, cells.values()))}
    if not rows:
        return NONE
    chosen = [(method, preset) for method in ("aux", "sparse") for preset in PRESETS]
    chosen = [each for each in chosen if any(_run(cells[each]) for cells in rows.values())]
    heads, lines = ["case", "chance"], [[name, f"{cells[chosen[0]].chance:.1f}"] for name, cells in rows.items()]
    for method in dict.fromkeys(method for method, _ in chosen):
        own = [preset for name, preset in chosen if name == method]
        heads += [f"{method}, the paper's", *(f"{method}, `{preset}`" for preset in own)]
        for line, cells in zip(lines, rows.values(), strict=True):
            line += [f"{cells[method, own[0]].paper:.1f}", *(asked([cells[method, preset]]) for preset in own)]
    of = f"{len(rows)} of its {len(found)} cases, those of which something was run"
    made = results.origins(stored, recipes.cells(item, PRESETS, seeds=1))
    note = f"{what}: {of}; mean ± standard deviation over seeds, their number in brackets. {made}"
    return f"{markdown(heads, lines)}\n\n{note}: `auxmod reproduce {item}`."


def _run(cell: Cell) -> bool:
    return bool(cell.count or cell.failed)
