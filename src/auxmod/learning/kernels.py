"""Triton kernels of the fused trunk; the docstring of each launch function gives its plain PyTorch meaning.

Only `fused` and `attention` import this file, and only if Triton is installed. Tensors are contiguous (E members, R
rows = B·N, columns) unless stated otherwise. The small parameters (norms, biases) are float32 views (E, columns) whose
members lie a fixed stride apart. Reductions over rows use partial sums, never atomics, so that equal inputs give equal
bits.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from auxmod.learning import masks
from auxmod.learning.masks import dropped
from auxmod.learning.model import Dropout

EPSILON = 1e-5
PROGRAMS = 528
"""About the most programs that reduce rows to partial sums: four per multiprocessor of a large GPU."""


def _warps(dropout: Dropout | None) -> int:
    """Warps per program: more with dropout, since drawing its masks takes registers too."""
    return 4 if dropout is None else 8


@triton.jit(do_not_specialize=["site"])
def _add_norm(x, y, y_bias, gain, shift, x_out, h, stream, keys, step, site, R, stride, D: tl.constexpr,
              ROWS: tl.constexpr, eps: tl.constexpr, least: tl.constexpr, scale: tl.constexpr, ADD: tl.constexpr,
              ADD_BIAS: tl.constexpr, NORM: tl.constexpr, SHIFT: tl.constexpr, POST: tl.constexpr,
              DROP: tl.constexpr):  # fmt: skip
    e = tl.program_id(1).to(tl.int64)
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, D)
    live = (rows < R)[:, None]
    own = rows[:, None].to(tl.int64) * D + columns[None, :]
    at = e * R * D + own
    v = tl.load(x + at, mask=live, other=0.0).to(tl.float32)
    if ADD:
        added = tl.load(y + at, mask=live, other=0.0).to(tl.float32)
        if ADD_BIAS:
            added += tl.load(y_bias + e * stride + columns)[None, :]
        if DROP:
            added = dropped(added, e, own, keys, step, site, least, scale)
        v += added
        tl.store(x_out + at, v, mask=live)
    if NORM:
        centred = v - tl.sum(v, 1)[:, None] / D
        scaled = centred * tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)[:, None]
        out = scaled * tl.load(gain + e * stride + columns)[None, :]
        if SHIFT:
            out += tl.load(shift + e * stride + columns)[None, :]
        tl.store(h + at, out, mask=live)
        if POST:
            tl.store(stream + at, out, mask=live)


def add_norm(
    x: Tensor,
    y: Tensor | None,
    y_bias: Tensor | None,
    gain: Tensor | None,
    shift: Tensor | None,
    dtype: torch.dtype,
    *,
    dropout: Dropout | None = None,
    site: int = 0,
    post: bool = False,
) -> tuple[Tensor, Any, Tensor]:
    """x + dropout(y + y_bias), its layer norm in ``dtype``, and the stream: the sum, or with ``post`` its norm.

    Without ``y`` the sum is x itself; without ``gain`` the norm is None.
    """
    E, R, D = x.shape
    x_out = x if y is None else torch.empty_like(x)
    h = None if gain is None else torch.empty_like(x, dtype=dtype)
    stream = torch.empty_like(x) if post else x_out
    known = gain if gain is not None else y_bias
    rows = norm_rows(D)
    _add_norm[(triton.cdiv(R, rows), E)](
        x, y, y_bias, gain, shift, x_out, h, stream, R=R, stride=0 if known is None else known.stride(0), D=D,
        ROWS=rows, eps=EPSILON, **masks.arguments(dropout, site, x), ADD=y is not None, ADD_BIAS=y_bias is not None,
        NORM=gain is not None, SHIFT=shift is not None, POST=post, num_warps=4,
    )  # fmt: skip
    return x_out, h, stream


@triton.jit(do_not_specialize=["site"])
def _norm_backward(dh, x, gain, dx, dy, sums, keys, step, site, R, stride, D: tl.constexpr, ROWS: tl.constexpr,
                   eps: tl.constexpr, least: tl.constexpr, scale: tl.constexpr, LAST: tl.constexpr,
                   POST: tl.constexpr, DROP: tl.constexpr):  # fmt: skip
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
        own = rows[:, None].to(tl.int64) * D + columns[None, :]
        at = e * R * D + own
        v = tl.load(x + at, mask=live, other=0.0).to(tl.float32)
        centred = v - tl.sum(v, 1)[:, None] / D
        inverse = tl.rsqrt(tl.sum(centred * centred, 1) / D + eps)[:, None]
        scaled = centred * inverse
        stream = tl.load(dx + at, mask=live, other=0.0).to(tl.float32)
        if LAST:
            up = stream
        else:
            up = tl.load(dh + at, mask=live, other=0.0).to(tl.float32)
            if POST:
                up += stream
        d_gain += up * scaled
        d_shift += up
        w = up * g
        total = (w - tl.sum(w, 1)[:, None] / D - scaled * (tl.sum(w * scaled, 1)[:, None] / D)) * inverse
        if not POST:
            total += stream
        tl.store(dx + at, total, mask=live)
        if DROP:
            total = dropped(total, e, own, keys, step, site, least, scale)
            tl.store(dy + at, total, mask=live)
        d_bias += tl.where(live, total, 0.0)
    here = sums + (e * parts + part) * 3 * D + columns
    tl.store(here, tl.sum(d_gain, 0))
    tl.store(here + D, tl.sum(d_shift, 0))
    tl.store(here + 2 * D, tl.sum(d_bias, 0))


def norm_backward(
    dh: Tensor | None,
    x: Tensor,
    gain: Tensor,
    dx: Tensor,
    sums: Tensor,
    *,
    dropout: Dropout | None = None,
    site: int = 0,
    post: bool = False,
) -> Tensor:
    """Turn ``dx``, the stream's gradient, into the gradient before a layer norm of the sum ``x``, in place.

    ``dh`` is the gradient of the norm's output. With ``post`` that output is also the stream, so both go through the
    norm; without ``dh`` only the stream's does. Return the gradient of what :func:`add_norm` added. ``sums`` (E, parts,
    3, D) receives partial sums over rows: of the norm's gain and shift gradients, and of what is returned.
    """
    E, R, D = x.shape
    dy = dx if dropout is None else torch.empty_like(dx)
    _norm_backward[(sums.shape[1], E)](
        dx if dh is None else dh, x, gain, dx, dy, sums, R=R, stride=gain.stride(0), D=D, ROWS=norm_rows(D),
        eps=EPSILON, **masks.arguments(dropout, site, x), LAST=dh is None, POST=post, num_warps=_warps(dropout),
    )  # fmt: skip
    return dy


@triton.jit(do_not_specialize=["site"])
def _thin(x, out, keys, step, site, G, BLOCK: tl.constexpr, least: tl.constexpr, scale: tl.constexpr,
          DROP: tl.constexpr):  # fmt: skip
    e = tl.program_id(1).to(tl.int64)
    own = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + e * G + own, mask=own < G, other=0.0).to(tl.float32)
    tl.store(out + e * G + own, dropped(value, e, own, keys, step, site, least, scale), mask=own < G)


def thin(x: Tensor, dropout: Dropout, site: int) -> Tensor:
    """dropout(x)."""
    out, (E, R, D) = torch.empty_like(x), x.shape
    _thin[(triton.cdiv(R * D, 1024), E)](x, out, G=R * D, BLOCK=1024, **masks.arguments(dropout, site, x))
    return out


def norm_rows(D: int) -> int:
    """Rows that one program of :func:`add_norm` or :func:`norm_backward` holds at once."""
    return max(1, 4096 // D)


def parts(members: int, blocks: int) -> int:
    """The number of programs that share a member's ``blocks`` of rows in a reduction."""
    return max(1, min(blocks, PROGRAMS // members))


@triton.jit(do_not_specialize=["site"])
def _product(a, b, c, active, bias, sums, keys, step, site, R, N, K: tl.constexpr, stride, BM: tl.constexpr,
             BN: tl.constexpr, BK: tl.constexpr, least: tl.constexpr, scale: tl.constexpr, RELU: tl.constexpr,
             BIAS: tl.constexpr, DROP: tl.constexpr):  # fmt: skip
    # a, b, c and active are tensor descriptors: the copy engine fetches tiles, with zeros beyond a member's rows
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
    if RELU:  # forward: dropout(relu(a·bᵀ + bias))
        if BIAS:
            total += tl.load(bias + e.to(tl.int64) * stride + columns)[None, :]
        total = tl.maximum(total, 0.0)
        if DROP:
            elements = (row + tl.arange(0, BM)).to(tl.int64)[:, None] * N + columns[None, :]
            total = dropped(total, e, elements, keys, step, site, least, scale)
    else:  # backward: (a·b) where the unit was active, and the sums over rows
        total = tl.where(active.load([e, row, column]).reshape(BM, BN) > 0, total * scale, 0.0)
        if BIAS:
            tl.store(sums + (e.to(tl.int64) * tl.cdiv(R, BM) + block) * N + columns, tl.sum(total, 0))
    c.store([e, row, column], total.to(c.dtype).reshape(1, BM, BN))


BM, BN, BK, STAGES = 128, 128, 64, 3


def _launch_product(
    a: Tensor,
    b: Tensor,
    N: int,
    bias: Tensor | None,
    active: Tensor | None,
    sums: Tensor | None,
    dropout: Dropout | None,
    site: int = 0,
) -> Tensor:
    E, R, K = a.shape
    c = torch.empty(E, R, N, dtype=a.dtype, device=a.device)
    relu, tile = active is None, TensorDescriptor.from_tensor
    _product[(triton.cdiv(R, BM) * (N // BN), E)](
        tile(a, [1, BM, BK]), tile(b, [1, BN, BK] if relu else [1, BK, BN]), tile(c, [1, BM, BN]),
        tile(c if active is None else active, [1, BM, BN]),
        c if bias is None else bias, c if sums is None else sums, R=R, N=N, K=K,
        stride=0 if bias is None else bias.stride(0), BM=BM, BN=BN, BK=BK, **masks.arguments(dropout, site, a),
        RELU=relu, BIAS=bias is not None or sums is not None, num_warps=_warps(dropout if relu else None),
        num_stages=STAGES,
    )  # fmt: skip
    return c


def linear_relu(
    x: Tensor, weight: Tensor, bias: Tensor | None, dropout: Dropout | None = None, site: int = 0
) -> Tensor:
    """dropout(relu(x·Wᵀ + bias)) in one pass: (E, R, D), (E, F, D) → (E, R, F)."""
    return _launch_product(x, weight, weight.shape[1], bias, None, None, dropout, site)


def linear_relu_backward(
    dy: Tensor, weight: Tensor, active: Tensor, sums: Tensor | None, dropout: Dropout | None = None
) -> Tensor:
    """(dy·W) where ``active`` > 0, else 0: (E, R, D), (E, D, F) → (E, R, F); ``sums`` (E, blocks, F) gets partial sums.

    ``active`` is the output of :func:`linear_relu`. Dropped units are 0 there, so no mask is needed: ``dropout`` only
    scales.
    """
    return _launch_product(dy, weight, weight.shape[2], None, active, sums, dropout)


def product_blocks(rows: int) -> int:
    """The number of partial sums per member that :func:`linear_relu_backward` makes."""
    return -(-rows // BM)


@triton.jit
def _embed_backward(dh, f, sums, R, D: tl.constexpr, J: tl.constexpr, W: tl.constexpr, ROWS: tl.constexpr):
    part, parts = tl.program_id(0), tl.num_programs(0)
    e = tl.program_id(1).to(tl.int64)
    columns, j = tl.arange(0, D), tl.arange(0, W)
    total = tl.zeros((W, D), tl.float32)
    for block in range(part, tl.cdiv(R, ROWS), parts):
        rows = block * ROWS + tl.arange(0, ROWS)
        live = (rows < R)[:, None]
        d = tl.load(dh + (e * R + rows)[:, None] * D + columns[None, :], mask=live, other=0.0)
        feature = tl.load(f + (e * R + rows)[:, None] * J + j[None, :], mask=live & (j < J)[None, :], other=0.0)
        feature = tl.where((j == J)[None, :], 1.0, feature)  # one more feature, always 1, for the bias
        total += tl.dot(tl.trans(feature), d, input_precision="ieee")
    tl.store(sums + ((e * parts + part) * W + j)[:, None] * D + columns[None, :], total)


def embed_backward(dh: Tensor, f: Tensor) -> tuple[Tensor, Tensor]:
    """dhᵀ·f and dh summed over rows, for a few features: (E, R, D), (E, R, J) → (E, D, J), (E, D), float32."""
    (E, R, D), J = dh.shape, f.shape[2]
    count, wide = parts(E, -(-R // 32)), max(16, triton.next_power_of_2(J + 1))
    sums = torch.empty(E, count, wide, D, dtype=torch.float32, device=dh.device)
    _embed_backward[(count, E)](dh, f, sums, R, D, J, wide, 32, num_warps=4)
    total = sums.sum(1)
    return total[:, :J].mT, total[:, J]
