"""The fused trunk: the blocks' forward and backward passes in a few hand-written kernels, for shapes where that pays.

It computes the same function as `model.Block`. That is the reference in tests, and is used wherever `supported` says
no: on a CPU or an older GPU, without Triton, with a float32 trunk, GELU or odd sizes. This trunk saves memory traffic:
norms are fused with residual sums, the ReLU and its mask with their matrix products, and dropout with the kernels that
produce or consume the values it drops. Attention reads and writes packed rows, and the gradients of matrices go into
the optimiser's buffer without a copy.

The trunk is 2L sub-layers f, attention and feed-forward in turn, each with a residual sum and a norm:
x ← x + f(norm x) with pre-norm, x ← norm(x + f x) with post-norm.

Shapes: E members, n positions per sample (its terms, and one more with `cls`), R = B·n rows, D width, F hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auxmod.config import Model
from auxmod.learning import long_attention
from auxmod.learning.model import Block, Dropout, Encoder, Linear

try:
    from auxmod.learning import attention, kernels
    from auxmod.learning import updates as updates
except ImportError:  # no Triton: use the plain trunk and the plain updates
    attention = kernels = updates = None  # type: ignore[assignment]

LONGEST = 128
"""The most positions that one attention program holds at once; for more, PyTorch's own attention is used."""
LARGEST = 128 * 64
"""The most numbers of one head's keys that it holds: positions, rounded up to a power of 2, times the head's width."""

MOST_FEATURES = 63
"""The most features of a term that the embedding's backward kernel takes, beside a bias: its tile must fit a GPU."""


