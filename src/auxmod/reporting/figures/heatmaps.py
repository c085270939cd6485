"""Match accuracy over K and r: eighteen heatmaps on one scale, or one large, with a box where ρ is near 1."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from auxmod.experiments import presets
from auxmod.experiments.recipes import KS, RS
from auxmod.problem import theory
from auxmod.reporting import results, tables
from auxmod.reporting.cells import by_facts
from auxmod.reporting.figures.looks import INK, blank, colour_bar, gaps, halo, legend_below
from auxmod.reporting.figures.over_pairs import over_pairs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RED = "#d1242f"
HATCHED: dict[str, Any] = {"facecolor": "#f6f8fa", "edgecolor": "#c9d1d9", "hatch": "////", "linewidth": 0}
"""The look of a cell without a figure."""
CHOICE: dict[str, Any] = {"linestyle": "none", "marker": "s", "markerfacecolor": "none", "markeredgecolor": "white"}
"""The mark of the paper's pair: white, to be drawn with a dark halo that shows on light cells."""
Grid = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def grid_figure(preset: str, stored: results.Index) -> Figure:
    """A heatmap for each of nine settings per embedding (the paper's Figures 4 and 5)."""
    figure = blank(17.2, 8.8)
    places = figure.add_gridspec(3, 7, width_ratios=[1, 1, 1, 0.06, 1, 1, 1])
    found = accuracies("grid", preset, stored)
    image: Any = None
    for number, ((embedding, size), grid) in enumerate(found.items()):
        half, (row, column) = number // 9, divmod(number % 9, 3)
        axes = figure.add_subplot(places[row, column + 4 * half])
        image = heatmap(axes, grid, fontsize=6, chosen=presets.PAPER_CHOICE[embedding][size])
        axes.set_title(f"N = {size[0]}, q = {size[1]}", fontsize=9.5, color=INK)
        axes.set_xlabel("K" if row == 2 else "", color=INK)
        axes.set_ylabel("r" if column == 0 else "", rotation=0, color=INK)
        if (row, column) == (0, 1):
            above: dict[str, Any] = {"xycoords": "axes fraction", "ha": "center", "fontsize": 13}
            axes.annotate(f"{embedding} embedding", (0.5, 1.17), fontweight="bold", color=INK, **above)
    _scale(figure, image, list(found.values()), preset)
    return figure


def redbox_figure(preset: str, stored: results.Index) -> Figure:
    """The heatmap of angular N=64, q=433, with the box (the paper's Figure 3)."""
    figure = blank(6.6, 5.6)
    axes = figure.subplots()
    (((embedding, size), found),) = accuracies("redbox", preset, stored).items()
    image = heatmap(axes, found, fontsize=9, chosen=presets.PAPER_CHOICE[embedding][size])
    axes.set_title(f"{embedding} embedding, N = {size[0]}, q = {size[1]}", fontsize=11, fontweight="bold", color=INK)
    axes.set(xlabel="K", ylabel="r, the weight of Kq")
    _scale(figure, image, [found], preset)
    return figure


def accuracies(item: str, preset: str, stored: results.Index) -> dict[tuple[str, tuple[int, int]], Grid]:
    """Each setting's accuracies in percent, r down and K across; nan where not run, −inf where every seed failed."""
    grids = {}
    for (embedding, n, q), cells in by_facts(tables.build(item, preset, stored).cells, ("embedding", "n", "q")).items():
        grids[embedding, (n, q)] = grid = np.full((len(RS), len(KS)), np.nan)
        for cell in cells:
            absent = -np.inf if cell.failed else np.nan
            grid[RS.index(cell.facts["r"]), KS.index(cell.facts["k"])] = absent if cell.ours is None else cell.ours
    return grids


def heatmap(axes: Axes, grid: Grid, *, fontsize: float, chosen: tuple[int, float]) -> Any:
    """Draw one setting. Cells without a figure are hatched, and the paper's pair is framed."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import Rectangle

    large = fontsize > 8

    def word(value: float, _: Any) -> tuple[str, dict[str, Any]]:
        return f"{value:.{int(large)}f}", {"fontsize": fontsize, "color": INK if value > 60 else "white"}

    image = over_pairs(axes, grid, word, cmap="viridis", norm=Normalize(0, 100))
    for row, column in np.argwhere(~np.isfinite(grid)):
        axes.add_patch(Rectangle((KS[column] - 0.5, RS[row] - 0.05), 1, 0.1, **HATCHED))
    axes.plot(*_outline(), color=RED, linewidth=1.9 if large else 1.4, solid_capstyle="projecting", clip_on=False)
    axes.plot(*chosen, markersize=27 if large else 15, clip_on=False, path_effects=halo(2.8, INK), **CHOICE)
    axes.tick_params(length=0, labelsize=max(6.5, fontsize), colors=INK)
    return image


def _outline() -> tuple[list[float], list[float]]:
    """The box's edges as the x and y of one line with gaps."""
    edges = box_edges(KS, RS)
    xs = [x for (x0, _), (x1, _) in edges for x in (x0 + KS[0], x1 + KS[0], np.nan)]
    return xs, [y for (_, y0), (_, y1) in edges for y in ((y0 + 1) / 10, (y1 + 1) / 10, np.nan)]


def box_edges(ks: Sequence[int], rs: Sequence[float]) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    """The edges between cells inside and outside the box, as (from, to). Cell (i, j) has side 1 and centre (i, j)."""
    cells = itertools.product(enumerate(ks), enumerate(rs))
    inside = {(i, j) for (i, k), (j, r) in cells if theory.in_box(theory.rho((1, k), (1 - r, r)))}
    edges = []
    for (i, j), (across, up) in itertools.product(sorted(inside), ((-1, 0), (1, 0), (0, -1), (0, 1))):
        if (i + across, j + up) not in inside:
            x, y, dx, dy = i + across / 2, j + up / 2, abs(up) / 2, abs(across) / 2
            edges.append(((x - dx, y - dy), (x + dx, y + dy)))
    return edges


def _scale(figure: Figure, image: Any, grids: Sequence[Grid], preset: str) -> None:
    """Add the one colour bar, and a legend of the marks."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colour_bar(figure, image, f"match accuracy (%), 100K samples, preset {preset}", pad=0.015, aspect=30)
    marks: list[Any] = [
        Line2D([], [], color=RED, linewidth=1.9, label=f"{1 - theory.BOX:g} ≤ ρ ≤ {1 + theory.BOX:g}"),
        Line2D([], [], markersize=9, label="the paper's choice", path_effects=halo(2.8, INK), **CHOICE),
    ]
    values = np.stack(grids)
    missing = gaps(int(np.isnan(values).sum()), int(np.isinf(values).sum()), values.size)
    marks += [Patch(**HATCHED, label=missing)] if missing else []
    legend_below(figure, marks)
