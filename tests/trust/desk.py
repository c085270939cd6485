"""Run commands in this process as a user would, and damage files. An exception that escapes fails the test."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass
from unittest import mock

from auxmod.cli import main


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


def call(*words: str, stdin: str = "") -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with mock.patch("sys.stdin", io.StringIO(stdin)), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(list(words))
        except SystemExit as end:  # --help and --version
            code = int(end.code or 0)
    return Outcome(code, out.getvalue(), err.getvalue())


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def damages(content: bytes, bits: list[int]) -> Iterator[tuple[str, bytes]]:
    """Yield a file's damaged versions with their names: cut, emptied, overwritten, doubled, foreign, a bit flipped."""
    yield "empty", b""
    for share in (1, 10, 50, 90, 99):
        yield f"cut to {share} %", content[: len(content) * share // 100]
    yield "without its last byte", content[:-1]
    yield "zeros", bytes(len(content))
    yield "twice", content * 2
    for other in (b"[]", b"{}", b"null", b"7", b'"x"', b"\xff\xfe", b"[" * 100_000, b"9" * 5000, b'{"sum": NaN}'):
        yield f"{other[:12]!r}", other
    for bit in bits:
        yield f"bit {bit}", flipped(content, bit % (8 * len(content)))
