"""`auxmod reproduce`, `table`, `figure` and `published`: the paper's tables and figures with our numbers in them.

Only `reproduce` trains, and only what has no result yet; the others read what is stored, without torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from cyclopts import Parameter

from auxmod.cli import display
from auxmod.cli.options import RUN, SWITCH, WHOLE, Device, Json, Quiet, RetryFailed, whole_numbers
from auxmod.cli.pages import Format, show_tables
from auxmod.cli.sweep import Common
from auxmod.config import Embedding
from auxmod.errors import require

if TYPE_CHECKING:
    from auxmod.config import RunConfig
    from auxmod.experiments.wants import Wanted
    from auxmod.reporting.results import Index

_ITEM = Parameter(
    help="table1a, table1b: match accuracy, token and angular; table2: τ-accuracy at large N and q; table3: the spread "
    "over K and r; configs: 16 encoders; grid: accuracy over K and r, redbox: the one of N=64, q=433; gap, rho: the "
    "theory's; curves: while learning; headline: the demo over seeds; beyond: past the paper; setup, knobs, "
    "finalists, longer: the search for the paper's own setup."
)
_Table = Literal[
    "table1a", "table1b", "table2", "table3", "configs", "gap", "rho", "redbox", "grid",
    "headline", "beyond", "setup", "knobs", "finalists", "longer",
]  # fmt: skip
TableItem = Literal[_Table, "all"]
FigureItem = Literal["gap", "rho", "configs", "grid", "redbox", "curves", "table1a", "table1b", "headline", "all"]
Item = Literal[_Table, "curves", "all"]
Method = Literal["auto", "aux", "sparse", "naive", "expected", "fixed", "all", "searched"]
PublishedTable = Literal["table1a", "table1b", "table2", "table3", "configs", "choice", "gap"]

STANDING = ("item", "samples", "runs", "done", "failed", "missing", "pflop")
PRESETS = {"stated": ("stated",), "paper": ("paper",), "best": ("best",), "both": ("paper", "best")}
_PRESET = Parameter(
    help="What the paper states; the setup that best explains its figures; each method's own best; or these last two."
)
Preset = Annotated[Literal["stated", "paper", "best", "both"], _PRESET]
_RESULTS = "A results file, or a directory of them or of runs. [default: results/]"
Results = Annotated[Path | None, Parameter(help=_RESULTS, show_default=False)]
_SAMPLES = "Numbers of training samples, such as 100K,1M, in place of the item's own."
Samples = Annotated[str | None, Parameter(help=_SAMPLES, show_default=False)]
Force = Annotated[bool, SWITCH, Parameter(help="Overwrite what --out names.")]
Form = Annotated[Format, Parameter(help="How it is printed; csv and json have a line or object for each cell.")]


def table(
    item: Annotated[TableItem, _ITEM],
    /,
    *,
    preset: Preset = "both",
    format: Form = "text",
    samples: Samples = None,
    results: Results = None,
    json: Json = False,
) -> None:
    """Print one of the paper's tables from stored results: its value, ours over seeds, chance, and the difference.

    Example: auxmod table table1b --preset paper --format markdown
    """
    from auxmod.reporting import tables
    from auxmod.reporting.results import read

    made = tables.tables(item, PRESETS[preset], read(results), whole_numbers(samples, "--samples"))
    require(any(each.cells for each in made), f"{item} has no cell with so many samples: leave out --samples.")
    show_tables(made, "json" if json else format)


def figure(
    item: Annotated[FigureItem, _ITEM],
    /,
    *,
    out: Annotated[
        Path | None, Parameter(help="A .png, .svg or .pdf file; of all, a directory. [default: <item>.png; figures/]")
    ] = None,
    preset: Annotated[
        Literal["stated", "paper", "best"],
        Parameter(help="What the paper states; the setup that best explains its figures; or each method's own best."),
    ] = "paper",
    results: Results = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw one of the paper's figures, or one it lacks, or all, from stored results.

    Example: auxmod figure configs --out configs.svg
    """
    from auxmod.reporting.results import read

    pictures = _pictures(item, (preset,), out or Path("figures" if item == "all" else f"{item}.png"))
    _check_free(pictures, force)
    drawn = _draw(pictures, read(results))
    if json:
        return display.print_json(drawn if item == "all" else drawn[0])
    for each in drawn:
        display.console().print(f"drawn: {each['figure']}", markup=False)


