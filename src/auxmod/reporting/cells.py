"""A table as plain cells, each knowing what it is a figure of; `render` arranges and writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from auxmod.experiments.wants import Facts

NEAR = 5.0
"""Points from the paper's figure that still count as agreement."""
LEVEL = 1.0
"""Points between two methods that are no difference, unless their own seeds differ by more."""

TITLES = {
    "table1a": "Table 1a: match accuracy (%), token embedding",
    "table1b": "Table 1b: match accuracy (%), angular embedding",
    "table2": "Table 2: τ-accuracy (%), angular embedding",
    "table3": "Table 3: match accuracy (%) over the 24 pairs K = 4..9, r = 0.1..0.4",
    "configs": "Table 6: match accuracy (%) of 16 configurations, token embedding, N = 8, q = 97",
    "gap": "Table 4: the bound (1 − 1/q)^N on the gap between sparse training and uniform testing",
    "rho": "ρ = ((1 − r) + r/K) / (2/3), the expected wraps of aux over those of sparse",
    "redbox": "Match accuracy (%) over K and r, angular embedding, N = 64, q = 433",
    "grid": "Match accuracy (%) over K and r",
    "headline": "Match accuracy (%) of the demo: angular embedding, a small encoder",
    "beyond": "Past the paper: accuracy (%) at equal samples and steps, each method at its best",
    "setup": "Match accuracy (%) in what the paper leaves open, on two cells of Table 1",
    "knobs": "Match accuracy (%) with one stated value changed, on the same two cells",
    "finalists": "Match accuracy (%) of the configurations nearest to the paper's, on all cells of Table 1",
    "longer": "Match accuracy (%) by how long the paper may have trained, on all cells of Table 1",
    "starts": "Match accuracy (%) of four of the 16 configurations in what the paper leaves open",
}
"""Every table, by the name of its item."""
NAMES = {
    "aux": "aux", "sparse": "sparse", "naive": "naive", "expected": "aux, expected",
    "fixed": "aux, label fixed", "all": "aux, asked of all", "auto": "auto", "searched": "aux, best of 24 K, r",
}  # fmt: skip
"""What a variant is called."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure: the paper's, ours, and what guessing gives."""

    facts: Facts
    """What it is a figure of: n, q, samples, method, …"""
    paper: float | None = None
    ours: float | None = None
    """None where it was not run, or no seed came to an end."""
    std: float | None = None
    count: int = 0
    """Seeds behind ours; for a statistic over the grid, pairs (K, r)."""
    failed: int = 0
    """Seeds without a figure: they diverged or could not be run."""
    chance: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours less the paper's."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper

    def beside_paper(self) -> int | None:
        """Whether ours is near the paper's (0), above it (1) or below it (−1); None where one of them is missing."""
        gap = self.difference
        return None if gap is None else 0 if abs(gap) <= NEAR else 1 if gap > 0 else -1

    def to_dict(self) -> Facts:
        ours = {"mean": self.ours, "std": self.std, "count": self.count, "failed": self.failed}
        return self.facts | {"paper": self.paper} | ours | {"chance": self.chance, "difference": self.difference}


@dataclass(frozen=True, kw_only=True)
class Table:
    """Cells, which of their facts name a row, and which a column."""

    item: str
    preset: str | None
    down: tuple[str, ...]
    across: str
    cells: Sequence[Cell]
    notes: Sequence[str] = ()
    of: str = ""
    """What is said of all its cells, in its title."""
    ours: str = "ours"
    digits: int = 1

    @property
    def title(self) -> str:
        return TITLES[self.item] + self.of + (f", preset {self.preset}" if self.preset else "")

    def records(self) -> list[Facts]:
        """A flat record a cell."""
        return [{"item": self.item, "preset": self.preset} | cell.to_dict() for cell in self.cells]

    def to_dict(self) -> dict[str, Any]:
        head = {"item": self.item, "preset": self.preset, "title": self.title, "notes": list(self.notes)}
        return head | {"columns": [*self.down, self.across], "rows": self.records()}


def side(cell: Cell, other: Cell) -> int | None:
    """Whether one figure is above the other (1), below it (−1) or level with it (0); None where one was not run."""
    if cell.ours is None or other.ours is None:
        return None
    gap, width = cell.ours - other.ours, max(LEVEL, cell.std or 0.0, other.std or 0.0)
    return 0 if abs(gap) <= width else 1 if gap > 0 else -1


def grouped(cells: Iterable[Cell], names: Sequence[str]) -> dict[tuple[Any, ...], list[Cell]]:
    """Cells by the values of some facts, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(values(cell, *names), []).append(cell)
    return groups


def values(cell: Cell, *names: str) -> tuple[Any, ...]:
    """Those of a cell's facts, in this order."""
    return tuple(cell.facts[name] for name in names)
