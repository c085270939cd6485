"""Stored results, looked up by configuration: a cell of a table is a run with any seed.

A results file has a JSON line for each run that ended. A directory is read whole, with all results files and run
directories in it. If a run occurs twice, `results_file.supersedes` decides which row counts.
"""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from auxmod.config import DATA, RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments import catalogue
from auxmod.experiments.results_file import read_results, supersedes
from auxmod.files import RESULT
from auxmod.problem import theory

Row = Mapping[str, Any]
Index = dict[str, list[Row]]
"""The rows of each cell, one per seed and number of times asked."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A cell's figure over its seeds, in percent."""

    mean: float | None
    """None if every seed failed."""
    std: float | None
    """Sample standard deviation (n − 1); None for a single seed."""
    count: int
    failed: int
    """Seeds that diverged or could not be run. No mean includes them, so tables must show them beside it."""


class Origin(NamedTuple):
    """A device and a precision, and the commits with which runs were made there; what is not known is empty."""

    device: str
    precision: str
    commits: tuple[str, ...]

    def told(self, named: bool = True) -> str:
        """As in: NVIDIA H200, fp16 trunk, commit `ec05e6c`. Several commits are only counted unless ``named``."""
        several = "s" * (len(self.commits) > 1)
        names = ", ".join(f"`{each}`" for each in self.commits)
        commits = f"commit{several} {names}" if named or not several else f"{len(self.commits)} commits"
        parts = (self.device, self.precision and f"{self.precision} trunk", names and commits)
        return ", ".join(filter(None, parts))

    def __str__(self) -> str:
        return self.told()


# ---- reading ----------------------------------------------------------------------------------------------


def default_place() -> Path:
    """`results/` in the working directory or, if there is none, that of the source tree."""
    here, tree = Path("results"), Path(__file__).parents[3] / "results"
    return tree if tree.is_dir() and not here.is_dir() else here


def read(path: Path | None = None) -> Index:
    """Read the results in a file or directory, by default those of :func:`default_place`, if it exists."""
    place = path or default_place()
    require(path is None or place.exists(), f"--results is {str(place)!r}, but there is no such file or directory.")
    try:
        return index(row for source in _sources(place) for row in _rows(source))
    except OSError as error:
        raise UserError(f"{error.filename or place} cannot be read ({error.strerror}): name other --results.") from None


def _sources(place: Path) -> list[Path]:
    """Results files and finished run directories, sorted by path. Other logs are skipped."""
    found = catalogue.places(place) if place.exists() else []
    return [path for path in found if path.is_file() or (path / RESULT).is_file()]


