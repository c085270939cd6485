"""Moduli × weights × draw → loss, and an output → an answer, for E members at once.

A method is only data here: each sample gets a weight on every modulus, equal to w_j (`expected`) or one-hot and
drawn with probabilities w_j, and the loss is the weighted sum of the J losses. No method is a branch.

Shapes: E members, B batch, N terms, J moduli, V classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from auxmod.config import Draw, Embedding, RunConfig
from auxmod.problem import labels, rng

_DRAWS: dict[str, int] = {name: code for code, name in enumerate(get_args(Draw))}


@dataclass(frozen=True)
class Objective:
    """What each member is asked: tensors with a leading member axis."""

    embedding: Embedding
    q: Tensor
    """The moduli of the problems, int64 (E,)."""
    moduli: Tensor
    """m_j·q, int64 (E, J)."""
    weights: Tensor
    """w_j, float32 (E, J)."""
    draw: Tensor
    """Which way of drawing, int64 (E,)."""
    alpha: Tensor
    """Weight of the regulariser, float32 (E,)."""
    key: Tensor
    """Where each member's label draws start, int64 (E,)."""

    @classmethod
    def of(cls, configs: Sequence[RunConfig], device: torch.device) -> Objective:
        """The objective of an ensemble of runs, which have equally many moduli."""
        q = torch.tensor([c.problem.q for c in configs], device=device)
        multipliers = torch.tensor([c.method.moduli for c in configs], device=device)
        return cls(
            embedding=configs[0].model.embedding,
            q=q,
            moduli=multipliers * q[:, None],
            weights=torch.tensor([c.method.weights for c in configs], dtype=torch.float32, device=device),
            draw=torch.tensor([_DRAWS[c.method.draw] for c in configs], device=device),
            alpha=torch.tensor([c.method.alpha for c in configs], dtype=torch.float32, device=device),
            key=torch.tensor([rng.key(c.seed, "label") for c in configs], device=device),
        )

    def features(self, x: Tensor) -> Tensor:
        """What the encoder sees of x (E, B, N): the tokens, or a point for each modulus (E, B, N, 2J)."""
        if self.embedding == "token":
            return x
        return labels.points(x[..., None], self.moduli[:, None, None]).flatten(-2)

    def losses(self, outputs: Tensor, total: Tensor, index: Tensor, step: Tensor) -> Tensor:
        """The mean loss of each member (E,), for outputs (E, B, ·) to inputs with sums ``total`` (E, B).

        ``index`` (E, B) says which training samples these are; ``step`` is the number of this visit.
        """
        target = labels.residues(total[..., None], self.moduli[:, None])
        each = self.token_losses(outputs, target) if self.embedding == "token" else self.angular_losses(outputs, target)
        loss = (each * self.sample_weights(index, step)).sum(-1)
        if self.embedding == "angular":
            loss = loss + self.alpha[:, None] * collapse_penalty(outputs[..., :2])
        return loss.mean(1)

    def angular_losses(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Mean squared error of each modulus's point, (E, B, J)."""
        point = labels.points(target, self.moduli[:, None])
        return (outputs.view_as(point) - point).square().mean(-1)

    def token_losses(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of each modulus's residue among a member's own K·q classes, (E, B, J)."""
        logits = _first(outputs, self.moduli.amax(1))
        return logits.logsumexp(-1, keepdim=True) - logits.gather(-1, target)

    def sample_weights(self, index: Tensor, step: Tensor) -> Tensor:
        """The weight of each modulus for each sample, (E, B, J): w_j, or one-hot drawn from w."""
        B = index.shape[1]
        visit = (step * B + torch.arange(B, device=index.device)).expand_as(index)
        draw = self.draw[:, None]
        counter = torch.where(draw == _DRAWS["fixed"], index, visit)
        counter = torch.where(draw == _DRAWS["batched"], step, counter)
        u = rng.uniforms(self.key[:, None], counter)[..., None]
        upper = self.weights.double().cumsum(1)[:, None]
        upper = torch.where(torch.arange(upper.shape[-1], device=u.device) == upper.shape[-1] - 1, 2.0, upper)
        drawn = (u < upper) & (u >= torch.nn.functional.pad(upper[..., :-1], (1, 0)))
        return torch.where((draw == _DRAWS["expected"])[..., None], self.weights[:, None], drawn.float())

    def decode(self, outputs: Tensor) -> Tensor:
        """The unrounded answer (E, B) in [0, q), float64: the first pair's angle, or the best of q classes."""
        if self.embedding == "token":
            return _first(outputs, self.q).argmax(-1).double()
        return labels.values(outputs[..., :2], self.q[:, None])


def collapse_penalty(point: Tensor) -> Tensor:
    """‖p‖² + 1/‖p‖² (Saxena et al.), guarded so that a point at the centre has a finite gradient."""
    square = point.square().sum(-1)
    return square + 1 / (square + 1e-6)


def _first(logits: Tensor, count: Tensor) -> Tensor:
    """Leave each member (E, B, V) its first ``count`` (E,) classes."""
    unused = torch.arange(logits.shape[-1], device=logits.device) >= count[:, None, None]
    return logits.masked_fill(unused, -torch.inf)
