"""What README.md and docs/ show of results/, blocks and pictures: `make pages` writes it, a test holds them to it.

No number in a block is typed: each names what makes it, and is replaced as a whole.

    <!-- generated: auxmod theory --paper-errors --markdown -->
    …
    <!-- /generated -->
"""

from __future__ import annotations

import hashlib
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from auxmod.errors import require
from auxmod.experiments.recipes import headline as headline_runs
from auxmod.files import read_lines
from auxmod.reporting import bench_figure, errata, figures, looks, render, reproduced, research, small, tables, unstated
from auxmod.reporting import results as stored
from auxmod.reporting.blocks import markdown

END = "<!-- /generated -->"


def speed(results: Path) -> str:
    """What a training step costs, from `auxmod bench`."""
    bench = json.loads((results / "bench-h200.json").read_text())
    made, evaluation = bench["provenance"], bench["evaluation"]
    rows = ([*row[:3], f"**{row[3]}**", *row[4:]] for row in bench_figure.costs(bench))
    (precision, rate), *_ = bench["matrix_tflops"].items()
    longest = max(row["prepare_seconds"] for row in bench["rows"])
    note = (
        f"{made['device']}, {precision} trunk, torch {made['torch']}, commit `{made['commit']}`; matrix products ran "
        f"at {rate:.0f} TFLOP/s in the same run (`{made['command']}`, {made['date'][:10]}). Compiling and capturing "
        f"took {longest:.0f} s at most, once a shape; evaluating a million samples at N = {evaluation['n']} takes "
        f"{evaluation['seconds_per_million']:.1f} s."
    )
    return f"{markdown(bench_figure.COSTS, rows)}\n\n{note}\n\n{_methods(results / 'bench-methods-h200.json')}"


def _methods(path: Path) -> str:
    """How much longer a step of `auto` takes than one of `aux`."""
    bench = json.loads(path.read_text())
    made = bench["provenance"]
    ratios = (f"{row['ratio']:.2f} times at N = {row['n']}, {row['members']} models" for row in bench["methods"])
    return (
        f"A step of `auto`, with Muon and all its moduli, takes longer than one of `aux`: {', '.join(ratios)} "
        f"({made['device']}, commit `{made['commit']}`, `{made['command']}`)."
    )


def precision(results: Path) -> str:
    """Accuracy of each precision over seeds, from a sweep."""
    groups: dict[tuple[int, int, str], list[Any]] = {}
    for row in read_lines(results / "precision-h200.jsonl"):
        config = row["config"]
        key = config["problem"]["n"], config["problem"]["q"], config["training"]["precision"]
        groups.setdefault(key, []).append(row["scores"])
    matches = {key: [100 * scores["match"] for scores in group] for key, group in groups.items()}
    columns = ("case", "precision", "match accuracy (%)", "seeds", "less than fp32", "chance (%)")
    rows = (
        (
            f"N = {n}, q = {q}",
            name,
            f"{statistics.fmean(values):.1f} ± {statistics.stdev(values):.1f}",
            str(len(values)),
            f"{statistics.fmean(matches[n, q, 'fp32']) - statistics.fmean(values):.2f}",
            f"{100 * groups[n, q, name][0]['chance']:.1f}",
        )
        for (n, q, name), values in matches.items()
    )
    made = row["provenance"]
    setting = f"{config['training']['samples']:,} samples, {config['training']['epochs']} epochs, "
    setting += f"{config['model']['pooling']} pooling, init {config['model']['init']}, lr {config['training']['lr']:g}"
    note = f"`aux`, {setting}; {row['scores']['samples']:,} test inputs; {made['device']}, commit `{made['commit']}`."
    return f"{markdown(columns, rows)}\n\n{note} The spread is over seeds, which the precisions share."


def speed_log(results: Path) -> str:
    """What was tried for speed."""
    rows = (
        (
            row["tried"],
            row["case"],
            "–" if row["before"] is None else f"{row['before']:g}",
            f"{row['after']:g}",
            "kept" if row["kept"] else "dropped",
            row["why"],
        )
        for row in read_lines(results / "speed-log.jsonl")
    )
    return markdown(("tried", "measured", "before", "after", "", "why"), rows)


def paper_errors(_: Path) -> str:
    """What in the paper is wrong."""
    return errata.markdown(errata.findings())


