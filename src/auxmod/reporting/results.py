"""Results as they lie in files, found again by what was run: a cell of a table is a run for any seed.

A results file has a JSON line for each run that ended; a directory of them is read whole, and so is one of run
directories. Where a run is there twice, `results_file.supersedes` says which row counts.
"""

from __future__ import annotations

import functools
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments import catalogue
from auxmod.experiments.results_file import read_results, supersedes
from auxmod.files import RESULT
from auxmod.problem import theory

Row = Mapping[str, Any]
Index = dict[str, list[Row]]
"""The rows of each cell, one a seed."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A cell's figure over its seeds, in percent."""

    mean: float | None
    """None where every seed failed."""
    std: float | None
    """Of the sample (n − 1); None for a single seed."""
    count: int
    failed: int
    """Seeds that diverged or could not be run: they are in no mean, and must be said beside it."""


# ---- reading ----------------------------------------------------------------------------------------------


def default_place() -> Path:
    """results/ here, or else that of the source tree this runs from."""
    here, tree = Path("results"), Path(__file__).parents[3] / "results"
    return tree if tree.is_dir() and not here.is_dir() else here


def read(path: Path | None = None) -> Index:
    """The results in a file or directory; without one, those of :func:`default_place`, where there are any."""
    place = path or default_place()
    require(path is None or place.exists(), f"--results is {str(place)!r}, but there is no such file or directory.")
    try:
        return index(row for source in _sources(place) for row in _rows(source))
    except OSError as error:
        raise UserError(f"{error.filename or place} cannot be read ({error.strerror}): name other --results.") from None


def _sources(place: Path) -> list[Path]:
    """Results files and finished runs, in the order of their names; logs of other things are passed over."""
    found = catalogue.places(place) if place.exists() else []
    return [path for path in found if path.is_file() or (path / RESULT).is_file()]


def _rows(source: Path) -> Sequence[Row]:
    if source.is_dir():
        return [catalogue.read_run(source).row]
    state = source.stat()
    return _of_file(source, (state.st_ino, state.st_mtime_ns, state.st_size))


@functools.lru_cache(maxsize=64)
def _of_file(path: Path, _: tuple[int, ...]) -> Sequence[Row]:
    """A results file's rows, parsed and checked once while it stays as it is: pages read the same files often."""
    return tuple(read_results(path))


# ---- finding ----------------------------------------------------------------------------------------------


def index(rows: Iterable[Row]) -> Index:
    """Rows by what was run, whatever the seed; of one run's rows the last, and none that failed if one did not."""
    cells: dict[str, dict[Any, Row]] = {}
    for row in rows:
        seeds, seed = cells.setdefault(_key(row["config"]), {}), (row["config"].get("seed"), _asks(row))
        if supersedes(row, seeds.get(seed)):
            seeds[seed] = row
    return {key: list(seeds.values()) for key, seeds in cells.items()}


def find(results: Index, run: RunConfig) -> list[Row]:
    """The rows of a run, one a seed, whatever its own seed; one that was asked often serves where once is enough."""
    asks = run.training.asks
    fit = [row for row in results.get(_key(run.to_dict()), []) if asks in (1, _asks(row))]
    best = sorted(fit, key=lambda row: ("scores" in row, _asks(row) == asks))
    return list({row["config"].get("seed"): row for row in best}.values())


def first_seeds(results: Index) -> Index:
    """The rows of seed 0 alone, for where all that is compared has that one."""
    return {key: [row for row in rows if row["config"].get("seed") == 0] for key, rows in results.items()}


def _asks(row: Row) -> int:
    asks: int = row["config"].get("training", {}).get("asks", 1)
    return asks


def _key(config: Mapping[str, Any]) -> str:
    """A run's configuration without its seed, how often it is asked, and what `RunConfig.hash` leaves out too."""
    ignored = {"method": ("method",), "training": ("data", "asks")}
    parts = {
        name: {key: value for key, value in part.items() if key not in ignored.get(name, ())}
        for name, part in config.items()
        if isinstance(part, Mapping)
    }
    return json.dumps(parts | {"format": config.get("format")}, sort_keys=True)


def collect(results: Index, run: RunConfig, tau: float | None = None, asks: int = 1) -> Summary | None:
    """A run's match accuracy, or its τ-accuracy, over its seeds, asked once or often; None where it was not run."""
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
    """Those of the runs, seed for seed, that have neither figures nor failed."""
    return [run for run in runs if not _own(results, run)]


def failures(results: Index, runs: Iterable[RunConfig]) -> list[RunConfig]:
    """Those that failed."""
    return [run for run in runs if any("scores" not in row for row in _own(results, run))]


def _own(results: Index, run: RunConfig) -> list[Row]:
    return [row for row in find(results, run) if row["config"].get("seed") == run.seed]


def origins(results: Index, runs: Iterable[RunConfig]) -> str:
    """Where these runs, of any seed, were made: devices and precisions, and the commits of each."""
    commits: dict[tuple[Any, Any], dict[str, None]] = {}
    for made in (row.get("provenance", {}) for run in runs for row in find(results, run)):
        commits.setdefault((made.get("device"), made.get("precision")), {})[f"`{made.get('commit')}`"] = None
    return "; ".join(
        f"{device}, {precision} trunk, commit{'s' * (len(own) > 1)} {', '.join(own)}"
        for (device, precision), own in commits.items()
    )


def curves(results: Index, run: RunConfig) -> list[list[tuple[int, float]]]:
    """Each seed's (step, held-out accuracy in percent), where the row has its curve."""
    drawn = (row.get("curve") or [] for row in find(results, run))
    lines = ([(p["step"], 100 * p["accuracy"]) for p in curve if p.get("accuracy") is not None] for curve in drawn)
    return [line for line in lines if line]


def mean_curve(results: Index, run: RunConfig) -> list[tuple[int, float]]:
    """The seeds' mean at the steps that all of them measured."""
    lines = [dict(line) for line in curves(results, run)]
    steps = sorted(set.intersection(*map(set, lines))) if lines else []
    return [(step, statistics.fmean(line[step] for line in lines)) for step in steps]
