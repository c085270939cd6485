"""A table as plain cells, each of which knows what it is a figure of. `render` arranges and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from auxmod.experiments.wants import Facts

if TYPE_CHECKING:
    from auxmod.reporting.results import Origin

Item = TypeVar("Item")
Key = TypeVar("Key")

NEAR = 5.0
"""Points from the paper's figure that still count as agreement."""
LEVEL = 1.0
"""Points between two methods that are no difference; the spread of either's seeds replaces it if that is wider."""


class Shape(NamedTuple):
    """A table's title, layout and number format."""

    title: str
    down: tuple[str, ...]
    """The facts that name a row."""
    across: str = "method"
    """The fact whose values are the columns."""
    ours: str = "ours"
    digits: int = 1
    seeds: bool = False
    """Every figure is a mean over seeds, whatever the columns are; else those of tables by method alone."""


SHAPES = {
    "table1a": Shape("Table 1a: match accuracy (%), token embedding", ("n", "q", "samples")),
    "table1b": Shape("Table 1b: match accuracy (%), angular embedding", ("n", "q", "samples")),
    "table2": Shape("Table 2: τ-accuracy (%), angular embedding", ("tau", "n", "q", "samples")),
    "table3": Shape(
        "Table 3: match accuracy (%) over the 24 pairs K = 4..9, r = 0.1..0.4",
        ("embedding", "n", "q", "samples"),
        across="statistic",
    ),
    "configs": Shape(
        "Table 6: match accuracy (%) of 16 configurations, token embedding, N = 8, q = 97",
        ("norm", "bias", "init", "dropout"),
    ),
    "gap": Shape(
        "Table 4: the bound (1 − 1/q)^N on the gap between sparse training and uniform testing",
        ("n",),
        across="q",
        ours="exact",
        digits=4,
    ),
    "rho": Shape(
        "ρ = ((1 − r) + r/K) / (2/3), the expected wraps of aux over those of sparse",
        ("r",),
        across="k",
        ours="ρ",
        digits=3,
    ),
    "redbox": Shape("Match accuracy (%) over K and r, angular embedding, N = 64, q = 433", ("r",), across="k"),
    "grid": Shape("Match accuracy (%) over K and r", ("embedding", "n", "q", "r"), across="k"),
    "headline": Shape("Match accuracy (%) of the demo: angular embedding, a small encoder", ("n", "q", "samples")),
    "harder": Shape("Match accuracy (%) of the demo by how long the sum is, and by its modulus", ("n", "q")),
    "fewer": Shape(
        "Match accuracy (%) of the demo by how many samples it has, and how often it sees them",
        ("n", "q", "samples", "epochs", "steps"),
    ),
    "beyond": Shape(
        "Past the paper: accuracy (%) at equal samples and steps, each method at its best",
        ("embedding", "n", "q", "samples", "tau", "asks"),
    ),
    "setup": Shape(
        "Match accuracy (%) in what the paper leaves open, on two cells of Table 1",
        ("embedding", "pooling", "final_norm", "init", "clip"),
    ),
    "knobs": Shape("Match accuracy (%) with one stated value changed, on the same two cells", ("embedding", "changed")),
    "finalists": Shape(
        "Match accuracy (%) of the configurations nearest to the paper's, on all cells of Table 1",
        ("embedding", "n", "q", "changed"),
    ),
    "longer": Shape(
        "Match accuracy (%) by how long the paper may have trained, on all cells of Table 1",
        ("embedding", "n", "q", "samples", "setup", "epochs"),
    ),
    "starts": Shape(
        "Match accuracy (%) of four of the 16 configurations in what the paper leaves open",
        ("pooling", "clip", "init", "dropout"),
    ),
}
"""Every table, by the name of its item."""
NAMES = {
    "aux": "aux", "sparse": "sparse", "naive": "naive", "expected": "aux, expected",
    "fixed": "aux, label fixed", "all": "aux, asked of all", "auto": "auto", "searched": "aux, best of 24 K, r",
}  # fmt: skip
"""How tables and figures call each variant."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell of a table: the paper's figure, ours, and chance."""

    facts: Facts
    """What it is a figure of: n, q, samples, method, …"""
    paper: float | None = None
    ours: float | None = None
    """None if it was not run, or if every seed failed."""
    std: float | None = None
    count: int = 0
    """Seeds behind ours; for a statistic over the grid, the pairs (K, r) behind it."""
    failed: int = 0
    """Seeds without a figure: they diverged or could not be run."""
    unfinished: int = 0
    """Seeds that have no figure yet."""
    chance: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None or self.ours is None else self.ours - self.paper

    def beside_paper(self) -> int | None:
        """0 if ours is near the paper's figure, 1 if above it, −1 if below it; None if either is missing."""
        gap = self.difference
        return None if gap is None else 0 if abs(gap) <= NEAR else 1 if gap > 0 else -1

    def to_dict(self) -> Facts:
        ours = {"mean": self.ours, "std": self.std, "count": self.count, "failed": self.failed}
        ours |= {"unfinished": self.unfinished} if self.unfinished else {}
        return self.facts | {"paper": self.paper} | ours | {"chance": self.chance, "difference": self.difference}


