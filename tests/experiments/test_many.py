"""Tests of `auxmod.sweep`: combinations train together, each has figures and a model; with `results` it can resume."""

import dataclasses
import errno
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import auxmod
from auxmod.cli import main
from auxmod.errors import UserError
from auxmod.experiments.claims import directory_of
from auxmod.experiments.ensembles import Ended, Notice, Started
from auxmod.experiments.kept import Models
from auxmod.experiments.results_file import read_results
from auxmod.experiments.sweep import run_sweep
from auxmod.files import models_of, sealed, write_lines
from auxmod.learning import checkpoint
from auxmod.learning.engine import Progress
from tiny import SETTINGS, flags, tiny

AXES: dict[str, Any] = SETTINGS | {"method": "aux", "r": 0.4, "device": "cpu"}
CPU = torch.device("cpu")
X = [[0, 1, 2, 3], [6, 6, 6, 6]]


def begun(events: list[object]) -> list[int]:
    """The number of members of each ensemble that was trained."""
    return [len(event.configs) for event in events if isinstance(event, Started)]


def test_every_combination_has_its_settings_figures_and_model() -> None:
    events: list[object] = []
    cells = auxmod.sweep(k=[3, 4], seed=range(2), tell=events.append, **AXES)
    assert begun(events) == [4]  # one ensemble
    assert [(cell.settings["k"], cell.settings["seed"]) for cell in cells] == [(3, 0), (3, 1), (4, 0), (4, 1)]
    for cell in cells:
        assert cell.config == tiny(method="aux", r=0.4, k=cell.settings["k"], seed=cell.settings["seed"])
        assert cell.scores is not None
        assert cell.scores["chance"] == 1 / 7
        assert cell.curve[-1]["step"] == 18
        assert (cell.provenance["members"], cell.provenance["precision"]) == (4, "fp32")
        assert cell.model is not None
        assert cell.model.config == cell.config


def test_a_list_of_cells_can_be_read() -> None:
    (cell,) = auxmod.sweep([tiny()], device="cpu")
    assert cell.scores is not None
    assert repr(cell) == f"Cell({tiny().hash}: match={cell.scores['match']:.4f})"
    named = dataclasses.replace(cell, settings={"k": 4, "method": "aux"}, scores=None, failed="It diverged.")
    assert repr([named]) == "[Cell(k=4, method='aux': failed='It diverged.')]"


def test_a_model_is_what_it_is_alone_and_gives_its_cells_figures() -> None:
    cells = auxmod.sweep(k=[3, 4], **AXES)
    alone = auxmod.train(tiny(method="aux", r=0.4, k=4), device="cpu")
    model, scores = cells[1].model, cells[1].scores
    assert model is not None
    assert scores is not None
    torch.testing.assert_close(model(torch.tensor(X)), alone(torch.tensor(X)), rtol=1e-4, atol=1e-5)
    assert model.evaluate(samples=300)["match"] == pytest.approx(scores["match"])


def test_runs_of_any_kind_may_be_given_and_one_twice_is_trained_once() -> None:
    runs = [tiny(width=8), tiny(method="naive", width=16), tiny(width=8)]
    events: list[object] = []
    cells = auxmod.sweep(runs, device="cpu", tell=events.append)
    assert [cell.config for cell in cells] == runs
    assert [cell.settings for cell in cells] == [{}, {}, {}]
    assert begun(events) == [1, 1]
    assert cells[0].scores == cells[2].scores


def test_no_more_train_together_than_is_asked() -> None:
    events: list[object] = []
    auxmod.sweep(k=3, seed=range(5), members=2, tell=events.append, **AXES)
    assert begun(events) == [2, 2, 1]


def test_the_same_call_goes_on_and_trains_nothing_twice(tmp_path: Path) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()
    first = auxmod.sweep(k=[3], results=place, keep_every=6, **AXES)
    cells = auxmod.sweep(k=[3, 4], results=place, tell=events.append, **AXES)
    assert begun(events) == [1]
    assert cells[0].scores == first[0].scores
    assert [cell.provenance for cell in cells] == [row["provenance"] for row in read_results(place)]
    assert sorted(os.listdir(tmp_path)) == ["r.jsonl", "r.jsonl.models"]
    assert sorted(os.listdir(models_of(place))) == sorted(cell.config.hash for cell in cells)
    on_its_way = sorted(os.listdir(models_of(place) / first[0].config.hash / "steps"), key=int)
    assert on_its_way == ["0", "6", "12", "18"]
    early = auxmod.load(models_of(place) / first[0].config.hash / "steps" / "6")
    assert not torch.equal(
        early(torch.tensor(X)), auxmod.load(models_of(place) / first[0].config.hash)(torch.tensor(X))
    )


