"""Muon (Jordan et al. 2024) for the matrices of E members: momentum, made orthogonal before it is a step.

AdamW, in `optimiser`, goes on serving everything that is not a matrix of a block. Steps are scaled to the size that
AdamW's have (Liu et al. 2025), so that one learning rate and one weight decay serve both.

A matrix X becomes (X·Xᵀ)^(−½)·X. The root is a product of a few polynomials of X·Xᵀ, so that all but the first and
last product are of the short side alone, and matrices of any length share them.

Shapes: E members, G a member's matrices end to end, M matrices with a short side of S.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from auxmod.learning import fused

POLYNOMIALS = (
    (7.5328, -21.4126, 15.6918),
    (4.1571, -3.5990, 0.8033),
    (3.4546, -2.7612, 0.6010),
    (2.3251, -1.6908, 0.4212),
)
"""(a, b, c): x becomes a·x + b·x³ + c·x⁵, and together they take [0.004, 1] to [0.86, 1.15].

Each is the best there is for what the ones before it leave (Amsel et al. 2025).
"""
FLOOR = 1e-5
"""Added to the squares of singular values, so that rounding in half precision makes none of them negative."""
SIZE = 0.2
"""The root mean square of an entry of AdamW's step, roughly, in learning rates."""


def update(
    p: Tensor,
    m: Tensor,
    gradients: Tensor,
    half: Tensor | None,
    scalars: Tensor,
    shapes: Mapping[int, tuple[int, int]],
    one_pass: bool = False,
) -> None:
    """A step on (E, G) rows, in place; ``shapes`` says where in a row each matrix starts, and its size."""
    aim = fused.kernels.momentum(m, gradients, scalars) if one_pass else momentum(m, gradients, scalars)
    step = directions(aim, shapes)
    if one_pass:
        fused.kernels.descend(p, step, half, scalars)
    else:
        descend(p, step, half, scalars)


def momentum(m: Tensor, gradients: Tensor, scalars: Tensor) -> Tensor:
    """Nesterov's: the mean ``m`` is brought up to date, and the look ahead returned."""
    taken, shrink, _, _, beta = scalars[:, :5, None].unbind(1)  # no index tensor: this may be captured
    gradient = torch.where(taken > 0, gradients * shrink, 0)
    m.mul_(beta).add_(gradient)
    return gradient.add_(m * beta)


def descend(p: Tensor, step: Tensor, half: Tensor | None, scalars: Tensor) -> None:
    """Weight decay and a step of the learning rate; ``half`` is the parameters' copy in half precision."""
    lr, decay = scalars[:, 2:4, None].unbind(1)
    p.mul_(1 - lr * decay).sub_(lr * step)
    if half is not None:
        half.copy_(p)


def directions(aim: Tensor, shapes: Mapping[int, tuple[int, int]]) -> Tensor:
    """The step that each matrix of the rows (E, G) becomes."""
    parts: dict[int, Tensor] = {}
    for alike in _by_short_side(shapes):
        stacks = [
            torch.stack([aim[:, start : start + rows * columns] for start in starts], 1).view(-1, rows, columns)
            for (rows, columns), starts in alike.items()
        ]
        for starts, made in zip(alike.values(), steps(stacks), strict=True):
            parts |= zip(starts, made.view(len(aim), len(starts), -1).unbind(1), strict=True)
    ordered = [parts[start] for start in sorted(parts)]
    padding = aim.shape[1] - sum(part.shape[1] for part in ordered)
    return torch.cat([*ordered, aim.new_zeros(len(aim), padding)], 1)


def steps(stacks: Sequence[Tensor]) -> list[Tensor]:
    """Stacks of matrices (M, rows, columns) of one short side, made orthogonal, and of the size of AdamW's steps."""
    tall = [x.shape[1] > x.shape[2] for x in stacks]
    squares = [_square(x.mT if t else x) for x, t in zip(stacks, tall, strict=True)]
    roots, made = inverse_root(torch.cat(squares)), []
    for x, t in zip(stacks, tall, strict=True):
        root, roots = roots[: len(x)], roots[len(x) :]
        root = (SIZE * math.sqrt(max(x.shape[1:])) * root).to(x.dtype)
        made.append(x @ root if t else root @ x)
    return made


def inverse_root(squares: Tensor, half: torch.dtype | None = None) -> Tensor:
    """G^(−½) for symmetric G (M, S, S) with no negative eigenvalues, roughly; small eigenvalues count as larger."""
    size: Tensor = 1.01 * squares.norm(dim=(1, 2), keepdim=True).clamp(min=1e-30)  # no eigenvalue is larger
    g = (squares / size).to(half or (torch.float16 if squares.is_cuda else squares.dtype))
    g.diagonal(dim1=1, dim2=2).add_(FLOOR)
    root = factor = _polynomial(g, *POLYNOMIALS[0])
    for coefficients in POLYNOMIALS[1:]:
        g = factor @ g @ factor
        factor = _polynomial(g, *coefficients)
        root = root @ factor
    return root / size.sqrt()


def _polynomial(g: Tensor, a: float, b: float, c: float) -> Tensor:
    """a + b·G + c·G²."""
    out = torch.baddbmm(g, g, g, beta=b, alpha=c)
    out.diagonal(dim1=1, dim2=2).add_(a)
    return out


def _square(x: Tensor) -> Tensor:
    """X·Xᵀ, in float32 where X is of half precision."""
    if x.dtype in (torch.float32, torch.float64):
        return x @ x.mT
    product: Tensor = torch.bmm(x, x.mT, out_dtype=torch.float32)
    return product


def _by_short_side(shapes: Mapping[int, tuple[int, int]]) -> list[dict[tuple[int, int], list[int]]]:
    """Where the matrices of each size start, those of one short side together."""
    out: dict[int, dict[tuple[int, int], list[int]]] = {}
    for start, size in shapes.items():
        out.setdefault(min(size), {}).setdefault(size, []).append(start)
    return list(out.values())
