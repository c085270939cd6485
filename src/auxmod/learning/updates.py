"""Triton kernels of the optimisers: an update in one pass over the parameters, in the conventions of `kernels`.

Only `optimiser` and `muon` use them, through `fused`, which knows whether Triton is available. Those two modules also
have the plain counterparts.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


@triton.jit
def _adamw(p, m, v, g, half, per_member, P, G, H, BLOCK: tl.constexpr, HALF: tl.constexpr, eps: tl.constexpr):
    e = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < G
    scalars = per_member + e * 8
    taken, shrink, lr, decay = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 2), tl.load(scalars + 3)
    beta1, beta2 = tl.load(scalars + 4), tl.load(scalars + 5)
    correction1, correction2 = tl.load(scalars + 6), tl.load(scalars + 7)
    gradient = tl.load(g + e * G + at, mask=live, other=0.0).to(tl.float32)
    gradient = tl.where(taken > 0, gradient * shrink, 0.0)
    first = tl.load(m + e * P + at, mask=live, other=0.0) * beta1 + gradient * (1 - beta1)
    second = tl.load(v + e * P + at, mask=live, other=0.0) * beta2 + gradient * gradient * (1 - beta2)
    change = (first / correction1) / (tl.sqrt_rn(second / correction2) + eps)
    value = tl.load(p + e * P + at, mask=live, other=0.0) * (1 - lr * decay) - lr * change
    tl.store(m + e * P + at, first, mask=live)
    tl.store(v + e * P + at, second, mask=live)
    tl.store(p + e * P + at, value, mask=live)
    if HALF:
        tl.store(half + e * H + at, value, mask=live)


def adamw(p: Tensor, m: Tensor, v: Tensor, gradients: Tensor, half: Tensor | None, scalars: Tensor, eps: float) -> None:
    """AdamW in one pass over (E, G) views of longer rows; ``scalars`` (E, 8) are those of `optimiser.decide`."""
    E, G = gradients.shape
    _adamw[(triton.cdiv(G, 1024), E)](
        p, m, v, gradients, half, scalars, p.stride(0), G, 0 if half is None else half.stride(0), 1024,
        HALF=half is not None, eps=eps, num_warps=4,
    )  # fmt: skip


@triton.jit
def _momentum(m, g, aim, per_member, P, Q, G, BLOCK: tl.constexpr):
    e = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < G
    scalars = per_member + e * 8
    taken, shrink, beta = tl.load(scalars), tl.load(scalars + 1), tl.load(scalars + 4)
    gradient = tl.load(g + e * Q + at, mask=live, other=0.0).to(tl.float32)
    gradient = tl.where(taken > 0, gradient * shrink, 0.0)
    mean = tl.load(m + e * P + at, mask=live, other=0.0) * beta + gradient
    tl.store(m + e * P + at, mean, mask=live)
    tl.store(aim + e * G + at, gradient + beta * mean, mask=live)


def momentum(m: Tensor, gradients: Tensor, scalars: Tensor) -> Tensor:
    """`muon.momentum` in one pass over (E, G) views of longer rows; returns bfloat16, whose range always suffices."""
    E, G = gradients.shape
    aim = torch.empty(E, G, dtype=torch.bfloat16, device=m.device)
    _momentum[(triton.cdiv(G, 1024), E)](
        m, gradients, aim, scalars, m.stride(0), gradients.stride(0), G, 1024, num_warps=4
    )
    return aim


@triton.jit
def _descend(p, step, half, per_member, P, G, H, BLOCK: tl.constexpr, HALF: tl.constexpr):
    e = tl.program_id(1).to(tl.int64)
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    live = at < G
    lr, decay = tl.load(per_member + e * 8 + 2), tl.load(per_member + e * 8 + 3)
    change = tl.load(step + e * G + at, mask=live, other=0.0).to(tl.float32)
    value = tl.load(p + e * P + at, mask=live, other=0.0) * (1 - lr * decay) - lr * change
    tl.store(p + e * P + at, value, mask=live)
    if HALF:
        tl.store(half + e * H + at, value, mask=live)


def descend(p: Tensor, step: Tensor, half: Tensor | None, scalars: Tensor) -> None:
    """`muon.descend` in one pass over (E, G) views of longer rows."""
    E, G = step.shape
    _descend[(triton.cdiv(G, 1024), E)](
        p, step, half, scalars, p.stride(0), G, 0 if half is None else half.stride(0), 1024,
        HALF=half is not None, num_warps=4,
    )  # fmt: skip


@triton.jit
def _combine(x, y, z, out, a, b, c, S: tl.constexpr, TILE: tl.constexpr, DEPTH: tl.constexpr, ADD: tl.constexpr):
    matrix = tl.program_id(1).to(tl.int64) * S * S
    across: tl.constexpr = (S + TILE - 1) // TILE
    rows = tl.program_id(0) // across * TILE + tl.arange(0, TILE)
    columns = tl.program_id(0) % across * TILE + tl.arange(0, TILE)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, S, DEPTH):
        inner = start + tl.arange(0, DEPTH)
        left = (rows < S)[:, None] & (inner < S)[None, :]
        right = (inner < S)[:, None] & (columns < S)[None, :]
        total = tl.dot(
            tl.load(x + matrix + rows[:, None] * S + inner[None, :], mask=left, other=0.0),
            tl.load(y + matrix + inner[:, None] * S + columns[None, :], mask=right, other=0.0),
            total,
        )
    at = matrix + rows[:, None] * S + columns[None, :]
    live = (rows < S)[:, None] & (columns < S)[None, :]
    if ADD:
        total = c * total + b * tl.load(z + at, mask=live, other=0.0).to(tl.float32)
        total += tl.where(rows[:, None] == columns[None, :], a, 0.0)
    tl.store(out + at, total, mask=live)


def combine(x: Tensor, y: Tensor, z: Tensor | None = None, a: float = 0.0, b: float = 0.0, c: float = 1.0) -> Tensor:
    """`muon.combine`: a·1 + b·Z + c·X·Y for (M, S, S), in half precision, summed in float32.

    Without ``z`` it is X·Y alone. cuBLAS is as fast, but with its float16 products, processes that shared a GPU failed
    (docs/reliability.md).
    """
    M, S, _ = x.shape
    tile = min(128, max(16, triton.next_power_of_2(S)))
    out = torch.empty_like(x)
    _combine[(triton.cdiv(S, tile) ** 2, M)](
        x, y, z, out, a, b, c, S, tile, min(64, tile), ADD=z is not None, num_warps=8 if tile == 128 else 4
    )
    return out
