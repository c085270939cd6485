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
from auxmod.config import DATA, Problem, RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.presets import with_preset
from auxmod.experiments.run_directory import Run
from auxmod.files import MODEL, STATE, sha256
from auxmod.problem.rows import Rows, read_npz
from auxmod.settings import build


def resolved(settings: Mapping[str, Any], preset: str | None = None) -> RunConfig:
    """The run that settings and a preset describe; files of inputs that they name get a digest, and set the length."""
    filled = with_preset(preset, settings)
    problem = Problem(**{name: filled[name] for name in ("n", "q") if name in filled})
    own = {name: filled[name] for name in DATA if not isinstance(filled.get(name, ""), str) or filled.get(name)}
    require(
        "data" not in own or settings.get("samples") is None,
        "--samples says how many inputs to draw, and --data brings its own: give one of them.",
    )
    for name, path in own.items():
        filled |= _named(name, path, problem)
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
    """The same run; files of inputs that it names without a digest, as `settings.build` does, get one."""
    given = {name: (getattr(config.training, name), getattr(config.training, digest)) for name, digest in DATA.items()}
    open_ = {name: path for name, (path, digest) in given.items() if path and not digest}
    return _with_files(config, open_) if open_ else config


def resumed(place: str | Path | None, said: Mapping[str, Any]) -> Run:
    """Open the run in a directory to resume it with its own settings; only new paths of its files may be given."""
    require(place is not None, "--resume needs --out, the directory of the run to go on with.")
    out, others = Path(str(place)), sorted(said.keys() - DATA.keys())
    own = f"--resume takes the run's own settings from {out}; leave out, also of the environment: {', '.join(others)}."
    require(not others, own)
    run = Run.open(out)
    require(run.result is None, f"{out} is a finished run: there is nothing to resume.")
    require(
        (out / STATE).exists() or not (out / MODEL).exists(),
        f"{out} holds a model but no training state to go on from: choose another --out; to start over here, and lose "
        f"that model, delete {MODEL}.",
    )
    return with_data(run, {name: said[name] for name in DATA if name in said})


def with_data(run: Run, paths: Mapping[str, Any]) -> Run:
    """The same run with files at new ``paths``, by setting; the run writes them down when it is trained."""
    for name in paths:
        drawn = f"{run.path} {'trains' if name == 'data' else 'is measured'} on drawn inputs: leave out {flag(name)}."
        require(bool(getattr(run.config.training, name)), drawn)
    moved = _with_files(run.config, paths)
    for name in paths:
        path, same = getattr(moved.training, name), moved.hash == run.config.hash
        require(same, f"{path} is not the data that {run.path} was made with: its contents are others.")
    return replace(run, config=moved)


def _with_files(config: RunConfig, paths: Mapping[str, Any]) -> RunConfig:
    training = config.training
    for name, path in paths.items():
        training = replace(training, **_named(name, path, config.problem))
    return replace(config, training=training)


def _named(name: str, given: Any, problem: Problem) -> dict[str, Any]:
    """The settings that name a file of inputs: its absolute path and digest, and its length if it is trained on."""
    kind, save = type(given).__name__, "numpy.savez('data.npz', x=...)"
    require(isinstance(given, str | Path), f"{flag(name)} names a file, which {save} makes; this is a {kind}.")
    path = Path(given).absolute()
    changed = path.stat().st_mtime_ns if path.exists() else 0  # if it is missing, reading it says so
    contents, rows = _facts(path, changed, problem)
    few = f"{path} has {rows} row{'s' * (rows != 1)}, but {flag(name)} needs two or more."
    require(name == "data" or rows > 1, few)
    return {name: str(path), DATA[name]: contents} | ({"samples": rows} if name == "data" else {})


@functools.lru_cache
def _facts(path: Path, changed: int, problem: Problem) -> tuple[str, int]:
    """A file's digest and length; the file is read once for all runs of a sweep, unless ``changed`` differs."""
    rows = read_npz(path, problem)
    return digest(rows), len(rows)


def load_data(configs: Sequence[RunConfig]) -> list[Rows | None]:
    """Load each run's own inputs and check them against its configuration's digest; None for runs that draw theirs."""
    return _loaded("data", configs)


def load_test_data(configs: Sequence[RunConfig]) -> Rows | None:
    """Load the rows on which runs of one shape are all measured, and check them likewise; None if these are drawn."""
    return _loaded("test_data", configs)[0]


def _loaded(name: str, configs: Sequence[RunConfig]) -> list[Rows | None]:
    read = functools.cache(_read)  # reads each file once
    trainings = [(getattr(c.training, name), getattr(c.training, DATA[name]), c.problem) for c in configs]
    return [read(name, *each) for each in trainings]


def _read(name: str, path: str, contents: str, problem: Problem) -> Rows | None:
    if not path:
        return None
    moved = f"There is no file {path}, which the run needs: if it has moved, name it with {flag(name)}."
    require(Path(path).exists(), moved)
    rows = read_npz(Path(path), problem)
    require(digest(rows) == contents, f"{path} is not the data this run was made with: its contents have changed.")
    return rows


def digest(rows: Rows) -> str:
    """The digest that names data by its contents."""
    return sha256(str(rows.shape).encode(), np.ascontiguousarray(rows, dtype=np.int64).tobytes())