def published(
    *,
    table: Annotated[PublishedTable | None, Parameter(help="One table only.")] = None,
    json: Json = False,
) -> None:
    """Print every number of the paper's tables, as data."""
    from auxmod.reporting import published as paper

    rows = [row.to_dict() for row in paper.rows() if table in (None, row.table)]
    if json:
        return display.print_json(rows)
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        columns = [field for field in paper.FIELDS[1:] if any(row.get(field) is not None for row in own)]
        cells = [["–" if row.get(field) is None else str(row[field]) for field in columns] for row in own]
        display.console().print(display.table(f"The paper's numbers, as printed: {name}", columns, cells))


# ---- running what is missing ------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Only:
    """The flags that name some of an item's cells."""

    n: Annotated[str | None, Parameter(help="Only these numbers of terms, such as 64,128.")] = None
    q: Annotated[str | None, Parameter(help="Only these moduli.")] = None
    method: Annotated[Method | None, Parameter(help="Only this method.")] = None
    embedding: Annotated[Embedding | None, Parameter(help="Only this embedding.")] = None

    def keeper(self) -> Callable[[Wanted], bool]:
        """What says whether a run of an item is meant."""
        n, q = whole_numbers(self.n, "--n"), whole_numbers(self.q, "--q")

        def keeps(want: Wanted) -> bool:
            if (n and want.run.problem.n not in n) or (q and want.run.problem.q not in q):
                return False
            return self.method in (None, want.variant) and self.embedding in (None, want.run.model.embedding)

        return keeps


