"""An ensemble in training, on disk: its state, and a log of what that leaves out. For `ensembles` and `halving`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from auxmod.errors import UserError, require
from auxmod.experiments.claims import LOG
from auxmod.experiments.trusted import check_point
from auxmod.files import read_json, sealed, unsealed, write_json
from auxmod.learning.checkpoint import load_state, save_state
from auxmod.learning.engine import Ensemble

SAVING_SHARE = 0.01
"""The most of its time that an ensemble spends on checkpoints."""


@dataclass
class Log:
    """What a saved state leaves out: the learning curves so far, and the seconds they took."""

    members: list[str]
    curves: list[list[dict[str, Any]]]
    """A list of points a member."""
    seconds: float = 0.0
    step: int = 0

    def saved(self) -> None:
        """The state that this is beside has been written."""


AnyLog = TypeVar("AnyLog", bound=Log)


@dataclass
class Saver:
    """Saves an ensemble each ``every`` steps, though never for more than a share of the time, and where it stops."""

    state: Path | None
    """The state's file, beside which its log is; None where nothing is saved."""
    every: int
    stopping: Callable[[], bool]
    due: float = 0.0

    def stops(self, ensemble: Ensemble, log: Log, step: int) -> bool:
        """Save where it is time; whether training is to stop."""
        now, stop = time.monotonic(), self.stopping()
        if self.state and (stop or (step - log.step >= self.every and now >= self.due)):
            log.step = step
            write_json(self.state.with_suffix(LOG), sealed(asdict(log)))  # first: points past the state are dropped
            save_state(self.state, ensemble)
            log.saved()
            self.due = time.monotonic() + (time.monotonic() - now) / SAVING_SHARE
        return stop


def read_log(path: Path, kind: type[AnyLog], what: str) -> AnyLog:
    """A log that was saved; one that is none is a sentence."""
    told = unsealed(read_json(path), path)
    try:
        log = kind(**told)
        log.curves = [[check_point(point, str(path)) for point in curve] for curve in log.curves]
        whole = len(log.curves) == len(log.members) and isinstance(log.seconds, float)
    except TypeError:
        raise UserError(f"{path} is not the log of {what}.") from None
    require(whole, f"{path} is not whole.")
    return log


def restore(state: Path, ensemble: Ensemble, log: Log) -> None:
    """Put an ensemble where it was saved, and its log with it."""
    load_state(state, ensemble)
    log.step = int(ensemble.step_number)
    log.curves = [[point for point in curve if point["step"] <= log.step] for curve in log.curves]
