"""A benchmark's JSON as a table and a figure: the cost of a step against N, and against the number of members E."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from auxmod.reporting.figures.looks import blank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
CURVES = {
    "plain_eager": "plain PyTorch, eager fp32",
    "plain_compiled": "plain PyTorch, compile + AMP",
    "ours": "auxmod",
    "floor": "arithmetic at the measured matrix rate",
}
"""The curves drawn against N, and their names in the legend."""
COSTS = ("case", "ms a step, a member", "plain, compile + AMP", "faster", "than eager fp32", "× the floor", "GiB")
"""The columns of the table."""


def costs(result: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """The rows of the table, one per case, with – for what was not measured."""

    def word(value: float | None, form: str, unit: str = "") -> str:
        return "–" if value is None else format(value, form) + unit

    for row in result["rows"]:
        models = "one model" if row["members"] == 1 else f"{row['members']} models at once"
        yield (
            f"N = {row['n']}, {models}",
            word(row["ours"]["ms"], ".2f"),
            word((row["plain_compiled"] or {}).get("ms"), ".1f"),
            word(row["faster_than_compiled"], ".1f", "×"),
            word(row["faster_than_eager"], ".1f", "×"),
            word(row["floor_ratio"], ".1f"),
            word(row["peak_bytes"] and row["peak_bytes"] / 2**30, ".1f"),
        )


def figure(result: Mapping[str, Any]) -> Figure:
    """Two panels on one scale: the smallest ensembles against N, and each N with several ensembles against E."""
    rows: list[Row] = sorted(result["rows"], key=lambda row: (row["n"], row["members"]))
    out = blank(10, 4)
    left, right = out.subplots(1, 2, sharey=True)
    fewest, smallest = _smallest(result)
    for key, points in against_n(result).items():
        _line(left, points, key, label=CURVES[key])
    for number, n in enumerate(sorted({row["n"] for row in rows}), len(CURVES)):
        several = [row for row in rows if row["n"] == n]
        if len(several) > 1:
            ours, floor = ([(row["members"], _milliseconds(row, key)) for row in several] for key in ("ours", "floor"))
            _line(right, ours, "ours", label=f"auxmod, N = {n}", color=f"C{number}")
            _line(right, floor, "floor", color=f"C{number}")
    _frame(
        left, "terms N", "one model" if fewest == 1 else f"ensembles of E = {fewest}", {row["n"] for row in smallest}
    )
    _frame(right, "members E", "ensembles (dotted: arithmetic alone)", {row["members"] for row in rows})
    left.set_ylabel("ms a step a member")
    out.suptitle(f"A training step on {result['provenance']['device']}")
    return out


def _smallest(result: Mapping[str, Any]) -> tuple[int, list[Row]]:
    """The smallest number of members measured, and the rows with that number, sorted by N."""
    fewest = min((row["members"] for row in result["rows"]), default=1)
    return fewest, sorted((row for row in result["rows"] if row["members"] == fewest), key=lambda row: int(row["n"]))


def against_n(result: Mapping[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """Each measured curve as (N, ms per step and member), for the smallest ensembles."""
    _, rows = _smallest(result)
    curves = {
        key: [(row["n"], _milliseconds(row, key)) for row in rows if key == "floor" or row[key]] for key in CURVES
    }
    return {key: points for key, points in curves.items() if points}


def _milliseconds(row: Row, key: str) -> float:
    return float(row["ours"]["ms"] / row["floor_ratio"] if key == "floor" else row[key]["ms"])


def _line(axes: Axes, points: Iterable[tuple[int, float]], key: str, **style: Any) -> None:
    look: dict[str, Any] = {"linestyle": ":"} if key == "floor" else {"marker": "o"}
    axes.plot(*zip(*points, strict=True), **look, **style)


def _frame(axes: Axes, label: str, title: str, ticks: Iterable[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(ticks), [str(tick) for tick in sorted(ticks)])
    axes.set_xlabel(label)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small")
