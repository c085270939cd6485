"""A heatmap over K and r, for accuracies and for ρ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from auxmod.experiments.recipes import KS, RS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def over_pairs(axes: Axes, grid: Any, word: Callable[[float, Any], tuple[str, dict[str, Any]]], **colours: Any) -> Any:
    """Draw values with r upwards and K across. ``word`` maps a value and the image to the text on it and its style."""
    extent = (KS[0] - 0.5, KS[-1] + 0.5, RS[0] - 0.05, RS[-1] + 0.05)
    image = axes.imshow(np.ma.masked_invalid(grid), origin="lower", aspect="auto", extent=extent, **colours)
    for (row, column), value in np.ndenumerate(grid):
        if np.isfinite(value):
            said, look = word(value, image)
            axes.text(KS[column], RS[row], said, ha="center", va="center", **look)
    axes.set(xlim=extent[:2], ylim=extent[2:], xticks=KS, yticks=RS)
    axes.spines[:].set_visible(False)
    return image
