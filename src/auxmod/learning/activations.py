"""What a model computes between its input and its output, under TransformerLens's names where it has one.

Written out plainly, step by step, beside `model.Block`, with which it must agree. `TrainedModel.activations` lists the
names.

Shapes: B batch, T positions (terms, and one more in front with `cls` pooling), H heads, D width.
"""

from __future__ import annotations

import torch
from torch import Tensor

from auxmod.learning.model import Block, Encoder


def activations(encoder: Encoder, features: Tensor) -> dict[str, Tensor]:
    """Of one model, for tokens (1, B, N) or features (1, B, N, inputs): everything on the way, float32, by name."""
    h = encoder.embedded(features)
    _, B, T, D = h.shape
    seen = {"hook_embed": h}
    for layer, block in enumerate(encoder.blocks):
        assert isinstance(block, Block)
        inside = _inside(block, h.view(1, B * T, D), T)
        seen |= {f"blocks.{layer}.{name}": value for name, value in inside.items()}
        h = inside["hook_resid_post"]
    stream = h.reshape(1, B * T, D)
    if encoder.model.final_norm:
        seen["ln_final.hook_normalized"] = encoder.norm(stream).view(1, B, T, D)
    read = h[:, :, 0] if encoder.model.reads_first else stream
    seen["pooled"] = encoder.pooled(read, T)
    seen["outputs"] = encoder.head(seen["pooled"])
    return {name: value[0] for name, value in seen.items()}


def _inside(block: Block, x: Tensor, T: int) -> dict[str, Tensor]:
    """One block, from the residual stream (1, B·T, D) to the next."""
    _, rows, D = x.shape
    B, width = rows // T, D // block.heads
    qkv = block.qkv(block.norm1(x) if block.pre else x).view(B, T, 3, block.heads, width)
    q, k, v = qkv.unbind(2)
    pattern = torch.softmax(torch.einsum("bqhd,bkhd->bhqk", q, k) * width**-0.5, -1)
    z = torch.einsum("bhqk,bkhd->bqhd", pattern, v)
    attended = block.out(z.reshape(1, rows, D))
    middle = x + attended if block.pre else block.norm1(x + attended)
    hidden = block.activation(block.up(block.norm2(middle) if block.pre else middle))
    fed = block.down(hidden)
    after = middle + fed if block.pre else block.norm2(middle + fed)
    seen = {f"attn.hook_{name}": value[None] for name, value in zip("qkvz", (q, k, v, z), strict=True)}
    seen["attn.hook_pattern"] = pattern[None]
    stream = {"resid_pre": x, "attn_out": attended, "resid_mid": middle, "mlp_out": fed, "resid_post": after}
    seen |= {f"hook_{name}": value.view(1, B, T, D) for name, value in stream.items()}
    return seen | {"mlp.hook_post": hidden.view(1, B, T, -1)}
