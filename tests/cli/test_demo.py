"""Tests of `auxmod demo --quick` end to end, and of its charts."""

import contextlib
import io
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from auxmod.cli import main
from auxmod.cli.demo import _save_picture
from auxmod.cli.display import Bars, line_chart
from auxmod.experiments.run_directory import Run
from auxmod.learning.engine import Ensemble, Progress


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """The demo's directory, and its output on stdout and stderr."""
    patch, place = pytest.MonkeyPatch(), tmp_path_factory.mktemp("demo")
    patch.chdir(place)
    patch.setattr("auxmod.learning.engine.VALIDATION_SAMPLES", 200)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as error:
        assert main(["demo", "--quick"]) == 0
    patch.undo()
    return place / "runs" / "demo", out.getvalue(), error.getvalue()


def test_three_methods_are_trained_and_kept(shown: tuple[Path, str, str]) -> None:
    place, _, _ = shown
    runs = {name: Run.open(place / name) for name in ("naive", "sparse", "aux")}
    for name, run in runs.items():
        assert run.config.method.method == name
        assert run.result is not None
        assert (run.path / "model.safetensors").exists()
    assert len({(run.config.problem, run.config.training, run.config.seed) for run in runs.values()}) == 1


def test_the_table_holds_what_was_measured(shown: tuple[Path, str, str]) -> None:
    place, out, _ = shown
    for name in ("naive", "sparse", "aux"):
        result = Run.open(place / name).result
        assert result is not None
        row = next(line for line in out.splitlines() if line.startswith(f"│ {name} "))
        for share in (result["match"], result["chance"], result["tau"]["0.05"], result["tau_chance"]["0.05"]):
            assert f"{100 * share:.1f} %" in row


def test_the_chart_is_drawn_here_and_as_a_picture(shown: tuple[Path, str, str]) -> None:
    place, out, _ = shown
    assert any("\u2801" <= letter <= "\u28ff" for letter in out)
    assert "● naive   ● sparse   ● aux" in out
    picture = (place / "demo.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert "demo.png" in out


def test_without_matplotlib_there_is_no_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert _save_picture({"aux": [(0, 0.0), (10, 1.0)]}, tmp_path) is None
    assert not list(tmp_path.iterdir())


def test_the_next_commands_work(shown: tuple[Path, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    place, out, _ = shown
    commands = [line.split("#")[0].split() for line in out.splitlines() if line.startswith("  auxmod ")]
    assert [command[1] for command in commands] == ["predict", "eval", "train"]
    for command in commands:
        arguments = [part.replace("runs/demo", str(place)) for part in command[1:]]
        arguments += {"eval": ["--samples", "100"], "train": ["--dry-run"]}.get(command[1], [])
        assert main(arguments) == 0
    assert capsys.readouterr().err == ""


def test_accuracy_is_not_shown_before_it_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    with Bars() as bars:
        bars.live = True
        bars.show("aux", Progress(1, 10, [0.5], None, [None]))
        assert "held-out       –" in bars.bars.tasks[0].fields["status"]
        bars.show("aux", Progress(2, 10, [0.5], [0.25], [None]))
        bars.show("aux", Progress(3, 10, [0.5], None, [None]))
        assert "held-out  25.0 %" in bars.bars.tasks[0].fields["status"]
        bars.show("aux", Progress(4, 10, [0.5], [0.0], [None], [0.75]))  # a large q
        assert "held-out 0.0 % (75.0 % within 0.005·q)" in bars.bars.tasks[0].fields["status"]


def test_json_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auxmod.learning.engine.VALIDATION_SAMPLES", 20)
    assert main(["demo", "--quick", "--json", "--quiet", "--out", str(tmp_path / "d"), "--seed", "3"]) == 0
    out, error = capsys.readouterr()
    rows = json.loads(out)["rows"]
    assert error == ""
    assert [row["method"] for row in rows] == ["naive", "sparse", "aux"]
    assert Run.open(tmp_path / "d" / "aux").config.seed == 3


# -- stopping -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_stopped_it_saves_all_three_exits_with_130_and_says_how_to_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    shown: tuple[Path, str, str],
    asked: signal.Signals,
) -> None:
    honest = Bars.show

    def stopping(self: Bars, name: str, event: Progress) -> None:
        if name == "sparse" and event.step == event.steps // 2:
            os.kill(os.getpid(), asked)
        honest(self, name, event)

    monkeypatch.setattr("auxmod.learning.engine.VALIDATION_SAMPLES", 200)
    with monkeypatch.context() as patch:
        patch.setattr(Bars, "show", stopping)
        assert main(["demo", "--quick", "--quiet", "--out", str(tmp_path / "d")]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    first, _, commands = said.err.partition(" To go on: ")
    assert first == "Stopped; what was trained is saved."
    for command, method in zip(commands.rstrip(".\n").split(", "), ("naive", "sparse", "aux"), strict=True):
        assert command == f"auxmod train --resume --out {tmp_path}/d/{method}"
        assert main([*command.split()[1:], "--quiet", "--json"]) == 0
        for name in ("model.safetensors", "result.json", "metrics.jsonl"):
            assert (tmp_path / "d" / method / name).read_bytes() == (shown[0] / method / name).read_bytes()


def test_stopped_while_measuring_it_does_not_wait_and_names_what_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measure, seen = Ensemble.evaluate, []

    def stopping(self: Ensemble, samples: int, **options: Any) -> Any:
        if not options:  # the test inputs, not the held-out ones
            seen.append(self.configs[0].method.method)
            if len(seen) == 2:
                os.kill(os.getpid(), signal.SIGTERM)
        return measure(self, samples, **options)

    monkeypatch.setattr("auxmod.learning.engine.VALIDATION_SAMPLES", 20)
    monkeypatch.setattr(Ensemble, "evaluate", stopping)
    assert main(["demo", "--quick", "--quiet", "--out", str(tmp_path / "d")]) == 130
    assert seen == ["naive", "sparse"]
    commands = (f"auxmod train --resume --out {tmp_path}/d/{method}" for method in ("sparse", "aux"))
    said = f"Stopped; what was trained is saved. To go on: {', '.join(commands)}.\n"
    assert capsys.readouterr().err == said
    assert main(["train", "--resume", "--quiet", "--out", str(tmp_path / "d/aux")]) == 0


# -- the chart ------------------------------------------------------------------------------------------------


def canvas(text: str) -> list[str]:
    """The rows of a chart, without its axis and the colour tags."""
    rows = [line.split("│", 1)[1] for line in text.splitlines() if "│" in line]
    return [row.replace("[cyan]", "").replace("[magenta]", "").replace("[/]", "") for row in rows]


def test_a_rising_line_rises() -> None:
    rows = canvas(line_chart({"a": [(0, 0.0), (100, 1.0)]}, height=6, width=20))
    tops = [next(r for r, row in enumerate(rows) if row[column : column + 1].strip()) for column in range(20)]
    assert tops == sorted(tops, reverse=True)
    assert tops[0] == 5
    assert tops[-1] == 0


def test_a_constant_line_is_level_and_an_empty_chart_is_drawn() -> None:
    rows = canvas(line_chart({"a": [(0, 0.5), (10, 0.5)]}, height=6, width=20))
    assert [bool(row.strip()) for row in rows].count(True) == 1
    assert canvas(line_chart({"a": []}))[0].strip() == ""
