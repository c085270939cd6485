"""Tests that a member learns what it learns alone, and that a run stopped after any event resumes as if it had not."""

import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.learning import engine
from auxmod.learning.engine import Ensemble, Finished, Progress, shape_of
from auxmod.learning.objective import Objective
from auxmod.learning.optimiser import Memory, OptimiserState
from auxmod.problem import labels, rng, sampling
from tiny import tiny

CPU = torch.device("cpu")
LONG: dict[str, Any] = {"samples": 100, "epochs": 10, "test_samples": 200}
"""A hundred steps."""


def trained(*configs: RunConfig, dtype: torch.dtype = torch.float64) -> tuple[Ensemble, list[Any]]:
    ensemble = Ensemble(configs, CPU, dtype=dtype)
    return ensemble, list(ensemble.fit())


def weights(ensemble: Ensemble, member: int) -> dict[str, Tensor]:
    return {name: p.detach()[member] for name, p in ensemble.encoder.named_parameters()}


def assert_alike(together: dict[str, Tensor], alone: dict[str, Tensor]) -> None:
    """Compare to within 1e-6 of the parameter's size, ignoring rows of a shared head that are not the member's."""
    for name, expected in alone.items():
        value = together[name][tuple(slice(size) for size in expected.shape)]
        error = (value - expected).abs().max() / expected.abs().max()
        assert error < 1e-6, f"{name}: {error:.1e}"


def assert_members_learn_as_alone(configs: list[RunConfig]) -> None:
    ensemble, events = trained(*configs)
    assert isinstance(events[-1], Finished)
    for member, config in enumerate(configs):
        alone, own_events = trained(config)
        assert alone.state.updates.tolist() == [config.training.steps]
        assert_alike(weights(ensemble, member), weights(alone, 0))
        assert events[-1].scores[member] == own_events[-1].scores[0]
        moved = Ensemble([config], CPU, dtype=torch.float64)
        assert any((a != b).any() for a, b in zip(alone.encoder.parameters(), moved.encoder.parameters(), strict=True))


def test_an_angular_member_learns_as_alone() -> None:
    assert_members_learn_as_alone(
        [
            tiny(**LONG, k=2, r=0.3),
            tiny(**LONG, q=31, k=5, r=0.6, draw="expected", seed=1, lr=3e-3, clip=0.1),
            tiny(**LONG, q=97, k=3, r=0.1, draw="fixed", seed=2, weight_decay=0.0, init=0.1),
            tiny(**LONG, q=11, moduli=(1, 8), draw="batched", distribution="sparse", alpha=1e-3, seed=3, warmup=0.5),
        ]
    )


def test_a_token_member_learns_as_alone_in_a_wider_head() -> None:
    token: dict[str, Any] = LONG | {"embedding": "token", "pooling": "mean", "clip": 0.5}
    assert_members_learn_as_alone(
        [tiny(**token, k=2, r=0.3), tiny(**token, k=6, r=0.5, seed=1), tiny(**token, k=3, r=0.2, init=0.02)]
    )


def test_a_member_with_dropout_learns_as_alone() -> None:
    assert_members_learn_as_alone([tiny(**LONG, dropout=0.2, seed=seed) for seed in (0, 1)])


def test_seeds_data_and_order_differ() -> None:
    ensemble = Ensemble([tiny(seed=0), tiny(seed=1), tiny(seed=0)], CPU)
    ensemble._draw_order(0)
    assert torch.equal(ensemble.x[0], ensemble.x[2])
    assert not torch.equal(ensemble.x[0], ensemble.x[1])
    first = ensemble.order.clone()
    assert torch.equal(first[0], first[2])
    assert not torch.equal(first[0], first[1])
    ensemble._draw_order(1)
    assert not torch.equal(first, ensemble.order)


