"""Sweeps on a Ray cluster: each ensemble is a task, which runs a small sweep of its own on its worker.

Ray decides what runs where, and repeats a task if its worker is lost. That is safe, since a task's result depends only
on its runs. This process claims the ensembles, hands them out, and appends their rows to the results file as they come.
With a directory that all workers share, a repeated task goes on from its last checkpoint; without, it starts over.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import secrets
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
from auxmod.errors import UserError, first_line, require
from auxmod.experiments import claims
from auxmod.experiments.ensembles import Ended, Notice, ShortError, failed_rows
from auxmod.experiments.packing import MOST_MEMBERS, plan
from auxmod.experiments.results_file import locked, read_results, rows_of
from auxmod.experiments.single import Interrupted
from auxmod.experiments.sweep import POLL_SECONDS, Cells, Event, Queue, Standing, run_sweep
from auxmod.learning.memory import free_bytes

RETRIES = 5
"""How often an ensemble is begun again if its worker or its node is lost."""
IN_HAND = 256
"""The most ensembles handed to the cluster at once: each keeps a file open in this process."""
ANSWER_SECONDS = 3.0
"""How long a cluster may take to open its port, and again to answer as a server."""
CURRENT = Path("/tmp/ray/ray_current_cluster")
"""The file in which Ray notes the cluster that `auto` means."""


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
    members: int | None = None,
) -> Iterator[Event]:
    """Do what `run_sweep` does with the workers of the cluster at ``address``; ``local`` starts a cluster here.

    A task takes one GPU if the cluster has any, else one CPU; ``device`` overrides that. Cells on the cluster count as
    in training elsewhere. The workers save in ``shared``, a path that means the same directory to all of them.
    """
    require(device in ("auto", "cpu", "cuda"), f"--device is {device!r}; with --cluster choose auto, cpu or cuda.")
    with connected(address) as ray:
        if device == "cuda" and not _gpus(ray):
            require(address != "local", "--device is 'cuda', but this machine has no GPU: choose auto or cpu.")
            yield Notice("The cluster has no GPU yet: waiting for one. Ctrl-C stops.")
        desk = Desk(ray, Queue(configs, results, _kind(ray, device), retry_failed, members), shared)
        options = (str(shared.absolute()) if shared else None, checkpoint_every, retry_failed, sys.argv)
        try:
            while True:
                standing = desk.hand_out(options, stopping)
                yield standing
                if not standing.elsewhere:
                    return desk.queue.tidy()
                ended = None
                while ended is None:
                    if stopping():
                        raise standing.stopped()
                    ended = desk.collect()
                yield from ended
        finally:
            for _, claim in desk.claimed.values():
                claim.release()


def _kind(ray: Any, device: str) -> torch.device:
    return torch.device("cuda" if device == "cuda" or (device == "auto" and _gpus(ray)) else "cpu")


def _gpus(ray: Any) -> bool:
    return bool(ray.cluster_resources().get("GPU", 0) > 0)


class Desk:
    """Hands ensembles to the cluster and takes their rows back."""

    def __init__(self, ray: Any, queue: Queue, shared: Path | None) -> None:
        self.ray, self.queue, self.shared = ray, queue, shared
        self.claimed: dict[Any, tuple[str, claims.Claim]] = {}
        """The ensembles on the cluster: Ray's reference to the result → the name in ``shared``, and the claim."""
        self.resource = "GPU" if queue.device.type == "cuda" else "CPU"
        self.needs = {"num_gpus": 1} if self.resource == "GPU" else {"num_cpus": 1}
        self.room: int | None = None
        options = {"max_retries": RETRIES, "retry_exceptions": [torch.AcceleratorError], **self.needs}
        self.task = ray.remote(**options, scheduling_strategy="SPREAD")(train_members)

    def hand_out(self, options: tuple[Any, ...], stopping: Callable[[], bool]) -> Standing:
        """Claim ensembles of cells that nobody trains, and hand them to the cluster; return the sweep's standing."""
        queue, made = self.queue, list[tuple[str, claims.Claim]]()
        if self.room is None and not all(map(queue.finished, queue.cells)):
            self.room = self._room(stopping)  # not under the lock, since it may wait for a worker
        with locked(queue.results):
            left, free, _ = queue.look()
            if free and len(self.claimed) <= IN_HAND // 2:
                for name, members in self._ensembles(free)[: IN_HAND - len(self.claimed)]:
                    claim = claims.take(queue.directory, [config.hash for config in members])
                    made.append((name or claim.place.name, claim))
        for name, claim in made:
            runs = [queue.cells[run].to_dict() for run in claim.members]
            self.claimed[self.task.remote(runs, name, queue.device.type, *options)] = name, claim
            free = {run: config for run, config in free.items() if run not in claim.members}
        return queue.standing(left, free)

    def _ensembles(self, free: Cells) -> list[tuple[str | None, list[RunConfig]]]:
        """Saved ensembles as they were, with their names; the rest packed so that all fit and every worker has some."""
        free, found = dict(free), list[tuple[str | None, list[RunConfig]]]()
        for results in sorted(self.shared.glob(f"{claims.DIGEST}.jsonl")) if self.shared else []:
            saved = [run for members in claims.unfinished(claims.directory_of(results)) for run in members]
            with contextlib.suppress(UserError, OSError):  # another sweep's file may be gone by now
                saved += [row["hash"] for row in read_results(results)]  # if it was halved, some runs may have ended
            begun = dict.fromkeys(saved)
            if begun and all(run in free for run in begun):
                found.append((results.stem, [free.pop(run) for run in begun]))
        workers = max(1, int(self.ray.cluster_resources().get(self.resource, 1)))
        most = min(self.queue.members or MOST_MEMBERS, -(-len(free) // workers))
        planned = plan(list(free.values()), self.queue.device, members=most, free=self.room)
        return [*found, *((None, members) for members in planned)]

    def _room(self, stopping: Callable[[], bool]) -> int:
        """A worker's memory in bytes, as the first free one reports it: a GPU has its own, CPUs share their node's."""
        asked = self.ray.remote(**self.needs)(look_around).remote(self.queue.device.type)
        try:
            while not self.ray.wait([asked], timeout=POLL_SECONDS)[0]:
                if stopping():
                    raise Interrupted("Stopped before a worker of the cluster was free; nothing was trained.")
            version, free = self.ray.get(asked)
        except self.ray.exceptions.RayError as error:
            said = f"The cluster's workers cannot run auxmod ({first_line(error).rstrip('.')})"
            raise UserError(f"{said}: install auxmod {__version__} for them.") from None
        require(
            version == __version__,
            f"The cluster's workers have auxmod {version}, and this is {__version__}: install one version everywhere.",
        )
        most = max(node["Resources"].get("CPU", 1) for node in self.ray.nodes() if node["Alive"])
        return int(free if self.resource == "GPU" else free / max(1, most))

    def collect(self) -> list[Event] | None:
        """The next ensemble's end, or None if none has ended yet; an empty list if none of ours is on the cluster."""
        if not self.claimed:
            time.sleep(POLL_SECONDS)
            return []
        ready, _ = self.ray.wait(list(self.claimed), num_returns=1, timeout=POLL_SECONDS)
        if not ready:
            return None
        reference = ready[0]
        name, claim = self.claimed[reference]
        try:
            rows = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            rows = self._lost(claim, error)
        self.queue.finish(rows)
        claim.forget()
        self.claimed.pop(reference)
        claim.release()
        if self.shared:
            _forget(self.shared / name)
        return [Ended(rows)]

    def _lost(self, claim: claims.Claim, error: Exception) -> list[dict[str, Any]]:
        """The rows of an ensemble whose task returned none."""
        cause = getattr(error, "cause", None)
        if isinstance(cause, ShortError) and self.shared:  # keep the saved state for when there is memory
            raise cause
        if cause is None:  # the worker died, not the task; Ray's own message would name machines
            reason = f"{type(error).__name__}: the ensemble's worker was lost {RETRIES + 1} times."
        else:
            reason = str(cause) if isinstance(cause, UserError) else f"{type(cause).__name__}: {first_line(cause)}"
        configs = [self.queue.cells[run] for run in claim.members]
        return failed_rows(configs, self.queue.device, reason, "a worker that was lost")


# -- on a worker ----------------------------------------------------------------------------------------------


def look_around(kind: str) -> tuple[str, int]:
    """A worker's version of auxmod, and its free memory in bytes."""
    return __version__, free_bytes(torch.device(kind))


def train_members(
    members: Sequence[dict[str, Any]],
    name: str,
    kind: str,
    shared: str | None,
    checkpoint_every: int,
    retry_failed: bool,
    command: Sequence[str],
) -> list[dict[str, Any]]:
    """Train runs and return their rows, by a sweep that halves what does not fit and goes on from what was saved."""
    sys.argv = list(command)  # what the user typed, for the rows' provenance
    configs = [RunConfig.from_dict(member) for member in members]
    with contextlib.ExitStack() as stack:
        place = Path(shared or stack.enter_context(tempfile.TemporaryDirectory()))
        place.mkdir(parents=True, exist_ok=True)
        results = place / f"{name}.jsonl"
        every = checkpoint_every if shared else sys.maxsize
        for _ in run_sweep(configs, results, torch.device(kind), checkpoint_every=every, retry_failed=retry_failed):
            pass
        return rows_of(configs, results)


def _forget(place: Path) -> None:
    """Delete an ensemble's files in shared storage, if this machine can see them."""
    place.with_name(f"{place.name}.jsonl").unlink(missing_ok=True)
    shutil.rmtree(place.with_name(f"{place.name}.jsonl.d"), ignore_errors=True)


# -- the cluster ----------------------------------------------------------------------------------------------


@contextlib.contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect to the cluster and yield Ray; raise a :class:`UserError` if the cluster does not answer soon."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address == "local":  # only for this machine and this process: on loopback, behind its own token
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        if "RAY_AUTH_MODE" not in os.environ:
            os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    try:
        import ray
    except ImportError:
        raise UserError("--cluster needs Ray: pip install 'auxmod[cluster]'.") from None
    if address != "local":
        _require_answer(address)
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == "local":
        options["include_dashboard"] = False
    try:
        ray.init(address, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"--cluster {address} lets nobody in ({first_line(error).rstrip('.')}).") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _require_answer(address: str) -> None:
    """Refuse an address where no server like Ray's answers: Ray itself would keep trying for over a minute."""
    named = address
    if address == "auto":
        named = os.environ.get("RAY_ADDRESS") or (CURRENT.read_text().strip() if CURRENT.exists() else "")
        require(bool(named), "--cluster auto finds no Ray cluster on this machine: start one, or give its address.")
    host, _, port = named.removeprefix("ray://").rpartition(":")
    require(
        bool(host) and port.isdecimal() and int(port) < 2**16,
        f"--cluster is {address!r}; give local, auto, host:port or ray://host:port.",
    )
    require(_answers(host, int(port)), f"No Ray cluster answers at {named}: start one, or use --cluster local.")


def _answers(host: str, port: int) -> bool:
    """Whether a gRPC server answers there; if there is no way to ask, whether anything does."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=ANSWER_SECONDS).close()
    except OSError:
        return False
    grpc = importlib.import_module("grpc") if importlib.util.find_spec("grpc") else None
    if grpc is None or os.environ.get("RAY_USE_TLS", "0") != "0":
        return True
    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=ANSWER_SECONDS)
        except grpc.FutureTimeoutError:
            return False
    return True