def test_a_cell_that_has_figures_but_no_model_is_trained_for_it_and_has_the_models_figures(tmp_path: Path) -> None:
    """Its figures may come from another device, so a model that is trained later must bring its own."""
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    assert cell.scores is not None
    (row,) = read_results(place)
    write_lines(place, [sealed(row | {"scores": row["scores"] | {"match": 0.999}})])
    assert auxmod.sweep(results=place, k=3, **AXES)[0].scores["match"] == 0.999  # type: ignore[index]
    (models_of(place) / cell.config.hash / "model.safetensors").unlink()
    (again,) = auxmod.sweep(results=place, k=3, **AXES)
    assert again.model is not None
    assert again.scores == cell.scores
    assert len(place.read_text().splitlines()) == 2


def test_models_on_their_way_that_are_asked_for_too_late_are_told_of(tmp_path: Path) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()
    cells = auxmod.sweep(results=place, k=[3, 4], **AXES)

    def told(every: int) -> list[str]:
        events.clear()
        auxmod.sweep(results=place, k=[3, 4], keep_every=every, tell=events.append, **AXES)
        return [event.sentence for event in events if isinstance(event, Notice)]

    kept = [models_of(place) / cell.config.hash for cell in cells]
    remedy = f"delete their directories in {models_of(place)} to train them for these."
    assert told(6) == [f"2 of 2 cells that were done before have no models on their way: {remedy}"]
    assert not begun(events)
    assert told(1000) == []  # more than there are steps
    shutil.rmtree(kept[0])
    assert told(6) == [f"1 of 1 cells that were done before have no models on their way: {remedy}"]
    assert begun(events) == [1]
    shutil.rmtree(kept[1])
    assert told(6) == []
    assert [sorted(os.listdir(place / "steps"), key=int) for place in kept] == [["0", "6", "12", "18"]] * 2


def test_what_lies_where_a_model_is_to_be_kept_is_refused_before_anything_is_trained(tmp_path: Path) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()

    def refused() -> str:
        with pytest.raises(UserError) as error:
            auxmod.sweep(results=place, k=3, tell=events.append, **AXES)
        assert not begun(events)
        return str(error.value)

    models = models_of(place)
    models.symlink_to(tmp_path / "gone")
    assert refused().startswith(f"{models} cannot be written (File exists)")
    models.unlink()
    kept, run = models / tiny(method="aux", k=3, r=0.4).hash, tiny(seed=5)
    models.mkdir()
    kept.write_text("mine")
    assert refused().startswith(f"{kept} is a file where a model is to be kept. Move or delete")
    kept.unlink()
    auxmod.train(run, device="cpu").save_pretrained(tmp_path / "other")
    (tmp_path / "other").rename(kept)
    assert refused().startswith(f"{kept / 'config.json'} is of another run than its directory is called by. Move or")
    (kept / "config.json").write_text("{")
    assert refused().endswith(f"Move or delete {kept}, and give the same again.")


def test_a_damaged_model_is_a_sentence_that_says_what_to_do(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    kept = models_of(place) / cell.config.hash
    (kept / "model.safetensors").write_bytes(b"?")
    with pytest.raises(UserError, match="To train it anew, delete") as refused:
        auxmod.sweep(results=place, k=3, **AXES)
    assert str(kept) in str(refused.value)
    shutil.rmtree(kept)
    (again,) = auxmod.sweep(results=place, k=3, **AXES)
    assert again.scores == cell.scores


def test_where_models_cannot_be_written_no_figure_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    place = tmp_path / "r.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr("auxmod.learning.checkpoint._write", full)
        with pytest.raises(OSError, match="No space left"):
            auxmod.sweep(results=place, k=[3, 4], **AXES)
    assert len(read_results(place)) == 2
    assert all(cell.model is not None for cell in auxmod.sweep(results=place, k=[3, 4], **AXES))


@pytest.mark.parametrize("kind", [RuntimeError, torch.OutOfMemoryError])
def test_what_goes_wrong_when_models_are_written_is_not_told_as_a_run_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[RuntimeError]
) -> None:
    def broken(*_: object) -> None:
        raise kind("It broke.")

    place, events = tmp_path / "r.jsonl", list[object]()
    monkeypatch.setattr("auxmod.experiments.ensembles.save_models", broken)
    with pytest.raises(kind, match=r"It broke\."):
        auxmod.sweep(results=place, k=[3, 4], tell=events.append, **AXES)
    assert not [event for event in events if isinstance(event, Ended)]
    assert ["scores" in row for row in read_results(place)] == [True, True]


