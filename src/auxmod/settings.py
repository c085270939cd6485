"""Flat settings ↔ a run: the names that flags, files, sweeps and the Python API share.

No two parts of a run share a field name, so a flat dictionary describes a run as well. This module also turns a
method's *name* into its values: it alone knows what `naive`, `sparse`, `aux`, `ladder` and `auto` mean.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from auxmod.checked import is_int, number
from auxmod.config import GROUPS, Method, MethodName, Model, Problem, RunConfig, Training
from auxmod.errors import require

SETTINGS = {f.name: group for group, kind in GROUPS.items() for f in dataclasses.fields(kind)}
"""Each flat setting, and the part of a run it belongs to."""


HARMONICS = (2, 4)
AUTO: dict[str, Any] = {
    "pooling": "mean",
    "final_norm": False,
    "init": 0.02,
    "optimiser": "muon",
    "lr": 2.5e-3,
    "beta1": 0.95,
    "beta2": 0.98,
    "weight_decay": 0.03,
}
"""The encoder and optimiser of `auto`, at the paper's size; docs/research.md has the trials."""
ADAMW_RATE = 4e-4
"""The learning rate of `auto` with AdamW in place of Muon."""
TAILS, SMALL_TAILS = 20.0, 5.0
"""`auto`'s `tails`, and the same for an encoder smaller than the paper's; docs/research.md says why."""


def build(**settings: Any) -> RunConfig:
    """Build a run from flat settings: any field by name, plus ``k`` and ``r`` for the paper's method.

    Without a method this is aux, with all settings as in the paper; `auxmod.train` and the commands use auto instead.

    >>> build(n=16, q=97, method="aux", k=5, r=0.4).method.moduli
    (1, 5)
    """
    asked = settings.get("method")
    require(isinstance(asked, str | None), f"--method is {asked!r}, but must be one name.")
    if asked == "auto":
        readout = {"readout": "angles"} if settings.get("embedding") == "token" else {}
        settings = AUTO | {"lr": auto_rate(settings)} | readout | settings
        if settings.get("tails") is None:
            settings["tails"] = auto_tails(settings)
    groups: dict[str, dict[str, Any]] = {name: {} for name in GROUPS}
    seed = settings.pop("seed", 0)
    sugar = {name: settings.pop(name) for name in ("k", "r") if name in settings}
    for name, value in settings.items():
        require(
            name in SETTINGS,
            f"There is no setting {name!r}; known are: {', '.join(sorted(SETTINGS))}, k, r, seed.",
        )
        groups[SETTINGS[name]][name] = value
    if groups["model"].get("embedding", Model.embedding) == "angular" and groups["model"].get("readout") == "angles":
        del groups["model"]["readout"]  # angular implies it; keeping it would give the same run another hash
    problem, model = Problem(**groups["problem"]), Model(**groups["model"])
    method = resolve_method(problem.n, model.angles, **sugar, **groups["method"])
    return RunConfig(problem=problem, method=method, model=model, training=Training(**groups["training"]), seed=seed)


