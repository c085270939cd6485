"""Charts as plotly.js reads them: plain dictionaries, which the page's script draws in the page's style.

The numbers are those of the matplotlib figures. No text from a user's file goes into a chart; it stands beside it.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from auxmod.experiments import presets, recipes
from auxmod.problem import theory
from auxmod.reporting.figures import heatmaps
from auxmod.reporting.figures.bench import CURVES, against_n
from auxmod.reporting.figures.looks import COLOURS
from auxmod.reporting.figures.theory import SIZES, gap_curves, rho_grid, wrap_laws
from auxmod.reporting.web.stored_runs import Grid

Chart = dict[str, Any]
CYCLE = [[i / 5, shade] for i, shade in enumerate(("#3b6fb6", "#2a9d8f", "#c2a83e", "#e8743b", "#a34a7d", "#3b6fb6"))]
"""A colour scale that ends where it begins, as residues do."""
BRIGHT = [[i / 4, shade] for i, shade in enumerate(("#b7a9de", "#86a8dc", "#4db6ac", "#84d170", "#fde725"))]
"""Like viridis, but light throughout, so that dark numbers are readable on all of it."""
TICKS = [0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300]
BLUES = ("#9ecae1", "#7fb8da", "#6aadd5", "#5ba3cf", "#3b8bc2", "#2f74b5", "#3558a0")


def chart(traces: Sequence[Mapping[str, Any]], *, x: str = "", y: str = "", **layout: Any) -> Chart:
    """Traces on axes titled ``x`` and ``y``; ``xaxis`` and ``yaxis`` in ``layout`` add to these."""
    for name, title in (("xaxis", x), ("yaxis", y)):
        layout[name] = {"title": {"text": title}} | layout.get(name, {})
    return {"data": list(traces), "layout": layout}


def line(points: Sequence[tuple[float, float]], name: str, **look: Any) -> Chart:
    """A line through (x, y) points."""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return {"type": "scatter", "mode": "lines", "x": xs, "y": ys, "name": name} | look


# ---- over K and r -------------------------------------------------------------------------------------------


def heatmap(grid: Grid) -> Chart:
    """Accuracy over K and r, with a box where ρ is near 1 and a frame around the paper's pair."""
    beside = [[_beside(grid, k, r) for k in grid.ks] for r in grid.rs]
    hover = "K = %{x}, r = %{y}<br><b>%{z:.1f} %</b> %{customdata}<extra></extra>"
    look: Chart = {"customdata": beside, "hovertemplate": hover, "texttemplate": "%{z:.0f}", "hoverongaps": False}
    look |= {"zmin": 0, "zmax": 100, "colorscale": BRIGHT, "xgap": 1, "ygap": 1}
    return _over_pairs(grid.means(), grid.ks, grid.rs, look, _frame(grid))


def _over_pairs(
    z: Sequence[Sequence[float | None]],
    ks: Sequence[int],
    rs: Sequence[float],
    look: Chart,
    marks: Sequence[Chart] = (),
) -> Chart:
    """A heatmap over K and r, with the box where ρ is near 1."""
    trace: Chart = {"type": "heatmap", "z": z, "x": [str(k) for k in ks], "y": [f"{r:g}" for r in rs]}
    trace |= {"showscale": False, "textfont": {"color": "#1f2328"}} | look
    edges = [_segment(edge) for edge in heatmaps.box_edges(ks, rs)]
    axes: Chart = {"type": "category", "showgrid": False, "ticks": ""}
    return chart([trace], x="K", y="r", xaxis=axes, yaxis=axes, shapes=[*edges, *marks])


def _beside(grid: Grid, k: int, r: float) -> str:
    """What a cell's hover text says after its mean."""
    values, ratio = grid.found.get((k, r), []), theory.rho((1, k), (1 - r, r))
    spread = f"± {statistics.stdev(values):.1f} ({len(values)} seeds)" if len(values) > 1 else "(1 seed)"
    return f"{spread}<br>chance {grid.chance:.1f} %, ρ = {ratio:.2f}"


def _segment(edge: tuple[tuple[float, float], tuple[float, float]]) -> Chart:
    (x0, y0), (x1, y1) = edge
    ends = {"x0": x0, "y0": y0, "x1": x1, "y1": y1}
    return {"type": "line", **ends, "line": {"color": heatmaps.RED, "width": 2}}


def _frame(grid: Grid) -> list[Chart]:
    size = grid.settings["n"], grid.settings["q"]
    k, r = presets.PAPER_CHOICE.get(grid.settings["embedding"], {}).get(size, (0, 0.0))
    if k not in grid.ks or r not in grid.rs:
        return []
    i, j = grid.ks.index(k), grid.rs.index(r)
    place = {"x0": i - 0.42, "x1": i + 0.42, "y0": j - 0.42, "y1": j + 0.42}
    return [{"type": "rect", **place, "line": {"color": "#1f2328", "width": 2}}]


# ---- theory -------------------------------------------------------------------------------------------------


def gap() -> Chart:
    """The gap bound against N."""
    sizes, curves = gap_curves()
    traces = [
        line(list(zip(sizes, values, strict=True)), f"q = {q}", line={"color": shade, "width": 2.5})
        for (q, values), shade in zip(curves.items(), BLUES, strict=True)
    ]
    last = SIZES[-1]
    ticks = {"type": "log", "tickvals": [1, *SIZES], "range": [0, math.log10(1.02 * last)]}
    return chart(traces, x="terms N", y="(1 − 1/q)ᴺ", xaxis=ticks, yaxis={"range": [0, 1.03]})


