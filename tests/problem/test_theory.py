"""Tests of the paper's quantities against enumeration in fractions, known limits, and the paper where it is right."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxmod.errors import UserError
from auxmod.problem import laws, theory
from auxmod.problem.summary import summary
from auxmod.settings import build

SMALL = [(n, q) for n in range(1, 7) for q in range(2, 8) if q**n <= 3000]
SIZES = st.tuples(st.integers(1, 40), st.integers(2, 10**6))
FILLS = pytest.mark.parametrize("fill", ["zero", "nonzero"])


def inputs(n: int, q: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(q), repeat=n))


def sparse_input_law(n: int, q: int, fill: str) -> dict[tuple[int, ...], float]:
    """P(x) for every x, straight from the recipe: z, then positions, then values."""
    law = dict.fromkeys(inputs(n, q), 0.0)
    weights = [1 / math.sqrt(n - z + 1) for z in range(1, n + 1)]
    first = int(fill == "nonzero")
    for z, weight in enumerate(weights, start=1):
        share = weight / sum(weights) / math.comb(n, z) / (q - first) ** z
        for places in itertools.combinations(range(n), z):
            for values in itertools.product(range(first, q), repeat=z):
                filled = dict(zip(places, values, strict=True))
                law[tuple(filled.get(i, 0) for i in range(n))] += share
    return law


@given(st.integers(2, 1000), st.floats(0.001, 0.5))
def test_guessing_a_class_is_right_as_often_as_classes_are_within_reach(q: int, tau: float) -> None:
    near = sum(min(d, q - d) <= tau * q + 1e-9 for d in range(q))
    assert theory.chance(q, tau, angles=False) == pytest.approx(near / q)
    assert theory.chance(q, tau, angles=True) == 2 * tau
    assert theory.chance(q, None, angles=False) == theory.chance(q, None, angles=True) == 1 / q


def test_a_class_at_exactly_the_tolerance_is_within_reach() -> None:
    assert 0.29 * 100 < 29
    assert theory.chance(100, 0.29, angles=False) == pytest.approx(0.59)
    assert theory.chance(7, 0.6, angles=True) == theory.chance(7, 0.6, angles=False) == 1


@pytest.mark.parametrize(("n", "q"), SMALL)
def test_expected_wraps_are_those_of_every_input(n: int, q: int) -> None:
    sums = [sum(x) for x in inputs(n, q)]
    for m in range(1, n + 3):
        assert theory.expected_wraps(n, q, m) == Fraction(sum(sums), m * q * q**n)
        assert theory.expected_wraps_floor(n, q, m) == Fraction(sum(s // (m * q) for s in sums), q**n)
        assert theory.p_no_wrap(n, q, m) == Fraction(sum(s < m * q for s in sums), q**n)


def test_expected_wraps_of_q_need_no_counting() -> None:
    counted = sum(d * c for d, c in enumerate(laws.wrap_counts(30, 433)))
    assert theory.expected_wraps_floor(30, 433) == Fraction(counted, 433**30)


@FILLS
@pytest.mark.parametrize(("n", "q"), [(1, 3), (2, 2), (2, 5), (3, 4), (4, 3), (5, 2), (4, 4)])
def test_sparse_quantities_are_those_of_every_input(n: int, q: int, fill: str) -> None:
    sparse, even = sparse_input_law(n, q, fill), q**-n
    close = {"rel": 1e-11, "abs": 1e-14}
    assert sum(sparse.values()) == pytest.approx(1)
    mean = sum(p * sum(x) / q for x, p in sparse.items())
    assert theory.expected_sparse_wraps(n, q, fill) == pytest.approx(mean, **close)
    floor = sum(p * (sum(x) // q) for x, p in sparse.items())
    assert theory.expected_sparse_wraps_floor(n, q, fill) == pytest.approx(floor, **close)
    tv = sum(abs(p - even) for p in sparse.values()) / 2
    assert theory.tv_sparse_uniform(n, q, fill) == pytest.approx(tv, **close)
    kl = sum(p * math.log(p / even) for p in sparse.values() if p)
    assert theory.kl_sparse_uniform(n, q, fill) == pytest.approx(kl, **close)
    free = sum(p for x, p in sparse.items() if 0 not in x)
    assert theory.zero_free_mass(n, q, fill) == pytest.approx(free, **close)
    assert theory.risk_ratio(n, q, fill) == pytest.approx(max(even / p if p else math.inf for p in sparse.values()))
    back = sum(even * math.log(even / p) if p else math.inf for p in sparse.values())
    assert theory.kl_uniform_sparse(n, q, fill) == pytest.approx(back, **close)


def test_the_corrected_formula_and_the_printed_one() -> None:
    assert theory.p_no_wrap(3, 5, 2) == Fraction(23, 25)  # 0.92
    assert theory.p_no_wrap_as_printed(3, 5, 2) == Fraction(3, 125)  # 0.024
    assert theory.p_no_wrap(2, 5, 2) == 1
    assert theory.p_no_wrap_as_printed(2, 5, 2) == Fraction(-1, 25)  # a negative probability


@given(st.integers(1, 20), st.integers(2, 500), st.integers(1, 24))
@settings(max_examples=60, deadline=None)
def test_the_printed_formula_is_a_point_probability_less_a_term(n: int, q: int, k: int) -> None:
    term = Fraction((-1) ** k * math.comb(n, k), q**n)
    assert theory.p_no_wrap_as_printed(n, q, k) == laws.sum_probability(n, q, k * q) - term


@given(SIZES, st.integers(1, 45))
@settings(max_examples=60, deadline=None)
def test_expected_wraps_fall_with_k_and_keep_the_papers_bounds(size: tuple[int, int], k: int) -> None:
    n, q = size
    wraps, plain = theory.expected_wraps_floor(n, q, k), theory.expected_wraps(n, q, k)
    assert max(Fraction(0), plain - 1) <= wraps <= plain  # Proposition 6
    assert theory.expected_wraps_floor(n, q, k + 1) <= wraps
    assert theory.p_no_wrap(n, q, k + 1) >= theory.p_no_wrap(n, q, k)
    assert (wraps == 0) == (k * q > n * (q - 1))


@FILLS
@given(size=SIZES)
@settings(max_examples=40, deadline=None)
def test_distances_are_distances_and_sparse_training_bounds_the_test_risk(fill: str, size: tuple[int, int]) -> None:
    n, q = size
    tv, kl = theory.tv_sparse_uniform(n, q, fill), theory.kl_sparse_uniform(n, q, fill)
    assert -1e-12 <= tv <= 1 - theory.zero_free_mass(n, q, "zero") + 1e-12
    assert kl >= 2 * tv**2 - 1e-9  # Pinsker
    assert theory.kl_uniform_sparse(n, q, fill) <= math.log(theory.risk_ratio(n, q, fill)) + 1e-9


@given(st.integers(2, 10**6))
def test_of_one_term_sparse_inputs_are_uniform(q: int) -> None:
    assert (theory.tv_sparse_uniform(1, q), theory.kl_sparse_uniform(1, q)) == pytest.approx((0, 0), abs=1e-12)
    assert min(theory.kl_sparse_uniform(1, q), theory.kl_uniform_sparse(1, q)) >= 0


def test_sparse_constant_creeps_to_its_limit_from_below() -> None:
    slope = -1.4603545088095868 / 6  # ζ(1/2)/6
    for n in (100, 10_000, 1_000_000):
        ratio = theory.expected_terms(n) / n
        assert ratio < 2 / 3
        assert ratio == pytest.approx(2 / 3 + slope / math.sqrt(n), abs=1.5 / n)


@pytest.mark.parametrize("k", [2, 4, 9])
def test_expected_wraps_at_the_largest_size_agree_with_fourier(k: int) -> None:
    """An oracle that shares nothing with the counting: E[S mod M] from the characteristic function of S."""
    n, q = 256, 974_269
    modulus = k * q
    near = np.arange(1, 20_000)  # beyond, |φ|^256 is far below the smallest float that matters
    omega = np.pi * near / modulus
    phi = np.sin(q * omega) / (q * np.sin(omega))
    terms = phi**n * np.exp(1j * omega * n * (q - 1)) / (np.exp(-2j * omega) - 1)
    mean = (modulus - 1) / 2 + 2 * terms.real.sum()
    wraps = (n * (q - 1) / 2 - mean) / modulus
    assert float(theory.expected_wraps_floor(n, q, k)) == pytest.approx(wraps, rel=1e-9)


def test_the_largest_size_takes_under_a_second() -> None:
    laws.below_counts.cache_clear()
    start = time.process_time()
    result = summary(256, 974_269, moduli=(1, 2, 4, 8), weights=(0.4, 0.2, 0.2, 0.2))
    assert time.process_time() - start < 1
    assert len(result["moduli"]) == 4


def test_gap_bound_is_the_papers_table_where_that_is_right() -> None:
    printed = {
        17: (0.61, 0.38, 0.23, 0.14), 23: (0.70, 0.49, 0.34, 0.24),
        47: (0.84, 0.71, 0.60, 0.50), 113: (0.93, 0.87, 0.81, 0.75),
    }  # fmt: skip
    wrong = [
        (n, q)
        for q, column in printed.items()
        for n, value in zip((8, 16, 24, 32), column, strict=True)
        if abs(theory.gap_bound(n, q) - value) > 0.005
    ]
    assert wrong == [(8, 17)]
    assert theory.gap_bound(8, 17) == pytest.approx(0.6157, abs=5e-5)


def test_gap_bound_knows_what_training_saw() -> None:
    n, q, delta = 8, 97, 0.01
    assert theory.zero_free_mass(n, q) == pytest.approx(0.21, abs=0.005)
    most = (theory.risk_ratio(n, q) - 1) * delta
    assert theory.gap_bound_with_training_law(n, q, 1.0, delta) == pytest.approx(most)
    assert theory.gap_bound_with_training_law(n, q, 1.0, 0.0) == 0
    small = 0.9 * delta / theory.zero_free_mass(n, q)
    assert theory.gap_bound_with_training_law(n, q, small, delta) == theory.gap_bound(n, q, small, delta)


def test_rho_as_printed_and_exact() -> None:
    assert theory.rho((1, 4), (5 / 9, 4 / 9)) == pytest.approx(1)
    assert theory.rho((1,), (1.0,)) == pytest.approx(1.5)
    sums = [sum(x) for x in inputs(4, 5)]
    sparse = sparse_input_law(4, 5, "zero")
    below = sum(p * (sum(x) // 5) for x, p in sparse.items())
    above = sum(0.7 * (s // 5) + 0.3 * (s // 10) for s in sums) / len(sums)
    assert theory.rho_exact(4, 5, (1, 2), (0.7, 0.3)) == pytest.approx(above / below)
    assert theory.rho_exact(1, 5, (1, 2), (0.7, 0.3)) is None


@pytest.mark.parametrize(("n", "q"), [(1, 2), (2, 2), (8, 31), (16, 97), (32, 433), (128, 974_269), (256, 97)])
def test_a_choice_lies_in_the_papers_grid(n: int, q: int) -> None:
    k, r = theory.choose(n, q)
    assert 4 <= k <= 9
    assert 0.1 <= r <= 0.4
    if 0.1 < r < 0.4:
        assert theory.rho_exact(n, q, (1, k), (1 - r, r)) == pytest.approx(1)


def test_summary_has_the_promised_keys_and_is_json() -> None:
    result = summary(8, 31, k=5, r=0.2)
    assert set(result["expected_wraps"]) >= {"naive", "aux", "sparse_exact", "sparse_limit"}
    assert set(result["expected_wraps_floor"]) >= {"q", "kq", "aux"}
    assert result["expected_wraps"]["naive"] == pytest.approx(8 * 30 / 62)
    assert result["expected_wraps"]["aux"] == pytest.approx((0.8 + 0.2 / 5) * 8 * 30 / 62)
    assert result["expected_wraps"]["sparse_limit"] == pytest.approx(2 / 3 * 8 * 30 / 62)
    assert result["expected_wraps_floor"]["q"] == pytest.approx(7 * 30 / 62)
    assert result["rho"] == pytest.approx(1.26)
    assert result["wrap_law"][0] == result["p_no_wrap"]
    assert sum(result["wrap_law"]) == pytest.approx(1)
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    assert summary(8, 31, fill="nonzero")["kl_uniform_sparse"] is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n": 0}, "--n is 0"),
        ({"q": 1}, "--q is 1"),
        ({"k": 1}, "--k is 1"),
        ({"r": 0.0}, "--r is 0"),
        ({"r": 1.0}, "--r is 1"),
        ({"moduli": (1, 2), "weights": (0.5, 0.4)}, "--weights is 0.5,0.4, which sums to 0.9"),
        ({"moduli": (1, 2, 4), "weights": (0.5, 0.5)}, "--weights has 2 values for 3 moduli"),
        ({"moduli": (2, 4), "weights": (0.5, 0.5)}, "the first must be 1"),
        ({"moduli": (1, 2), "k": 3}, "not both"),
        ({"epsilon": -1.0}, "--epsilon is -1"),
        ({"delta": math.inf}, "--delta is inf"),
        ({"epsilon": math.nan}, "--epsilon is nan"),
        ({"fill": "ones"}, "--fill is 'ones'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(asked: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words) as refusal:
        summary(**({"n": 8, "q": 31} | asked))
    assert str(refusal.value).endswith(".")


def test_theory_needs_no_torch() -> None:
    code = "import sys, auxmod.problem.theory; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_choice_is_the_first_k_that_mostly_does_not_wrap_and_the_r_of_equal_wraps() -> None:
    assert (theory.GRID_K, theory.GRID_R) == ((4, 9), (0.1, 0.4))
    equal = 0
    for n, q in itertools.product((2, 4, 5, 8, 13, 15, 16, 17, 64), (2, 31, 97)):
        k, r = theory.choose(n, q)
        fits = [m for m in range(4, 9) if m >= n or theory.p_no_wrap(n, q, m) >= Fraction(1, 2)]
        assert k == (fits[0] if fits else 9)
        assert 0.1 <= r <= 0.4
        if 0.1 < r < 0.4:
            equal += 1
            assert theory.rho_exact(n, q, (1, k), (1 - r, r)) == pytest.approx(1)
    assert equal > 3


@pytest.mark.parametrize(
    ("weights", "words"), [((1.0,), "shorter"), ((0.5, 0.4), "sum to 0.9"), ((0.6, 0.5), "sum to 1.1")]
)
def test_each_modulus_needs_its_share_of_the_training(weights: tuple[float, ...], words: str) -> None:
    wraps = functools.partial(theory.expected_label_wraps, 4, 7)
    for quantity in (theory.rho, wraps, functools.partial(theory.rho_exact, 4, 7)):
        with pytest.raises(ValueError, match=words):
            quantity((1, 2), weights)


def test_the_summary_is_of_the_largest_modulus_and_of_a_learned_training_law() -> None:
    n, q = 6, 7
    told = summary(n, q, moduli=(1, 2, 4), weights=(0.5, 0.25, 0.25))
    assert (told["k"], told["epsilon"], told["delta"]) == (4, 1.0, 0.0)
    assert told["p_no_wrap"] == float(theory.p_no_wrap(n, q, 4))
    assert told["wrap_law"] == laws.wrap_law(n, q, 4)
    assert told["expected_wraps_floor"]["kq"] == float(theory.expected_wraps_floor(n, q, 4))
    sparse = theory.expected_sparse_wraps(n, q) / float(theory.expected_wraps(n, q))
    assert told["sparse_constant"] == pytest.approx(sparse)
    assert [each["multiplier"] for each in told["moduli"]] == [1, 2, 4]
    assert theory.gap_bound_with_training_law(n, q) == 0
    assert theory.gap_bound(n, q) == pytest.approx((1 - 1 / q) ** n)


def test_where_nothing_wraps_the_smallest_r_is_chosen() -> None:
    assert theory.choose(1, 7) == (4, 0.1)


def test_distances_stay_finite_where_probabilities_are_below_the_smallest_float() -> None:
    assert laws.uniform_nonzero_law(200, 974_269)[0] == 0
    assert math.isfinite(theory.kl_uniform_sparse(200, 974_269))


@pytest.mark.parametrize(
    "law",
    [
        laws.wrap_counts, laws.wrap_law, laws.sparse_wrap_law, theory.expected_wraps, theory.expected_wraps_floor,
        theory.p_no_wrap, theory.p_no_wrap_as_printed,
        lambda n, q, k: laws.mixed_wrap_law(n, q, (1, k), (0.75, 0.25)),
        lambda n, q, k: theory.expected_label_wraps(n, q, (1, k), (0.75, 0.25)),
        lambda n, q, k: theory.rho_exact(n, q, (1, k), (0.75, 0.25)),
        lambda n, q, k: theory.choose(n, q),
        lambda n, q, k: laws.sum_probability(n, q, 5 * k),
        lambda n, q, k: laws.sum_law(n, q).tolist(),
        lambda n, q, k: laws.sum_law_error(n, q),
        lambda n, q, k: theory.risk_ratio(n, q),
        lambda n, q, k: theory.tv_sparse_uniform(n, q),
        lambda n, q, k: theory.kl_sparse_uniform(n, q),
        lambda n, q, k: summary(n, q, k=k),
    ],
)  # fmt: skip
@pytest.mark.parametrize("problem", [(16, 97, 4), (40, 999, 3)])
def test_numbers_of_numpys_overflow_nothing(law: Callable[..., Any], problem: tuple[int, int, int]) -> None:
    assert law(*map(np.int64, problem)) == law(*problem)


def test_small_numbers_of_numpys_overflow_nothing_either() -> None:
    for fill in ("zero", "nonzero"):
        figures = theory.expected_sparse_wraps_floor(np.uint8(4), np.uint8(200), fill)  # type: ignore[arg-type]
        assert figures == theory.expected_sparse_wraps_floor(4, 200, fill)


def test_the_share_of_inputs_that_others_hold() -> None:
    assert theory.seen_share(2, 2, 1) == pytest.approx(1 / 4)
    assert theory.seen_share(2, 2, 2) == pytest.approx(1 - (3 / 4) ** 2)
    assert theory.seen_share(128, 974269, 10**7) < 1e-300
    held = np.isin(np.arange(9**3), np.random.default_rng(1).integers(0, 9**3, 500)).mean()
    assert theory.seen_share(3, 9, 500) == pytest.approx(held, abs=0.05)


def test_a_run_knows_its_share_only_if_both_its_inputs_are_uniform() -> None:
    small = build(n=2, q=5, samples=1_000)
    assert theory.seen_by(small) == theory.seen_share(2, 5, 1_000)
    assert 0.01 < theory.SEEN <= (theory.seen_by(small) or 0)
    assert theory.seen_by(build(n=2, q=5, samples=1_000, method="sparse")) is None
    own = dataclasses.replace(small, training=dataclasses.replace(small.training, data="own.npz"))
    assert theory.seen_by(own) is None


def test_the_box_reaches_a_fifth_to_both_sides_of_one_whatever_the_rounding() -> None:
    inside, outside = (1, 0.8, 1.2, 0.8 - 1e-12, 1.2 + 1e-12), (0.79, 1.21, 0, -1, 2, 2.9)
    assert [*map(theory.in_box, inside)] == [True] * len(inside)
    assert [*map(theory.in_box, outside)] == [False] * len(outside)
