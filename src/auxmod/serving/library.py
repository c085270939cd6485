"""What the page shows of a store: its runs, their curves and its sweeps. Only files that have changed are read again.

Every run has an id and a version. A client sends the version it has seen, and gets only the runs that have changed
since, and those curves that it names, whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments import catalogue, claims
from auxmod.experiments.catalogue import NEAR_FIGURE, Entry, measured
from auxmod.experiments.choosing import NEAR, by_near
from auxmod.files import CONFIG, METRICS, MODEL, PROVENANCE, RESULT, models_of, sha256
from auxmod.problem.theory import chance

REST, SHARE = 1.0, 0.01
"""The least seconds between two looks at the store, and the largest share of the time that they may take."""
NOTES = 20
"""The most unreadable places that the page names."""
FRESH = 60.0
"""An unfinished run that has written to its curve within this many seconds counts as going."""
SHOWN = ("method", "n", "q", "k", "r", "embedding", "samples", "seed", "match", "chance")

UNREADABLE = (OSError, LookupError, TypeError, ValueError)
"""The errors that a malformed file may cause; one bad place must not take the page down."""

Signature = tuple[tuple[int, int] | None, ...]


@dataclass(frozen=True)
class Item:
    """A run as the page shows it."""

    id: str
    row: dict[str, Any]
    curve: str
    """Its points (step, loss, share) as JSON, encoded once for all clients. The share is of held-out answers: of exact
    ones or, where the row says so (`within`), of near ones. What was not measured is null."""
    model: Path | None = None
    """The directory of its checkpoint, if it has one."""
    version: int = 0


Log = tuple[int, list[dict[str, Any]]]
"""A run in training: the step at which it was last saved, and its curve until then."""
Sweep = tuple[list[Item], list[dict[str, Any]]]
"""The cells in training, and the progress of the whole sweep: one entry, or none."""


class Library:
    """A store that is watched for changes. Many threads may call its methods."""

    def __init__(self, store: Path) -> None:
        self.store = store
        self.version = self.first = time.time_ns() // 1_000_000  # above any version of an earlier server
        self.items: dict[str, Item] = {}
        self.gone: dict[str, int] = {}
        """Runs that have disappeared, each with the version from which it is missing."""
        self.sweeps: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self._read: dict[Path, tuple[Signature, list[Item] | str]] = {}
        self._training: dict[Path, set[str]] = {}
        self._standing: dict[Path, tuple[tuple[Any, ...], Sweep]] = {}
        self._looking, self._next_look = threading.Lock(), 0.0
        require(store.exists(), f"There is no store {store}: name a directory of runs or a results file.")
        self.look()

    def news(self, since: int, curves: Collection[str] = ()) -> dict[str, Any]:
        """What is new to a client that has seen version ``since``, and the curves of the runs with these ids."""
        self.look()
        version, items, seen = self.version, self.items, since if since >= self.first else 0
        return {
            "version": version,
            "anew": seen == 0,
            "rows": [item.row for item in items.values() if item.version > seen],
            "gone": [id for id, version in self.gone.items() if version > seen > 0],
            "curves": {id: items[id].curve for id in curves if id in items},
            "sweeps": self.sweeps,
            "notes": self.notes,
        }

    def model(self, id: str) -> Path | None:
        """The directory of a run's checkpoint; None if there is none."""
        item = self.items.get(id)
        return item.model if item else None

    def look(self) -> None:
        """Read what has changed, unless that was done just now or another thread is doing it."""
        if time.monotonic() < self._next_look or not self._looking.acquire(blocking=False):
            return
        try:
            began = time.monotonic()
            self._update()
            took = time.monotonic() - began
            self._next_look = began + took + max(REST, took / SHARE)
        finally:
            self._looking.release()

    def _update(self) -> None:
        found, notes, sweeps = dict[str, Item](), list[str](), list[dict[str, Any]]()
        places = catalogue.places(self.store)
        for path in places:
            items = self._items(path)
            if isinstance(items, str):
                notes.append(items)
                continue
            if path.is_file():
                training, standing = self._sweep(path, items)
                items, sweeps = [*_with_models(items, path), *training], sweeps + standing
            found |= {item.id: _stated(item, path) for item in items}
        self._read = {path: self._read[path] for path in places}
        self._publish(found)
        more = [f"And {len(notes) - NOTES} more."] if len(notes) > NOTES else []
        self.sweeps, self.notes = sweeps, notes[:NOTES] + more

    def _items(self, path: Path) -> list[Item] | str:
        """The runs of a place, or a sentence that says why they cannot be shown."""
        signature = _signature(path)
        if path not in self._read or self._read[path][0] != signature:
            try:
                read: list[Item] | str = [self._item(entry) for entry in catalogue.find(path)[0]]
            except UserError as error:
                read = str(error)
            except UNREADABLE as error:
                read = f"{path} cannot be shown ({type(error).__name__}: {error})."
            self._read[path] = (signature, read)
        return self._read[path][1]

    def _item(self, entry: Entry) -> Item:
        """The item of a run directory, or of a row of a results file."""
        has_model = entry.path.is_dir() and (entry.path / MODEL).is_file()
        return self._made(entry, entry.row.get("curve", []), entry.path if has_model else None)

    def _made(self, entry: Entry, points: list[dict[str, Any]], model: Path | None = None) -> Item:
        name, run, summary = self._name(entry.path), entry.row["hash"], entry.summary
        id = sha256(os.fsencode(entry.path), b"" if entry.path.is_dir() else run.encode())[:16]
        config = RunConfig.from_dict(entry.row["config"])
        near = by_near([config.problem.q]) and bool(measured(points, "near"))
        curve = [(point["step"], point.get("loss"), point.get("near" if near else "accuracy")) for point in points]
        shares = [share for _, _, share in curve if share is not None]
        row = {setting: summary[setting] for setting in SHOWN} | {
            "id": id,
            "validation": shares[-1] if shares else summary["validation"],
            "within": NEAR if near else None,
            "near": summary[NEAR_FIGURE] if near else None,
            "near_chance": chance(config.problem.q, NEAR, config.model.angles) if near else None,
            "hash": run,
            "name": name if entry.path.is_dir() else f"{name} {run}",
            "state": entry.state,
            "failed": entry.row.get("failed"),
            "step": curve[-1][0] if curve else 0,
            "steps": config.training.steps,
            "points": len(curve),
            "playable": model is not None,
        }
        json.dumps(row, allow_nan=False)  # fail here, not in a reply, on what JSON cannot hold
        return Item(id, row, json.dumps(curve, allow_nan=False, separators=(",", ":")), model)

    def _name(self, path: Path) -> str:
        return path.name if path == self.store else str(path.relative_to(self.store))

    def _publish(self, found: dict[str, Item]) -> None:
        """Replace the items; those that have changed get the next version."""
        version, old = self.version + 1, self.items
        fresh = {id for id, item in found.items() if id not in old or old[id].row != item.row}
        gone = old.keys() - found.keys()
        self.items = {
            id: replace(item, version=version if id in fresh else old[id].version) for id, item in found.items()
        }
        self.gone = {id: at for id, at in self.gone.items() if id not in found} | dict.fromkeys(gone, version)
        if fresh or gone:
            self.version = version

    # -- sweeps -----------------------------------------------------------------------------------------------

    def _sweep(self, results: Path, items: list[Item]) -> Sweep:
        """The cells of a results file that are in training, and the sweep's progress; both empty without a sweep."""
        directory = claims.directory_of(results)
        if not directory.is_dir():
            return [], []
        with contextlib.suppress(OSError):  # the file has just been deleted
            if (seen := claims.watched(results)) is not None:
                self._training[results] = seen
        going, states = self._training.get(results, set()), claims.states(directory)
        files = [directory / claims.PLAN, *states]
        key = (self._read[results][0], *sorted(going), *files, *map(_stamp, files))
        if results not in self._standing or self._standing[results][0] != key:
            self._standing[results] = (key, self._read_sweep(results, items, going, states))
        return self._standing[results][1]

    def _read_sweep(self, results: Path, items: list[Item], claimed: set[str], states: list[Path]) -> Sweep:
        plan, logs, pruned = claims.planned(claims.directory_of(results)), dict[str, Log](), set[str]()
        for path in states:
            own, gone = _logs(path)
            logs, pruned = logs | own, pruned | gone
        scored = {item.row["hash"]: item.row["state"] for item in items}
        going = {run for run in claimed - pruned if scored.get(run) != "done"}
        if not plan and not going:
            return [], []
        cells = (plan.keys() - (pruned - scored.keys())) or scored.keys() | going
        states_of = [scored[run] for run in cells if run in scored and run not in going]
        training = list(self._in_training(results, {run: logs.get(run, (0, [])) for run in sorted(going)}, plan))
        standing: dict[str, Any] = {"name": self._name(results), "cells": len(cells), "going": len(going)}
        standing |= {state: states_of.count(state) for state in ("done", "failed")}
        standing["begun"] = sum(item.row["step"] / item.row["steps"] for item in training)
        return training, [standing]

    def _in_training(self, results: Path, going: Mapping[str, Log], plan: Mapping[str, Any]) -> Iterator[Item]:
        for run, (step, curve) in going.items():
            with contextlib.suppress(*UNREADABLE):  # a plan may be damaged
                item = self._made(Entry(results, {"hash": run, "config": plan[run]}), curve)
                yield replace(item, row=item.row | {"state": "going", "step": min(step, item.row["steps"])})


