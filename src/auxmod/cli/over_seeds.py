"""`auxmod runs table` and `compare`: the runs of a store side by side, as means over seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from cyclopts import Parameter

from auxmod.cli.display import COLOURS, console, line_chart, print_json, say, verbatim
from auxmod.cli.options import SWITCH, Force, Json
from auxmod.cli.tables import show_tables
from auxmod.errors import require
from auxmod.experiments import catalogue, groups
from auxmod.experiments.catalogue import NEAR_FIGURE, Entry
from auxmod.experiments.choosing import NEAR, by_near
from auxmod.experiments.groups import ACCURACIES, Group
from auxmod.files import check_free
from auxmod.reporting.render import Format

STORE = Path("runs")
Store = Annotated[Path, Parameter(help="A directory of runs and results files, or one results file.")]
Where = Annotated[
    str | None, Parameter(help="Conditions that all must hold, such as method=aux,n=16,match>0.9 or moduli=1,2,4.")
]
_FIGURES = f"Accuracies, one or more of {', '.join(ACCURACIES)}. [default: match; of a q above 1000 {NEAR_FIGURE}]"
_FORMAT = "How it is printed; csv has a line for each row and figure, json a list with one table."
OF = {False: "accuracy", True: "near"}
"""What a curve's second numbers are, as its points in a run's files name it."""


def table(
    store: Store = STORE,
    /,
    *,
    where: Where = None,
    figure: Annotated[str | None, Parameter(help=_FIGURES, show_default=False)] = None,
    across: Annotated[str | None, Parameter(help="A setting whose values are the columns, such as method.")] = None,
    format: Annotated[Format, Parameter(help=_FORMAT)] = "text",
    json: Json = False,
) -> None:
    """Print a table of runs: a row for each combination of the settings in which they differ, as means over seeds.

    Accuracies are in percent, in JSON and CSV too. Example: auxmod runs table --across method --format latex
    """
    from auxmod.reporting.over_seeds import build

    entries = [entry for entry in chosen(store, where, None, False) if entry.state != "model"]
    asked = [part.strip() for part in figure.split(",")] if figure is not None else _figures(entries, across)
    made = build(entries, list(dict.fromkeys(asked)), across)
    require(bool(made.cells), _none(store, where))
    show_tables([made], "json" if json else format)


def _figures(entries: Sequence[Entry], across: str | None) -> list[str]:
    """What tells these runs apart: exact answers, near ones of a large q, or both of some of each."""
    if large(entries, all):
        return [NEAR_FIGURE]
    return ["match", NEAR_FIGURE] if large(entries, any) and not across else ["match"]


def _none(store: Path, where: str | None) -> str:
    return f"There is no run in {store}." if where is None else f"No run in {store} is as --where {where!r} asks."


class Line(NamedTuple):
    """A line of a picture: a run's learning curve, or the mean of several."""

    label: str
    told: Mapping[str, Any]
    """What JSON says of it besides."""
    points: Sequence[tuple[float, float]]
    spread: Sequence[float]
    """The standard deviation at each point; empty for a single run."""
    name: str
    """Its label, and how many runs it is the mean of if several."""


