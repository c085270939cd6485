"""Read and write files; a write leaves the old version or the new one, never half. Standard library and `errors`."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from auxmod.errors import UserError, require

CONFIG, MODEL = "config.json", "model.safetensors"
"""The two files of a model: its configuration and its weights."""
STATE, METRICS, RESULT, PROVENANCE = "state.safetensors", "metrics.jsonl", "result.json", "provenance.json"
"""A run's other files: its state for resuming, its learning curve, its figures, and what it was made on."""
STEPS = "steps"
"""The subdirectory for models kept during training, each in a directory named by its step."""
MODELS = ".models"
"""Suffix that turns a results file's name into that of the directory of its runs' models."""
SUM = "sum"
"""The key under which a JSON object keeps the checksum of the rest of it."""


def models_of(results: Path) -> Path:
    """The directory beside a results file that keeps its runs' models."""
    return results.with_name(results.name + MODELS)


def is_models(directory: Path) -> bool:
    """Whether a directory keeps the models of a results file beside it."""
    file = directory.name.removesuffix(MODELS)
    return file not in ("", directory.name) and directory.with_name(file).is_file()


def holds_training(directory: Path) -> bool:
    """Whether a directory has other files of a run than its model."""
    return any((directory / name).exists() for name in (METRICS, RESULT, STATE))


def path_of(place: Any, name: str) -> Path:
    """A place that a program names as a path; anything else, or one that no system has, is a UserError."""
    text = os.fspath(place) if isinstance(place, str | os.PathLike) else ""
    try:
        able = isinstance(text, str) and text != "" and b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        able = False
    require(able, f"{name} is {place!r}, but must be a path.")
    long = f"{name} is a name of {len(str(text)):,} characters, beginning with {str(text)[:40]!r}: give a shorter one."
    require(all(len(os.fsencode(part)) < 256 for part in Path(text).parts) and len(os.fsencode(text)) < 4096, long)
    return Path(text)


def check_apart(place: Path) -> None:
    """Refuse a place that is a run's directory, or lies among the models that a run or a sweep keeps."""
    here = place.resolve()
    for each in (here, *here.parents):
        run = holds_training(each) and (each == here or here.is_relative_to(each / STEPS))
        what = "a run" if run else "the models of a sweep"
        require(not (run or is_models(each)), f"{each} holds {what}: choose a directory outside it, not {place}.")


def write_bytes(path: Path, content: bytes) -> None:
    """Write a temporary file beside the target, flush it to disk, then rename it over the target."""
    with named(path):
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            with open(temporary, "xb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise


def append(descriptor: int, content: bytes) -> None:
    """Append all of ``content`` in a single write; if the disk is full, append nothing and raise OSError."""
    before = os.lseek(descriptor, 0, os.SEEK_END)
    if os.write(descriptor, content) != len(content):
        os.ftruncate(descriptor, before)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextlib.contextmanager
def named(path: Path) -> Iterator[None]:
    """Make an OSError inside the block name this file, rather than a temporary one beside it or none."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


FAULTS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO)
"""Errors that are the machine's fault rather than a mistake of the user."""


@contextlib.contextmanager
def user_named(path: Path, flag: str = "--out") -> Iterator[None]:
    """Make an OSError on a path the user named a sentence: still an OSError if in :data:`FAULTS`, else a UserError."""
    try:
        yield
    except OSError as error:
        sentence = f"{path} cannot be written ({error.strerror}): choose another {flag}."
        raise (OSError(sentence) if error.errno in FAULTS else UserError(sentence)) from None


def check_free(path: Path, force: bool, flag: str = "--out") -> None:
    """Refuse a file that :func:`write_named` could not or should not write, before minutes of work, not after."""
    there = next((folder for folder in path.parents if folder.exists()), Path())
    require(there.is_dir(), f"{flag} is {str(path)!r}, but {str(there)!r} is a file: choose another {flag}.")
    require(not path.is_dir(), f"{flag} is {str(path)!r}, which is a directory: name a file.")
    free = force or not path.exists()
    require(free, f"{path} exists already: choose another {flag}, or add --force to overwrite it.")


def write_named(path: Path, content: bytes, flag: str = "--out") -> None:
    """Write a file that the user named; make its directory if needed."""
    with user_named(path, flag):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, content)


