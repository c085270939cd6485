"""Fixture for the tests of halving and of what is built on it."""

import pytest

from auxmod.experiments import halving
from auxmod.learning import engine


@pytest.fixture
def quick_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure accuracy on few inputs, since so short a run does so at every step, and let any difference count."""
    monkeypatch.setattr(engine, "VALIDATION_SAMPLES", 50)
    monkeypatch.setattr(halving, "NOISE", 0.0)
