"""Tests with many runs in one store, and with a long run: time grows no faster than their number, memory not at all."""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import call

import made_up
from auxmod.experiments.results_file import Results
from auxmod.experiments.run_directory import Run
from auxmod.experiments.single import train_run
from auxmod.files import CONFIG, METRICS, PROVENANCE, RESULT, sealed
from auxmod.learning.engine import Finished
from auxmod.learning.precision import resolve_device
from tiny import flags, tiny


def results_file(place: Path, count: int) -> Path:
    path = place / f"{count}.jsonl"
    Results(path).append([made_up.row(tiny(seed=seed)) for seed in range(count)])
    return path


def directories(place: Path, count: int) -> Path:
    """Make finished runs without their weights, each in a directory; return the directory that holds them."""
    for seed in range(count):
        config = tiny(seed=seed)
        row, run = made_up.row(config), place / f"{count}" / f"run-{seed}"
        run.mkdir(parents=True)
        (run / CONFIG).write_text(json.dumps(sealed(config.to_dict())))
        (run / RESULT).write_text(json.dumps(sealed(row["scores"], config.hash)))
        (run / PROVENANCE).write_text(json.dumps(sealed(row["provenance"])))
        (run / METRICS).write_text("".join(json.dumps(sealed(p), separators=(",", ":")) + "\n" for p in row["curve"]))
    return place / f"{count}"


def seconds(*words: str) -> float:
    """The CPU seconds that a command takes: the least of three runs, or the first if it takes more than one second."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        outcome = call(*words)
        best = min(best, time.process_time() - began)
        assert outcome.code == 0, outcome
        if best > 1:
            break
    return best


def calls(*words: str) -> int:
    """How many functions a command calls, which does not depend on how busy the machine is."""
    count = 0

    def seen(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        outcome = call(*words)
    finally:
        sys.setprofile(None)
    assert outcome.code == 0, outcome
    return count


def commands(path: Path, count: int) -> dict[str, tuple[str, ...]]:
    skip = ("sweep", *flags("--seed", f"0:{count - 1}"), "--results", str(path), "--quiet")
    listing = ("runs", "list", str(path), "--where", "match>0.1", "--sort", "match")
    page = ("report", str(path), "--out", f"{path}.html", "--force")
    return {"runs list": listing, "table": ("table", "all", "--results", str(path)), "skip done": skip, "report": page}


def growth(
    place: Path, few: int, many: int, names: tuple[str, ...], cost: Callable[..., float] = seconds
) -> dict[str, Any]:
    """Each command's cost for few and for many runs, and the ratio of the two."""
    small, large = commands(results_file(place, few), few), commands(results_file(place, many), many)
    if "directories" in names:
        small["directories"] = ("runs", "list", str(directories(place, few)))
        large["directories"] = ("runs", "list", str(directories(place, many)))
    costs = {name: (cost(*small[name]), cost(*large[name])) for name in names}
    return {name: {str(few): a, str(many): b, "ratio": b / a} for name, (a, b) in costs.items()}


def test_the_work_grows_with_the_number_of_runs(tmp_path: Path) -> None:
    for name, row in growth(tmp_path, 50, 400, ("runs list", "skip done"), cost=calls).items():
        assert 2 < row["ratio"] < 8 * 1.1, (name, row)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_five_thousand_runs(tmp_path: Path, record_property: Any) -> None:
    found = growth(tmp_path, 500, 5000, ("runs list", "table", "skip done", "report", "directories"))
    record_property("load", json.dumps(found))
    for name, row in found.items():
        assert row["ratio"] < 10 * 1.25, (name, row)
        assert row["5000"] < 30, (name, row)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_fifty_thousand_steps_take_no_more_memory_than_five_thousand(tmp_path: Path, record_property: Any) -> None:
    run = Run.create(tmp_path / "run", tiny(epochs=8334))
    sizes: dict[int, int] = {}
    for event in train_run(run, resolve_device("cpu"), checkpoint_every=5000):
        if not isinstance(event, Finished):
            sizes[event.step] = resident()
    after = next(size for step, size in sizes.items() if step >= 5000)
    grown = (max(sizes.values()) - after) / 2**20
    record_property(
        "memory", json.dumps({"steps": max(sizes), "grown_mib": round(grown, 2), "mib": round(after / 2**20)})
    )
    assert max(sizes) == 50_004
    assert grown < 8
