"""Tests of sweeps: packed to fit, stopped anywhere and resumed to the same file; a failure costs only its cells."""

import itertools
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments import catalogue, ensembles, packing, saving, sweep
from auxmod.experiments.claims import Claim, directory_of
from auxmod.experiments.ensembles import Ended, Notice, Started, train_ensemble
from auxmod.experiments.kept import Models
from auxmod.experiments.packing import HEADROOM, MOST_MEMBERS, forecast, plan
from auxmod.experiments.resolving import resolved
from auxmod.experiments.results_file import Results, locked, read_results, result_row
from auxmod.experiments.single import Interrupted, create_run, train_run
from auxmod.experiments.sweep import Event, Standing, run_sweep
from auxmod.files import CONFIG, MODEL, models_of
from auxmod.learning import engine
from auxmod.learning.cost import member_bytes, work
from auxmod.learning.engine import Progress, shape_of
from auxmod.learning.objective import Objective
from tiny import SETTINGS, tiny

CPU = torch.device("cpu")
CELLS = [tiny(width=w, k=k, r=r, seed=s) for w, k, r, s in itertools.product((8, 16), (3, 4), (0.2, 0.4), (0, 1, 2))]
"""24 cells: two shapes, so two ensembles."""


def by_hash(results: Path) -> dict[str, dict[str, Any]]:
    """A results file's rows by hash, without their provenance; fails if a run is there twice."""
    rows = read_results(results)
    assert len(rows) == len(results.read_text().splitlines())
    return {row["hash"]: {name: value for name, value in row.items() if name != "provenance"} for row in rows}


def finish(configs: list[RunConfig], results: Path, **options: Any) -> list[Event]:
    return list(run_sweep(configs, results, CPU, **options))


@pytest.fixture(scope="module", autouse=True)
def quick_validation() -> Iterator[None]:
    """Measure accuracy on few inputs, since so short a run does so at every step."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "VALIDATION_SAMPLES", 50)
        yield


@pytest.fixture(scope="module")
def undisturbed(quick_validation: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    results = tmp_path_factory.mktemp("whole") / "r.jsonl"
    finish(CELLS, results)
    return by_hash(results)


@pytest.fixture
def eager_saving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Save as often as ``checkpoint_every`` says, whatever share of the time that takes."""
    monkeypatch.setattr(saving, "SAVING_SHARE", float("inf"))


# -- what a sweep leaves --------------------------------------------------------------------------------------


def test_every_cell_has_a_row_with_figures_curve_and_held_out_accuracy(undisturbed: dict[str, Any]) -> None:
    assert list(undisturbed) == [config.hash for config in CELLS]
    for config, row in zip(CELLS, undisturbed.values(), strict=True):
        assert RunConfig.from_dict(row["config"]) == config
        assert row["scores"]["samples"] == 300
        assert row["validation"] == row["curve"][-1]["accuracy"]
        assert row["curve"][-1]["step"] == 18
        assert len(row["curve"]) <= 20


def test_its_events_tell_how_far_it_is(tmp_path: Path) -> None:
    events = finish(CELLS, tmp_path / "r.jsonl")
    assert [type(e) for e in events if not isinstance(e, Progress)] == [
        Standing, Started, Ended, Standing, Started, Ended, Standing,
    ]  # fmt: skip
    standings = [e for e in events if isinstance(e, Standing)]
    assert [(e.done, e.failed, e.elsewhere, e.total) for e in standings] == [
        (0, 0, 0, 24), (12, 0, 0, 24), (24, 0, 0, 24),
    ]  # fmt: skip
    assert standings[0].work_left > standings[1].work_left > standings[2].work_left == 0
    assert os.listdir(tmp_path) == ["r.jsonl"]


