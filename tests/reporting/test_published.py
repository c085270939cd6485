"""Tests of the paper's numbers as typed in: their counts, their sums, and cells parsed from the paper's own LaTeX."""

from __future__ import annotations

import re
from collections import Counter
from typing import get_args

import pytest

from auxmod.experiments import presets, recipes, wants
from auxmod.reporting import published
from auxmod.reporting.published import CONFIGURATIONS, GAP, TABLE1, TABLE2, TABLE3, find, rows

COUNTS = {"table1a": 36, "table1b": 36, "table2": 128, "table3": 90, "configs": 32, "choice": 28, "gap": 16}
SUMS = {"table1a": 1111.7, "table1b": 1972.2, "table2": 11576.2, "table3": 5577.4, "configs": 1277.7, "gap": 9.14}
"""The sum of the numbers between each table's ampersands, computed by a script that read only the paper."""


def test_every_number_is_there_once() -> None:
    assert Counter(row.table for row in rows()) == COUNTS
    assert tuple(COUNTS) == get_args(published.TableName)
    assert len(set(rows())) == len(rows())


@pytest.mark.parametrize(("table", "total"), SUMS.items())
def test_the_tables_add_up(table: str, total: float) -> None:
    assert sum(row.value or 0.0 for row in rows() if row.table == table) == pytest.approx(total)


# ---- the paper's own lines --------------------------------------------------------------------------------


def numbers(line: str) -> list[float]:
    return [float(text) for text in re.findall(r"\d+(?:\.\d+)?", line.replace("\\textbf", ""))]


@pytest.mark.parametrize(
    ("table", "n", "line"),
    [
        ("table1a", 8, r"& 97 & \textbf{13.9} & 0.9 & \textbf{90.1} & 74.9 \\"),
        ("table1a", 32, r"& 257 & \textbf{0.5} & 0.4 & \textbf{12.6} & 0.3 \\"),
        ("table1b", 16, r"& 97 & \textbf{98.9} & 32.2 & \textbf{99.9} & 92.6 \\"),
        ("table1b", 64, r"& 433 & \textbf{29.0} & 0.2 & \textbf{53.8} & 11.4 \\"),
    ],
)
def test_lines_of_table_1(table: str, n: int, line: str) -> None:
    q, *values = numbers(line)
    places = [(samples, method) for samples in (100_000, 1_000_000) for method in ("aux", "sparse")]
    for (samples, method), value in zip(places, values, strict=True):
        assert find(table, n=n, q=q, samples=samples, method=method, metric="match") == value


@pytest.mark.parametrize(
    ("n", "line"),
    [
        (
            32,
            r"974269 & \textbf{99.7} & 95.2 & \textbf{100.0} & 100.0 & \textbf{97.8} & 79.9 & \textbf{100.0} & 99.5 \\",
        ),
        (
            128,
            r"974269 & \textbf{99.4} & 18.6 & \textbf{100.0} & 99.2 & \textbf{97.0} & 9.5 & \textbf{100.0} & 93.9 \\",
        ),
    ],
)
def test_lines_of_table_2(n: int, line: str) -> None:
    q, *values = numbers(line)
    places = [(t, s, m) for t in (0.1, 0.05) for s in (1_000_000, 10_000_000) for m in ("aux", "sparse")]
    for (tau, samples, method), value in zip(places, values, strict=True):
        assert find("table2", n=n, q=q, tau=tau, samples=samples, method=method, metric="tau") == value


def test_a_line_of_table_3() -> None:
    line = r"& 64 & 433 & 34.0~/~\textbf{54.7}~/~78.4   & 11.4 & \texttt{+}43.3 \\"
    n, q, *values = numbers(line)
    at = {"embedding": "angular", "n": n, "q": q, "samples": 1_000_000}
    found = [find("table3", **at, statistic=name, method="aux") for name in ("min", "mean", "max")]
    found += [find("table3", **at, method="sparse"), find("table3", **at, metric="gain")]
    assert found == values


def test_lines_of_the_configurations_and_of_the_gap_table() -> None:
    assert CONFIGURATIONS["pre", False, "default", 0.1] == tuple(numbers(r"& & & 0.1 & 98.5 & 14.2 \\")[1:])
    assert CONFIGURATIONS["post", False, "0.02", 0.0] == tuple(numbers(r"& 0.0 & 1.1 & 74.0 \\")[1:])
    n, *line = numbers(r"24 & 0.23 & 0.34 & 0.60 & 0.81 \\")
    assert list(GAP[int(n)].values()) == line
    assert find("configs", norm="pre", bias=True, init="default", dropout=0.0, method="aux") == 90.1


# ---- consistency ------------------------------------------------------------------------------------------


def test_the_tables_agree_with_one_another_where_they_repeat_themselves() -> None:
    for (embedding, n, q), (least, mean, most, baseline, gain) in TABLE3.items():
        used = TABLE1[embedding][n, q]
        assert least <= mean <= most
        assert least <= used[2] <= most
        assert baseline == used[3]
        assert mean - baseline == pytest.approx(gain, abs=0.051)
    for row in TABLE2.values():
        assert all(wide >= narrow for wide, narrow in zip(row[:4], row[4:], strict=True))
    assert CONFIGURATIONS["pre", True, "default", 0.0] == TABLE1["token"][8, 97][:1:-1]


def test_the_recipes_have_the_tables_settings() -> None:
    for embedding, table in TABLE1.items():
        assert wants.SIZES[embedding] == tuple(table)
    assert tuple(TABLE2) == recipes.LARGE_SIZES
    assert [(e, *size) for e, sizes in wants.SIZES.items() for size in sizes] == list(TABLE3)
    assert len(recipes.HEATMAP) == 81
    assert len(recipes.SEARCHED) == 24
    assert presets.OUR_CHOICE.keys() == published.UNTUNED


def test_rows_have_what_applies_to_them_and_nothing_else() -> None:
    first = rows()[0].to_dict()
    assert first["k"] == 5
    assert first["r"] == 0.2
    assert set(first) == {*published.CORE, "k", "r"}
    for row in rows():
        plain = row.to_dict()
        assert set(published.CORE) <= set(plain)
        assert ("norm" in plain) == (row.table == "configs")
        assert ("statistic" in plain) == (row.table == "table3" and row.method == "aux" and row.metric == "match")
        if row.table in ("table1a", "table1b", "table2", "configs", "choice"):
            assert ("k" in plain) == (row.method == "aux" and (row.n, row.q) not in published.UNTUNED)
    assert find("table1a", n=7) is None
