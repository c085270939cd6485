"""Muon: steps are orthogonal matrices of a known size, member by member."""

import pytest
import torch

from auxmod.learning import muon
from auxmod.learning.engine import Ensemble
from tiny import tiny

CPU = torch.device("cpu")


@pytest.mark.parametrize(("rows", "columns"), [(16, 16), (8, 32), (32, 8)])
def test_singular_values_come_near_one_and_vectors_stay(rows: int, columns: int) -> None:
    make = torch.Generator().manual_seed(0)
    left, _, right = torch.linalg.svd(torch.randn(3, rows, columns, dtype=torch.float64, generator=make), False)
    spread = torch.linspace(0.1, 1, min(rows, columns), dtype=torch.float64)
    u = left * spread @ right
    x = muon.orthogonal(u)
    values = torch.linalg.svdvals(x)
    assert values.min() > 0.5
    assert values.max() < 1.3
    inside = left.mT @ x @ right.mT
    off = inside - torch.diag_embed(inside.diagonal(dim1=-2, dim2=-1))
    assert off.abs().max() < 1e-9


def test_a_step_is_momentum_made_orthogonal() -> None:
    shapes = {0: (4, 6), 24: (9, 3)}  # the second is three square matrices
    p, m, g = (torch.randn(2, 51, dtype=torch.float64) for _ in range(3))
    lr, decay, beta, shrink = 0.1, 0.2, 0.9, 0.5
    scalars = torch.tensor([[1, shrink, lr, decay, beta, 0, 0, 0], [0, 0, 0, decay, 1, 0, 0, 0]], dtype=torch.float64)
    moved, momentum = p.clone(), m.clone()
    muon.update(moved, momentum, g, scalars, shapes)
    assert torch.equal(moved[1], p[1])  # it did not take the step
    assert torch.equal(momentum[1], m[1])
    mean = beta * m[0] + shrink * g[0]
    aim = shrink * g[0] + beta * mean
    assert torch.allclose(momentum[0], mean)
    for start, rows, columns in ((0, 4, 6), (24, 3, 3), (33, 3, 3), (42, 3, 3)):
        part = slice(start, start + rows * columns)
        step = muon.orthogonal(aim[part].view(1, rows, columns)).flatten() * 0.2 * max(rows, columns) ** 0.5
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
