"""Runs here are many and tiny: they are measured on few held-out inputs."""

import sys
from pathlib import Path

import pytest

from auxmod.learning import engine

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))  # what is measured there is checked here


@pytest.fixture(autouse=True)
def few_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "VALIDATION_SAMPLES", 20)
