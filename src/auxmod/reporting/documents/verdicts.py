"""Blocks about the paper's claims of what is learned, one by one, beside what our runs say.

A claim's verdict is the share of cells, or of groups of cells, that support it. Claims that compare the methods, or
are about the baseline, are checked in two presets, because a setup that suits one method may break the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from auxmod.config import TAUS
from auxmod.experiments.recipes import SEARCHED
from auxmod.experiments.wants import LARGE, SMALL
from auxmod.problem.theory import BOX, in_box, rho, rho_exact
from auxmod.reporting import results, tables
from auxmod.reporting.cells import LEVEL, NEAR, Cell, by_facts, side
from auxmod.reporting.documents import pairs
from auxmod.reporting.documents.blocks import ends, known
from auxmod.reporting.documents.table1 import PRESETS, Case, cases
from auxmod.reporting.render import amount, markdown_table

MOSTLY = 0.75
HIGH, UNSTABLE = 90.0, 50.0
"""The least accuracy that counts as high; and the least range, in points, that makes a method unstable."""
SIZES = (SMALL, LARGE)


class Claim(NamedTuple):
    """What the paper says, what our runs say, and the command that shows it."""

    where: str
    says: str
    here: str
    cells: Sequence[bool]
    """For each cell or group of cells that was run, whether it supports the claim."""
    command: str

    @property
    def verdict(self) -> str:
        """The verdict, by the share of cells that support the claim."""
        if not self.cells:
            return "not run"
        share = sum(self.cells) / len(self.cells)
        return "holds" if share == 1 else "mostly" if share >= MOSTLY else "in part" if share else "does not hold"

    def __str__(self) -> str:
        """**mostly** (27 of 36)"""
        return f"**{self.verdict}**" + (f" ({sum(self.cells)} of {len(self.cells)})" if self.cells else "")


COUNTED = (
    "A verdict counts the cells that support a claim, or groups of cells where a claim is about several at once "
    "(Table 6, “collapses”): all, it *holds*; at least three quarters, *mostly*; fewer, *in part*; none, it *does not "
    "hold*. Cells of both presets count together, except that the figures of Table 1 and the pairs (K, r) count those "
    "of `paper` alone, and Section 6 those of `best`."
)


def verdicts(place: Path) -> str:
    """A row for each claim."""
    rows = [(c.where, c.says, c.here, str(c), c.command) for c in _claims(place)]
    heads = ("where", "the paper says", "our runs", "verdict", "shown by")
    note = (
        f"{COUNTED} *Near* is within {NEAR:g} points; *level* within {LEVEL:g} point, or within "
        "the spread of a method's own seeds where that is wider. Match accuracy, unless a τ is named. 100K samples: "
        "three seeds, over (K, r) one; 1M: one. `paper` was itself chosen for its nearness to the figures of Table 1."
    )
    return f"{markdown_table(heads, rows, len(heads))}\n\n{note}"


def in_short(place: Path) -> str:
    """Each claim with its verdict alone."""
    heads, rows = ("the paper", "in our runs"), [(f"{c.where}: {c.says}", str(c)) for c in _claims(place)]
    return f"{markdown_table(heads, rows, len(heads))}\n\n{COUNTED}"


def _claims(place: Path) -> list[Claim]:
    stored = results.read(place)
    both = {samples: list(cases(stored, samples)) for samples in SIZES}
    return [
        *_figures(both),
        *_comparisons(both),
        *_baseline(both),
        *_large_moduli(stored),
        *_configurations(stored),
        *_grids(stored),
    ]


# ---- counting ---------------------------------------------------------------------------------------------


def _sides(two: Iterable[tuple[Cell, Cell]]) -> list[int]:
    """Whether the first of each two is ahead (1), level (0) or behind (−1), where both were run."""
    return [found for each in two if (found := side(*each)) is not None]


def _counted(sides: Sequence[int]) -> str:
    ahead, level, behind = (sides.count(each) for each in (1, 0, -1))
    return f"ahead in {ahead} of {len(sides)}, level in {level}, behind in {behind}"


def _learned(cells: Iterable[Cell]) -> list[bool]:
    """Whether each cell that was run is above chance."""
    return [cell.ours > (cell.chance or 0.0) + LEVEL for cell in cells if cell.ours is not None]


def _table(item: str, preset: str = "", samples: int | None = None, more: str = "") -> str:
    """The command that shows a table."""
    asked = [("--preset", preset), ("--samples", amount(samples) if samples else "")]
    words = ["auxmod table", item, *(f"{name} {value}" for name, value in asked if value), more]
    return f"`{' '.join(filter(None, words))}`"


# ---- Table 1 ----------------------------------------------------------------------------------------------

Both = dict[int, list[Case]]
"""All 18 cases, by number of samples."""


def _figures(both: Both) -> Iterator[Claim]:
    """Whether Table 1's figures come out again, in the setup that explains most of them."""
    for method, whose in (("aux", "its own method"), ("sparse", "the baseline")):
        counts, near = [], list[bool]()
        for samples, every in both.items():
            run = [case.cells[method, "paper"] for case in every if case.cells[method, "paper"].difference is not None]
            own = [cell.beside_paper() == 0 for cell in run]
            guessed = sum((cell.paper or 0.0) <= (cell.chance or 0.0) + LEVEL for cell in run)
            chance = f" (the paper's is at chance in {guessed})" if guessed else ""
            counts.append(f"{sum(own)} of {len(own)} with {amount(samples)} samples{chance}")
            near += own
        here = f"in `paper`, `{method}` is near in {' and '.join(counts)}"
        yield Claim("Table 1", f"the figures of {whose}", here, near, f"{_table('table1a', 'paper')}, and `table1b`")


