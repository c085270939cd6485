"""The settings of a run that trains in a fraction of a second, for any test that needs one."""

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
    """Return these settings as flags, with ``others`` in place of their own; --data replaces --samples.

    The method is aux, unless ``others`` has --method or --moduli.
    """
    own = {f"--{name.replace('_', '-')}": str(value) for name, value in SETTINGS.items()}
    own = {name: value for name, value in own.items() if not (name == "--samples" and "--data" in others)}
    if "--moduli" not in others:
        own["--method"] = "aux"
    return [part for name, value in own.items() if name not in others for part in (name, value)] + list(others)


def tiny(**settings: Any) -> RunConfig:
    return build(**SETTINGS | settings)
