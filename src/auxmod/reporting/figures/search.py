"""Two figures of a search: the accuracy of its trials in order, and which settings mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from auxmod.reporting.figures.looks import COLOURS, FAINT, INK, TITLE, blank, clean

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def history_figure(trials: Sequence[Mapping[str, Any]]) -> Figure:
    """Held-out accuracy by trial, and the best so far. Pruned trials show the accuracy at which they stopped."""
    figure = blank(7.2, 4.2)
    axes = figure.subplots()
    told = sorted((t for t in trials if t["validation"] is not None), key=lambda t: t["number"])
    for state, colour, words in (("complete", COLOURS["aux"], "trained to the end"), ("pruned", FAINT, "pruned")):
        points = [(t["number"], 100 * t["validation"]) for t in told if t["state"] == state]
        axes.scatter([x for x, _ in points], [y for _, y in points], s=22, color=colour, label=words, zorder=3)
    whole = [t for t in told if t["state"] == "complete"]
    best = list(accumulate((100 * t["validation"] for t in whole), max))
    axes.step([t["number"] for t in whole], best, where="post", color=INK, linewidth=1.6, label="best so far")
    axes.set(xlabel="trial", ylabel="held-out accuracy (%)", ylim=(0, 102))
    axes.set_title("What the search found", **TITLE)
    axes.legend(frameon=False, fontsize=8.5, labelcolor=INK)
    clean(axes)
    return figure


def importance_figure(importances: Mapping[str, float]) -> Figure:
    """How much each searched setting decides whether a trial is among the best."""
    figure = blank(6.4, 1.4 + 0.4 * len(importances))
    axes = figure.subplots()
    names = list(importances)[::-1]
    axes.barh(names, [100 * importances[name] for name in names], color=COLOURS["sparse"], height=0.6)
    axes.set(xlabel="share of importance (%)", xlim=(0, 100))
    axes.set_title("Which settings mattered", **TITLE)
    if not names:
        axes.text(0.5, 0.5, "too few whole trials to say", transform=axes.transAxes, ha="center", color=FAINT)
    clean(axes, grid=False)
    return figure
