"""Tests of the commands end to end: train, resume, eval, predict and data, and which source of a setting wins."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import auxmod
from auxmod.cli import main
from auxmod.experiments.resolving import with_digest
from auxmod.experiments.run_directory import Run
from auxmod.learning import memory
from tiny import flags, tiny

Cli = Callable[..., str]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run commands in an empty directory; each must succeed, and its stdout is returned."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any) -> str:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        out, error = capsys.readouterr()
        assert code == 0, error
        return out

    return run


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "run"
    auxmod.train(tiny(), out=path)
    return path


def test_a_checkpoint_of_a_run_that_goes_on_is_called_that(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = shutil.copytree(trained, tmp_path / "run")
    command = ["eval", str(run), "--samples", "100"]
    assert main(command) == 0
    assert capsys.readouterr().err == ""
    (run / "result.json").unlink()
    assert main(command) == 0
    assert capsys.readouterr().err == f"{run} did not come to its end: this is its last checkpoint.\n"


# -- train ----------------------------------------------------------------------------------------------------


def test_train_leaves_a_run_and_shows_accuracy_beside_chance(cli: Cli) -> None:
    shown = cli("train", *flags("--out", "here"))
    run = Run.open(Path("here"))
    assert run.config == tiny()
    assert run.result is not None
    assert "match" in shown
    assert "τ = 0.05" in shown
    assert f"{100 * run.result['match']:.1f} %" in shown
    assert "14.3 %" in shown  # chance, 1/7


def test_train_without_out_names_the_run_and_never_reuses_a_name(cli: Cli) -> None:
    for _ in range(2):
        cli("train", *flags("--quiet"))
    first = f"aux-n4-q7-{tiny().hash[:6]}"
    assert sorted(path.name for path in Path("runs").iterdir()) == [first, f"{first}-2"]


def test_json_is_all_there_is_on_stdout(cli: Cli, trained: Path) -> None:
    result = json.loads(cli("train", *flags("--out", "here", "--json")))
    assert result["run"] == "here"
    assert result["hash"] == tiny().hash
    assert {name: result[name] for name in result if name not in ("run", "hash")} == Run.open(trained).result


def test_progress_goes_to_stderr_as_plain_lines(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", *flags("--out", "here")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert any(line.startswith("aux: step 18/18  loss ") and "held-out" in line for line in lines)
    assert main(["train", *flags("--out", "there", "--quiet")]) == 0
    assert capsys.readouterr().err == ""


def test_every_method_trains(cli: Cli) -> None:
    cases: dict[str, list[str]] = {
        "naive": ["--method", "naive"],
        "sparse": ["--method", "sparse", "--fill", "nonzero"],
        "aux": ["--method", "aux", "--k", "5", "--r", "0.4", "--draw", "expected"],
        "ladder": ["--method", "ladder"],
        "custom": ["--moduli", "1,2,4", "--weights", "0.5,0.25,0.25"],
        "token": ["--embedding", "token", "--pooling", "flatten", "--no-bias", "--norm", "post", "--clip", "1"],
    }
    for name, others in cases.items():
        result = json.loads(cli("train", *flags(*others, "--out", name, "--json", "--quiet")))
        assert 0 <= result["match"] <= 1
    assert Run.open(Path("custom")).config.method.weights == (0.5, 0.25, 0.25)
    assert Run.open(Path("ladder")).config.method.moduli == (1, 2, 4)


def test_a_dry_run_trains_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = cli("train", *flags("--dry-run"))
    assert all(word in shown for word in ("parameters", "memory", "FLOPs", "time", "weight_decay"))
    described = json.loads(cli("train", *flags("--dry-run", "--json")))
    assert described["config"] == tiny().to_dict()
    assert described["hash"] == tiny().hash
    assert list(Path().iterdir()) == []
    assert "does not fit" not in shown
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10)
    assert "It does not fit into the memory that is free" in cli("train", *flags("--dry-run"))


def test_a_flag_beats_the_environment_beats_a_file_beats_a_preset_beats_the_default(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("run.toml").write_text("q = 11\nlr = 0.1\n[training]\nepochs = 2\n[model]\nheads = 1\n")

    def resolved(*flags: str) -> dict[str, Any]:
        config = json.loads(cli("train", "--dry-run", "--json", *flags))["config"]
        return {name: value for part in config.values() if isinstance(part, dict) for name, value in part.items()}

    names = ("q", "lr", "epochs", "heads", "width", "batch")
    default = resolved()
    preset = resolved("--preset", "demo")
    file = resolved("--preset", "demo", "--config", "run.toml")
    monkeypatch.setenv("AUXMOD_LR", "0.2")
    monkeypatch.setenv("AUXMOD_EPOCHS", "3")
    environment = resolved("--preset", "demo", "--config", "run.toml")
    flag = resolved("--preset", "demo", "--config", "run.toml", "--epochs", "4")
    assert [default[name] for name in names] == [97, 2.5e-3, 10, 4, 256, 250]
    assert [preset[name] for name in names] == [31, 1e-3, 5, 4, 64, 250]
    assert [file[name] for name in names] == [11, 0.1, 2, 1, 64, 250]
    assert [environment[name] for name in names] == [11, 0.2, 3, 1, 64, 250]
    assert [flag[name] for name in names] == [11, 0.2, 4, 1, 64, 250]
    monkeypatch.setenv("AUXMOD_PRESET", "demo")
    monkeypatch.setenv("AUXMOD_CONFIG", "run.toml")
    assert resolved("--epochs", "4") == flag


def test_a_flag_wins_over_what_says_the_same_in_another_way(cli: Cli) -> None:
    Path("run.toml").write_text('method = "aux"\nk = 3\nr = 0.2\n')
    config = json.loads(cli("train", "--config", "run.toml", "--moduli", "1,2,8", "--dry-run", "--json"))["config"]
    assert config["method"]["moduli"] == [1, 2, 8]
    cli("sweep", *flags("--config", "run.toml", "--moduli", "1,2;1,3", "--results", "r.jsonl", "--quiet"))
    made = [row["config"]["method"]["moduli"] for row in map(json.loads, Path("r.jsonl").read_text().splitlines())]
    assert sorted(made) == [[1, 2], [1, 3]]
    Path("run.toml").write_text('method = "aux"\nk = 3\nweights = [0.6, 0.4]\n')
    config = json.loads(cli("train", "--config", "run.toml", "--k", "6", "--dry-run", "--json"))["config"]
    assert (config["method"]["moduli"], config["method"]["weights"]) == ([1, 6], [0.6, 0.4])
    Path("run.toml").write_text("moduli = [1, 2]\nweights = [0.5, 0.5]\n")
    assert main(["train", "--config", "run.toml", "--r", "0.3", "--dry-run"]) == 2  # of which K?
    Path("run.toml").write_text("moduli = [1, 2, 8]\nweights = [0.5, 0.3, 0.2]\n")
    config = json.loads(cli("train", "--config", "run.toml", "--k", "5", "--dry-run", "--json"))["config"]
    assert (config["method"]["moduli"], config["method"]["method"]) == ([1, 5], "aux")


def test_a_variable_that_is_no_setting_is_told_of(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AUXMOD_LR", "0.5")
    for name in ("AUXMOD_SWEEP_HEAD_SVC_SERVICE_HOST", "AUXMOD_PORT", "AUXMOD_PORT_80_TCP"):
        monkeypatch.setenv(name, "1")
    assert main(["train", "--dry-run", "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["config"]["training"]["lr"] == 0.5
    assert said.err == ""
    monkeypatch.setenv("AUXMOD_LRR", "0.5")
    assert main(["train", "--dry-run", "--json"]) == 0
    assert "AUXMOD_LRR is in the environment, and no command reads it" in capsys.readouterr().err


def test_names_with_brackets_are_shown_as_they_are(cli: Cli) -> None:
    """rich would take the brackets for tags."""
    name = "x[/b]"
    assert name in cli("data", *flags("--out", f"{name}.npz"))
    assert name in cli("train", *flags("--data", f"{name}.npz", "--dry-run"))
    assert name in cli("sweep", *flags("--results", f"{name}.jsonl", "--dry-run"))
    cli("train", *flags("--out", f"{name}/run", "--quiet"))
    assert f"1 of {name}" in cli("runs", "list", name)
    assert f"{name}/run: done" in cli("runs", "show", f"{name}/run")
    assert name in cli("reproduce", "table1a", "--results", name, "--dry-run")


# -- eval -----------------------------------------------------------------------------------------------------


def test_eval_measures_what_training_measured(cli: Cli, trained: Path) -> None:
    scores = json.loads(cli("eval", trained, "--samples", "300", "--json"))
    expected = Run.open(trained).result
    assert expected is not None
    assert {name: scores[name] for name in expected} == expected


def test_eval_with_other_tolerances_and_inputs(cli: Cli, trained: Path) -> None:
    scores = json.loads(
        cli("eval", trained, "--samples", "500", "--tau", "0.2,0.5", "--distribution", "sparse", "--json")
    )
    assert scores["tau"].keys() == {"0.2", "0.5"}
    assert scores["tau"]["0.5"] == 1
    assert scores["tau_chance"]["0.2"] == 0.4
    assert len(scores["by_zeros"]) >= 4


@pytest.mark.parametrize("by", ["wraps", "zeros"])
def test_eval_by_parts(cli: Cli, trained: Path, by: str) -> None:
    shown = cli("eval", trained, "--samples", "500", "--by", by)
    scores = json.loads(cli("eval", trained, "--samples", "500", "--json"))
    assert f"By number of {by}" in shown
    rows = scores[f"by_{by}"]
    assert sum(row["samples"] for row in rows) == 500
    assert sum(row["correct"] for row in rows) == round(500 * scores["match"])
    assert all(f"{100 * row['correct'] / row['samples']:.1f} %" in shown for row in rows)


def test_eval_on_rows_of_ones_own(cli: Cli, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("rows.csv").write_text("\n".join(",".join(map(str, row)) for row in ROWS))
    np.savez("rows.npz", x=ROWS)
    expected = auxmod.load(trained).evaluate(x=ROWS)
    for name in ("rows.csv", "rows.npz"):
        told = json.loads(cli("eval", trained, "--file", name, "--json"))
        assert (told["file"], told["samples"], told["match"]) == (name, 3, expected["match"])
        assert told["by_wraps"] == expected["by_wraps"]
    cli("data", *flags("--out", "data.npz"))
    cli("train", *flags("--data", "data.npz", "--out", "own", "--quiet"))
    for name, told in (("data.npz", True), ("rows.npz", False)):
        assert main(["eval", "own", "--file", name]) == 0
        assert (f"{name} is what own was trained on" in capsys.readouterr().err) == told
    assert "on 3 inputs of rows.csv" in cli("eval", trained, "--file", "rows.csv", "--by", "wraps")
    assert main(["eval", str(trained), "--file", "rows.csv", "--samples", "5", "--fill", "zero"]) == 2
    assert "--file brings the inputs, --samples, --fill would draw others" in capsys.readouterr().err


# -- predict --------------------------------------------------------------------------------------------------

ROWS = [[1, 2, 3, 4], [6, 6, 6, 6], [0, 0, 0, 0]]


def test_predict_from_anywhere_is_the_models_answer(
    cli: Cli, trained: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = auxmod.load(trained)
    values = model.values(ROWS).tolist()
    expected = []
    for row, value, prediction in zip(ROWS, values, model.predict(ROWS).tolist(), strict=True):
        truth = sum(row) % 7
        gap = abs(value - truth)
        expected.append({"prediction": prediction, "truth": truth, "error": min(gap, 7 - gap), "value": value})
    text = "\n".join(",".join(map(str, row)) for row in ROWS) + "\n"
    Path("rows.csv").write_text(text)
    np.savez("rows.npz", x=ROWS)
    assert json.loads(cli("predict", trained, "--file", "rows.csv", "--json")) == expected
    assert json.loads(cli("predict", trained, "--file", "rows.npz", "--json")) == expected
    Path("excel.csv").write_text(text, encoding="utf-8-sig")
    assert json.loads(cli("predict", trained, "--file", "excel.csv", "--json")) == expected
    monkeypatch.setattr("sys.stdin", io.StringIO(text.replace(",", " ")))
    assert json.loads(cli("predict", trained, "--json")) == expected
    one = json.loads(cli("predict", trained, *ROWS[0], "--json"))
    assert one[0]["truth"] == 3
    assert one[0]["prediction"] == expected[0]["prediction"]
    shown = cli("predict", trained, "--file", "rows.csv")
    assert all(word in shown for word in ("prediction", "truth", "circular error", f"{expected[1]['error']:.3f}"))


# -- data -----------------------------------------------------------------------------------------------------


def test_data_is_what_a_run_trains_on(cli: Cli, trained: Path) -> None:
    assert "60" in cli("data", *flags("--out", "deep/data.npz"))
    with np.load("deep/data.npz") as file:
        x, y, quotient = file["x"].astype(object), file["y"], file["quotient"]
    assert x.shape == (60, 4)
    assert y.tolist() == [sum(row) % 7 for row in x]
    assert quotient.tolist() == [sum(row) // 7 for row in x]
    cli("train", *flags("--data", "deep/data.npz", "--out", "own", "--quiet"))
    own, drawn = auxmod.load("own"), auxmod.load(trained)
    assert own.config.training.samples == 60
    for (name, a), (_, b) in zip(own.named_parameters(), drawn.named_parameters(), strict=True):
        assert a.equal(b), name
    assert Run.open(Path("own")).result == Run.open(trained).result


def test_a_run_goes_on_with_data_that_have_moved(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    cli("data", *flags("--out", "data.npz"))
    cli("data", *flags("--out", "other.npz", "--seed", "1"))
    run = Run.create(Path("own"), with_digest(tiny(data=str(Path("data.npz").absolute()))))
    Path("data.npz").rename("moved.npz")
    resume = ["train", "--resume", "--out", "own", "--quiet"]
    for more, said in (
        ([], "There is no file"),
        (["--data", "other.npz"], "other.npz is not the data that own was made with"),
        (["--data", "moved.npz", "--lr", "1"], "also of the environment: lr."),
    ):
        assert main([*resume, *more]) == 2
        assert said in capsys.readouterr().err
    before = Path("own/config.json").read_bytes()
    cli(*resume, "--data", "moved.npz", "--dry-run")
    with run.held():
        assert main([*resume, "--data", "moved.npz"]) == 2
    assert Path("own/config.json").read_bytes() == before
    cli(*resume, "--data", "moved.npz")
    again = Run.open("own")
    assert again.config.training.data == str(Path("moved.npz").absolute())
    assert again.config.hash == run.config.hash
    assert again.result is not None
    Run.create(Path("drawn"), tiny())
    assert main(["train", "--resume", "--out", "drawn", "--data", "moved.npz"]) == 2
    assert "drawn trains on drawn inputs: leave out --data." in capsys.readouterr().err


def test_who_trains_on_data_is_told_what_accuracy_is_measured_on(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    cli("data", *flags("--out", "own.npz"))
    cli("data", *flags("--out", "fresh.npz", "--seed", "1"))
    told = "measured on uniform inputs, though those of own.npz may be others"
    for command, place in (("train", "--out"), ("sweep", "--results")):
        assert main([command, *flags("--data", "own.npz"), place, f"{command}.jsonl"]) == 0
        assert told in capsys.readouterr().err
        measured = [*flags("--data", "own.npz", "--test-data", "fresh.npz"), place, f"{command}-2.jsonl"]
        assert main([command, *measured]) == 0
        said = capsys.readouterr()
        assert told not in said.err
    shown = cli("train", *flags("--test-data", "fresh.npz", "--out", "third"))
    assert "54 rows of" in shown
    assert "best constant" in shown
    assert main(["train", *flags("--data", "own.npz", "--test-data", "own.npz", "--out", "fourth")]) == 0
    assert "--test-data holds what is trained on" in capsys.readouterr().err
    assert "is right on" in Path(json.loads(cli("view", "third", "--out", "p.html", "--json"))["page"]).read_text()
    assert "% of the sums of fresh.npz; the best constant answer gives" in Path("p.html").read_text()
    assert main(["train", *flags("--test-data", "", "--out", "no")]) == 2
    assert "--test-data is empty: name a file" in capsys.readouterr().err
    assert main(["eval", "train.jsonl", "--asks", "3", "--samples", "50"]) == 0
    assert "may know none of the shifted inputs that --asks 3 asks about" in capsys.readouterr().err


def test_test_inputs_that_are_trained_on_are_told(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    told = "About 39.3 % of the test inputs are trained on: there are 2,401 inputs of 4 numbers mod 7"
    many = flags("--samples", "1200", "--epochs", "1", "--quiet")
    assert main(["train", *many, "--out", "many"]) == 0
    assert told in capsys.readouterr().err
    assert main(["eval", "many"]) == 0
    assert told in capsys.readouterr().err
    for others in (["eval", "many", "--distribution", "sparse"], ["train", *flags("--quiet"), "--out", "few"]):
        assert main(others) == 0
        assert "trained on" not in capsys.readouterr().err


def test_sparse_data_are_sparse(cli: Cli) -> None:
    cli("data", *flags("--method", "sparse", "--samples", "2000", "--out", "s.npz"))
    cli("data", *flags("--method", "aux", "--samples", "2000", "--out", "u.npz"))
    zeros = {name: float((np.load(f"{name}.npz")["x"] == 0).mean()) for name in "su"}
    assert zeros["u"] == pytest.approx(1 / 7, abs=0.02)
    assert zeros["s"] > 0.3


def test_a_lost_gpu_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch

    def lost(*_: Any, **__: Any) -> None:
        raise torch.AcceleratorError("CUDA error: unspecified launch failure\nSearch for it elsewhere.\n")

    monkeypatch.setattr("auxmod.experiments.single.train_run", lost)
    assert main(["train", *flags(), "--out", str(tmp_path / "run"), "--quiet"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: The GPU failed (CUDA error: unspecified launch failure). What was saved is kept:")
    assert len(said.splitlines()) == 1


def test_a_terminal_without_our_characters_gets_others() -> None:
    command = [sys.executable, "-m", "auxmod", "theory", "--n", "4", "--q", "7"]
    done = subprocess.run(command, env=os.environ | {"PYTHONIOENCODING": "ascii"}, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"1?q" in done.stdout


def test_what_was_asked_often_is_shown_so(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auxmod.learning.engine.ASKED_SAMPLES", 100)
    page = cli("train", *flags("--asks", "3", "--out", "often"), "--quiet")
    assert "often on 300 uniform inputs (100 of them asked 3 ways)" in page
    assert "│ asked 3 ways │" in page.replace("┃", "│")
    assert "Each was asked 3 ways" in cli("eval", "often", "--samples", "50", "--asks", "3")
    told = json.loads(cli("eval", "often", "--samples", "50", "--asks", "3", "--json"))
    assert (told["asks"], told["fill"]) == (3, "zero")
    assert Run.open("often").config.training.asks == 3


def test_a_file_is_read_by_train_as_by_sweep(cli: Cli, capsys: pytest.CaptureFixture[str]) -> None:
    Path("run.toml").write_text(
        'n = 8\nq = "31"\nsamples = "100K"\nmoduli = "1,2"\nbias = "false"\nseed = "9007199254740993"\n'
    )
    config = json.loads(cli("train", "--config", "run.toml", "--dry-run", "--json"))["config"]
    assert (config["problem"]["q"], config["training"]["samples"], config["method"]["moduli"]) == (31, 100_000, [1, 2])
    assert config["seed"] == 9007199254740993  # every digit is kept
    assert config["model"]["bias"] is False
    shown = json.loads(cli("train", "--n", "8", "--q", "31", "--moduli", "1,1K", "--dry-run", "--json"))
    assert shown["config"]["method"]["moduli"] == [1, 1000]
    Path("run.toml").write_text('n = "8,16"\n')
    assert main(["train", "--config", "run.toml", "--dry-run"]) == 2
    assert "--n is '8,16', but must be a whole number" in capsys.readouterr().err
