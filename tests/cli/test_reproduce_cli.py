"""Tests of `auxmod table`, `figure`, `published` and `reproduce`: without torch, in every format, and with training."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from cyclopts import Token

import made_up
from auxmod.cli import display, main, reproduce, shown
from auxmod.cli.options import whole, whole_numbers
from auxmod.cli.tables import show_tables
from auxmod.errors import UserError
from auxmod.experiments import presets, recipes, wants
from auxmod.experiments.results_file import result_row
from auxmod.files import write_lines
from auxmod.learning.cost import step_flops
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import SHAPES, Cell, Table
from auxmod.reporting.figures import by_item

Cli = Callable[..., tuple[int, str, str]]
STORED = Path(__file__).parents[2] / "results"


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run commands in a directory with an empty results/; each returns its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("results").mkdir()

    def run(*arguments: Any) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return (code, *capsys.readouterr())

    return run


def test_the_items_are_those_there_are() -> None:
    assert set(get_args(shown.TableItem)) == {*SHAPES, "all"}
    assert set(get_args(shown.Method)) == set(wants.VARIANTS)
    assert set(get_args(shown.FigureItem)) == {*by_item.FIGURES, "all"}
    assert set(get_args(reproduce.Item)) == {*recipes.RECIPES, "gap", "rho", "all"}


@pytest.mark.parametrize(
    "arguments",
    [["table", "table1a"], ["published", "--json"], ["figure", "redbox"], ["reproduce", "table1a", "--dry-run"]],
)
def test_nothing_here_imports_torch(arguments: list[str], tmp_path: Path) -> None:
    code = (
        f"import sys; from auxmod.cli import main; assert main({arguments!r}) == 0; assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


# ---- published --------------------------------------------------------------------------------------------


def test_published_prints_every_number(cli: Cli) -> None:
    _, out, _ = cli("published", "--json")
    rows = json.loads(out)
    assert len(rows) == len(published.rows())
    assert rows[0] == {
        "table": "table1a", "embedding": "token", "n": 8, "q": 31, "samples": 100_000, "method": "aux",
        "metric": "match", "tau": None, "value": 89.1, "k": 5, "r": 0.2,
    }  # fmt: skip
    _, out, _ = cli("published", "--table", "configs", "--json")
    assert {row["table"] for row in json.loads(out)} == {"configs"}
    _, out, _ = cli("published", "--table", "gap")
    assert "0.61" in out
    assert "statistic" not in out


def test_published_cuts_no_number_on_a_narrow_page(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "PIPED", 50)
    _, out, _ = cli("published", "--table", "table2")
    shown = [tuple(cell.strip() for cell in line.split("│")[2:-1]) for line in out.splitlines() if "│" in line]
    wanted = [
        (row.n, row.q, {10**6: "1M", 10**7: "10M"}[row.samples], row.value)
        for row in published.rows()
        if row.table == "table2"
    ]
    assert [(row[0], row[1], row[2], row[6]) for row in shown] == [tuple(map(str, row)) for row in wanted]
    assert out.startswith("The paper's numbers, as printed: table2\n")


# ---- table ------------------------------------------------------------------------------------------------


def test_a_table_in_every_form(cli: Cli) -> None:
    run = wants.wanted("paper", "aux", (16, 97), "angular", 100_000).run
    write_lines(Path("results/mine.jsonl"), [made_up.row(run, 0.95)])
    _, text, _ = cli("table", "table1b")
    assert "preset paper" in text
    assert "preset best" in text
    assert "95.0 (1)" in text
    assert "−3.9" in text
    assert "not run" in text
    assert "1 of 45 cells run" in text
    _, out, _ = cli("table", "table1b", "--preset", "paper", "--format", "markdown")
    assert "| 16 | 97 | 100K | 1.0 | 98.9 | 95.0 (1) | −3.9 |" in out
    _, out, _ = cli("table", "table1b", "--preset", "paper", "--format", "latex")
    assert "\\toprule" in out
    _, out, _ = cli("table", "table1b", "--format", "csv")
    assert len(list(csv.DictReader(io.StringIO(out)))) == 45 + 45
    (_, out, _), (_, same, _) = cli("table", "table1b", "--json"), cli("table", "table1b", "--format", "json")
    assert json.loads(out) == json.loads(same)
    _, out, _ = cli("table", "table1b", "--results", "results/mine.jsonl", "--json")
    assert json.loads(out)[0]["rows"][0]["mean"] == pytest.approx(95)


def test_a_table_says_what_the_figures_that_it_shows_were_made_on(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    made = {16: "a", 32: "b", 64: "c"}
    rows = made_up.rows(recipes.cells("table1b", ("paper",), samples=(100_000,)))
    for row in rows:
        n = row["config"]["problem"]["n"]
        commit = f"{made[n]}{row['config']['seed']}"
        row["provenance"] = {"device": f"device {made[n]}", "precision": "fp16", "commit": commit}
    write_lines(Path("results/mine.jsonl"), rows)
    some = ("table1b", "--preset", "paper", "--samples", "100K", "--n", 16, "--method", "aux")
    command = f"auxmod reproduce {' '.join(map(str, some))}"
    _, out, _ = cli("table", *some)
    assert out.rstrip().endswith(f"\ndevice a, fp16 trunk, commits a0, a1, a2: {command}")
    monkeypatch.setattr(display, "PIPED", len(command) + 40)
    _, out, _ = cli("table", *some)
    assert out.rstrip().endswith(f"\ndevice a, fp16 trunk, 3 commits: {command}")
    named = f"device a, fp16 trunk, commits `a0`, `a1`, `a2`: `{command}`."
    assert cli("table", *some, "--format", "markdown")[1].rstrip().endswith(f"\n- {named}")
    assert f"\n% {named}\n" in cli("table", *some, "--format", "latex")[1]
    _, out, _ = cli("table", *some, "--json")
    origin = {"device": "device a", "precision": "fp16", "commits": ["a0", "a1", "a2"]}
    assert [json.loads(out)[0][name] for name in ("origin", "command")] == [[origin], command]
    assert cli("reproduce", *some, "--json")[1] == out
    _, out, _ = cli("table", "table1b", "--preset", "both", "--results", "results/mine.jsonl", "--json")
    paper, best = json.loads(out)
    assert [len(table["origin"]) for table in (paper, best)] == [3, 0]
    assert paper["command"] == "auxmod reproduce table1b --preset paper --results results/mine.jsonl"
    assert "device" not in cli("table", "table1b", "--preset", "best")[1]
    (theory,) = json.loads(cli("table", "gap", "--json")[1])
    assert (theory["origin"], theory["command"]) == ([], None)


def test_a_table_of_some_cells(cli: Cli) -> None:
    some = ("--n", "16,64", "--q", 97, "--method", "aux", "--samples", "100K")
    _, out, _ = cli("table", "table1b", *some, "--preset", "paper", "--results", STORED, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [(row["n"], row["q"], row["samples"], row["method"]) for row in rows] == [
        (n, "97", "100000", "aux") for n in ("16", "64")
    ]
    _, out, _ = cli("table", "table1b", *some, "--preset", "paper", "--results", STORED)
    assert "2 of 2 cells run" in out
    assert "sparse" not in out
    _, out, _ = cli("table", "all", "--n", 256, "--json")
    assert [table["item"] for table in json.loads(out)] == ["beyond"]
    _, out, _ = cli("table", "table3", "--method", "sparse", "--n", 8, "--preset", "paper", "--json")
    assert {row["statistic"] for row in json.loads(out)[0]["rows"]} == {"sparse"}
    code, _, error = cli("table", "rho", "--n", 16)
    assert (code, error.count("No cell of rho has --n 16: leave out this.")) == (2, 1)


def test_a_whole_table_with_one_setting_changed(cli: Cli) -> None:
    run = wants.wanted("paper", "aux", (16, 97), "angular", 100_000, clip=0.5).run
    write_lines(Path("results/mine.jsonl"), [made_up.row(run, 0.95)])
    _, out, _ = cli("table", "table1b", "--preset", "both+clip=0.5", "--method", "aux", "--samples", "100K", "--json")
    made = json.loads(out)
    assert [table["preset"] for table in made] == ["paper+clip=0.5", "best+clip=0.5"]
    assert [[row["mean"] is not None for row in table["rows"]].count(True) for table in made] == [1, 0]
    _, out, _ = cli("reproduce", "table1b", "--preset", "paper+clip=0.5", "--samples", "100K", "--dry-run", "--json")
    assert [(part["done"], part["missing"]) for part in json.loads(out)] == [(1, 80)]
    _, _, error = cli("table", "table1b", "--preset", "paper+clip=3")
    assert error == "None of these has been run: auxmod reproduce table1b --preset paper+clip=3 does it.\n"


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize(
    "item", ["table2", "table3", "configs", "redbox", "gap", "rho", "beyond", "setup", "finalists"]
)
def test_every_table_prints_within_the_page_and_no_figure_is_cut(
    cli: Cli, item: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(display, "PIPED", width)
    code, out, _ = cli("table", item, "--preset", "paper", "--results", STORED)
    assert code == 0
    assert "…" not in out
    assert width < 80 or max(map(len, out.splitlines())) <= width
    made = tables.build(item, "paper", results.read(STORED))
    figures = {f"{abs(cell.ours):.{made.shape.digits}f}" for cell in made.cells if cell.ours is not None}
    assert figures
    assert figures <= set(re.findall(r"\d+\.\d+", out))


def test_a_difference_has_the_colour_of_what_it_is_counted_as(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    ours = {"aux": 55.04, "sparse": 54.96, "naive": 44.96}  # as printed, each differs by five points
    cells = [Cell(facts={"n": 1, "method": name}, paper=50.0, ours=value, chance=1.0) for name, value in ours.items()]
    show_tables([Table(item="table1a", preset=None, down=("n",), cells=cells)], "text")
    shown = re.findall(r"\x1b\[(\d+)m *([+−]5\.0) *\x1b", capsys.readouterr().out)
    assert shown == [("36", "+5.0"), ("32", "+5.0"), ("31", "−5.0")]
    assert [cell.beside_paper() for cell in cells] == [1, 0, -1]


# ---- figure -----------------------------------------------------------------------------------------------


def test_a_figure_is_drawn_where_it_is_asked_for(cli: Cli) -> None:
    pytest.importorskip("matplotlib")
    _, out, _ = cli("figure", "gap")
    assert out == "drawn: gap.png\n"
    _, out, _ = cli("figure", "redbox", "--out", "made/redbox.svg", "--preset", "best", "--json")
    assert [drawn["figure"] for drawn in json.loads(out)] == ["made/redbox.svg"]
    assert Path("made/redbox.svg").read_bytes().startswith(b"<?xml")
    _, out, _ = cli("figure", "redbox", "--preset", "best+clip=1")
    assert out == "drawn: redbox-best+clip=1.png\n"  # does not overwrite another preset's figure
    _, out, _ = cli("figure", "redbox", "--preset", "both+clip=1", "--force")
    assert out == "drawn: redbox-paper+clip=1.png\ndrawn: redbox-best+clip=1.png\n"
    _, out, _ = cli("figure", "redbox", "--out", "both.svg", "--preset", "both", "--json")
    assert [each["figure"] for each in json.loads(out)] == ["both-paper.svg", "both-best.svg"]


def test_all_figures_are_drawn_into_a_directory(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(by_item, "FIGURES", {name: by_item.FIGURES[name] for name in ("gap", "redbox")})
    _, out, _ = cli("figure", "all", "--preset", "best")
    assert out == "drawn: figures/gap.png\ndrawn: figures/redbox.png\n"
    monkeypatch.setattr(reproduce, "_run", lambda *_: 0)
    code, _, error = cli("reproduce", "all", "--out", "both", "--quiet")
    assert code == 0, error
    assert sorted(path.name for path in Path("both").iterdir()) == ["gap.png", "redbox-best.png", "redbox-paper.png"]


# ---- reproduce --------------------------------------------------------------------------------------------

SMALL = {"layers": 1, "heads": 2, "width": 8, "hidden": 16, "batch": 10, "epochs": 2, "lr": 1e-3, "test_samples": 200}
CELL = (
    "reproduce",
    "table1b",
    "--preset",
    "paper",
    "--samples",
    60,
    "--n",
    16,
    "--q",
    97,
    "--device",
    "cpu",
    "--quiet",
)


@pytest.fixture
def small_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the paper's preset use a model that trains in a fraction of a second."""
    paper = presets.PRESETS["paper"]
    monkeypatch.setitem(presets.PRESETS, "paper", lambda given: paper(given) | SMALL)


