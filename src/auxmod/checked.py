"""Dataclasses that check their own fields: a wrong value from a flag, a file or Python becomes a sentence.

Standard library only; `config` is built on it.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, get_args, get_origin, get_type_hints

from auxmod.errors import UserError, require


class Checked:
    """Field types are checked on construction, so that a bad file or flag fails with a sentence, not later."""

    def __post_init__(self) -> None:
        for name, kind in _hints(type(self)).items():  # type: ignore[arg-type]
            object.__setattr__(self, name, _coerce(name, getattr(self, name), kind))
        self._validate()

    def _validate(self) -> None: ...


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def listed(values: tuple[float, ...]) -> str:
    return ",".join(f"{v:g}" for v in values)


def _fits(name: str, value: Any, kind: Any) -> bool:
    if kind is float:
        return type(value) is float and math.isfinite(value)
    if kind is str:
        return type(value) is str and name != "init"
    return type(value) is kind if kind in (int, bool) else type(value) is str and value in _choices(kind)


@functools.cache
def _choices(kind: Any) -> frozenset[Any]:
    return frozenset(get_args(kind) if get_origin(kind) is Literal else ())


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """Bring a value from a flag, a file or Python to the field's type, or say what was expected."""
    if _fits(name, value, kind):  # at once: results are read by the thousand
        return value
    flag = f"--{name.replace('_', '-')}"
    if get_origin(kind) is Literal:
        require(value in get_args(kind), f"{flag} is {value!r}; choose one of {', '.join(get_args(kind))}.")
        return value
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        require(isinstance(value, list | tuple), f"{flag} is {value!r}, but must be a list of numbers.")
        return tuple(_coerce(name, v, item) for v in value)
    if kind is float:
        parsed = None if isinstance(value, bool | str) else number(value)
        require(parsed is not None, f"{flag} is {value!r}, but must be a finite number.")
        return parsed
    if kind is int:
        require(is_int(value), f"{flag} is {value!r}, but must be a whole number.")
        return value
    if kind is bool:
        require(isinstance(value, bool), f"{flag} is {value!r}, but must be true or false.")
        return value
    if kind is str and name == "init" and number(value) is not None:
        return f"{float(value):g}"  # 0.02, "0.02" and "2e-2" are one setting
    if kind is str:
        require(isinstance(value, str), f"{flag} is {value!r}, but must be text.")
        return value
    if not isinstance(value, kind):
        raise UserError(f"{name} must be a {kind.__name__}, not {type(value).__name__}.")
    return value
