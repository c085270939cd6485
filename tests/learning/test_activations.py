"""Tests of `activations`: what it records leads to the model's outputs, and hooks can change it on the way."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

import auxmod
from auxmod.learning.trained import TrainedModel
from auxmod.problem import sampling
from tiny import tiny

X = np.random.default_rng(0).integers(0, 7, (5, 4))
SHAPES: list[dict[str, Any]] = [
    {"pooling": pooling, "norm": norm, "embedding": embedding}
    for pooling, norm, embedding in itertools.product(
        ("cls", "mean", "max", "flatten", "first"), ("pre", "post"), ("token", "angular")
    )
]


def made(**settings: Any) -> TrainedModel:
    return auxmod.train(tiny(layers=2, init=0.3, epochs=1, **settings))


@pytest.mark.parametrize("shape", [*SHAPES, {"final_norm": False}, {"bias": False}, {"activation": "gelu"}])
def test_they_lead_to_the_models_outputs(shape: dict[str, Any]) -> None:
    model = made(**shape)
    seen, T = model.activations(X), 5 if model.config.model.pooling == "cls" else 4
    torch.testing.assert_close(seen["outputs"], model(torch.from_numpy(X)), rtol=1e-5, atol=1e-6)
    assert ("ln_final.hook_normalized" in seen) == model.config.model.final_norm
    for layer in (0, 1):
        here = {name.removeprefix(f"blocks.{layer}."): value for name, value in seen.items()}
        assert here["attn.hook_pattern"].shape == (5, 2, T, T)
        torch.testing.assert_close(here["attn.hook_pattern"].sum(-1), torch.ones(5, 2, T))
        assert here["attn.hook_q"].shape == here["attn.hook_z"].shape == (5, T, 2, 4)
        assert here["mlp.hook_post"].shape == (5, T, 16)
        if model.config.model.norm == "pre":
            torch.testing.assert_close(here["hook_resid_mid"], here["hook_resid_pre"] + here["hook_attn_out"])
            torch.testing.assert_close(here["hook_resid_post"], here["hook_resid_mid"] + here["hook_mlp_out"])
    assert torch.equal(seen["hook_embed"], seen["blocks.0.hook_resid_pre"])
    assert torch.equal(seen["blocks.0.hook_resid_post"], seen["blocks.1.hook_resid_pre"])


def test_attention_is_torchs_own() -> None:
    model = made(pooling="mean")
    plain, seen = model.to_torch(), model.activations(X)
    layer = plain.encoder.layers[0]
    with torch.no_grad():
        normed = layer.norm1(seen["hook_embed"])
        added, pattern = layer.self_attn(normed, normed, normed, need_weights=True, average_attn_weights=False)
    torch.testing.assert_close(seen["blocks.0.attn.hook_pattern"], pattern)
    torch.testing.assert_close(seen["blocks.0.hook_attn_out"], added)


def test_one_row_is_a_row_and_a_wrong_one_is_refused() -> None:
    model = made()
    assert model.activations(X[0])["outputs"].shape[0] == 1
    with pytest.raises(auxmod.UserError, match=r"lie in 0\.\.6"):
        model.activations([1, 2, 3, 7])
    with pytest.raises(auxmod.UserError, match="no row"):
        model.activations(X[:0])


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_put_in_place_goes_on(shape: dict[str, Any]) -> None:
    """Putting in a value from another input gives that input's answer, unless another path leads around the value."""
    model = made(**shape)
    ours, theirs = model.activations(X[:2]), model.activations(X[2:4])
    around = ("hook_q", "hook_k", "hook_v", "hook_z", "hook_pattern", "hook_attn_out", "hook_mlp_out", "mlp.hook_post")
    for name in ours.keys() - {"values"}:
        seen = model.activations(X[:2], hooks={name: lambda value, name=name: theirs[name]})  # type: ignore[misc]
        assert torch.equal(seen[name], theirs[name])
        if not name.endswith(around):
            torch.testing.assert_close(seen["outputs"], theirs["outputs"], rtol=1e-5, atol=1e-6)
            torch.testing.assert_close(seen["values"], theirs["values"], rtol=1e-5, atol=1e-4)
        elif "blocks.0" in name:
            assert not torch.equal(seen["outputs"], ours["outputs"]), name


