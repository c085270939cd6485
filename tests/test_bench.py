"""Tests of the benchmark on a CPU, at a small size: its results, figure and refusals.

Our training step must also not be much slower than plain PyTorch's.
"""

import json
import statistics
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from auxmod import bench, yardstick
from auxmod.cli import bench as command
from auxmod.cli import main
from auxmod.errors import UserError
from auxmod.learning import cost
from auxmod.learning.engine import Ensemble
from auxmod.reporting.figures import bench as bench_figure
from tiny import tiny

CPU = torch.device("cpu")
TINY: dict[str, Any] = {"width": 16, "hidden": 32, "layers": 1, "samples": 500, "batch": 50}
SLACK = 1.3


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    patch = pytest.MonkeyPatch()
    patch.setitem(bench.EVALUATED, "cpu", 200)
    cases = bench.cases(CPU, (4, 6), (1, 3), **TINY)
    told: list[str] = []
    measured = bench.run(cases, CPU, windows=3, window_seconds=0.01, tell=told.append)
    patch.undo()
    assert len(told) == 7
    return measured


def test_a_step_is_no_slower_than_plain_pytorch() -> None:
    """Compare the medians of alternating windows: a busy machine slows both, and one lucky window decides nothing."""
    config = bench.cases(CPU, (8,))[0][0]
    step, _, _ = bench.prepared_step(Ensemble([config], CPU))
    works: dict[str, bench.Work] = {"ours": step} | yardstick.plain_works(config, CPU)
    windows = bench.alternating(works, device=CPU, windows=7, seconds=0.1)
    assert statistics.median(windows["ours"]) <= SLACK * statistics.median(windows["eager"])


def test_rows_agree_with_themselves(result: dict[str, Any]) -> None:
    assert [(row["n"], row["members"]) for row in result["rows"]] == [(4, 1), (4, 3), (6, 1), (6, 3)]
    for row in result["rows"]:
        ours, seconds = row["ours"], row["ours"]["ms"] / 1000
        assert 0 < ours["low"] <= ours["ms"] <= ours["high"]
        assert row["samples_per_second"] == pytest.approx(50 / seconds)
        assert row["share_of_matrix_rate"] * row["floor_ratio"] == pytest.approx(1)
        assert row["faster_than_eager"] == pytest.approx(row["plain_eager"]["ms"] / ours["ms"])
        assert row["tflops"] == pytest.approx(
            cost.step_flops(bench.cases(CPU, (row["n"],), **TINY)[0][0]) / seconds / 1e12
        )
    alone, together = result["rows"][:2]
    assert alone["plain_eager"] == together["plain_eager"], "plain PyTorch is measured once for each N"


def test_the_result_is_json_and_says_where_it_was_made(result: dict[str, Any]) -> None:
    assert json.loads(json.dumps(result)) == result
    assert {"auxmod", "torch", "python", "device", "date", "command"} <= set(result["provenance"])
    assert result["evaluation"]["n"] == 6
    assert result["sweep"]["cells"] == bench.SWEPT
    assert result["sweep"]["beyond_training"] > 0
    assert "CPU was measured" in result["notes"][0]


def test_plain_pytorch_learns_and_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    losses: list[float] = []
    honest = yardstick.F.mse_loss

    def noted(*points: torch.Tensor) -> torch.Tensor:
        loss = honest(*points)
        losses.append(loss.item())
        return loss

    monkeypatch.setattr(yardstick.F, "mse_loss", noted)
    config = bench.cases(CPU, (4,), **TINY, lr=1e-3)[0][0]
    training = yardstick.plain_training(config, CPU, fast=False)
    for _ in range(config.training.steps):  # all ten epochs
        next(training)
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
    row = bench.measure([config], CPU, {"fp32": 1.0}, lambda works: {"ours": [1.0, 3.0, 2.0]})
    assert row.plain_eager is row.faster_than_eager is None
    assert row.ours.ms == pytest.approx(2000, rel=0.01)


def test_default_cases_of_a_gpu_are_the_papers_models() -> None:
    cases = bench.cases(torch.device("cuda"))
    assert {(runs[0].problem.n, len(runs)) for runs in cases} >= {(16, 24), (64, 8), (128, 1)}
    assert all(run.model.width == 256 and run.training.samples == 100_000 for runs in cases for run in runs)


def test_a_case_that_does_not_fit_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr(bench, "measure", full)
    monkeypatch.setattr(bench, "measure_evaluation", lambda *_: None)
    monkeypatch.setattr(bench, "measure_sweep", lambda *_: None)
    monkeypatch.setitem(bench.COMPARED, "cpu", [])
    monkeypatch.setattr(bench, "matrix_tflops", lambda *_: 1.0)
    result = bench.run(bench.cases(CPU, (4,), **TINY), CPU, windows=1, window_seconds=0.001)
    assert result["rows"] == []
    assert "did not fit" in result["notes"][-1]


