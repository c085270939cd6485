"""Blocks about Table 1 with 100K samples: the paper's figures, ours in two presets, and how they compare."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auxmod.experiments import recipes
from auxmod.files import read_lines
from auxmod.reporting import results, tables
from auxmod.reporting.cells import Cell
from auxmod.reporting.research import asked, markdown

PRESETS = ("paper", "best")
ITEMS = {"token": "table1a", "angular": "table1b"}
AHEAD = 1.0
"""Points by which a figure must differ from another to be above or below it: single seeds differ by as much."""


class Case(NamedTuple):
    """A cell of Table 1: the figures of each method in each preset."""

    embedding: str
    size: tuple[int, int]
    cells: dict[tuple[str, str], Cell]

    def ours(self, method: str, preset: str) -> float | None:
        return self.cells[method, preset].ours

    def paper(self, method: str) -> float:
        figure = self.cells[method, "paper"].paper
        assert figure is not None
        return figure


def cases(place: Path) -> Iterator[Case]:
    """All 18, from stored results."""
    stored = results.read(place)
    for embedding, item in ITEMS.items():
        built = {preset: tables.build(item, preset, stored, (recipes.SMALL,)).cells for preset in PRESETS}
        for size in recipes.SIZES[embedding]:
            here = {
                (cell.facts["method"], preset): cell
                for preset, cells in built.items()
                for cell in cells
                if (cell.facts["n"], cell.facts["q"]) == size
            }
            yield Case(embedding, size, here)


def table(place: Path) -> str:
    """Cell by cell."""
    compared = [(method, preset) for method in ("aux", "sparse") for preset in (None, *PRESETS)] + [("naive", "best")]
    columns = [f"{method}, the paper's" if preset is None else f"{method}, `{preset}`" for method, preset in compared]
    rows = []
    for case in cases(place):
        (n, q), chance = case.size, case.cells["aux", "paper"].chance
        figures = [
            f"{case.paper(method):.1f}" if preset is None else asked([case.cells[method, preset]])
            for method, preset in compared
        ]
        rows.append((f"{case.embedding}, N = {n}, q = {q}", f"{chance:.1f}", *figures))
    note = "Match accuracy (%), 100K samples: mean ± standard deviation over seeds, their number in brackets."
    return f"{markdown(('case', 'chance', *columns), rows)}\n\n{note} {_origin(place)}"


def in_short(place: Path) -> str:
    """How many cells agree with the paper's, and how the methods compare, each at its best."""
    every = list(cases(place))

    def count(holds: Callable[[Case], bool], embedding: str = "") -> str:
        chosen = [case for case in every if embedding in ("", case.embedding)]
        return f"{sum(map(holds, chosen))} of {len(chosen)}"

    def near(method: str) -> Callable[[Case], bool]:
        return lambda case: _gap(case.ours(method, "paper"), case.paper(method), tables.NEAR) == 0

    def at_best(method: str, gap: Sequence[int]) -> str:
        return count(lambda case: _gap(case.ours(method, "best"), case.paper(method)) in gap)

    def between(gap: int) -> str:
        return count(lambda case: _gap(case.ours("aux", "best"), case.ours("sparse", "best")) == gap)

    lines = (
        f"In the preset `paper`, `aux` is within {tables.NEAR:g} points of the paper's figure in {count(near('aux'))} "
        f"cells: {count(near('aux'), 'token')} for tokens, {count(near('aux'), 'angular')} for angles. `sparse` is in "
        f"{count(near('sparse'))}.",
        f"In the preset `best`, `aux` is above the paper's figure in {at_best('aux', [1])} cells, and `sparse` above "
        f"the paper's or level with it in {at_best('sparse', [0, 1])}.",
        f"With each method at its best, `aux` is ahead of `sparse` in {between(1)} cells, level in {between(0)}, and "
        f"behind in {between(-1)}.",
    )
    return "\n".join(f"- {line}" for line in lines) + f"\n\nLevel is within {AHEAD:g} point."


def _gap(figure: float | None, other: float | None, level: float = AHEAD) -> int | None:
    """Whether one figure is above the other (1), below it (−1) or level with it (0); None where one was not run."""
    if figure is None or other is None:
        return None
    return 0 if abs(figure - other) <= level else 1 if figure > other else -1


def _origin(place: Path) -> str:
    made = {}
    for name in ("table1", "finalists", "beyond"):
        for row in read_lines(place / f"{name}.jsonl"):
            config = row["config"]
            sizes = recipes.SIZES[config["model"]["embedding"]]
            if tuple(config["problem"].values()) in sizes and config["training"]["samples"] == recipes.SMALL:
                made[row["provenance"]["commit"]] = row["provenance"]["device"]
    commits = "; ".join(f"{device}, commit `{commit}`" for commit, device in made.items())
    return f"{commits}: `auxmod reproduce table1a --samples 100_000`, and `table1b`."