@pytest.mark.parametrize("member", [0, 17])
def test_a_member_gives_what_it_gives_alone(tmp_path: Path, undisturbed: dict[str, Any], member: int) -> None:
    config = CELLS[member]
    run = create_run(tmp_path / "run", config, CPU)
    for _ in train_run(run, CPU):
        pass
    alone, row = run.result, undisturbed[config.hash]
    assert alone is not None
    assert row["scores"]["match"] == pytest.approx(alone["match"], abs=0.01)
    assert row["scores"]["tau"] == pytest.approx(alone["tau"], abs=0.01)
    for point, mine in zip(run.curve(), row["curve"], strict=True):
        assert mine == pytest.approx(point, rel=1e-4, abs=1e-3)


# -- stopped, and gone on with --------------------------------------------------------------------------------


@pytest.mark.usefixtures("eager_saving")
@pytest.mark.parametrize(("every", "moments"), [(1, (1, 9, 4)), (5, (21,)), (5, (3, 17, 12)), (100, (7, 30))])
def test_killed_after_any_events_it_goes_on_to_the_same_file(
    tmp_path: Path, undisturbed: dict[str, Any], moments: tuple[int, ...], every: int
) -> None:
    results = tmp_path / "r.jsonl"
    for events in moments:
        running = run_sweep(CELLS, results, CPU, checkpoint_every=every)
        list(itertools.islice(running, events))
        running.close()  # nothing more is written: as good as a kill
    finish(CELLS, results, checkpoint_every=every)
    assert by_hash(results) == undisturbed
    assert os.listdir(tmp_path) == ["r.jsonl"]


