"""Presets: plain functions that fill what is not given."""

from typing import Any

import pytest

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments.presets import OUR_CHOICE, PAPER_CHOICE, PRESETS, with_preset
from auxmod.experiments.recipes import RECIPES, SEARCHED, cells
from auxmod.experiments.wants import TESTS, Wanted
from auxmod.settings import build, flatten


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "given", [{}, {"method": "naive"}, {"method": "sparse"}, {"method": "ladder"}, {"moduli": (1, 2)}]
)
def test_every_preset_makes_a_run_of_every_method(preset: str, given: dict[str, Any]) -> None:
    run = build(**with_preset(preset, given))
    assert run.method.method == given.get("method", "custom" if "moduli" in given else "aux")
    if "moduli" in given:
        assert run.method.moduli == (1, 2)


@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_given_wins(preset: str) -> None:
    given = {"n": 5, "q": 11, "lr": 0.5, "pooling": "max", "k": 3, "r": 0.9, "draw": "fixed", "epochs": 1}
    run = build(**with_preset(preset, given))
    assert (run.problem.n, run.problem.q, run.training.lr, run.model.pooling) == (5, 11, 0.5, "max")
    assert (run.method.k, run.method.r, run.method.draw, run.training.epochs) == (3, 0.9, "fixed", 1)


def test_without_a_preset_the_method_is_auto_unless_another_is_meant() -> None:
    assert with_preset(None, {"n": 3}) == {"n": 3, "method": "auto"}
    for given in ({"method": "naive"}, {"k": 5}, {"r": 0.2}, {"moduli": (1, 3)}):
        assert with_preset(None, given) == given
    assert {build(**with_preset(preset, {})).method.method for preset in PRESETS} == {"aux"}


def test_what_the_paper_states_is_the_defaults_with_its_k_and_r() -> None:
    for embedding, table in (*PAPER_CHOICE.items(), ("angular", OUR_CHOICE)):
        for (n, q), (k, r) in table.items():
            run = build(**with_preset("stated", {"n": n, "q": q, "embedding": embedding}))
            assert (run.method.k, run.method.r, run.method.draw) == (k, r, "sampled")
            assert run.training == RunConfig().training
            assert run.model == build(embedding=embedding).model
    assert build(**with_preset("stated", {"n": 5, "q": 11})).method.k == 4  # where the paper chose nothing
    assert len(PAPER_CHOICE["token"]) == 9
    assert len(PAPER_CHOICE["angular"]) == 19
    assert not OUR_CHOICE.keys() & PAPER_CHOICE["angular"].keys()


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"embedding": "token"}, {"pooling": "max", "init": "0.02", "clip": 1.0}),
        ({"embedding": "token", "method": "sparse"}, {"pooling": "max", "init": "0.02", "clip": 1.0}),
        ({"embedding": "angular"}, {"pooling": "mean", "lr": 1e-4, "draw": "expected", "lift": 0.15}),
        ({"embedding": "angular", "method": "sparse"}, {"pooling": "mean", "lr": 1e-4, "lift": 0.15, "clip": 1.0}),
        ({"embedding": "angular", "method": "naive"}, {"pooling": "mean", "lr": 1e-4, "lift": 0.15}),
    ],
    ids=str,
)
def test_the_papers_preset_is_what_it_states_but_for_this(given: dict[str, Any], changed: dict[str, Any]) -> None:
    stated, paper = (flatten(build(**with_preset(name, given))) for name in ("stated", "paper"))
    assert {name: paper[name] for name in paper if paper[name] != stated[name]} == changed


def test_the_papers_preset_is_a_finalist_on_every_cell_of_table_1() -> None:
    """What the preset says was searched for, and is not a choice of its own."""
    searched = set(cells("finalists", ["paper"]))
    for item in ("table1a", "table1b"):
        chosen = {w.run for w in RECIPES[item]("paper", (100_000,)) if w.variant in ("aux", "sparse")}
        assert len(chosen) == 18
        assert chosen <= searched


