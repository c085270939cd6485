"""Tests of accuracies against brute force, and of chance levels against a guesser."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from auxmod.config import Embedding
from auxmod.problem import metrics


def brute_distance(a: float, b: int, q: int) -> float:
    """The distance to the nearest of b and its copies one turn away."""
    return min(abs(a - (b + turn * q)) for turn in (-1, 0, 1))


@given(
    st.integers(2, 10**6).flatmap(
        lambda q: st.tuples(st.just(q), st.floats(0, q, exclude_max=True), st.integers(0, q - 1))
    )
)
def test_the_distance_is_circular(case: tuple[int, float, int]) -> None:
    q, value, target = case
    error = metrics.circular_error(torch.tensor([value], dtype=torch.float64), torch.tensor([float(target)]), q)
    assert float(error) == pytest.approx(brute_distance(value, target, q), abs=1e-6)
    assert 0 <= float(error) <= q / 2


def test_neighbours_across_the_end_are_close() -> None:
    error = metrics.circular_error(torch.tensor([96.5, 0.5], dtype=torch.float64), torch.tensor([0.0, 96.0]), 97)
    assert error.tolist() == [0.5, 1.5]


def brute(q: int, values: list[float], rows: list[list[int]], taus: tuple[float, ...]) -> dict[str, Any]:
    """A member's figures, counted one sample at a time in Python."""
    by: dict[str, dict[int, list[int]]] = {"by_wraps": {}, "by_zeros": {}}
    match, within = 0, dict.fromkeys(taus, 0)
    for value, row in zip(values, rows, strict=True):
        target = sum(row) % q
        right = round(value) % q == target
        match += right
        for tau in taus:
            within[tau] += brute_distance(value, target, q) <= tau * q
        for name, bucket in (("by_wraps", sum(row) // q), ("by_zeros", row.count(0))):
            seen = by[name].setdefault(bucket, [0, 0])
            seen[0] += 1
            seen[1] += right
    tables = {
        name: [{"bucket": b, "samples": s, "correct": c} for b, (s, c) in sorted(table.items())]
        for name, table in by.items()
    }
    shares = {f"{tau:g}": count / len(rows) for tau, count in within.items()}
    return {"match": match / len(rows), "tau": shares, "samples": len(rows)} | tables


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.lists(st.integers(2, 40), min_size=1, max_size=3))
def test_a_tally_is_what_counting_one_by_one_gives(seed: int, n: int, qs: list[int]) -> None:
    taus = (0.0131, 0.0517, 0.4999)
    random = np.random.default_rng(seed)
    tally = metrics.Tally.empty(torch.tensor(qs), n, taus)
    rows: list[list[Any]] = [[] for _ in qs]
    values: list[list[float]] = [[] for _ in qs]
    for count in (5, 8):  # two batches
        x = np.stack([random.integers(0, q, (count, n)) * random.integers(0, 2, (count, n)) for q in qs])
        noise = random.normal(0, 0.7, (len(qs), count))
        value = np.stack([(row.sum(1) + e) % q for row, e, q in zip(x, noise, qs, strict=True)])
        tally.add(torch.from_numpy(value), torch.from_numpy(x))
        for e in range(len(qs)):
            rows[e] += x[e].tolist()
            values[e] += value[e].tolist()
    for e, report in enumerate(tally.report(True)):
        expected = brute(qs[e], values[e], rows[e], taus)
        assert {name: report[name] for name in expected} == expected


def test_a_perfect_and_a_constant_answer() -> None:
    q, n = 7, 3
    x = torch.cartesian_prod(*[torch.arange(q)] * n)[None]
    perfect, constant = metrics.Tally.empty(torch.tensor([q]), n), metrics.Tally.empty(torch.tensor([q]), n)
    perfect.add((x.sum(-1) % q).double(), x)
    constant.add(torch.zeros(1, q**n, dtype=torch.float64), x)
    assert perfect.report(False)[0]["match"] == 1
    assert set(perfect.report(False)[0]["tau"].values()) == {1.0}
    assert constant.report(False)[0]["match"] == pytest.approx(1 / q)


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize(("n", "q"), [(1, 2), (4, 7), (8, 31), (16, 97)])
def test_chance_is_what_a_guesser_gets(embedding: Embedding, n: int, q: int) -> None:
    """This holds whatever the targets are; here they are those of sparse inputs, mostly small."""
    count, random = 40_000, np.random.default_rng(0)
    x = random.integers(0, q, (count, n)) * (random.random((count, n)) < 0.3)
    guess = random.integers(0, q, count).astype(float) if embedding == "token" else random.random(count) * q
    tally = metrics.Tally.empty(torch.tensor([q]), n)
    tally.add(torch.from_numpy(guess)[None], torch.from_numpy(x)[None])
    report = tally.report(embedding == "angular")[0]
    levels = [(report["match"], report["chance"])]
    levels += [(share, report["tau_chance"][tau]) for tau, share in report["tau"].items()]
    for share, chance in levels:
        assert stats.binomtest(round(share * count), count, chance).pvalue > 1e-4


def test_the_tolerances_are_the_papers_and_the_sparse_methods() -> None:
    report = metrics.Tally.empty(torch.tensor([7]), 2).report(True)[0]
    assert list(report["tau"]) == list(report["tau_chance"]) == ["0.005", "0.01", "0.05", "0.1"]


def test_an_error_of_exactly_the_tolerance_is_within_it() -> None:
    tally = metrics.Tally.empty(torch.tensor([100]), 1, (0.05,))
    tally.add(torch.tensor([[5.0, 95.0, 5.001, 94.999]], dtype=torch.float64), torch.zeros(1, 4, 1, dtype=torch.int64))
    assert tally.within.tolist() == [[2]]
    tally = metrics.Tally.empty(torch.tensor([100]), 1, (0.29,))  # 0.29·100 is a little less than 29, as floats go
    tally.add(torch.tensor([[29.0, 71.0, 29.001]], dtype=torch.float64), torch.zeros(1, 3, 1, dtype=torch.int64))
    assert tally.within.tolist() == [[2]]


def test_tolerances_that_are_nearly_the_same_have_figures_of_their_own() -> None:
    report = metrics.Tally.empty(torch.tensor([7]), 2, (0.1234561, 0.1234564, 0.05)).report(True)[0]
    assert list(report["tau"]) == ["0.1234561", "0.1234564", "0.05"]


def test_one_sample_and_none() -> None:
    tally = metrics.Tally.empty(torch.tensor([7]), 2)
    assert tally.report(True)[0]["match"] == 0
    tally.add(torch.tensor([[3.0]], dtype=torch.float64), torch.tensor([[[1, 2]]]))
    report = tally.report(True)[0]
    assert (report["match"], report["samples"], report["tau"]["0.005"]) == (1, 1, 1)


def test_an_answer_that_is_no_number_is_wrong_and_counted() -> None:
    q, x = torch.tensor([5, 5]), torch.tensor([[[0, 0], [1, 0], [2, 3]]]).expand(2, 3, 2)
    tally = metrics.Tally.empty(q, 2)
    tally.add(torch.tensor([[0.0, 1.0, 0.0], [torch.nan, 1.0, torch.inf]], dtype=torch.float64), x)
    good, bad = tally.report(angles=True)
    assert (good["match"], "missing" in good) == (1.0, False)
    assert (bad["match"], bad["tau"]["0.1"], bad["missing"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3), 2)


@given(
    st.integers(2, 30).flatmap(lambda q: st.tuples(st.just(q), st.lists(st.integers(0, q - 1), min_size=1))),
    st.sampled_from([None, 0.005, 0.05, 0.13, 0.29, 0.5]),
    st.booleans(),
)
def test_the_best_constant_answer_is_the_best_of_all(
    case: tuple[int, list[int]], tau: float | None, angles: bool
) -> None:
    q, residues = case
    answers = np.arange(0, q, 0.25 if angles and tau else 1)  # where it is an angle the best lies midway between two
    bound = 0.0 if tau is None else tau * q
    right = [sum(brute_distance(float(a), r, q) <= bound + 1e-9 for r in residues) for a in answers]
    found = metrics.best_constant(torch.tensor(residues), q, tau, angles)
    assert found * len(residues) == pytest.approx(max(right))


def test_the_best_constant_answer_of_a_large_modulus_is_exact() -> None:
    apart = torch.arange(64) + 2**29
    assert metrics.best_constant(apart, 2**30, None, angles=True) == 1 / 64
    # 0.29·100 is 28.999999999999996, and the tolerance is 29 all the same
    assert metrics.best_constant(torch.tensor([0, 29, 58]), 100, 0.29, angles=False) == 1
    assert metrics.best_constant(torch.tensor([0, 59, 29]), 100, 0.29, angles=False) == 2 / 3
