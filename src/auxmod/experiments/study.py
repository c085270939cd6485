"""An Optuna study: open its database, read its trials, and summarise them. Knows nothing of training."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.trial import FrozenTrial
from sqlalchemy.exc import SQLAlchemyError

from auxmod.errors import UserError, first_line, require
from auxmod.experiments.origin import hidden
from auxmod.experiments.space import Space

FEW = 8
"""With fewer complete trials than this, no importances of settings are given."""
SPACE, ASKED = "space", "asked"
"""Attributes of a study: the space it searches, and how many trials it has once the last batch is asked for."""
HASH, SETTINGS, COST, FAILED, AGAIN = "hash", "settings", "cost", "failed", "again"
"""Attributes of a trial: its run's hash, and all its settings; its cost in whole runs; why it failed; and the number of
the trial that it replaces."""
MATCH, NEAR = "match", "near"
"""Two more: the shares of test inputs that its run answers exactly, and nearly."""


@contextlib.contextmanager
def opened(url: str, name: str, space: Space) -> Iterator[optuna.Study]:
    """Open the study of this name, or make it; refuse one that has trials of another space."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        if url.startswith("sqlite:///"):
            Path(url.removeprefix("sqlite:///").partition("?")[0]).parent.mkdir(parents=True, exist_ok=True)
        storage = optuna.storages.RDBStorage(url)
    except Exception as error:  # anything that a database, its driver or the network may raise
        where = f"--storage {hidden(url)} cannot be opened ({_said(error)})"
        raise UserError(f"{where}: name a database that can, such as sqlite:///elsewhere/search.db.") from None
    try:
        study = optuna.create_study(storage=storage, study_name=name, direction="maximize", load_if_exists=True)
        if not study.get_trials(deepcopy=False):
            study.set_user_attr(SPACE, space.describe())
        same = study.user_attrs.get(SPACE) == space.describe()
        require(same, f"The study {name} searches other settings or ranges: name another --study.")
        yield study
    except (SQLAlchemyError, optuna.exceptions.OptunaError, json.JSONDecodeError) as error:
        remedy = "mend or restore it, or name another --storage; finished runs are in the --results file"
        where = f"The study's database {hidden(url)} failed ({_said(error.__cause__ or error)})"
        raise RuntimeError(f"{where}: {remedy}.") from None
    finally:
        storage.remove_session()
        storage.engine.dispose()


def _said(error: BaseException) -> str:
    return hidden(first_line(error, type(error).__name__))


def finished(study: optuna.Study) -> list[FrozenTrial]:
    """The trials that ended, except those that another trial replaced."""
    trials = study.get_trials(deepcopy=False)
    replaced = {trial.user_attrs.get(AGAIN) for trial in trials}
    return [trial for trial in trials if trial.state.is_finished() and trial.number not in replaced]


def spent(trials: Sequence[FrozenTrial]) -> float:
    """The cost of trials, in whole runs."""
    return sum(float(trial.user_attrs.get(COST, 0)) for trial in trials)


# -- what came out --------------------------------------------------------------------------------------------


def summary(study: optuna.Study, space: Space) -> dict[str, Any]:
    """The trials, the best first, each setting's importance, and the total cost in whole runs."""
    done = finished(study)
    told = [_facts(trial) for trial in done]
    whole = sorted((t for t in told if t["state"] == "complete"), key=lambda t: -t["validation"])
    return {
        "study": study.study_name,
        "searched": sorted(space.searched),
        "by": space.by,
        **{name: sum(t["state"] == name for t in told) for name in ("complete", "pruned", "failed")},
        "cost": round(spent(done), 3),
        "best": whole[0] if whole else None,
        "importances": _importances(study, len(whole)),
        "trials": whole + [t for t in told if t["state"] != "complete"],
    }


def _facts(trial: FrozenTrial) -> dict[str, Any]:
    facts = {name: trial.user_attrs.get(name) for name in (HASH, SETTINGS, COST, MATCH, NEAR, FAILED)}
    state = "failed" if FAILED in trial.user_attrs else trial.state.name.lower()
    return {"number": trial.number, "state": state, "validation": trial.value, "params": trial.params, **facts}


def _importances(study: optuna.Study, whole: int) -> dict[str, float]:
    if whole < FEW:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings that the trials are few
        return optuna.importance.get_param_importances(study, evaluator=optuna.importance.PedAnovaImportanceEvaluator())
