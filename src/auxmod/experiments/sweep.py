"""Train many runs into one results file: pack them into ensembles, skip those that are done, resume those stopped.

Any number of processes may sweep into one file. Each repeatedly takes an ensemble that none of them has finished or
claimed (`claims`), trains it, and appends a line for each of its runs (`results_file`). A process that finds nothing
left to take waits for the others, and takes over from one that dies.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.experiments import claims
from auxmod.experiments.ensembles import Ended, Notice, Started, TooLarge, attempted
from auxmod.experiments.kept import Models
from auxmod.experiments.packing import Shape, check_precisions, plan
from auxmod.experiments.results_file import Results, locked
from auxmod.experiments.run_directory import take_away
from auxmod.experiments.single import Interrupted
from auxmod.learning.cost import work
from auxmod.learning.engine import Progress, shape_of
from auxmod.learning.memory import clean_up

POLL_SECONDS = 0.5
"""The time between checks whether other processes have finished."""


@dataclass(frozen=True)
class Standing:
    """How far the sweep is, in cells (a search: in trials); other processes train those ``elsewhere``."""

    total: int
    done: int
    failed: int
    elsewhere: int
    work_left: float
    """Floating-point operations of the cells neither finished nor in training elsewhere; for a search, at most that."""

    def stopped(self) -> Interrupted:
        """The exception to raise for a stop while nothing is in training here."""
        return Interrupted(f"Stopped with {self.done} of {self.total} cells done; the same command goes on from there.")


Cells = dict[str, RunConfig]
"""Runs by their hashes."""
Event = Standing | Started | Progress | Ended | Notice


def run_sweep(
    configs: Sequence[RunConfig],
    results: Path,
    device: torch.device,
    *,
    stopping: Callable[[], bool] = lambda: False,
    checkpoint_every: int = 1000,
    retry_failed: bool = False,
    members: int | None = None,
    models: Models | None = None,
) -> Generator[Event, None, None]:
    """Train every run that the results file has no line of, and append one for each.

    With ``retry_failed`` each run that failed is tried once more. At most ``members`` train together, except those that
    a stopped sweep saved together. When ``stopping()`` returns true, the ensemble in training is saved and
    :class:`Interrupted` raised; the same call goes on from there. With ``models`` each run's model is kept; a run that
    has figures but no model is then trained again, and its new figures are added.
    """
    queue = Queue(configs, results, device, retry_failed, members, models)
    options: dict[str, Any] = {"checkpoint_every": checkpoint_every, "models": models, "stopping": stopping}
    while True:
        claim, standing = queue.next()
        try:
            yield standing
            if not (claim or standing.elsewhere):
                return queue.tidy()
            if stopping():
                raise standing.stopped()
            if claim:
                yield from _attempt(queue, claim, options)
                clean_up(device)
            else:
                time.sleep(POLL_SECONDS)
        finally:
            if claim:
                claim.release()


class Queue:
    """The cells of a sweep, and which of them are left to train."""

    def __init__(
        self,
        configs: Sequence[RunConfig],
        results: Path,
        device: torch.device,
        retry_failed: bool,
        members: int | None = None,
        models: Models | None = None,
    ) -> None:
        check_precisions(configs, device)
        self.cells = {config.hash: config for config in configs}
        self.device, self.results, self.members = device, results, members
        self.models, self.book = models, Results(results, models)
        self.ended: set[str] = set()
        """Runs that ended in this process, even if they still lack their figures or model."""
        self.directory = claims.directory_of(results)
        self.limits: dict[Shape, int] = {}
        """The number of members that fits, for shapes whose planned ensemble did not."""
        self.book.refresh()
        self.forgiven = Counter(self.book.failures) if retry_failed else Counter[str]()
        if not all(map(self.finished, self.cells)):
            if models:
                models.prepare(self.cells)
            with locked(results):
                claims.announce(self.directory, {run: config.to_dict() for run, config in self.cells.items()})

    def finished(self, run: str) -> bool:
        return self.book.done(run) or self.book.failed(run) > self.forgiven[run] or run in self.ended

    def next(self) -> tuple[claims.Claim | None, Standing]:
        """Claim a saved ensemble, or else the first of a plan of the free cells; None if no cell is free."""
        with locked(self.results):
            left, free, taken = self.look()
            members = next((m for m in claims.unfinished(self.directory) if self._adopts(m, free, taken)), None)
            if members is None and free:
                planned = plan(list(free.values()), self.device, members=self.members, limits=self.limits)
                members = tuple(config.hash for config in planned[0])
            standing = self.standing(left, free)  # before the claim, which a stop here would leave to nobody
            claim = claims.take(self.directory, members) if members else None
        return claim, standing

    def look(self) -> tuple[Cells, Cells, set[str]]:
        """The cells that are not finished, those of them that no process trains, and all runs in training."""
        taken = claims.held(self.directory)
        self.book.refresh()  # after the claims, so that a claim released since has its rows here
        left = {run: config for run, config in self.cells.items() if not self.finished(run)}
        return left, {run: config for run, config in left.items() if run not in taken}, taken

    def standing(self, left: Cells, free: Cells) -> Standing:
        """How far the sweep is: the cells in ``left`` are not finished, those in ``free`` not in training either."""
        done = len((self.cells.keys() & self.book.scored) - left.keys())
        failed, elsewhere = len(self.cells) - len(left) - done, len(left) - len(free)
        return Standing(len(self.cells), done, failed, elsewhere, sum(map(work, free.values())))

    def _adopts(self, members: tuple[str, ...], free: Cells, taken: set[str]) -> bool:
        ours = all(run in self.cells and run not in taken for run in members)
        return ours and any(run in free for run in members)

    def finish(self, rows: list[dict[str, Any]]) -> None:
        self.book.refresh()
        fresh = [row for row in rows if not self.finished(row["hash"])]
        if self.models:
            self.models.forget(row["hash"] for row in fresh)
        self.book.append(fresh)
        self.ended |= {row["hash"] for row in rows}

    def tidy(self) -> None:
        """Delete the saved ensembles of runs that ended, and files of models that were left half written."""
        with locked(self.results):
            failures, models = set(self.book.failures), Models(self.results)
            over = self.book.scored | failures
            claims.tidy(self.directory, over, lambda run: run in failures or models.lies(run))
            if self.models and not claims.held(self.directory):
                take_away(self.models.place.rglob(".*"))


def _attempt(queue: Queue, claim: claims.Claim, options: Mapping[str, Any]) -> Iterator[Event]:
    """Train a claimed ensemble; if it is too large for the memory, note it, so that it comes again in halves."""
    configs, device = [queue.cells[run] for run in claim.members], queue.device
    ended = list[Ended]()
    for event in attempted(configs, device, claim, **options):
        if isinstance(event, Ended):
            queue.finish(event.rows)  # before their models are written, since the disk may be full
            ended.append(event)
            continue
        if isinstance(event, TooLarge):
            queue.limits[shape_of(configs[0])] = event.half
        yield event
    yield from ended  # once the models are written, whatever the caller does with it