def test_an_epoch_visits_every_sample_once() -> None:
    ensemble = Ensemble([tiny(), tiny(seed=5)], CPU)
    ensemble._draw_order(0)
    seen = []
    for step in range(6):
        ensemble.step_number.fill_(step)
        index, x, total = ensemble._batch()
        assert torch.equal(total, labels.sums(x))
        for e in (0, 1):
            assert torch.equal(x[e], ensemble.x[e][index[e]])
        seen.append(index)
    assert torch.equal(torch.cat(seen, 1).sort(1).values, torch.arange(60).expand(2, 60))


def test_each_epoch_has_the_order_of_its_own_number(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, visited = Ensemble([tiny(seed=4)], CPU), []
    batch = ensemble._batch

    def recorded() -> tuple[Tensor, Tensor, Tensor]:
        index, x, total = batch()
        visited.append(index)
        return index, x, total

    monkeypatch.setattr(ensemble, "_batch", recorded)
    list(ensemble.fit())
    epochs = torch.cat(visited, 1).view(3, 60)
    for number, epoch in enumerate(epochs):
        assert torch.equal(epoch, rng.permutation(rng.key(4, "order", number), 60, CPU))


def test_runs_of_different_shape_do_not_ride_together() -> None:
    longer = {"samples": 70}, {"epochs": 4}, {"batch": 20}
    for other in ({"n": 5}, {"width": 16}, {"method": "naive"}, {"norm": "post"}, *longer):
        assert shape_of(tiny(**other)) != shape_of(tiny())
        with pytest.raises(UserError, match="one shape"):
            Ensemble([tiny(), tiny(**other)], CPU)
    assert shape_of(tiny()) == shape_of(tiny(q=11, k=7, r=0.9, seed=3, lr=1, clip=1, init=0.5))


def test_tokens_ride_together_whatever_their_q_and_moduli_and_learn_what_they_would_alone() -> None:
    own: list[dict[str, Any]] = [
        {"k": 4, "r": 0.3, "draw": "sampled"},
        {"q": 11, "method": "naive"},
        {"q": 5, "moduli": (1, 2, 6), "weights": (0.2, 0.5, 0.3), "draw": "sampled"},
        {"q": 3, "method": "sparse", "clip": 1.0},
    ]
    runs = [tiny(embedding="token", seed=seed, **settings) for seed, settings in enumerate(own)]
    together = list(Ensemble(runs, CPU, dtype=torch.float64).fit())
    for e, run in enumerate(runs):
        alone = list(Ensemble([run], CPU, dtype=torch.float64).fit())
        losses = [event.loss[e] for event in together if isinstance(event, Progress)]
        assert losses == pytest.approx([event.loss[0] for event in alone if isinstance(event, Progress)], rel=1e-9)
        (first, *_), (second, *_) = (
            [event.scores for event in events if isinstance(event, Finished)] for events in (together, alone)
        )
        assert first[e] == second[0]


def test_padding_is_never_drawn() -> None:
    """Weights that sum to a little less than 1 leave nothing for a modulus that a member does not have."""
    runs = [tiny(embedding="token", moduli=(1, 3), weights=(0.7, 0.3)), tiny(embedding="token", moduli=(1, 2, 4, 8))]
    objective = Objective.of(runs, CPU)
    weights = objective.sample_weights(torch.arange(50_000).expand(2, -1), torch.tensor(0))
    assert weights[0, :, 2:].eq(0).all()
    assert weights.sum(-1).eq(1).all()
    short = dataclasses.replace(objective, weights=objective.weights * 0.5)
    assert short.sample_weights(torch.arange(50_000).expand(2, -1), torch.tensor(0))[0, :, 2:].eq(0).all()


# -- events ---------------------------------------------------------------------------------------------------


@pytest.fixture
def few_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log a run of 40 steps at every fourth step, and measure it at about every tenth."""
    monkeypatch.setattr(engine, "LOGS", 10)
    monkeypatch.setattr(engine, "EVALUATIONS", 4)


@pytest.mark.usefixtures("few_logs")
@pytest.mark.parametrize("steps", [1, 7, 40, 83])
def test_events_tell_the_whole_story(steps: int) -> None:
    config = tiny(samples=10 * steps, epochs=1, test_samples=10)
    ensemble, events = trained(config, dtype=torch.float32)
    *progress, last = events
    assert all(isinstance(event, Progress) for event in progress)
    assert isinstance(last, Finished)
    assert progress[-1].step == progress[-1].steps == steps
    assert progress[-1].accuracy is not None
    assert min(steps, 10) <= len(progress) <= 21
    assert min(steps, 4) <= sum(event.accuracy is not None for event in progress) <= 8
    assert [event.step for event in progress] == sorted({event.step for event in progress})
    assert last.scores[0] == ensemble.evaluate(10)[0]


@pytest.mark.usefixtures("few_logs")
def test_the_loss_of_an_event_is_the_mean_since_the_last() -> None:
    config = tiny(samples=400, epochs=1, test_samples=10)
    one, other = Ensemble([config], CPU), Ensemble([config], CPU)
    events = [event for event in one.fit() if isinstance(event, Progress)]
    other._draw_order(0)
    losses = []
    for _ in range(40):
        before = other.loss_sum.clone()
        other.step()
        losses.append(float(other.loss_sum - before))
    assert [event.step for event in events] == list(range(4, 41, 4))
    expected = [sum(losses[step - 4 : step]) / 4 for step in range(4, 41, 4)]
    assert [event.loss[0] for event in events] == pytest.approx(expected, rel=1e-4)


def test_a_member_that_diverges_is_named_and_the_others_go_on() -> None:
    wild, calm, other = tiny(**LONG, lr=1e30, warmup=0.0), tiny(**LONG), tiny(**LONG, seed=1)
    ensemble, events = trained(wild, other, dtype=torch.float32)
    last = events[-1]
    assert last.dead[0] is not None
    assert 0 < last.dead[0] < 10
    assert last.dead[1] is None
    assert last.scores[0] is None
    beside_calm, own = trained(calm, other, dtype=torch.float32)
    for name, value in weights(ensemble, 1).items():
        assert torch.equal(value, weights(beside_calm, 1)[name])
    assert last.scores[1] == own[-1].scores[1]


@pytest.mark.parametrize("settings", [{}, {"embedding": "token"}, {"method": "auto"}], ids=str)
def test_a_member_without_answers_at_the_end_is_dead_however_much_its_loss_scale_has_left(
    settings: dict[str, str],
) -> None:
    ensemble = Ensemble([tiny(**settings, epochs=1, seed=seed) for seed in (0, 1)], CPU)
    *_, end = ensemble.fit()
    with torch.no_grad():
        ensemble.encoder.head.weight[1] = torch.nan
    end = ensemble._finish()
    assert end.dead == [None, ensemble.steps - 1]
    assert end.scores[0] is not None
    assert end.scores[1] is None


def test_members_may_differ_in_the_size_of_their_embedding_at_the_start() -> None:
    usual, small = tiny(), tiny(lift=0.3)
    ensemble = Ensemble([usual, small], CPU)
    for name, value in weights(ensemble, 1).items():
        alone = weights(Ensemble([small], CPU), 0)[name]
        assert torch.equal(value, alone), name
        assert torch.equal(value, weights(ensemble, 0)[name]) == (not name.startswith("embed.")), name
    assert 0.2 < weights(ensemble, 1)["embed.weight"].std().item() < 0.4


def test_when_all_are_dead_nothing_more_is_done() -> None:
    _, events = trained(tiny(**LONG, lr=1e30, warmup=0.0), dtype=torch.float32)
    assert len(events) < 20
    assert events[-1].scores == [None]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precision_trains_on_a_cpu_too(precision: str) -> None:
    ensemble, events = trained(tiny(precision=precision), dtype=torch.float32)
    assert events[-1].dead == [None]
    assert all(p.dtype == torch.float32 for p in ensemble.encoder.parameters())
    assert ensemble.state.scale.tolist() == [4096.0 if precision == "fp16" else 1.0]


def test_a_small_problem_is_learned() -> None:
    """All of it together learns: sums of two numbers mod 5."""
    config = tiny(n=2, q=5, k=2, r=0.5, draw="expected", samples=200, epochs=30, lr=2e-2, width=16, pooling="mean")
    _, events = trained(config, dtype=torch.float32)
    losses = [event.loss[0] for event in events[:-1]]
    assert losses[-1] < losses[0] / 10
    assert events[-1].scores[0]["match"] > 0.95


# -- stopping and resuming ------------------------------------------------------------------------------------


def test_going_on_in_another_precision_scales_the_loss_as_that_one_does() -> None:
    """A run saved on a CPU has no loss scale, and a run in fp16 needs one."""
    saved, other = (Ensemble([tiny()], CPU) for _ in range(2))
    start = other.state.start(other.memory.parameters, scaled=True)
    other.state.scale.copy_(start.scale)
    other.state.streak.copy_(start.streak)
    other.restore(saved.snapshot())
    assert other.state.scale.tolist() == start.scale.tolist()
    assert other.state.streak.tolist() == [0.0]
    saved.restore(other.snapshot())
    assert saved.state.scale.tolist() == [1.0]
    assert saved.state.streak.tolist() == [-torch.inf]


@pytest.mark.parametrize("after", [1, 17, 18])
@pytest.mark.parametrize("settings", [{}, {"dropout": 0.1, "embedding": "token"}])
def test_going_on_from_a_snapshot_is_never_having_stopped(after: int, settings: dict[str, Any]) -> None:
    config = tiny(**settings)
    whole, events = trained(config, dtype=torch.float32)
    stopped = Ensemble([config], CPU)
    run = stopped.fit()
    for _ in range(after):
        next(run)
    snapshot = {name: tensor.clone() for name, tensor in stopped.snapshot().items()}
    resumed = Ensemble([config], CPU)
    resumed.restore(snapshot)
    assert list(resumed.fit()) == events[after:]
    for a, b in zip(whole.encoder.parameters(), resumed.encoder.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_run_that_died_goes_on_to_its_end_at_once() -> None:
    config = tiny(samples=4000, epochs=1, lr=1e30, warmup=0.0)
    stopped = Ensemble([config], CPU)
    whole = list(stopped.fit())
    assert [type(event) for event in whole] == [Progress, Finished]
    resumed = Ensemble([config], CPU)
    resumed.restore(stopped.snapshot())
    assert list(resumed.fit()) == whole[1:]


def test_half_precision_weights_are_restored_too() -> None:
    ensemble, other = Ensemble([tiny()], CPU), Ensemble([tiny(seed=1)], CPU)
    for each in (ensemble, other):
        each.memory = Memory(each.encoder, torch.float16)
        each.state = OptimiserState.start(each.memory.parameters, scaled=False)
    assert ensemble.memory.half is not None
    assert other.memory.half is not None
    ensemble.restore(other.snapshot())
    assert torch.equal(ensemble.memory.half, other.memory.half)


@pytest.mark.parametrize("steps", [1, 7, 39, 40, 83])
def test_the_end_is_always_measured(steps: int) -> None:
    *_, last, _ = Ensemble([tiny(samples=20 * steps, batch=20, epochs=1)], CPU).fit()
    assert isinstance(last, Progress)
    assert last.step == steps
    assert last.accuracy is not None


def test_what_data_a_run_names_must_be_given() -> None:
    with pytest.raises(UserError, match=r"trains on the rows of mine\.npz: give them as data"):
        Ensemble([tiny(data="mine.npz")], CPU)


def test_runs_may_come_one_by_one_and_a_device_by_its_name() -> None:
    ensemble = Ensemble((tiny(seed=seed) for seed in range(2)), "cpu")  # type: ignore[arg-type]
    assert len(ensemble.configs) == ensemble.encoder.members == 2


def test_own_data_replace_drawn_ones() -> None:
    config = tiny()
    own = sampling.training(config, CPU).numpy()[::-1].copy()
    ensemble = Ensemble([config], CPU, [own])
    assert torch.equal(ensemble.x[0], torch.from_numpy(own))
    assert torch.equal(ensemble.sums[0], torch.from_numpy(own.astype("int64").sum(1)))