def reproduce(
    item: Annotated[Item, _ITEM],
    /,
    *,
    preset: Preset = "both",
    seeds: Annotated[
        int | None, WHOLE, Parameter(help="Seeds a cell.", show_default="3 at 100K, 1 above and over K and r")
    ] = None,
    samples: Samples = None,
    only: Annotated[Only | None, Parameter(name="*")] = None,
    results: Annotated[
        Path | None,
        Parameter(help="Where results are kept: a directory or a .jsonl file. [default: results/]", group=RUN),
    ] = None,
    out: Annotated[
        Path | None,
        Parameter(
            help="Draw the item's figure into this file, one for each preset; of all, a directory. "
            "[default: of curves, curves.png; of others, none]",
            group=RUN,
        ),
    ] = None,
    force: Annotated[Force, Parameter(group=RUN)] = False,
    device: Device = "auto",
    retry_failed: RetryFailed = False,
    dry_run: Annotated[
        bool, SWITCH, Parameter(help="Say how many runs are done and how many missing; train nothing.", group=RUN)
    ] = False,
    format: Form = "text",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run what a table or figure lacks, packed into ensembles, then print or draw it.

    Example: auxmod reproduce table1b --samples 100_000 --n 16 --q 97
    """
    require(seeds is None or seeds >= 1, f"--seeds is {seeds}, but a cell needs at least 1.")
    from auxmod.reporting import tables
    from auxmod.reporting.cells import TITLES
    from auxmod.reporting.results import default_place

    picture = out or (Path("curves.png") if item == "curves" and not samples else None)
    pictures = _pictures(item, PRESETS[preset], picture) if picture else []
    require(not (picture and samples), "--out draws the paper's numbers of samples: leave out --samples, or --out.")
    _check_free(pictures, force or dry_run)
    place, counts = results or default_place(), whole_numbers(samples, "--samples")
    runs = _runs(item, PRESETS[preset], seeds, counts, only or Only())
    if dry_run:
        return _describe(runs, place, json)
    common = Common(device=device, retry_failed=retry_failed, quiet=quiet)
    failed = sum(_run(name, cells, place, common) for name, cells in runs.items())
    stored = _stored(place)
    if item in (*TITLES, "all"):
        show_tables(tables.tables(item, PRESETS[preset], stored, counts), "json" if json else format)
    drawn = _draw(pictures, stored)
    if item not in (*TITLES, "all") and (json or format == "json"):
        display.print_json(drawn)
    for each in drawn:
        display.console(stderr=True).print(f"drawn: {each['figure']}", markup=False)
    if failed:
        raise RuntimeError(f"{failed} runs failed: --retry-failed tries them again.")


def _runs(
    item: str, presets: Sequence[str], seeds: int | None, samples: Sequence[int], only: Only
) -> dict[str, list[RunConfig]]:
    """The runs that an item needs, or each of all the items."""
    from auxmod.experiments.recipes import RECIPES, at_samples, cells

    keep = only.keeper()
    if item != "all" and item not in RECIPES:
        chosen = only != Only() or samples or seeds
        require(not chosen, f"{item} needs no runs, so that there are none to choose: leave out the flags that do.")
        return {}
    names = at_samples(RECIPES if item == "all" else [item], samples)
    found = {name: cells(name, presets, seeds=seeds, samples=samples, keep=keep) for name in names}
    require(
        any(found.values()),
        f"No cell of {item} is as --n, --q, --samples, --method and --embedding ask: leave some of them out.",
    )
    return found


def _stored(place: Path) -> Index:
    from auxmod.reporting.results import read

    return read(place) if place.exists() else {}


def _run(item: str, runs: Sequence[RunConfig], place: Path, common: Common) -> int:
    """Train what has no result anywhere in the place; how many runs failed, now or before."""
    from auxmod.reporting.results import failures, missing

    stored = _stored(place)
    left, failed = missing(stored, runs), failures(stored, runs)
    if common.retry_failed:
        left, failed = [*left, *failed], []
    file = place if place.suffix == ".jsonl" else place / f"{item}.jsonl"
    rows = replace(common, results=file).run(left) if left else []
    return len(failed) + sum("failed" in row for row in rows)


def _describe(runs: dict[str, list[RunConfig]], place: Path, as_json: bool) -> None:
    from auxmod.learning.cost import work
    from auxmod.reporting.render import amount
    from auxmod.reporting.results import failures, missing

    stored = _stored(place)
    rows: list[dict[str, Any]] = []
    for item, cells in runs.items():
        for samples in sorted({run.training.samples for run in cells}):
            own = [run for run in cells if run.training.samples == samples]
            left, failed = missing(stored, own), len(failures(stored, own))
            pflop = round(sum(map(work, left)) / 1e15, 1)
            counts = (len(own), len(own) - len(left) - failed, failed, len(left), pflop)
            rows.append(dict(zip(STANDING, (item, samples, *counts), strict=True)))
    if as_json:
        return display.print_json(rows)
    words = [[str(row[name]) if name != "samples" else amount(row[name]) for name in STANDING] for row in rows]
    display.console().print(display.table(f"What there is in {place}, and what is missing", STANDING, words))
    display.console().print("pflop: 10¹⁵ operations still to do; auxmod bench says how many a second a device does.")


# ---- drawing ---------------------------------------------------------------------------------


class Picture(NamedTuple):
    """A figure to draw."""

    item: str
    preset: str
    path: Path


def _pictures(item: str, presets: Sequence[str], out: Path) -> list[Picture]:
    """The figures of an item: one for each preset in which it differs; of `all`, each of them in a directory."""
    from auxmod.experiments.recipes import differs_by_preset
    from auxmod.reporting.figures import FIGURES
    from auxmod.reporting.looks import check_name

    require(item in (*FIGURES, "all"), f"--out draws a figure, but {item} has none; those: {', '.join(FIGURES)}, all.")
    if item != "all":
        check_name(out)
    found = []
    for name in FIGURES if item == "all" else (item,):
        path, own = out / f"{name}.png" if item == "all" else out, presets if differs_by_preset(name) else presets[:1]
        named = (path.with_stem(f"{path.stem}-{preset}") if len(own) > 1 else path for preset in own)
        found += [Picture(name, preset, file) for preset, file in zip(own, named, strict=True)]
    return found


def _check_free(pictures: Sequence[Picture], force: bool) -> None:
    """Refuse, before anything is trained, what could not be drawn at the end."""
    from auxmod.reporting.looks import check_name

    for _, _, path in pictures:
        check_name(path)
        made = next(folder for folder in path.parents if folder.exists())
        require(made.is_dir(), f"--out is {str(path)!r}, but {str(made)!r} is a file: choose another --out.")
        require(not path.is_dir(), f"--out is {str(path)!r}, which is a directory: name a file.")
        free = force or not path.exists()
        require(free, f"{path} exists already: choose another --out, or add --force to redraw it.")


def _draw(pictures: Sequence[Picture], stored: Index) -> list[dict[str, Any]]:
    """Draw them; what was drawn, in which preset, where."""
    from auxmod.experiments.recipes import differs_by_preset
    from auxmod.reporting import figures, looks

    drawn = []
    for item, preset, path in pictures:
        looks.save(figures.draw(item, preset, stored), path)
        drawn.append({"item": item, "preset": preset if differs_by_preset(item) else None, "figure": str(path)})
    return drawn
