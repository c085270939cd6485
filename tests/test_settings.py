"""Tests of `settings`: flat settings to a run and back, and the values that a method's name stands for."""

import doctest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from auxmod import settings
from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments.presets import PRESETS, with_preset
from auxmod.settings import SETTINGS, build, flatten
from tiny import tiny


def test_the_examples_in_the_documentation() -> None:
    result = doctest.testmod(settings)
    assert result.attempted >= 1
    assert result.failed == 0


@pytest.mark.parametrize(
    ("given_settings", "expected"),
    [
        ({"method": "naive"}, ("uniform", (1,), (1.0,), "expected", 0.0)),
        ({"method": "sparse"}, ("sparse", (1,), (1.0,), "expected", 1e-4)),
        ({"method": "sparse", "embedding": "token"}, ("sparse", (1,), (1.0,), "expected", 0.0)),
        ({"method": "aux", "k": 5, "r": 0.25}, ("uniform", (1, 5), (0.75, 0.25), "sampled", 0.0)),
        ({"k": 5, "r": 0.25}, ("uniform", (1, 5), (0.75, 0.25), "sampled", 0.0)),
        ({"method": "aux", "draw": "expected"}, ("uniform", (1, 4), (0.7, 0.3), "expected", 0.0)),
        ({"method": "ladder", "n": 4}, ("uniform", (1, 2, 4), (0.5, 0.25, 0.25), "expected", 0.0)),
        ({"moduli": (1, 2, 4)}, ("uniform", (1, 2, 4), (1 / 3,) * 3, "expected", 0.0)),
        (
            {"moduli": (1, 2), "weights": (0.9, 0.1), "draw": "fixed", "distribution": "sparse", "alpha": 0.5},
            ("sparse", (1, 2), (0.9, 0.1), "fixed", 0.5),
        ),
    ],
)
def test_a_methods_name_is_its_values(given_settings: dict[str, Any], expected: tuple[Any, ...]) -> None:
    method = build(**given_settings).method
    assert (method.distribution, method.moduli, method.weights, method.draw, method.alpha) == expected


def test_moduli_without_a_name_are_custom() -> None:
    assert build(moduli=(1, 3)).method.method == "custom"
    assert build().method.method == "aux"


@given(st.integers(1, 5000))
def test_the_ladder_ends_at_the_first_rung_that_never_wraps(n: int) -> None:
    method = build(method="ladder", n=n).method
    assert method.moduli == tuple(2**j for j in range(len(method.moduli)))
    assert method.moduli[-1] >= max(2, n)
    assert len(method.moduli) == 2 or method.moduli[-2] < n
    assert sum(method.weights) == pytest.approx(1)
    assert method.weights[0] == 0.5


@pytest.mark.parametrize(
    "run",
    [RunConfig(), tiny(seed=3), tiny(method="ladder"), tiny(method="sparse", fill="nonzero"), tiny(moduli=(1, 3))],
)
def test_flatten_undoes_build(run: RunConfig) -> None:
    assert build(**flatten(run)) == run


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 1}, "--k is 1"),
        ({"k": 2.5}, "--k is 2.5"),
        ({"r": 0}, "--r is 0,"),
        ({"r": 1.0}, "--r is 1.0"),
        ({"r": "half"}, "--r is half"),
        ({"r": float("nan")}, "--r is nan"),
        ({"method": "naive", "k": 3}, "--k and --r belong to --method aux"),
        ({"k": 3, "moduli": (1, 3), "method": "aux"}, "not both"),
        ({"k": 3, "r": 0.4, "weights": (0.5, 0.5)}, "Give either --r or --weights, not both"),
        ({"moduli": 3}, "--moduli is 3"),
        ({"moduli": ()}, "--moduli is ()"),
        ({"method": "custom"}, "--method custom needs --moduli"),
        ({"method": "magic"}, "--method is 'magic'"),
        ({"method": ""}, "--method is ''"),
        ({"embedding": "token", "method": "naive", "alpha": 0.1}, "--alpha"),
        ({"colour": "red"}, "no setting 'colour'"),
        ({"method": "auto", "harmonics": 4}, "--harmonics is 4, but must be a list of numbers"),
        ({"init": True}, "--init is True"),
    ],
)
def test_what_cannot_be_is_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        build(**wrong)
    assert words in str(caught.value)


