"""Triton kernels of the fused trunk, each a launch function with its plain PyTorch meaning in one line.

Only `fused` imports this file, and only where Triton is there. Tensors are contiguous (E members, R rows = B·N,
columns) unless said; the small parameters (norms, biases) are float32 views (E, columns) whose members lie a
fixed stride apart. Reductions over rows go through partial sums, never atomics: the same bits every time.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

EPSILON = 1e-5
PROGRAMS = 528
"""Programs that walk over rows to make partial sums: four for each of a large GPU's multiprocessors."""


@triton.jit
def _add_norm(x, y, y_bias, gain, shift, x_out, h, R, stride, D: tl.constexpr, ROWS: tl.constexpr, eps: tl.constexpr,
              ADD: tl.constexpr, ADD_BIAS: tl.constexpr, NORM: tl.constexpr, SHIFT: tl.constexpr):  # fmt: skip
    e = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, D)
    live = (rows < R)[:, None]
    at = (e * R + rows)[:, None] * D + columns[None, :]
    v = tl.load(x + at, mask=live, other=0.0).to(tl.float32)
    if ADD:
        v += tl.load(y + at, mask=live, other=0.0).to(tl.float32)
        if ADD_BIAS:
            v += tl.load(y_bias + e * stride + columns)[None, :]
        tl.store(x_out + at, v, mask=live)
    if NORM:
        centred = v - tl.sum(v, 1)[:, None] / D
        scaled = centred * tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)[:, None]
        out = scaled * tl.load(gain + e * stride + columns)[None, :]
        if SHIFT:
            out += tl.load(shift + e * stride + columns)[None, :]
        tl.store(h + at, out, mask=live)


def add_norm(
    x: Tensor, y: Tensor | None, y_bias: Tensor | None, gain: Tensor | None, shift: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor | None]:
    """x + y + y_bias, and its layer norm in ``dtype``; without ``y`` only the norm, without ``gain`` only the sum."""
    E, R, D = x.shape
    x_out = x if y is None else torch.empty_like(x)
    h = None if gain is None else torch.empty_like(x, dtype=dtype)
    known = gain if gain is not None else y_bias
    rows = max(1, 4096 // D)
    _add_norm[(triton.cdiv(R, rows), E)](
        x, y, y_bias, gain, shift, x_out, h, R, 0 if known is None else known.stride(0), D, rows, EPSILON,
        ADD=y is not None, ADD_BIAS=y_bias is not None, NORM=gain is not None, SHIFT=shift is not None, num_warps=4,
    )  # fmt: skip
    return x_out, h


@triton.jit
def _norm_backward(dh, x, gain, dx, sums, R, stride, D: tl.constexpr, ROWS: tl.constexpr,
                   eps: tl.constexpr):  # fmt: skip
    part, parts = tl.program_id(0), tl.num_programs(0)
    e = tl.program_id(1).to(tl.int64)
    columns = tl.arange(0, D)
    g = tl.load(gain + e * stride + columns)[None, :]
    d_gain = tl.zeros((ROWS, D), tl.float32)  # summed over rows only once, at the end
    d_shift = tl.zeros((ROWS, D), tl.float32)
    d_bias = tl.zeros((ROWS, D), tl.float32)
    for block in range(part, tl.cdiv(R, ROWS), parts):
        rows = block * ROWS + tl.arange(0, ROWS)
        live = (rows < R)[:, None]
        at = (e * R + rows)[:, None] * D + columns[None, :]
        v = tl.load(x + at, mask=live, other=0.0).to(tl.float32)
        centred = v - tl.sum(v, 1)[:, None] / D
        inverse = tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)[:, None]
        scaled = centred * inverse
        up = tl.load(dh + at, mask=live, other=0.0).to(tl.float32)
        d_gain += up * scaled
        d_shift += up
        w = up * g
        down = (w - tl.sum(w, 1)[:, None] / D - scaled * (tl.sum(w * scaled, 1)[:, None] / D)) * inverse
        total = down + tl.load(dx + at, mask=live, other=0.0).to(tl.float32)
        d_bias += tl.where(live, total, 0.0)
        tl.store(dx + at, total, mask=live)
    here = sums + (e * parts + part) * 3 * D + columns
    tl.store(here, tl.sum(d_gain, 0))
    tl.store(here + D, tl.sum(d_shift, 0))
    tl.store(here + 2 * D, tl.sum(d_bias, 0))


def norm_backward(dh: Tensor, x: Tensor, gain: Tensor, dx: Tensor, sums: Tensor) -> None:
    """Add the gradient through a layer norm of ``x`` to ``dx``, in place.

    ``sums`` (E, parts, 3, D) gets partial sums over rows: of the norm's gain and shift gradients, and of the new dx.
    """
    E, R, D = x.shape
    _norm_backward[(sums.shape[1], E)](dh, x, gain, dx, sums, R, gain.stride(0), D, norm_rows(D), EPSILON, num_warps=4)


