"""What a training step costs, how far that is from the hardware's limit, and what plain PyTorch takes for it.

A library: it measures and returns, and prints nothing. Windows of our step and of plain PyTorch's are timed in turn, so
that a drifting clock, or other work on the machine, affects both alike. Figures are medians over windows.
"""

from __future__ import annotations

import gc
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.ensembles import Ended
from auxmod.experiments.origin import provenance
from auxmod.experiments.single import device_name
from auxmod.experiments.sweep import run_sweep
from auxmod.learning import cost
from auxmod.learning.capture import captured
from auxmod.learning.engine import Ensemble
from auxmod.learning.memory import clean_up
from auxmod.learning.precision import products, resolve_precision, trunk_dtype
from auxmod.settings import build
from auxmod.yardstick import plain_works

WINDOWS, WINDOW_SECONDS, WARMUP_CALLS = 5, 0.25, 3
BENCHED: dict[str, Any] = {"method": "aux", "q": 97, "k": 5, "r": 0.4, "pooling": "mean"}
SMALL: dict[str, Any] = {"width": 64, "hidden": 256, "layers": 2, "samples": 10_000}
"""What a CPU gets in place of the paper's model and data."""
DEFAULT_CASES = {
    "cuda": [*((n, 1) for n in (8, 16, 32, 64, 128)), (16, 4), (16, 8), (16, 24), (64, 8)],
    "cpu": [(8, 1), (16, 1), (32, 1), (16, 4)],
}
"""(N, members) of each device's default cases."""
COMPARED = {"cuda": [(16, 8), (64, 8)], "cpu": [(16, 1)]}
"""(N, members) at which a step of `auto` is compared with one of `aux`."""
SWEPT = 8
"""Number of cells in the sweep that is timed."""
EVALUATED = {"cuda": 1_000_000, "cpu": 20_000}  # samples on which evaluation is timed

Case = Sequence[RunConfig]
"""The runs of one ensemble; the settings in its :class:`Row` are those of the first."""
Work = Callable[[], object]
Windows = dict[str, list[float]]
"""Seconds per call of each work, one figure per window."""
Clock = Callable[[Mapping[str, Work]], Windows]


@dataclass(frozen=True)
class Timing:
    """Milliseconds per step and member: of the median window, the fastest and the slowest."""

    ms: float
    low: float
    high: float

    @classmethod
    def of(cls, windows: list[float], members: int = 1) -> Timing:
        each = [1000 * seconds / members for seconds in windows]
        return cls(statistics.median(each), min(each), max(each))


@dataclass(frozen=True, kw_only=True)
class Row:
    """The measurements of one case."""

    n: int
    members: int
    embedding: str
    batch: int
    precision: str
    method: str
    ours: Timing
    plain_eager: Timing | None
    """Plain PyTorch, one model, fp32. This and the next three are None if they were not measured."""
    plain_compiled: Timing | None
    """Plain PyTorch, one model, torch.compile and fp16 autocast."""
    faster_than_eager: float | None
    faster_than_compiled: float | None
    samples_per_second: float
    """Of all members together, like the next two."""
    tflops: float
    share_of_matrix_rate: float
    floor_ratio: float
    """Time of a step, divided by that of its arithmetic alone at the matrix rate."""
    peak_bytes: int | None
    """Peak device memory of all members; None on a CPU."""
    prepare_seconds: float
    """Time to compile and capture, with cold caches."""
    captured: bool


def cases(device: torch.device, ns: Sequence[int] = (), members: Sequence[int] = (), **settings: Any) -> list[Case]:
    """A case for each pair of N (default: 16) and members (default: 1); without both, the device's default cases."""
    pairs = [(n, e) for n in ns or (16,) for e in members or (1,)]
    require(all(e >= 1 for _, e in pairs), "--members must be 1 or more: an ensemble has at least one model.")
    common = BENCHED | (SMALL if device.type == "cpu" else {}) | settings
    chosen = pairs if ns or members else DEFAULT_CASES[device.type]
    return [[build(n=n, seed=seed, **common) for seed in range(e)] for n, e in chosen]


