"""Tests of recipes: which runs the tables and figures need, each once, the most telling first."""

from typing import Any

import pytest

from auxmod.errors import UserError
from auxmod.experiments.presets import PAPER_CHOICE, with_preset
from auxmod.experiments.recipes import RECIPES, SEARCHED, cells
from auxmod.experiments.wants import TESTS, Facts, Wanted
from auxmod.settings import build


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ("table1a", 9 * (4 * 3 + 2)),  # four methods with three seeds at 100K, two with one at 1M
        ("table1b", 9 * (3 * 3 + 2)),  # aux draws `expected` there already
        ("table2", 16 * 2 * 2),
        ("table3", 18 * (24 + 1)),
        ("configs", 16 * 2),
        ("grid", 18 * 81),
        ("redbox", 81),
        ("curves", 2 * 2 * (3 + 3 + 1)),
        # some runs are in two lists
        ("finalists", 5 * 18 * 2 + 12 * 2 * 3 - 4 + 12 * 4 - 6 + 9 * 3 - 2 + 2 * 2 * 4 + 9 * 4 + 16 + 8 + 3 * 9 * 2),
        ("longer", (4 + 7) * 9 + (6 + 6) * 9),
        ("starts", 3 * 2 * 3 * 2 * 2),
    ],
)
def test_an_item_needs_so_many_runs_at_the_papers_preset(item: str, count: int) -> None:
    runs = cells(item, ["paper"])
    assert len(runs) == len(set(runs)) == count


def test_all_items_have_a_recipe_with_a_line_about_it() -> None:
    paper = {"table1a", "table1b", "table2", "table3", "configs", "grid", "redbox", "curves"}
    assert set(RECIPES) == paper | {
        "headline",
        "harder",
        "fewer",
        "beyond",
        "setup",
        "knobs",
        "finalists",
        "longer",
        "starts",
    }
    assert all(recipe.wants.__doc__ for recipe in RECIPES.values())


def test_the_papers_cells_are_the_papers_setup_with_its_k_and_r() -> None:
    for variant, run, *_ in RECIPES["table1b"]("paper"):
        assert run.training.epochs == 10
        if variant == "aux":
            assert (run.method.k, run.method.r) == PAPER_CHOICE["angular"][run.problem.n, run.problem.q]
    for embedding, draw in (("a", "sampled"), ("b", "expected")):
        drawn = {(variant, run.method.draw) for variant, run, *_ in RECIPES[f"table1{embedding}"]("paper")}
        assert {("aux", draw), ("expected", "expected")} <= drawn
    assert {run.method.draw for variant, run, *_ in RECIPES["table1b"]("best") if variant == "aux"} == {"expected"}


def test_cells_that_are_the_same_run_come_once() -> None:
    both = cells("table1a", ["best"], samples=(100_000,), seeds=1)
    assert len(both) == 9 * 3  # aux draws `expected` there already
    grid = {run.hash for run in cells("grid", ["paper"])}
    chosen = [want.run for want in RECIPES["table1b"]("paper", (100_000,)) if want.variant == "aux"]
    assert {run.hash for run in chosen} <= grid


def test_the_most_telling_cells_come_first() -> None:
    sizes = [run.training.samples for run in cells("table1a")]
    assert sizes == sorted(sizes)
    large = [(run.training.samples, run.problem.n) for run in cells("table2", ["paper"])]
    assert large[0] == (1_000_000, 128)
    assert large[-1] == (10_000_000, 128)
    assert large[32] == (10_000_000, 16)
    first = cells("grid", ["paper"])[: 24 * 18]
    assert {(run.method.k, run.method.r) for run in first} == set(SEARCHED)


def test_seeds_sizes_and_a_choice_of_cells() -> None:
    def keep(facts: Facts) -> bool:
        return (facts["n"], facts["method"]) == (16, "sparse")

    runs = cells("table1b", ["paper"], seeds=2, samples=(500, 1_000), keep=keep)
    assert [(run.problem.q, run.training.samples, run.seed) for run in runs] == [
        (q, samples, seed) for samples in (500, 1_000) for q in (97, 257, 433) for seed in (0, 1)
    ]


