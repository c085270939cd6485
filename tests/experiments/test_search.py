"""Tests of searches: batches are ensembles, a killed search resumes to the same trials, and a budget is kept."""

import contextlib
import fcntl
import functools
import itertools
import json
import operator
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
import torch

from auxmod.errors import UserError
from auxmod.experiments import claims, ensembles, halving, saving, search
from auxmod.experiments.asking import STARTUP, Plan
from auxmod.experiments.ensembles import Notice, Started, train_ensemble
from auxmod.experiments.results_file import read_results
from auxmod.experiments.search import run_search
from auxmod.experiments.single import Interrupted
from auxmod.experiments.space import Space, parse_space
from auxmod.experiments.study import finished, opened, summary
from tiny import SETTINGS, tiny

CPU = torch.device("cpu")
GIVEN = {**SETTINGS, "epochs": 2, "k": "3:5", "r": "0.05:0.6", "lr": "1e-4:1e-2:log"}
pytestmark = pytest.mark.usefixtures("quick_halving")


def run(place: Path, space: Space, how: Plan, most: int | None = None, **options: Any) -> tuple[list[Any], Any]:
    """Search for at most ``most`` events, and until only other processes train; return the events and the summary."""
    with opened(f"sqlite:///{place}/s.db", "s", space) as study:
        running = run_search(study, space, place / "r.jsonl", CPU, how, **options)
        here = itertools.takewhile(lambda event: not getattr(event, "elsewhere", 0), running)
        events = list(itertools.islice(here, most))
        running.close()  # type: ignore[attr-defined]
        return events, summary(study, space)


def told(found: Any) -> list[Any]:
    """The parameters and outcomes of a study's trials, in an order that does not depend on their numbers."""
    return sorted(
        (sorted(t["params"].items()), t["state"], t["validation"], t["hash"], t["cost"]) for t in found["trials"]
    )