def write_json(path: Path, value: Any) -> None:
    """Write readable JSON atomically."""
    write_bytes(path, json_bytes(value))


def json_bytes(value: Any) -> bytes:
    """A value as readable JSON."""
    return _utf8(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def _utf8(text: str) -> bytes:
    """JSON as bytes; what is no Unicode, as a name of a file may hold, is escaped, and is read back as it was."""
    return text.encode("utf-8", "backslashreplace")


def parse(text: str | bytes) -> Any:
    """Parse standard JSON, so without NaN; any fault in it raises ValueError."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def read_json(path: Path) -> Any:
    """Read a JSON file; a missing or damaged one raises :class:`UserError`."""
    try:
        return parse(path.read_bytes())
    except FileNotFoundError:
        raise UserError(f"There is no file {path}.") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON ({error}): restore it or make it anew.") from None


def read_toml(path: Path, flag: str) -> dict[str, Any]:
    """Read a TOML file; if it cannot be read, the :class:`UserError` names the flag it was given with."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{flag} {path} cannot be read ({error}).") from None


def sealed(value: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Add a checksum of the object and of ``of``; with a run's hash there, another run's file does not pass for its."""
    return {**value, SUM: _checksum(value, of)}


def unsealed(value: Any, where: object, of: str = "") -> dict[str, Any]:
    """Verify and remove the checksum of :func:`sealed`; accept an object that never had one as it is."""
    require(isinstance(value, dict), f"{where} is not a JSON object: restore it or make it anew.")
    rest = {name: part for name, part in value.items() if name != SUM}
    whole = value[SUM] == _checksum(rest, of) if SUM in value else not any(_is_checksum(part) for part in rest.values())
    require(whole, f"{where} does not match its checksum, so it is damaged or of another run: restore it or delete it.")
    return rest


def _is_checksum(part: Any) -> bool:
    """Whether a value looks like a checksum, which has then lost its key to damage."""
    return isinstance(part, str) and re.fullmatch(r"[0-9a-f]{16}", part) is not None


def _checksum(value: Mapping[str, Any], of: str) -> str:
    return sha256(of.encode(), json.dumps(value, sort_keys=True, separators=(",", ":")).encode())[:16]


def append_line(path: Path, value: Any) -> None:
    """Append one JSON line in a single write: a reader never sees half of it, and a full disk gets none of it."""
    line = json_line(value)
    with named(path), open(path, "ab", buffering=0) as file:
        append(file.fileno(), line)


def write_lines(path: Path, values: Iterable[Any]) -> None:
    """Write a JSON-lines file atomically."""
    write_bytes(path, b"".join(map(json_line, values)))


def json_line(value: Any) -> bytes:
    """A value as one line of a JSON-lines file."""
    return _utf8(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n")


def read_lines(path: Path, first: bytes = b"{") -> list[Any]:
    """Read a JSON-lines file whose lines begin with ``first``; skip a torn last line."""
    rows: list[Any] = []
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
        try:
            rows.append(parse(line))
        except ValueError:
            if is_torn(line, first):
                break
            raise UserError(f"Line {number} of {path} is not JSON: restore the file or delete the line.") from None
    return rows


def is_torn(line: bytes, first: bytes) -> bool:
    """Whether a line that is not JSON may be one of ours, cut off: it begins like ``first`` and has no newline."""
    return line[: len(first)] == first[: len(line)] and not line.endswith(b"\n")


def sha256(*parts: bytes | memoryview) -> str:
    """Hexadecimal SHA-256 digest of the parts, one after another."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
