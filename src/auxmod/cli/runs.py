"""`auxmod runs`: list, show, remove and compare the runs in a store."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from auxmod.checked import shown
from auxmod.cli.display import COLOURS, console, line_chart, mapping, percent, print_json, say, table, titled, verbatim
from auxmod.cli.options import SWITCH, Force, Json
from auxmod.errors import UserError, require
from auxmod.experiments import catalogue, claims
from auxmod.experiments.catalogue import NEAR_FIGURE, Entry
from auxmod.experiments.choosing import NEAR, by_near
from auxmod.experiments.results_file import Results
from auxmod.experiments.run_directory import FILES, Run, is_leftover
from auxmod.files import CONFIG, MODEL, STEPS, check_free, models_of

app = App(
    name="runs",
    help="What is in a store, the directory where train, sweep, grid and search leave their runs and results.",
)
STORE = Path("runs")
Store = Annotated[Path, Parameter(help="A directory of runs and results files, or one results file.")]
Where = Annotated[
    str | None, Parameter(help="Conditions that all must hold, such as method=aux,n=16,match>0.9 or moduli=1,2,4.")
]
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
    entries = _chosen(store, where, sort, reverse)
    _say_stopped(store)
    if json:
        return print_json([_plain(entry) for entry in entries])
    asked = [*([sort] if sort else []), *(name for name, _, _ in catalogue.conditions(where))]
    near = [NEAR_FIGURE] if _large(entries, any) else []
    timed = ["members"] if "seconds" in asked else []
    columns = [name for name in dict.fromkeys((*COLUMNS, *_apart(entries), *near, *asked, *timed)) if name != "name"]
    rows = [(verbatim(entry.name), *(_figure(name, entry.summary[name]) for name in columns)) for entry in entries]
    console().print(titled(f"{len(entries)} of {store}", table("", ("run", *columns), rows)))


@app.command
def show(name: str, /, *, store: Store = STORE, json: Json = False) -> None:
    """Show one run: its settings, figures, origin and learning curve.

    Parameters
    ----------
    name: str
        Its directory, or the beginning of its hash.
    """
    entry = catalogue.lookup(store, name)
    near = _large([entry], all) and bool(entry.curve(near=True))
    curve = entry.curve(near)
    model = models_of(entry.path) / catalogue.by_hash(entry) if entry.path.is_file() else entry.path
    kept = {"model": str(model)} if (model / MODEL).is_file() else {}
    if json:
        told = {"name": entry.name, "state": entry.state, **kept, "curve_of": _OF[near], "curve": curve}
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
        out.print(_held_out(near))
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


@app.command
def compare(
    names: list[str] | None = None,
    /,
    *,
    store: Store = STORE,
    where: Where = None,
    out: Annotated[Path | None, Parameter(help="Draw the curves into this file (.png, .svg, .pdf).")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plot the learning curves of several runs together.

    Parameters
    ----------
    names: list[str]
        Their directories, or the beginnings of their hashes. Without names, --where chooses the runs.
    """
    require(
        bool(names) != (where is not None), "Name the runs to compare, or choose them with --where: one of the two."
    )
    entries = [catalogue.lookup(store, name) for name in names] if names else _chosen(store, where, "match", False)
    entries = list({(entry.path.resolve(), catalogue.by_hash(entry)): entry for entry in entries}.values())
    require(bool(entries), f"No run in {store} is as --where {where!r} asks.")
    drawn = [entry for entry in entries if entry.curve()]
    require(bool(drawn), "None of these runs has a learning curve yet: there is nothing to compare.")
    near = _large(drawn, all) and all(entry.curve(near=True) for entry in drawn)
    curves = dict(zip(catalogue.labels(drawn), (entry.curve(near) for entry in drawn), strict=True))
    if out:
        _draw(curves, out, force, _held_out(near))
    if json:
        labelled = zip(curves.items(), drawn, strict=True)
        told = {"curve_of": _OF[near]}
        return print_json([_plain(e) | {"label": label} | told | {"curve": curve} for (label, curve), e in labelled])
    page = console()
    if len(curves) > len(COLOURS):
        page.print(f"The first {len(COLOURS)} of {len(curves)}; --out draws them all.")
    page.print(_held_out(near))
    page.print(line_chart({verbatim(label): curve for label, curve in list(curves.items())[: len(COLOURS)]}))
    if out:
        page.print(f"drawn: {out}", markup=False)


def _apart(entries: Sequence[Entry]) -> list[str]:
    """The settings beyond `COLUMNS` in which runs of one method and N differ: a sweep's axes; none if too many."""
    groups: dict[tuple[str, int], list[Entry]] = {}
    for entry in entries:
        groups.setdefault((entry.settings["method"], entry.settings["n"]), []).append(entry)
    names = dict.fromkeys(name for group in groups.values() for name in catalogue.differing(group))
    more = [name for name in names if name not in COLUMNS]
    return more if len(more) <= catalogue.MANY else []


_OF = {False: "accuracy", True: "near"}
"""What a curve's second numbers are, as its points in a run's files name it."""


def _held_out(near: bool) -> str:
    """What the curves show, as a title."""
    return f"Held-out answers within {NEAR:g}·q" if near else "Held-out match accuracy"


def _large(entries: Sequence[Entry], how_many: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether any, or all, of the runs have a q so large that few answers are exact; False for no runs."""
    return bool(entries) and how_many(by_near([entry.settings["q"]]) for entry in entries)


def _draw(curves: dict[str, list[tuple[float, float]]], out: Path, force: bool, what: str) -> None:
    from auxmod.reporting.figures import looks
    from auxmod.reporting.figures.curves import accuracy_figure

    check_free(out, force)
    looks.check_name(out)
    looks.save(accuracy_figure(curves, what), out)


# -- choosing and printing ------------------------------------------------------------------------------------


def _chosen(store: Path, where: str | None, sort: str | None, reverse: bool) -> list[Entry]:
    entries, notes = catalogue.find(store)
    for note in notes:
        say(f"Left out: {note}")
    return catalogue.select(catalogue.arrange(entries, sort, reverse), where)


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


def _plain(entry: Entry) -> dict[str, Any]:
    return entry.summary | ({"failed": entry.row["failed"]} if "failed" in entry.row else {})


def _figure(name: str, value: Any) -> str:
    if value is None:
        return "–"
    if name in catalogue.FIGURES and name != "seconds":
        return percent(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else verbatim(shown(value))