def auto_rate(settings: Mapping[str, Any]) -> float:
    """Auto's learning rate: Muon's steps do not grow with the gradient, so small models and short runs need more.

    It grows as 1/√hidden below the paper's 2048 and as 1/√steps below its 4,000, at most 16-fold, rounded to two
    digits. AdamW, if chosen, gets the rate that did best in the trials.
    """
    if settings.get("optimiser", AUTO["optimiser"]) != AUTO["optimiser"]:
        return ADAMW_RATE
    usual = {"hidden": Model.hidden, **{name: getattr(Training, name) for name in ("samples", "epochs", "batch")}}
    hidden, samples, epochs, batch = (number(settings.get(name, value)) or value for name, value in usual.items())
    steps = max(1, samples // batch * epochs)
    scale = max(1.0, math.sqrt(Model.hidden / max(1, hidden))) * max(1.0, math.sqrt(4_000 / steps))
    return float(f"{AUTO['lr'] * min(scale, 16.0):.2g}")


def auto_tails(settings: Mapping[str, Any]) -> float:
    """Auto's weight for rare sums: 1 unless inputs are uniform, as only then is it known which sums are rare, and
    unless there are moduli above q, as only those weigh them. A small encoder gets less: 20 costs it exact answers.
    """
    moduli = settings.get("moduli")
    lone = isinstance(moduli, list | tuple) and len(moduli) == 1
    if lone or settings.get("data") or settings.get("distribution") not in (None, "uniform"):
        return 1.0
    return TAILS if (number(settings.get("hidden")) or Model.hidden) >= Model.hidden else SMALL_TAILS


def flatten(config: RunConfig) -> dict[str, Any]:
    """The inverse of :func:`build`."""
    flat = {name: getattr(getattr(config, group), name) for name, group in SETTINGS.items()}
    return flat | {"seed": config.seed}


def resolve_method(
    n: int,
    angles: bool,
    *,
    method: MethodName | None = None,
    k: int | None = None,
    r: float | None = None,
    moduli: tuple[int, ...] | None = None,
    weights: tuple[float, ...] | None = None,
    **given: Any,
) -> Method:
    """Turn a method's name, or the paper's K and r, into a method's values; anything given explicitly wins."""
    name = method if method is not None else "aux" if moduli is None else "custom"
    known = get_args(MethodName)
    require(isinstance(name, str) and name in known, f"--method is {name!r}; choose one of {', '.join(known)}.")
    require(
        name == "aux" or (k is None and r is None),
        f"--k and --r belong to --method aux, not to {name!r}: leave them out, or use --moduli and --weights.",
    )
    if moduli is not None:
        require(k is None and r is None, "Give either --moduli and --weights, or --k and --r, not both.")
        listed = isinstance(moduli, list | tuple) and bool(moduli)
        require(listed, f"--moduli is {moduli!r}; give a list such as 1,2,4.")
        lone = name != "naive" or tuple(moduli) == (1,)
        require(lone, "--method naive trains on q alone: leave out --moduli, or choose another --method.")
        values: dict[str, Any] = {"moduli": moduli, "weights": (1 / len(moduli),) * len(moduli)}
    elif name == "aux":
        require(r is None or weights is None, "Give either --r or --weights, not both.")
        values = _aux(4 if k is None else k, 0.3 if r is None else r)
    elif name == "ladder":
        values = _ladder(n)
    elif name == "auto":
        asked = given.get("harmonics")
        values = _auto(n, asked if isinstance(asked, list | tuple) else HARMONICS)  # `Method` refuses anything else
    else:
        require(name != "custom", "--method custom needs --moduli, such as --moduli 1,2,4.")
        values = {"moduli": (1,), "weights": (1.0,)}
    if weights is not None:
        values["weights"] = weights
    if name == "sparse":  # Saxena et al.: α = 1e-4 for addition; undefined for tokens
        values |= {"distribution": "sparse", "alpha": 1e-4 if angles else 0.0}
    values["draw"] = "sampled" if name == "aux" else "expected"
    chosen = values | {key: value for key, value in given.items() if value is not None}
    return _without_idle(Method(method=name, **chosen))


def _without_idle(method: Method) -> Method:
    """Reset the settings that have no effect here to their defaults, so that equal runs have equal hashes."""
    idle = ("fill",) * (method.distribution == "uniform") + ("draw", "asked") * (method.rungs == 1)
    return dataclasses.replace(method, **{name: getattr(Method, name) for name in idle})


def _aux(k: int, r: float) -> dict[str, Any]:
    require(is_int(k) and k >= 2, f"--k is {k}, but the auxiliary modulus K·q needs a whole K of at least 2.")
    share = number(r)
    require(share is not None and 0 < share < 1, f"--r is {r}, but is a probability strictly between 0 and 1.")
    return {"moduli": (1, int(k)), "weights": (1.0 - float(r), float(r))}


def _rungs(n: int) -> tuple[int, ...]:
    """Powers of two, up to the first that is at least N: at that modulus no sum wraps."""
    return tuple(2**j for j in range(max(1, (n - 1).bit_length()) + 1))


def _ladder(n: int) -> dict[str, Any]:
    """The ladder: q has half of the weight, the other moduli share the rest equally."""
    moduli = _rungs(n)
    return {"moduli": moduli, "weights": (0.5, *(0.5 / (len(moduli) - 1) for _ in moduli[1:]))}


def _auto(n: int, harmonics: Sequence[int]) -> dict[str, Any]:
    """The ladder plus harmonics: q weighs four times as much as another modulus, a harmonic half as much as one."""
    moduli = _rungs(n)
    parts = (4.0, *(1.0 for _ in moduli[1:]), *(0.5 for _ in harmonics))
    return {"moduli": moduli, "harmonics": tuple(harmonics), "weights": tuple(p / sum(parts) for p in parts)}
