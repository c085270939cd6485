"""What tells runs apart, and groups of runs that differ in seed alone: their means and spread. No torch."""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from auxmod.checked import shown
from auxmod.config import DATA
from auxmod.experiments.catalogue import CHOICES, TAU_FIGURES, Entry, once
from auxmod.experiments.choosing import NEAR, level

Settings = Mapping[str, Any]
MANY = 6
"""The most settings in a label, unless more are needed to tell runs apart."""
LEADING = ("embedding", "n", "q", "samples", "method", "k", "r")
"""The settings that are named before all others."""
ACCURACIES: dict[str, float | None] = {"match": None, **{name: float(tau) for name, tau in TAU_FIGURES.items()}}
ACCURACIES |= {"validation": None, "near": NEAR}
"""The figures of a run that chance can be said of: the τ within which an answer counts, or None for an exact one."""


class Figure(NamedTuple):
    """A figure over seeds; accuracies are shares."""

    mean: float | None
    """None if no run has it."""
    std: float | None
    """Sample standard deviation (n − 1); None for a single seed."""
    seeds: int


class Point(NamedTuple):
    """A point of a mean learning curve."""

    step: float
    mean: float
    std: float | None
    seeds: int


@dataclass(frozen=True)
class Group:
    """Runs that differ in seed alone, one for each seed."""

    entries: Sequence[Entry]

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that they share: all but the seed."""
        return {name: value for name, value in self.entries[0].settings.items() if name != "seed"}

    def count(self, state: str) -> int:
        """How many of the runs are so: done, failed, unfinished."""
        return sum(entry.state == state for entry in self.entries)

    def figure(self, name: str) -> Figure:
        """A figure's mean and spread over the runs that are done."""
        values = (entry.summary[name] for entry in self.entries if entry.state == "done")
        return over([value for value in values if value is not None])

    def chance(self, name: str) -> float:
        """What an accuracy is to beat: a guess or, of rows of one's own, the best constant answer."""
        rows = [entry.row for entry in self.entries if entry.state == "done"]
        return level(self.entries[0].config, rows, ACCURACIES[name])

    def curve(self, near: bool = False) -> list[Point]:
        """The mean learning curve, of exact answers or of near ones."""
        return mean_curve([curve for entry in self.entries if (curve := entry.curve(near))])


def grouped(entries: Iterable[Entry]) -> list[Group]:
    """Group runs by all settings but the seed, in order of first appearance; a run that is stored twice counts once."""
    groups: dict[str, list[Entry]] = {}
    for entry in once(entries, lambda entry: str(entry.row["hash"])):
        groups.setdefault(seedless(entry), []).append(entry)
    return [Group(group) for group in groups.values()]


def seedless(entry: Entry) -> str:
    """What runs that differ in seed alone have in common, wherever their data lie."""
    return dataclasses.replace(entry.config, seed=0).hash


def over(values: Sequence[float]) -> Figure:
    """The mean and spread of some figures."""
    mean = statistics.fmean(values) if values else None
    return Figure(mean, statistics.stdev(values) if len(values) > 1 else None, len(values))


def mean_curve(curves: Sequence[Sequence[tuple[float, float]]]) -> list[Point]:
    """The mean of learning curves at each step that was measured in all curves that reach it.

    A curve that ended early counts up to its end. Steps that only some of the others have, as one may be stored with
    more points than another, are left out: there the mean would jump.
    """
    lines = [dict(curve) for curve in curves]
    ends = [max(line) for line in lines]
    found = []
    for step in sorted({step for line in lines for step in line}):
        reaching = [line for line, end in zip(lines, ends, strict=True) if end >= step]
        if all(step in line for line in reaching):
            mean, std, seeds = over([line[step] for line in reaching])
            assert mean is not None
            found.append(Point(step, mean, std, seeds))
    return found


# ---- what tells them apart --------------------------------------------------------------------------------