def test_a_head_taken_away_is_one_without_weights() -> None:
    model = made(pooling="mean")

    def without(z: torch.Tensor) -> torch.Tensor:
        return z.index_fill(2, torch.tensor([1]), 0.0)

    seen = model.activations(X, hooks={"blocks.1.attn.hook_z": without})
    with torch.no_grad():
        model.encoder.blocks[1].out.weight[..., 4:] = 0.0  # heads are 4 wide
    torch.testing.assert_close(seen["outputs"], model(torch.from_numpy(X)), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(seen["values"].numpy(), model.values(X), rtol=1e-5, atol=1e-4)


def test_a_hook_may_write_into_what_it_is_given() -> None:
    model = made()
    usual, seen = model.activations(X), model.activations(X, hooks={"blocks.0.hook_resid_pre": torch.Tensor.zero_})
    assert torch.equal(seen["hook_embed"], usual["hook_embed"])
    assert not seen["blocks.0.hook_resid_pre"].any()


def test_a_hook_of_nothing_or_of_another_shape_is_refused() -> None:
    model = made()
    with pytest.raises(
        auxmod.UserError, match=r"nothing called blocks\.9\.hook_q here; known are: hook_embed, blocks\.0"
    ):
        model.activations(X, hooks={"blocks.9.hook_q": torch.zeros_like})
    for wrong in (lambda value: value[:1], torch.Tensor.double, torch.Tensor.numpy):
        with pytest.raises(auxmod.UserError, match=r"must give a tensor like its own: \(5, 8\), torch.float32, cpu"):
            model.activations(X, hooks={"pooled": wrong})


@pytest.mark.parametrize("hooks", [[], "pooled", {"pooled": 0}, {"pooled": None}, {0: torch.zeros_like}])
def test_hooks_that_are_no_functions_by_name_are_a_sentence(hooks: Any) -> None:
    with pytest.raises(auxmod.UserError, match="Hooks are functions by name"):
        made().activations(X, hooks=hooks)


def test_gradients_are_kept_where_asked() -> None:
    model = made(pooling="mean")
    assert not any(value.requires_grad for value in model.activations(X).values())
    seen = model.activations(X, gradients=True)
    z, outputs = seen["blocks.0.attn.hook_z"], seen["outputs"]
    (slope,) = torch.autograd.grad(outputs[:, 0].sum(), z)
    step = 1e-2 * slope / slope.norm()
    moved = model.activations(X, hooks={"blocks.0.attn.hook_z": lambda value: value + step})["outputs"]
    gained = float((moved[:, 0] - outputs[:, 0].detach()).sum())
    assert gained == pytest.approx(float((slope * step).sum()), rel=0.05)


def test_only_the_values_asked_for_are_returned() -> None:
    model = made(embedding="token")
    seen = model.activations(X)
    for names in (["pooled"], ["values", "hook_embed"], []):
        some = model.activations(X, names=names)
        assert sorted(some) == sorted(names)
        assert all(torch.equal(some[name], seen[name]) for name in names)
    with pytest.raises(auxmod.UserError, match=r"nothing called hook_z here; known are: hook_embed, .*outputs"):
        model.activations(X, names=["hook_z"])
    for wrong in ("pooled", 5, [3], (name for name in ["pooled"])):
        with pytest.raises(auxmod.UserError, match="must be a list of names"):
            model.activations(X, names=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("embedding", ["token", "angular"])
def test_features_are_what_the_encoder_and_its_plain_twin_read(embedding: str) -> None:
    model = made(embedding=embedding)
    features, rows = model.features(X), torch.from_numpy(X)
    assert features.shape == ((5, 4) if embedding == "token" else (5, 4, 2 * model.config.method.rungs))
    with torch.no_grad():
        torch.testing.assert_close(model.encoder(features[None])[0], model(rows))
        torch.testing.assert_close(model.to_torch()(features), model(rows), rtol=1e-5, atol=1e-6)


def test_a_model_is_measured_with_values_changed() -> None:
    model = made()
    assert model.evaluate(500, hooks={}) == model.evaluate(500)
    blind = model.evaluate(500, hooks={"pooled": torch.zeros_like})
    always = model.activations(X[:1], hooks={"pooled": torch.zeros_like})["values"].round() % 7
    about = {"seed": sampling.TEST_SEED, "stream": "test", "start": 0, "count": 500, "n": 4, "q": 7}
    drawn = sampling.inputs("uniform", "zero", **about, device=torch.device("cpu"))  # type: ignore[arg-type]
    assert blind["match"] == int((drawn.sum(-1) % 7 == always).sum()) / 500
