"""Tests of sums, residues and points on the circle, against Python integers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from auxmod.problem import labels

N, Q, K = 128, 974269, 16
big_rows = st.lists(st.integers(0, Q - 1), min_size=N, max_size=N)


@given(big_rows)
def test_labels_are_exact_at_the_largest_size(row: list[int]) -> None:
    total = labels.sums(torch.tensor([row], dtype=torch.int32))
    assert total.tolist() == [sum(row)]
    assert labels.residues(total, Q).tolist() == [sum(row) % Q]
    assert labels.residues(total, K * Q).tolist() == [sum(row) % (K * Q)]
    assert labels.quotients(total, Q).tolist() == [sum(row) // Q]


def test_the_largest_sum_passes_31_bits_unharmed() -> None:
    row = torch.full((1, 4096), Q - 1, dtype=torch.int32)
    assert labels.sums(row).tolist() == [4096 * (Q - 1)]


@given(
    st.integers(2, 10**6).flatmap(
        lambda q: st.tuples(st.just(q), st.lists(st.integers(0, q - 1), min_size=1, max_size=200))
    ),
    st.integers(2, 64),
)
def test_the_identities_of_the_method(problem: tuple[int, list[int]], k: int) -> None:
    """f_Kq mod q = f_q, and (quotient·q + f_q) mod Kq = f_Kq."""
    q, row = problem
    total = labels.sums(torch.tensor(row, dtype=torch.int32))
    f_q, f_kq = labels.residues(total, q), labels.residues(total, k * q)
    assert int(f_kq % q) == int(f_q) == sum(row) % q
    assert int((labels.quotients(total, q) * q + f_q) % (k * q)) == int(f_kq)
    assert 0 <= int(f_q) < q


def test_moduli_broadcast_over_members() -> None:
    total = torch.tensor([[5, 20], [5, 20]])
    assert labels.residues(total, torch.tensor([[3], [7]])).tolist() == [[2, 2], [5, 6]]


@given(st.lists(st.integers(0, Q - 1), min_size=1, max_size=50))
def test_every_residue_comes_back_from_its_point(residues: list[int]) -> None:
    target = torch.tensor([0, 1, Q // 2, Q - 1, *residues])
    point = labels.points(target, Q)
    assert point.dtype == torch.float32
    assert labels.rounded(labels.values(point, Q), Q).tolist() == target.tolist()


@pytest.mark.parametrize("q", [2, 3, 97, 3329, 42899])
def test_all_residues_come_back_from_their_points(q: int) -> None:
    target = torch.arange(q)
    assert torch.equal(labels.rounded(labels.values(labels.points(target, q), q), q), target)


@given(st.integers(2, 16 * Q).flatmap(lambda m: st.tuples(st.integers(0, m - 1), st.just(m))))
def test_points_are_the_angle_rounded_once(case: tuple[int, int]) -> None:
    residue, modulus = case
    angle = residue / modulus * (2 * math.pi)
    expected = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64).float()
    assert (labels.points(torch.tensor(residue), modulus) - expected).abs().max() <= 2**-24


@given(st.floats(-1e3, 1e3, width=32), st.floats(-1e3, 1e3, width=32), st.integers(2, 10**6))
def test_a_value_lies_in_0_to_q_whatever_the_point(x: float, y: float, q: int) -> None:
    value = labels.values(torch.tensor([x, y]), q)
    assert 0 <= float(value) < q
    assert 0 <= int(labels.rounded(value, q)) < q
    if x * x + y * y > 1e-6:
        turns = math.atan2(y, x) / (2 * math.pi) % 1 * q
        gap = abs(float(value) - turns)
        assert min(gap, q - gap) < 1e-6 * q


@pytest.mark.parametrize("point", [(1.0, 0.0), (1.0, -0.0), (1.0, -1e-30), (1.0, -1e-12), (1.0, 1e-30)])
def test_the_ends_of_the_circle_meet(point: tuple[float, float]) -> None:
    value = labels.values(torch.tensor(point), 97)
    assert float(value) < 97
    assert int(labels.rounded(value, 97)) == 0


def test_rounding_up_to_q_is_0() -> None:
    assert labels.rounded(torch.tensor([96.4, 96.6, 0.4], dtype=torch.float64), 97).tolist() == [96, 0, 0]
