"""Blocks of docs/results.md and docs/research.md: what was tried, from results/, as Markdown."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from auxmod.experiments import recipes, unstated, wants
from auxmod.files import read_lines
from auxmod.reporting import render, results, tables
from auxmod.reporting.cells import NAMES, NEAR, Cell, grouped
from auxmod.settings import build

Rows = Iterable[Sequence[str]]
NEAREST = 8


def markdown(columns: Sequence[str], rows: Rows) -> str:
    """A Markdown table; the first column is text, the others figures."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


def setup(place: Path) -> str:
    """The configurations nearest to the paper's figures, of all that the paper's text leaves open."""
    names = ("pooling", "final_norm", "init", "clip")
    groups = grouped(tables.build("setup", "paper", results.first_seeds(results.read(place))).cells, names)
    compared = {key: [cell for cell in cells if cell.difference is not None] for key, cells in groups.items()}
    whole = {key: cells for key, cells in compared.items() if len(cells) == 4}
    ranked = sorted((_distance(cells), key) for key, cells in whole.items())
    heads = [f"{cell.facts['embedding']} {cell.facts['method']} ({cell.paper})" for cell in next(iter(whole.values()))]
    rows = (
        (
            f"{key[0]}, {'' if key[1] else 'no '}final norm, init {key[2]}, {'clip 1' if key[3] else 'no clip'}",
            *(f"{cell.ours:.1f}" for cell in whole[key]),
            f"{distance:.1f}",
        )
        for distance, key in ranked[:NEAREST]
    )
    note = (
        f"The {NEAREST} nearest of {len(whole)} configurations; in brackets the paper's figures. Match accuracy (%), "
        "token N = 8, q = 31 and angular N = 16, q = 97, 100K samples; the first seed. All of them: `auxmod table "
        "setup`."
    )
    return f"{markdown(('configuration', *heads, 'mean distance'), rows)}\n\n{note}"


def _distance(cells: Sequence[Cell]) -> float:
    return statistics.fmean(abs(cell.difference) for cell in cells if cell.difference is not None)


def knobs(place: Path) -> str:
    """The paper's setup with one stated value changed."""
    return render.markdown(tables.build("knobs", "paper", results.read(place)))


def finalists(place: Path) -> str:
    """How near each of the last configurations comes to the paper's figures, over all cells of Table 1."""
    cells = tables.build("finalists", "paper", results.first_seeds(results.read(place))).cells
    groups = grouped(cells, ("changed", "method", "embedding"))
    columns = [(method, embedding) for method in ("aux", "sparse") for embedding in wants.SIZES]
    rows = []
    for changed in dict.fromkeys(changed for changed, _, _ in groups):
        whole = [groups.get((changed, *column), []) for column in columns]
        figures = [_nearness(group) if len(group) >= len(wants.SIZES["angular"]) else "" for group in whole]
        rows.append((_named(changed), *figures))
    table = markdown(
        ("configuration", *(f"{method}, {name}" for method, name in columns)), [row for row in rows if any(row[1:])]
    )
    note = (
        f"Cells of Table 1 at 100K samples that come within {NEAR:g} points of the paper's accuracy, and the mean "
        "distance from it; the first seed: `auxmod table finalists`."
    )
    return "\n\n".join((table, note, *_tried_on_angles(cells), _in_other_precision(place)))


def _tried_on_angles(cells: Sequence[Cell]) -> tuple[str, str]:
    """The best of all that was tried on one cell of angles."""
    n, q = unstated.ANGLES[0]
    here = [c for c in cells if c.facts["embedding"] == "angular" and (c.facts["n"], c.facts["q"]) == (n, q)]
    tried = sorted((c for c in here if c.facts["method"] == "aux" and c.ours), key=lambda c: -(c.ours or 0))
    rows = ((_named(c.facts["changed"]), f"{c.ours:.1f}") for c in tried[:NEAREST])
    note = (
        f"The {NEAREST} best of {len(tried)} configurations of `aux` on angles, N = {n}, q = {q}: match accuracy (%), "
        "the first seed."
    )
    return markdown(("configuration", f"aux ({tried[0].paper})"), rows), note


def _named(changed: str) -> str:
    return "preset `stated`" if changed == "nothing" else changed


def _in_other_precision(place: Path) -> str:
    """Runs of these cells that were trained once more in another precision, beside the first."""
    first = {row["hash"]: row for row in read_lines(place / "finalists.jsonl")}
    said = []
    for row in read_lines(place / "trials" / "precision.jsonl"):
        problem, model = row["config"]["problem"], row["config"]["model"]
        figures = (
            f"{100 * each['scores']['match']:.1f} in {made['precision']} on {made['device']}, commit `{made['commit']}`"
            for each in (row, first[row["hash"]])
            for made in (each["provenance"],)
        )
        said.append(f"{model['embedding']}, N = {problem['n']}, q = {problem['q']}: {'; '.join(figures)}")
    return f"The same run of the preset `stated`, `aux`, in two precisions: {'; '.join(said)}."


