"""Results files: a JSON line for each run that ended, with its figures or why there are none. Standard library only.

Several processes may append to a results file at once: each append happens under a lock on the file itself, which ends
with the process that holds it. Every line has a checksum; the error for a line that does not match gives its number.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.kept import Models
from auxmod.experiments.trusted import check_row
from auxmod.files import METRICS, append, is_torn, json_line, named, parse, sealed, unsealed, user_named


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
    """Lock the results file, making it if needed, and yield it; wait while another process holds the lock."""
    unseen = f"{path} would not be seen as a results file: give its name the ending .jsonl."
    require(path.suffix == ".jsonl" or path.exists(), unseen)
    require(path.name != METRICS, f"{path} would be taken for a run's learning curve: give it another name.")
    with user_named(path, "--results file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file is closed or the process dies
        _mend(file)
        yield file


def _mend(file: BinaryIO) -> None:
    """Repair a last line without a newline: remove one of ours that a crash cut off, and end a complete one."""
    if file.seek(0, os.SEEK_END) == 0 or file.seek(-1, os.SEEK_END) < 0 or file.read(1) == b"\n":
        return
    file.seek(0)
    content = file.read()
    start = content.rfind(b"\n") + 1
    if _is_json(content[start:]):
        file.write(b"\n")
    elif is_torn(content[start:], b'{"hash":'):
        file.truncate(start)
    file.flush()


def _is_json(line: bytes) -> bool:
    try:
        return parse(line) is not None
    except ValueError:
        return False


class Results:
    """The state of each run in a results file; each read continues where the last one ended."""

    def __init__(self, path: Path, models: Models | None = None) -> None:
        self.path, self.models = path, models
        self.scored: set[str] = set()
        """Runs with figures."""
        self.failures: Counter[str] = Counter()
        """How often each run has failed since it last had figures."""
        self._offset = self._lines = 0

    def refresh(self) -> list[dict[str, Any]]:
        """Read and return the new rows, all of them if the file was cut; a last line without a newline waits."""
        require(not self.path.is_dir(), f"{self.path} is a directory: name a --results file.")
        if not self.path.exists():
            return []
        with open(self.path, "rb") as file:
            if self._offset > file.seek(0, os.SEEK_END):  # the file was cut: begin again
                self.__init__(self.path, self.models)  # type: ignore[misc]
            file.seek(self._offset)
            fresh = file.read()
        *lines, last = fresh.split(b"\n")
        rows = [self._row(number, line) for number, line in enumerate(lines, self._lines + 1)]
        if last and (_is_json(last) or not is_torn(last, b'{"hash":')):
            self._row(self._lines + len(lines) + 1, last)  # refuses what is no result, unless it is one cut off
        self._offset, self._lines = self._offset + len(fresh) - len(last), self._lines + len(lines)
        for row in rows:
            if "scores" in row:
                self.scored.add(row["hash"])
                self.failures.pop(row["hash"], None)
            else:
                self.failures[row["hash"]] += 1
        return rows

    def done(self, run: str) -> bool:
        """Whether a run has its figures, and its model if models are kept."""
        return run in self.scored and (self.models is None or self.models.has(run))

    def failed(self, run: str) -> int:
        """How often a run has failed; 0 if it is done."""
        return 0 if self.done(run) else self.failures[run]

    def append(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Append, in a single write, the rows of runs that are not done yet; return the rows added."""
        with locked(self.path) as file:
            self.refresh()
            fresh = [row for row in rows if not self.done(row["hash"])]
            with named(self.path):
                append(file.fileno(), b"".join(json_line(sealed(row)) for row in fresh))
                os.fsync(file.fileno())
            self.refresh()
        return fresh

    def _row(self, number: int, line: bytes) -> dict[str, Any]:
        where = f"Line {number} of {self.path}"
        try:
            row = parse(line)
        except ValueError:
            raise UserError(f"{where} is not JSON: restore the file or delete the line.") from None
        require(isinstance(row, dict), f"{where} is not a result: name another --results file.")
        return check_row(unsealed(row, where), where)


def read_results(path: str | Path) -> list[dict[str, Any]]:
    """A results file's rows, one per run: its last figures if it has any, or else its last failure."""
    path = Path(path)
    require(path.is_file(), f"There is no results file {path}.")
    rows: dict[str, dict[str, Any]] = {}
    learn(rows, Results(path).refresh())
    return list(rows.values())


def learn(known: dict[str, dict[str, Any]], rows: Iterable[dict[str, Any]]) -> None:
    """Update the ``known`` rows, one per run by its hash, with new ones."""
    for row in rows:
        if supersedes(row, known.get(row["hash"])):
            known[row["hash"]] = row


def supersedes(row: Mapping[str, Any], known: Mapping[str, Any] | None) -> bool:
    """Whether a row replaces an earlier one of the same run: not if it is a failure and the earlier one has figures."""
    return "scores" in row or known is None or "scores" not in known


def holds_results(path: Path) -> bool:
    """Whether a `.jsonl` file is a results file, perhaps a damaged one, rather than a log of something else.

    Rows with a `tag` are logs of trials; some of their runs have rows in a results file too.
    """
    try:
        with open(path, "rb") as file:
            row = parse(file.readline())
    except (OSError, ValueError):
        return path.name != METRICS
    return isinstance(row, dict) and not row.keys().isdisjoint(("config", "hash")) and "tag" not in row


def rows_of(configs: Iterable[RunConfig], path: Path) -> list[dict[str, Any]]:
    """A results file's rows of these runs, in their order; every run must have one."""
    rows = {row["hash"]: row for row in read_results(path)}
    return [rows[config.hash] for config in configs]
