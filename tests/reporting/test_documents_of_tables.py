"""Tests of the paper's tables with our figures: what is shown of the cells that were run, and how near they are."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import made_up
from auxmod.config import Model
from auxmod.experiments import recipes, wants
from auxmod.files import write_lines
from auxmod.reporting import published, results, tables
from auxmod.reporting.documents import other_tables, pairs, setup_search, table1


def test_a_grid_is_shown_where_all_its_pairs_were_run(tmp_path: Path) -> None:
    """The paper's pair at N = 16, q = 257 is K = 6, r = 0.3, and its figure 93.0; at q = 433 one pair is missing."""
    rows = []
    for run in (want.run for want in recipes.grid("stated", (wants.SMALL,), pairs=recipes.SEARCHED)):
        here = run.model.embedding, run.problem.n, run.problem.q
        pair = run.method.k, run.method.r
        if here == ("angular", 16, 257):
            rows.append(made_up.row(run, match={(6, 0.3): 0.5, (4, 0.2): 0.74, (9, 0.1): 0.26}.get(pair, 0.5)))
            rows.append(made_up.row(replace(run, seed=1), match=1.0))  # a further seed does not count
        elif here == ("angular", 16, 433) and pair != (5, 0.2):
            rows.append(made_up.row(run, match=0.9))
    write_lines(tmp_path / "table3.jsonl", rows)
    (line,) = (line for line in pairs.pairs(tmp_path).splitlines() if line.startswith(("| angular", "| token")))
    shown = "| 0.4 | 93.0 (K = 6, r = 0.3) | 50.0 | 26.0 | 50.0 | 74.0 | K = 4, r = 0.2 |"
    assert line == f"| angular, N = 16, q = 257, `stated` {shown}"
    note = pairs.pairs(tmp_path).splitlines()[-1]
    assert "`auxmod reproduce table3 --preset stated --method aux`;" in note
    assert note.endswith("the mean distance from them: in `stated` 0 of 1, 19.0.")


def test_pairs_outside_the_search_stand_apart_where_any_was_run(tmp_path: Path) -> None:
    assert pairs.outside(tmp_path) == "None of it has been run."
    rows = []
    for run in (want.run for want in recipes.grid("paper", (wants.SMALL,))):
        here, pair = (run.model.embedding, run.problem.n, run.problem.q), (run.method.k, run.method.r)
        if here == ("angular", 16, 257) and pair in [*recipes.SEARCHED, (2, 0.5), (3, 0.2), (3, 0.9)]:
            best = {(4, 0.2): 0.74, (3, 0.2): 0.8}
            rows.append(made_up.row(run, match=best.get(pair, 0.5)))
            rows.append(made_up.row(replace(run, seed=1), match=1.0))  # a further seed does not count
        elif here == ("token", 8, 31) and pair in recipes.SEARCHED:
            rows.append(made_up.row(run, match=0.9))
    write_lines(tmp_path / "grid.jsonl", rows)
    (line,) = (line for line in pairs.outside(tmp_path).splitlines() if line.startswith(("| angular", "| token")))
    parts = "| 74.0 (K = 4, r = 0.2; 24 of 24) | 80.0 (K = 3, r = 0.2; 3 of 18) | not run |"
    assert line == f"| angular, N = 16, q = 257 | 0.4 {parts}"


def test_where_the_best_setup_is_not_the_best_is_said(tmp_path: Path) -> None:
    rows = [
        made_up.row(
            want.run, match={("paper", 433): 0.95, ("paper", 257): 0.905}.get((preset, want.run.problem.q), 0.9)
        )
        for preset in ("paper", "best")
        for want in recipes.RECIPES["table1b"](preset, (wants.LARGE,))
        if want.variant == "aux" and want.run.problem.n == 64
    ]
    write_lines(tmp_path / "table1.jsonl", [row | {"provenance": {"commit": "abc", "device": "a"}} for row in rows])
    text = table1.larger(tmp_path)
    assert text.endswith("learns more with `aux` in angular, N = 64, q = 433, and with `sparse` in no cell.")
    assert text.count("not run") == 18 * 4 - 2 * 3


def test_whether_the_baseline_comes_up_to_the_papers_is_counted(tmp_path: Path) -> None:
    wanted = [want for want in recipes.RECIPES["table1b"]("best", (wants.LARGE,)) if want.variant == "sparse"]
    figures = [98.9, 63.0, 40.0]
    rows = [made_up.row(want.run, match=share / 100) for want, share in zip(wanted, figures, strict=False)]
    write_lines(tmp_path / "table1.jsonl", [row | {"provenance": {"commit": "abc", "device": "a"}} for row in rows])
    papers = [
        published.find("table1b", n=run.problem.n, q=run.problem.q, samples=wants.LARGE, method="sparse")
        for run in (want.run for want in wanted[:3])
    ]
    level = sum(share >= (paper or 0) - 1 for share, paper in zip(figures, papers, strict=True))
    assert 0 < level < 3
    assert f"level with the paper's baseline or above it in {level} of 3 cells run." in table1.larger(tmp_path)