def test_the_demo_is_a_case_for_two_cores() -> None:
    run = build(**with_preset("demo", {}))
    assert (run.problem.n, run.problem.q, run.method.k, run.method.draw) == (16, 31, 4, "expected")
    assert run.training.steps == 1000


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UserError, match="--preset is 'huge'; choose one of demo, stated, paper, best"):
        with_preset("huge", {})


# -- what the tables and figures need -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "count"),
    [
        ("table1a", 9 * (4 * 3 + 2)),  # three seeds of four methods at 100K, one of two at 1M
        ("table1b", 9 * (3 * 3 + 2)),  # aux draws `expected` there already
        ("table2", 16 * 2 * 2),
        ("table3", 18 * (24 + 1)),
        ("configs", 16 * 2),
        ("grid", 18 * 81),
        ("redbox", 81),
        ("curves", 2 * 2 * (3 + 3 + 1)),
        ("finalists", 4 * 18 * 2 + 12 * 2 * 3 - 4 + 12 * 4 - 6 + 9 * 3 - 2 + 2 * 2 * 4 + 9 * 4),  # some in two lists
        ("longer", 5 * 18 * 2),
    ],
)
def test_an_item_needs_so_many_runs_at_the_papers_preset(item: str, count: int) -> None:
    runs = cells(item, ["paper"])
    assert len(runs) == len(set(runs)) == count


def test_all_items_have_a_recipe_with_a_line_about_it() -> None:
    paper = {"table1a", "table1b", "table2", "table3", "configs", "grid", "redbox", "curves"}
    assert set(RECIPES) == paper | {"headline", "beyond", "setup", "knobs", "finalists", "longer"}
    assert all(recipe.__doc__ for recipe in RECIPES.values())


def test_the_papers_cells_are_the_papers_setup_with_its_k_and_r() -> None:
    for variant, run, _ in RECIPES["table1b"]("paper"):
        assert run.training.epochs == 10
        if variant == "aux":
            assert (run.method.k, run.method.r) == PAPER_CHOICE["angular"][run.problem.n, run.problem.q]
    for embedding, draw in (("a", "sampled"), ("b", "expected")):
        drawn = {(variant, run.method.draw) for variant, run, _ in RECIPES[f"table1{embedding}"]("paper")}
        assert {("aux", draw), ("expected", "expected")} <= drawn
    assert {run.method.draw for variant, run, _ in RECIPES["table1b"]("best") if variant == "aux"} == {"expected"}


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
    def keep(want: Wanted) -> bool:
        return want.run.problem.n == 16 and want.variant == "sparse"

    runs = cells("table1b", ["paper"], seeds=2, samples=(500, 1_000), keep=keep)
    assert [(run.problem.q, run.training.samples, run.seed) for run in runs] == [
        (q, samples, seed) for samples in (500, 1_000) for q in (97, 257, 433) for seed in (0, 1)
    ]


def test_the_configurations_vary_four_switches_and_nothing_else() -> None:
    runs = [run for variant, run, _ in RECIPES["configs"]("paper") if variant == "aux"]
    assert len({(run.model.norm, run.model.bias, run.model.init, run.model.dropout) for run in runs}) == 16
    asked = {"n": 8, "q": 97, "embedding": "token", "samples": 1_000_000, "test_samples": TESTS}
    assert build(**with_preset("paper", asked)) in runs


def test_equal_compute_is_as_many_steps() -> None:
    steps = {run.training.steps for run in cells("curves", ["paper"]) if run.training.epochs > 10}
    assert steps == {run.training.steps for run in cells("curves", ["paper"]) if run.training.samples == 1_000_000}


def test_an_item_without_runs_is_refused() -> None:
    with pytest.raises(UserError, match="There are no runs for 'gap'; choose one of table1a"):
        cells("gap")


