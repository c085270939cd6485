"""Tests of weights and state on disk: what is read is what was written, or a sentence says why not."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from auxmod.errors import UserError
from auxmod.files import write_json
from auxmod.learning.checkpoint import OnTheWay, load_model, load_state, save_model, save_state
from auxmod.learning.engine import Ensemble, Progress
from tiny import tiny

CPU = torch.device("cpu")


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    config = tiny()
    save_model(tmp_path / "run", Ensemble([config], CPU).encoder, 0, config)
    return tmp_path / "run"


@pytest.mark.parametrize("embedding", ["token", "angular"])
def test_a_member_is_saved_as_a_model_of_its_own(tmp_path: Path, embedding: str) -> None:
    """The file has neither the member axis nor the rows of a shared head that are not the member's."""
    configs = [tiny(embedding=embedding, k=k, seed=k) for k in (2, 5)]
    ensemble = Ensemble(configs, CPU)
    for member, config in enumerate(configs):
        save_model(tmp_path / str(member), ensemble.encoder, member, config)
        encoder, read = load_model(tmp_path / str(member), CPU)
        assert read == config
        assert not encoder.training
        alone = Ensemble([config], CPU).encoder
        for (name, a), (other, b) in zip(encoder.named_parameters(), alone.named_parameters(), strict=True):
            assert name == other
            assert torch.equal(a, b)
        tensors = load_file(tmp_path / str(member) / "model.safetensors")
        assert tensors["head.weight"].shape == (2 * 2 if embedding == "angular" else 7 * config.method.moduli[1], 8)


def test_state_round_trip(tmp_path: Path) -> None:
    config = tiny()
    ensemble = Ensemble([config], CPU)
    for _, _ in zip(range(5), ensemble.fit(), strict=False):
        pass
    save_state(tmp_path / "state", ensemble)
    fresh = Ensemble([config], CPU)
    load_state(tmp_path / "state", fresh)
    for name, tensor in ensemble.snapshot().items():
        assert torch.equal(tensor, fresh.snapshot()[name]), name
    assert int(fresh.step_number) == 5


def test_models_are_kept_at_the_first_point_past_each_interval(tmp_path: Path) -> None:
    ensemble = Ensemble([tiny()], CPU)
    kept = OnTheWay(lambda _: tmp_path, 100, 102)
    for step in (150, 201, 250, 299, 302, 600):
        kept.see(ensemble, Progress(step, 600, [1.0], None, [None]))
    assert sorted(int(path.name) for path in (tmp_path / "steps").iterdir()) == [201, 302, 600]


def test_files_of_another_run_are_refused(tmp_path: Path, saved: Path) -> None:
    save_state(tmp_path / "state", Ensemble([tiny()], CPU))
    with pytest.raises(UserError, match="belongs to another run"):
        load_state(tmp_path / "state", Ensemble([tiny(seed=1)], CPU))
    write_json(saved / "config.json", tiny(seed=1).to_dict())
    with pytest.raises(UserError, match="belongs to another run"):
        load_model(saved, CPU)


def test_what_is_not_a_model_is_refused_in_words(tmp_path: Path, saved: Path) -> None:
    with pytest.raises(UserError, match="is not a run: there is no such directory"):
        load_model(tmp_path / "nothing", CPU)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"is not a run: it has no config\.json"):
        load_model(tmp_path / "empty", CPU)
    weights = (saved / "model.safetensors").read_bytes()
    (saved / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(UserError, match="is damaged or not a safetensors file"):
        load_model(saved, CPU)
    (saved / "model.safetensors").unlink()
    with pytest.raises(UserError, match=r"There is no model\.safetensors in"):
        load_model(saved, CPU)


def test_another_version_is_refused(saved: Path) -> None:
    write_json(saved / "config.json", tiny().to_dict() | {"format": 99})
    with pytest.raises(UserError, match=r"config.json: This configuration has format 99"):
        load_model(saved, CPU)
