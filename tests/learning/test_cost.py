"""Tests of the counts of parameters, arithmetic and memory, compared with the model itself."""

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from auxmod.learning import cost
from auxmod.learning.engine import Ensemble, make_encoder
from auxmod.settings import build

SMALL = {"n": 5, "q": 7, "width": 32, "hidden": 64, "layers": 2, "samples": 50, "batch": 50}


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize("pooling", ["cls", "mean", "flatten"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("final_norm", [True, False])
def test_parameters_are_the_encoders(embedding: str, pooling: str, bias: bool, final_norm: bool) -> None:
    config = build(**SMALL, k=3, embedding=embedding, pooling=pooling, bias=bias, final_norm=final_norm)
    assert cost.parameters(config) == sum(p.numel() for p in make_encoder([config]).parameters())


def test_the_papers_model_has_five_million_parameters() -> None:
    assert 5.2e6 < cost.parameters(build()) < 5.4e6


@pytest.mark.parametrize("embedding", ["token", "angular"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_arithmetic_is_what_torch_counts(embedding: str, pooling: str, optimiser: str) -> None:
    config = build(**SMALL, embedding=embedding, pooling=pooling, optimiser=optimiser)
    ensemble = Ensemble([config], torch.device("cpu"))
    with (
        FlopCounterMode(display=False) as counter,
        torch.nn.attention.sdpa_kernel(
            torch.nn.attention.SDPBackend.MATH  # the counter does not know a CPU's fused attention
        ),
    ):
        ensemble.step()
    assert counter.get_total_flops() == cost.step_flops(config)


def test_with_post_norm_a_gpu_computes_the_last_block_for_all_positions() -> None:
    early, late = (cost.activation_bytes(build(**SMALL, norm=norm, pooling="first"), 2) for norm in ("pre", "post"))
    whole = cost.activation_bytes(build(**SMALL, norm="post", pooling="mean"), 2)
    assert early < late == whole


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_memory_is_near_what_a_forward_pass_keeps(precision: str, activation: str, pooling: Any) -> None:
    sizes: dict[str, Any] = {"n": 16, "width": 64, "hidden": 256, "layers": 3, "batch": 50}
    config = build(**sizes, precision=precision, activation=activation, pooling=pooling)
    ensemble = Ensemble([config], torch.device("cpu"))
    parameters = next(ensemble.encoder.parameters()).untyped_storage().data_ptr()
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if tensor.is_floating_point() and storage.data_ptr() != parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        ensemble.step()
    size = 2 if precision == "bf16" else 4
    copies = 2 * cost.parameters(config) if size == 2 else 0
    assert (
        0.95 < cost.activation_bytes(config, size) / (sum(kept.values()) - copies) < (1.5 if pooling == "cls" else 1.4)
    )
    assert cost.member_bytes(config) > cost.activation_bytes(config, size) + 16 * cost.parameters(config)


def test_an_open_precision_counts_as_half() -> None:
    config = build()
    assert cost.member_bytes(config) == cost.member_bytes(config, "fp16") < cost.member_bytes(config, "fp32")


def test_work_is_all_steps() -> None:
    config = build(samples=1000, batch=250, epochs=3)
    assert cost.work(config) == 12 * cost.step_flops(config)
