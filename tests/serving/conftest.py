"""Fixtures: a store with a run that nobody trained, and servers for it."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from auxmod.experiments.run_directory import Run
from auxmod.serving.server import Server
from served import served
from tiny import tiny


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with a run in training, of which four steps are logged."""
    run = Run.create(tmp_path / "runs" / "one", tiny())
    for step in range(1, 5):
        run.log({"step": step, "loss": 1 / step, "accuracy": 0.1 * step})
    return tmp_path / "runs"


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """A function that starts servers, which end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda store, host="127.0.0.1": stack.enter_context(served(store, host))
