"""The blocks and pictures in README.md and docs/ that come from results/. `make pages` writes them; a test compares.

No number in a block is typed by hand. Its first line names what makes it, and it is always replaced as a whole:

    <!-- generated: make pages: paper errors -->
    …
    <!-- /generated -->
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from auxmod.errors import require
from auxmod.experiments.recipes import headline as headline_runs
from auxmod.reporting import errata, results, tables
from auxmod.reporting.documents import demo, other_tables, pairs, past_the_paper, setup_search, speed, table1, verdicts
from auxmod.reporting.documents.blocks import item
from auxmod.reporting.documents.speed import BENCH
from auxmod.reporting.figures import by_item, looks
from auxmod.reporting.figures.bench import figure as bench_figure

END = "<!-- /generated -->"


def paper_errors(_: Path) -> str:
    """The checked claims of the paper, wrong and right."""
    return errata.markdown(errata.findings())


BLOCKS: list[tuple[str, str, Callable[[Path], str]]] = [
    ("README.md", "make pages: headline", partial(item, "headline")),
    ("README.md", "make pages: speed", speed.speed),
    ("docs/performance.md", "make pages: speed", speed.speed),
    ("docs/performance.md", "make pages: precision", speed.precision),
    ("docs/performance.md", "make pages: the log", speed.log),
    ("docs/paper.md", "make pages: paper errors", paper_errors),
    ("docs/results.md", "make pages: verdicts", verdicts.verdicts),
    ("docs/results.md", "make pages: fewer", partial(item, "fewer")),
    ("docs/results.md", "make pages: harder", partial(item, "harder")),
    ("docs/results.md", "make pages: table 1", table1.table),
    ("docs/results.md", "make pages: table 1 at 1M", table1.larger),
    ("README.md", "make pages: verdicts in short", verdicts.in_short),
    ("docs/results.md", "make pages: table 2", other_tables.table2),
    ("docs/results.md", "make pages: configs", other_tables.configs),
    ("docs/setup.md", "make pages: setup", setup_search.setup),
    ("docs/setup.md", "make pages: knobs", partial(item, "knobs")),
    ("docs/setup.md", "make pages: finalists", setup_search.finalists),
    ("docs/setup.md", "make pages: starts", setup_search.starts),
    ("docs/setup.md", "make pages: longer", setup_search.longer),
    ("docs/results.md", "make pages: pairs", pairs.pairs),
    ("docs/results.md", "make pages: outside the search", pairs.outside),
    ("docs/results.md", "make pages: ways to choose K and r", past_the_paper.ways),
    ("README.md", "make pages: past the paper in short", past_the_paper.beyond_in_short),
    ("docs/research.md", "make pages: past the paper", past_the_paper.beyond),
    ("docs/research.md", "make pages: other moduli", demo.moduli),
    ("docs/research.md", "make pages: by how rare a sum is", past_the_paper.by_rarity),
    ("docs/research.md", "make pages: tails", past_the_paper.tails),
    ("docs/research.md", "make pages: tails of a small encoder", demo.tails),
    ("docs/research.md", "make pages: initial weights", demo.initial_weights),
    ("docs/research.md", "make pages: sparse inputs", demo.inputs),
    ("docs/research.md", "make pages: few samples", demo.by_heart),
    ("docs/research.md", "make pages: trials", past_the_paper.trials),
]
"""Every generated block: its file, the text of its marker, and the function that makes it."""


PICTURES = {BENCH: "", "headline": "demo", "fewer": "demo", "harder": "demo"} | dict.fromkeys(
    ("table1a", "table1b", "grid", "configs"), "paper"
)
"""The pictures in docs/: figures of items, each with its preset, and the benchmark's figure."""


def stale(root: Path, write: bool = False) -> list[str]:
    """The blocks and pictures that no longer match `results/`. With ``write``, bring them up to date too."""
    found = []
    place = root / "results"
    stored, bench = results.read(place), json.loads((place / f"{BENCH}.json").read_text())
    for name, preset in PICTURES.items():
        path = root / "docs" / f"{name}.png"
        data: Any = bench if name == BENCH else _shown(name, preset, stored)
        source = hashlib.sha256(json.dumps(data).encode()).hexdigest()
        if not path.exists() or source.encode() not in path.read_bytes():
            found.append(str(path.relative_to(root)))
            if write:
                figure = bench_figure(bench) if data is bench else by_item.draw(name, preset, stored)
                looks.save(figure, path, source)
    for name, marker, make in BLOCKS:
        path = root / name
        before = path.read_text(encoding="utf-8")
        after = replace_block(before, marker, make(place))
        if after != before:
            found.append(f"{name}: {marker}")
            if write:
                path.write_text(after, encoding="utf-8")
    return found


def replace_block(text: str, command: str, body: str) -> str:
    """Replace what is between the markers of ``command`` in the document ``text`` by ``body``."""
    start = f"<!-- generated: {command} -->"
    before, found, rest = text.partition(start)
    _, ended, after = rest.partition(END)
    require(
        bool(found and ended) and start not in rest,
        f"The document needs one block that begins with {start} and ends with {END}.",
    )
    return f"{before}{start}\n\n{body.strip()}\n\n{END}{after}"


def _shown(item: str, preset: str, stored: results.Index) -> list[Any]:
    """The data that a picture may show: an item's cells and, for the headline, its learning curves."""
    runs = [want.run for want in headline_runs()] if item == "headline" else []
    cells = [cell.to_dict() for cell in tables.build(item, preset, stored).cells]
    return [cells, [results.curves(stored, run) for run in runs]]
