"""A device's free memory and speed, and a run's needs: a run that does not fit is refused before it starts."""

from __future__ import annotations

import gc
import os
import time
from pathlib import Path
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.learning.capture import forget
from auxmod.learning.cost import data_bytes, member_bytes, parameters, work
from auxmod.learning.precision import products, resolve_device, resolve_precision, trunk_dtype

MEMINFO, GROUP = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
"""Where Linux reports the machine's memory, and a container's limits on it."""


def free_bytes(device: torch.device) -> int:
    """Bytes of memory available on the device now; for a CPU, all of the machine's if the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    try:
        machine = 1024 * _named(MEMINFO)["MemAvailable:"]  # includes file caches, which are given up on demand
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, _allowed(machine))


def _allowed(otherwise: int) -> int:
    """The bytes that a container's limit leaves; ``otherwise`` if none can be read."""
    try:
        limit, used = (int((GROUP / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = _named(GROUP / "memory.stat")
        return max(0, limit - used + stat["file"] - stat["shmem"])
    except (OSError, KeyError, ValueError):  # without a limit, memory.max holds the word max
        return otherwise


def _named(path: Path) -> dict[str, int]:
    """Read the numbers of a file whose lines begin with a name and a number."""
    return {words[0]: int(words[1]) for line in path.read_text().splitlines() if len(words := line.split()) > 1}


def clean_up(device: torch.device) -> None:
    """On a GPU, free what an ensemble held and what was compiled for it."""
    if device.type == "cuda":
        forget()  # also so that no shape is compiled as a variation of an earlier one
        gc.collect()  # an ensemble and its compiled methods refer to each other
        torch.cuda.empty_cache()


def check_fits(config: RunConfig, device: torch.device) -> None:
    """Refuse a run that is larger than the device's free memory, and say what to do."""
    precision = resolve_precision(config.training.precision, device)
    needed, free = member_bytes(config, precision), free_bytes(device)
    if needed <= free:
        return
    sizes = f"about {needed / 2**30:,.1f} GiB of memory, and {free / 2**30:,.1f} GiB is free"
    if data_bytes(config) > needed / 2:
        raise UserError(f"This run needs {sizes}, most of it for what it trains on: use fewer --samples.")
    if config.model.embedding == "token":
        classes = f", and {max(config.method.moduli) * config.problem.q:,} classes" * (not config.model.angles)
        rows = f"its table has a row for each of {config.problem.q:,} numbers{classes}"
        raise UserError(f"This run needs {sizes}: {rows}. Use --embedding angular, which has neither.")
    raise UserError(f"This run needs {sizes}: use a smaller --batch or model.")


def describe(config: RunConfig, device: str) -> dict[str, Any]:
    """What a run needs, for `--dry-run`; the time is a rough estimate from the matrix rate, measured now."""
    chosen = resolve_device(device)
    precision = resolve_precision(config.training.precision, chosen)
    flops, rate = work(config), matrix_rate(chosen, precision)
    return {
        "device": str(chosen),
        "precision": precision,
        "parameters": parameters(config),
        "bytes": member_bytes(config, precision),
        "free_bytes": free_bytes(chosen),
        "steps": config.training.steps,
        "flops": flops,
        "seconds": flops / (EFFICIENCY * rate),
    }


EFFICIENCY = 0.35
"""Roughly the share of the matrix rate that a training step reaches, for estimates of time."""


def matrix_rate(device: torch.device, precision: str) -> float:
    """FLOP/s of a large matrix product, measured now."""
    dtype = trunk_dtype(precision)
    size = 8192 if device.type == "cuda" else 1024 if dtype != torch.float16 else 256  # fp16 is slow on a CPU
    a = torch.randn(size, size, device=device).to(dtype)
    times = []
    with products(precision):
        for _ in range(4):
            began = time.perf_counter()
            a @ a
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            times.append(time.perf_counter() - began)
    return float(2 * size**3 / min(times))
