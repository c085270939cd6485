"""Presets: plain functions that fill in settings that are not given. No training here, and no torch.

`stated` is what the paper states, with our defaults for what it leaves open; `paper` is the setup that best explains
its figures; `best` is what `aux` and `sparse` did best with in our trials; `demo` is a case for two CPU cores. A
preset's name may change some of its settings: `paper+init=0.02+clip=0`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from auxmod.checked import OF_LINEAR, flag, is_int
from auxmod.config import DATA
from auxmod.errors import require
from auxmod.experiments.ranges import TYPES, alternatives
from auxmod.settings import AUTO, SETTINGS

Settings = dict[str, Any]


def demo(given: Mapping[str, Any]) -> Settings:
    """A problem and a model that two CPU cores learn in a minute or two."""
    method = str(given.get("method", "aux"))
    return {
        "n": 16,
        "q": 31,
        "embedding": "angular",
        "layers": 2,
        "width": 64,
        "hidden": 128,
        "pooling": "mean",
        "init": 0.02,
        "samples": 50_000,
        "epochs": 5,
        "test_samples": 20_000,
        **({} if method == "auto" else {"lr": 1e-3}),
        **_DEMO_METHODS.get(method, {}),
    }


_DEMO_METHODS: dict[str, Settings] = {
    "aux": {"k": 4, "r": 0.4, "draw": "expected"},
    "sparse": {"alpha": 0.0},  # its penalty would keep so small a model from learning
}


GRID = {"k": "4:9", "r": "0.1:0.4:0.1"}
"""The K and r that the paper searches."""
PAPER_CHOICE: dict[str, dict[tuple[int, int], tuple[int, float]]] = {
    "token": {
        (8, 31): (5, 0.2), (8, 97): (4, 0.4), (8, 257): (8, 0.4),
        (16, 31): (5, 0.4), (16, 97): (4, 0.4), (16, 257): (4, 0.1),
        (32, 31): (5, 0.4), (32, 97): (8, 0.4), (32, 257): (9, 0.1),
    },
    "angular": {
        (16, 97): (5, 0.4), (16, 257): (6, 0.3), (16, 433): (6, 0.3),
        (32, 97): (4, 0.1), (32, 257): (4, 0.2), (32, 433): (6, 0.1),
        (32, 3329): (4, 0.4), (32, 42899): (4, 0.3), (32, 974269): (4, 0.2),
        (64, 97): (4, 0.3), (64, 257): (4, 0.3), (64, 433): (4, 0.3),
        (64, 3329): (4, 0.3), (64, 42899): (4, 0.3), (64, 974269): (4, 0.2),
        (128, 257): (8, 0.4), (128, 3329): (6, 0.4), (128, 42899): (8, 0.4), (128, 974269): (8, 0.3),
    },
}  # fmt: skip
"""The paper's (K, r) for each (N, q), from its grid search: its Table 7, as printed."""
OUR_CHOICE = dict.fromkeys([(16, 3329), (16, 42899), (16, 974269)], PAPER_CHOICE["angular"][16, 433])
"""For cells with a hyphen in Table 7 though Table 2 has results: the pair of (16, 433)."""


def stated(given: Mapping[str, Any]) -> Settings:
    """The paper's K and r for this (N, q), if it has them; whatever else it states is each setting's default."""
    if given.get("method", "aux") != "aux":
        return {}
    embedding = str(given.get("embedding", "angular"))
    table = PAPER_CHOICE.get(embedding, {}) | (OUR_CHOICE if embedding == "angular" else {})
    asked = (given.get("n", 16), given.get("q", 97))
    return next(({"k": k, "r": r} for case, (k, r) in table.items() if case == asked), {})


LINEAR = f"{OF_LINEAR}0.02"
"""The paper's “linear and embedding layers” from N(0, 0.02²), read as PyTorch's own layers of these names."""


