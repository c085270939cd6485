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


def held_out(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], bool]:
    """The shares that finished runs are compared by, and whether those are of near answers."""
    near = [share for row in rows if (share := near_of(row)) is not None]
    if rows and len(near) == len(rows) and by_near(row["config"]["problem"]["q"] for row in rows):
        return near, True
    return [row["validation"] for row in rows], False


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
        near = [share for share in map(tested_near, done) if share is not None]
        figures = {
            **{"seeds": len(done), "failed": len(its) - len(done)},
            "validation": statistics.fmean(row["validation"] for row in done) if done else None,
            "sought": statistics.fmean(shares[row["hash"]] for row in done) if done else None,
            "match": statistics.fmean(row["scores"]["match"] for row in done) if done else None,
            "near": statistics.fmean(near) if near else None,
        }
        cells.append({"k": k, "r": r, "rho": rho((1, k), (1 - r, r)), **figures})
    measured = [cell for cell in cells if cell["validation"] is not None]
    best = max(measured, key=lambda cell: cell["sought"], default=None)
    first = configs[0]
    return {
        **{"n": first.problem.n, "q": first.problem.q, "samples": first.training.samples},
        "chance": scored[0]["scores"]["chance"] if scored else None,
        "near_chance": scored[0]["scores"]["tau_chance"][f"{NEAR:g}"] if by_nearness else None,
        "by": "near" if by_nearness else "match",
        "failed": sum("failed" in row for row in rows),
        "cells": cells,
        "best": best,
        "equals": sum(best is not None and cell["sought"] == best["sought"] for cell in measured),
    }