@pytest.fixture
def halves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prune half of the members at every rung, since so short a training hardly tells them apart."""
    monkeypatch.setattr(halving, "behind", lambda accuracy: sorted(accuracy)[: len(accuracy) // 2])


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
    assert not [e for e in events if isinstance(e, Started)]  # nothing is left to train
    assert not (tmp_path / "r.jsonl.d").exists()
    (tmp_path / "split").mkdir()
    events, found = run(tmp_path / "split", parse_space(GIVEN | {"pooling": "mean,max"}), Plan(trials=6, members=6))
    sizes = [(len(e.configs), {c.model.pooling for c in e.configs}) for e in events if isinstance(e, Started)]
    assert sum(size for size, _ in sizes) == 6
    assert [len(kinds) for _, kinds in sizes] == [1, 1]


@pytest.mark.usefixtures("halves")
def test_an_ensemble_that_fails_after_a_rung_fails_those_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*words: Any, **options: Any) -> Any:
        for event in train_ensemble(*words, **options):
            yield event
            if isinstance(event, halving.Rung):
                raise RuntimeError("broken")

    monkeypatch.setattr(ensembles, "train_ensemble", failing)
    _, found = run(tmp_path, parse_space(GIVEN), Plan(trials=4, members=4))
    assert sorted(trial["state"] for trial in found["trials"]) == ["failed", "failed", "pruned", "pruned"]
    rows = read_results(tmp_path / "r.jsonl")
    assert [row["failed"] for row in rows] == ["RuntimeError: broken"] * 2


@pytest.mark.usefixtures("halves")
def test_a_run_pruned_from_an_ensemble_that_failed_has_not_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken: list[bool] = []

    def failing(*words: Any, **options: Any) -> Any:
        for event in train_ensemble(*words, **options):
            yield event
            if isinstance(event, halving.Rung) and not broken:
                broken.append(True)
                raise RuntimeError("broken")

    monkeypatch.setattr(ensembles, "train_ensemble", failing)
    events, found = run(tmp_path, parse_space({**SETTINGS, "k": "3,4", "r": "0.2"}), Plan(trials=12, members=4))
    begun = [c.hash for event in events if isinstance(event, Started) for c in event.configs]
    lost = {row["hash"] for row in read_results(tmp_path / "r.jsonl") if "failed" in row}
    assert len(set(begun)) == 2
    assert {trial["hash"] for trial in found["trials"] if trial["state"] == "failed"} == lost
    (pruned,) = set(begun) - lost
    assert begun.count(pruned) == 2


@pytest.mark.usefixtures("halves")
def test_stopped_anywhere_it_goes_on_to_the_same_trials(tmp_path: Path) -> None:
    """Batches of two shapes; the stops come before the first ensemble, inside ensembles, and right after a rung."""
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


@pytest.mark.usefixtures("halves")
def test_stopped_again_and_again_each_trial_is_trained_once_and_keeps_its_number(tmp_path: Path) -> None:
    space, how = parse_space(GIVEN | {"pooling": "mean,max"}), Plan(trials=10, members=5)
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    _, whole = run(tmp_path / "whole", space, how)
    begun: list[Started] = []
    stops = 0
    while True:
        seen: list[Any] = []
        with opened(f"sqlite:///{tmp_path}/broken/s.db", "s", space) as study:
            try:
                for event in run_search(
                    study, space, tmp_path / "broken/r.jsonl", CPU, how, stopping=lambda seen=seen: len(seen) > 4
                ):
                    seen.append(event)
                break
            except Interrupted:
                stops += 1
            finally:
                begun += [event for event in seen if isinstance(event, Started)]
            assert stops < 30
    assert stops > 5
    assert sum(event.step == 0 for event in begun) == 4  # two batches of two shapes
    with opened(f"sqlite:///{tmp_path}/broken/s.db", "s", space) as study:
        assert len(study.trials) == 10
        again = summary(study, space)
    key = operator.itemgetter("number")
    assert sorted(again["trials"], key=key) == sorted(whole["trials"], key=key)
    assert not (tmp_path / "broken/r.jsonl.d").exists()


class KilledError(Exception):
    pass


@pytest.mark.usefixtures("halves")
@pytest.mark.parametrize("moment", ["when some were pruned", "while the smaller ensemble was saved"])
@pytest.mark.parametrize("rung", [0, 1])
def test_killed_after_a_rung_it_goes_on_from_what_was_saved_and_prunes_nobody_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, rung: int
) -> None:
    space, how = parse_space(GIVEN), Plan(trials=8, members=8)
    for name in ("whole", "broken"):
        (tmp_path / name).mkdir()
    _, whole = run(tmp_path / "whole", space, how)
    assert (whole["complete"], whole["pruned"]) == (2, 6)
    honest, sizes = saving.save_state, list[int]()

    def dying(path: Path, ensemble: Any, account: str) -> None:
        sizes.append(len(ensemble.configs))
        if moment.startswith("while") and len(set(sizes)) == rung + 2:
            raise KilledError
        honest(path, ensemble, account)

    with monkeypatch.context() as patch, opened(f"sqlite:///{tmp_path}/broken/s.db", "s", space) as study:
        patch.setattr(saving, "SAVING_SHARE", float("inf"))
        patch.setattr(saving, "save_state", dying)
        patch.setattr(ensembles, "train_ensemble", functools.partial(train_ensemble, checkpoint_every=1))
        running = run_search(study, space, tmp_path / "broken/r.jsonl", CPU, how)
        pruned = 0
        with contextlib.suppress(KilledError):
            for event in running:
                pruned += isinstance(event, Notice) and "are pruned" in event.sentence
                if moment.startswith("when") and pruned == rung + 1:
                    break
        running.close()  # type: ignore[attr-defined]
    assert sizes
    events, again = run(tmp_path / "broken", space, how)
    (begun,) = (event for event in events if isinstance(event, Started))
    assert begun.step > 0
    assert told(again) == told(whole)


@pytest.mark.usefixtures("halves")
def test_what_another_process_trains_is_not_gone_on_with_here(tmp_path: Path) -> None:
    """In a space of two runs, one process trains one of them, and the other process asks for both."""
    space = parse_space(GIVEN | {"k": "3,4", "r": "0.2", "lr": "1e-3"})
    one, both = (Plan(trials=8, members=members, rungs=()) for members in (1, 7))
    with pytest.raises(Interrupted):
        run(tmp_path, space, one, stopping=iter([False, False, True]).__next__)
    with opened(f"sqlite:///{tmp_path}/s.db", "s", space) as study:
        other = run_search(study, space, tmp_path / "r.jsonl", CPU, one)
        *_, begun, _ = itertools.islice(other, 3)
        assert isinstance(begun, Started)
        assert begun.step == 2
        here, found = run(tmp_path, space, both)
        assert [(len(e.configs), e.step) for e in here if isinstance(e, Started)] == [(2, 0)]
        other.close()  # type: ignore[attr-defined]
        assert found["complete"] == 7


@pytest.mark.parametrize("moment", ["r.jsonl.d/*.lock", "r.jsonl"])
def test_killed_in_the_middle_it_goes_on_and_loses_and_doubles_nothing(tmp_path: Path, moment: str) -> None:
    """It is killed once its first trials are claimed, or once their results are in the file."""
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
        found = summary(study, space)
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


def test_killed_between_its_rows_and_the_study_it_has_paid_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, how = parse_space(GIVEN), Plan(trials=100, members=3, budget=6, rungs=())
    with monkeypatch.context() as patch:
        patch.setattr(search, "_tell_rows", lambda study, batch, rows, near: rows and 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(tmp_path, space, how)
    assert len(read_results(tmp_path / "r.jsonl")) == 3
    _, found = run(tmp_path, space, how)
    assert found["cost"] == len(read_results(tmp_path / "r.jsonl")) == 6
    (tmp_path / "whole").mkdir()
    _, whole = run(tmp_path / "whole", space, how)
    assert told(found) == told(whole)


def test_a_later_failure_does_not_outrank_figures(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"k": "3,4", "r": "0.2", "lr": "1e-3"})  # two runs in all
    _, found = run(tmp_path, space, Plan(trials=4, members=4, rungs=()))
    rows = read_results(tmp_path / "r.jsonl")
    (tmp_path / "b").mkdir()
    failed = [{**{n: row[n] for n in ("hash", "config", "provenance")}, "failed": "Lost."} for row in rows]
    (tmp_path / "b" / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, *failed]))
    _, again = run(tmp_path / "b", space, Plan(trials=4, members=4, rungs=()))
    assert (again["failed"], again["cost"]) == (0, 0)
    assert again["best"]["validation"] == found["best"]["validation"]


def test_a_row_without_what_is_sought_is_trained_anew(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"q": "1009", "k": "3,4", "r": "0.2", "lr": "1e-3"})
    _, found = run(tmp_path, space, Plan(trials=4, members=4, rungs=()))
    (tmp_path / "b").mkdir()
    old = [{n: v for n, v in row.items() if n not in ("sum", "curve")} for row in read_results(tmp_path / "r.jsonl")]
    (tmp_path / "b" / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in old))
    _, again = run(tmp_path / "b", space, Plan(trials=4, members=4, rungs=()))
    assert again["cost"] == 2
    assert again["best"]["validation"] == found["best"]["validation"]


def test_values_that_do_not_go_together_and_runs_that_diverge_are_trials_too(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"heads": "1,2", "width": "8,9", "lr": "1e-3,1e30"})
    with pytest.raises(UserError, match="does not divide"):  # the space is checked before anything is trained
        run(tmp_path, parse_space(GIVEN | {"heads": "2,1", "width": "8,9"}), Plan(trials=1))
    events, found = run(tmp_path, space, Plan(trials=12, members=6, seed=2))
    assert len(found["trials"]) == 12
    assert found["failed"] >= 1
    words = {t["failed"].split()[0] for t in found["trials"] if t["failed"]}
    assert words == {"The", "--width"}
    assert events


def test_a_run_that_diverged_is_not_trained_again(tmp_path: Path) -> None:
    space = parse_space(GIVEN | {"k": "3,4", "r": "0.2", "lr": "1e30"})
    _, found = run(tmp_path, space, Plan(trials=6, members=3, rungs=()))
    assert (found["failed"], found["cost"]) == (6, 2)
    assert len(read_results(tmp_path / "r.jsonl")) == 2


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
    how = Plan(trials=STARTUP, members=STARTUP, rungs=())
    _, found = run(tmp_path, parse_space(GIVEN | {"epochs": 1}), how)
    assert sum(found["importances"].values()) == pytest.approx(1)
    assert set(found["importances"]) == {"k", "r", "lr"}
    assert run(tmp_path, parse_space(GIVEN | {"epochs": 1}), how)[1]["trials"] == found["trials"]


def test_a_second_search_waits_for_what_another_process_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "POLL_SECONDS", 0.0)
    space, how = parse_space(GIVEN), Plan(trials=2, members=2)
    with opened(f"sqlite:///{tmp_path}/s.db", "s", space) as study:
        first, second = (run_search(study, space, tmp_path / "r.jsonl", CPU, how) for _ in range(2))
        next(event for event in first if isinstance(event, Started))
        assert [event.elsewhere for event in itertools.islice(second, 3)] == [2, 2, 2]  # type: ignore[union-attr]
        assert len(list(first)) > 2
        (last,) = second
        assert (last.done, last.elsewhere) == (2, 0)  # type: ignore[union-attr]


def test_what_is_left_of_a_budget_is_no_more_than_it_pays(tmp_path: Path) -> None:
    events, _ = run(tmp_path, parse_space(GIVEN), Plan(trials=50, members=3, budget=3, rungs=()))
    first, last = (event.work_left for event in (events[0], events[-1]))
    assert first > 0 == last
    assert first == pytest.approx(3 * search.work(search.examples(parse_space(GIVEN), CPU)[0]), rel=0.5)


def test_a_listed_value_is_not_rounded_to_one_that_fits() -> None:
    with pytest.raises(UserError, match=r"--layers is 2\.9, but must be a whole number"):
        search.examples(parse_space({"n": 4, "q": 7, "layers": [1, 2.9]}), CPU)
