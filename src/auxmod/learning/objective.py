"""The loss, from moduli, weights and a way to draw; and the answer, from an output; for E members at once.

A method is only data here: no code asks which it is. Each sample gets a weight on every rung: w_j (`expected`), or
one-hot, drawn with probabilities w_j. The loss is the weighted sum of the J losses. A harmonic h is one more rung: its
point is at h times the answer's angle, just as that of a modulus K·q is at 1/K of it.

Shapes: E members, B batch, N terms, J rungs (moduli, then harmonics), V classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor

from auxmod.config import Draw, Model, RunConfig
from auxmod.problem import labels, rng

_DRAWS: dict[str, int] = {name: code for code, name in enumerate(get_args(Draw))}


@dataclass(frozen=True)
class Objective:
    """What each member is asked for, as tensors with a leading member axis."""

    model: Model
    q: Tensor
    """The moduli of the problems, int64 (E,)."""
    moduli: Tensor
    """m_j·q, int64 (E, J); q itself for a harmonic."""
    harmonics: Tensor
    """Factors on the sum before it is reduced, int64 (E, J); 1 for a modulus."""
    rungs: Tensor
    """Number of rungs of each member, int64 (E,); those beyond are padding without weight."""
    finer: int
    """Number of rungs that are harmonics."""
    weights: Tensor
    """w_j, float32 (E, J)."""
    draw: Tensor
    """How each member draws its moduli, as a code, int64 (E,)."""
    alpha: Tensor
    """Weight of the regulariser, float32 (E,)."""
    key: Tensor
    """Random key of each member's label draws, int64 (E,)."""
    crossed: Tensor | None
    """Which members train all points on a drawn label, bool (E,); None if none does."""
    n: int
    """Number of terms."""
    tails: Tensor | None
    """The most that a rare sum weighs at a modulus above q, float32 (E,); None if all weigh the same."""
    shifts: tuple[Tensor, Tensor] | None
    """Each member's random key for shifts, and how many shifts it has (1 if it does not shift); None if none does."""

    @classmethod
    def of(cls, configs: Sequence[RunConfig], device: torch.device) -> Objective:
        """The objective of an ensemble of runs."""
        most = max(c.method.rungs for c in configs)

        def padded(rows: Iterable[Sequence[float]], pad: float, dtype: torch.dtype) -> Tensor:
            return torch.tensor([(*row, *[pad] * (most - len(row))) for row in rows], dtype=dtype, device=device)

        q = torch.tensor([c.problem.q for c in configs], device=device)
        multipliers = padded((c.method.moduli for c in configs), 1, torch.int64)
        harmonics = padded(((*[1] * len(c.method.moduli), *c.method.harmonics) for c in configs), 1, torch.int64)
        crossed, tails = [c.method.asked == "all" for c in configs], [c.method.tails for c in configs]
        reach = torch.tensor([c.problem.q if c.method.augment == "shift" else 1 for c in configs], device=device)
        starts = torch.tensor([rng.key(c.seed, "shift") for c in configs], device=device)
        return cls(
            model=configs[0].model,
            q=q,
            moduli=multipliers * q[:, None],
            harmonics=harmonics,
            rungs=torch.tensor([c.method.rungs for c in configs], device=device),
            finer=len(configs[0].method.harmonics),
            n=configs[0].problem.n,
            tails=torch.tensor(tails, dtype=torch.float32, device=device) if max(tails) > 1 else None,
            crossed=torch.tensor(crossed, device=device) if any(crossed) else None,
            shifts=(starts, reach) if any(c.method.augment == "shift" for c in configs) else None,
            weights=padded((c.method.weights for c in configs), 0.0, torch.float32),
            draw=torch.tensor([_DRAWS[c.method.draw] for c in configs], device=device),
            alpha=torch.tensor([c.method.alpha for c in configs], dtype=torch.float32, device=device),
            key=torch.tensor([rng.key(c.seed, "label") for c in configs], device=device),
        )

    def features(self, x: Tensor) -> Tensor:
        """What the encoder sees of x (E, B, N): the tokens, or a point for each rung (E, B, N, 2J)."""
        if self.model.embedding == "token":
            return x
        moduli = self.moduli[:, None, None]
        return labels.points(x[..., None] * self.harmonics[:, None, None] % moduli, moduli).flatten(-2)

    def shifted(self, x: Tensor, total: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """This step's inputs (E, B, N) and their sums (E, B); if a member shifts, with a constant per sample added."""
        if self.shifts is None:
            return x, total
        (keys, reach), B = self.shifts, x.shape[1]
        visit = step * B + torch.arange(B, device=x.device)
        constant = rng.integers(keys[:, None], visit, reach[:, None]).to(x.dtype)
        x = (x + constant[..., None]) % self.q[:, None, None].to(x.dtype)
        return x, labels.sums(x)

    def losses(self, outputs: Tensor, total: Tensor, index: Tensor, step: Tensor) -> Tensor:
        """The mean loss of each member (E,), for outputs (E, B, ·) on inputs with sums ``total`` (E, B).

        ``index`` (E, B) has the indices of these training samples; ``step`` is the number of this step, from 0.
        """
        weights = self.sample_weights(index, step)
        if self.tails is not None:
            weights = weights * self.rarity(total).to(weights.dtype)
        if not self.model.angles:
            target = labels.residues(total[..., None], self.moduli[:, None])
            return (self.token_losses(outputs, target) * weights).sum(-1).mean(1)
        each = self.angular_losses(outputs, total)
        if self.crossed is not None:
            each = torch.where(self.crossed[:, None, None], self.crossed_losses(outputs, total), each)
        return ((each * weights).sum(-1) + self.alpha[:, None] * collapse_penalty(outputs[..., :2])).mean(1)

    def rarity(self, total: Tensor) -> Tensor:
        """The weights of samples with these sums (E, B) at each rung, (E, B, J).

        At the moduli above q, which tell how often a sum wraps, the weight is 1 within 1.5 standard deviations of a
        uniform sum's mean, then grows, up to ``tails``. At the other rungs it is 1. A weight of exp(¾·z²/2) at every z
        would spread the sums as if their standard deviation were twice as large.
        """
        assert self.tails is not None
        q = self.q[:, None].double()
        square = (total - self.n * (q - 1) / 2) ** 2 / (self.n * (q**2 - 1) / 12)
        weight = torch.exp(0.375 * (square - 2.25).clamp(min=0)).minimum(self.tails[:, None])
        return torch.where((self.moduli > self.q[:, None])[:, None], weight[..., None], 1.0)

    def angular_losses(self, outputs: Tensor, total: Tensor) -> Tensor:
        """Mean squared error of each rung's point, (E, B, J)."""
        moduli = self.moduli[:, None]
        point = labels.points(labels.residues(total[..., None] * self.harmonics[:, None], moduli), moduli)
        return (outputs.view_as(point) - point).square().mean(-1)

    def crossed_losses(self, outputs: Tensor, total: Tensor) -> Tensor:
        """For each label, the mean squared error of all points when every one is asked for that number, (E, B, J)."""
        label = labels.residues(total[..., None], self.moduli[:, None])  # f_q, f_Kq, …
        moduli = self.moduli[:, None, None]
        point = labels.points(labels.residues(label[..., None], moduli), moduli)  # (E, B, label, rung, 2)
        return (outputs.view_as(point[:, :, 0])[:, :, None] - point).square().mean((-1, -2))

    def token_losses(self, outputs: Tensor, target: Tensor) -> Tensor:
        """Cross-entropy of each modulus's residue among a member's own K·q classes, (E, B, J)."""
        logits = _first(outputs, self.moduli.amax(1))
        return logits.logsumexp(-1, keepdim=True) - logits.gather(-1, target)

    def sample_weights(self, index: Tensor, step: Tensor) -> Tensor:
        """The weight of each rung for each sample, (E, B, J): w_j, or one-hot, drawn with probabilities w_j."""
        B = index.shape[1]
        visit = (step * B + torch.arange(B, device=index.device)).expand_as(index)
        draw = self.draw[:, None]
        counter = torch.where(draw == _DRAWS["fixed"], index, visit)
        counter = torch.where(draw == _DRAWS["batched"], step, counter)
        u = rng.uniforms(self.key[:, None], counter)[..., None]
        upper = self.weights.double().cumsum(1)[:, None]
        last = torch.arange(upper.shape[-1], device=u.device) >= self.rungs[:, None, None] - 1
        upper = torch.where(last, 2.0, upper)
        drawn = (u < upper) & (u >= torch.nn.functional.pad(upper[..., :-1], (1, 0)))
        return torch.where((draw == _DRAWS["expected"])[..., None], self.weights[:, None], drawn.float())

    def turned_back(self, outputs: Tensor, by: Tensor) -> Tensor:
        """Outputs (E, B, ·) for inputs whose sums are ``by`` (E, B) larger → outputs for the inputs themselves.

        It returns only what :meth:`decode` reads: the points, or the log-probabilities of q classes.
        """
        if not self.model.angles:
            classes, q = torch.arange(outputs.shape[-1], device=outputs.device), self.q[:, None, None]
            place = torch.where(classes < q, (classes + by[..., None]) % q, classes)
            return _first(outputs, self.q).log_softmax(-1).gather(-1, place)
        moduli = self.moduli[:, None]
        c, s = labels.points(by[..., None] * self.harmonics[:, None] % moduli, moduli).unbind(-1)
        x, y = outputs.view(*outputs.shape[:-1], -1, 2).unbind(-1)
        return torch.stack((x * c + y * s, y * c - x * s), -1).flatten(-2)

    def decode(self, outputs: Tensor) -> Tensor:
        """The unrounded answer (E, B) in [0, q), float64: the best of q classes, or the first point's angle.

        It is NaN if the outputs it is read from are not finite. With harmonics all points are read, from the coarsest
        rung to the finest. A point that goes round f times while the sum grows by q makes the answer f times as fine,
        as far as the point is reliable. The length R of a point trained by squared error is about the mean cosine of
        its error, so f²·R²/(1 − R²) is about its precision. With 1.1 in place of the 1, no precision is infinite.
        """
        if not self.model.angles:
            best, place = _first(outputs, self.q).max(-1)
            return torch.where(best.isfinite(), place.double(), torch.nan)
        q, outputs = self.q[:, None], torch.where(outputs.isfinite(), outputs, torch.nan)  # else ∞ gets an angle
        if not self.finer:
            return labels.values(outputs[..., :2], q)
        multiples = self.moduli // q
        frequency = self.harmonics.double() / multiples
        points = outputs.double().view(*outputs.shape[:-1], -1, 2)
        length = points.square().sum(-1).clamp(max=1)
        told = multiples.amax(1, keepdim=True) % multiples == 0  # the others cannot refine the coarsest rung
        precision = (told * frequency**2)[:, None] * length / (1.1 - length)
        turns = torch.atan2(points[..., 1], points[..., 0]) / (2 * torch.pi)
        answer = sure = torch.zeros_like(turns[..., 0])
        for j in frequency.argsort(1).T[..., None]:
            f, at = frequency.gather(1, j), j[:, None].expand(*answer.shape, 1)
            gap, trust = turns.gather(-1, at)[..., 0] - f * answer, precision.gather(-1, at)[..., 0]
            sure = sure + trust
            answer = answer + torch.where(sure == 0, 0.0, (gap - gap.round()) / f * trust / sure)
        return (answer - answer.floor()) * q % q


def collapse_penalty(point: Tensor) -> Tensor:
    """‖p‖² + 1/‖p‖² (Saxena et al.), guarded so that a point at the centre has a finite gradient."""
    square = point.square().sum(-1)
    return square + 1 / (square + 1e-6)


def _first(logits: Tensor, count: Tensor) -> Tensor:
    """Keep each member's first ``count`` (E,) classes of (E, B, V); the others become −∞."""
    unused = torch.arange(logits.shape[-1], device=logits.device) >= count[:, None, None]
    return logits.masked_fill(unused, -torch.inf)
