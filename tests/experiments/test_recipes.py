"""Presets: plain functions that fill what is not given."""

from typing import Any

import pytest

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments.recipes import OUR_CHOICE, PAPER_CHOICE, PRESETS, with_preset
from auxmod.settings import build


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


def test_no_preset_changes_nothing() -> None:
    assert with_preset(None, {"n": 3}) == {"n": 3}


def test_the_papers_preset_is_the_defaults_with_the_papers_k_and_r() -> None:
    for embedding, table in (*PAPER_CHOICE.items(), ("angular", OUR_CHOICE)):
        for (n, q), (k, r) in table.items():
            run = build(**with_preset("paper", {"n": n, "q": q, "embedding": embedding}))
            assert (run.method.k, run.method.r, run.method.draw) == (k, r, "sampled")
            assert run.training == RunConfig().training
            assert run.model == build(embedding=embedding).model
    assert build(**with_preset("paper", {"n": 5, "q": 11})).method.k == 4  # where the paper chose nothing
    assert len(PAPER_CHOICE["token"]) == 9
    assert len(PAPER_CHOICE["angular"]) == 19
    assert not OUR_CHOICE.keys() & PAPER_CHOICE["angular"].keys()


def test_the_demo_is_a_case_for_two_cores() -> None:
    run = build(**with_preset("demo", {}))
    assert (run.problem.n, run.problem.q, run.method.k, run.method.draw) == (16, 31, 4, "expected")
    assert run.training.steps == 1000


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(UserError, match="--preset is 'huge'; choose one of demo, paper, best"):
        with_preset("huge", {})
