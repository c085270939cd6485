"""Which runs an ensemble trains, how they do, and which leave: successive halving (Jamieson and Talwalkar, 2016).

At each rung the better half by held-out accuracy goes on, and so does any run that trails it by no more than chance
allows. Without rungs all runs go on to the end. `ensembles` trains by this account, and `saving` stores it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from auxmod.config import RunConfig
from auxmod.experiments.single import curve_point
from auxmod.learning.cost import widths
from auxmod.learning.engine import VALIDATION_SAMPLES, Finished, Progress

RUNGS = (0.25, 0.5)
"""Shares of the steps after which members are compared, at the next measurement."""
NOISE = round(2 * math.sqrt(2 * 0.25 / VALIDATION_SAMPLES), 2)
"""Smaller differences in held-out accuracy mean nothing: two standard errors on the inputs used, 0.03."""


@dataclass(frozen=True)
class Rung:
    """A comparison: the accuracies of the runs in training, by hash, and the runs that leave."""

    step: int
    accuracy: dict[str, float]
    pruned: list[str]


@dataclass
class Race:
    """An ensemble's account, saved with its state: which runs train, were pruned or died, and how all have done."""

    members: list[str]
    """The hashes of all runs that it began with."""
    curves: list[list[dict[str, Any]]]
    """A list of points for each member."""
    seconds: float = 0.0
    step: int = 0
    """The step at which its state was saved."""
    riding: list[dict[str, Any]] = field(default_factory=list)
    """The configurations of the runs in the ensemble; pruned runs may be among them (see :meth:`staying`)."""
    gone: list[str] = field(default_factory=list)
    dead: dict[str, int] = field(default_factory=dict)
    rung: int = 0
    """The step of the last comparison."""
    models: bool = False
    """Whether its runs' models are to be kept."""

    @classmethod
    def of(cls, configs: Sequence[RunConfig]) -> Race:
        return cls([c.hash for c in configs], [[] for _ in configs])

    @property
    def left(self) -> set[str]:
        """The runs that were not pruned."""
        return set(self.members) - set(self.gone)

    def see(self, riding: Sequence[RunConfig], event: Progress | Finished) -> None:
        """Note which runs died, and add the measured points to the curves."""
        died = {c.hash: at for c, at in zip(riding, event.dead, strict=True) if at is not None}
        self.dead |= {run: at for run, at in died.items() if run not in self.gone}
        if isinstance(event, Progress) and event.accuracy is not None:
            for e, config in enumerate(riding):
                self.curves[self.members.index(config.hash)].append(curve_point(event, e))

    def due(self, event: Progress, rungs: Sequence[float], steps: int) -> bool:
        """Whether to compare members now: at the first measurement past a rung, but not at the end."""
        return event.accuracy is not None and any(self.rung < r * steps <= event.step < steps for r in rungs)

    def compare(self, riding: Sequence[RunConfig], event: Progress, near: bool = False) -> Rung:
        """Prune the runs that lag, by exact answers or by near ones."""
        out = self.dead.keys() | set(self.gone)
        shares = (event.near if near else event.accuracy) or []
        accuracy = {c.hash: share for c, share in zip(riding, shares, strict=True) if c.hash not in out}
        rung = Rung(event.step, accuracy, behind(accuracy))
        self.gone, self.rung = self.gone + rung.pruned, event.step
        return rung

    def staying(self, riding: Sequence[RunConfig]) -> list[int]:
        """Which members stay in the ensemble.

        An ensemble is as wide as its widest member. That member always stays, ignored if it is out, so that no weight
        changes its place. One member may have the most tokens, and another the most classes.
        """
        stay = [e for e, config in enumerate(riding) if config.hash in self.left - self.dead.keys()]
        for sizes in zip(*map(widths, riding), strict=True):
            if stay and max(sizes[e] for e in stay) < max(sizes):
                stay = sorted([*stay, sizes.index(max(sizes))])
        return stay


def behind(accuracy: Mapping[str, float]) -> list[str]:
    """The runs below the better half by more than noise."""
    if not accuracy:
        return []
    last = sorted(accuracy.values(), reverse=True)[math.ceil(len(accuracy) / 2) - 1]
    return [run for run, share in accuracy.items() if share < last - NOISE]
