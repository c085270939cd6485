"""Tests of tables: the right figure in the right cell, missing runs marked as such, and every output format."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import statistics

import pytest

import made_up
from auxmod.errors import UserError
from auxmod.experiments import recipes, wants
from auxmod.experiments.results_file import result_row
from auxmod.problem import theory
from auxmod.reporting import published, render, results, tables
from auxmod.reporting.cells import SHAPES, Cell, Table


def aux(n: int, q: int, preset: str = "paper", samples: int = 100_000, seed: int = 0):
    run = wants.wanted(preset, "aux", (n, q), "angular", samples).run
    return dataclasses.replace(run, seed=seed)


@pytest.fixture(scope="module")
def stored() -> results.Index:
    """Two cells of Table 1b, one of them run with three seeds, and a third that failed."""
    rows = [made_up.row(aux(16, 97, seed=seed), share) for seed, share in enumerate((0.93, 0.95, 0.97))]
    rows += [made_up.row(aux(32, 97), 0.5)]
    rows += [result_row(aux(64, 97, seed=seed), None, {}, failed="It diverged.") for seed in range(2)]
    return results.index(rows)


def cell(table: Table, **facts) -> Cell:
    (found,) = [c for c in table.cells if all(c.facts[name] == value for name, value in facts.items())]
    return found


def test_a_cell_has_the_papers_value_ours_chance_and_the_difference(stored) -> None:
    made = tables.build("table1b", "paper", stored)
    found = cell(made, n=16, q=97, samples=100_000, method="aux")
    assert (found.paper, found.ours, found.std, found.count) == (98.9, pytest.approx(95), pytest.approx(2), 3)
    assert found.difference == pytest.approx(-3.9)
    assert found.chance == pytest.approx(100 / 97)
    assert (found.facts["k"], found.facts["r"]) == (5, 0.4)
    single = cell(made, n=32, q=97, samples=100_000, method="aux")
    assert (single.std, single.count) == (None, 1)


def test_a_cell_not_run_has_no_figure_and_no_difference(stored) -> None:
    made = tables.build("table1b", "paper", stored)
    absent = cell(made, n=16, q=97, samples=1_000_000, method="aux")
    assert (absent.paper, absent.ours, absent.difference, absent.count) == (99.9, None, None, 0)
    assert all(c.ours is None for c in tables.build("table1b", "best", stored).cells)
    words = render.layout(made)
    at = words.heads.index(("aux", "ours", "ours"))
    column = {tuple(row[:3]): row[at] for row in words.rows}
    assert column["16", "97", "100K"] == "95.0 ± 2.0 (3)"
    assert column["32", "97", "100K"] == "50.0 (1)"
    assert column["64", "97", "100K"] == "failed"
    assert column["16", "97", "1M"] == "not run"


def test_the_notes_say_how_much_agrees(stored) -> None:
    notes = "\n".join(tables.build("table1b", "paper", stored).notes)
    assert "2 of 45 cells run" in notes
    assert "aux with 100,000 samples: 1 of 2 within 5 points of the paper's, 2 more than 1 point below it" in notes
    assert "aux: pooling mean" in notes


def test_naive_and_expected_have_no_paper_value_and_a_repeated_column_is_left_out() -> None:
    made = tables.build("table1a", "paper", {})
    methods = {c.facts["method"] for c in made.cells}
    assert methods == {"aux", "sparse", "naive", "expected"}
    assert all((c.paper is None) == (c.facts["method"] in ("naive", "expected")) for c in made.cells)
    assert {c.facts["method"] for c in tables.build("table1a", "best", {}).cells} == {"aux", "sparse", "naive"}


@pytest.mark.parametrize("item", ["table1a", "table1b", "table2", "table3", "configs", "gap"])
def test_every_number_of_the_paper_finds_its_cell(item: str) -> None:
    samples = (1_000_000,) if item == "table3" else ()  # at 100K it repeats Table 1's
    shown = sorted(c.paper for c in tables.build(item, "best", {}, samples).cells if c.paper is not None)
    assert shown == sorted(row.value for row in published.rows() if row.table == item and row.value is not None)


@pytest.mark.parametrize(
    "item", [item for item in SHAPES if item not in ("gap", "rho", "headline", "harder", "fewer", "beyond")]
)
def test_at_several_numbers_of_samples_every_cell_has_its_place(item: str) -> None:
    for samples in ((100_000,), (1_000_000,), (1_000_000, 100_000)):
        made = tables.build(item, "paper", {}, samples)
        shown = {id(cell) for row in render.layout(made).cells for cell in row if cell is not None}
        assert shown == {id(cell) for cell in made.cells}
        if len(samples) == 1 and "samples" not in made.down:
            assert f"{render.amount(*samples)} samples" in made.title


def test_table_2_has_the_papers_tau_or_those_asked_for() -> None:
    run = aux(64, 3329, samples=1_000_000)
    row = made_up.row(run)
    row["scores"]["tau"] = {"0.005": 0.25, "0.01": 0.5, "0.05": 0.75, "0.1": 1.0}
    at = {"n": 64, "q": 3329, "samples": 1_000_000, "method": "aux"}
    own = tables.build("table2", "paper", results.index([row]))
    assert {c.facts["tau"] for c in own.cells} == {0.05, 0.1}
    assert (cell(own, **at, tau=0.05).ours, cell(own, **at, tau=0.05).paper) == (75.0, 98.0)
    closer = tables.build("table2", "paper", results.index([row]), taus=(0.01, 0.005, 0.01))
    assert list(dict.fromkeys(c.facts["tau"] for c in closer.cells)) == [0.005, 0.01]
    assert [cell(closer, **at, tau=tau).ours for tau in (0.005, 0.01)] == [25.0, 50.0]
    assert [cell(closer, **at, tau=tau).chance for tau in (0.005, 0.01)] == pytest.approx([1.0, 2.0])
    assert all(c.paper is None for c in closer.cells)


def test_table_3_is_the_spread_over_a_whole_grid_and_a_part_of_one_is_not_run() -> None:
    runs = [want for want in recipes.table3("paper") if want.run.problem.q == 433]
    whole = results.index(made_up.row(want.run) for want in runs)
    made = tables.build("table3", "paper", whole)
    at = {"embedding": "angular", "n": 64, "q": 433, "samples": 100_000}
    own = [want.run for want in runs if want.run.problem.n == 64]
    shares = [100 * made_up.likely(run) for run in own if run.method.k]
    (base,) = [100 * made_up.likely(run) for run in own if not run.method.k]
    assert len(shares) == 24
    expected = {"min": min(shares), "mean": statistics.fmean(shares), "max": max(shares), "sparse": base}
    for name, value in (expected | {"gain": statistics.fmean(shares) - base}).items():
        assert cell(made, **at, statistic=name).ours == pytest.approx(value)
        of_table1 = {"sparse": 0.2, "max": 29.0}  # at 100K; the paper's other figures are at 1M
        assert cell(made, **at, statistic=name).paper == of_table1.get(name)
    assert cell(made, **at | {"samples": 1_000_000}, statistic="min").paper == 34.0
    part = tables.build("table3", "paper", results.index(made_up.row(want.run) for want in runs[:-1]))
    assert cell(part, **at, statistic="mean").ours is None
    assert cell(part, **at, statistic="sparse").ours == pytest.approx(base)


def test_over_k_and_r_the_first_seeds_are_compared_and_a_failed_pair_is_said() -> None:
    runs = [want.run for want in recipes.grid("paper", pairs=recipes.SEARCHED) if want.run.problem.q == 433]
    at = {"embedding": "angular", "n": 64, "q": 433, "samples": 100_000, "statistic": "max"}
    rows = [made_up.row(run, 0.5) for run in runs]
    again = [made_up.row(dataclasses.replace(run, seed=1), 0.9) for run in runs[:3]]
    assert cell(tables.build("table3", "paper", results.index([*rows, *again])), **at).ours == pytest.approx(50)
    failed = [result_row(run, None, {}, failed="It diverged.") for run in runs[:3]]
    shown = cell(tables.build("table3", "paper", results.index([*rows[3:], *failed])), **at)
    assert (shown.ours, shown.failed) == (None, 1)


def test_past_the_paper_stands_the_best_of_a_whole_grid() -> None:
    at = {"n": 20, "q": 1024, "method": "searched", "metric": "match", "asks": 1}
    runs = [want.run for want in recipes.beyond() if want.variant == "searched" and want.run.problem.n == 20]
    rows = [made_up.row(run) for run in runs]
    for row in rows:
        row["scores"]["asked"] = row["scores"] | {"match": 1.0}
    whole = tables.build("beyond", "best", results.index(rows))
    assert cell(whole, **at).ours == pytest.approx(100 * max(map(made_up.likely, runs)))
    assert cell(whole, **at).count == 24
    assert cell(whole, **at | {"asks": 16}).ours == 100
    again = made_up.row(dataclasses.replace(runs[1], seed=1), 1.0)  # a pair's other seeds neither count nor fill a gap
    again["scores"]["asked"] = again["scores"]
    assert cell(tables.build("beyond", "best", results.index([*rows, again])), **at) == cell(whole, **at)
    assert cell(tables.build("beyond", "best", results.index([*rows[1:], again])), **at).ours is None


def test_the_settings_beneath_a_table_are_those_that_its_runs_share() -> None:
    notes = tables.build("table3", "paper", {}).notes
    own = {note.partition(": ")[0]: note for note in notes[1:]}
    assert list(own) == ["sparse, token", "sparse, angular", "aux, token", "aux, angular"]
    assert "pooling max" in own["aux, token"]
    assert "lift" not in own["aux, token"]
    assert own["aux, angular"].endswith("draw expected, lift 0.15")
    assert "optimiser muon" in tables.build("table1b", "best", {}).notes[1]
    assert "init" not in tables.build("configs", "paper", {}).notes[1]  # the table varies it
    names = [note.partition(":")[0] for note in tables.build("table1b", "paper", {}).notes[1:]]
    assert names == ["aux", "sparse", "naive"]  # aux already draws `expected` here, so that has no column of its own


def test_grids_lie_in_order_and_theory_needs_no_runs() -> None:
    for item in ("redbox", "rho"):
        words = render.layout(tables.build(item, "paper", {}))
        assert [row[0] for row in words.rows] == [f"0.{i}" for i in range(1, 10)]
        assert [head[0] for head in words.heads[1:]] == [f"K = {k}" for k in range(2, 11)]
    grid = tables.build("grid", "paper", {})
    assert len(grid.cells) == 18 * 81
    assert grid.cells[0].facts["embedding"] == "token"
    assert cell(tables.build("rho", "paper", {}), k=6, r=0.4).ours == pytest.approx(1)
    assert cell(tables.build("gap", "paper", {}), n=8, q=17).ours == theory.gap_bound(8, 17)


@pytest.mark.parametrize("item", ["redbox", "grid"])
def test_grids_of_several_sizes_come_one_after_another(item: str) -> None:
    words = render.layout(tables.build(item, "paper", {}, (1_000_000, 100_000)))
    sizes = [row[0] for row in words.rows]
    assert sizes == sorted(sizes)
    assert set(sizes) == {"100K", "1M"}


def test_other_sizes_can_be_asked_for() -> None:
    made = tables.build("table1b", "paper", {}, samples=(5_000,))
    assert {c.facts["samples"] for c in made.cells} == {5_000}
    assert all(c.paper is None for c in made.cells)


def test_both_presets_and_all_tables(monkeypatch) -> None:
    both = tables.tables("configs", ["paper", "best"], {})
    assert [table.preset for table in both] == ["paper", "best"]
    monkeypatch.setattr(tables, "SHAPES", {name: SHAPES[name] for name in ("table1a", "gap")})
    every = tables.tables("all", ["paper", "best"], {})
    assert [(table.item, table.preset) for table in every] == [("table1a", "paper"), ("table1a", "best"), ("gap", None)]


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(UserError, match="There is no table 'table9'; choose one of table1a"):
        tables.build("table9", "paper", {})


# ---- output formats ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", [name for name in SHAPES if name != "grid"])
def test_every_table_is_written_in_every_form(item: str, stored) -> None:
    made = tables.tables(item, ["paper", "best"] if item == "table1b" else ["paper"], stored)
    cells = [c for table in made for c in table.cells]
    for table in made:
        lines = [line for line in render.markdown(table).splitlines() if line.startswith("|")]
        assert len(lines) == len(render.layout(table).rows) + 2
        assert {line.count("|") for line in lines} == {len(render.layout(table).heads) + 1}
    assert render.render(made, "markdown") == "\n\n".join(map(render.markdown, made))
    assert len(list(csv.DictReader(io.StringIO(render.render(made, "csv"))))) == len(cells)
    plain = json.loads(render.render(made, "json"))
    assert sum(len(table["rows"]) for table in plain) == len(cells)
    tex = render.render(made, "latex")
    assert tex.count("\\begin{tabular}") == tex.count("\\bottomrule") == len(made)
    for line in tex.splitlines():
        assert "%" not in line.replace("\\%", "") or line.startswith("%")


def test_a_word_ends_no_column_of_markdown() -> None:
    shown = render.markdown_table(["what", "of", "figure"], [["a|b", "", "1"]], words=2)
    assert shown == "| what | of | figure |\n| --- | --- | ---: |\n| a\\|b |  | 1 |"


def test_rows_of_a_latex_table_have_as_many_columns_as_it_says(stored) -> None:
    tex = render.latex(tables.build("table1b", "paper", stored))
    columns = tex.split("\\begin{tabular}{")[1].split("}")[0]
    body = [line for line in tex.splitlines() if line.endswith("\\\\") and "multicolumn" not in line]
    assert len(body) == 19
    assert {line.count("&") + 1 for line in body} == {len(columns)}
    assert "95.0 $\\pm$ 2.0 (3)" in tex
    assert "$-$3.9" in tex


def test_the_records_have_what_a_reader_needs(stored) -> None:
    (table,) = json.loads(render.render([tables.build("table1b", "paper", stored)], "json"))
    (row,) = [r for r in table["rows"] if (r["n"], r["q"], r["samples"], r["method"]) == (16, 97, 100_000, "aux")]
    assert row["preset"] == "paper"
    assert row["paper"] == 98.9
    assert row["mean"] == pytest.approx(95)
    assert row["difference"] == pytest.approx(-3.9)
    assert row["count"] == 3
    assert table["title"].startswith("Table 1b")


def test_over_k_and_r_stands_the_figure_alone_and_what_failed() -> None:
    facts = {"samples": 100_000, "r": 0.1}
    cells = [
        Cell(facts=facts | {"k": 2}, ours=26.7, std=1.8, count=2),
        Cell(facts=facts | {"k": 3}, ours=26.7, std=1.8, count=2, failed=1),
    ]
    table = Table(item="redbox", preset="paper", down=("r",), cells=cells)
    assert render.layout(table).rows == [["0.1", "26.7", "26.7 (2, 1 failed)"]]


def test_figures_are_rounded_without_a_minus_before_zero() -> None:
    made = Cell(facts={"n": 1, "method": "aux"}, paper=50.0, ours=49.99, count=1, chance=1.0)
    table = Table(item="table1a", preset=None, down=("n",), cells=[made])
    assert render.layout(table).rows == [["1", "1.0", "50.0", "50.0 (1)", "+0.0"]]
    assert render.amount(100_000) == "100K"
    assert render.amount(10_000_000) == "10M"
    assert render.amount(1_500) == "1500"
