"""The trunk by hand: the blocks' forward and backward in few kernels, for the shapes that pay.

The same function as `model.Block`, which is its oracle in tests and serves wherever this does not: on a CPU,
without Triton, with dropout, GELU, post-norm, or odd sizes. What it saves is memory traffic: norms are fused with
residual sums, the ReLU and its mask with their matrix products, attention reads and writes packed rows, and the
weights' gradients land in the optimiser's buffer without a copy.

Shapes: E members, n positions a sample (its terms, and one more with `cls`), R = B·n rows, D width, F hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auxmod.config import Model
from auxmod.learning import long_attention
from auxmod.learning.model import Block, Encoder, Linear

try:
    from auxmod.learning import attention
    from auxmod.learning import kernels as kernels
except ImportError:  # no Triton: the plain trunk serves
    attention = kernels = None  # type: ignore[assignment]

LONGEST = 128
"""Positions that one attention program holds at once; for more, PyTorch's own attention serves."""
LARGEST = 128 * 64
"""Numbers of one head's keys that it holds: positions, up to a power of 2, times the head's width."""


def supported(model: Model, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the fused trunk can stand in for the blocks."""
    sizes = (model.width, model.width // model.heads)
    return (
        kernels is not None
        and device.type == "cuda"
        and dtype in (torch.float16, torch.bfloat16)
        and torch.cuda.get_device_capability(device) >= (9, 0)  # the copy engine that fetches tiles
        and model.norm == "pre"
        and model.activation == "relu"
        and model.dropout == 0
        and all(size & (size - 1) == 0 and 16 <= size <= 256 for size in sizes)
        and model.width >= 64
        and model.hidden % 128 == 0
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
        self.heads, self.first, self.layers = encoder.model.heads, encoder.model.reads_first, []
        self.head_width = encoder.model.width // encoder.model.heads
        for number, block in enumerate(encoder.blocks):
            assert isinstance(block, Block)
            prefix = f"blocks.{number}."
            named = {name: weights.get(prefix + name, p.detach()) for name, p in block.named_parameters()}
            biases = ("norm1.bias", "norm2.bias", "qkv.bias", "out.bias", "up.bias", "down.bias")
            own = {name: gradients[prefix + name] for name in named}
            self.layers.append(Layer(dict.fromkeys(biases) | named, own))
        self.dtype, self.bias = self.layers[0]["qkv.weight"].dtype, encoder.model.bias

    def __call__(self, x: Tensor, n: int) -> Tensor:
        """The residual stream (E, R, D) float32 after all blocks; gradients of parameters go to their buffers.

        Where only the first position of a sample is read out, the last block is of those alone: (E, B, D).
        """
        if torch.is_grad_enabled():
            out: Tensor = _Function.apply(x, self, n)  # type: ignore[no-untyped-call]
            return out
        return self.forward(x, n)[0]

    def forward(self, x: Tensor, n: int, keep: bool = False) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """The stream, and with ``keep`` what the backward pass needs of each layer."""
        kept: list[tuple[Tensor, ...]] = []
        y, bias = None, None
        for layer in self._whole:
            x, h = kernels.add_norm(x, y, bias, layer["norm1.weight"], layer["norm1.bias"], self.dtype)
            assert h is not None
            qkv = torch.bmm(h, layer["qkv.weight"].mT)
            mixed = self._attention(n).attend(qkv, layer["qkv.bias"], n, self.heads)
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
        if not self.first:
            return kernels.add_norm(x, y, bias, None, None, self.dtype)[0], kept
        layer = self.layers[-1]
        x, h = kernels.add_norm(x, y, bias, layer["norm1.weight"], layer["norm1.bias"], self.dtype)
        assert h is not None
        out, last = self._forward_first(x, h, n)
        return out, [*kept, last] if keep else kept

    @property
    def _whole(self) -> list[Layer]:
        """The layers that are computed for all positions."""
        return self.layers[:-1] if self.first else self.layers

    def _forward_first(self, x: Tensor, h: Tensor, n: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The last block of each sample's first position, from the stream and its norm; and what backward needs.

        The bias of keys moves all scores of a query alike, so that it changes nothing; that of values is added after.
        """
        D, layer = x.shape[2], self.layers[-1]
        weight, bias = layer["qkv.weight"], layer["qkv.bias"]
        rows, own = x[:, ::n].contiguous(), h[:, ::n].contiguous()
        q, kv = torch.bmm(own, weight[:, :D].mT), torch.bmm(h, weight[:, D:].mT)
        if bias is not None:
            q += bias[:, None, :D].to(q.dtype)
        mixed = long_attention.attend_first(q, kv, n, self.heads)
        if bias is not None:
            mixed += bias[:, None, 2 * D :].to(mixed.dtype)
        y = torch.bmm(mixed, layer["out.weight"].mT)
        middle, g = kernels.add_norm(rows, y, layer["out.bias"], layer["norm2.weight"], layer["norm2.bias"], self.dtype)
        assert g is not None
        hidden = kernels.linear_relu(g, layer["up.weight"], layer["up.bias"])
        y = torch.bmm(hidden, layer["down.weight"].mT)
        out = kernels.add_norm(middle, y, layer["down.bias"], None, None, self.dtype)[0]
        return out, (x, h, own, q, kv, mixed, middle, g, hidden)

    def _backward_first(self, stream: Tensor, kept: tuple[Tensor, ...], n: int) -> tuple[Tensor, Tensor]:
        """The gradient of the stream before the last block, (E, R, D) in half precision, and its sum over rows."""
        layer, to = self.layers[-1], self.layers[-1].gradients
        x, h, own, q, kv, mixed, middle, g, hidden = kept
        (E, B, D), R = stream.shape, x.shape[1]
        sums = [stream.new_empty(E, kernels.parts(E, -(-rows // kernels.norm_rows(D))), 3, D) for rows in (R, B)]
        blocks = stream.new_empty(E, kernels.product_blocks(B), hidden.shape[2]) if self.bias else None
        dx = stream.to(self.dtype)
        torch.bmm(dx.mT, hidden, out=to["down.weight"])
        d_hidden = kernels.linear_relu_backward(dx, layer["down.weight"], hidden, blocks)
        torch.bmm(d_hidden.mT, g, out=to["up.weight"])
        kernels.norm_backward(torch.bmm(d_hidden, layer["up.weight"]), middle, layer["norm2.weight"], dx, sums[1])

        torch.bmm(dx.mT, mixed, out=to["out.weight"])
        d_mixed = torch.bmm(dx, layer["out.weight"])
        dq, dkv = long_attention.attend_first_backward(q, kv, d_mixed, n, self.heads)
        torch.bmm(dq.mT, own, out=to["qkv.weight"][:, :D])
        torch.bmm(dkv.mT, h, out=to["qkv.weight"][:, D:])
        dh = torch.bmm(dkv, layer["qkv.weight"][:, D:])
        dh[:, ::n] += torch.bmm(dq, layer["qkv.weight"][:, :D])
        whole = torch.zeros_like(h)
        whole[:, ::n] = dx
        kernels.norm_backward(dh, x, layer["norm1.weight"], whole, sums[0])

        first, second = (each.sum(1) for each in sums)
        small = {"norm1.weight": first[:, 0], "norm2.weight": second[:, 0]}
        if blocks is not None:
            queries, values = (d.sum(1, dtype=torch.float32) for d in (dq, d_mixed))
            small |= {"norm1.bias": first[:, 1], "norm2.bias": second[:, 1], "out.bias": second[:, 2]}
            small |= {"down.bias": stream.sum(1), "up.bias": blocks.sum(1)}
            small["qkv.bias"] = torch.cat((queries, torch.zeros_like(queries), values), 1)
        torch._foreach_copy_([to[name] for name in small], list(small.values()))
        return whole, first[:, 2]

    def backward(self, stream: Tensor, kept: list[tuple[Tensor, ...]], n: int) -> Tensor:
        """The gradient of the first stream from that of the last; every parameter's goes to its buffer.

        The stream's gradient ``dx`` is kept in half precision, as the products need it: loss scaling covers it.
        """
        if self.first:
            dx, after = self._backward_first(stream, kept.pop(), n)
        else:
            dx, after = stream.to(self.dtype), stream.sum(1)
        E, R, D = dx.shape
        L, F = len(self._whole), self.layers[0]["up.weight"].shape[1]
        norms = stream.new_empty(L, 2, E, kernels.parts(E, -(-R // kernels.norm_rows(D))), 3, D)
        heads = stream.new_empty(L, E, kernels.parts(E * self.heads, R // n), 3 * D)
        hiddens = stream.new_empty(L, E, kernels.product_blocks(R), F) if self.bias else None
        for number in reversed(range(L)):
            layer, to = self.layers[number], self.layers[number].gradients
            x, h, qkv, mixed, middle, g, hidden = kept.pop()
            torch.bmm(dx.mT, hidden, out=to["down.weight"])
            sums = None if hiddens is None else hiddens[number]
            d_hidden = kernels.linear_relu_backward(dx, layer["down.weight"], hidden, sums)
            torch.bmm(d_hidden.mT, g, out=to["up.weight"])
            dg = torch.bmm(d_hidden, layer["up.weight"])
            kernels.norm_backward(dg, middle, layer["norm2.weight"], dx, norms[number, 1])

            torch.bmm(dx.mT, mixed, out=to["out.weight"])
            d_mixed = torch.bmm(dx, layer["out.weight"])
            d_qkv = self._attention(n).attend_backward(qkv, layer["qkv.bias"], d_mixed, heads[number], n, self.heads)
            torch.bmm(d_qkv.mT, h, out=to["qkv.weight"])
            kernels.norm_backward(torch.bmm(d_qkv, layer["qkv.weight"]), x, layer["norm1.weight"], dx, norms[number, 0])
        self._small_gradients(after, norms.sum(3), heads.sum(2), None if hiddens is None else hiddens.sum(2))
        return dx.float()

    def _small_gradients(self, after: Tensor, norms: Tensor, heads: Tensor, hiddens: Tensor | None) -> None:
        """Norms' and biases' gradients, from their sums over rows, to their buffers.

        ``norms`` is (L, 2, E, 3, D): for each norm its gain, its shift, and the bias of what was added before it;
        ``after`` (E, D) is that of what was added last.
        """
        down = [*norms[1:, 0, :, 2], after] if hiddens is not None else []
        pairs: list[tuple[Tensor, Tensor]] = []
        for number, layer in enumerate(self._whole):
            to, (first, second) = layer.gradients, norms[number]
            pairs += [(to["norm1.weight"], first[:, 0]), (to["norm2.weight"], second[:, 0])]
            if hiddens is not None:
                pairs += [(to["norm1.bias"], first[:, 1]), (to["norm2.bias"], second[:, 1])]
                pairs += [(to["out.bias"], second[:, 2]), (to["down.bias"], down[number])]
                pairs += [(to["up.bias"], hiddens[number]), (to["qkv.bias"], heads[number])]
        if pairs:  # a single block may be the last one
            torch._foreach_copy_([target for target, _ in pairs], [source for _, source in pairs])

    def _attention(self, n: int) -> Any:
        """The one by hand has to hold a head's queries, keys and values, and their scores, in shared memory."""
        return (
            attention if n <= LONGEST and (1 << (n - 1).bit_length()) * self.head_width <= LARGEST else long_attention
        )


class _Lift(torch.autograd.Function):
    """A linear map of a few features, (E, R, J) → (E, R, D): its backward is one pass over the rows."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(features)
        y = torch.bmm(features, weight.mT)
        return y if bias is None else y.add_(bias[:, None])

    @staticmethod
    def backward(ctx: Any, dh: Tensor) -> tuple[None, Tensor, Tensor | None]:
        (features,) = ctx.saved_tensors
        weight, bias = kernels.lift_backward(dh.contiguous(), features)
        return None, weight, bias if ctx.needs_input_grad[2] else None


def lift(embed: Linear, features: Tensor) -> Tensor:
    """The embedding of angular features (E, R, J) → (E, R, D)."""
    out: Tensor = _Lift.apply(features, embed.weight, embed.bias)  # type: ignore[no-untyped-call]
    return out


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
