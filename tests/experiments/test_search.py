"""A search: spaces as text, members that lag leave without a trace, batches are ensembles, a killed one goes on."""

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments import claims, halving, search
from auxmod.experiments.ensembles import Ended, Started
from auxmod.experiments.halving import Rung, behind, train_halving
from auxmod.experiments.search import Plan, run_search
from auxmod.experiments.single import Interrupted
from auxmod.experiments.space import DEFAULT, Interval, Space, as_setting, parse, parse_space
from auxmod.experiments.store import read_results
from auxmod.experiments.study import finished, hidden, opened, summary
from auxmod.learning import engine
from auxmod.learning.engine import Ensemble, Finished
from tiny import SETTINGS, tiny

CPU = torch.device("cpu")
GIVEN = {**SETTINGS, "epochs": 2, "k": "3:5", "r": "0.05:0.6", "lr": "1e-4:1e-2:log"}


@pytest.fixture(autouse=True)
def quick_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """So short a run measures its accuracy at every step: on fewer inputs, here, where any difference counts."""
    monkeypatch.setattr(engine, "VALIDATION_SAMPLES", 50)
    monkeypatch.setattr(halving, "NOISE", 0.0)


def run(place: Path, space: Space, how: Plan, most: int | None = None, **options: Any) -> tuple[list[Any], Any]:
    """Search, as far as ``most`` events; what happened, and what came out."""
    with opened(f"sqlite:///{place}/s.db", "s", space) as study:
        running = run_search(study, space, place / "r.jsonl", CPU, how, **options)
        events = list(itertools.islice(running, most))
        running.close()  # type: ignore[attr-defined]
        return events, summary(study)


def told(found: Any) -> list[Any]:
    """What a study's trials came to, in whatever order they have been numbered."""
    return sorted(
        (sorted(t["params"].items()), t["state"], t["validation"], t["hash"], t["cost"]) for t in found["trials"]
    )


# -- spaces ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("k", "4:9", Interval(4, 9, 1)),
        ("k", "4:9:2", Interval(4, 8, 2)),
        ("k", "4:6,9", [4, 5, 6, 9]),
        ("k", "4:4", [4]),
        ("r", "0.05:0.6", Interval(0.05, 0.6)),
        ("r", "0.1:0.4:0.1", Interval(0.1, 0.4, 0.1)),
        ("lr", "1e-5:1e-3:log", Interval(1e-5, 1e-3, None, True)),
        ("width", "16:512:log", Interval(16, 512, None, True)),
        ("init", "0.01:0.1:log", Interval(0.01, 0.1, None, True)),
        ("init", "default,0.02", ["default", "0.02"]),
        ("pooling", "cls,mean", ["cls", "mean"]),
        ("moduli", "1,2,4;1,8", [(1, 2, 4), (1, 8)]),
        ("seed", 3, [3]),
    ],
)
def test_a_setting_is_a_range_a_list_or_one_value(name: str, text: Any, part: Any) -> None:
    assert parse(name, text) == part


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"k": "9:4"}, "--k is '9:4', an empty range"),
        ({"k": "4.5:9"}, "must be whole numbers"),
        ({"k": "4:9:x"}, "a range to search is low:high"),
        ({"k": "4:5:6:7"}, "a range to search is low:high"),
        ({"r": "0.1:0.4:-0.1"}, "a step is a number above 0"),
        ({"lr": "0:1:log"}, "begins above 0"),
        ({"seed": "0:2", "k": "4:9"}, "a trial is one run"),
        ({"colour": "red"}, "There is no setting 'colour'"),
        ({name: text.partition(",")[0].partition(":")[0] for name, text in DEFAULT.items()}, "nothing is left"),
    ],
)
def test_a_bad_space_is_a_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_space(given)


def test_where_nothing_is_open_the_usual_is_searched_but_for_what_is_fixed() -> None:
    assert list(parse_space({"n": "8", "lr": "1e-4"}).searched) == ["k", "r", "draw", "init", "pooling"]
    assert list(parse_space({"method": "sparse"}).searched) == ["lr", "init", "pooling"]
    assert parse_space({"method": "auto"}).searched == {"lr": Interval(5e-4, 3e-2, log=True)}
    assert list(parse_space({"moduli": "1,3,9"}).searched) == ["lr", "init", "pooling"]
    assert list(parse_space({"k": "4:9", "r": "0.3"}).searched) == ["k"]


def test_choices_become_settings_of_their_own_type() -> None:
    space = parse_space({"moduli": "1,2,4;1,8", "init": "0.01:0.1", "r": "0.3"})
    assert space.searched["moduli"] == ["1,2,4", "1,8"]
    assert space.settings({"moduli": "1,8", "init": 0.0123456789}) == {"r": 0.3, "moduli": (1, 8), "init": "0.0123457"}
    assert as_setting("r", 0.1 + 0.2) == 0.3
    assert as_setting("bias", True) is True
    assert space.name == parse_space({"r": "0.3", "init": "0.01:0.1", "moduli": "1,2,4;1,8"}).name


