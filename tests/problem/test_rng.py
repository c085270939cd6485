"""Tests of the generator: it is SplitMix64 as published, equal to Python integers, and random by statistical tests."""

import hashlib
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from auxmod.problem import rng

CPU = torch.device("cpu")
WORD = 2**64 - 1
COUNT = 100_000


def reference(key: int, counter: int) -> int:
    """Number ``counter`` of the stream, as SplitMix64's authors write it, in Python integers."""
    z = (key + (counter + 1) * 0x9E3779B97F4A7C15) & WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def unsigned(values: torch.Tensor) -> list[int]:
    return [value & WORD for value in values.tolist()]


keys = st.integers(-(2**63), 2**63 - 1)
counters = st.lists(st.integers(0, 2**62), min_size=1, max_size=5)


def test_published_outputs() -> None:
    """The first numbers of SplitMix64 seeded with 1234567, as every implementation has them."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert unsigned(rng.bits(1234567, torch.arange(3))) == expected


@given(keys, counters)
def test_bits_are_the_references(key: int, counter: list[int]) -> None:
    drawn = rng.bits(key, torch.tensor(counter))
    assert unsigned(drawn) == [reference(key, c) for c in counter]


@given(keys, counters, st.integers(1, 2**50))
def test_integers_and_uniforms_are_the_references(key: int, counter: list[int], high: int) -> None:
    words = [reference(key, c) for c in counter]
    assert rng.integers(key, torch.tensor(counter), high).tolist() == [(w >> 1) % high for w in words]
    assert rng.uniforms(key, torch.tensor(counter)).tolist() == [(w >> 11) / 2**53 for w in words]


@given(st.lists(keys, min_size=1, max_size=4), counters)
def test_many_keys_at_once_are_each_alone(many: list[int], counter: list[int]) -> None:
    together = rng.bits(torch.tensor(many)[:, None], torch.tensor(counter))
    alone = torch.stack([rng.bits(key, torch.tensor(counter)) for key in many])
    assert torch.equal(together, alone)


@given(keys)
def test_signed_is_twos_complement(value: int) -> None:
    assert rng.signed(value & WORD) == value
    assert rng.signed((value & WORD) + 2**64) == value  # what is above 64 bits is cut off


def test_a_key_is_a_digest_of_the_streams_name() -> None:
    digest = hashlib.blake2b(b"7/init/head.weight", digest_size=8).digest()
    assert rng.key(7, "init", "head.weight") == int.from_bytes(digest, "big", signed=True)


def test_streams_differ() -> None:
    names = [(s, *rest) for s in range(50) for rest in (("train",), ("test",), ("order", 0), ("order", 1))]
    assert len({rng.key(*name) for name in names}) == len(names)
    first = rng.bits(rng.key(0, "train"), torch.arange(1000))
    other = rng.bits(rng.key(0, "test"), torch.arange(1000))
    assert not np.intersect1d(first.numpy(), other.numpy()).size


def test_uniforms_are_uniform_and_uncorrelated() -> None:
    u = rng.uniforms(rng.key(0, "train"), torch.arange(COUNT)).numpy()
    assert 0 <= u.min() < u.max() < 1
    assert stats.kstest(u, "uniform").pvalue > 0.001
    assert stats.chisquare(np.bincount((u * 256).astype(int), minlength=256)).pvalue > 0.001
    for lag in (1, 2, 16, 97):
        assert abs(np.corrcoef(u[:-lag], u[lag:])[0, 1]) < 4 / math.sqrt(COUNT)
    pairs = (u[::2] * 16).astype(int) * 16 + (u[1::2] * 16).astype(int)
    assert stats.chisquare(np.bincount(pairs, minlength=256)).pvalue > 0.001


@pytest.mark.parametrize("bit", [0, 1, 31, 32, 62, 63])
def test_every_bit_is_fair(bit: int) -> None:
    ones = int(((rng.bits(rng.key(3, "bit"), torch.arange(COUNT)) >> bit) & 1).sum())
    assert stats.binomtest(ones, COUNT).pvalue > 0.001


@pytest.mark.parametrize("high", [2, 7, 97, 1000])
def test_integers_are_uniform(high: int) -> None:
    drawn = rng.integers(rng.key(1, "value"), torch.arange(COUNT), high)
    assert stats.chisquare(torch.bincount(drawn, minlength=high).numpy()).pvalue > 0.001


def test_neighbouring_keys_are_independent() -> None:
    a, b = (rng.uniforms(rng.key(seed, "train"), torch.arange(COUNT)).numpy() for seed in (0, 1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 4 / math.sqrt(COUNT)


@given(keys, st.lists(st.integers(0, 2**60), min_size=1, max_size=5))
def test_normals_are_box_and_mullers_of_two_numbers_each(key: int, counter: list[int]) -> None:
    def uniform(c: int) -> float:
        return (reference(key, c) >> 11) / 2**53

    expected = [
        math.sqrt(-2 * math.log1p(-uniform(2 * c))) * math.cos(2 * math.pi * uniform(2 * c + 1)) for c in counter
    ]
    assert rng.normals(key, torch.tensor(counter)).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_normals_are_normal() -> None:
    x = rng.normals(rng.key(0, "init"), torch.arange(COUNT)).numpy()
    assert stats.kstest(x, "norm").pvalue > 0.001
    assert abs(np.corrcoef(x[:-1], x[1:])[0, 1]) < 4 / math.sqrt(COUNT)
    assert np.isfinite(x).all()


@given(st.integers(0, 1000), st.integers(1, 300))
def test_a_permutation_is_one(seed: int, count: int) -> None:
    order = rng.permutation(rng.key(seed, "order", 0), count, CPU)
    assert sorted(order.tolist()) == list(range(count))


def test_permutations_are_uniform() -> None:
    """All 24 orders of four things, equally often."""
    drawn = torch.stack([rng.permutation(rng.key(seed, "order", 0), 4, CPU) for seed in range(4800)])
    _, counts = np.unique(drawn.numpy(), axis=0, return_counts=True)
    assert len(counts) == 24
    assert stats.chisquare(counts).pvalue > 0.001
