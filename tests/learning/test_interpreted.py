"""The kernels without a GPU, in Triton's interpreter: in fp32 the trunk by hand is the plain one to rounding.

    TRITON_INTERPRET=1 pytest tests/learning/test_interpreted.py

needs Triton (`pip install triton`, and for its interpreter a numpy before 2.4) and takes minutes; without the variable
it skips. What it cannot show is how the kernels do in half precision and on the real thing: test_fused.py does.
"""

import itertools
import os

import pytest
import torch

from auxmod.learning import fused
from auxmod.learning.engine import Ensemble
from auxmod.learning.model import Dropout
from auxmod.learning.optimiser import Memory
from auxmod.settings import build

pytestmark = [
    pytest.mark.skipif(
        os.environ.get("TRITON_INTERPRET") != "1" or fused.kernels is None, reason="needs TRITON_INTERPRET=1 and Triton"
    ),
    pytest.mark.filterwarnings("ignore:Conversion of an array"),  # the interpreter's own
]
CPU, N, WIDTH, SAMPLES = torch.device("cpu"), 6, 64, 9
Gradients = dict[str, torch.Tensor]


def trunk_gradients(by_hand: bool, rate: float, pooling: str, **settings) -> Gradients:
    """Output, input gradient and every block parameter's gradient for one fixed stream, at one step."""
    common = {"n": N, "q": 97, "samples": 500, "width": WIDTH, "heads": 4, "hidden": 128, "layers": 2}
    runs = [build(**common, dropout=rate, pooling=pooling, **settings, seed=seed) for seed in range(2)]
    model = Ensemble(runs, CPU)
    make = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for p in model.encoder.parameters():
            p.add_(0.1 * torch.randn(p.shape, generator=make))  # norms and biases start alike
    dropout = Dropout(rate, model.dropout_keys, torch.tensor(5)) if rate else None
    x = torch.randn(2, SAMPLES * model.positions, WIDTH, generator=make).requires_grad_()
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
