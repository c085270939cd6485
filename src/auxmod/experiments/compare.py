"""Ways to set K and r, compared at equal cost: the paper's grid, two searches, the theory's choice, and a fixed pair.

Each way chooses by held-out accuracy, from runs of one seed. Its choice is then trained anew with other seeds, and the
test accuracies of those runs, exact and near, are compared: the best of many runs flatters itself, a fresh one does
not. A grid of 24 pairs costs 24 runs; `search` (over K and r) and `wide` (over what a search varies by default) may
spend as much; the theory and the fixed pair cost nothing. Results append to one JSONL file, and a comparison that was
stopped goes on. No command runs this; docs/results.md has its results:

    import torch
    from auxmod.experiments.compare import compare
    problems = [(16, 97), (32, 257), (64, 433)]
    compare(problems, {"embedding": "angular"}, "runs/compare", torch.device("cuda"), preset="best")
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments import space
from auxmod.experiments.asking import Plan
from auxmod.experiments.choosing import NEAR, pairs
from auxmod.experiments.presets import GRID
from auxmod.experiments.ranges import expand
from auxmod.experiments.resolving import resolved
from auxmod.experiments.results_file import rows_of
from auxmod.experiments.search import run_search
from auxmod.experiments.study import opened, summary
from auxmod.experiments.sweep import run_sweep
from auxmod.files import append_line, json_line, read_lines, sha256
from auxmod.problem import theory

FIXED = {"k": 4, "r": 0.3}
"""The pair that is used if nothing is chosen."""
Settings = Mapping[str, Any]
Choice = tuple[dict[str, Any], float, float | None]
"""What a way settles on, its cost in whole runs, and the held-out accuracy it saw."""


def compare(
    problems: Sequence[tuple[int, int]],
    settings: Settings,
    place: str | Path,
    device: torch.device,
    *,
    preset: str | None = None,
    grid: Mapping[str, str] = GRID,
    members: int = 8,
    seeds: Sequence[int] = (1, 2, 3),
    ways: Sequence[str] = ("grid", "search", "wide", "theory", "fixed"),
) -> list[dict[str, Any]]:
    """A row for each problem and way, in order; the rows are also in `compare.jsonl` in the directory ``place``."""
    place = Path(place)
    place.mkdir(parents=True, exist_ok=True)
    out = place / "compare.jsonl"
    there = {(row.get("setup"), row["way"]): row for row in (read_lines(out) if out.exists() else [])}
    rows: list[dict[str, Any]] = []
    for n, q in problems:
        base = {**settings, "n": n, "q": q}
        usual = resolved(base | FIXED, preset)
        setup = sha256(json_line([usual.hash, grid, list(seeds)]))[:12]  # rows of a setup are made once
        case = {"embedding": usual.model.embedding, "preset": preset, "n": n, "q": q, "setup": setup}
        choosers = _choosers(base, preset, place / f"n{n}-q{q}", device, grid, members)
        for way in ways:
            if (setup, way) in there:
                rows.append(there[setup, way])
                continue
            chosen, cost, seen = choosers[way]()
            final = [resolved(base | chosen | {"seed": seed}, preset) for seed in seeds]
            trained = _trained(final, place / "final.jsonl", device)
            figures = {**_over_seeds(trained), "provenance": trained[0]["provenance"]}
            rows.append({**case, "way": way, "choice": chosen, "cost": cost, "validation": seen, **figures})
            append_line(out, rows[-1])
    return rows


def _over_seeds(trained: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Mean exact and near answers to test inputs: with a large q few are exact, whatever was chosen."""
    scores = [row["scores"] for row in trained if "scores" in row]
    match, near = [each["match"] for each in scores], [each["tau"][f"{NEAR:g}"] for each in scores]
    figures = {"match": statistics.fmean(match), "near": statistics.fmean(near)} if scores else {"match": None}
    return figures | {"std": statistics.stdev(match) if match[1:] else None, "seeds": len(match)}


def _choosers(
    base: Settings, preset: str | None, place: Path, device: torch.device, grid: Mapping[str, str], members: int
) -> dict[str, Callable[[], Choice]]:
    cells = expand(grid)

    def by_grid() -> Choice:
        runs = [resolved({**base, **cell}, preset) for cell in cells]
        best = pairs(runs, _trained(runs, place.with_suffix(".grid.jsonl"), device))["best"]
        require(best is not None, "Every cell of the grid failed, so there is no choice to compare.")
        return {"k": best["k"], "r": best["r"]}, float(len(cells)), best["sought"]

    def by_search(name: str, given: Settings) -> Choice:
        searched, file = space.parse_space({**base, **given}, preset), place.with_suffix(f".{name}.jsonl")
        how = Plan(trials=10 * len(cells), members=members, budget=len(cells))
        with opened(f"sqlite:///{place.with_suffix(f'.{name}.db')}", searched.name, searched) as study:
            for _ in run_search(study, searched, file, device, how):
                pass
            found = summary(study, searched)
        best = found["best"]
        require(best is not None, "No trial of the search came to an end, so there is no choice to compare.")
        chosen = {key: space.as_setting(key, value) for key, value in best["params"].items()}
        return chosen, found["cost"], best["validation"]

    return {
        "grid": by_grid,
        "search": lambda: by_search("search", {"k": space.DEFAULT["k"], "r": space.DEFAULT["r"]}),
        "wide": lambda: by_search("wide", {}),
        "theory": lambda: (dict(zip(("k", "r"), theory.choose(base["n"], base["q"]), strict=True)), 0.0, None),
        "fixed": lambda: (dict(FIXED), 0.0, None),
    }


def _trained(configs: Sequence[RunConfig], results: Path, device: torch.device) -> list[dict[str, Any]]:
    """The runs' rows, in order; runs that are in the file already are not trained again."""
    for _ in run_sweep(configs, results, device):
        pass
    return rows_of(configs, results)
