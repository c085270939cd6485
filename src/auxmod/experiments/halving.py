"""An ensemble whose members that lag are dropped on the way: successive halving (Jamieson and Talwalkar, 2016).

At each rung the better half by held-out accuracy goes on, and whoever trails it by no more than chance would. The
rest leave: the ensemble is made anew, smaller, from what the others have learned, so that what is dropped costs
nothing more. The others learn what they would have learned anyway.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.experiments.ensembles import Ended, Started, ended_row, made_by
from auxmod.experiments.own_data import load_data
from auxmod.experiments.single import Interrupted, curve_point
from auxmod.learning.engine import VALIDATION_SAMPLES, Ensemble, Finished, Progress
from auxmod.learning.memory import clean_up

RUNGS = (0.25, 0.5)
"""After which shares of the steps members are compared: at the next measurement."""
NOISE = round(2 * math.sqrt(2 * 0.25 / VALIDATION_SAMPLES), 2)
"""Differences in held-out accuracy that mean nothing: two standard errors on the inputs used, 0.03."""


@dataclass(frozen=True)
class Rung:
    """A comparison: the accuracies of the runs in training, by hash, and which of them leave."""

    step: int
    accuracy: dict[str, float]
    pruned: list[str]


def train_halving(
    configs: Sequence[RunConfig],
    device: torch.device,
    *,
    rungs: Sequence[float] = RUNGS,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Started | Progress | Rung | Ended]:
    """Train runs of one shape and length together; the last event has the rows of those that were not pruned."""
    began, steps = time.monotonic(), configs[0].training.steps
    data = dict(zip(configs, load_data(configs), strict=True))
    curves: dict[str, list[dict[str, Any]]] = {c.hash: [] for c in configs}
    dead: dict[str, int] = {}
    gone: set[str] = set()
    due, riding, saved = sorted(rungs), list(configs), None
    yield Started(list(configs), 0, steps)
    while True:
        ensemble = Ensemble(riding, device, [data[c] for c in riding])
        if saved is not None:
            ensemble.restore(saved)
        for event in ensemble.fit():
            died = {c.hash: at for c, at in zip(riding, event.dead, strict=True) if at is not None}
            dead |= {run: at for run, at in died.items() if run not in gone}
            if isinstance(event, Finished):
                scores = {c.hash: s for c, s in zip(riding, event.scores, strict=True) if c.hash not in gone}
                made = made_by(ensemble, time.monotonic() - began, len(configs))
                ended = [c for c in configs if c.hash in dead or c.hash in scores]  # those pruned have no row
                yield Ended([ended_row(c, scores.get(c.hash), dead.get(c.hash), curves[c.hash], made) for c in ended])
                return
            if event.accuracy is not None:
                for e, config in enumerate(riding):
                    curves[config.hash].append(curve_point(event, e))
            yield event
            if stopping() and event.step < steps:
                raise Interrupted(f"Stopped at step {event.step:,} of {steps:,}; the same command goes on from there.")
            if event.accuracy is None or not due or not due[0] * steps <= event.step < steps:
                continue
            due = [share for share in due if share * steps > event.step]
            out = dead.keys() | gone
            accuracy = {c.hash: a for c, a in zip(riding, event.accuracy, strict=True) if c.hash not in out}
            pruned = behind(accuracy)
            gone.update(pruned)
            yield Rung(event.step, accuracy, pruned)
            stay = [e for e, config in enumerate(riding) if config.hash in accuracy.keys() - gone]
            ride = _with_widest(riding, stay)
            if stay and len(ride) < len(riding):
                saved, riding = _part(ensemble, ride), [riding[e] for e in ride]
                break
        del ensemble  # before the next is made: they might not both fit
        clean_up(device)


def behind(accuracy: Mapping[str, float]) -> list[str]:
    """The runs below the better half, by more than noise."""
    if not accuracy:
        return []
    last = sorted(accuracy.values(), reverse=True)[math.ceil(len(accuracy) / 2) - 1]
    return [run for run, share in accuracy.items() if share < last - NOISE]


def _with_widest(riding: Sequence[RunConfig], stay: list[int]) -> list[int]:
    """Token heads are padded to the largest K·q: whoever has it rides on, unheeded, and no weight changes its place."""

    def classes(e: int) -> int:
        return max(riding[e].method.moduli) * riding[e].problem.q

    if not stay or riding[0].model.angles:
        return stay
    widest = max(range(len(riding)), key=classes)
    return stay if max(map(classes, stay)) == classes(widest) else sorted([*stay, widest])


def _part(ensemble: Ensemble, members: list[int]) -> dict[str, Tensor]:
    """A snapshot of some of the members."""
    whole = ensemble.snapshot()
    return {name: tensor[members].clone() if tensor.dim() else tensor.clone() for name, tensor in whole.items()}