def _comparisons(both: Both) -> Iterator[Claim]:
    """`aux` beside `sparse` in the same preset, at equal samples and with a tenth of them."""
    for samples, every in both.items():
        sides = {p: _sides((case.cells["aux", p], case.cells["sparse", p]) for case in every) for p in PRESETS}
        here = "; ".join(f"in `{preset}` {_counted(own)}" for preset, own in sides.items())
        says = "its method “consistently outperforms the baseline across all configurations”"
        ahead = [each == 1 for own in sides.values() for each in own]
        command = f"{_table('table1a', samples=samples)}, and `table1b`"
        yield Claim("Section 5.2", f"{says} ({amount(samples)} samples)", here, ahead, command)
    halves: dict[str, list[tuple[Cell, Cell]]] = {}
    for few, many in zip(both[SMALL], both[LARGE], strict=True):
        halves.setdefault(few.embedding, []).append((few.cells["aux", "best"], many.cells["sparse", "best"]))
    sides = {embedding: _sides(pairs) for embedding, pairs in halves.items()}
    here = "; ".join(f"{embedding} {_counted(own)}" for embedding, own in sides.items())
    yield Claim(
        "Section 6",
        "its method is “equal or superior” from a tenth of the samples",
        f"in `best`, 100K beside 1M (and a tenth of the steps): {here}",
        [each >= 0 for own in sides.values() for each in own],
        f"{_table('table1a', 'best')}, and `table1b`",
    )


def _baseline(both: Both) -> Iterator[Claim]:
    """What the paper says that the baseline cannot learn."""
    told, fails = [], list[bool]()
    for preset in PRESETS:
        cells = [case.cells["sparse", preset] for case in both[SMALL] if case.embedding == "token"]
        learned = _learned(cells)
        above = [cell for cell, each in zip([c for c in cells if c.ours is not None], learned, strict=True) if each]
        which = f" ({', '.join(f'{ours:.1f}' for ours in known(above))} %)" if above else ""
        told.append(f"in `{preset}` it learns {sum(learned)} of {len(learned)}{which}")
        fails += [not each for each in learned]
    says = "with tokens the baseline “completely fails to learn with 100K samples”"
    yield Claim("Section 5.2", says, "; ".join(told), fails, _table("table1a", samples=SMALL))
    told, fell = [], list[bool]()
    for preset in PRESETS:
        long = [case for case in both[LARGE] if (case.embedding, case.size[1]) == ("token", 31)]
        first, *_, last = (case.cells["sparse", preset] for case in long)
        if first.ours is not None and last.ours is not None:
            told.append(f"in `{preset}` {first.ours:.1f} and {last.ours:.1f} %")
            fell.append(first.ours - last.ours > NEAR)
    says = f"the baseline “collapses” from {first.paper} % at N = 8 to {last.paper} % at N = 32"
    command = _table("table1a", samples=LARGE)
    yield Claim("Section 5.2", f"{says} (tokens, q = 31, 1M samples)", "; ".join(told) or "not run", fell, command)


# ---- Table 2, Table 6 and the heatmaps --------------------------------------------------------------------


