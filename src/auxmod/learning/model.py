"""The encoder, for E members at once: every parameter has a leading member axis, and a single run is E = 1.

Each member equals a `torch.nn.TransformerEncoder` between an embedding and a read-out: `plain` builds that twin, and
tests compare outputs and gradients. `fused` implements the blocks again, as kernels, and tests compare them with these.
This file knows nothing of moduli, labels or training. The trunk (blocks) computes in the dtype it is given; embedding,
read-out and all master weights are float32.

Shapes: E members, B batch, N positions (terms, and one more in front with `cls` pooling), D width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from auxmod.config import Model
from auxmod.learning import long_attention
from auxmod.problem import rng


@dataclass(frozen=True)
class Dropout:
    """Dropout whose masks are a function of (member's key, step, site, element), like all randomness here."""

    rate: float
    keys: Tensor
    """One key per member, int64 (E,)."""
    step: Tensor

    def __call__(self, x: Tensor, site: int) -> Tensor:
        keys = rng.bits(rng.bits(self.keys, self.step), torch.full_like(self.step, site))
        elements = torch.arange(x[0].numel(), device=x.device)
        kept = rng.uniforms(keys[:, None], elements) >= self.rate
        return x * kept.view_as(x) / (1 - self.rate)


class Linear(nn.Module):
    """E linear maps side by side."""

    def __init__(self, members: int, inputs: int, outputs: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, outputs, inputs))
        self.bias = nn.Parameter(torch.empty(members, outputs)) if bias else None

    def forward(self, x: Tensor, outputs: slice = slice(None)) -> Tensor:
        """(E, rows, inputs) → (E, rows, outputs), in x's dtype."""
        weight = self.weight[:, outputs].to(x.dtype).mT
        if self.bias is None:
            return torch.bmm(x, weight)
        bias = self.bias[:, None, outputs].to(x.dtype)
        if x.is_cuda:  # there the sum joins the operation that follows, and baddbmm would copy the bias to every row
            return torch.bmm(x, weight) + bias
        return torch.baddbmm(bias, x, weight)


class LayerNorm(nn.Module):
    """E layer norms side by side, computed in the precision of the master weights."""

    def __init__(self, members: int, width: int, bias: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, width))
        self.bias = nn.Parameter(torch.empty(members, width)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(E, rows, D) → (E, rows, D), in the weights' dtype."""
        x, size = x.to(self.weight.dtype), x.shape[-1:]
        if len(self.weight) == 1:
            return F.layer_norm(x, size, self.weight.squeeze(0), None if self.bias is None else self.bias.squeeze(0))
        y = F.layer_norm(x, size) * self.weight[:, None]
        return y if self.bias is None else y + self.bias[:, None]


class Embedding(nn.Module):
    """E embedding tables side by side."""

    def __init__(self, members: int, rows: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, rows, width))

    def forward(self, x: Tensor) -> Tensor:
        """Tokens (E, B, N) → (E, B, N, D)."""
        E, rows, width = self.weight.shape
        offset = rows * torch.arange(E, device=x.device).view(E, 1, 1)
        return F.embedding(x + offset, self.weight.reshape(E * rows, width))


