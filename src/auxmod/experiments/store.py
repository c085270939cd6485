"""Where results live: run directories, and results files of one JSON line a finished run.

Standard library only, so that tables and reports need no torch. A results file may be appended to by several
processes at once: each append happens under a lock on the file itself, which ends with the process that holds it.
Layout of a run directory:

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

import contextlib
import fcntl
import functools
import json
import os
import platform
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

from auxmod import __version__
from auxmod.config import FORMAT, RunConfig
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


# -- results files --------------------------------------------------------------------------------------------


def result_row(
    config: RunConfig,
    scores: Mapping[str, Any] | None,
    provenance: Mapping[str, Any],
    *,
    failed: str | None = None,
    validation: float | None = None,
    curve: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """A run as one line of a results file: its figures, or the sentence why there are none.

    ``validation`` is the last held-out accuracy, to choose by; ``curve`` has a few points of the learning curve.
    """
    return {
        "hash": config.hash,
        "config": config.to_dict(),
        **({"scores": dict(scores)} if failed is None and scores is not None else {"failed": failed}),
        **({} if validation is None else {"validation": validation}),
        **({"curve": list(curve)} if curve else {}),
        "provenance": dict(provenance),
    }


@contextlib.contextmanager
def locked(path: Path) -> Iterator[BinaryIO]:
    """The results file, made where it is not there, while no other process holds it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): name another --results file.") from None
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go of by closing the file, or by dying
        _mend(file)
        yield file


def _mend(file: BinaryIO) -> None:
    """A last line without its end: one that a crash tore is taken out; a whole one is ended."""
    if file.seek(0, os.SEEK_END) == 0 or file.seek(-1, os.SEEK_END) < 0 or file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.read()
    start = content.rfind(b"\n") + 1
    if _is_json(content[start:]):
        file.write(b"\n")
    else:
        file.truncate(start)
    file.flush()


def _is_json(line: bytes) -> bool:
    try:
        return json.loads(line) is not None
    except ValueError:
        return False


class Results:
    """What a results file says of each run, read on from where it was last read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.scored: set[str] = set()
        """Runs with figures."""
        self.failures: Counter[str] = Counter()
        """How often each run has failed."""
        self._offset = self._lines = 0

    def refresh(self) -> list[dict[str, Any]]:
        """The rows that have come since; a last line that is not whole, or not yet, is left for later."""
        require(not self.path.is_dir(), f"{self.path} is a directory: name a --results file.")
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            if self._offset > file.seek(0, os.SEEK_END):  # the file was cut: begin again
                self.__init__(self.path)  # type: ignore[misc]
            file.seek(self._offset)
            fresh = file.read()
        *lines, last = fresh.split(b"\n")
        rows = [self._row(number, line) for number, line in enumerate(lines, self._lines + 1)]
        self._offset, self._lines = self._offset + len(fresh) - len(last), self._lines + len(lines)
        for row in rows:
            self._count(row)
        return rows

    def append(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Add, in a single write, the rows of runs that have no figures yet; returns what was added."""
        with locked(self.path) as file:
            self.refresh()
            fresh = [row for row in rows if row["hash"] not in self.scored]
            file.write("".join(map(_line, fresh)).encode())
            file.flush()
            os.fsync(file.fileno())
            self.refresh()
        return fresh

    def _count(self, row: Mapping[str, Any]) -> None:
        if "scores" in row:
            self.scored.add(row["hash"])
        else:
            self.failures[row["hash"]] += 1

    def _row(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"Line {number} of {self.path}"
        try:
            row = json.loads(line)
        except ValueError:
            raise UserError(f"{where} is not JSON: restore the file or delete the line.") from None
        known = isinstance(row, dict) and isinstance(row.get("config"), dict) and "hash" in row
        whole = known and ("scores" in row or "failed" in row)
        require(whole, f"{where} is not a result: name another --results file.")
        version = row["config"].get("format")
        reads = f"this version of auxmod reads format {FORMAT}: name another --results file"
        require(version == FORMAT, f"{where} has format {version!r}; {reads}.")
        return row  # type: ignore[no-any-return]


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def read_results(path: Path) -> list[dict[str, Any]]:
    """A results file's rows, one a run: its figures where it has any, or else its last failure."""
    require(path.is_file(), f"There is no results file {path}.")
    rows: dict[str, dict[str, Any]] = {}
    for row in Results(path).refresh():
        if "scores" in row or "scores" not in rows.get(row["hash"], {}):
            rows[row["hash"]] = row
    return list(rows.values())


def append_result(path: Path, row: Mapping[str, Any]) -> bool:
    """Add a row, safely from several processes; False where the run has figures already."""
    return bool(Results(path).append([row]))


# -- on what a result was made --------------------------------------------------------------------------------


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
        "command": _command(sys.argv[1:]),
    }


def _command(arguments: list[str]) -> str:
    """What was typed, without the machine's directories: an absolute path is shortened to its last part."""
    return " ".join(["auxmod", *(Path(word).name if word.startswith("/") else word for word in arguments)])


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
