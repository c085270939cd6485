"""`auxmod runs`: list, show and remove the runs in a store; `over_seeds` has its other commands."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from auxmod.checked import shown
from auxmod.cli import over_seeds
from auxmod.cli.display import console, line_chart, mapping, percent, print_json, say, table, verbatim
from auxmod.cli.options import SWITCH, Json
from auxmod.cli.over_seeds import OF, STORE, Store, Where, chosen, held_out, large, plain
from auxmod.errors import UserError, require
from auxmod.experiments import catalogue, claims
from auxmod.experiments.catalogue import NEAR_FIGURE, Entry
from auxmod.experiments.groups import MANY, axes
from auxmod.experiments.results_file import Results
from auxmod.experiments.run_directory import FILES, Run, is_leftover
from auxmod.files import CONFIG, MODEL, STEPS, models_of

app = App(
    name="runs",
    help="What is in a store, the directory where train, sweep, grid and search leave their runs and results.",
)
app.command(over_seeds.table)
app.command(over_seeds.compare)
COLUMNS = ("state", "method", "n", "q", "k", "r", "samples", "seed", "match", "chance")


@app.command(name="list")
def list_(
    store: Store = STORE,
    /,
    *,
    where: Where = None,
    sort: Annotated[str | None, Parameter(help="A setting or figure to sort by, the largest first.")] = None,
    reverse: Annotated[bool, SWITCH, Parameter(help="The smallest first.")] = False,
    json: Json = False,
) -> None:
    """List the runs and cells of a store.

    The figure `seconds` is the time of a whole ensemble: a run that was one of several `members` took it with them.
    """
    entries = chosen(store, where, sort, reverse)
    _say_stopped(store)
    if json:
        return print_json([plain(entry) for entry in entries])
    asked = [*([sort] if sort else []), *(name for name, _, _ in catalogue.conditions(where))]
    near = [NEAR_FIGURE] if large(entries, any) else []
    timed = ["members"] if "seconds" in asked else []
    columns = [name for name in dict.fromkeys((*COLUMNS, *_apart(entries), *near, *asked, *timed)) if name != "name"]
    rows = [(verbatim(entry.name), *(_figure(name, entry.summary[name]) for name in columns)) for entry in entries]
    console().print(table(f"{len(entries)} of {store}", ("run", *columns), rows))


@app.command
def show(name: str, /, *, store: Store = STORE, json: Json = False) -> None:
    """Show one run: its settings, figures, origin and learning curve.

    Parameters
    ----------
    name: str
        Its directory, or the beginning of its hash.
    """
    entry = catalogue.lookup(store, name)
    near = large([entry], all) and bool(entry.curve(near=True))
    curve = entry.curve(near)
    model = models_of(entry.path) / catalogue.by_hash(entry) if entry.path.is_file() else entry.path
    kept = {"model": str(model)} if (model / MODEL).is_file() else {}
    if json:
        told = {"name": entry.name, "state": entry.state, **kept, "curve_of": OF[near], "curve": curve}
        return print_json({**entry.row, **told})
    out = console()
    out.print(mapping(f"{entry.name}: {entry.state}", entry.settings))
    figures = {n: _figure(n, entry.summary[n]) for n in catalogue.FIGURES if entry.summary[n] is not None}
    if "failed" in entry.row:
        figures["failed"] = entry.row["failed"]
    if figures:
        out.print(mapping("Figures", figures))
    if entry.row.get("provenance"):
        out.print(mapping("Made with", entry.row["provenance"]))
    if kept:
        out.print(f"Its model: {model}", markup=False, soft_wrap=True)
    if curve:
        out.print(held_out(near))
        out.print(line_chart({entry.settings["method"]: curve}))


@app.command
def rm(
    runs: list[Path],
    /,
    *,
    yes: Annotated[bool, SWITCH, Parameter(help="Do not ask.")] = False,
) -> None:
    """Delete run directories, but none of them if any is not a run or holds other files too.

    Parameters
    ----------
    runs: list[Path]
        Their directories.
    """
    named = {Path(os.path.abspath(path)): path for path in runs}
    found = {place: _removable(path) for place, path in named.items()}
    chosen = [run for place, run in found.items() if found.keys().isdisjoint(place.parents)]
    if not yes:
        many = f"{len(chosen)} run{'s' * (len(chosen) > 1)}"
        require(sys.stdin.isatty(), f"This deletes {many} for good: add --yes to do so.")
        names = ", ".join(str(run.path) for run in chosen)
        answer = ""
        with contextlib.suppress(EOFError):  # Ctrl-D means no
            answer = input(f"Delete {names} for good? [y/N] ")
        if answer.strip().lower() not in ("y", "yes"):
            return console().print("Nothing was deleted.")
    for run in chosen:
        with run.held():
            if (run.path / STEPS).is_dir():
                shutil.rmtree(run.path / STEPS)
            for path in run.path.iterdir():
                path.unlink()
            run.path.rmdir()
        console().print(f"deleted: {run.path}", markup=False)


def _removable(path: Path) -> Run:
    path = path if path.name not in ("", "..") else path.resolve()  # rmdir refuses `.` and `..`
    run = Run.open(path)
    require(not path.is_symlink(), f"{path} is a link: name the run's own directory.")
    other = [each.name for each in sorted(path.iterdir()) if not _is_of_a_run(each)]
    require(not other, f"{path} holds more than a run ({', '.join(other[:3])}): move that away first.")
    return run


def _is_of_a_run(path: Path) -> bool:
    """Whether a path is one of a run's files, or the directory of its kept models with nothing else in it."""
    if not path.is_dir():
        return path.name in FILES or is_leftover(path.name)
    models = [model for step in path.iterdir() for model in (step.iterdir() if step.is_dir() else [step])]
    own = all(model.name in (CONFIG, MODEL) or is_leftover(model.name) for model in models)
    return path.name == STEPS and not path.is_symlink() and own


def _apart(entries: Sequence[Entry]) -> list[str]:
    """The settings beyond `COLUMNS` that tell runs apart, such as a sweep's axes; none if too many."""
    more = [name for name in axes([entry.settings for entry in entries]) if name not in COLUMNS]
    return more if len(more) <= MANY else []


def _say_stopped(store: Path) -> None:
    """Report, on stderr, cells that were saved but are not finished: no list has them yet."""
    for path in catalogue.places(store):
        if path.is_file() and claims.directory_of(path).is_dir():
            book = Results(path)
            with contextlib.suppress(OSError, UserError):  # the file is gone, or damaged, as reported before
                book.refresh()
                for cells, step in claims.stopped(path, book.scored | book.failures.keys()):
                    saved = f"{path}: {cells} more, saved at step {step:,}"
                    say(f"{saved}: the command that began them goes on from there.")


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name in catalogue.FIGURES and name != "seconds":
        return percent(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else verbatim(shown(value))
