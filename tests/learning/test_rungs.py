"""Tests of what goes beyond the paper's objective, by direct computation: harmonics, labels of all points, shifts."""

import math

import pytest
import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.learning.engine import Ensemble
from auxmod.learning.evaluation import averaged
from auxmod.learning.objective import Objective
from auxmod.problem import labels
from tiny import tiny

CPU = torch.device("cpu")
STEP = torch.tensor(2)


def circle(turns: float) -> torch.Tensor:
    return torch.tensor([math.cos(2 * math.pi * turns), math.sin(2 * math.pi * turns)], dtype=torch.float64)


def test_a_harmonic_is_asked_for_a_multiple_of_the_angle() -> None:
    run = tiny(q=7, moduli=(1, 3), harmonics=(2, 5), weights=(0.4, 0.3, 0.2, 0.1), draw="expected")
    total, outputs = torch.tensor([[0, 5, 13, 20]]), torch.randn(1, 4, 8, dtype=torch.float64)
    expected = 0.0
    for b, s in enumerate(total[0].tolist()):
        for j, (weight, turns) in enumerate(
            zip(run.method.weights, (s / 7, s / 21, 2 * s / 7, 5 * s / 7), strict=True)
        ):
            expected += weight * (outputs[0, b, 2 * j : 2 * j + 2] - circle(turns)).square().mean() / 4
    loss = Objective.of([run], CPU).losses(outputs, total, torch.zeros(1, 4, dtype=torch.int64), STEP)
    assert float(loss) == pytest.approx(float(expected), rel=1e-6)


def test_features_have_a_point_for_each_rung() -> None:
    run = tiny(q=7, moduli=(1, 3), harmonics=(2,), weights=(0.4, 0.3, 0.3))
    features = Objective.of([run], CPU).features(torch.tensor([[[0, 6]]]))[0, 0, 1]
    assert torch.allclose(features.double(), torch.cat([circle(6 / 7), circle(6 / 21), circle(12 / 7)]), atol=1e-6)


@pytest.mark.parametrize("draw", ["expected", "sampled"])
def test_a_label_may_be_asked_of_all_points(draw: str) -> None:
    run = tiny(q=7, k=3, r=0.25, draw=draw, asked="all")
    own = tiny(q=7, k=3, r=0.25, draw=draw)
    total, outputs = torch.tensor([[0, 5, 13, 20]]), torch.randn(2, 4, 4, dtype=torch.float64)
    objective, index = Objective.of([run, own], CPU), torch.zeros(2, 4, dtype=torch.int64)
    weights = objective.sample_weights(index, STEP)[0]
    expected = 0.0
    for b, s in enumerate(total[0].tolist()):
        for j, label in enumerate((s % 7, s % 21)):
            asked = torch.cat([circle(label / 7), circle(label / 21)])
            expected += float(weights[b, j] * (outputs[0, b] - asked).square().mean()) / 4
    both = objective.losses(outputs, total.expand(2, 4), index, STEP)
    assert float(both[0]) == pytest.approx(expected, rel=1e-6)
    alone = Objective.of([own], CPU).losses(outputs[1:], total, index[1:], STEP)
    assert float(both[1]) == pytest.approx(float(alone), rel=1e-9)  # its neighbour does not change it


def test_each_member_is_read_as_if_alone_and_points_that_say_nothing_are_zero() -> None:
    """The second member's point of 3q is not read: its coarsest modulus, 4q, is no multiple of 3q."""
    runs = [
        tiny(q=q, moduli=m, harmonics=(2,), weights=(0.4, 0.2, 0.2, 0.2)) for q, m in ((7, (1, 2, 4)), (9, (1, 3, 4)))
    ]
    outputs = torch.randn(2, 50, 8, generator=torch.Generator().manual_seed(0))
    together = Objective.of(runs, CPU).decode(outputs)
    for e, run in enumerate(runs):
        assert torch.equal(together[e], Objective.of([run], CPU).decode(outputs[[e]])[0])
    assert torch.equal(Objective.of(runs, CPU).decode(torch.zeros(2, 1, 8)), torch.zeros(2, 1).double())


def test_harmonics_sharpen_an_answer_and_unsure_ones_do_not_spoil_it() -> None:
    run = tiny(q=97, moduli=(1,), harmonics=(4, 16), weights=(0.5, 0.25, 0.25))
    objective, truth = Objective.of([run], CPU), torch.arange(97)
    rough = [circle((y + 0.9) / 97) for y in truth.tolist()]  # near enough to tell which turn the harmonic is on
    fine = [torch.cat([p, circle(4 * y / 97), circle(16 * y / 97)]) for p, y in zip(rough, truth.tolist(), strict=True)]
    answer = objective.decode(torch.stack(fine)[None])[0]
    assert torch.equal(labels.rounded(answer, 97), truth)
    unsure = [
        torch.cat([circle(y / 97), 0.05 * circle(0.3), 0.02 * circle(0.8)]) for y in truth.tolist()
    ]  # points that learned nothing are short
    answer = objective.decode(torch.stack(unsure)[None])[0]
    assert torch.equal(labels.rounded(answer, 97), truth)
    assert bool(((answer >= 0) & (answer < 97)).all())


