"""The runs in a store, from run directories and results files: find, filter, sort. Standard library only."""

from __future__ import annotations

import functools
import operator
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from auxmod.checked import longhand, number, one_form, shown
from auxmod.config import TAUS, RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.choosing import NEAR, constant, near_of
from auxmod.experiments.ranges import TYPES
from auxmod.experiments.results_file import holds_results, read_results, supersedes
from auxmod.experiments.run_directory import Run
from auxmod.experiments.trusted import configuration
from auxmod.files import CONFIG, METRICS, MODEL, RESULT, STEPS, holds_training, is_models
from auxmod.settings import flatten

CHOICES = {name: get_args(kind) for name, kind in TYPES.items() if get_origin(kind) is Literal}
CHOICES |= {"state": ("done", "failed", "unfinished", "model")}
TAU_FIGURES = {f"tau_{tau:g}": f"{tau:g}" for tau in TAUS}
"""A run's accuracies within each τ: their names here, and in its scores."""
NEAR_FIGURE = f"tau_{NEAR:g}"
"""The figure that tells runs with a large q apart: few of their answers are exact."""
FIGURES = ("match", "chance", *TAU_FIGURES, "validation", "near", "seconds")
"""Test accuracies, and what an exact one is to beat; exact and near answers to held-out inputs at the end; the time
that the run took or, if it was one of several `members` that were trained together, all of them."""
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "=": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A run, wherever it is kept."""

    path: Path
    """Its directory, or the results file that has its row."""
    row: Mapping[str, Any]
    """The run as a row of a results file (`result_row`); it has neither scores nor a failure until it is finished."""

    @property
    def name(self) -> str:
        """Its name on the command line: its directory, or its hash."""
        return str(self.path) if self.path.is_dir() else str(self.row["hash"])

    @property
    def state(self) -> str:
        """done, failed, unfinished; or model, if a directory has only a model, as `save_pretrained` leaves it."""
        if "scores" in self.row or "failed" in self.row:
            return "done" if "scores" in self.row else "failed"
        return "model" if (self.path / MODEL).exists() and not holds_training(self.path) else "unfinished"

    @functools.cached_property
    def config(self) -> RunConfig:
        """The run's configuration."""
        return configuration(self.row["config"])

    @functools.cached_property
    def settings(self) -> dict[str, Any]:
        """The run's flat settings, and the paper's K and r if it has them."""
        return flatten(self.config) | {"k": self.config.method.k, "r": self.config.method.r}

    @functools.cached_property
    def summary(self) -> dict[str, Any]:
        """Everything that runs can be filtered and sorted by."""
        scores, made = self.row.get("scores", {}), self.row.get("provenance", {})
        figures = {"match": scores.get("match"), "chance": scores.get("chance"), "near": near_of(self.row)}
        figures |= {name: scores.get("tau", {}).get(tau) for name, tau in TAU_FIGURES.items()}
        if figures["chance"] is not None:
            figures["chance"] = max(figures["chance"], constant(scores))
        figures |= {"validation": self.row.get("validation")}
        figures |= {name: made.get(name) for name in ("seconds", "members")}
        return {"name": self.name, "hash": self.row["hash"], "state": self.state, **self.settings, **figures}

    def curve(self, near: bool = False) -> list[tuple[float, float]]:
        """(step, held-out accuracy) points, of exact answers or of near ones."""
        return measured(self.row.get("curve", []), "near" if near else "accuracy")


def measured(points: Sequence[Mapping[str, Any]], name: str = "accuracy") -> list[tuple[float, float]]:
    """The (step, held-out accuracy) of the points of a learning curve where it was measured."""
    return [(point["step"], point[name]) for point in points if point.get(name) is not None]


def places(store: Path) -> list[Path]:
    """The run directories and results files of a store, at any depth."""
    if store.is_file() or (store / CONFIG).is_file():
        return [store]
    found: list[Path] = []
    for here, below, names in os.walk(store):
        kept = {STEPS} if CONFIG in names or RESULT in names else set()  # models saved during a run belong to it
        # also skip run directories that are being made, and the models of a results file's runs
        below[:] = [n for n in below if not (n in kept or n.startswith(".") or is_models(Path(here, n)))]
        found += [Path(here)] * (CONFIG in names or RESULT in names)  # if one is lost, reading the run says so
        files = (Path(here, name) for name in names if name.endswith(".jsonl") and name != METRICS)
        found += (path for path in files if path.is_file() and holds_results(path))  # a pipe would be waited for
    return sorted(found, key=_natural)


def _natural(path: Path) -> tuple[list[list[str | int]], Path]:
    """A key to sort paths by, in which `steps/7` comes before `steps/63`; those that are level go by their letters."""
    words = (re.split("([0-9]+)", part) for part in path.parts)
    return [[int(word) if at % 2 else word for at, word in enumerate(each)] for each in words], path


def find(store: Path) -> tuple[list[Entry], list[str]]:
    """The runs in a directory or results file, and a sentence for each part that cannot be read."""
    require(store.exists(), f"There is no store {store}: name a directory of runs or a results file.")
    entries: list[Entry] = []
    notes: list[str] = []
    for path in places(store):
        try:
            entries += [read_run(path)] if path.is_dir() else [Entry(path, row) for row in read_results(path)]
        except UserError as error:
            if path == store:
                raise
            notes.append(str(error))
    return once(entries, lambda entry: entry.name), notes


