"""Tests of the Python API: train, load, predict, evaluate, save, and plain torch."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import auxmod
from auxmod.errors import UserError
from auxmod.learning.objective import Objective
from tiny import SETTINGS, tiny


@pytest.fixture(scope="module", params=["angular", "token"])
def model(request: pytest.FixtureRequest) -> auxmod.TrainedModel:
    return auxmod.train(**SETTINGS, embedding=request.param, dropout=0.1)


X = np.random.default_rng(0).integers(0, 7, (20, 4))


def test_a_model_answers(model: auxmod.TrainedModel) -> None:
    values, answers = model.values(X), model.predict(X)
    assert values.shape == answers.shape == (20,)
    assert answers.dtype == np.int64
    assert ((values >= 0) & (values < 7)).all()
    assert (answers == np.round(values) % 7).all()
    assert model.predict(X[0].tolist()).tolist() == [answers[0]]
    assert model.predict(np.zeros((0, 4), dtype=int)).shape == (0,)


def test_what_it_cannot_answer_is_refused(model: auxmod.TrainedModel) -> None:
    with pytest.raises(UserError, match="must have 4 numbers"):
        model.predict([1, 2, 3])
    with pytest.raises(UserError, match=r"lie in 0..6"):
        model.predict([1, 2, 3, 7])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"distribution": "Sparse"}, "--distribution is 'Sparse'; choose one of uniform, sparse."),
        ({"distribution": "sparse", "fill": "foo"}, "--fill is 'foo'; choose one of zero, nonzero."),
        ({"fill": "nonzero"}, "--fill nonzero is about sparse inputs"),
        ({"samples": 0}, "--samples is 0, but must be a whole number, 1 or more."),
        ({"samples": -5}, "--samples is -5"),
        ({"samples": 10, "asks": 0}, "--asks is 0, but a question is asked once, or up to 1,000 ways."),
    ],
)
def test_what_it_cannot_be_measured_on_is_refused(
    model: auxmod.TrainedModel, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UserError, match=words):
        model.evaluate(**options)


def test_a_question_is_asked_at_least_once(model: auxmod.TrainedModel) -> None:
    with pytest.raises(UserError, match="--asks is 0"):
        model.predict(X, asks=0)


def test_a_model_is_an_ordinary_module(model: auxmod.TrainedModel) -> None:
    assert isinstance(model, nn.Module)
    x = torch.from_numpy(X)
    outputs = model(x)
    outputs.sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    objective = Objective.of([model.config], torch.device("cpu"))
    torch.testing.assert_close(outputs, model.encoder(objective.features(x[None]))[0])


def test_to_torch_is_the_same_function(model: auxmod.TrainedModel) -> None:
    plain = model.to_torch()
    assert isinstance(plain.encoder, nn.TransformerEncoder)
    objective = Objective.of([model.config], torch.device("cpu"))
    x = torch.from_numpy(X)
    with torch.no_grad():
        torch.testing.assert_close(plain(objective.features(x[None])[0]), model(x), rtol=1e-5, atol=1e-5)
        for numbers in (x, x.int()):
            assert torch.equal(plain(numbers), plain(objective.features(x[None])[0]))
        torch.testing.assert_close(plain.double()(x).float(), model(x), rtol=1e-5, atol=1e-5)
    assert set(plain.state_dict()) == {name for name, _ in plain.named_parameters()}


def test_to_torch_has_the_features_of_harmonics() -> None:
    model = auxmod.train(**SETTINGS, method="auto")
    x = torch.from_numpy(X)
    with torch.no_grad():
        torch.testing.assert_close(model.to_torch()(x), model(x), rtol=1e-5, atol=1e-5)


def test_saved_and_loaded_it_is_the_same(model: auxmod.TrainedModel, tmp_path: Path) -> None:
    model.save_pretrained(tmp_path / "model")
    assert sorted(p.name for p in (tmp_path / "model").iterdir()) == ["config.json", "model.safetensors"]
    again = auxmod.load(tmp_path / "model")
    assert again.config == model.config
    assert (again.values(X) == model.values(X)).all()


@pytest.mark.parametrize("file", ["metrics.jsonl", "result.json", "state.safetensors"])
def test_a_model_is_not_saved_over_a_run(model: auxmod.TrainedModel, tmp_path: Path, file: str) -> None:
    model.save_pretrained(tmp_path)
    model.save_pretrained(tmp_path)
    (tmp_path / file).write_bytes(b"")
    (tmp_path / "model.safetensors").write_bytes(b"the run's own")
    with pytest.raises(UserError, match="holds a run: choose a directory outside it"):
        model.save_pretrained(tmp_path)
    assert (tmp_path / "model.safetensors").read_bytes() == b"the run's own"
    with pytest.raises(UserError, match="holds a run: choose a directory outside it"):
        model.save_pretrained(tmp_path / "steps" / "10")
    assert not (tmp_path / "steps").exists()


def test_a_model_is_not_saved_over_what_is_not_ours(model: auxmod.TrainedModel, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"mine": 1}')
    (tmp_path / "file").write_text("mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "model.safetensors").write_text("mine")
    with pytest.raises(UserError, match=r"has no config.json beside it. It is not overwritten"):
        model.save_pretrained(tmp_path / "theirs")
    assert (tmp_path / "theirs" / "model.safetensors").read_text() == "mine"
    with pytest.raises(UserError, match=r"config.json: .* It is not overwritten: choose another directory"):
        model.save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"file cannot be written .*: choose another directory"):
        model.save_pretrained(tmp_path / "file")
    kept = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    assert kept == {"config.json": '{"mine": 1}', "file": "mine"}


def test_evaluation_agrees_with_prediction(model: auxmod.TrainedModel) -> None:
    scores = model.evaluate(2000)
    random = np.random.default_rng(1).integers(0, 7, (4000, 4))
    share = float((model.predict(random) == random.sum(1) % 7).mean())
    assert scores["match"] == pytest.approx(share, abs=0.05)
    assert scores["chance"] == 1 / 7
    assert model.evaluate(100, distribution="sparse", taus=(0.2,))["tau"].keys() == {"0.2"}
    with pytest.raises(auxmod.UserError, match=r"--tau is 0.6,-0.1, but tolerances lie in \(0, 0.5\] of the circle"):
        model.evaluate(100, taus=(0.2, 0.6, -0.1))


def test_a_run_directory_is_kept_where_asked(tmp_path: Path) -> None:
    config = tiny()
    one = auxmod.train(config, out=tmp_path / "run")
    assert {"config.json", "metrics.jsonl", "result.json", "provenance.json"} <= {
        p.name for p in (tmp_path / "run").iterdir()
    }
    assert (one.values(X) == auxmod.load(tmp_path / "run").values(X)).all()
    assert (one.values(X) == auxmod.train(config).values(X)).all()
    with pytest.raises(UserError, match="exists already"):
        auxmod.train(config, out=tmp_path / "run")


def test_presets_fill_what_is_not_given() -> None:
    model = auxmod.train(preset="demo", samples=250, epochs=1, test_samples=10, layers=1, width=8, hidden=8, q=5)
    assert (model.config.problem.n, model.config.problem.q) == (16, 5)
    assert model.config.method.k == 4


def test_settings_and_a_configuration_are_not_mixed() -> None:
    with pytest.raises(UserError, match="not both"):
        auxmod.train(tiny(), n=5)


def test_the_public_names() -> None:
    assert set(auxmod.__all__) == {"Cell", "RunConfig", "TrainedModel", "UserError", "build", "load", "sweep", "train"}
    assert all(getattr(auxmod, name) is not None for name in auxmod.__all__)
    assert dir(auxmod) == sorted(auxmod.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = auxmod.nothing


@pytest.mark.parametrize("method", ["aux", "auto"])
def test_a_process_that_makes_doubles_trains_and_loads_what_any_other_does(tmp_path: Path, method: str) -> None:
    config = tiny(method=method)
    expected = auxmod.train(config)
    torch.set_default_dtype(torch.float64)
    try:
        model = auxmod.train(config, out=tmp_path / "run")
        again = auxmod.load(tmp_path / "run")
    finally:
        torch.set_default_dtype(torch.float32)
    for made in (model, again):
        for ours, theirs in zip(made.parameters(), expected.parameters(), strict=True):
            assert torch.equal(ours, theirs)


@pytest.mark.parametrize("wrong", [X.astype(float), torch.zeros(2, 4), torch.zeros(2, 5, dtype=torch.int64), X[0]])
def test_what_is_no_tensor_of_rows_is_refused(model: auxmod.TrainedModel, wrong: Any) -> None:
    with pytest.raises(UserError, match="takes a tensor of whole numbers, 4 a row"):
        model(wrong)


def test_dropout_is_there_in_train_mode_alone(model: auxmod.TrainedModel) -> None:
    x = torch.from_numpy(X)
    assert not model.training
    expected = model(x)
    try:
        model.train()
        first, second = model(x), model(x)
        assert (model.predict(np.repeat(X[:1], 50, 0)) == model.predict(X[:1])).all()  # without dropout
        assert not torch.equal(first, second)
        assert not torch.equal(first, expected)
    finally:
        model.eval()
    assert torch.equal(model(x), expected)


def test_it_is_measured_on_rows_of_ones_own(model: auxmod.TrainedModel) -> None:
    scores, right = model.evaluate(x=X), model.predict(X) == X.sum(1) % 7
    assert (scores["samples"], scores["match"], scores["chance"]) == (20, right.mean(), 1 / 7)
    wraps = X.sum(1) // 7
    assert {row["bucket"]: (row["samples"], row["correct"]) for row in scores["by_wraps"]} == {
        d: (int((wraps == d).sum()), int(right[wraps == d].sum())) for d in set(wraps.tolist())
    }
    with pytest.raises(UserError, match="leave out samples"):
        model.evaluate(5, x=X)
    with pytest.raises(UserError, match="leave out distribution, fill"):
        model.evaluate(x=X, distribution="sparse", fill="zero")
    with pytest.raises(UserError, match="no row"):
        model.evaluate(x=X[:0])


def test_no_rows_have_no_answers(model: auxmod.TrainedModel) -> None:
    nothing = torch.zeros(0, 4, dtype=torch.int64)
    assert model(nothing).shape == (0, model.encoder.outputs)
    assert model.to_torch()(nothing).shape == (0, model.encoder.outputs)


@pytest.mark.parametrize("kind", [torch.uint8, torch.int8, torch.int32, torch.int64])
def test_whole_numbers_of_any_size_are_taken(model: auxmod.TrainedModel, kind: torch.dtype) -> None:
    x = torch.from_numpy(X)
    torch.testing.assert_close(model(x.to(kind)), model(x))
    torch.testing.assert_close(model.to_torch()(x.to(kind)), model(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("change", ["double", "half"])
def test_a_model_of_other_numbers_is_saved_as_one_that_can_be_read(
    model: auxmod.TrainedModel, tmp_path: Path, change: str
) -> None:
    other = auxmod.TrainedModel(copy.deepcopy(model.encoder), model.config)
    getattr(other, change)().save_pretrained(tmp_path)
    error = 0 if change == "double" else 2e-3
    for ours, read in zip(model.parameters(), auxmod.load(tmp_path).parameters(), strict=True):
        torch.testing.assert_close(read, ours, rtol=error, atol=error)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's own, where it maps attention
def test_a_model_can_be_mapped_and_exported(model: auxmod.TrainedModel) -> None:
    x = torch.from_numpy(X)
    mapped = torch.func.vmap(lambda row: model(row[None])[0])(x)
    torch.testing.assert_close(mapped, model(x), rtol=1e-5, atol=1e-6)
    exported = torch.export.export(model, (x,)).module()
    torch.testing.assert_close(exported(x), model(x), rtol=1e-5, atol=1e-6)


def test_tolerances_may_be_an_array(model: auxmod.TrainedModel) -> None:
    for kind in (np.float64, np.float32):
        assert list(model.evaluate(50, taus=np.array([0.05, 0.25], kind))["tau"]) == ["0.05", "0.25"]


def test_the_number_of_samples_may_be_of_any_whole_type(model: auxmod.TrainedModel) -> None:
    assert model.evaluate(np.uint8(200))["samples"] == 200


def test_points_at_infinity_are_no_answers(model: auxmod.TrainedModel) -> None:
    other = auxmod.TrainedModel(copy.deepcopy(model.encoder), model.config)
    with torch.no_grad():
        other.encoder.head.weight.fill_(torch.inf)
    with pytest.raises(UserError, match="not a number"):
        other.values(X)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"samples": 10.0}, "--samples is 10.0, but must be a whole number"),
        ({"samples": "10"}, "--samples is '10'"),
        ({"samples": 10, "taus": 0.1}, "--tau is 0.1, but must be a list of tolerances."),
        ({"samples": 10, "taus": np.array(0.1)}, r"--tau is array\(0.1\), but must be a list of tolerances."),
        ({"samples": 10, "taus": ["a"]}, r"--tau is \['a'\], but must be a list of tolerances."),
        ({"samples": 10, "asks": "3"}, "--asks is '3', but a question is asked once"),
        ({"samples": 10, "asks": None}, "--asks is None"),
    ],
)
def test_what_is_of_another_kind_is_refused(model: auxmod.TrainedModel, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        model.evaluate(**options)


@pytest.mark.parametrize("place", [None, 5, b"abc", "", "a\0b", "\ud800", "a" * 5000, "b" * 300])
def test_a_place_that_is_no_path_is_a_sentence(place: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    model = auxmod.train(tiny(epochs=1))
    for act in (auxmod.load, model.save_pretrained):
        with pytest.raises(auxmod.UserError, match=r"but must be a path\.|give a shorter one\."):
            act(place)
    if place is not None:
        with pytest.raises(auxmod.UserError, match=r"but must be a path\.|give a shorter one\."):
            auxmod.train(tiny(epochs=1), out=place)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("embedding", ["token", "angular"])
def test_a_model_in_double_computes_in_double(embedding: str) -> None:
    model = auxmod.train(tiny(epochs=1, embedding=embedding)).double()
    x = torch.tensor([[1, 2, 3, 6], [0, 5, 4, 4]])
    outputs, seen = model(x), model.activations(x)
    assert outputs.dtype == seen["outputs"].dtype == seen["blocks.0.attn.hook_q"].dtype == torch.float64
    torch.testing.assert_close(seen["outputs"], outputs, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(model.to_torch()(model.features(x)), outputs, rtol=1e-12, atol=1e-13)
    assert model.values(x) == pytest.approx(seen["values"].numpy(), abs=1e-9)
