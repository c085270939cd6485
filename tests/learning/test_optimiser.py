"""Tests that E members take AdamW's steps as torch.optim would for each, with own schedules; overflows are skipped."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from auxmod.config import RunConfig
from auxmod.learning import optimiser
from auxmod.learning.optimiser import Hyper, Memory, OptimiserState, apply, decide
from tiny import tiny

CPU = torch.device("cpu")
SHAPES = {"blocks.weight": (4, 5), "bias": (7,)}
CONFIGS = [
    tiny(epochs=20, lr=1e-2, clip=0.5, warmup=0.1, weight_decay=0.1),
    tiny(epochs=20, lr=3e-3, clip=0.0, warmup=0.0, weight_decay=0.0, beta1=0.8, beta2=0.95),
    tiny(epochs=20, lr=2e-2, clip=50.0, warmup=0.5, weight_decay=0.3),
]


class Parameters(nn.Module):
    """A matrix of a block and a vector outside, for E members."""

    def __init__(self, members: int, dtype: torch.dtype) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.blocks = nn.Module()

        def made(*shape: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(members, *shape, generator=generator, dtype=torch.float64).to(dtype))

        self.blocks.weight = made(*SHAPES["blocks.weight"])
        self.bias = made(*SHAPES["bias"])


@dataclass
class Case:
    """Our optimiser with parameters, ready for gradients."""

    module: Parameters
    memory: Memory
    state: OptimiserState
    hyper: Hyper

    @classmethod
    def of(cls, configs: list[RunConfig], dtype: torch.dtype = torch.float64, scaled: bool = False) -> "Case":
        module = Parameters(len(configs), dtype)
        memory = Memory(module)
        hyper = Hyper.of(configs, CPU)
        if dtype == torch.float64:
            hyper = Hyper(*(value.double() for value in vars(hyper).values()))
        return cls(module, memory, OptimiserState.start(memory.parameters, scaled), hyper)

    def step(self, number: int, gradients: dict[str, Tensor], losses: Tensor | None = None) -> None:
        """Give gradients of the unscaled losses, as a backward pass of the scaled ones would."""
        for name, gradient in gradients.items():
            scale = self.state.scale.view(-1, *[1] * (gradient.dim() - 1))
            self.memory.views[name].copy_(gradient * scale)
        losses = torch.zeros(len(self.state.scale)) if losses is None else losses
        losses = losses.to(self.state.scale.dtype)
        apply(self.state, self.memory, decide(self.state, self.memory, losses, torch.tensor(number), self.hyper))

    def values(self, member: int) -> dict[str, Tensor]:
        return {name: p.detach()[member].clone() for name, p in self.module.named_parameters()}


def random_gradients(members: int, step: int, dtype: torch.dtype) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1000 + step)
    size = 10 ** (2 * torch.rand((), generator=generator, dtype=torch.float64) - 1)
    return {
        name: (torch.randn(members, *shape, generator=generator, dtype=torch.float64) * size).to(dtype)
        for name, shape in SHAPES.items()
    }


def rate(step: int, warmup_steps: int, steps: int) -> float:
    """The learning rate as a share of its peak: up to 1 over the warm-up, then linearly down."""
    if step >= steps:
        return 0.0
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    return (steps - step) / (steps - warmup_steps)


class Oracle:
    """torch.optim.AdamW with a LambdaLR and torch's own clipping, for one member."""

    def __init__(self, config: RunConfig, start: dict[str, Tensor]) -> None:
        t = config.training
        self.clip = t.clip
        self.parameters = {name: nn.Parameter(value.clone()) for name, value in start.items()}

        def exact(value: float) -> float:  # ours are kept in float32
            return float(np.float32(value))

        self.adam = torch.optim.AdamW(
            self.parameters.values(),
            lr=exact(t.lr),
            betas=(exact(t.beta1), exact(t.beta2)),
            eps=1e-8,
            weight_decay=exact(t.weight_decay),
        )
        warmup_steps = max(1, round(t.warmup * t.steps))
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.adam, lambda s: rate(s, warmup_steps, t.steps))

    def step(self, gradients: dict[str, Tensor]) -> None:
        for name, gradient in gradients.items():
            self.parameters[name].grad = gradient.clone()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters.values(), self.clip)
        self.adam.step()
        self.schedule.step()


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 2e-4)])
@pytest.mark.parametrize("scaled", [False, True])
def test_each_member_is_stepped_as_torch_would(dtype: torch.dtype, tolerance: float, scaled: bool) -> None:
    case = Case.of(CONFIGS, dtype, scaled)
    oracles = [Oracle(config, case.values(e)) for e, config in enumerate(CONFIGS)]
    for step in range(100):
        gradients = random_gradients(len(CONFIGS), step, dtype)
        case.step(step, gradients)
        for e, oracle in enumerate(oracles):
            oracle.step({name: gradient[e] for name, gradient in gradients.items()})
            for name, value in case.values(e).items():
                expected = oracle.parameters[name].detach()
                torch.testing.assert_close(value, expected, rtol=tolerance, atol=tolerance)
    assert case.state.updates.tolist() == [100, 100, 100]


def test_the_norm_that_is_clipped_is_of_the_whole_member() -> None:
    """The norm is over all parameters of the member together, and not over other members."""
    case = Case.of([tiny(clip=1.0), tiny(clip=1.0)])
    gradients = random_gradients(2, 0, torch.float64)
    expected = [torch.cat([g[e].flatten() for g in gradients.values()]).norm() for e in (0, 1)]
    case.step(0, gradients)
    torch.testing.assert_close(case.memory.gradient_norm(), torch.stack(expected))


