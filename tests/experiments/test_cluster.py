"""Tests of `sweep --cluster`: on a real Ray cluster, one of whose two nodes is killed, and with stand-ins for Ray."""

import contextlib
import importlib.util
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from auxmod.cli import main
from auxmod.errors import UserError
from auxmod.experiments import cluster, ensembles
from auxmod.experiments.cluster import Desk
from auxmod.experiments.ensembles import Notice, ShortError, Started, train_ensemble
from auxmod.experiments.results_file import read_results
from auxmod.experiments.single import Interrupted
from auxmod.experiments.sweep import Queue, run_sweep
from tiny import flags, tiny

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: auxmod[cluster]")
LONG = flags("--n", "2", "--epochs", "40", "--width", "8,12,16,20", "--k", "3:4", "--seed", "0:2")
"""24 cells in four ensembles, each below the half that two workers may take, so a sweep without them packs alike."""


def by_hash(results: Path) -> dict[str, dict[str, Any]]:
    """A results file's rows by hash, without their provenance; fails if a run is there twice."""
    rows = read_results(results)
    assert len(rows) == len(results.read_text().splitlines())
    return {row["hash"]: {name: value for name, value in row.items() if name != "provenance"} for row in rows}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    results = tmp_path_factory.mktemp("whole") / "r.jsonl"
    assert main(["sweep", *LONG, "--results", str(results), "--quiet"]) == 0
    assert len(by_hash(results)) == 24
    return by_hash(results)


# -- nodes ----------------------------------------------------------------------------------------------------


class Node:
    """A `ray start` and every process that it starts, in a session of their own; `kill` ends only that session."""

    def __init__(self, environment: Mapping[str, str], *arguments: str) -> None:
        own = ["--num-cpus=1", "--object-store-memory=80000000", "--min-worker-port=0", "--max-worker-port=0"]
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *own, *arguments]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def processes(self) -> dict[int, str]:
        """The living processes of the session: their command lines, by process id."""
        found = {}
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.getsid(int(path.name)) == self.process.pid and (title := (path / "cmdline").read_bytes()):
                    found[int(path.name)] = title.decode(errors="replace")
        return found

    def trains(self) -> bool:
        return any(title.startswith("ray::train_members") for title in self.processes().values())

    def kill(self) -> None:
        deadline = time.monotonic() + 20
        while processes := self.processes():
            assert time.monotonic() < deadline, processes
            for number in processes:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            self.process.poll()
            time.sleep(0.05)
        self.process.wait(10)


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[Any], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def open_port(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    """Environment variables: a token of its own for this cluster, and health checks that soon notice a lost node."""
    health = {"period_ms": "500", "initial_delay_ms": "0", "timeout_ms": "3000", "failure_threshold": "4"}
    own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16), "RAY_USAGE_STATS_ENABLED": "0"}
    return dict(os.environ) | own | {f"RAY_health_check_{name}": value for name, value in health.items()}


@pytest.fixture(scope="module")
def head(environment: dict[str, str]) -> Iterator[str]:
    """The address of a cluster of one node."""
    place = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # sockets live in it: a path must be short
    port = free_port()
    more = [f"--port={port}", f"--ray-client-server-port={free_port()}", f"--temp-dir={place}"]
    node = Node(environment, "--head", "--node-ip-address=127.0.0.2", "--include-dashboard=false", *more)
    try:
        wait_until(lambda: open_port("127.0.0.2", port), node.process)
        yield f"127.0.0.2:{port}"
    finally:
        node.kill()
        shutil.rmtree(place, ignore_errors=True)


@needs_ray
@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc, and loopback addresses for two nodes")
@pytest.mark.parametrize("saving", [False, True])
def test_a_node_is_killed_during_the_sweep_and_nothing_is_lost(
    tmp_path: Path, environment: dict[str, str], head: str, undisturbed: Mapping[str, Any], saving: bool
) -> None:
    results, shared = tmp_path / "r.jsonl", tmp_path / "shared"
    node = Node(environment, f"--address={head}", f"--node-ip-address=127.0.0.{4 if saving else 3}")
    command = [sys.executable, "-m", "auxmod", "sweep", *LONG, "--results", str(results), "--cluster", head]
    command += ["--shared", str(shared), "--checkpoint-every", "5"] if saving else []
    driver = None
    try:
        wait_until(lambda: any("ray::" in title for title in node.processes().values()), node.process)
        driver = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: node.trains() and (not saving or any(shared.glob("*/*.safetensors"))), driver)
        node.kill()
        assert not results.exists() or results.read_bytes().count(b"\n") < 24
        out, error = driver.communicate(timeout=100)
    finally:
        node.kill()
        if driver:
            driver.kill()
            driver.communicate()
    assert driver.returncode == 0, error
    assert "24 of 24 cells are done" in out
    assert by_hash(results) == undisturbed
    assert {path.name for path in tmp_path.iterdir()} == {"r.jsonl"} | ({"shared"} if saving else set())
    assert not saving or not list(shared.iterdir())
    assert all(row["provenance"]["command"].startswith("auxmod sweep --q 7 ") for row in read_results(results))


# -- bad input ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def deaf() -> Iterator[int]:
    """Yield a port that accepts connections and sends nothing."""
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        made.listen()
        yield made.getsockname()[1]


