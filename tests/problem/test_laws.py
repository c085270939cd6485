"""Tests of the exact laws against enumeration of every input, against each other, and against Monte Carlo."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auxmod.errors import UserError
from auxmod.problem import laws

SMALL = [(n, q) for n in range(1, 7) for q in range(2, 8) if q**n <= 3000]
SIZES = st.tuples(st.integers(1, 40), st.integers(2, 10**6))


def inputs(n: int, q: int, first: int = 0):
    return itertools.product(range(first, q), repeat=n)


def sparse_wrap_oracle(n: int, q: int, k: int, fill: str) -> list[float]:
    """Every z and every filling, weighted one by one; positions do not change a sum."""
    weights = [1 / math.sqrt(n - z + 1) for z in range(1, n + 1)]
    law: Counter[int] = Counter()
    for z, weight in enumerate(weights, start=1):
        wraps = Counter(sum(x) // (k * q) for x in inputs(z, q, first=int(fill == "nonzero")))
        for d, count in wraps.items():
            law[d] += weight / sum(weights) * count / wraps.total()
    return [law[d] for d in range(max(law) + 1)]


@pytest.mark.parametrize(("n", "q"), SMALL)
def test_uniform_laws_are_those_of_every_input(n: int, q: int) -> None:
    sums = Counter(sum(x) for x in inputs(n, q))
    assert laws.sum_counts(n, q).tolist() == [sums[s] for s in range(n * (q - 1) + 1)]
    for s in range(-1, n * (q - 1) + 3):
        assert laws.sum_probability(n, q, s) == Fraction(sums[s], q**n)
    assert list(laws.below_counts(n, q)) == [sum(c for s, c in sums.items() if s < m * q) for m in range(n + 1)]
    for k in range(1, n + 3):
        wraps = Counter(sum(x) // (k * q) for x in inputs(n, q))
        assert laws.wrap_counts(n, q, k) == [wraps[d] for d in range(max(wraps) + 1)]


@pytest.mark.parametrize("fill", ["zero", "nonzero"])
@pytest.mark.parametrize(("n", "q"), SMALL)
def test_sparse_wrap_law_is_that_of_every_filling(n: int, q: int, fill: str) -> None:
    for k in (1, 2, n):
        law, oracle = laws.sparse_wrap_law(n, q, k, fill), sparse_wrap_oracle(n, q, k, fill)
        assert law[: len(oracle)] == pytest.approx(oracle, rel=1e-12)
        assert not any(law[len(oracle) :])


@pytest.mark.parametrize(("n", "q"), [(4, 5), (12, 7), (5, 97), (40, 31), (3, 1000), (64, 97), (2, 2)])
def test_law_of_the_sum_by_fourier_keeps_its_stated_error(n: int, q: int, monkeypatch) -> None:
    exact = np.array([count / q**n for count in laws.sum_counts(n, q)])
    monkeypatch.setattr(laws, "EXACT_WORK", 0)
    error = np.abs(laws.sum_law(n, q) - exact).max()
    assert error <= laws.sum_law_error(n, q) < 1e-12


def test_law_of_the_sum_at_a_large_support_agrees_with_the_wraps() -> None:
    n, q = 8, 97_001
    law = laws.sum_law(n, q)
    slices = [law[d * q : (d + 1) * q].sum() for d in range(n)]
    assert slices == pytest.approx(laws.wrap_law(n, q), abs=q * laws.sum_law_error(n, q))
    assert law[3 * q] == pytest.approx(float(laws.sum_probability(n, q, 3 * q)), abs=laws.sum_law_error(n, q))


@given(SIZES, st.integers(1, 45))
@settings(max_examples=60, deadline=None)
def test_wrap_law_is_a_law_and_a_larger_modulus_wraps_less(size: tuple[int, int], k: int) -> None:
    n, q = size
    counts, more = laws.wrap_counts(n, q, k), laws.wrap_counts(n, q, k + 1)
    assert sum(counts) == q**n
    assert min(counts) > 0
    tail, lower = _tails(counts, n), _tails(more, n)
    assert all(a >= b for a, b in zip(tail, lower, strict=True))


def _tails(counts: list[int], n: int) -> list[int]:
    return [sum(counts[d:]) for d in range(n + 1)]


@pytest.mark.parametrize("n", range(1, 9))
def test_wraps_of_a_large_modulus_are_eulerian(n: int) -> None:
    """D_q counts the descents of N uniform residues; as q → ∞ they are those of a random permutation."""
    eulerian = [
        sum((-1) ** i * math.comb(n + 1, i) * (d + 1 - i) ** n for i in range(d + 1)) / math.factorial(n)
        for d in range(n)
    ]
    assert laws.wrap_law(n, 10**6 + 3) == pytest.approx(eulerian, abs=1e-4)


def test_wraps_at_the_largest_size_agree_with_monte_carlo() -> None:
    n, q, k, draws = 256, 974_269, 4, 20_000
    x = np.random.default_rng(0).integers(0, q, size=(draws, n)).sum(axis=1)
    law = np.array(laws.wrap_law(n, q, k))
    seen = np.bincount(x // (k * q), minlength=law.size) / draws
    assert np.abs(seen - law).max() < 5 * math.sqrt(0.25 / draws)
    assert abs(seen @ np.arange(law.size) - law @ np.arange(law.size)) < 5 * np.std(x // (k * q)) / draws**0.5


@pytest.mark.parametrize("fill", ["zero", "nonzero"])
def test_sparse_wraps_agree_with_monte_carlo(fill: str) -> None:
    n, q, draws, rng = 48, 433, 40_000, np.random.default_rng(1)
    z = rng.choice(np.arange(n + 1), size=draws, p=laws.term_law(n))
    x = rng.integers(int(fill == "nonzero"), q, size=(draws, n)) * (np.arange(n) < z[:, None])
    law = np.array(laws.sparse_wrap_law(n, q, fill=fill))
    seen = np.bincount(x.sum(axis=1) // q, minlength=law.size) / draws
    assert np.abs(seen - law).max() < 5 * math.sqrt(0.25 / draws)


def test_mixed_law_weighs_the_moduli() -> None:
    mixed = laws.mixed_wrap_law(6, 11, (1, 2, 8), (0.5, 0.3, 0.2))
    each = [laws.wrap_law(6, 11, m) for m in (1, 2, 8)]
    assert mixed[0] == pytest.approx(0.5 * each[0][0] + 0.3 * each[1][0] + 0.2)
    assert mixed[-1] == pytest.approx(0.5 * each[0][-1])
    assert sum(mixed) == pytest.approx(1)


@pytest.mark.parametrize("fill", ["zero", "nonzero"])
@given(SIZES)
@settings(max_examples=40, deadline=None)
def test_nonzero_laws_are_laws(fill: str, size: tuple[int, int]) -> None:
    n, q = size
    assert laws.term_law(n).sum() == pytest.approx(1)
    assert laws.sparse_nonzero_law(n, q, fill).sum() == pytest.approx(1)
    assert laws.uniform_nonzero_law(n, q).sum() == pytest.approx(1)
    assert np.exp(laws.log_uniform_nonzero_law(n, q)) == pytest.approx(laws.uniform_nonzero_law(n, q), rel=1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: laws.wrap_law(0, 5), "--n is 0"),
        (lambda: laws.wrap_law(3, 1), "--q is 1"),
        (lambda: laws.wrap_law(3, 5, 0), "--k is 0"),
        (lambda: laws.wrap_law(3, 5, 1.5), "--k is 1.5"),
        (lambda: laws.wrap_law(2000, 5), "--n is 2000"),
        (lambda: laws.sparse_wrap_law(300, 5), "--n is 300"),
        (lambda: laws.sum_law(256, 974_269), "S_N takes 249412609 values"),
    ],
)
def test_what_makes_no_sense_or_is_too_large_is_refused_in_a_sentence(call, words: str) -> None:
    with pytest.raises(UserError, match=words) as refusal:
        call()
    assert str(refusal.value).endswith(".")


@pytest.mark.parametrize(("n", "q"), SMALL)
def test_the_law_of_the_sum_is_exact_where_that_is_cheap(n: int, q: int) -> None:
    sums = Counter(sum(x) for x in inputs(n, q))
    assert laws.sum_law(n, q).tolist() == [sums[s] / q**n for s in range(n * (q - 1) + 1)]
    assert laws.sum_law_error(n, q) == 2.0**-53
    assert laws.wrap_counts(n, q) == laws.wrap_counts(n, q, 1)  # k defaults to 1, q itself
    assert laws.wrap_law(n, q) == laws.wrap_law(n, q, 1)
    assert laws.sparse_wrap_law(n, q) == laws.sparse_wrap_law(n, q, 1, "zero")


def test_what_is_cheap_is_the_work_of_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(n: int, q: int) -> list[int]:
        raise AssertionError("counted in integers")

    monkeypatch.setattr(laws, "sum_counts", counted)
    for n, q in ((50, 201), (200, 13), (8, 7813)):  # n·n·q is just above 500,000
        assert laws.sum_law(n, q).sum() == pytest.approx(1)
        assert laws.sum_law_error(n, q) > 2.0**-53
    with pytest.raises(AssertionError, match="counted"):
        laws.sum_law(50, 200)  # n·n·q is exactly 500,000
    assert laws.sum_law_error(50, 200) == 2.0**-53


def test_the_limits_are_as_documented_and_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (laws.MOST_TERMS, laws.MOST_SPARSE_TERMS) == (1024, 256)
    assert (laws.MOST_SUMS, laws.EXACT_WORK) == (2**24, 500_000)
    monkeypatch.setattr(laws, "MOST_TERMS", 9)
    monkeypatch.setattr(laws, "MOST_SPARSE_TERMS", 5)
    monkeypatch.setattr(laws, "MOST_SUMS", 25)
    assert sum(laws.wrap_counts(9, 3)) == 3**9
    assert sum(laws.sparse_wrap_law(5, 3)) == pytest.approx(1)
    assert len(laws.sum_law(6, 5)) == 25
    for refused in (lambda: laws.wrap_counts(10, 3), lambda: laws.sparse_wrap_law(6, 3), lambda: laws.sum_law(25, 2)):
        with pytest.raises(UserError):
            refused()


@pytest.mark.parametrize(("n", "q"), [(64, 257), (1, 2**20), (3, 400_000), (128, 97)])
def test_the_stated_error_is_the_one_derived(n: int, q: int) -> None:
    length = next(2**i for i in itertools.count() if 2**i > n * (q - 1))
    assert laws.sum_law_error(n, q) == 2.0**-53 * (10 * n + 16 + 8 * math.log2(length))


def test_sines_near_their_zeros_keep_their_digits() -> None:
    length = 2**20
    near = np.array([1, length - 1, length + 1, 2 * length - 1])
    expected = math.sin(math.pi / length) * np.array([1, 1, -1, -1])
    assert laws._sine(near, length) == pytest.approx(expected, rel=1e-14, abs=0)


@pytest.mark.parametrize(("n", "q", "k"), [(4, 5, 1), (6, 2, 2), (8, 3, 3), (5, 2, 1)])
def test_the_sparse_law_ends_at_the_last_count_that_can_occur(n: int, q: int, k: int) -> None:
    assert len(laws.sparse_wrap_law(n, q, k)) == n * (q - 1) // (k * q) + 1


@pytest.mark.parametrize(("n", "q"), [(1, 2), (3, 2), (4, 5), (6, 7)])
def test_nonzero_counts_are_those_of_filling_one_by_one(n: int, q: int) -> None:
    weights = [1 / math.sqrt(n - z + 1) for z in range(1, n + 1)]
    filled = [0.0, *(weight / sum(weights) for weight in weights)]
    thinned = [
        sum(g * math.comb(z, w) * (1 - 1 / q) ** w * (1 / q) ** (z - w) for z, g in enumerate(filled) if z >= w)
        for w in range(n + 1)
    ]
    assert laws.sparse_nonzero_law(n, q, "nonzero") == pytest.approx(filled)
    assert laws.sparse_nonzero_law(n, q) == pytest.approx(thinned)
    uniform = [math.comb(n, w) * (1 - 1 / q) ** w * (1 / q) ** (n - w) for w in range(n + 1)]
    assert laws.uniform_nonzero_law(n, q) == pytest.approx(uniform)
    assert np.exp(laws.log_uniform_nonzero_law(n, q)) == pytest.approx(uniform)
