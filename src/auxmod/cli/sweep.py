"""`auxmod sweep`: train all combinations of lists and ranges of any flags, into one results file."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from auxmod.cli.display import console, mapping, print_json, say, table
from auxmod.cli.options import (
    RUN,
    SWITCH,
    WHOLE,
    CheckpointEvery,
    ConfigFile,
    Device,
    Json,
    Members,
    Preset,
    Quiet,
    RetryFailed,
    SweepFlags,
    Track,
    given_axes,
    over,
)
from auxmod.cli.train import say_measured
from auxmod.cli.watch import Watch, duration, stop_when_asked
from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.catalogue import NEAR_FIGURE
from auxmod.experiments.choosing import by_near
from auxmod.experiments.kept import Models
from auxmod.experiments.ranges import expand_all, read_tables
from auxmod.experiments.results_file import Results, rows_of
from auxmod.experiments.track import track_rows, tracker

PACKED = 40
"""The most ensembles that --dry-run lists one by one."""
DEFAULT_RESULTS = Path("runs/sweep.jsonl")
_KEEP_MODELS = "Keep each cell's model, in the directory <results>.models, under the run's hash."
_KEEP_EVERY = (
    "Keep it each so many steps too (at the next point of the curve), in steps/<step> below that. Cells that are done "
    "stay as they are."
)
ResultsFile = Annotated[Path, Parameter(help="Where the results go, one JSON line a cell.", group=RUN)]
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
    """The flags shared by the commands that train many cells."""

    results: ResultsFile = DEFAULT_RESULTS
    preset: Preset = None
    config: ConfigFile = None
    device: Device = "auto"
    checkpoint_every: CheckpointEvery = 1000
    members: Members = None
    retry_failed: RetryFailed = False
    json: Json = False
    quiet: Quiet = False

    def run(
        self,
        configs: Sequence[RunConfig],
        *,
        cluster: str | None = None,
        shared: Path | None = None,
        track: str | None = None,
        models: Models | None = None,
    ) -> list[dict[str, Any]]:
        """Train the runs that are missing, showing progress; return the rows of all runs, in order.

        If no run is missing, this does not import torch (a tracker may).
        """
        self.check()
        tracked = tracker(track, self.results.parent) if track else None
        left = self.left(configs, models)
        if models and (told := models.without_steps(set(configs) - set(left))):
            say(told)
        if left:
            say_measured(left)
            from auxmod.experiments.ensembles import Ended

            with stop_when_asked() as stopping, Watch(self.quiet) as watch:
                for event in self._events(configs, stopping, cluster, shared, models):
                    watch.see(event)
                    if tracked and isinstance(event, Ended):
                        track_rows(tracked, event.rows)
        return rows_of(configs, self.results)

    def check(self) -> None:
        """Refuse flags that make no sense, before anything is planned."""
        every = self.checkpoint_every
        require(every >= 1, f"--checkpoint-every is {every}, but must be 1 step or more.")
        require(self.members is None or self.members >= 1, f"--members is {self.members}, but must be 1 or more.")

    def left(self, configs: Sequence[RunConfig], models: Models | None) -> list[RunConfig]:
        """The runs that are still to be trained."""
        book = Results(self.results, models)
        book.refresh()

        def finished(run: str) -> bool:
            return book.done(run) or bool(book.failed(run) and not self.retry_failed)

        return [config for config in configs if not finished(config.hash)]

    def _events(
        self,
        configs: Sequence[RunConfig],
        stopping: Callable[[], bool],
        cluster: str | None,
        shared: Path | None,
        models: Models | None,
    ) -> Iterator[Any]:
        """Train the runs, here or on a cluster, and pass on the events."""
        options: dict[str, Any] = {"checkpoint_every": self.checkpoint_every, "retry_failed": self.retry_failed}
        options |= {"members": self.members, "stopping": stopping}
        if cluster:
            from auxmod.experiments.cluster import run_on_cluster

            return run_on_cluster(configs, self.results, cluster, device=self.device, shared=shared, **options)
        from auxmod.experiments.sweep import run_sweep
        from auxmod.learning.precision import resolve_device

        return run_sweep(configs, self.results, resolve_device(self.device), models=models, **options)


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
    keep_models: Annotated[bool, SWITCH, Parameter(help=_KEEP_MODELS, group=RUN)] = False,
    keep_every: Annotated[int | None, WHOLE, Parameter(help=_KEEP_EVERY, group=RUN)] = None,
    dry_run: DryRun = False,
) -> None:
    """Train a model for every combination, or cell, of the lists and ranges that the flags give.

    4:9 is 4 to 9, 0.1:0.4:0.1 goes in steps of 0.1, 8,16 is a list, and 1,2,4;1,8 are two lists of --moduli. Cells
    that the results file already has are skipped (with --keep-models, those whose models are kept as well). The same
    command resumes a stopped sweep. Several sweeps may write to one file.

    Example: auxmod sweep --n 16 --q 97 --k 4:9 --r 0.1:0.4:0.1 --seed 0:2
    """
    common = common or Common()
    said, base = given_axes(flags), given_axes(None, common.config)
    tables = [over(over(base, cell), said) for cell in (read_tables(from_) if from_ else [{}])]
    configs = runs_of(expand_all(tables), common.preset)
    common.check()
    require(bool(cluster) or shared is None, "--shared is where the workers of a --cluster save: give --cluster too.")
    require(keep_every is None or keep_every >= 1, f"--keep-every is {keep_every}, but must be 1 step or more.")
    models = Models(common.results, keep_every) if keep_models or keep_every is not None else None
    require(not (models and cluster), "A --cluster keeps no models: leave out --keep-models and --keep-every.")
    if dry_run:
        require(not cluster, "--dry-run plans for a device of this machine: leave out --cluster.")
        return _describe(configs, common, models)
    rows = common.run(configs, cluster=cluster, shared=shared, track=track, models=models)
    failed = [row for row in rows if "failed" in row]
    if common.json:
        places = {"results": str(common.results), **({"models": str(models.place)} if models else {})}
        print_json(places | {"cells": len(rows), "failed": len(failed), "rows": rows})
    else:
        best = NEAR_FIGURE if by_near(config.problem.q for config in configs) else "match"
        shown = f"auxmod runs list {shlex.quote(str(common.results))} --sort {best}"
        told = f"{len(rows) - len(failed)} of {len(rows)} cells are done: {shown}"
        console().print(told, markup=False, soft_wrap=True)
        if models:
            console().print(f"Their models, each under its hash: {models.place}", markup=False, soft_wrap=True)
    if failed:
        raise RuntimeError(f"{len(failed)} of {len(rows)} cells failed: --retry-failed tries them again.")


def runs_of(cells: Sequence[Mapping[str, Any]], preset: str | None) -> list[RunConfig]:
    """The runs that cells of settings describe, without repeats."""
    from auxmod.experiments.resolving import resolved_all

    return list({config.hash: config for config in resolved_all(cells, preset)}.values())


# -- dry run --------------------------------------------------------------------------------------------------


def _describe(configs: Sequence[RunConfig], common: Common, models: Models | None) -> None:
    from auxmod.experiments.packing import forecast, plan
    from auxmod.learning.precision import resolve_device

    chosen = resolve_device(common.device)
    left = common.left(configs, models)
    ensembles = forecast(plan(left, chosen, members=common.members), chosen)
    seconds = sum(row["seconds"] for row in ensembles)
    flops, most = sum(row["flops"] for row in ensembles), max((row["bytes"] for row in ensembles), default=0)
    counts = {"results": str(common.results), "device": str(chosen), "cells": len(configs), "left": len(left)}
    if common.json:
        return print_json(counts | {"flops": flops, "bytes": most, "seconds": seconds, "ensembles": ensembles})
    out = console()
    needs = {"FLOPs": f"{flops:.3g}", "memory": _gib(most), "time": f"about {duration(seconds)}"}
    out.print(mapping("The sweep", counts | {"ensembles": len(ensembles)} | needs))
    if ensembles:
        out.print(_packing(ensembles[:PACKED]))
    if len(ensembles) > PACKED:
        out.print(f"and {len(ensembles) - PACKED:,} more; --json has them all.")


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