def _nearness(cells: Sequence[Cell]) -> str:
    sides = [cell.beside_paper() for cell in cells if cell.difference is not None]
    return f"{sides.count(0)} of {len(sides)}, {_distance(cells):.1f}" if sides else ""


def ways(place: Path) -> str:
    """Ways to set K and r, at equal cost."""
    rows = read_lines(place / "compare.jsonl")
    columns = ("case", "preset", "way", "chosen", "cost in runs", "match accuracy (%)", "seeds", "chance (%)")
    body = (
        (
            f"{row['embedding']}, N = {row['n']}, q = {row['q']}",
            row["preset"],
            row["way"],
            ", ".join(f"{_name(name)} = {_value(value)}" for name, value in row["choice"].items()),
            f"{row['cost']:.0f}",
            f"{100 * row['match']:.1f} ± {100 * row['std']:.1f}",
            str(row["seeds"]),
            f"{100 / row['q']:.1f}",
        )
        for row in rows
    )
    made = {row["preset"]: row["provenance"] for row in rows}
    notes = [f"`{name}`: {m['device']}, {m['precision']} trunk, commit `{m['commit']}`" for name, m in made.items()]
    return f"{markdown(columns, body)}\n\n{'; '.join(notes)}."


def _name(setting: str) -> str:
    return {"k": "K"}.get(setting, setting)


def _value(value: Any) -> str:
    return f"{value:.2g}" if isinstance(value, float) else str(value)


COMPARED = ("sparse", "aux", "searched", "auto")
EPOCHS = {(case.embedding, *case.size, case.samples): case.epochs for case in recipes.CASES}


def beyond(place: Path) -> str:
    """Methods at their best past the paper: each figure asked once, and asked often."""
    groups = grouped(
        tables.build("beyond", "best", results.read(place)).cells, ("embedding", "n", "q", "samples", "metric")
    )
    columns = ("case", "accuracy", "chance", "the paper's aux", *(NAMES[name] for name in COMPARED))
    rows = []
    for (embedding, n, q, samples, metric), cells in groups.items():
        (paper,) = {cell.paper for cell in cells if cell.facts["method"] == "aux" and cell.facts["asks"] == 1}
        figures = [asked([cell for cell in cells if cell.facts["method"] == name]) for name in COMPARED]
        case = f"{embedding}, N = {n}, q = {q}, {samples:,} samples, {_epochs(EPOCHS[embedding, n, q, samples])}"
        rows.append((case, metric, f"{cells[0].chance:.1f}", "–" if paper is None else f"{paper:.1f}", *figures))
    made = {row["provenance"]["commit"]: row["provenance"] for row in read_lines(place / "beyond.jsonl")}
    note = (
        f"In percent, asked once / asked {recipes.ASKS} ways: mean ± standard deviation over seeds, their number in "
        f"brackets (of the pairs: one seed each). The paper's figures are after {_epochs(build().training.epochs)}. "
        + "; ".join(f"{m['device']}, {m['precision']} trunk, commit `{name}`" for name, m in made.items())
        + ": `auxmod reproduce beyond`."
    )
    return f"{markdown(columns, rows)}\n\n{note}"


def asked(cells: Sequence[Cell]) -> str:
    """The figures of one method, asked once and asked often, and how many seeds there are of them."""
    if not any(cell.count or cell.failed for cell in cells):
        return "not run" if cells else ""
    figures = " / ".join(
        "–" if cell.ours is None else f"{cell.ours:.1f}" + ("" if cell.std is None else f" ± {cell.std:.1f}")
        for cell in cells
    )
    return f"{figures} ({cells[0].count}" + (f", {cells[0].failed} failed)" if cells[0].failed else ")")


def _epochs(count: int) -> str:
    return f"{count} epoch{'s' * (count != 1)}"


def trials(place: Path) -> str:
    """Trials past the paper, case by case, the most exact first."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in read_lines(place / "trials" / "past_the_paper.jsonl"):
        config, samples = row["config"], row["config"]["training"]["samples"]
        case = f"{config['model']['embedding']}, N = {config['problem']['n']}, q = {config['problem']['q']}"
        longer = f", {samples:,} samples, {_epochs(config['training']['epochs'])}" if samples > wants.SMALL else ""
        cases.setdefault(case + longer, []).append(row)
    return "\n\n".join(f"**{case}**\n\n{_case(rows)}" for case, rows in cases.items())


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
    return markdown(columns, body + [(row["tag"], "diverged", "", "", "") for row in rows if "failed" in row])


def moduli(place: Path) -> str:
    """The demo's sum at other moduli, method by method, over seeds."""
    found: dict[tuple[int, str, float], list[dict[str, Any]]] = {}
    for row in read_lines(place / "moduli.jsonl"):
        config = row["config"]
        key = config["problem"]["q"], config["method"]["method"], config["training"]["lr"]
        found.setdefault(key, []).append(row)
    body = []
    for (q, method, lr), rows in sorted(found.items()):
        match = [100 * row["scores"]["match"] for row in rows]
        figures = f"{statistics.fmean(match):.1f} ± {statistics.stdev(match):.1f}"
        body.append((f"q = {q}", f"{method}, lr {lr:g}", figures, str(len(match)), f"{100 / q:.1f}"))
    made: dict[str, list[dict[str, Any]]] = {}
    for row in (row for rows in found.values() for row in rows):
        made.setdefault(row["provenance"]["commit"], []).append(row)
    note = "; ".join(_runs_of(commit, rows) for commit, rows in made.items())
    return f"{markdown(('modulus', 'method', 'match accuracy (%)', 'seeds', 'chance (%)'), body)}\n\n{note}."


