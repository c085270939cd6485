"""Blocks about small encoders: the demo, and trials beside it. All come from results/."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from auxmod.reporting.cells import grouped
from auxmod.reporting.documents.blocks import finished, over_seeds
from auxmod.reporting.render import markdown_table


def moduli(place: Path) -> str:
    """The demo's sum at other moduli, method by method, over seeds."""
    every = finished(place / "moduli.jsonl")
    found = grouped(every, lambda row: (int(row["config"]["problem"]["q"]), _method(row["config"])))
    body = [
        (f"q = {q}", method, over_seeds([row["scores"]["match"] for row in rows]), str(len(rows)), f"{100 / q:.1f}")
        for (q, method), rows in sorted(found.items())
    ]
    made = grouped((row for rows in found.values() for row in rows), lambda row: str(row["provenance"]["commit"]))
    note = "; ".join(_runs_of(commit, rows) for commit, rows in made.items())
    return f"{markdown_table(('modulus', 'method', 'match accuracy (%)', 'seeds', 'chance (%)'), body)}\n\n{note}."


def _method(config: dict[str, Any]) -> str:
    """A method, with the settings in which its runs here differ."""
    method, tails = config["method"]["method"], config["method"].get("tails", 1)
    return f"{method}, lr {config['training']['lr']:g}" + (f", `--tails {tails:g}`" if tails > 1 else "")


def initial_weights(place: Path) -> str:
    """`auto` with a small encoder, by its initial weights."""

    def start(config: dict[str, Any]) -> str:
        model = config["model"]
        return f"{model['init']}, the embedding {model['lift']:g}" if "lift" in model else str(model["init"])

    return _small_encoder(finished(place / "lift.jsonl"), "init", start)


def tails(place: Path) -> str:
    """`auto` with a small encoder, by how much weight rare sums may have."""
    rows = finished(place / "tails.jsonl")
    return _small_encoder(rows, "`--tails`", lambda config: f"{config['method'].get('tails', 1):g}")


def inputs(place: Path) -> str:
    """`auto` with a small encoder, by the distribution of its training inputs."""
    rows = finished(place / "inputs.jsonl")
    return _small_encoder(rows, "inputs", lambda config: str(config["method"]["distribution"]))


def by_heart(place: Path) -> str:
    """Methods with few samples, by optimiser and learning rate."""

    def trained(config: dict[str, Any]) -> str:
        training = config["training"]
        return f"{config['method']['method']}, {training.get('optimiser', 'adamw')}, lr {training['lr']:g}"

    few = finished(place / "few.jsonl")
    samples = few[0]["config"]["training"]["samples"]
    others = [row for row in finished(place / "fewer.jsonl") if row["config"]["training"]["samples"] == samples]
    rows = [row for row in others if row["config"]["method"]["method"] != "sparse"] + few
    return _small_encoder(rows, f"from {samples} samples", trained)


def _small_encoder(rows: Sequence[dict[str, Any]], head: str, named: Callable[[dict[str, Any]], str]) -> str:
    """A table of runs that differ in one thing: its values as ``named``, each over seeds, and the runs' origin."""
    found = grouped(rows, lambda row: named(row["config"]))
    body = []
    for name, rows in found.items():
        shares = [[row["scores"]["match"] for row in rows]]
        shares += [[row["scores"]["tau"][tau] for row in rows] for tau in ("0.01", "0.05")]
        body.append((name, *map(over_seeds, shares), str(len(rows))))
    made = {row["provenance"]["command"]: row["provenance"] for rows in found.values() for row in rows}
    first = next(iter(found.values()))[0]
    problem, scores = first["config"]["problem"], first["scores"]
    chances = (scores["chance"], scores["tau_chance"]["0.01"], scores["tau_chance"]["0.05"])
    guessed = "{:.1f}, {:.0f} and {:.0f}".format(*(100 * share for share in chances))
    origin = (f"{m['device']}, {m['precision']}, commit `{m['commit']}`, `{command}`" for command, m in made.items())
    note = f"N = {problem['n']}, q = {problem['q']}; chance {guessed}. {'; '.join(origin)}."
    return f"{markdown_table((head, 'match accuracy (%)', 'τ = 0.01', 'τ = 0.05', 'seeds'), body)}\n\n{note}"


def _runs_of(commit: str, rows: Sequence[dict[str, Any]]) -> str:
    """The methods of these rows, where they were run, and the command."""
    made = rows[0]["provenance"]
    kinds = sorted({_method(row["config"]) for row in rows})
    return f"{'; '.join(kinds)}: {made['device']}, {made['precision']}, commit `{commit}`, `{made['command']}`"
