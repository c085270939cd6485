"""Every number in the paper's tables, as data, in the paper's layout for easy checking. `auxmod published` prints them.

Accuracies are in percent, as printed. The paper's "ours" is `aux` here, and its "baseline" is `sparse`. The (K, r)
chosen in its Table 7 are `presets.PAPER_CHOICE`, which the presets use too.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from auxmod.experiments.presets import PAPER_CHOICE

Metric = Literal["match", "tau", "gain", "bound", "choice"]
"""bound: the gap table's (1−1/q)^N, not a percentage; choice: a row of Table 7, whose numbers are in k and r."""
Statistic = Literal["min", "mean", "max"]
HALVES = {"token": "table1a", "angular": "table1b"}
"""The half of Table 1 for each embedding."""
TableName = Literal["table1a", "table1b", "table2", "table3", "configs", "choice", "gap"]


@dataclass(frozen=True, kw_only=True)
class Published:
    """One number from the paper, and what it measures."""

    table: str
    embedding: str | None
    n: int
    q: int
    samples: int | None
    method: str | None
    metric: Metric
    tau: float | None = None
    value: float | None = None
    k: int | None = None
    r: float | None = None
    norm: str | None = None
    bias: bool | None = None
    init: str | None = None
    dropout: float | None = None
    statistic: Statistic | None = None
    """Over the grid K = 4..9, r = 0.1..0.4."""

    def to_dict(self) -> dict[str, Any]:
        """The first nine fields, and those of the others that apply."""
        plain = dataclasses.asdict(self)
        return {name: value for name, value in plain.items() if value is not None or name in CORE}


FIELDS = tuple(field.name for field in dataclasses.fields(Published))
CORE = FIELDS[:9]

# ---- the tables -------------------------------------------------------------------------------------------

TABLE1: dict[str, dict[tuple[int, int], tuple[float, float, float, float]]] = {
    "token": {
        (8, 31): (89.1, 3.2, 99.4, 98.6),
        (8, 97): (13.9, 0.9, 90.1, 74.9),
        (8, 257): (1.0, 0.5, 34.0, 0.5),
        (16, 31): (58.4, 3.3, 98.9, 80.7),
        (16, 97): (6.2, 1.0, 81.9, 1.1),
        (16, 257): (0.6, 0.4, 21.7, 0.4),
        (32, 31): (33.1, 2.9, 96.5, 38.7),
        (32, 97): (1.7, 1.1, 62.2, 1.0),
        (32, 257): (0.5, 0.4, 12.6, 0.3),
    },
    "angular": {
        (16, 97): (98.9, 32.2, 99.9, 92.6),
        (16, 257): (93.0, 11.8, 99.4, 63.8),
        (16, 433): (80.7, 6.8, 98.5, 45.7),
        (32, 97): (95.6, 4.2, 99.6, 81.1),
        (32, 257): (73.5, 0.6, 88.5, 44.9),
        (32, 433): (57.5, 0.9, 92.2, 27.7),
        (64, 97): (83.2, 0.9, 97.4, 58.7),
        (64, 257): (43.2, 0.3, 81.1, 23.4),
        (64, 433): (29.0, 0.2, 53.8, 11.4),
    },
}
"""Match accuracy at each (N, q): ours and baseline at 100K, then ours and baseline at 1M."""

