"""Tests of the trunk by hand against the plain one. The kernels need a GPU; without one, tests that use them skip."""

import gc
import weakref

import pytest
import torch

from auxmod.config import Model
from auxmod.learning import fused, muon
from auxmod.learning.capture import captured
from auxmod.learning.engine import Ensemble
from auxmod.learning.model import Dropout
from auxmod.learning.optimiser import EPSILON, Memory, plain_adamw
from auxmod.settings import build

gpu = pytest.mark.skipif(
    fused.kernels is None or not torch.cuda.is_available(), reason="needs a CUDA device and Triton"
)
CUDA = torch.device("cuda")


def test_the_plain_trunk_serves_on_a_cpu_and_for_what_the_kernels_do_not_do():
    half = torch.float16
    assert not fused.supported(Model(), 16, torch.device("cpu"), half)
    if torch.cuda.is_available() and fused.kernels is not None:
        for able in (Model(), Model(norm="post"), Model(dropout=0.1)):
            assert fused.supported(able, 16, CUDA, half)
        for odd in (Model(activation="gelu"), Model(width=96, heads=3)):
            assert not fused.supported(odd, 16, CUDA, half)
        assert fused.supported(Model(), 200, CUDA, half)
        assert not fused.supported(Model(dropout=0.1), 200, CUDA, half)  # such long sums have PyTorch's attention
        assert not fused.supported(Model(), 16, CUDA, torch.float32)


def ensemble(monkeypatch, by_hand: bool, members: int = 2, **settings) -> Ensemble:
    """An ensemble on the GPU whose trunk is by hand, or the plain one."""
    common = {"n": 16, "q": 97, "k": 5, "r": 0.4, "samples": 2_000, "epochs": 20, "pooling": "mean"}
    with monkeypatch.context() as patch:
        if not by_hand:
            patch.setattr(fused, "supported", lambda *_: False)
        return Ensemble([build(**(common | settings), seed=seed) for seed in range(members)], CUDA)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.float() - b.float()).norm() / b.float().norm())


def trunk_gradients(model: Ensemble, n: int) -> dict[str, torch.Tensor]:
    """Output, input gradient and every block parameter's gradient for one fixed stream, at one step."""
    rate = model.encoder.model.dropout
    dropout = Dropout(rate, model.dropout_keys, torch.tensor(5, device=CUDA)) if rate else None
    make = torch.Generator(CUDA).manual_seed(7)
    samples = 300 if model.encoder.model.reads_first else 37  # one position per sample is little to average over
    x = torch.randn(len(model.configs), samples * n, 256, device=CUDA, generator=make).requires_grad_()
    named = {k: p for k, p in model.encoder.named_parameters() if k.startswith("blocks.")}
    if model._by_hand is not None:
        for view in model.memory.views.values():
            view.fill_(float("nan"))  # every gradient must be written
        y = model._by_hand(x, n, dropout)
        up = torch.randn(y.shape, device=CUDA, generator=make)
        (dx,) = torch.autograd.grad((y * up).sum(), x)
        return {"y": y.detach(), "dx": dx} | {k: model.memory.views[k].clone() for k in named}
    y = model.encoder.trunk(x, n, model.trunk_dtype, dropout)
    up = torch.randn(y.shape, device=CUDA, generator=make)
    dx, *gradients = torch.autograd.grad((y * up).sum(), [x, *named.values()])
    return {"y": y.detach(), "dx": dx} | dict(zip(named, gradients, strict=True))


@gpu
@pytest.mark.parametrize(
    ("n", "bias", "precision", "pooling", "heads"),
    [
        (16, True, "fp16", "mean", 4),
        (17, False, "fp16", "mean", 4),
        (64, True, "fp16", "mean", 4),
        (64, True, "fp16", "mean", 1),  # heads too wide for one program
        (100, True, "bf16", "mean", 4),
        (200, True, "fp16", "mean", 4),
        (17, True, "fp16", "cls", 4),
        (65, True, "bf16", "cls", 4),
        (9, True, "fp16", "cls", 4),
        (32, False, "fp16", "first", 4),
    ],
)
@pytest.mark.parametrize("more", [{}, {"norm": "post"}, {"dropout": 0.1}, {"norm": "post", "dropout": 0.3}], ids=str)
def test_forward_and_every_gradient_are_as_close_to_fp32_as_the_plain_half_precision_trunk(
    monkeypatch, n, bias, precision, pooling, heads, more
):
    settings = {"bias": bias, "pooling": pooling, "heads": heads, **more}
    if more.get("dropout") and (n > fused.LONGEST or heads == 1):
        pytest.skip("with dropout the plain trunk serves there")
    exact = trunk_gradients(ensemble(monkeypatch, False, **settings, precision="fp32"), n)
    plain = trunk_gradients(ensemble(monkeypatch, False, **settings, precision=precision), n)
    by_hand = ensemble(monkeypatch, True, **settings, precision=precision)
    assert by_hand._by_hand is not None
    ours = trunk_gradients(by_hand, n)
    assert ours.keys() == exact.keys()
    rounding = {"fp16": 1e-3, "bf16": 2e-3}[precision]  # of the output's gradient, which the plain trunk has in fp32
    for name, reference in exact.items():
        assert torch.isfinite(ours[name]).all(), name
        assert distance(ours[name], reference) < 1.3 * distance(plain[name], reference) + rounding, name


