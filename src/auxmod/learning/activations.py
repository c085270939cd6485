"""Read or change the values that a model computes on the way, under TransformerLens's names where these exist.

The computation of `model.Block`, with which it must agree, is written out here step by step.
`TrainedModel.activations` lists the names.

Shapes: B batch, T positions (terms, and one more in front with `cls` pooling), H heads, D width.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor

from auxmod.errors import require
from auxmod.learning.model import Block, Encoder

Hook = Callable[[Tensor], Tensor]
"""Takes an intermediate value and returns its replacement, of the same shape, dtype and device."""
Note = Callable[[str, Tensor], Tensor]
"""Stores a value under its name and returns the value to continue with."""


def activations(
    encoder: Encoder, features: Tensor, hooks: Mapping[str, Hook], names: Collection[str] | None = None
) -> dict[str, Tensor]:
    """Return one model's intermediate values by name, in its own dtype, for tokens (1, B, N) or features (1, B, N, ·).

    If ``hooks`` has a function for a name, its result replaces that value, and all later values follow from it. With
    ``names``, only those values are kept. Raise a `UserError` for hooks that are not functions by name, an unknown
    name, or a result of another shape, dtype or device.
    """
    able = isinstance(hooks, Mapping) and all(isinstance(name, str) and callable(hook) for name, hook in hooks.items())
    require(able, "Hooks are functions by name, as in hooks={'pooled': lambda value: 0 * value}.")
    seen: dict[str, Tensor] = {}
    known: list[str] = []

    def note(name: str, value: Tensor) -> Tensor:
        own = hooks[name](value.clone()) if name in hooks else value  # a hook may write into what it gets
        like = f"The hook of {name} must give a tensor like its own: {_kind(value)}"
        require(isinstance(own, Tensor), f"{like}.")
        require(_kind(own) == _kind(value), f"{like}, not {_kind(own)}.")
        known.append(name)
        if names is None or name in names:
            seen[name] = own
        return own

    h = note("hook_embed", encoder.embedded(features)[0])
    B, T, D = h.shape
    for layer, block in enumerate(encoder.blocks):
        assert isinstance(block, Block)
        h = _through(block, h, f"blocks.{layer}.", note)
    stream = h.reshape(1, B * T, D)
    if encoder.model.final_norm:
        stream = note("ln_final.hook_normalized", encoder.norm(stream).view(B, T, D)).reshape(1, B * T, D)
    read = stream.view(1, B, T, D)[:, :, 0] if encoder.model.reads_first else stream
    pooled = note("pooled", encoder.read(read, T)[0])
    note("outputs", encoder.head(pooled[None])[0])
    unknown = sorted({*hooks, *(names or ())} - {*known})
    require(not unknown, f"There is nothing called {', '.join(unknown)} here; known are: {', '.join(known)}.")
    return seen


def _kind(value: Tensor) -> str:
    return f"{tuple(value.shape)}, {value.dtype}, {value.device}"


def _through(block: Block, x: Tensor, under: str, note: Note) -> Tensor:
    """One block, from the residual stream (B, T, D) to the next."""
    (B, T, D), heads = x.shape, block.heads

    def rows(value: Tensor) -> Tensor:
        return value.reshape(1, B * T, -1)

    def kept(name: str, value: Tensor) -> Tensor:
        return note(under + name, value)

    x = kept("hook_resid_pre", x)
    qkv = block.qkv(block.norm1(rows(x)) if block.pre else rows(x)).view(B, T, 3, heads, D // heads)
    q, k, v = (kept(f"attn.hook_{name}", each) for name, each in zip("qkv", qkv.unbind(2), strict=True))
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * (D // heads) ** -0.5
    pattern = kept("attn.hook_pattern", torch.softmax(scores, -1))
    z = kept("attn.hook_z", torch.einsum("bhqk,bkhd->bqhd", pattern, v))
    attended = kept("hook_attn_out", block.out(rows(z)).view(B, T, D))
    middle = x + attended if block.pre else block.norm1(rows(x + attended)).view(B, T, D)
    middle = kept("hook_resid_mid", middle)
    hidden = block.activation(block.up(block.norm2(rows(middle)) if block.pre else rows(middle)))
    fed = kept("hook_mlp_out", block.down(rows(kept("mlp.hook_post", hidden.view(B, T, -1)))).view(B, T, D))
    after = middle + fed if block.pre else block.norm2(rows(middle + fed)).view(B, T, D)
    return kept("hook_resid_post", after)