def paper(given: Mapping[str, Any]) -> Settings:
    """The setup whose accuracies come nearest to the paper's: docs/setup.md describes the search for it."""
    method = str(given.get("method", "aux"))
    if method == "auto":  # not the paper's; it has its own setup
        return {}
    if given.get("embedding", "angular") == "token":
        return stated(given) | {"pooling": "max", "init": LINEAR, "clip": 1.0}
    own: dict[str, Settings] = {"aux": {"draw": "expected"}, "sparse": {"clip": 1.0}}
    return stated(given) | {"pooling": "mean", "lr": 1e-4, "lift": 0.15} | own.get(method, {})


LONGEST = 128
"""The paper's longest sum, with K = 8 for most q. Past it `best` lets K grow, so that Kq wraps as often as there."""


def best(given: Mapping[str, Any]) -> Settings:
    """The setups with which aux and sparse learned best (trials: docs/research.md); others, except auto, get aux's."""
    if given.get("method") == "auto":  # it has its own setup
        return {}
    method, token = given.get("method", "aux"), given.get("embedding", "angular") == "token"
    n = given.get("n", 16)
    longer = n / LONGEST if is_int(n) else 1
    chosen = stated(given) | AUTO | {"lr": 1.6e-3, "weight_decay": 0.1}
    if method == "aux":
        return chosen | {"draw": "expected"} | ({"k": round(8 * longer)} if longer > 1 else {})
    if method == "sparse" and token:
        return {"pooling": "flatten", "final_norm": False, "init": 0.02, "lr": 3e-4}
    if method == "sparse":
        return chosen | {"pooling": "max", "alpha": 0.0} | ({"lr": 8e-4} if longer > 1 else {})
    return chosen


PRESETS: dict[str, Callable[[Mapping[str, Any]], Settings]] = {
    "demo": demo,
    "stated": stated,
    "paper": paper,
    "best": best,
}


CHANGE = re.compile(r"\+(?=[A-Za-z])")
"""The + before each change in a preset's name, but not that of 1e+4."""
GIVEN = ("embedding", "samples", "test_samples", "asks", *DATA.keys(), *DATA.values())
CHANGEABLE = tuple(name for name, group in SETTINGS.items() if group in ("model", "training") and name not in GIVEN)
"""Settings that a preset's name may change: how the encoder is built and trained, not what is learned and measured."""


def parsed(name: str) -> tuple[str, Settings]:
    """Split a preset's name into its plain name and the changes after it.

    >>> parsed("paper+init=0.02+clip=0")
    ('paper', {'init': '0.02', 'clip': 0.0})
    """
    plain, *changes = CHANGE.split(str(name))
    made: Settings = {}
    for change in changes:
        written, _, text = change.partition("=")
        setting, able = written.replace("-", "_"), ", ".join(CHANGEABLE)
        require(setting in CHANGEABLE, f"--preset changes {written!r}, but what its name may change is: {able}.")
        require(setting not in made, f"--preset changes {written!r} twice: leave one out.")
        values = alternatives(setting, text)
        require(len(values) == 1, f"{flag(setting)} is {text!r}, but a preset is changed to one value.")
        made[setting] = values[0]
    return plain, made


def check_plain(plain: str, known: Collection[str], name: str) -> None:
    """Refuse a preset that is not among the ``known`` ones."""
    require(plain in known, f"--preset is {name!r}; choose one of {', '.join(known)}, or change one: paper+init=0.02.")


def with_preset(name: str | None, given: Mapping[str, Any]) -> Settings:
    """The given settings, with those not given filled from the preset.

    Without a preset nothing is filled in, except that the method is `auto` if none of method, k, r and moduli is given.
    A setting that is None is left open.
    """
    given = {key: value for key, value in given.items() if value is not None or key not in TYPES}
    if name is None:
        return given if given.keys() & {"method", "k", "r", "moduli"} else {"method": "auto", **given}
    plain, changes = parsed(name)
    check_plain(plain, PRESETS, name)
    given = changes | given
    filled = PRESETS[plain](given)
    # an explicit set of moduli replaces the paper's pair, and explicit weights its r
    left_out = ("k", "r", "draw") if "moduli" in given else ("r",) if "weights" in given else ()
    return {key: value for key, value in filled.items() if key not in left_out} | given