# -- halving --------------------------------------------------------------------------------------------------


def test_the_better_half_and_whoever_is_as_good_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = {"a": 0.9, "b": 0.5, "c": 0.49, "d": 0.3}
    assert behind(shares) == ["c", "d"]
    assert behind({"a": 0.5, "b": 0.5, "c": 0.5}) == []
    assert behind({"a": 0.1}) == behind({}) == []
    monkeypatch.setattr(halving, "NOISE", 0.02)
    assert behind(shares) == ["d"]


def alone(config: RunConfig) -> tuple[list[float], dict[str, Any]]:
    """A run's held-out accuracies and its scores, by itself."""
    *curve, end = Ensemble([config], CPU).fit()
    assert isinstance(end, Finished)
    assert end.scores[0] is not None
    return [e.accuracy[0] for e in curve if not isinstance(e, Finished) and e.accuracy], end.scores[0]


def drop(monkeypatch: pytest.MonkeyPatch, *rounds: Sequence[int]) -> None:
    """Let the members at these places be the ones that lag, at each rung in turn."""
    left = iter(rounds)
    monkeypatch.setattr(halving, "behind", lambda accuracy: [list(accuracy)[place] for place in next(left)])


@pytest.mark.parametrize("embedding", ["angular", "token"])
def test_whoever_stays_learns_what_it_learns_alone(monkeypatch: pytest.MonkeyPatch, embedding: str) -> None:
    """For tokens the member of the largest K is pruned first, but rides on, since the heads are padded to its."""
    configs = [tiny(k=k, seed=k, lr=1e-2, embedding=embedding) for k in (3, 4, 5, 6)]
    drop(monkeypatch, (1, 3), (0,))
    sizes: list[int] = []
    honest = Ensemble.__init__

    def counting(self: Ensemble, members: Any, *rest: Any) -> None:
        sizes.append(len(members))
        honest(self, members, *rest)

    monkeypatch.setattr(Ensemble, "__init__", counting)
    events = list(train_halving(configs, CPU))
    assert sizes == ([4, 2, 1] if embedding == "angular" else [4, 3, 2])
    rungs = [e for e in events if isinstance(e, Rung)]
    assert [len(e.accuracy) for e in rungs] == [4, 2]
    assert isinstance(events[-1], Ended)
    (row,) = events[-1].rows
    assert row["hash"] == configs[2].hash
    curve, scores = alone(configs[2])
    assert [point["accuracy"] for point in row["curve"]] == pytest.approx(curve, abs=0.021)
    assert row["scores"]["match"] == pytest.approx(scores["match"], abs=0.01)


def test_parameters_after_pruning_are_those_of_the_run_alone() -> None:
    configs, double = [tiny(k=k, seed=k) for k in (3, 4, 5, 6)], {"dtype": torch.float64}
    whole, part, single = (Ensemble(its, CPU, **double) for its in (configs, configs[2:3], configs[2:3]))
    for event in whole.fit():
        if event.step == 9:  # type: ignore[union-attr]
            break
    part.restore(halving._part(whole, [2]))
    list(part.fit())
    list(single.fit())
    torch.testing.assert_close(part.state.parameters, single.state.parameters, rtol=1e-6, atol=1e-9)


