"""AdamW for E members in one pass: each with its own learning rate, schedule, clipping and loss scale.

All parameters of an ensemble lie in one buffer (E, P), and so do their gradients and moments; an update is then
a handful of elementwise operations, whatever the number of layers. A member whose gradient is not finite skips
the step; what is per member is a scalar, so nothing here branches and all of it can be captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from auxmod.config import RunConfig

EPSILON = 1e-8
SCALE_START, SCALE_MAX, SCALE_GROWTH_STEPS = 2.0**12, 2.0**24, 1000


@dataclass(frozen=True)
class Hyper:
    """Each member's constants, float32 (E,)."""

    lr: Tensor
    warmup_steps: Tensor
    steps: Tensor
    beta1: Tensor
    beta2: Tensor
    weight_decay: Tensor
    clip: Tensor

    @classmethod
    def of(cls, configs: Sequence[RunConfig], device: torch.device) -> Hyper:
        rows = [
            (
                t.lr,
                max(1.0, round(t.warmup * t.steps)),
                t.steps,
                t.beta1,
                t.beta2,
                t.weight_decay,
                t.clip or torch.inf,
            )
            for t in (c.training for c in configs)
        ]
        return cls(*torch.tensor(rows, dtype=torch.float64, device=device).T.float().contiguous())

    def schedule(self, step: Tensor) -> Tensor:
        """The learning rates at ``step`` = 0, 1, …: up over the warm-up, then linearly down to 0 at the end."""
        rise = (step + 1) / self.warmup_steps
        fall = (self.steps - step) / (self.steps - self.warmup_steps).clamp(min=1)
        return self.lr * torch.minimum(rise, fall).clamp(0, 1)


@dataclass(frozen=True)
class OptimiserState:
    """What an update changes, all in place. The last four are one number a member."""

    parameters: Tensor
    first: Tensor
    second: Tensor
    updates: Tensor
    """Updates made, float32: a skipped step does not count."""
    scale: Tensor
    """What the loss is multiplied by so that small fp16 gradients survive; 1 in other precisions."""
    streak: Tensor
    """Good steps since the scale last changed."""
    dead: Tensor
    """The step at which a member's loss stopped being finite, or −1, int64."""

    @classmethod
    def start(cls, parameters: Tensor, scaled: bool) -> OptimiserState:
        row = torch.zeros_like(parameters[:, 0])
        scale = torch.full_like(row, SCALE_START if scaled else 1.0)
        dead = torch.full_like(row, -1, dtype=torch.int64)
        first, second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        return cls(parameters, first, second, row.clone(), scale, row.clone(), dead)


@torch.no_grad()
def update(state: OptimiserState, gradients: Tensor, losses: Tensor, step: Tensor, hyper: Hyper) -> None:
    """One AdamW step from gradients (E, P) of the scaled losses; a member that cannot take it stays put."""
    norm = gradients.norm(dim=1) / state.scale
    finite = torch.isfinite(norm) & torch.isfinite(losses)
    running = (state.dead < 0) & (step < hyper.steps)
    taken = finite & running
    shrink = (hyper.clip / (norm + 1e-6)).clamp(max=1) / state.scale
    gradient = torch.where(taken[:, None], gradients * shrink[:, None], 0)

    state.updates.add_(taken)
    lr = torch.where(taken, hyper.schedule(step), 0)[:, None]
    beta1, beta2 = (torch.where(taken, beta, 1)[:, None] for beta in (hyper.beta1, hyper.beta2))
    state.first.mul_(beta1).add_(gradient * (1 - beta1))
    state.second.mul_(beta2).add_(gradient.square() * (1 - beta2))
    age = state.updates.clamp(min=1)
    mean = state.first / (1 - hyper.beta1**age)[:, None]
    spread = (state.second / (1 - hyper.beta2**age)[:, None]).sqrt()
    state.parameters.mul_(1 - lr * hyper.weight_decay[:, None]).sub_(lr * mean / (spread + EPSILON))
    _rescale(state, finite, running, step)


def _rescale(state: OptimiserState, finite: Tensor, running: Tensor, step: Tensor) -> None:
    """Dynamic loss scaling; a member that fails with nothing left to halve is dead: at once where unscaled."""
    failed = running & ~finite
    state.dead.copy_(torch.where(failed & (state.scale <= 1), step, state.dead))
    streak = torch.where(finite, state.streak + 1, 0)
    grown = (streak >= SCALE_GROWTH_STEPS) & (state.scale > 1)
    state.scale.copy_(torch.where(grown, state.scale * 2, state.scale).clamp(max=SCALE_MAX))
    state.scale.copy_(torch.where(failed, state.scale / 2, state.scale).clamp(min=1))
    state.streak.copy_(torch.where(grown, 0, streak))


def gather_parameters(module: nn.Module) -> tuple[Tensor, list[Tensor], Tensor]:
    """Move a module's parameters into one buffer (E, P), which they become views of.

    Returns the buffer, a list of views of a second buffer of the same layout (for gradients), and that buffer.
    Rows are padded to 64 elements, so that every member's weights are aligned alike.
    """
    own = list(module.parameters())
    E, size = len(own[0]), sum(p[0].numel() for p in own)
    buffer = own[0].new_zeros(E, -(-size // 64) * 64)
    gradients = torch.zeros_like(buffer)
    views, start = [], 0
    for p in own:
        end = start + p[0].numel()
        view = buffer[:, start:end].view(p.shape)
        view.copy_(p.detach())
        p.data = view
        views.append(gradients[:, start:end].view(p.shape))
        start = end
    return buffer, views, gradients
