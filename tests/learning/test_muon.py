"""Tests of Muon: steps are orthogonal matrices of a known size, member by member."""

import itertools
import math

import pytest
import torch

from auxmod.learning import muon
from auxmod.learning.engine import Ensemble
from tiny import tiny

CPU = torch.device("cpu")


def test_the_polynomials_bring_singular_values_near_one() -> None:
    x = torch.logspace(math.log10(0.004), 0, 10_000, dtype=torch.float64)
    for a, b, c in muon.POLYNOMIALS:
        x = a * x + b * x**3 + c * x**5
    assert x.min() > 0.86
    assert x.max() < 1.15


def with_singular_values(values: torch.Tensor, columns: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """A stack of matrices with these singular values, and its singular vectors."""
    make = torch.Generator().manual_seed(0)
    random = torch.randn(3, len(values), columns, dtype=torch.float64, generator=make)
    left, _, right = torch.linalg.svd(random, full_matrices=False)
    return left * values @ right, left, right


@pytest.mark.parametrize(("short", "long"), [(16, 16), (8, 32)])
@pytest.mark.parametrize("tall", [False, True])
def test_singular_vectors_stay(short: int, long: int, tall: bool) -> None:
    wide, left, right = with_singular_values(torch.linspace(0.1, 1, short, dtype=torch.float64), long)
    (x,) = muon.steps([wide.mT if tall else wide])
    x /= muon.SIZE * long**0.5
    inside = left.mT @ (x.mT if tall else x) @ right.mT
    values = inside.diagonal(dim1=-2, dim2=-1)
    assert values.min() > 0.8
    assert values.max() < 1.2
    assert (inside - torch.diag_embed(values)).abs().max() < 1e-9


def test_stacks_of_one_short_side_do_not_touch_each_other() -> None:
    stacks = [torch.randn(2, 6, 6), torch.randn(3, 6, 20), torch.randn(1, 20, 6), torch.zeros(1, 6, 20)]
    together, alone = muon.steps(stacks), [muon.steps([stack])[0] for stack in stacks]
    for a, b, stack in zip(together, alone, stacks, strict=True):
        assert a.shape == stack.shape
        torch.testing.assert_close(a, b)


def test_momentum_that_fades_steps_less_and_less_and_stays_finite() -> None:
    """If all units of a layer are dead, its momentum falls by a twentieth per step, below the smallest float."""
    x = torch.randn(1, 64, 256, generator=torch.Generator().manual_seed(0))
    sizes = [muon.steps([x * 10.0**-power])[0].norm() for power in range(45)]
    torch.testing.assert_close(sizes[:9], [sizes[0]] * 9)
    assert all(0 <= later <= 1.001 * earlier for earlier, later in itertools.pairwise(sizes))
    assert sizes[-1] < 1e-20


@pytest.mark.parametrize("power", [0, 1, 2])
def test_half_precision_is_enough(power: int) -> None:
    """Singular values that fall off quickly, as a gradient's do: none grows far past 1, and the large ones reach it."""
    values = torch.arange(1, 129, dtype=torch.float64) ** -power
    x, left, right = with_singular_values(values, 256)
    g, sizes = muon.normalised([(x @ x.mT).float()], torch.float16)
    inside = left.mT @ (muon.inverse_root(g).double() / sizes.sqrt() @ x) @ right.mT
    assert torch.linalg.svdvals(inside).max() < 1.6
    assert inside.diagonal(dim1=-2, dim2=-1)[:, values > 0.02].min() > 0.8


def test_a_step_is_momentum_made_orthogonal() -> None:
    stacks = [muon.Stack(0, 2, 4, 6), muon.Stack(48, 1, 9, 3)]
    p, m, g = (torch.randn(2, 80, dtype=torch.float64) for _ in range(3))
    lr, decay, beta, shrink = 0.1, 0.2, 0.9, 0.5
    scalars = torch.tensor([[1, shrink, lr, decay, beta, 0, 0, 0], [0, 0, 0, decay, 1, 0, 0, 0]], dtype=torch.float64)
    moved, momentum, half = p.clone(), m.clone(), torch.zeros_like(p)
    muon.update(moved, momentum, g, half, scalars, stacks)
    assert torch.equal(moved[1], p[1])  # the second member does not take the step
    assert torch.equal(momentum[1], m[1])
    assert torch.equal(half[:, :75], moved[:, :75])
    assert torch.equal(moved[:, 75:], p[:, 75:])  # no matrix lies there
    mean = beta * m[0] + shrink * g[0]
    aim = shrink * g[0] + beta * mean
    assert torch.allclose(momentum[0, :75], mean[:75])
    for start, rows, columns in ((0, 4, 6), (24, 4, 6), (48, 9, 3)):
        part = slice(start, start + rows * columns)
        (made,) = muon.steps([aim[part].view(1, rows, columns)])
        step = made.flatten()
        assert torch.allclose(moved[0, part], p[0, part] * (1 - lr * decay) - lr * step)


def test_it_learns_and_a_member_learns_what_it_would_alone() -> None:
    runs = [tiny(optimiser="muon", seed=seed, lr=3e-3, epochs=10, beta1=0.95) for seed in (0, 1)]
    together = Ensemble(runs, CPU, dtype=torch.float64)
    alone = Ensemble(runs[1:], CPU, dtype=torch.float64)
    first = last = None
    for event in together.fit():
        loss = getattr(event, "loss", None)
        first, last = first or loss, loss or last
    for _ in alone.fit():
        pass
    assert first is not None
    assert last is not None
    assert last[0] < first[0]
    assert torch.allclose(together.memory.parameters[1], alone.memory.parameters[0], rtol=1e-6, atol=1e-9)


def test_matrices_of_one_size_lie_end_to_end_and_queries_keys_and_values_are_three() -> None:
    memory = Ensemble([tiny(layers=2, width=8, hidden=24)], CPU).memory
    assert memory.stacks == [muon.Stack(0, 8, 8, 8), muon.Stack(512, 2, 8, 24), muon.Stack(896, 2, 24, 8)]
    square = Ensemble([tiny(layers=2, width=8, hidden=8)], CPU).memory
    assert square.stacks == [muon.Stack(0, 12, 8, 8)]
