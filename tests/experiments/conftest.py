"""What the tests of halving, and of what is built on it, share."""

import pytest

from auxmod.experiments import halving
from auxmod.learning import engine


@pytest.fixture
def quick_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    """So short a run measures its accuracy at every step: on fewer inputs, here, where any difference counts."""
    monkeypatch.setattr(engine, "VALIDATION_SAMPLES", 50)
    monkeypatch.setattr(halving, "NOISE", 0.0)
