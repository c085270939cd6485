"""AdamW for E members in one pass, each with its own learning rate, schedule, clipping and loss scale.

With `--optimiser muon`, `muon` updates the blocks' matrices instead.

All parameters of an ensemble lie in one buffer (E, P). Each of the moments has such a buffer too, and the gradients
have two. So an update is a handful of elementwise operations, whatever the number of layers. A member whose loss or
gradient is not finite skips the step. What differs between members is a scalar, so nothing here branches and all of it
can be captured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from auxmod.config import Optimiser, RunConfig
from auxmod.learning import fused, muon

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
        """The learning rates at ``step`` = 0, 1, …: rising over the warm-up, then falling linearly to 0 at the end."""
        rise = (step + 1) / self.warmup_steps
        fall = (self.steps - step) / (self.steps - self.warmup_steps).clamp(min=1)
        return self.lr * torch.minimum(rise, fall).clamp(0, 1)


@dataclass(frozen=True)
class OptimiserState:
    """What an update changes, all in place. The last four have one number per member."""

    parameters: Tensor
    first: Tensor
    second: Tensor
    updates: Tensor
    """Number of updates made, float32; a skipped step does not count."""
    scale: Tensor
    """Factor on the loss, so that small fp16 gradients survive; 1 in other precisions."""
    streak: Tensor
    """Good steps since the scale last changed; −∞ without scaling, so that the scale never grows."""
    dead: Tensor
    """The step, from 0, at which a member's loss or gradient stopped being finite for good, or −1, int64."""

    @classmethod
    def start(cls, parameters: Tensor, scaled: bool) -> OptimiserState:
        row = torch.zeros_like(parameters[:, 0])
        scale = torch.full_like(row, SCALE_START if scaled else 1.0)
        dead = torch.full_like(row, -1, dtype=torch.int64)
        first, second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        streak = row.clone() if scaled else torch.full_like(row, -torch.inf)
        return cls(parameters, first, second, row.clone(), scale, streak, dead)


class Memory:
    """The memory of an ensemble's parameters and gradients: a few buffers, each with one long row per member.

    The parameters become views of ``parameters`` (E, P): first the matrices of the blocks, by size, then all the rest.
    ``gradients`` are two buffers in the same order. ``dtype`` is that of a fused trunk, or None without one. The
    matrices' gradients are in that dtype, and so is ``half``, a copy of the matrices; without a fused trunk it is None.
    """

    def __init__(self, module: nn.Module, dtype: torch.dtype | None = None) -> None:
        named = dict(module.named_parameters())
        matrices = [name for name, p in named.items() if name.startswith("blocks.") and p.dim() == 3]
        matrices.sort(key=lambda name: _matrices(name, named[name])[:2])  # puts those of one size side by side
        rest = [name for name in named if name not in set(matrices)]
        master = next(iter(named.values()))
        sizes = [_padded(sum(named[name][0].numel() for name in group)) for group in (matrices, rest)]
        self.parameters = master.new_zeros(len(master), sum(sizes)).detach()
        self.gradients = [
            master.new_zeros(len(master), size, dtype=kind) for size, kind in zip(sizes, (dtype, None), strict=True)
        ]
        self.half = None if dtype is None else master.new_zeros(len(master), sizes[0], dtype=dtype)
        self.one_pass = fused.updates is not None and master.is_cuda
        """Whether kernels do the update; an ensemble that falls back to plain PyTorch turns this off."""
        self.stacks: list[muon.Stack] = []
        """The matrices in a row's first part."""
        self.halves: dict[str, Tensor] = {}
        self.views: dict[str, Tensor] = {}
        for group, gradients, offset in zip((matrices, rest), self.gradients, (0, sizes[0]), strict=True):
            start = 0
            for name in group:
                p, end = named[name], start + named[name][0].numel()
                view = self.parameters[:, offset + start : offset + end].view(p.shape)
                view.copy_(p.detach())
                p.data = view
                self.views[name] = gradients[:, start:end].view(p.shape)
                if group is matrices:
                    self._stack(start, *_matrices(name, p))
                    if self.half is not None:
                        self.halves[name] = self.half[:, start:end].view(p.shape)
                start = end
        self.refresh()

    def _stack(self, start: int, rows: int, columns: int, count: int) -> None:
        last = self.stacks[-1] if self.stacks else None
        if last is not None and (last.rows, last.columns) == (rows, columns):
            self.stacks.pop()
            start, count = last.start, last.count + count
        self.stacks.append(muon.Stack(start, count, rows, columns))

    def refresh(self) -> None:
        """Bring the half-precision copy up to date with the parameters."""
        if self.half is not None:
            self.half.copy_(self.parameters[:, : self.half.shape[1]])

    def gradient_norm(self) -> Tensor:
        """The norm of each member's whole gradient, (E,), of the scaled loss."""
        return sum(
            (g.to(self.parameters.dtype).square().sum(1) for g in self.gradients), start=0 * self.parameters[:, 0]
        ).sqrt()