def run(
    cases: Sequence[Case],
    device: torch.device,
    *,
    plain: bool = True,
    only_steps: bool = False,
    windows: int = WINDOWS,
    window_seconds: float = WINDOW_SECONDS,
    tell: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Any]:
    """Measure the cases and, unless ``only_steps``, evaluation, a sweep and methods; the result is ready for JSON.

    ``plain`` also times plain PyTorch. ``tell`` is called with what is measured next.
    """
    began = time.monotonic()
    clock = partial(alternating, device=device, windows=windows, seconds=window_seconds)
    precisions = sorted({resolve_precision(runs[0].training.precision, device) for runs in cases})
    rates = {precision: matrix_tflops(precision, device, clock) for precision in precisions}
    yardsticks: dict[RunConfig, Windows] | None = {} if plain else None
    rows, notes = [], _notes(cases[0][0], device, plain)
    for runs in cases:
        name = f"N = {runs[0].problem.n}, members = {len(runs)}"
        tell(name)
        try:
            rows.append(asdict(measure(runs, device, rates, clock, yardsticks)))
        except torch.OutOfMemoryError:
            notes.append(f"{name}: this did not fit in the device's memory and was left out.")
    figures = {"matrix_tflops": rates, "rows": rows, "evaluation": None, "sweep": None, "methods": []}
    if not only_steps:
        tell("evaluation")
        figures["evaluation"] = measure_evaluation([runs[0] for runs in cases], device)
        tell("a sweep")
        figures["sweep"] = measure_sweep(cases[0][0], device)
        tell("methods")
        figures["methods"] = [measure_methods(n, members, device, clock) for n, members in COMPARED[device.type]]
    date, seconds = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic() - began
    made = provenance(device=device_name(device), precision=", ".join(precisions), seconds=seconds)
    return {"format": 1, "provenance": made | {"date": date, "members": None}, **figures, "notes": notes}


def _notes(config: RunConfig, device: torch.device, plain: bool) -> list[str]:
    m, on_cpu = config.model, device.type == "cpu"
    sizes = f"{m.layers} layers of width {m.width}, hidden {m.hidden}"
    notes = [f"The CPU was measured, on a model of {sizes}."] * on_cpu
    if plain and m.embedding == "token":
        return [*notes, "Plain PyTorch is written for the angular embedding alone and was left out."]
    return [*notes, *["Plain torch.compile needs a C++ compiler on a CPU and was left out."] * (plain and on_cpu)]


def timed(work: Work, calls: int, device: torch.device) -> float:
    """Seconds per call, averaged over one window of ``calls`` calls."""
    wait: Work = partial(torch.cuda.synchronize, device) if device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        work()
    wait()
    return (time.perf_counter() - start) / calls


def alternating(works: Mapping[str, Work], *, device: torch.device, windows: int, seconds: float) -> Windows:
    """A :data:`Clock`: after a warm-up, time windows of about ``seconds``, one of each work in turn."""
    calls = {}
    for name, work in works.items():
        timed(work, WARMUP_CALLS, device)
        calls[name] = math.ceil(seconds / timed(work, WARMUP_CALLS, device))
    rounds = [{name: timed(work, calls[name], device) for name, work in works.items()} for _ in range(windows)]
    return {name: [figures[name] for figures in rounds] for name in works}


def matrix_tflops(precision: str, device: torch.device, clock: Clock) -> float:
    """The TFLOP/s of a large product of random matrices in the given precision: the most to hope for."""
    dtype = trunk_dtype(precision)
    size = 8192 if device.type == "cuda" else 2048 if dtype != torch.float16 else 512  # fp16 is slow on a CPU
    a, b = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    with products(precision):
        return 2 * size**3 / statistics.median(clock({"product": lambda: a @ b})["product"]) / 1e12


def prepared_step(ensemble: Ensemble) -> tuple[Work, Work, bool]:
    """A training step as `fit` makes it, what `fit` does once per epoch, and whether the step was captured."""
    ensemble._draw_order(0)
    step = captured(ensemble.step, ensemble._changing(), ensemble.device, ensemble.eager_step)
    return step, partial(ensemble._draw_order, 1), step not in (ensemble.step, ensemble.eager_step)


