"""Tests of `auxmod sweep` and `auxmod grid`, also as processes, killed or side by side; bad input loses nothing."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console

from auxmod.cli import display, grid, main, watch
from auxmod.experiments.choosing import pairs
from auxmod.experiments.results_file import Results, read_results, result_row
from tiny import SETTINGS, tiny

LONG = {"n": "2", "epochs": "10", "width": "8,16,24", "k": "3:4", "r": "0.2,0.4", "seed": "0:1"}
"""24 cells in three ensembles of 60 steps."""


def flags(**settings: str) -> list[str]:
    """The tiny run's settings as flags, with these settings in place of its own."""
    said = {name: str(value) for name, value in SETTINGS.items()} | settings
    return [part for name, value in said.items() for part in (f"--{name.replace('_', '-')}", value)]


def by_hash(results: Path) -> dict[str, dict[str, Any]]:
    """A results file's rows by hash, without their provenance; fails if a run is there twice."""
    rows = read_results(results)
    assert len(rows) == len(results.read_text().splitlines())
    return {row["hash"]: {name: value for name, value in row.items() if name != "provenance"} for row in rows}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    results = tmp_path_factory.mktemp("whole") / "r.jsonl"
    assert main(["sweep", *flags(**LONG), "--results", str(results), "--quiet"]) == 0
    found = by_hash(results)
    assert len(found) == 24
    return found


def start(results: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "auxmod", "sweep", *flags(**LONG), "--results", str(results)]
    command += ["--checkpoint-every", "5"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not ready():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def lines(results: Path) -> int:
    return results.read_bytes().count(b"\n") if results.exists() else 0


def test_models_are_kept_where_that_is_asked_and_can_be_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, models = tmp_path / "r.jsonl", tmp_path / "r.jsonl.models"

    def said(*words: str) -> str:
        capsys.readouterr()
        assert main(list(words)) == 0
        return capsys.readouterr().out

    command = ["sweep", *flags(k="3:4", samples="100"), "--results", str(results), "--quiet"]
    said(*command)
    assert os.listdir(tmp_path) == ["r.jsonl"]
    assert json.loads(said(*command, "--keep-every", "10", "--dry-run", "--json"))["left"] == 2
    assert f"each under its hash: {models}" in said(*command, "--keep-every", "10")
    first, second = (row["hash"] for row in read_results(results))
    assert lines(results) == 4  # both were trained once more, for their models
    assert sorted(os.listdir(models)) == sorted([first, second])
    assert sorted(os.listdir(models / first / "steps")) == ["0", "10", "20", "30"]
    assert json.loads(said("eval", str(models / first), "--samples", "200", "--json"))["samples"] == 200
    assert json.loads(said(*command, "--keep-models", "--json"))["models"] == str(models)
    assert json.loads(said("runs", "show", first, "--store", str(tmp_path), "--json"))["model"] == str(models / first)
    assert f"Its model: {models / first}" in said("runs", "show", first, "--store", str(tmp_path))


# -- killed, interrupted, side by side ------------------------------------------------------------------------


def test_killed_in_the_middle_and_started_again_it_leaves_the_same_file(
    tmp_path: Path, undisturbed: Mapping[str, Any]
) -> None:
    results, saved = tmp_path / "r.jsonl", tmp_path / "r.jsonl.d"
    process = start(results)
    wait_until(lambda: lines(results) == 8 and any(saved.glob("*.safetensors")), process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL
    assert lines(results) < 24
    assert main(["sweep", *flags(**LONG), "--results", str(results), "--quiet"]) == 0
    assert by_hash(results) == undisturbed
    assert list(by_hash(results)) == list(undisturbed)
    assert os.listdir(tmp_path) == ["r.jsonl"]


def test_two_processes_share_the_work_and_lose_and_double_nothing(
    tmp_path: Path, undisturbed: Mapping[str, Any]
) -> None:
    results = tmp_path / "r.jsonl"
    processes = [start(results), start(results)]
    said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    done = [int(count) for _, error in said for count in re.findall(r"^(\d+) cells done, 0 failed", error, re.M)]
    assert done == [8, 8, 8]  # each ensemble was trained by one process only
    assert all("24 of 24 cells are done" in out for out, _ in said)
    assert by_hash(results) == undisturbed
    assert os.listdir(tmp_path) == ["r.jsonl"]


def test_one_of_two_processes_is_killed_and_the_other_takes_over(
    tmp_path: Path, undisturbed: Mapping[str, Any]
) -> None:
    results, working = tmp_path / "r.jsonl", tmp_path / "r.jsonl.d"
    first, second = start(results), start(results)
    wait_until(lambda: len(list(working.glob("*.lock"))) == 2, first)
    os.kill(first.pid, signal.SIGKILL)
    first.communicate(timeout=30)
    out, error = second.communicate(timeout=120)
    assert second.returncode == 0, error
    assert "24 of 24 cells are done" in out
    assert by_hash(results) == undisturbed
    assert os.listdir(tmp_path) == ["r.jsonl"]


def test_interrupted_it_saves_exits_with_130_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], undisturbed: Mapping[str, Any]
) -> None:
    results, honest, seen = tmp_path / "r.jsonl", watch.Watch.see, []

    def interrupting(self: watch.Watch, event: Any) -> None:
        seen.append(event)
        if len(seen) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        honest(self, event)

    monkeypatch.setattr(watch.Watch, "see", interrupting)
    command = ["sweep", *flags(**LONG | {"width": "16"}), "--results", str(results), "--quiet"]
    assert main(command) == 130
    said = capsys.readouterr()
    assert said.out == ""
    few, stopped = said.err.splitlines()
    assert (
        few
        == "About 71.0 % of the test inputs are trained on: there are 49 inputs of 2 numbers mod 7, and 60 are drawn."
    )
    assert re.fullmatch(r"Stopped at step \d+ of 60 of 8 cells; the same command goes on from there\.", stopped)
    assert list((tmp_path / "r.jsonl.d").glob("*.safetensors"))
    assert main(command) == 0
    assert by_hash(results).items() < undisturbed.items()
    assert len(by_hash(results)) == 8


