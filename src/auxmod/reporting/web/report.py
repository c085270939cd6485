"""A store as one page: the paper's tables beside our results, heatmaps, curves, theory, speed, and every run."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from auxmod.errors import UserError
from auxmod.experiments.catalogue import Entry
from auxmod.experiments.wants import SMALL
from auxmod.files import read_json
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import NEAR, Cell, Table, by_facts, side
from auxmod.reporting.figures.bench import COSTS, costs
from auxmod.reporting.render import Kind, Layout, amount, layout
from auxmod.reporting.web import charts, file, stored_runs

PRESETS = ("paper", "best")
SHOWN = ("table1a", "table1b", "table2", "table3", "configs")
"""Tables of runs. Those over K and r are heatmaps here, and those of theory are charts."""
FULL = 30.0
"""A difference of so many points, or more, has the full tint."""


def page(store: Path, where: str | None = None) -> tuple[str, list[Entry]]:
    """Build the page of a store; also return its runs. ``where`` chooses the runs whose curves are drawn at first."""
    entries, notes = stored_runs.read(store)
    stored = results.index(entry.row for entry in entries if entry.state in ("done", "failed"))
    made = [tables.build(item, preset, stored) for item in SHOWN for preset in PRESETS]
    grids, benches = stored_runs.grids(entries), list(_benches(store, notes))
    run = [table for table in made if any(cell.ours is not None or cell.failed for cell in table.cells)]
    words, cells = _words(run)
    data = {
        "charts": {
            **{f"grid{at}": charts.heatmap(grid) for at, grid in enumerate(grids)},
            **{f"bench{at}": bench.chart for at, bench in enumerate(benches)},
            **{"gap": charts.gap(), "rho": charts.rho(), "laws": charts.wraps(64, 433, 4, 0.3)},
        },
        "runs": stored_runs.told(entries, store),
        "alike": stored_runs.alike(entries),
        "chosen": stored_runs.telling(entries, where),
        "cells": cells,
    }
    bound = tables.build("gap", "paper", {})
    html = file.render(
        "report.html",
        title=f"auxmod: {store.resolve().name}",
        headline=headline(made, entries),
        tiles=list(tiles(made, entries, benches)),
        tables=words,
        left=len(made) - len(run),
        grids=list(zip(grids, stored_runs.differing(grids), strict=True)),
        gap=_plain(bound, layout(bound)),
        benches=benches,
        notes=notes,
        amount=amount,
        zip=zip,
        count=len(entries),
        data=data,
    )
    return html, entries


# ---- the headline -------------------------------------------------------------------------------------------


def headline(made: Sequence[Table], entries: Sequence[Entry]) -> str:
    """What the store shows, in one sentence."""
    setup, pairs = _compared(made)
    if pairs:
        sides = [side(aux, sparse) for aux, sparse in pairs]
        return (
            f"{setup}, the auxiliary modulus is ahead of sparse training in {sides.count(1)} of {len(pairs)} settings "
            f"of the paper’s Table 1 and level in {sides.count(0)}, by {_gain(pairs):.1f} points of match accuracy on "
            "average."
        )
    best = next((entry for entry in entries if "scores" in entry.row), None)
    if best is None:
        return "No run in this store is finished yet."
    values, scores = best.settings, best.row["scores"]
    return (
        f"The best of {len(entries):,} runs answers {100 * scores['match']:.1f} % of sums it has not seen, where "
        f"guessing gives {100 * scores['chance']:.1f} %: {values['method']}, N = {values['n']}, q = {values['q']}."
    )


def tiles(made: Sequence[Table], entries: Sequence[Entry], benches: Sequence[Bench]) -> Iterator[tuple[str, str]]:
    """The figures at the top of the page, each with what it is."""
    counts = Counter(sorted(entry.state for entry in entries))
    others = "".join(f", {number:,} {state}" for state, number in counts.items() if state != "done")
    yield f"{counts['done']:,}", f"runs measured{others}"
    cells = [cell for table in made for cell in table.cells if cell.paper is not None and not _again(table, cell)]
    if gaps := [cell.difference for cell in cells if cell.difference is not None]:
        presets = len({table.preset for table in made})
        yield f"{len(gaps):,} of {len(cells):,}", f"figures of the paper’s tables, in {presets} presets, run"
        yield f"{sum(gap >= -NEAR for gap in gaps)} of {len(gaps)}", f"no more than {NEAR:g} points below the paper’s"
    setup, pairs = _compared(made)
    if pairs:
        yield f"{_gain(pairs):+.1f}", f"points, aux over sparse at equal data, {setup.lower()}"
    if faster := [ratio for bench in benches for ratio in bench.faster]:
        yield f"{max(faster):.0f}×", "faster at most than compiled PyTorch"


def _again(table: Table, cell: Cell) -> bool:
    """Whether other cells already have the figure: a gain is a difference, and at 100K Table 3 repeats Table 1."""
    return cell.facts["metric"] == "gain" or (table.item == "table3" and cell.facts["samples"] == SMALL)


SETUPS = {"best": "With each method at its best", "paper": "In the paper’s setup"}


Pair = tuple[Cell, Cell]


def _compared(made: Sequence[Table]) -> tuple[str, list[Pair]]:
    """The preset in which most settings of Table 1 have both aux and sparse, in words, and those pairs of cells."""
    found: list[tuple[str, list[Pair]]] = []
    for preset, setup in SETUPS.items():
        own = (table for table in made if table.item in published.HALVES.values() and table.preset == preset)
        groups = (group for table in own for group in by_facts(table.cells, ("n", "q", "samples")).values())
        figures = ({cell.facts["method"]: cell for cell in group} for group in groups)
        pairs = [(each["aux"], each["sparse"]) for each in figures]
        found.append((setup, [pair for pair in pairs if side(*pair) is not None]))
    return max(found, key=lambda each: len(each[1]))


def _gain(pairs: Sequence[Pair]) -> float:
    return statistics.fmean((aux.ours or 0.0) - (sparse.ours or 0.0) for aux, sparse in pairs)


# ---- tables -------------------------------------------------------------------------------------------------


def _words(made: Sequence[Table]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Each table in words, with a button for each figure of ours, and what each button shows."""
    told: list[dict[str, Any]] = []
    return [_table(table, told) for table in made], told


