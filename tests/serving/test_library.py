"""Tests of a store's news for the page: everything once, then only changes; unchanged files are not read again."""

import contextlib
import fcntl
import functools
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import auxmod
import made_up
from auxmod.errors import UserError
from auxmod.experiments import catalogue, claims, halving
from auxmod.experiments.asking import Plan
from auxmod.experiments.kept import Models
from auxmod.experiments.results_file import Results, result_row
from auxmod.experiments.run_directory import Run
from auxmod.experiments.search import run_search
from auxmod.experiments.single import Interrupted
from auxmod.experiments.space import parse_space
from auxmod.experiments.study import opened
from auxmod.experiments.sweep import run_sweep
from auxmod.files import models_of
from auxmod.serving import library as module
from auxmod.serving.answers import Answers
from auxmod.serving.library import Library
from made_up import row
from tiny import SETTINGS, tiny

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def restless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the library look at the store at every request."""
    monkeypatch.setattr(module, "REST", 0.0)
    monkeypatch.setattr(module, "SHARE", 1e9)


def curve_of(library: Library, id: str) -> list[Any]:
    points: list[Any] = json.loads(library.news(0, {id})["curves"][id])
    return points


def rows(library: Library) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = library.news(0)["rows"]
    return shown


def names(news: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["state"] for each in news["rows"]}


def test_a_run_is_going_while_it_writes_then_unfinished_then_done(store: Path) -> None:
    library = Library(store)
    first = library.news(0)
    assert names(first) == {"one": "going"}
    assert library.news(first["version"])["rows"] == []
    os.utime(store / "one" / "metrics.jsonl", (1, 1))
    second = library.news(first["version"])
    assert names(second) == {"one": "unfinished"}
    Run.open(store / "one").finish(row(tiny())["scores"])
    third = library.news(second["version"])
    assert names(third) == {"one": "done"}
    assert third["rows"][0]["match"] == pytest.approx(row(tiny())["scores"]["match"])


def test_a_curve_comes_whole_and_follows_the_run_back(store: Path) -> None:
    library = Library(store)
    (id,) = library.items
    Run.open(store / "one").log({"step": 5, "loss": None})
    assert curve_of(library, id)[3:] == [[4, 0.25, 0.4], [5, None, None]]
    Run.open(store / "one").rewind(2)
    assert [step for step, _, _ in curve_of(library, id)] == [1, 2]
    assert library.news(0, {"unknown"})["curves"] == {}


def test_what_is_deleted_is_gone_and_what_is_unchanged_is_not_read_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Run.create(store / "two", tiny(seed=1))
    library = Library(store)
    read: list[Path] = []
    find = catalogue.find
    monkeypatch.setattr(catalogue, "find", lambda path: (read.append(path), find(path))[1])
    version = library.news(0)["version"]
    shutil.rmtree(store / "two")
    news = library.news(version)
    assert (len(news["gone"]), news["rows"], read) == (1, [], [])
    Run.open(store / "one").log({"step": 5, "loss": 0.1})
    assert names(library.news(version)) == {"one": "going"}
    assert read == [store / "one"]


def test_one_who_comes_from_another_server_begins_anew(store: Path) -> None:
    library = Library(store)
    assert library.news(library.first - 1)["anew"]
    assert not library.news(library.version)["anew"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", b"{"),
        ("config.json", b"[]"),
        ("metrics.jsonl", b"nonsense\n{}\n"),
        ("metrics.jsonl", b'{"step": 1, "loss": NaN}\n{"step": 2, "loss": 1}\n'),
        ("result.json", b'{"match": NaN}'),
        ("result.json", b"3"),
    ],
)
def test_a_damaged_place_is_a_note_and_the_others_are_shown(file: str, content: bytes, store: Path) -> None:
    Run.create(store / "two", tiny(seed=1))
    (store / "two" / file).write_bytes(content)
    (store / "bad.jsonl").write_bytes(b"nonsense\n")
    news = Library(store).news(0)
    assert "one" in names(news)
    assert "two" not in names(news)
    assert len(news["notes"]) == 2
    assert any("two" in note for note in news["notes"])


def test_no_store_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="There is no store"):
        Library(tmp_path / "nothing")


def test_a_results_file_alone_is_a_store(tmp_path: Path) -> None:
    made_up.append(tmp_path / "r.jsonl", row(tiny()))
    library = Library(tmp_path / "r.jsonl")
    (shown,) = library.news(0)["rows"]
    assert (shown["name"], shown["state"]) == (f"r.jsonl {tiny().hash}", "done")
    assert shown["points"] == 18
    assert library.model(shown["id"]) is None


def test_of_a_large_q_a_curve_is_of_near_answers(tmp_path: Path) -> None:
    """Runs of earlier versions did not note them: their curves are of exact answers, as those of a small q are."""
    run = Run.create(tmp_path / "large", tiny(q=1009))
    run.log({"step": 1, "loss": 1.0, "accuracy": 0.01, "near": 0.75})
    made_up.append(tmp_path / "old.jsonl", row(tiny(q=1013), match=0.125))
    near = row(tiny(q=1019), match=0.125, tau=0.875)
    curve = [point | {"near": 0.5} for point in near["curve"]]
    made_up.append(tmp_path / "new.jsonl", result_row(tiny(q=1019), near["scores"], {}, validation=0.125, curve=curve))
    small = Run.create(tmp_path / "small", tiny())
    small.log({"step": 1, "loss": 1.0, "accuracy": 0.25, "near": 0.25})
    library = Library(tmp_path)
    shown = {
        each["q"]: tuple(each[name] for name in ("within", "validation", "match", "near")) for each in rows(library)
    }
    assert shown == {
        1009: (0.005, 0.75, None, None),
        1013: (None, pytest.approx(0.125, rel=0.01), 0.125, None),
        1019: (0.005, 0.5, 0.125, 0.875),
        7: (None, 0.25, None, None),
    }
    curves = {item.row["q"]: curve_of(library, id)[-1][2] for id, item in library.items.items()}
    assert curves == {q: validation for q, (_, validation, _, _) in shown.items()}


def test_a_model_that_a_sweep_keeps_can_be_tried(tmp_path: Path) -> None:
    """The models are written after the rows, which leaves the results file as it was."""
    cells, results = [tiny(seed=0), tiny(seed=1)], tmp_path / "s.jsonl"
    for _ in run_sweep(cells, results, CPU, models=Models(results)):
        pass
    kept = models_of(results) / cells[1].hash / "model.safetensors"
    kept.rename(tmp_path / "away")
    library = Library(tmp_path)
    first = library.news(0)
    assert {each["hash"]: each["playable"] for each in first["rows"]} == {cells[0].hash: True, cells[1].hash: False}
    (tmp_path / "away").rename(kept)
    (after,) = library.news(first["version"])["rows"]
    assert (after["hash"], after["playable"]) == (cells[1].hash, True)
    place = library.model(after["id"])
    assert place == kept.parent
    assert Answers().ask(place, [6, 5, 4, 3])["prediction"] == auxmod.load(place).predict([[6, 5, 4, 3]])[0]


# -- sweeps ---------------------------------------------------------------------------------------------------


def test_a_sweep_in_training_shows_its_cells_and_how_far_it_is(tmp_path: Path) -> None:
    results, cells = tmp_path / "s.jsonl", [tiny(seed=seed) for seed in range(6)]
    made_up.append(results, row(cells[0]))
    made_up.append(results, result_row(cells[1], None, {}, failed="It diverged."))
    directory = claims.directory_of(results)
    claims.announce(directory, {cell.hash: cell.to_dict() for cell in cells})
    claim = claims.take(directory, [cell.hash for cell in cells[2:4]])
    curves = [[{"step": 3, "loss": 0.5, "accuracy": 0.25}], []]
    made_up.save_account(claim.state, {"members": list(claim.members), "curves": curves, "step": 9})
    library = Library(tmp_path)
    news = library.news(0)
    standing = {"name": "s.jsonl", "cells": 6, "going": 2, "done": 1, "failed": 1, "begun": 2 * 9 / 18}
    assert news["sweeps"] == [standing]
    assert sorted(names(news).values()) == ["done", "failed", "going", "going"]
    (going,) = (each for each in news["rows"] if each["hash"] == cells[2].hash)
    assert (going["step"], going["steps"], going["validation"]) == (9, 18, 0.25)
    assert curve_of(library, going["id"]) == [[3, 0.5, 0.25]]
    claim.forget()
    claim.release()
    assert library.news(0)["sweeps"][0]["going"] == 0
    claims.tidy(directory, ())
    assert library.news(0)["sweeps"] == []


def test_watching_takes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    results = tmp_path / "s.jsonl"
    made_up.append(results, row(tiny()))
    directory = claims.directory_of(results)
    claim = claims.take(directory, ["a"])
    assert claims.watched(results) == {"a"}
    assert claims.held(directory) == {"a"}
    os.close(claim.descriptor)  # as the death of its process would
    assert claims.watched(results) == set()
    assert list(directory.glob("*.lock")), "only who holds the results file takes a dead claim away"
    with open(results, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert claims.watched(results) is None
    assert Results(results).refresh()


def test_a_sweep_says_what_it_will_train_and_leaves_nothing_behind(tmp_path: Path) -> None:
    results, cells = tmp_path / "s.jsonl", [tiny(seed=0), tiny(seed=1)]
    plans = [claims.planned(claims.directory_of(results)) for _ in run_sweep(cells, results, CPU)]
    assert plans[0] == {cell.hash: cell.to_dict() for cell in cells}
    assert not claims.directory_of(results).exists()


def test_a_search_shows_what_it_trains_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of its first four trials, which are stopped once, it prunes one; the second batch has two."""
    monkeypatch.setattr(halving, "behind", lambda accuracy: sorted(accuracy)[:1] if len(accuracy) > 3 else [])
    space, how = parse_space(SETTINGS | {"k": "3:5", "r": "0.05:0.6"}), Plan(trials=6, members=4)
    library, seen = Library(tmp_path), [list[dict[str, Any]](), list[dict[str, Any]]()]
    with opened(f"sqlite:///{tmp_path}/s.db", "s", space) as study:
        for news, most in zip(seen, (4, 99), strict=True):
            stops = functools.partial(lambda news, most: len(news) > most, news, most)
            with contextlib.suppress(Interrupted):
                for _ in run_search(study, space, tmp_path / "r.jsonl", CPU, how, stopping=stops):
                    news.append(library.news(0))
    started = {"name": "r.jsonl", "cells": 4, "going": 4, "done": 0, "failed": 0, "begun": 0.0}
    assert seen[0][0]["sweeps"] == [started]
    assert list(names(seen[0][0]).values()) == ["going"] * 4
    assert seen[1][0]["sweeps"][0]["begun"] > 0, "it goes on from where it was saved"
    counts = [(each["cells"], each["going"], each["done"]) for news in seen[1] for each in news["sweeps"]]
    assert (5, 2, 3) in counts, "the pruned one is not waited for"
    assert counts[-1] == (5, 0, 5)
    assert not claims.directory_of(tmp_path / "r.jsonl").exists()
    assert library.news(0)["sweeps"] == []


