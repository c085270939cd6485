"""The server side of the playground: a checkpoint and numbers → the model's points, its answer, and the truth."""

from __future__ import annotations

import functools
import math
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.files import MODEL
from auxmod.serving.gate import RefusedError

if TYPE_CHECKING:
    from torch import Tensor

    from auxmod.learning.trained import TrainedModel

KEPT = 4
"""Number of models kept in memory: those used last."""
PATIENCE = 20.0
"""Seconds that a question waits for earlier ones before it is refused."""
CLASSES = 5
"""Number of a token model's likeliest classes that are shown."""


class Answers:
    """Models by directory, loaded on first use, and again when a run has saved a new checkpoint."""

    def __init__(self) -> None:
        self._load = functools.lru_cache(KEPT)(_load)
        self._one_at_a_time = threading.Lock()

    def ask(self, directory: Path, x: list[int]) -> dict[str, Any]:
        """The answer of the model in a directory to one row of numbers; see :func:`answer`."""
        if not self._one_at_a_time.acquire(timeout=PATIENCE):
            raise RefusedError(503, "Others are asking too: try again in a moment.")
        try:
            weights = directory / MODEL
            require(weights.is_file(), f"There is no checkpoint in {directory} any more.")
            return answer(self._load(directory, weights.stat().st_mtime_ns), x)
        finally:
            self._one_at_a_time.release()


def _load(directory: Path, _: int) -> TrainedModel:
    """Load a directory's model; the second argument, when it was saved, only makes the cache reload a new one."""
    import torch

    from auxmod.learning.trained import load

    torch.set_num_threads(1)  # one row needs no more, and a run may be training meanwhile
    return load(directory, "cpu")


def answer(model: TrainedModel, x: list[int]) -> dict[str, Any]:
    """A model's answer to one row, the truth, and what the page draws, ready for JSON."""
    import torch

    (said,), total = model.answers([x]), sum(x)
    with torch.no_grad():
        outputs = model(torch.tensor([x]))[0].double()
    require(bool(outputs.isfinite().all()), "An output of the model is not a number: did it diverge?")
    problem, value = model.config.problem, said["value"]
    return said | {
        "sum": total,
        "wraps": total // problem.q,
        "circles": _circles(model.config, outputs, value, total),
        "classes": [] if model.config.model.angles else _classes(outputs[: problem.q]),
    }


def _circles(config: RunConfig, outputs: Tensor, value: float, total: int) -> list[dict[str, Any]]:
    """A circle for each of the model's points, with the true angle, in turns; one circle if it gives classes."""
    q = config.problem.q
    moduli = [(f"mod {m * q}", total % (m * q) / (m * q)) for m in config.method.moduli]
    if not config.model.angles:  # classes have no points: draw the answer's
        turn = value / q * 2 * math.pi
        return [{"label": moduli[0][0], "truth": moduli[0][1], "point": [math.cos(turn), math.sin(turn)]}]
    harmonics = [(f"{h} × the angle", h * total % q / q) for h in config.method.harmonics]
    points = outputs.view(-1, 2).tolist()
    return [
        {"label": label, "truth": truth, "point": point}
        for (label, truth), point in zip(moduli + harmonics, points, strict=True)
    ]


def _classes(logits: Tensor) -> list[dict[str, Any]]:
    top = logits.softmax(-1).topk(min(CLASSES, len(logits)))
    return [{"class": c, "share": p} for p, c in zip(top.values.tolist(), top.indices.tolist(), strict=True)]
