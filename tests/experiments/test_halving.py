"""Tests of halving: members that lag leave an ensemble, and the others learn what they would learn alone."""

import contextlib
import functools
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import made_up
from auxmod.config import RunConfig
from auxmod.experiments import choosing, ensembles, halving
from auxmod.experiments.ensembles import Ended, Notice, Started, train_ensemble
from auxmod.experiments.halving import RUNGS, Rung, behind
from auxmod.experiments.results_file import result_row
from auxmod.experiments.saving import accounts
from auxmod.experiments.single import Interrupted
from auxmod.learning import engine
from auxmod.learning.engine import Ensemble, Finished, Progress
from tiny import tiny

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("quick_halving")


def test_the_better_half_and_whoever_is_as_good_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"a": 0.9, "b": 0.5, "c": 0.49, "d": 0.3}
    assert behind(shares) == ["c", "d"]
    assert behind({"a": 0.5, "b": 0.5, "c": 0.5}) == []
    assert behind({"a": 0.1}) == behind({}) == []
    monkeypatch.setattr(halving, "NOISE", 0.02)
    assert behind(shares) == ["d"]


def test_noise_is_two_standard_errors_on_the_inputs_that_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for samples, noise in ((2_000, 0.03), (200, 0.1)):
        monkeypatch.setattr(engine, "VALIDATION_SAMPLES", samples)
        assert runpy.run_path(halving.__file__)["NOISE"] == noise


def alone(config: RunConfig) -> tuple[list[float], dict[str, Any]]:
    """A run's held-out accuracies and its scores when it is trained alone."""
    *curve, end = Ensemble([config], CPU).fit()
    assert isinstance(end, Finished)
    assert end.scores[0] is not None
    return [e.accuracy[0] for e in curve if not isinstance(e, Finished) and e.accuracy], end.scores[0]


def drop(monkeypatch: pytest.MonkeyPatch, *rounds: Sequence[int]) -> None:
    """Let the members at these places lag: one sequence of places for each rung."""
    left = iter(rounds)
    monkeypatch.setattr(halving, "behind", lambda accuracy: [list(accuracy)[place] for place in next(left)])


@pytest.mark.parametrize("embedding", ["angular", "token"])
def test_whoever_stays_learns_what_it_learns_alone(monkeypatch: pytest.MonkeyPatch, embedding: str) -> None:
    """For tokens, the member with the largest K is pruned first but rides on, since heads are padded to its size."""
    configs = [tiny(k=k, seed=k, lr=1e-2, embedding=embedding) for k in (3, 4, 5, 6)]
    drop(monkeypatch, (1, 3), (0,))
    sizes: list[int] = []
    honest = Ensemble.__init__

    def counting(self: Ensemble, members: Any, *rest: Any, **named: Any) -> None:
        sizes.append(len(members))
        honest(self, members, *rest, **named)

    monkeypatch.setattr(Ensemble, "__init__", counting)
    events = list(train_ensemble(configs, CPU, rungs=RUNGS))
    assert sizes == ([4, 2, 1] if embedding == "angular" else [4, 3, 2])
    rungs = [e for e in events if isinstance(e, Rung)]
    assert [len(e.accuracy) for e in rungs] == [4, 2]
    assert isinstance(events[-1], Ended)
    (row,) = events[-1].rows
    assert row["hash"] == configs[2].hash
    curve, scores = alone(configs[2])
    assert [point["accuracy"] for point in row["curve"]] == pytest.approx(curve, abs=0.021)
    assert row["scores"]["match"] == pytest.approx(scores["match"], abs=0.01)


@pytest.mark.parametrize("readout", ["auto", "angles"])
def test_whoever_has_the_most_tokens_or_the_most_classes_rides_on(
    monkeypatch: pytest.MonkeyPatch, readout: str
) -> None:
    """Otherwise the rows of the members left would be read from the wrong places, or have another length."""
    few, most, wide = (5, 3), (7, 2), (5, 4)  # q and K: `wide` has the most classes, and `most` the most tokens
    made = {"embedding": "token", "readout": readout, "width": 8, "hidden": 8, "lr": 1e-2}
    configs = [tiny(q=q, k=k, **made) for q, k in (few, most, wide)]
    drop(monkeypatch, (1, 2))
    *_, end = train_ensemble(configs, CPU, rungs=(0.5,))
    assert isinstance(end, Ended)
    (row,) = end.rows
    curve, scores = alone(configs[0])
    assert [point["accuracy"] for point in row["curve"]] == pytest.approx(curve, abs=0.021)
    assert row["scores"]["match"] == pytest.approx(scores["match"], abs=0.01)


def test_parameters_after_pruning_are_those_of_the_run_alone() -> None:
    configs, double = [tiny(k=k, seed=k) for k in (3, 4, 5, 6)], {"dtype": torch.float64}
    whole, part, single = (Ensemble(its, CPU, **double) for its in (configs, configs[2:3], configs[2:3]))
    for event in whole.fit():
        if event.step == 9:  # type: ignore[union-attr]
            break
    part.restore(ensembles._part(whole, [2]))
    list(part.fit())
    list(single.fit())
    torch.testing.assert_close(part.state.parameters, single.state.parameters, rtol=1e-6, atol=1e-9)


