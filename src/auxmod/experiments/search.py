"""Optuna over any settings: a batch of trials is asked for at once, trained in ensembles of a shape, and told.

What is sought is held-out accuracy; the test inputs are only looked at afterwards. The study lives in any database
that Optuna knows, by URL. A search that was stopped or killed goes on: trials that nobody trains any more are queued
again, and an ensemble that was saved beside the results file goes on from there. Whole trials are rows of that file
too, and a run that has its row there already is not trained again. Processes that share a study must share that file:
claims beside it say who lives.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, Trial, TrialState

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments import claims
from auxmod.experiments.ensembles import Ended, Notice, TooLarge, attempted, train_ensemble
from auxmod.experiments.halving import RUNGS, Race, Rung, configs_of
from auxmod.experiments.own_data import resolved
from auxmod.experiments.packing import Shape, check_precisions, group_of, plan
from auxmod.experiments.ranges import TYPES
from auxmod.experiments.saving import unfinished
from auxmod.experiments.single import Interrupted
from auxmod.experiments.space import Interval, Space
from auxmod.experiments.store import Results, locked
from auxmod.experiments.study import AGAIN, ASKED, COST, FAILED, HASH, MATCH, SETTINGS, finished, hidden, spent
from auxmod.experiments.sweep import POLL_SECONDS, Event, Standing
from auxmod.files import sha256
from auxmod.learning.cost import work
from auxmod.learning.memory import clean_up
from auxmod.settings import flatten

MOST = 1_000_000
OUTCOMES = {"validation", "failed"}
"""A row that has one of these says how a run ended."""
STARTUP = 10
"""So many trials are drawn at random before the sampler learns from them: fewer where a batch is smaller."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much to search, and how."""

    trials: int = 48
    """Trials in the study when it is done."""
    members: int = 24
    """Trials asked for at once."""
    budget: float | None = None
    """The most it may cost, in whole runs: a run that is pruned halfway costs half of one."""
    seed: int = 0
    """Of the sampler."""
    rungs: Sequence[float] = RUNGS

    def __post_init__(self) -> None:
        require(  # first: from it follows how many trials there are, where that is not said
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


def run_search(
    study: optuna.Study,
    space: Space,
    results: Path,
    device: torch.device,
    how: Plan,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Ask, train and tell until the study has its trials or the budget is spent; a study that was stopped goes on.

    When ``stopping()`` says so, what is in training is saved and :class:`Interrupted` raised.
    """
    most = max(map(work, examples(space, device)))
    book, directory = Results(results), claims.directory_of(results)
    known = {row["hash"]: row for row in book.refresh()}
    limits: dict[Shape, int] = {}
    while True:
        with locked(results):
            held = claims.held(directory)
            _requeue(study, space, held)
            done = finished(study)
            size = _batch_size(study, done, how)
            batch = _ask(study, space, size, how) if size else {}
            saved = [(state, log) for state, log in unfinished(directory) if not log.left & held]
            claim = claims.take(directory, list(batch)) if batch else None
            elsewhere = 0 if batch else _running(study)
            if not size and not elsewhere:
                claims.tidy(directory, {trial.user_attrs.get(HASH, "") for trial in done})
        try:
            failed = sum(FAILED in trial.user_attrs for trial in done)
            yield Standing(how.trials, len(done) - failed, failed, elsewhere, most * _left(done, how))
            if not size and not elsewhere:
                return
            if stopping():
                raise Interrupted(f"Stopped with {len(done)} trials done; the same command goes on from there.")
            if not size:  # another process trains the rest; should it end, they are asked for here
                time.sleep(POLL_SECONDS)
                continue
            known |= {row["hash"]: row for row in book.refresh()}
            fresh = [config for run, (config, _) in batch.items() if not known.get(run, {}).keys() & OUTCOMES]
            _tell_rows(study, batch, [known[run] for run in batch.keys() - {c.hash for c in fresh}], cost=0.0)
            while fresh and claim:
                members, own = _saved(study, saved, fresh, claim) or (plan(fresh, device, limits=limits)[0], claim)
                ended = {config.hash for config in members}
                for event in _train(study, batch, members, own, results, device, how.rungs, stopping):
                    if isinstance(event, TooLarge):
                        limits[group_of(members[0])] = event.half
                        ended -= batch.keys()  # but for those that were pruned, they come again
                    yield event
                fresh = [config for config in fresh if config.hash not in ended]
                clean_up(device)
        finally:
            if claim:
                claim.release()


def examples(space: Space, device: torch.device) -> list[RunConfig]:
    """Some runs of the space, with every listed value and both ends of every range: they can be made, or a sentence."""
    configs = [_run(space, edge) for edge in space.edges()]
    check_precisions(configs, device)
    return configs


# -- asking ---------------------------------------------------------------------------------------------------

Batch = dict[str, tuple[RunConfig, list[Trial]]]
"""Each run by its hash, and the trials that asked for it."""


def _requeue(study: optuna.Study, space: Space, held: set[str]) -> None:
    """Queue again what a process began that is no more, in the order it was first asked for: the sampler minds it.

    What was wholly asked for keeps its number; what was not is drawn anew under another, the old one failed.
    """

    def lost() -> list[FrozenTrial]:
        trials = study.get_trials(deepcopy=False)
        return [t for t in trials if t.state == TrialState.RUNNING and t.user_attrs.get(HASH) not in held]

    if not lost():
        return
    while any(trial.state == TrialState.WAITING for trial in study.get_trials(deepcopy=False)):
        study.ask()  # what was queued before goes back as well
    again = {trial.number: trial.user_attrs.get(AGAIN) for trial in study.get_trials(deepcopy=False)}

    def first(number: int) -> int:
        before = again[number]
        return number if before is None else first(before)

    replaced = set(again.values())
    for trial in sorted(lost(), key=lambda trial: first(trial.number)):
        if HASH in trial.user_attrs and trial.number not in replaced:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.WAITING)
            continue
        if trial.number not in replaced:  # first: killed in between, it is not lost
            study.enqueue_trial(_chosen(trial, space), user_attrs={AGAIN: trial.number})
        study.tell(trial.number, state=TrialState.FAIL)


def _chosen(trial: FrozenTrial, space: Space) -> dict[str, Any]:
    """What a trial was to try: what it was queued with, or what was drawn for it, once that was all drawn."""
    queued: dict[str, Any] = trial.system_attrs.get("fixed_params", {})
    return queued or (trial.params if trial.params.keys() == space.searched.keys() else {})


def _running(study: optuna.Study) -> int:
    return sum(trial.state == TrialState.RUNNING for trial in study.get_trials(deepcopy=False))


def _left(done: Sequence[FrozenTrial], how: Plan) -> float:
    """The most that is still to be trained, in whole runs."""
    trials = float(how.trials - len(done))
    return trials if how.budget is None else min(trials, how.budget - spent(done))


def _batch_size(study: optuna.Study, done: Sequence[FrozenTrial], how: Plan) -> int:
    """How many trials to ask for: what is queued before anything new, and no more than the budget surely pays."""
    trials = study.get_trials(deepcopy=False)
    running = _running(study)
    waiting = sum(trial.state == TrialState.WAITING for trial in trials)
    size = min(how.members, how.trials - len(done) - running)
    if how.budget is not None:
        size = min(size, int(how.budget - spent(done) - running + 1e-9))
    if waiting:  # a batch that was cut short, perhaps while it was asked for: the rest of it, and no more
        size = min(size, max(waiting, study.user_attrs.get(ASKED, 0) - len(done) - running))
    return max(0, size)


def _ask(study: optuna.Study, space: Space, size: int, how: Plan) -> Batch:
    """New trials, as a function of those that are done: a search that goes on asks what it would have asked."""
    states = [trial.state for trial in study.get_trials(deepcopy=False)]
    at = len(finished(study)) + states.count(TrialState.RUNNING)
    study.set_user_attr(ASKED, at + size)
    batch: Batch = {}
    for number in range(at, at + size):
        study.sampler = _sampler(how, number)
        trial = study.ask({name: _distribution(name, part) for name, part in space.searched.items()})
        try:
            config = _run(space, trial.params)
        except UserError as error:  # values that do not go together
            trial.set_user_attr(FAILED, str(error))
            study.tell(trial, state=TrialState.FAIL)
            continue
        trial.set_user_attr(HASH, config.hash)
        trial.set_user_attr(SETTINGS, flatten(config))
        batch.setdefault(config.hash, (config, []))[1].append(trial)
    return batch


def _sampler(how: Plan, number: int) -> optuna.samplers.BaseSampler:
    """Anew for each trial: what it draws follows from the trial's place, not from who asked for those before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return optuna.samplers.TPESampler(
            seed=int(sha256(f"{how.seed},{number}".encode())[:8], 16),
            n_startup_trials=min(STARTUP, how.members),
            constant_liar=True,  # trials of a batch keep apart
        )


def _run(space: Space, chosen: Mapping[str, Any]) -> RunConfig:
    return resolved(space.settings(chosen), space.preset)


def _distribution(name: str, part: Interval | list[Any]) -> BaseDistribution:
    if not isinstance(part, Interval):
        return CategoricalDistribution(part)
    if TYPES[name] is int:
        return IntDistribution(int(part.low), int(part.high), log=part.log, step=int(part.step or 1))
    return FloatDistribution(part.low, part.high, log=part.log, step=part.step)


# -- training and telling -------------------------------------------------------------------------------------


def _saved(
    study: optuna.Study, saved: list[tuple[Path, Race]], fresh: Sequence[RunConfig], claim: claims.Claim
) -> tuple[list[RunConfig], claims.Claim] | None:
    """A saved ensemble that the runs go on with, if any: those left in it, and the claim with its place.

    Some of those left may have been pruned since it was saved. They come to that again, and nobody heeds them.
    """
    pruned = {t.user_attrs.get(HASH) for t in study.get_trials(deepcopy=False, states=(TrialState.PRUNED,))}
    for state, log in saved:
        members = [config for config in fresh if config.hash in log.left]
        others = log.left - {config.hash for config in members}
        if members and others <= pruned:
            saved.remove((state, log))
            members += [config for config in configs_of(log.riding) if config.hash in others]
            return members, replace(claim, place=state.with_suffix(""))
    return None


def _train(
    study: optuna.Study,
    batch: Batch,
    members: Sequence[RunConfig],
    claim: claims.Claim,
    results: Path,
    device: torch.device,
    rungs: Sequence[float],
    stopping: Callable[[], bool],
) -> Iterator[Event]:
    steps = members[0].training.steps
    options: dict[str, Any] = {"rungs": rungs, "state": claim.state, "stopping": stopping}
    for event in attempted(members, device, lambda: train_ensemble(members, device, **options)):
        if isinstance(event, Rung):
            for run, accuracy in event.accuracy.items():
                for trial in batch[run][1] if run in batch else ():
                    _report(trial, accuracy, event.step)
            for run in batch.keys() & set(event.pruned):
                _end(study, batch.pop(run)[1], None, TrialState.PRUNED, {COST: event.step / steps})
            gone = f"{len(event.pruned)} of {len(event.accuracy)} members lag and are pruned"
            yield Notice(f"Step {event.step:,} of {steps:,}: {gone}.")
            continue
        if isinstance(event, Ended):
            rows = [_discreet(row) for row in event.rows if row["hash"] in batch]  # a failure's are of pruned ones too
            Results(results).append(rows)
            _tell_rows(study, batch, rows, cost=1.0)
        if isinstance(event, Ended | TooLarge):
            claim.forget()
        yield event


def _report(trial: Trial, accuracy: float, step: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one that had to begin again may have said so before
        trial.report(accuracy, step)


def _discreet(row: dict[str, Any]) -> dict[str, Any]:
    made = row["provenance"]
    return row | {"provenance": made | {"command": hidden(made["command"])}}


def _tell_rows(study: optuna.Study, batch: Batch, rows: Sequence[Mapping[str, Any]], cost: float) -> None:
    """What results say; a run that came to nothing has an accuracy of 0, for the sampler to learn from."""
    for row in rows:
        scored = "scores" in row
        facts = {MATCH: row["scores"]["match"]} if scored else {FAILED: row["failed"]}
        value = row["validation"] if scored else 0.0
        _end(study, batch[row["hash"]][1], value, TrialState.COMPLETE, {COST: cost} | facts)


def _end(
    study: optuna.Study, trials: Sequence[Trial], value: float | None, state: TrialState, facts: Mapping[str, Any]
) -> None:
    """End the trials of one run, which the first of them pays for."""
    for number, trial in enumerate(trials):
        for name, fact in (dict(facts) | ({COST: 0.0} if number else {})).items():
            trial.set_user_attr(name, fact)
        study.tell(trial, value, state=state)
