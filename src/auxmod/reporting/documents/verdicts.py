"""The paper's claims of what is learned, one by one, beside what our runs say: a block that is made from results/.

Each claim counts cells for it and against it, and its verdict follows from the counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from auxmod.config import TAUS
from auxmod.experiments.wants import LARGE, SMALL
from auxmod.problem.theory import rho
from auxmod.reporting import results, tables
from auxmod.reporting.cells import LEVEL, NEAR, Cell, by_facts, side, values
from auxmod.reporting.documents.table1 import Case, cases
from auxmod.reporting.render import amount, markdown_table

Verdict = Literal["holds", "in part", "does not hold", "not run"]
BOX = 0.2
"""The paper's red box is of pairs with ρ so near to 1."""
HIGH = 90.0


class Claim(NamedTuple):
    """What the paper says, what our runs say, and the command that shows it."""

    where: str
    says: str
    here: str
    verdict: Verdict
    command: str
    too: str = ""
    """Another item, which the same command shows."""


def verdicts(place: Path) -> str:
    """A row for each claim."""
    stored = results.read(place)
    both = {SMALL: list(cases(stored)), LARGE: list(cases(stored, LARGE))}
    claims = [
        *_figures(both),
        *_comparisons(both),
        *_baseline(both),
        *_large_moduli(stored),
        *_configurations(stored),
        *_grids(stored),
    ]
    rows = [(c.where, c.says, c.here, f"**{c.verdict}**", _shown(c)) for c in claims]
    heads = ("where", "the paper says", "our runs", "verdict", "shown by")
    note = (
        f"*Near* is within {NEAR:g} points. *Level* is within {LEVEL:g} point, or within the spread of a method's own "
        "seeds where that is wider. “Outperforms” is taken to hold where `aux` is nowhere behind, and ahead in half or "
        "more. Match accuracy, unless a τ is named. 100K samples: three seeds, over (K, r) one; 1M: one."
    )
    return f"{markdown_table(heads, rows, len(heads))}\n\n{note}"


def _shown(claim: Claim) -> str:
    return f"`auxmod {claim.command}`" + (f", and `{claim.too}`" if claim.too else "")


# ---- counting ---------------------------------------------------------------------------------------------


def _all(cells: Sequence[bool]) -> Verdict:
    """Of something said of every cell."""
    return "not run" if not cells else "holds" if all(cells) else "in part" if any(cells) else "does not hold"


def _won(pairs: Iterable[tuple[Cell, Cell]]) -> tuple[str, Verdict]:
    """How often the first of two is ahead, and whether it outperforms the other."""
    sides = [found for pair in pairs if (found := side(*pair)) is not None]
    ahead, level, behind = (sides.count(each) for each in (1, 0, -1))
    here = f"ahead in {ahead} of {len(sides)}, level in {level}, behind in {behind}"
    return here, "holds" if ahead and not behind and ahead >= level else _all([each == 1 for each in sides])


def _known(cells: Iterable[Cell]) -> list[float]:
    return [cell.ours for cell in cells if cell.ours is not None]


def _range(cells: Iterable[Cell]) -> str:
    """96.1 to 97.3 %"""
    ours = _known(cells)
    return f"{min(ours):.1f} to {max(ours):.1f} %" if ours else "not run"


def _learned(cells: Iterable[Cell]) -> list[bool]:
    """Of those that were run, whether each is above chance."""
    return [cell.ours > (cell.chance or 0.0) + LEVEL for cell in cells if cell.ours is not None]


# ---- Table 1 ----------------------------------------------------------------------------------------------

Both = dict[int, list[Case]]
"""All 18 cells, by the number of samples."""


def _figures(both: Both) -> Iterator[Claim]:
    """Whether its figures come again, in the setup that explains most of them."""
    for method, whose in (("aux", "its own method"), ("sparse", "the baseline")):
        near = {
            samples: [gap == 0 for case in every if (gap := case.cells[method, "paper"].beside_paper()) is not None]
            for samples, every in both.items()
        }
        counts = (f"{sum(own)} of {len(own)} at {amount(samples)}" for samples, own in near.items())
        here = f"`{method}` is near in {' and '.join(counts)} samples, in the preset `paper`"
        verdict = _all([each for own in near.values() for each in own])
        yield Claim("Table 1", f"the figures of {whose}", here, verdict, "table table1a --preset paper", "table1b")


def _comparisons(both: Both) -> Iterator[Claim]:
    """`aux` beside `sparse`, each at its best, at equal samples and at a tenth of them."""
    best, command = "each at its best, `aux` is", "table table1a --preset best"
    for samples, every in both.items():
        here, verdict = _won((case.cells["aux", "best"], case.cells["sparse", "best"]) for case in every)
        says = f"its method “consistently outperforms the baseline” ({amount(samples)} samples)"
        shown = f"{command} --samples {amount(samples)}"
        yield Claim("Section 5.2", says, f"{best} {here}", verdict, shown, "table1b")
    pairs = zip(both[SMALL], both[LARGE], strict=True)
    here, verdict = _won((few.cells["aux", "best"], many.cells["sparse", "best"]) for few, many in pairs)
    tenth = "its method is “equal or superior” with a tenth of the samples"
    told = f"{best} {here}, with 100K samples beside 1M (and a tenth of the steps)"
    yield Claim("Section 6", tenth, told, verdict, command, "table1b")