def test_what_is_given_as_none_is_not_given() -> None:
    assert build(method="auto", harmonics=None) == build(method="auto")


AUTO = {  # N: the number of moduli, and the weights of q, of each other modulus and of each harmonic
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
    ("given_settings", "rate"),
    [
        ({}, 2.5e-3),
        ({"samples": 1_000_000, "hidden": 4096}, 2.5e-3),  # the minimum
        ({"hidden": 128}, 1e-2),
        ({"epochs": 5}, 3.5e-3),
        ({"hidden": 128, "samples": 50_000, "epochs": 5}, 2e-2),
        ({"hidden": 8, "samples": 250, "epochs": 1}, 4e-2),  # the maximum
        ({"optimiser": "adamw", "hidden": 128}, 4e-4),
    ],
)
def test_autos_learning_rate(given_settings: dict[str, Any], rate: float) -> None:
    assert build(method="auto", **given_settings).training.lr == pytest.approx(rate)


def test_autos_learning_rate_leaves_wrong_settings_to_be_refused() -> None:
    for wrong in ({"hidden": "x"}, {"hidden": -5}, {"samples": -1}, {"batch": 0}, {"epochs": None}):
        with pytest.raises(UserError):
            build(method="auto", **wrong)


@pytest.mark.parametrize(
    ("given_settings", "most"),
    [
        ({}, 20),
        ({"tails": None}, 20),
        ({"harmonics": (2,)}, 20),
        ({"moduli": (1, 2, 4)}, 20),
        ({"hidden": 128}, 5),  # with 20, a small encoder loses exact answers
        ({"tails": 3.0}, 3),
        ({"moduli": (1,)}, 1),  # only moduli above q give rare sums more weight
        ({"distribution": "sparse"}, 1),  # which sums are rare is known only for uniform inputs
        ({"data": "rows.npz", "data_sha256": "0" * 64}, 1),
    ],
    ids=str,
)
def test_autos_weight_for_rare_sums(given_settings: dict[str, Any], most: float) -> None:
    assert build(method="auto", n=8, q=31, **given_settings).method.tails == most


names = st.sampled_from([*SETTINGS, "k", "r", "seed", "nonsense"])
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3))
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(st.text(max_size=2), scalars, max_size=1))


@hypothesis_settings(max_examples=300)
@given(st.dictionaries(names, values, max_size=4), st.sampled_from([None, *PRESETS, "other"]))
def test_whatever_a_file_says_becomes_a_run_or_a_sentence(said: dict[str, Any], preset: str | None) -> None:
    try:
        run = build(**with_preset(preset, said))
    except UserError:
        return
    assert RunConfig.from_dict(run.to_dict()) == run


def test_numbers_of_numpys_are_numbers() -> None:
    own = build(n=np.int64(4), q=np.int32(7), k=np.int8(3), r=np.float64(0.5), seed=np.uint8(2))
    assert own == build(n=4, q=7, k=3, r=0.5, seed=2)
    assert type(own.problem.n) is type(own.seed) is int


@pytest.mark.parametrize(
    ("method", "idle"),
    [("naive", {"draw": "sampled"}), ("naive", {"asked": "all"}), ("naive", {"fill": "nonzero"}),
     ("sparse", {"draw": "fixed"}), ("aux", {"fill": "nonzero"})],
)  # fmt: skip
def test_a_setting_without_effect_makes_no_other_run(method: str, idle: dict[str, Any]) -> None:
    assert build(method=method, **idle).hash == build(method=method).hash


@pytest.mark.parametrize(
    ("method", "telling"), [("sparse", {"fill": "nonzero"}), ("aux", {"draw": "fixed"}), ("aux", {"asked": "all"})]
)
def test_a_setting_with_effect_does(method: str, telling: dict[str, Any]) -> None:
    assert build(method=method, **telling).hash != build(method=method).hash


def test_what_angles_are_read_out_as_anyway_makes_no_other_run() -> None:
    assert build(readout="angles") == build()
    assert build(readout="angles", embedding="token").model.readout == "angles"
