"""The space of a search: for each setting a range, a list, or one fixed value. Standard library only.

| written             | means                                                        |
|---------------------|--------------------------------------------------------------|
| `4:9`               | any whole number from 4 to 9                                 |
| `0.05:0.6`          | any number between, uniformly                                |
| `1e-5:1e-3:log`     | any number between, uniformly in its logarithm               |
| `0.1:0.4:0.1`       | one of 0.1, 0.2, 0.3, 0.4, as ordered numbers                |
| `cls,mean`, `4:6,9` | one of a list, written as for a sweep, without order         |
| `0.3`               | 0.3                                                          |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_origin

from auxmod.checked import flag, is_int, longhand, number
from auxmod.errors import require
from auxmod.experiments.choosing import by_near
from auxmod.experiments.presets import parsed, with_preset
from auxmod.experiments.ranges import TYPES, alternatives
from auxmod.files import sha256
from auxmod.settings import AUTO

DEFAULT = {
    "k": "4:9",
    "r": "0.05:0.6",
    "draw": "sampled,expected",
    "lr": "1e-5:1e-3:log",
    "init": "default,0.02",
    "pooling": "cls,mean",
}
"""What is searched by default: the paper's method. For `auto`, which has its own encoder, only the rate."""
_AUX = ("k", "r", "draw")
_MUON = {"lr": "5e-4:3e-2:log"}


@dataclass(frozen=True)
class Interval:
    """Numbers from ``low`` to ``high``, all or in steps of ``step``; uniformly, or in the logarithm."""

    low: float
    high: float
    step: float | None = None
    log: bool = False


@dataclass(frozen=True)
class Space:
    """The settings of a search: the fixed ones, those that vary, and the preset that fills in the rest."""

    fixed: dict[str, Any]
    searched: dict[str, Interval | list[Any]]
    preset: str | None = None

    def describe(self) -> str:
        """The whole space as text; equal spaces have equal texts."""
        sought = {} if self.by == "match" else {"by": self.by}
        return json.dumps(asdict(self) | sought, sort_keys=True, ensure_ascii=False)

    @property
    def by(self) -> str:
        """Which held-out answers count: `match` for exact ones or, if q is large, `near`."""
        q = self.fixed.get("q", 0)
        return "near" if is_int(q) and by_near([q]) else "match"

    @property
    def name(self) -> str:
        """The default name of a study of this space."""
        return f"search-{sha256(self.describe().encode())[:8]}"

    def settings(self, chosen: Mapping[str, Any]) -> dict[str, Any]:
        """The flat settings of a run, from the values chosen for the searched ones."""
        return self.fixed | {name: as_setting(name, value) for name, value in chosen.items()}

    def edges(self) -> list[dict[str, Any]]:
        """Choices that together include every listed value and both ends of every range."""
        ends = {
            name: [part.low, part.high] if isinstance(part, Interval) else part for name, part in self.searched.items()
        }
        first = {name: values[0] for name, values in ends.items()}
        return [first | {name: value} for name, values in ends.items() for value in values]


def parse_space(given: Mapping[str, Any], preset: str | None = None) -> Space:
    """The space that flags describe; if none of them leaves a choice, :data:`DEFAULT` except for what they fix.

    A change in a preset's name counts as a flag.
    """
    said = (parsed(preset)[1] if preset else {}) | dict(given)
    parts = {name: parse(name, value) for name, value in said.items()}
    if not any(_varies(part) for part in parts.values()):
        method = ["custom"] if "moduli" in parts else parts.get("method", ["aux"])
        names = DEFAULT if method == ["aux"] else ("lr",) if method == ["auto"] else DEFAULT.keys() - _AUX
        free = {name: text for name, text in DEFAULT.items() if name in names}
        if _optimiser({name: part[0] for name, part in parts.items() if isinstance(part, list)}, preset) == "muon":
            free |= _MUON
        parts = {name: parse(name, text) for name, text in free.items()} | parts
    searched = {name: part for name, part in parts.items() if _varies(part)}
    require("seed" not in searched, "--seed has several values, but a trial is one run: give one seed.")
    for name in ("n", "q", "test_data"):
        easiest = f"{flag(name)} has several values, and a search would choose the easiest: give one."
        require(name not in searched, easiest)
    require(bool(searched), "Every setting is given one value, so nothing is left to search: give a range or a list.")
    fixed = {name: part[0] for name, part in parts.items() if isinstance(part, list) and len(part) == 1}
    return Space(fixed, {name: _plain(part) for name, part in searched.items()}, preset)


def _optimiser(given: Mapping[str, Any], preset: str | None) -> Any:
    own = AUTO if given.get("method") == "auto" else {}
    return (own | with_preset(preset, given)).get("optimiser")


def parse(name: str, given: Any) -> Interval | list[Any]:
    """Parse one setting's text, or a value from a file, into an interval or a list of choices."""
    numeric = TYPES.get(name) in (int, float) or name == "init"
    if numeric and isinstance(given, str) and ":" in given and "," not in given:
        return _interval(name, given)
    return list(dict.fromkeys(alternatives(name, given)))


def as_setting(name: str, value: Any) -> Any:
    """Convert a choice to the setting's type; fractions to twelve digits (an init's σ to six): 0.1 + 0.2 is 0.3."""
    if get_origin(TYPES[name]) is tuple:
        return alternatives(name, value)[0]
    if isinstance(value, bool | str):
        return value
    if TYPES[name] is int:
        return int(value) if value == int(value) else value  # which the configuration refuses
    return f"{value:.6g}" if name == "init" else float(f"{value:.12g}")


def _varies(part: Interval | list[Any]) -> bool:
    return isinstance(part, Interval) or len(part) > 1


def _plain(part: Interval | list[Any]) -> Interval | list[Any]:
    """Write lists among the choices as text, since a study cannot store lists."""
    if isinstance(part, Interval):
        return part
    return [",".join(map(repr, choice)) if isinstance(choice, tuple) else choice for choice in part]


def _interval(name: str, text: str) -> Interval | list[Any]:
    given, (first, last, *rest) = f"{flag(name)} is {text!r}", text.split(":")
    low, high, log = number(longhand(first)), number(longhand(last)), rest == ["log"]
    step = number(longhand(rest[0])) if rest and not log else None
    known = low is not None and high is not None and (step is not None or not rest or log) and len(rest) < 2
    forms = "low:high, low:high:step or low:high:log, such as 1e-5:1e-3:log"
    require(known, f"{given}, but a range to search is {forms}.")
    assert low is not None
    assert high is not None
    require(low <= high, f"{given}, an empty range: give the lower end first.")
    require(not log or low > 0, f"{given}, but a logarithmic range begins above 0.")
    require(step is None or step > 0, f"{given}, but a step is a number above 0.")
    whole = TYPES[name] is int
    require(
        not whole or all(part is None or part == int(part) for part in (low, high, step)),
        f"{given}, but must be whole numbers.",
    )
    if step is not None:  # lower an end that no step reaches
        high = float(alternatives(name, text)[-1])
    if low == high:
        return [as_setting(name, low)]
    return Interval(low, high, step if step or log or not whole else 1.0, log)