def _large_moduli(stored: results.Index) -> Iterator[Claim]:
    """Table 2 with 1M samples, at the paper's τ and at a smaller one."""
    paper, closer = 0.05, TAUS[0]
    told, fails, longest, ahead = [], list[bool](), [], list[bool]()
    for preset in PRESETS:
        by_tau = {}
        for tau in (paper, closer):
            groups = by_facts(tables.build("table2", preset, stored, [LARGE], taus=[tau]).cells, ("n", "q"))
            by_tau[tau] = [{cell.facts["method"]: cell for cell in cells} for cells in groups.values()]
        baseline = [own["sparse"] for own in by_tau[paper] if own["sparse"].facts["n"] == 128]
        longest.append(f"in `{preset}` {ends(baseline)}")
        fails += [not each for each in _learned(baseline)]
        sides, close = (_sides((own["aux"], own["sparse"]) for own in every) for every in by_tau.values())
        told.append(f"in `{preset}` {_counted(sides)} (at our own τ = {closer:g} {_counted(close)})")
        ahead += [each == 1 for each in sides]
    command = _table("table2", samples=LARGE, more=f"--tau {closer:g},{paper:g}")
    says = f"at N = 128 the baseline shows “almost no improvement” (1M samples, τ = {paper:g})"
    yield Claim("Section 5.2", says, f"{'; '.join(longest)} (chance {baseline[0].chance:.0f})", fails, command)
    says = f"its method “consistently achieves higher τ-accuracy” (1M samples, τ = {paper:g})"
    yield Claim("Section 5.2", says, "; ".join(told), ahead, command)


def _configurations(stored: results.Index) -> Iterator[Claim]:
    """Whether the architecture matters, without and with dropout, in each preset."""
    groups = {
        preset: by_facts(tables.build("configs", preset, stored).cells, ("method", "dropout")) for preset in PRESETS
    }
    said = {
        "aux": "its method “consistently achieves high match accuracy regardless of the architecture”",
        "sparse": "the baseline “suffers from severe instability”",
    }
    for method, says in said.items():
        parts = {preset: [own[method, dropout] for dropout in (0.0, 0.1)] for preset, own in groups.items()}
        here = "; ".join(
            f"in `{preset}` {ends(dry)} without dropout, {ends(wet)} with" for preset, (dry, wet) in parts.items()
        )
        every = [ours for pair in parts.values() for cells in pair if (ours := known(cells))]
        holds = [min(o) >= HIGH if method == "aux" else max(o) - min(o) >= UNSTABLE for o in every]
        yield Claim("Table 6", says, f"`{method}`, 16 configurations: {here}", holds, _table("configs"))


def _grids(stored: results.Index) -> Iterator[Claim]:
    """What the paper says of the 24 pairs (K, r), at 100K samples."""
    spread = by_facts(tables.build("table3", "paper", stored, [SMALL]).cells, ("embedding", "n", "q"))
    found = [{cell.facts["statistic"]: cell for cell in cells} for cells in spread.values()]
    ours = [(own["min"].ours, own["sparse"].ours) for own in found]
    above = [least - base > NEAR for least, base in ours if least is not None and base is not None]
    guessed = _learned([own["min"] for own in found]).count(False)
    says = "even the worst of the pairs (K, r) is a “clear improvement over the baseline” (1M samples; ours 100K)"
    here = (
        f"in `paper` by more than {NEAR:g} points in {sum(above)} of {len(above)} settings; the worst is at chance in "
        f"{guessed}"
    )
    yield Claim("Section 5.3", says, here, above, _table("table3", "paper", SMALL))
    within = {setting: pairs.searched(grid) for setting, grid in pairs.grids("paper", stored).items()}
    learned = {setting: pairs.figures(grid) for setting, grid in within.items() if True in _learned(grid.values())}
    best = {setting: pairs.best(figures) for setting, figures in learned.items()}
    near = [in_box(rho(*_moduli(pair))) for pair in best.values()]
    exact = sum(in_box(rho_exact(n, q, *_moduli(pair)) or 0.0) for (_, n, q), pair in best.items())
    tried = sum(in_box(rho(*_moduli(pair))) for pair in SEARCHED)
    least = sum(k == pairs.LEAST for k, _ in best.values())
    here = (
        f"in `paper`, of {len(best)} settings that are learned from 100K samples, the best pair of the paper's search "
        f"has |ρ − 1| ≤ {BOX:g} in {sum(near)} (by exact wraps in {exact}), as {tried} of its {len(SEARCHED)} pairs "
        f"have, and its least K, {pairs.LEAST}, in {least}"
    )
    command = f"{_table('grid', 'paper')}, {_table('rho')}"
    yield Claim("Section 4.2", "“ρ ≈ 1 for the combination of K and r that perform well”", here, near, command)


def _moduli(pair: pairs.Pair) -> tuple[tuple[int, int], tuple[float, float]]:
    """The moduli of a pair (K, r), and their weights."""
    k, r = pair
    return (1, k), (1 - r, r)