def test_clipping_is_by_that_norm() -> None:
    """A member whose gradient is twice as long as allowed steps as with half of it, and no other does."""
    free, gradients = [tiny(), tiny(seed=1)], random_gradients(2, 0, torch.float64)
    norm = torch.cat([g[0].flatten() for g in gradients.values()]).norm()
    clipped, halved = Case.of([tiny(clip=float(norm) / 2), free[1]]), Case.of(free)
    clipped.step(0, gradients)
    halved.step(0, {name: torch.stack((g[0] / 2, g[1])) for name, g in gradients.items()})
    torch.testing.assert_close(clipped.state.first, halved.state.first, rtol=1e-5, atol=0)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("where", ["gradient", "loss"])
def test_a_member_that_fails_stays_put_and_the_others_do_not_notice(bad: float, where: str) -> None:
    calm, hurt = Case.of(CONFIGS), Case.of(CONFIGS)
    for step in range(3):
        gradients = random_gradients(3, step, torch.float64)
        calm.step(step, gradients)
        losses = torch.zeros(3)
        gradients = {name: g.clone() for name, g in gradients.items()}
        if step >= 1 and where == "gradient":
            gradients["bias"][1, 2] = bad
        if step >= 1 and where == "loss":
            losses[1] = bad
        hurt.step(step, gradients, losses)
        if step == 0:
            before = hurt.values(1)
    for e in (0, 2):
        for name, value in calm.values(e).items():
            assert torch.equal(hurt.values(e)[name], value)
    for name, value in before.items():
        assert torch.equal(hurt.values(1)[name], value)
    assert hurt.state.dead.tolist() == [-1, 1, -1]
    assert hurt.state.streak.tolist() == [-torch.inf] * 3  # the mark of runs without a loss scale
    assert hurt.state.updates.tolist() == [3, 1, 3]
    assert torch.isfinite(hurt.state.parameters).all()
    assert torch.isfinite(hurt.state.first).all()
    assert torch.isfinite(hurt.state.second).all()


def test_a_dead_member_stays_dead() -> None:
    case = Case.of(CONFIGS)
    case.step(0, random_gradients(3, 0, torch.float64), torch.tensor([torch.nan, 0, 0]))
    before = case.values(0)
    for step in range(1, 4):
        case.step(step, random_gradients(3, step, torch.float64))
    assert case.state.dead.tolist() == [0, -1, -1]
    assert all(torch.equal(value, before[name]) for name, value in case.values(0).items())


def test_an_overflow_halves_the_scale_and_the_step_is_made_up() -> None:
    case = Case.of(CONFIGS[:2], scaled=True)
    assert case.state.scale.tolist() == [optimiser.SCALE_START] * 2
    gradients = random_gradients(2, 0, torch.float64)
    gradients["bias"][0, 0] = torch.inf
    case.step(0, gradients)
    assert case.state.scale.tolist() == [optimiser.SCALE_START / 2, optimiser.SCALE_START]
    assert case.state.updates.tolist() == [0, 1]
    assert case.state.dead.tolist() == [-1, -1]


def test_good_steps_grow_the_scale_and_a_bad_one_starts_the_count_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimiser, "SCALE_GROWTH_STEPS", 4)
    case = Case.of([tiny(epochs=100), tiny(epochs=100)], scaled=True)
    seen = []
    for step in range(9):
        gradients = random_gradients(2, step, torch.float64)
        if step == 2:
            gradients["bias"][1] = torch.nan
        case.step(step, gradients)
        seen.append((case.state.scale / optimiser.SCALE_START).tolist())
    assert [first for first, _ in seen] == [1, 1, 1, 2, 2, 2, 2, 4, 4]
    assert [second for _, second in seen] == [1, 1, 0.5, 0.5, 0.5, 0.5, 1, 1, 1]


def test_the_scale_has_a_top_and_a_bottom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimiser, "SCALE_GROWTH_STEPS", 1)
    case = Case.of([tiny(epochs=100)], scaled=True)
    for step in range(20):
        case.step(step, random_gradients(1, step, torch.float64))
    assert case.state.scale.tolist() == [optimiser.SCALE_MAX]
    bad = {name: g * torch.nan for name, g in random_gradients(1, 0, torch.float64).items()}
    for step in range(20, 44):
        case.step(step, bad)
    assert case.state.scale.tolist() == [1]
    assert case.state.dead.tolist() == [-1]
    case.step(44, bad)  # nothing left to halve
    assert case.state.dead.tolist() == [44]


def test_unscaled_members_never_grow_a_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimiser, "SCALE_GROWTH_STEPS", 1)
    case = Case.of([tiny(epochs=100)])
    for step in range(3):
        case.step(step, random_gradients(1, step, torch.float64))
    assert case.state.scale.tolist() == [1]


@pytest.mark.parametrize(
    ("settings", "warmup_steps"), [({"warmup": 0.0}, 1), ({"warmup": 0.25}, 5), ({"warmup": 0.99}, 20)]
)
def test_the_schedule(settings: dict[str, Any], warmup_steps: int) -> None:
    config = tiny(lr=2.0, epochs=1, samples=20, batch=1, **settings)
    hyper = Hyper.of([config], CPU)
    rates = [float(hyper.schedule(torch.tensor(step))) for step in range(21)]
    assert rates == pytest.approx([2 * rate(step, warmup_steps, 20) for step in range(21)])
    assert max(rates) == 2
    assert rates[-1] == 0
    assert min(rates[:-1]) > 0
