"""The models kept beside a results file: each run's under its hash, earlier steps' in `steps/` below that. No torch.

A run's final model is written last, and an earlier one deleted before its row is: if a model is there, so are the
run's row, whose figures are this model's, and everything else that was to be kept of the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.files import CONFIG, MODEL, STEPS, models_of, user_named


@dataclass
class Models:
    """The models to be kept of a results file's runs."""

    results: Path
    every: int | None = None
    """If given, a model is also kept every so many steps during training."""
    _there: set[str] = field(default_factory=set)

    @property
    def place(self) -> Path:
        return models_of(self.results)

    def of(self, run: RunConfig) -> Path:
        """The directory of a run's model."""
        return self.place / run.hash

    def prepare(self, runs: Iterable[str]) -> None:
        """Make the directory; refuse it if one of the runs' models could not be kept there."""
        with user_named(self.place, "--results file"):
            self.place.mkdir(parents=True, exist_ok=True)
        for run in runs:
            self.has(run)

    def has(self, run: str) -> bool:
        """Whether a run's model is there; raise :class:`UserError` if something else is in its place."""
        if run not in self._there and self._find(self.place / run, run):
            self._there.add(run)
        return run in self._there

    def _find(self, place: Path, run: str) -> bool:
        if not place.exists():
            return False
        remedy = f"Move or delete {place}, and give the same again."
        require(place.is_dir(), f"{place} is a file where a model is to be kept. {remedy}")
        if not (place / CONFIG).exists():
            return False
        try:
            config = RunConfig.read(place / CONFIG)
        except UserError as error:
            raise UserError(f"{error} {remedy}") from None
        require(config.hash == run, f"{place / CONFIG} is of another run than its directory is called by. {remedy}")
        return (place / MODEL).is_file()

    def forget(self, runs: Iterable[str]) -> None:
        """Delete the runs' final models."""
        for run in runs:
            self._there.discard(run)
            (self.place / run / MODEL).unlink(missing_ok=True)

    def lies(self, run: str) -> bool:
        """Whether there is a model under a run's hash; does not check that it is this run's."""
        return (self.place / run / MODEL).is_file()

    def without_steps(self, done: Iterable[RunConfig]) -> str | None:
        """A warning if runs that are done lack the models during training that are asked for; else None."""
        cells = {config.hash for config in done if self.every and self.every <= config.training.steps}
        lone = [run for run in cells if self.lies(run) and not (self.place / run / STEPS).is_dir()]
        if not lone:
            return None
        remedy = f"delete their directories in {self.place} to train them for these"
        return f"{len(lone)} of {len(cells)} cells that were done before have no models on their way: {remedy}."