def once(entries: Iterable[Entry], key: Callable[[Entry], str]) -> list[Entry]:
    """Of the entries with the same key, keep the one that counts."""
    kept: dict[str, Entry] = {}
    for entry in entries:
        known = kept.get(key(entry))
        if supersedes(entry.row, known.row if known else None):
            kept[key(entry)] = entry
    return list(kept.values())


def by_hash(entry: Entry) -> str:
    """A key for :func:`once`: the run itself, wherever it is kept."""
    return str(entry.row["hash"])


def read_run(path: Path) -> Entry:
    """Read a run directory into an entry, with the row that a results file would have."""
    run = Run.open(path)
    config, outcome = run.config, run.outcome
    row: dict[str, Any] = {"config": config.to_dict(), "hash": config.hash}
    row |= {"provenance": run.provenance, "curve": run.curve()}
    if outcome is not None:
        row |= {"failed": outcome["failed"]} if "failed" in outcome else {"scores": outcome}
    points = measured(row["curve"])
    return Entry(path, row | ({"validation": points[-1][1]} if points else {}))


def lookup(store: Path, name: str) -> Entry:
    """Find a run by name: its directory, here or in the store, or (the beginning of) its hash in the store."""
    for path in (Path(name), store / name):
        if (path / CONFIG).is_file():
            return read_run(path)
    entries, notes = find(store) if store.exists() else ([], [])
    found = once((entry for entry in entries if by_hash(entry).startswith(name)), by_hash)
    unread = f" Not read: {' '.join(notes[:3])}" if notes else ""
    sentence = f"There is no run {name!r}: it is neither a run's directory nor the hash of a run in {store}.{unread}"
    require(bool(found), sentence)
    hashes = sorted(map(by_hash, found))
    require(len(found) == 1, f"{name!r} may be any of {', '.join(hashes[:5])}: give more of the hash.")
    return found[0]


def conditions(where: str | None) -> list[tuple[str, str, str]]:
    """`method=aux,n>=16` → [("method", "=", "aux"), ("n", ">=", "16")]."""
    parts = [
        re.fullmatch(r"\s*(\w+(?:\.\d+)?)\s*(<=|>=|!=|=|<|>)\s*([^=<>\s].*?)\s*", each)
        for each in (re.split(r",(?!\s*[\d.])", where) if where else [])  # a comma before a number is part of a list
    ]
    sentence = f"--where is {where!r}, but must be conditions such as method=aux,n=16,match>0.9."
    require(None not in parts, sentence)
    return [(part[1], part[2], longhand(part[3])) for part in parts if part]


def select(entries: Sequence[Entry], where: str | None) -> list[Entry]:
    """The entries that meet every condition; an entry without the figure in question is left out."""
    asked = conditions(where)
    for name, _, wanted in asked if entries else ():
        _value(entries[0], name)  # raises if there is no such name, even if another condition leaves nothing
        choices = CHOICES.get(name, ())
        one = f"--where asks for {name} {wanted!r}, but it is one of {', '.join(choices)}."
        require(not choices or wanted.lower() in choices, one)
    return [entry for entry in entries if all(_meets(entry, *condition) for condition in asked)]


def _meets(entry: Entry, name: str, sign: str, wanted: str) -> bool:
    return _holds(_value(entry, name), _COMPARE[sign], wanted, name)


def _holds(value: Any, compare: Callable[[Any, Any], bool], wanted: str, name: str) -> bool:
    if isinstance(value, list | tuple):
        value, wanted = shown(value) or None, wanted if wanted.lower() == "none" else shown(_numbers(wanted, name))
    countable = isinstance(value, int | float) and not isinstance(value, bool)
    known = not countable or _exact(wanted) is not None or wanted.lower() == "none"
    require(known, f"--where compares {name}, a number, with {wanted!r}, which is not a number.")
    if value is None and wanted.lower() != "none":
        return False
    truths = ("true", "false", "none")
    truth = f"--where asks for {name} {wanted!r}, but it is true or false."
    require(not isinstance(value, bool) or wanted.lower() in truths, truth)
    wanted = one_form(wanted) if name == "init" else wanted
    amount = _exact(wanted)
    if isinstance(value, bool | str) or value is None or amount is None:
        same = compare in (operator.eq, operator.ne)
        require(same or value is None, f"--where orders {name}, which is no number: compare it with = or !=.")
        return same and compare(str(value).lower(), wanted.lower())
    return compare(value, amount)


def _exact(text: str) -> int | float | None:
    """The number that a text is, a whole one with all its digits; None if it is none."""
    return int(text) if re.fullmatch(r"[+-]?\d+", text) else number(text)


def _numbers(text: str, name: str) -> list[int | float]:
    values = [_exact(longhand(part.strip())) for part in text.split(",")]
    known = [value for value in values if value is not None]
    require(len(known) == len(values), f"--where compares {name}, a list of numbers, with {text!r}, which is none.")
    return known


def arrange(entries: Sequence[Entry], by: str | None, reverse: bool = False) -> list[Entry]:
    """Sort by a setting or a figure, the largest first; entries without it come last."""
    if by is None:
        return list(reversed(entries)) if reverse else list(entries)
    having = [entry for entry in entries if _value(entry, by) is not None]
    ranked = sorted(having, key=lambda entry: _rank(_value(entry, by)), reverse=not reverse)
    return ranked + [entry for entry in entries if _value(entry, by) is None]


def _rank(value: Any) -> tuple[bool, Any]:
    return (True, value) if isinstance(value, int | float) else (False, str(value))


def _value(entry: Entry, name: str) -> Any:
    values = entry.summary
    require(name in values, f"There is no {name!r} to choose by; known are: {', '.join(sorted(values))}.")
    return values[name]