TABLE2: dict[tuple[int, int], tuple[float, ...]] = {
    (16, 257): (100.0, 98.4, 100.0, 100.0, 100.0, 92.1, 100.0, 99.8),
    (16, 3329): (100.0, 98.3, 100.0, 100.0, 100.0, 92.5, 100.0, 99.9),
    (16, 42899): (100.0, 98.6, 100.0, 100.0, 99.9, 93.3, 100.0, 99.9),
    (16, 974269): (100.0, 98.4, 100.0, 100.0, 100.0, 93.2, 100.0, 99.9),
    (32, 257): (100.0, 95.9, 100.0, 99.9, 99.1, 82.4, 100.0, 99.6),
    (32, 3329): (99.9, 95.9, 100.0, 99.9, 99.2, 82.3, 100.0, 99.5),
    (32, 42899): (100.0, 95.6, 100.0, 99.9, 99.4, 81.5, 100.0, 99.5),
    (32, 974269): (99.7, 95.2, 100.0, 100.0, 97.8, 79.9, 100.0, 99.5),
    (64, 257): (99.9, 80.2, 100.0, 99.8, 98.1, 53.3, 100.0, 98.8),
    (64, 3329): (99.8, 70.5, 100.0, 99.8, 98.0, 43.4, 100.0, 98.7),
    (64, 42899): (99.7, 62.1, 100.0, 99.7, 97.6, 36.5, 100.0, 98.2),
    (64, 974269): (99.7, 82.4, 100.0, 99.7, 97.8, 55.8, 100.0, 98.5),
    (128, 257): (99.1, 10.3, 100.0, 99.1, 96.4, 5.0, 100.0, 93.9),
    (128, 3329): (99.6, 7.6, 100.0, 99.0, 97.2, 3.9, 100.0, 93.1),
    (128, 42899): (98.4, 23.4, 100.0, 99.1, 94.4, 11.9, 99.6, 93.8),
    (128, 974269): (99.4, 18.6, 100.0, 99.2, 97.0, 9.5, 100.0, 93.9),
}
"""τ-accuracy, angular, at τ = 0.1 and then τ = 0.05: each time ours and baseline at 1M, ours and baseline at 10M."""
TAUS = (0.1, 0.05)

TABLE3: dict[tuple[str, int, int], tuple[float, float, float, float, float]] = {
    ("token", 8, 31): (99.2, 99.5, 99.6, 98.6, 0.90),
    ("token", 8, 97): (90.1, 93.1, 96.7, 74.9, 18.2),
    ("token", 8, 257): (27.3, 33.8, 37.0, 0.5, 33.3),
    ("token", 16, 31): (98.1, 98.9, 99.4, 80.7, 18.2),
    ("token", 16, 97): (76.1, 81.1, 84.2, 1.1, 80.0),
    ("token", 16, 257): (14.2, 23.9, 27.1, 0.4, 23.5),
    ("token", 32, 31): (92.7, 97.2, 98.5, 38.7, 58.5),
    ("token", 32, 97): (46.0, 63.6, 69.6, 1.0, 62.6),
    ("token", 32, 257): (0.4, 13.5, 17.8, 0.3, 13.2),
    ("angular", 16, 97): (99.7, 99.9, 100.0, 92.6, 7.30),
    ("angular", 16, 257): (97.4, 99.1, 99.8, 63.8, 35.3),
    ("angular", 16, 433): (90.2, 96.6, 99.4, 45.7, 50.9),
    ("angular", 32, 97): (98.0, 99.3, 99.9, 81.1, 18.2),
    ("angular", 32, 257): (84.3, 93.5, 99.0, 44.9, 48.6),
    ("angular", 32, 433): (61.8, 83.8, 94.4, 27.7, 56.1),
    ("angular", 64, 97): (91.8, 96.5, 99.5, 58.7, 37.8),
    ("angular", 64, 257): (64.7, 80.5, 94.1, 23.4, 57.1),
    ("angular", 64, 433): (34.0, 54.7, 78.4, 11.4, 43.3),
}
"""Ours over the grid at 1M: minimum, average, maximum; then the baseline; then the gain, average − baseline."""

CONFIGURATIONS: dict[tuple[str, bool, str, float], tuple[float, float]] = {
    ("pre", True, "0.02", 0.0): (5.1, 73.5),
    ("pre", True, "0.02", 0.1): (10.2, 33.9),
    ("pre", True, "default", 0.0): (74.9, 90.1),
    ("pre", True, "default", 0.1): (97.2, 17.5),
    ("pre", False, "0.02", 0.0): (1.5, 77.7),
    ("pre", False, "0.02", 0.1): (4.8, 33.8),
    ("pre", False, "default", 0.0): (1.2, 91.5),
    ("pre", False, "default", 0.1): (98.5, 14.2),
    ("post", True, "0.02", 0.0): (5.7, 75.8),
    ("post", True, "0.02", 0.1): (25.3, 35.2),
    ("post", True, "default", 0.0): (6.2, 92.5),
    ("post", True, "default", 0.1): (18.6, 33.3),
    ("post", False, "0.02", 0.0): (1.1, 74.0),
    ("post", False, "0.02", 0.1): (0.9, 35.0),
    ("post", False, "default", 0.0): (7.2, 90.1),
    ("post", False, "default", 0.1): (23.8, 27.4),
}
"""Table 6 (token, N=8, q=97, 1M): (norm, bias, init, dropout) → accuracy of sparse and of ours."""

