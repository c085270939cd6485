"""Tests of damaged files: the message names the file and what to do; no traceback, and no wrong figure unnoticed."""

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from desk import Outcome, call, damages, flipped

import auxmod
import made_up
from auxmod.cli import main
from auxmod.errors import UserError
from auxmod.experiments import saving
from auxmod.experiments.recipes import cells
from auxmod.experiments.results_file import Results
from tiny import flags, tiny

BITS = int(os.environ.get("BITS", "8"))
"""How many single bits to flip in each file; `make soak` flips many more."""
CHECKED: list[str] = []
EVAL = ("eval", "run", "--samples", "40", "--json")
SHOW = ("runs", "show", "run", "--json")
LIST = ("runs", "list", ".", "--json")
TABLE = ("table", "table1b", "--json", "--results", ".")
COMMANDS = {
    "config.json": (EVAL, SHOW, LIST, TABLE),
    "model.safetensors": (EVAL, ("predict", "run", "1", "2", "3", "4", "--json")),
    "result.json": (SHOW, LIST, TABLE),
    "metrics.jsonl": (SHOW, LIST, TABLE),
    "provenance.json": (SHOW, LIST),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished runs, one of another shape, and a copy of the first without its result, as after a stop."""
    place = tmp_path_factory.mktemp("made")
    auxmod.train(tiny(), out=place / "run")
    auxmod.train(tiny(seed=1), out=place / "other")
    auxmod.train(tiny(width=4, heads=1), out=place / "shaped")
    shutil.copytree(place / "run", place / "stopped")
    (place / "stopped" / "result.json").unlink()
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made / "run", "run")
    return tmp_path


def check(outcome: Outcome, whole: Outcome, name: str, what: str, place: Path) -> None:
    """Check that the outcome is that of the whole file, or that a sentence names the file as refused or left out."""
    said = outcome.err.replace("\n", " ")
    left_out = outcome.code == 0 and "Left out: " in said and name in said
    as_it_was = outcome.code == 0 and outcome.out == whole.out
    refused = outcome.code in (1, 2) and outcome.out == "" and name in said and said.rstrip().endswith(".")
    assert as_it_was or left_out or refused, (what, outcome, place)
    CHECKED.append(what)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_damaged_run_is_refused_by_the_files_name(place: Path, name: str) -> None:
    path, whole = place / "run" / name, {command: call(*command) for command in COMMANDS[name]}
    assert {outcome.code for outcome in whole.values()} == {0}
    content, chosen = path.read_bytes(), random.Random(name)
    for what, changed in damages(content, [chosen.getrandbits(30) for _ in range(BITS)]):
        path.write_bytes(changed)
        for command, before in whole.items():
            torn = name == "metrics.jsonl" and content.startswith(changed)  # a curve may end anywhere, as it grows
            if not torn:
                check(call(*command), before, name, f"{what} {command}", place)


@pytest.mark.parametrize("name", ["model.safetensors", "result.json", "config.json"])
@pytest.mark.parametrize("other", ["other", "shaped"])
def test_files_of_other_runs_are_refused(place: Path, made: Path, name: str, other: str) -> None:
    shutil.copy(made / other / name, place / "run" / name)
    command = EVAL if name == "model.safetensors" else SHOW
    outcome = call(*command)
    assert outcome.code == 2
    assert "run/" in outcome.err
    assert "another run" in outcome.err


@pytest.mark.parametrize("name", ["state.safetensors", "config.json", "metrics.jsonl", "provenance.json"])
def test_a_damaged_run_goes_on_to_the_same_result_or_not_at_all(place: Path, made: Path, name: str) -> None:
    whole = json.loads((made / "run" / "result.json").read_text())
    content, chosen = (made / "stopped" / name).read_bytes(), random.Random(name)
    for what, changed in damages(content, [chosen.getrandbits(30) for _ in range(BITS)]):
        shutil.rmtree("stopped", ignore_errors=True)
        shutil.copytree(made / "stopped", "stopped")
        Path("stopped", name).write_bytes(changed)
        outcome = call("train", "--resume", "--out", "stopped", "--quiet", "--json")
        if outcome.code == 0:
            assert json.loads(Path("stopped/result.json").read_text()) == whole, what
        else:
            assert outcome.code == 2, (what, outcome)
            assert name in outcome.err, (what, outcome)
        CHECKED.append(what)


def test_a_damaged_results_file_is_refused_by_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path, runs = Path("results.jsonl"), cells("table1b", ("paper",), seeds=1)[:3]
    Results(path).append(made_up.rows(runs))
    commands = (("table", "table1b", "--json", "--results", str(path)), ("runs", "list", str(path), "--json"))
    whole = {command: call(*command) for command in commands}
    assert {outcome.code for outcome in whole.values()} == {0}
    content, chosen = path.read_bytes(), random.Random(0)
    for what, changed in damages(content, [chosen.getrandbits(30) for _ in range(4 * BITS)]):
        # lines are appended whole, so fewer or repeated lines are valid; a last line without its end is being written
        rows_lost = content.startswith(changed) or what == "twice" or not changed.endswith(b"\n")
        if not rows_lost:
            path.write_bytes(changed)
            for command, before in whole.items():
                check(call(*command), before, path.name, f"{what} {command}", tmp_path)


def test_a_row_cut_short_is_not_counted_and_is_run_again(tmp_path: Path) -> None:
    path, runs = tmp_path / "results.jsonl", cells("table1b", ("paper",), seeds=1)[:2]
    Results(path).append(made_up.rows(runs))
    path.write_bytes(path.read_bytes()[:-40])
    book = Results(path)
    book.refresh()
    assert book.scored == {runs[0].hash}
    book.append(made_up.rows(runs[1:]))
    assert book.scored == {run.hash for run in runs}
    assert [json.loads(line)["hash"] for line in path.read_text().splitlines()] == [run.hash for run in runs]


# -- saved ensembles, studies, inputs -------------------------------------------------------------------------


class StopError(Exception):
    pass


def stopped_sweep(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Run a sweep that dies after its fourth checkpoint; return its command."""
    command = ["sweep", *flags("--seed", "0:1"), "--results", "s.jsonl", "--checkpoint-every", "1", "--quiet"]
    saved: list[int] = []
    save = saving.save_state

    def stop(*what: Any) -> None:
        save(*what)
        saved.append(1)
        if len(saved) == 4:
            raise StopError

    with monkeypatch.context() as patch:
        patch.setattr(saving, "SAVING_SHARE", float("inf"))
        patch.setattr(saving, "save_state", stop)
        with pytest.raises(StopError):
            main(command)
    return command


@pytest.mark.parametrize("ending", [".safetensors", ".lock", "plan"])
def test_a_damaged_saved_ensemble_starts_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    assert main(["sweep", *flags("--seed", "0:1"), "--results", "s.jsonl", "--quiet"]) == 0
    whole = figures(Path("s.jsonl"))
    monkeypatch.chdir(tmp_path)
    command = stopped_sweep(monkeypatch)
    shutil.copytree("s.jsonl.d", "saved")
    path = next(iter(Path("s.jsonl.d").glob(f"*{ending}")), Path(f"s.jsonl.d/{'0' * 16}{ending}"))
    content = path.read_bytes() if path.exists() else b'["a"]'
    bits = [8 * content.find(b"accuracy") + 80, 8 * len(content) // 3, 8 * len(content) // 2, 8 * len(content) - 20]
    kinds = dict(damages(content, bits))
    for what in ("empty", "cut to 50 %", "b'[]'", "b'{}'", *list(kinds)[-4:]):
        shutil.rmtree("s.jsonl.d", ignore_errors=True)
        shutil.copytree("saved", "s.jsonl.d")
        path.write_bytes(kinds[what])
        Path("s.jsonl").write_bytes(b"")
        outcome = call(*command)
        assert outcome.code == 0, (what, outcome)
        assert figures(Path("s.jsonl")) == whole, what
        CHECKED.append(what)


def figures(path: Path) -> list[tuple[object, ...]]:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return sorted((row["hash"], str(row["scores"]), str(row["curve"])) for row in rows)


def test_a_damaged_study_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["search", *flags("--k", "2:5"), "--trials", "2", "--members", "2", "--quiet"]
    command += ["--storage", "sqlite:///study.db", "--results", "r.jsonl"]
    assert call(*command).code == 0
    content = Path("study.db").read_bytes()
    for changed in (content[: len(content) // 2], b"junk" * 100, content[:100] + bytes(4000) + content[4100:]):
        Path("study.db").write_bytes(changed)
        outcome = call(*command)
        assert outcome.code in (1, 2)
        assert "study.db" in outcome.err


def test_damaged_inputs_are_refused(place: Path) -> None:
    assert call("data", *flags("--out", "x.npz")).code == 0
    content, chosen = Path("x.npz").read_bytes(), random.Random(0)
    command = ("predict", "run", "--file", "x.npz", "--json")
    whole = call(*command)
    assert whole.code == 0
    for what, changed in damages(content, [chosen.getrandbits(30) for _ in range(2 * BITS)]):
        Path("x.npz").write_bytes(changed)
        check(call(*command), whole, "x.npz", what, place)


def test_load_says_which_file_and_what_to_do(place: Path, made: Path) -> None:
    path = place / "run" / "model.safetensors"
    path.write_bytes(flipped(path.read_bytes(), 8 * len(path.read_bytes()) - 30))
    with pytest.raises(UserError, match=r"model\.safetensors does not match its digest, .* make the model anew"):
        auxmod.load(place / "run")


# -- runs that failed -----------------------------------------------------------------------------------------


def test_a_diverged_run_is_listed_as_failed_with_its_reason(tmp_path: Path, nan_loss: Callable[[], None]) -> None:
    nan_loss()
    outcome = call("train", *flags("--out", str(tmp_path / "run"), "--quiet"))
    assert outcome.code == 1
    listed = json.loads(call("runs", "list", str(tmp_path), "--json").out)
    assert [row["state"] for row in listed] == ["failed"]
    assert "stopped being finite" in listed[0]["failed"]
    assert "stopped being finite" in call("runs", "show", str(tmp_path / "run")).out
    again = call("train", "--resume", "--out", str(tmp_path / "run"), "--quiet")
    assert again.code == 1
    assert "stopped being finite" in again.err


@pytest.fixture
def nan_loss(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    import torch

    from auxmod.learning.objective import Objective

    honest = Objective.losses
    return lambda: monkeypatch.setattr(Objective, "losses", lambda *args: honest(*args) * torch.nan)


def test_so_much_was_damaged(record_property: Callable[[str, object], None]) -> None:
    """Record how many cases the tests above checked; must stay the last test of this file."""
    record_property("damaged", len(CHECKED))
