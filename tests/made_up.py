"""Made-up results for tables and figures to show: accuracies that look like learning, without training."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from auxmod.config import RunConfig
from auxmod.experiments.results_file import Results, result_row
from auxmod.problem import theory


def row(run: RunConfig, match: float | None = None, tau: float = 0.9) -> dict[str, Any]:
    """A result row with this match accuracy, by default a likely one, and with accuracy ``tau`` within every τ."""
    share = likely(run) if match is None else match
    taus = ("0.005", "0.01", "0.05", "0.1")
    scores = {
        "match": share,
        "chance": 1 / run.problem.q,
        "tau": dict.fromkeys(taus, tau),
        "tau_chance": {t: 2 * float(t) for t in taus},
        "samples": 1000,
        "by_wraps": [],
        "by_zeros": [],
    }
    steps = run.training.steps
    curve = [{"step": steps * i // 18, "loss": 1.0, "accuracy": share * rise(i / 18)} for i in range(1, 19)]
    return result_row(run, scores, {"device": "none"}, validation=share, curve=curve)


def save_account(state: Path, account: Mapping[str, Any]) -> None:
    """Write the file of a saved ensemble, without its tensors."""
    state.write_bytes(save({}, metadata={"run": f"by-size:a digest {json.dumps(account)}"}))


def append(path: Path, row: Mapping[str, Any]) -> bool:
    """Append a row to a results file; return False if the run already has figures."""
    return bool(Results(path).append([row]))


def rise(x: float) -> float:
    return 1 / (1 + math.exp(-10 * (x - 0.5)))


def likely(run: RunConfig) -> float:
    """A plausible accuracy: falls with N and q, rises with samples and epochs; aux does best if ρ is near 1."""
    noise = random.Random(run.hash).gauss(0, 0.02)
    hard = math.log(run.problem.n * run.problem.q) / 12
    ease = math.log10(run.training.samples * run.training.epochs) / 7
    bonus = 0.0
    if run.method.k and run.method.r:
        bonus = 0.7 - 1.2 * (theory.rho(run.method.moduli, run.method.weights) - 1) ** 2
    return min(1.0, max(1 / run.problem.q, 1.4 * ease - 1.6 * hard + bonus + noise))


def rows(runs: Iterable[RunConfig]) -> list[dict[str, Any]]:
    return [row(run) for run in runs]
