"""The playground's other half: a checkpoint and numbers in, the model's points, answer and the truth out."""

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
"""Models held in memory, the last asked for."""
PATIENCE = 20.0
"""Seconds that a question waits for those before it."""
CLASSES = 5
"""How many of a token model's likeliest classes are shown."""


class Answers:
    """Models by their directories, loaded when asked and again when a run has saved a new checkpoint."""

    def __init__(self) -> None:
        self._load = functools.lru_cache(KEPT)(_load)
        self._one_at_a_time = threading.Lock()

    def ask(self, directory: Path, x: list[int]) -> dict[str, Any]:
        """What the model in a directory says of one row of numbers."""
        if not self._one_at_a_time.acquire(timeout=PATIENCE):
            raise RefusedError(503, "Others are asking too: try again in a moment.")
        try:
            weights = directory / MODEL
            require(weights.is_file(), f"There is no checkpoint in {directory} any more.")
            return answer(self._load(directory, weights.stat().st_mtime_ns), x)
        finally:
            self._one_at_a_time.release()


def _load(directory: Path, _: int) -> TrainedModel:
    """The model of a directory, as it was saved at this time."""
    import torch

    from auxmod.learning.trained import load

    torch.set_num_threads(1)  # a row needs no more, and a run may be going beside
    return load(directory, "cpu")


def answer(model: TrainedModel, x: list[int]) -> dict[str, Any]:
    """A model's answer to one row, beside the truth."""
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
    """A circle for each point that the model gives, and where the truth lies on it, in turns."""
    q = config.problem.q
    moduli = [(f"mod {m * q}", total % (m * q) / (m * q)) for m in config.method.moduli]
    if not config.model.angles:  # classes have no point of their own: the answer's
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
