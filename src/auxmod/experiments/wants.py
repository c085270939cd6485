"""What a table or figure compares: the sizes, the methods, and :class:`Wanted`, one method at one size and its run.

No training here, and no torch. The recipes, the readers of their results, and the commands that run them import this.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from auxmod.config import RunConfig
from auxmod.experiments.presets import Settings, with_preset
from auxmod.settings import build

Facts = dict[str, Any]
"""The values that identify a cell: embedding, n, q, samples, method, and any others that a table distinguishes."""
SMALL, LARGE, HUGE = 100_000, 1_000_000, 10_000_000
SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "token": tuple(itertools.product((8, 16, 32), (31, 97, 257))),
    "angular": tuple(itertools.product((16, 32, 64), (97, 257, 433))),
}
"""The (N, q) of Tables 1 and 3 and of the heatmaps."""
TESTS = 100_000
"""The number of test inputs of a cell: an accuracy's standard error is then below 0.16 points."""
VARIANTS: dict[str, Settings] = {
    "aux": {"method": "aux"},
    "sparse": {"method": "sparse"},
    "naive": {"method": "naive"},
    "expected": {"method": "aux", "draw": "expected"},
    "fixed": {"method": "aux", "draw": "fixed"},
    "all": {"method": "aux", "asked": "all"},
    "auto": {"method": "auto"},
    "searched": {"method": "aux"},
}
"""The methods that are compared. Four are aux with a change: `expected` has the weighted sum of both losses in place of
a drawn one, `fixed` draws a sample's label once, `all` asks a drawn label of both points, and `searched` is the best of
the paper's 24 (K, r)."""


class Wanted(NamedTuple):
    """An entry of a table or figure: a method's name there, and its run, for any seed."""

    variant: str
    run: RunConfig
    preset: str
    seeds: int | None = None
    """The number of seeds to run, if it is fixed."""

    @property
    def facts(self) -> Facts:
        """The values that identify it in a table."""
        run = self.run
        facts: Facts = {"embedding": run.model.embedding, "n": run.problem.n, "q": run.problem.q}
        return facts | {"samples": run.training.samples, "method": self.variant, "k": run.method.k, "r": run.method.r}


def wanted(preset: str, variant: str, size: tuple[int, int], embedding: str, samples: int, **more: Any) -> Wanted:
    """The entry for a variant at (N, q), with the settings of a preset."""
    given = VARIANTS[variant] | {"n": size[0], "q": size[1], "embedding": embedding, "samples": samples}
    given |= {"test_samples": TESTS} | more
    return Wanted(variant, build(**with_preset(preset, given)), preset)
