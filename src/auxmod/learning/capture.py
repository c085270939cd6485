"""From a step written in plain PyTorch to one that only replays: `torch.compile` inside one CUDA graph.

The only file of `learning/` that knows of either. On a CPU, and wherever capture fails, the step runs as it was
written, with the same results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

F = TypeVar("F", bound=Callable[..., Any])
WARMUP_STEPS = 3


def compiled(function: F, device: torch.device) -> F:
    """``function``, compiled on a GPU. In default mode: `reduce-overhead` has given wrong gradients."""
    return cast(F, torch.compile(function, dynamic=False)) if device.type == "cuda" else function


def forget() -> None:
    """Give back what the compiler keeps of what it made: after too many shapes it refuses."""
    torch.compiler.reset()


def captured(
    step: Callable[[], None], state: Sequence[Tensor], device: torch.device, eager: Callable[[], None] | None = None
) -> Callable[[], None]:
    """A callable that replays ``step``; ``state`` is every tensor that a step changes.

    Where it cannot be captured, ``eager`` serves, the same step without anything compiled: captured if it can be, and
    else as it is (without one, ``step`` itself). Warming up runs the step for real, so the state is put back as it was.
    """
    if device.type != "cuda":
        return step
    before = [tensor.clone() for tensor in state]
    replay, reason = _try(step, device)
    if reason:
        if eager is not None:
            replay, _ = _try(eager, device)
        serves = "training runs eagerly" if replay is None else "a plain one is, with nothing compiled"
        warnings.warn(f"The step could not be captured ({reason}); {serves}, slower.", stacklevel=2)
    replay = replay or eager or step
    with torch.no_grad():
        for tensor, saved in zip(state, before, strict=True):
            tensor.copy_(saved)
    return replay


def _try(step: Callable[[], None], device: torch.device) -> tuple[Callable[[], None] | None, str]:
    """A step's replay, or None and why there is none."""
    try:
        return _graph(step, device), ""
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # whatever the driver or the compiler dislikes, training can go on without them
        first, *rest = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return None, " … ".join([first, *rest[-1:]])  # a compiler's worker says the cause last


def _graph(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    stream, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    side.wait_stream(stream)
    try:
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                step()
        stream.wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=side):
            step()
    except Exception:
        torch.cuda.synchronize(device)
        torch.cuda.set_stream(stream)  # a capture that fails may leave its own behind
        raise
    return _Replay(graph, step)


@dataclass(frozen=True)
class _Replay:
    """Replays a graph, and keeps the step whose tensors it works on alive: a graph itself holds addresses only."""

    graph: torch.cuda.CUDAGraph
    step: Callable[[], None]

    def __call__(self) -> None:
        self.graph.replay()
