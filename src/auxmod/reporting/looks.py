"""What the figures have in common: colours, a clean frame, and files that come out the same each time.

matplotlib's object interface only, imported late: no global state, and a sentence where it is not installed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from auxmod.errors import UserError, require
from auxmod.files import user_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
INK, FAINT, PALE = "#22272e", "#8b949e", "#d8dee4"
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10.5, "fontweight": "bold", "color": INK}
COLOURS = {"naive": "#6e7781", "aux": "#e8743b", "ladder": "#2a9d8f", "sparse": "#3b6fb6"}


def blank(width: float, height: float) -> Figure:
    """An empty page, in inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("Figures need matplotlib: install it with pip install 'auxmod[plot]'.") from None
    return Figure(figsize=(width, height), layout="constrained", facecolor="white")


def clean(axes: Axes, grid: bool = True) -> None:
    """No box, faint lines, small ticks."""
    axes.title.set(fontsize=10.5, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8.5, length=0 if not grid else 3)
    axes.minorticks_off()
    if grid:
        axes.grid(axis="y", color=PALE, linewidth=0.7)
        axes.set_axisbelow(True)


def check_name(path: Path) -> None:
    """Refuse a file that could not be drawn, before anything is."""
    kind = path.suffix.lower().lstrip(".")
    require(kind in FORMATS, f"{path} does not end in .png, .svg or .pdf: choose one of these.")


def save(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, whichever its name ends in; the same figure gives the same file."""
    from matplotlib import rc_context

    check_name(path)
    dates = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with user_named(path), rc_context({"svg.hashsalt": "auxmod"}):
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=160, metadata=dates.get(path.suffix.lower()))