@needs_ray
@pytest.mark.parametrize("scheme", ["", "ray://"])
@pytest.mark.parametrize("listening", [False, True])
def test_where_no_cluster_answers_it_says_so_within_ten_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scheme: str, listening: bool
) -> None:
    with deaf() if listening else contextlib.nullcontext(free_port()) as port:
        began = time.monotonic()
        results = tmp_path / "r.jsonl"
        assert main(["sweep", *flags(), "--results", str(results), "--cluster", f"{scheme}127.0.0.1:{port}"]) == 2
        assert time.monotonic() - began < 10
    said = capsys.readouterr()
    named = f"{scheme}127.0.0.1:{port}"
    assert said.err == f"Error: No Ray cluster answers at {named}: start one, or use --cluster local.\n"
    assert said.out == ""
    assert not results.exists()


@needs_ray
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cluster", "somewhere"], "--cluster is 'somewhere'; give local, auto, host:port or ray://host:port."),
        (["--cluster", "host:²"], "--cluster is 'host:²'; give local, auto, host:port or ray://host:port."),
        (["--cluster", "auto"], "--cluster auto finds no Ray cluster"),
        (
            ["--cluster", "local", "--device", "cuda:1"],
            "--device is 'cuda:1'; with --cluster choose auto, cpu or cuda.",
        ),
        (["--shared", "here"], "--shared is where the workers of a --cluster save: give --cluster too."),
    ],
)
def test_wrong_use_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    from auxmod.experiments import cluster

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(cluster, "CURRENT", tmp_path / "none")
    assert main(["sweep", *flags(), "--results", str(tmp_path / "r.jsonl"), *arguments]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", *flags(), "--results", str(tmp_path / "r.jsonl"), "--cluster", "auto"]) == 2
    assert capsys.readouterr().err == "Error: --cluster needs Ray: pip install 'auxmod[cluster]'.\n"


def test_a_gpu_is_waited_for_only_where_one_may_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = SimpleNamespace(cluster_resources=dict)
    monkeypatch.setattr(cluster, "connected", lambda _: contextlib.nullcontext(ray))
    with pytest.raises(UserError, match="this machine has no GPU"):
        next(cluster.run_on_cluster([], tmp_path / "r.jsonl", "local", device="cuda"))
    told = next(cluster.run_on_cluster([], tmp_path / "r.jsonl", "head:6379", device="cuda"))
    assert told == Notice("The cluster has no GPU yet: waiting for one. Ctrl-C stops.")


def test_what_a_worker_saved_of_an_ensemble_in_halves_is_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One half has finished and the other is saved; then another process hands them out."""
    cells, shared = [tiny(seed=seed) for seed in range(6)], tmp_path / "shared"
    shared.mkdir()
    whole = "0123456789abcdef"
    results = shared / f"{whole}.jsonl"
    list(run_sweep(cells[:2], results, torch.device("cpu")))
    stops = itertools.chain([False] * 4, itertools.repeat(True))
    with pytest.raises(Interrupted):
        list(run_sweep(cells[2:4], results, torch.device("cpu"), stopping=lambda: next(stops)))
    done: list[Any] = []
    ray = SimpleNamespace(
        cluster_resources=lambda: {"CPU": 1},
        remote=lambda **_: (
            lambda task: SimpleNamespace(remote=lambda *given: done.append(task(*given)) or len(done) - 1)
        ),
        wait=lambda claimed, num_returns, timeout: (claimed[:1], []),
        get=lambda reference: done[reference],
        exceptions=SimpleNamespace(RayError=OSError),
    )
    desk = Desk(ray, Queue(cells, tmp_path / "r.jsonl", torch.device("cpu"), retry_failed=False), shared)
    desk.room = 2**30
    steps = list[int]()
    monkeypatch.setattr(ensembles, "train_ensemble", lambda *a, **o: _noted(steps, train_ensemble(*a, **o)))
    desk.hand_out((str(shared), 1000, False, ["auxmod"]), lambda: False)
    assert [name == whole for name, _ in desk.claimed.values()] == [True, False]
    assert [set(claim.members) for _, claim in desk.claimed.values()] == [
        {cell.hash for cell in cells[:4]},
        {cell.hash for cell in cells[4:]},
    ]
    assert [step > 0 for step in steps] == [True, False]  # the finished half is not trained again
    while desk.claimed:
        desk.collect()
    assert by_hash(tmp_path / "r.jsonl").keys() == {cell.hash for cell in cells}
    assert not list(shared.iterdir())


def _noted(steps: list[int], events: Iterator[Any]) -> Iterator[Any]:
    for event in events:
        steps.extend([event.step] if isinstance(event, Started) else [])
        yield event


def test_a_worker_short_of_memory_for_what_was_saved_keeps_it(tmp_path: Path) -> None:
    ray, queue = SimpleNamespace(remote=lambda **_: lambda _: None), SimpleNamespace(device=torch.device("cpu"))
    queue.cells, claim = {"a": tiny()}, SimpleNamespace(members=("a",))
    error = OSError("the task's")
    error.cause = ShortError("3 cells do not fit.")  # type: ignore[attr-defined]
    with pytest.raises(UserError, match="3 cells do not fit"):
        Desk(ray, queue, tmp_path)._lost(claim, error)  # type: ignore[arg-type]
    (row,) = Desk(ray, queue, None)._lost(claim, error)  # type: ignore[arg-type]
    assert row["failed"] == "3 cells do not fit."  # without shared storage, its saved state is lost with the worker


def test_waiting_for_a_worker_can_be_stopped() -> None:
    ray = SimpleNamespace(
        remote=lambda **_: lambda _: SimpleNamespace(remote=lambda *_: "asked"),
        wait=lambda asked, timeout: ([], asked),
        exceptions=SimpleNamespace(RayError=OSError),
    )
    desk = Desk(ray, SimpleNamespace(device=torch.device("cpu")), None)
    asked = iter((False, False, True))
    with pytest.raises(Interrupted, match="nothing was trained"):
        desk._room(lambda: next(asked))