def test_of_table_2_and_the_16_configurations_what_was_run_is_shown(tmp_path: Path) -> None:
    write_lines(tmp_path / "other.jsonl", [])
    assert other_tables.table2(tmp_path) == other_tables.configs(tmp_path) == other_tables.NONE
    rows = [
        made_up.row(want.run, tau=0.25, match=0.125)
        for item, samples in (("table2", wants.HUGE), ("configs", wants.LARGE))
        for want in recipes.RECIPES[item]("stated", (samples,))
        if want.variant == "sparse" and (want.run.problem.n, want.run.problem.q) in ((16, 3329), (8, 97))
        if want.run.model.dropout == 0 or want.run.model.norm == "pre"
    ]
    write_lines(tmp_path / "other.jsonl", [row | {"provenance": {"commit": "abc", "device": "a"}} for row in rows])
    heads, _, line, *_ = other_tables.table2(tmp_path).splitlines()
    assert heads == "| case | chance | sparse, the paper's | sparse, `stated` |"
    paper = published.find("table2", n=16, q=3329, samples=wants.HUGE, method="sparse", tau=0.05)
    assert line == f"| angular, N = 16, q = 3329, 10M samples | 10.0 | {paper} | 25.0 (1) |"
    assert "τ = 0.05: 1 of its 32 cases" in other_tables.table2(tmp_path)
    text = other_tables.configs(tmp_path)
    assert "12 of its 16 cases" in text
    assert "| pre-norm, biases, init default, dropout 0.1 | 1.0 | 97.2 | 12.5 (1) |" in text
    assert "post-norm, no biases, init 0.02, dropout 0 |" in text
    assert not any("post-norm" in line and "dropout 0.1" in line for line in text.splitlines())


def test_closer_than_the_papers_tau_the_range_over_q_is_shown(tmp_path: Path) -> None:
    rows = []
    for want in recipes.RECIPES["table2"]("best", (wants.LARGE,)):
        n, q = want.run.problem.n, want.run.problem.q
        if (n == 64 and want.variant == "aux") or (n, q) == (128, 257):
            row = made_up.row(want.run, tau=1.0) | {"provenance": {"commit": "abc", "device": "a"}}
            row["scores"]["tau"]["0.005"] = {257: 0.9, 3329: 0.5, 42899: 0.625, 974269: 0.75}[q]
            rows.append(row)
    write_lines(tmp_path / "table2.jsonl", rows)
    text = other_tables.table2(tmp_path)
    assert "| 64 | 1.0 | 50.0 to 90.0 (4 of 4) | not run |" in text
    assert "| 128 | 1.0 | 90.0 (1 of 4) | 90.0 (1 of 4) |" in text


def configurations(item: str, match: Callable[[Model], float]) -> Iterator[dict[str, Any]]:
    """Rows of an item's `aux` runs, with an accuracy computed from the model's switches."""
    for want in recipes.RECIPES[item]("paper", (wants.LARGE,)):
        if want.variant == "aux":
            row = made_up.row(want.run, match=match(want.run.model))
            yield row | {"provenance": {"commit": "abc", "device": "a"}}


def test_a_paper_whose_initial_weights_are_named_for_each_other_is_seen(tmp_path: Path) -> None:
    def exchanged(model: Model) -> float:
        init = "0.02" if model.init == "default" else "default"
        return published.CONFIGURATIONS[model.norm, model.bias, init, model.dropout][1] / 100

    write_lines(tmp_path / "other.jsonl", list(configurations("configs", exchanged)))
    (line,) = (line for line in other_tables.configs(tmp_path).splitlines() if line.startswith("| aux, `paper` |"))
    named, norms, biases, weights, dropout = line.strip("| ").split(" | ")[1:]
    assert weights == "16 of 16, 0.0"
    for other in (named, norms, biases, dropout):
        assert float(other.split(", ")[1]) > 10
    own = [made_up.row(want.run) for want in recipes.RECIPES["configs"]("paper", (wants.SMALL,))]
    assert not any(
        "names" in note for note in tables.build("configs", "paper", results.index(own), [wants.SMALL]).notes
    )
    notes = tables.build("configs", "paper", results.read(tmp_path)).notes
    assert notes[-1] == (
        "aux, if the paper's two names of initial weights are taken for each other: 16 of 16 within 5 points."
    )


def test_starts_that_were_run_whole_are_measured_by_both_names(tmp_path: Path) -> None:
    write_lines(tmp_path / "other.jsonl", [])
    assert setup_search.starts(tmp_path) == other_tables.NONE

    def named(model: Model) -> float:
        init = model.init.removeprefix("linear-")
        return published.CONFIGURATIONS[model.norm, model.bias, init, model.dropout][1] / 100

    rows = [row for row in configurations("starts", named) if row["config"]["model"]["pooling"] != "cls"]
    part = [row for row in rows if row["config"]["model"]["init"] != "0.02"]
    write_lines(tmp_path / "other.jsonl", part)
    lines = setup_search.starts(tmp_path).splitlines()[2:]
    assert lines[0] == "| the paper's | aux | 90.1 | 17.5 | 73.5 | 33.9 |  |  |"
    assert (
        "| max, clip 1, small `linear-0.02` | aux | 90.1 | 17.5 | 73.5 | 33.9 | 4 of 4, 0.0 | 0 of 4, 16.5 |" in lines
    )
    assert len([line for line in lines if " | aux | " in line]) == 1 + 2 * 2
    whole, setups = 2 * 2, 3 * 2 * 2 * 2  # poolings, clips, small weights, methods
    assert f"not all four have been run: {setups - whole}. `auxmod table starts` has" in lines[-1]