def _rows(source: Path) -> Sequence[Row]:
    if source.is_dir():
        return [catalogue.read_run(source).row]
    state = source.stat()
    return _of_file(source, (state.st_ino, state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=64)
def _of_file(path: Path, _: tuple[int, ...]) -> Sequence[Row]:
    """A results file's rows, parsed and checked again only if the file changes: pages read the same files often."""
    return tuple(read_results(path))


# ---- finding ----------------------------------------------------------------------------------------------


def index(rows: Iterable[Row]) -> Index:
    """Group rows by configuration, seed aside. Of one run's rows the last counts, but no failure replaces figures."""
    cells: dict[str, dict[Any, Row]] = {}
    for row in rows:
        seeds, seed = cells.setdefault(_key(row["config"]), {}), (row["config"].get("seed"), _asks(row))
        if supersedes(row, seeds.get(seed)):
            seeds[seed] = row
    return {key: list(seeds.values()) for key, seeds in cells.items()}


def find(results: Index, run: RunConfig) -> list[Row]:
    """A run's rows with any seed, one row per seed.

    A run that is asked once can also use rows that were asked more often.
    """
    asks = run.training.asks
    fit = [row for row in results.get(_key(run.to_dict()), []) if asks in (1, _asks(row))]
    best = sorted(fit, key=lambda row: ("scores" in row, _asks(row) == asks))
    return list({row["config"].get("seed"): row for row in best}.values())


def first_seeds(results: Index) -> Index:
    """The rows of seed 0 alone, for comparisons in which some cells have no other seed."""
    return {key: [row for row in rows if row["config"].get("seed") == 0] for key, rows in results.items()}


def _asks(row: Row) -> int:
    asks: int = row["config"].get("training", {}).get("asks", 1)
    return asks


def _key(config: Mapping[str, Any]) -> str:
    """A configuration as text, without its seed, how often it is asked, and what `RunConfig.hash` leaves out."""
    ignored = {"method": ("method",), "training": ("asks", *DATA)}
    parts = {
        name: {key: value for key, value in part.items() if key not in ignored.get(name, ())}
        for name, part in config.items()
        if isinstance(part, Mapping)
    }
    return json.dumps(parts | {"format": config.get("format")}, sort_keys=True)


def collect(results: Index, run: RunConfig, tau: float | None = None, asks: int = 1) -> Summary | None:
    """A run's match accuracy or τ-accuracy over its seeds, asked once or ``asks`` times; None if it was not run."""
    rows = find(results, run)
    if not rows:
        return None
    scores = [row["scores"] for row in rows if "scores" in row]
    try:
        scores = [each if asks == 1 else each["asked"] for each in scores]
        values = [100 * (each["match"] if tau is None else each["tau"][f"{tau:g}"]) for each in scores]
    except (KeyError, TypeError):
        what = "match accuracy" if tau is None else f"accuracy at τ = {tau:g}"
        what += "" if asks == 1 else f", asked {asks} times"
        raise UserError(f"A result of run {run.hash} has no {what}: restore its line or delete it.") from None
    return Summary(
        mean=statistics.fmean(values) if values else None,
        std=statistics.stdev(values) if len(values) > 1 else None,
        count=len(values),
        failed=len(rows) - len(values),
    )


def chance(run: RunConfig, tau: float | None = None) -> float:
    """What guessing gets, in percent."""
    return 100 * theory.chance(run.problem.q, tau, run.model.angles)


def missing(results: Index, runs: Iterable[RunConfig]) -> list[RunConfig]:
    """The runs that have neither figures nor a failure, seed by seed."""
    return [run for run in runs if not _own(results, run)]


def failures(results: Index, runs: Iterable[RunConfig]) -> list[RunConfig]:
    """The runs that failed, seed by seed."""
    return [run for run in runs if any("scores" not in row for row in _own(results, run))]


def _own(results: Index, run: RunConfig) -> list[Row]:
    return [row for row in find(results, run) if row["config"].get("seed") == run.seed]


def origins(results: Index, runs: Iterable[RunConfig]) -> str:
    """On what these runs were made, whatever the seed."""
    return "; ".join(map(str, made_on(row for run in runs for row in find(results, run))))


def made_on(rows: Iterable[Row]) -> list[Origin]:
    """Each device and precision on which these rows were made, with its commits."""
    commits: dict[tuple[str, str], dict[str, None]] = {}
    for made in (row.get("provenance", {}) for row in rows):
        device, precision, commit = (_printable(made.get(name)) for name in ("device", "precision", "commit"))
        commits.setdefault((device, precision), {})[commit] = None
    return [Origin(*where, tuple(filter(None, own))) for where, own in commits.items()]


def _printable(value: Any) -> str:
    """What a row says of its origin, on one line; it may come from a stranger."""
    return "" if value is None else "".join(c if c.isprintable() else " " for c in str(value))


def curves(results: Index, run: RunConfig) -> list[list[tuple[int, float]]]:
    """Each seed's learning curve as (step, held-out accuracy in percent); rows without a curve are left out."""
    drawn = (row.get("curve") or [] for row in find(results, run))
    lines = ([(p["step"], 100 * p["accuracy"]) for p in curve if p.get("accuracy") is not None] for curve in drawn)
    return [line for line in lines if line]


def mean_curve(results: Index, run: RunConfig) -> list[tuple[int, float]]:
    """The mean curve over seeds, at the steps that every seed measured."""
    lines = [dict(line) for line in curves(results, run)]
    steps = sorted(set.intersection(*map(set, lines))) if lines else []
    return [(step, statistics.fmean(line[step] for line in lines)) for step in steps]
