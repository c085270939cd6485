"""Blocks about speed and precision, from the benchmarks, a sweep and the log in results/."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

from auxmod.files import read_lines
from auxmod.reporting.cells import grouped
from auxmod.reporting.documents.blocks import finished, over_seeds
from auxmod.reporting.figures.bench import COSTS, costs
from auxmod.reporting.render import markdown_table

BENCH = "bench-h200"
"""The benchmark shown in the pages: the name of its file and of its picture."""


def speed(place: Path) -> str:
    """What a training step costs, from `auxmod bench`."""
    bench = json.loads((place / f"{BENCH}.json").read_text())
    made, evaluation = bench["provenance"], bench["evaluation"]
    rows = ([*row[:3], f"**{row[3]}**", *row[4:]] for row in costs(bench))
    (precision, rate), *_ = bench["matrix_tflops"].items()
    longest = max(row["prepare_seconds"] for row in bench["rows"])
    note = (
        f"{made['device']}, {precision} trunk, torch {made['torch']}, commit `{made['commit']}`; matrix products ran "
        f"at {rate:.0f} TFLOP/s in the same run (`{made['command']}`, {made['date'][:10]}). Compiling and capturing "
        f"took {longest:.0f} s at most, once a shape; evaluating a million samples at N = {evaluation['n']} takes "
        f"{evaluation['seconds_per_million']:.1f} s."
    )
    return f"{markdown_table(COSTS, rows)}\n\n{note}\n\n{_methods(place / 'bench-methods-h200.json')}"


def _methods(path: Path) -> str:
    """How much longer a step of `auto` takes than one of `aux`."""
    bench = json.loads(path.read_text())
    made = bench["provenance"]
    ratios = (f"{row['ratio']:.2f} times at N = {row['n']}, {row['members']} models" for row in bench["methods"])
    return (
        f"A step of `auto`, with Muon and all its moduli, takes longer than one of `aux`: {', '.join(ratios)} "
        f"({made['device']}, commit `{made['commit']}`, `{made['command']}`)."
    )


def precision(place: Path) -> str:
    """The accuracy in each precision over seeds, from a sweep."""

    def case(row: dict[str, Any]) -> tuple[int, int, str]:
        config = row["config"]
        return config["problem"]["n"], config["problem"]["q"], config["training"]["precision"]

    every = finished(place / "precision-h200.jsonl")
    groups = grouped(every, case)
    matches = {key: [row["scores"]["match"] for row in group] for key, group in groups.items()}
    columns = ("case", "precision", "match accuracy (%)", "seeds", "less than fp32", "chance (%)")
    rows = (
        (
            f"N = {n}, q = {q}",
            name,
            over_seeds(values),
            str(len(values)),
            f"{100 * (statistics.fmean(matches[n, q, 'fp32']) - statistics.fmean(values)):.2f}",
            f"{100 * groups[n, q, name][0]['scores']['chance']:.1f}",
        )
        for (n, q, name), values in matches.items()
    )
    last = every[-1]
    made, config = last["provenance"], last["config"]
    setting = f"{config['training']['samples']:,} samples, {config['training']['epochs']} epochs, "
    setting += f"{config['model']['pooling']} pooling, init {config['model']['init']}, lr {config['training']['lr']:g}"
    note = f"`aux`, {setting}; {last['scores']['samples']:,} test inputs; {made['device']}, commit `{made['commit']}`."
    return f"{markdown_table(columns, rows)}\n\n{note} The spread is over seeds, which the precisions share."


def log(place: Path) -> str:
    """Everything that was tried for speed."""
    rows = (
        (
            row["tried"],
            row["case"],
            "–" if row["before"] is None else f"{row['before']:g}",
            f"{row['after']:g}",
            "kept" if row["kept"] else "dropped",
            row["why"],
        )
        for row in read_lines(place / "speed-log.jsonl")
    )
    return markdown_table(("tried", "measured", "before", "after", "", "why"), rows)
