"""Check the inputs a user gives, from Python, a file or standard input: whole numbers in 0..q−1, N per row.

Anything else raises a `UserError` that says what is wrong.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from auxmod.checked import is_int
from auxmod.config import Problem, RunConfig
from auxmod.errors import UserError, require

Rows = np.ndarray[Any, np.dtype[np.int64]]


def check_rows(x: Any, problem: Problem) -> Rows:
    """Check given inputs, in any form numpy understands or a tensor on any device, and return them as int64 (B, N)."""
    masked = np.ma.is_masked(x) or (isinstance(x, list | tuple) and any(map(np.ma.is_masked, x)))
    require(not masked, "Some of the inputs are masked: give whole numbers in their place.")
    try:
        rows = np.atleast_2d(np.asarray(x.detach().cpu() if hasattr(x, "detach") else x))
    except ValueError:
        rows = np.asarray(None)
    except (TypeError, RuntimeError) as error:  # a tensor that numpy cannot hold
        raise UserError(f"The inputs cannot be read ({str(error).rstrip('.')}): give whole numbers.") from None
    if not (rows.dtype.kind == "O" and all(map(is_int, rows.flat))):  # these may exceed 64 bits
        require(
            rows.dtype.kind in "iu" or (rows.dtype.kind == "f" and bool(np.all(rows == np.floor(rows)))),
            "The inputs must be whole numbers, in rows of equal length.",
        )
    require(
        rows.ndim == 2 and rows.shape[1] == problem.n,
        f"Each row must have {problem.n} numbers; these have shape {'×'.join(map(str, rows.shape))}.",
    )
    outside = rows[(rows < 0) | (rows >= problem.q)]
    found = f"found {outside[0]}: take them mod {problem.q}" if outside.size else ""
    require(outside.size == 0, f"The inputs must lie in 0..{problem.q - 1}; {found}.")
    return rows.astype(np.int64)


def given_rows(data: Sequence[Any] | None, configs: Sequence[RunConfig]) -> list[Rows | None]:
    """Each run's own rows, as many as it has samples; None if its inputs are drawn.

    Runs may share an array, which is checked once per modulus.
    """
    checked: dict[tuple[int, int], Rows] = {}
    found: list[Rows | None] = []
    every = [None] * len(configs) if data is None else list(data)  # keeps all arrays alive, so that ids differ
    for config, given in zip(configs, every, strict=True):
        samples, path = config.training.samples, config.training.data
        require(given is not None or not path, f"The run trains on the rows of {path}: give them as data.")
        if given is None:
            found.append(None)
            continue
        key = id(given), config.problem.q
        rows = checked[key] if key in checked else checked.setdefault(key, check_rows(given, config.problem))
        require(len(rows) == samples, f"The run has {samples:,} samples, but {len(rows):,} rows are given.")
        found.append(rows)
    return found


def parted(rows: Rows) -> tuple[Rows, Rows]:
    """Rows to measure on, in two parts: every tenth, for the curve and to choose by; and the others, for the end."""
    return rows[::10], np.delete(rows, np.s_[::10], 0)


def read_npz(path: Path, problem: Problem) -> Rows:
    """Read and check the array x of an .npz file; an array y, if there is one, must hold the sums of x mod q."""
    require(path.exists(), f"There is no file {path}.")
    try:
        with zipfile.ZipFile(path) as archive:  # np.load alone accepts other kinds of files and fails later
            archive.namelist()
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: np.asarray(file[name]) for name in file.files}
    except Exception as error:  # zipfile, zlib and numpy raise many kinds for a damaged archive
        remedy = "numpy.savez('data.npz', x=...) makes one"
        raise UserError(f"{path} cannot be read as an .npz file ({error}): {remedy}.") from None
    require("x" in arrays, f"{path} has no array x; it has: {', '.join(arrays) or 'nothing'}.")
    try:
        rows = check_rows(arrays["x"], problem)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    if "y" in arrays:
        y, given = rows.sum(1) % problem.q, arrays["y"]
        shapes = f"{path}: y must have one number a row of x, {len(y):,} in all, but has shape {given.shape}."
        require(y.shape == given.shape, shapes)
        require(given.dtype.kind in "iuf", f"{path}: y must be numbers, but is of type {given.dtype}.")
        wrong = int(np.sum(y != given))
        require(wrong == 0, f"{path}: y is not the sum of x mod {problem.q} in {wrong:,} of its rows.")
    return rows


def parse_rows(lines: Iterable[str], problem: Problem) -> Rows:
    """Parse lines of text, with commas or spaces between the numbers, and check the rows."""
    rows = []
    for at, line in enumerate(lines, 1):
        try:
            rows += [[int(cell) for cell in line.replace(",", " ").split()]] if line.strip() else []
        except ValueError as error:
            said = f"The rows must be whole numbers with commas or spaces between, but line {at} has others"
            raise UserError(f"{said} ({error}).") from None
    require(bool(rows), "There are no rows to predict: give numbers, --file, or rows on standard input.")
    for at, row in enumerate(rows, 1):
        require(len(row) == problem.n, f"Each row must have {problem.n} numbers; row {at} has {len(row)}.")
    return check_rows(rows, problem)