def measure(
    runs: Case,
    device: torch.device,
    rates: Mapping[str, float],
    clock: Clock,
    yardsticks: dict[RunConfig, Windows] | None = None,
) -> Row:
    """Time a case, and in turn with it plain PyTorch, unless ``yardsticks`` is None or has its figures already.

    Plain PyTorch's figures are added to ``yardsticks``.
    """
    config, on_gpu = runs[0], device.type == "cuda"
    before = _clean_slate(device)
    ensemble = Ensemble(runs, device)
    with _cold_caches() if on_gpu else nullcontext():
        start = time.perf_counter()
        step, once_an_epoch, was_captured = prepared_step(ensemble)
        prepare_seconds = time.perf_counter() - start
        timed(step, WARMUP_CALLS, device)
    peak = torch.cuda.max_memory_allocated(device) - before if on_gpu else None

    beside = {} if yardsticks is None or config in yardsticks else plain_works(config, device)
    windows = clock({"ours": step} | beside)
    epoch = timed(once_an_epoch, WARMUP_CALLS, device) / config.training.steps_per_epoch
    ours = Timing.of([seconds + epoch for seconds in windows.pop("ours")], len(runs))
    known = {} if yardsticks is None else yardsticks.setdefault(config, windows)
    eager, compiled = (Timing.of(known[name]) if name in known else None for name in ("eager", "compiled"))
    tflops, rate = cost.step_flops(config) / ours.ms / 1e9, rates[ensemble.precision]
    return Row(
        n=config.problem.n,
        members=len(runs),
        embedding=config.model.embedding,
        batch=config.training.batch,
        precision=ensemble.precision,
        method=config.method.method,
        ours=ours,
        plain_eager=eager,
        plain_compiled=compiled,
        faster_than_eager=eager.ms / ours.ms if eager else None,
        faster_than_compiled=compiled.ms / ours.ms if compiled else None,
        samples_per_second=1000 * config.training.batch / ours.ms,
        tflops=tflops,
        share_of_matrix_rate=tflops / rate,
        floor_ratio=rate / tflops,
        peak_bytes=peak,
        prepare_seconds=prepare_seconds,
        captured=was_captured,
    )


def _clean_slate(device: torch.device) -> int:
    """Free what earlier cases allocated and compiled; return the bytes that stay in use on a GPU, 0 on a CPU."""
    gc.collect()  # an ensemble and its methods refer to each other, on a CPU too
    clean_up(device)
    if device.type == "cpu":
        return 0
    torch.cuda.reset_peak_memory_stats(device)
    return torch.cuda.memory_allocated(device)


def _cold_caches() -> AbstractContextManager[None]:
    from torch._inductor.utils import fresh_cache

    return fresh_cache()


def measure_evaluation(runs: Sequence[RunConfig], device: torch.device) -> dict[str, float]:
    """Seconds to evaluate one model on a million samples, for the longest sum of up to 64 terms.

    They are scaled from ``samples``. ``first_seconds`` is the time of the first call, which may compile kernels.
    """
    _clean_slate(device)
    config = max(runs, key=lambda run: (run.problem.n <= 64, run.problem.n))
    samples = EVALUATED[device.type]
    work = partial(Ensemble([config], device).evaluate, samples)
    first = timed(work, 1, device)
    each = statistics.median(timed(work, 1, device) for _ in range(3)) / samples
    figures = {"seconds_per_million": each * 1e6, "first_seconds": first}
    return {"n": config.problem.n, "samples": samples, **figures}


def measure_methods(n: int, members: int, device: torch.device, clock: Clock) -> dict[str, float]:
    """Milliseconds per step and member of `aux` and of `auto`, timed in turn, and their ratio."""
    _clean_slate(device)
    common: dict[str, Any] = {"n": n, "q": BENCHED["q"], "pooling": "mean"} | (SMALL if device.type == "cpu" else {})
    runs = {name: [build(method=name, seed=seed, **common) for seed in range(members)] for name in ("aux", "auto")}
    windows = clock({name: prepared_step(Ensemble(cells, device))[0] for name, cells in runs.items()})
    aux, auto = (Timing.of(windows[name], members).ms for name in ("aux", "auto"))
    return {"n": n, "members": members, "aux_ms": aux, "auto_ms": auto, "ratio": auto / aux}


def measure_sweep(config: RunConfig, device: torch.device) -> dict[str, float] | None:
    """What a sweep takes beyond its training (planning, claiming, writing), as a share of the training's time.

    None if no cell is trained, as when memory is short.
    """
    _clean_slate(device)
    training = replace(config.training, epochs=1, test_samples=EVALUATED[device.type] // 10)
    cells = [replace(config, training=training, seed=seed) for seed in range(SWEPT)]
    with tempfile.TemporaryDirectory() as place:
        began = time.monotonic()
        ended = [event for event in run_sweep(cells, Path(place) / "cells.jsonl", device) if isinstance(event, Ended)]
        whole = time.monotonic() - began
    trained = math.fsum(event.rows[0]["provenance"]["seconds"] for event in ended)
    return {"cells": SWEPT, "seconds": whole, "beyond_training": whole / trained - 1} if trained else None
