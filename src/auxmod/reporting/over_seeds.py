"""A table of any runs: a row for each combination of the settings in which they differ, as means over seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from auxmod.errors import require
from auxmod.experiments import groups
from auxmod.experiments.catalogue import Entry
from auxmod.experiments.choosing import NEAR
from auxmod.experiments.groups import ACCURACIES, LEADING, Group
from auxmod.reporting import results
from auxmod.reporting.cells import Cell, Shape, Table
from auxmod.reporting.render import HEADS, word

_PAPERS = ("paper", "difference", "item", "preset", "command")
BASIS = ("method", "n", "q")
"""The settings that name a row if the runs differ in none."""
TITLES = {
    "match": "Match accuracy (%)",
    "validation": "Held-out match accuracy (%)",
    "near": f"Held-out answers within {NEAR:g}·q (%)",
}


@dataclass(frozen=True, kw_only=True)
class OverSeeds(Table):
    """A table whose rows and columns follow from its runs."""

    form: Shape
    order: Sequence[Any]

    @property
    def shape(self) -> Shape:
        return self.form

    @property
    def columns(self) -> list[Any]:
        return list(self.order)

    def records(self) -> list[dict[str, Any]]:
        """One flat record per figure: every setting but the seed, and no figure of the paper's."""
        made = (cell.to_dict() | {"unfinished": cell.unfinished} for cell in self.cells)
        return [{name: value for name, value in each.items() if name not in _PAPERS} for each in made]

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in super().to_dict().items() if name not in _PAPERS}


def build(entries: Iterable[Entry], figures: Sequence[str], across: str | None = None) -> OverSeeds:
    """The table of these runs' accuracies. The values of the setting ``across``, if given, are its columns."""
    found = groups.grouped(entries)
    settings = [group.settings for group in found]
    _check(settings, figures, across)
    columns = () if across is None else (across,)
    down = [name for name in groups.axes(settings) if name not in columns]
    down = down or [name for name in BASIS if name not in columns]
    cells = [_cell(group, figure) for group in groups.ordered(found, (*down, *columns)) for figure in figures]
    order = [group.settings[across] for group in groups.ordered(found, columns)] if across else figures
    return OverSeeds(
        item="runs",
        preset=None,
        down=tuple(down),
        cells=cells,
        notes=list(_notes(found, (*down, *columns))),
        of=_shared(settings, (*down, *columns)),
        made=results.made_on(e.row for group in found for e in group.entries if e.state == "done"),
        form=Shape(_title(figures), (), across=across or "figure", ours="", seeds=True),
        order=list(dict.fromkeys(order)),
    )


def _check(settings: Sequence[Mapping[str, Any]], figures: Sequence[str], across: str | None) -> None:
    """Refuse figures that are no accuracies, and columns that are no setting."""
    for figure in figures:
        known = ", ".join(ACCURACIES)
        require(figure in ACCURACIES, f"--figure is {figure!r}, but must be one or more of these accuracies: {known}.")
    if across is None:
        return
    require(across != "seed", "--across is 'seed', but a figure is a mean over seeds: name another setting.")
    names = sorted({name for each in settings for name in each})
    require(not names or across in names, f"--across is {across!r}, but must be a setting, one of {', '.join(names)}.")
    one = f"--across {across} shows one figure, but --figure is {','.join(figures)}: name one of these."
    require(len(figures) == 1, one)


def _title(figures: Sequence[str]) -> str:
    if len(figures) > 1:
        return "Accuracy (%)"
    return TITLES.get(figures[0]) or f"Answers within {ACCURACIES[figures[0]]:g}·q (%)"


def _cell(group: Group, figure: str) -> Cell:
    mean, std, count = group.figure(figure)
    return Cell(
        facts=group.settings | {"figure": figure},
        ours=None if mean is None else 100 * mean,
        std=None if std is None else 100 * std,
        count=count,
        failed=group.count("failed"),
        unfinished=group.count("unfinished"),
        chance=100 * group.chance(figure),
    )


def _shared(settings: Sequence[Mapping[str, Any]], shown: Sequence[str]) -> str:
    """The telling settings that are the same in all runs, for the title."""
    same = (name for name in LEADING if name not in shown and len({str(each[name]) for each in settings}) == 1)
    known = (name for name in same if settings[0][name] is not None)
    return "".join(f", {HEADS.get(name, name)} = {word(name, settings[0][name])}" for name in known)


def _notes(found: Sequence[Group], shown: Sequence[str]) -> Iterator[str]:
    own = any(group.settings["test_data"] for group in found)
    blind = "what guessing gets" + (" or, of rows of one's own, the best constant answer" if own else "")
    yield f"Mean ± standard deviation over seeds, their number in brackets; chance is {blind}."
    lost = {why: sum(group.count(why) for group in found) for why in ("failed", "unfinished")}
    if any(lost.values()):
        yield f"In no mean: {' and '.join(f'{count} {why}' for why, count in lost.items() if count)}."
    others = groups.along([group.settings for group in found], shown)
    if others:
        yield f"These settings differ too, but tell no more runs apart: {', '.join(others)}."
