"""A store's runs as a page shows them: all of them for its script, the grids over K and r, and those drawn first."""

from __future__ import annotations

import collections
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxmod.errors import require
from auxmod.experiments import catalogue
from auxmod.experiments.catalogue import Entry
from auxmod.experiments.groups import seedless
from auxmod.problem.theory import chance
from auxmod.reporting.cells import grouped

MOST = 6
"""The most runs that are drawn at first."""
LONG = 200
"""The most points that a drawn learning curve has."""
PROBLEM = ("embedding", "n", "q", "samples")
PAIR = {"k", "r", "moduli", "weights", "seed", "method"}
"""Settings in which the runs of one heatmap may differ."""


def read(store: Path) -> tuple[list[Entry], list[str]]:
    """A store's runs, each once and the best first, and a note about everything in it that cannot be read."""
    found, notes = catalogue.find(store)
    return catalogue.arrange(catalogue.once(found, catalogue.by_hash), "match"), notes


# ---- for the page's script ----------------------------------------------------------------------------------


def told(entries: Sequence[Entry], store: Path) -> dict[str, list[Any]]:
    """Everything that a page shows of each run, part by part: similar values side by side compress better."""
    scores = [entry.row.get("scores", {}) for entry in entries]
    return {
        "run": [_name(entry, store) for entry in entries],
        "settings": [entry.settings for entry in entries],
        "figures": [_figures(entry) for entry in entries],
        "made": [entry.row.get("provenance", {}) for entry in entries],
        "curves": [_curve(entry) for entry in entries],
        "wraps": [_buckets(each.get("by_wraps", [])) for each in scores],
        "zeros": [_buckets(each.get("by_zeros", [])) for each in scores],
    }


def _name(entry: Entry, store: Path) -> dict[str, Any]:
    inside = entry.path.is_dir() and entry.path.is_relative_to(store)
    name = str(entry.path.relative_to(store)) if inside else entry.name
    return {
        "name": entry.path.resolve().name if name == "." else name,
        "hash": entry.row["hash"],
        "state": entry.state,
        "failed": entry.row.get("failed"),
    }


def _figures(entry: Entry) -> dict[str, Any]:
    """Accuracies as shares, each with its chance level."""
    scores = entry.row.get("scores", {})
    taus, chances = scores.get("tau", {}), scores.get("tau_chance", {})
    figures = {"match": scores.get("match"), "chance": scores.get("chance"), "validation": entry.row.get("validation")}
    figures |= {f"within {tau} of the circle": share for tau, share in taus.items()}
    figures |= {f"chance of that at {tau}": share for tau, share in chances.items()}
    return figures | {"test inputs": scores.get("samples")}


def _curve(entry: Entry) -> list[list[float]]:
    """Steps, and held-out accuracy in percent. A long curve is thinned evenly, and keeps its last point."""
    points = entry.curve()
    points = points[:: -(1 + len(points) // LONG)][::-1]
    return [[step for step, _ in points], [round(100 * share, 3) for _, share in points]]


def _buckets(rows: Sequence[Mapping[str, int]]) -> list[list[int]]:
    return [[row["bucket"], row["samples"], row["correct"]] for row in rows]


def alike(entries: Sequence[Entry]) -> list[list[int]]:
    """Indices of the runs, those that differ only in their seed together; in order of the best of each."""
    return list(grouped(range(len(entries)), lambda at: seedless(entries[at])).values())


def telling(entries: Sequence[Entry], where: str | None = None) -> list[int]:
    """Indices of the runs to draw at first, at most `MOST`.

    Those that ``where`` selects; by default, the best seed of each configuration of the problem with the most methods.
    """
    if where is not None:
        asked = {id(entry) for entry in catalogue.select(entries, where)}
        require(bool(asked), f"No run is as --where {where!r} asks: leave it out, or ask for less.")
        return [at for at, entry in enumerate(entries) if id(entry) in asked][:MOST]
    finished = [at for at, entry in enumerate(entries) if "scores" in entry.row]
    problems = grouped(finished, lambda at: tuple(entries[at].settings[name] for name in PROBLEM))
    methods = [({entries[at].settings["method"] for at in group}, group) for group in problems.values()]
    group = max(methods, key=lambda each: (len(each[0]), len(each[1])), default=(set(), []))[1]
    kinds = {seedless(entries[at]): at for at in reversed(group)}  # the best seed of each configuration
    ranked = sorted(kinds.values())
    first = {entries[at].settings["method"]: at for at in reversed(ranked)}
    return list(dict.fromkeys([*sorted(first.values()), *ranked]))[:MOST]


def _key(entry: Entry, without: set[str]) -> str:
    return json.dumps({name: value for name, value in entry.settings.items() if name not in without}, sort_keys=True)


# ---- over K and r -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """Runs that differ only in K, r and seed."""

    settings: Mapping[str, Any]
    ks: list[int]
    rs: list[float]
    found: Mapping[tuple[int, float], list[float]]
    """Match accuracies in percent at each (K, r), one per seed."""
    chance: float

    def means(self) -> list[list[float | None]]:
        """The mean at each pair, r down and K across; None where nothing was run."""
        return [
            [statistics.fmean(self.found[k, r]) if (k, r) in self.found else None for k in self.ks] for r in self.rs
        ]


def grids(entries: Sequence[Entry]) -> list[Grid]:
    """Every set of finished runs over at least two K and two r, sorted by embedding, N, q and samples."""
    finished = [entry for entry in entries if "scores" in entry.row and entry.settings["k"] is not None]
    made = [_grid(group) for group in grouped(finished, lambda entry: _key(entry, PAIR)).values()]
    wide = [grid for grid in made if len(grid.ks) > 1 and len(grid.rs) > 1]
    return sorted(wide, key=lambda grid: [grid.settings[name] for name in PROBLEM] + [str(grid.settings)])


def _grid(group: Sequence[Entry]) -> Grid:
    pairs = grouped(group, lambda entry: (entry.settings["k"], round(entry.settings["r"], 6)))
    found = {pair: [100 * entry.row["scores"]["match"] for entry in own] for pair, own in pairs.items()}
    for side in (1, 0):  # drop an r that has a single K, as random searches draw them; then a K that has a single r
        shared = collections.Counter(pair[side] for pair in found)
        found = {pair: values for pair, values in found.items() if shared[pair[side]] > 1}
    ks, rs = sorted({k for k, _ in found}), sorted({r for _, r in found})
    settings = {name: value for name, value in group[0].settings.items() if name not in PAIR}
    return Grid(settings, ks, rs, found, 100 * chance(settings["q"], None, angles=False))


def differing(grids: Sequence[Grid]) -> list[str]:
    """The settings, in words, that tell each grid from the other grids of its problem."""
    words = []
    for grid in grids:
        rivals = [each for each in grids if all(each.settings[name] == grid.settings[name] for name in PROBLEM)]
        names = [name for name in grid.settings if len({str(each.settings[name]) for each in rivals}) > 1]
        words.append(", ".join(f"{name} {grid.settings[name]}" for name in names))
    return words