def headline(results: Path) -> str:
    """The demo's methods over seeds, and where they were run."""
    table = tables.build("headline", "demo", stored.read(results))
    made = read_lines(results / "headline.jsonl")[0]["provenance"]
    note = f"{made['device']}, {made['precision']}, commit `{made['commit']}`: `auxmod reproduce headline`."
    return f"{render.markdown(table)}\n- {note}"


BLOCKS: list[tuple[str, str, Callable[[Path], str]]] = [
    ("README.md", "make pages: headline", headline),
    ("README.md", "make pages: speed", speed),
    ("docs/performance.md", "make pages: speed", speed),
    ("docs/performance.md", "make pages: precision", precision),
    ("docs/performance.md", "make pages: the log", speed_log),
    ("docs/paper.md", errata.COMMAND, paper_errors),
    ("docs/results.md", "make pages: table 1", reproduced.table),
    ("docs/results.md", "make pages: table 1 in short", reproduced.in_short),
    ("docs/results.md", "make pages: table 1 at 1M", reproduced.larger),
    ("README.md", "make pages: table 1 in short", reproduced.in_short),
    ("docs/results.md", "make pages: setup", unstated.setup),
    ("docs/results.md", "make pages: knobs", unstated.knobs),
    ("docs/results.md", "make pages: finalists", unstated.finalists),
    ("docs/results.md", "make pages: longer", unstated.longer),
    ("docs/results.md", "make pages: pairs", reproduced.pairs),
    ("docs/results.md", "make pages: ways to choose K and r", research.ways),
    ("README.md", "make pages: past the paper", research.beyond),
    ("docs/research.md", "make pages: past the paper", research.beyond),
    ("docs/research.md", "make pages: other moduli", small.moduli),
    ("docs/research.md", "make pages: by how rare a sum is", research.by_rarity),
    ("docs/research.md", "make pages: tails", research.tails),
    ("docs/research.md", "make pages: tails of a small encoder", small.tails),
    ("docs/research.md", "make pages: starts", small.starts),
    ("docs/research.md", "make pages: sparse inputs", small.inputs),
    ("docs/research.md", "make pages: trials", research.trials),
]
"""Every block made from results/: its file, what its marker says, and what makes it."""


PICTURES = {"bench-h200": "", "headline": "demo", "table1a": "paper", "table1b": "paper"}
"""The pictures in docs/: figures of items, each in a preset; and the benchmark's."""


def stale(root: Path, write: bool = False) -> list[str]:
    """The blocks and pictures that are not what `results/` gives now; with ``write`` they are brought up to date."""
    found = []
    results, bench = stored.read(root / "results"), json.loads((root / "results" / "bench-h200.json").read_text())
    for name, preset in PICTURES.items():
        path = root / "docs" / f"{name}.png"
        data: Any = bench if name == "bench-h200" else _shown(name, preset, results)
        source = hashlib.sha256(json.dumps(data).encode()).hexdigest()
        if not path.exists() or source.encode() not in path.read_bytes():
            found.append(str(path.relative_to(root)))
            if write:
                figure = bench_figure.figure(bench) if data is bench else figures.draw(name, preset, results)
                looks.save(figure, path, source)
    for name, marker, make in BLOCKS:
        path = root / name
        before = path.read_text(encoding="utf-8")
        after = replace_block(before, marker, make(root / "results"))
        if after != before:
            found.append(f"{name}: {marker}")
            if write:
                path.write_text(after, encoding="utf-8")
    return found


def replace_block(text: str, command: str, body: str) -> str:
    """The document ``text`` with what lies between ``command``'s markers replaced by ``body``."""
    start = f"<!-- generated: {command} -->"
    before, found, rest = text.partition(start)
    _, ended, after = rest.partition(END)
    require(
        bool(found and ended) and start not in rest,
        f"The document needs one block that begins with {start} and ends with {END}.",
    )
    return f"{before}{start}\n\n{body.strip()}\n\n{END}{after}"


def _shown(item: str, preset: str, results: stored.Index) -> list[Any]:
    """What a picture may show: an item's figures and, of the headline, the learning curves."""
    runs = [want.run for want in headline_runs()] if item == "headline" else []
    cells = [cell.to_dict() for cell in tables.build(item, preset, results).cells]
    return [cells, [stored.curves(results, run) for run in runs]]


if __name__ == "__main__":
    for block in stale(Path.cwd(), write=True):
        print(f"updated {block}")
