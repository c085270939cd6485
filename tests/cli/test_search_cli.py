"""Tests of `auxmod search`: what it prints, draws and writes; bad input gives one sentence and leaves no files."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import optuna
import pytest

from auxmod.cli import main
from auxmod.cli.watch import Watch
from auxmod.experiments.results_file import read_results
from auxmod.experiments.run_directory import Run
from auxmod.learning.engine import Progress
from tiny import flags

OWN = ["--epochs", "1", "--k", "3:5", "--r", "0.05:0.6", "--trials", "10", "--members", "10", "--rungs", "none"]


def command(*arguments: str) -> list[str]:
    own = [*flags(), *OWN]
    said = dict(zip(own[::2], own[1::2], strict=True)) | dict(zip(arguments[::2], arguments[1::2], strict=True))
    return ["search", *(part for flag in said.items() for part in flag)]


def test_it_searches_shows_draws_and_is_done_when_asked_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(command("--plots", "plots")) == 0
    said = capsys.readouterr()
    assert "10 trials trained to the end, 0 pruned, 0 failed, at the cost of 10 whole runs." in said.out
    choice = re.search(r"The choice: (--k [345] --r 0\.\d+)", said.out)
    assert choice
    assert "Which settings mattered" in said.out
    assert "10 cells of N = 4, angular, 60 samples: steps 0 to 6." in said.err
    pictures = sorted(path.name for path in Path("plots").iterdir())
    assert [name.partition("-")[0] for name in pictures] == ["history", "importance"]
    assert len({name.partition("-")[2] for name in pictures}) == 1  # the study's name
    assert Path("runs/search.db").is_file()
    rows = read_results(Path("runs/search.jsonl"))
    assert len(rows) == 10
    assert main([*command(), "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert said.err == ""  # nothing was left to train
    assert found["best"]["validation"] == max(row["validation"] for row in rows)
    assert found["storage"] == "sqlite:///runs/search.db"
    again = flags("--epochs", "1", *choice[1].split())  # with every digit printed
    assert main(["train", *again, "--out", "again", "--quiet"]) == 0
    assert Run.open("again").config.hash == found["best"]["hash"]
    assert set(found["importances"]) == {"k", "r"}
    assert [trial["validation"] for trial in found["trials"]] == sorted((r["validation"] for r in rows), reverse=True)


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_saves_exits_with_130_and_goes_on_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asked: signal.Signals
) -> None:
    monkeypatch.chdir(tmp_path)
    honest = Watch.see

    def stopping(self: Watch, event: Any) -> None:
        if isinstance(event, Progress) and event.step == 20:
            os.kill(os.getpid(), asked)
        honest(self, event)

    with monkeypatch.context() as patch:
        patch.setattr(Watch, "see", stopping)
        assert main([*command("--epochs", "10"), "--quiet"]) == 130
    assert capsys.readouterr().err == "Stopped at step 21 of 60 of 10 cells; the same command goes on from there.\n"
    assert main(command("--epochs", "10")) == 0
    assert "10 cells of N = 4, angular, 60 samples: steps 21 to 60." in capsys.readouterr().err
    study = optuna.load_study(study_name=None, storage="sqlite:///runs/search.db")
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 10
    assert sorted(path.name for path in Path("runs").iterdir()) == ["search.db", "search.jsonl"]


def test_the_storage_and_the_budget_are_those_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    place = ["--storage", f"sqlite:///{tmp_path}/deep/own.db", "--study", "mine", "--results", "own.jsonl"]
    bare = ["search", *flags(), "--k", "3:5", "--r", "0.05:0.6", "--rungs", "none", "--members", "3", *place]
    assert main([*bare, "--budget", "2", "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["study"], found["cost"], found["complete"]) == ("mine", 2, 2)
    assert Path("deep/own.db").is_file()
    assert not Path("runs").exists()


def test_without_optuna_it_says_how_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("auxmod.experiments.search", "auxmod.experiments.study"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(command()) == 2
    assert capsys.readouterr().err == "Error: Searching needs Optuna: install it with pip install 'auxmod[search]'.\n"
    assert list(tmp_path.iterdir()) == []


def test_plots_without_matplotlib_are_refused_before_the_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert main(command("--plots", "plots")) == 2
    assert capsys.readouterr().err == "Error: Figures need matplotlib: install it with pip install 'auxmod[plot]'.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("budget", ["-5", "0.05"])
def test_a_budget_that_pays_no_run_is_named_and_not_the_trials_it_would_pay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], budget: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["search", *flags(), "--k", "3:5", "--budget", budget]) == 2
    assert f"--budget is {float(budget)}, but must be 1 run or more" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--colour", "1:3"], "Unknown option: --colour"),
        (["--k", "9:4"], "--k is '9:4', an empty range"),
        (["--lr", "0:1:log"], "begins above 0"),
        (["--k", "1:4"], "--k is 1, but the auxiliary modulus"),
        (["--pooling", "mean,median"], "--pooling is 'median'; choose one of cls"),
        (["--seed", "0:2"], "a trial is one run"),
        (["--method", "naive"], "--k and --r belong to --method aux"),
        (["--trials", "0"], "--trials is 0"),
        (["--members", "0"], "--members is 0"),
        (["--budget", "0"], r"--budget is 0\.0"),
        (["--budget", "inf"], "--budget is inf"),
        (["--budget", "1e308"], r"--budget is 1e\+308"),
        (["--trials", "2.5"], r"'2\.5' is not a whole number"),
        (["--rungs", "half"], "--rungs is 'half'"),
        (["--rungs", "2"], "--rungs are shares"),
        (["--storage", "nowhere"], "--storage nowhere cannot be opened"),
        (["--results", "."], "is a directory"),
        (["--plots", "note.txt"], "--plots note.txt is a file"),
        (["--device", "gpu"], "--device is 'gpu'"),
        (["--precision", "tf32"], "--precision tf32 is a mode of CUDA devices"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("note.txt").write_text("hello\n")
    assert main(command(*arguments)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(words, said.err), said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["note.txt"]
