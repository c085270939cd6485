"""Tests of the loss of each method against a direct computation in float64, of the draws, and of decoding."""

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.learning.objective import Objective, collapse_penalty
from auxmod.problem import labels, rng
from tiny import tiny

CPU = torch.device("cpu")
B = 6
STEP = torch.tensor(3)

ANGULAR = [
    tiny(q=7, k=2, r=0.3, draw="sampled", seed=1),
    tiny(q=11, k=5, r=0.6, draw="expected", alpha=0.01),
    tiny(q=31, k=3, r=0.5, draw="fixed", seed=2),
    tiny(q=97, moduli=(1, 9), weights=(0.2, 0.8), draw="batched", seed=3),
]
TOKEN = [
    tiny(embedding="token", k=k, r=r, draw=draw, seed=k)
    for k, r, draw in ((2, 0.3, "sampled"), (5, 0.6, "expected"), (3, 0.5, "fixed"), (4, 0.8, "batched"))
]


def sums_and_index(configs: list[RunConfig], seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    total = torch.stack([torch.randint(c.problem.n * (c.problem.q - 1), (B,), generator=generator) for c in configs])
    return total, torch.randint(60, (len(configs), B), generator=generator)


def drawn_modulus(config: RunConfig, index: int, place: int, step: int) -> int:
    """The modulus that a visit is asked for: the first whose cumulative weight exceeds the visit's uniform number."""
    counter = {"sampled": step * B + place, "fixed": index, "batched": step}[config.method.draw]
    u = float(rng.uniforms(rng.key(config.seed, "label"), torch.tensor(counter)))
    cumulated = 0.0
    for j, weight in enumerate(config.method.weights):
        cumulated += weight
        if u < cumulated:
            return j
    return len(config.method.weights) - 1


def direct_loss(config: RunConfig, outputs: Tensor, total: Tensor, index: Tensor, step: int) -> float:
    """The loss of one member, computed for one sample and one modulus at a time."""
    q, moduli, weights = config.problem.q, config.method.moduli, config.method.weights

    def of(b: int, j: int) -> float:
        modulus, residue = moduli[j] * q, int(total[b]) % (moduli[j] * q)
        if config.model.embedding == "token":
            own = outputs[b, : max(moduli) * q]
            return float(F.cross_entropy(own, torch.tensor(residue)))
        angle = 2 * math.pi * residue / modulus
        x, y = outputs[b, 2 * j].item(), outputs[b, 2 * j + 1].item()
        return ((x - math.cos(angle)) ** 2 + (y - math.sin(angle)) ** 2) / 2

    losses = []
    for b in range(B):
        if config.method.draw == "expected":
            loss = sum(w * of(b, j) for j, w in enumerate(weights))
        else:
            loss = of(b, drawn_modulus(config, int(index[b]), b, step))
        square = float(outputs[b, 0] ** 2 + outputs[b, 1] ** 2)
        losses.append(loss + config.method.alpha * (square + 1 / square))
    return sum(losses) / B


@pytest.mark.parametrize("configs", [ANGULAR, TOKEN], ids=["angular", "token"])
def test_each_members_loss_is_the_direct_one(configs: list[RunConfig]) -> None:
    total, index = sums_and_index(configs)
    classes = max(max(c.method.moduli) * c.problem.q for c in configs)
    width = classes if configs is TOKEN else 4
    outputs = torch.randn(len(configs), B, width, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    together = Objective.of(configs, CPU).losses(outputs, total, index, STEP)
    for e, config in enumerate(configs):
        expected = direct_loss(config, outputs[e], total[e], index[e], int(STEP))
        assert float(together[e]) == pytest.approx(expected, rel=1e-5)
        alone = Objective.of([config], CPU).losses(outputs[e : e + 1], total[e : e + 1], index[e : e + 1], STEP)
        assert float(alone) == pytest.approx(float(together[e]), rel=1e-12)


def test_a_narrow_members_gradient_stays_in_its_own_classes() -> None:
    total, index = sums_and_index(TOKEN)
    outputs = torch.randn(len(TOKEN), B, 35, dtype=torch.float64).requires_grad_()
    Objective.of(TOKEN, CPU).losses(outputs, total, index, STEP).sum().backward()
    assert outputs.grad is not None
    for e, config in enumerate(TOKEN):
        own = max(config.method.moduli) * config.problem.q
        assert (outputs.grad[e, :, :own] != 0).all()
        assert (outputs.grad[e, :, own:] == 0).all()


def test_only_the_drawn_pair_is_learned() -> None:
    config = tiny(k=3, r=0.5, draw="sampled")
    total, index = sums_and_index([config])
    outputs = torch.randn(1, B, 4).requires_grad_()
    objective = Objective.of([config], CPU)
    objective.losses(outputs, total, index, STEP).sum().backward()
    assert outputs.grad is not None
    moved = (outputs.grad.view(B, 2, 2) != 0).all(-1)
    assert torch.equal(moved, objective.sample_weights(index, STEP)[0] == 1)
    assert moved.sum(1).tolist() == [1] * B


# -- draws ----------------------------------------------------------------------------------------------------


def drawn(config: RunConfig, steps: int, index: Tensor | None = None, batch: int = 50) -> Tensor:
    """One-hot draws of successive batches, (steps, batch, J)."""
    objective = Objective.of([config], CPU)
    index = torch.arange(batch)[None] if index is None else index
    return torch.stack([objective.sample_weights(index, torch.tensor(step))[0] for step in range(steps)])


@pytest.mark.parametrize("draw", ["sampled", "fixed", "batched"])
def test_moduli_are_drawn_as_often_as_their_weights_say(draw: str) -> None:
    config = tiny(moduli=(1, 2, 4), weights=(0.5, 0.3, 0.2), draw=draw)
    if draw == "batched":
        picks = drawn(config, 2000, batch=2)[:, 0]
    elif draw == "fixed":
        picks = drawn(config, 1, batch=4000)[0]
    else:
        picks = drawn(config, 60).flatten(0, 1)
    counts = picks.sum(0).numpy()
    assert stats.chisquare(counts, len(picks) * torch.tensor(config.method.weights).double().numpy()).pvalue > 0.001


def test_sampled_draws_are_fresh_at_every_visit() -> None:
    picks = drawn(tiny(k=2, r=0.5, draw="sampled"), 40)[..., 0]
    assert picks.std(0).min() > 0  # no sample always gets the same modulus
    assert abs(torch.corrcoef(picks)[~torch.eye(40, dtype=torch.bool)]).max() < 0.7
    assert picks.std(1).min() > 0  # nor does a batch


def test_fixed_draws_follow_the_sample_wherever_and_whenever_it_comes() -> None:
    config = tiny(k=2, r=0.5, draw="fixed")
    order = torch.randperm(50, generator=torch.Generator().manual_seed(0))
    first, later = drawn(config, 1)[0], drawn(config, 9, order[None])[8]
    assert torch.equal(first[order], later)
    assert 0.2 < float(first[:, 0].mean()) < 0.8


def test_batched_draws_are_one_a_batch() -> None:
    picks = drawn(tiny(k=2, r=0.5, draw="batched"), 40)[..., 0]
    assert (picks == picks[:, :1]).all()
    assert 0.2 < float(picks[:, 0].mean()) < 0.8


def test_expected_weights_are_the_weights() -> None:
    config = tiny(moduli=(1, 2, 4), weights=(0.5, 0.3, 0.2), draw="expected")
    picks = drawn(config, 2)
    torch.testing.assert_close(picks, torch.tensor(config.method.weights).expand_as(picks))


def test_seeds_draw_differently() -> None:
    a, b = (drawn(tiny(k=2, r=0.5, draw="sampled", seed=seed), 5) for seed in (0, 1))
    assert not torch.equal(a, b)


@given(
    st.lists(st.integers(1, 100), min_size=1, max_size=5),
    st.sampled_from(["sampled", "expected", "fixed", "batched"]),
    st.integers(0, 10**6),
)
def test_a_samples_weights_sum_to_1(parts: list[int], draw: str, step: int) -> None:
    weights = tuple(part / sum(parts) for part in parts)
    config = tiny(moduli=tuple(range(1, len(parts) + 1)), weights=weights, draw=draw)
    picks = Objective.of([config], CPU).sample_weights(torch.arange(20)[None], torch.tensor(step))
    torch.testing.assert_close(picks.sum(-1), torch.ones(1, 20))
    assert draw == "expected" or set(picks.unique().tolist()) <= {0.0, 1.0}


# -- the regulariser, features and decoding -------------------------------------------------------------------


@given(st.floats(-3, 3), st.floats(-3, 3))
def test_the_penalty_is_the_sparse_methods(x: float, y: float) -> None:
    square = x * x + y * y
    penalty = float(collapse_penalty(torch.tensor([x, y], dtype=torch.float64)))
    if square > 0.1:
        assert penalty == pytest.approx(square + 1 / square, rel=1e-4)
    assert math.isfinite(penalty)


def test_the_penalty_at_the_centre_has_a_finite_gradient() -> None:
    for start in (0.0, 1e-20, 1e-5):
        point = torch.full((2,), start, requires_grad=True)
        collapse_penalty(point).backward()
        assert point.grad is not None
        assert torch.isfinite(point.grad).all()


def test_features_are_a_point_for_each_modulus() -> None:
    config = tiny(q=7, moduli=(1, 3), weights=(0.5, 0.5))
    x = torch.arange(7).expand(1, 2, 7)
    features = Objective.of([config], CPU).features(x)
    assert features.shape == (1, 2, 7, 4)
    for value in range(7):
        angles = [2 * math.pi * value / modulus for modulus in (7, 21)]
        expected = [f(angle) for angle in angles for f in (math.cos, math.sin)]
        assert features[0, 1, value].tolist() == pytest.approx(expected, abs=1e-6)


def test_tokens_are_seen_as_they_are() -> None:
    x = torch.randint(7, (1, 3, 4))
    assert torch.equal(Objective.of([TOKEN[0]], CPU).features(x), x)


def outputs_for(configs: list[RunConfig], **options: Any) -> Tensor:
    width = 35 if configs is TOKEN else 4
    return torch.randn(len(configs), 200, width, generator=torch.Generator().manual_seed(0), **options)


@pytest.mark.parametrize("configs", [ANGULAR, TOKEN], ids=["angular", "token"])
def test_decoding_lies_below_q_and_reads_only_the_first_modulus(configs: list[RunConfig]) -> None:
    objective, outputs = Objective.of(configs, CPU), outputs_for(configs)
    values = objective.decode(outputs)
    assert values.dtype == torch.float64
    changed = outputs.clone()
    for e, config in enumerate(configs):
        first = config.problem.q if configs is TOKEN else 2
        assert ((values[e] >= 0) & (values[e] < config.problem.q)).all()
        changed[e, :, first:] = 1e6
    assert torch.equal(objective.decode(changed), values)


def test_decoding_undoes_the_target() -> None:
    for configs in (ANGULAR, TOKEN):
        objective = Objective.of(configs, CPU)
        for e, config in enumerate(configs):
            for answer in range(config.problem.q):
                outputs = outputs_for(configs)[:, :1] * 1e-3
                if configs is TOKEN:
                    outputs[e, 0, answer] = 1
                else:
                    angle = 2 * math.pi * answer / config.problem.q
                    outputs[e, 0, :2] = 5 * torch.tensor([math.cos(angle), math.sin(angle)])
                assert float(objective.decode(outputs)[e, 0].round()) % config.problem.q == answer


def test_every_visits_draw_is_the_one_its_number_gives() -> None:
    """Step by step and place by place, for each way of drawing, against Python."""
    configs = [tiny(k=3, r=0.5, draw=draw, seed=seed) for seed, draw in enumerate(("sampled", "fixed", "batched"))]
    objective = Objective.of(configs, CPU)
    index = torch.arange(3 * B).view(3, B) * 7
    for step in (0, 1, 2, 5, 40):
        drawn = objective.sample_weights(index, torch.tensor(step)).argmax(-1)
        for e, config in enumerate(configs):
            expected = [drawn_modulus(config, int(index[e, b]), b, step) for b in range(B)]
            assert drawn[e].tolist() == expected, (config.method.draw, step)


def test_the_largest_uniform_number_draws_the_last_modulus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights add up to 1 only up to rounding; the last modulus gets whatever is left over."""
    objective = Objective.of([tiny(moduli=(1, 2, 4), weights=(0.7, 0.2, 0.1), draw="sampled")], CPU)
    monkeypatch.setattr(
        rng, "uniforms", lambda keys, counter: torch.full_like(counter, 1 - 2.0**-53, dtype=torch.float64)
    )
    drawn = objective.sample_weights(torch.zeros(1, B, dtype=torch.int64), STEP)
    assert drawn[0].tolist() == [[0.0, 0.0, 1.0]] * B


def test_a_shift_is_the_constant_that_the_visits_number_gives() -> None:
    configs = [tiny(augment="shift", seed=4), tiny(seed=5)]
    objective = Objective.of(configs, CPU)
    x = torch.randint(7, (2, B, 4), generator=torch.Generator().manual_seed(0)).int()
    shifted, total = objective.shifted(x, x.sum(-1), STEP)
    for b in range(B):
        constant = int(rng.integers(rng.key(4, "shift"), torch.tensor(3 * B + b), 7))
        assert shifted[0, b].tolist() == [(value + constant) % 7 for value in x[0, b].tolist()]
    assert torch.equal(shifted[1], x[1])
    assert torch.equal(total, shifted.sum(-1))
    assert Objective.of([configs[1]], CPU).shifts is None


@pytest.mark.parametrize(
    "settings", [{"method": "auto"}, {"embedding": "token", "draw": "expected"}, {"draw": "sampled"}], ids=str
)
def test_rare_sums_weigh_more_at_moduli_above_q_up_to_a_members_own_limit(settings: dict[str, Any]) -> None:
    configs = [tiny(**settings, n=12, q=9, tails=tails) for tails in (1.0, 3.0, 100.0)]
    objective, method = Objective.of(configs, CPU), configs[0].method
    total = torch.arange(12 * 8 + 1).expand(3, -1)  # every sum of 12 numbers below 9
    mean, variance = 12 * 4, 12 * (9**2 - 1) / 12
    weights = objective.rarity(total)
    for e, most in enumerate((1.0, 3.0, 100.0)):
        for s, row in enumerate(weights[e].tolist()):
            rare = min(math.exp(0.75 / 2 * max(0.0, (s - mean) ** 2 / variance - 1.5**2)), most)
            assert row == pytest.approx([1.0, *[rare] * (len(method.moduli) - 1), *[1.0] * len(method.harmonics)])
    alike = Objective.of([tiny(**settings, n=12, q=9, tails=1.0)] * 3, CPU)
    assert alike.tails is None
    assert Objective.of([tiny(**settings, n=12, q=9, tails=1.5)], CPU).tails is not None
    angles = configs[0].model.angles
    outputs = torch.randn(3, 97, 2 * method.rungs if angles else 4 * 9, generator=torch.Generator().manual_seed(0))
    index = torch.arange(97).expand(3, -1)
    if angles:
        each = alike.angular_losses(outputs, total)
    else:
        each = alike.token_losses(outputs, labels.residues(total[..., None], alike.moduli[:, None]))
    own = (each * alike.sample_weights(index, STEP) * weights).sum(-1).mean(1)
    assert torch.allclose(objective.losses(outputs, total, index, STEP).double(), own, rtol=1e-5)
    assert objective.losses(outputs, total, index, STEP)[0] == alike.losses(outputs, total, index, STEP)[0]


def test_rare_sums_are_told_by_each_members_own_modulus() -> None:
    configs = [
        tiny(embedding="token", n=12, q=5, moduli=(1,), weights=(1.0,)),
        tiny(embedding="token", n=12, q=9, moduli=(1, 2, 4), weights=(0.5, 0.25, 0.25), tails=20.0),
        tiny(embedding="token", n=12, q=11, k=3, r=0.5, draw="expected", tails=3.0),
    ]
    total = torch.stack([torch.arange(12 * 4 + 1) * (c.problem.q - 1) // 4 for c in configs])
    index, outputs = torch.arange(49).expand(3, -1), torch.randn(3, 49, 36, generator=torch.Generator().manual_seed(0))
    together = Objective.of(configs, CPU).losses(outputs, total, index, STEP)
    for e, config in enumerate(configs):
        alone = Objective.of([config], CPU)
        own = outputs[e : e + 1, :, : int(alone.moduli.max())]
        assert together[e] == pytest.approx(alone.losses(own, total[e : e + 1], index[:1], STEP).item(), rel=1e-5)


def test_the_penalty_weighs_no_more_for_rare_sums() -> None:
    total, index = torch.arange(12 * 8 + 1)[None], torch.arange(97)[None]
    outputs = torch.randn(1, 97, 4, generator=torch.Generator().manual_seed(0))

    def loss(alpha: float, tails: float) -> float:
        config = tiny(n=12, q=9, draw="expected", alpha=alpha, tails=tails)
        return Objective.of([config], CPU).losses(outputs, total, index, STEP).item()

    assert loss(0.1, 20.0) - loss(0.0, 20.0) == pytest.approx(loss(0.1, 1.0) - loss(0.0, 1.0), rel=1e-4)
    assert loss(0.0, 20.0) > 1.1 * loss(0.0, 1.0)


def test_a_single_modulus_may_be_asked_of_all_points_too() -> None:
    config = tiny(moduli=(1,), weights=(1.0,), asked="all")
    objective, (total, _) = Objective.of([config], CPU), sums_and_index([config])
    outputs = torch.randn(1, B, 2, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(objective.crossed_losses(outputs, total), objective.angular_losses(outputs, total))


def test_a_uniform_number_on_an_edge_draws_the_modulus_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    objective = Objective.of([tiny(moduli=(1, 2), weights=(0.5, 0.5), draw="sampled")], CPU)
    monkeypatch.setattr(rng, "uniforms", lambda keys, counter: torch.full_like(counter, 0.5, dtype=torch.float64))
    drawn = objective.sample_weights(torch.zeros(1, B, dtype=torch.int64), STEP)
    assert drawn[0].tolist() == [[0.0, 1.0]] * B


def test_class_log_probabilities_are_turned_back_among_q_classes() -> None:
    """Class c of the inputs is class c + by of those that were asked, mod q; classes beyond q say nothing."""
    configs = [tiny(embedding="token", k=2, q=7), tiny(embedding="token", k=2, q=5)]
    objective, by = Objective.of(configs, CPU), torch.tensor([[3], [-1]]).expand(2, B)
    outputs = torch.randn(2, B, 14, generator=torch.Generator().manual_seed(2))
    turned = objective.turned_back(outputs, by)
    for e, q in enumerate((7, 5)):
        own = outputs[e, :, :q].log_softmax(-1)
        for c in range(q):
            assert torch.allclose(turned[e, :, c], own[:, (c + int(by[e, 0])) % q])
        assert torch.isneginf(turned[e, :, q:]).all()


def test_points_are_turned_back_by_their_own_modulus() -> None:
    config = tiny(q=7, k=3)
    objective = Objective.of([config], CPU)
    for total, by in ((5, 4), (20, 1), (0, 6), (9, -5)):
        asked = torch.cat([labels.points(torch.tensor([[(total + by) % m]]), m) for m in (7, 21)], -1)
        meant = torch.cat([labels.points(torch.tensor([[total % m]]), m) for m in (7, 21)], -1)
        assert torch.allclose(objective.turned_back(asked, torch.tensor([[by]])), meant, atol=1e-6)


@pytest.mark.parametrize(
    ("moduli", "harmonics", "order"),
    [
        ((1, 3), (2, 5), (1, 0, 2, 3)),
        ((1, 4, 2), (4, 2), (1, 2, 0, 4, 3)),
        ((1, 2, 3), (2,), (2, 0, 3)),  # a sum known mod 3q says nothing of it mod 2q
    ],
    ids=str,
)
def test_points_are_read_from_coarse_to_fine_by_how_sure_they_are(
    moduli: tuple[int, ...], harmonics: tuple[int, ...], order: tuple[int, ...]
) -> None:
    """Sample by sample in Python: each moves the answer by its share of f²·R²/(1.1 − R²), R cut off at 1."""
    q, rungs = 97, len(moduli) + len(harmonics)
    config = tiny(q=q, moduli=moduli, weights=(1 / rungs,) * rungs, harmonics=harmonics)
    outputs = 0.9 * torch.randn(1, 40, 2 * rungs, generator=torch.Generator().manual_seed(3))
    decoded = Objective.of([config], CPU).decode(outputs)[0].tolist()
    frequencies = [*(1 / m for m in moduli), *harmonics]
    for row, value in zip(outputs[0].double().tolist(), decoded, strict=True):
        answer = total = 0.0
        for j in order:
            (x, y), f = row[2 * j : 2 * j + 2], frequencies[j]
            square = min(1.0, x * x + y * y)
            trust = f * f * square / (1.1 - square)
            gap, total = math.atan2(y, x) / math.tau - f * answer, total + trust
            answer += (gap - round(gap)) / f * trust / total
        distance = abs(value - answer * q) % q
        assert min(distance, q - distance) < 1e-6


def test_a_doubtful_point_is_settled_by_coarser_rungs() -> None:
    """The point of q is opposite to where it should be, but short; those of 2q and 4q know better."""
    q, total = 97, 3 * 97 + 20
    config = tiny(q=q, moduli=(1, 2, 4), weights=(0.25,) * 4, harmonics=(2,))
    rungs = [(-0.3, q, 1), (1.0, 2 * q, 1), (1.0, 4 * q, 1), (1.0, q, 2)]
    outputs = torch.cat([size * labels.points(torch.tensor(h * total % m), m) for size, m, h in rungs])
    assert float(Objective.of([config], CPU).decode(outputs.view(1, 1, -1))) == pytest.approx(20, abs=0.5)


def test_the_penalty_at_the_centre_is_large_and_positive() -> None:
    assert float(collapse_penalty(torch.zeros(2))) == pytest.approx(1e6)
