"""An ensemble in training, on disk: one file with its state, and the account of what the state leaves out."""

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
"""The largest share of its time that an ensemble spends on checkpoints."""


@dataclass
class Saver:
    """Saves an ensemble every ``every`` steps, within a share of the time (:data:`SAVING_SHARE`), and when it stops."""

    state: Path | None
    """The file; None to save nothing."""
    every: int
    stopping: Callable[[], bool]
    due: float = 0.0

    def stops(self, ensemble: Ensemble, race: Race, step: int) -> bool:
        """Save if it is time to; return whether training is to stop."""
        now, stop = time.monotonic(), self.stopping()
        if self.state and (stop or (step - race.step >= self.every and now >= self.due)):
            race.step = step
            save_state(self.state, ensemble, json.dumps(sealed(asdict(race))))
            self.due = time.monotonic() + (time.monotonic() - now) / SAVING_SHARE
        return stop


def accounts(directory: Path) -> Iterator[tuple[Path, Race]]:
    """The saved states with their accounts; files that are not saved states are skipped."""
    for state in sorted(directory.glob(f"*{STATE}")):
        with contextlib.suppress(UserError):
            yield state, read(state)


def read(state: Path) -> Race:
    """Read the account in a saved state; raise :class:`UserError` if there is none, or if it is incomplete."""
    try:
        race = Race(**unsealed(account(state), state))
        race.curves = [[check_point(point, str(state)) for point in curve] for curve in race.curves]
        whole = len(race.curves) == len(race.members) and isinstance(race.seconds, float)
    except (TypeError, OSError, ValueError):
        raise UserError(f"{state} has no account of an ensemble.") from None
    require(whole and bool(race.left), f"The account in {state} is not whole.")
    return race
