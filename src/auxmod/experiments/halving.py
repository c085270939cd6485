"""An ensemble whose members that lag are dropped on the way: successive halving (Jamieson and Talwalkar, 2016).

At each rung the better half by held-out accuracy goes on, and whoever trails it by no more than chance would. The
rest leave: the ensemble is made anew, smaller, from what the others have learned, so that what is dropped costs
nothing more. The others learn what they would have learned anyway.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.claims import LOG, STATE
from auxmod.experiments.ensembles import SAVING_SHARE, Ended, Notice, Started, ended_row, made_by
from auxmod.experiments.own_data import load_data
from auxmod.experiments.single import Interrupted, curve_point
from auxmod.experiments.trusted import check_point
from auxmod.files import read_json, sealed, unsealed, write_json
from auxmod.learning.checkpoint import load_state, save_state
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


@dataclass
class Log:
    """What a saved state leaves out."""

    members: list[str]
    curves: list[list[dict[str, Any]]]
    """A list of points a member."""
    riding: list[dict[str, Any]]
    """The configurations of those in the ensemble; whoever is gone may be among them."""
    gone: list[str] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    rung: int = 0
    """The step of the last comparison."""
    seconds: float = 0.0
    step: int = 0

    @property
    def left(self) -> set[str]:
        """The runs that were not pruned."""
        return set(self.members) - set(self.gone)


def train_halving(
    configs: Sequence[RunConfig],
    device: torch.device,
    *,
    rungs: Sequence[float] = RUNGS,
    state: Path | None = None,
    checkpoint_every: int = 1000,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Started | Progress | Rung | Ended | Notice]:
    """Train runs of one shape and length together; the last event has the rows of those that were not pruned.

    ``state`` is where it is saved, as an ensemble of `ensembles.train_ensemble` is. What is there already is gone on
    from, where ``configs`` are the runs left of it.
    """
    began, steps = time.monotonic(), configs[0].training.steps
    log, ensemble = Log([c.hash for c in configs], [[] for _ in configs], []), None
    if state and state.exists():
        try:
            log, ensemble = _restore(state, configs, device)
        except UserError as error:
            yield Notice(f"A saved ensemble cannot be gone on with, and starts over. {error}")
    ensemble = ensemble or _made(configs, device)
    curves, before, due = dict(zip(log.members, log.curves, strict=True)), log.seconds - began, 0.0
    yield Started(list(configs), log.step, steps)
    while True:
        riding = ensemble.configs
        for event in ensemble.fit():
            died = {c.hash: at for c, at in zip(riding, event.dead, strict=True) if at is not None}
            log.dead |= {run: at for run, at in died.items() if run not in log.gone}
            log.seconds = before + time.monotonic()
            if isinstance(event, Finished):
                scores = {c.hash: s for c, s in zip(riding, event.scores, strict=True) if c.hash not in log.gone}
                made = made_by(ensemble, log.seconds, len(log.members))
                ended = [c for c in configs if c.hash in log.dead or c.hash in scores]  # those pruned have no row
                rows = [ended_row(c, scores.get(c.hash), log.dead.get(c.hash), curves[c.hash], made) for c in ended]
                yield Ended(rows)
                return
            if event.accuracy is not None:
                for e, config in enumerate(riding):
                    curves[config.hash].append(curve_point(event, e))
            yield event
            if event.step == steps:
                continue
            if event.accuracy is None or not any(log.rung < share * steps <= event.step for share in rungs):
                now, stop = time.monotonic(), stopping()  # not at a rung: it would be missed
                if state and (stop or (event.step - log.step >= checkpoint_every and now >= due)):
                    _save(state, ensemble, log)
                    due = time.monotonic() + (time.monotonic() - now) / SAVING_SHARE
                if stop:
                    at = f"{event.step:,} of {steps:,}"
                    raise Interrupted(f"Stopped at step {at}; the same command goes on from there.")
                continue
            out = log.dead.keys() | set(log.gone)
            accuracy = {c.hash: a for c, a in zip(riding, event.accuracy, strict=True) if c.hash not in out}
            pruned = behind(accuracy)
            log.gone, log.rung = log.gone + pruned, event.step
            yield Rung(event.step, accuracy, pruned)
            stay = [e for e, config in enumerate(riding) if config.hash in accuracy.keys() - set(pruned)]
            ride = _with_widest(riding, stay)
            if stay and len(ride) < len(riding):
                break
        part = _part(ensemble, ride)
        del ensemble  # before the next is made: they might not both fit
        clean_up(device)
        ensemble = _made([riding[e] for e in ride], device)
        ensemble.restore(part)


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


def _made(configs: Sequence[RunConfig], device: torch.device) -> Ensemble:
    return Ensemble(configs, device, load_data(configs))


# -- stopping and going on ------------------------------------------------------------------------------------


def unfinished(directory: Path) -> Iterator[tuple[Path, Log]]:
    """The states that were saved, and their logs; what is none is passed over."""
    for state in sorted(directory.glob(f"*{STATE}")):
        with contextlib.suppress(UserError):
            yield state, _read(state.with_suffix(LOG))


def _save(state: Path, ensemble: Ensemble, log: Log) -> None:
    log.step, log.riding = int(ensemble.step_number), [c.to_dict() for c in ensemble.configs]
    write_json(state.with_suffix(LOG), sealed(asdict(log)))  # first: points past the state are dropped
    save_state(state, ensemble)


def _read(path: Path) -> Log:
    told = unsealed(read_json(path), path)
    try:
        log = Log(**told)
        log.curves = [[check_point(point, str(path)) for point in curve] for curve in log.curves]
        whole = len(log.curves) == len(log.members) and bool(log.left)
    except TypeError:
        raise UserError(f"{path} is not the log of a search.") from None
    require(whole, f"{path} is not whole.")
    return log


def _restore(state: Path, configs: Sequence[RunConfig], device: torch.device) -> tuple[Log, Ensemble]:
    """An ensemble where it was saved."""
    path = state.with_suffix(LOG)
    log = _read(path)
    riding = [RunConfig.from_dict(plain) for plain in log.riding]
    require(log.left == {c.hash for c in configs}, f"{path} belongs to other runs.")
    require(log.left - log.dead.keys() <= {c.hash for c in riding} <= set(log.members), f"{path} is not whole.")
    ensemble = _made(riding, device)
    load_state(state, ensemble)
    log.step = int(ensemble.step_number)
    log.curves = [[point for point in curve if point["step"] <= log.step] for curve in log.curves]
    return log, ensemble