def _baseline(both: Both) -> Iterator[Claim]:
    """What it says that the baseline cannot learn."""
    command = "table table1a --preset best"
    tokens = [case.cells["sparse", "best"] for case in both[SMALL] if case.embedding == "token"]
    learned = _learned(tokens)
    says = "with tokens the baseline “completely fails to learn with 100K”"
    here = f"at its best it learns {sum(learned)} of {len(learned)}: {_range(tokens)}"
    verdict = _all([not each for each in learned])
    yield Claim("Section 5.2", says, here, verdict, f"{command} --samples 100K")
    ends = [case.cells["sparse", "best"] for case in both[LARGE] if (case.embedding, case.size[1]) == ("token", 31)]
    first, *_, last = ends
    says = f"the baseline “collapses” from {first.paper} % at N = 8 to {last.paper} % at N = 32 (q = 31, 1M)"
    fell = [] if first.ours is None or last.ours is None else [first.ours - last.ours > NEAR]
    yield Claim("Section 5.2", says, f"at its best {_range(ends)} there", _all(fell), f"{command} --samples 1M")


# ---- Table 2, Table 6 and the heatmaps --------------------------------------------------------------------


def _large_moduli(stored: results.Index) -> Iterator[Claim]:
    """Table 2 with 1M samples, each method at its best: within the paper's τ, and closer."""
    paper, closer = 0.05, TAUS[0]
    for tau in (paper, closer):
        command = f"table table2 --preset best --samples 1M --tau {tau:g}"
        groups = by_facts(tables.build("table2", "best", stored, [LARGE], taus=[tau]).cells, ("n", "q"))
        by_method = [{cell.facts["method"]: cell for cell in cells} for cells in groups.values()]
        if tau == paper:
            longest = [own["sparse"] for own in by_method if own["sparse"].facts["n"] == 128]
            says = f"at N = 128 the baseline shows “almost no improvement” (τ = {tau:g})"
            here = f"at its best {_range(longest)} (chance {longest[0].chance:.0f})"
            yield Claim("Table 2", says, here, _all([not each for each in _learned(longest)]), command)
        here, verdict = _won((own["aux"], own["sparse"]) for own in by_method)
        looked = "" if tau == paper else ", closer than it looked"
        says = f"its method is “consistently” higher (τ = {tau:g}{looked})"
        yield Claim("Table 2", says, f"each at its best, `aux` is {here}", verdict, command)


def _configurations(stored: results.Index) -> Iterator[Claim]:
    """Whether the architecture matters, each method at its best."""
    groups = by_facts(tables.build("configs", "best", stored).cells, ("method", "dropout"))
    said = {
        "aux": "its method is high “regardless of the architecture”",
        "sparse": "the baseline “suffers from severe instability”",
    }
    for method, says in said.items():
        dry, wet = groups[method, 0.0], groups[method, 0.1]
        here = f"`{method}` at its best: without dropout {_range(dry)}, with {_range(wet)}"
        high = [ours >= HIGH for ours in _known([*dry, *wet])]
        verdict = _all(high if method == "aux" else [not each for each in high])
        yield Claim("Table 6", says, here, verdict, "table configs --preset best")


def _grids(stored: results.Index) -> Iterator[Claim]:
    """What it says of the 24 pairs (K, r), at 100K samples."""
    spread = by_facts(tables.build("table3", "paper", stored, [SMALL]).cells, ("embedding", "n", "q"))
    found = [{cell.facts["statistic"]: cell for cell in cells} for cells in spread.values()]
    sides = [(own["min"], gap) for own in found if (gap := side(own["min"], own["sparse"])) is not None]
    above, others = [gap == 1 for _, gap in sides], [worst for worst, gap in sides if gap != 1]
    guessed = _learned(others).count(False)
    says = "even the worst pair (K, r) is a “clear improvement over the baseline”"
    here = f"so in {sum(above)} of {len(above)} settings, in the preset `paper`; at chance in {guessed} of the others"
    yield Claim("Section 5.3", says, here, _all(above), "table table3 --preset paper --samples 100K")
    grids = by_facts(tables.build("grid", "paper", results.first_seeds(stored)).cells, ("embedding", "n", "q"))
    best = [max(cells, key=lambda cell: cell.ours or 0.0) for cells in grids.values()]
    pairs = [values(cell, "k", "r") for cell in best if True in _learned([cell])]
    near = [abs(rho((1, k), (1 - r, r)) - 1) <= BOX for k, r in pairs]
    here = (
        f"of {len(pairs)} settings that are learned, the best pair has |ρ − 1| ≤ {BOX:g} in {sum(near)}, and K = 4, "
        f"the least tried, in {sum(k == 4 for k, _ in pairs)}"
    )
    yield Claim("Section 4.2", "ρ ≈ 1 for the pairs that perform well", here, _all(near), "table grid --preset paper")
