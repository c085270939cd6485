"""Curves and figures to a tracker as well: one small adapter each, imported only when asked for. No torch.

A tracker is begun with a run's name and settings, told values at steps, and finished. `train` tells it as it goes; a
sweep tells it of each cell once that is done, since dozens train at once and trackers think of one run at a time.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.settings import flatten

PROJECT = "auxmod"
PACKAGES = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "torch.utils.tensorboard"}
"""Each tracker, and the module that speaks to it."""


class Tracker(Protocol):
    """One run, as a tracker sees it."""

    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    def finish(self) -> None: ...


Start = Callable[[str, Mapping[str, Any]], Tracker]
"""Begin a run of this name, with these settings."""


def tracker(name: str, place: Path) -> Start:
    """How to begin runs with a tracker, which may keep files in a place; one that is not installed is a sentence."""
    try:
        module = importlib.import_module(PACKAGES[name])
    except ImportError:
        raise UserError(f"--track {name} needs it to be installed: pip install 'auxmod[{name}]'.") from None
    if name == "tensorboard":
        return lambda run, settings: Board(module, place / name / run, settings)
    return lambda run, settings: Session(module, run, settings)


class Session:
    """Weights & Biases, and Trackio, which speaks as it does."""

    def __init__(self, module: Any, name: str, settings: Mapping[str, Any]) -> None:
        self.module = module
        module.init(project=PROJECT, name=name, config=dict(settings))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.module.log(dict(values), step=step)

    def finish(self) -> None:
        self.module.finish()


class Board:
    """TensorBoard's files, in a directory."""

    def __init__(self, module: Any, place: Path, settings: Mapping[str, Any]) -> None:
        self.writer = module.SummaryWriter(str(place))
        self.writer.add_text("settings", "\n".join(f"    {key} = {value}" for key, value in settings.items()))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            self.writer.add_scalar(key, value, step)

    def finish(self) -> None:
        self.writer.close()


@contextlib.contextmanager
def tracked(
    start: Start | None, name: str, settings: Mapping[str, Any]
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Somebody to tell of the points of a run's learning curve; without a tracker, nobody."""
    if start is None:
        yield lambda point: None
        return
    run = start(name, settings)
    try:
        yield lambda point: run.log(point["step"], _numbers(point))
    finally:
        run.finish()


def track_rows(start: Start, rows: Sequence[Mapping[str, Any]]) -> None:
    """Cells of a sweep that have ended: their curves, and their figures at the last step."""
    for row in rows:
        config = RunConfig.from_dict(row["config"])
        with tracked(start, row["hash"], flatten(config)) as tell:
            for point in row.get("curve", []):
                tell(point)
            if "scores" in row:
                tell(last_point(config, row["scores"]))


def last_point(config: RunConfig, scores: Mapping[str, Any]) -> dict[str, Any]:
    """A run's figures, as a point at its last step."""
    return {"step": config.training.steps, **{f"test/{name}": value for name, value in scores.items()}}


def _numbers(point: Mapping[str, Any]) -> dict[str, float]:
    return {key: value for key, value in point.items() if key != "step" and isinstance(value, int | float)}
