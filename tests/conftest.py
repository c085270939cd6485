"""What every test stands on: one thread (so that processes agree bitwise), no settings from the caller's shell."""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import hypothesis
import pytest

hypothesis.settings.register_profile("auxmod", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("auxmod")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AUXMOD_"):
            monkeypatch.delenv(name)
