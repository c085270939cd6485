"""Tests of inputs that a user gives: taken as they are, or refused in words."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from auxmod.config import Problem, RunConfig
from auxmod.errors import UserError
from auxmod.problem.rows import check_rows, given_rows, parse_rows, parted, read_npz
from auxmod.settings import build

PROBLEM = Problem(n=3, q=10)


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3],
        [[1, 2, 3]],
        [1.0, 2.0, 3.0],
        np.array([1, 2, 3], dtype=np.uint8),
        np.array([3, 2, 1])[::-1],
        torch.tensor([[1, 2, 3]], dtype=torch.int32),
        np.array([1, 2, 3], dtype=object),
    ],
)
def test_whole_numbers_of_any_kind_are_taken(x: Any) -> None:
    rows = check_rows(x, PROBLEM)
    assert rows.dtype == np.int64
    assert rows.tolist() == [[1, 2, 3]]


def test_the_smallest_and_the_largest_number_are_taken() -> None:
    assert check_rows([0, 9, 0], PROBLEM).tolist() == [[0, 9, 0]]


@pytest.mark.parametrize(
    ("x", "words"),
    [
        ([1, 2], "must have 3 numbers; these have shape 1×2"),
        ([[1, 2, 3], [1, 2]], "rows of equal length"),
        ([[[1, 2, 3]]], "shape 1×1×3"),
        ([1, 2, 10], r"lie in 0..9; found 10"),
        ([1, 2, -1], "found -1"),
        ([1, 2, 2.5], "whole numbers"),
        ([1, 2, float("nan")], "whole numbers"),
        ([1, 2, float("inf")], "found inf"),
        ([1, 2, 10**30], r"lie in 0..9; found 1000000000000000000000000000000: take them mod 10\."),
        ([1, 2, -(10**30)], "found -1000000000000000000000000000000"),
        ([1, 2.5, 10**30], "whole numbers"),
        (["1", "2", "3"], "whole numbers"),
        ([True, False, True], "whole numbers"),
        (None, "whole numbers"),
        (np.ma.array([1, 2, 3], mask=[0, 0, 1]), "Some of the inputs are masked"),
        ([np.ma.array([1, 2, 3], mask=[0, 0, 1])], "Some of the inputs are masked"),
        ([[1, 2, 3], np.ma.array([1, 2, 3], mask=[0, 0, 1])], "Some of the inputs are masked"),
        (torch.ones(3, dtype=torch.bfloat16), "cannot be read .*BFloat16.*: give whole numbers"),
        (torch.ones(3, device="meta"), "cannot be read .*meta.*: give whole numbers"),
    ],
)
def test_anything_else_is_refused_in_words(x: Any, words: str) -> None:
    with pytest.raises(UserError, match=words):
        check_rows(x, PROBLEM)


def save(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def test_a_file_with_and_without_answers(tmp_path: Path) -> None:
    x = np.array([[1, 2, 3], [9, 9, 9]])
    assert read_npz(save(tmp_path / "a.npz", x=x), PROBLEM).tolist() == x.tolist()
    assert read_npz(save(tmp_path / "b.npz", x=x, y=[6, 7]), PROBLEM).tolist() == x.tolist()


def test_files_that_are_wrong_say_how(tmp_path: Path) -> None:
    x = [[1, 2, 3], [9, 9, 9]]
    cases: dict[str, Any] = {
        "has no array x; it has: z": save(tmp_path / "a.npz", z=x),
        "in 1 of its rows": save(tmp_path / "b.npz", x=x, y=[6, 8]),
        "one number a row of x, 2 in all, but has shape (1,)": save(tmp_path / "c.npz", x=x, y=[6]),
        "2 in all, but has shape (2, 1)": save(tmp_path / "f.npz", x=x, y=[[6], [7]]),
        "y must be numbers, but is of type <U1": save(tmp_path / "g.npz", x=x, y=["6", "7"]),
        "found 12": save(tmp_path / "d.npz", x=[[1, 2, 12]]),
        "Object arrays": save(tmp_path / "e.npz", x=np.array([{"a": 1}], dtype=object)),
        "There is no file": tmp_path / "none.npz",
    }
    for words, path in cases.items():
        with pytest.raises(UserError) as caught:
            read_npz(path, PROBLEM)
        assert words in str(caught.value)


@pytest.mark.parametrize("how", ["text", "cut", "flipped", "npy", "empty", "directory"])
def test_a_damaged_file_is_refused_in_words(tmp_path: Path, how: str) -> None:
    path, good, array = tmp_path / "x.npz", io.BytesIO(), io.BytesIO()
    np.savez_compressed(good, x=np.arange(300).reshape(100, 3) % 10)
    np.save(array, np.zeros((4, 3), dtype=np.int64))
    content = {
        "text": b"1,2,3\n",
        "cut": good.getvalue()[:-30],
        "flipped": good.getvalue()[:60] + bytes(b ^ 255 for b in good.getvalue()[60:80]) + good.getvalue()[80:],
        "npy": array.getvalue(),
        "empty": b"",
    }
    path.mkdir() if how == "directory" else path.write_bytes(content[how])
    with pytest.raises(UserError, match=r"cannot be read as an .npz file"):
        read_npz(path, PROBLEM)


def test_rows_of_text() -> None:
    assert parse_rows(["1,2,3", "", " 4 5  6 ", "7, 8, 9"], PROBLEM).tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
    for lines, words in ((["a,b,c"], "whole numbers"), ([""], "no rows"), (["1,2"], "3 numbers"), (["1.5 2 3"], "1.5")):
        with pytest.raises(UserError, match=words):
            parse_rows(lines, PROBLEM)
    with pytest.raises(UserError, match=r"but line 3 has others \(.*'c'\)\."):
        parse_rows(["1 2 3", "", "4 5 c"], PROBLEM)
    with pytest.raises(UserError, match=r"Each row must have 3 numbers; row 2 has 4\."):
        parse_rows(["1 2 3", "1 2 3 4", "1 2"], PROBLEM)


def run(samples: int = 2, **settings: Any) -> RunConfig:
    return build(n=3, q=10, samples=samples, batch=1, **settings)


def test_own_rows_are_checked_and_drawn_ones_are_none(tmp_path: Path) -> None:
    x = [[1, 2, 3], [9, 9, 9]]
    first, second, third = given_rows([x, None, x], [run(), run(), run()])
    assert second is None
    assert first is not None
    assert first.tolist() == x
    assert first is third, "checked once"
    assert given_rows(None, [run()]) == [None]
    whole = given_rows(np.array([x, x]), [run(), run()])
    assert [rows.tolist() for rows in whole if rows is not None] == [x, x]

    class Made(Sequence[Any]):
        """A sequence that makes each item anew, so that nothing else holds it."""

        def __len__(self) -> int:
            return 6

        def __getitem__(self, at: Any) -> Any:
            if at >= 6:
                raise IndexError
            return np.full((2, 3), at).tolist()

    made = given_rows(Made(), [run()] * 6)
    assert [rows[0, 0] for rows in made if rows is not None] == list(range(6))
    for data, config, words in (
        ([x], run(samples=3), "The run has 3 samples, but 2 rows are given."),
        ([[[1, 2, 99], [1, 2, 3]]], run(), r"lie in 0\.\.9; found 99"),
        ([[[1, 2, 2.7], [1, 2, 3]]], run(), "must be whole numbers"),
        ([None], run(data="mine.npz"), "The run trains on the rows of mine.npz: give them as data."),
        (None, run(data="mine.npz"), "trains on the rows of mine.npz"),
    ):
        with pytest.raises(UserError, match=words):
            given_rows(data, [config])


def test_every_tenth_row_is_held_out() -> None:
    rows = np.arange(46).reshape(23, 2)
    held_out, others = parted(rows)
    assert held_out.tolist() == rows[[0, 10, 20]].tolist()
    assert others.tolist() == [row for at, row in enumerate(rows.tolist()) if at % 10]