def supported(model: Model, positions: int, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the fused trunk can replace the blocks."""
    sizes = (model.width, model.width // model.heads)
    return (
        kernels is not None
        and device.type == "cuda"
        and dtype in (torch.float16, torch.bfloat16)
        and torch.cuda.get_device_capability(device) >= (9, 0)  # the first with a copy engine that fetches tiles
        and model.activation == "relu"
        and all(size & (size - 1) == 0 and 16 <= size <= 256 for size in sizes)
        and model.width >= 64
        and model.hidden % 128 == 0
        and (model.dropout == 0 or _attends_by_hand(positions, sizes[1]))
    )


def _attends_by_hand(n: int, width: int) -> bool:
    """Whether one program can hold a head's queries, keys and values, and their scores, in shared memory."""
    return n <= LONGEST and (1 << (n - 1).bit_length()) * width <= LARGEST


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
        model = encoder.model
        self.heads, self.head_width, self.bias = model.heads, model.width // model.heads, model.bias
        self.post, self.reads_first, self.layers = model.norm == "post", model.reads_first, []
        for number, block in enumerate(encoder.blocks):
            assert isinstance(block, Block)
            prefix = f"blocks.{number}."
            named = {name: weights.get(prefix + name, p.detach()) for name, p in block.named_parameters()}
            biases = ("norm1.bias", "norm2.bias", "qkv.bias", "out.bias", "up.bias", "down.bias")
            own = {name: gradients[prefix + name] for name in named}
            self.layers.append(Layer(dict.fromkeys(biases) | named, own))
        self.dtype = self.layers[0]["qkv.weight"].dtype
        self.first = self.reads_first and not self.post and model.dropout == 0
        """Whether the last block is computed only for each sample's first position."""
        self.whole = self.layers[:-1] if self.first else self.layers
        """The layers that are computed for all positions."""

    def __call__(self, x: Tensor, n: int, dropout: Dropout | None = None) -> Tensor:
        """Return the residual stream (E, R, D) float32 after all blocks.

        If only the first position of a sample is read out, return only that: (E, B, D). The backward pass writes the
        parameters' gradients to their buffers. Dropout applies only if gradients are enabled.
        """
        if torch.is_grad_enabled():
            out: Tensor = _Function.apply(x, self, n, dropout)  # type: ignore[no-untyped-call]
        else:
            out = self.forward(x, n)[0]
        return out[:, ::n] if self.reads_first and not self.first else out

    # -- forward ----------------------------------------------------------------------------------------------

    def forward(
        self, x: Tensor, n: int, dropout: Dropout | None = None, keep: bool = False
    ) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
        """Return the stream and, with ``keep``, what backward needs of each sub-layer: its norm's input, and more."""
        kept: list[tuple[Tensor, ...]] = []
        h = x.to(self.dtype) if self.post else kernels.add_norm(x, None, None, *self._norm(0), self.dtype)[1]
        for number in range(2 * len(self.whole)):
            layer, feeds = self.layers[number // 2], number % 2
            y, own = self._feed(layer, h, dropout, number) if feeds else self._attend(layer, h, n, dropout, number)
            bias, norm = layer["down.bias" if feeds else "out.bias"], self._norm(number if self.post else number + 1)
            total, h, stream = kernels.add_norm(
                x, y, bias, *norm, self.dtype, dropout=dropout, site=2 * number + 1, post=self.post
            )
            if keep:
                kept.append((total if self.post else x, *own))
            x = stream
        if not self.first:
            return x, kept
        out, last = self._forward_first(x, h, n)
        return out, [*kept, last] if keep else kept

    def _norm(self, number: int) -> tuple[Any, Any]:
        """The gain and shift of a sub-layer's norm; None for both past the last."""
        if number == 2 * len(self.layers):
            return None, None
        layer, name = self.layers[number // 2], f"norm{number % 2 + 1}"
        return layer[f"{name}.weight"], layer[f"{name}.bias"]

    def _attend(
        self, layer: Layer, h: Tensor, n: int, dropout: Dropout | None, number: int
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        qkv = torch.bmm(h, layer["qkv.weight"].mT)
        mixed = self._attention(n).attend(qkv, layer["qkv.bias"], n, self.heads, **_drops(dropout, 2 * number))
        return torch.bmm(mixed, layer["out.weight"].mT), (h, qkv, mixed)

    def _feed(
        self, layer: Layer, h: Tensor, dropout: Dropout | None = None, number: int = 0
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        hidden = kernels.linear_relu(h, layer["up.weight"], layer["up.bias"], dropout, 2 * number)
        return torch.bmm(hidden, layer["down.weight"].mT), (h, hidden)

    def _forward_first(self, x: Tensor, h: Tensor, n: int) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Compute the last block for each sample's first position, from the stream and its norm.

        Also return what backward needs. The keys' bias shifts all scores of a query equally, so it changes nothing;
        the values' bias is added after attention.
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
        norm = layer["norm2.weight"], layer["norm2.bias"]
        middle, g, _ = kernels.add_norm(rows, y, layer["out.bias"], *norm, self.dtype)
        y, fed = self._feed(layer, g)
        out = kernels.add_norm(middle, y, layer["down.bias"], None, None, self.dtype)[0]
        return out, (x, h, own, q, kv, mixed, middle, *fed)

    # -- backward ---------------------------------------------------------------------------------------------

    def backward(self, stream: Tensor, kept: list[tuple[Tensor, ...]], n: int, dropout: Dropout | None) -> Tensor:
        """Return the gradient of the first stream, given that of the last; write every parameter's to its buffer.

        The stream's gradient ``dx`` is kept in half precision, which the products need; in fp16, loss scaling protects
        it from underflow.
        ``dy`` is the gradient of what a sub-layer adds to the stream: the same except where values were dropped.
        """
        if self.first:
            dx, after = self._backward_first(stream, kept.pop(), n)
        else:
            dx, after = stream.to(self.dtype), stream.sum(1)
        (E, R, D), L, F = dx.shape, len(self.whole), self.layers[0]["up.weight"].shape[1]
        norms = stream.new_empty(2 * L, E, kernels.parts(E, -(-R // kernels.norm_rows(D))), 3, D)
        heads = stream.new_empty(L, E, kernels.parts(E * self.heads, R // n), 3 * D)
        hiddens = stream.new_empty(L, E, kernels.product_blocks(R), F) if self.bias else None
        dy, dh = dx, None
        if dropout is not None and not self.post:
            dy = kernels.thin(dx, dropout, 4 * L - 1)
            after = dy.sum(1, dtype=torch.float32)
        for number in reversed(range(2 * L)):
            layer, (x, *own) = self.layers[number // 2], kept.pop()
            if self.post:
                dy = self._norm_backward(number, dh, x, dx, norms[number], dropout, number)
            if number % 2:
                dh = self._feed_backward(layer, dy, own, None if hiddens is None else hiddens[number // 2], dropout)
            else:
                dh = self._attend_backward(layer, dy, own, heads[number // 2], n, dropout, number)
            if not self.post:
                dy = self._norm_backward(number, dh, x, dx, norms[number], dropout, number - 1)
        self._small_gradients(after, norms.sum(2), heads.sum(2), None if hiddens is None else hiddens.sum(2))
        return dx.float() + dh if self.post and dh is not None else dx.float()

    def _norm_backward(
        self, number: int, dh: Tensor | None, x: Tensor, dx: Tensor, sums: Tensor, dropout: Dropout | None, adder: int
    ) -> Tensor:
        """Write the gradient before a sub-layer's norm to ``dx``; return that of what the sub-layer ``adder`` added."""
        drops = dropout if adder >= 0 else None
        return kernels.norm_backward(
            dh, x, self._norm(number)[0], dx, sums, dropout=drops, site=2 * adder + 1, post=self.post
        )

    def _attend_backward(
        self, layer: Layer, dy: Tensor, kept: list[Tensor], sums: Tensor, n: int, dropout: Dropout | None, number: int
    ) -> Tensor:
        (h, qkv, mixed), to = kept, layer.gradients
        torch.bmm(dy.mT, mixed, out=to["out.weight"])
        d_mixed, drops = torch.bmm(dy, layer["out.weight"]), _drops(dropout, 2 * number)
        d_qkv = self._attention(n).attend_backward(qkv, layer["qkv.bias"], d_mixed, sums, n, self.heads, **drops)
        torch.bmm(d_qkv.mT, h, out=to["qkv.weight"])
        return torch.bmm(d_qkv, layer["qkv.weight"])

    def _feed_backward(
        self, layer: Layer, dy: Tensor, kept: list[Tensor], sums: Tensor | None, dropout: Dropout | None = None
    ) -> Tensor:
        (g, hidden), to = kept, layer.gradients
        torch.bmm(dy.mT, hidden, out=to["down.weight"])
        d_hidden = kernels.linear_relu_backward(dy, layer["down.weight"], hidden, sums, dropout)
        torch.bmm(d_hidden.mT, g, out=to["up.weight"])
        return torch.bmm(d_hidden, layer["up.weight"])

    def _backward_first(self, stream: Tensor, kept: tuple[Tensor, ...], n: int) -> tuple[Tensor, Tensor]:
        """Return the stream's gradient before the last block, (E, R, D) in half precision, and its sum over rows."""
        layer, to = self.layers[-1], self.layers[-1].gradients
        x, h, own, q, kv, mixed, middle, *fed = kept
        (E, B, D), R = stream.shape, x.shape[1]
        sums = [stream.new_empty(E, kernels.parts(E, -(-rows // kernels.norm_rows(D))), 3, D) for rows in (R, B)]
        blocks = stream.new_empty(E, kernels.product_blocks(B), fed[1].shape[2]) if self.bias else None
        dx, after = stream.to(self.dtype), stream.sum(1)
        dg = self._feed_backward(layer, dx, fed, blocks)
        kernels.norm_backward(dg, middle, layer["norm2.weight"], dx, sums[1])

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
            small |= {"down.bias": after, "up.bias": blocks.sum(1)}
            small["qkv.bias"] = torch.cat((queries, torch.zeros_like(queries), values), 1)
        torch._foreach_copy_([to[name] for name in small], list(small.values()))
        return whole, first[:, 2]

    def _small_gradients(self, after: Tensor, norms: Tensor, heads: Tensor, hiddens: Tensor | None) -> None:
        """Write the gradients of norms and biases, given as sums over rows, to their buffers.

        ``norms`` (2L, E, 3, D) has, for each norm, the gradients of its gain, its shift, and the bias added before it.
        With pre-norm, ``after`` (E, D) is the gradient of the bias that the last of these sub-layers adds.
        """
        added = [*norms[:, :, 2]] if self.post else [*norms[1:, :, 2], after]
        pairs: list[tuple[Tensor, Tensor]] = []
        for number, (gain, shift) in enumerate(zip(norms[:, :, 0], norms[:, :, 1], strict=True)):
            to, norm = self.layers[number // 2].gradients, f"norm{number % 2 + 1}"
            pairs.append((to[f"{norm}.weight"], gain))
            if hiddens is not None:
                inner, outer = ("up", "down") if number % 2 else ("qkv", "out")
                within = (hiddens if number % 2 else heads)[number // 2]
                pairs += [(to[f"{norm}.bias"], shift), (to[f"{outer}.bias"], added[number])]
                pairs.append((to[f"{inner}.bias"], within))
        if pairs:  # there are none if the only block is the one computed for the first position
            torch._foreach_copy_([target for target, _ in pairs], [source for _, source in pairs])

    def _attention(self, n: int) -> Any:
        return attention if _attends_by_hand(n, self.head_width) else long_attention


def _drops(dropout: Dropout | None, site: int) -> dict[str, Any]:
    """A kernel's dropout options; none without dropout, since PyTorch's own attention, used only then, takes none."""
    return {} if dropout is None else {"dropout": dropout, "site": site}


class _Embed(torch.autograd.Function):
    """A linear map of a few features, (E, R, J) → (E, R, D), whose backward is one pass over the rows."""

    @staticmethod
    def forward(ctx: Any, features: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(features)
        y = torch.bmm(features, weight.mT)
        return y if bias is None else y.add_(bias[:, None])

    @staticmethod
    def backward(ctx: Any, dh: Tensor) -> tuple[None, Tensor, Tensor | None]:
        (features,) = ctx.saved_tensors
        weight, bias = kernels.embed_backward(dh.contiguous(), features)
        return None, weight, bias if ctx.needs_input_grad[2] else None


def embed(embed: Linear, features: Tensor) -> Tensor:
    """The embedding of angular features (E, R, J) → (E, R, D)."""
    out: Tensor = _Embed.apply(features, embed.weight, embed.bias)  # type: ignore[no-untyped-call]
    return out


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, trunk: FusedTrunk, n: int, dropout: Dropout | None) -> Tensor:
        out, ctx.kept = trunk.forward(x, n, dropout, keep=True)
        ctx.trunk, ctx.n, ctx.dropout = trunk, n, dropout
        return out

    @staticmethod
    def backward(ctx: Any, dx: Tensor) -> tuple[Tensor, None, None, None]:
        kept, ctx.kept = ctx.kept, None
        return ctx.trunk.backward(dx.contiguous(), kept, ctx.n, ctx.dropout), None, None, None
