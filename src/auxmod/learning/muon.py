"""Muon (Jordan et al. 2024) for the matrices of E members: the step is the momentum, made orthogonal.

AdamW, in `optimiser`, still updates everything that is not a matrix of a block. Steps are scaled to the size of
AdamW's (Liu et al. 2025), so that one learning rate and one weight decay serve both.

A matrix X becomes (X·Xᵀ)^(−½)·X. The root is a product of a few polynomials of X·Xᵀ. So all products except the first
and the last are between square matrices of the short side, and matrices of any length can share them.

Shapes: E members, G numbers in a member's matrices (laid end to end), M matrices with a short side of S.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from auxmod.learning import fused

POLYNOMIALS = (
    (7.5328, -21.4126, 15.6918),
    (4.1571, -3.5990, 0.8033),
    (3.4546, -2.7612, 0.6010),
    (2.3251, -1.6908, 0.4212),
)
"""Each (a, b, c) maps x to a·x + b·x³ + c·x⁵; together they map [0.004, 1] into [0.86, 1.15].

Each is the best possible for the range that the ones before it leave (Amsel et al. 2025).
"""
FLOOR = 1e-5
"""Added to the squares of singular values, so that half-precision rounding makes none of them negative."""
SMALLEST = 1e-15
"""The least size that a matrix X·Xᵀ is taken to have: the squares of far smaller sizes underflow in float32.

A matrix whose gradients have vanished then takes ever smaller steps, and is never divided by a size of 0.
"""
SIZE = 0.2
"""Roughly the root mean square of the entries of AdamW's step, in units of the learning rate."""


Combine = Callable[..., Tensor]
"""`combine`, or its kernel."""


@dataclass(frozen=True)
class Stack:
    """Matrices of one size, end to end in a member's row."""

    start: int
    count: int
    rows: int
    columns: int

    @property
    def part(self) -> slice:
        return slice(self.start, self.start + self.count * self.rows * self.columns)


def update(
    p: Tensor,
    m: Tensor,
    gradients: Tensor,
    half: Tensor | None,
    scalars: Tensor,
    stacks: Sequence[Stack],
    one_pass: bool = False,
) -> None:
    """Take a step on (E, G) rows, in place; ``stacks`` lists the matrices of a row."""
    by_hand = fused.updates if one_pass else None
    look_ahead, down = (by_hand.momentum, by_hand.descend) if by_hand else (momentum, descend)
    aims = [look_ahead(m[:, stack.part], gradients[:, stack.part], scalars) for stack in stacks]
    for alike in _by_short_side(stacks):
        matrices = [aims[i].view(-1, stacks[i].rows, stacks[i].columns) for i in alike]
        made = steps(matrices, by_hand.combine if by_hand else combine)
        for i, step in zip(alike, made, strict=True):
            part = stacks[i].part
            down(p[:, part], step.view(len(p), -1), None if half is None else half[:, part], scalars)


def momentum(m: Tensor, gradients: Tensor, scalars: Tensor) -> Tensor:
    """Nesterov momentum: update the decaying sum ``m`` in place, and return the look-ahead."""
    taken, shrink, _, _, beta = scalars[:, :5, None].unbind(1)  # slices, not an index tensor: this may be captured
    gradient = torch.where(taken > 0, gradients * shrink, 0)
    m.mul_(beta).add_(gradient)
    return gradient.add_(m * beta)


def descend(p: Tensor, step: Tensor, half: Tensor | None, scalars: Tensor) -> None:
    """Apply weight decay and ``step`` times the learning rate to ``p``; update ``half``, its half-precision copy."""
    lr, decay = scalars[:, 2:4, None].unbind(1)
    p.mul_(1 - lr * decay).sub_(lr * step)
    if half is not None:
        half.copy_(p)


def combine(x: Tensor, y: Tensor, z: Tensor | None = None, a: float = 0.0, b: float = 0.0, c: float = 1.0) -> Tensor:
    """a·1 + b·Z + c·X·Y for each of M square matrices; without ``z``, X·Y alone."""
    if z is None:
        return x @ y
    out = torch.baddbmm(z, x, y, beta=b, alpha=c)
    out.diagonal(dim1=1, dim2=2).add_(a)
    return out


def steps(stacks: Sequence[Tensor], multiply: Combine = combine) -> list[Tensor]:
    """Stacks (M, rows, columns) of one short side → the same, made orthogonal, at the size of AdamW's steps."""
    tall = [x.shape[1] > x.shape[2] for x in stacks]
    squares = [_square(x.mT if t else x) for x, t in zip(stacks, tall, strict=True)]
    g, sizes = normalised(squares, torch.float16 if squares[0].is_cuda else squares[0].dtype)
    roots, made = inverse_root(g, multiply), []
    for x, t in zip(stacks, tall, strict=True):
        root, roots = roots[: len(x)], roots[len(x) :]
        size, sizes = sizes[: len(x)], sizes[len(x) :]
        scale = SIZE * math.sqrt(max(x.shape[1:])) / size.sqrt()
        root = torch.mul(root, scale, out=torch.empty_like(root, dtype=x.dtype))
        made.append(x @ root if t else root @ x)
    return made


def normalised(squares: Sequence[Tensor], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Join stacks of symmetric matrices, each divided by a bound on its eigenvalues; also return these, (M, 1, 1)."""
    sizes = [1.01 * square.norm(dim=(1, 2), keepdim=True).clamp(min=SMALLEST) for square in squares]
    g = squares[0].new_empty(sum(map(len, squares)), *squares[0].shape[1:], dtype=dtype)
    start = 0
    for square, size in zip(squares, sizes, strict=True):
        torch.mul(square, 1 / size, out=g[start : (start := start + len(square))])  # divides and converts in one pass
    return g, torch.cat(sizes)


def inverse_root(g: Tensor, multiply: Combine = combine) -> Tensor:
    """Roughly G^(−½) for symmetric G (M, S, S) with eigenvalues in [0, 1]; adds FLOOR to these, in ``g`` itself."""
    g.diagonal(dim1=1, dim2=2).add_(FLOOR)
    (a, b, c), *others = POLYNOMIALS
    root = factor = multiply(g, g, g, a, b, c)
    for a, b, c in others:
        g = multiply(multiply(factor, g), factor)
        factor = multiply(g, g, g, a, b, c)
        root = multiply(root, factor)
    return root


def _square(x: Tensor) -> Tensor:
    """X·Xᵀ, in float32 if X is in half precision."""
    if x.dtype in (torch.float32, torch.float64):
        return x @ x.mT
    product: Tensor = torch.bmm(x, x.mT, out_dtype=torch.float32)
    return product


def _by_short_side(stacks: Sequence[Stack]) -> list[list[int]]:
    """The indices of the stacks, grouped by the length of the short side."""
    out: dict[int, list[int]] = {}
    for i, stack in enumerate(stacks):
        out.setdefault(min(stack.rows, stack.columns), []).append(i)
    return list(out.values())