AUTO = {  # N: how many moduli, and the weights of q, a rung and a harmonic
    4: (3, 0.571428571429, 0.142857142857, 0.071428571429),
    16: (5, 0.444444444444, 0.111111111111, 0.055555555556),
    32: (6, 0.4, 0.1, 0.05),
    100: (8, 0.333333333333, 0.083333333333, 0.041666666667),
    256: (9, 0.307692307692, 0.076923076923, 0.038461538462),
}


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize("n", AUTO)
def test_what_auto_chooses(n: int, embedding: str) -> None:
    count, own, rung, harmonic = AUTO[n]
    run = build(n=n, q=97, embedding=embedding, method="auto")
    assert run.method.moduli == tuple(2**j for j in range(count))
    assert (run.method.harmonics, run.method.draw, run.method.tails) == ((2, 4), "expected", 20)
    assert run.method.weights == pytest.approx((own, *[rung] * (count - 1), harmonic, harmonic))
    model, training = run.model, run.training
    assert (model.pooling, model.final_norm, model.init, model.angles) == ("mean", False, "0.02", True)
    assert (training.optimiser, training.lr, training.beta1, training.beta2) == ("muon", 2.5e-3, 0.95, 0.98)
    assert training.weight_decay == 0.03
    assert build(n=n, q=97, embedding=embedding, method="auto", lr=0.5, pooling="cls").training.lr == 0.5


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ({}, 2.5e-3),
        ({"samples": 1_000_000, "hidden": 4096}, 2.5e-3),  # never less
        ({"hidden": 128}, 1e-2),
        ({"epochs": 5}, 3.5e-3),
        ({"hidden": 128, "samples": 50_000, "epochs": 5}, 2e-2),
        ({"hidden": 8, "samples": 250, "epochs": 1}, 4e-2),  # never more
        ({"optimiser": "adamw", "hidden": 128}, 4e-4),
    ],
)
def test_autos_learning_rate(given: dict[str, Any], rate: float) -> None:
    assert build(method="auto", **given).training.lr == pytest.approx(rate)


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({}, 20),
        ({"tails": None}, 20),
        ({"harmonics": (2,)}, 20),
        ({"moduli": (1, 2, 4)}, 20),
        ({"hidden": 128}, 5),  # a small encoder pays for 20 with exact answers
        ({"tails": 3.0}, 3),
        ({"moduli": (1,)}, 1),  # rare sums weigh more above q alone
        ({"distribution": "sparse"}, 1),  # which sums are rare is known of uniform inputs
        ({"data": "rows.npz", "data_sha256": "0" * 64}, 1),
    ],
    ids=str,
)
def test_autos_weight_for_rare_sums(given: dict[str, Any], most: float) -> None:
    assert build(method="auto", n=8, q=31, **given).method.tails == most


def test_autos_learning_rate_leaves_wrong_settings_to_be_refused() -> None:
    for wrong in ({"hidden": "x"}, {"hidden": -5}, {"samples": -1}, {"batch": 0}, {"epochs": None}):
        with pytest.raises(UserError):
            build(method="auto", **wrong)


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


def test_each_method_at_its_best_is_its_own() -> None:
    def chosen(method: str, embedding: str) -> RunConfig:
        return build(**with_preset("best", {"method": method, "embedding": embedding}))

    assert chosen("sparse", "angular").model.pooling == "max"
    assert chosen("sparse", "angular").method.alpha == 0
    assert chosen("sparse", "token").model.pooling == "flatten"
    assert {chosen("sparse", each).training.optimiser for each in ("token", "angular")} == {"adamw", "muon"}
    assert chosen("aux", "angular").training.optimiser == chosen("auto", "angular").training.optimiser == "muon"
    assert chosen("aux", "angular").method.draw == "expected"
    assert chosen("auto", "angular") == build(method="auto", embedding="angular")


def test_past_the_papers_longest_sum_the_auxiliary_modulus_wraps_as_often_as_at_it() -> None:
    for n, k in ((128, 8), (256, 16), (512, 32)):
        run = build(**with_preset("best", {"method": "aux", "n": n, "q": 42899}))
        assert run.method.moduli == (1, k)