# -- what it prints -------------------------------------------------------------------------------------------


def test_a_terminal_shows_cells_steps_and_the_time_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from auxmod.experiments.sweep import run_sweep

    screen = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(display, "console", lambda stderr: screen)
    cells = [tiny(seed=seed, epochs=1) for seed in range(3)] + [tiny(lr=1e30, epochs=1)]
    with watch.Watch() as shown:
        for event in run_sweep(cells, tmp_path / "r.jsonl", torch.device("cpu")):
            shown.see(event)
            shown.bars.refresh()
    assert isinstance(screen.file, io.StringIO)
    page = screen.file.getvalue()
    assert "4 cells of N = 4, angular, 60 samples: steps 0 to 6." in page
    assert re.search(r"0/4 +4 running, about \d+ s left", page)
    assert re.search(r"4/4 +1 failed", page)
    assert f"Cell {cells[3].hash} failed. The loss stopped being finite" in page
    assert re.search(r"6/6 +best held-out +[\d.]+ %", page)
    assert "within" not in page
    with watch.Watch() as shown:
        for event in run_sweep([tiny(q=3329, epochs=1)], tmp_path / "r.jsonl", torch.device("cpu")):
            shown.see(event)
            shown.bars.refresh()
    assert re.search(r"6/6 +best held-out +[\d.]+ % within 0.005·q", screen.file.getvalue())


@pytest.mark.parametrize(("seconds", "words"), [(90, "90 s"), (600, "10 min"), (9000, "2.5 h")])
def test_a_time_is_said_in_its_own_unit(seconds: float, words: str) -> None:
    assert watch.duration(seconds) == words


