"""What the figures share: colours, a clean frame, and files that come out the same each time.

Only matplotlib's object interface is used, so there is no global state. It is imported late, so that an error can say
how to install it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from auxmod.errors import UserError, require
from auxmod.files import write_named

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
INK, FAINT, PALE = "#22272e", "#8b949e", "#d8dee4"
TITLE: dict[str, Any] = {"loc": "left", "fontsize": 10.5, "fontweight": "bold", "color": INK}
COLOURS = {"naive": "#6e7781", "aux": "#e8743b", "ladder": "#2a9d8f", "auto": "#8250df", "sparse": "#3b6fb6"}
CHANCE: dict[str, Any] = {"color": FAINT, "linewidth": 1, "linestyle": (0, (2, 2))}
"""The look of the line at chance."""


def blank(width: float, height: float) -> Figure:
    """An empty figure; sizes are in inches."""
    return _page()(figsize=(width, height), layout="constrained", facecolor="white")


def _page() -> type[Figure]:
    """matplotlib's `Figure`, or an error that says how to install it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("Figures need matplotlib: install it with pip install 'auxmod[plot]'.") from None
    return Figure


def clean(axes: Axes, grid: bool = True) -> None:
    """Style axes plainly: no box, faint lines, small ticks."""
    axes.title.set(fontsize=10.5, fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.tick_params(colors=INK, labelsize=8.5, length=0 if not grid else 3)
    axes.minorticks_off()
    if grid:
        axes.grid(axis="y", color=PALE, linewidth=0.7)
        axes.set_axisbelow(True)


def colour_bar(figure: Figure, image: Any, label: str, **place: Any) -> None:
    """Add one colour bar for all heatmaps of the figure."""
    bar = figure.colorbar(image, ax=figure.axes, **place)
    bar.set_label(label, color=INK)
    bar.outline.set_visible(False)


def legend_below(figure: Figure, marks: Sequence[Any]) -> None:
    """Add a legend in one line beneath all panels."""
    figure.legend(handles=marks, loc="outside lower center", ncols=len(marks), frameon=False, labelcolor=INK)


def halo(width: float, colour: Any) -> list[Any]:
    """An outline that sets a mark off from whatever lies beneath it."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=width, foreground=colour)]


def gaps(absent: int, failed: int, total: int) -> str:
    """How many of ``total`` are missing, in words; empty if none are."""
    counts = (("not run", absent), ("failed", failed))
    return ", ".join(f"{words} ({count:,} of {total:,})" for words, count in counts if count)


def check_name(path: Path) -> None:
    """Refuse a file that is no PNG, SVG or PDF, or that needs a missing matplotlib, before anything is drawn."""
    kind = path.suffix.lower().lstrip(".")
    require(kind in FORMATS, f"{path} does not end in .png, .svg or .pdf: choose one of these.")
    _page()


def save(figure: Figure, path: Path, source: str = "", flag: str = "--out") -> None:
    """Write a figure as PNG, SVG or PDF, by the ending of its name. A PNG also stores ``source``."""
    check_name(path)
    write_named(path, picture(figure, path.suffix.lower(), source), flag)


def picture(figure: Figure, ending: str, source: str = "") -> bytes:
    """The content of a file with this ending. The same figure always gives the same bytes."""
    from matplotlib import rc_context

    said, drawn = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Source": source}}, io.BytesIO()
    with rc_context({"svg.hashsalt": "auxmod"}):
        figure.savefig(drawn, format=ending.lstrip("."), dpi=160, metadata=said.get(ending))
    return drawn.getvalue()
