"""Blocks of docs/setup.md about the search for the setup behind the paper's figures."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from pathlib import Path

from auxmod.experiments import setup_search, wants
from auxmod.files import read_lines
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import NEAR, Cell, by_facts, values
from auxmod.reporting.documents.blocks import NONE, distance, finished, nearness, problem
from auxmod.reporting.render import amount, epochs, figure, markdown_table

SHOWN = 8


def _first(place: Path) -> results.Index:
    """The stored results of the first seed, which everything compared here has."""
    return results.first_seeds(results.read(place))


def setup(place: Path) -> str:
    """Of all configurations that the paper's text leaves open, those nearest to its figures."""
    names = ("pooling", "final_norm", "init", "clip")
    groups = by_facts(tables.build("setup", "paper", _first(place)).cells, names)
    compared = {key: [cell for cell in cells if cell.difference is not None] for key, cells in groups.items()}
    whole = {key: cells for key, cells in compared.items() if len(cells) == 2 * len(setup_search.TELLING)}
    if not whole:
        return NONE
    ranked = sorted((distance(cells), key) for key, cells in whole.items())
    heads = [f"{cell.facts['embedding']} {cell.facts['method']} ({cell.paper})" for cell in next(iter(whole.values()))]
    rows = (
        (
            f"{key[0]}, {'' if key[1] else 'no '}final norm, init {key[2]}, {'clip 1' if key[3] else 'no clip'}",
            *(f"{cell.ours:.1f}" for cell in whole[key]),
            f"{distance:.1f}",
        )
        for distance, key in ranked[:SHOWN]
    )
    note = (
        f"The {SHOWN} nearest of {len(whole)} configurations; in brackets the paper's figures. Match accuracy (%), "
        f"{' and '.join(problem(name, *size) for name, size in setup_search.TELLING)}, 100K samples; the first seed. "
        "All: `auxmod table setup`."
    )
    return f"{markdown_table(('configuration', *heads, 'mean distance'), rows)}\n\n{note}"


def finalists(place: Path) -> str:
    """How near each finalist comes to the paper's figures, over all cells of Table 1."""
    cells = tables.build("finalists", "paper", _first(place)).cells
    if all(cell.ours is None for cell in cells):
        return NONE
    groups = by_facts(cells, ("changed", "samples", "method", "embedding"))
    columns = [
        (samples, method, embedding)
        for samples, embeddings in ((wants.SMALL, tuple(wants.SIZES)), (wants.LARGE, ("token",)))
        for method, embedding in itertools.product(("aux", "sparse"), embeddings)
    ]
    rows = []
    for changed in dict.fromkeys(cell.facts["changed"] for cell in cells):
        whole = [groups.get((changed, *column), []) for column in columns]
        figures = [nearness(group) if len(group) >= len(wants.SIZES["angular"]) else "" for group in whole]
        rows.append((_named(changed), *figures))
    heads = (f"{method}, {name}, {amount(samples)}" for samples, method, name in columns)
    table = markdown_table(("configuration", *heads), [row for row in rows if any(row[1:])])
    note = (
        f"Cells of Table 1 that come within {NEAR:g} points of the paper's accuracy, of those run, and the mean "
        "distance from it, by method, embedding and samples; the first seed: `auxmod table finalists`."
    )
    parts = (table, note, _at_the_stated_rate(cells), _in_other_precision(place))
    return "\n\n".join(filter(None, parts))


def _at_the_stated_rate(cells: Sequence[Cell]) -> str:
    """The best of all configurations of `aux` tried on one angular cell, and the best of those at the stated rate."""
    n, q = setup_search.ANGLES[0]
    here = by_facts(cells, ("embedding", "n", "q", "method")).get(("angular", n, q, "aux"), [])
    tried = sorted((cell for cell in here if cell.ours is not None), key=lambda cell: -(cell.ours or 0.0))
    stated = [cell for cell in tried if "lr " not in cell.facts["changed"]]
    if not stated:
        return ""
    best, overall = (f"{cell.ours:.1f} % ({_named(cell.facts['changed'])})" for cell in (stated[0], tried[0]))
    return (
        f"On {problem('angles', n, q)}, {len(tried)} configurations of `aux` were tried, the paper's figure being "
        f"{tried[0].paper} %. Of the {len(stated)} at the stated rate the best has {best}; of all, {overall}."
    )


def _named(changed: str) -> str:
    return "preset `stated`" if changed == "nothing" else changed


def _in_other_precision(place: Path) -> str:
    """Runs of these cells that were repeated in another precision, beside the first."""
    first = {row["hash"]: row for row in finished(place / "finalists.jsonl")}
    said = []
    for row in read_lines(place / "trials" / "precision.jsonl"):
        config = row["config"]
        figures = (
            f"{100 * each['scores']['match']:.1f} in {made['precision']} on {made['device']}, commit `{made['commit']}`"
            for each in (row, first[row["hash"]])
            for made in (each["provenance"],)
        )
        said.append(f"{problem(config['model']['embedding'], **config['problem'])}: {'; '.join(figures)}")
    return f"The same run of the preset `stated`, `aux`, in two precisions: {'; '.join(said)}." if said else ""


