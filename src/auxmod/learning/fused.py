"""The trunk by hand: the blocks' forward and backward in few kernels, for the shapes that pay.

The same function as `model.Block`, which is its oracle in tests and serves wherever this does not: on a CPU,
without Triton, with dropout, GELU, post-norm, or odd sizes. What it saves is memory traffic: norms are fused with
residual sums, the ReLU and its mask with their matrix products, attention reads and writes packed rows, and the
weights' gradients land in the optimiser's buffer without a copy.

Shapes: E members, R = B·N rows, D width, F hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auxmod.config import Model
from auxmod.learning.model import Block, Encoder

try:
    from auxmod.learning import kernels
except ImportError:  # no Triton: the plain trunk serves
    kernels = None  # type: ignore[assignment]

LONGEST = 128
"""Positions that one attention program holds at once."""


def supported(model: Model, n: int, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the fused trunk can stand in for the blocks."""
    sizes = (model.width, model.width // model.heads)
    return (
        kernels is not None
        and device.type == "cuda"
        and dtype in (torch.float16, torch.bfloat16)
        and torch.cuda.get_device_capability(device) >= (8, 0)
        and model.norm == "pre"
        and model.activation == "relu"
        and model.dropout == 0
        and all(size & (size - 1) == 0 and 16 <= size <= 1024 for size in sizes)
        and model.width >= 64
        and model.hidden % 128 == 0
        and n <= LONGEST
    )


@dataclass(frozen=True)
class Layer:
    """One block's tensors: half-precision weights, float32 norms and biases, and where their gradients go."""

    values: dict[str, Tensor | None]
    gradients: dict[str, Tensor]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


class FusedTrunk:
    """The blocks of an encoder, as one differentiable function of the residual stream."""

    def __init__(self, encoder: Encoder, weights: dict[str, Tensor], gradients: dict[str, Tensor]) -> None:
        """``weights`` are the half-precision matrices and ``gradients`` the buffers for every parameter, by name."""
        self.heads, self.layers = encoder.model.heads, []
        for number, block in enumerate(encoder.blocks):
            assert isinstance(block, Block)
            prefix = f"blocks.{number}."
            named = {name: weights.get(prefix + name, p.detach()) for name, p in block.named_parameters()}
            biases = ("norm1.bias", "norm2.bias", "qkv.bias", "out.bias", "up.bias", "down.bias")
            own = {name: gradients[prefix + name] for name in named}
            self.layers.append(Layer(dict.fromkeys(biases) | named, own))
        self.dtype = self.layers[0]["qkv.weight"].dtype

    def __call__(self, x: Tensor, n: int) -> Tensor:
        """The residual stream (E, R, D) float32 after all blocks; gradients of parameters go to their buffers."""
        if torch.is_grad_enabled():
            out: Tensor = _Function.apply(x, self, n)  # type: ignore[no-untyped-call]
            return out
        return self.forward(x, n)[0]

    def forward(self, x: Tensor, n: int, keep: bool = False) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """The stream, and with ``keep`` what the backward pass needs of each layer."""
        kept: list[tuple[Tensor, ...]] = []
        y, bias = None, None
        for layer in self.layers:
            x, h = kernels.add_norm(x, y, bias, layer["norm1.weight"], layer["norm1.bias"], self.dtype)
            assert h is not None
            qkv = torch.bmm(h, layer["qkv.weight"].mT)
            mixed = kernels.attend(qkv, layer["qkv.bias"], n, self.heads)
            y = torch.bmm(mixed, layer["out.weight"].mT)
            middle, g = kernels.add_norm(
                x, y, layer["out.bias"], layer["norm2.weight"], layer["norm2.bias"], self.dtype
            )
            assert g is not None
            hidden = kernels.linear_relu(g, layer["up.weight"], layer["up.bias"])
            y, bias = torch.bmm(hidden, layer["down.weight"].mT), layer["down.bias"]
            if keep:
                kept.append((x, h, qkv, mixed, middle, g, hidden))
            x = middle
        return kernels.add_norm(x, y, bias, None, None, self.dtype)[0], kept

    def backward(self, dx: Tensor, kept: list[tuple[Tensor, ...]], n: int) -> Tensor:
        """The gradient of the first stream from that of the last; every parameter's goes to its buffer."""
        E, R, D = dx.shape
        dx, half = dx.clone(), dx.to(self.dtype)
        samples = R // n
        norm_parts = kernels.parts(E, -(-R * D // 4096))
        head_parts = kernels.parts(E * self.heads, samples)
        down_bias: Tensor = dx.sum(1)
        for layer, (x, h, qkv, mixed, middle, g, hidden) in zip(reversed(self.layers), reversed(kept), strict=True):
            to, F = layer.gradients, hidden.shape[2]
            norms = dx.new_empty(2, E, norm_parts, 3, D)
            heads = dx.new_empty(E, head_parts, 3 * D)
            blocks = dx.new_empty(E, kernels.product_blocks(R), F) if "up.bias" in to else None

            torch.bmm(half.mT, hidden, out=to["down.weight"])
            d_hidden = kernels.linear_relu_backward(half, layer["down.weight"], hidden, blocks)
            torch.bmm(d_hidden.mT, g, out=to["up.weight"])
            kernels.norm_backward(
                torch.bmm(d_hidden, layer["up.weight"]), middle, layer["norm2.weight"], dx, norms[1], half
            )
            torch.bmm(half.mT, mixed, out=to["out.weight"])
            d_mixed = torch.bmm(half, layer["out.weight"])
            d_qkv = kernels.attend_backward(qkv, layer["qkv.bias"], d_mixed, heads, n, self.heads)
            torch.bmm(d_qkv.mT, h, out=to["qkv.weight"])
            kernels.norm_backward(torch.bmm(d_qkv, layer["qkv.weight"]), x, layer["norm1.weight"], dx, norms[0], half)
            first, second = norms.sum(2)
            to["norm1.weight"].copy_(first[:, 0])
            to["norm2.weight"].copy_(second[:, 0])
            if blocks is not None:
                to["norm1.bias"].copy_(first[:, 1])
                to["norm2.bias"].copy_(second[:, 1])
                to["out.bias"].copy_(second[:, 2])
                to["down.bias"].copy_(down_bias)
                to["up.bias"].copy_(blocks.sum(1))
                to["qkv.bias"].copy_(heads.sum(1))
            down_bias = first[:, 2]
        return dx


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, trunk: FusedTrunk, n: int) -> Tensor:
        out, ctx.kept = trunk.forward(x, n, keep=True)
        ctx.trunk, ctx.n = trunk, n
        return out

    @staticmethod
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor, None, None]:
        kept, ctx.kept = ctx.kept, None
        return ctx.trunk.backward(dx.contiguous(), kept, ctx.n), None, None