def norm_rows(D: int) -> int:
    """Rows that one program of :func:`norm_backward` holds at once."""
    return max(1, 4096 // D)


def parts(members: int, blocks: int) -> int:
    """How many programs share a member's rows in a reduction."""
    return max(1, min(blocks, PROGRAMS // members))


@triton.jit
def _product(a, b, c, active, bias, sums, R, N, K: tl.constexpr, stride, BM: tl.constexpr, BN: tl.constexpr,
             BK: tl.constexpr, RELU: tl.constexpr, BIAS: tl.constexpr):  # fmt: skip
    # a, b, c and active are tensor descriptors: the copy engine fetches tiles, and zeros beyond a member's rows
    e, across = tl.program_id(1), N // BN
    block = tl.program_id(0) // across
    row, column = block * BM, (tl.program_id(0) % across) * BN
    columns = column + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = a.load([e, row, k]).reshape(BM, BK)
        if RELU:  # b is the weight (F, D) itself: multiply by its transpose
            total = tl.dot(left, b.load([e, column, k]).reshape(BN, BK).T, total)
        else:
            total = tl.dot(left, b.load([e, k, column]).reshape(BK, BN), total)
    if RELU:  # forward: relu(a·bᵀ + bias)
        if BIAS:
            total += tl.load(bias + e.to(tl.int64) * stride + columns)[None, :]
        total = tl.maximum(total, 0.0)
    else:  # backward: (a·b) where the unit was active, and the sums over rows
        total = tl.where(active.load([e, row, column]).reshape(BM, BN) > 0, total, 0.0)
        if BIAS:
            tl.store(sums + (e.to(tl.int64) * tl.cdiv(R, BM) + block) * N + columns, tl.sum(total, 0))
    c.store([e, row, column], total.to(c.dtype).reshape(1, BM, BN))


BM, BN, BK, WARPS, STAGES = 128, 128, 64, 4, 3


def _launch_product(
    a: Tensor, b: Tensor, N: int, bias: Tensor | None, active: Tensor | None, sums: Tensor | None
) -> Tensor:
    E, R, K = a.shape
    c = torch.empty(E, R, N, dtype=a.dtype, device=a.device)
    relu, tile = active is None, TensorDescriptor.from_tensor
    _product[(triton.cdiv(R, BM) * (N // BN), E)](
        tile(a, [1, BM, BK]), tile(b, [1, BN, BK] if relu else [1, BK, BN]), tile(c, [1, BM, BN]),
        tile(c if active is None else active, [1, BM, BN]),
        c if bias is None else bias, c if sums is None else sums, R, N, K, 0 if bias is None else bias.stride(0),
        BM, BN, BK, RELU=relu, BIAS=bias is not None or sums is not None, num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
    return c


def linear_relu(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """relu(x·Wᵀ + bias) in one pass: (E, R, D), (E, F, D) → (E, R, F)."""
    return _launch_product(x, weight, weight.shape[1], bias, None, None)


def linear_relu_backward(dy: Tensor, weight: Tensor, active: Tensor, sums: Tensor | None) -> Tensor:
    """(dy·W) where ``active`` > 0: (E, R, D), (E, D, F) → (E, R, F); ``sums`` (E, blocks, F) gets its partial sums."""
    return _launch_product(dy, weight, weight.shape[2], None, active, sums)


def product_blocks(rows: int) -> int:
    """The number of partial sums that :func:`linear_relu_backward` makes."""
    return -(-rows // BM)


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
    """AdamW in one pass over (E, G) views of longer rows; ``scalars`` (E, 8) are what differs between members."""
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
    """`muon.momentum` in one pass over (E, G) views of longer rows; bfloat16 holds a look ahead of any size."""
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

    cuBLAS does it as fast, but where several processes shared a GPU its float16 kernels lost it.
    """
    M, S, _ = x.shape
    tile = min(128, max(16, triton.next_power_of_2(S)))
    out = torch.empty_like(x)
    _combine[(triton.cdiv(S, tile) ** 2, M)](
        x, y, z, out, a, b, c, S, tile, min(64, tile), ADD=z is not None, num_warps=8 if tile == 128 else 4
    )
    return out


@triton.jit
def _lift_backward(dh, f, sums, R, D: tl.constexpr, J: tl.constexpr, W: tl.constexpr, ROWS: tl.constexpr):
    part, parts = tl.program_id(0), tl.num_programs(0)
    e = tl.program_id(1).to(tl.int64)
    columns, j = tl.arange(0, D), tl.arange(0, W)
    total = tl.zeros((W, D), tl.float32)
    for block in range(part, tl.cdiv(R, ROWS), parts):
        rows = block * ROWS + tl.arange(0, ROWS)
        live = (rows < R)[:, None]
        d = tl.load(dh + (e * R + rows)[:, None] * D + columns[None, :], mask=live, other=0.0)
        feature = tl.load(f + (e * R + rows)[:, None] * J + j[None, :], mask=live & (j < J)[None, :], other=0.0)
        feature = tl.where((j == J)[None, :], 1.0, feature)  # one more feature, always 1, is the bias's
        total += tl.dot(tl.trans(feature), d, input_precision="ieee")
    tl.store(sums + ((e * parts + part) * W + j)[:, None] * D + columns[None, :], total)


def lift_backward(dh: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    """dhᵀ·f and dh summed over rows, for a few features: (E, R, D), (E, R, J) → (E, D, J), (E, D), float32."""
    (E, R, D), J = dh.shape, f.shape[2]
    count, wide = parts(E, -(-R // 32)), max(16, triton.next_power_of_2(J + 1))
    sums = torch.empty(E, count, wide, D, dtype=torch.float32, device=dh.device)
    _lift_backward[(count, E)](dh, f, sums, R, D, J, wide, 32, num_warps=4)
    total = sums.sum(1)
    return total[:, :J].mT, total[:, J]
