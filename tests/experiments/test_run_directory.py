"""Tests of run directories: made once, read back, never overwritten."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from auxmod.errors import UserError
from auxmod.experiments import origin, run_directory
from auxmod.experiments.origin import provenance
from auxmod.experiments.results_file import result_row
from auxmod.experiments.run_directory import Run
from tiny import tiny


def test_a_new_run_holds_its_configuration(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "deep" / "run", tiny(seed=3))
    assert Run.open(tmp_path / "deep" / "run").config == tiny(seed=3)
    assert run.result is None
    assert run.curve() == []


def test_an_existing_place_is_never_touched(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", tiny())
    before = (tmp_path / "run" / "config.json").read_bytes()
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "run", tmp_path / "file"):
        with pytest.raises(UserError, match="exists already: choose another --out"):
            Run.create(place, tiny(seed=1))
    with pytest.raises(UserError, match="cannot be written"):
        Run.create(tmp_path / "file" / "run", tiny())
    (tmp_path / "run" / "metrics.jsonl").touch()
    (tmp_path / "a.jsonl").touch()
    for place in (tmp_path / "run" / "steps" / "9", tmp_path / "a.jsonl.models" / "x"):
        with pytest.raises(UserError, match="choose a directory outside it"):
            Run.create(place, tiny(seed=1))
    assert (tmp_path / "run" / "config.json").read_bytes() == before
    assert (tmp_path / "file").read_text() == "mine"


def test_what_is_not_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such directory"):
        Run.open(tmp_path / "none")
    with pytest.raises(UserError, match=r"it has no config\.json"):
        Run.open(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(UserError, match=r"config.json: This configuration has format None"):
        _ = Run.open(tmp_path).config


def test_the_curve_grows_and_is_rewound(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny())
    points = [{"step": step, "loss": 1 / step} for step in range(1, 8)]
    for point in points:
        run.log(point)
    with open(run.path / run_directory.METRICS, "a") as file:
        file.write('{"step": 8, "lo')  # a crash in the middle of a line
    assert run.curve() == points
    run.rewind(5)
    assert run.curve() == points[:5]
    run.log(points[5])
    assert run.curve() == points[:6]
    run.rewind(0)
    assert run.curve() == []
    assert (run.path / run_directory.METRICS).read_bytes() == b""


def test_rewinding_loses_nothing_when_it_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run.create(tmp_path / "run", tiny())
    for step in (1, 2, 3):
        run.log({"step": step})

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", cut)
    with pytest.raises(KeyboardInterrupt):
        run.rewind(2)
    assert [point["step"] for point in run.curve()] == [1, 2, 3]


def test_a_finished_run_has_figures(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", tiny())
    run.finish({"match": 0.5})
    assert run.result == {"match": 0.5}


def test_a_row_names_its_run() -> None:
    made = provenance(device="cpu", precision="fp32", seconds=1.23456, members=3)
    assert {"auxmod", "torch", "numpy", "python", "commit", "command"} <= made.keys()
    assert (made["device"], made["precision"], made["seconds"], made["members"]) == ("cpu", "fp32", 1.235, 3)
    row = json.loads(json.dumps(result_row(tiny(), {"match": 1.0}, made)))
    assert row["hash"] == tiny().hash
    assert row["config"] == tiny().to_dict()
    assert row["scores"] == {"match": 1.0}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_commit_says_whether_the_source_was_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of any repository, then in one of its own: clean, changed elsewhere, and changed in the source."""
    here = tmp_path / "src" / "auxmod" / "experiments" / "origin.py"
    here.parent.mkdir(parents=True)
    here.write_text("")
    monkeypatch.setattr(origin, "__file__", str(here))

    def commit() -> str | None:
        origin.commit.cache_clear()
        return origin.commit()

    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        command = ["git", "-C", str(tmp_path), *identity, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    try:
        assert commit() is None
        git("init", "-q")
        git("add", ".")
        git("commit", "-qm", "one")
        name = git("rev-parse", "--short=12", "HEAD")
        assert commit() == name
        (tmp_path / "notes").write_text("elsewhere")
        assert commit() == name
        (tmp_path / "src" / "auxmod" / "model.py").write_text("changed")
        assert commit() == name + "+"
    finally:
        origin.commit.cache_clear()
