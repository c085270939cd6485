"""Blocks about what goes past the paper, at its model size: choosing K and r, methods at their best, and all trials."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from auxmod.experiments import recipes, wants
from auxmod.files import read_lines
from auxmod.reporting import results, tables
from auxmod.reporting.cells import NAMES, by_facts, grouped
from auxmod.reporting.documents.blocks import asked, finished, over_seeds, problem
from auxmod.reporting.render import amount, epochs, markdown_table, with_spread
from auxmod.settings import TAILS, build


def ways(place: Path) -> str:
    """Ways to set K and r, at equal cost."""
    rows = read_lines(place / "compare.jsonl")
    columns = ("case", "preset", "way", "chosen", "cost in runs", "match accuracy (%)", "seeds", "chance (%)")
    body = (
        (
            problem(row["embedding"], row["n"], row["q"]),
            row["preset"],
            row["way"],
            ", ".join(f"{_name(name)} = {_value(value)}" for name, value in row["choice"].items()),
            f"{row['cost']:.0f}",
            with_spread(100 * row["match"], 100 * row["std"]),
            str(row["seeds"]),
            f"{100 / row['q']:.1f}",
        )
        for row in rows
    )
    made = {row["preset"]: row["provenance"] for row in rows}
    notes = [f"`{name}`: {m['device']}, {m['precision']} trunk, commit `{m['commit']}`" for name, m in made.items()]
    return f"{markdown_table(columns, body)}\n\n{'; '.join(notes)}."


def _name(setting: str) -> str:
    return {"k": "K"}.get(setting, setting)


def _value(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)


EPOCHS = {(case.embedding, *case.size, case.samples): case.epochs for case in recipes.CASES}
OVER = "mean ± standard deviation over seeds, their number in brackets"


def beyond(place: Path) -> str:
    """Methods at their best past the paper, each asked once and asked often."""
    often = f"asked once / asked {recipes.ASKS} ways: {OVER} (of the pairs: one seed each)"
    return _beyond(place, ("sparse", "aux", "searched", "auto"), often, (1, recipes.ASKS))


def beyond_in_short(place: Path) -> str:
    """The same asked once, without the search for K and r."""
    return _beyond(place, ("sparse", "aux", "auto"), f"asked once: {OVER}", (1,))


def _beyond(place: Path, methods: Sequence[str], figures: str, asks: Sequence[int]) -> str:
    stored = results.read(place)
    groups = by_facts(tables.build("beyond", "best", stored).cells, ("embedding", "n", "q", "samples", "tau"))
    columns = ("case: samples × epochs", "accuracy", "chance", "the paper's aux", *(NAMES[name] for name in methods))
    rows = []
    for (embedding, n, q, samples, tau), every in groups.items():
        cells = [cell for cell in every if cell.facts["asks"] in asks]
        (paper,) = {cell.paper for cell in cells if cell.facts["method"] == "aux" and cell.facts["asks"] == 1}
        ours = [asked([cell for cell in cells if cell.facts["method"] == name]) for name in methods]
        case = f"{problem(embedding, n, q)}: {amount(samples)} × {EPOCHS[embedding, n, q, samples]}"
        accuracy, known = "match" if tau is None else f"τ = {tau:g}", "–" if paper is None else f"{paper:.1f}"
        rows.append((case, accuracy, f"{cells[0].chance:.1f}", known, *ours))
    note = (
        f"In percent, {figures}. The paper's figures are after {epochs(build().training.epochs)}. "
        f"{results.origins(stored, recipes.cells('beyond'))}: `auxmod reproduce beyond`."
    )
    return f"{markdown_table(columns, rows)}\n\n{note}"


def trials(place: Path) -> str:
    """Trials past the paper, case by case, the highest match accuracy first."""

    def case(row: dict[str, Any]) -> str:
        training = row["config"]["training"]
        longer = f", {training['samples']:,} samples, {epochs(training['epochs'])}"
        return problem(*_problem(row)) + (longer if training["samples"] > wants.SMALL else "")

    cases = grouped(read_lines(place / "trials" / "past_the_paper.jsonl"), case)
    return "\n\n".join(f"**{name}**\n\n{_case(rows)}" for name, rows in cases.items())


def _case(rows: list[dict[str, Any]]) -> str:
    chance = f"chance {100 / rows[0]['config']['problem']['q']:.2g}"
    columns = ("trial", f"match ({chance})", "τ = 0.01", "τ = 0.05", f"match, asked 16 ways ({chance})")
    scored = [row for row in rows if "scores" in row]
    scored.sort(key=lambda row: (-row["scores"]["match"], -row["scores"]["tau"]["0.01"]))
    figures = (
        (row["scores"]["match"], row["scores"]["tau"]["0.01"], row["scores"]["tau"]["0.05"], row["asked"]["match"])
        for row in scored
    )
    body = [(row["tag"], *(f"{100 * v:.1f}" for v in values)) for row, values in zip(scored, figures, strict=True)]
    return markdown_table(columns, body + [(row["tag"], "diverged", "", "", "") for row in rows if "failed" in row])


RARE = ((32, 257), (64, 433))
"""The (N, q) of the angular cases whose errors are counted by how rare a sum is."""
WEIGHED = {tails: f"auto, `--tails {tails:g}`" for tails in (1.0, TAILS)}
"""The names of `auto` without and with more weight for rare sums."""


def by_rarity(place: Path) -> str:
    """Match accuracy of each method at its best, by how many standard deviations a sum is from the mean."""
    columns = [(case, way) for case in RARE for way in ("sparse", "aux", *WEIGHED.values())]
    right, seen = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for way, rows in _by_way(place).items():
        for row in rows:
            embedding, n, q = _problem(row)
            for part in row["scores"]["by_wraps"] if embedding == "angular" and (n, q) in RARE else ():
                middle = part["bucket"] * q + (q - 1) / 2
                band = min(3, int(abs(middle - n * (q - 1) / 2) / math.sqrt(n * (q**2 - 1) / 12)))
                right[band, (n, q), way] += part["correct"]
                seen[band, (n, q), way] += part["samples"]
    whole = sum(count for (_, *column), count in seen.items() if tuple(column) == columns[-1])
    body = (
        (
            ("less than 1", "1 to 2", "2 to 3", "3 or more")[band],
            f"{100 * seen[band, *columns[-1]] / whole:.1f}",
            *(f"{100 * right[band, *column] / seen[band, *column]:.1f}" for column in columns),
        )
        for band in range(4)
    )
    heads = (f"{way}, N = {n}, q = {q}" for (n, q), way in columns)
    chances = " and ".join(f"{100 / q:.1f}" for _, q in RARE)
    note = f"of the runs above, asked once, over all seeds; chance {chances}. Sums that wrap as often count as one."
    table = markdown_table(("deviations from the mean", f"share at N = {RARE[-1][0]} (%)", *heads), body)
    return f"{table}\n\nMatch accuracy (%) {note}"


def tails(place: Path) -> str:
    """`auto` without and with more weight for rare sums, in every case past the paper."""
    every = _by_way(place)
    ways = {way: every.get(way, []) for way in WEIGHED.values()}
    rows = []
    for case in recipes.CASES:
        size, tau = (case.embedding, *case.size), None if case.taus[-1] is None else f"{case.taus[-1]:g}"
        own = [[row["scores"] for row in group if _problem(row) == size] for group in ways.values()]
        figures = [over_seeds([each["tau"][tau] if tau else each["match"] for each in scores]) for scores in own]
        far = [over_seeds([1 - each["tau"]["0.05"] for each in scores], digits=2) for scores in own]
        seeds = ", ".join(dict.fromkeys(str(len(scores)) for scores in own))
        rows.append((problem(*size), f"τ = {tau}" if tau else "match", *figures, *far, seeds))
    heads = [*ways, *(f"further off than 0.05·q: {way}" for way in ways)]
    made = dict.fromkeys((way, row["provenance"]["commit"]) for way, group in ways.items() for row in group)
    note = (
        "In percent, asked once: mean ± standard deviation over seeds, samples and steps as in the table above. "
        + "; ".join(f"{way}: commit `{commit}`" for way, commit in made)
    )
    return f"{markdown_table(('case', 'accuracy', *heads, 'seeds'), rows)}\n\n{note}."


def _by_way(place: Path) -> dict[str, list[dict[str, Any]]]:
    """Finished runs past the paper, by method; `auto` without more weight for rare sums is among the trials."""
    trials = read_lines(place / "trials" / "past_the_paper.jsonl")
    even = (row for row in trials if row["tag"].startswith("auto, tails 1, ") and "scores" in row)
    ways: dict[str, list[dict[str, Any]]] = {}
    for row in (*finished(place / "beyond.jsonl"), *{row["hash"]: row for row in even}.values()):
        method = row["config"]["method"]
        name = WEIGHED.get(method.get("tails", 1.0), "") if method["method"] == "auto" else method["method"]
        ways.setdefault(name, []).append(row)
    return ways


def _problem(row: dict[str, Any]) -> tuple[str, int, int]:
    config = row["config"]
    return config["model"]["embedding"], config["problem"]["n"], config["problem"]["q"]
