"""Pack runs into ensembles that fit the device, and forecast their cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from auxmod.config import RunConfig
from auxmod.learning.cost import member_bytes, work
from auxmod.learning.engine import shape_of
from auxmod.learning.memory import EFFICIENCY, free_bytes, matrix_rate
from auxmod.learning.precision import resolve_precision

MOST_MEMBERS = 64
"""The default limit: more members hardly train faster together, and their results come later."""
HEADROOM = 0.7
"""The share of the free memory that an ensemble is planned to fill: `member_bytes` is an estimate."""
Shape = tuple[Any, ...]


def check_precisions(configs: Sequence[RunConfig], device: torch.device) -> None:
    """Refuse runs whose precision the device does not support."""
    for precision in {config.training.precision for config in configs}:
        resolve_precision(precision, device)


def plan(
    configs: Sequence[RunConfig],
    device: torch.device,
    *,
    members: int | None = None,
    free: int | None = None,
    limits: Mapping[Shape, int] | None = None,
) -> list[list[RunConfig]]:
    """Split the runs into ensembles, each of one shape, in the order given, as large as ``free`` bytes hold.

    ``free`` defaults to the device's free memory; :data:`HEADROOM` of it is used. ``members`` caps all ensembles,
    ``limits`` those of some shapes. A run that does not fit alone is an ensemble of its own.
    """
    most = MOST_MEMBERS if members is None else members
    room = HEADROOM * (free_bytes(device) if free is None else free)
    groups: dict[Shape, list[RunConfig]] = {}
    for config in configs:
        groups.setdefault(shape_of(config), []).append(config)
    packed = []
    for group, runs in groups.items():
        packed += _split(runs, room, min(most, (limits or {}).get(group, most)), device)
    return packed


def _split(members: Sequence[RunConfig], room: float, most: int, device: torch.device) -> list[list[RunConfig]]:
    """Fill one ensemble after another. Each member takes the memory of the largest: tokens and classes pad to it."""
    out: list[list[RunConfig]] = []
    largest = 0
    for config in members:
        size = _bytes(config, device)
        largest = max(largest, size)
        if not out or len(out[-1]) >= most or (len(out[-1]) + 1) * largest > room:
            out.append([])
            largest = size
        out[-1].append(config)
    return out


def forecast(ensembles: Sequence[Sequence[RunConfig]], device: torch.device) -> list[dict[str, Any]]:
    """The needs of each ensemble, one row each; the time is estimated from the device's matrix rate, measured now."""
    rates: dict[str, float] = {}
    rows = []
    for members in ensembles:
        first, flops = members[0], sum(map(work, members))
        precision = resolve_precision(first.training.precision, device)
        if precision not in rates:
            rates[precision] = EFFICIENCY * matrix_rate(device, precision)
        rows.append(
            {
                "members": len(members),
                "n": first.problem.n,
                "q": sorted({config.problem.q for config in members}),
                "embedding": first.model.embedding,
                "samples": first.training.samples,
                "steps": first.training.steps,
                "flops": flops,
                "bytes": len(members) * max(_bytes(config, device) for config in members),
                "seconds": flops / rates[precision],
            }
        )
    return rows


def _bytes(config: RunConfig, device: torch.device) -> int:
    return member_bytes(config, resolve_precision(config.training.precision, device))