def test_what_a_caller_does_when_an_ensemble_has_ended_costs_nothing(tmp_path: Path) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()

    def down(event: object) -> None:
        if isinstance(event, Ended):
            raise RuntimeError("The tracker is down.")

    with pytest.raises(RuntimeError, match="tracker is down"):
        auxmod.sweep(results=place, k=[3, 4], tell=down, **AXES)
    cells = auxmod.sweep(results=place, k=[3, 4], tell=events.append, **AXES)
    assert all(cell.model is not None for cell in cells)
    assert begun(events) == []
    assert len(place.read_text().splitlines()) == 2


def test_a_row_and_its_model_are_of_one_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an ensemble is trained again for the models that it lacks, those that are there stand, as do their rows."""
    place, honest, left = tmp_path / "r.jsonl", checkpoint.save_model, [1]

    def full(*arguments: Any) -> None:
        if not left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left.pop()
        honest(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save_model", full)
        with pytest.raises(OSError, match="No space left"):
            auxmod.sweep(results=place, k=[3, 4], **AXES)
    (first,) = models_of(place).glob("*/model.safetensors")
    first.write_bytes(b"of the first training")
    for _ in run_sweep(cells_of(place), place, CPU, models=Models(place)):
        pass
    assert len(list(models_of(place).glob("*/model.safetensors"))) == 2
    assert first.read_bytes() == b"of the first training"
    assert [row["hash"] for row in map(json.loads, place.read_text().splitlines())].count(first.parent.name) == 1


def test_a_model_without_its_row_does_not_pass_for_the_next_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r.jsonl"
    auxmod.sweep(results=place, k=3, **AXES)
    (model,) = models_of(place).glob("*/model.safetensors")
    place.unlink()
    model.write_bytes(b"old")
    events: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr("auxmod.experiments.ensembles.save_models", interrupted)
        with pytest.raises(KeyboardInterrupt):
            auxmod.sweep(results=place, k=3, keep_every=6, tell=events.append, **AXES)
    assert not [event.sentence for event in events if isinstance(event, Notice)]  # it was not done before
    assert len(read_results(place)) == 1
    assert not model.exists()
    assert all(cell.model is not None for cell in auxmod.sweep(results=place, k=3, **AXES))


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def cells_of(place: Path) -> list[auxmod.RunConfig]:
    return [auxmod.RunConfig.from_dict(row["config"]) for row in read_results(place)]


def test_a_refused_call_leaves_nothing(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    models_of(place).write_text("mine")
    with pytest.raises(UserError, match="models"):
        auxmod.sweep(results=place, k=3, **AXES)
    assert os.listdir(tmp_path) == ["r.jsonl.models"]


def test_runs_that_name_a_file_of_data_are_those_of_its_contents(tmp_path: Path) -> None:
    rows = np.arange(240).reshape(60, 4) % 7
    np.savez(tmp_path / "x.npz", x=rows)
    config = tiny(samples=60)
    run = dataclasses.replace(config, training=dataclasses.replace(config.training, data=str(tmp_path / "x.npz")))
    (cell,) = auxmod.sweep([run], device="cpu")
    assert cell.config.training.data_sha256
    assert cell.model is not None


@pytest.mark.parametrize("many", [range(10**9), list(range(30_000))])
def test_long_lists_are_refused_or_read_at_once(many: Any) -> None:
    began = time.monotonic()
    with pytest.raises(UserError, match="cells"):
        auxmod.sweep(k=[3, 4, 5, 6], seed=many, **AXES)
    assert time.monotonic() - began < 5


def test_a_model_of_one_cell_that_is_damaged_stops_no_other(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    (models_of(place) / cell.config.hash / "config.json").write_text("{")
    (other,) = auxmod.sweep(results=place, k=4, **AXES)
    assert other.model is not None
    command = ["sweep", *flags("--k", "4", "--r", "0.4", "--lr", "1e-3"), "--results", str(place), "--keep-models"]
    assert main([*command, "--quiet"]) == 0


def test_a_model_that_a_sweep_keeps_is_not_written_over(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, keep_every=6, **AXES)
    assert cell.model is not None
    own, models = cell.config.hash, models_of(place)
    for kept in (models / own, models / own / "steps" / "6", models, tmp_path / "x" / ".." / models.name / "new"):
        with pytest.raises(UserError, match="holds the models of a sweep: choose a directory outside it"):
            cell.model.save_pretrained(kept)
    for free in (tmp_path / "fine.models" / "mine", tmp_path / ".models" / "mine", models / ".." / "mine"):
        cell.model.save_pretrained(free)
        assert auxmod.load(free).config == cell.config


def test_stopped_in_the_middle_the_same_call_goes_on(tmp_path: Path) -> None:
    """As in an interrupted notebook, which keeps the exception, and so every frame that it passed through, alive."""
    place = tmp_path / "r.jsonl"

    def stop(event: object) -> None:
        if isinstance(event, Progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:
        auxmod.sweep(results=place, k=3, tell=stop, **AXES)
    assert held.traceback
    assert not list(directory_of(place).glob("*.lock"))
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    assert cell.model is not None
    assert sorted(os.listdir(tmp_path)) == ["r.jsonl", "r.jsonl.models"]


def test_one_that_came_to_nothing_has_no_model_though_one_lies_there(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    auxmod.sweep(results=place, k=3, **AXES)
    (row,) = read_results(place)
    failed = {name: row[name] for name in ("hash", "config", "provenance")} | {"failed": "It was lost."}
    write_lines(place, [sealed(failed)])
    (again,) = auxmod.sweep(results=place, k=3, **AXES)
    assert (again.scores, again.model, again.failed) == (None, None, "It was lost.")


@pytest.mark.parametrize("place", ["", 5, b""])
def test_results_are_a_path_or_nothing(place: Any) -> None:
    with pytest.raises(UserError, match=r"results is .*, but must be a path"):
        auxmod.sweep(results=place, k=3, **AXES)
    with pytest.raises(UserError, match=r"out is .*, but must be a path"):
        auxmod.train(tiny(), out=place)


@pytest.mark.parametrize(
    "left_open", [{"moduli": None}, {"harmonics": ()}, {"harmonics": None}, {"k": None}, {"r": [None]}, {"data": ""}]
)
def test_what_is_left_open_is_so_in_every_way_that_train_takes(left_open: dict[str, Any]) -> None:
    settings = SETTINGS | {"method": "aux", "k": 4, "r": 0.3} | left_open
    given = {name: None if value == [None] else value for name, value in settings.items()}
    (cell,) = auxmod.sweep(device="cpu", **settings)
    assert cell.config == auxmod.build(**given)


def test_a_file_of_data_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a,b.npz"
    np.savez(path, x=np.arange(240).reshape(60, 4) % 7)
    settings = {name: value for name, value in SETTINGS.items() if name != "samples"}
    (cell,) = auxmod.sweep(method="naive", data=path, device="cpu", **settings)
    assert cell.config.training.data == str(path)


def test_a_run_that_comes_to_nothing_has_a_reason_and_no_model() -> None:
    cells = auxmod.sweep(lr=[1e-3, 1e30], k=3, **{name: value for name, value in AXES.items() if name != "lr"})
    assert cells[0].model is not None
    assert (cells[1].scores, cells[1].model) == (None, None)
    assert cells[1].failed is not None
    assert "stopped being finite" in cells[1].failed


def test_one_that_had_figures_and_now_comes_to_nothing_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    (models_of(place) / cell.config.hash / "model.safetensors").unlink()
    monkeypatch.setattr("auxmod.learning.engine.Ensemble.step", lambda self: self.state.dead.fill_(0))
    for retry, trained in ((False, 1), (False, 0), (True, 1)):
        events.clear()
        (again,) = auxmod.sweep(results=place, k=3, retry_failed=retry, tell=events.append, **AXES)
        assert (again.scores, again.model) == (cell.scores, None)
        assert len(begun(events)) == trained
    assert len(read_results(place)) == 1


@pytest.mark.parametrize("value", [np.arange(2), np.array([0, 1], np.int32), [np.int64(0), 1], (0, 1), "0:1", "0,1"])
def test_alternatives_may_be_said_in_any_way_that_python_has(value: Any) -> None:
    cells = auxmod.sweep(k=3, seed=value, **AXES)
    assert [cell.config.seed for cell in cells] == [0, 1]


def test_of_several_methods_k_and_r_are_of_aux_alone() -> None:
    cells = auxmod.sweep(**AXES | {"method": ["naive", "aux"], "k": [3, 4]})
    assert [cell.settings.get("k") for cell in cells] == [None, 3, 4]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"k": [3, 1]}, r"(in the cell --k 1)"),
        ({"k": [3, 4], "batch": 0}, "--batch is 0, but must be 1 or more."),
        ({"keep_every": 5}, "needs results"),
        ({"members": 0}, "whole number of models"),
        ({"members": 2.0}, "whole number of models"),
        ({"keep_every": 0}, "whole number of steps"),
        ({"tell": "print"}, "must be a function"),
        ({"kay": [3]}, "no setting 'kay'"),
        ({"seed": []}, "empty list"),
        ({"results": "."}, "must be a file, or None to keep nothing"),
        ({"results": "a\0b"}, "must be a path"),
        ({"runs": [tiny()]}, "not both"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        auxmod.sweep(**AXES | given)
    assert said in str(refused.value)
    assert ("in the cell" in said) == ("in the cell" in str(refused.value))


@pytest.mark.parametrize("runs", [[], ["aux"], tiny(), [tiny(), {"k": 3}]])
def test_what_are_no_runs_is_a_sentence(runs: Any) -> None:
    with pytest.raises(UserError, match="takes a list of RunConfigs"):
        auxmod.sweep(runs)
