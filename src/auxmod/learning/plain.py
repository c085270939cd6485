"""The same model in plain PyTorch: `nn.TransformerEncoder`, an embedding and a linear read-out.

It is what a user would write by hand. Tests compare with it, the benchmark times it, and `to_torch` returns it.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from auxmod.config import Model
from auxmod.learning.model import Block, Encoder, Linear
from auxmod.problem import labels


class PlainModel(nn.Module):
    """One model: tokens (B, N) or features (B, N, inputs) → outputs (B, outputs)."""

    rungs: Tensor | None
    """Multipliers and moduli, int64 (2, J), to make features from whole numbers (B, N); None if it makes none."""

    def __init__(self, model: Model, n: int, inputs: int, outputs: int) -> None:
        super().__init__()
        D, bias = model.width, model.bias
        self.pooling = model.pooling
        self.register_buffer("rungs", None, persistent=False)
        self.embed: nn.Module = nn.Embedding(inputs, D) if model.embedding == "token" else nn.Linear(inputs, D, bias)
        self.cls = nn.Parameter(torch.randn(D)) if model.pooling == "cls" else None
        layer = nn.TransformerEncoderLayer(
            D,
            model.heads,
            model.hidden,
            model.dropout,
            model.activation,
            batch_first=True,
            norm_first=model.norm == "pre",
            bias=bias,
        )
        norm = nn.LayerNorm(D, bias=bias) if model.final_norm else None
        self.encoder = nn.TransformerEncoder(layer, model.layers, norm, enable_nested_tensor=False)
        self.head = nn.Linear(D * n if model.pooling == "flatten" else D, outputs, bias)

    def forward(self, x: Tensor) -> Tensor:
        if self.rungs is not None and not x.is_floating_point():
            multipliers, moduli = self.rungs
            x = labels.points(x[..., None] * multipliers % moduli, moduli).flatten(-2).to(self.head.weight.dtype)
        h = self.embed(x if x.is_floating_point() else x.long())
        if self.cls is not None:
            h = torch.cat((self.cls.expand(len(h), 1, -1), h), 1)
        h = self.encoder(h)
        if self.pooling in ("cls", "first"):
            h = h[:, 0]
        elif self.pooling == "mean":
            h = h.mean(1)
        else:
            h = h.amax(1) if self.pooling == "max" else h.flatten(1)
        return cast(Tensor, self.head(h))


@torch.no_grad()
def to_plain(encoder: Encoder, member: int = 0) -> PlainModel:
    """Build a plain model with the weights of one member: the same function, in the same mode (train or eval)."""
    plain = PlainModel(encoder.model, encoder.n, encoder.inputs, encoder.outputs)
    plain.to(encoder.head.weight).train(encoder.training)
    pairs: list[tuple[nn.Module, nn.Module]] = [(plain.embed, encoder.embed), (plain.head, encoder.head)]
    if encoder.cls is not None and plain.cls is not None:
        plain.cls.copy_(encoder.cls[member])
    if plain.encoder.norm is not None:
        pairs.append((plain.encoder.norm, encoder.norm))
    for theirs, ours in zip(plain.encoder.layers, encoder.blocks, strict=True):
        assert isinstance(theirs, nn.TransformerEncoderLayer)
        assert isinstance(ours, Block)
        _copy_attention(theirs.self_attn, ours.qkv, member)
        pairs += [(theirs.self_attn.out_proj, ours.out), (theirs.linear1, ours.up), (theirs.linear2, ours.down)]
        pairs += [(theirs.norm1, ours.norm1), (theirs.norm2, ours.norm2)]
    for target, source in pairs:
        for name, parameter in source.named_parameters():
            target.get_parameter(name).copy_(parameter[member])
    return plain


def _copy_attention(attention: nn.MultiheadAttention, qkv: Linear, member: int) -> None:
    attention.get_parameter("in_proj_weight").copy_(qkv.weight[member])
    if qkv.bias is not None:
        attention.get_parameter("in_proj_bias").copy_(qkv.bias[member])
