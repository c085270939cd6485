"""Train one ensemble, from its runs to their rows: save it on the way, and go on from where it was saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from auxmod.config import DATA, RunConfig
from auxmod.errors import UserError, first_line, require
from auxmod.experiments.claims import Claim
from auxmod.experiments.halving import Race, Rung
from auxmod.experiments.kept import Models
from auxmod.experiments.origin import provenance
from auxmod.experiments.resolving import load_data, load_test_data
from auxmod.experiments.results_file import result_row
from auxmod.experiments.saving import Saver, read
from auxmod.experiments.single import Interrupted, device_name, divergence
from auxmod.files import STEPS
from auxmod.learning.checkpoint import OnTheWay, load_state, save_models
from auxmod.learning.engine import Ensemble, Finished, Progress
from auxmod.learning.memory import check_fits, clean_up
from auxmod.learning.precision import resolve_precision


@dataclass(frozen=True)
class Started:
    """An ensemble starts, or goes on from ``step``."""

    configs: list[RunConfig]
    step: int
    steps: int


@dataclass(frozen=True)
class Ended:
    """An ensemble's rows, one per run, in order."""

    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Notice:
    """Something did not go as planned."""

    sentence: str


@dataclass(frozen=True)
class TooLarge(Notice):
    """An ensemble did not fit into memory: its members are to come again, ``half`` at a time."""

    half: int


class ShortError(UserError):
    """A saved ensemble does not fit into the memory that is free now: it is kept until there is more."""


def train_ensemble(
    configs: Sequence[RunConfig],
    device: torch.device,
    *,
    rungs: Sequence[float] = (),
    near: bool = False,
    state: Path | None = None,
    checkpoint_every: int = 1000,
    models: Models | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Started | Progress | Rung | Ended | Notice]:
    """Train runs of one shape together; the last event has the rows of those that were not pruned.

    ``rungs`` are shares of the steps. After each, the runs that lag leave, by exact answers or by ``near`` ones. The
    ensemble is made anew, smaller, from what the others have learned: the pruned runs cost nothing more, and the
    others learn what they would have learned anyway.

    ``state`` is the file where the ensemble is saved: every ``checkpoint_every`` steps, though for no more than a
    hundredth of the time, and when ``stopping()`` returns true. If the file exists and ``configs`` are the runs left
    in it, training goes on from there.

    Each run's model is kept in ``models``: on the way, and at the end once the caller has taken its row, unless one is
    there already.
    """
    began, steps = time.monotonic(), configs[0].training.steps
    race, ensemble, lost = _restored_or_made(state, configs, device)
    if lost:
        yield Notice(f"A saved ensemble cannot be resumed, so it starts over. {lost}")
    before, saver = race.seconds - began, Saver(state, checkpoint_every, stopping)
    kept, race.models = OnTheWay(models.of, models.every, race.step) if models else None, models is not None
    if kept and _begun_without(kept, race, configs):
        yield Notice(f"Models on their way are kept from step {race.step:,} on: so far it was trained without.")
    if kept:
        kept.start(ensemble)
    yield Started(list(configs), race.step, steps)
    while True:
        riding = ensemble.configs
        race.riding = [c.to_dict() for c in riding]
        for event in ensemble.fit():
            race.see(riding, event)
            race.seconds = before + time.monotonic()
            if isinstance(event, Finished):
                yield Ended(_rows(ensemble, race, configs, event))
                if models:  # one that is there belongs to an earlier row, which stands
                    save_models(ensemble, event.dead, lambda run: None if models.has(run.hash) else models.of(run))
                return
            if kept:
                kept.see(ensemble, event)
            at_rung = race.due(event, rungs, steps)
            stop = not at_rung and saver.stops(ensemble, race, event.step) and event.step < steps
            yield event
            if stop:
                at = f"{event.step:,} of {steps:,} of {len(configs)} cells"
                raise Interrupted(f"Stopped at step {at}; the same command goes on from there.")
            if at_rung:
                yield race.compare(riding, event, near)
                stay = race.staying(riding)
                if 0 < len(stay) < len(riding):
                    break
        part = _part(ensemble, stay)
        del ensemble  # before the next is made, since both might not fit
        ensemble = _made([riding[e] for e in stay], device, part)


def _begun_without(kept: OnTheWay, race: Race, configs: Sequence[RunConfig]) -> bool:
    """Whether models on the way, which are to be kept, were not kept before this ensemble was saved."""
    alive = [config for config in configs if config.hash not in race.dead]
    due = bool(kept.every) and race.step > 0
    return due and not all((kept.place(config) / STEPS).is_dir() for config in alive)


def _restored_or_made(
    state: Path | None, configs: Sequence[RunConfig], device: torch.device
) -> tuple[Race, Ensemble, str]:
    """An ensemble with its account, as saved or else new; and why a saved one could not be restored, or ''."""
    lost = ""
    if state and state.exists():
        try:
            return *_restored(state, configs, device), ""
        except UserError as error:
            lost = str(error)
    return Race.of(configs), _made(configs, device), lost


