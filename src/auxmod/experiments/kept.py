"""Models beside a results file: each run's under its hash, and in `steps/` below that those on its way. No torch.

A run's own model is written last, so that where it lies all that was to be kept of the run does.
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
    """The models that a results file's runs are to have."""

    results: Path
    every: int | None = None
    """Each how many steps one is kept on its way, too."""
    _there: set[str] = field(default_factory=set)

    @property
    def place(self) -> Path:
        return models_of(self.results)

    def prepare(self, runs: Iterable[str]) -> None:
        """Make the directory; where one of the runs could not be kept in it, that is a sentence."""
        with user_named(self.place, "--results file"):
            self.place.mkdir(parents=True, exist_ok=True)
        for run in runs:
            self.has(run)

    def has(self, run: str) -> bool:
        """Whether a run's model is there; another thing in its place is refused."""
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

    def lies(self, run: str) -> bool:
        """Whether there is a model under a run's name, be it whose it may."""
        return (self.place / run / MODEL).is_file()

    def without_steps(self, configs: Iterable[RunConfig]) -> str | None:
        """What is to be said where runs that have their model have none on their way, though these are asked for."""
        cells = {config.hash for config in configs if self.every and self.every <= config.training.steps}
        lone = [run for run in cells if self.lies(run) and not (self.place / run / STEPS).is_dir()]
        if not lone:
            return None
        remedy = f"delete their directories in {self.place} to train them for these"
        return f"{len(lone)} of {len(cells)} cells were done before, without models on their way: {remedy}."
