"""Tests of the findings about the paper: known errors are among them, with the right figures."""

from __future__ import annotations

import pytest

from auxmod.reporting import errata


@pytest.fixture(scope="module")
def rows() -> list[errata.Finding]:
    return errata.findings()


@pytest.mark.parametrize(
    ("where", "printed", "computed"),
    [
        ("Proposition 7", "0.024 (N=3, q=5, K=2)", "0.92"),
        ("Proposition 7", "-0.04 (N=2, q=5, K=2)", "1,"),
        ("Table 4", "0.61", "0.6157"),
        ("Appendix C.1", "0.6121", "0.6587"),
        ("Abstract", "97.0 / 9.5 / 93.9", "N=128"),
        ("Section 6", "ours at 1M", "τ=0.05: 7 won, 1 tied, 8 lost"),
        ("Section 5.2", "always", "τ=0.1: 2 won, 1 tied, 1 lost"),
        ("Table 2", "3.9 (N=128, q=3329)", "10.0"),
        ("Proposition 1", "N=8, q=97", "0.211"),
        ("Table 6", "16 configurations", "98.5 against 92.5"),
        ("Table 7", "18 settings", "8 of them"),
    ],
)
def test_known_errors_are_found(rows, where: str, printed: str, computed: str) -> None:
    assert any(
        row.where == where and printed in row.printed and computed in row.computed
        for row in rows
        if row.verdict != "right"
    )


def test_what_is_right_is_said_to_be(rows) -> None:
    right = {row.where for row in rows if row.verdict == "right"}
    assert right == {"Table 4", "Proposition 5", "Proposition 6", "Table 3"}


def test_a_markdown_row_has_five_cells(rows) -> None:
    for line in errata.markdown(rows).splitlines():
        assert not line.startswith("|") or line.replace("\\|", "").count("|") == 6
