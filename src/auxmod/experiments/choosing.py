"""By what runs are chosen: exact answers to held-out inputs, or, of a large q, those that are near. No torch.

Of a large q few answers are exact, even where all are close. What is compared is always one of the two: where a run
has not noted its near answers, as none did at first, or a q is small, exact ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

LARGE_Q = 1000
NEAR = 0.005
"""Near is within so much of q; the learning curves note how many are."""


def by_near(moduli: Iterable[int]) -> bool:
    """Whether runs of these q are compared by near answers."""
    return all(q > LARGE_Q for q in moduli)


def held_out(rows: Sequence[Mapping[str, Any]]) -> tuple[list[float], bool]:
    """What finished runs are compared by, and whether that is near answers."""
    ends = [(row.get("curve") or [{}])[-1] for row in rows]
    near = by_near(row["config"]["problem"]["q"] for row in rows) and all("near" in end for end in ends)
    return [end["near"] if near else row["validation"] for row, end in zip(rows, ends, strict=True)], near
