"""Tests of crashes: kills, a full or read-only disk, output that nobody reads, and too little memory.

The last good state is kept, and whatever resumes from it ends as if undisturbed.
"""

import contextlib
import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from desk import call

from auxmod.experiments import ensembles, saving
from auxmod.experiments.run_directory import Run
from tiny import flags, tiny

HERE = Path(__file__).parent
KILLS = int(os.environ.get("KILLS", "100"))
TRAIN = ["train", *flags("--checkpoint-every", "6", "--quiet", "--out", "run")]
SAME = ("model.safetensors", "state.safetensors", "result.json", "metrics.jsonl", "config.json")


@pytest.mark.timeout(300 + 4 * KILLS)
def test_killed_a_hundred_times_nothing_is_lost_or_doubled(tmp_path: Path, record_property: Any) -> None:
    command = [sys.executable, str(HERE / "killing.py"), str(KILLS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280 + 4 * KILLS)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    record_property("kills", told)
    assert sum(each["kills"] for each in told.values()) >= KILLS
    assert all(each["finished all the same"] >= 1 for each in told.values())


# -- a disk that is full --------------------------------------------------------------------------------------


@contextlib.contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, at: int, code: int) -> Iterator[list[int]]:
    """Let ``at`` calls that write to the disk succeed, and all later ones fail with ``code``; the list counts calls."""
    calls: list[int] = []
    with monkeypatch.context() as patch:
        for name in ("write", "fsync", "replace", "mkdir"):
            honest = getattr(os, name)

            def once(*args: Any, honest: Any = honest, **options: Any) -> Any:
                calls.append(1)
                if len(calls) > at:
                    raise OSError(code, os.strerror(code))
                return honest(*args, **options)

            patch.setattr(os, name, once)
        yield calls


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_wherever_the_disk_fails_the_last_good_state_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, record_property: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(*TRAIN).code == 0
    whole = {name: Path("run", name).read_bytes() for name in SAME}
    shutil.rmtree("run")
    with failing(monkeypatch, 10**9, code) as calls:
        assert call(*TRAIN).code == 0
    places = range(0, len(calls), 7 if code == errno.ENOSPC else 17)
    record_property("faults", len(places))
    for at in places:
        shutil.rmtree("run", ignore_errors=True)
        with failing(monkeypatch, at, code):
            outcome = call(*TRAIN)
        assert outcome.code == 1, (at, outcome)
        assert os.strerror(code) in outcome.err
        assert "run" in outcome.err
        again = (
            ["train", "--resume", "--quiet", "--out", "run", "--checkpoint-every", "6"]
            if Path("run").exists()
            else TRAIN
        )
        outcome = call(*again)
        assert outcome.code == 0 or "is a finished run" in outcome.err, (at, outcome)
        assert {name: Path("run", name).read_bytes() for name in SAME} == whole, at
        assert {path.name for path in Path().iterdir()} == {"run"}
        assert {path.name for path in Path("run").iterdir()} == {*SAME, "provenance.json"}


def test_a_sweep_on_a_full_disk_says_so_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saving, "SAVING_SHARE", float("inf"))
    command = ["sweep", *flags("--seed", "0:1"), "--results", "s.jsonl", "--checkpoint-every", "6", "--quiet"]
    with failing(monkeypatch, 10**9, errno.ENOSPC) as calls:
        assert call(*command).code == 0
    whole = scored(Path("s.jsonl"))
    record_property("faults", len(range(0, len(calls), 6)))
    for at in range(0, len(calls), 6):
        Path("s.jsonl").unlink()
        shutil.rmtree("s.jsonl.d", ignore_errors=True)
        with failing(monkeypatch, at, errno.ENOSPC):
            outcome = call(*command)
        assert outcome.code == 1, (at, outcome)
        assert "No space left on device" in outcome.err
        assert call(*command).code == 0
        assert scored(Path("s.jsonl")) == whole
        assert not Path("s.jsonl.d").exists()


def scored(path: Path) -> list[Any]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted([row["hash"], row["scores"], row["curve"]] for row in rows)


