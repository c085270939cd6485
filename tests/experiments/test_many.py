"""`auxmod.sweep`: every combination's figures and model, trained together; kept, and gone on with, where asked."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import auxmod
from auxmod.errors import UserError
from auxmod.experiments.results_file import models_of, read_results
from auxmod.experiments.sweep import Started
from tiny import SETTINGS, tiny

AXES: dict[str, Any] = SETTINGS | {"method": "aux", "r": 0.4, "device": "cpu"}
X = [[0, 1, 2, 3], [6, 6, 6, 6]]


def begun(events: list[object]) -> list[int]:
    """How many members each ensemble had that was trained."""
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
        assert cell.model is not None
        assert cell.model.config == cell.config


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


def test_the_same_call_goes_on_and_trains_nothing_twice(tmp_path: Path) -> None:
    place, events = tmp_path / "r.jsonl", list[object]()
    first = auxmod.sweep(k=[3], results=place, keep_every=6, **AXES)
    cells = auxmod.sweep(k=[3, 4], results=place, tell=events.append, **AXES)
    assert begun(events) == [1]
    assert cells[0].scores == first[0].scores
    assert sorted(os.listdir(tmp_path)) == ["r.jsonl", "r.jsonl.models"]
    assert sorted(os.listdir(models_of(place))) == sorted(cell.config.hash for cell in cells)
    on_its_way = sorted(os.listdir(models_of(place) / first[0].config.hash / "steps"), key=int)
    assert on_its_way == ["6", "12", "18"]
    early = auxmod.load(models_of(place) / first[0].config.hash / "steps" / "6")
    assert not torch.equal(
        early(torch.tensor(X)), auxmod.load(models_of(place) / first[0].config.hash)(torch.tensor(X))
    )


def test_a_cell_that_has_figures_but_no_model_is_trained_for_it_and_has_one_row(tmp_path: Path) -> None:
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    (models_of(place) / cell.config.hash / "model.safetensors").unlink()
    (again,) = auxmod.sweep(results=place, k=3, **AXES)
    assert again.model is not None
    assert again.scores == cell.scores
    assert len(place.read_text().splitlines()) == 1


def test_a_run_that_comes_to_nothing_has_a_reason_and_no_model() -> None:
    cells = auxmod.sweep(lr=[1e-3, 1e30], k=3, **{name: value for name, value in AXES.items() if name != "lr"})
    assert cells[0].model is not None
    assert (cells[1].scores, cells[1].model) == (None, None)
    assert cells[1].failed is not None
    assert "stopped being finite" in cells[1].failed


def test_one_that_had_figures_and_now_comes_to_nothing_is_not_tried_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "r.jsonl"
    (cell,) = auxmod.sweep(results=place, k=3, **AXES)
    (models_of(place) / cell.config.hash / "model.safetensors").unlink()
    monkeypatch.setattr("auxmod.learning.engine.Ensemble.step", lambda self: self.state.dead.fill_(0))
    (again,) = auxmod.sweep(results=place, k=3, **AXES)
    assert (again.scores, again.model) == (cell.scores, None)
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
        ({"keep_every": 5}, "needs results"),
        ({"keep_every": 0}, "whole number of steps"),
        ({"tell": "print"}, "must be a function"),
        ({"kay": [3]}, "no setting 'kay'"),
        ({"seed": []}, "empty list"),
        ({"runs": [tiny()]}, "not both"),
    ],
)
def test_what_makes_no_sense_is_a_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        auxmod.sweep(**AXES | given)
    assert said in str(refused.value)


@pytest.mark.parametrize("runs", [[], ["aux"], tiny(), [tiny(), {"k": 3}]])
def test_what_are_no_runs_is_a_sentence(runs: Any) -> None:
    with pytest.raises(UserError, match="takes a list of RunConfigs"):
        auxmod.sweep(runs)
