"""Models beside a results file: each run's under its hash, and in `steps/` below that those on its way. No torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.files import CONFIG, MODEL, STEPS, models_of, user_named


@dataclass
class Models:
    """What models a results file's runs are to have, and which have them."""

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
        """Whether all of a run's models are there; another thing in their place is refused."""
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
        on_the_way = self.every is None or self.every > config.training.steps or any(place.glob(f"{STEPS}/*/{MODEL}"))
        return (place / MODEL).is_file() and on_the_way
