"""Where results live: run directories, and results files of one JSON line a finished run.

Standard library only, so that tables and reports need no torch. Layout of a run directory:

| file                | what                                                              |
|---------------------|-------------------------------------------------------------------|
| `config.json`       | what was run                                                      |
| `provenance.json`   | on what: versions, commit, device, precision, command, wall time  |
| `metrics.jsonl`     | the learning curve                                                |
| `result.json`       | the figures, with chance levels; there only when the run is done  |
| `model.safetensors` | the weights                                                       |
| `state.safetensors` | optimiser and position, from which `--resume` goes on exactly     |
"""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from auxmod import __version__
from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.files import append_line, read_json, read_lines, user_named, write_json, write_lines

CONFIG, PROVENANCE, METRICS, RESULT = "config.json", "provenance.json", "metrics.jsonl", "result.json"


@dataclass(frozen=True)
class Run:
    """A run directory."""

    path: Path

    @classmethod
    def create(cls, path: Path, config: RunConfig) -> Run:
        """Make a new run directory; an existing one is never touched."""
        require(
            not path.exists(),
            f"{path} exists already: choose another --out, or add --resume to go on with the run in it.",
        )
        with user_named(path):
            path.mkdir(parents=True)
            write_json(path / CONFIG, config.to_dict())
        return cls(path)

    @classmethod
    def open(cls, path: Path) -> Run:
        """An existing run directory."""
        require(path.is_dir(), f"{path} is not a run: there is no such directory.")
        require((path / CONFIG).is_file(), f"{path} is not a run: it has no {CONFIG}.")
        return cls(path)

    @property
    def config(self) -> RunConfig:
        """What was run."""
        try:
            return RunConfig.from_dict(read_json(self.path / CONFIG))
        except UserError as error:
            raise UserError(f"{self.path / CONFIG}: {error}") from None

    @property
    def result(self) -> dict[str, Any] | None:
        """The figures, or None while the run is not done."""
        path = self.path / RESULT
        return read_json(path) if path.exists() else None

    def curve(self) -> list[dict[str, Any]]:
        """The learning curve so far."""
        path = self.path / METRICS
        return read_lines(path) if path.exists() else []

    def log(self, point: Mapping[str, Any]) -> None:
        """Add a point to the learning curve."""
        append_line(self.path / METRICS, point)

    def rewind(self, step: int) -> None:
        """Forget the curve's points after ``step``: they will be made again, alike."""
        write_lines(self.path / METRICS, (point for point in self.curve() if point["step"] <= step))

    def finish(self, result: Mapping[str, Any]) -> None:
        """Write the figures: from now on the run is done."""
        write_json(self.path / RESULT, result)

    def record(self, provenance: Mapping[str, Any]) -> None:
        """Write on what the run was made."""
        write_json(self.path / PROVENANCE, provenance)


def result_row(config: RunConfig, scores: Mapping[str, Any], provenance: Mapping[str, Any]) -> dict[str, Any]:
    """A finished run as one line of a results file."""
    return {
        "hash": config.hash,
        "config": config.to_dict(),
        "scores": dict(scores),
        "provenance": dict(provenance),
    }


def provenance(*, device: str, precision: str, seconds: float, members: int = 1) -> dict[str, Any]:
    """On what a result was made. ``members`` is how many runs shared the device in one ensemble."""
    return {
        "auxmod": __version__,
        "commit": commit(),
        "torch": metadata.version("torch"),
        "numpy": metadata.version("numpy"),
        "python": platform.python_version(),
        "device": device,
        "precision": precision,
        "members": members,
        "seconds": round(seconds, 3),
        "command": " ".join(["auxmod", *sys.argv[1:]]),
    }


@functools.cache
def commit() -> str | None:
    """The commit of the source tree this runs from, with a + where it was changed; None where it is not one.

    `AUXMOD_COMMIT` names it where the tree was copied without its history.
    """
    if named := os.environ.get("AUXMOD_COMMIT"):
        return named
    here = Path(__file__).parents[1]

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        if git("ls-files", "--error-unmatch", __file__) == "":
            return None
        return git("rev-parse", "--short=12", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.SubprocessError):
        return None
