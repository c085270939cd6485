"""Tests of the choice of device and precision."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch

from auxmod.errors import UserError
from auxmod.learning.engine import Ensemble
from auxmod.learning.precision import products, resolve_device, resolve_precision, trunk_dtype
from tiny import tiny

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("two_gpus")
def test_devices_that_are_there() -> None:
    names = {"auto": "cuda", "cpu": "cpu", "cuda": "cuda", "cuda:1": "cuda:1"}
    assert {name: str(resolve_device(name)) for name in names} == names


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("name", ["cuda:2", "cuda:10"])
def test_a_gpu_too_many(name: str) -> None:
    with pytest.raises(UserError, match=f"--device is {name}, but this machine has 2 CUDA devices"):
        resolve_device(name)


@pytest.mark.usefixtures("no_gpu")
def test_no_gpu() -> None:
    assert resolve_device("auto") == CPU
    with pytest.raises(UserError, match="this machine has no CUDA devices: use --device cpu or auto"):
        resolve_device("cuda")


@pytest.mark.parametrize("name", ["gpu", "cpu:1", "cuda:", "cuda:x", "cuda:-1", "", "mps"])
def test_devices_that_are_not_known(name: str) -> None:
    with pytest.raises(UserError, match="choose auto, cpu, cuda or cuda:i"):
        resolve_device(name)


def test_precision(monkeypatch) -> None:
    assert resolve_precision("auto", CPU) == "fp32"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert resolve_precision("auto", CUDA) == "fp16"  # for a cluster's GPU
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for capability, chosen in (((9, 0), "fp16"), ((7, 0), "fp16"), ((6, 1), "fp32")):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _, found=capability: found)
        assert resolve_precision("auto", CUDA) == chosen
    assert resolve_precision("bf16", CPU) == "bf16"
    assert resolve_precision("tf32", CUDA) == "tf32"
    with pytest.raises(UserError, match="use fp32 on a CPU"):
        resolve_precision("tf32", CPU)
    assert [trunk_dtype(p) for p in ("fp32", "fp16", "bf16")] == [torch.float32, torch.float16, torch.bfloat16]


@pytest.mark.parametrize(("precision", "meanwhile"), [("tf32", "high"), ("fp16", "highest"), ("fp32", "highest")])
@pytest.mark.parametrize("own", ["high", "highest"])
def test_the_processs_own_switch_is_put_back(
    monkeypatch: pytest.MonkeyPatch, precision: str, meanwhile: str, own: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision(own)
        with contextlib.suppress(ZeroDivisionError), products(precision):
            assert torch.get_float32_matmul_precision() == meanwhile
            raise ZeroDivisionError
        assert torch.get_float32_matmul_precision() == own
        torch.backends.cuda.matmul.fp32_precision = "tf32"  # the newer way, which the older cannot read
        with products(precision):
            assert torch.get_float32_matmul_precision() == meanwhile
        assert torch.backends.cuda.matmul.fp32_precision == "tf32"
    finally:
        torch.set_float32_matmul_precision(before)


def test_a_step_and_an_answer_are_computed_as_asked_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, seen = Ensemble([tiny()], CPU), list[str]()
    ensemble.precision = "tf32"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    before = torch.get_float32_matmul_precision()

    def noted(inner: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *values: (seen.append(torch.get_float32_matmul_precision()), inner(*values))[1]

    monkeypatch.setattr(ensemble, "_embed", noted(ensemble._embed))
    monkeypatch.setattr(ensemble, "_trunk", noted(ensemble._trunk))
    ensemble._draw_order(0)
    ensemble.step()
    ensemble.outputs(ensemble.x[:, :2])
    assert seen == ["high"] * 4
    assert torch.get_float32_matmul_precision() == before
