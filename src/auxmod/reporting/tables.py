"""The paper's tables beside our results: the paper's value, ours over seeds, chance, and the difference.

A cell that was not run has no figure of ours; nothing else ever fills it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from auxmod import settings
from auxmod.checked import OF_LINEAR
from auxmod.config import TAUS, RunConfig
from auxmod.errors import require
from auxmod.experiments import recipes, wants
from auxmod.experiments.presets import with_preset
from auxmod.experiments.recipes import RECIPES, at_samples, differs_by_preset
from auxmod.experiments.wants import Facts, Wanted
from auxmod.problem import theory
from auxmod.reporting import published, results
from auxmod.reporting.cells import NAMES, NEAR, SHAPES, Cell, Table, by_facts, grouped, values
from auxmod.reporting.render import amount
from auxmod.settings import flatten

SHOWN = ("pooling", "final_norm", "init", "clip", "optimiser", "lr")
"""Settings that the paper leaves open or that a preset changes. A table's notes list those that its runs share."""
CONFIGURATIONS = ("configs", "starts")
"""Items over the paper's 16 configurations, compared with its Table 6."""
Keep = Callable[[Facts], bool]


def build(
    item: str,
    preset: str,
    stored: results.Index,
    samples: Sequence[int] = (),
    keep: Keep = lambda _: True,
    *,
    taus: Sequence[float] = (),
) -> Table:
    """Build a table from stored results, with the cells whose facts ``keep`` accepts.

    ``samples`` and ``taus`` replace the paper's numbers of training samples and its τ. Only Table 2 takes ``taus``, and
    only from `TAUS`: results have no other τ-accuracies.
    """
    require(item in SHAPES, f"There is no table {item!r}; choose one of {', '.join(SHAPES)}, all.")
    require(
        not taus or item == "table2", "--tau is for table2 alone, which is made of accuracies within τ: leave it out."
    )
    kept = ", ".join(map(str, TAUS))
    require(set(taus) <= set(TAUS), f"Results have accuracies within these τ alone: --tau one or more of {kept}.")
    if item in ("gap", "rho"):
        made = _gap() if item == "gap" else _rho()
        return replace(made, cells=[cell for cell in made.cells if keep(cell.facts)])
    return _of_runs(item, preset, stored, samples, keep, taus)


def tables(
    item: str,
    presets: Sequence[str],
    stored: results.Index,
    samples: Sequence[int] = (),
    keep: Keep = lambda _: True,
    *,
    taus: Sequence[float] = (),
) -> list[Table]:
    """An item's table in each preset, or every item's. Items that are the same in every preset come once."""
    return [
        build(name, preset, stored, samples, keep, taus=taus)
        for name in at_samples(SHAPES if item == "all" else (item,), samples)
        for preset in (presets if differs_by_preset(name) else presets[:1])
    ]


# ---- tables of runs ---------------------------------------------------------------------------------------


def _of_runs(
    item: str, preset: str, stored: results.Index, samples: Sequence[int], keep: Keep, taus: Sequence[float]
) -> Table:
    recipe = RECIPES[item]
    shape, down, asked = SHAPES[item], SHAPES[item].down, list(recipe(preset, samples or recipe.shown))
    kept = [want for want in asked if keep(want.facts)]  # Table 3 takes all: a gain needs two methods
    made = _spreads(asked, stored) if item == "table3" else _cells(item, kept, stored, taus)
    cells = [cell for cell in made if keep(cell.facts)]
    if shape.across == "k":
        embeddings, names = list(wants.SIZES), ("n", "q", "r", "k")
        cells.sort(key=lambda c: (c.facts["samples"], embeddings.index(c.facts["embedding"]), *values(c, *names)))
    counts = {cell.facts["samples"] for cell in cells}
    if "samples" not in down and len(counts) > 1:
        down = ("samples", *down)
    of = f", {amount(*counts)} samples" if "samples" not in down and counts else ""
    notes = [*_notes(kept, cells, shape.across), *(_renamed(cells) if item == "configs" else ())]
    own, sizes = preset if differs_by_preset(item) else None, samples or recipe.shown
    command = f"auxmod reproduce {item}{f' --preset {own}' if own else ''}"
    command += f" --samples {','.join(map(amount, sizes))}" if sizes else ""
    first = results.first_seeds(stored)  # all that is shown of pairs (K, r) that are compared
    indices = ((want, first if item == "table3" or want.variant == "searched" else stored) for want in kept)
    made_on = results.made_on(row for want, index in indices for row in results.find(index, want.run))
    notes = notes if own else notes[:1]  # without a preset its runs have no common setup to describe
    return Table(item=item, preset=own, of=of, down=down, cells=cells, notes=notes, made=made_on, command=command)


