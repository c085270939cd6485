"""What runs are chosen by: exact answers to held-out inputs or, if q is large, near answers. No torch.

With a large q few answers are exact, even if all are close. Older runs did not note near answers in their curves: if
one of them is compared, all are compared by exact answers.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auxmod.config import TAUS, RunConfig

LARGE_Q = 1000
NEAR = TAUS[0]
"""An answer is near if it is within this share of q; the learning curves note how many are."""


def constant(scores: Mapping[str, Any], tau: float | None = None) -> float:
    """What the best constant answer gets, of rows of one's own; 0 if inputs are drawn."""
    share: float = scores.get("constant", 0.0) if tau is None else scores.get("tau_constant", {}).get(f"{tau:g}", 0.0)
    return share


def by_near(moduli: Iterable[int]) -> bool:
    """Whether runs with these q are compared by near answers."""
    return all(q > LARGE_Q for q in moduli)


def near_of(row: Mapping[str, Any]) -> float | None:
    """A finished run's share of near answers to held-out inputs, if its curve notes it."""
    end: Mapping[str, float] = (row.get("curve") or [{}])[-1]
    return end.get("near")


def tested_near(row: Mapping[str, Any]) -> float | None:
    """A run's share of near answers to the test inputs."""
    share: float | None = row.get("scores", {}).get("tau", {}).get(f"{NEAR:g}")
    return share


def sought(row: Mapping[str, Any], near: bool) -> float | None:
    """What a finished run is chosen by: exact or ``near`` answers to held-out inputs; None if its row lacks it."""
    return near_of(row) if near else row.get("validation")


def held_out(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float | None], bool]:
    """What finished runs are compared by, and whether that is near answers."""
    large = bool(rows) and by_near(row["config"]["problem"]["q"] for row in rows)
    near = large and all(near_of(row) is not None for row in rows)
    return [sought(row, near) for row in rows], near


def pairs(configs: Sequence[RunConfig], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Each (K, r)'s figures, as means over its seeds, and the best pair by held-out answers; of equals, the first."""
    from auxmod.problem.theory import rho  # imported here, since it needs numpy

    found: dict[tuple[int, float], list[Mapping[str, Any]]] = {}
    for config, row in zip(configs, rows, strict=True):
        found.setdefault((config.method.moduli[1], config.method.weights[1]), []).append(row)
    scored = [row for row in rows if "scores" in row]
    values, by_nearness = held_out(scored)
    shares = {row["hash"]: share for row, share in zip(scored, values, strict=True)}
    cells: list[dict[str, Any]] = []
    for (k, r), its in found.items():
        done = [row for row in its if "scores" in row]
        figures = {
            **{"seeds": len(done), "failed": len(its) - len(done)},
            "validation": _mean(row.get("validation") for row in done),
            "sought": _mean(shares[row["hash"]] for row in done),
            "match": _mean(row["scores"]["match"] for row in done),
            "near": _mean(map(tested_near, done)),
        }
        cells.append({"k": k, "r": r, "rho": rho((1, k), (1 - r, r)), **figures})
    measured = [cell for cell in cells if cell["sought"] is not None]
    best = max(measured, key=lambda cell: cell["sought"], default=None)
    first = configs[0]
    return {
        **{"n": first.problem.n, "q": first.problem.q, "samples": first.training.samples},
        "chance": level(first, scored, None),
        "near_chance": level(first, scored, NEAR) if by_nearness else None,
        "by": "near" if by_nearness else "match",
        "failed": sum("failed" in row for row in rows),
        "cells": cells,
        "best": best,
        "equals": sum(best is not None and cell["sought"] == best["sought"] for cell in measured),
    }


def level(config: RunConfig, rows: Iterable[Mapping[str, Any]], tau: float | None) -> float:
    """What these finished runs' accuracies are to beat: a guess or, of rows of one's own, the best constant answer."""
    from auxmod.problem.theory import chance

    return max([chance(config.problem.q, tau, config.model.angles), *(constant(row["scores"], tau) for row in rows)])


def _mean(shares: Iterable[float | None]) -> float | None:
    """The mean of those that are known."""
    known = [share for share in shares if share is not None]
    return statistics.fmean(known) if known else None