def test_a_dry_run_counts_what_is_done_and_what_is_missing(cli: Cli) -> None:
    runs = recipes.cells("redbox", ["paper"])
    write_lines(Path("results/some.jsonl"), made_up.rows(runs[:7]))
    _, out, _ = cli("reproduce", "redbox", "--preset", "paper", "--dry-run", "--json")
    work = float(f"{74 * 4000 * step_flops(runs[0]) / 1e15:.4g}")
    counts = {"runs": 81, "done": 7, "failed": 0, "missing": 74, "pflop": work}
    assert json.loads(out) == [{"item": "redbox", "samples": 100_000, **counts}]
    assert cli("reproduce", "redbox", "--preset", "paper", "--dry-run", "--format", "json")[1] == out
    assert cli("reproduce", "gap", "--dry-run")[1] == "It needs no runs.\n"
    _, out, _ = cli(
        "reproduce", "table1a", "--seeds", 5, "--preset", "paper", "--samples", 100_000, "--dry-run", "--json"
    )
    assert json.loads(out)[0]["runs"] == 9 * 4 * 5
    write_lines(Path("results/failed.jsonl"), [result_row(run, None, {}, failed="Why.") for run in runs[7:9]])
    for more, counts in (((), (2, 72)), (("--retry-failed",), (0, 74))):
        _, out, _ = cli("reproduce", "redbox", "--preset", "paper", "--dry-run", "--json", *more)
        assert tuple(json.loads(out)[0][name] for name in ("failed", "missing")) == counts


