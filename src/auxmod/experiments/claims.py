"""Who trains what, where several processes sweep into one results file. Standard library only.

Beside `sweep.jsonl` lies `sweep.jsonl.d/`: for each ensemble in training a claim, `<digest>.lock`, which names its
runs and is locked by its process, and what it needs to go on, `<digest>.json` and `<digest>.safetensors`. The
operating system unlocks a claim when its process dies, however it dies; whoever finds it so may go on from there.
Call these functions while holding `store.locked(results)`, except :meth:`Claim.release`.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from auxmod.files import sha256

LOG, STATE, LOCK = ".json", ".safetensors", ".lock"


def directory_of(results: Path) -> Path:
    """Where the work on a results file lies until it is done."""
    return results.with_name(f"{results.name}.d")


@dataclass(frozen=True)
class Claim:
    """An ensemble that this process trains, and no other."""

    members: tuple[str, ...]
    place: Path
    """Its files, but for their endings."""
    descriptor: int

    @property
    def log(self) -> Path:
        return self.place.with_suffix(LOG)

    @property
    def state(self) -> Path:
        return self.place.with_suffix(STATE)

    def release(self) -> None:
        """Let others have it."""
        self.place.with_suffix(LOCK).unlink(missing_ok=True)
        os.close(self.descriptor)

    def forget(self) -> None:
        """Delete what it would go on from."""
        self.state.unlink(missing_ok=True)  # first: a state without its log is never read
        self.log.unlink(missing_ok=True)


def take(directory: Path, members: Sequence[str]) -> Claim:
    """Claim an ensemble that :func:`held` says is free."""
    directory.mkdir(exist_ok=True)
    place = directory / sha256(",".join(members).encode())[:16]
    descriptor = os.open(place.with_suffix(LOCK), os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o644)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.write(descriptor, json.dumps(list(members)).encode())
    return Claim(tuple(members), place, descriptor)


def held(directory: Path) -> set[str]:
    """The runs that living processes train; the claims of dead ones are taken away."""
    members: set[str] = set()
    for path in directory.glob(f"*{LOCK}"):
        with contextlib.suppress(FileNotFoundError), open(path, "r+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                members.update(json.loads(file.read()))
            else:
                path.unlink(missing_ok=True)
    return members


def unfinished(directory: Path) -> Iterator[tuple[str, ...]]:
    """The ensembles that were saved and not finished."""
    for path in sorted(directory.glob(f"*{LOG}")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if path.with_suffix(STATE).exists():
                yield tuple(json.loads(path.read_text())["members"])


def tidy(directory: Path, finished: Collection[str]) -> None:
    """Delete the saved ensembles whose runs are all finished, and the directory once it is empty."""
    for path in directory.glob(f"*{LOG}"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            if set(json.loads(path.read_text())["members"]) <= set(finished):
                path.with_suffix(STATE).unlink(missing_ok=True)
                path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        directory.rmdir()