def starts(place: Path) -> str:
    """How near each open choice brings four of the configurations, with initial weights as named and exchanged."""
    stored = results.first_seeds(results.read(place))
    ways = by_facts(tables.build("starts", "paper", stored).cells, ("pooling", "clip"))
    lines, papers, partly = list[list[str]](), dict[tuple[str, ...], None](), 0
    for ((pooling, clip), cells), small in itertools.product(ways.items(), setup_search.STARTS[1:]):
        own = [cell for cell in cells if cell.facts["init"] in ("default", small)]
        for method in ("aux", "sparse"):
            four = [cell for cell in own if cell.facts["method"] == method]
            if any(cell.ours is None for cell in four):
                partly += 1
            else:
                setup = f"{pooling}, {'clip 1' if clip else 'no clip'}, small `{small}`"
                ours = [setup, method, *(f"{cell.ours:.1f}" for cell in four)]
                lines.append([*ours, nearness(four), nearness(tables.exchanged(four, "init"))])
                papers["the paper's", method, *(f"{cell.paper:.1f}" for cell in four)] = None
    if not lines:
        return NONE
    dropout = ("no dropout", "dropout")
    heads = ["setup", "method", *(f"{init}, {each}" for init in ("default", "small") for each in dropout)]
    note = (
        "Match accuracy (%) at N = 8, q = 97, tokens, 1M samples, the first seed: what the paper states, but for what "
        f"is named. Then how many of the four are within {NEAR:g} points of the paper's figures, and the mean distance "
        "from them, as its rows are named and with the names of its initial weights exchanged. Left out, since "
        f"not all four have been run: {partly}. `auxmod table starts` has the figures."
    )
    lines = [[*paper, "", ""] for paper in papers] + lines
    return f"{markdown_table([*heads, 'as named', 'exchanged'], lines)}\n\n{note}"


def _in_spread(cells: Sequence[Cell]) -> str:
    """How many of the cells run lie within the paper's own range over pairs (K, r)."""
    run = [cell for cell in cells if cell.ours is not None]
    return f"{sum(map(_within, run))} of {len(run)}" if run else ""


def _within(cell: Cell) -> bool:
    facts = {name: cell.facts[name] for name in ("embedding", "n", "q", "samples")}
    least, greatest = (published.find("table3", statistic=name, **facts) for name in ("min", "max"))
    if cell.ours is None or least is None or greatest is None:
        return False
    return least <= round(cell.ours, 1) <= greatest


def longer(place: Path) -> str:
    """`aux` with 100K and 1M samples, by setup and training time; and the gain from more samples at equal steps."""
    stored = _first(place)
    own = by_facts(tables.build("longer", "paper", stored).cells, ("samples", "embedding"))
    large = [cell for (samples, _), cells in own.items() if samples == wants.LARGE for cell in cells]
    parts = [_trained(cells, samples) for (samples, _), cells in own.items()]
    return "\n\n".join((*parts, _at_equal_steps(stored, large))).rstrip()


def _trained(own: Sequence[Cell], samples: int) -> str:
    """Our figures cell by cell, and how many agree with the paper's."""
    ways, rows = by_facts(own, ("setup", "epochs")), []
    begun = [way for way, cells in ways.items() if any(cell.ours is not None for cell in cells)]
    near = {way: ways[way] for way in begun or ways}
    for (embedding, n, q), cells in by_facts(own, ("embedding", "n", "q")).items():
        figures = {values(cell, "setup", "epochs"): cell.ours for cell in cells}
        ours = ("not run" if figures[way] is None else f"{figures[way]:.1f}" for way in near)
        rows.append((problem(embedding, n, q), f"{cells[0].chance:.1f}", f"{cells[0].paper:.1f}", *ours))
    rows.append(("so many agree", "", "", *map(nearness, near.values())))
    spread = samples == wants.LARGE  # the paper's Table 3 is at this size
    if spread:
        rows.append(("in the paper's spread", "", "", *map(_in_spread, near.values())))
    heads = ("case", "chance", "the paper's", *(f"`{setup}`, {epochs(count)}" for setup, count in near))
    note = (
        f"Match accuracy (%) of `aux`, {amount(samples)} samples, the first seed; below, the cells within {NEAR:g} "
        "points of the paper's of those run, and the mean distance from it"
    )
    if spread:
        note += "; and the cells between the least and the greatest of the paper's own over its 24 pairs (K, r), from "
        note += "its Table 3"
    left = [f"`{setup}`, {epochs(count)}" for setup, count in ways if (setup, count) not in near]
    missing = f" Not run: {'; '.join(left)}." if left else ""
    return f"{markdown_table(heads, rows)}\n\n{note}. `auxmod table longer` has the figures.{missing}"


def _at_equal_steps(stored: results.Index, cells: Sequence[Cell]) -> str:
    """The gain of 1M samples over 100K that are seen ten times as often."""
    once = [cell for cell in cells if cell.facts["epochs"] == 1]
    fewer = {
        (setup, *values(cell, "embedding", "n", "q")): cell.ours
        for setup, embedding in {values(cell, "setup", "embedding") for cell in once}
        for cell in tables.build(published.HALVES[embedding], setup, stored, (wants.SMALL,)).cells
        if cell.facts["method"] == "aux"
    }
    pairs = [(cell.ours, fewer[values(cell, "setup", "embedding", "n", "q")]) for cell in once]
    gains = [more - less for more, less in pairs if more is not None and less is not None]
    if not gains:
        return ""
    least, most, mean = (figure(gain, 1, "+") for gain in (min(gains), max(gains), statistics.fmean(gains)))
    return (
        f"1M samples seen once, less 100K seen ten times, which is as many steps: {least} to {most} points, {mean} in "
        f"the mean ({len(gains)} cells)."
    )
