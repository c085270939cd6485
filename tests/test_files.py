"""Tests of `files`: a write leaves the old version or the new one; damaged files and bad places give a sentence."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxmod import files
from auxmod.errors import UserError
from auxmod.files import (
    append_line,
    check_free,
    read_json,
    read_lines,
    sha256,
    user_named,
    write_bytes,
    write_json,
    write_lines,
    write_named,
)


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, broken, fail)
    with pytest.raises(OSError, match="no space"):
        write_bytes(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_the_new_file_replaces_the_old(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_bytes(path, b"old")
    write_bytes(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["file"]


def test_a_file_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    for mask, mode in ((0o077, 0o600), (0o027, 0o640), (0o022, 0o644)):
        before = os.umask(mask)
        try:
            write_bytes(tmp_path / "file", b"")
        finally:
            os.umask(before)
        assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_json_round_trip(tmp_path: Path) -> None:
    value = {"τ": [1, 2.5, None, "x"]}
    write_json(tmp_path / "v.json", value)
    assert read_json(tmp_path / "v.json") == value
    assert "τ" in (tmp_path / "v.json").read_text()


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b""])
def test_damaged_json_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "v.json"
    path.write_bytes(content)
    with pytest.raises(UserError, match="cannot be read as JSON"):
        read_json(path)
    with pytest.raises(UserError, match="There is no file"):
        read_json(tmp_path / "other.json")


@given(st.lists(st.dictionaries(st.text(max_size=3), st.floats(allow_nan=False, allow_infinity=False)), max_size=5))
def test_lines_round_trip(tmp_path_factory: pytest.TempPathFactory, values: list[Any]) -> None:
    path = tmp_path_factory.mktemp("lines") / "v.jsonl"
    write_lines(path, values)
    assert read_lines(path) == values
    append_line(path, {"last": 1})
    assert read_lines(path) == [*values, {"last": 1}]
    assert path.read_bytes().count(b"\n") == len(values) + 1


def test_a_torn_last_line_is_dropped_and_a_torn_middle_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text('{"step":1}\n{"step":2}\n{"st')
    assert read_lines(path) == [{"step": 1}, {"step": 2}]
    path.write_text('{"step":1}\n{"st\n{"step":3}\n')
    with pytest.raises(UserError, match="Line 2 of"):
        read_lines(path)


def test_lines_are_json_that_any_program_reads(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        append_line(tmp_path / "v.jsonl", {"loss": float("nan")})
    assert not (tmp_path / "v.jsonl").exists()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "file" / "below"
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"below cannot be written .*choose another --out\.$"), user_named(place):
        place.mkdir(parents=True)


def test_digest() -> None:
    assert sha256(b"ab", b"c") == hashlib.sha256(b"abc").hexdigest()


def test_the_names_of_a_runs_weights_are_written_in_one_place() -> None:
    sources = Path(files.__file__).parent.rglob("*.py")
    written = [path.name for path in sources for name in (files.MODEL, files.STATE) if f'"{name}"' in path.read_text()]
    assert written == ["files.py"] * 2


def test_a_file_the_user_names_is_checked_as_it_will_be_written(tmp_path: Path) -> None:
    new = tmp_path / "not" / "there" / "page.html"
    check_free(new, force=False)
    write_named(new, b"page")
    assert new.read_bytes() == b"page"
    with pytest.raises(UserError, match="exists already: choose another --plot, or add --force"):
        check_free(new, force=False, flag="--plot")
    check_free(new, force=True)
    for path in (new / "below", new / "far" / "below"):
        with pytest.raises(UserError, match=r"page.html' is a file: choose another --out"):
            check_free(path, force=True)
    with pytest.raises(UserError, match="is a directory: name a file"):
        check_free(new.parent, force=True)
    check_free(Path("here.html"), force=False)
