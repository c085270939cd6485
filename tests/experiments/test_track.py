"""Tests of trackers: they are given a run's curve and figures, and are imported only when asked for."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from auxmod.cli import main
from auxmod.experiments.results_file import read_results
from auxmod.experiments.run_directory import Run
from auxmod.experiments.track import tracker
from tiny import flags, tiny


@pytest.fixture(params=["wandb", "trackio"])
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[str, list[tuple[Any, ...]]]:
    """The name of a stand-in for a tracker, and the list of what it is told."""
    heard: list[tuple[Any, ...]] = []
    fake = SimpleNamespace(
        init=lambda project, name, config: heard.append(("init", project, name, config)),
        log=lambda values, step: heard.append(("log", step, values)),
        finish=lambda: heard.append(("finish",)),
    )
    monkeypatch.setitem(sys.modules, request.param, fake)
    return request.param, heard


def test_a_run_is_told_as_it_goes(tmp_path: Path, told: tuple[str, list[tuple[Any, ...]]]) -> None:
    name, heard = told
    assert main(["train", *flags("--asks", "2"), "--out", str(tmp_path / "run"), "--track", name, "--quiet"]) == 0
    run = Run.open(tmp_path / "run")
    first, *logged, last, end = heard
    assert first[:3] == ("init", "auxmod", f"run-{run.config.hash[:6]}")
    assert first[3]["n"] == 4
    points = [{"step": step, **values} for _, step, values in logged]
    assert points == run.curve()
    assert run.result is not None
    assert last[1] == 18
    assert last[2]["test/match"] == run.result["match"]
    assert last[2]["test/tau/0.05"] == run.result["tau"]["0.05"]
    assert last[2]["test/asked/tau/0.05"] == run.result["asked"]["tau"]["0.05"]
    assert end == ("finish",)


def test_cells_are_told_one_after_another(tmp_path: Path, told: tuple[str, list[tuple[Any, ...]]]) -> None:
    name, heard = told
    results = tmp_path / "r.jsonl"
    command = ["sweep", *flags("--lr", "1e-3,1e30"), "--results", str(results), "--track", name, "--quiet"]
    assert main(command) == 1
    good, bad = read_results(results)
    assert [event[0] for event in heard] == ["init", *["log"] * (len(good["curve"]) + 1), "finish", "init", "finish"]
    assert [event[2] for event in heard if event[0] == "init"] == [good["hash"], bad["hash"]]
    assert heard[-3][0] == "finish"


def test_it_is_finished_when_the_run_is_not(told: tuple[str, list[tuple[Any, ...]]], tmp_path: Path) -> None:
    name, heard = told
    assert main(["train", *flags("--lr", "1e30"), "--out", str(tmp_path / "run"), "--track", name, "--quiet"]) == 1
    assert heard[-1] == ("finish",)


@pytest.mark.parametrize("name", ["wandb", "trackio", "tensorboard"])
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_one_that_is_not_installed_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard" if name == "tensorboard" else name, None)
    assert main([command, *flags(), "--track", name]) == 2
    assert capsys.readouterr().err == f"Error: --track {name} needs it to be installed: pip install 'auxmod[{name}]'.\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:tensorboard", "ignore::DeprecationWarning:torch.utils.tensorboard"
)
def test_tensorboard_reads_what_was_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with tracker("tensorboard", tmp_path)("mine", {"n": tiny().problem.n}) as log:
        log(5, {"loss": 0.5, "accuracy": 0.25})
        log(10, {"loss": 0.25})
    read = EventAccumulator(str(tmp_path / "tensorboard" / "mine")).Reload()
    assert [(point.step, point.value) for point in read.Scalars("loss")] == [(5, 0.5), (10, 0.25)]
    assert [(point.step, point.value) for point in read.Scalars("accuracy")] == [(5, 0.25)]


def test_nothing_is_imported_unasked(tmp_path: Path) -> None:
    arguments = ["train", *flags("--epochs", "1"), "--out", str(tmp_path / "run"), "--quiet"]
    seen = "[name for name in ('wandb', 'trackio', 'tensorboard', 'ray') if name in sys.modules]"
    script = f"import sys, auxmod.cli; assert auxmod.cli.main({arguments}) == 0; print({seen})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("command", "place"), [("train", "--out"), ("sweep", "--results")])
def test_tensorboard_lies_beside_what_it_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, place: str
) -> None:
    begun: list[str] = []
    board = SimpleNamespace(add_text=lambda *_: None, add_scalar=lambda *_: None, close=lambda: None)
    fake = SimpleNamespace(SummaryWriter=lambda name: begun.append(name) or board)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", fake)
    out = tmp_path / "mine" / "of.jsonl"
    assert main([command, *flags(), place, str(out), "--track", "tensorboard", "--quiet"]) == 0
    assert [Path(each).parent for each in begun] == [out.parent / "tensorboard"]


@pytest.mark.parametrize("breaks", ["init", "log", "finish"])
@pytest.mark.parametrize("command", ["train", "sweep"])
def test_one_that_fails_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], breaks: str, command: str
) -> None:
    def fails(*given: Any, **named: Any) -> None:
        raise ValueError("not logged in")

    heard: list[str] = []
    calls = {name: lambda *_, name=name, **__: heard.append(name) for name in ("init", "log", "finish")}
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(**calls | {breaks: fails}))
    place = ["--seed", "0:1", "--members", "1", "--results"] if command == "sweep" else ["--out"]
    monkeypatch.chdir(tmp_path)
    with pytest.warns(UserWarning, match="The tracker lacks run .*: not logged in"):
        assert main([command, *flags(), *place, "here.jsonl", "--track", "wandb", "--quiet"]) == 0
    assert "Error" not in capsys.readouterr().err
    if command == "sweep":
        assert len(read_results("here.jsonl")) == 2
    else:
        assert Run.open(Path("here.jsonl")).result is not None
    assert ("finish" in heard) == (breaks == "log")


def test_one_that_is_down_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []

    def init(project: str, name: str, config: Any) -> None:
        tried.append(name)
        raise OSError("no such host")

    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=init))
    words = ["sweep", *flags(), "--seed", "0:2", "--members", "1", "--results", str(tmp_path / "r.jsonl")]
    with pytest.warns(UserWarning, match="no such host"):
        assert main([*words, "--track", "wandb", "--quiet"]) == 0
    assert len(tried) == 1
