"""Inputs that a user gives, from Python, a file or standard input: whole numbers in 0..q−1, N a row, or a sentence."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from auxmod.checked import is_int
from auxmod.config import Problem
from auxmod.errors import UserError, require

Rows = np.ndarray[Any, np.dtype[np.int64]]


def check_rows(x: Any, problem: Problem) -> Rows:
    """Given inputs, anything numpy understands, as int64 (B, N)."""
    try:
        rows = np.atleast_2d(np.asarray(x))
    except ValueError:
        rows = np.asarray(None)
    if not (rows.dtype.kind == "O" and all(map(is_int, rows.flat))):  # these may pass 64 bits
        require(
            rows.dtype.kind in "iu" or (rows.dtype.kind == "f" and bool(np.all(rows == np.floor(rows)))),
            "The inputs must be whole numbers, in rows of equal length.",
        )
    require(
        rows.ndim == 2 and rows.shape[1] == problem.n,
        f"Each row must have {problem.n} numbers; these have shape {'×'.join(map(str, rows.shape))}.",
    )
    outside = rows[(rows < 0) | (rows >= problem.q)]
    require(
        outside.size == 0, f"The inputs must lie in 0..{problem.q - 1}; found {outside[0] if outside.size else ''}."
    )
    return rows.astype(np.int64)


def read_npz(path: Path, problem: Problem) -> Rows:
    """The array x of an .npz file, checked; where there is an array y, it must be the sums of x mod q."""
    require(path.exists(), f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:  # np.load alone would take other files for arrays, and fail later
            archive.namelist()
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except Exception as error:  # a damaged archive may lead zipfile, zlib and numpy to any of many kinds
        raise UserError(f"{path} cannot be read as an .npz file ({error}).") from None
    require("x" in arrays, f"{path} has no array x; it has: {', '.join(arrays) or 'nothing'}.")
    try:
        rows = check_rows(arrays["x"], problem)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if "y" in arrays:
        y, given = rows.sum(1) % problem.q, arrays["y"]
        wrong = int(np.sum(y != given)) if y.shape == given.shape else len(y)
        require(wrong == 0, f"{path}: y is not the sum of x mod {problem.q} in {wrong:,} of its rows.")
    return rows


def parse_rows(lines: Iterable[str], problem: Problem) -> Rows:
    """Rows of text, with commas or spaces between the numbers."""
    try:
        rows = [[int(cell) for cell in line.replace(",", " ").split()] for line in lines if line.strip()]
    except ValueError as error:
        raise UserError(f"The rows must be whole numbers with commas or spaces between ({error}).") from None
    require(bool(rows), "There are no rows to predict: give numbers, --file, or rows on standard input.")
    for at, row in enumerate(rows, 1):
        require(len(row) == problem.n, f"Each row must have {problem.n} numbers; row {at} has {len(row)}.")
    return check_rows(rows, problem)
