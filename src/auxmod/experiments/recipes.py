"""The runs that each of the paper's tables and figures needs, and those past it. No training here, and no torch.

A recipe lists, for one item and one preset, what is compared; :func:`cells` makes the runs of it, seed by seed, in the
order in which they should be run.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.presets import PAPER_CHOICE, Settings, with_preset
from auxmod.settings import build

# ---- what the paper's tables and figures compare ----------------------------------------------------------

SMALL, LARGE, HUGE = 100_000, 1_000_000, 10_000_000
SEEDS = {SMALL: 3}
"""How many seeds a cell is run with, by training samples: one where it is not said, and one over K and r."""
SIZES: dict[str, tuple[tuple[int, int], ...]] = {
    "token": tuple(itertools.product((8, 16, 32), (31, 97, 257))),
    "angular": tuple(itertools.product((16, 32, 64), (97, 257, 433))),
}
"""The (N, q) of Tables 1 and 3 and of the heatmaps."""
LARGE_SIZES = tuple(itertools.product((16, 32, 64, 128), (257, 3329, 42899, 974269)))
"""The (N, q) of Table 2."""
SWITCHES = {"norm": ("pre", "post"), "bias": (True, False), "init": ("0.02", "default"), "dropout": (0.0, 0.1)}
"""What the 16 configurations vary."""
SEARCHED = tuple((k, r / 10) for k in range(4, 10) for r in range(1, 5))
"""The (K, r) that the paper searched: those of Table 3."""
GRID = tuple(dict.fromkeys([*SEARCHED, *((k, r / 10) for k in range(2, 11) for r in range(1, 10))]))
"""The (K, r) of the heatmaps, the searched ones first."""
TESTS = 100_000
"""Inputs that a cell is measured on: an accuracy's standard error is then below 0.16 points."""
TELLING = (("token", (8, 31)), ("angular", (16, 97)))
"""Cells of Table 1 on which a configuration is judged first: cheap to run, and learned by aux."""
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
"""What is compared: `expected` is aux with the weighted sum of both losses in place of a drawn one, and `searched` aux
with the best of the paper's 24 pairs (K, r)."""


class Wanted(NamedTuple):
    """Something a table or figure shows: a method's name there, and its run, for any seed."""

    variant: str
    run: RunConfig
    seeds: int | None = None
    """How many are run, where that is not left open."""


def wanted(preset: str, variant: str, size: tuple[int, int], embedding: str, samples: int, **more: Any) -> Wanted:
    """A preset's run of a variant at (N, q)."""
    given = VARIANTS[variant] | {"n": size[0], "q": size[1], "embedding": embedding, "samples": samples}
    given |= {"test_samples": TESTS} | more
    return Wanted(variant, build(**with_preset(preset, given)))


