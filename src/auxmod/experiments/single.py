"""One run, from its configuration to its directory: train, save, stop, resume.

Connects `learning.engine`, which yields events, with `run_directory`, which stores them. `cli` and the Python API
call it.
"""

from __future__ import annotations

import contextlib
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from auxmod.checked import is_int
from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.origin import provenance
from auxmod.experiments.resolving import load_data, load_test_data, resolved, resumed, with_digest
from auxmod.experiments.run_directory import Run
from auxmod.files import RESULT, STATE, path_of
from auxmod.learning.checkpoint import OnTheWay, load_state, save_model, save_state
from auxmod.learning.engine import Ensemble, Finished, Progress
from auxmod.learning.memory import check_fits, clean_up
from auxmod.learning.precision import resolve_device
from auxmod.learning.trained import TrainedModel, load


class DivergedError(RuntimeError):
    """A run's loss stopped being finite, or its final model gives no answers; its last checkpoint, if any, is kept."""

    def __init__(self, sentence: str, step: int = 0) -> None:
        super().__init__(sentence)
        self.step = step


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop, and what was trained is saved."""


def create_run(path: Path, config: RunConfig, device: torch.device) -> Run:
    """Make a new run directory, but only if the device has the precision and the memory for the run."""
    clean_up(device)
    check_fits(config, device)
    return Run.create(path, config)


def train_run(
    run: Run,
    device: torch.device,
    *,
    resume: bool = False,
    checkpoint_every: int = 1000,
    keep_every: int | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Progress | Finished]:
    """Train the run in its directory, and yield the engine's events.

    A checkpoint is written every ``checkpoint_every`` steps (at the next logged one), when ``stopping()`` returns true,
    and after the last step, before the test inputs are measured. Every ``keep_every`` steps (likewise) a copy of the
    model is kept in `steps/`. A stop before the last step raises :class:`Interrupted`; divergence, at the end,
    :class:`DivergedError`.
    """
    with run.held():
        run.keep()
        yield from _train(run, device, resume, checkpoint_every, keep_every, stopping)


def _train(
    run: Run,
    device: torch.device,
    resume: bool,
    checkpoint_every: int,
    keep_every: int | None,
    stopping: Callable[[], bool],
) -> Iterator[Progress | Finished]:
    config = run.config
    began, earlier = time.monotonic(), run.provenance if resume else {}
    before, begun = earlier.get("seconds", 0.0), _begun(earlier) if earlier else {}
    ensemble = Ensemble([config], device, load_data([config]), test_data=load_test_data([config]))
    if resume and (run.path / STATE).exists():
        load_state(run.path / STATE, ensemble)
    saved = int(ensemble.step_number)
    on_the_way = OnTheWay(lambda _: run.path, keep_every, saved)
    on_the_way.start(ensemble)
    run.rewind(saved)
    if "failed" in (run.outcome or {}):
        (run.path / RESULT).unlink()  # the run goes on, so it has not failed yet
    if saved == ensemble.steps:  # a stop may have come between writing the two files
        save_model(run.path, ensemble.encoder, 0, config)

    def record() -> None:
        seconds = before + time.monotonic() - began
        run.record(provenance(device=device_name(device), precision=ensemble.precision, seconds=seconds) | begun)

    def save() -> None:
        save_state(run.path / STATE, ensemble)  # first, since a model without its state cannot be resumed
        save_model(run.path, ensemble.encoder, 0, config)
        record()

    for event in ensemble.fit():
        if isinstance(event, Finished):
            record()
            _finish(run, event, saved)
        else:
            run.log(curve_point(event, 0))
            on_the_way.see(ensemble, event)
            stop, last = stopping(), event.step == event.steps
            if event.dead[0] is None and (stop or last or event.step - saved >= checkpoint_every):
                save()
                saved = event.step
                if stop and not last:
                    at = f"{event.step:,} of {event.steps:,}"
                    raise Interrupted(f"Stopped at step {at}. To go on: {run.resume_command(keep_every)}.")
        yield event


def _finish(run: Run, event: Finished, saved: int) -> None:
    """Write the figures; if the run diverged, write why there are none, and raise :class:`DivergedError`."""
    if event.dead[0] is None:
        return run.finish(event.scores[0] or {})
    kept = f"the checkpoint of step {saved:,} is kept in {run.path}" if saved else "no checkpoint had been written yet"
    error = DivergedError(divergence(step := event.dead[0] + 1, kept), step)
    run.finish({"failed": str(error)})
    raise error


def _begun(earlier: Mapping[str, Any]) -> dict[str, Any]:
    """How a resumed run was begun, for its new provenance, which otherwise has only the last command."""
    names = ("command", "commit", "device")
    return {f"begun_{name}": earlier.get(f"begun_{name}", earlier.get(name)) for name in names}


def train(
    config: RunConfig | None = None,
    *,
    preset: str | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    device: str | torch.device = "auto",
    keep_every: int | None = None,
    tell: Callable[[Progress | Finished], object] = lambda event: None,
    **settings: Any,
) -> TrainedModel:
    """Train one model and return it: the Python form of `auxmod train`.

    Give a `RunConfig`, or the settings of one (``n=16, q=97, method="aux", k=5, r=0.4``), named as the flags that
    ``auxmod train --help`` lists; a preset fills in the rest. Without a preset, and without any of method, k, r and
    moduli, the method is `auto`. With ``out``, the run directory is kept there; without, nothing is kept but the model
    returned. With ``resume``, the run in ``out`` resumes with its own settings. Every ``keep_every`` steps (at the next
    point of the curve) a copy of the model is kept in ``out/steps/<step>``, for :func:`load`. ``tell``, such as print,
    is called with each event: a `Progress` for each point of the curve, whose lists have one entry here, and a
    `Finished` at the end.
    """
    one = "auxmod.train takes a RunConfig, or settings by name, as in n=16, q=97; a preset is preset='demo'."
    require(config is None or isinstance(config, RunConfig), one)
    check_options(keep_every, tell, out=out)
    require(keep_every is None or out is not None, "keep_every needs out, the directory of the run that keeps them.")
    given = {"config": config, "preset": preset}
    said = settings | {name: value for name, value in given.items() if value is not None}
    alone = "config" not in said or len(said) == 1
    require(alone, "Give a RunConfig, or a preset and settings, not both.")
    chosen = resolve_device(device)
    with contextlib.ExitStack() as stack:
        place = Path(out) if out else Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        if resume:
            run = resumed(out, said)
        else:
            run = create_run(place, with_digest(config) if config else resolved(settings, preset), chosen)
        every = 1000 if out else run.config.training.steps + 1
        try:
            for event in train_run(run, chosen, resume=resume, checkpoint_every=every, keep_every=keep_every):
                tell(event)
        except DivergedError as error:
            raise error if out else DivergedError(divergence(error.step), error.step) from None  # no checkpoint is left
        return load(place, device)


def check_options(keep_every: int | None, tell: object, **places: object) -> None:
    """Refuse wrong values of ``keep_every`` and ``tell``, and ``places`` that are neither a path nor None."""
    for name, place in places.items():
        if place is not None:
            path_of(place, name)
    able = keep_every is None or (is_int(keep_every) and keep_every >= 1)
    require(able, f"keep_every is {keep_every!r}, but must be a whole number of steps.")
    require(callable(tell), f"tell is {tell!r}, but must be a function, such as print.")


def curve_point(event: Progress, member: int) -> dict[str, Any]:
    """A member's line of the learning curve."""
    loss = event.loss[member]
    point: dict[str, Any] = {"step": event.step, "loss": loss if math.isfinite(loss) else None}
    if event.accuracy is not None:
        point["accuracy"] = event.accuracy[member]
    if event.near is not None:
        point["near"] = event.near[member]
    return point


def divergence(step: int, kept: str = "") -> str:
    """The sentence for a run that diverged; ``kept`` says what is left of it."""
    kept = f"; {kept}" if kept else ""
    return f"The loss stopped being finite at step {step:,}{kept}. Try a smaller --lr or --clip 1."


def device_name(device: torch.device) -> str:
    """The device's name for a reader."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu ({torch.get_num_threads()} threads)"
