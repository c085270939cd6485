"""Tests of inputs: uniform, or sparse as Saxena et al. define it; any slice of a data set can be made by itself."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from auxmod.config import Distribution, Fill
from auxmod.problem import sampling
from tiny import tiny

CPU = torch.device("cpu")


def make(distribution: Distribution = "uniform", fill: Fill = "zero", **values: Any) -> torch.Tensor:
    values = {"seed": 0, "stream": "train", "start": 0, "device": CPU} | values
    return sampling.inputs(distribution, fill, **values)


def nonzero_law(n: int, q: int, fill: Fill) -> np.ndarray[Any, Any]:
    """P(z' entries differ from 0), z' = 0..N: z ~ g(z) ∝ 1/√(N−z+1), and each filled entry is 0 with 1/q or never."""
    g = np.array([1 / np.sqrt(n - z + 1) for z in range(1, n + 1)])
    g /= g.sum()
    if fill == "nonzero":
        return np.concatenate([[0.0], g])
    return sum(g[z - 1] * stats.binom.pmf(np.arange(n + 1), z, 1 - 1 / q) for z in range(1, n + 1))


@pytest.mark.parametrize("fill", ["zero", "nonzero"])
@pytest.mark.parametrize(("n", "q"), [(1, 5), (6, 3), (8, 97), (16, 31)])
def test_the_sparse_law_of_nonzeros(n: int, q: int, fill: Fill) -> None:
    count = 40_000
    x = make("sparse", fill, count=count, n=n, q=q)
    seen = np.bincount((x != 0).sum(1).numpy(), minlength=n + 1)
    expected = count * nonzero_law(n, q, fill)
    large = expected > 5
    assert seen[expected == 0].sum() == 0
    if large.sum() > 1:
        observed, wanted = seen[large], expected[large]
        wanted *= observed.sum() / wanted.sum()
        assert stats.chisquare(observed, wanted).pvalue > 0.001


def test_sparse_places_and_values_are_uniform() -> None:
    n, q = 5, 7
    x = make("sparse", "nonzero", count=60_000, n=n, q=q)
    assert stats.chisquare((x != 0).sum(0).numpy()).pvalue > 0.001
    assert stats.chisquare(torch.bincount(x[x != 0], minlength=q)[1:].numpy()).pvalue > 0.001
    pairs = x[(x != 0).sum(1) == 2] != 0  # which two places: each pair equally often
    counts = [int((pairs[:, a] & pairs[:, b]).sum()) for a, b in combinations(range(n), 2)]
    assert stats.chisquare(counts).pvalue > 0.001


def test_zero_fill_fills_from_zero() -> None:
    x = make("sparse", "zero", count=60_000, n=1, q=5)  # N = 1: the one entry is always filled
    assert stats.chisquare(torch.bincount(x[:, 0], minlength=5).numpy()).pvalue > 0.001


def test_uniform_inputs_are_uniform() -> None:
    x = make(count=20_000, n=8, q=31)
    assert x.dtype == torch.int32
    for column in x.T:
        assert stats.chisquare(torch.bincount(column, minlength=31).numpy()).pvalue > 1e-4
    assert abs(np.corrcoef(x.numpy().T)[~np.eye(8, dtype=bool)]).max() < 5 / np.sqrt(len(x))


@given(st.sampled_from(["uniform", "sparse"]), st.integers(1, 9), st.integers(2, 10**6), st.integers(0, 50), st.data())
def test_any_slice_can_be_made_by_itself(dist: Distribution, n: int, q: int, start: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 20))
    whole = make(dist, count=start + count, n=n, q=q)
    assert torch.equal(make(dist, start=start, count=count, n=n, q=q), whole[start:])
    assert whole.min() >= 0
    assert whole.max() < q


def test_seeds_and_streams_differ() -> None:
    base = make(count=100, n=8, q=97)
    assert not torch.equal(base, make(count=100, n=8, q=97, seed=1))
    assert not torch.equal(base, make(count=100, n=8, q=97, stream="test"))


def test_test_inputs_are_not_training_inputs() -> None:
    train = {tuple(row) for row in make(count=2000, n=16, q=97).tolist()}
    test = {tuple(row) for row in make(count=2000, n=16, q=97, stream="test", seed=sampling.TEST_SEED).tolist()}
    assert not train & test


def test_the_law_is_a_law() -> None:
    law = sampling.sparse_law(7)
    assert float(law.sum()) == pytest.approx(1)
    assert law.tolist() == sorted(law.tolist())
    assert float(law[-1] / law[0]) == pytest.approx(np.sqrt(7))


def test_sparse_entries_are_filled_up_to_the_largest_and_no_further() -> None:
    """A value of q would be a wrong input, and q − 1 must occur: for either way of filling."""
    fills: list[tuple[Fill, int]] = [("zero", 0), ("nonzero", 1)]
    for fill, low in fills:
        filled = make("sparse", fill, count=3000, n=1, q=5)  # N = 1: the one entry is always filled
        assert sorted(set(filled.flatten().tolist())) == list(range(low, 5))


def test_the_test_inputs_never_change() -> None:
    """Figures of different days must answer the same questions."""
    rows = make(stream="test", seed=sampling.TEST_SEED, count=2, n=6, q=97)
    assert rows.tolist() == [[28, 40, 0, 16, 71, 24], [17, 86, 63, 84, 22, 51]]


@pytest.mark.parametrize("distribution", ["uniform", "sparse"])
def test_a_large_data_set_is_drawn_in_pieces(monkeypatch: pytest.MonkeyPatch, distribution: Distribution) -> None:
    """It stays the same, and few of its random bits exist at once: all of them would be many times as large as it."""
    whole = make(distribution, start=5, count=100, n=6, q=31)
    drawn: list[int] = []
    honest = sampling.rng.bits

    def noted(keys: int, counter: torch.Tensor) -> torch.Tensor:
        drawn.append(counter.numel())
        return honest(keys, counter)

    monkeypatch.setattr(sampling.rng, "bits", noted)
    monkeypatch.setattr(sampling, "AT_ONCE", 50)
    assert torch.equal(make(distribution, start=5, count=100, n=6, q=31), whole)
    assert max(drawn) <= 50
    drawn.clear()
    monkeypatch.setattr(sampling, "AT_ONCE", 1)  # less than a row
    assert torch.equal(make(distribution, start=5, count=100, n=6, q=31), whole)
    assert max(drawn) == 6


@pytest.mark.parametrize("method", ["aux", "sparse"])
def test_a_run_trains_on_the_first_rows_of_its_own_stream(method: str) -> None:
    config = tiny(method=method, seed=3)
    rows = make(config.method.distribution, seed=3, start=0, count=60, n=4, q=7)
    assert torch.equal(sampling.training(config, CPU), rows)