def _with_models(items: list[Item], results: Path) -> list[Item]:
    """Add the models that a sweep keeps beside its results file, which are written after their rows."""
    place = models_of(results)
    kept = {path.parent.name for path in place.glob(f"*/{MODEL}")}
    return [
        replace(item, row=item.row | {"playable": True}, model=place / run)
        if (run := item.row["hash"]) in kept
        else item
        for item in items
    ]


def _logs(state: Path) -> tuple[dict[str, Log], set[str]]:
    """The logs of a saved ensemble's runs, and those that were pruned; none if it cannot be read."""
    try:
        said = claims.account(state)
        step, gone = int(said["step"]), set(said.get("gone", ()))
        return {run: (step, curve) for run, curve in zip(said["members"], said["curves"], strict=True)}, gone
    except UNREADABLE:  # incomplete, or another's file
        return {}, set()


def _signature(path: Path) -> Signature:
    """A value that changes when a file of the place is written to."""
    files = [path] if path.is_file() else [path / each for each in (CONFIG, METRICS, RESULT, PROVENANCE, MODEL)]
    return tuple(_stamp(file) for file in files)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _stated(item: Item, path: Path) -> Item:
    """Add when a run directory was last written to; an unfinished run that is writing its curve becomes `going`."""
    stamp = _stamp(path / METRICS) or _stamp(path)
    if stamp is None or path.is_file():
        return item
    written = stamp[0] / 1e9
    going = item.row["state"] == "unfinished" and item.row["points"] and time.time() - written < FRESH
    return replace(item, row=item.row | {"written": round(written)} | ({"state": "going"} if going else {}))
