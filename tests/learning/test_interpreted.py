"""Tests of the kernels without a GPU, in Triton's interpreter: in fp32 they equal the plain functions up to rounding.

    TRITON_INTERPRET=1 pytest tests/learning/test_interpreted.py

needs Triton (`pip install triton`, and for its interpreter a numpy before 2.4) and takes minutes; without the variable
all tests skip. They cannot show how the kernels do in half precision and on a GPU: test_fused.py does.
"""

import itertools
import os

import pytest
import torch

from auxmod.learning import fused, muon
from auxmod.learning.engine import Ensemble
from auxmod.learning.model import Dropout
from auxmod.learning.optimiser import EPSILON, Memory, plain_adamw
from auxmod.settings import build

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") != "1" or fused.kernels is None, reason="needs TRITON_INTERPRET=1 and Triton"
    ),
    pytest.mark.filterwarnings("ignore:Conversion of an array"),  # the interpreter's own
]
CPU, N, WIDTH, SAMPLES = torch.device("cpu"), 6, 64, 9
Gradients = dict[str, torch.Tensor]


def trunk_gradients(by_hand: bool, rate: float, pooling: str, samples: int = SAMPLES, **settings) -> Gradients:
    """Output, input gradient and every block parameter's gradient for one fixed stream, at one step."""
    common = {"n": N, "q": 97, "samples": 500, "width": WIDTH, "heads": 4, "hidden": 128, "layers": 2}
    runs = [build(**common, dropout=rate, pooling=pooling, **settings, seed=seed) for seed in range(2)]
    model = Ensemble(runs, CPU)
    make = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in model.encoder.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=make))  # norms and biases start alike
    dropout = Dropout(rate, model.dropout_keys, torch.tensor(5)) if rate else None
    x = torch.randn(2, samples * model.positions, WIDTH, generator=make).requires_grad_()
    named = {name: p for name, p in model.encoder.named_parameters() if name.startswith("blocks.")}
    if by_hand:
        memory = Memory(model.encoder, torch.float32)
        for view in memory.views.values():
            view.fill_(float("nan"))  # every gradient must be written
        y = fused.FusedTrunk(model.encoder, memory.halves, memory.views)(x, model.positions, dropout)
    else:
        y = model.encoder.trunk(x, model.positions, torch.float32, dropout)
    loss = (y * torch.randn(y.shape, generator=make)).sum()
    if by_hand:
        (dx,) = torch.autograd.grad(loss, x)
        return {"y": y.detach(), "dx": dx} | {name: memory.views[name] for name in named}
    dx, *gradients = torch.autograd.grad(loss, [x, *named.values()])
    return {"y": y.detach(), "dx": dx} | dict(zip(named, gradients, strict=True))


@pytest.mark.parametrize(
    ("norm", "rate", "bias", "pooling"),
    list(itertools.product(("pre", "post"), (0.0, 0.3), (True, False), ("mean", "cls"))),
)
def test_the_trunk_by_hand_is_the_plain_one(norm: str, rate: float, bias: bool, pooling: str) -> None:
    ours, plain = (trunk_gradients(by_hand, rate, pooling, norm=norm, bias=bias) for by_hand in (True, False))
    assert ours.keys() == plain.keys()
    for name, reference in plain.items():
        assert float((ours[name] - reference).norm() / reference.norm()) < 1e-5, name


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_so_it_is_where_a_program_takes_several_blocks_of_rows(rate: float, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fused.kernels, fused.attention):
        monkeypatch.setattr(module, "PROGRAMS", 4)
    test = {"pooling": "mean", "samples": 60, "norm": "pre"}
    ours, plain = (trunk_gradients(by_hand, rate, **test) for by_hand in (True, False))
    for name, reference in plain.items():
        assert float((ours[name] - reference).norm() / reference.norm()) < 1e-5, name


def test_muons_two_passes_are_the_plain_ones() -> None:
    make = torch.Generator().manual_seed(3)
    p, m = (torch.randn(2, 1300, generator=make) for _ in range(2))
    gradients, step = (torch.randn(2, 1280, generator=make) for _ in range(2))
    scalars = torch.rand(2, 8, generator=make) * 0.5 + 0.1
    scalars[:, 0] = torch.tensor([1.0, 0.0])
    gradients[1, 5] = torch.inf  # the member that does not take the step
    results = []
    for ours in (fused.updates, muon):
        copies, half = [p.clone(), m.clone()], torch.zeros(2, 1280)
        aim = ours.momentum(copies[1][:, :1280], gradients, scalars)
        ours.descend(copies[0][:, :1280], step, half, scalars)
        results.append(([*copies, half], aim.float()))
    torch.testing.assert_close(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-2, atol=1e-3)  # a look ahead in bfloat16


def test_one_pass_adamw_is_the_plain_one() -> None:
    make = torch.Generator().manual_seed(1)
    rows = [torch.rand(2, 1500, generator=make) for _ in range(3)]
    gradients = torch.randn(2, 1100, generator=make)
    scalars = torch.rand(2, 8, generator=make) * 0.5 + 0.1
    scalars[:, 0] = torch.tensor([1.0, 0.0])
    gradients[1, 5] = torch.inf  # the member that does not take the step
    results = []
    for apply in (lambda *a: fused.updates.adamw(*a, EPSILON), plain_adamw):
        copies, half = [r.clone() for r in rows], torch.zeros_like(gradients)
        apply(*(c[:, :1100] for c in copies), gradients, half, scalars)
        results.append([*copies, half])
    torch.testing.assert_close(results[0], results[1], rtol=1e-5, atol=1e-6)


def test_products_of_matrices_are_what_they_are_called() -> None:
    make = torch.Generator().manual_seed(2)
    x, y, z = (torch.randn(2, 20, 20, generator=make) for _ in range(3))
    torch.testing.assert_close(fused.updates.combine(x, y, z, 3.5, -1.5, 0.25), muon.combine(x, y, z, 3.5, -1.5, 0.25))
    f, dh = torch.randn(2, 100, 4, generator=make), torch.randn(2, 100, WIDTH, generator=make)
    weight, bias = fused.kernels.embed_backward(dh, f)
    torch.testing.assert_close(weight, dh.mT @ f, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(bias, dh.sum(1), rtol=1e-4, atol=1e-4)
