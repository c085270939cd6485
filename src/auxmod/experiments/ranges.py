"""Expand lists and ranges into a sweep's cells, each a flat dictionary of settings. Standard library only.

| written             | means                                                             |
|---------------------|-------------------------------------------------------------------|
| `4:9`               | 4, 5, … 9: both ends                                              |
| `0.1:0.4:0.1`       | 0.1, 0.2, 0.3, 0.4, in exact decimals                             |
| `9:3:-2`            | 9, 7, 5, 3                                                        |
| `8,16,32`, `0:2,10` | a list, of values and ranges alike                                |
| `100K,1M`           | 100000 and 1000000                                                |
| `1,2,4;1,8`         | two lists, for settings that are lists, such as `moduli`          |

A TOML file uses the same names; its values may be numbers, lists or such text. Each of its `[[cells]]` tables is
expanded together with the settings above them, one table after another.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from auxmod.checked import flag, longhand
from auxmod.config import DATA, GROUPS
from auxmod.errors import require
from auxmod.files import read_toml
from auxmod.settings import SETTINGS

MOST_CELLS = 100_000
CELLS = "cells"
AUX_ALONE = {"k", "r"}
"""The settings that only the method aux has."""
OPEN = (None, "aux")
"""The values of `method` that may have them: if it is left open, it may turn out to be aux."""
_TYPES: dict[str, Any] = {name: get_type_hints(GROUPS[group])[name] for name, group in SETTINGS.items()}
TYPES = _TYPES | {"k": int, "r": float, "seed": int}
"""Each flat setting's type."""


