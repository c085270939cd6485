"""One run, from its configuration to its directory: train, save, stop, go on.

Sits between `learning.engine`, which yields events, and `store`, which keeps them. `cli` and the Python API call it.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.recipes import with_preset
from auxmod.experiments.store import PROVENANCE, Run, provenance
from auxmod.files import read_json, sha256
from auxmod.learning.checkpoint import STATE, load_state, save_model, save_state
from auxmod.learning.engine import Ensemble, Finished, Progress
from auxmod.learning.memory import check_fits
from auxmod.learning.precision import resolve_device
from auxmod.learning.trained import TrainedModel, check_rows, load
from auxmod.problem import labels
from auxmod.settings import build


class DivergedError(RuntimeError):
    """A run whose loss stopped being finite; the last good checkpoint is kept."""


class Interrupted(KeyboardInterrupt):
    """A run that was asked to stop, and saved."""


def train_run(
    run: Run,
    device: torch.device,
    *,
    resume: bool = False,
    checkpoint_every: int = 1000,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[Progress | Finished]:
    """Train the run in its directory, passing the engine's events on.

    A checkpoint is written each ``checkpoint_every`` steps (at the next logged one), when ``stopping()`` says so,
    and at the end.
    """
    config = run.config
    check_fits(config, device)
    began, before = time.monotonic(), _seconds_so_far(run) if resume else 0.0
    ensemble = Ensemble([config], device, [load_data(config)])
    if resume and (run.path / STATE).exists():
        load_state(run.path / STATE, ensemble)
    saved = int(ensemble.step_number)
    run.rewind(saved)

    def save() -> None:
        save_model(run.path, ensemble.encoder, 0, config)
        save_state(run.path / STATE, ensemble)
        run.record(
            provenance(
                device=device_name(device),
                precision=ensemble.precision,
                seconds=before + time.monotonic() - began,
            )
        )

    for event in ensemble.fit():
        if isinstance(event, Finished):
            if event.dead[0] is not None:
                raise DivergedError(_divergence(event.dead[0], saved, run.path))
            save()
            run.finish(event.scores[0] or {})
        else:
            run.log(curve_point(event, 0))
            due = event.step - saved >= checkpoint_every
            if (due or stopping()) and event.dead[0] is None:
                save()
                saved = event.step
            if stopping() and event.step < event.steps:
                raise Interrupted(f"Stopped at step {event.step:,} of {event.steps:,}; --resume goes on from there.")
        yield event


def train(
    config: RunConfig | None = None,
    *,
    preset: str | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    **settings: Any,
) -> TrainedModel:
    """Train one model and return it: the Python form of `auxmod train`.

    Give a `RunConfig`, or the settings of one (``n=16, q=97, method="aux", k=5, r=0.4``), a preset filling the
    rest. With ``out``, the run directory is kept there; without, only the model is.
    """
    if config is None:
        filled = with_preset(preset, settings)
        config = build(**(settings_with_data(filled) if filled.get("data") else filled))
    else:
        require(preset is None and not settings, "Give a RunConfig, or a preset and settings, not both.")
    with contextlib.ExitStack() as stack:
        place = Path(out) if out else Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        run = Run.create(place, config)
        for _ in train_run(run, resolve_device(device), checkpoint_every=1000 if out else config.training.steps + 1):
            pass
        return load(place, device)


def curve_point(event: Progress, member: int) -> dict[str, Any]:
    """A member's line of the learning curve."""
    point: dict[str, Any] = {"step": event.step, "loss": event.loss[member]}
    if event.accuracy is not None:
        point["accuracy"] = event.accuracy[member]
    return point


def _divergence(step: int, saved: int, path: Path) -> str:
    kept = f"the checkpoint of step {saved:,} is kept in {path}" if saved else "no checkpoint had been written yet"
    return f"The loss stopped being finite at step {step:,}; {kept}. Try a smaller --lr or --clip 1."


def _seconds_so_far(run: Run) -> float:
    path = run.path / PROVENANCE
    return float(read_json(path).get("seconds", 0.0)) if path.exists() else 0.0


def device_name(device: torch.device) -> str:
    """What a reader calls the device."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else f"cpu ({torch.get_num_threads()} threads)"


# -- data of one's own ----------------------------------------------------------------------------------------


def load_data(config: RunConfig) -> np.ndarray[Any, Any] | None:
    """The inputs that `--data` names, checked against the digest in the configuration; None where drawn."""
    if not config.training.data:
        return None
    rows = read_inputs(Path(config.training.data), config)
    require(
        digest(rows) == config.training.data_sha256,
        f"{config.training.data} is not the data this run was made with: its contents have changed.",
    )
    return rows


def read_inputs(path: Path, config: RunConfig) -> np.ndarray[Any, Any]:
    """The array x of an .npz file, int64 (S, N), its values checked; where there is a y, it must be f_q(x)."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, AttributeError) as error:
        raise UserError(f"--data {path} cannot be read as an .npz file ({error}).") from None
    require("x" in arrays, f"--data {path} has no array x; it has: {', '.join(arrays) or 'nothing'}.")
    rows = check_rows(arrays["x"], config)
    if "y" in arrays:
        y = labels.residues(labels.sums(torch.from_numpy(rows)), config.problem.q).numpy()
        wrong = int(np.sum(y != arrays["y"])) if y.shape == arrays["y"].shape else len(y)
        require(wrong == 0, f"--data {path}: y is not the sum of x mod {config.problem.q} in {wrong:,} of its rows.")
    return rows


def settings_with_data(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings that name a data file, with what follows from its contents: how many samples, and their digest."""
    path = Path(settings["data"]).absolute()
    without = {name: value for name, value in settings.items() if name not in ("data", "samples")}
    rows = read_inputs(path, build(**without))
    return settings | {"data": str(path), "data_sha256": digest(rows), "samples": len(rows)}


def digest(rows: np.ndarray[Any, Any]) -> str:
    """Names data by its contents."""
    return sha256(str(rows.shape).encode(), np.ascontiguousarray(rows, dtype=np.int64).tobytes())
