"""A run that trains in a blink, for any test that needs one."""

from typing import Any

from auxmod.config import RunConfig
from auxmod.settings import build

SETTINGS: dict[str, Any] = {
    "n": 4,
    "q": 7,
    "layers": 1,
    "heads": 2,
    "width": 8,
    "hidden": 16,
    "samples": 60,
    "batch": 10,
    "epochs": 3,
    "lr": 1e-3,
    "test_samples": 300,
}
FLAGS = [part for name, value in SETTINGS.items() for part in (f"--{name.replace('_', '-')}", str(value))]
"""The same on the command line."""


def tiny(**settings: Any) -> RunConfig:
    return build(**SETTINGS | settings)
