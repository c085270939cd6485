"""What the paper prints against what is computed. `auxmod theory --paper-errors` shows it; docs/paper.md holds it.

The figures on the left are the paper's, typed as it prints them; those on the right are computed: from the exact
theory (`propositions`), or from the paper's own tables for claims about those (`tables`). To refresh the document:

    make pages
"""

from __future__ import annotations

from collections.abc import Sequence

from auxmod.reporting.errata import propositions, tables
from auxmod.reporting.errata.finding import Finding
from auxmod.reporting.render import markdown_table

__all__ = ["COMMAND", "TITLES", "Finding", "findings", "markdown"]

COMMAND = "auxmod theory --paper-errors --markdown"
TITLES = {
    "wrong": "Wrong, or contradicting itself",
    "rough": "Approximations that mislead, and claims stronger than their numbers",
    "right": "Checked, and right",
}


def findings() -> list[Finding]:
    """Every claim checked: theory first, then tables."""
    return [finding for part in (*propositions.PARTS, *tables.PARTS) for finding in part()]


def markdown(rows: Sequence[Finding]) -> str:
    """The findings as Markdown, a table for each verdict."""
    return "\n\n".join(_table(title, [row for row in rows if row.verdict == key]) for key, title in TITLES.items())


def _table(title: str, rows: Sequence[Finding]) -> str:
    heads = ("#", "where", "the paper says", "printed", "computed")
    cells = ((str(at), row.where, row.claim, row.printed, row.computed) for at, row in enumerate(rows, start=1))
    return f"**{title}** ({len(rows)})\n\n{markdown_table(heads, cells, len(heads))}"
