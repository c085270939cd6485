"""The same sweep on a Ray cluster: one ensemble a task, each a small sweep of its own on its worker.

Ray decides what runs where, and runs a task again whose worker is lost; that is safe, since a task is a function of
its runs. This process claims the ensembles, hands them out, and appends their rows to the results file as they come.
With a directory that all workers share, a task run again goes on from its last checkpoint; else it starts over.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from auxmod import __version__
from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments import claims
from auxmod.experiments.ensembles import Ended, Notice
from auxmod.experiments.packing import Shape, group_of, plan, work
from auxmod.experiments.single import Interrupted
from auxmod.experiments.store import locked, provenance, read_results, result_row
from auxmod.experiments.sweep import Event, Queue, Standing, run_sweep
from auxmod.learning.memory import free_bytes
from auxmod.learning.precision import resolve_precision

RETRIES = 5
"""How often an ensemble is begun anew whose worker, or whose node, is lost."""
IN_HAND = 256
"""The most ensembles handed to the cluster at once: each holds a file open here."""
ANSWER_SECONDS = 4.0
"""How long a cluster may take to answer, twice."""
POLL_SECONDS = 0.5
CURRENT = Path("/tmp/ray/ray_current_cluster")
"""Where Ray notes the cluster that `auto` means."""


def run_on_cluster(
    configs: Sequence[RunConfig],
    results: Path,
    address: str,
    *,
    device: str = "auto",
    shared: Path | None = None,
    stopping: Callable[[], bool] = lambda: False,
    checkpoint_every: int = 1000,
    retry_failed: bool = False,
) -> Iterator[Event]:
    """What `run_sweep` does, by the workers of the cluster at ``address``; ``local`` starts one here.

    A task takes one GPU where the cluster has any, else one CPU core; ``device`` chooses otherwise. The workers save
    in ``shared``, a path that is the same for all of them.
    """
    require(device in ("auto", "cpu", "cuda"), f"--device is {device!r}; with --cluster choose auto, cpu or cuda.")
    with connected(address) as ray:
        desk = Desk(ray, configs, results, device, retry_failed)
        desk.options = (str(shared.absolute()) if shared else None, checkpoint_every, retry_failed)
        desk.shared = shared
        try:
            yield from _serve(desk, stopping)
        finally:
            for claim in desk.running.values():
                claim.release()


def _serve(desk: Desk, stopping: Callable[[], bool]) -> Iterator[Event]:
    standing = desk.hand_out()
    yield standing
    while desk.running or standing.elsewhere:
        if stopping():
            cells = f"{standing.done} of {standing.total} cells"
            raise Interrupted(f"Stopped with {cells} done; the same command goes on from there.")
        ended = list(desk.collect())
        yield from ended
        if ended or not desk.running:
            standing = desk.hand_out()
            yield standing
    desk.queue.tidy()


class Desk:
    """What is handed out to the cluster, and what comes back."""

    def __init__(self, ray: Any, configs: Sequence[RunConfig], results: Path, device: str, retry_failed: bool) -> None:
        self.ray, self.shared = ray, None
        has_gpus = ray.cluster_resources().get("GPU", 0) > 0
        self.kind = "cuda" if device == "cuda" or (device == "auto" and has_gpus) else "cpu"
        self.needs = {"num_gpus": 1} if self.kind == "cuda" else {"num_cpus": 1}
        for precision in {config.training.precision for config in configs}:
            resolve_precision(precision, torch.device(self.kind))
        self.queue = Queue(configs, results, torch.device(self.kind), retry_failed)
        self.room: int | None = None
        self.options: tuple[Any, ...] = ()
        self.running: dict[Any, claims.Claim] = {}
        self.task = ray.remote(
            max_retries=RETRIES, retry_exceptions=[torch.AcceleratorError], scheduling_strategy="SPREAD", **self.needs
        )(train_members)
    
    def hand_out(self) -> Standing:
        """Claim ensembles that nobody has, and hand them to the cluster."""
        queue = self.queue
        with locked(queue.results):
            taken = claims.held(queue.directory)
            queue.book.refresh()
            left = {run: config for run, config in queue.cells.items() if not queue.finished(run)}
            free = {run: config for run, config in left.items() if run not in taken}
            ...
