"""An ensemble in training, on disk: its state, and the account beside it of what that leaves out."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from auxmod.errors import UserError, require
from auxmod.experiments.claims import LOG, STATE
from auxmod.experiments.halving import Race, configs_of
from auxmod.experiments.trusted import check_point
from auxmod.files import read_json, sealed, unsealed, write_json
from auxmod.learning.checkpoint import load_state, runs_of, save_state
from auxmod.learning.engine import Ensemble

SAVING_SHARE = 0.01
"""The most of its time that an ensemble spends on checkpoints."""


@dataclass
class Saver:
    """Saves an ensemble each ``every`` steps, though never for more than a share of the time, and where it stops."""

    state: Path | None
    """The state's file, beside which its account is; None where nothing is saved."""
    every: int
    stopping: Callable[[], bool]
    due: float = 0.0

    def stops(self, ensemble: Ensemble, race: Race, step: int) -> bool:
        """Save where it is time; whether training is to stop."""
        now, stop = time.monotonic(), self.stopping()
        if self.state and (stop or (step - race.step >= self.every and now >= self.due)):
            race.step = step
            write_json(self.state.with_suffix(LOG), sealed(asdict(race)))  # first: what is past the state is dropped
            save_state(self.state, ensemble)
            race.saved()
            self.due = time.monotonic() + (time.monotonic() - now) / SAVING_SHARE
        return stop


def accounts(directory: Path) -> Iterator[tuple[Path, Race]]:
    """The states that were saved, and their accounts; what is none is passed over."""
    for state in sorted(directory.glob(f"*{STATE}")):
        with contextlib.suppress(UserError):
            yield state, read(state)


def read(state: Path) -> Race:
    """The account that a state has beside it, as it was when that was saved; one that is none is a sentence."""
    path = state.with_suffix(LOG)
    told = unsealed(read_json(path), path)
    try:
        race = Race(**told)
        race.curves = [[check_point(point, str(path)) for point in curve] for curve in race.curves]
        whole = len(race.curves) == len(race.members) and isinstance(race.seconds, float)
    except TypeError:
        raise UserError(f"{path} is not the account of an ensemble.") from None
    if race.earlier and runs_of(state) != [c.hash for c in configs_of(race.riding)]:
        race = replace(race, **race.earlier)
    require(whole and bool(race.left), f"{path} is not whole.")
    return race


def restore(state: Path, ensemble: Ensemble, race: Race) -> None:
    """Put an ensemble where it was saved, and its account with it."""
    load_state(state, ensemble)
    race.step = int(ensemble.step_number)
    race.curves = [[point for point in curve if point["step"] <= race.step] for curve in race.curves]
    race.saved()