def test_a_dry_run_says_cells_packing_cost_and_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.jsonl"
    command = ["sweep", *flags(**LONG), "--results", str(results), "--dry-run"]
    assert main([*command, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["cells"], told["left"], len(told["ensembles"])) == (24, 24, 3)
    assert [row["members"] for row in told["ensembles"]] == [8, 8, 8]
    assert {"flops", "bytes", "seconds"} <= told.keys()
    assert main([*command, "--members", "5", "--json"]) == 0
    assert [row["members"] for row in json.loads(capsys.readouterr().out)["ensembles"]] == [5, 3, 5, 3, 5, 3]
    assert main(command) == 0
    assert "How it is packed" in capsys.readouterr().out
    assert not results.exists()
    many = ["sweep", *flags(**LONG | {"n": "1:50"}), "--results", str(results), "--dry-run"]
    assert main(many) == 0
    assert "and 110 more; --json has them all." in capsys.readouterr().out


def test_methods_are_swept_beside_a_grid_of_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = flags(method="naive,sparse,aux", k="2:4", r="0.2,0.4")
    assert main(["sweep", *asked, "--results", str(tmp_path / "r.jsonl"), "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 2 + 3 * 2


def test_cells_of_a_large_q_are_looked_at_by_near_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = flags(q="974269", epochs="1", method="naive")
    assert main(["sweep", *asked, "--results", str(tmp_path / "r.jsonl"), "--quiet"]) == 0
    assert f"auxmod runs list {tmp_path}/r.jsonl --sort tau_0.005" in capsys.readouterr().out


def test_a_failed_cell_is_reported_counted_and_tried_again_on_request(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "r.jsonl"
    command = ["sweep", *flags(lr="1e-3,1e30", epochs="1", method="aux"), "--results", str(results)]
    assert main([*command, "--json"]) == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["cells"], told["failed"]) == (2, 1)
    assert ["failed" in row for row in told["rows"]] == [False, True]
    bad = tiny(lr=1e30, epochs=1).hash
    assert f"Cell {bad} failed. The loss stopped being finite at step " in said.err
    assert said.err.endswith("Error: 1 of 2 cells failed: --retry-failed tries them again.\n")
    before = results.read_bytes()
    assert main([*command, "--quiet"]) == 1
    assert results.read_bytes() == before
    assert main([*command, "--quiet", "--retry-failed"]) == 1
    assert [row["hash"] == bad for row in map(json.loads, results.read_text().splitlines())] == [False, True, True]


def test_a_finished_sweep_is_skipped_without_torch(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    Results(results).append(result_row(tiny(seed=seed), {"match": 0.5}, {}) for seed in range(200))
    arguments = ["sweep", *flags(seed="0:199", method="aux"), "--results", str(results)]
    script = f"import sys, auxmod.cli; code = auxmod.cli.main({arguments}); print(code, 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0].startswith("200 of 200 cells are done")
    assert done.stdout.splitlines()[-1] == "0 False"


def test_a_file_and_flags_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text('seed = "0:2"\n[[cells]]\nmethod = "naive"\n[[cells]]\nk = [3, 4]\nr = "0.1:0.3:0.1"\n')
    (tmp_path / "base.toml").write_text("seed = 9\nlr = 0.5\n")
    files = ["--from", str(path), "--config", str(tmp_path / "base.toml")]
    command = ["sweep", *flags(), *files, "--results", str(tmp_path / "r.jsonl"), "--dry-run", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["cells"] == 3 + 18
    assert main([*command, "--seed", "5"]) == 0  # a flag wins over the file
    assert json.loads(capsys.readouterr().out)["cells"] == 1 + 6


# -- bad input ------------------------------------------------------------------------------------------------


BOTH = [
    (["--colour", "1:3"], "Unknown option: --colour"),
    (["--k", "9:4"], "--k is '9:4', an empty range"),
    (["--k", "4:9:0"], "step of 0"),
    (["--r", "0.1:0.4"], "say its step"),
    (["--k", "four"], "must be a number"),
    (["--seed", "0:100000"], "more than the 100,000 cells"),
    (["--config", "unknown.toml"], "There is no setting 'colour'"),
    (["--results", "other.jsonl"], r"Line 1 of other\.jsonl has format 7; this version of auxmod reads format 1"),
    (["--results", "."], "is a directory"),
    (["--results", "r.csv"], r"r\.csv would not be seen as a results file: give its name the ending \.jsonl"),
    (["--checkpoint-every", "0"], "--checkpoint-every is 0"),
    (["--members", "0"], "--members is 0, but must be 1 or more"),
    (["--device", "gpu"], "--device is 'gpu'"),
]
WRONG = [
    *(("sweep", *case) for case in BOTH),
    ("sweep", ["--method", "aux,best"], "--method is 'best'; choose one of naive"),
    ("sweep", ["--n", "4,0"], "--n is 0, but a sum needs at least one term.*in the cell --n 0"),
    ("sweep", ["--n", "0,4"], "--n is 0, but a sum needs at least one term.*in the cell --n 0"),
    ("sweep", ["--from", "custom.toml"], r"--moduli 1,2,4\.$"),
    ("sweep", ["--from", "none.toml"], "--from none.toml cannot be read"),
    ("sweep", ["--from", "cells.toml"], "There is no setting 'colour'"),
    ("sweep", ["--from", "empty.toml"], "--k is '9:4', an empty range"),
    ("sweep", ["--precision", "tf32,fp32"], "--precision tf32 is a mode of CUDA devices"),
    *(("grid", *case) for case in BOTH),
    ("grid", ["--n", "4,8"], "--n has several values, but a grid is of --k and --r"),
    ("grid", ["--out", "longer"], "give --then-samples with it"),
    ("grid", ["--then-samples", "5"], "--batch 10 is larger than --samples 5"),
    ("grid", ["--then-samples", "80", "--out", "."], "exists already"),
    ("grid", ["--then-samples", "80", "--out", "empty.toml/longer"], "but 'empty.toml' is a file: choose another"),
    ("grid", ["--method", "naive"], "A grid is of K and r, which --method aux has, and"),
    ("grid", ["--moduli", "1,2"], "A grid is of K and r, which give the moduli and their weights: leave out --moduli."),
]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--checkpoint-every", "0"], "1 step or more"),
        (["--shared", "there"], "give --cluster too"),
        (["--cluster", "local"], "plans for a device of this machine"),
    ],
)
def test_a_dry_run_refuses_what_the_sweep_would(
    capsys: pytest.CaptureFixture[str], given: list[str], words: str, tmp_path: Path
) -> None:
    assert main(["sweep", *flags(), "--results", str(tmp_path / "r.jsonl"), "--dry-run", *given]) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("command", "arguments", "words"), WRONG)
def test_bad_input_is_one_sentence_and_nothing_is_lost(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: str,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("unknown.toml").write_text("colour = 'red'\n")
    Path("cells.toml").write_text("[[cells]]\nk = 4\n[[cells]]\ncolour = 'red'\n")
    Path("empty.toml").write_text("k = '9:4'\n")
    Path("custom.toml").write_text("[[cells]]\nmethod = 'custom'\n[[cells]]\nmethod = 'custom'\nmoduli = '1,2'\n")
    Path("other.jsonl").write_text(json.dumps(result_row(tiny(), {}, {})).replace('"format": 1', '"format": 7') + "\n")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    said = dict(zip(arguments[::2], arguments[1::2], strict=True))
    own = dict(zip(flags()[::2], flags()[1::2], strict=True))
    assert main([command, *(part for flag in (own | said).items() for part in flag)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(words, shown.err), shown.err
    assert shown.err.count("\n") == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


# -- the paper's grid -----------------------------------------------------------------------------------------


def test_the_grid_chooses_shows_and_hands_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["grid", *flags(epochs="1", k="3:4", r="0.2,0.4", seed="0,1"), "--quiet"]
    assert main([*command, "--then-samples", "80", "--out", "longer", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [(cell["k"], cell["r"]) for cell in told["cells"]] == [(3, 0.2), (3, 0.4), (4, 0.2), (4, 0.4)]
    assert all(cell["seeds"] == 2 for cell in told["cells"])
    assert told["best"]["validation"] == max(cell["validation"] for cell in told["cells"])
    assert told["chance"] == pytest.approx(1 / 7)
    assert told["then"]["run"] == "longer"
    longer = json.loads(Path("longer/config.json").read_text())
    assert longer["training"]["samples"] == 80
    assert longer["method"]["moduli"] == [1, told["best"]["k"]]
    assert longer["method"]["weights"][1] == told["best"]["r"]
    assert len(read_results(Path("runs/sweep.jsonl"))) == 8
    assert main(command) == 0  # nothing is left to train
    page = capsys.readouterr().out
    assert f"--k {told['best']['k']} --r {told['best']['r']:g}" in page
    assert "ρ 1.30" in page
    assert "chance 14.3 %" in page


def test_the_longer_run_saves_as_often_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, Any] = {}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(grid, "watch_run", lambda *_, **options: told.update(options))
    command = ["grid", *flags(epochs="1", k="3", r="0.2"), "--quiet", "--json", "--then-samples", "80"]
    assert main([*command, "--out", "longer", "--checkpoint-every", "7"]) == 0
    assert told == {"checkpoint_every": 7}


def test_interrupted_while_the_longer_run_is_measured_it_does_not_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from auxmod.learning.engine import Ensemble

    measure = Ensemble.evaluate

    def interrupted(self: Ensemble, samples: int, **options: Any) -> Any:
        if not options and self.training.samples == 80:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(5)
        return measure(self, samples, **options)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Ensemble, "evaluate", interrupted)
    command = ["grid", *flags(epochs="1", k="3", r="0.2"), "--quiet", "--then-samples", "80", "--out", "longer"]
    assert main(command) == 130
    assert "the model is saved. To go on: auxmod train --resume --out longer." in capsys.readouterr().err
    assert Path("longer/model.safetensors").exists()


def test_without_being_told_the_grid_is_the_papers() -> None:
    from auxmod.experiments.ranges import expand

    cells = [(cell["k"], cell["r"]) for cell in expand(grid.GRID)]
    assert cells == [(k, r) for k in range(4, 10) for r in (0.1, 0.2, 0.3, 0.4)]


def test_the_choice_is_by_held_out_accuracy_not_by_the_test() -> None:
    configs = [tiny(k=3, r=0.2), tiny(k=4, r=0.2), tiny(k=5, r=0.2), tiny(k=6, r=0.2)]
    figures = [(0.5, 0.9), (0.7, 0.1), (0.7, 0.8)]
    rows = [
        result_row(config, {"match": match, "chance": 0.1}, {}, validation=held_out)
        for config, (held_out, match) in zip(configs, figures, strict=False)
    ]
    rows.append(result_row(configs[3], None, {}, failed="It failed."))
    found = pairs(configs, rows)
    assert (found["best"]["k"], found["equals"], found["failed"]) == (4, 2, 1)
    shown = grid.heatmap(found)
    assert shown.row_count == 1
    assert "failed" in str(next(iter(shown.columns[4].cells)))
    assert pairs(configs[3:], rows[3:])["best"] is None


def test_a_choice_that_lost_seeds_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    configs = [tiny(k=k, r=0.2, seed=seed) for k in (3, 4) for seed in (0, 1)]
    rows = [result_row(config, {"match": 0.5, "chance": 0.1}, {}, validation=0.5) for config in configs]
    rows[2:] = [
        result_row(configs[2], {"match": 0.6, "chance": 0.1}, {}, validation=0.6),
        result_row(configs[3], None, {}, failed="It diverged."),
    ]
    grid.show(pairs(configs, rows))
    assert "1 of its 2 seeds failed" in capsys.readouterr().out
    grid.show(pairs(configs[:2], rows[:2]))
    assert "seeds failed" not in capsys.readouterr().out


def test_a_grid_of_which_nothing_came_is_told_to_a_program_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axes = [*flags(lr="1e30", epochs="1", method="aux"), "--k", "3:4", "--r", "0.2"]
    assert main(["grid", *axes, "--results", str(tmp_path / "my r.jsonl"), "--json"]) == 1
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["failed"], told["best"], len(told["cells"])) == (2, None, 2)
    assert "Every cell of the grid failed" in said.err
    sweep = ["sweep", *flags(epochs="1"), "--results", str(tmp_path / "my r.jsonl"), "--quiet"]
    assert main(sweep) == 0
    assert f"auxmod runs list '{tmp_path}/my r.jsonl' --sort match" in capsys.readouterr().out


def test_of_a_large_q_where_nothing_is_exact_the_nearest_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    configs = [tiny(q=974_269, k=k, r=0.2) for k in (3, 4, 5)]

    def summary(right: float, *near: float) -> dict[str, Any]:
        scores = {"match": right, "chance": 1 / 974_269, "tau": {"0.005": 0.35}, "tau_chance": {"0.005": 0.0109}}
        curves = [[{"step": 6, "loss": 1.0, "accuracy": right, "near": share}] for share in near]
        return pairs(
            configs,
            [
                result_row(config, scores, {}, validation=right, curve=curve)
                for config, curve in zip(configs, curves, strict=True)
            ],
        )

    found = summary(0.0, 0.1, 0.4, 0.3)
    assert (found["by"], found["best"]["k"], found["equals"]) == ("near", 4, 1)
    grid.show(found)
    said = capsys.readouterr().out
    assert "Held-out answers within 0.005·q, N = 4" in said
    assert "40.0 % held-out, 0.0 % exact on the test inputs (chance 0.0001 %), 35.0 % within 0.005·q." in said
    assert "chance 1.0 %" in said
    found = summary(0.5, 0.5, 0.5, 0.5)
    assert (found["best"]["k"], found["equals"]) == (3, 3)
    grid.show(found)
    assert "2 others are as good; the first is taken." in capsys.readouterr().out


def test_a_row_without_held_out_answers_is_no_choice(capsys: pytest.CaptureFixture[str]) -> None:
    configs = [tiny(k=k, r=0.2) for k in (3, 4)]
    old, new = ({"match": 0.9}, None), ({"match": 0.5}, 0.4)
    found = pairs(configs, [result_row(c, s, {}, validation=v) for c, (s, v) in zip(configs, (old, new), strict=True)])
    assert found["best"]["k"] == 4
    grid.show(found)
    assert "unknown" in capsys.readouterr().out


def test_no_column_of_a_wide_grid_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    configs = [tiny(k=k, r=0.12345678) for k in range(2, 21)]
    rows = [
        result_row(c, {"match": c.method.moduli[1] / 100}, {}, validation=c.method.moduli[1] / 100) for c in configs
    ]
    grid.show(pairs(configs, rows))
    said = capsys.readouterr().out
    assert all(f"{k}.0 %" in said for k in range(2, 21))
    assert "--k 20 --r 0.12345678," in said


def test_a_name_that_is_no_unicode_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"r\xe9.jsonl")
    words = ["sweep", *flags(epochs="1"), "--results", name, "--quiet"]
    monkeypatch.setattr("sys.argv", ["auxmod", *words])
    assert main(words) == 0
    assert name in read_results(name)[0]["provenance"]["command"]
    assert main(["runs", "list", name]) == 0
