"""Send curves and figures to an experiment tracker: one small adapter each, imported only when asked for. No torch.

A tracker starts a run by name and settings, receives values at steps, and finishes the run. `train` sends values as it
goes. A sweep sends each cell once that has ended: it trains dozens at once, and trackers expect one run at a time.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.errors import UserError, first_line
from auxmod.settings import flatten

PROJECT = "auxmod"
PACKAGES = {"wandb": "wandb", "trackio": "trackio", "tensorboard": "torch.utils.tensorboard"}
"""The module of each tracker."""


Log = Callable[[int, Mapping[str, float]], None]
"""A function that sends a tracker the values at a step."""


@dataclass
class Start:
    """Starts a tracker's runs, until one cannot be started: the next would take its time to fail too."""

    begin: Callable[[str, Mapping[str, Any]], AbstractContextManager[Log]]
    """A function that starts a run with a name and settings; the run is finished when the context ends."""
    down: bool = False

    def __call__(self, name: str, settings: Mapping[str, Any]) -> AbstractContextManager[Log]:
        return self.begin(name, settings)


def tracker(name: str, place: Path) -> Start:
    """Return the function that starts a tracker's runs; raise :class:`UserError` if the tracker is not installed.

    ``place`` is the directory for a tracker that writes files: TensorBoard, in ``place/tensorboard``.
    """
    try:
        module = importlib.import_module(PACKAGES[name])
    except ImportError:
        raise UserError(f"--track {name} needs it to be installed: pip install 'auxmod[{name}]'.") from None
    board = name == "tensorboard"
    return Start(functools.partial(_board, module, place / name) if board else functools.partial(_run, module))


@contextlib.contextmanager
def _run(module: Any, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """A run of Weights & Biases, or of Trackio, which has the same interface."""
    module.init(project=PROJECT, name=name, config=dict(settings))
    try:
        yield lambda step, values: module.log(dict(values), step=step)
    finally:
        module.finish()


@contextlib.contextmanager
def _board(module: Any, place: Path, name: str, settings: Mapping[str, Any]) -> Iterator[Log]:
    """A run of TensorBoard, as files in the directory ``place/name``."""
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
    """Yield a function that sends points of a run's learning curve to a tracker; without one, it does nothing.

    An error of the tracker is a warning, and what follows of the run is not sent: training goes on. If a run cannot be
    started, none is after it.
    """
    if start is None or start.down:
        yield lambda point: None
        return
    failed = False

    def attempt(act: Callable[..., Any], *given: Any) -> Any:
        nonlocal failed
        try:
            return act(*given)
        except Exception as error:  # whatever it is, it must not cost the run
            failed = True
            warnings.warn(f"The tracker lacks run {name}, or part of it: {first_line(error)}", stacklevel=2)

    run = start(name, settings)
    log = attempt(run.__enter__)
    start.down = log is None
    try:
        yield lambda point: None if failed else attempt(log, point["step"], _numbers(point))
    finally:
        if log is not None:
            attempt(run.__exit__, None, None, None)


def track_rows(start: Start, rows: Sequence[Mapping[str, Any]]) -> None:
    """Send the rows of a sweep's ended cells: their curves and, at the last step, their figures if they have any."""
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
    """A point's numbers by name, except the step; nested ones get a path, as in `test/tau/0.05`."""
    found: dict[str, float] = {}
    for key, value in point.items():
        if isinstance(value, Mapping):
            found |= _numbers(value, f"{under}{key}/")
        elif key != "step" and isinstance(value, int | float):
            found[f"{under}{key}"] = value
    return found
