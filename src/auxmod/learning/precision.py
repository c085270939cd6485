"""Which device to use, and which arithmetic on it. Nothing else decides either."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import torch

from auxmod.config import Precision
from auxmod.errors import require

_TRUNK = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def resolve_device(name: str | torch.device) -> torch.device:
    """`auto`, `cpu`, `cuda` or `cuda:i` → a device of this machine; refuse one that it lacks."""
    name = str(name)
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    known = re.fullmatch(r"cpu|cuda(?::([0-9]+))?", name)
    require(known is not None, f"--device is {name!r}; choose auto, cpu, cuda or cuda:i.")
    if known and name != "cpu":
        found = torch.cuda.device_count() if torch.cuda.is_available() else 0
        has = f"{found or 'no'} CUDA device{'s' * (found != 1)}"
        require(
            int(known[1] or 0) < found, f"--device is {name}, but this machine has {has}: use --device cpu or auto."
        )
    return torch.device(name)


def resolve_precision(precision: Precision, device: torch.device) -> str:
    """Resolve `auto` to the fastest precision that loses no accuracy (docs/performance.md); refuse tf32 on a CPU.

    That is fp16 on a GPU, but fp32 on a CPU and on a GPU of compute capability below 7.0. If this machine has no GPU,
    but a cluster does, the cluster's is taken to have 7.0 or more.
    """
    if precision == "auto":
        here = device.type == "cuda" and torch.cuda.is_available()
        slow = device.type == "cpu" or (here and torch.cuda.get_device_capability(device) < (7, 0))
        return "fp32" if slow else "fp16"
    require(
        precision != "tf32" or device.type == "cuda",
        "--precision tf32 is a mode of CUDA devices: use fp32 on a CPU.",
    )
    return precision


def trunk_dtype(precision: str) -> torch.dtype:
    """The dtype of the trunk; tf32 is float32 with rounded products (:func:`products`)."""
    return _TRUNK[precision]


@contextlib.contextmanager
def products(precision: str) -> Iterator[None]:
    """Within the context, round float32 products on a GPU to tf32 if that is the precision, else compute them in full.

    This is a switch of the whole process. It is put back afterwards.
    """
    if not torch.cuda.is_available():
        yield
        return
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # set through torch's newer interface, which this one cannot read
        before = None
    newer = getattr(torch.backends.cuda.matmul, "fp32_precision", None)
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    try:
        yield
    finally:
        if before is not None:
            torch.set_float32_matmul_precision(before)
        else:
            torch.backends.cuda.matmul.fp32_precision = newer
