"""The runs for each of the paper's tables and figures, and for those past the paper. No training here, and no torch.

A recipe lists what is compared in one item with one preset; :func:`cells` makes its runs, one per seed, in the order
in which to run them.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.presets import GRID, LINEAR, with_preset
from auxmod.experiments.ranges import expand
from auxmod.experiments.setup_search import finalists, knobs, longer, setup, starts
from auxmod.experiments.wants import HUGE, LARGE, SIZES, SMALL, VARIANTS, Facts, Wanted, wanted
from auxmod.settings import build

# ---- what the paper's tables and figures compare ----------------------------------------------------------

SEEDS = {SMALL: 3}
"""How many seeds a cell has, by its training samples, unless its recipe sets a number; one for other sizes."""
LARGE_SIZES = tuple(itertools.product((16, 32, 64, 128), (257, 3329, 42899, 974269)))
"""The (N, q) of Table 2."""
SWITCHES = {"norm": ("pre", "post"), "bias": (True, False), "init": ("0.02", "default"), "dropout": (0.0, 0.1)}
"""The settings that the 16 configurations vary."""
SEARCHED = tuple((cell["k"], cell["r"]) for cell in expand(GRID))
"""The (K, r) that the paper searched, as in Table 3."""
KS, RS = range(2, 11), tuple(r / 10 for r in range(1, 10))
HEATMAP = tuple(dict.fromkeys([*SEARCHED, *itertools.product(KS, RS)]))
"""The (K, r) of the heatmaps, the searched ones first."""


def table1(preset: str, samples: Sequence[int] = (SMALL, LARGE), *, embedding: str) -> Iterator[Wanted]:
    """Match accuracy with one embedding."""
    for size, count in itertools.product(SIZES[embedding], samples):
        for variant in ("aux", "sparse", "naive", "expected") if count <= SMALL else ("aux", "sparse"):
            yield wanted(preset, variant, size, embedding, count)


def table2(preset: str, samples: Sequence[int] = (LARGE, HUGE)) -> Iterator[Wanted]:
    """τ-accuracy at large N and q, angular embedding."""
    for size, count, variant in itertools.product(LARGE_SIZES, samples, ("aux", "sparse")):
        yield wanted(preset, variant, size, "angular", count)


def table3(preset: str, samples: Sequence[int] = (SMALL,)) -> Iterator[Wanted]:
    """The spread over the searched K and r, beside the baseline. The paper's is at 1M, ours at 100K by default; the
    printed table has both."""
    for embedding, sizes in SIZES.items():
        for size, count in itertools.product(sizes, samples):
            yield wanted(preset, "sparse", size, embedding, count)
    yield from grid(preset, samples, pairs=SEARCHED)


def configs(preset: str, samples: Sequence[int] = (LARGE,)) -> Iterator[Wanted]:
    """The 16 configurations of norm, bias, initial weights and dropout; token, N=8, q=97.

    If the preset has small initial weights, its form of them is used.
    """
    own = wanted(preset, "aux", (8, 97), "token", LARGE).run.model.init
    able = ("default", "0.02", LINEAR)
    require(own in able, f"The configurations compare PyTorch's initial weights with small ones: {', '.join(able)}.")
    small: dict[Any, str] = {} if own == "default" else {"0.02": own}
    for values in itertools.product(*SWITCHES.values()):
        switches = {name: small.get(value, value) for name, value in zip(SWITCHES, values, strict=True)}
        for count, variant in itertools.product(samples, ("sparse", "aux")):
            yield wanted(preset, variant, (8, 97), "token", count, **switches)


def grid(
    preset: str,
    samples: Sequence[int] = (SMALL,),
    *,
    sizes: Mapping[str, Iterable[tuple[int, int]]] = SIZES,
    pairs: Iterable[tuple[int, float]] = HEATMAP,
) -> Iterator[Wanted]:
    """Match accuracy over K and r, first for the pairs that the paper searched."""
    settings = [(size, embedding) for embedding in sizes for size in sizes[embedding]]
    aux = [wanted(preset, "aux", *setting, count) for count, setting in itertools.product(samples, settings)]
    for (k, r), want in itertools.product(pairs, aux):
        method = dataclasses.replace(want.run.method, moduli=(1, k), weights=(1 - r, r))
        yield want._replace(run=dataclasses.replace(want.run, method=method))


CURVE_SIZES = (("token", (8, 31)), ("angular", (32, 97)))
"""The cells whose learning curves are drawn."""
REPEAT = LARGE // SMALL
"""At equal compute, a tenth of the samples (100K in place of 1M) is seen ten times as often."""


def curves(preset: str, samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """Learning curves: both methods at 100K and 1M, and at the fewest samples also for ten times the epochs."""
    for (embedding, size), variant in itertools.product(CURVE_SIZES, ("aux", "sparse")):
        usual = [wanted(preset, variant, size, embedding, count) for count in samples]
        yield from usual
        yield wanted(preset, variant, size, embedding, min(samples), epochs=REPEAT * usual[0].run.training.epochs)


def headline() -> Iterator[Wanted]:
    """The paper's effect at a size for two CPU cores: what `auxmod demo` shows, over seeds."""
    for variant in ("aux", "sparse", "naive"):
        yield Wanted(variant, build(**with_preset("demo", VARIANTS[variant])), "demo")


