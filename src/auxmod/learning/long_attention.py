"""Attention over packed rows with PyTorch's own kernels: for `model.Block`, and where `fused` does not use `attention`.

It has the same two functions as `attention`, without dropout, and two for the query of the first position alone. The
backward functions compute the forward pass again instead of keeping its intermediate values: in the paper's encoder,
with up to 256 terms, attention is less than a tenth of a step's arithmetic.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

AT_ONCE = 65_535
"""The most samples that the kernels take in one call: the limit of a grid of CUDA blocks."""


def mix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q·kᵀ / √width)·v for tensors (samples, heads, ·, width)."""
    parts = [slice(start, start + AT_ONCE) for start in range(0, max(1, len(q)), AT_ONCE)]
    mixed = [F.scaled_dot_product_attention(q[part], k[part], v[part]) for part in parts]
    return mixed[0] if len(mixed) == 1 else torch.cat(mixed)


def attend(qkv: Tensor, bias: Tensor | None, n: int, heads: int) -> Tensor:
    """Self-attention among the ``n`` positions of each sample: qkv (E, R, 3D), to which bias is added → (E, R, D)."""
    E, R, width = qkv.shape
    mixed = mix(*by_head(qkv, bias, n, heads))
    return mixed.transpose(1, 2).reshape(E, R, width // 3)


def attend_backward(qkv: Tensor, bias: Tensor | None, d_out: Tensor, sums: Tensor, n: int, heads: int) -> Tensor:
    """The gradient of :func:`attend` with respect to qkv; ``sums`` (E, parts, 3D) gets its sum over rows, in part 0."""
    E, R, D = d_out.shape
    with torch.enable_grad():
        q, k, v = (part.detach().requires_grad_() for part in by_head(qkv, bias, n, heads))
        mixed = mix(q, k, v)
    d_mixed = d_out.view(E * R // n, n, heads, D // heads).transpose(1, 2)
    gradients = torch.autograd.grad(mixed, (q, k, v), d_mixed)
    d_qkv = torch.stack([each.transpose(1, 2) for each in gradients], 2).view(E, R, 3 * D)
    sums.zero_()
    sums[:, 0] = d_qkv.sum(1, dtype=torch.float32)
    return d_qkv


def attend_first(q: Tensor, kv: Tensor, n: int, heads: int) -> Tensor:
    """Attention of one query per sample: q (E, B, D), keys and values (E, B·n, 2D) → (E, B, D)."""
    return mix(*_first_heads(q, kv, n, heads)).reshape(q.shape)


def attend_first_backward(q: Tensor, kv: Tensor, d_out: Tensor, n: int, heads: int) -> tuple[Tensor, Tensor]:
    """The gradients of :func:`attend_first` with respect to q and kv."""
    with torch.enable_grad():
        one, k, v = (part.detach().requires_grad_() for part in _first_heads(q, kv, n, heads))
        mixed = mix(one, k, v)
    dq, dk, dv = torch.autograd.grad(mixed, (one, k, v), d_out.view(mixed.shape))
    return dq.reshape(q.shape), torch.stack((dk.transpose(1, 2), dv.transpose(1, 2)), 2).view(kv.shape)


def _first_heads(q: Tensor, kv: Tensor, n: int, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """The query, (samples, heads, 1, width of a head), and keys and values, (samples, heads, n, width of a head)."""
    E, B, D = q.shape
    k, v = kv.view(E * B, n, 2, heads, D // heads).permute(2, 0, 3, 1, 4)
    return q.view(E * B, heads, 1, D // heads), k, v


def by_head(qkv: Tensor, bias: Tensor | None, n: int, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each (samples, heads, n, width of a head)."""
    E, R, width = qkv.shape
    qkv = qkv if bias is None else qkv + bias[:, None].to(qkv.dtype)
    q, k, v = qkv.view(E * R // n, n, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    return q, k, v
