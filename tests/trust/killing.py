"""Kill commands at random moments with SIGKILL until their work is done: `python killing.py KILLS PLACE [SEED]`.

This process imports everything once and forks each command, so that a hundred kills take seconds. After each kill, it
checks that every file is whole, the old version or the new one. Whenever the work is done, it checks that the results
are those of an undisturbed process, each once. It prints, as JSON, how often each kind was killed and was finished.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from safetensors.torch import load

import made_up
from auxmod.cli import main
from auxmod.experiments import halving, saving, search, study, sweep  # noqa: F401  # so that no child imports them
from auxmod.experiments.recipes import cells
from auxmod.experiments.results_file import Results, read_results
from auxmod.files import parse
from auxmod.learning import engine
from auxmod.reporting.web import report  # noqa: F401
from tiny import flags

SAME = ("model.safetensors", "state.safetensors", "result.json", "metrics.jsonl", "config.json")
Work = tuple[Callable[[Path], list[str]], Callable[[Path], bool], Callable[[Path], Any]]
"""For a place: the command to run, whether its work is done, and its outcome."""


def forked(command: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os._exit(main(command))
    return pid


def struck(command: list[str], after: float | None) -> bool:
    """Start the command and kill it after this many seconds, never if None; return whether the kill came in time."""
    pid = forked(command)
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    killed = os.WIFSIGNALED(status)
    assert killed or os.waitstatus_to_exitcode(status) == 0, (command, status)
    return killed


def check_files(place: Path) -> None:
    """Check that every file is whole; skip unfinished ones (their names begin with a dot), databases and locks."""
    for path in place.rglob("*"):
        if path.is_dir() or path.name.startswith(".") or path.suffix in (".db", ".lock", ".db-journal"):
            continue
        content = path.read_bytes()
        if path.suffix == ".json":
            assert isinstance(parse(content), dict), path
        elif path.suffix == ".jsonl":
            [parse(line) for line in content.splitlines(keepends=True) if line.endswith(b"\n")]
        elif path.suffix == ".safetensors":
            assert load(content), path
        elif path.suffix == ".html":
            assert content.rstrip().endswith(b"</html>"), path


# -- the work -------------------------------------------------------------------------------------------------


def train(place: Path) -> list[str]:
    run = place / "run"
    if run.exists():
        return ["train", "--resume", "--out", str(run), "--checkpoint-every", "3"]
    return ["train", *flags("--out", str(run), "--checkpoint-every", "3")]


def trained(place: Path) -> dict[str, bytes]:
    return {name: (place / "run" / name).read_bytes() for name in SAME}


def sweeping(place: Path) -> list[str]:
    return [
        "sweep",
        *flags("--seed", "0:1", "--batch", "10,12"),
        "--results",
        f"{place}/r.jsonl",
        "--checkpoint-every",
        "2",
    ]


def searching(place: Path) -> list[str]:
    options = [
        "--trials",
        "4",
        "--members",
        "2",
        "--results",
        f"{place}/r.jsonl",
        "--storage",
        f"sqlite:///{place}/s.db",
    ]
    return ["search", *flags("--k", "2:5", "--lr", "1e-4:1e-2:log", "--epochs", "2"), *options]


def rows(place: Path) -> list[Any]:
    """The file's rows without what differs between trainings; fails if a run is there twice."""
    lines = [parse(line) for line in (place / "r.jsonl").read_bytes().splitlines()]
    assert len(lines) == len(read_results(place / "r.jsonl"))
    return sorted(([row["hash"], row["scores"], row["validation"], row["curve"]] for row in lines), key=str)


def reporting(place: Path) -> list[str]:
    return ["report", f"{place}/r.jsonl", "--out", f"{place}/report.html", "--force"]


def reported(place: Path) -> bytes:
    return (place / "report.html").read_bytes()


WORK: dict[str, Work] = {
    "train": (train, lambda place: (place / "run" / "result.json").exists(), trained),
    "sweep": (sweeping, lambda place: False, rows),
    "search": (searching, lambda place: False, rows),
    "report": (reporting, lambda place: False, reported),
}
SHARES = {"train": 0.4, "sweep": 0.25, "search": 0.1, "report": 0.25}
"""Each kind's share of the kills; a search takes the longest."""


def prepared(place: Path, kind: str) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    if kind == "report":
        Results(place / "r.jsonl").append(made_up.rows(cells("table1b", ("paper",), seeds=1)[:6]))
        (place / "report.html").write_text("<html></html>")  # the old version
    return place


def disturbed(kind: str, kills: int, place: Path, moment: random.Random) -> dict[str, int]:
    """Kill the work this many times; whenever it is done nevertheless, compare its outcome with an undisturbed one."""
    command, is_done, outcome = WORK[kind]
    whole = prepared(place / "whole", kind)
    began = time.monotonic()
    _, status = os.waitpid(forked(command(whole)), 0)
    assert status == 0, (kind, status)
    length, expected = min(time.monotonic() - began, 3.0), outcome(whole)
    struck_so_far = finished = 0
    while struck_so_far < kills:
        here = prepared(place / "struck", kind)
        while True:
            killed = struck(command(here), moment.random() * length if struck_so_far < kills else None)
            check_files(here)
            struck_so_far += killed
            if not killed or is_done(here):
                break
        assert outcome(here) == expected, kind
        finished += 1
    return {"kills": struck_so_far, "finished all the same": finished}


if __name__ == "__main__":
    torch.set_num_threads(1)
    engine.VALIDATION_SAMPLES = 20
    saving.SAVING_SHARE = float("inf")
    count, place, chosen = (
        int(sys.argv[1]),
        Path(sys.argv[2]),
        random.Random(int(sys.argv[3]) if sys.argv[3:] else None),
    )
    kills = {kind: max(1, round(share * count)) for kind, share in SHARES.items()}
    print(json.dumps({kind: disturbed(kind, kills[kind], place / kind, chosen) for kind in WORK}))
