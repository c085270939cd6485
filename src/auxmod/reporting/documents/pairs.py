"""Blocks about K and r: how much the choice matters within the paper's search, and what lies outside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from auxmod.experiments import recipes, setup_search, wants
from auxmod.experiments.presets import PAPER_CHOICE
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import NEAR, Cell, by_facts, values
from auxmod.reporting.documents.blocks import NONE, nearness, problem
from auxmod.reporting.render import amount, markdown_table

Pair = tuple[int, float]
"""K and r."""
LEAST = min(k for k, _ in recipes.SEARCHED)
"""The smallest K of the paper's search."""


def grids(preset: str, stored: results.Index) -> dict[tuple[str, int, int], dict[Pair, Cell]]:
    """The cells of `aux` at every pair of the heatmaps with the first seed, by embedding, N and q."""
    cells = tables.build("grid", preset, results.first_seeds(stored)).cells
    settings = by_facts(cells, ("embedding", "n", "q"))
    return {setting: {values(cell, "k", "r"): cell for cell in own} for setting, own in settings.items()}


def searched(grid: Mapping[Pair, Cell]) -> dict[Pair, Cell]:
    """The cells at the pairs that the paper searched."""
    return {pair: grid[pair] for pair in recipes.SEARCHED}


def figures(grid: Mapping[Pair, Cell]) -> dict[Pair, float]:
    """Our figures at the pairs that were run."""
    return {pair: cell.ours for pair, cell in grid.items() if cell.ours is not None}


def pairs(place: Path) -> str:
    """Each complete grid of the 24 pairs (K, r): how much the choice matters, and where ours is best."""
    stored, rows, compared = results.read(place), [], dict[str, list[Cell]]()
    for preset in ("paper", setup_search.SMALL_THROUGHOUT, "stated", "best"):
        for (embedding, n, q), grid in grids(preset, stored).items():
            found = figures(searched(grid))
            if len(found) < len(recipes.SEARCHED):
                continue
            own, chosen = best(found), PAPER_CHOICE[embedding][n, q]
            paper = published.find(published.HALVES[embedding], n=n, q=q, samples=wants.SMALL, method="aux")
            ours = (found[chosen], min(found.values()), fmean(found.values()), found[own])
            case = f"{problem(embedding, n, q)}, `{preset}`"
            columns = (f"{grid[own].chance:.1f}", f"{paper} ({_named(chosen)})", *(f"{each:.1f}" for each in ours))
            rows.append((case, *columns, _named(own)))
            compared.setdefault(preset, []).append(replace(grid[own], paper=paper))
    heads = ("case, preset", "chance", "the paper's", "ours at its pair", "lowest", "mean", "best", "at")
    made = ", ".join(f"`auxmod reproduce table3 --preset {preset} --method aux`" for preset in compared)
    near = "; ".join(f"in `{preset}` {nearness(cells)}" for preset, cells in compared.items())
    note = (
        f"Match accuracy (%) of `aux` over the 24 pairs, {amount(wants.SMALL)} samples, the first seed: {made}; all "
        "pairs: `auxmod table grid` in that preset. The best is so by these figures themselves, which flatters it a "
        f"little. So many of the best are within {NEAR:g} points of the paper's figures, and the mean distance from "
        f"them: {near}."
    )
    return f"{markdown_table(heads, rows)}\n\n{note}"


def outside(place: Path) -> str:
    """The best pair of the paper's search, the best with a smaller K, and the best of the other pairs."""
    rows = []
    for setting, grid in grids("paper", results.read(place)).items():
        rest = {pair: cell for pair, cell in grid.items() if pair not in recipes.SEARCHED}
        if figures(rest):
            smaller = {pair: cell for pair, cell in rest.items() if pair[0] < LEAST}
            others = {pair: cell for pair, cell in rest.items() if pair[0] >= LEAST}
            chance = next(iter(grid.values())).chance
            rows.append((problem(*setting), f"{chance:.1f}", *map(_at_best, (searched(grid), smaller, others))))
    if not rows:
        return NONE
    heads = ("case", "chance", "the paper's search", f"K below {LEAST}", f"K from {LEAST} on, outside it")
    note = (
        f"Match accuracy (%) of `aux` in `paper` at the best pair of each part, {amount(wants.SMALL)} samples, the "
        "first seed; in brackets the pair, and how many pairs of the part were run: `auxmod reproduce grid --preset "
        "paper`. Of more pairs the best is flattered more."
    )
    return f"{markdown_table(heads, rows)}\n\n{note}"


def best(found: Mapping[Pair, float]) -> Pair:
    """The pair with the greatest figure."""
    return max(found, key=found.__getitem__)


def _at_best(grid: Mapping[Pair, Cell]) -> str:
    """92.3 (K = 4, r = 0.3; 24 of 24)"""
    found = figures(grid)
    if not found:
        return "not run"
    own = best(found)
    return f"{found[own]:.1f} ({_named(own)}; {len(found)} of {len(grid)})"


def _named(pair: Pair) -> str:
    return f"K = {pair[0]}, r = {pair[1]:g}"
