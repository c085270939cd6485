"""Presets, and the runs that each of the paper's tables and figures needs. No training here, and no torch.

A preset fills every setting that is not given. `paper` is the paper's setup; `best` is what did best for each
method in our runs; `demo` is a case for two CPU cores. A recipe lists, for one item and one preset, what is
compared; :func:`cells` makes the runs of it, seed by seed, in the order in which they should be run.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.settings import build

Settings = dict[str, Any]


def demo(given: Mapping[str, Any]) -> Settings:
    """A problem and a model that two CPU cores learn in under a minute."""
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
        "lr": 1e-3,
        "test_samples": 20_000,
        **_DEMO_METHODS.get(str(given.get("method", "aux")), {}),
    }


_DEMO_METHODS: dict[str, Settings] = {
    "aux": {"k": 4, "r": 0.4, "draw": "expected"},
    "sparse": {"alpha": 0.0},  # its penalty keeps so small a model from learning: each method at its best
}


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
"""Table 7 has a hyphen here though Table 2 has results: the pair of (16, 433)."""


def paper(given: Mapping[str, Any]) -> Settings:
    """The paper's setup is every setting's default; K and r are its choice for this (N, q), where it made one."""
    if given.get("method", "aux") != "aux":
        return {}
    embedding = str(given.get("embedding", "angular"))
    table = PAPER_CHOICE.get(embedding, {}) | (OUR_CHOICE if embedding == "angular" else {})
    asked = (given.get("n", 16), given.get("q", 97))
    return next(({"k": k, "r": r} for case, (k, r) in table.items() if case == asked), {})


def best(given: Mapping[str, Any]) -> Settings:
    """The paper's setup with the pooling, initial scale, learning rate and draw that learned best."""
    aux = given.get("method", "aux") == "aux"
    return paper(given) | {"pooling": "mean", "init": 0.02, "lr": 1e-4} | ({"draw": "expected"} if aux else {})


PRESETS: dict[str, Callable[[Mapping[str, Any]], Settings]] = {"demo": demo, "paper": paper, "best": best}


def with_preset(name: str | None, given: Mapping[str, Any]) -> Settings:
    """The given settings, with what is not given filled from the preset."""
    if name is None:
        return dict(given)
    require(name in PRESETS, f"--preset is {name!r}; choose one of {', '.join(PRESETS)}.")
    filled = PRESETS[name](given)
    if "moduli" in given:  # an explicit set of moduli replaces the paper's pair
        filled = {key: value for key, value in filled.items() if key not in ("k", "r", "draw")}
    return filled | dict(given)


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
VARIANTS: dict[str, Settings] = {
    "aux": {"method": "aux"},
    "sparse": {"method": "sparse"},
    "naive": {"method": "naive"},
    "expected": {"method": "aux", "draw": "expected"},
}
"""What is compared; `expected` is aux with the weighted sum of both losses in place of a drawn one."""


class Wanted(NamedTuple):
    """Something a table or figure shows: a method's name there, and its run, for any seed."""

    variant: str
    run: RunConfig


def wanted(preset: str, variant: str, size: tuple[int, int], embedding: str, samples: int, **more: Any) -> Wanted:
    """A preset's run of a variant at (N, q)."""
    given = VARIANTS[variant] | {"n": size[0], "q": size[1], "embedding": embedding, "samples": samples} | more
    return Wanted(variant, build(**with_preset(preset, given)))


def table1a(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Match accuracy, token embedding."""
    return _table1(preset, "token", samples)


def table1b(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Match accuracy, angular embedding."""
    return _table1(preset, "angular", samples)


def _table1(preset: str, embedding: str, samples: Sequence[int]) -> Iterator[Wanted]:
    for size, count in itertools.product(SIZES[embedding], samples):
        for variant in VARIANTS if count <= SMALL else ("aux", "sparse"):
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
    for k, r in pairs:
        method = dataclasses.replace(aux[0].run.method, moduli=(1, k), weights=(1 - r, r))
        for variant, run in aux:
            yield Wanted(variant, dataclasses.replace(run, method=method))


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


RECIPES: dict[str, Callable[..., Iterator[Wanted]]] = {
    recipe.__name__: recipe for recipe in (table1a, table1b, configs, table3, redbox, grid, table2, curves)
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
    asked = [want.run for preset in presets for want in RECIPES[item](preset, **sizes) if keep(want)]
    runs = sorted(dict.fromkeys(asked), key=_turn if item == "table2" else _samples)
    usual = {} if item in ("table3", "grid", "redbox") else SEEDS
    return [
        dataclasses.replace(run, seed=seed) if seed else run
        for run in runs
        for seed in range(usual.get(_samples(run), 1) if seeds is None else seeds)
    ]


def _samples(run: RunConfig) -> int:
    return run.training.samples


def _turn(run: RunConfig) -> tuple[int, int]:
    """Table 2 at 1M tells most at large N; at 10M only small N may be affordable."""
    return _samples(run), run.problem.n if _samples(run) > LARGE else -run.problem.n
