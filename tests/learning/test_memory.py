"""Tests of memory: what is free, and that a run that does not fit is refused with what it needs."""

import os
from pathlib import Path

import pytest
import torch

from auxmod.errors import UserError
from auxmod.learning import memory
from auxmod.learning.cost import member_bytes, parameters
from tiny import tiny

CPU = torch.device("cpu")


def test_where_a_system_does_not_say_what_is_free_it_is_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < memory.free_bytes(CPU) < whole
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "none")  # as on macOS
    assert memory.free_bytes(CPU) == whole


def test_what_caches_files_can_be_had_and_a_containers_limit_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "GROUP", tmp_path)
    (tmp_path / "meminfo").write_text("MemTotal:  900 kB\nMemFree:  10 kB\nMemAvailable:  600 kB\nHugePages_Total: 0\n")
    assert memory.free_bytes(CPU) == 600 * 1024
    for name, text in {"max": "max", "current": "500", "stat": "anon 400\nfile 100\nshmem 30\n"}.items():
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    assert memory.free_bytes(CPU) == 600 * 1024
    (tmp_path / "memory.max").write_text("2000\n")
    assert memory.free_bytes(CPU) == 2000 - 500 + 100 - 30
    (tmp_path / "memory.max").write_text("300\n")
    assert memory.free_bytes(CPU) == 0


def test_a_head_too_large_says_what_it_needs_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**30)
    config = tiny(embedding="token", q=974269, k=16)
    with pytest.raises(UserError) as caught:
        memory.check_fits(config, CPU)
    sentence = str(caught.value)
    assert "15,588,304 classes" in sentence
    assert "1.0 GiB is free" in sentence
    assert f"{member_bytes(config, 'fp32') / 2**30:,.1f} GiB" in sentence
    assert "--embedding angular" in sentence


def test_a_table_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**30)
    with pytest.raises(UserError, match=r"a row for each of 268,435,456 numbers\. Use --embedding angular"):
        memory.check_fits(tiny(embedding="token", q=2**28, readout="angles"), CPU)


def test_a_model_too_large_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    config = tiny()  # precision auto: on a CPU fp32
    needed = member_bytes(config, "fp32")
    assert needed > member_bytes(config, "fp16")
    monkeypatch.setattr(memory, "free_bytes", lambda device: needed - 1)
    with pytest.raises(UserError, match="smaller --batch or model"):
        memory.check_fits(config, CPU)
    monkeypatch.setattr(memory, "free_bytes", lambda device: needed)
    memory.check_fits(config, CPU)


def test_free_memory_is_a_number_of_bytes() -> None:
    assert 2**20 < memory.free_bytes(CPU) < 2**50


def test_what_a_run_needs_is_described() -> None:
    described = memory.describe(tiny(), "cpu")
    assert described["steps"] == 18
    assert described["device"] == "cpu"
    assert described["precision"] == "fp32"
    assert described["parameters"] == parameters(tiny())
    assert 0 < described["bytes"] < described["free_bytes"]
    assert described["seconds"] * 0.35 * 1e15 > described["flops"] > 0  # no CPU is that fast


def test_data_too_large_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**20)
    with pytest.raises(UserError, match=r"most of it for what it trains on: use fewer --samples\."):
        memory.check_fits(tiny(samples=10**6), CPU)
    with pytest.raises(UserError, match=r"use a smaller --batch or model\."):
        memory.check_fits(tiny(width=1024), CPU)