def test_a_member_that_diverges_has_its_row_and_none_else_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    configs = [tiny(seed=0), tiny(seed=1, lr=1e30), tiny(seed=2), tiny(seed=3)]
    drop(monkeypatch, (0,))
    *events, end = train_ensemble(configs, CPU, rungs=(0.5,))
    (rung,) = (event for event in events if isinstance(event, Rung))
    assert list(rung.accuracy) == [configs[place].hash for place in (0, 2, 3)]  # the diverged member is not compared
    assert isinstance(end, Ended)
    assert [row["hash"] for row in end.rows] == [configs[place].hash for place in (1, 2, 3)]
    assert "stopped being finite" in end.rows[0]["failed"]
    assert all("scores" in row for row in end.rows[1:])


@pytest.mark.parametrize("embedding", ["angular", "token"])
def test_stopped_anywhere_it_goes_on_from_there_to_the_same_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, embedding: str
) -> None:
    """Stops before, at, between and after the rungs, with a member that diverges and, for tokens, one that rides on."""
    configs = [tiny(k=k, seed=k, lr=1e30 if k == 4 else 1e-2, embedding=embedding) for k in (3, 4, 5, 6)]
    state = tmp_path / "0.safetensors"
    drop(monkeypatch, (2,), (0,))
    *events, whole = train_ensemble(configs, CPU, rungs=RUNGS)
    steps = [e.step for e in events if isinstance(e, Progress)]
    rungs = [e for e in events if isinstance(e, Rung)]
    for places in (steps[1:2], steps[2:-1:3], steps[:-1]):
        drop(monkeypatch, (2,), (0,))
        left, pruned, begun = configs, list[Rung](), []
        for place in [*places, None]:
            seen: list[Any] = []
            asked = functools.partial(lambda place, seen: place is not None and seen[-1].step >= place, place, seen)
            with contextlib.suppress(Interrupted):
                for event in train_ensemble(left, CPU, rungs=RUNGS, state=state, stopping=asked):
                    seen.append(event)
            begun.append(seen[0].step)
            pruned += [e for e in seen if isinstance(e, Rung)]
            left = [c for c in configs if not any(c.hash in rung.pruned for rung in pruned)]
        assert begun[0] == 0 < begun[1]
        assert begun == sorted(begun)
        assert pruned == rungs
        assert isinstance(seen[-1], Ended)
        assert isinstance(whole, Ended)
        assert [plain(row) for row in seen[-1].rows] == [plain(row) for row in whole.rows]
        state.unlink()


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with only the number of members from its provenance, since the rest differs between trainings."""
    return {**row, "provenance": row["provenance"]["members"]}


def test_a_state_that_is_damaged_or_of_other_runs_is_not_gone_on_from(tmp_path: Path) -> None:
    state, configs = tmp_path / "0.safetensors", [tiny(seed=0), tiny(seed=1)]
    stopped = train_ensemble(configs, CPU, state=state, stopping=lambda: True)
    with pytest.raises(Interrupted):
        list(stopped)
    ((found, log),) = accounts(tmp_path)
    assert (found, log.members) == (state, [c.hash for c in configs])
    notice, begun, *_ = train_ensemble([tiny(seed=2)], CPU, state=state)
    assert isinstance(notice, Notice)
    assert "belongs to other runs" in notice.sentence
    assert isinstance(begun, Started)
    assert begun.step == 0
    for account, words in (({}, "has no account of an ensemble"), ({"members": [], "curves": []}, "is not whole")):
        made_up.save_account(state, account)
        assert list(accounts(tmp_path)) == []
        notice, *_ = train_ensemble(configs, CPU, state=state)
        assert isinstance(notice, Notice)
        assert words in notice.sentence


@pytest.mark.parametrize(("near", "pruned"), [(True, [1, 3]), (False, [])])
def test_near_answers_are_what_is_compared_where_that_is_asked(near: bool, pruned: list[int]) -> None:
    configs = [tiny(q=3329, seed=seed) for seed in range(4)]
    race = halving.Race([config.hash for config in configs], [[] for _ in configs])
    progress = Progress(3, 6, [1.0] * 4, [0.0] * 4, [None] * 4, [0.9, 0.1, 0.8, 0.2])
    assert race.compare(configs, progress, near).pruned == [configs[e].hash for e in pruned]


def test_runs_are_compared_by_one_measure() -> None:
    ends = [{"step": 6, "loss": 1.0, "accuracy": 0.25, "near": 0.5}, {"step": 6, "loss": 1.0, "accuracy": 0.25}]

    def rows(q: int, *curves: dict[str, Any]) -> list[dict[str, Any]]:
        return [result_row(tiny(q=q), {"match": 0.2}, {}, validation=0.25, curve=[end]) for end in curves]

    assert choosing.held_out(rows(3329, ends[0], ends[0])) == ([0.5, 0.5], True)
    assert choosing.held_out(rows(433, ends[0], ends[0])) == ([0.25, 0.25], False)
    assert choosing.held_out(rows(3329, *ends)) == ([0.25, 0.25], False)  # the second has no near answers
    assert choosing.held_out([result_row(tiny(q=3329), {"match": 0.2}, {}, validation=0.25)]) == ([0.25], False)