def _table(table: Table, told: list[dict[str, Any]]) -> dict[str, Any]:
    """A table in words. What its buttons show is appended to ``told``."""
    page = layout(table)
    words = _plain(table, page)
    for row, behind in zip(words["rows"], page.cells, strict=True):
        for shown, cell, head in zip(row, behind, page.heads, strict=True):
            if cell is None:
                continue
            shown |= _tint(cell, head.kind)
            if head.kind == "ours":
                shown["cell"] = len(told)
                told.append(_told(table, cell, shown["word"]))
    run = sum(cell.ours is not None for cell in table.cells)
    return words | {"run": run, "of": len(table.cells), "command": table.command}


def _plain(table: Table, page: Layout) -> dict[str, Any]:
    """A table's title, heads (of groups of columns, and of columns), words and notes."""
    return {
        "title": table.title,
        "groups": page.groups,
        "heads": [head.name for head in page.heads],
        "rows": [[{"word": word} for word in row] for row in page.rows],
        "labels": page.labels,
        "notes": [*table.notes, *(each.told().replace("`", "") for each in table.made)],
    }


def _tint(cell: Cell, kind: Kind) -> dict[str, Any]:
    """How a cell looks: a difference from the paper is tinted by side and size, a missing figure is dimmed."""
    if kind != "difference" or cell.difference is None:
        return {"dim": cell.ours is None and kind != "paper"}
    share = min(1.0, abs(cell.difference) / FULL)
    return {"side": "above" if cell.difference > 0 else "below", "tint": round(55 * share)}


def _told(table: Table, cell: Cell, word: str) -> dict[str, Any]:
    """What pressing a figure shows: its facts, the figures beside it, and its command."""
    facts = {name: value for name, value in cell.facts.items() if value is not None and name != "metric"}
    beside = {
        "the paper’s": (cell.paper, ".1f"),
        "difference": (cell.difference, "+.1f"),
        "chance": (cell.chance, ".1f"),
    }
    figures = {name: format(value, form) for name, (value, form) in beside.items() if value is not None}
    return {"facts": facts, "figures": {table.shape.ours: word} | figures, "command": _command(table, cell)}


def _command(table: Table, cell: Cell) -> str:
    """The command that runs what a figure needs; for one of the 16 configurations it runs all of them."""
    facts = cell.facts
    sizes = "" if table.item == "configs" else f" --n {facts['n']} --q {facts['q']} --samples {facts['samples']}"
    which = f" --embedding {facts['embedding']}" if table.item == "table3" else ""  # both embeddings may have this size
    whose = "" if facts["metric"] == "gain" else f" --method {facts['method']}"
    return f"auxmod reproduce {table.item} --preset {table.preset}{sizes}{which}{whose}"


# ---- speed --------------------------------------------------------------------------------------------------


class Bench(NamedTuple):
    """A benchmark as the page shows it."""

    chart: charts.Chart
    table: dict[str, Any]
    command: str
    made: str
    """On what it was measured, and when."""
    faster: list[float]
    """How much faster than compiled PyTorch, case by case, where that was measured."""


def _benches(store: Path, notes: list[str]) -> Iterator[Bench]:
    """The benchmarks that `auxmod bench --out` wrote beside the results. Other files named like them get a note."""
    place = store if store.is_dir() else store.parent
    for path in sorted(place.glob("bench*.json")):
        try:
            bench = _bench(read_json(path))
        except UserError as error:
            notes.append(str(error))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            notes.append(f"{path} is not what auxmod bench writes.")
        else:
            yield bench


def _bench(result: Mapping[str, Any]) -> Bench:
    made, rows = result["provenance"], [[{"word": word} for word in row] for row in costs(result)]
    title = f"What a training step costs on {made['device']}"
    table = {"title": title, "groups": [], "heads": COSTS, "rows": rows, "labels": 1, "notes": []}
    origin = f"{made['device']}, torch {made['torch']}, commit {made['commit']}, {made['date'][:10]}"
    faster = [row["faster_than_compiled"] for row in result["rows"] if row["faster_than_compiled"]]
    return Bench(charts.bench(result), table, str(made["command"]), origin, faster)