def test_a_shift_adds_one_constant_to_all_terms_afresh_at_each_visit() -> None:
    configs = [tiny(n=5, q=7, augment="shift"), tiny(n=5, q=7), tiny(n=5, q=11, augment="shift", seed=1)]
    objective = Objective.of(configs, CPU)
    q = torch.tensor([7, 7, 11]).view(3, 1, 1)
    x = torch.randint(0, 7, (3, 400, 5), dtype=torch.int32)
    moved, total = objective.shifted(x, labels.sums(x), STEP)
    constant = (moved - x) % q
    assert torch.equal(total, labels.sums(moved))
    assert bool((constant == constant[..., :1]).all())
    assert not constant[1].any()
    assert set(constant[0].flatten().tolist()) == set(range(7))
    assert set(constant[2].flatten().tolist()) == set(range(11))
    assert not torch.equal(objective.shifted(x, labels.sums(x), STEP + 1)[0], moved)


def test_tokens_can_be_read_out_as_angles() -> None:
    run = tiny(embedding="token", q=7, readout="angles", method="ladder")
    ensemble = Ensemble([run], CPU)
    assert (ensemble.encoder.inputs, ensemble.encoder.outputs) == (7, 2 * run.method.rungs)
    ensemble._draw_order(0)
    ensemble.step()
    scores = ensemble.evaluate(50)[0]
    assert scores["tau_chance"]["0.05"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "settings",
    [
        {"moduli": (1,), "harmonics": (2,), "weights": (0.5, 0.5)},
        {"moduli": (1, 4), "asked": "all"},
        {"moduli": (1,), "alpha": 0.1},
    ],
)
def test_classes_have_no_points(settings: dict[str, object]) -> None:
    with pytest.raises(UserError, match="readout angles"):
        tiny(embedding="token", **settings)


def test_settings_that_came_later_leave_names_alone() -> None:
    run = tiny()
    assert "harmonics" not in run.to_dict()["method"]
    assert "readout" not in run.to_dict()["model"]
    changed = tiny(augment="shift")
    assert RunConfig.from_dict(changed.to_dict()) == changed
    assert changed.hash != run.hash


def test_every_rung_is_asked_often() -> None:
    """The points of all moduli are averaged: from an encoder that knows the sum, they come out as they went in."""
    objective = Objective.of([tiny(n=3, q=7, method="auto")], CPU)
    x = torch.cartesian_prod(*[torch.arange(7)] * 3)[None]

    def perfect(x: torch.Tensor) -> torch.Tensor:
        turned = labels.sums(x)[..., None] * objective.harmonics % objective.moduli
        return labels.points(turned, objective.moduli).flatten(-2)

    assert torch.allclose(averaged(perfect, objective, x, 9), perfect(x), atol=1e-5)


@pytest.mark.parametrize("settings", [{"k": 3, "r": 0.5}, {"embedding": "token", "k": 3, "r": 0.5}], ids=str)
def test_asking_often_is_the_same_question(settings: dict[str, object]) -> None:
    """A perfect model answers each way of asking alike; one wrong on single inputs is outvoted."""
    configs = [tiny(n=3, q=q, **settings) for q in (7, 5)]
    objective = Objective.of(configs, CPU)
    q = objective.q[:, None]
    x = torch.stack([torch.cartesian_prod(*[torch.arange(5)] * 3)] * 2)

    def perfect(x: torch.Tensor) -> torch.Tensor:
        answer = labels.residues(labels.sums(x), q)
        if objective.model.angles:
            return torch.cat([labels.points(answer, q), torch.randn(*answer.shape, 2)], -1)
        return 9.0 * torch.nn.functional.one_hot(answer, 21) + torch.rand(*answer.shape, 21)

    def flawed(x: torch.Tensor) -> torch.Tensor:
        return perfect(torch.where((x[..., :1] == 2) & (x[..., 1:2] == 3), x + 1, x))

    truth = labels.residues(labels.sums(x), q)
    for model, alone in ((perfect, True), (flawed, False)):
        once = labels.rounded(objective.decode(averaged(model, objective, x, 1)), q)
        often = labels.rounded(objective.decode(averaged(model, objective, x, 9)), q)
        assert torch.equal(once, truth) == alone
        assert torch.equal(often, truth)


def test_a_run_can_be_measured_asked_often_too() -> None:
    ensemble = Ensemble([tiny(asks=3)], CPU)
    *_, end = ensemble.fit()
    scores = end.scores[0]  # type: ignore[union-attr]
    assert scores is not None
    assert (scores["asked"]["asks"], scores["asked"]["samples"]) == (3, 300)
    assert scores["asked"]["match"] == ensemble.evaluate(300, asks=3)[0]["match"]
    assert "asked" not in ensemble.evaluate(300)[0]
