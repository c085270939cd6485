"""Setup for these tests: their many tiny runs are measured on few held-out inputs, and `scripts/` can be imported."""

import sys
from pathlib import Path

import pytest

from auxmod.learning import engine

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))  # tests import reliability and dependencies from it


@pytest.fixture(autouse=True)
def few_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "VALIDATION_SAMPLES", 20)
