"""How good an answer is: match and circular τ-accuracy, their chance levels, and breakdowns.

A :class:`Tally` counts on the device, batch by batch, for all members of an ensemble at once; `report` turns the
counts into plain numbers. Shapes: E members, B batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auxmod.config import TAUS
from auxmod.problem import labels
from auxmod.problem.theory import chance


def circular_error(value: Tensor, target: Tensor, q: Tensor | int) -> Tensor:
    """The distance min(|ŷ−y|, q−|ŷ−y|) between two numbers on a circle of length q."""
    gap = (value - target).abs()
    return torch.minimum(gap, q - gap)


@dataclass(frozen=True)
class Tally:
    """Counts per member: right and missing answers, answers within each τ, and right answers by wraps and by zeros."""

    q: Tensor
    taus: tuple[float, ...]
    match: Tensor
    missing: Tensor
    """Answers that are not finite; they count as wrong."""
    within: Tensor
    wraps: Tensor
    zeros: Tensor

    @classmethod
    def empty(cls, q: Tensor, n: int, taus: tuple[float, ...] = TAUS) -> Tally:
        """A tally with nothing counted yet, for E members with moduli ``q`` (E,)."""
        E, T = len(q), len(taus)
        counts = (
            torch.zeros(s, dtype=torch.int64, device=q.device) for s in ((E,), (E,), (E, T), (E, n, 2), (E, n + 1, 2))
        )
        return cls(q, taus, *counts)

    def add(self, value: Tensor, x: Tensor) -> None:
        """Count a batch: unrounded answers (E, B) to inputs (E, B, N)."""
        q = self.q[:, None]
        total = labels.sums(x)
        target = labels.residues(total, q)
        given = torch.isfinite(value)
        right = given & (labels.rounded(value, q) == target)
        error = circular_error(torch.where(given, value, torch.nan), target.double(), q)
        bounds = torch.tensor(self.taus, dtype=torch.float64, device=x.device) * q  # (E, T)
        self.match.add_(right.sum(1))
        self.missing.add_((~given).sum(1))
        self.within.add_((error[:, :, None] <= bounds[:, None, :] + 1e-9).sum(1))
        _count(self.wraps, labels.quotients(total, q), right)
        _count(self.zeros, (x == 0).sum(-1), right)

    def report(self, angles: bool) -> list[dict[str, Any]]:
        """One plain dictionary per member: accuracies as shares in [0, 1], each with its chance level.

        `missing` is present only if some answers were not finite.
        """
        rows = []
        for e, q in enumerate(self.q.tolist()):
            count = max(1, int(self.wraps[e, :, 0].sum()))
            within = (self.within[e].double() / count).tolist()
            rows.append(
                {
                    "match": int(self.match[e]) / count,
                    "chance": chance(q, None, angles),
                    "tau": {f"{t:.7g}": share for t, share in zip(self.taus, within, strict=True)},
                    "tau_chance": {f"{t:.7g}": chance(q, t, angles) for t in self.taus},
                    "samples": count,
                    "by_wraps": _buckets(self.wraps[e]),
                    "by_zeros": _buckets(self.zeros[e]),
                }
                | ({"missing": missing} if (missing := int(self.missing[e])) else {})
            )
        return rows


def best_constant(residues: Tensor, q: int, tau: float | None, angles: bool) -> float:
    """The accuracy of always giving the same answer, the one that fits these residues (B,) best.

    ``tau`` and ``angles`` are as in `theory.chance`. It counts the residues in every arc as wide as the tolerance.
    """
    width = 0.0 if tau is None else 2 * tau * q if angles else 2 * int(tau * q + 1e-9)
    at = residues.double().sort().values
    beyond = torch.searchsorted(torch.cat((at, at + q)), at + width + 1e-9, right=True)
    held = beyond - torch.arange(len(at), device=at.device)
    return min(1.0, int(held.max()) / len(at))


def _count(table: Tensor, bucket: Tensor, right: Tensor) -> None:
    """Add each bucket's counts of answers and of right answers to ``table`` (E, buckets, 2)."""
    E, size, _ = table.shape
    flat = (bucket + size * torch.arange(E, device=bucket.device)[:, None]).flatten()
    for column, chosen in enumerate((flat, flat[right.flatten()])):
        table[..., column].add_(torch.bincount(chosen, minlength=E * size).view(E, size))


def _buckets(table: Tensor) -> list[dict[str, int]]:
    rows = enumerate(table.tolist())
    return [{"bucket": b, "samples": count, "correct": right} for b, (count, right) in rows if count]