def table1a(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Match accuracy, token embedding."""
    return _table1(preset, "token", samples)


def table1b(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Match accuracy, angular embedding."""
    return _table1(preset, "angular", samples)


def _table1(preset: str, embedding: str, samples: Sequence[int]) -> Iterator[Wanted]:
    for size, count in itertools.product(SIZES[embedding], samples):
        for variant in ("aux", "sparse", "naive", "expected") if count <= SMALL else ("aux", "sparse"):
            yield wanted(preset, variant, size, embedding, count)


def table2(preset: str, samples: Sequence[int] = (LARGE, HUGE)) -> Iterator[Wanted]:
    """τ-accuracy at large N and q, angular embedding."""
    for size, count, variant in itertools.product(LARGE_SIZES, samples, ("aux", "sparse")):
        yield wanted(preset, variant, size, "angular", count)


def table3(preset: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """The spread over the searched K and r, beside the baseline. The paper's is at 1M, ours at 100K unless asked."""
    for embedding, sizes in SIZES.items():
        for size, count in itertools.product(sizes, samples):
            yield wanted(preset, "sparse", size, embedding, count)
    yield from grid(preset, samples, pairs=SEARCHED)


def configs(preset: str, samples: Sequence[int] = (LARGE,)) -> Iterator[Wanted]:
    """The 16 configurations of norm, bias, initial weights and dropout; token, N=8, q=97."""
    for values in itertools.product(*SWITCHES.values()):
        switches = dict(zip(SWITCHES, values, strict=True))
        for count, variant in itertools.product(samples, ("sparse", "aux")):
            yield wanted(preset, variant, (8, 97), "token", count, **switches)


def grid(
    preset: str,
    samples: Sequence[int] = (SMALL,),
    *,
    sizes: Mapping[str, Iterable[tuple[int, int]]] = SIZES,
    pairs: Iterable[tuple[int, float]] = GRID,
) -> Iterator[Wanted]:
    """Match accuracy over K and r: the pairs that the paper searched before the rest."""
    settings = [(size, embedding) for embedding in sizes for size in sizes[embedding]]
    aux = [wanted(preset, "aux", *setting, count) for count, setting in itertools.product(samples, settings)]
    for (k, r), want in itertools.product(pairs, aux):
        method = dataclasses.replace(want.run.method, moduli=(1, k), weights=(1 - r, r))
        yield want._replace(run=dataclasses.replace(want.run, method=method))


def redbox(preset: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """The heatmap of angular N=64, q=433."""
    return grid(preset, samples, sizes={"angular": [(64, 433)]})


CURVE_SIZES = (("token", (8, 31)), ("angular", (32, 97)))
"""Where the learning curves are drawn."""
REPEAT = 10
"""At equal compute, a tenth of the samples is seen ten times as often."""


def curves(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Learning curves: both methods at 100K and 1M, ten epochs, and at 100K with as many steps as 1M takes."""
    for (embedding, size), variant in itertools.product(CURVE_SIZES, ("aux", "sparse")):
        for count in samples:
            yield wanted(preset, variant, size, embedding, count)
        epochs = REPEAT * build().training.epochs
        yield wanted(preset, variant, size, embedding, min(samples), epochs=epochs)


def headline(_: str, samples: Sequence[int] = ()) -> Iterator[Wanted]:
    """The paper's effect at a size for two CPU cores: what `auxmod demo` shows, over seeds."""
    for variant in ("aux", "sparse", "naive"):
        yield Wanted(variant, build(**with_preset("demo", VARIANTS[variant])))


# ---- past the paper ---------------------------------------------------------------------------------------

ASKS = 16


class Case(NamedTuple):
    """A cell of the table past the paper, and the τ at which it is judged; None for match accuracy."""

    embedding: str
    size: tuple[int, int]
    samples: int
    taus: tuple[float | None, ...] = (None,)
    epochs: int = 10
    tuned: bool = True
    """False where it was chosen before anything was run on it."""


CASES = (
    Case("angular", (128, 974269), SMALL, (0.05, 0.01)),
    Case("angular", (64, 433), SMALL),
    Case("angular", (32, 257), SMALL),
    Case("token", (8, 97), SMALL),
    Case("token", (32, 257), LARGE, epochs=4),
    Case("angular", (256, 3329), LARGE, (0.01,), epochs=1),
    Case("angular", (48, 997), SMALL, (0.005,), tuned=False),
    Case("angular", (20, 1024), SMALL, tuned=False),
    Case("token", (12, 113), SMALL, tuned=False),
)


def beyond(_: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """`auto` beside aux and sparse, each at its best, at equal samples and equal steps.

    Where nothing was tuned, aux also has the 24 runs of the paper's search.
    """
    cases = [case for case in CASES if case.samples in samples]
    for case, variant in itertools.product(cases, ("auto", "aux", "sparse")):
        yield _in_case(case, variant)
    for case, (k, r) in itertools.product(cases, SEARCHED):
        if not case.tuned:
            yield _in_case(case, "searched", k=k, r=r)._replace(seeds=1)


def _in_case(case: Case, variant: str, **more: Any) -> Wanted:
    more |= {"epochs": case.epochs, "asks": ASKS}
    return wanted("best", variant, case.size, case.embedding, case.samples, **more)


# ---- the search for the paper's own configuration ---------------------------------------------------------

POOLINGS = {"token": ("cls", "mean", "max", "flatten", "first"), "angular": ("cls", "mean", "max")}
FEWER_TESTS = 20_000
"""Test inputs of a trial that only has to be told from others."""


def setup(_: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """What the paper leaves open (pooling, final norm, initial weights, clipping, draw), on two telling cells."""
    for (embedding, size), count in itertools.product(TELLING, samples):
        structures = itertools.product(POOLINGS[embedding], (True, False), ("default", "cloned", "0.02"), (0.0, 1.0))
        for pooling, final_norm, init, clip in structures:
            other = "all" if embedding == "angular" else "fixed"
            for variant in ("aux", *((other,) if (init, other) != ("cloned", "fixed") else ()), "sparse"):
                switches = {"pooling": pooling, "final_norm": final_norm, "init": init, "clip": clip}
                yield wanted("stated", variant, size, embedding, count, **switches, test_samples=FEWER_TESTS)


def knobs(_: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """The paper's setup, one stated value turned at a time, on the same cells."""
    for (embedding, size), count in itertools.product(TELLING, samples):
        r = PAPER_CHOICE[embedding][size][1]
        turns: list[Settings] = [{"init": "default"}, {}, {"r": round(1 - r, 12)}, {"draw": "expected"}]
        turns += [{"lr": 4e-5}, {"lr": 6e-5}, {"weight_decay": 0.0}, {"warmup": 0.0}, {"beta2": 0.98}]
        for turn in turns:
            settings: Settings = {"init": "cloned", "test_samples": FEWER_TESTS} | turn
            yield wanted("stated", "aux", size, embedding, count, **settings)


FINALISTS: tuple[Settings, ...] = (
    {},
    {"lr": 6e-5},
    {"init": 0.02},
    {"init": 0.02, "pooling": "max", "clip": 1.0},
)
"""Changes to the stated setup: the nearest to the paper's figures on the telling cells, by `setup` and `knobs`."""
ANGLES = ((16, 257), (32, 97))
"""Cells on which more is tried, for none of the finalists learns angles as well as the paper."""
NEAREST: Settings = {"pooling": "mean", "lr": 1e-4}
"""What came nearest there: for both ways of drawing it is run on all angular cells; the baseline, clipped."""


def finalists(_: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """The few configurations nearest to the paper's figures, on all 18 cells of Table 1; and more for angles."""
    settings = [(size, embedding) for embedding in SIZES for size in SIZES[embedding]]
    for changes, (size, embedding), count in itertools.product(FINALISTS, settings, samples):
        for variant in ("aux", "sparse"):
            yield wanted("stated", variant, size, embedding, count, **changes)
    structures = itertools.product(POOLINGS["angular"], (True, False), (3e-5, 1e-4))
    for (pooling, final_norm, lr), size, count in itertools.product(structures, ANGLES, samples):
        changes = {"init": 0.02, "pooling": pooling, "final_norm": final_norm, "lr": lr}
        # a loss averaged over four numbers, where the baseline has two, is clipped as ours would be at twice the norm
        for variant, clip in (("aux", 0.0), ("aux", 2.0), ("sparse", 1.0)):
            yield wanted("stated", variant, size, "angular", count, **changes, clip=clip)
    # of angles the paper does not say that a label is drawn: both losses, weighted
    readings = (("expected", 3e-5, 0.0), ("expected", 3e-5, 2.0), ("expected", 1e-4, 0.0), ("sampled", 1e-4, 0.0))
    encoders = itertools.product(POOLINGS["angular"], (True, False), ("default", "0.02"))
    for (pooling, final_norm, init), (draw, lr, clip), count in itertools.product(encoders, readings, samples):
        changes = {"init": init, "pooling": pooling, "final_norm": final_norm, "draw": draw, "lr": lr, "clip": clip}
        yield wanted("stated", "aux", ANGLES[0], "angular", count, **changes)
    for size, count in itertools.product(SIZES["angular"], samples):
        for variant, more in (("aux", {}), ("aux", {"draw": "expected"}), ("sparse", {"clip": 1.0})):
            yield wanted("stated", variant, size, "angular", count, **NEAREST, **more)
    # a small encoder leaves the plateau sooner where its embedding starts small (docs/research.md)
    starts = itertools.product((ANGLES[0], (64, 97)), (0.02, 0.1), (3e-5, 1e-4), ("sampled", "expected"))
    for (size, lift, lr, draw), count in itertools.product(starts, samples):
        yield wanted("stated", "aux", size, "angular", count, pooling="mean", lift=lift, lr=lr, draw=draw)
    for (lift, lr), size, count in itertools.product(
        ((0.15, 1e-4), (0.2, 1e-4), (0.15, 2e-4)), SIZES["angular"], samples
    ):
        yield wanted("stated", "aux", size, "angular", count, pooling="mean", lift=lift, lr=lr, draw="expected")


RECIPES: dict[str, Callable[..., Iterator[Wanted]]] = {
    recipe.__name__: recipe
    for recipe in (
        *(table1a, table1b, configs, table3, redbox, grid, table2, curves),
        *(headline, beyond, setup, knobs, finalists),
    )
}
"""By name, in the order in which they should be run."""


def cells(
    item: str,
    presets: Sequence[str] = ("paper", "best"),
    *,
    seeds: int | None = None,
    samples: Sequence[int] = (),
    keep: Callable[[Wanted], bool] = lambda _: True,
) -> list[RunConfig]:
    """The runs that a table or figure needs, each once, the most telling first.

    ``seeds`` runs of each (by default as `SEEDS` says), of those that ``keep`` keeps; ``samples`` in place of the
    paper's sizes.
    """
    require(item in RECIPES, f"There are no runs for {item!r}; choose one of {', '.join(RECIPES)}.")
    sizes = {"samples": samples} if samples else {}
    asked = [want for preset in presets for want in RECIPES[item](preset, **sizes) if keep(want)]
    fixed = {want.run: want.seeds for want in reversed(asked)}
    runs = sorted(dict.fromkeys(want.run for want in asked), key=_turn if item == "table2" else _samples)
    single = item in ("table3", "grid", "redbox", "setup", "finalists")
    usual = 1 if single else 3 if item in ("headline", "beyond") else None
    return [
        dataclasses.replace(run, seed=seed) if seed else run
        for run in runs
        for seed in range(fixed[run] or seeds or usual or SEEDS.get(_samples(run), 1))
    ]


def _samples(run: RunConfig) -> int:
    return run.training.samples


def _turn(run: RunConfig) -> tuple[int, int]:
    """Table 2 at 1M tells most at large N; at 10M only small N may be affordable."""
    return _samples(run), run.problem.n if _samples(run) > LARGE else -run.problem.n