def test_the_configurations_vary_four_switches_and_nothing_else() -> None:
    runs = [run for variant, run, *_ in RECIPES["configs"]("paper") if variant == "aux"]
    assert len({(run.model.norm, run.model.bias, run.model.init, run.model.dropout) for run in runs}) == 16
    asked = {"n": 8, "q": 97, "embedding": "token", "samples": 1_000_000, "test_samples": TESTS}
    assert build(**with_preset("paper", asked)) in runs


@pytest.mark.parametrize(
    ("preset", "small"),
    [("stated", "0.02"), ("best", "0.02"), ("paper", "linear-0.02"), ("paper+init=0.02", "0.02")],
)
def test_a_configurations_small_weights_are_so_in_the_presets_way(preset: str, small: str) -> None:
    assert {want.run.model.init for want in RECIPES["configs"](preset)} == {"default", small}


@pytest.mark.parametrize(("preset", "epochs"), [("paper", 10), ("paper+epochs=2", 2), ("paper+epochs=200", 200)])
def test_equal_compute_is_as_many_steps(preset: str, epochs: int) -> None:
    runs = cells("curves", [preset])
    steps = {run.training.steps for run in runs if run.training.epochs > epochs}
    assert steps == {run.training.steps for run in runs if run.training.samples == 1_000_000}


def test_an_item_without_runs_is_refused() -> None:
    with pytest.raises(UserError, match="There are no runs for 'gap'; choose one of table1a"):
        cells("gap")


def test_past_the_paper_methods_are_compared_at_equal_samples_and_steps() -> None:
    wants = list(RECIPES["beyond"]("best"))
    by_case: dict[Any, list[Wanted]] = {}
    for want in wants:
        by_case.setdefault((want.run.problem, want.run.model.embedding), []).append(want)
    assert len(by_case) == 9
    for group in by_case.values():
        variants = [want.variant for want in group]
        assert variants[:3] == ["auto", "aux", "sparse"]
        assert variants[3:] in ([], ["searched"] * 24)
        assert (
            len({(want.run.training.samples, want.run.training.steps, want.run.training.asks) for want in group}) == 1
        )
    assert sum(want.variant == "searched" for want in wants) == 3 * 24
    runs = cells("beyond")
    assert {run.seed for run in runs} == {0, 1, 2}
    assert len(runs) == len(set(runs)) == 3 * 3 * 9 + 3 * 23  # one pair of each grid is aux's own


def test_what_has_its_own_number_of_samples_has_no_other() -> None:
    with pytest.raises(UserError, match="no other number of samples than its own"):
        cells("headline", samples=(500,))
    assert len(cells("headline")) == 9


def test_sums_grow_in_terms_and_in_modulus_and_in_nothing_else() -> None:
    runs, demo = cells("harder"), cells("headline")[0]
    assert len(runs) == len(set(runs)) == (8 + 4 - 1) * 4 * 3 + 3 * 23  # one of the 24 pairs is the demo's
    assert {(run.problem.n, run.problem.q) for run in runs if run.problem.q != demo.problem.q} == {
        (demo.problem.n, q) for q in (11, 97, 257)
    }
    assert {(run.training.samples, run.training.steps) for run in runs} == {(50_000, 1_000)}
    assert set(cells("headline")) < set(runs)


def test_samples_vary_at_equal_steps_and_steps_at_equal_samples() -> None:
    runs = cells("fewer")
    assert len(runs) == len(set(runs)) == (10 * 3 + 4 * 2) * 3
    assert sum(run.training.steps == 1_000 for run in runs) == 10 * 3 * 3
    assert {run.training.steps for run in runs if run.training.samples == 10_000} == {200, 400, 1_000, 2_000, 4_000}
    assert set(cells("headline")) & set(runs), "the demo's own number of samples is one of them"
