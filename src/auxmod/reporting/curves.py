"""Learning curves as a matplotlib figure. Raises ImportError where matplotlib is not installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def accuracy_figure(curves: Mapping[str, Sequence[tuple[float, float]]], title: str = "") -> Any:
    """Match accuracy against steps, a line for each name."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, points in curves.items():
        axes.plot([x for x, _ in points], [100 * y for _, y in points], marker="o", markersize=3, label=name)
    axes.set(xlabel="training steps", ylabel="held-out match accuracy (%)", ylim=(0, 102), title=title)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure
