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


def flags(*others: str) -> list[str]:
    """The same on the command line; a flag among ``others`` takes the place of its own, data that of samples."""
    own = {f"--{name.replace('_', '-')}": str(value) for name, value in SETTINGS.items()}
    own = {name: value for name, value in own.items() if not (name == "--samples" and "--data" in others)}
    if "--moduli" not in others:
        own["--method"] = "aux"
    return [part for name, value in own.items() if name not in others for part in (name, value)] + list(others)


def tiny(**settings: Any) -> RunConfig:
    return build(**SETTINGS | settings)
