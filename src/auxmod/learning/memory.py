"""What a run needs of a device, in memory and in time; one that does not fit is refused before it starts."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.learning.capture import forget
from auxmod.learning.cost import member_bytes, parameters, work
from auxmod.learning.precision import resolve_device, resolve_precision, trunk_dtype


def free_bytes(device: torch.device) -> int:
    """Memory that is free on the device now; all of the machine's, where the system does not say."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def clean_up(device: torch.device) -> None:
    """Give back what an ensemble held, and what was compiled for it."""
    if device.type == "cuda":
        forget()
        gc.collect()
        torch.cuda.empty_cache()


def check_fits(config: RunConfig, device: torch.device) -> None:
    """Refuse a run that is larger than the device's free memory, and say what to do."""
    precision = resolve_precision(config.training.precision, device)
    needed, free = member_bytes(config, precision), free_bytes(device)
    if needed <= free:
        return
    sizes = f"about {needed / 2**30:,.1f} GiB of memory, and {free / 2**30:,.1f} GiB is free"
    classes = max(config.method.moduli) * config.problem.q
    if not config.model.angles:
        raise UserError(
            f"This run needs {sizes}: its head has {classes:,} classes. Use --embedding angular, which needs none."
        )
    raise UserError(f"This run needs {sizes}: use a smaller --batch or model.")


def describe(config: RunConfig, device: str) -> dict[str, Any]:
    """What a run needs, for `--dry-run`; the time is a rough one, at the matrix rate that is measured now."""
    chosen = resolve_device(device)
    precision = resolve_precision(config.training.precision, chosen)
    flops, rate = work(config), matrix_rate(chosen, trunk_dtype(precision))
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
"""The share of the matrix rate that a training step reaches, roughly, for an estimate of time."""


def matrix_rate(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s of a large matrix product, measured now."""
    size = 8192 if device.type == "cuda" else 1024
    a = torch.randn(size, size, device=device).to(dtype)
    times = []
    for _ in range(4):
        began = time.perf_counter()
        a @ a
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - began)
    return float(2 * size**3 / min(times))
