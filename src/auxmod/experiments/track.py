"""Curves and figures to a tracker as well: one small adapter each, imported only when asked for. No torch.

A tracker is begun with a run's name and settings, told values at steps, and finished. `train` tells it as it goes; a
sweep tells it of each cell once that is done, since dozens train at once and trackers think of one run at a time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.settings import flatten

PROJECT = "auxmod"
PACKAGES = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "torch.utils.tensorboard"}
"""Each tracker, and the module that speaks to it."""


Log = Callable[[int, Mapping[str, float]], None]
"""Tells a tracker values at a step."""
Start = Callable[[str, Mapping[str, Any]], AbstractContextManager[Log]]
"""Begin a run of this name, with these settings; it is finished where the context ends."""


def tracker(name: str, place: Path) -> Start:
    """How to begin runs with a tracker, which may keep files in a place; one that is not installed is a sentence."""
    try:
        module = importlib.import_module(PACKAGES[name])
    except ImportError:
        raise UserError(f"--track {name} needs it to be installed: pip install 'auxmod[{name}]'.") from None
    return functools.partial(_board, module, place / name) if name == "tensorboard" else functools.partial(_run, module)


@contextlib.contextmanager
def _run(module: Any, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """Weights & Biases, and Trackio, which speaks as it does."""
    module.init(project=PROJECT, name=name, config=dict(settings))
    try:
        yield lambda step, values: module.log(dict(values), step=step)
    finally:
        module.finish()


@contextlib.contextmanager
def _board(module: Any, place: Path, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """TensorBoard's files, in a directory."""
    writer = module.SummaryWriter(str(place / name))
    writer.add_text("settings", "\n".join(f"    {key} = {value}" for key, value in settings.items()))

    def log(step: int, values: Mapping[str, float]) -> None:
        for key, value in values.items():
            writer.add_scalar(key, value, step)

    try:
        yield log
    finally:
        writer.close()


@contextlib.contextmanager
def tracked(
    start: Start | None, name: str, settings: Mapping[str, Any]
) -> Iterator[Callable[[Mapping[str, Any]], None]]:
    """Somebody to tell of the points of a run's learning curve; without a tracker, nobody."""
    if start is None:
        yield lambda point: None
        return
    with start(name, settings) as log:
        yield lambda point: log(point["step"], _numbers(point))


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
    return {"step": config.training.steps, "test": scores}


def _numbers(point: Mapping[str, Any], under: str = "") -> dict[str, float]:
    """A point's numbers by name, those of a part under its own, as in `test/tau/0.05`."""
    found: dict[str, float] = {}
    for key, value in point.items():
        if isinstance(value, Mapping):
            found |= _numbers(value, f"{under}{key}/")
        elif key != "step" and isinstance(value, int | float):
            found[f"{under}{key}"] = value
    return found
