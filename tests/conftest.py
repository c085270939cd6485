"""Setup for every test: one thread (so that processes agree bitwise), and no settings from the caller's shell."""

import os
import signal

os.environ["OMP_NUM_THREADS"] = "1"

import hypothesis
import pytest

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it
hypothesis.settings.register_profile("auxmod", deadline=None, max_examples=60, derandomize=True)
hypothesis.settings.load_profile("auxmod")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("AUXMOD_"):
            monkeypatch.delenv(name)
