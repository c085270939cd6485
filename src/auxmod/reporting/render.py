"""Write tables: as rows and columns in Markdown and LaTeX, or cell by cell in CSV and JSON."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from auxmod.checked import shown
from auxmod.config import DATA
from auxmod.reporting.cells import NAMES, Cell, Table, by_facts

Format = Literal["text", "markdown", "latex", "csv", "json"]
HEADS = {"n": "N", "tau": "τ"}
COLUMNS = HEADS | {"k": "K"}
"""What a column's values are called before them, as in K = 4; a row's have the heading."""
ORDER = (
    "item", "preset", "embedding", "n", "q", "samples", "method", "metric", "tau", "asks", "statistic", "k", "r",
    "norm", "bias", "init", "dropout", "pooling", "final_norm", "clip", "changed", "setup", "epochs", "steps", "paper",
    "mean", "std", "count", "failed", "unfinished", "chance", "difference",
)  # fmt: skip
"""The order of a CSV file's columns; other facts stand before the figures."""
FIGURES = ORDER[ORDER.index("paper") :]
ESCAPED = "\\|"
"""A vertical bar that does not end a Markdown column."""


Kind = Literal["label", "chance", "paper", "ours", "difference"]


class Head(NamedTuple):
    """A column's group, its name within the group, and the kind of value beneath it."""

    group: str
    name: str
    kind: Kind


@dataclass(frozen=True)
class Layout:
    """A table as words in rows and columns."""

    heads: list[Head]
    rows: list[list[str]]
    cells: list[list[Cell | None]]
    """The cell behind each word; None for labels, for chance, and where the table has no cell."""

    @property
    def labels(self) -> int:
        """The number of columns, from the left, that name a row."""
        return sum(head.kind == "label" for head in self.heads)

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Groups of adjacent columns: the name of each and its number of columns."""
        return [(name, len(list(run))) for name, run in itertools.groupby(head.group for head in self.heads)]


def layout(table: Table) -> Layout:
    """Arrange a table's cells in rows and columns."""
    compared = {cell.facts[table.shape.across] for cell in table.cells if cell.paper is not None}
    groups = by_facts(table.cells, table.down)
    levels = [len({cell.chance for cell in group} - {None}) for group in groups.values()]
    plain = table.shape.across == "k" and not table.shape.seeds  # a heatmap's figures, without words beside them
    guessed, several = not plain and max(levels, default=0) == 1, not plain and max(levels, default=0) > 1
    heads = [Head("", HEADS.get(name, name), "label") for name in table.down]
    heads += [Head("", "chance", "chance")] * guessed
    for column in table.columns:
        over = _column(table.shape.across, column)
        own = Head(over, "" if plain else table.shape.ours, "ours")
        beside = Head(over, "paper", "paper"), own, Head(over, "Δ", "difference")
        heads += beside if column in compared else (own,)
        heads += [Head(over, "chance", "chance")] * several
    rows, cells = [], []
    for key, group in groups.items():
        row = [word(name, value) for name, value in zip(table.down, key, strict=True)]
        row += [figure(next(cell.chance for cell in group if cell.chance is not None), 1)] if guessed else []
        found = {cell.facts[table.shape.across]: cell for cell in group}
        assert len(found) == len(group), f"{table.item} has two cells in one place: {key}"
        behind: list[Cell | None] = [None] * len(row)
        for column in table.columns:
            words = _words(found.get(column), column in compared, table)
            words += [figure(found[column].chance, 1) if column in found else ""] * several
            row += words
            behind += [found.get(column)] * len(words)
        rows.append(row)
        cells.append(behind)
    return Layout(heads, rows, cells)


def _words(cell: Cell | None, compared: bool, table: Table) -> list[str]:
    """A cell's columns: the paper's figure, ours and their difference; ours alone if nothing is compared."""
    if cell is None:
        return ["", "", ""] if compared else [""]
    ours, digits = _ours(cell, table), table.shape.digits
    return [figure(cell.paper, min(digits, 2)), ours, figure(cell.difference, digits, "+")] if compared else [ours]


def _ours(cell: Cell, table: Table) -> str:
    """89.1 ± 0.4 (3): mean, standard deviation, seeds. Tables over K and r, and of theory, show the figure alone."""
    seeds = table.shape.seeds or table.shape.across == "method"
    if cell.ours is None:
        absent = "–" if table.shape.seeds else "not run"
        return "failed" if cell.failed else "unfinished" if cell.unfinished else absent
    lost = {"failed": cell.failed, "unfinished": cell.unfinished}
    without = "".join(f", {count} {why}" for why, count in lost.items() if count)
    ours = with_spread(cell.ours, cell.std if seeds else None, table.shape.digits)
    counted = seeds or (without and table.shape.across == "k")
    return f"{ours} ({cell.count}{without})" if counted else ours