def _cells(item: str, asked: Iterable[Wanted], stored: results.Index, taus: Sequence[float] = ()) -> Iterator[Cell]:
    searched, down = list[Cell](), SHAPES[item].down
    first = results.first_seeds(stored)
    for want, tau, asks in _questions(item, asked, taus):
        facts = _facts(item, want) | {"metric": "match" if tau is None else "tau", "tau": tau}
        if "asks" in down:
            facts["asks"] = asks
        if want.variant == "searched":
            searched.append(_cell(facts, None, first, want.run, tau, asks))
        else:
            yield _cell(facts, _paper(item, facts, tau) if asks == 1 else None, stored, want.run, tau, asks)
    for cells in by_facts(searched, down).values():
        yield _best(cells)


def _best(cells: Sequence[Cell]) -> Cell:
    """The best cell of a grid by test accuracy, which flatters it; without a figure if part of the grid is missing."""
    if any(cell.ours is None for cell in cells):
        return replace(cells[0], ours=None, count=0, failed=sum(cell.failed for cell in cells))
    return replace(max(reversed(cells), key=lambda cell: cell.ours or 0.0), count=len(cells))


def _questions(item: str, asked: Iterable[Wanted], taus: Sequence[float]) -> list[tuple[Wanted, float | None, int]]:
    """Each run with the accuracy to look up: match (None) or a τ, asked once or often with the answers averaged."""
    once: dict[Any, Wanted] = {}  # if a preset already draws `expected`, that column would repeat aux
    for want in asked:
        once.setdefault((want.run, want.variant == "searched"), want)
    if item == "table2":
        return [(want, tau, 1) for tau in sorted(set(taus) or published.TAUS) for want in once.values()]
    if item == "beyond":
        own = {(case.embedding, case.size, case.samples): case.taus for case in recipes.CASES}
        return [
            (want, tau, asks) for want in once.values() for tau in own[_case(want.run)] for asks in (1, recipes.ASKS)
        ]
    return [(want, None, 1) for want in once.values()]


def _case(run: RunConfig) -> tuple[str, tuple[int, int], int]:
    return run.model.embedding, (run.problem.n, run.problem.q), run.training.samples


def _facts(item: str, want: Wanted) -> Facts:
    """The facts that name a cell and its row. A configuration's include all its switches."""
    names = (*(recipes.SWITCHES if item in CONFIGURATIONS else ()), *SHAPES[item].down)
    own = flatten(want.run) | {"setup": want.preset, "steps": want.run.training.steps}
    if "changed" in names:
        own["changed"] = _departure(want.run)
    return want.facts | {name: own[name] for name in names if name in own}


def _paper(item: str, facts: Facts, tau: float | None) -> float | None:
    """The paper's figure for a cell, if any. Items that are not its tables are compared with its Tables 1 and 2."""
    if item in CONFIGURATIONS:
        return _of_configuration(facts)
    if SHAPES[item].across == "k":
        return None
    table = published.HALVES[facts["embedding"]] if tau is None else "table2"
    names = ("embedding", "n", "q", "samples", "method")
    return published.find(table, tau=tau, **{name: facts[name] for name in names})


def exchanged(cells: Iterable[Cell], switch: str) -> list[Cell]:
    """Configurations beside the paper's figures for the other value of a switch, as if it had swapped the two names."""
    return [replace(cell, paper=_of_configuration(cell.facts, switch)) for cell in cells]


def _of_configuration(facts: Facts, other: str = "") -> float | None:
    """The paper's figure for one of its 16 configurations, or for the one that differs in the switch ``other``."""
    row = {name: facts[name] for name in ("samples", "method", *recipes.SWITCHES)}
    row["init"] = row["init"].removeprefix(OF_LINEAR)
    if other:
        (row[other],) = (value for value in recipes.SWITCHES[other] if value != row[other])
    return published.find("configs", **row)


def _departure(run: RunConfig) -> str:
    """Where a run departs from the preset `stated`: the paper's values, and our defaults for what it leaves open."""
    given = {"n": run.problem.n, "q": run.problem.q, "embedding": run.model.embedding, "method": run.method.method}
    own, base = flatten(run), flatten(settings.build(**with_preset("stated", given)))
    changed = {name for name in own if own[name] != base[name]} - {"test_samples", "seed", "samples", "moduli"}
    words = [f"r {run.method.r:g}" if name == "weights" else f"{name} {own[name]}" for name in sorted(changed)]
    return ", ".join(words) or "nothing"


def _cell(
    facts: Facts, paper: float | None, stored: results.Index, run: RunConfig, tau: float | None = None, asks: int = 1
) -> Cell:
    found, chance = results.collect(stored, run, tau, asks), results.chance(run, tau)
    if found is None:
        return Cell(facts=facts, paper=paper, chance=chance)
    figures: Facts = {"ours": found.mean, "std": found.std, "count": found.count, "failed": found.failed}
    return Cell(facts=facts, paper=paper, chance=chance, **figures)


