"""Tests that a real process that is killed or interrupted while it trains resumes to the same files."""

import errno
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from auxmod.cli import display, main
from tiny import flags

LONG = ["train", *flags("--epochs", "100", "--checkpoint-every", "40")]
"""600 steps, which take seconds."""
SAME = ("model.safetensors", "state.safetensors", "result.json", "metrics.jsonl", "config.json")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    path = tmp_path_factory.mktemp("whole") / "run"
    assert main([*LONG, "--out", str(path), "--quiet"]) == 0
    return {name: (path / name).read_bytes() for name in SAME}


def started(path: Path, points: int) -> subprocess.Popen[str]:
    """Start a process that trains; return it once its curve has at least this many points."""
    command = [sys.executable, "-m", "auxmod", *LONG, "--out", str(path), "--quiet"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    curve = path / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if curve.exists() and curve.read_bytes().count(b"\n") >= points:
            return process
        time.sleep(0.002)
    out, error = process.communicate(timeout=10)
    raise AssertionError(f"it ended too early: {process.returncode} {out} {error}")


def resume(path: Path) -> dict[str, bytes]:
    assert main(["train", "--resume", "--out", str(path), "--quiet"]) == 0
    return {name: (path / name).read_bytes() for name in SAME}


def test_killed_at_a_random_moment_it_goes_on_to_the_same_files(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    moment = random.SystemRandom()
    process = started(tmp_path / "run", points=moment.randrange(1, 120))
    time.sleep(moment.random() * 0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert not (tmp_path / "run" / "result.json").exists()
    assert resume(tmp_path / "run") == uninterrupted


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_it_saves_exits_with_130_and_goes_on(
    asked: signal.Signals, tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    if signal.getsignal(asked) == signal.SIG_IGN:
        pytest.skip("These tests run under nohup.")
    process = started(tmp_path / "run", points=20)
    for _ in range(1 + (asked == signal.SIGHUP)):  # a terminal that closes may signal twice
        os.kill(process.pid, asked)
        time.sleep(0.002)
    out, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert error.startswith("Stopped at step ")
    assert error.endswith(f". To go on: auxmod train --resume --out {tmp_path / 'run'}.\n")
    stopped = int(error.split()[3].replace(",", ""))
    last = json.loads((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["step"] == stopped >= 20
    assert resume(tmp_path / "run") == uninterrupted
    made = json.loads((tmp_path / "run" / "provenance.json").read_text())
    assert " --epochs 100 " in made["begun_command"]
    assert (made["begun_commit"], made["begun_device"]) == (made["commit"], made["device"])


def test_a_terminal_that_was_closed_is_not_written_to() -> None:
    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.EIO, "Input/output error")

    with pytest.raises(BrokenPipeError):  # `main` ends on this
        display._Console(file=Closed()).print("a result")
    watched = display._Console(stderr=True)
    watched.file = Closed()
    watched.on_broken_pipe = lambda: None  # type: ignore[method-assign]
    watched.print("a step")


def test_where_nobody_reads_the_progress_it_goes_on_to_the_end(tmp_path: Path, uninterrupted: dict[str, bytes]) -> None:
    read, write = os.pipe()
    command = [sys.executable, "-m", "auxmod", *LONG, "--out", str(tmp_path / "run")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=write, text=True)
    os.close(write)
    assert os.read(read, 1)
    os.close(read)
    out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "match" in out
    assert {name: (tmp_path / "run" / name).read_bytes() for name in SAME} == uninterrupted


def test_interrupted_while_measuring_it_keeps_the_model_and_goes_on(
    tmp_path: Path, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C during the last evaluation does not wait for it to end: the trained model is already saved."""
    from auxmod.learning.engine import Ensemble

    measure = Ensemble.evaluate

    def interrupted(self: Ensemble, samples: int, **options: object) -> object:
        if not options:  # the test inputs, not the held-out ones
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return measure(self, samples, **options)

    monkeypatch.setattr(Ensemble, "evaluate", interrupted)
    began = time.monotonic()
    long = [word.replace("40", "100000") if word == "40" else word for word in LONG]
    assert main([*long, "--out", str(tmp_path / "run"), "--quiet"]) == 130
    assert not (tmp_path / "run" / "result.json").exists()
    monkeypatch.undo()
    assert resume(tmp_path / "run") == uninterrupted
    assert time.monotonic() - began < 60
