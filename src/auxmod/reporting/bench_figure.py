"""A benchmark's JSON as a figure: what a step costs against N, and against the number of members E."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from auxmod.errors import UserError, require

Row = Mapping[str, Any]
CURVES = {
    "plain_eager": "plain PyTorch, eager fp32",
    "plain_compiled": "plain PyTorch, compile + AMP",
    "ours": "auxmod",
    "floor": "arithmetic at the measured matrix rate",
}
"""What is drawn against N, and its name in the legend."""


def check(path: Path) -> None:
    """Refuse what could not be drawn, before anything is measured."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise UserError("A plot needs matplotlib: pip install 'auxmod[plot]'.") from None
    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    require(path.suffix[1:].lower() in kinds, f"--plot is {str(path)!r}; end its name in one of: .{', .'.join(kinds)}.")


def save(result: Mapping[str, Any], path: Path) -> None:
    """Draw the figure into a file of the kind its name says."""
    check(path)
    figure(result).savefig(path, dpi=150)


def figure(result: Mapping[str, Any]) -> Any:
    """Two panels on one scale: the smallest ensembles of each N, and every E of those N that have several."""
    from matplotlib.figure import Figure

    rows: list[Row] = sorted(result["rows"], key=lambda row: (row["n"], row["members"]))
    out = Figure(figsize=(10, 4), layout="constrained")
    left, right = out.subplots(1, 2, sharey=True)
    fewest, smallest = _smallest(result)
    for key, points in against_n(result).items():
        left.plot(*zip(*points, strict=True), **_look(key), label=CURVES[key])
    for number, n in enumerate(sorted({row["n"] for row in rows}), len(CURVES)):
        several = [row for row in rows if row["n"] == n]
        if len(several) > 1:
            _line(right, "members", several, "ours", label=f"auxmod, N = {n}", color=f"C{number}")
            _line(right, "members", several, "floor", color=f"C{number}")
    _frame(
        left, "terms N", "one model" if fewest == 1 else f"ensembles of E = {fewest}", {row["n"] for row in smallest}
    )
    _frame(right, "members E", "ensembles (dotted: arithmetic alone)", {row["members"] for row in rows})
    left.set_ylabel("ms a step a member")
    out.suptitle(f"A training step on {result['provenance']['device']}")
    return out


def _smallest(result: Mapping[str, Any]) -> tuple[int, list[Row]]:
    """The fewest members that were measured, and the rows of so many, by N."""
    fewest = min((row["members"] for row in result["rows"]), default=1)
    return fewest, sorted((row for row in result["rows"] if row["members"] == fewest), key=lambda row: int(row["n"]))


def against_n(result: Mapping[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """(N, ms a step a member) of each curve that was measured, of the smallest ensembles."""
    _, rows = _smallest(result)
    curves = {
        key: [(row["n"], _milliseconds(row, key)) for row in rows if key == "floor" or row[key]] for key in CURVES
    }
    return {key: points for key, points in curves.items() if points}


def _milliseconds(row: Row, key: str) -> float:
    return float(row["ours"]["ms"] / row["floor_ratio"] if key == "floor" else row[key]["ms"])


def _line(axes: Any, across: str, rows: Iterable[Row], key: str, **style: Any) -> None:
    points = [(row[across], _milliseconds(row, key)) for row in rows]
    axes.plot([x for x, _ in points], [y for _, y in points], **_look(key), **style)


def _look(key: str) -> dict[str, Any]:
    return {"linestyle": ":"} if key == "floor" else {"marker": "o"}


def _frame(axes: Any, label: str, title: str, ticks: Iterable[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(sorted(ticks), [str(tick) for tick in sorted(ticks)])
    axes.set_xlabel(label)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize="small")
