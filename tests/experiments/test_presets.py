"""Tests of presets: plain functions that fill in the settings that are not given."""

import re
from typing import Any

import numpy as np
import pytest

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments.presets import OUR_CHOICE, PAPER_CHOICE, PRESETS, with_preset
from auxmod.experiments.recipes import RECIPES, cells
from auxmod.experiments.resolving import resolved
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
    assert build(**with_preset("stated", {"n": 5, "q": 11})).method.k == 4  # the paper chose nothing there
    assert len(PAPER_CHOICE["token"]) == 9
    assert len(PAPER_CHOICE["angular"]) == 19
    assert not OUR_CHOICE.keys() & PAPER_CHOICE["angular"].keys()


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"embedding": "token"}, {"pooling": "max", "init": "linear-0.02", "clip": 1.0}),
        ({"embedding": "token", "method": "sparse"}, {"pooling": "max", "init": "linear-0.02", "clip": 1.0}),
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
    """The preset's settings are among those that the search compared, not a choice made apart from it."""
    searched = set(cells("finalists", ["paper"]))
    for item in ("table1a", "table1b"):
        chosen = {w.run for w in RECIPES[item]("paper", (100_000,)) if w.variant in ("aux", "sparse")}
        assert len(chosen) == 18
        assert chosen <= searched


def test_a_presets_name_may_change_settings_of_it() -> None:
    given = {"embedding": "token", "n": 8, "q": 31}
    plain, changed = (flatten(build(**with_preset(name, given))) for name in ("paper", "paper+init=0.02+lr=1e+1"))
    assert {name for name in plain if plain[name] != changed[name]} == {"init", "lr"}
    assert (changed["init"], changed["lr"]) == ("0.02", 10.0)
    assert with_preset("paper+clip=0", {**given, "clip": 2.0})["clip"] == 2.0  # what is given wins
    assert with_preset("best+final-norm=true", given)["final_norm"] is True
    assert build(**with_preset("paper+clip=0", given | {"moduli": (1, 3)})).method.moduli == (1, 3)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("paper+colour=red", "--preset changes 'colour', but what its name may change is: readout, layers,"),
        ("paper+k=5", "--preset changes 'k', but"),  # K belongs only to aux
        ("paper+moduli=1,2", "--preset changes 'moduli', but"),
        ("paper+data=mine.npz", "--preset changes 'data', but"),
        ("paper+asks=16", "--preset changes 'asks', but"),
        ("paper+Init=0.02", "--preset changes 'Init', but"),
        ("paper+lr=1+lr=2", "--preset changes 'lr' twice: leave one out."),
        ("paper+init", "--init is ''"),
        ("paper+lr=1:3", "--lr is '1:3', but a preset is changed to one value"),
        ("paper+lr=fast", "--lr is 'fast', but must be a number"),
        ("papers+lr=1", "--preset is 'papers+lr=1'; choose one of demo, stated, paper, best, or change one"),
        ("paper+", "--preset is 'paper+'; choose one of demo, stated, paper, best, or change one: paper+init=0.02."),
        (5, "--preset is 5; choose one of demo,"),
    ],
)
def test_a_change_that_cannot_be_is_a_sentence(name: Any, words: str) -> None:
    with pytest.raises(UserError, match=re.escape(words)):
        with_preset(name, {})


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


def test_the_demo_is_a_case_for_two_cores() -> None:
    run = build(**with_preset("demo", {}))
    assert (run.problem.n, run.problem.q, run.method.k, run.method.draw) == (16, 31, 4, "expected")
    assert run.training.steps == 1000


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UserError, match="--preset is 'huge'; choose one of demo, stated, paper, best"):
        with_preset("huge", {})


def test_a_longer_sum_has_a_larger_k_whatever_its_number_is_of() -> None:
    plain, numpys = (resolved({"n": kind(256), "q": 97, "method": "aux"}, "best") for kind in (int, np.int64))
    assert plain == numpys
    assert plain.method.k == 16


@pytest.mark.parametrize("preset", [None, "demo", "stated", "paper", "best"])
def test_a_setting_that_is_none_is_left_open(preset: str | None) -> None:
    nothing = dict.fromkeys(("method", "k", "r", "draw", "moduli", "lr", "tails"))
    assert resolved(nothing | {"n": 16, "q": 97}, preset) == resolved({"n": 16, "q": 97}, preset)
    given = {"n": 16, "q": 97, "method": "aux"}
    assert resolved(given | {"k": None, "pooling": None}, preset) == resolved(given, preset)


def test_a_name_that_is_no_setting_is_refused_even_if_it_is_none() -> None:
    with pytest.raises(UserError, match="There is no setting 'learning_rate'"):
        resolved({"n": 16, "q": 97, "learning_rate": None})
