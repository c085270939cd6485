"""Search any settings with Optuna: ask for a batch of trials, train them in ensembles of one shape, tell the results.

A search maximises held-out accuracy; the test inputs are only used afterwards. The study is kept in any database that
Optuna supports, given by URL. A search that was stopped or killed can go on: trials that no process trains any more
are queued again, and an ensemble that was saved beside the results file goes on from there. Completed trials are also
rows of that file, and a run that has a row there is not trained again. Processes that share a study must share that
file: the claims beside it show which of them are alive.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import torch
from optuna.trial import Trial, TrialState

from auxmod.config import RunConfig
from auxmod.experiments import claims
from auxmod.experiments.asking import Batch, Plan, run_of, take_turn
from auxmod.experiments.choosing import sought, tested_near
from auxmod.experiments.ensembles import Ended, Notice, TooLarge, attempted
from auxmod.experiments.halving import Race, Rung
from auxmod.experiments.packing import Shape, check_precisions, plan
from auxmod.experiments.results_file import Results, learn, locked
from auxmod.experiments.saving import accounts
from auxmod.experiments.single import Interrupted
from auxmod.experiments.space import Space
from auxmod.experiments.study import COST, FAILED, HASH, MATCH, NEAR
from auxmod.experiments.sweep import POLL_SECONDS, Event, Standing
from auxmod.learning.cost import work
from auxmod.learning.engine import shape_of
from auxmod.learning.memory import clean_up


def run_search(
    study: optuna.Study,
    space: Space,
    results: Path,
    device: torch.device,
    how: Plan,
    *,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Event]:
    """Ask, train and tell until the study has its trials or the budget is spent; a stopped study goes on.

    When ``stopping()`` returns true, the ensemble in training is saved and :class:`Interrupted` raised.
    """
    most = max(map(work, examples(space, device)))
    book, directory = Results(results), claims.directory_of(results)
    known: dict[str, dict[str, Any]] = {}
    limits: dict[Shape, int] = {}
    near = space.by == "near"
    while True:
        with locked(results):
            held = claims.held(directory)
            turn = take_turn(study, space, how, held)
            done, batch = turn.done, turn.batch
            saved = [(state, race) for state, race in accounts(directory) if not race.left & held]
            if batch:  # for those who watch; pruned trials have no row, and would seem to wait for ever
                pruned = _pruned(study)
                claims.announce(directory, {run: config.to_dict() for run, (config, _) in batch.items()}, pruned)
            claim = claims.take(directory, list(batch)) if batch else None
            if turn.over:
                claims.tidy(directory, {trial.user_attrs.get(HASH, "") for trial in done})
        try:
            failed = sum(FAILED in trial.user_attrs for trial in done)
            yield Standing(how.trials, len(done) - failed, failed, turn.elsewhere, most * turn.left)
            if turn.over:
                return
            if stopping():
                raise Interrupted(f"Stopped with {len(done)} trials done; the same command goes on from there.")
            if turn.elsewhere:  # if that process dies, its trials are asked for here
                time.sleep(POLL_SECONDS)
                continue
            learn(known, book.refresh())
            fresh = [config for run, (config, _) in batch.items() if not _tells(known.get(run, {}), near)]
            _tell_rows(study, batch, [known[run] for run in batch.keys() - {c.hash for c in fresh}], near)
            while fresh and claim:
                members, own = _saved(study, saved, fresh, claim) or (plan(fresh, device, limits=limits)[0], claim)
                ended = {config.hash for config in members}
                options: dict[str, Any] = {"rungs": how.rungs, "near": near, "stopping": stopping}
                for event in _train(study, batch, members, own, results, device, options):
                    if isinstance(event, TooLarge):
                        limits[shape_of(members[0])] = event.half
                        ended -= batch.keys()  # all but the pruned ones come again
                    yield event
                fresh = [config for config in fresh if config.hash not in ended]
                clean_up(device)
        finally:
            if claim:
                claim.release()


def examples(space: Space, device: torch.device) -> list[RunConfig]:
    """Make runs with every listed value and both ends of every range; raise :class:`UserError` if one is invalid."""
    configs = [run_of(space, edge) for edge in space.edges()]
    check_precisions(configs, device)
    return configs


# -- training and telling -------------------------------------------------------------------------------------


def _saved(
    study: optuna.Study, saved: list[tuple[Path, Race]], fresh: Sequence[RunConfig], claim: claims.Claim
) -> tuple[list[RunConfig], claims.Claim] | None:
    """A saved ensemble from which some of the runs can go on, or None: its remaining runs, and the claim at its place.

    Some of these runs may have been pruned since it was saved. They train until they are pruned again, and their
    results are ignored.
    """
    pruned = _pruned(study)
    for state, race in saved:
        members = [config for config in fresh if config.hash in race.left]
        others = race.left - {config.hash for config in members}
        if members and others <= pruned:
            saved.remove((state, race))
            members += [config for config in map(RunConfig.from_dict, race.riding) if config.hash in others]
            return members, replace(claim, place=state.with_suffix(""))
    return None


def _pruned(study: optuna.Study) -> set[str]:
    """The runs of pruned trials."""
    return {t.user_attrs.get(HASH, "") for t in study.get_trials(deepcopy=False, states=(TrialState.PRUNED,))}


def _train(
    study: optuna.Study,
    batch: Batch,
    members: Sequence[RunConfig],
    claim: claims.Claim,
    results: Path,
    device: torch.device,
    options: Mapping[str, Any],
) -> Iterator[Event]:
    """Train a claimed ensemble, with options of `train_ensemble`, and tell the study the results."""
    steps = members[0].training.steps

    for event in attempted(members, device, claim, **options):
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
            rows = [row for row in event.rows if row["hash"] in batch]  # a failure lists pruned runs too
            for row in rows:  # before the rows: if killed in between, their cost is on record
                batch[row["hash"]][1][0].set_user_attr(COST, 1.0)
            Results(results).append(rows)  # not by the search's own book, which reads them as new later
            _tell_rows(study, batch, rows, options["near"])
        yield event


def _report(trial: Trial, accuracy: float, step: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trial that started over may have reported this step before
        trial.report(accuracy, step)


def _tells(row: Mapping[str, Any], near: bool) -> bool:
    """Whether a row has the outcome a search needs; one of an earlier version may lack it."""
    return "failed" in row or sought(row, near) is not None


def _tell_rows(study: optuna.Study, batch: Batch, rows: Sequence[Mapping[str, Any]], near: bool) -> None:
    """Tell the study the results in rows; a failed run gets an accuracy of 0, for the sampler to learn from."""
    for row in rows:
        done = "failed" not in row
        facts = {MATCH: row["scores"]["match"], NEAR: tested_near(row)} if done else {FAILED: row["failed"]}
        value = 0.0 if "failed" in row else sought(row, near)
        _end(study, batch[row["hash"]][1], value, TrialState.COMPLETE, facts)


def _end(
    study: optuna.Study, trials: Sequence[Trial], value: float | None, state: TrialState, facts: Mapping[str, Any]
) -> None:
    """End the trials of one run: the first has the run's cost, the others 0; a run trained before costs 0."""
    for number, trial in enumerate(trials):
        cost = 0.0 if number else facts.get(COST, trial.user_attrs.get(COST, 0.0))
        for name, fact in (dict(facts) | {COST: cost}).items():
            trial.set_user_attr(name, fact)
        study.tell(trial, value, state=state)