def test_a_pruned_trial_is_neither_in_training_nor_waited_for(tmp_path: Path) -> None:
    results, cells = tmp_path / "s.jsonl", [tiny(seed=seed) for seed in range(3)]
    results.touch()
    directory, runs = claims.directory_of(results), [cell.hash for cell in cells]
    claims.announce(directory, {cell.hash: cell.to_dict() for cell in cells})
    claim = claims.take(directory, runs)
    account = {"members": runs[:2], "curves": [[], []], "step": 9, "gone": [runs[0]]}
    made_up.save_account(directory / f"{'0' * 16}.safetensors", account)  # gone on with from another claim's
    library = Library(tmp_path)
    assert library.news(0)["sweeps"] == [
        {"name": "s.jsonl", "cells": 2, "going": 2, "done": 0, "failed": 0, "begun": 0.5}
    ]
    claim.release()


def test_the_plan_grows_and_a_damaged_one_is_no_plan(tmp_path: Path) -> None:
    claims.announce(tmp_path / "d", {"a": 1})
    claims.announce(tmp_path / "d", {"b": 2})
    assert claims.planned(tmp_path / "d") == {"a": 1, "b": 2}
    (tmp_path / "d" / "plan").write_bytes(b"[")
    assert claims.planned(tmp_path / "d") == {}