def test_a_sweep_whose_cells_come_to_nothing_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any, **options: Any) -> None:
        raise torch.OutOfMemoryError

    monkeypatch.setattr("auxmod.experiments.ensembles.train_ensemble", full)
    assert bench.measure_sweep(bench.cases(CPU, (4,), **TINY)[0][0], CPU) is None


def test_what_was_not_measured_is_a_dash_alone(result: dict[str, Any]) -> None:
    rows = [row | {"faster_than_compiled": None, "faster_than_eager": 2.0} for row in result["rows"]]
    assert {row[3:5] for row in bench_figure.costs(result | {"rows": rows})} == {("–", "2.0×")}


def test_the_figure_draws_every_curve(result: dict[str, Any]) -> None:
    left, right = bench_figure.figure(result).axes
    assert len(left.lines) == 3  # no plain torch.compile on a CPU
    assert len(right.lines) == 2 * 2


def test_the_command_draws_the_figure_whole_or_leaves_the_old_one(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench, "run", lambda cases, device, **options: result)
    plot = tmp_path / "bench.png"
    command.bench(device="cpu", plot=plot, json=True)
    drawn = plot.read_bytes()
    assert drawn.startswith(b"\x89PNG")

    def fail(source: Any, target: Any) -> None:
        raise IsADirectoryError(21, "Is a directory")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(UserError, match="choose another --plot"):
        command.bench(device="cpu", plot=plot, force=True, json=True)
    assert plot.read_bytes() == drawn
    assert list(tmp_path.iterdir()) == [plot]


def test_the_command_prints_a_table_and_writes_json(
    result: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "run", lambda cases, device, **options: result)
    out = tmp_path / "bench.json"
    command.bench(n="4,6", members="1,3", device="cpu", out=out)
    printed = capsys.readouterr().out
    assert "N = 6, E = 3, fp32" in printed
    assert "CPU was measured" in printed
    assert json.loads(out.read_text()) == result
    with pytest.raises(UserError, match="add --force"):
        command.bench(device="cpu", out=out)
    command.bench(device="cpu", out=out, force=True, json=True)
    assert json.loads(capsys.readouterr().out) == result


def test_any_setting_of_the_model_can_be_measured(
    result: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[bench.Case] = []
    monkeypatch.setattr(bench, "run", lambda cases, device, **options: measured.extend(cases) or result)
    main(["bench", "--n", "8", "--members", "2", "--norm", "post", "--dropout", "0.1", "--device", "cpu", "--json"])
    assert [(run.model.norm, run.model.dropout) for case in measured for run in case] == [("post", 0.1)] * 2
    assert json.loads(capsys.readouterr().out)["settings"] == {"norm": "post", "dropout": 0.1}


def test_steps_can_be_measured_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for around in ("measure_evaluation", "measure_sweep", "measure_methods"):
        monkeypatch.delattr(bench, around)
    sizes = [word for flag in ("--width", "--hidden", "--heads") for word in (flag, "16")]
    assert main(["bench", "--n", "4", *sizes, "--layers", "1", "--no-plain", "--only-steps", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    assert "N = 4, E = 1, fp32" in printed.out
    assert "Evaluating" not in printed.out
    assert printed.err.count("measuring") == 1


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ({"n": "8,x"}, "--n is '8,x'"),
        ({"n": "0"}, "--n is '0', but must be whole numbers of at least 1"),
        ({"members": "1.5"}, "--members is '1.5'"),
        ({"precision": "fp8"}, "--precision is 'fp8'; choose one of"),
        ({"device": "tpu"}, "--device is 'tpu'"),
        ({"out": Path("drawn.png/place.json")}, "--out is 'drawn.png/place.json', but 'drawn.png' is a file"),
        ({"plot": Path("drawn.png/bench.png")}, "--plot is 'drawn.png/bench.png', but 'drawn.png' is a file"),
        ({"plot": Path("drawn.png")}, "drawn.png exists already: choose another --plot, or add --force"),
        ({"plot": Path("bench.jpg")}, r"bench.jpg does not end in \.png, \.svg or \.pdf"),
    ],
)
def test_bad_input_is_a_sentence_before_anything_is_measured(
    flags: dict[str, Any], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "run", lambda *_, **__: pytest.fail("measured"))
    Path("drawn.png").touch()
    with pytest.raises(UserError, match=sentence):
        command.bench(**flags)


def test_without_matplotlib_nothing_is_measured_for_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "run", lambda *_, **__: pytest.fail("measured"))
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install 'auxmod\[plot\]'"):
        command.bench(device="cpu", plot=tmp_path / "bench.png")


def test_what_was_left_out_is_said() -> None:
    token, angular = tiny(embedding="token"), tiny()
    assert "angular embedding alone" in bench._notes(token, CPU, plain=True)[-1]
    assert "torch.compile needs a C++ compiler" in bench._notes(angular, CPU, plain=True)[-1]
    assert [len(bench._notes(each, CPU, plain=False)) for each in (token, angular)] == [1, 1]
