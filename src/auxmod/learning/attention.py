"""Triton kernels for self-attention among a few positions: packed rows in, packed rows out, no permuting.

One program holds all scores of one head and one sample at a time. Only `fused` imports this file, together with
`kernels`, whose conventions it shares. `model.Block.attend` is the plain counterpart, with the linear maps around it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from auxmod.learning import masks
from auxmod.learning.kernels import PROGRAMS
from auxmod.learning.masks import dropped
from auxmod.learning.model import Dropout


@triton.jit
def _load_head(base, bias, rows, N, D: tl.constexpr, W: tl.constexpr, BIAS: tl.constexpr):
    columns = tl.arange(0, W)
    live = (rows < N)[:, None]
    tile = tl.load(base + rows[:, None] * (3 * D) + columns[None, :], mask=live, other=0.0)
    if BIAS:
        tile = tl.where(live, tile.to(tl.float32) + tl.load(bias + columns)[None, :], 0.0).to(base.dtype.element_ty)
    return tile


@triton.jit
def _probabilities(q, k, rows, N, W: tl.constexpr):
    scores = tl.dot(q, tl.trans(k)) * (1.0 / tl.sqrt(W * 1.0))
    scores = tl.where((rows < N)[None, :], scores, float("-inf"))
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return weights / tl.sum(weights, 1)[:, None]


@triton.jit
def _scores(b, head, rows, N, HEADS: tl.constexpr):
    """The flat indices of one head's weights among all those of a member, (B, heads, N, N)."""
    return ((head.to(tl.int64) + b * HEADS) * N + rows[:, None]) * N + rows[None, :]