def compare(
    names: list[str] | None = None,
    /,
    *,
    store: Store = STORE,
    where: Where = None,
    each: Annotated[bool, SWITCH, Parameter(help="A line for every run, not for the mean over seeds.")] = False,
    out: Annotated[Path | None, Parameter(help="Draw the curves into this file (.png, .svg, .pdf).")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Plot the learning curves of several runs together; of those that differ in seed alone, the mean.

    In the picture a band of one standard deviation lies around it.

    Parameters
    ----------
    names: list[str]
        Their directories, or the beginnings of their hashes. Without names, --where chooses the runs.
    """
    require(
        bool(names) != (where is not None), "Name the runs to compare, or choose them with --where: one of the two."
    )
    entries = [catalogue.lookup(store, name) for name in names] if names else chosen(store, where, "match", False)
    entries = list({(entry.path.resolve(), catalogue.by_hash(entry)): entry for entry in entries}.values())
    require(bool(entries), _none(store, where))
    drawn = [entry for entry in entries if entry.curve()]
    require(bool(drawn), "None of these runs has a learning curve yet: there is nothing to compare.")
    near = large(drawn, all) and all(entry.curve(near=True) for entry in drawn)
    found = groups.grouped(drawn)
    twice = bool(names) and sum(len(group.entries) for group in found) < len(drawn)  # each that is named is drawn
    lines = _of_runs(drawn, near) if each or twice else _of_groups(found, near)
    title = held_out(near) + (", mean over seeds" if any(line.spread for line in lines) else "")
    if out:
        _draw(lines, out, force, held_out(near))
    if json:
        told = {"curve_of": OF[near]}
        return print_json([{**line.told, "label": line.label, **told, "curve": line.points} for line in lines])
    page = console()
    page.print(title)
    page.print(line_chart({verbatim(line.name): line.points for line in lines[: len(COLOURS)]}))
    if left := [line.name for line in lines[len(COLOURS) :]]:
        remedy = "" if out else " --out draws all of them."
        page.print(f"Left out here, where there are {len(COLOURS)} colours: {verbatim('; '.join(left))}.{remedy}")
    if out:
        page.print(f"drawn: {out}", markup=False)


def _of_runs(entries: Sequence[Entry], near: bool) -> list[Line]:
    labels = groups.labels(entries)
    return [Line(label, plain(e), e.curve(near), [], label) for label, e in zip(labels, entries, strict=True)]


def _of_groups(found: Sequence[Group], near: bool) -> list[Line]:
    """A line for each group; one run alone is told of as ever."""
    alone = all(len(group.entries) == 1 for group in found)
    labels = groups.labels([group.entries[0] for group in found]) if alone else groups.group_labels(found)
    return [_of_group(group, label, near) for group, label in zip(found, labels, strict=True)]


def _of_group(group: Group, label: str, near: bool) -> Line:
    curve, several = group.curve(near), len(group.entries) > 1
    seeds = {"runs": [entry.name for entry in group.entries], "seeds": [e.settings["seed"] for e in group.entries]}
    spread = {"std": [point.std for point in curve], "count": [point.seeds for point in curve]}
    told = (group.settings if several else plain(group.entries[0])) | seeds | spread
    points = [(point.step, point.mean) for point in curve]
    name = f"{label} ({len(group.entries)})" if several else label
    return Line(label, told, points, [point.std or 0.0 for point in curve] if several else [], name)


def _draw(lines: Sequence[Line], out: Path, force: bool, what: str) -> None:
    from auxmod.reporting.figures import looks
    from auxmod.reporting.figures.curves import accuracy_figure

    check_free(out, force)
    looks.check_name(out)
    spreads = {line.name: line.spread for line in lines}
    looks.save(accuracy_figure({line.name: line.points for line in lines}, what, spreads), out)


# -- what the commands about stored runs have in common -------------------------------------------------------


def chosen(store: Path, where: str | None, sort: str | None, reverse: bool) -> list[Entry]:
    """The runs of a store that meet the conditions, sorted; what cannot be read is said on stderr."""
    entries, notes = catalogue.find(store)
    for note in notes:
        say(f"Left out: {note}")
    return catalogue.select(catalogue.arrange(entries, sort, reverse), where)


def large(entries: Sequence[Entry], how_many: Callable[[Iterable[bool]], bool]) -> bool:
    """Whether any, or all, of the runs have a q so large that few answers are exact; False for no runs."""
    return bool(entries) and how_many(by_near([entry.settings["q"]]) for entry in entries)


def held_out(near: bool) -> str:
    """What the curves show, as a title."""
    return f"Held-out answers within {NEAR:g}·q" if near else "Held-out match accuracy"


def plain(entry: Entry) -> dict[str, Any]:
    """What JSON says of a run: its summary, and why it failed if it did."""
    return entry.summary | ({"failed": entry.row["failed"]} if "failed" in entry.row else {})
