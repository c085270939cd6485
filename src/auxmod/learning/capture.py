"""Turn a step written in PyTorch into one that only replays: `torch.compile` inside one CUDA graph.

This is the only file of `learning/` that uses either. On a CPU, and if capture fails, the step runs in its plain form,
with the same results up to rounding.
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
    """Compile ``function`` if on a GPU, in the default mode: `reduce-overhead` has given wrong gradients."""
    return cast(F, torch.compile(function, dynamic=False)) if device.type == "cuda" else function


def forget() -> None:
    """Clear the compiler's caches: after too many shapes it refuses to compile more."""
    torch.compiler.reset()


def captured(
    step: Callable[[], None], state: Sequence[Tensor], device: torch.device, eager: Callable[[], None] | None = None
) -> Callable[[], None]:
    """Return a callable that replays ``step``, or on a CPU ``step`` itself; ``state`` is every tensor it changes.

    If ``step`` cannot be captured, warn, and use ``eager``, the same step with nothing compiled: captured if possible,
    else as it is. If there is no ``eager`` either, return ``step`` itself. Warming up runs the step for real, so the
    state is restored afterwards. If GPU memory runs out, the error is raised, and the state is not restored.
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
    """Return a step's replay and no reason, or None and the reason why there is none."""
    try:
        return _graph(step, device), ""
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # whatever the driver or the compiler raises, training can go on without it
        first, *rest = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        return None, " … ".join([first, *rest[-1:]])  # a compiler's worker prints the cause last


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
        torch.cuda.set_stream(stream)  # a failed capture may leave its own stream current
        raise
    return _Replay(graph, step)


@dataclass(frozen=True)
class _Replay:
    """Replays a graph, and keeps alive the step whose tensors it uses: the graph itself holds only addresses."""

    graph: torch.cuda.CUDAGraph
    step: Callable[[], None]

    def __call__(self) -> None:
        self.graph.replay()
