"""Muon (Jordan et al. 2024) for the matrices of E members: momentum, made orthogonal before it is a step.

AdamW, in `optimiser`, goes on serving everything that is not a matrix of a block. Steps are scaled to the size that
AdamW's have (Liu et al. 2025), so that one learning rate and one weight decay serve both.

Shapes: E members, G a member's matrices end to end.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
ITERATIONS = 5
SIZE = 0.2
"""The root mean square of an entry of AdamW's step, roughly, in learning rates."""


def orthogonal(u: Tensor) -> Tensor:
    """Matrices (…, rows, columns) with u's singular vectors and singular values near 1, by Newton and Schulz."""
    x = u.to(torch.bfloat16) if u.is_cuda else u
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ITERATIONS):
        square = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def update(p: Tensor, m: Tensor, gradients: Tensor, scalars: Tensor, shapes: Mapping[int, tuple[int, int]]) -> None:
    """A step on (E, G) rows, in place; ``shapes`` says where in a row each matrix starts, and its size."""
    taken, shrink, lr, decay, beta = scalars[:, :5, None].unbind(1)
    gradient = torch.where(taken > 0, gradients * shrink, 0)
    m.mul_(beta).add_(gradient)
    aim = gradient.add_(m * beta)  # Nesterov's
    p.mul_(1 - lr * decay)
    for (rows, columns), starts in _alike(shapes).items():
        size = rows * columns
        parts = [aim[:, start : start + size] for start in starts]
        step = orthogonal(torch.stack(parts, 1).view(-1, rows, columns))
        step = step.reshape(len(p), len(starts), size) * (SIZE * math.sqrt(max(rows, columns)) * lr[..., None])
        for start, part in zip(starts, step.unbind(1), strict=True):
            p[:, start : start + size].sub_(part)


def _alike(shapes: Mapping[int, tuple[int, int]]) -> dict[tuple[int, int], list[int]]:
    """Where the matrices of each size start; a matrix of several square ones end to end counts as those."""
    out: dict[tuple[int, int], list[int]] = {}
    for start, (rows, columns) in shapes.items():
        parts = rows // columns if rows == 3 * columns else 1  # queries, keys and values
        size = (rows // parts, columns)
        out.setdefault(size, []).extend(start + part * size[0] * columns for part in range(parts))
    return out