@dataclass(frozen=True, kw_only=True)
class Table:
    """An item's cells in one preset, and which of their facts name a row."""

    item: str
    preset: str | None
    """None if the item is the same in every preset."""
    down: tuple[str, ...]
    """The shape's, preceded by `samples` if the cells differ in it."""
    cells: Sequence[Cell]
    notes: Sequence[str] = ()
    of: str = ""
    """A part of the title that holds for all cells."""
    made: Sequence[Origin] = ()
    """On what the figures were made."""
    command: str = ""
    """What makes them again; empty if the item has no runs."""

    @property
    def shape(self) -> Shape:
        return SHAPES[self.item]

    @property
    def columns(self) -> list[Any]:
        """The values of the fact whose values are the columns, from left to right."""
        return list(dict.fromkeys(cell.facts[self.shape.across] for cell in self.cells))

    @property
    def title(self) -> str:
        return self.shape.title + self.of + (f", preset {self.preset}" if self.preset else "")

    def origin(self, named: bool = True) -> str:
        """On what the figures were made, and by which command if there is one; empty if there are none."""
        command = f": `{self.command}`" if self.command else ""
        return f"{'; '.join(each.told(named) for each in self.made)}{command}" if self.made else ""

    def records(self) -> list[Facts]:
        """One flat record per cell."""
        return [{"item": self.item, "preset": self.preset} | cell.to_dict() for cell in self.cells]

    def to_dict(self) -> dict[str, Any]:
        head: dict[str, Any] = {"item": self.item, "preset": self.preset, "title": self.title}
        head |= {"notes": list(self.notes), "origin": [each._asdict() for each in self.made]}
        head["command"] = self.command or None
        return head | {"columns": [*self.down, self.shape.across], "rows": self.records()}


def side(cell: Cell, other: Cell) -> int | None:
    """1 if our figure in ``cell`` is above that in ``other``, −1 if below, 0 if level; None if either was not run."""
    if cell.ours is None or other.ours is None:
        return None
    gap, width = cell.ours - other.ours, max(LEVEL, cell.std or 0.0, other.std or 0.0)
    return 0 if abs(gap) <= width else 1 if gap > 0 else -1


def by_facts(cells: Iterable[Cell], names: Sequence[str]) -> dict[tuple[Any, ...], list[Cell]]:
    """Group cells by the values of some facts, in order of first appearance."""
    return grouped(cells, lambda cell: values(cell, *names))


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Group items by ``key``, in order of first appearance."""
    groups: dict[Key, list[Item]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def values(cell: Cell, *names: str) -> tuple[Any, ...]:
    """A cell's values of these facts, in this order."""
    return tuple(cell.facts[name] for name in names)