def starts(place: Path) -> str:
    """`auto` with a small encoder, by how its weights start."""

    def start(config: dict[str, Any]) -> str:
        model = config["model"]
        return f"{model['init']}, the embedding {model['lift']:g}" if "lift" in model else str(model["init"])

    return _small_encoder(place / "lift.jsonl", "init", start)


def tails(place: Path) -> str:
    """`auto` with a small encoder, by how much rare sums may weigh."""
    return _small_encoder(place / "tails.jsonl", "`--tails`", lambda config: f"{config['method'].get('tails', 1):g}")


def _small_encoder(path: Path, head: str, named: Callable[[dict[str, Any]], str]) -> str:
    """Runs that differ in one thing, over seeds."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in read_lines(path):
        found.setdefault(named(row["config"]), []).append(row)
    body = []
    for name, rows in found.items():
        shares = [[row["scores"]["match"] for row in rows]]
        shares += [[row["scores"]["tau"][tau] for row in rows] for tau in ("0.01", "0.05")]
        figures = (f"{100 * statistics.fmean(each):.1f} ± {100 * statistics.stdev(each):.1f}" for each in shares)
        body.append((name, *figures, str(len(rows))))
    made = {row["provenance"]["command"]: row["provenance"] for rows in found.values() for row in rows}
    problem = rows[0]["config"]["problem"]
    origin = (f"{m['device']}, {m['precision']}, commit `{m['commit']}`, `{command}`" for command, m in made.items())
    note = f"N = {problem['n']}, q = {problem['q']}; chance {100 / problem['q']:.1f}, 2 and 10. {'; '.join(origin)}."
    return f"{markdown((head, 'match accuracy (%)', 'τ = 0.01', 'τ = 0.05', 'seeds'), body)}\n\n{note}"


RARE = ((32, 257), (64, 433))
"""Cases of angles past the paper whose errors are counted by how rare a sum is."""


def by_rarity(place: Path) -> str:
    """Match accuracy by how many standard deviations a sum lies from the mean, of each method at its best."""
    right, seen = Counter[tuple[Any, ...]](), Counter[tuple[Any, ...]]()
    for row in read_lines(place / "beyond.jsonl"):
        config = row["config"]
        case = config["problem"]["n"], config["problem"]["q"]
        if case in RARE and config["model"]["embedding"] == "angular" and "scores" in row:
            (n, q), method = case, config["method"]["method"]
            for part in row["scores"]["by_wraps"]:
                middle = part["bucket"] * q + (q - 1) / 2
                band = min(3, int(abs(middle - n * (q - 1) / 2) / math.sqrt(n * (q**2 - 1) / 12)))
                right[band, case, method] += part["correct"]
                seen[band, case, method] += part["samples"]
    columns = [(case, method) for case in RARE for method in ("sparse", "aux", "auto")]
    whole = sum(count for (_, case, method), count in seen.items() if (case, method) == columns[-1])
    rows = (
        (
            ("less than 1", "1 to 2", "2 to 3", "3 or more")[band],
            f"{100 * seen[band, *columns[-1]] / whole:.1f}",
            *(f"{100 * right[band, *column] / seen[band, *column]:.1f}" for column in columns),
        )
        for band in range(4)
    )
    heads = (f"{method}, N = {n}, q = {q}" for (n, q), method in columns)
    chances = " and ".join(f"{100 / q:.1f}" for _, q in RARE)
    note = f"of the runs above, asked once, over all seeds; chance {chances}. Sums that wrap as often count as one."
    table = markdown(("deviations from the mean", f"share at N = {RARE[-1][0]} (%)", *heads), rows)
    return f"{table}\n\nMatch accuracy (%) {note}"


def _runs_of(commit: str, rows: Sequence[dict[str, Any]]) -> str:
    """Where these were run, which methods they are of, at which rates, and the command."""
    made = rows[0]["provenance"]
    kinds = sorted({f"{row['config']['method']['method']} at {row['config']['training']['lr']:g}" for row in rows})
    return f"{', '.join(kinds)}: {made['device']}, {made['precision']}, commit `{commit}`, `{made['command']}`"