def _made(configs: Sequence[RunConfig], device: torch.device, snapshot: dict[str, Tensor] | None = None) -> Ensemble:
    """An ensemble at its start, or where a snapshot was taken."""
    clean_up(device)
    ensemble = Ensemble(configs, device, load_data(configs), test_data=load_test_data(configs))
    if snapshot is not None:
        ensemble.restore(snapshot)
    return ensemble


def _part(ensemble: Ensemble, members: list[int]) -> dict[str, Tensor]:
    """A snapshot of some of the members."""
    whole = ensemble.snapshot()
    return {name: tensor[members] if tensor.dim() else tensor.clone() for name, tensor in whole.items()}


def _restored(state: Path, configs: Sequence[RunConfig], device: torch.device) -> tuple[Race, Ensemble]:
    """An ensemble as it was saved, with its account."""
    race = read(state)
    riding = [_found(config, configs) for config in map(RunConfig.from_dict, race.riding)]
    require(race.left == {c.hash for c in configs}, f"{state} belongs to other runs.")
    require(race.left - race.dead.keys() <= {c.hash for c in riding} <= set(race.members), f"{state} is not whole.")
    ensemble = _made(riding, device)
    load_state(state, ensemble)
    return race, ensemble


def _found(saved: RunConfig, configs: Sequence[RunConfig]) -> RunConfig:
    """A run as it was saved, but with the paths where its files of inputs are now."""
    own, now = saved.training, [config.training for config in configs]
    places = {
        path: next((getattr(each, path) for each in now if getattr(each, by) == getattr(own, by)), getattr(own, path))
        for path, by in DATA.items()
    }
    return replace(saved, training=replace(own, **places))


# -- rows -----------------------------------------------------------------------------------------------------


def _rows(ensemble: Ensemble, race: Race, configs: Sequence[RunConfig], end: Finished) -> list[dict[str, Any]]:
    """The rows of the runs that finished, or whose loss stopped being finite; pruned runs have none."""
    device, members = device_name(ensemble.device), len(race.members)
    made = provenance(device=device, precision=ensemble.precision, seconds=race.seconds, members=members)
    scores = dict(zip([c.hash for c in ensemble.configs], end.scores, strict=True))
    curves, rows = dict(zip(race.members, race.curves, strict=True)), []
    for config in (config for config in configs if config.hash in race.left):
        curve, dead = curves[config.hash], race.dead.get(config.hash)
        if dead is not None:
            rows.append(result_row(config, None, made, failed=divergence(dead + 1)))
        else:
            validation = curve[-1]["accuracy"] if curve else None
            rows.append(result_row(config, scores[config.hash], made, validation=validation, curve=curve))
    return rows


def failed_rows(
    configs: Sequence[RunConfig], device: torch.device, reason: str, name: str | None = None
) -> list[dict[str, Any]]:
    """The rows of runs that failed together; ``name`` replaces the device's own name."""
    precision = resolve_precision(configs[0].training.precision, device)
    made = provenance(device=name or device_name(device), precision=precision, seconds=0.0, members=len(configs))
    return [result_row(config, None, made, failed=reason) for config in configs]


# -- what may go wrong ----------------------------------------------------------------------------------------


def attempted(configs: Sequence[RunConfig], device: torch.device, claim: Claim, **options: Any) -> Iterator[Any]:
    """Do :func:`train_ensemble` at a claim; if it fails, yield rows that say why, or :class:`TooLarge`.

    A saved ensemble has fit before: if memory is short now, raise :class:`ShortError`, so that no saved step is lost.
    But an ensemble that goes on from its saved state, and runs short again, is too large for this device.
    """
    reason = _unfit(configs[0], device) if len(configs) == 1 else None
    full, begun, further, ended = reason is not None, claim.state.exists(), False, False
    if reason is None:
        try:
            for event in train_ensemble(configs, device, state=claim.state, **options):
                ended |= isinstance(event, Ended)
                further |= isinstance(event, Progress) or (isinstance(event, Started) and event.step == event.steps)
                yield event
            return claim.forget()
        except torch.AcceleratorError:  # this process has lost the device: nothing after it would work
            raise
        except RuntimeError as error:
            if ended:  # its rows are out already, and stand
                raise
            full, reason = _out_of_memory(error), _reason(error)
    if full and claim.state.exists() and not (begun and further):
        short = f"The ensemble saved in {claim.state} does not fit into the memory that is free now"
        raise ShortError(f"{short}: free some and give the same command again, or delete that file to start it over.")
    if full and len(configs) > 1:
        half = len(configs) // 2
        yield TooLarge(f"{len(configs)} members at once do not fit into the memory: on with {half} at a time.", half)
    else:
        yield Ended(failed_rows(configs, device, reason))
    claim.forget()


def _unfit(config: RunConfig, device: torch.device) -> str | None:
    try:
        check_fits(config, device)
    except UserError as error:
        return str(error)
    return None


_FULL = ("can't allocate memory", "ALLOC_FAILED")  # the second comes from CUDA's libraries


def _out_of_memory(error: RuntimeError) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or any(said in str(error) for said in _FULL)


def _reason(error: RuntimeError) -> str:
    if _out_of_memory(error):
        return "The run does not fit into the memory, even alone: use a smaller --batch or model."
    return f"{type(error).__name__}: {first_line(error)}"
