"""The paper's claims, checked. `auxmod theory --paper-errors` prints them, and docs/paper.md shows them.

Printed values are the paper's, as it prints them. Computed values come from the exact theory (`propositions`) or, for
claims about the paper's own tables, from those tables (`tables`).
"""

from __future__ import annotations

from collections.abc import Sequence

from auxmod.reporting.errata import propositions, tables
from auxmod.reporting.errata.finding import Finding
from auxmod.reporting.render import markdown_table

__all__ = ["TITLES", "Finding", "findings", "markdown"]

TITLES = {
    "wrong": "Wrong, or contradicting itself",
    "rough": "Approximations that mislead, and claims stronger than their numbers",
    "right": "Checked, and right",
}


def findings() -> list[Finding]:
    """Every checked claim: theory first, then tables."""
    return [finding for part in (*propositions.PARTS, *tables.PARTS) for finding in part()]


def markdown(rows: Sequence[Finding]) -> str:
    """The findings as Markdown, with a table for each verdict."""
    return "\n\n".join(_table(title, [row for row in rows if row.verdict == key]) for key, title in TITLES.items())


def _table(title: str, rows: Sequence[Finding]) -> str:
    heads = ("#", "where", "the paper says", "printed", "computed")
    cells = ((str(at), row.where, row.claim, row.printed, row.computed) for at, row in enumerate(rows, start=1))
    return f"**{title}** ({len(rows)})\n\n{markdown_table(heads, cells, len(heads))}"
