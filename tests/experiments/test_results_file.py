"""Tests of results files: many processes append, readers follow, torn lines are mended, foreign lines are refused."""

import json
import multiprocessing
import time
from pathlib import Path
from typing import Any

import pytest

import made_up
from auxmod.errors import UserError
from auxmod.experiments import claims
from auxmod.experiments.kept import Models
from auxmod.experiments.results_file import Results, locked, read_results, result_row
from tiny import tiny


def row(seed: int, **more: Any) -> dict[str, Any]:
    return result_row(tiny(seed=seed), None if "failed" in more else {"match": seed / 100}, {}, **more)


def test_rows_come_back_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "r.jsonl"
    written = [row(0, validation=0.5, curve=[{"step": 1, "loss": 1.0, "accuracy": 0.5}]), row(1), row(2, failed="Why.")]
    assert [made_up.append(path, each) for each in written] == [True] * 3
    assert read_results(path) == written
    assert "scores" not in written[2]
    assert not made_up.append(path, row(0))
    assert len(path.read_text().splitlines()) == 3


def test_figures_win_over_a_failure_wherever_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for each in (row(0, failed="One."), row(0, failed="Two."), row(1, failed="Three."), row(1)):
        made_up.append(path, each)
    assert not made_up.append(path, row(1, failed="Late."))
    assert [each.get("failed") for each in read_results(path)] == ["Two.", None]
    book = Results(path)
    book.refresh()
    assert book.scored == {tiny(seed=1).hash}
    assert book.failures == {tiny(seed=0).hash: 2}


def test_it_is_read_on_from_where_it_was_read_before(tmp_path: Path) -> None:
    path, book = tmp_path / "r.jsonl", Results(tmp_path / "r.jsonl")
    assert book.refresh() == []
    made_up.append(path, row(0))
    assert book.refresh() == [row(0)]
    with open(path, "a") as file:
        file.write(json.dumps(row(1))[:40])  # another process is writing it
        file.flush()
        assert book.refresh() == []
        file.write(json.dumps(row(1))[40:] + "\n")
    assert book.refresh() == [row(1)]
    assert book.refresh() == []
    path.write_text(json.dumps(row(2)) + "\n")  # cut by hand
    assert book.refresh() == [row(2)]
    assert book.scored == {tiny(seed=2).hash}


def test_read_anew_it_still_wants_models(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    made_up.append(path, row(0))
    made_up.append(path, row(1))
    book = Results(path, Models(path))
    book.refresh()
    assert not book.done(tiny(seed=0).hash)
    path.write_text(json.dumps(row(0)) + "\n")
    book.refresh()
    assert book.scored == {tiny(seed=0).hash}
    assert not book.done(tiny(seed=0).hash)


def test_a_torn_last_line_is_taken_out_and_a_whole_one_kept(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    made_up.append(path, row(0))
    with open(path, "a") as file:
        file.write('{"hash": "abc", "conf')
    made_up.append(path, row(1))
    assert read_results(path) == [row(0), row(1)]
    path.write_text(path.read_text().rstrip("\n"))  # some editors do not end the last line
    made_up.append(path, row(2))
    assert read_results(path) == [row(0), row(1), row(2)]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("junk", "Line 2 of .* is not JSON"),
        ("a note without its end", "Line 2 of .* is not JSON"),
        ("[1]", "Line 2 of .* is not a result"),
        ('{"hash": "a", "config": {"format": 1}}', "Line 2 of .* is not a result"),
        ('{"hash": "a", "config": {"format": 7}, "scores": {}}', "Line 2 of .* has format 7; .* reads format 1"),
    ],
)
def test_a_line_that_is_none_is_named_and_nothing_is_written(tmp_path: Path, line: str, words: str) -> None:
    path = tmp_path / "r.jsonl"
    made_up.append(path, row(0))
    with open(path, "a") as file:
        file.write(line + "\n" * ("without its end" not in line))
    before = path.read_bytes()
    for attempt in (lambda: read_results(path), lambda: made_up.append(path, row(1))):
        with pytest.raises(UserError, match=words):
            attempt()
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"(?i)is a directory"):
        made_up.append(tmp_path, row(0))
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        made_up.append(tmp_path / "file" / "r.jsonl", row(0))
    with pytest.raises(UserError, match="There is no results file"):
        read_results(tmp_path / "none.jsonl")
    with pytest.raises(UserError, match="would be taken for a run's learning curve"):
        made_up.append(tmp_path / "metrics.jsonl", row(0))
    assert not (tmp_path / "metrics.jsonl").exists()


# -- several processes ----------------------------------------------------------------------------------------


def _append_many(path: Path, first: int) -> None:
    for seed in range(first, first + 40):
        made_up.append(path, row(seed))


def test_many_processes_append_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_append_many, args=(path, first)) for first in (0, 20, 40)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert len(path.read_text().splitlines()) == 80
    assert {each["config"]["seed"] for each in read_results(path)} == set(range(80))


def _hold(directory: Path, ready: Any) -> None:
    claims.take(directory, ["a", "b"])
    ready.set()
    time.sleep(60)


def test_a_claim_holds_as_long_as_its_process_lives(tmp_path: Path) -> None:
    directory = tmp_path / "r.jsonl.d"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    holder = context.Process(target=_hold, args=(directory, ready))
    holder.start()
    assert ready.wait(60)
    assert claims.held(directory) == {"a", "b"}
    claims.announce(directory, {"a": {}})
    claims.tidy(directory, ["z"])  # as another sweep into the same file does when it ends
    assert claims.planned(directory) == {"a": {}}
    twice = claims.take(directory, ["a", "b"])  # does not harm the other process's claim
    assert claims.held(directory) == {"a", "b"}
    twice.release()
    assert claims.held(directory) == {"a", "b"}
    own = claims.take(directory, ["c"])
    assert claims.held(directory) == {"a", "b", "c"}
    holder.kill()
    holder.join(60)
    assert claims.held(directory) == {"c"}
    own.release()
    assert claims.held(directory) == set()
    claims.tidy(directory, [])
    assert not directory.exists()


def test_saved_work_stays_until_its_runs_are_finished(tmp_path: Path) -> None:
    claim = claims.take(tmp_path / "d", ["a", "b"])
    assert list(claims.unfinished(tmp_path / "d")) == []
    made_up.save_account(claim.state, {"members": ["a", "b"]})
    (tmp_path / "d" / f"{'0' * 16}.safetensors").write_bytes(b"junk")
    assert list(claims.unfinished(tmp_path / "d")) == [("a", "b")]
    claim.release()
    claims.tidy(tmp_path / "d", ["a"])
    assert claim.state.exists()
    claims.tidy(tmp_path / "d", ["a", "b", "c"])
    assert not claim.state.exists()
    (tmp_path / "d" / f"{'0' * 16}.safetensors").unlink()
    claims.tidy(tmp_path / "d", [])
    assert not (tmp_path / "d").exists()


def test_the_lock_is_let_go_of_when_something_fails(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with pytest.raises(KeyboardInterrupt), locked(path):
        raise KeyboardInterrupt
    assert made_up.append(path, row(0))