def test_a_member_that_diverges_has_its_row_and_none_else_is_lost() -> None:
    configs = [tiny(seed=0), tiny(seed=1, lr=1e30), tiny(seed=2), tiny(seed=3)]
    *_, end = train_halving(configs, CPU, rungs=(0.5,))
    assert isinstance(end, Ended)
    rows = {row["hash"]: row for row in end.rows}
    assert "stopped being finite" in rows[configs[1].hash]["failed"]
    assert 2 <= len(rows) <= 4


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the members are pruned at every rung, though so short a training hardly tells them apart."""
    monkeypatch.setattr(halving, "behind", lambda accuracy: sorted(accuracy)[: len(accuracy) // 2])


# -- searching ------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("halves")
def test_a_batch_is_one_ensemble_and_shapes_split_it(tmp_path: Path) -> None:
    events, found = run(tmp_path, parse_space(GIVEN), Plan(trials=8, members=4))
    assert [len(e.configs) for e in events if isinstance(e, Started)] == [4, 4]
    assert found["complete"] + found["pruned"] == 8
    assert found["pruned"] >= 2
    assert found["cost"] < 8
    assert {t["hash"] for t in found["trials"] if t["state"] == "complete"} == {
        row["hash"] for row in read_results(tmp_path / "r.jsonl")
    }
    for trial in found["trials"]:
        assert tiny(**trial["settings"]).hash == trial["hash"]
        assert 3 <= trial["settings"]["moduli"][1] <= 5
    best = max(row["validation"] for row in read_results(tmp_path / "r.jsonl"))
    assert found["best"]["validation"] == best
    events, found = run(tmp_path, parse_space(GIVEN), Plan(trials=8, members=4))
    assert not [e for e in events if isinstance(e, Started)]  # all of it is there
    assert not (tmp_path / "r.jsonl.d").exists()
    (tmp_path / "split").mkdir()
    events, found = run(tmp_path / "split", parse_space(GIVEN | {"pooling": "mean,max"}), Plan(trials=6, members=6))
    sizes = [(len(e.configs), {c.model.pooling for c in e.configs}) for e in events if isinstance(e, Started)]
    assert sum(size for size, _ in sizes) == 6
    assert [len(kinds) for _, kinds in sizes] == [1, 1]


@pytest.mark.usefixtures("halves")
def test_stopped_anywhere_it_goes_on_to_the_same_trials(tmp_path: Path) -> None:
    """Batches of two shapes; the stops come inside an ensemble, between two, and before the first event."""
    space, how = parse_space(GIVEN | {"pooling": "mean,max"}), Plan(trials=9, members=3)
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    _, whole = run(tmp_path / "whole", space, how)
    for most in (1, 5, 19, 40):
        run(tmp_path / "broken", space, how, most)
    seen: list[Any] = []
    with pytest.raises(Interrupted, match="the same command goes on"):
        run(tmp_path / "broken", space, how, stopping=lambda: len(seen) > 3 or bool(seen.append(1)))
    _, again = run(tmp_path / "broken", space, how)
    assert len(told(again)) == 9
    assert told(again) == told(whole)
    rows = [row["hash"] for row in read_results(tmp_path / "broken/r.jsonl")]
    assert len(rows) == len(set(rows)) == whole["complete"]


@pytest.mark.parametrize("moment", ["r.jsonl.d/*.lock", "r.jsonl"])
def test_killed_in_the_middle_it_goes_on_and_loses_and_doubles_nothing(tmp_path: Path, moment: str) -> None:
    """Killed when its first trials have been asked for, and when they have been written down."""
    given = GIVEN | {"epochs": 8}
    flags = [part for n, v in given.items() for part in (f"--{n.replace('_', '-')}", str(v))]
    place = ["--storage", f"sqlite:///{tmp_path}/s.db", "--study", "s", "--results", str(tmp_path / "r.jsonl")]
    command = [sys.executable, "-m", "auxmod", "search", *flags, *place, "--trials", "8", "--members", "4"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while not any(path.stat().st_size for path in tmp_path.glob(moment)):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.communicate(timeout=30)
    space = parse_space({name: str(value) for name, value in given.items()})
    with opened(f"sqlite:///{tmp_path}/s.db", "s", space) as study:
        done = len(finished(study))
        assert done < 8
    _, found = run(tmp_path, space, Plan(trials=8, members=4))
    assert len(found["trials"]) == len({t["hash"] for t in found["trials"]}) == 8
    assert found["failed"] == 0
    rows = [row["hash"] for row in read_results(tmp_path / "r.jsonl")]
    assert sorted(rows) == sorted(t["hash"] for t in found["trials"] if t["state"] == "complete")


def test_trials_of_a_process_that_lives_are_left_alone(tmp_path: Path) -> None:
    space, how = parse_space(GIVEN), Plan(trials=4, members=2)
    with opened(f"sqlite:///{tmp_path}/s.db", "s", space) as study:
        other = run_search(study, space, tmp_path / "r.jsonl", CPU, how)
        list(itertools.islice(other, 3))
        assert len(claims.held(tmp_path / "r.jsonl.d")) == 2
        events, _ = run(tmp_path, space, how)
        assert [len(e.configs) for e in events if isinstance(e, Started)] == [2]
        list(other)
        found = summary(study)
    assert len({t["hash"] for t in found["trials"]}) == len(found["trials"]) == 4


@pytest.mark.usefixtures("halves")
def test_a_budget_is_kept_and_what_is_known_costs_nothing(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"k": "3,4", "r": "0.2", "lr": "1e-3"})  # two runs in all
    _, found = run(tmp_path, space, Plan(trials=6, members=3, rungs=()))
    assert (found["complete"], found["cost"]) == (6, 2)
    assert len(read_results(tmp_path / "r.jsonl")) == 2
    (tmp_path / "b").mkdir()
    _, found = run(tmp_path / "b", parse_space(GIVEN), Plan(trials=100, members=4, budget=4))
    assert 3 < found["cost"] <= 4
    assert len(found["trials"]) > 4


def test_values_that_do_not_go_together_and_runs_that_diverge_are_trials_too(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"heads": "1,2", "width": "8,9", "lr": "1e-3,1e30"})
    with pytest.raises(UserError, match="does not divide"):  # the first combinations are tried before anything
        run(tmp_path, parse_space(GIVEN | {"heads": "2,1", "width": "8,9"}), Plan(trials=1))
    events, found = run(tmp_path, space, Plan(trials=12, members=6, seed=2))
    assert len(found["trials"]) == 12
    assert found["failed"] >= 1
    words = {t["failed"].split()[0] for t in found["trials"] if t["failed"]}
    assert words <= {"The", "--width"}
    assert events


def test_the_sampler_is_reproducible_and_seeded(tmp_path: Path) -> None:
    params = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        _, found = run(tmp_path / name, parse_space(GIVEN | {"epochs": 1}), Plan(trials=4, members=2, seed=seed))
        params.append(told(found))
    assert params[0] == params[1] != params[2]


def test_a_study_of_another_space_is_refused_and_a_bad_storage_named(tmp_path: Path) -> None:
    run(tmp_path, parse_space(GIVEN), Plan(trials=1, members=1))
    with pytest.raises(UserError, match="The study s searches other settings or ranges: name another --study"):
        run(tmp_path, parse_space(GIVEN | {"q": 11}), Plan(trials=1))
    for url in ("nonsense", "ftp://me:secret@host/db", f"sqlite:///{tmp_path}/r.jsonl"):
        with pytest.raises(UserError, match=r"--storage .* cannot be opened") as error, opened(url, "s", Space({}, {})):
            pass
        assert "secret" not in str(error.value)
    assert hidden("auxmod --storage mysql://me:secret@host/db") == "auxmod --storage mysql://me:***@host/db"


@pytest.mark.parametrize("wrong", [{"trials": 0}, {"members": 0}, {"budget": 0.5}, {"seed": -1}, {"rungs": (1.5,)}])
def test_a_plan_that_cannot_be_is_a_sentence(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"--{'seed-sampler' if 'seed' in wrong else next(iter(wrong))}"):
        Plan(**wrong)


def test_what_is_left_beside_the_results_is_cleared_while_no_other_process_can_take_a_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def tidy(directory: Path, finished: Any) -> None:
        with open(tmp_path / "r.jsonl", "rb") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        seen.append(directory)

    monkeypatch.setattr(claims, "tidy", tidy)
    run(tmp_path, parse_space(GIVEN | {"epochs": 1}), Plan(trials=1, members=1))
    assert seen == [tmp_path / "r.jsonl.d"]


def test_a_database_that_fails_without_a_word_is_named(tmp_path: Path) -> None:
    space = parse_space(GIVEN)
    failing = pytest.raises(RuntimeError, match=r"s\.db failed \(OptunaError\): mend or restore it")
    with failing, opened(f"sqlite:///{tmp_path}/s.db", "s", space):
        raise optuna.exceptions.OptunaError


def test_importances_need_some_whole_trials(tmp_path: Path) -> None:
    how = Plan(trials=search.STARTUP, members=search.STARTUP, rungs=())
    _, found = run(tmp_path, parse_space(GIVEN | {"epochs": 1}), how)
    assert sum(found["importances"].values()) == pytest.approx(1)
    assert set(found["importances"]) == {"k", "r", "lr"}
    assert run(tmp_path, parse_space(GIVEN | {"epochs": 1}), how)[1]["trials"] == found["trials"]


# -- the comparison -------------------------------------------------------------------------------------------


def test_ways_to_choose_are_compared_at_equal_cost(tmp_path: Path) -> None:
    from auxmod.experiments.compare import compare

    settings = {name: value for name, value in SETTINGS.items() if name not in ("n", "q")} | {"epochs": 1}
    options: dict[str, Any] = {"grid": {"k": "4:5", "r": "0.2,0.4"}, "members": 2, "seeds": (1, 2)}
    rows = compare([(4, 7)], settings, tmp_path, CPU, **options)
    assert [row["way"] for row in rows] == ["grid", "search", "wide", "theory", "fixed"]
    assert [row["cost"] <= 4 for row in rows] == [True] * 5
    assert rows[0]["cost"] == 4
    assert all(row["seeds"] == 2 and 0 <= row["match"] <= 1 for row in rows)
    assert set(rows[2]["choice"]) == set(DEFAULT)
    before = (tmp_path / "compare.jsonl").read_bytes()
    assert compare([(4, 7)], settings, tmp_path, CPU, **options) == rows
    assert (tmp_path / "compare.jsonl").read_bytes() == before
    more = compare([(4, 7), (3, 5)], settings, tmp_path, CPU, **options, ways=("theory", "fixed"))
    assert [(row["n"], row["way"]) for row in more[5:]] == [(3, "theory"), (3, "fixed")]