def all_gradients(model: Ensemble) -> dict[str, torch.Tensor]:
    """Every parameter's gradient for the first batch, from the embedding to the loss."""
    model._draw_order(0)
    features, index, total = model._begin()
    losses = model._end(model._trunk(model._embed(features)), index, total)
    others = {k: p for k, p in model.encoder.named_parameters() if model._by_hand is None or "blocks." not in k}
    gradients = torch.autograd.grad((1024 * losses).sum(), list(others.values()))
    by_hand = {} if model._by_hand is None else {k: v.clone() for k, v in model.memory.views.items() if "blocks." in k}
    return dict(zip(others, gradients, strict=True)) | by_hand


@gpu
@pytest.mark.parametrize(
    "settings",
    [
        {"pooling": "cls"},
        {"embedding": "token"},
        {"embedding": "token", "pooling": "cls"},
        {"embedding": "token", "norm": "post", "dropout": 0.1},
        {"pooling": "cls", "norm": "post"},
    ],
)
def test_from_embedding_to_loss_every_gradient_is_right(monkeypatch, settings):
    exact = all_gradients(ensemble(monkeypatch, False, precision="fp32", **settings))
    ours = all_gradients(ensemble(monkeypatch, True, precision="fp16", **settings))
    assert ours.keys() == exact.keys()
    assert max((distance(ours[name], reference), name) for name, reference in exact.items())[0] < 0.05


@gpu
def test_one_pass_adamw_is_the_plain_one():
    make = torch.Generator(CUDA).manual_seed(1)
    rows = [torch.rand(3, 5000, device=CUDA, generator=make) for _ in range(3)]
    gradients = torch.randn(3, 3000, device=CUDA, generator=make).half()
    scalars = torch.rand(3, 8, device=CUDA, generator=make) * 0.5 + 0.1
    scalars[:, 0] = torch.tensor([1.0, 0.0, 1.0])
    gradients[1, 5] = torch.inf  # the member that does not take the step
    results = []
    for apply in (lambda *a: fused.updates.adamw(*a, EPSILON), plain_adamw):
        copies, half = [r.clone() for r in rows], torch.zeros_like(gradients)
        apply(*(c[:, :3000] for c in copies), gradients, half, scalars)
        results.append([*copies, half])
    (*ours, our_half), (*plain, plain_half) = results
    torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(our_half, plain_half, rtol=2e-3, atol=1e-5)  # one unit in the last place


@gpu
def test_one_pass_muon_is_the_plain_one():
    make = torch.Generator(CUDA).manual_seed(1)
    p, m = (torch.rand(3, 5000, device=CUDA, generator=make) for _ in range(2))
    gradients = torch.randn(3, 3072, device=CUDA, generator=make).half()
    scalars = torch.rand(3, 8, device=CUDA, generator=make) * 0.5 + 0.1
    scalars[:, 0] = torch.tensor([1.0, 0.0, 1.0])
    gradients[1, 5] = torch.inf  # the member that does not take the step
    stacks = [muon.Stack(0, 1, 48, 16), muon.Stack(768, 1, 16, 128), muon.Stack(2816, 1, 16, 16)]
    results = []
    for one_pass in (True, False):
        copies, half = [t.clone() for t in (p, m)], torch.zeros_like(gradients)
        muon.update(*(c[:, :3072] for c in copies), gradients, half, scalars, stacks, one_pass)
        results.append([*copies, half])
    (moved, mean, half), (plain_moved, plain_mean, plain_half) = results
    torch.testing.assert_close(mean, plain_mean, rtol=1e-5, atol=1e-5)
    assert distance(moved - p, plain_moved - p) < 0.05  # half precision makes them orthogonal a little differently
    assert distance(half, plain_half) < 0.05


@gpu
@pytest.mark.parametrize("size", [256, 128, 96, 20])
def test_sums_of_products_are_the_plain_ones(size):
    make = torch.Generator(CUDA).manual_seed(2)
    x, y, z = (torch.randn(5, size, size, device=CUDA, generator=make).half() / 8 for _ in range(3))
    for rest in ((), (z, 3.5, -1.5, 0.25)):
        exact = muon.combine(x.double(), y.double(), *(t.double() if isinstance(t, torch.Tensor) else t for t in rest))
        assert distance(fused.updates.combine(x, y, *rest), exact) < 1e-3