def _notes(asked: Sequence[Wanted], cells: Sequence[Cell], across: str) -> Iterator[str]:
    done = sum(cell.ours is not None for cell in cells)
    over = {"statistic": "the first seed; over the pairs (K, r)", "k": "mean over seeds"}
    yield f"{done} of {len(cells)} cells run. Ours: {over.get(across, 'mean ± standard deviation (seeds)')}."
    yield from _settings(asked)
    compared = [cell for cell in cells if cell.difference is not None and cell.facts["metric"] != "gain"]
    for (method, samples), group in by_facts(compared, ("method", "samples")).items():
        near, below = sum(c.beside_paper() == 0 for c in group), sum((c.difference or 0.0) < -1 for c in group)
        yield (
            f"{NAMES[method]} with {samples:,} samples: {near} of {len(group)} within {NEAR:g} points of the paper's, "
            f"{below} more than 1 point below it."
        )


def _renamed(cells: Sequence[Cell]) -> Iterator[str]:
    """How near the 16 configurations come if the paper swapped its two names for initial weights."""
    compared = [cell for cell in exchanged(cells, "init") if cell.difference is not None]
    for (method,), group in by_facts(compared, ["method"]).items():
        near = sum(cell.beside_paper() == 0 for cell in group)
        yield (
            f"{NAMES[method]}, if the paper's two names of initial weights are taken for each other: {near} of "
            f"{len(group)} within {NEAR:g} points."
        )


def _settings(asked: Sequence[Wanted]) -> Iterator[str]:
    """The settings of `SHOWN` that the runs share, by method, and by embedding if there are two."""
    firsts: dict[RunConfig, Wanted] = {}
    for want in asked:
        firsts.setdefault(want.run, want)
    groups = grouped(firsts.values(), lambda want: (want.variant, want.run.model.embedding))
    several = len({embedding for _, embedding in groups}) > 1
    for (variant, embedding), group in groups.items():
        runs = [flatten(want.run) for want in group]
        own = runs[0]
        names = [*SHOWN, *(["draw"] if len(own["moduli"]) > 1 else []), *(n for n in ("alpha", "lift") if own[n])]
        shared = [name for name in names if len({run[name] for run in runs}) == 1]
        whose = f"{NAMES[variant]}, {embedding}" if several else NAMES[variant]
        yield f"{whose}: " + ", ".join(f"{name} {own[name]}" for name in shared)


# ---- Table 3 ----------------------------------------------------------------------------------------------


def _spreads(asked: Iterable[Wanted], stored: results.Index) -> Iterator[Cell]:
    names, first = SHAPES["table3"].down, results.first_seeds(stored)
    for key, group in grouped(asked, lambda want: tuple(want.facts[name] for name in names)).items():
        yield from _spread(dict(zip(names, key, strict=True)), group, first)


def _spread(setting: Facts, group: Sequence[Wanted], first: results.Index) -> Iterator[Cell]:
    """The baseline; the least, mean and greatest accuracy over all pairs; and the mean's gain over the baseline.

    All use the first seed. The spread of an incomplete grid would mislead, so it counts as not run, or as failed if
    one of its pairs failed.
    """
    (baseline,) = (want.run for want in group if want.variant == "sparse")
    facts = setting | {"method": "sparse", "metric": "match"}
    base = _cell(facts | {"statistic": "sparse"}, _of_table3(facts), first, baseline)
    yield base
    pairs = [results.collect(first, want.run) for want in group if want.variant == "aux"]
    means = [found.mean for found in pairs if found and found.mean is not None]
    failed = sum(found.failed for found in pairs if found)
    figures: dict[str, float | None] = dict.fromkeys(("min", "mean", "max", "gain"))
    if len(means) == len(pairs):
        figures |= {"min": min(means), "mean": statistics.fmean(means), "max": max(means)}
        figures["gain"] = None if base.ours is None else statistics.fmean(means) - base.ours
    for name, ours in figures.items():
        gain = name == "gain"
        facts = setting | {"method": "aux", "metric": "gain" if gain else "match"}
        paper = _of_table3(facts, None if gain else name)
        told: Facts = {"ours": ours, "count": len(means), "failed": failed, "chance": None if gain else base.chance}
        yield Cell(facts=facts | {"statistic": name}, paper=paper, **told)


def _of_table3(facts: Facts, statistic: str | None = None) -> float | None:
    """The paper's figure: at 1M from Table 3; at 100K from Table 1, whose aux is the greatest over the pairs."""
    if facts["samples"] == wants.SMALL and (facts["method"] == "sparse" or statistic == "max"):
        return _paper("table3", facts, None)
    return published.find("table3", **facts, statistic=statistic)


# ---- tables of theory -------------------------------------------------------------------------------------


def _gap() -> Table:
    cells = [
        Cell(facts={"n": n, "q": q, "metric": "bound"}, paper=value, ours=theory.gap_bound(n, q))
        for n, line in published.GAP.items()
        for q, value in line.items()
    ]
    return Table(item="gap", preset=None, down=SHAPES["gap"].down, cells=cells)


def _rho() -> Table:
    pairs = sorted(recipes.HEATMAP, key=lambda pair: (pair[1], pair[0]))
    cells = [Cell(facts={"k": k, "r": r, "metric": "rho"}, ours=theory.rho((1, k), (1 - r, r))) for k, r in pairs]
    return Table(item="rho", preset=None, down=SHAPES["rho"].down, cells=cells)