@pytest.mark.parametrize(
    ("more", "runs"),
    [((), 4 * 25), (("--embedding", "angular"), 2 * 25), (("--embedding", "token", "--method", "sparse"), 2)],
    ids=str,
)
def test_only_what_is_asked_for_is_run(cli: Cli, more: tuple[str, ...], runs: int) -> None:
    _, out, _ = cli(
        "reproduce", "table3", "--preset", "paper", "--n", 16, "--q", "97,257", *more, "--dry-run", "--json"
    )
    assert json.loads(out)[0]["runs"] == runs


@pytest.mark.usefixtures("small_models")
def test_a_cell_is_run_shown_kept_and_agrees_with_itself(cli: Cli) -> None:
    code, out, error = cli(*CELL, "--seeds", 2, "--json")
    assert code == 0, error
    rows = {row["method"]: row for row in json.loads(out)[0]["rows"] if (row["n"], row["q"]) == (16, 97)}
    assert set(rows) == {"aux", "sparse", "naive"}
    assert all(row["count"] == 2 for row in rows.values())
    assert all(0 <= row["mean"] <= 100 for row in rows.values())
    kept = Path("results/table1b.jsonl").read_bytes()
    assert kept.count(b"\n") == 6
    assert [json.loads(line)["provenance"]["members"] for line in kept.splitlines()] == [2] * 2 + [4] * 4
    cli(*CELL, "--seeds", 2)
    assert Path("results/table1b.jsonl").read_bytes() == kept  # nothing was missing
    cli(*CELL, "--seeds", 2, "--members", 3, "--results", "apart.jsonl")
    apart = [json.loads(line)["provenance"]["members"] for line in Path("apart.jsonl").read_text().splitlines()]
    assert apart == [2] * 2 + [3] * 3 + [1]
    code, _, error = cli(*CELL, "--method", "aux", "--results", "again/mine.jsonl")
    assert code == 0, error
    run = wants.wanted("paper", "aux", (16, 97), "angular", 60).run
    first, again = (results.find(results.read(Path(place)), run) for place in ("results", "again/mine.jsonl"))
    assert first[0]["scores"] == again[0]["scores"]


