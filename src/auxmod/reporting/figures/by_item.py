"""Figures by their item's name: which function draws each from stored results.

Results that are missing are marked as missing. Orange is aux and blue is sparse throughout.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from auxmod.errors import require
from auxmod.reporting.figures import compared, curves, heatmaps, theory
from auxmod.reporting.results import Index

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(item: str, preset: str, stored: Index) -> Figure:
    """Draw the figure of an item in a preset."""
    require(item in FIGURES, f"There is no figure {item!r}; choose one of {', '.join(FIGURES)}.")
    return FIGURES[item](preset, stored)


FIGURES: dict[str, Callable[[str, Index], Figure]] = {
    "gap": lambda _, __: theory.gap_figure(),
    "rho": lambda _, __: theory.rho_figure(64, 433),
    "configs": compared.configs_figure,
    "grid": heatmaps.grid_figure,
    "redbox": heatmaps.redbox_figure,
    "curves": curves.equal_figure,
    "table1a": functools.partial(compared.table1_figure, "table1a"),
    "table1b": functools.partial(compared.table1_figure, "table1b"),
    "headline": lambda _, stored: curves.headline_figure(stored),
    "harder": lambda _, stored: curves.harder_figure(stored),
    "fewer": lambda _, stored: curves.fewer_figure(stored),
}
"""Each figure's function, by the name of its item."""