def expand(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the product of every setting's alternatives; the last setting varies fastest.

    >>> expand({"k": "4:5", "r": "0.1,0.4"})
    [{'k': 4, 'r': 0.1}, {'k': 4, 'r': 0.4}, {'k': 5, 'r': 0.1}, {'k': 5, 'r': 0.4}]
    """
    return expand_all([axes])


def expand_all(tables: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells of several tables, in order; if aux is one of several methods, only its cells have K and r."""
    values = [{name: alternatives(name, given) for name, given in table.items()} for table in tables]
    methods = {method for table in values for method in table.get("method", []) if method}
    apart = "aux" in methods and len(methods) > 1
    count = sum(_count(table, apart) for table in values)
    many = f"These lists and ranges make {count:,} cells, but a sweep has at most {MOST_CELLS:,}: narrow one of them."
    require(count <= MOST_CELLS, many)
    return [cell for table in values for cell in _product(table, apart)]


def _count(table: Mapping[str, list[Any]], apart: bool) -> int:
    """The number of cells in a table."""
    sizes = {name: len(each) for name, each in table.items()}
    if not apart or "method" not in table:
        return math.prod(sizes.values())
    of_aux = math.prod(size for name, size in sizes.items() if name in AUX_ALONE)
    rest = math.prod(size for name, size in sizes.items() if name not in {*AUX_ALONE, "method"})
    return rest * sum(of_aux if method in OPEN else 1 for method in table["method"])


def _product(table: Mapping[str, list[Any]], apart: bool) -> Iterator[dict[str, Any]]:
    """A table's cells; if ``apart``, cells of methods other than aux come once each, without K and r."""
    for places in itertools.product(*(range(len(each)) for each in table.values())):
        at = dict(zip(table, places, strict=True))
        cell = {name: table[name][place] for name, place in at.items()}
        if not apart or cell.get("method") in OPEN:
            yield cell
        elif not any(at.get(name) for name in AUX_ALONE):
            yield {name: value for name, value in cell.items() if name not in AUX_ALONE}


def alternatives(name: str, given: Any) -> list[Any]:
    """The values that a setting takes, one per cell, from one value, a list or text."""
    known = ", ".join(sorted(TYPES))
    require(name in TYPES, f"There is no setting {name!r}; known are: {known}.")
    if given is None:  # left open, from Python
        return [None]
    if get_origin(TYPES[name]) is tuple:
        return _lists(name, given)
    out: list[Any] = []
    for part in given if isinstance(given, list | tuple) else [given]:
        able = part is None or isinstance(part, str | int | float | Path)
        require(able, f"{flag(name)} has {part!r} in it, but must be one value or a list.")
        out += _parsed(name, part) if isinstance(part, str) else [str(part) if isinstance(part, Path) else part]
    require(bool(out), f"{flag(name)} is an empty list: give at least one value.")
    return out


def read_tables(path: Path) -> list[dict[str, Any]]:
    """Read a sweep file: one table of settings for each of its `[[cells]]`, or one in all if it has none."""
    content = read_toml(path, "--from")
    cells = content.pop(CELLS, [{}])
    require(
        isinstance(cells, list) and bool(cells) and all(isinstance(cell, dict) for cell in cells),
        f"--from {path}: {CELLS!r} must be tables, each headed [[{CELLS}]].",
    )
    return [flat(content, f"--from {path}") | flat(cell, f"--from {path}") for cell in cells]


def flat(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Flatten the settings of a file or table; [problem], [method], … around them are optional."""
    out: dict[str, Any] = {}
    for name, value in table.items():
        out |= value if name in GROUPS and isinstance(value, dict) else {name: value}
    for name, value in out.items():
        known = f"known are {', '.join(GROUPS)}"
        require(not isinstance(value, dict), f"{where}: there is no part [{name}]; {known}.")
    return out


# -- one setting's text ---------------------------------------------------------------------------------------


def _parsed(name: str, text: str) -> list[Any]:
    """Parse the text of a list of values and ranges."""
    out: list[Any] = []
    for item in text.split(","):
        item = item.strip()
        require(item != "" or name in DATA, f"{flag(name)} is {text!r}, which leaves a value empty: fill it in.")
        ranged = ":" in item and (TYPES[name] in (int, float) or name == "init")
        out += _range(name, item) if ranged else [_value(name, item)]
    return out


def _value(name: str, text: str) -> Any:
    """Convert one value to the setting's type; the configuration checks choices."""
    kind = TYPES[name]
    if kind is bool:
        truth = {"true": True, "false": False}.get(text.lower())
        require(truth is not None, f"{flag(name)} is {text!r}, but must be true or false.")
        return truth
    return _as(name, _number(name, text, text), text) if kind in (int, float) else text


def _range(name: str, text: str) -> list[Any]:
    given, parts = f"{flag(name)} is {text!r}", [_number(name, part, text) for part in text.split(":")]
    require(len(parts) in (2, 3), f"{given}, but a range is first:last or first:last:step, such as 4:9.")
    first, last, *rest = parts
    require(
        bool(rest) or (_whole(first) and _whole(last)),
        f"{given}, a range of fractions: say its step, such as 0.1:0.4:0.1.",
    )
    step = rest[0] if rest else Decimal(1)
    require(step != 0, f"{given}, whose step of 0 never arrives: give another step.")
    steps = (last - first) / step
    require(steps >= 0, f"{given}, an empty range: steps of {step} do not lead from {first} to {last}.")
    require(steps < MOST_CELLS, f"{given}, which is more than the {MOST_CELLS:,} cells of a sweep.")
    return [_as(name, first + i * step, text) for i in range(int(steps) + 1)]


def _as(name: str, number: Decimal, text: str) -> Any:
    if TYPES[name] is int:
        require(_whole(number), f"{flag(name)} is {text!r}, but must be whole numbers.")
        return int(number)
    return float(number) if TYPES[name] is float else str(number)


def _lists(name: str, given: Any) -> list[Any]:
    """The values of a setting that is a list: from `1,2,4;1,8`, from one list, or from a list of lists."""
    told = f"{flag(name)} is {given!r}"
    if isinstance(given, str):
        made = [tuple(_number(name, part, given) for part in text.split(",")) for text in given.split(";")]
        if name == "weights":
            return [tuple(map(float, each)) for each in made]
        require(all(_whole(m) for each in made for m in each), f"{told}, but must be whole numbers.")
        return [tuple(map(int, each)) for each in made]
    require(isinstance(given, list | tuple), f"{told}, but must be a list.")
    several = bool(given) and all(isinstance(each, list | tuple) for each in given)
    made = [tuple(each) for each in given] if several else [tuple(given)]
    numeric = all(isinstance(value, int | float) for each in made for value in each)
    require(numeric, f"{told}, but must be a list of numbers, or of such lists.")
    return made


def _number(name: str, text: str, whole: str) -> Decimal:
    try:
        number = Decimal(longhand(text.strip()))
    except InvalidOperation:
        number = Decimal("nan")
    allowed = "a number, a list such as 4,6 or a range such as 4:9"
    if name in ("moduli", "harmonics", "weights"):
        allowed = "numbers with commas between, and a semicolon before another list, such as 1,2,4;1,8"
    require(number.is_finite() and abs(number.adjusted()) < 300, f"{flag(name)} is {whole!r}, but must be {allowed}.")
    return number


def _whole(number: Decimal) -> bool:
    return number == number.to_integral_value()