@pytest.mark.usefixtures("small_models")
def test_curves_are_run_and_drawn(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(recipes, "REPEAT", 2)
    asked = ("--samples", "60,80", "--n", 8, "--method", "aux", "--seeds", 1)
    code, _, error = cli("reproduce", "curves", "--preset", "paper", *asked, "--device", "cpu", "--quiet")
    assert code == 0, error
    stored = results.read()
    assert len(stored) == 3
    assert results.curves(stored, wants.wanted("paper", "aux", (8, 31), "token", 60).run)
    assert not Path("curves.png").exists()  # the figure has only the paper's numbers of samples
    assert "Not drawn: curves is of the paper's numbers of samples" in error
    monkeypatch.setattr(reproduce, "_run", lambda *_: 0)
    for force in ([], ["--force"]):
        code, out, error = cli("reproduce", "curves", "--json", *force)
        assert code == 0, error
        drawn = [(each["preset"], each["figure"]) for each in json.loads(out)]
        assert drawn == [("paper", "curves-paper.png"), ("best", "curves-best.png")]
        assert all(Path(file).exists() for _, file in drawn)
    Path("curves-best.png").unlink()
    Path("curves-paper.png").write_text("mine")
    code, out, error = cli("reproduce", "curves", "--json")  # as after a stop, which leaves figures already drawn
    assert code == 0, error
    assert [each["figure"] for each in json.loads(out)] == ["curves-best.png"]
    assert "kept: curves-paper.png, which was there" in error
    assert Path("curves-paper.png").read_text() == "mine"
    assert cli("reproduce", "curves", "--dry-run")[0] == 0  # draws nothing
    assert json.loads(cli("reproduce", "curves", "--preset", "stated", "--format", "json")[1])[0]["preset"] == "stated"


def test_thousands_may_be_written_short() -> None:
    assert whole_numbers("8,100K,1.5M", "--samples") == (8, 100_000, 1_500_000)
    assert whole(int, [Token(value="100K")]) == 100_000
    for text in ("K", "1.2345K", "1e308M", "-3K", "1k"):
        with pytest.raises(UserError, match="must be whole numbers"):
            whole_numbers(text, "--samples")


@pytest.mark.usefixtures("small_models")
def test_what_failed_is_not_tried_again_unasked_in_whatever_file_it_is(cli: Cli) -> None:
    run = wants.wanted("paper", "aux", (16, 97), "angular", 60).run
    write_lines(Path("results/other.jsonl"), [result_row(run, None, {}, failed="It diverged.")])
    only = ("--method", "aux", "--seeds", 1)
    _, out, _ = cli(*CELL, *only, "--dry-run", "--json")
    assert [(row["done"], row["failed"], row["missing"]) for row in json.loads(out)] == [(0, 1, 0)]
    code, _, error = cli(*CELL, *only)
    assert code == 1
    assert "1 runs failed: --retry-failed tries them again" in error
    assert not Path("results/table1b.jsonl").exists()
    code, _, error = cli(*CELL, *only, "--retry-failed")
    assert code == 0, error
    assert Path("results/table1b.jsonl").exists()


def test_all_is_every_item(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipes, "RECIPES", {name: recipes.RECIPES[name] for name in ("table1a", "configs")})
    _, out, _ = cli("reproduce", "all", "--dry-run")
    assert "table1a" in out
    assert "configs" in out


def test_what_needs_no_runs_is_printed_at_once(cli: Cli) -> None:
    code, out, _ = cli("reproduce", "gap", "--out", "gap.pdf")
    assert code == 0
    assert "0.6157" in out
    assert Path("gap.pdf").exists()


# ---- wrong use --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table", "table9"], 'Invalid value "table9"'),
        (["figure", "table2"], 'Invalid value "table2"'),
        (["table", "table1a", "--preset", "demo"], "--preset is 'demo'; choose one of stated, paper, best, both, or"),
        (
            ["table", "table1a", "--preset", "paper+n=5"],
            "--preset changes 'n', but what its name may change is: readout",
        ),
        (
            ["table", "configs", "--preset", "paper+norm=post"],
            "changes 'norm', which configs varies itself: leave it out",
        ),
        (["table", "all", "--preset", "paper+norm=post"], "changes 'norm', which configs varies itself: leave it out"),
        (["table", "configs", "--preset", "paper+init=cloned"], "weights with small ones: default, 0.02, linear-0.02."),
        (["figure", "curves", "--preset", "both+init=a/b"], "--init is 'a/b'; give default, cloned, or a σ above 0"),
        (
            ["figure", "rho", "--preset", "paper+lr=1"],
            "changes 'lr', but rho is the same in every preset: leave it out",
        ),
        (["reproduce", "configs", "--preset", "paper+lr=1:3"], "--lr is '1:3', but a preset is changed to one value"),
        (["table", "table1a", "--results", "nowhere"], "--results is 'nowhere', but there is no such file"),
        (["table", "table1a", "--results", "bad.jsonl"], "Line 1 of bad.jsonl is not a result"),
        (["table", "table1a", "--samples", "many"], "--samples is 'many'"),
        (["table", "table1a", "--tau", "0.01"], "--tau is for table2 alone, which is made of accuracies within τ"),
        (["table", "all", "--tau", "0.01"], "--tau is for table2 alone"),
        (["table", "table2", "--tau", "0.02"], "within these τ alone: --tau one or more of 0.005, 0.01, 0.05, 0.1."),
        (["table", "table2", "--tau", "near"], "--tau is 'near', but must be numbers"),
        (["figure", "gap", "--out", "gap.jpg"], "gap.jpg does not end in .png, .svg or .pdf"),
        (["reproduce", "table1a", "--seeds", "0"], "--seeds is 0, but a cell needs at least 1"),
        (["reproduce", "table1a", "--members", "0", "--dry-run"], "--members is 0, but must be 1 or more"),
        (["reproduce", "table1a", "--n", "7"], "No cell of table1a has --n 7: leave out this."),
        (["reproduce", "gap", "--n", "x"], "--n is 'x', but must be whole numbers"),
        (["reproduce", "table1a", "--q", "1.5"], "--q is '1.5', but must be whole numbers"),
        (
            ["reproduce", "table1a", "--n", "0"],
            "--n is '0', but must be whole numbers of at least 1, such as --n 8,16 (100K is 100,000).",
        ),
        (["reproduce", "table2", "--out", "a.png"], "--out draws a figure, but table2 has none"),
        (["reproduce", "table1b", "--samples", "60", "--out", "a.png"], "leave out --samples, or --out"),
        (["reproduce", "table1b", "--out", "mine.png", "--preset", "best"], "mine.png exists already: choose another"),
        (["reproduce", "curves", "--format", "csv"], "curves is a figure, which has no --format but json"),
        (
            ["reproduce", "curves", "--out", "curves.png"],
            "curves-best.png exists already: choose another --out",
        ),
        (["reproduce", "all", "--out", "both"], "both/grid-paper.png exists already: choose another --out"),
        (["reproduce", "all", "--out", "mine.png"], "but 'mine.png' is a file: choose another --out"),
        (["reproduce", "gap", "--out", "none.png", "--force"], "'none.png', which is a directory: name a file"),
        (["reproduce", "table1a", "--out", "."], ". does not end in .png, .svg or .pdf"),
        (["reproduce", "table1a", "--out", "a.txt", "--dry-run"], "a.txt does not end in .png, .svg or .pdf"),
        (["figure", "all"], "figures/rho.png exists already: choose another --out, or add --force"),
        (["reproduce", "gap", "--n", "7"], "gap needs no runs, so that there are none to choose"),
        (["reproduce", "headline", "--samples", "500"], "headline has no other number of samples than its own"),
        (["table", "headline", "--samples", "500"], "headline has no other number of samples than its own"),
        (["table", "gap", "--samples", "500"], "gap has no other number of samples than its own: leave out --samples"),
        (["reproduce", "beyond", "--samples", "5000"], "No cell of beyond has --samples 5000: leave out this."),
        (["table", "beyond", "--samples", "5000"], "No cell of beyond has --samples 5000: leave out this."),
        (["reproduce", "table1a", "--dry-run", "--format", "csv"], "--dry-run prints text or JSON"),
        (["published", "--table", "table9"], 'Invalid value "table9"'),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(cli: Cli, arguments: list[str], words: str) -> None:
    Path("bad.jsonl").write_text('{"a": 1}\n')
    for name in ("curves-best.png", "mine.png", "both/grid-paper.png", "figures/rho.png"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("mine")
    Path("none.png").mkdir()
    code, out, error = cli(*arguments)
    assert (code, out) == (2, "")
    assert words in error
    assert "Traceback" not in error


def test_the_command_for_what_is_missing_has_all_that_was_asked(cli: Cli) -> None:
    asked = ("--preset", "paper", "--samples", "100K", "--n", "8,16", "--method", "aux")
    _, _, error = cli("table", "table3", *asked)
    assert error == f"None of these has been run: auxmod reproduce table3 {' '.join(asked)} does it.\n"
    _, _, error = cli("table", "table3", "--preset", "paper")
    assert "--samples 100K,1M" in error  # the numbers that the table shows


def test_a_number_named_twice_is_meant_once(cli: Cli) -> None:
    asked = ("table", "table3", "--preset", "paper", "--format", "csv", "--samples")
    once, twice = cli(*asked, "100K"), cli(*asked, "100K,100K")
    assert once[0] == 0
    assert twice[:2] == once[:2]


def test_a_method_that_a_presets_aux_is_already_can_be_asked_for(cli: Cli) -> None:
    asked = ("table1b", "--preset", "best", "--method", "expected", "--samples", "100K", "--n", 16, "--q", 97)
    runs = recipes.cells("table1b", ["best"], samples=(100_000,), keep=lambda facts: facts["method"] == "expected")
    write_lines(Path("results/some.jsonl"), made_up.rows(runs))
    code, out, _ = cli("table", *asked, "--json")
    (row,) = json.loads(out)[0]["rows"]
    assert (code, row["method"], row["count"]) == (0, "expected", 3)
    assert cli("reproduce", *asked, "--json")[1] == out
