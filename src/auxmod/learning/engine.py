"""Train an ensemble of runs: data, step, schedule, evaluation. It yields events and writes no files.

An :class:`Ensemble` is E runs of one shape, trained together on one device; a single run is E = 1. Everything random
depends only on a run's seed and the step. So a run can stop after any event and resume later from its
:meth:`~Ensemble.snapshot` as if it had not stopped, and a member learns what it would learn alone.

Shapes: E members, S samples, B batch, N terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from auxmod.config import TAUS, RunConfig
from auxmod.errors import require
from auxmod.learning import fused
from auxmod.learning.capture import captured, compiled
from auxmod.learning.cost import widths
from auxmod.learning.evaluation import evaluate, rows_at_once
from auxmod.learning.fused import FusedTrunk
from auxmod.learning.initial import initialise
from auxmod.learning.model import Dropout, Encoder, Linear
from auxmod.learning.objective import Objective
from auxmod.learning.optimiser import Hyper, Memory, OptimiserState, apply, decide
from auxmod.learning.precision import products, resolve_precision, trunk_dtype
from auxmod.problem import labels, rng, sampling
from auxmod.problem.rows import given_rows, parted

VALIDATION_SAMPLES, ASKED_SAMPLES = 2_000, 20_000
LOGS, EVALUATIONS = 200, 10
"""About how often per run the loss is logged, and how often the held-out accuracy is measured."""


@dataclass(frozen=True)
class Progress:
    """A point of the learning curve. The lists have one entry per member."""

    step: int
    steps: int
    loss: list[float]
    """Mean training loss since the last event."""
    accuracy: list[float] | None
    """Match accuracy on held-out inputs; None if it was not measured at this step."""
    dead: list[int | None]
    """The step, from 0, at which a member's loss or gradient stopped being finite; None for live members."""
    near: list[float] | None = None
    """Measured with accuracy: the share of answers within the smallest τ. For a large q, few answers are exact."""


@dataclass(frozen=True)
class Finished:
    """The end of training: each member's figures, or None for a dead member."""

    scores: list[dict[str, Any] | None]
    dead: list[int | None]
    """As in :class:`Progress`, but a member with no finite answer to the test inputs is dead too, at the last step."""


def shape_of(config: RunConfig) -> tuple[Any, ...]:
    """What runs must share to train in one ensemble, including their length; everything else may differ.

    Tokens, classes and their moduli that a member lacks are padding. Points are not padded, so the numbers of moduli
    and of harmonics are part of the shape if answers are points.
    """
    m, t = config.model, config.training
    structure = tuple(getattr(m, f.name) for f in fields(m) if f.name not in ("init", "lift"))
    rungs = (len(config.method.moduli), len(config.method.harmonics)) if m.angles else None
    lengths = ("samples", "epochs", "batch", "precision", "optimiser", "test_samples", "test_data_sha256", "asks")
    return config.problem.n, rungs, structure, *(getattr(t, name) for name in lengths)


def make_encoder(configs: Sequence[RunConfig]) -> Encoder:
    """Make an encoder, not yet initialised, with as many tokens and classes as any run of the ensemble needs."""
    sizes = [widths(c) for c in configs]
    inputs, outputs = (max(size) for size in zip(*sizes, strict=True))
    return Encoder(configs[0].model, configs[0].problem.n, inputs, outputs, len(configs))


