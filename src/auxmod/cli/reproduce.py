"""`auxmod reproduce`: train only the runs that a table or figure of the paper lacks, then print or draw it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from auxmod.cli import display
from auxmod.cli.options import RUN, SWITCH, WHOLE, Device, Force, Json, Members, Quiet, RetryFailed, whole_numbers
from auxmod.cli.shown import (
    Form,
    Only,
    OnlyFlags,
    Picture,
    Preset,
    Samples,
    TableName,
    default_picture,
    draw,
    of_cells,
    one_of,
    pictures_of,
    presets_of,
)
from auxmod.cli.sweep import Common
from auxmod.cli.tables import show_tables
from auxmod.errors import require
from auxmod.files import check_free

if TYPE_CHECKING:
    from auxmod.config import RunConfig
    from auxmod.reporting.results import Index

Item = Literal[TableName, "curves", "all"]
_RESULTS = "Where results are kept: a directory or a .jsonl file. [default: results/ here, or else the source tree's]"
_OUT = (
    "Draw the item's figure into this file, one for each preset; of all, a directory. "
    "[default: of curves, curves.png, or one for each preset, where there is none; of others, none]"
)
STANDING = ("item", "samples", "runs", "done", "failed", "missing", "pflop")


def reproduce(
    item: Annotated[Item, one_of(Item)],
    /,
    *,
    preset: Preset = "both",
    seeds: Annotated[
        int | None, WHOLE, Parameter(help="Seeds a cell.", show_default="3 at 100K, else 1, and 1 over K and r")
    ] = None,
    samples: Samples = None,
    only: OnlyFlags = None,
    results: Annotated[Path | None, Parameter(help=_RESULTS, group=RUN)] = None,
    out: Annotated[Path | None, Parameter(help=_OUT, group=RUN)] = None,
    force: Force = False,
    device: Device = "auto",
    members: Members = None,
    retry_failed: RetryFailed = False,
    dry_run: Annotated[
        bool, SWITCH, Parameter(help="Say how many runs are done and how many missing; train nothing.", group=RUN)
    ] = False,
    format: Form = "text",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train the runs that a table or figure lacks, packed into ensembles, then print or draw it.

    Example: auxmod reproduce table1b --samples 100_000 --n 16 --q 97
    """
    require(seeds is None or seeds >= 1, f"--seeds is {seeds}, but a cell needs at least 1.")
    from auxmod.reporting import tables
    from auxmod.reporting.cells import SHAPES
    from auxmod.reporting.results import default_place

    require(not (out and samples), "--out draws the paper's numbers of samples: leave out --samples, or --out.")
    drawn = "curves is a figure, which has no --format but json: leave it out."
    require(item != "curves" or format in ("text", "json"), drawn)
    presets = presets_of(preset, item)
    drawn_at = out or (default_picture(item, presets) if item == "curves" and not samples else None)
    pictures, kept = _pictures(pictures_of(item, presets, drawn_at) if drawn_at else [], out, force, dry_run)
    place, counts = results or default_place(), whole_numbers(samples, "--samples")
    common = Common(device=device, members=members, retry_failed=retry_failed, quiet=quiet)
    common.check()
    only = only or Only()
    runs = _runs(item, presets, seeds, counts, only)
    if dry_run:
        require(format in ("text", "json"), f"--dry-run prints text or JSON: leave out --format {format}.")
        return _describe(runs, place, retry_failed, json or format == "json")
    failed = sum(_run(name, cells, place, common) for name, cells in runs.items())
    stored = _stored(place)
    if item in (*SHAPES, "all"):
        made = tables.tables(item, presets, stored, counts, only.keeper())
        show_tables(of_cells(made, only, results), "json" if json else format)
    elif not pictures and not kept:
        display.say(f"Not drawn: {item} is of the paper's numbers of samples, and auxmod figure {item} draws it.")
    _draw(pictures, kept, stored, as_json=item not in (*SHAPES, "all") and (json or format == "json"))
    if failed:
        raise RuntimeError(f"{failed} runs failed: --retry-failed tries them again.")


