"""An ensemble in training, on disk: one file with its state, and the account of what that leaves out."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from auxmod.errors import UserError, require
from auxmod.experiments.claims import STATE, account
from auxmod.experiments.halving import Race
from auxmod.experiments.trusted import check_point
from auxmod.files import sealed, unsealed
from auxmod.learning.checkpoint import save_state
from auxmod.learning.engine import Ensemble

SAVING_SHARE = 0.01
"""The most of its time that an ensemble spends on checkpoints."""


@dataclass
class Saver:
    """Saves an ensemble each ``every`` steps, though never for more than a share of the time, and where it stops."""

    state: Path | None
    """The file; None where nothing is saved."""
    every: int
    stopping: Callable[[], bool]
    due: float = 0.0

    def stops(self, ensemble: Ensemble, race: Race, step: int) -> bool:
        """Save where it is time; whether training is to stop."""
        now, stop = time.monotonic(), self.stopping()
        if self.state and (stop or (step - race.step >= self.every and now >= self.due)):
            race.step = step
            save_state(self.state, ensemble, json.dumps(sealed(asdict(race))))
            self.due = time.monotonic() + (time.monotonic() - now) / SAVING_SHARE
        return stop


def accounts(directory: Path) -> Iterator[tuple[Path, Race]]:
    """The states that were saved, and their accounts; what is none is passed over."""
    for state in sorted(directory.glob(f"*{STATE}")):
        with contextlib.suppress(UserError):
            yield state, read(state)


def read(state: Path) -> Race:
    """The account that a state has with it; one that is none is a sentence."""
    try:
        race = Race(**unsealed(account(state), state))
        race.curves = [[check_point(point, str(state)) for point in curve] for curve in race.curves]
        whole = len(race.curves) == len(race.members) and isinstance(race.seconds, float)
    except (TypeError, OSError, ValueError):
        raise UserError(f"{state} has no account of an ensemble.") from None
    require(whole and bool(race.left), f"The account in {state} is not whole.")
    return race
