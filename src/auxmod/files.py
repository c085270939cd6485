"""Files that are either the old version or the new one, whatever happens in between. Standard library only."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from auxmod.errors import UserError


def write_bytes(path: Path, content: bytes) -> None:
    """Write beside the target, flush to disk, then rename over it."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def user_named(path: Path) -> Iterator[None]:
    """Writing to a place the user named: where that cannot be done, it is a sentence."""
    try:
        yield
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): choose another --out.") from None


def write_json(path: Path, value: Any) -> None:
    """Readable JSON, written atomically."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """A JSON file's value; a missing or damaged file is a sentence."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}): restore it or make it anew.") from None


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line in a single write, so that a reader never sees half of it."""
    line = _line(value)
    with open(path, "ab", buffering=0) as file:
        file.write(line)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """A JSON-lines file, written atomically."""
    write_bytes(path, b"".join(map(_line, values)))


def _line(value: Any) -> bytes:
    return (json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode()


def read_lines(path: Path) -> list[Any]:
    """The values of a JSON-lines file; a torn last line, left by a crash, is dropped."""
    rows: list[Any] = []
    lines = path.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except ValueError:
            if number == len(lines):
                break
            raise UserError(f"Line {number} of {path} is not JSON: restore the file or delete the line.") from None
    return rows


def sha256(*parts: bytes) -> str:
    """Hexadecimal digest of the parts one after another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