VISITS = 250_000
"""Samples that a run of the demo sees, repeats included."""
DISTINCT = (250, 500, 1_000, 2_000, 5_000, 10_000, 25_000, 50_000, 125_000, VISITS)
HELD, PASSES = 10_000, (5, 10, 25, 50, 100)
"""A fixed number of samples, and the epochs to train on them."""


def fewer() -> Iterator[Wanted]:
    """The demo's problem with more and more samples at equal steps, and with more and more steps at equal samples."""
    sizes = [*((samples, VISITS // samples) for samples in DISTINCT), *((HELD, epochs) for epochs in PASSES)]
    for samples, epochs in dict.fromkeys(sizes):
        for variant in ("auto", "aux", "sparse") if samples * epochs == VISITS else ("aux", "sparse"):
            size = {"samples": samples, "epochs": epochs}
            yield Wanted(variant, build(**with_preset("demo", VARIANTS[variant] | size)), "demo")


TERMS, MODULI = (4, 6, 8, 12, 16, 24, 32, 48), (11, 31, 97, 257)
"""The numbers of terms to try with the demo's modulus, and the moduli to try with its number of terms."""
HARDEST = ((16, 97), (16, 257), (48, 31))
"""The (N, q) among these at which the demo's K and r might not suit `aux`."""


def harder() -> Iterator[Wanted]:
    """The demo with other numbers of terms, or other moduli: what each method learns from as many samples and steps.

    At the sizes that are hard for `aux`, it also has the 24 runs of the paper's search.
    """
    demo = next(headline()).run.problem
    sizes = [*((n, demo.q) for n in TERMS), *((demo.n, q) for q in MODULI)]
    for size, variant in itertools.product(dict.fromkeys(sizes), ("auto", "aux", "sparse", "naive")):
        yield _of_demo(variant, size)
    for size, (k, r) in itertools.product(HARDEST, SEARCHED):
        yield _of_demo("searched", size, k=k, r=r)._replace(seeds=1)


def _of_demo(variant: str, size: tuple[int, int], **more: Any) -> Wanted:
    given = VARIANTS[variant] | {"n": size[0], "q": size[1]} | more
    return Wanted(variant, build(**with_preset("demo", given)), "demo")


# ---- past the paper ---------------------------------------------------------------------------------------

ASKS = 16


class Case(NamedTuple):
    """A cell of the table past the paper, and the τs at which it is judged; None stands for match accuracy."""

    embedding: str
    size: tuple[int, int]
    samples: int
    taus: tuple[float | None, ...] = (None,)
    epochs: int = 10
    tuned: bool = True
    """False if the case was chosen before anything was run on it."""


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


def beyond(samples: Sequence[int] = (SMALL, LARGE)) -> Iterator[Wanted]:
    """`auto` beside aux and sparse, each at its best, at equal samples and equal steps.

    In cases that nothing was tuned on, aux also has the 24 runs of the paper's search.
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


# ---- all of them ------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Recipe:
    """The runs of an item, and which of its choices may be overridden."""

    wants: Callable[..., Iterator[Wanted]]
    seeds: int | None = None
    """Seeds per cell, if they do not depend on its samples as in :data:`SEEDS`."""
    presets: bool = True
    """False if the item is the same in every preset."""
    samples: bool = True
    """False if the number of samples cannot be chosen."""
    shown: tuple[int, ...] = ()
    """The numbers of samples in its table, if they are not those it is run with by default."""
    varied: tuple[str, ...] = ()
    """Settings that the item varies itself, so that no preset may change them."""

    def __call__(self, preset: str, samples: Sequence[int] = ()) -> Iterator[Wanted]:
        """What the item compares in a preset, at these numbers of samples or else its own."""
        require(self.samples or not samples, "It has no other number of samples than its own: leave out --samples.")
        sizes = {"samples": samples} if samples else {}
        return self.wants(preset, **sizes) if self.presets else self.wants(**sizes)


RECIPES = {
    "table1a": Recipe(partial(table1, embedding="token")),
    "table1b": Recipe(partial(table1, embedding="angular")),
    "configs": Recipe(configs, varied=("norm", "bias", "dropout")),
    "table3": Recipe(table3, seeds=1, shown=(SMALL, LARGE)),
    "redbox": Recipe(partial(grid, sizes={"angular": [(64, 433)]}), seeds=1),
    "grid": Recipe(grid, seeds=1),
    "table2": Recipe(table2),
    "curves": Recipe(curves),
    "headline": Recipe(headline, seeds=3, presets=False, samples=False),
    "harder": Recipe(harder, seeds=3, presets=False, samples=False),
    "fewer": Recipe(fewer, seeds=3, presets=False, samples=False),
    "beyond": Recipe(beyond, seeds=3, presets=False),
    "setup": Recipe(setup, seeds=1, presets=False),
    "knobs": Recipe(knobs, presets=False),
    "finalists": Recipe(finalists, seeds=1, presets=False),
    "longer": Recipe(longer, seeds=1, presets=False),
    "starts": Recipe(starts, seeds=1, presets=False),
}
"""The recipes by name, in the order in which to run them."""


def differs_by_preset(item: str) -> bool:
    """Whether an item's runs depend on the preset; False for an item without runs."""
    return item in RECIPES and RECIPES[item].presets


def check_changes(item: str, changes: Iterable[str]) -> None:
    """Refuse a preset's change that does not affect the item, or that the item (for `all`, any item) varies itself."""
    for setting in changes:
        same = f"--preset changes {setting!r}, but {item} is the same in every preset: leave it out."
        require(item == "all" or differs_by_preset(item), same)
        for name in RECIPES if item == "all" else [item]:
            varies = f"--preset changes {setting!r}, which {name} varies itself: leave it out."
            require(setting not in RECIPES[name].varied, varies)


def at_samples(items: Iterable[str], samples: Sequence[int]) -> list[str]:
    """The items that can have these numbers of samples, or all if none are given; refuse if no item can."""
    names = list(items)
    able = [name for name in names if not samples or (name in RECIPES and RECIPES[name].samples)]
    require(bool(able), f"{', '.join(names)} has no other number of samples than its own: leave out --samples.")
    return able


def cells(
    item: str,
    presets: Sequence[str] = ("paper", "best"),
    *,
    seeds: int | None = None,
    samples: Sequence[int] = (),
    keep: Callable[[Facts], bool] = lambda _: True,
) -> list[RunConfig]:
    """The runs that a table or figure needs, each once, the most telling first.

    Each cell has ``seeds`` runs, unless its own number is fixed; by default the recipe's number, or else that of
    :data:`SEEDS`. Only cells whose facts pass ``keep`` are included. ``samples`` replaces the item's own numbers.
    """
    require(item in RECIPES, f"There are no runs for {item!r}; choose one of {', '.join(RECIPES)}.")
    recipe = RECIPES[item]
    asked = [want for preset in presets for want in recipe(preset, samples) if keep(want.facts)]
    fixed = {want.run: want.seeds for want in reversed(asked)}
    runs = sorted(dict.fromkeys(want.run for want in asked), key=_turn if item == "table2" else _samples)
    return [
        dataclasses.replace(run, seed=seed) if seed else run
        for run in runs
        for seed in range(fixed[run] or seeds or recipe.seeds or SEEDS.get(_samples(run), 1))
    ]


def _samples(run: RunConfig) -> int:
    return run.training.samples


def _turn(run: RunConfig) -> tuple[int, int]:
    """The order of Table 2: at 1M large N tells most, so it comes first; at 10M only small N may be affordable."""
    return _samples(run), run.problem.n if _samples(run) > LARGE else -run.problem.n
