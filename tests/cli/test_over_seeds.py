"""Tests of `auxmod runs table` and `compare`: means over seeds of a store's own runs, and what they are made of."""

import csv
import io
import json
import re
import statistics
from pathlib import Path
from typing import Any

import pytest

import made_up
from auxmod.cli import main
from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments.choosing import pairs
from auxmod.experiments.groups import along, axes, group_labels, grouped, mean_curve
from auxmod.experiments.results_file import Results, read_results, result_row
from auxmod.experiments.run_directory import Run
from auxmod.experiments.trusted import check_scores
from auxmod.reporting.figures.curves import accuracy_figure
from auxmod.settings import flatten
from tiny import tiny

MATCH = {"naive": (0.10, 0.14), "aux": (0.50, 0.90)}


def made(config: RunConfig, match: float, steps: tuple[int, ...] = (10, 20)) -> dict[str, Any]:
    """A result's row with this accuracy, in a curve that rises to it."""
    curve = [{"step": step, "loss": 1.0, "accuracy": match * step / 20} for step in steps]
    row = made_up.row(config, match, tau=match / 2)
    return row | {"curve": curve, "provenance": {"device": "cpu", "precision": "fp32", "commit": "abc"}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two methods with two seeds each, the first of them stored twice; one more seed failed, and one is unfinished."""
    monkeypatch.chdir(tmp_path)
    rows = [
        made(tiny(method=method, seed=seed), match)
        for method, values in MATCH.items()
        for seed, match in enumerate(values)
    ]
    failed = result_row(tiny(method="naive", seed=2), None, {}, failed="It diverged.")
    Results(Path("runs/sweep.jsonl")).append([*rows, failed])
    Results(Path("runs/again.jsonl")).append(rows[:1])
    begun = Run.create(Path("runs/begun"), tiny(method="aux", seed=2))
    begun.log({"step": 10, "loss": 1.0, "accuracy": 0.1})
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["runs", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def page(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["runs", *arguments]) == 0
    return capsys.readouterr().out


# -- table ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_a_table_has_a_row_for_what_differs_and_means_over_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = page(capsys, "table").splitlines()
    assert lines[0] == "Match accuracy (%), embedding = angular, N = 4, q = 7, samples = 60"
    assert lines[1].split() == ["method", "chance", "match"]
    assert [line.split(maxsplit=2) for line in (lines[3], lines[4])] == [
        ["naive", "14.3", "12.0 ± 2.8 (2, 1 failed) "],
        ["aux", "14.3", "70.0 ± 28.3 (2, 1 unfinished) "],
    ]
    words = " ".join(lines)
    assert "In no mean: 1 failed and 1 unfinished." in words
    assert "tell no more runs apart: moduli, weights, draw." in words
    assert "cpu, fp32 trunk, commit abc" in words


@pytest.mark.usefixtures("store")
def test_for_programs_it_has_what_is_unrounded_and_every_setting(capsys: pytest.CaptureFixture[str]) -> None:
    (table,) = told(capsys, "table", "--figure", "match,tau_0.05")
    assert [(row["method"], row["figure"]) for row in table["rows"]] == [
        (method, figure) for method in MATCH for figure in ("match", "tau_0.05")
    ]
    naive, _, _, near = table["rows"]
    assert naive["mean"] == pytest.approx(12)
    assert naive["std"] == pytest.approx(100 * statistics.stdev(MATCH["naive"]))
    assert naive["chance"] == pytest.approx(100 / 7)
    assert (naive["count"], naive["failed"], naive["unfinished"], naive["lr"]) == (2, 1, 0, 1e-3)
    assert (near["mean"], near["unfinished"], near["moduli"]) == (pytest.approx(35), 1, [1, 4])
    assert near["chance"] == pytest.approx(10)
    assert not table["rows"][0].keys() & {"seed", "paper", "difference"}
    lines = list(csv.DictReader(io.StringIO(page(capsys, "table", "--format", "csv"))))
    assert [float(line["mean"]) for line in lines] == pytest.approx([12, 70])
    assert (lines[1]["moduli"], lines[1]["k"], lines[1]["unfinished"]) == ("1,4", "4", "1")
    assert list(lines[0])[-6:] == ["mean", "std", "count", "failed", "unfinished", "chance"]


@pytest.mark.usefixtures("store")
def test_a_settings_values_may_be_the_columns(capsys: pytest.CaptureFixture[str]) -> None:
    Results(Path("runs/more.jsonl")).append([made(tiny(method="aux", n=8), 0.3), made(tiny(method="aux", q=5), 0.7)])
    lines = page(capsys, "table", "--across", "method", "--format", "markdown").splitlines()
    assert lines[2:7] == [
        "| N | q | chance | naive | aux |",
        "| --- | --- | ---: | ---: | ---: |",
        "| 4 | 5 | 20.0 |  | 70.0 (1) |",
        "| 4 | 7 | 14.3 | 12.0 ± 2.8 (2, 1 failed) | 70.0 ± 28.3 (2, 1 unfinished) |",
        "| 8 | 7 | 14.3 |  | 30.0 (1) |",
    ]
    lines = page(capsys, "table", "--across", "q", "--format", "markdown").splitlines()
    assert lines[2] == "| N | method | q = 5 | q = 5 chance | q = 7 | q = 7 chance |"
    assert lines[5] == "| 4 | aux | 70.0 (1) | 20.0 | 70.0 ± 28.3 (2, 1 unfinished) | 14.3 |"
    (table,) = told(capsys, "table", "--across", "k", "--where", "method=aux,q=7,n=4")
    assert table["columns"] == ["method", "n", "q", "k"], "nothing else differs"
    assert "tabular}{llrr}" in page(capsys, "table", "--where", "method=aux,n=8", "--across", "n", "--format", "latex")


def test_of_a_large_q_the_figure_is_that_of_near_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Results(Path("runs/large.jsonl")).append([made(tiny(q=974269, method="naive"), 0.2)])
    assert page(capsys, "table").startswith("Answers within 0.005·q (%)")
    Results(Path("runs/small.jsonl")).append([made(tiny(method="naive"), 0.2)])
    (table,) = told(capsys, "table")
    assert [row["figure"] for row in table["rows"]] == ["match", "tau_0.005"] * 2
    assert [row["figure"] for row in told(capsys, "table", "--across", "q")[0]["rows"]] == ["match"] * 2


@pytest.mark.usefixtures("store")
def test_runs_without_the_figure_and_without_an_end_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    Results(Path("runs/old.jsonl")).append([result_row(tiny(method="sparse"), {"match": 0.1, "chance": 1 / 7}, {})])
    lines = page(capsys, "table", "--figure", "tau_0.05", "--where", "method=sparse").splitlines()
    assert lines[3].split()[-1] == "–"
    assert "unfinished" in page(capsys, "table", "--where", "state=unfinished").splitlines()[3]
    assert "failed" in page(capsys, "table", "--where", "state=failed").splitlines()[3]


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--figure", "seconds"], "--figure is 'seconds', but must be one or more of these accuracies: match, tau_"),
        (["--across", "seed"], "--across is 'seed', but a figure is a mean over seeds: name another setting."),
        (["--across", "colour"], "--across is 'colour', but must be a setting, one of activation, "),
        (["--across", "q", "--figure", "match,near"], "--figure is match,near: name one of these."),
        (["--where", "n=5"], "No run in runs is as --where 'n=5' asks."),
        (["none"], "There is no store none"),
    ],
)
def test_wrong_use_of_the_table_is_a_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["runs", "table", *arguments]) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize("form", ["text", "markdown", "latex", "csv"])
def test_no_file_controls_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [made(tiny(method="naive", data=f"[bold]{at}\x1b[2J", data_sha256=at * 64), 0.1) for at in "ab"]
    rows[0]["provenance"]["device"] = "\x1b]0;mine\x07"
    Results(Path("runs/odd.jsonl")).append(rows)
    shown = page(capsys, "table", "--format", form)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]a" in shown


# -- groups ---------------------------------------------------------------------------------------------------


def test_groups_are_of_all_settings_but_the_seed(store: Path) -> None:
    """The path of the same data is no setting; a last digit of a weight is one, though K and r look the same."""
    from auxmod.experiments.catalogue import Entry

    moved = [tiny(method="naive", data=f"{at}.npz", data_sha256="ab" * 32, seed=at) for at in range(2)]
    close = [tiny(method="aux", k=4, r=0.9), tiny(method="aux", moduli=(1, 4), weights=(0.1, 0.9))]
    other = [tiny(method="naive", data=name, data_sha256=name * 32) for name in ("cd", "ef")]
    again = tiny(method="naive", data="cd", data_sha256="01" * 32)
    runs = [*moved, *close, *other, again]
    found = grouped(Entry(store, made(config, 0.5)) for config in runs)
    assert [len(group.entries) for group in found] == [2, 1, 1, 1, 1, 1]
    names = axes([group.settings for group in found])
    assert len({tuple(group.settings[name] for name in names) for group in found}) == 6
    assert len(set(group_labels(found))) == 6


def test_what_tells_runs_apart_leaves_out_what_follows_from_the_method() -> None:
    settings = [flatten(run) | {"k": run.method.k, "r": run.method.r} for run in (tiny(method="auto"), tiny(k=3))]
    assert axes(settings) == ["method"]
    assert {"optimiser", "moduli", "harmonics"} <= set(along(settings, ["method"]))
    assert axes([*settings, settings[1] | {"lr": 0.5, "warmup": 0.2}]) == ["method", "lr", "warmup"]


def test_a_mean_curve_is_of_the_curves_that_reach_a_step() -> None:
    """A curve with more points than the others does not make the mean jump; one that ended early counts to its end."""
    curves = [[(10, 0.1), (20, 0.2), (30, 0.3)], [(10, 0.3), (15, 0.9), (20, 0.4)], [(10, 0.2), (20, 0.9), (30, 0.5)]]
    mean = mean_curve(curves)
    assert [(point.step, point.seeds) for point in mean] == [(10, 3), (20, 3), (30, 2)]
    assert [point.mean for point in mean] == pytest.approx([0.2, 0.5, 0.4])
    assert mean[0].std == pytest.approx(0.1)
    assert mean_curve(curves[:1])[0].std is None


# -- compare --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("store")
def test_runs_that_differ_in_seed_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    aux, naive = told(capsys, "compare", "--where", "state=done")
    assert (aux["label"], aux["method"], aux["seeds"], aux["curve_of"]) == ("method=aux", "aux", [1, 0], "accuracy")
    assert aux["runs"] == [tiny(method="aux", seed=seed).hash for seed in (1, 0)]
    assert "seed" not in aux
    assert aux["curve"] == [[10, pytest.approx(0.35)], [20, pytest.approx(0.7)]]
    assert aux["std"] == pytest.approx([statistics.stdev((0.25, 0.45)), statistics.stdev((0.5, 0.9))])
    assert aux["count"] == [2, 2]
    assert naive["label"] == "method=naive"
    assert [run["label"] for run in told(capsys, "compare", "--where", "state=done", "--each")] == [
        "method=aux seed=1",
        "method=aux seed=0",
        "method=naive seed=1",
        "method=naive seed=0",
    ]
    shown = page(capsys, "compare", "--where", "method=aux,state=done")
    assert "Held-out match accuracy, mean over seeds" in shown
    assert "method=aux (2)" in shown
    alone = told(capsys, "compare", tiny(method="aux").hash)
    assert [(run["name"], run["seed"], run["std"]) for run in alone] == [(tiny(method="aux").hash, 0, [None, None])]


def test_the_chart_names_what_it_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Results(Path("runs/many.jsonl")).append([made(tiny(k=k, seed=s), 1 - k / 20) for k in range(2, 10) for s in (0, 1)])
    shown = page(capsys, "compare", "--where", "n=4")
    legend, left = re.split("Left out here", shown)
    assert [f"k={k} (2)" in legend for k in range(2, 10)] == [True] * 6 + [False] * 2
    assert left.startswith(", where there are 6 colours: k=8 (2); k=9 (2). --out draws all of them.")
    pytest.importorskip("matplotlib")
    assert "--out draws" not in page(capsys, "compare", "--where", "n=4", "--out", "curves.svg")
    drawn = Path("curves.svg").read_text()
    assert all(f"k={k} (2)" in drawn for k in range(2, 10)), "every line has its name"


def test_the_legend_covers_nothing_and_no_colour_comes_twice_in_twenty_lines() -> None:
    pytest.importorskip("matplotlib")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    for count in (2, 20):
        curves = {f"method=aux k={at} lr=0.001": [(10, 0.1), (20, at / 20)] for at in range(count)}
        figure = accuracy_figure(curves, spreads={next(iter(curves)): [0.05, 0.1]})
        FigureCanvasAgg(figure).draw()
        (axes_,), (legend,) = figure.axes, figure.legends
        box, beside = legend.get_window_extent(), axes_.get_window_extent()
        assert not box.overlaps(beside)
        assert box.x1 <= figure.bbox.x1
        assert box.y0 >= 0
        assert beside.width > figure.bbox.width / 3
        assert len({line.get_color() for line in axes_.lines}) == count
        (band,) = axes_.collections
        assert band.get_paths()[0].get_extents().intervaly == pytest.approx([-10, 15])


def test_what_a_constant_answer_gets_is_to_beat_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {"match": 0.95, "chance": 1 / 7, "constant": 0.9, "tau": {"0.05": 0.96}, "tau_constant": {"0.05": 0.92}}
    path = tmp_path / "r.jsonl"
    Results(path).append([result_row(tiny(k=3, r=0.2), scores, {"device": "cpu"}, validation=0.9)])
    assert main(["runs", "table", str(path), "--figure", "match,tau_0.05,validation", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)[0]["rows"]
    assert [row["chance"] for row in rows] == pytest.approx([90, 92, 90])
    assert main(["runs", "list", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["chance"] == 0.9
    assert pairs([tiny(k=3, r=0.2)], read_results(path))["chance"] == 0.9
    for wrong in ({"constant": 2}, {"tau_constant": {"0.05": "x"}}):
        with pytest.raises(UserError, match="which it cannot be"):
            check_scores(scores | wrong, "It")


def test_chance_is_said_to_be_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, given in (("drawn", {}), ("own", {"test_data": "/a/fresh.npz", "test_data_sha256": "ab"})):
        Results(tmp_path / f"{name}.jsonl").append([result_row(tiny(**given), {"match": 0.5}, {"device": "cpu"})])
        assert main(["runs", "table", str(tmp_path / f"{name}.jsonl")]) == 0
        assert ("best constant answer" in capsys.readouterr().out) == (name == "own")


def test_each_run_that_is_named_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("here", "there"):
        run = Run.create(tmp_path / name, tiny())
        run.log({"step": 3, "loss": 1.0, "accuracy": 0.5 if name == "here" else 0.25})
    assert main(["runs", "compare", str(tmp_path / "here"), str(tmp_path / "there"), "--json"]) == 0
    assert sorted(line["curve"][0][1] for line in json.loads(capsys.readouterr().out)) == [0.25, 0.5]