def files_below(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("eager_saving")
@pytest.mark.parametrize("moments", [(2,), (9, 4), (20,), (21, 1)])
def test_killed_after_any_events_it_goes_on_to_the_same_models(tmp_path: Path, moments: tuple[int, ...]) -> None:
    cells, results, whole = CELLS[:4], tmp_path / "r.jsonl", tmp_path / "whole.jsonl"
    finish(cells, whole, models=Models(whole, 7))
    for events in moments:
        running = run_sweep(cells, results, CPU, checkpoint_every=5, models=Models(results, 7))
        list(itertools.islice(running, events))
        running.close()  # nothing more is written: as good as a kill
    if (models_of(results) / cells[0].hash).exists():  # leave a half-written file too, as a kill may
        (models_of(results) / cells[0].hash / ".model.safetensors.0a1b2c3d").write_bytes(b"half")
    finish(cells, results, models=Models(results, 7))
    made = files_below(models_of(results))
    assert made == files_below(models_of(whole))
    places = [run.hash + way for run in cells for way in ("", "/steps/0", "/steps/7", "/steps/14")]
    assert sorted(made) == sorted(f"{place}/{name}" for place in places for name in (CONFIG, MODEL))


def test_models_are_kept_of_those_that_ended_and_are_no_runs_of_a_store(tmp_path: Path) -> None:
    results, cells = tmp_path / "r.jsonl", [tiny(seed=0), tiny(seed=1, lr=1e30)]
    finish(cells, results, models=Models(results))
    assert os.listdir(models_of(results)) == [cells[0].hash]
    assert catalogue.places(tmp_path) == [results]
    assert catalogue.places(models_of(results)) == [models_of(results) / cells[0].hash]
    own = tmp_path / "my.models"  # belongs to no results file
    for _ in train_run(create_run(own / "run", tiny(seed=2), CPU), CPU):
        pass
    assert catalogue.places(tmp_path) == [own / "run", results]


@pytest.mark.usefixtures("eager_saving")
def test_a_sweep_that_ends_leaves_what_another_has_saved_on_the_way_to_its_models(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    finish(CELLS[:2], results)
    finish(CELLS[2:3], results, models=Models(results))
    running = run_sweep(CELLS[:2], results, CPU, checkpoint_every=5, models=Models(results))
    list(itertools.islice(running, 12))
    finish(CELLS[3:4], results)  # while the other is in training
    assert list(directory_of(results).glob("*.safetensors"))
    running.close()
    finish(CELLS[:5], results)  # after the other was stopped
    assert list(directory_of(results).glob("*.safetensors"))
    finish(CELLS[:2], results, models=Models(results))
    assert not directory_of(results).exists()


@pytest.mark.usefixtures("eager_saving")
def test_a_saved_ensemble_with_one_that_diverged_is_deleted_when_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, cells = tmp_path / "r.jsonl", [tiny(seed=0), tiny(seed=1, lr=1e30)]
    with monkeypatch.context() as patch:
        patch.setattr(Claim, "forget", lambda claim: None)  # as if it had been killed before
        list(itertools.islice(run_sweep(cells, results, CPU, checkpoint_every=5, models=Models(results, 4)), 22))
    assert list(directory_of(results).glob("*.safetensors"))
    half = [directory_of(results) / name for name in (f".{'a' * 16}.safetensors.60716808", ".plan.eaf8e450")]
    for path in half:
        path.write_bytes(b"half")
    finish(cells, results, models=Models(results))
    assert not directory_of(results).exists()


@pytest.mark.usefixtures("eager_saving")
def test_a_notice_of_models_on_their_way_is_not_about_one_that_diverged(tmp_path: Path) -> None:
    results, cells = tmp_path / "r.jsonl", [tiny(seed=0), tiny(seed=1, lr=1e30)]
    running = run_sweep(cells, results, CPU, checkpoint_every=5, models=Models(results, 4))
    list(itertools.islice(running, 14))
    running.close()
    assert not [event for event in finish(cells, results, models=Models(results, 4)) if isinstance(event, Notice)]


def test_what_another_process_writes_is_left_alone(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    running = run_sweep(CELLS[:1], results, CPU, models=Models(results))
    list(itertools.islice(running, 5))
    half = models_of(results) / CELLS[0].hash / ".model.safetensors.0a1b2c3d"
    half.parent.mkdir()
    half.write_bytes(b"half")
    finish(CELLS[1:2], results, models=Models(results))
    assert half.exists()
    running.close()
    finish(CELLS[1:2], results, models=Models(results))
    assert not half.exists()


def test_a_stop_while_cells_are_counted_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sweep.Queue, "standing", stopped)
        with pytest.raises(KeyboardInterrupt):
            finish(CELLS[:1], tmp_path / "r.jsonl")
    assert not list(directory_of(tmp_path / "r.jsonl").glob("*.lock"))


def test_cells_trained_again_for_their_models_are_not_counted_as_done(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    finish(CELLS[:2], results)
    standing = next(run_sweep(CELLS[:2], results, CPU, models=Models(results)))
    assert isinstance(standing, Standing)
    assert (standing.done, standing.failed, standing.total) == (0, 0, 2)


@pytest.mark.usefixtures("eager_saving")
def test_a_sweep_that_ends_leaves_what_another_has_saved_that_tries_again(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    with locked(results):
        pass
    Results(results).append([result_row(CELLS[0], None, {}, failed="It was lost.")])
    running = run_sweep(CELLS[:1], results, CPU, checkpoint_every=5, retry_failed=True)
    list(itertools.islice(running, 12))
    finish(CELLS[1:2], results)
    assert list(directory_of(results).glob("*.safetensors"))
    running.close()


@pytest.mark.usefixtures("eager_saving")
def test_what_was_saved_without_models_is_deleted_when_all_of_it_is_done(tmp_path: Path) -> None:
    results = tmp_path / "r.jsonl"
    finish(CELLS[2:3], results, models=Models(results))
    running = run_sweep(CELLS[:2], results, CPU, checkpoint_every=5)
    list(itertools.islice(running, 12))
    running.close()
    finish(CELLS[:1], results)
    assert list(directory_of(results).glob("*.safetensors"))
    finish(CELLS[1:2], results)
    assert not directory_of(results).exists()


@pytest.mark.usefixtures("eager_saving")
@pytest.mark.parametrize("every", [4, 100])
def test_of_what_was_begun_without_models_those_on_the_way_begin_where_it_goes_on(tmp_path: Path, every: int) -> None:
    results = tmp_path / "r.jsonl"
    running = run_sweep(CELLS[:1], results, CPU, checkpoint_every=5)
    list(itertools.islice(running, 13))
    running.close()
    events = finish(CELLS[:1], results, models=Models(results, every))
    said = [each.sentence for each in events if isinstance(each, Notice)]
    (step,) = (int(name) for name in re.findall(r"are kept from step (\d+) on: so far it was trained without", said[0]))
    kept = sorted(int(path.name) for path in (models_of(results) / CELLS[0].hash).glob("steps/*"))
    assert 4 <= step < 16
    assert kept == [at for at in (4, 8, 12, 16) if every == 4 and at > step]  # not even step 0, which is past


@pytest.mark.usefixtures("eager_saving")
def test_what_was_saved_is_not_trained_again(tmp_path: Path) -> None:
    results, steps = tmp_path / "r.jsonl", []
    running = run_sweep(CELLS, results, CPU, checkpoint_every=5)
    list(itertools.islice(running, 2 + 13))
    running.close()
    for event in finish(CELLS, results):
        if isinstance(event, Started):
            steps.append(event.step)
    assert steps == [10, 0]


@pytest.mark.usefixtures("eager_saving")
def test_it_goes_on_with_the_same_members_even_where_it_would_now_plan_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, Any]
) -> None:
    results = tmp_path / "r.jsonl"
    running = run_sweep(CELLS, results, CPU, checkpoint_every=5)
    list(itertools.islice(running, 10))
    running.close()
    monkeypatch.setattr(packing, "MOST_MEMBERS", 5)
    sizes = [len(e.configs) for e in finish(CELLS[::-1], results) if isinstance(e, Started)]
    assert sizes == [12, 5, 5, 2]
    assert by_hash(results).keys() == undisturbed.keys()


def test_asked_to_stop_it_saves_and_goes_on(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    results, seen = tmp_path / "r.jsonl", 0

    def count(running: Iterator[Event]) -> None:
        nonlocal seen
        for _ in running:
            seen += 1

    with pytest.raises(Interrupted, match="Stopped at step 8 of 18 of 12 cells; the same command goes on"):
        count(run_sweep(CELLS, results, CPU, stopping=lambda: seen >= 9))
    first = next(e for e in run_sweep(CELLS, results, CPU) if isinstance(e, Started))
    assert first.step == 8
    seen = 0
    with pytest.raises(Interrupted, match="Stopped with 12 of 24 cells done"):
        count(run_sweep(CELLS, results, CPU, stopping=lambda: seen >= 13))
    finish(CELLS, results, stopping=lambda: len(read_results(results)) == 24)
    assert by_hash(results) == undisturbed


@pytest.mark.usefixtures("eager_saving")
def test_a_damaged_checkpoint_is_started_over(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    results = tmp_path / "r.jsonl"
    running = run_sweep(CELLS, results, CPU, checkpoint_every=5)
    list(itertools.islice(running, 10))
    running.close()
    (saved,) = (tmp_path / "r.jsonl.d").glob("*.safetensors")
    saved.write_bytes(b"junk")
    events = finish(CELLS, results)
    assert any(isinstance(e, Notice) and "starts over" in e.sentence for e in events)
    assert by_hash(results) == undisturbed
    assert os.listdir(tmp_path) == ["r.jsonl"]


# -- skipping -------------------------------------------------------------------------------------------------


def test_a_thousand_finished_cells_are_skipped_at_once(tmp_path: Path) -> None:
    results, configs = tmp_path / "r.jsonl", [tiny(seed=seed) for seed in range(1000)]
    rows = [result_row(config, {"match": 0.5}, {}) for config in configs]
    sweep.Results(results).append(rows)
    before = results.read_bytes()
    began = time.process_time()
    (standing,) = finish(configs, results)
    assert time.process_time() - began < 1
    assert standing == Standing(total=1000, done=1000, failed=0, elsewhere=0, work_left=0)
    assert results.read_bytes() == before


def test_only_what_is_missing_is_trained(tmp_path: Path, undisturbed: dict[str, Any]) -> None:
    results = tmp_path / "r.jsonl"
    finish(CELLS[3:7], results)
    events = finish([*CELLS[:12], *CELLS[:12]], results)  # named twice, run once
    (started,) = (e for e in events if isinstance(e, Started))
    assert started.configs == [*CELLS[:3], *CELLS[7:12]]
    found = by_hash(results)
    assert found.keys() == {config.hash for config in CELLS[:12]}
    for run, row in found.items():
        assert row["scores"]["match"] == pytest.approx(undisturbed[run]["scores"]["match"], abs=0.01)


def test_a_sweep_costs_little_beyond_its_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 0.1 s per ensemble, and 2 % of its training for checkpoints, in the best of up to four tries."""
    spent = 0.0

    class Timed(engine.Ensemble):
        def __init__(self, *args: Any, **named: Any) -> None:
            nonlocal spent
            began = time.perf_counter()
            super().__init__(*args, **named)
            spent += time.perf_counter() - began

        def fit(self) -> Any:
            nonlocal spent
            training, event = super().fit(), None
            while not isinstance(event, engine.Finished):
                began = time.perf_counter()
                event = next(training)
                spent += time.perf_counter() - began
                yield event

    monkeypatch.setattr(ensembles, "Ensemble", Timed)
    cells, beside = [tiny(width=w, seed=s, epochs=10) for w in (8, 16) for s in range(8)], []
    for attempt in range(4):
        spent, began = 0.0, time.perf_counter()
        finish(cells, tmp_path / f"{attempt}.jsonl", checkpoint_every=20)
        beside.append(time.perf_counter() - began - spent)
        if beside[-1] < 2 * 0.1 + 0.02 * spent:
            return
    raise AssertionError(f"beside {spent} seconds of training, others went by: {beside}")


# -- what goes wrong ------------------------------------------------------------------------------------------


def test_a_cell_that_fails_is_reported_and_the_others_are_not_touched(tmp_path: Path) -> None:
    results, good = tmp_path / "r.jsonl", [tiny(seed=seed) for seed in (0, 1)]
    finish(good, tmp_path / "alone.jsonl")
    events = finish([good[0], tiny(lr=1e30), good[1]], results)
    assert isinstance(events[-1], Standing)
    assert (events[-1].done, events[-1].failed) == (2, 1)
    rows = by_hash(results)
    bad = rows.pop(tiny(lr=1e30).hash)
    assert "scores" not in bad
    assert bad["failed"].startswith("The loss stopped being finite at step ")
    for run, row in by_hash(tmp_path / "alone.jsonl").items():
        assert rows[run]["scores"]["match"] == pytest.approx(row["scores"]["match"], abs=0.01)


def test_failed_cells_are_tried_again_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, honest = tmp_path / "r.jsonl", Objective.losses
    configs = [tiny(seed=seed) for seed in (0, 1)]
    monkeypatch.setattr(Objective, "losses", lambda *args: honest(*args) * torch.nan)
    assert [row.get("scores") for row in _rows(configs, results)] == [None, None]
    assert len(finish(configs, results)) == 1
    assert len(_rows(configs, results, retry_failed=True)) == 2
    assert len(results.read_text().splitlines()) == 4  # failures are counted, not doubled within a sweep
    monkeypatch.setattr(Objective, "losses", honest)
    assert all("scores" in row for row in _rows(configs, results, retry_failed=True))
    assert len(finish(configs, results, retry_failed=True)) == 1


def _rows(configs: list[RunConfig], results: Path, **options: Any) -> list[dict[str, Any]]:
    finish(configs, results, **options)
    return read_results(results)


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    def limited(configs: Any, *args: Any, **options: Any) -> Any:
        for event in train_ensemble(configs, *args, **options):
            yield event
            if len(configs) > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")

    monkeypatch.setattr(ensembles, "train_ensemble", limited)


@pytest.mark.usefixtures("eager_saving")
def test_an_ensemble_too_large_for_the_memory_is_halved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undisturbed: dict[str, Any]
) -> None:
    short_of_memory(monkeypatch, 3)
    events = finish(CELLS[:12], tmp_path / "r.jsonl", checkpoint_every=1)
    assert [e.sentence for e in events if isinstance(e, Notice)] == [
        "12 members at once do not fit into the memory: on with 6 at a time.",
        "6 members at once do not fit into the memory: on with 3 at a time.",
    ]
    assert by_hash(tmp_path / "r.jsonl").keys() == {config.hash for config in CELLS[:12]}
    assert os.listdir(tmp_path) == ["r.jsonl"]


@pytest.mark.usefixtures("eager_saving")
@pytest.mark.parametrize("count", [1, 3])
def test_what_was_saved_is_kept_where_memory_is_short_of_it_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    cells, results = CELLS[:count], tmp_path / "r.jsonl"
    stops = itertools.chain([False] * 4, itertools.repeat(True))
    with pytest.raises(Interrupted, match="Stopped at step"):
        finish(cells, results, checkpoint_every=1, stopping=lambda: next(stops))
    with monkeypatch.context() as patch:
        if count > 1:
            short_of_memory(patch, 0)
        else:
            patch.setattr("auxmod.learning.memory.free_bytes", lambda device: 1000)
        with pytest.raises(UserError, match=r"saved in .* does not fit into the memory that is free now: free some"):
            finish(cells, results)
    assert not read_results(results)
    (begun,) = (event for event in finish(cells, results) if isinstance(event, Started))
    assert begun.step > 0
    assert by_hash(results).keys() == {config.hash for config in cells}


@pytest.mark.usefixtures("eager_saving")
@pytest.mark.parametrize("count", [1, 3])
def test_memory_that_another_takes_once_it_was_saved_costs_no_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    cells, results = CELLS[:count], tmp_path / "r.jsonl"
    with monkeypatch.context() as patch:

        def short(self: Any) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")

        patch.setattr("auxmod.learning.engine.Ensemble._finish", short)
        with pytest.raises(UserError, match=r"saved in .* does not fit into the memory that is free now: free some"):
            finish(cells, results, checkpoint_every=1)
    assert not results.read_text()
    (begun,) = (event for event in finish(cells, results) if isinstance(event, Started))
    assert (len(begun.configs), begun.step) == (count, begun.steps)
    assert all("scores" in row for row in read_results(results))


@pytest.mark.usefixtures("eager_saving")
def test_what_runs_short_again_where_it_was_saved_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = engine.Ensemble._finish

    def short(self: Any) -> Any:
        if len(self.configs) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 MiB.")
        return honest(self)

    monkeypatch.setattr(engine.Ensemble, "_finish", short)
    with pytest.raises(UserError, match="does not fit into the memory that is free now"):
        finish(CELLS[:4], tmp_path / "r.jsonl", checkpoint_every=1)
    events = finish(CELLS[:4], tmp_path / "r.jsonl", checkpoint_every=1)
    assert [e.sentence for e in events if isinstance(e, Notice)] == [
        "4 members at once do not fit into the memory: on with 2 at a time."
    ]
    assert [len(e.rows) for e in events if isinstance(e, Ended)] == [2, 2]


def test_what_a_librarys_memory_is_short_of_is_short_of_memory() -> None:
    assert ensembles._out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"))
    assert not ensembles._out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"))


def test_a_data_file_that_moved_is_gone_on_with(tmp_path: Path) -> None:
    def cells(name: str) -> list[RunConfig]:
        return [resolved(own | {"data": str(tmp_path / name), "seed": seed}) for seed in range(2)]

    own = {name: value for name, value in SETTINGS.items() if name != "samples"}
    rows = np.random.default_rng(0).integers(0, SETTINGS["q"], (SETTINGS["samples"], SETTINGS["n"]))
    np.savez(tmp_path / "old.npz", x=rows)
    stops = itertools.chain([False] * 4, itertools.repeat(True))
    with pytest.raises(Interrupted, match="Stopped at step"):
        finish(cells("old.npz"), tmp_path / "r.jsonl", stopping=lambda: next(stops))
    (tmp_path / "old.npz").rename(tmp_path / "new.npz")
    events = finish(cells("new.npz"), tmp_path / "r.jsonl")
    assert [event.step > 0 for event in events if isinstance(event, Started)] == [True]
    assert not [event for event in events if isinstance(event, Notice)]


def test_a_run_too_large_even_alone_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short_of_memory(monkeypatch, 0)
    rows = _rows(CELLS[:2], tmp_path / "r.jsonl")
    assert {row["failed"] for row in rows} == {
        "The run does not fit into the memory, even alone: use a smaller --batch or model."
    }
    large = tiny(embedding="token", q=974269, k=16, seed=1)
    monkeypatch.setattr("auxmod.learning.memory.free_bytes", lambda device: 2**30)
    assert "15,588,304 classes" in _rows([large], tmp_path / "large.jsonl")[0]["failed"]


def test_another_error_fails_its_ensemble_and_the_sweep_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(configs: Any, *args: Any, **options: Any) -> Any:
        if configs[0].model.width == 8:
            raise RuntimeError("The compiler gave up.\nSee its log.")
        return train_ensemble(configs, *args, **options)

    monkeypatch.setattr(ensembles, "train_ensemble", broken)
    rows = _rows([tiny(width=8), tiny(width=16)], tmp_path / "r.jsonl")
    assert rows[0]["failed"] == "RuntimeError: The compiler gave up."
    assert "scores" in rows[1]


def test_a_lost_device_ends_the_sweep_and_marks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*args: Any, **options: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(ensembles, "train_ensemble", lost)
    with pytest.raises(RuntimeError, match="illegal memory access"):
        finish(CELLS, tmp_path / "r.jsonl")
    assert (tmp_path / "r.jsonl").read_bytes() == b""


def test_what_cannot_start_is_a_sentence_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="tf32"):
        finish([tiny(), tiny(precision="tf32")], tmp_path / "r.jsonl")
    assert os.listdir(tmp_path) == []


# -- packing --------------------------------------------------------------------------------------------------


def test_runs_of_one_shape_and_length_ride_together_in_their_order() -> None:
    cells = [tiny(seed=0), tiny(width=16), tiny(seed=1, lr=0.1, k=7, q=11), tiny(epochs=5), tiny(width=16, seed=1)]
    assert plan(cells, CPU, free=2**40) == [[cells[0], cells[2]], [cells[1], cells[4]], [cells[3]]]
    assert plan([], CPU, free=2**40) == []


def test_an_ensemble_is_as_large_as_the_memory_and_no_larger_than_it_pays() -> None:
    cells = [tiny(seed=seed) for seed in range(150)]
    size = member_bytes(cells[0], "fp32")

    def sizes(**options: Any) -> list[int]:
        packed = plan(cells, CPU, **options)
        assert [config for members in packed for config in members] == cells
        return [len(members) for members in packed]

    assert sizes(free=2**40) == [MOST_MEMBERS, MOST_MEMBERS, 150 - 2 * MOST_MEMBERS]
    assert set(sizes(free=int(10 * size / HEADROOM) + 1)) == {10}
    assert set(sizes(free=0)) == {1}
    limits = {shape_of(cells[0]): 50}
    assert sizes(free=2**40, limits=limits) == [50, 50, 50]
    assert sizes(free=2**40, members=60) == [60, 60, 30]
    assert sizes(free=2**40, members=60, limits=limits) == [50, 50, 50]
    assert sizes(free=2**40, members=100) == [100, 50]


def test_members_take_what_the_largest_does() -> None:
    """Token heads are padded to the largest K·q."""
    cells = [tiny(embedding="token", k=k) for k in (2, 2000)]
    small, large = (member_bytes(config, "fp32") for config in cells)
    between = (small + large + 2 * large) / 2
    assert len(plan(cells, CPU, free=int(between / HEADROOM))) == 2
    assert len(plan(cells, CPU, free=int(2 * large / HEADROOM) + 1)) == 1


def test_what_an_ensemble_needs_is_foretold() -> None:
    (row,) = forecast([[tiny(q=7), tiny(q=11)]], CPU)
    assert row["members"] == 2
    assert row["q"] == [7, 11]
    assert row["flops"] == work(tiny(q=7)) + work(tiny(q=11))
    assert row["bytes"] == 2 * member_bytes(tiny(), "fp32")
    assert row["seconds"] > 0
