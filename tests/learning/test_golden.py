"""Loss curves of three small runs, kept in golden.json: a change that should not alter learning must not move them.

They are computed in float64, so that machines agree to far more digits than a change of method would leave. After a
change that is meant to alter learning: python tests/learning/test_golden.py
"""

import json
from pathlib import Path

import pytest
import torch

from auxmod.learning.engine import Ensemble, Progress
from auxmod.settings import build

GOLDEN = Path(__file__).with_name("golden.json")
SMALL = {
    "n": 6,
    "q": 11,
    "width": 32,
    "hidden": 64,
    "layers": 2,
    "heads": 4,
    "samples": 1_000,
    "batch": 50,
    "epochs": 2,
}
RUNS = {
    "aux, angular, cls": {"method": "aux", "k": 3, "r": 0.4, "lr": 1e-3, "clip": 1.0},
    "sparse, angular, mean, post-norm": {
        "method": "sparse",
        "pooling": "mean",
        "norm": "post",
        "init": 0.02,
        "lr": 3e-3,
    },
    "ladder, token, dropout": {"method": "ladder", "embedding": "token", "dropout": 0.1, "pooling": "max", "lr": 1e-3},
}


def curve(name: str) -> list[float]:
    """The loss of each of 40 steps."""
    run = build(**SMALL, **RUNS[name], seed=1, test_samples=50)
    events = Ensemble([run], torch.device("cpu"), dtype=torch.float64).fit()
    return [event.loss[0] for event in events if isinstance(event, Progress)]


@pytest.mark.parametrize("name", RUNS)
def test_learning_is_what_it_was(name: str) -> None:
    losses = curve(name)
    assert len(losses) == 40
    assert losses == pytest.approx(json.loads(GOLDEN.read_text())[name], rel=1e-6)


def test_learning_depends_on_what_it_should() -> None:
    """The curves do differ: another seed gives another curve."""
    run = build(**SMALL, **RUNS["aux, angular, cls"], seed=2, test_samples=50)
    first = next(Ensemble([run], torch.device("cpu"), dtype=torch.float64).fit())
    golden = json.loads(GOLDEN.read_text())["aux, angular, cls"]
    assert isinstance(first, Progress)
    assert first.loss[0] != pytest.approx(golden[0], rel=1e-6)


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps({name: curve(name) for name in RUNS}, indent=1) + "\n")
