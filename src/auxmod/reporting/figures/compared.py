"""Our accuracies beside the paper's, as pictures: its 16 configurations, and both halves of its Table 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from auxmod.reporting import tables
from auxmod.reporting.cells import Cell, by_facts
from auxmod.reporting.figures.looks import CHANCE, COLOURS, FAINT, INK, PALE, TITLE, blank, clean, gaps, legend_below
from auxmod.reporting.render import amount
from auxmod.reporting.results import Index

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HATCHED: dict[str, Any] = {"facecolor": "none", "hatch": "//////", "linewidth": 0, "alpha": 0.35}
RING: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "white", "markeredgewidth": 1.6}


# ---- the 16 configurations --------------------------------------------------------------------------------

SWITCHES = (
    ("Pre-Norm", "norm", "pre"),
    ("bias", "bias", True),
    ("σ = 0.02", "small", True),
    ("dropout", "dropout", 0.1),
)
"""The rows of the switch panel: label, fact, and the value that counts as on."""


def configs_figure(preset: str, stored: Index) -> Figure:
    """Match accuracy of each configuration, with its switches beneath (the paper's Figure 1b)."""
    figure = blank(11.4, 5.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 1])
    cells = tables.build("configs", preset, stored).cells
    for method, shift in (("sparse", -0.2), ("aux", 0.2)):
        own = [cell for cell in cells if cell.facts["method"] == method]
        for at, cell in enumerate(own):
            _bar(upper, at + shift, cell, COLOURS[method])
    chance = cells[0].chance or 0.0
    upper.axhline(chance, zorder=0, **CHANCE)
    upper.set(ylim=(0, 104), ylabel="match accuracy (%)")
    upper.set_title(f"16 configurations: token embedding, N = 8, q = 97, 1M samples, preset {preset}", **TITLE)
    clean(upper)
    columns = (cell.facts for cell in cells if cell.facts["method"] == "aux")
    _switch_panel(lower, [facts | {"small": facts["init"] != "default"} for facts in columns])
    _legend(figure, cells)
    return figure


def _bar(axes: Axes, x: float, cell: Cell, colour: str) -> None:
    """Ours as a bar with its standard deviation, or hatched if there is no figure; the paper's as a ring."""
    if cell.ours is None:
        axes.bar(x, 100, 0.36, edgecolor=colour, **HATCHED)
    else:
        error = {"ecolor": INK, "elinewidth": 1}
        axes.bar(x, cell.ours, 0.36, color=colour, yerr=_spread(cell), error_kw=error)
    if cell.paper is not None:
        axes.plot([x], [cell.paper], markersize=6.5, markeredgecolor=INK, zorder=4, clip_on=False, **RING)


def _spread(cell: Cell) -> list[list[float]] | None:
    """The standard deviation downwards and upwards, cut off at 0 and 100 %."""
    if cell.ours is None or cell.std is None:
        return None
    return [[min(cell.std, cell.ours)], [min(cell.std, 100 - cell.ours)]]


def _switch_panel(axes: Axes, columns: Sequence[dict[str, Any]]) -> None:
    for row, (_, name, on) in enumerate(SWITCHES):
        active = [at for at, facts in enumerate(columns) if facts[name] == on]
        if row % 2 == 0:
            axes.axhspan(row - 0.5, row + 0.5, color="#f6f8fa", zorder=0)
        axes.plot(range(len(columns)), [row] * len(columns), "o", color=PALE, markersize=7)
        axes.plot(active, [row] * len(active), "o", color=INK, markersize=7)
    axes.set(yticks=range(len(SWITCHES)), ylim=(len(SWITCHES) - 0.5, -0.5), xticks=[], xlim=(-0.7, len(columns) - 0.3))
    axes.set_yticklabels([label for label, *_ in SWITCHES])
    clean(axes, grid=False)
    axes.spines[:].set_visible(False)


def _legend(figure: Figure, cells: Sequence[Cell]) -> None:
    """Explain the marks, and say how much is missing."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    failed = sum(cell.ours is None and cell.failed > 0 for cell in cells)
    missing = gaps(sum(cell.ours is None for cell in cells) - failed, failed, len(cells))
    marks: list[Any] = [Patch(color=COLOURS[name], label=f"{name}, ours") for name in ("sparse", "aux")]
    marks += [Line2D([], [], markeredgecolor=INK, markersize=7, label="the paper's", **RING)]
    marks += [Line2D([], [], label="chance", **CHANCE)]
    seeds = [cell.count for cell in cells if cell.std is not None]
    if seeds:
        many = "–".join(map(str, sorted({min(seeds), max(seeds)})))
        marks += [Line2D([], [], color=INK, linewidth=1, label=f"± over {many} seeds")]
    marks += [Patch(edgecolor=FAINT, **HATCHED, label=missing)] if missing else []
    legend_below(figure, marks)


# ---- Table 1 as a picture ---------------------------------------------------------------------------------


def table1_figure(item: str, preset: str, stored: Index) -> Figure:
    """Both methods, ours beside the paper's, in a panel for each number of samples."""
    table = tables.build(item, preset, stored)
    cells = [cell for cell in table.cells if cell.facts["method"] in ("aux", "sparse")]
    figure = blank(11.4, 4.6)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, ((samples,), group) in zip(panels, by_facts(cells, ("samples",)).items(), strict=True):
        settings = list(by_facts(group, ("n", "q")).items())
        for at, (_, pair) in enumerate(settings):
            axes.axhspan(at - 0.5, at + 0.5, color="#f6f8fa" if at % 2 == 0 else "white", zorder=0)
            for cell in pair:
                _dot(axes, at + (0.22 if cell.facts["method"] == "sparse" else -0.22), cell)
            axes.plot([pair[0].chance] * 2, [at - 0.42, at + 0.42], zorder=1, **CHANCE)
        axes.set(xlim=(-2, 102), ylim=(len(settings) - 0.5, -0.5), xlabel="match accuracy (%)")
        axes.set_yticks(range(len(settings)), [f"N = {n}, q = {q}" for (n, q), _ in settings])
        axes.set_title(f"{amount(samples)} samples", **TITLE)
        clean(axes, grid=False)
        axes.spines["left"].set_visible(False)
    figure.suptitle(table.title, fontsize=11, fontweight="bold", color=INK, x=0.01, ha="left")
    _legend(figure, cells)
    return figure


def _dot(axes: Axes, y: float, cell: Cell) -> None:
    """Ours as a dot, the paper's as a larger ring, a thin line between them; hatched if there is no figure of ours."""
    colour = COLOURS[cell.facts["method"]]
    if cell.ours is not None and cell.paper is not None:
        axes.plot([cell.ours, cell.paper], [y, y], color=colour, linewidth=1.2, alpha=0.5)
    if cell.paper is not None:
        axes.plot([cell.paper], [y], markersize=9, markeredgecolor=colour, **RING)
    if cell.ours is None:
        axes.barh(y, 100, 0.22, edgecolor=colour, **HATCHED)
    else:
        error: dict[str, Any] = {"xerr": _spread(cell), "ecolor": INK, "elinewidth": 1}
        axes.errorbar(cell.ours, y, marker="o", markersize=6, color=colour, **error)