def _matrices(name: str, p: Tensor) -> tuple[int, int, int]:
    """Rows, columns and number of a parameter's matrices: three if it holds queries, keys and values, else one."""
    count = 3 if ".qkv." in name else 1
    return p.shape[1] // count, p.shape[2], count


def _padded(size: int) -> int:
    """Round up to a multiple of 64, so that every member's weights have the same alignment."""
    return -(-size // 64) * 64


@torch.no_grad()
def decide(state: OptimiserState, memory: Memory, losses: Tensor, step: Tensor, hyper: Hyper) -> Tensor:
    """Return each member's scalars for :func:`apply`, (E, 8); also update ``state``, except parameters and moments.

    Gradients are of the scaled loss. A member that cannot use its gradient gets scalars that leave it as it is.
    """
    norm = memory.gradient_norm() / state.scale
    finite = torch.isfinite(norm) & torch.isfinite(losses)
    running = state.dead < 0
    taken = finite & running
    shrink = torch.where(taken, (hyper.clip / (norm + 1e-6)).clamp(max=1) / state.scale, 0)
    lr = torch.where(taken, hyper.schedule(step), 0)
    beta1, beta2 = (torch.where(taken, beta, 1) for beta in (hyper.beta1, hyper.beta2))
    state.updates.add_(taken)
    age = state.updates.clamp(min=1)
    scalars = torch.stack(
        (taken.float(), shrink, lr, hyper.weight_decay, beta1, beta2, 1 - hyper.beta1**age, 1 - hyper.beta2**age), 1
    )
    _rescale(state, finite, running, step)
    return scalars


@torch.no_grad()
def apply(state: OptimiserState, memory: Memory, scalars: Tensor, optimiser: Optimiser = "adamw") -> None:
    """Update parameters and moments in place, given each member's ``scalars`` (E, 8) from :func:`decide`."""
    start = 0
    for gradients in memory.gradients:
        part = slice(start, start := start + gradients.shape[1])
        p, m, v = (t[:, part] for t in (state.parameters, state.first, state.second))
        half = memory.half if part.start == 0 else None
        if optimiser == "muon" and part.start == 0:
            muon.update(p, m, gradients, half, scalars, memory.stacks, memory.one_pass)
        elif memory.one_pass:
            fused.updates.adamw(p, m, v, gradients, half, scalars, EPSILON)
        else:
            plain_adamw(p, m, v, gradients, half, scalars)


def plain_adamw(p: Tensor, m: Tensor, v: Tensor, gradients: Tensor, half: Tensor | None, scalars: Tensor) -> None:
    """AdamW (Loshchilov and Hutter) on (E, G) rows, in place, as in `torch.optim`."""
    taken, shrink, lr, decay, beta1, beta2, correction1, correction2 = scalars[:, :, None].unbind(1)
    gradient = torch.where(taken > 0, gradients * shrink, 0)
    m.mul_(beta1).add_(gradient * (1 - beta1))
    v.mul_(beta2).add_(gradient.square() * (1 - beta2))
    p.mul_(1 - lr * decay).sub_(lr * (m / correction1) / ((v / correction2).sqrt() + EPSILON))
    if half is not None:
        half.copy_(p)


def _rescale(state: OptimiserState, finite: Tensor, running: Tensor, step: Tensor) -> None:
    """Adjust the loss scales: halve one after a failure, double it after enough good steps.

    A member that fails at a scale of 1 is marked dead: without scaling, at its first failure.
    """
    failed = running & ~finite
    state.dead.copy_(torch.where(failed & (state.scale <= 1), step, state.dead))
    streak = torch.where(finite, state.streak + 1, state.streak.clamp(max=0))
    grown = streak >= SCALE_GROWTH_STEPS
    state.scale.copy_(torch.where(grown, state.scale * 2, state.scale).clamp(max=SCALE_MAX))
    state.scale.copy_(torch.where(failed, state.scale / 2, state.scale).clamp(min=1))
    state.streak.copy_(torch.where(grown, 0, streak))
