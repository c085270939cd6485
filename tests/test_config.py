"""Tests of run configurations: values survive JSON, hash to a stable name, and are refused if impossible."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxmod.config import DATA, GROUPS, Method, Model, Problem, RunConfig, Training
from auxmod.errors import UserError

OTHER: dict[str, dict[str, Any]] = {
    "problem": {"n": 17, "q": 98},
    "method": {
        "distribution": "sparse",
        "fill": "nonzero",
        "moduli": (1, 4),
        "weights": (0.5, 0.5),
        "draw": "sampled",
        "alpha": 0.1,
        "harmonics": (2, 3),
        "asked": "all",
        "augment": "shift",
        "tails": 4.0,
    },
    "model": {
        "embedding": "token",
        "readout": "angles",
        "layers": 3,
        "heads": 8,
        "width": 128,
        "hidden": 99,
        "norm": "post",
        "final_norm": False,
        "bias": False,
        "init": "0.02",
        "lift": 0.1,
        "dropout": 0.1,
        "pooling": "max",
        "activation": "gelu",
    },
    "training": {
        "samples": 5000,
        "data_sha256": "ab",
        "test_data_sha256": "cd",
        "epochs": 3,
        "batch": 100,
        "optimiser": "muon",
        "lr": 1e-3,
        "warmup": 0.1,
        "beta1": 0.8,
        "beta2": 0.99,
        "weight_decay": 0.0,
        "clip": 1.0,
        "precision": "fp32",
        "test_samples": 10,
        "asks": 4,
    },
}
"""Another value for every field, except the two that a hash leaves out: `method` and `data`."""


def changed(group: str, **values: Any) -> RunConfig:
    base = RunConfig()
    return dataclasses.replace(base, **{group: dataclasses.replace(getattr(base, group), **values)})


def test_the_defaults_are_the_papers() -> None:
    run = RunConfig()
    model, training = run.model, run.training
    assert (model.layers, model.heads, model.width, model.hidden) == (4, 4, 256, 2048)
    assert (model.norm, model.bias, model.init, model.dropout, model.activation) == ("pre", True, "default", 0, "relu")
    assert (training.batch, training.epochs, training.lr, training.warmup) == (250, 10, 3e-5, 0.05)
    assert (training.beta1, training.beta2, training.weight_decay) == (0.9, 0.999, 0.1)
    assert (training.steps_per_epoch, training.steps) == (400, 4000)


def test_the_default_runs_name_never_changes() -> None:
    """Names of past runs depend on it: a new field needs a new FORMAT, or a hash that leaves its default out."""
    assert RunConfig().hash == "14923324548a"


def test_a_name_covers_every_field_but_labels_and_places() -> None:
    names = {f.name for kind in GROUPS.values() for f in dataclasses.fields(kind)}
    assert {name for values in OTHER.values() for name in values} == names - {"method", *DATA}
    hashes = [RunConfig().hash, RunConfig(seed=1).hash]
    for group, values in OTHER.items():
        for name, value in values.items():
            both: dict[str, Any] = {"moduli": (1, 4), "weights": (0.5, 0.5)}
            finer = {"harmonics": value, "weights": (0.5, 0.25, 0.25)}
            together = finer if name == "harmonics" else both if name in both else {name: value}
            together |= both if name == "tails" else {}
            hashes.append(changed(group, **together).hash)
    assert len(set(hashes)) == len(hashes) - 1  # moduli and weights can only change together, so two hashes are equal
    assert changed("method", method="aux").hash == RunConfig().hash
    assert changed("training", data="elsewhere.npz").hash == RunConfig().hash


@st.composite
def runs(draw: st.DrawFn) -> RunConfig:
    chosen = {
        group: {name: value for name, value in values.items() if draw(st.booleans())} for group, values in OTHER.items()
    }
    for name in ("moduli", "harmonics", "weights"):
        chosen["method"].pop(name, None)
    if "asked" in chosen["method"] or "alpha" in chosen["method"]:
        chosen["model"]["readout"] = "angles"
    if "tails" in chosen["method"] or draw(st.booleans()):
        chosen["method"] |= {"moduli": (1, 2, 4), "weights": (0.5, 0.25, 0.25)}
    problem = Problem(n=draw(st.integers(1, 500)), q=draw(st.integers(3, 10**7)))
    parts = {name: kind(**chosen[name]) for name, kind in GROUPS.items() if name != "problem"}
    return RunConfig(problem=problem, seed=draw(st.integers(0, 2**63 - 1)), **parts)


@given(runs())
def test_json_round_trip(run: RunConfig) -> None:
    again = RunConfig.from_dict(json.loads(json.dumps(run.to_dict())))
    assert again == run
    assert again.hash == run.hash


def test_a_run_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        RunConfig().problem.n = 3  # type: ignore[misc]


def test_one_setting_has_one_spelling() -> None:
    assert {Model(init=value).init for value in (0.02, "0.02", "2e-2")} == {"0.02"}  # type: ignore[arg-type]
    assert Model(init=0.12345678).init == "0.12345678"  # type: ignore[arg-type]
    assert Training(clip=-0.0) == Training(clip=0.0)
    assert str(Training(clip=-0.0).clip) == "0.0", "a run has one hash"
    assert {Model(init=f"linear-{value}").init for value in ("0.02", "2e-2", "0.020")} == {"linear-0.02"}
    assert Training(lr=1) == Training(lr=1.0)
    assert Method(moduli=[1, 2], weights=[0.5, 0.5]) == Method(moduli=(1, 2), weights=(0.5, 0.5))  # type: ignore[arg-type]


def test_k_and_r_are_the_papers() -> None:
    method = Method(moduli=(1, 5), weights=(0.6, 0.4))
    assert (method.k, method.r) == (5, 0.4)
    assert (Method().k, Method().r) == (None, None)


WRONG: list[tuple[type, dict[str, Any], str]] = [
    (Problem, {"n": 0}, "--n is 0"),
    (Problem, {"n": 2.5}, "--n is 2.5, but must be a whole number"),
    (Problem, {"n": True}, "--n is True"),
    (Problem, {"q": 1}, "--q is 1"),
    (Problem, {"n": 2**30, "q": 2**30}, "2^53"),
    (Problem, {"q": 2**30 + 1}, "32-bit"),
    (Method, {"moduli": (2,)}, "the first must be 1"),
    (Method, {"moduli": ()}, "the first must be 1"),
    (Method, {"moduli": (1, 1), "weights": (0.5, 0.5)}, "distinct"),
    (Method, {"moduli": (1, 2)}, "one weight a modulus"),
    (Method, {"moduli": (1, 2), "weights": (0.5, 0.6)}, "sums to 1.1"),
    (Method, {"moduli": (1, 2), "weights": (1.0, 0.0)}, "(0, 1]"),
    (Method, {"moduli": (1, 2), "weights": (0.5, float("nan"))}, "finite"),
    (Method, {"moduli": "1,2"}, "list"),
    (Method, {"draw": "never"}, "--draw is 'never'; choose one of sampled"),
    (Method, {"alpha": -1}, "--alpha is -1"),
    (Model, {"layers": 0}, "--layers is 0"),
    (Model, {"width": 10, "heads": 4}, "does not divide"),
    (Model, {"dropout": 1.0}, "--dropout is 1"),
    (Model, {"init": "-1"}, "--init is '-1'"),
    (Model, {"init": "nan"}, "--init is 'nan'"),
    (Model, {"lift": -0.1}, "--lift is -0.1"),
    (Method, {"tails": 0.5}, "--tails is 0.5"),
    (
        Method,
        {"tails": 2.0},
        "moduli above q, and --method naive has none here: leave --tails out",
    ),
    (Model, {"bias": "yes"}, "true or false"),
    (Model, {"norm": "both"}, "--norm is 'both'"),
    (Training, {"samples": 0}, "--samples is 0"),
    (Training, {"batch": 200_000}, "larger than --samples"),
    (Training, {"lr": 0.0}, "--lr is 0"),
    (Training, {"lr": float("inf")}, "finite"),
    (Training, {"warmup": 1.0}, "--warmup is 1"),
    (Training, {"beta2": 1.0}, "--beta2 is 1"),
    (
        Training,
        {"beta1": 0.99999999},
        "--beta1 is 1, but must lie in 0..0.999999",
    ),  # which is 1 in float32
    (Training, {"weight_decay": -0.1}, "--weight-decay is -0.1"),
    (Training, {"clip": -1.0}, "--clip is -1"),
    (Training, {"test_samples": 0}, "--test-samples is 0"),
    (Training, {"data": 3}, "must be text"),
    (RunConfig, {"seed": -1}, "--seed is -1"),
    (RunConfig, {"problem": 3}, "problem must be a Problem"),
    (
        RunConfig,
        {"problem": Problem(n=1, q=2**30), "method": Method(moduli=(1, 2**24), weights=(0.5, 0.5))},
        "passes 2^53",
    ),
    (RunConfig, {"problem": Problem(q=2), "method": Method(distribution="sparse", fill="nonzero")}, "--q 2"),
]


@pytest.mark.parametrize(("kind", "values", "words"), WRONG)
def test_what_cannot_be_is_refused_in_words(kind: type, values: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError) as caught:
        kind(**values)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(format=2), "format 2"),
        (lambda d: d.pop("format"), "format None"),
        (lambda d: d.update(extra=1), "parts"),
        (lambda d: d.pop("model"), "parts"),
        (lambda d: d.update(model=[]), "'model' must be an object"),
        (lambda d: d["model"].update(depth=3), "['depth']"),
        (lambda d: d["training"].pop("lr"), "['lr']"),
        (lambda d: d["problem"].update(n=None), "--n is None"),
    ],
)
def test_a_foreign_file_is_refused_in_words(change: Any, words: str) -> None:
    plain = RunConfig().to_dict()
    change(plain)
    with pytest.raises(UserError) as caught:
        RunConfig.from_dict(plain)
    assert words in str(caught.value)


def test_a_configuration_is_an_object() -> None:
    with pytest.raises(UserError, match="JSON object"):
        RunConfig.from_dict([])  # type: ignore[arg-type]


def test_what_is_wrong_with_its_file_is_said_once_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for content in ("{", '{"format": 9}', "[]"):
        path.write_text(content)
        with pytest.raises(UserError) as refusal:
            RunConfig.read(path)
        assert str(refusal.value).count(str(path)) == 1
