"""Results files: a JSON line for each run that ended, with its figures or why there are none. Standard library only.

A results file may be appended to by several processes at once: each append happens under a lock on the file itself,
which ends with the process that holds it. Every line has a checksum; one that does not match is refused by its number.
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
    """The results file, made where it is not there, while no other process holds it."""
    with user_named(path, "--results file"):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = open(path, "a+b")  # noqa: SIM115
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)  # let go of by closing the file, or by dying
        _mend(file)
        yield file


def _mend(file: BinaryIO) -> None:
    """A last line without its end: one of ours that a crash tore is taken out; a whole one is ended."""
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
    """What a results file says of each run, read on from where it was last read."""

    def __init__(self, path: Path, models: Models | None = None) -> None:
        self.path, self.models = path, models
        self.scored: set[str] = set()
        """Runs with figures."""
        self.failures: Counter[str] = Counter()
        """How often each run has failed, since it last had figures."""
        self._offset = self._lines = 0

    def refresh(self) -> list[dict[str, Any]]:
        """The rows that have come since; a last line that is not whole, or not yet, is left for later."""
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
            self._row(self._lines + len(lines) + 1, last)  # whole, and of ours, or a sentence
        self._offset, self._lines = self._offset + len(fresh) - len(last), self._lines + len(lines)
        for row in rows:
            if "scores" in row:
                self.scored.add(row["hash"])
                self.failures.pop(row["hash"], None)
            else:
                self.failures[row["hash"]] += 1
        return rows

    def done(self, run: str) -> bool:
        """Whether a run has its figures; and its models, where these are kept."""
        return run in self.scored and (self.models is None or self.models.has(run))

    def failed(self, run: str) -> int:
        """How often a run that is not done has failed."""
        return 0 if self.done(run) else self.failures[run]

    def append(self, rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Add, in a single write, the rows of runs that are not done yet; returns what was added."""
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
    """A results file's rows, one a run: its figures where it has any, or else its last failure."""
    path = Path(path)
    require(path.is_file(), f"There is no results file {path}.")
    rows: dict[str, dict[str, Any]] = {}
    learn(rows, Results(path).refresh())
    return list(rows.values())


def learn(known: dict[str, dict[str, Any]], rows: Iterable[dict[str, Any]]) -> None:
    """Add rows to what is known of their runs."""
    for row in rows:
        if supersedes(row, known.get(row["hash"])):
            known[row["hash"]] = row


def supersedes(row: Mapping[str, Any], known: Mapping[str, Any] | None) -> bool:
    """Whether a row counts in place of one known before of the same run: the later does, but no failure for figures."""
    return "scores" in row or known is None or "scores" not in known


def holds_results(path: Path) -> bool:
    """Whether a `.jsonl` file is one of results, if perhaps a damaged one, and not a log of other things.

    Rows with a `tag` are of trials, some of whose runs have results of their own.
    """
    try:
        with open(path, "rb") as file:
            row = parse(file.readline())
    except (OSError, ValueError):
        return path.name != METRICS
    return isinstance(row, dict) and not row.keys().isdisjoint(("config", "hash")) and "tag" not in row


def rows_of(configs: Iterable[RunConfig], path: Path) -> list[dict[str, Any]]:
    """A results file's rows of these runs, in their order."""
    rows = {row["hash"]: row for row in read_results(path)}
    return [rows[config.hash] for config in configs]
