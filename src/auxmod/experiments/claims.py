"""Locks and plans beside a results file: who trains what when several processes do. Standard library only.

Beside `sweep.jsonl` lies `sweep.jsonl.d/`. For each ensemble in training it has a claim, `<digest>.lock`, which names
the runs and is locked by their process, and the saved state, `<digest>.safetensors`. The operating system unlocks a
claim when its process dies, however it dies; another process may then go on from the state. `plan` has the
configurations of all runs to be trained, of a search as far as it has asked for them, for those who watch.

Hold `results_file.locked(results)` while calling :func:`take`, :func:`announce`, :func:`held` or :func:`tidy`, and
while choosing what to claim from :func:`unfinished`. The other functions and a `Claim`'s methods need no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxmod.errors import UserError, require
from auxmod.files import append, parse, sha256, unsealed, write_bytes

STATE, LOCK, PLAN = ".safetensors", ".lock", "plan"
DIGEST = "[0-9a-f]" * 16
"""The pattern of claims' names; other files, which a directory from elsewhere may hold, are left alone."""
LONGEST = 100_000_000
"""The longest header that a safetensors file may have, in bytes."""


def directory_of(results: Path) -> Path:
    """The directory that holds the work on a results file until it is done."""
    return results.with_name(f"{results.name}.d")


@dataclass(frozen=True)
class Claim:
    """An ensemble that this process trains and no other does."""

    members: tuple[str, ...]
    place: Path
    """The path of its files, without their suffixes."""
    descriptor: int

    @property
    def state(self) -> Path:
        return self.place.with_suffix(STATE)

    def release(self) -> None:
        """Let other processes claim it."""
        self.place.with_suffix(LOCK).unlink(missing_ok=True)
        os.close(self.descriptor)

    def forget(self) -> None:
        """Delete the saved state, and what a killed process left half written."""
        self.state.unlink(missing_ok=True)
        for path in self.place.parent.glob(f".{self.place.name}.*"):
            path.unlink(missing_ok=True)


def _make(directory: Path) -> None:
    require(not directory.is_symlink(), f"{directory} is a link, and might lead anywhere: delete it.")
    require(directory.is_dir() or not directory.exists(), f"{directory} is a file where a directory must be: move it.")
    directory.mkdir(exist_ok=True)


def take(directory: Path, members: Sequence[str]) -> Claim:
    """Claim an ensemble; if another process trains it too, as searches with few choices may, in another place."""
    _make(directory)
    for others in itertools.count():
        place = directory / sha256(",".join([*members, *others * ["again"]]).encode())[:16]
        descriptor = os.open(place.with_suffix(LOCK), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            os.close(descriptor)
    claim = Claim(tuple(members), place, descriptor)
    try:
        os.ftruncate(descriptor, 0)
        append(descriptor, json.dumps(list(members)).encode())
    except OSError:
        claim.release()
        raise
    return claim


def announce(directory: Path, cells: Mapping[str, Any], without: Collection[str] = ()) -> None:
    """Add configurations, by their hashes, to the plan of what is to be trained; take out those ``without``."""
    _make(directory)
    before = {run: cell for run, cell in planned(directory).items() if run not in without}
    write_bytes(directory / PLAN, json.dumps(before | dict(cells)).encode())


def planned(directory: Path) -> dict[str, Any]:
    """The configurations that processes have announced; empty if there are none."""
    with contextlib.suppress(OSError, ValueError):
        if isinstance(cells := parse((directory / PLAN).read_bytes()), dict):
            return cells
    return {}


def watched(results: Path) -> set[str] | None:
    """The runs in training; None while the file is in use. For those who only look."""
    members: set[str] = set()
    with open(results, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # so that no claim is taken while this tests them
        except BlockingIOError:
            return None
        for _, said in _made(directory_of(results)):
            if said is not None:
                with contextlib.suppress(ValueError):
                    members.update(_names(parse(said)))
    return members


def held(directory: Path) -> set[str]:
    """The runs that living processes train; deletes the claims of dead ones."""
    members: set[str] = set()
    for path, said in _made(directory):
        if said is None:
            path.unlink(missing_ok=True)
            continue
        try:
            members.update(_names(parse(said)))
        except ValueError:
            stop = "stop the process that holds it, delete it, and give the same command again"
            raise UserError(f"{path}, which says what a process trains, is damaged: {stop}.") from None
    return members


def _made(directory: Path) -> Iterator[tuple[Path, bytes | None]]:
    """Every claim with its content, or with None if the process that made it is dead."""
    for path in directory.glob(DIGEST + LOCK):
        with contextlib.suppress(FileNotFoundError), open(path, "rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                yield path, file.read()
            else:
                yield path, None


def _names(value: Any) -> list[str]:
    if not (isinstance(value, list) and all(isinstance(name, str) for name in value)):
        raise ValueError("not a list of names")
    return value


def account(state: Path) -> Any:
    """A saved ensemble's account of itself, from the header of its file: a length, then JSON of that length."""
    try:
        with open(state, "rb") as file:
            header = parse(file.read(min(int.from_bytes(file.read(8), "little"), LONGEST)))
        return parse(header["__metadata__"]["run"].split(" ", 2)[2])
    except (LookupError, TypeError, AttributeError):
        raise ValueError(f"{state} has no account") from None


def _saved(directory: Path) -> Iterator[tuple[Path, tuple[str, ...], bool]]:
    """The saved ensembles, each with its runs and whether their models are kept; other files are skipped."""
    for path in states(directory):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            said = account(path)
            yield path, tuple(_names(said["members"])), bool(said.get("models"))


def states(directory: Path) -> list[Path]:
    """The files of saved ensembles."""
    return sorted(directory.glob(DIGEST + STATE))


def unfinished(directory: Path) -> Iterator[tuple[str, ...]]:
    """The runs of each ensemble that was saved and is not finished."""
    return (members for _, members, _ in _saved(directory))


def stopped(results: Path, finished: Collection[str]) -> list[tuple[int, int]]:
    """How many runs are left in each saved ensemble that nobody trains now, and its step. For those who only look."""
    going, found = watched(results), []
    if going is None:  # the process that holds the file may be about to claim them
        return []
    for path in states(directory_of(results)):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, UserError):
            said = unsealed(account(path), path)
            left = set(_names(said["members"])) - set(_names(said["gone"]))
            if left - set(finished) and not going & left:
                found.append((len(left - set(finished)), int(said["step"])))
    return found


def tidy(directory: Path, finished: Collection[str], modelled: Callable[[str], bool] = lambda run: False) -> None:
    """Delete the saved ensembles whose runs are all finished; if nobody trains, also the plan and an empty directory.

    If the models of an ensemble's runs are kept, it is deleted only once each run is ``modelled``.
    """
    taken = held(directory)
    for path, members, models in _saved(directory):
        over = set(members) <= set(finished) and (not models or all(map(modelled, members)))
        if over and taken.isdisjoint(members):
            path.unlink(missing_ok=True)
    if taken:  # another sweep trains other cells into the same file
        return
    for path in (directory / PLAN, *directory.glob(f".{PLAN}.*"), *directory.glob(f".{DIGEST}.*")):
        path.unlink(missing_ok=True)  # also what a killed process left half written
    with contextlib.suppress(OSError):
        directory.rmdir()
