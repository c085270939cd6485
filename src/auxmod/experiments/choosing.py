"""By what runs are chosen: exact answers to held-out inputs, or, of a large q, those that are near. No torch.

Of a large q few answers are exact, even where all are close. Runs made before curves noted near answers have exact
ones alone: beside such a run, all are compared by these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from auxmod.config import TAUS

LARGE_Q = 1000
NEAR = TAUS[0]
"""Near is within so much of q; the learning curves note how many are."""


def by_near(moduli: Iterable[int]) -> bool:
    """Whether runs of these q are compared by near answers."""
    return all(q > LARGE_Q for q in moduli)


def near_of(row: Mapping[str, Any]) -> float | None:
    """A finished run's share of near answers, where its curve has noted it."""
    end: Mapping[str, float] = (row.get("curve") or [{}])[-1]
    return end.get("near")


def held_out(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], bool]:
    """What finished runs are compared by, and whether that is near answers."""
    near = [share for row in rows if (share := near_of(row)) is not None]
    if rows and len(near) == len(rows) and by_near(row["config"]["problem"]["q"] for row in rows):
        return near, True
    return [row["validation"] for row in rows], False