def differing(settings: Sequence[Settings]) -> list[str]:
    """The settings in which runs differ, each said once: K and r replace moduli and weights, a data file its digest."""
    sugar = any(all(each[name] is not None for each in settings) for name in ("k", "r"))
    hidden = {*(("moduli", "weights") if sugar else ("k", "r"))}
    for path, digest in DATA.items():
        files = {(each[path], each[digest]) for each in settings}
        hidden |= {digest} if len(files) == len({name for name, _ in files}) > 1 else set()
    return [name for name in _all_differing(settings) if name not in hidden]


def _all_differing(settings: Sequence[Settings]) -> list[str]:
    names = settings[0] if settings else ()
    return [name for name in names if _kinds(settings, [name]) > 1]


def _kinds(settings: Iterable[Settings], names: Sequence[str]) -> int:
    """How many runs these settings tell apart."""
    return len({tuple(str(each[name]) for name in names) for each in settings})


def axes(settings: Sequence[Settings]) -> list[str]:
    """The settings that tell runs apart: method, N, and those in which runs of one method and N differ.

    Left out is what follows from method and N, such as the learning rate that `auto` brings.
    """
    alike: dict[tuple[Any, Any], list[Settings]] = {}
    for each in settings:
        alike.setdefault((each["method"], each["n"]), []).append(each)
    names = {name for group in alike.values() for name in differing(group)}
    names |= {name for name in ("method", "n") if _kinds(settings, [name]) > 1}
    every = _all_differing(settings)
    if _kinds(settings, sorted(names)) < _kinds(settings, every):  # as where weights of one r differ in a last digit
        names = {*every}
    return [name for name in dict.fromkeys((*LEADING, *(settings[0] if settings else ()))) if name in names]


def along(settings: Sequence[Settings], names: Iterable[str]) -> list[str]:
    """The settings in which runs differ besides these, which tell them apart."""
    known = {*names}
    said = {"k", "r"} <= known  # they say what moduli and weights would
    hidden = known | ({"moduli", "weights"} if said else {"k", "r"})
    hidden |= {name for file in DATA.items() if known & {*file} for name in file}
    return [name for name in _all_differing(settings) if name not in hidden]


def labels(entries: Sequence[Entry]) -> list[str]:
    """What tells runs apart, in words: the settings in which they differ, or else their names."""
    made = _words([entry.settings for entry in entries])
    return made if all(made) and len(set(made)) == len(made) else [entry.name for entry in entries]


def group_labels(groups: Sequence[Group]) -> list[str]:
    """What tells groups apart, in words; of a single one, its method."""
    made = _words([group.settings for group in groups])
    return made if all(made) else [f"method={group.settings['method']}" for group in groups]


def _words(settings: Sequence[Settings]) -> list[str]:
    """The settings that tell runs apart (of more than `MANY`, as few as do so) with each run's values, in short."""
    names = axes(settings)
    names = names if len(names) <= MANY else _fewest(settings, names)
    short = [_worded(each, names, _short) for each in settings]
    told = len({*short}) == _kinds(settings, names)
    return short if told else [_worded(each, names, lambda _, value: str(value)) for each in settings]


def _worded(settings: Settings, names: Sequence[str], word: Callable[[str, Any], str]) -> str:
    return " ".join(f"{name}={word(name, settings[name])}" for name in names if settings[name] is not None)


def _short(name: str, value: Any) -> str:
    return (Path(value).name or "drawn") if name in DATA else shown(value)


def _fewest(settings: Sequence[Settings], names: Iterable[str]) -> list[str]:
    """Those of the settings without which some runs would not be told apart, going from the first to the last."""
    kept: list[str] = []
    for name in names:
        if _kinds(settings, [*kept, name]) > _kinds(settings, kept):
            kept.append(name)
    return kept


def ordered(groups: Iterable[Group], names: Sequence[str]) -> list[Group]:
    """Sort groups by these settings, methods in the order in which they are documented; None comes first."""
    return sorted(groups, key=lambda group: [_rank(name, group.settings[name]) for name in names])


def _rank(name: str, value: Any) -> tuple[int, Any]:
    if name in CHOICES:
        return 0, CHOICES[name].index(value)
    if isinstance(value, tuple):
        return 3, value
    return (0, 0) if value is None else (1, value) if isinstance(value, int | float) else (2, str(value))
