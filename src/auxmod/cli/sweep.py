"""`auxmod sweep`: the product of lists and ranges of any flags, into one results file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from auxmod.cli.display import console, mapping, print_json, table
from auxmod.cli.options import (
    RUN,
    SWITCH,
    WHOLE,
    ConfigFile,
    Device,
    Json,
    Preset,
    Quiet,
    SweepFlags,
    Track,
    given_axes,
)
from auxmod.cli.watch import Watch, duration, stop_when_asked
from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.presets import with_preset
from auxmod.experiments.ranges import expand_all, read_tables
from auxmod.experiments.store import Results, read_results
from auxmod.experiments.track import track_rows, tracker
from auxmod.settings import build

DEFAULT_RESULTS = Path("runs/sweep.jsonl")
ResultsFile = Annotated[Path, Parameter(help="Where the results go, one JSON line a cell.", group=RUN)]
CheckpointEvery = Annotated[int, WHOLE, Parameter(help="Steps between checkpoints.", group=RUN)]
RetryFailed = Annotated[bool, SWITCH, Parameter(help="Try cells again that have failed before.", group=RUN)]
Cluster = Annotated[
    str | None,
    Parameter(help="Train on a Ray cluster: local, auto, host:port or ray://host:port.", group=RUN),
]
Shared = Annotated[
    Path | None, Parameter(help="Where the workers of a --cluster save: a directory all of them have.", group=RUN)
]
DryRun = Annotated[
    bool, SWITCH, Parameter(help="Print what would run, how it is packed, and what it needs; train nothing.", group=RUN)
]


@dataclass(kw_only=True)
class Common:
    """The flags that every way of running many cells has."""

    results: ResultsFile = DEFAULT_RESULTS
    preset: Preset = None
    config: ConfigFile = None
    device: Device = "auto"
    checkpoint_every: CheckpointEvery = 1000
    retry_failed: RetryFailed = False
    json: Json = False
    quiet: Quiet = False

    def run(self, configs: Sequence[RunConfig], **where: Any) -> list[dict[str, Any]]:
        """Train what is missing of the runs; the rows of all of them, in order."""
        options: dict[str, Any] = {"retry_failed": self.retry_failed, "quiet": self.quiet}
        options["checkpoint_every"] = self.checkpoint_every
        run(configs, self.results, self.device, **options, **where)
        return rows_of(configs, self.results)


CommonFlags = Annotated[Common | None, Parameter(name="*")]


def sweep(
    flags: Annotated[SweepFlags | None, Parameter(name="*")] = None,
    *,
    from_: Annotated[
        Path | None,
        Parameter(name="--from", help="A TOML file of settings, lists and ranges, and [[cells]] of them.", group=RUN),
    ] = None,
    common: CommonFlags = None,
    cluster: Cluster = None,
    shared: Shared = None,
    track: Track = None,
    dry_run: DryRun = False,
) -> None:
    """Train a model for every combination, or cell, of the lists and ranges that the flags give.

    4:9 is 4 to 9, 0.1:0.4:0.1 goes in steps of 0.1, 8,16 is a list, and 1,2,4;1,8 are two lists of --moduli. What the
    results file has already is skipped, a stopped sweep goes on where it was, and several may write to one file.

    Example: auxmod sweep --n 16 --q 97 --k 4:9 --r 0.1:0.4:0.1 --seed 0:2
    """
    common = common or Common()
    said, base = given_axes(flags), given_axes(None, common.config)
    tables = [base | cell | said for cell in (read_tables(from_) if from_ else [{}])]
    configs = runs_of(expand_all(tables), common.preset)
    if dry_run:
        return _describe(configs, common.results, common.device, common.retry_failed, common.json)
    rows = common.run(configs, cluster=cluster, shared=shared, track=track)
    failed = [row for row in rows if "failed" in row]
    if common.json:
        print_json({"results": str(common.results), "cells": len(rows), "failed": len(failed), "rows": rows})
    else:
        shown = f"auxmod runs list {common.results} --sort match"
        console().print(f"{len(rows) - len(failed)} of {len(rows)} cells are done: {shown}", markup=False)
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(rows)} cells failed: --retry-failed tries them again.")


def runs_of(cells: Sequence[Mapping[str, Any]], preset: str | None) -> list[RunConfig]:
    """The runs that cells of settings describe, each once; a cell that is none is named."""
    make = _with_data if any(cell.get("data") for cell in cells) else _plain
    configs = {}
    for cell in cells:
        try:
            config = make(cell, preset)
        except UserError as error:
            differing = [name for name, value in cell.items() if len(cells) > 1 and value != cells[0].get(name)]
            where = " ".join(f"--{name.replace('_', '-')} {cell[name]}" for name in differing)
            raise UserError(f"{error} (in the cell {where})" if where else str(error)) from None
        configs[config.hash] = config
    return list(configs.values())


def _plain(cell: Mapping[str, Any], preset: str | None) -> RunConfig:
    return build(**with_preset(preset, cell))


def _with_data(cell: Mapping[str, Any], preset: str | None) -> RunConfig:
    from auxmod.experiments.single import resolved

    return resolved(cell, preset)


def run(
    configs: Sequence[RunConfig],
    results: Path,
    device: str,
    *,
    checkpoint_every: int = 1000,
    retry_failed: bool = False,
    quiet: bool = False,
    cluster: str | None = None,
    shared: Path | None = None,
    track: str | None = None,
) -> None:
    """Sweep before the user's eyes; where all is done already, without so much as importing torch."""
    require(checkpoint_every >= 1, f"--checkpoint-every is {checkpoint_every}, but must be 1 step or more.")
    require(bool(cluster) or shared is None, "--shared is where the workers of a --cluster save: give --cluster too.")
    tracked = tracker(track) if track else None
    if not _left(configs, results, retry_failed):
        return
    from auxmod.experiments.ensembles import Ended

    options: dict[str, Any] = {"checkpoint_every": checkpoint_every, "retry_failed": retry_failed}
    with stop_when_asked() as stopping, Watch(quiet) as watch:
        options["stopping"] = stopping
        for event in _events(configs, results, device, cluster, shared, options):
            watch.see(event)
            if tracked and isinstance(event, Ended):
                track_rows(tracked, event.rows)


