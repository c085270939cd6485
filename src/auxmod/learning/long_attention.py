"""Attention over packed rows by PyTorch's own kernels, for samples of more positions than `attention` holds at once.

The same two functions. The backward pass makes the forward one again rather than keep its inside: at these lengths
attention is a tenth of a step's arithmetic.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def attend(qkv: Tensor, bias: Tensor | None, n: int, heads: int) -> Tensor:
    """Self-attention among the ``n`` positions of each sample: qkv (E, R, 3D) without its bias → (E, R, D)."""
    E, R, width = qkv.shape
    mixed = F.scaled_dot_product_attention(*_heads(qkv, bias, n, heads))
    return mixed.transpose(1, 2).reshape(E, R, width // 3)


def attend_backward(qkv: Tensor, bias: Tensor | None, d_out: Tensor, sums: Tensor, n: int, heads: int) -> Tensor:
    """The gradient of :func:`attend` with respect to qkv; ``sums`` (E, parts, 3D) gets its partial sums over rows."""
    E, R, D = d_out.shape
    with torch.enable_grad():
        q, k, v = (part.detach().requires_grad_() for part in _heads(qkv, bias, n, heads))
        mixed = F.scaled_dot_product_attention(q, k, v)
    d_mixed = d_out.view(E * R // n, n, heads, D // heads).transpose(1, 2)
    gradients = torch.autograd.grad(mixed, (q, k, v), d_mixed)
    d_qkv = torch.stack([each.transpose(1, 2) for each in gradients], 2).view(E, R, 3 * D)
    sums.zero_()
    sums[:, 0] = d_qkv.sum(1, dtype=torch.float32)
    return d_qkv


def _heads(qkv: Tensor, bias: Tensor | None, n: int, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each (samples, heads, n, width of a head)."""
    E, R, width = qkv.shape
    qkv = qkv if bias is None else qkv + bias[:, None].to(qkv.dtype)
    q, k, v = qkv.view(E * R // n, n, 3, heads, width // (3 * heads)).permute(2, 0, 3, 1, 4)
    return q, k, v