def _pictures(
    wanted: Sequence[Picture], out: Path | None, force: bool, dry_run: bool
) -> tuple[list[Picture], list[Picture]]:
    """The figures to draw, and those to keep: without --out or --force, a file that exists is kept."""
    kept = [] if out or force else [figure for figure in wanted if figure.path.exists()]
    pictures = [figure for figure in wanted if figure not in kept]
    for figure in pictures:
        check_free(figure.path, force or dry_run)
    return pictures, kept


def _draw(pictures: Sequence[Picture], kept: Sequence[Picture], stored: Index, as_json: bool) -> None:
    drawn = draw(pictures, stored)
    if as_json:
        display.print_json(drawn)
    said = [f"drawn: {each['figure']}" for each in drawn]
    for line in said + [f"kept: {figure.path}, which was there; --force draws it anew." for figure in kept]:
        display.console(stderr=True).print(line, markup=False)


def _runs(
    item: str, presets: Sequence[str], seeds: int | None, samples: Sequence[int], only: Only
) -> dict[str, list[RunConfig]]:
    """The runs that an item needs, under its name; for `all`, those of every item. Empty if it needs none."""
    from auxmod.experiments.recipes import RECIPES, at_samples, cells

    keep = only.keeper()
    if item != "all" and item not in RECIPES:
        chosen = only != Only() or samples or seeds
        require(not chosen, f"{item} needs no runs, so that there are none to choose: leave out the flags that do.")
        return {}
    names = at_samples(RECIPES if item == "all" else [item], samples)
    found = {name: cells(name, presets, seeds=seeds, samples=samples, keep=keep) for name in names}
    require(any(found.values()), only.none(item, samples))
    return found


def _stored(place: Path) -> Index:
    from auxmod.reporting.results import read

    return read(place) if place.exists() else {}


def _run(item: str, runs: Sequence[RunConfig], place: Path, common: Common) -> int:
    """Train the runs without a result in the place, and those to be retried; return how many failed, now or before."""
    left, failed = _left(_stored(place), runs, common.retry_failed)
    file = place if place.suffix == ".jsonl" else place / f"{item}.jsonl"
    rows = replace(common, results=file).run(left) if left else []
    return len(failed) + sum("failed" in row for row in rows)


def _left(stored: Index, runs: Sequence[RunConfig], retry_failed: bool) -> tuple[list[RunConfig], list[RunConfig]]:
    """The runs to train, and those that failed before and are not tried again."""
    from auxmod.reporting.results import failures, missing

    left, failed = missing(stored, runs), failures(stored, runs)
    return ([*left, *failed], []) if retry_failed else (left, failed)


def _describe(runs: dict[str, list[RunConfig]], place: Path, retry_failed: bool, as_json: bool) -> None:
    from auxmod.learning.cost import work
    from auxmod.reporting.render import amount

    stored = _stored(place)
    rows: list[dict[str, Any]] = []
    for item, cells in runs.items():
        for samples in sorted({run.training.samples for run in cells}):
            own = [run for run in cells if run.training.samples == samples]
            left, failed = _left(stored, own, retry_failed)
            pflop = float(f"{sum(map(work, left)) / 1e15:.4g}")
            counts = (len(own), len(own) - len(left) - len(failed), len(failed), len(left), pflop)
            rows.append(dict(zip(STANDING, (item, samples, *counts), strict=True)))
    if as_json:
        return display.print_json(rows)
    if not rows:
        return display.console().print("It needs no runs.")
    said: dict[str, Callable[[Any], str]] = {"samples": amount, "pflop": "{:g}".format}
    words = [[said.get(name, str)(row[name]) for name in STANDING] for row in rows]
    display.console().print(display.table(f"What there is in {place}, and what is missing", STANDING, words))
    display.console().print("pflop: 10¹⁵ operations still to do; auxmod bench says how many a second a device does.")
