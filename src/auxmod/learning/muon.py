"""Muon (Jordan et al. 2024) for the matrices of E members: momentum, made orthogonal before it is a step.

AdamW, in `optimiser`, goes on serving everything that is not a matrix of a block. Steps are scaled to the size that
AdamW's have (Liu et al. 2025), so that one learning rate and one weight decay serve both.

A matrix X becomes (X·Xᵀ)^(−½)·X. The root is a product of a few polynomials of X·Xᵀ, so that all but the first and
last product are of the short side alone, and matrices of any length share them.

Shapes: E members, G a member's matrices end to end, M matrices with a short side of S.
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
"""(a, b, c): x becomes a·x + b·x³ + c·x⁵, and together they take [0.004, 1] to [0.86, 1.15].

Each is the best there is for what the ones before it leave (Amsel et al. 2025).
"""
FLOOR = 1e-5
"""Added to the squares of singular values, so that rounding in half precision makes none of them negative."""
SMALLEST = 1e-15
"""The least size that a matrix X·Xᵀ is taken to have: the squares of far smaller ones are nothing in float32.

A matrix whose gradients have vanished then steps less and less, where it would be divided by a size that is none.
"""
SIZE = 0.2
"""The root mean square of an entry of AdamW's step, roughly, in learning rates."""


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
    """A step on (E, G) rows, in place; ``stacks`` says what lies in a row."""
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


def combine(x: Tensor, y: Tensor, z: Tensor | None = None, a: float = 0.0, b: float = 0.0, c: float = 1.0) -> Tensor:
    """a·1 + b·Z + c·X·Y, for each of M square matrices."""
    if z is None:
        return x @ y
    out = torch.baddbmm(z, x, y, beta=b, alpha=c)
    out.diagonal(dim1=1, dim2=2).add_(a)
    return out


def steps(stacks: Sequence[Tensor], multiply: Combine = combine) -> list[Tensor]:
    """Stacks of matrices (M, rows, columns) of one short side, made orthogonal, and of the size of AdamW's steps."""
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
    """Symmetric matrices end to end, each over a bound on its eigenvalues; and those bounds, (M, 1, 1)."""
    sizes = [1.01 * square.norm(dim=(1, 2), keepdim=True).clamp(min=SMALLEST) for square in squares]
    g = squares[0].new_empty(sum(map(len, squares)), *squares[0].shape[1:], dtype=dtype)
    start = 0
    for square, size in zip(squares, sizes, strict=True):
        torch.mul(square, 1 / size, out=g[start : (start := start + len(square))])  # one pass, to the other dtype
    return g, torch.cat(sizes)


def inverse_root(g: Tensor, multiply: Combine = combine) -> Tensor:
    """G^(−½) for symmetric G (M, S, S) with eigenvalues in [0, 1], roughly; small ones grow, in ``g`` too."""
    g.diagonal(dim1=1, dim2=2).add_(FLOOR)
    (a, b, c), *others = POLYNOMIALS
    root = factor = multiply(g, g, g, a, b, c)
    for a, b, c in others:
        g = multiply(multiply(factor, g), factor)
        factor = multiply(g, g, g, a, b, c)
        root = multiply(root, factor)
    return root


def _square(x: Tensor) -> Tensor:
    """X·Xᵀ, in float32 where X is of half precision."""
    if x.dtype in (torch.float32, torch.float64):
        return x @ x.mT
    product: Tensor = torch.bmm(x, x.mT, out_dtype=torch.float32)
    return product


def _by_short_side(stacks: Sequence[Stack]) -> list[list[int]]:
    """The numbers of the stacks, those of one short side together."""
    out: dict[int, list[int]] = {}
    for i, stack in enumerate(stacks):
        out.setdefault(min(stack.rows, stack.columns), []).append(i)
    return list(out.values())
