"""Checks of stored results before they are shown: a file may be damaged, of another kind, or from a stranger.

Standard library only. Each check returns what it was given, or raises :class:`UserError` naming the place (``where``).
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import math
from collections.abc import Callable
from typing import Any

from auxmod.checked import is_int
from auxmod.config import FORMAT, RunConfig
from auxmod.errors import UserError, require

Json = dict[str, Any]
_REMEDY = "restore the file, or delete what is wrong in it"


def check_row(row: Json, where: str) -> Json:
    """Check a line of a results file: a configuration, its hash, and figures or why there are none."""
    known = isinstance(row.get("config"), dict) and ("scores" in row or "failed" in row)
    require(known and isinstance(row.get("hash"), str), f"{where} is not a result: name another --results file.")
    version = row["config"].get("format")
    reads = f"this version of auxmod reads format {FORMAT}: name another --results file"
    require(version == FORMAT, f"{where} has format {version!r}; {reads}.")
    try:
        config = configuration(row["config"])
    except UserError as error:
        raise UserError(f"{where}: {error}") from None
    require(config.hash == row["hash"], f"{where} has the configuration of another run than its hash: {_REMEDY}.")
    kinds = {"scores": _is_object, "validation": _is_share, "curve": _is_list, "failed": _is_sentence}
    _check(row, where, kinds | {"provenance": _is_object})
    if "scores" in row:
        check_scores(row["scores"], where)
    check_curve([check_point(point, where) for point in row.get("curve", [])], where)
    _check(row.get("provenance", {}), where, {"seconds": _is_number})
    return row


def configuration(plain: Json) -> RunConfig:
    """The configuration in a row; cached without its seed, since most of a file's many rows differ only in that."""
    rest = json.dumps({name: part for name, part in plain.items() if name != "seed"})
    seed: Any = plain.get("seed")
    return dataclasses.replace(_with_any_seed(rest), seed=seed)


@functools.lru_cache(maxsize=1024)
def _with_any_seed(text: str) -> RunConfig:
    return RunConfig.from_dict(json.loads(text) | {"seed": 0})


def check_scores(scores: Json, where: object) -> Json:
    """Check a run's outcome: it has ``match`` or ``failed``, and each figure it has is of its kind."""
    kinds = dict.fromkeys(("match", "chance", "constant"), _is_share)
    kinds |= dict.fromkeys(("tau", "tau_chance", "tau_constant"), _are_shares)
    counts = {"samples": _is_count, "missing": _is_count, "by_wraps": _are_buckets, "by_zeros": _are_buckets}
    _check(scores, where, kinds | counts | {"failed": _is_sentence})
    require("match" in scores or "failed" in scores, f"{where} has no match accuracy: {_REMEDY}.")
    return scores


def check_point(point: Any, where: str) -> Json:
    """Check a point of a learning curve."""
    require(isinstance(point, dict) and "step" in point, f"{where} has no point of a learning curve: {_REMEDY}.")
    kinds = {"step": _is_count, "loss": lambda v: v is None or _is_number(v), "accuracy": _is_share, "near": _is_share}
    _check(point, where, kinds)
    return point  # type: ignore[no-any-return]


def check_curve(points: list[Json], where: object) -> list[Json]:
    """Check that the steps of a learning curve's points never decrease."""
    going = all(a["step"] <= b["step"] for a, b in itertools.pairwise(points))
    require(going, f"{where} has a learning curve whose steps go back: {_REMEDY}.")
    return points


def check_origin(made: Json, where: object) -> Json:
    """Check what a run was made on: not empty, and any time in seconds is a number."""
    require(bool(made), f"{where} does not say on what the run was made: {_REMEDY}.")
    _check(made, where, {"seconds": _is_number})
    return made


def _check(value: Json, where: object, kinds: dict[str, Callable[[Any], bool]]) -> None:
    for name, fits in kinds.items():
        if name in value and not fits(value[name]):
            said = f"{where} says that {name!r} is {value[name]!r:.60}"
            raise UserError(f"{said}, which it cannot be: {_REMEDY}.")


def _is_number(value: Any) -> bool:
    return (isinstance(value, float) and math.isfinite(value)) or (is_int(value) and abs(value) < 2**63)


def _is_count(value: Any) -> bool:
    return is_int(value) and 0 <= value < 2**63


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1


def _is_sentence(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _are_shares(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_share, value.values()))


def _are_buckets(value: Any) -> bool:
    """Whether a value is a list of counts of inputs, by wraps or by zeros, and of right answers among them."""
    return isinstance(value, list) and all(
        isinstance(row, dict)
        and all(_is_count(row.get(name)) for name in ("bucket", "samples", "correct"))
        and row["correct"] <= row["samples"]
        for row in value
    )
