"""Sums, residues and their points on the circle: exact in int64, float32 only at the very end.

Shapes: … any leading axes (members, batch), N terms, J moduli.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sums(x: Tensor) -> Tensor:
    """S = Σ x_i over the last axis, int64 (N·q can exceed 2^31)."""
    return x.sum(-1, dtype=torch.int64)


def residues(total: Tensor, moduli: Tensor | int) -> Tensor:
    """f_m = S mod m: f_q for m = q, f_Kq for m = Kq."""
    return total.to(torch.int64) % moduli


def quotients(total: Tensor, q: Tensor | int) -> Tensor:
    """The number of wraps D_q = ⌊S / q⌋."""
    return total.to(torch.int64).div(q, rounding_mode="floor")


def points(residue: Tensor, moduli: Tensor | int) -> Tensor:
    """(cos φ, sin φ) for φ = 2π·residue/modulus, float32 (…, 2); the division and the angle are in float64."""
    angle = residue.double() / moduli * (2 * math.pi)
    return torch.stack((angle.cos(), angle.sin()), -1).float()


def values(point: Tensor, q: Tensor | int) -> Tensor:
    """The unrounded answer φ·q/2π ∈ [0, q) of a point (…, 2), float64: the inverse of :func:`points`."""
    x, y = point.double().unbind(-1)
    turns = torch.atan2(y, x) / (2 * math.pi)
    value = (turns - turns.floor()) * q
    return torch.where(value >= q, torch.zeros_like(value), value)  # a tiny negative angle rounds up to q


def rounded(value: Tensor, q: Tensor | int) -> Tensor:
    """The nearest whole number on the circle; rounding up to q gives 0."""
    return value.round().to(torch.int64) % q