def rho() -> Chart:
    """ρ over K and r."""
    look: Chart = {
        "texttemplate": "%{z:.2f}",
        "hovertemplate": "K = %{x}, r = %{y}<br><b>ρ = %{z:.3f}</b><extra></extra>",
    }
    look |= {"colorscale": [[0, "#7fb0e3"], [0.5, "#f3f1ec"], [1, "#ee8f52"]], "zmin": 0.2, "zmax": 1.8}
    return _over_pairs(rho_grid(), recipes.KS, recipes.RS, look)


def wraps(n: int, q: int, k: int, r: float) -> Chart:
    """How often a training label wraps: a law for each method."""
    traces = [
        line(list(enumerate(law)), f"{title} (mean {mean:.1f})", line={"color": COLOURS[name], "width": 2.5})
        for name, (title, law, mean) in wrap_laws(n, q, (1, k), (1 - r, r)).items()
    ]
    return chart(traces, x="wraps of a label", y="probability", yaxis={"rangemode": "tozero"})


# ---- speed --------------------------------------------------------------------------------------------------


def bench(result: Mapping[str, Any]) -> Chart:
    """The cost of a training step against N."""
    looks = {"plain_eager": "#8b949e", "plain_compiled": COLOURS["sparse"], "ours": COLOURS["aux"], "floor": "#2a9d8f"}
    traces = [
        line(
            points,
            CURVES[key],
            mode="lines" if key == "floor" else "lines+markers",
            line={"color": looks[key], "width": 2.5, "dash": "dot" if key == "floor" else "solid"},
        )
        for key, points in against_n(result).items()
    ]
    sizes = sorted({row["n"] for row in result["rows"]})
    axes = {"xaxis": {"type": "log", "tickvals": sizes}, "yaxis": {"type": "log", "tickvals": TICKS}}
    return chart(traces, x="terms N", y="ms a step a member", **axes)


# ---- one model ----------------------------------------------------------------------------------------------


def ring(truth: Sequence[int], error: Sequence[float], q: int) -> Chart:
    """Predictions on the circle: the angle is the truth, the distance from the ring is the error."""
    trace = {"type": "scatterpolar", "theta": [360 * t / q for t in truth], "r": [1 + 0.8 * e / q for e in error]}
    trace |= _dots([t / q for t in truth], [[t, e] for t, e in zip(truth, error, strict=True)])
    trace["hovertemplate"] = "truth %{customdata[0]}, off by %{customdata[1]:.2f}<extra></extra>"
    marks = sorted({q * i // 8 for i in range(8)})
    angular = {"tickvals": [360 * mark / q for mark in marks], "ticktext": [str(mark) for mark in marks]}
    radial = {"range": [0, 1.45], "tickvals": [0.6, 1, 1.4], "showticklabels": False}
    polar = {"angularaxis": angular, "radialaxis": radial, "bgcolor": "rgba(0,0,0,0)"}
    return chart([trace], polar=polar, margin={"t": 34, "b": 34})


def _dots(phase: Sequence[float], names: Sequence[Any]) -> Chart:
    """Dots coloured by their true place on the circle, in turns."""
    marker = {"color": list(phase), "cmin": 0, "cmax": 1, "colorscale": CYCLE, "size": 6, "opacity": 0.75}
    return {"mode": "markers", "marker": marker, "customdata": list(names)}


def histogram(edges: Sequence[float], counts: Sequence[int]) -> Chart:
    """How far off the answers are, in turns of the circle."""
    middle = [(a + b) / 2 for a, b in itertools.pairwise(edges)]
    width = edges[1] - edges[0]
    trace = {"type": "bar", "x": middle, "y": counts, "width": width, "marker": {"color": COLOURS["aux"]}}
    trace["hovertemplate"] = "%{x:.3f} of q: %{y} answers<extra></extra>"
    high = math.log10(max(10, *counts)) + 0.1
    axis = {"type": "log", "dtick": 1, "range": [-0.2, high]}  # starts below 1, to show bars of one answer
    return chart([trace], x="error, as a share of q", y="answers", yaxis=axis, bargap=0)


def plane(points: Sequence[Sequence[float]], phase: Sequence[float], names: Sequence[int], circle: bool) -> Chart:
    """Points of a plane, coloured by their true place on the circle; with ``circle``, also the unit circle."""
    trace = {"type": "scatter", "x": [x for x, _ in points], "y": [y for _, y in points]} | _dots(phase, names)
    trace["hovertemplate"] = "%{customdata}<extra></extra>"
    unit = {"type": "circle", "x0": -1, "x1": 1, "y0": -1, "y1": 1, "line": {"color": "#8b949e", "dash": "dot"}}
    return chart([trace], yaxis={"scaleanchor": "x"}, shapes=[unit] if circle else [])


def spectrum(shares: Sequence[float]) -> Chart:
    """Each frequency's share of an embedding table's variance, and the share that it would have in noise."""
    bars: Chart = {"type": "bar", "x": list(range(1, len(shares) + 1)), "y": [100 * share for share in shares]}
    bars |= {"name": "the table", "marker": {"color": COLOURS["aux"]}}
    bars["hovertemplate"] = "frequency %{x}: %{y:.1f} %<extra></extra>"
    noise = line([(1, 100 / len(shares)), (len(shares), 100 / len(shares))], "noise", line={"dash": "dot"})
    return chart([bars, noise], x="frequency", y="share of the variance (%)", yaxis={"rangemode": "tozero"})