def figure(value: float | None, digits: int, sign: str = "") -> str:
    """Format a figure, with a true minus sign."""
    if value is None:
        return "–"
    rounded = round(value, digits) + 0.0  # turns −0.0 into 0.0
    return f"{rounded:{sign}.{digits}f}".replace("-", "−")


def with_spread(mean: float | None, std: float | None, digits: int = 1) -> str:
    """A mean, with its standard deviation if there is one."""
    return figure(mean, digits) + ("" if std is None else f" ± {std:.{digits}f}")


def word(name: str, value: Any) -> str:
    """A fact as a table shows it."""
    if name == "samples":
        return amount(value)
    if name == "tau" and value is None:
        return "match"
    if name in DATA:
        return Path(value).name or "drawn"
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "–"}[value]
    return shown(value) if isinstance(value, tuple) else str(value)


def _column(across: str, value: Any) -> str:
    if across in ("method", "statistic", "figure"):
        return str(NAMES.get(value, value))
    return f"{COLUMNS.get(across, across)} = {word(across, value)}"


def amount(samples: int) -> str:
    """100000 → 100K."""
    for unit, name in ((1_000_000, "M"), (1_000, "K")):
        if samples >= unit and samples % unit == 0:
            return f"{samples // unit}{name}"
    return str(samples)


def epochs(count: int) -> str:
    """1 → 1 epoch, 10 → 10 epochs."""
    return f"{count} epoch{'s' * (count != 1)}"


# ---- for documents ----------------------------------------------------------------------------------------


def markdown(table: Table) -> str:
    """The table as Markdown: a heading, the table, and a list of its notes and of what it was made on."""
    page = layout(table)
    body = markdown_table([" ".join(filter(None, head[:2])) for head in page.heads], page.rows, page.labels)
    return "\n".join([f"**{table.title}**", "", body, "", *(f"- {note}" for note in _notes(table))]).rstrip()


def _notes(table: Table) -> list[str]:
    """A table's notes, and what it was made on."""
    return [*table.notes, *([f"{table.origin()}."] if table.made else [])]


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table whose first ``words`` columns are words, aligned left, and the others figures, aligned right."""
    rule = ["---"] * words + ["---:"] * (len(heads) - words)
    lines = (heads, rule, *rows)
    return "\n".join(f"| {' | '.join(cell.replace('|', ESCAPED) for cell in line)} |" for line in lines)


def latex(table: Table) -> str:
    """The table as LaTeX (booktabs), with a rule under each group of columns."""
    page = layout(table)
    top, rules, at = [], [], 1
    for name, width in page.groups:
        top.append(f"\\multicolumn{{{width}}}{{c}}{{{_tex(name)}}}" if name else " & ".join([""] * width))
        rules += [f"\\cmidrule(lr){{{at}-{at + width - 1}}}"] if name and width > 1 else []
        at += width
    lines = [" & ".join(top), *rules, " & ".join(_tex(head.name) for head in page.heads), "\\midrule"]
    lines += [" & ".join(map(_tex, row)) for row in page.rows]
    body = "\n".join(line if line.startswith(("\\cmid", "\\mid")) else f"{line} \\\\" for line in lines)
    columns = "l" * page.labels + "r" * (len(page.heads) - page.labels)
    notes = "".join(f"% {note}\n" for note in _notes(table))
    return (
        f"{notes}\\begin{{table}}\n\\centering\n\\caption{{{_tex(table.title)}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n\\end{{table}}"
    )


_TEX = {"%": "\\%", "_": "\\_", "^": "\\^{}", "±": "$\\pm$", "−": "$-$", "–": "--", "Δ": "$\\Delta$", "τ": "$\\tau$",
        "ρ": "$\\rho$", "&": "\\&", "#": "\\#", "$": "\\$", "{": "\\{", "}": "\\}"}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(letter, letter) for letter in text)


# ---- for programs -----------------------------------------------------------------------------------------


def as_csv(tables: Sequence[Table]) -> str:
    """One line per cell, with the facts it is a figure of."""
    out = io.StringIO()
    records = [record for table in tables for record in table.records()]
    known = dict.fromkeys(name for record in records for name in record)
    facts = [*(name for name in ORDER if name not in FIGURES), *(name for name in known if name not in ORDER)]
    columns = [name for name in (*facts, *FIGURES) if name in known]
    writer = csv.DictWriter(out, columns, lineterminator="\n")
    writer.writeheader()
    lists = ({name: shown(value) for name, value in each.items() if isinstance(value, tuple)} for each in records)
    writer.writerows(record | own for record, own in zip(records, lists, strict=True))
    return out.getvalue()


def render(tables: Sequence[Table], form: Format) -> str:
    """Write tables in any format except `text`, which the terminal draws."""
    if form == "json":
        return json.dumps([table.to_dict() for table in tables], indent=2, ensure_ascii=False)
    if form == "csv":
        return as_csv(tables).rstrip("\n")
    return "\n\n".join((latex if form == "latex" else markdown)(table) for table in tables)
