"""Dataclasses that check their own fields: a wrong value from a flag, a file or Python becomes a sentence.

Standard library and `errors` only; `config` is built on it.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from decimal import Decimal
from numbers import Integral
from typing import Any, Literal, get_args, get_origin, get_type_hints

from auxmod.errors import UserError

OF_LINEAR = "linear-"
"""Prefix of an `init` whose σ applies to linear layers and embeddings only, as in `linear-0.02`."""
_KINDS = {float: "a finite number", int: "a whole number", bool: "true or false", str: "text"}


class Checked:
    """Check field types on construction, so that a bad file or flag fails at once, and with a sentence."""

    def __post_init__(self) -> None:
        for name, kind in _hints(type(self)).items():  # type: ignore[arg-type]
            object.__setattr__(self, name, _coerce(name, getattr(self, name), kind))
        self._validate()

    def _validate(self) -> None: ...

    def _check(self, names: str, holds: Callable[[Any], bool], allowed: str) -> None:
        """Require ``holds`` of each field in ``names`` (space-separated); the error says what is ``allowed``."""
        for name in names.split():
            value = getattr(self, name)
            if not holds(value):
                raise UserError(f"{flag(name)} is {shown(value)}, but {allowed}.")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def flag(name: str) -> str:
    """A setting's flag on the command line."""
    return f"--{name.replace('_', '-')}"


def is_int(value: Any) -> bool:
    """Whether a value is a whole number, numpy's included, but not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def number(text: Any) -> float | None:
    try:
        value = float(text)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def sigma_of(init: Any) -> float | None:
    """The σ that an `init` names, for all weights or for linear layers only; None if it names none."""
    return number(init.removeprefix(OF_LINEAR) if isinstance(init, str) else init)


_SHORT = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)([KM])")


def longhand(text: str) -> str:
    """Expand 100K to 100000 and 1.5M to 1500000; leave any other text as it is."""
    short = _SHORT.fullmatch(text)
    return f"{(Decimal(short[1]) * {'K': 1_000, 'M': 1_000_000}[short[2]]).normalize():f}" if short else text


def shown(value: Any) -> str:
    """A setting's value as a user would type it, fractions to six digits."""
    if isinstance(value, list | tuple):
        return ",".join(map(shown, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def one_form(init: Any) -> Any:
    """Write an `init` in one form: 0.02, "0.02" and "2e-2" are the same; so are linear-0.02 and linear-2e-2."""
    sigma, before = sigma_of(init), OF_LINEAR if str(init).startswith(OF_LINEAR) else ""
    return init if sigma is None else f"{before}{sigma:.12g}"


def _coerce(name: str, value: Any, kind: Any) -> Any:
    """Convert a value from a flag, a file or Python to the field's type, or say what was expected."""
    if get_origin(kind) is Literal:
        if not isinstance(value, str) or value not in get_args(kind):
            raise UserError(f"{flag(name)} is {value!r}; choose one of {', '.join(get_args(kind))}.")
        return value
    if get_origin(kind) is tuple:
        if not isinstance(value, list | tuple):
            raise UserError(f"{flag(name)} is {value!r}, but must be a list of numbers.")
        return tuple(_coerce(name, v, get_args(kind)[0]) for v in value)
    made = value
    if name == "init" and not isinstance(value, bool):
        made = one_form(value)
    elif kind is float and not isinstance(value, bool | str):
        made = number(value)
        made = 0.0 if made == 0 else made  # −0.0 becomes 0.0, so that both hash alike
    elif kind is int and is_int(value):
        made = int(value)
    if isinstance(made, kind) and (kind is bool or not isinstance(made, bool)):
        return made
    if kind in _KINDS:
        raise UserError(f"{flag(name)} is {value!r}, but must be {_KINDS[kind]}.")
    raise UserError(f"{name} must be a {kind.__name__}, not {type(value).__name__}.")
