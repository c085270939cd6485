"""What a search asks for next, within its plan: trials that dead processes left, then new ones. Used by `search`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.halving import RUNGS
from auxmod.experiments.ranges import TYPES
from auxmod.experiments.resolving import resolved
from auxmod.experiments.space import Interval, Space
from auxmod.experiments.study import AGAIN, ASKED, FAILED, HASH, SETTINGS, finished, spent
from auxmod.files import sha256
from auxmod.settings import flatten

MOST = 1_000_000
"""The largest budget, in runs."""
STARTUP = 10
"""How many trials are drawn at random before the sampler learns from them; fewer if a batch is smaller."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to search, and how."""

    trials: int = 48
    """Trials in the study when it is done."""
    members: int = 24
    """Trials asked for at once."""
    budget: float | None = None
    """The most it may cost, in whole runs: a run that is pruned halfway costs half a run."""
    seed: int = 0
    """The sampler's seed."""
    rungs: Sequence[float] = RUNGS

    def __post_init__(self) -> None:
        require(  # checked first: the number of trials follows from it, if that is not given
            self.budget is None or 1 <= self.budget <= MOST,
            f"--budget is {self.budget}, but must be 1 run or more, and at most {MOST:,}.",
        )
        require(self.trials >= 1, f"--trials is {self.trials}, but a search has at least 1.")
        require(self.members >= 1, f"--members is {self.members}, but a batch has at least 1.")
        require(0 <= self.seed < 2**32, f"--seed-sampler is {self.seed}, but must lie in 0..2^32−1.")
        require(
            all(0 < share < 1 for share in self.rungs),
            "--rungs are shares of the training, between 0 and 1, such as 0.25,0.5.",
        )


Batch = dict[str, tuple[RunConfig, list[Trial]]]
"""Each run by its hash, with the trials that asked for it."""


@dataclass(frozen=True)
class Turn:
    """What to do now."""

    done: list[FrozenTrial]
    batch: Batch
    elsewhere: int
    """Trials that other processes train; 0 as long as more can be asked for here."""
    over: bool
    """Nothing is left to ask for, and no process trains."""
    left: float
    """The most that is still to be trained, in whole runs."""


def take_turn(study: optuna.Study, space: Space, how: Plan, held: set[str]) -> Turn:
    """Ask for as many trials as may train at once; ``held`` are the runs that living processes train."""
    _requeue(study, space, held)
    done = finished(study)
    size = _batch_size(study, done, how)
    batch = _ask(study, space, size, how) if size else {}
    elsewhere, trials = 0 if size else _running(study), float(how.trials - len(done))
    left = trials if how.budget is None else min(trials, how.budget - spent(done))
    return Turn(done, batch, elsewhere, not size and not elsewhere, left)


def _requeue(study: optuna.Study, space: Space, held: set[str]) -> None:
    """Queue the trials of dead processes again, in the order they were first asked for: the sampler depends on it.

    A trial that was asked for completely keeps its number. Any other fails, and a new trial takes its place.
    """

    def lost() -> list[FrozenTrial]:
        trials = study.get_trials(deepcopy=False)
        return [t for t in trials if t.state == TrialState.RUNNING and t.user_attrs.get(HASH) not in held]

    if not lost():
        return
    while any(trial.state == TrialState.WAITING for trial in study.get_trials(deepcopy=False)):
        study.ask()  # trials that were queued before go back as well
    again = {trial.number: trial.user_attrs.get(AGAIN) for trial in study.get_trials(deepcopy=False)}

    def first(number: int) -> int:
        before = again[number]
        return number if before is None else first(before)

    replaced = set(again.values())
    for trial in sorted(lost(), key=lambda trial: first(trial.number)):
        if HASH in trial.user_attrs and trial.number not in replaced:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.WAITING)
            continue
        if trial.number not in replaced:  # before the old one fails: a kill in between loses nothing
            study.enqueue_trial(_chosen(trial, space), user_attrs={AGAIN: trial.number})
        study.tell(trial.number, state=TrialState.FAIL)


def _chosen(trial: FrozenTrial, space: Space) -> dict[str, Any]:
    """The values a trial was to try: those it was queued with, or those drawn for it, if all of them were."""
    queued: dict[str, Any] = trial.system_attrs.get("fixed_params", {})
    return queued or (trial.params if trial.params.keys() == space.searched.keys() else {})


def _running(study: optuna.Study) -> int:
    return sum(trial.state == TrialState.RUNNING for trial in study.get_trials(deepcopy=False))


def _batch_size(study: optuna.Study, done: Sequence[FrozenTrial], how: Plan) -> int:
    """How many trials to ask for: queued ones before new ones, and no more than the budget is sure to cover."""
    trials = study.get_trials(deepcopy=False)
    running = _running(study)
    waiting = sum(trial.state == TrialState.WAITING for trial in trials)
    size = min(how.members, how.trials - len(done) - running)
    if how.budget is not None:
        size = min(size, int(how.budget - spent(done) - running + 1e-9))
    if waiting:  # a batch was cut short, perhaps while it was asked for: only ask for the rest of it
        size = min(size, max(waiting, study.user_attrs.get(ASKED, 0) - len(done) - running))
    return max(0, size)


def _ask(study: optuna.Study, space: Space, size: int, how: Plan) -> Batch:
    """Ask for trials. They depend only on those that are done, so a resumed search asks what it would have asked."""
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    at = len(finished(study)) + states.count(TrialState.RUNNING)
    study.set_user_attr(ASKED, at + size)
    batch: Batch = {}
    for number in range(at, at + size):
        study.sampler = _sampler(how, number)
        trial = study.ask({name: _distribution(name, part) for name, part in space.searched.items()})
        try:
            config = run_of(space, trial.params)
        except UserError as error:  # values that do not go together
            trial.set_user_attr(FAILED, str(error))
            study.tell(trial, state=TrialState.FAIL)
            continue
        trial.set_user_attr(HASH, config.hash)
        trial.set_user_attr(SETTINGS, flatten(config))
        batch.setdefault(config.hash, (config, []))[1].append(trial)
    return batch


def _sampler(how: Plan, number: int) -> optuna.samplers.BaseSampler:
    """A new sampler for each trial: it draws by the trial's place, whichever process asked for those before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=int(sha256(f"{how.seed},{number}".encode())[:8], 16),
            n_startup_trials=min(STARTUP, how.members),
            constant_liar=True,  # keeps the trials of a batch apart
        )


def run_of(space: Space, chosen: Mapping[str, Any]) -> RunConfig:
    return resolved(space.settings(chosen), space.preset)


def _distribution(name: str, part: Interval | list[Any]) -> BaseDistribution:
    if not isinstance(part, Interval):
        return CategoricalDistribution(part)
    if TYPES[name] is int:
        return IntDistribution(int(part.low), int(part.high), log=part.log, step=int(part.step or 1))
    return FloatDistribution(part.low, part.high, log=part.log, step=part.step)