@triton.jit(do_not_specialize=["site"])
def _attend(qkv, bias, out, keys, step, site, B, N, stride, D: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr,
            least: tl.constexpr, scale: tl.constexpr, BIAS: tl.constexpr, DROP: tl.constexpr):  # fmt: skip
    head, e = tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows = tl.arange(0, BLOCK)
    first = bias + e * stride + head * W
    for b in range(tl.program_id(0), B, tl.num_programs(0)):
        sample = (e * B + b) * N
        base = qkv + sample * (3 * D) + head * W
        q = _load_head(base, first, rows, N, D, W, BIAS)
        k = _load_head(base + D, first + D, rows, N, D, W, BIAS)
        v = _load_head(base + 2 * D, first + 2 * D, rows, N, D, W, BIAS)
        p = _probabilities(q, k, rows, N, W)
        if DROP:
            p = dropped(p, e, _scores(b, head, rows, N, D // W), keys, step, site, least, scale)
        mixed = tl.dot(p.to(v.dtype), v)
        at = (sample + rows)[:, None] * D + head * W + tl.arange(0, W)[None, :]
        tl.store(out + at, mixed, mask=(rows < N)[:, None])


def _attention_shape(n: int, heads: int, D: int) -> tuple[int, int, int]:
    block = max(16, triton.next_power_of_2(n))
    return D // heads, block, 1 if block <= 16 else 2 if block <= 32 else 4 if block <= 64 else 8


def attend(
    qkv: Tensor, bias: Tensor | None, n: int, heads: int, dropout: Dropout | None = None, site: int = 0
) -> Tensor:
    """Self-attention of packed q, k and v (+ bias): (E, B·N, 3D) → (E, B·N, D); dropout is of the attention weights."""
    E, R, D = qkv.shape[0], qkv.shape[1], qkv.shape[2] // 3
    width, block, warps = _attention_shape(n, heads, D)
    out = torch.empty(E, R, D, dtype=qkv.dtype, device=qkv.device)
    programs = min(R // n, max(1, 16 * PROGRAMS // (E * heads)))
    _attend[(programs, heads, E)](
        qkv, bias if bias is not None else qkv, out, B=R // n, N=n, stride=0 if bias is None else bias.stride(0),
        D=D, W=width, BLOCK=block, **masks.arguments(dropout, site, qkv), BIAS=bias is not None, num_warps=warps,
    )  # fmt: skip
    return out


@triton.jit(do_not_specialize=["site"])
def _attend_backward(qkv, bias, d_out, d_qkv, sums, keys, step, site, B, N, stride, D: tl.constexpr, W: tl.constexpr,
                     BLOCK: tl.constexpr, least: tl.constexpr, scale: tl.constexpr, BIAS: tl.constexpr,
                     DROP: tl.constexpr):  # fmt: skip
    part, parts = tl.program_id(0), tl.num_programs(0)
    head, e = tl.program_id(1), tl.program_id(2).to(tl.int64)
    rows, columns = tl.arange(0, BLOCK), tl.arange(0, W)
    live = (rows < N)[:, None]
    first = bias + e * stride + head * W
    sum_q = tl.zeros((BLOCK, W), tl.float32)  # summed over rows only once, at the end
    sum_k = tl.zeros((BLOCK, W), tl.float32)
    sum_v = tl.zeros((BLOCK, W), tl.float32)
    for b in range(part, B, parts):
        sample = (e * B + b) * N
        base = qkv + sample * (3 * D) + head * W
        q = _load_head(base, first, rows, N, D, W, BIAS)
        k = _load_head(base + D, first + D, rows, N, D, W, BIAS)
        v = _load_head(base + 2 * D, first + 2 * D, rows, N, D, W, BIAS)
        p = _probabilities(q, k, rows, N, W)
        at = (sample + rows)[:, None] * D + head * W + columns[None, :]
        do = tl.load(d_out + at, mask=live, other=0.0)
        dp, used = tl.dot(do, tl.trans(v)), p
        if DROP:
            cells = _scores(b, head, rows, N, D // W)
            used = dropped(p, e, cells, keys, step, site, least, scale)
            dp = dropped(dp, e, cells, keys, step, site, least, scale)
        dv = tl.dot(tl.trans(used.to(do.dtype)), do)
        ds = (p * (dp - tl.sum(p * dp, 1)[:, None])).to(q.dtype)
        dq = tl.dot(ds, k) * (1.0 / tl.sqrt(W * 1.0))  # scaled last, since ds is small already
        dk = tl.dot(tl.trans(ds), q) * (1.0 / tl.sqrt(W * 1.0))
        to = d_qkv + sample * (3 * D) + head * W + rows[:, None] * (3 * D) + columns[None, :]
        tl.store(to, dq, mask=live)
        tl.store(to + D, dk, mask=live)
        tl.store(to + 2 * D, dv, mask=live)
        sum_q += tl.where(live, dq, 0.0)
        sum_k += tl.where(live, dk, 0.0)
        sum_v += tl.where(live, dv, 0.0)
    here = sums + (e * parts + part) * 3 * D + head * W + columns
    tl.store(here, tl.sum(sum_q, 0))
    tl.store(here + D, tl.sum(sum_k, 0))
    tl.store(here + 2 * D, tl.sum(sum_v, 0))


def attend_backward(
    qkv: Tensor,
    bias: Tensor | None,
    d_out: Tensor,
    sums: Tensor,
    n: int,
    heads: int,
    dropout: Dropout | None = None,
    site: int = 0,
) -> Tensor:
    """The gradient of :func:`attend` with respect to qkv; its partial sums over rows go to ``sums`` (E, parts, 3D)."""
    E, R, D = d_out.shape
    width, block, warps = _attention_shape(n, heads, D)
    d_qkv = torch.empty_like(qkv)
    _attend_backward[(sums.shape[1], heads, E)](
        qkv, bias if bias is not None else qkv, d_out, d_qkv, sums, B=R // n, N=n,
        stride=0 if bias is None else bias.stride(0), D=D, W=width, BLOCK=block,
        **masks.arguments(dropout, site, qkv), BIAS=bias is not None, num_warps=warps,
    )  # fmt: skip
    return d_qkv
