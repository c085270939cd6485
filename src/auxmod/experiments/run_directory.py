"""Run directories: what a run is, how it went, and what it needs to go on. Standard library only.

| file                | what                                                              |
|---------------------|-------------------------------------------------------------------|
| `config.json`       | what was run                                                      |
| `provenance.json`   | on what: versions, commit, device, precision, command, wall time  |
| `metrics.jsonl`     | the learning curve                                                |
| `result.json`       | the figures, with chance levels, or why there are none            |
| `model.safetensors` | the weights                                                       |
| `state.safetensors` | optimiser and position, from which `--resume` goes on exactly     |

Every JSON object among them has a checksum (`files.sealed`); what does not match is refused by the file's name.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
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
    read_json,
    read_lines,
    sealed,
    unsealed,
    user_named,
    write_json,
    write_lines,
)

FILES = (CONFIG, PROVENANCE, METRICS, RESULT, MODEL, STATE)
"""What a run directory holds."""
PATIENCE = 20
"""How often a run that is held is looked at again, a twentieth of a second apart, before it counts as another's."""


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> Run:
        """Make a new run directory; an existing one is never touched. It is there with its configuration, or not."""
        require(
            not path.exists(),
            f"{path} exists already: choose another --out, or add --resume to go on with the run in it.",
        )
        begun = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with user_named(path):
                begun.mkdir(parents=True, exist_ok=True)
                write_json(begun / CONFIG, sealed(config.to_dict()))
                begun.rename(path)
        finally:
            shutil.rmtree(begun, ignore_errors=True)
        return cls(path)

    @classmethod
    def open(cls, path: str | Path) -> Run:
        """An existing run directory."""
        path = Path(path)
        require(path.is_dir(), f"{path} is not a run: there is no such directory.")
        require((path / CONFIG).is_file(), f"{path} is not a run: it has no {CONFIG}.")
        return cls(path)

    def resume_command(self, keep_every: int | None = None) -> str:
        """What to type to go on with it, and with keeping models on its way."""
        kept = f" --keep-every {keep_every}" if keep_every else ""
        return f"auxmod train --resume --out {shlex.quote(str(self.path))}{kept}"

    @functools.cached_property
    def config(self) -> RunConfig:
        """What was run."""
        return RunConfig.read(self.path / CONFIG)

    @property
    def result(self) -> dict[str, Any] | None:
        """The figures, or None while the run is not done."""
        stored = self.outcome
        return None if stored is None or "failed" in stored else stored

    @property
    def outcome(self) -> dict[str, Any] | None:
        """The figures, or ``failed`` and why there are none; None while the run is not done."""
        path = self.path / RESULT
        return check_scores(unsealed(read_json(path), path, self.config.hash), path) if path.exists() else None

    @property
    def provenance(self) -> dict[str, Any]:
        """On what the run was made, as far as it is known yet."""
        path = self.path / PROVENANCE
        return check_origin(unsealed(read_json(path), path), path) if path.exists() else {}

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve so far."""
        path = self.path / METRICS
        values = read_lines(path, b'{"step":') if path.exists() else []
        lines = ((f"Line {at} of {path}", value) for at, value in enumerate(values, 1))
        return check_curve([check_point(unsealed(value, where), where) for where, value in lines], path)

    def reading(self, config: RunConfig) -> Run:
        """The same run, of this configuration of the same hash from when :meth:`keep` is called."""
        made = Run(self.path)
        made.__dict__["config"] = config
        return made

    def keep(self) -> None:
        """Write the configuration, where it is not the one that is written."""
        if RunConfig.read(self.path / CONFIG) != self.config:
            write_json(self.path / CONFIG, sealed(self.config.to_dict()))

    def log(self, point: Mapping[str, Any]) -> None:
        """Add a point to the learning curve."""
        append_line(self.path / METRICS, sealed(point))

    def rewind(self, step: int) -> None:
        """Forget the curve's points after ``step``: they will be made again, alike."""
        write_lines(self.path / METRICS, (sealed(point) for point in self.curve() if point["step"] <= step))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the figures, or ``failed`` and why there are none: from now on the run is done."""
        write_json(self.path / RESULT, sealed(result, self.config.hash))

    def record(self, provenance: Mapping[str, Any]) -> None:
        """Write on what the run was made."""
        write_json(self.path / PROVENANCE, sealed(provenance))

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No other process trains this run meanwhile; what one that was killed left half written is taken away."""
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            _hold(descriptor)
        except BlockingIOError:
            os.close(descriptor)
            raise UserError(f"Another process trains the run in {self.path}: wait for it, or stop it.") from None
        except OSError as error:  # a file system without locks of directories
            if error.errno not in (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL):
                raise
        try:
            take_away((*self.path.iterdir(), *self.path.glob(f"{STEPS}/*/.*")))
            yield
        finally:
            os.close(descriptor)


def _hold(descriptor: int) -> None:
    """Lock it, or raise; what a killed process had just started may hold its lock for a moment longer."""
    for _ in range(PATIENCE):
        with contextlib.suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        time.sleep(0.05)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def take_away(paths: Iterable[Path]) -> None:
    """Delete those that a kill left half written."""
    for path in paths:
        if is_leftover(path.name):
            path.unlink(missing_ok=True)


def is_leftover(name: str) -> bool:
    """Whether a file is what a kill left of one of a run's files that was being written."""
    return any(name.startswith(f".{file}.") for file in FILES)