GAP: dict[int, dict[int, float]] = {
    8: {17: 0.61, 23: 0.70, 47: 0.84, 113: 0.93},
    16: {17: 0.38, 23: 0.49, 47: 0.71, 113: 0.87},
    24: {17: 0.23, 23: 0.34, 47: 0.60, 113: 0.81},
    32: {17: 0.14, 23: 0.24, 47: 0.50, 113: 0.75},
}
"""Table 4: (1−1/q)^N, by N and then by q."""

UNTUNED = set(TABLE2) - set(PAPER_CHOICE["angular"])
"""Settings that Table 7 marks with a hyphen, although Table 2 has results for them."""

# ---- as rows ----------------------------------------------------------------------------------------------


@functools.cache
def rows() -> tuple[Published, ...]:
    """Every number, table by table."""
    return (*_table1(), *_table2(), *_table3(), *_configurations(), *_choice(), *_gap())


def find(table: str, **facts: Any) -> float | None:
    """The paper's value in ``table`` for these facts; None if it printed none."""
    found = (row for row in rows() if row.table == table)
    return next((row.value for row in found if all(getattr(row, k) == v for k, v in facts.items())), None)


def _pair(embedding: str, n: int, q: int, method: str) -> dict[str, Any]:
    k, r = PAPER_CHOICE[embedding].get((n, q), (None, None)) if method == "aux" else (None, None)
    return {"embedding": embedding, "n": n, "q": q, "method": method, "k": k, "r": r}


def _table1() -> Iterator[Published]:
    columns = [(samples, method) for samples in (100_000, 1_000_000) for method in ("aux", "sparse")]
    for embedding, table in TABLE1.items():
        for size, values in table.items():
            for (samples, method), value in zip(columns, values, strict=True):
                facts = _pair(embedding, *size, method)
                yield Published(table=HALVES[embedding], samples=samples, metric="match", value=value, **facts)


def _table2() -> Iterator[Published]:
    sizes = (1_000_000, 10_000_000)
    columns = [(tau, samples, method) for tau in TAUS for samples in sizes for method in ("aux", "sparse")]
    for size, values in TABLE2.items():
        for (tau, samples, method), value in zip(columns, values, strict=True):
            facts = _pair("angular", *size, method)
            yield Published(table="table2", samples=samples, metric="tau", tau=tau, value=value, **facts)


def _table3() -> Iterator[Published]:
    columns: tuple[tuple[str, Metric, Statistic | None], ...] = (
        ("aux", "match", "min"), ("aux", "match", "mean"), ("aux", "match", "max"),
        ("sparse", "match", None), ("aux", "gain", None),
    )  # fmt: skip
    for (embedding, n, q), values in TABLE3.items():
        facts: dict[str, Any] = {"table": "table3", "embedding": embedding, "n": n, "q": q, "samples": 1_000_000}
        for (method, metric, statistic), value in zip(columns, values, strict=True):
            yield Published(**facts, method=method, metric=metric, statistic=statistic, value=value)


def _configurations() -> Iterator[Published]:
    for (norm, bias, init, dropout), values in CONFIGURATIONS.items():
        switches: dict[str, Any] = {"norm": norm, "bias": bias, "init": init, "dropout": dropout}
        for method, value in zip(("sparse", "aux"), values, strict=True):
            facts = _pair("token", 8, 97, method) | switches
            yield Published(table="configs", samples=1_000_000, metric="match", value=value, **facts)


def _choice() -> Iterator[Published]:
    for embedding, table in PAPER_CHOICE.items():
        for size in table:
            yield Published(table="choice", samples=100_000, metric="choice", **_pair(embedding, *size, "aux"))


def _gap() -> Iterator[Published]:
    facts: dict[str, Any] = {"table": "gap", "embedding": None, "samples": None, "method": None, "metric": "bound"}
    return (Published(**facts, n=n, q=q, value=value) for n, line in GAP.items() for q, value in line.items())
