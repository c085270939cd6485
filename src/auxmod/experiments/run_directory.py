"""Run directories: a run's configuration, its outcome, and the state to resume it from. Standard library only.

| file                | what                                                              |
|---------------------|-------------------------------------------------------------------|
| `config.json`       | the configuration                                                 |
| `provenance.json`   | versions, commit, device, precision, command, wall time           |
| `metrics.jsonl`     | the learning curve                                                |
| `result.json`       | the figures, with chance levels, or why there are none            |
| `model.safetensors` | the weights                                                       |
| `state.safetensors` | weights, optimiser and step; `--resume` goes on exactly from there |

Every JSON object in them has a checksum (`files.sealed`); the error for one that does not match names the file.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shlex
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.trusted import check_curve, check_origin, check_point, check_scores
from auxmod.files import (
    CONFIG,
    METRICS,
    MODEL,
    PROVENANCE,
    RESULT,
    STATE,
    STEPS,
    append_line,
    check_apart,
    read_json,
    read_lines,
    sealed,
    unsealed,
    user_named,
    write_json,
    write_lines,
)

FILES = (CONFIG, PROVENANCE, METRICS, RESULT, MODEL, STATE)
"""The files of a run directory."""
PATIENCE = 20
"""How often to try to lock a run, a twentieth of a second apart, before it counts as another process's."""


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path
    config: RunConfig

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> Run:
        """Make a new run directory, complete with its configuration or not at all; refuse an existing path."""
        require(
            not path.exists(),
            f"{path} exists already: choose another --out, or add --resume to go on with the run in it.",
        )
        check_apart(path)
        begun = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with user_named(path):
                begun.mkdir(parents=True, exist_ok=True)
                write_json(begun / CONFIG, sealed(config.to_dict()))
                begun.rename(path)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
        return cls(path, config)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """Open an existing run directory; raise :class:`UserError` if it is none."""
        path = Path(path)
        require(path.is_dir(), f"{path} is not a run: there is no such directory.")
        require((path / CONFIG).is_file(), f"{path} is not a run: it has no {CONFIG}.")
        return cls(path, RunConfig.read(path / CONFIG))

    def resume_command(self, keep_every: int | None = None) -> str:
        """The command that resumes the run, and goes on keeping models every ``keep_every`` steps if given."""
        kept = f" --keep-every {keep_every}" if keep_every else ""
        return f"auxmod train --resume --out {shlex.quote(str(self.path))}{kept}"

    @property
    def result(self) -> dict[str, Any] | None:
        """The figures; None while the run is not done, or if it failed."""
        stored = self.outcome
        return None if stored is None or "failed" in stored else stored

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The figures, or ``failed`` and why there are none; None while the run is not done."""
        path = self.path / RESULT
        return check_scores(unsealed(read_json(path), path, self.config.hash), path) if path.exists() else None

    @property
    def provenance(self) -> dict[str, Any]:
        """What the run was made on; empty until that is first written."""
        path = self.path / PROVENANCE
        return check_origin(unsealed(read_json(path), path), path) if path.exists() else {}

    def curve(self) -> list[dict[str, Any]]:
        """The points of the learning curve so far."""
        path = self.path / METRICS
        values = read_lines(path, b'{"step":') if path.exists() else []
        lines = ((f"Line {at} of {path}", value) for at, value in enumerate(values, 1))
        return check_curve([check_point(unsealed(value, where), where) for where, value in lines], path)

    def keep(self) -> None:
        """Write the configuration if it differs from the one in the directory."""
        if RunConfig.read(self.path / CONFIG) != self.config:
            write_json(self.path / CONFIG, sealed(self.config.to_dict()))

    def log(self, point: Mapping[str, Any]) -> None:
        """Add a point to the learning curve."""
        append_line(self.path / METRICS, sealed(point))

    def rewind(self, step: int) -> None:
        """Drop the curve's points after ``step``: training will make the same ones again."""
        write_lines(self.path / METRICS, (sealed(point) for point in self.curve() if point["step"] <= step))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the figures, or ``failed`` and why there are none: the run has then ended."""
        write_json(self.path / RESULT, sealed(result, self.config.hash))

    def record(self, provenance: Mapping[str, Any]) -> None:
        """Write what the run was made on."""
        write_json(self.path / PROVENANCE, sealed(provenance))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes off this run inside the block; first delete what a killed one left half written."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _hold(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise UserError(f"Another process trains the run in {self.path}: wait for it, or stop it.") from None
        except OSError as error:  # some file systems cannot lock directories
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise
        try:
            take_away((*self.path.iterdir(), *self.path.glob(f"{STEPS}/*/.*")))
            yield
        finally:
            os.close(descriptor)


def _hold(descriptor: int) -> None:
    """Lock it, or raise BlockingIOError; a child of a killed process may keep its lock for a moment longer."""
    for _ in range(PATIENCE):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.05)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take_away(paths: Iterable[Path]) -> None:
    """Delete the files among these that a killed process left half written."""
    for path in paths:
        if is_leftover(path.name):
            path.unlink(missing_ok=True)


def is_leftover(name: str) -> bool:
    """Whether a name is that of a half-written file of a run, as a killed process leaves it."""
    return any(name.startswith(f".{file}.") for file in FILES)