FULL = """
set -e
mount -t tmpfs -o size={size}k none {place}
cd {place}
set +e
{python} -m auxmod {command}
echo "code $?"
dd if=/dev/zero of=filler bs=1k 2>/dev/null
ls -a run 2>/dev/null; rm filler
mount -o remount,size=20m none {place}
{python} -m auxmod train --resume --out run --quiet >/dev/null
echo "resumed $?"
mount -o remount,ro none {place}
{python} -m auxmod {command} --out other
echo "read-only $?"
"""


def test_a_small_disk_and_a_read_only_one(tmp_path: Path) -> None:
    """These are real file systems; the test skips if this user may not mount any."""
    command = " ".join(["train", *flags("--hidden", "4000", "--checkpoint-every", "6", "--quiet")])
    script = FULL.format(size=900, place=tmp_path, python=sys.executable, command=command)
    script = script.replace(f"auxmod {command}\n", f"auxmod {command} --out run\n")
    probe = f"mount -t tmpfs none {tmp_path}"
    maker = ["unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*maker, probe], capture_output=True).returncode:
        pytest.skip("no file systems can be made here")
    done = subprocess.run([*maker, script], capture_output=True, text=True, timeout=200)
    said = done.stdout + done.stderr
    assert "code 1" in said
    assert "No space left on device" in said
    assert "free some space" in said
    assert "resumed 0" in said, said
    assert "read-only 1" in said, said
    assert "other cannot be written (Read-only file system)" in said


# -- two processes at once, and output that nobody reads ------------------------------------------------------


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny())
    with run.held():
        outcome = call("train", "--resume", "--out", str(run.path), "--quiet")
    assert outcome.code == 2
    assert "Another process trains the run" in outcome.err
    assert call("train", "--resume", "--out", str(run.path), "--quiet").code == 0


def test_what_a_killed_process_had_just_started_may_hold_its_run_for_a_moment(tmp_path: Path) -> None:
    """A child shares its parent's lock from fork to exec, and the parent may be killed in between."""
    run = Run.create(tmp_path / "run", tiny())
    descriptor = os.open(run.path, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    threading.Timer(0.3, os.close, [descriptor]).start()
    with run.held():
        pass


@pytest.mark.parametrize("words", [["published", "--json"], ["published"], ["theory", "--n", "4", "--q", "7"]])
def test_output_that_nobody_reads_ends_quietly(words: list[str]) -> None:
    command = [sys.executable, "-m", "auxmod", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


# -- too little memory ----------------------------------------------------------------------------------------


def test_a_search_that_does_not_fit_goes_on_in_halves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest, sizes = ensembles.train_ensemble, []

    def limited(configs: Any, *args: Any, **options: Any) -> Iterator[Any]:
        sizes.append(len(configs))
        if len(configs) > 2:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        yield from honest(configs, *args, **options)

    command = ["search", *flags("--k", "2:9"), "--trials", "5", "--members", "5", "--rungs", "none"]

    def found(name: str) -> list[Any]:
        place = ["--storage", f"sqlite:///{tmp_path}/{name}.db", "--results", f"{tmp_path}/{name}.jsonl", "--json"]
        outcome = call(*command, *place)
        assert outcome.code == 0, outcome
        return [[trial["params"], trial["validation"], trial["match"]] for trial in json.loads(outcome.out)["trials"]]

    whole = found("whole")
    monkeypatch.setattr(ensembles, "train_ensemble", limited)
    assert found("halved") == whole
    assert sizes[0] > 2
    assert set(sizes[1:]) <= {1, 2}
    monkeypatch.setattr(ensembles, "train_ensemble", lambda *_, **__: (_ for _ in ()).throw(RuntimeError("Odd.")))
    place = ["--storage", f"sqlite:///{tmp_path}/odd.db", "--results", f"{tmp_path}/odd.jsonl", "--json"]
    trials = json.loads(call(*command, *place).out)["trials"]
    assert {trial["failed"] for trial in trials} == {"RuntimeError: Odd."}