class Block(nn.Module):
    """Attention, then a feed-forward layer, each with a residual sum, and a norm before or after it."""

    def __init__(self, model: Model, members: int) -> None:
        super().__init__()
        D, E, bias = model.width, members, model.bias
        self.heads, self.pre = model.heads, model.norm == "pre"
        self.activation = F.relu if model.activation == "relu" else F.gelu
        self.norm1, self.norm2 = LayerNorm(E, D, bias), LayerNorm(E, D, bias)
        self.qkv, self.out = Linear(E, D, 3 * D, bias), Linear(E, D, D, bias)
        self.up, self.down = Linear(E, D, model.hidden, bias), Linear(E, model.hidden, D, bias)

    def forward(
        self, x: Tensor, n: int, dtype: torch.dtype, dropout: Dropout | None, site: int, first: bool = False
    ) -> Tensor:
        """The float32 residual stream (E, B·N, D) → the same; sub-layers compute in ``dtype``.

        With ``first``, without dropout, it computes only the first position of each sample, (E, B, D).
        """
        seen = (self.norm1(x) if self.pre else x).to(dtype)
        added = self.attend_first(seen, n) if first else self.attend(seen, n, dropout, site)
        x = (x[:, ::n] if first else x) + added
        if self.pre:
            return x + self.feed(self.norm2(x).to(dtype), dropout, site)
        x = self.norm1(x)
        out: Tensor = self.norm2(x + self.feed(x.to(dtype), dropout, site))
        return out

    def attend_first(self, x: Tensor, n: int) -> Tensor:
        """Attention by the first position of each sample only: (E, B·N, D) → (E, B, D)."""
        D = x.shape[2]
        q, kv = self.qkv(x[:, ::n], slice(D)), self.qkv(x, slice(D, None))
        y: Tensor = self.out(long_attention.attend_first(q, kv, n, self.heads))
        return y

    def attend(self, x: Tensor, n: int, dropout: Dropout | None, site: int) -> Tensor:
        """Self-attention among the ``n`` positions of each sample."""
        qkv: Tensor = self.qkv(x)
        if dropout is None:
            plain: Tensor = self.out(long_attention.attend(qkv, None, n, self.heads))
            return plain
        E, rows, D = x.shape
        q, k, v = long_attention.by_head(qkv, None, n, self.heads)
        weights = torch.softmax((q * (D // self.heads) ** -0.5) @ k.mT, -1)
        mixed = dropout(weights.view(E, -1), site).view_as(weights) @ v
        return dropout(self.out(mixed.transpose(1, 2).reshape(E, rows, D)), site + 1)

    def feed(self, x: Tensor, dropout: Dropout | None, site: int) -> Tensor:
        """The feed-forward layer, position by position."""
        hidden = self.activation(self.up(x))
        y: Tensor = self.down(hidden if dropout is None else dropout(hidden, site + 2))
        return y if dropout is None else dropout(y, site + 3)


class Encoder(nn.Module):
    """Embedding → blocks → pooling → read-out, for E members.

    ``inputs`` is the number of rows of the token table (q), or of angular features per term (two per modulus and
    harmonic). ``outputs`` is the number of classes or coordinates.
    """

    def __init__(self, model: Model, n: int, inputs: int, outputs: int, members: int = 1) -> None:
        super().__init__()
        D, E, bias = model.width, members, model.bias
        self.model, self.n, self.inputs, self.outputs, self.members = model, n, inputs, outputs, members
        self.embed = Embedding(E, inputs, D) if model.embedding == "token" else Linear(E, inputs, D, bias)
        self.cls = nn.Parameter(torch.empty(E, D)) if model.pooling == "cls" else None
        self.blocks = nn.ModuleList(Block(model, E) for _ in range(model.layers))
        self.norm = LayerNorm(E, D, bias) if model.final_norm else nn.Identity()
        self.head = Linear(E, D * n if model.pooling == "flatten" else D, outputs, bias)

    def forward(self, x: Tensor, dtype: torch.dtype = torch.float32, dropout: Dropout | None = None) -> Tensor:
        """Tokens (E, B, N) or features (E, B, N, inputs) → outputs (E, B, outputs), float32."""
        h = self.embedded(x)
        E, B, N, D = h.shape
        outputs: Tensor = self.head(self.pooled(self.trunk(h.reshape(E, B * N, D), N, dtype, dropout), N))
        return outputs

    def trunk(self, h: Tensor, n: int, dtype: torch.dtype, dropout: Dropout | None = None) -> Tensor:
        """All the blocks, (E, B·n, D) → the same, or (E, B, D) if only each sample's first position is read out."""
        alone = self.model.reads_first and dropout is None
        for layer, block in enumerate(self.blocks):
            h = block(h, n, dtype, dropout, 4 * layer, first=alone and layer == len(self.blocks) - 1)
        return h[:, ::n] if self.model.reads_first and not alone else h

    def embedded(self, x: Tensor) -> Tensor:
        """The first residual stream (E, B, N, D), with the learned token in front if there is one."""
        E, B, N = x.shape[:3]
        rows = x if isinstance(self.embed, Embedding) else x.reshape(E, B * N, self.inputs)
        return self.with_cls(self.embed(rows).view(E, B, N, self.model.width))

    def with_cls(self, h: Tensor) -> Tensor:
        """(E, B, N, D) with the learned token in front, if there is one."""
        if self.cls is None:
            return h
        E, B = h.shape[:2]
        return torch.cat((self.cls[:, None, None].expand(E, B, 1, -1), h), 2)

    def pooled(self, h: Tensor, n: int) -> Tensor:
        """The output of :meth:`trunk` → the input of the read-out, (E, B, D or N·D)."""
        return self.read(self.norm(h), n)

    def read(self, h: Tensor, n: int) -> Tensor:
        """:meth:`pooled` without its first step: ``h`` has passed the final norm already."""
        E, rows, D = h.shape
        if self.model.reads_first:
            return h
        h = h.view(E, rows // n, n, D)
        if self.model.pooling == "mean":
            return h.mean(2)
        return h.amax(2) if self.model.pooling == "max" else h.flatten(2)
