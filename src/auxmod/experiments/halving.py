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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.claims import LOG, STATE
from auxmod.experiments.ensembles import Ended, Notice, Started, ended_row, made_by
from auxmod.experiments.own_data import load_data
from auxmod.experiments.saving import Log, Saver, read_log, restore
from auxmod.experiments.single import Interrupted, curve_point
from auxmod.learning.checkpoint import runs_of
from auxmod.learning.cost import widths
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
class Race(Log):
    """An ensemble's account, saved beside its state: who rides, who was pruned, who died, and how all have done."""

    riding: list[dict[str, Any]] = field(default_factory=list)
    """The configurations of those in the ensemble; whoever is gone may be among them."""
    gone: list[str] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    rung: int = 0
    """The step of the last comparison."""
    earlier: dict[str, Any] = field(default_factory=dict)
    """The same four as the state was saved before: a kill may leave that one beside this account."""

    def saved(self) -> None:
        self.earlier = {"riding": self.riding, "gone": self.gone, "dead": dict(self.dead), "rung": self.rung}

    @property
    def left(self) -> set[str]:
        """The runs that were not pruned."""
        return set(self.members) - set(self.gone)

    def see(self, riding: Sequence[RunConfig], event: Progress | Finished) -> None:
        """Note who died, and where the others stand."""
        died = {c.hash: at for c, at in zip(riding, event.dead, strict=True) if at is not None}
        self.dead |= {run: at for run, at in died.items() if run not in self.gone}
        if isinstance(event, Progress) and event.accuracy is not None:
            for e, config in enumerate(riding):
                self.curves[self.members.index(config.hash)].append(curve_point(event, e))

    def compare(self, riding: Sequence[RunConfig], event: Progress) -> Rung:
        """Prune whoever lags."""
        accuracies, out = event.accuracy or [], self.dead.keys() | set(self.gone)
        accuracy = {c.hash: a for c, a in zip(riding, accuracies, strict=True) if c.hash not in out}
        rung = Rung(event.step, accuracy, behind(accuracy))
        self.gone, self.rung = self.gone + rung.pruned, event.step
        return rung

    def staying(self, riding: Sequence[RunConfig]) -> list[int]:
        """Which members ride on.

        An ensemble is as wide as the widest of its members: whoever is stays, unheeded, so that no weight changes its
        place. One may have the most tokens, and another the most classes.
        """
        stay = [e for e, config in enumerate(riding) if config.hash in self.left - self.dead.keys()]
        for sizes in zip(*map(widths, riding), strict=True):
            if stay and max(sizes[e] for e in stay) < max(sizes):
                stay = sorted([*stay, sizes.index(max(sizes))])
        return stay

    def rows(
        self, configs: Sequence[RunConfig], riding: Sequence[RunConfig], end: Finished, made: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """The rows of the runs that came to an end; those pruned have none."""
        scores = dict(zip([c.hash for c in riding], end.scores, strict=True))
        curves = dict(zip(self.members, self.curves, strict=True))
        left = [c for c in configs if c.hash in self.left]
        return [ended_row(c, scores.get(c.hash), self.dead.get(c.hash), curves[c.hash], made) for c in left]


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
    race, ensemble = Race([c.hash for c in configs], [[] for _ in configs]), None
    if state and state.exists():
        try:
            race, ensemble = _restore(state, configs, device)
        except UserError as error:
            yield Notice(f"A saved ensemble cannot be gone on with, and starts over. {error}")
    ensemble = ensemble or _made(configs, device)
    before, saver = race.seconds - began, Saver(state, checkpoint_every, stopping)
    yield Started(list(configs), race.step, steps)
    while True:
        riding = ensemble.configs
        race.riding = [c.to_dict() for c in riding]
        for event in ensemble.fit():
            race.see(riding, event)
            race.seconds = before + time.monotonic()
            if isinstance(event, Finished):
                yield Ended(race.rows(configs, riding, event, made_by(ensemble, race.seconds, len(race.members))))
                return
            yield event
            if event.accuracy is not None and any(race.rung < share * steps <= event.step < steps for share in rungs):
                yield race.compare(riding, event)
                stay = race.staying(riding)
                if 0 < len(stay) < len(riding):
                    break
            elif event.step < steps and saver.stops(ensemble, race, event.step):  # not at a rung: it would be missed
                at = f"{event.step:,} of {steps:,}"
                raise Interrupted(f"Stopped at step {at}; the same command goes on from there.")
        part = _part(ensemble, stay)
        del ensemble  # before the next is made: they might not both fit
        clean_up(device)
        ensemble = _made([riding[e] for e in stay], device)
        ensemble.restore(part)


def behind(accuracy: Mapping[str, float]) -> list[str]:
    """The runs below the better half, by more than noise."""
    if not accuracy:
        return []
    last = sorted(accuracy.values(), reverse=True)[math.ceil(len(accuracy) / 2) - 1]
    return [run for run, share in accuracy.items() if share < last - NOISE]


def _part(ensemble: Ensemble, members: list[int]) -> dict[str, Tensor]:
    """A snapshot of some of the members."""
    whole = ensemble.snapshot()
    return {name: tensor[members].clone() if tensor.dim() else tensor.clone() for name, tensor in whole.items()}


def _made(configs: Sequence[RunConfig], device: torch.device) -> Ensemble:
    return Ensemble(configs, device, load_data(configs))


# -- stopping and going on ------------------------------------------------------------------------------------


def unfinished(directory: Path) -> Iterator[tuple[Path, Race]]:
    """The states that were saved, and their logs; what is none is passed over."""
    for state in sorted(directory.glob(f"*{STATE}")):
        with contextlib.suppress(UserError):
            yield state, _read(state)


def _read(state: Path) -> Race:
    """The account that a state has beside it, as it was when that was saved."""
    path = state.with_suffix(LOG)
    race = read_log(path, Race, "a search")
    if race.earlier and runs_of(state) != [c.hash for c in configs_of(race.riding)]:
        race = replace(race, **race.earlier)
    require(bool(race.left), f"{path} is not whole.")
    return race


def configs_of(riding: Sequence[Mapping[str, Any]]) -> list[RunConfig]:
    return [RunConfig.from_dict(plain) for plain in riding]


def _restore(state: Path, configs: Sequence[RunConfig], device: torch.device) -> tuple[Race, Ensemble]:
    """An ensemble where it was saved."""
    path = state.with_suffix(LOG)
    race = _read(state)
    riding = configs_of(race.riding)
    require(race.left == {c.hash for c in configs}, f"{path} belongs to other runs.")
    require(race.left - race.dead.keys() <= {c.hash for c in riding} <= set(race.members), f"{path} is not whole.")
    ensemble = _made(riding, device)
    restore(state, ensemble, race)
    return race, ensemble
