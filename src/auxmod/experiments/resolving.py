"""From settings to a run, new or resumed: fill in what they leave open, and name a data file by its contents.

No torch.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from auxmod.checked import flag
from auxmod.config import Problem, RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.presets import with_preset
from auxmod.experiments.run_directory import Run
from auxmod.files import MODEL, STATE, sha256
from auxmod.problem.rows import Rows, read_npz
from auxmod.settings import build


def resolved(settings: Mapping[str, Any], preset: str | None = None) -> RunConfig:
    """The run that settings and a preset describe; if they name a data file, with its length and digest."""
    filled = with_preset(preset, settings)
    if not isinstance(data := filled.get("data", ""), str) or data:
        require(
            "samples" not in settings,
            "--samples says how many inputs to draw, and --data brings its own: give one of them.",
        )
        problem = Problem(**{name: filled[name] for name in ("n", "q") if name in filled})
        filled |= _named(data, problem)
    return build(**filled)


def resolved_all(cells: Sequence[Mapping[str, Any]], preset: str | None) -> list[RunConfig]:
    """The run that each cell of settings describes; an error names its cell by the settings in which cells differ."""
    configs = []
    for cell in cells:
        try:
            configs.append(resolved(cell, preset))
        except UserError as error:
            differing = [name for name, value in cell.items() if any(each.get(name) != value for each in cells)]
            where = " ".join(f"{flag(name)} {cell[name]}" for name in differing)
            general = all(_refusal(each, preset) == str(error) for each in cells)
            raise UserError(str(error) if general or not where else f"{error} (in the cell {where})") from None
    return configs


def _refusal(settings: Mapping[str, Any], preset: str | None) -> str | None:
    """Why settings describe no run; None if they describe one."""
    try:
        resolved(settings, preset)
    except UserError as error:
        return str(error)
    return None


def with_digest(config: RunConfig) -> RunConfig:
    """The same run; if it names a data file without a digest, as `settings.build` does, with its length and digest."""
    training = config.training
    if not training.data or training.data_sha256:
        return config
    return replace(config, training=replace(training, **_named(training.data, config.problem)))


def resumed(place: str | Path | None, said: Mapping[str, Any]) -> Run:
    """Open the run in a directory to resume it with its own settings; only a new path of its data may be given."""
    require(place is not None, "--resume needs --out, the directory of the run to go on with.")
    out, others = Path(str(place)), sorted(said.keys() - {"data"})
    own = f"--resume takes the run's own settings from {out}; leave out, also of the environment: {', '.join(others)}."
    require(not others, own)
    run = Run.open(out)
    require(run.result is None, f"{out} is a finished run: there is nothing to resume.")
    require(
        (out / STATE).exists() or not (out / MODEL).exists(),
        f"{out} holds a model but no training state to go on from: choose another --out; to start over here, and lose "
        f"that model, delete {MODEL}.",
    )
    return with_data(run, said["data"]) if "data" in said else run


def with_data(run: Run, data: Any) -> Run:
    """The same run with its data file at a new path; the run writes the path down when it is trained."""
    config = run.config
    require(bool(config.training.data), f"{run.path} trains on drawn inputs: leave out --data.")
    named = _named(data, config.problem)
    same = named["data_sha256"] == config.training.data_sha256
    require(same, f"{named['data']} is not the data that {run.path} was made with: its contents are others.")
    return replace(run, config=replace(config, training=replace(config.training, **named)))


def _named(data: Any, problem: Problem) -> dict[str, Any]:
    """The settings that name a data file: its absolute path, length and digest."""
    kind, save = type(data).__name__, "numpy.savez('data.npz', x=...)"
    require(isinstance(data, str | Path), f"--data names a file, which {save} makes; this is a {kind}.")
    path = Path(data).absolute()
    changed = path.stat().st_mtime_ns if path.exists() else 0  # if it is missing, reading it says so
    return {"data": str(path), **_facts(path, changed, problem)}


@functools.lru_cache
def _facts(path: Path, changed: int, problem: Problem) -> Mapping[str, Any]:
    """A data file's length and digest; the file is read once for all runs of a sweep, unless ``changed`` differs."""
    rows = read_npz(path, problem)
    return {"data_sha256": digest(rows), "samples": len(rows)}


def load_data(configs: Sequence[RunConfig]) -> list[Rows | None]:
    """Load each run's own inputs and check them against its configuration's digest; None for runs that draw theirs."""
    read = functools.cache(_read)  # reads each file once
    return [read(c.training.data, c.training.data_sha256, c.problem) for c in configs]


def _read(path: str, contents: str, problem: Problem) -> Rows | None:
    if not path:
        return None
    require(
        Path(path).exists(), f"There is no file {path}, what the run trains on: if it has moved, name it with --data."
    )
    rows = read_npz(Path(path), problem)
    require(digest(rows) == contents, f"{path} is not the data this run was made with: its contents have changed.")
    return rows


def digest(rows: Rows) -> str:
    """The digest that names data by its contents."""
    return sha256(str(rows.shape).encode(), np.ascontiguousarray(rows, dtype=np.int64).tobytes())