class Ensemble:
    """E runs of one shape, on one device."""

    def __init__(
        self,
        configs: Sequence[RunConfig],
        device: torch.device | str,
        data: Sequence[np.ndarray[Any, Any] | None] | None = None,
        dtype: torch.dtype = torch.float32,
        test_data: np.ndarray[Any, Any] | None = None,
    ) -> None:
        """``data`` has each run's own inputs (S, N), or None to draw them; ``dtype`` is that of the master weights.

        ``test_data`` are rows on which to measure all runs, in place of drawn ones.
        """
        self.configs, self.device = list(configs), (device := torch.device(device))
        require(len({shape_of(c) for c in self.configs}) == 1, "Only runs of one shape can be trained together.")
        if device.index is not None and device.type == "cuda":
            torch.cuda.set_device(device)  # kernels and captures use the current device
        first = self.configs[0]
        self.training, self.n = first.training, first.problem.n
        self.steps = self.training.steps
        self.precision = resolve_precision(self.training.precision, device)
        self.trunk_dtype = dtype if dtype == torch.float64 else trunk_dtype(self.precision)

        with torch.device(device):
            self.encoder = make_encoder(self.configs).to(dtype)
        for e, c in enumerate(self.configs):
            initialise(self.encoder, e, c.seed, c.model.init, c.model.lift)
        self.objective, self.hyper = Objective.of(self.configs, device), Hyper.of(self.configs, device)
        self.positions = self.n + (first.model.pooling == "cls")
        by_hand = fused.supported(first.model, self.positions, device, self.trunk_dtype)
        self.memory = Memory(self.encoder, self.trunk_dtype if by_hand else None)
        self.state = OptimiserState.start(self.memory.parameters, scaled=self.precision == "fp16")
        self._by_hand = FusedTrunk(self.encoder, self.memory.halves, self.memory.views) if by_hand else None
        self.step_number = torch.zeros((), dtype=torch.int64, device=device)
        self.loss_sum = torch.zeros(len(self.configs), dtype=dtype, device=device)

        self.own_rows: dict[str, Tensor] = {}
        """The rows to measure on, by stream; none if they are drawn."""
        if test_data is not None:
            held_out, others = parted(test_data)
            parts = {"validation": held_out[:VALIDATION_SAMPLES], "test": others[: self.training.test_samples]}
            self.own_rows = {name: torch.from_numpy(part.astype(np.int32)).to(device) for name, part in parts.items()}
        given = given_rows(data, self.configs)
        self.x = torch.empty(len(self.configs), first.training.samples, self.n, dtype=torch.int32, device=device)
        for row, c, own in zip(self.x, self.configs, given, strict=True):
            row.copy_(sampling.training(c, device) if own is None else torch.from_numpy(own))
        self.sums = torch.stack([labels.sums(row) for row in self.x])  # one by one, since each is widened to int64
        self.order = torch.zeros(self.x.shape[:2], dtype=torch.int64, device=device)
        self.dropout_keys = torch.tensor([rng.key(c.seed, "dropout") for c in self.configs], device=device)
        self._compile(device)

    def _compile(self, device: torch.device) -> None:
        """Compile the parts of a step for a GPU; for a CPU they stay as written."""
        self._fast_begin, self._fast_end = compiled(self._begin, device), compiled(self._end, device)
        self._fast_embedded = compiled(self.encoder.embedded, device)
        self._fast_blocks, self._fast_decide = compiled(self.encoder.trunk, device), compiled(decide, device)

    # -- one step ---------------------------------------------------------------------------------------------

    def _batch(self) -> tuple[Tensor, Tensor, Tensor]:
        """This step's samples: their indices (E, B), inputs (E, B, N) and sums (E, B)."""
        E, S, N = self.x.shape
        B = self.training.batch
        place = self.step_number % (S // B) * B + torch.arange(B, device=self.device)
        index = self.order.index_select(1, place)
        flat = (index + S * torch.arange(E, device=self.device)[:, None]).flatten()
        x, total = self.x.view(E * S, N)[flat].view(E, B, N), self.sums.view(-1)[flat].view(E, B)
        return index, *self.objective.shifted(x, total, self.step_number)

    def _features(self, x: Tensor) -> Tensor:
        features = self.objective.features(x)
        return features.to(self.memory.parameters.dtype) if features.is_floating_point() else features

    def _begin(self) -> tuple[Tensor, Tensor, Tensor]:
        index, x, total = self._batch()
        return self._features(x), index, total

    def _embed(self, features: Tensor) -> Tensor:
        """The first residual stream, (E, B·N, D); with `cls` pooling, (E, B·(N + 1), D)."""
        embed, (E, B, N) = self.encoder.embed, features.shape[:3]
        if self._by_hand is not None and isinstance(embed, Linear) and features.shape[-1] <= fused.MOST_FEATURES:
            h = fused.embed(embed, features.view(E, B * N, -1)).view(E, B, N, -1)
            return self.encoder.with_cls(h).flatten(1, 2)
        embedded = self._fast_embedded if torch.is_grad_enabled() else self.encoder.embedded
        return embedded(features).flatten(1, 2)

    def _trunk(self, h: Tensor) -> Tensor:
        rate = self.encoder.model.dropout
        dropout = Dropout(rate, self.dropout_keys, self.step_number) if rate and torch.is_grad_enabled() else None
        if self._by_hand is not None:
            return self._by_hand(h, self.positions, dropout)
        blocks = self._fast_blocks if torch.is_grad_enabled() else self.encoder.trunk
        return blocks(h, self.positions, self.trunk_dtype, dropout)

    def _end(self, h: Tensor, index: Tensor, total: Tensor) -> Tensor:
        outputs = self.encoder.head(self.encoder.pooled(h, self.positions))
        return self.objective.losses(outputs, total, index, self.step_number)

    def step(self) -> None:
        """Make one training step: gather, forward, backward, update, log. A captured step replays all of it."""
        with products(self.precision):
            features, index, total = self._fast_begin()
            losses = self._fast_end(self._trunk(self._embed(features)), index, total)
            # the fused trunk itself writes the gradients of the blocks' parameters where the optimiser reads them
            others = {
                name: p
                for name, p in self.encoder.named_parameters()
                if self._by_hand is None or not name.startswith("blocks.")
            }
            gradients = torch.autograd.grad((losses * self.state.scale).sum(), list(others.values()))
            with torch.no_grad():
                torch._foreach_copy_([self.memory.views[name] for name in others], list(gradients))
                losses = losses.detach()
                scalars = self._fast_decide(self.state, self.memory, losses, self.step_number, self.hyper)
                apply(self.state, self.memory, scalars, self.training.optimiser)
                self.loss_sum.add_(losses)
                self.step_number.add_(1)

    def eager_step(self) -> None:
        """Make a step in plain PyTorch, for when a compiler, a kernel or the capture fails.

        From then on, this ensemble uses no compiled function and no kernel.
        """
        self._compile(torch.device("cpu"))
        self._by_hand, self.memory.one_pass = None, False
        self.step()

    @torch.no_grad()
    def outputs(self, x: Tensor) -> Tensor:
        """The encoder's outputs (E, B, ·) for inputs (E, B, N)."""
        with products(self.precision):
            h = self._trunk(self._embed(self._features(x)))
            out: Tensor = self.encoder.head(self.encoder.pooled(h, self.positions))
        return out

    # -- the whole run ----------------------------------------------------------------------------------------

    def fit(self) -> Iterator[Progress | Finished]:
        """Train from the current step to the end, or until all members are dead; the last event is a `Finished`."""
        at = int(self.step_number)
        per_epoch = self.training.steps_per_epoch
        log_every, eval_every = max(1, self.steps // LOGS), max(1, self.steps // EVALUATIONS)
        self._draw_order(at // per_epoch)
        replay = captured(self.step, self._changing(), self.device, self.eager_step) if at < self.steps else self.step
        logged, alive = at, None in self.dead()
        while at < self.steps and alive:
            if at % per_epoch == 0:
                self._draw_order(at // per_epoch)
            replay()
            at += 1
            if at % log_every == 0 or at == self.steps:
                loss = (self.loss_sum / (at - logged)).tolist()
                self.loss_sum.zero_()
                logged = at
                dead = self.dead()
                measured = at % eval_every < log_every or at == self.steps
                accuracy, near = self._held_out() if measured else (None, None)
                alive = None in dead
                yield Progress(at, self.steps, loss, accuracy, dead, near)
        yield self._finish()

    def _finish(self) -> Finished:
        dead = self.dead()
        scores: list[dict[str, Any]] = [{} for _ in dead]
        if None in dead:
            scores = self.evaluate(self.training.test_samples)
            for e, figures in enumerate(scores):
                if figures.get("missing") == figures["samples"] and dead[e] is None:
                    dead[e] = self.steps - 1  # its loss scale could still be halved, but no answer is finite
            if self.training.asks > 1:
                for figures, often in zip(scores, self._asked(), strict=True):
                    figures |= {"asked": often}
        return Finished([None if d is not None else s for d, s in zip(dead, scores, strict=True)], dead)

    def _asked(self) -> list[dict[str, Any]]:
        """Each member's figures with `asks` answers averaged, on fewer inputs since each costs that many passes."""
        asks, samples = self.training.asks, min(ASKED_SAMPLES, self.training.test_samples)
        rows = self.evaluate(samples, asks=asks)
        return [{"asks": asks, **{name: row[name] for name in ("match", "tau", "samples")}} for row in rows]

    def _draw_order(self, epoch: int) -> None:
        for e, c in enumerate(self.configs):
            self.order[e] = rng.permutation(rng.key(c.seed, "order", epoch), self.order.shape[1], self.device)

    def _held_out(self) -> tuple[list[float], list[float]]:
        rows = self.evaluate(VALIDATION_SAMPLES, stream="validation")
        return [row["match"] for row in rows], [row["tau"][f"{TAUS[0]:g}"] for row in rows]

    def dead(self) -> list[int | None]:
        """The step, from 0, at which each member's loss or gradient stopped being finite; None for live members."""
        return [None if at < 0 else at for at in self.state.dead.tolist()]

    def evaluate(self, samples: int, stream: str = "test", asks: int = 1) -> list[dict[str, Any]]:
        """Each member's figures on drawn inputs of a stream, or on the run's own rows; at most ``samples`` of these."""
        at_once, rows = rows_at_once(self.encoder, self.device), self.own_rows.get(stream)
        options: dict[str, Any] = {"stream": stream} if rows is None else {"rows": rows[:samples]}
        count = samples if rows is None else min(samples, len(rows))
        return evaluate(self.outputs, self.objective, count, at_once=at_once, asks=asks, **options)

    # -- stopping and resuming --------------------------------------------------------------------------------

    def _changing(self) -> list[Tensor]:
        half = [] if self.memory.half is None else [self.memory.half]
        return [*vars(self.state).values(), *half, self.step_number, self.loss_sum]

    def snapshot(self) -> dict[str, Tensor]:
        """Everything needed to resume from an event, by name: the live tensors, so save them before the next step."""
        return {**vars(self.state), "step": self.step_number}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Return to a :meth:`snapshot`."""
        own, saved = (bool(torch.isinf(each).any()) for each in (self.state.streak, snapshot["streak"]))
        kept = {"scale", "streak"} if own != saved else set()  # saved in a precision with other loss scaling
        for name, tensor in self.snapshot().items():
            if name not in kept:
                tensor.copy_(snapshot[name])
        self.memory.refresh()