def _events(
    configs: Sequence[RunConfig],
    results: Path,
    device: str,
    cluster: str | None,
    shared: Path | None,
    options: dict[str, Any],
) -> Iterator[Any]:
    """The sweep itself, here or on a cluster."""
    if cluster:
        from auxmod.experiments.cluster import run_on_cluster

        return run_on_cluster(configs, results, cluster, device=device, shared=shared, **options)
    from auxmod.experiments.sweep import run_sweep
    from auxmod.learning.precision import resolve_device

    return run_sweep(configs, results, resolve_device(device), **options)


def _left(configs: Sequence[RunConfig], results: Path, retry_failed: bool) -> list[RunConfig]:
    book = Results(results)
    book.refresh()
    finished = book.scored if retry_failed else book.scored | book.failures.keys()
    return [config for config in configs if config.hash not in finished]


def rows_of(configs: Sequence[RunConfig], results: Path) -> list[dict[str, Any]]:
    """The runs' rows, in order."""
    rows = {row["hash"]: row for row in read_results(results)}
    return [rows[config.hash] for config in configs]


# -- what it would do -----------------------------------------------------------------------------------------


def _describe(configs: Sequence[RunConfig], results: Path, device: str, retry_failed: bool, as_json: bool) -> None:
    from auxmod.experiments.packing import forecast, plan
    from auxmod.learning.precision import resolve_device

    chosen = resolve_device(device)
    left = _left(configs, results, retry_failed)
    ensembles = forecast(plan(left, chosen), chosen)
    seconds = sum(row["seconds"] for row in ensembles)
    whole = {
        "results": str(results),
        "device": str(chosen),
        "cells": len(configs),
        "to do": len(left),
        "ensembles": len(ensembles),
        "FLOPs": f"{sum(row['flops'] for row in ensembles):.3g}",
        "memory": _gib(max((row["bytes"] for row in ensembles), default=0)),
        "time": f"about {duration(seconds)}",
    }
    if as_json:
        return print_json(whole | {"seconds": seconds, "ensembles": ensembles})
    out = console()
    out.print(mapping("The sweep", whole))
    if ensembles:
        out.print(_packing(ensembles))


def _packing(ensembles: Sequence[Mapping[str, Any]]) -> Any:
    columns = ("ensemble", "cells", "samples", "steps", "FLOPs", "memory", "time")
    rows = [
        (
            f"N = {row['n']}, q = {','.join(map(str, row['q'][:4]))}{'…' * (len(row['q']) > 4)}, {row['embedding']}",
            str(row["members"]),
            f"{row['samples']:,}",
            f"{row['steps']:,}",
            f"{row['flops']:.3g}",
            _gib(row["bytes"]),
            duration(row["seconds"]),
        )
        for row in ensembles
    ]
    return table("How it is packed", columns, rows)


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