@gpu
def test_the_lift_s_gradient_is_a_matrix_product():
    f, dh = torch.randn(3, 1001, 4, device=CUDA), torch.randn(3, 1001, 256, device=CUDA)
    weight, bias = fused.kernels.embed_backward(dh, f)
    torch.testing.assert_close(weight.double(), dh.double().mT @ f.double(), rtol=1e-4, atol=1e-3, check_dtype=False)
    torch.testing.assert_close(bias.double(), dh.double().sum(1), rtol=1e-4, atol=1e-3, check_dtype=False)


def curve(model: Ensemble, replay, steps: int) -> torch.Tensor:
    """The loss of each step."""
    model._draw_order(0)
    losses = []
    for step in range(steps):
        if step and step % model.training.steps_per_epoch == 0:
            model._draw_order(step // model.training.steps_per_epoch)
        replay()
        losses.append(model.loss_sum.clone())
        model.loss_sum.zero_()
    return torch.stack(losses)


@gpu
def test_captured_and_eager_learn_alike(monkeypatch):
    """fp32, 200 steps from one seed: the curves differ by rounding alone, less than 1 % of the loss at any step."""
    settings = {"precision": "fp32", "samples": 20_000, "init": 0.02}
    eager = ensemble(monkeypatch, False, **settings)
    replayed = ensemble(monkeypatch, False, **settings)
    replayed._draw_order(0)
    a = curve(eager, eager.eager_step, 200)
    b = curve(replayed, captured(replayed.step, replayed._changing(), CUDA), 200)
    assert a[-1].mean() < a[0].mean()
    apart = float(((a - b).abs() / a).max())
    assert apart < 1e-2, apart


@gpu
@pytest.mark.parametrize("more", [{}, {"norm": "post", "dropout": 0.1}], ids=str)
def test_by_hand_learns_what_fp32_learns(monkeypatch, more):
    settings = {"samples": 20_000, "init": 0.02, **more}
    curves = []
    for precision, by_hand in (("fp16", True), ("fp32", False)):
        model = ensemble(monkeypatch, by_hand, precision=precision, **settings)
        model._draw_order(0)
        curves.append(curve(model, captured(model.step, model._changing(), CUDA), 200))
    apart = distance(curves[0], curves[1])
    assert apart < 5e-3, apart


def test_parameters_gradients_and_halves_are_views_of_long_rows():
    encoder = Ensemble(
        [build(n=4, q=7, width=16, hidden=32, heads=2, layers=1, samples=500)], torch.device("cpu")
    ).encoder
    memory = Memory(encoder, torch.float16)
    with torch.no_grad():
        for p in encoder.parameters():
            p.fill_(2.0)
    assert set(memory.parameters.unique().tolist()) <= {0.0, 2.0}
    assert memory.halves.keys() == {f"blocks.0.{name}.weight" for name in ("qkv", "out", "up", "down")}
    memory.refresh()
    assert all((half == 2).all() for half in memory.halves.values())
    for name, view in memory.views.items():
        view.fill_(1.0)
        assert view.shape == dict(encoder.named_parameters())[name].shape
    total = sum(g.double().square().sum() for g in memory.gradients)
    assert total == sum(p.numel() for p in encoder.parameters())
    assert memory.gradient_norm().item() == pytest.approx(float(total) ** 0.5)


@gpu
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_capturing_a_step_changes_nothing(monkeypatch, precision):
    """Warming up takes real steps; afterwards every tensor that a step changes is as it was."""
    model = ensemble(monkeypatch, True, precision=precision)
    model._draw_order(0)
    before = [tensor.clone() for tensor in model._changing()]
    captured(model.step, model._changing(), CUDA)
    assert all(torch.equal(a, b) for a, b in zip(before, model._changing(), strict=True))
    if model.memory.half is not None:
        assert torch.equal(model.memory.half, model.state.parameters[:, : model.memory.half.shape[1]].half())


@gpu
@pytest.mark.filterwarnings("default")  # the compiler has some of its own
@pytest.mark.parametrize("more", [{}, {"norm": "post"}, {"dropout": 0.1}, {"embedding": "token"}], ids=str)
def test_where_there_is_no_kernel_a_compiled_step_is_captured(monkeypatch, recwarn, more):
    model = ensemble(monkeypatch, True, activation="gelu", **more)
    assert model._by_hand is None
    model._draw_order(0)
    captured(model.step, model._changing(), CUDA, model.eager_step)
    assert [str(each.message) for each in recwarn if "could not be captured" in str(each.message)] == []


@gpu
def test_a_replayed_step_keeps_its_ensemble_alive(monkeypatch):
    """The graph itself holds only addresses."""
    model = ensemble(monkeypatch, True)
    model._draw_order(0)
    replay, losses = captured(model.step, model._changing(), CUDA), model.loss_sum
    seen = weakref.ref(model)
    del model
    gc.collect()
    assert seen() is not None
    replay()
    assert torch.isfinite(losses).all()
    assert (losses > 0).all()
