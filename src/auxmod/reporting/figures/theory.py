"""Figures of theory: the gap bound against N, ρ over (K, r), and the wrap laws of four methods side by side.

Each `…_figure` returns a matplotlib `Figure` (no pyplot, no global state), which `looks.save` writes. Separate
functions compute the numbers, so that the web page's charts can share them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from auxmod.config import Fill
from auxmod.errors import require
from auxmod.experiments.recipes import KS, RS
from auxmod.problem import laws, theory
from auxmod.reporting import published
from auxmod.reporting.figures.looks import COLOURS, FAINT, INK, blank, clean, colour_bar, halo
from auxmod.reporting.figures.over_pairs import over_pairs
from auxmod.settings import resolve_method

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZES = (2, 4, 8, 16, 32, 64, 128, 256)
LEAST = 1e-3
"""Laws are drawn up to the last wrap count that some method has with at least this probability."""


def figures(n: int, q: int, moduli: theory.Moduli, weights: theory.Weights, fill: Fill = "zero") -> dict[str, Figure]:
    """Every figure for one problem, by name."""
    return {
        "gap-bound": gap_figure(),
        "rho": rho_figure(n, q, fill),
        "wraps": wrap_figure(n, q, moduli, weights, fill),
    }


# ---- the gap bound ----------------------------------------------------------------------------------------


MODULI = (5, 17, 23, 47, 113, 433, 3329)
"""The q of the paper's Figure 1a and Table 4, and larger ones."""


def gap_curves() -> tuple[list[int], dict[int, list[float]]]:
    """Numbers of terms N, and (1−1/q)^N at each of them for several q."""
    sizes = [int(n) for n in np.unique(np.geomspace(1, SIZES[-1], 60).round().astype(int))]
    return sizes, {q: [theory.gap_bound(n, q) for n in sizes] for q in MODULI}


def gap_figure() -> Figure:
    """(1−1/q)^N against N for several q (Figure 1a), with Table 4's values; beside it, what the training law allows."""
    figure = blank(11.2, 4.0)
    from matplotlib import colormaps  # after `blank`, which explains a missing matplotlib

    left, right = figure.subplots(1, 2, sharex=True)
    between = np.geomspace(1, SIZES[-1], 200)
    shades = colormaps["Blues"](np.linspace(0.4, 1.0, len(MODULI)))
    for q, shade, height in zip(MODULI, shades, itertools.cycle((0.56, 0.28)), strict=False):
        values = (1 - 1 / q) ** between
        left.plot(between, values, color=shade, linewidth=2)
        _label_line(left, between, values, f"q = {q}", shade, height)
    printed = [(row.n, row.value) for row in published.rows() if row.table == "gap"]
    left.plot(*zip(*printed, strict=True), "o", color=INK, markersize=3.5, label="the paper's Table 4")
    left.legend(loc="lower left", frameon=False, fontsize=8.5, labelcolor=INK)
    left.set(ylim=(0, 1.03), ylabel="(1 − 1/q)ᴺ", title="The bound as printed: ε = 1, δ = 0")
    sizes = range(1, SIZES[-1] + 1)
    ceiling = [theory.risk_ratio(n, 2) for n in sizes]
    right.plot(sizes, ceiling, color=COLOURS["sparse"], linewidth=2)
    right.fill_between(sizes, 0.5, ceiling, color=COLOURS["sparse"], alpha=0.12, linewidth=0)
    right.set(yscale="log", ylim=(0.5, 50), ylabel="test risk / training risk")
    right.set_title("What sparse training allows, every q")
    arrow = {"arrowstyle": "-", "color": FAINT, "linewidth": 1}
    right.annotate("largest: $C_N=\\sum_{k\\leq N}1/\\sqrt{k}$", (12, 5.6), (1.3, 16), color=INK, arrowprops=arrow)
    right.set_yticks(ticks := [0.5, 1, 2, 5, 10, 20, 50], [f"{tick:g}" for tick in ticks])
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set(xlabel="terms N", xlim=(1, SIZES[-1]))
        axes.set_xticks([1, *SIZES], map(str, [1, *SIZES]))
        clean(axes)
    return figure


def _label_line(axes: Axes, sizes: Any, values: Any, text: str, colour: Any, height: float) -> None:
    """Write a line's name on the line, where it passes this height or shortly before its end, in place of a legend."""
    at = min(int(np.abs(values - height).argmin()), int(0.92 * len(values)))
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
    look: dict[str, Any] = {"fontsize": 8, "fontweight": "bold", "bbox": box}
    axes.text(sizes[at], values[at], text, color=colour, ha="center", va="center", **look)


# ---- ρ ----------------------------------------------------------------------------------------------------


def rho_grid() -> list[list[float]]:
    """ρ as printed, r down and K across."""
    return [[theory.rho((1, k), (1 - r, r)) for k in KS] for r in RS]


def rho_figure(n: int, q: int, fill: Fill = "zero") -> Figure:
    """ρ over K = 2..10 and r = 0.1..0.9 (Figure 2) and, beside it, the exact ratio at this N and q."""
    printed = rho_grid()
    exact = [[theory.rho_exact(n, q, (1, k), (1 - r, r), fill) for k in KS] for r in RS]
    require(exact[0][0] is not None, f"--n is {n}, but ρ compares wraps, which need --n 2 or more.")
    figure = blank(10.4, 4.7)
    left, right = figure.subplots(1, 2, sharey=True)
    left.set(title="ρ as printed: any N, any q", ylabel="r, the weight of Kq")
    right.set_title(f"exact: floors kept, N = {n}, q = {q}")
    image = _heatmap(left, printed, [(k, (1 / 3) / (1 - 1 / k)) for k in np.linspace(1.5, 10.5, 200)])
    _heatmap(right, exact, [(k, _even_r(n, q, k, fill)) for k in KS])
    colour_bar(figure, image, "expected wraps, aux over sparse", shrink=0.85, pad=0.02)
    return figure


def _even_r(n: int, q: int, k: int, fill: Fill) -> float:
    """The r at which aux and sparse labels wrap equally often."""
    plain, aux = float(theory.expected_wraps_floor(n, q)), float(theory.expected_wraps_floor(n, q, k))
    return (plain - theory.expected_sparse_wraps_floor(n, q, fill)) / (plain - aux)


def _heatmap(axes: Axes, values: Any, contour: Sequence[tuple[float, float]]) -> Any:
    from matplotlib.colors import TwoSlopeNorm

    def word(value: float, image: Any) -> tuple[str, dict[str, Any]]:
        look = {"color": "white" if abs(value - 1) > 0.5 else INK, "path_effects": halo(3, image.to_rgba(value))}
        return f"{value + 1e-9:.2f}", look | {"fontsize": 7.5}  # rounds halves up

    grid, norm = np.array(values, dtype=float), TwoSlopeNorm(vcenter=1.0, vmin=0.2, vmax=1.8)
    image = over_pairs(axes, grid, word, cmap="RdBu_r", norm=norm)
    axes.plot(*zip(*contour, strict=True), color="#f59f00", linewidth=2.6)
    box = {"facecolor": "#f59f00", "edgecolor": "none", "boxstyle": "round,pad=0.2"}
    axes.text(9, 0.45, "ρ = 1", ha="center", va="center", color="white", fontsize=8, fontweight="bold", bbox=box)
    axes.set_xlabel("K")
    clean(axes, grid=False)
    return image


# ---- wrap laws --------------------------------------------------------------------------------------------


def wrap_laws(
    n: int, q: int, moduli: theory.Moduli, weights: theory.Weights, fill: Fill = "zero"
) -> dict[str, tuple[str, list[float], float]]:
    """How often a training label wraps under naive, aux (with these moduli), ladder and sparse.

    Maps each method to its title, its law and the law's mean. All laws have the same length, by `LEAST`.
    """
    rungs = resolve_method(n, True, method="ladder")
    named = {
        "naive": ("naive: mod q", laws.wrap_law(n, q)),
        "aux": (f"aux: {_mixture_name(moduli, weights)}", laws.mixed_wrap_law(n, q, moduli, weights)),
        "ladder": (f"ladder: 1 to {rungs.moduli[-1]}", laws.mixed_wrap_law(n, q, rungs.moduli, rungs.weights)),
        "sparse": ("sparse: mod q, fewer terms", laws.sparse_wrap_law(n, q, fill=fill)),
    }
    last = max(d for _, law in named.values() for d, p in enumerate(law) if p >= LEAST)
    return {
        name: (title, (law + [0.0] * last)[: last + 1], sum(d * p for d, p in enumerate(law)))
        for name, (title, law) in named.items()
    }


def wrap_figure(n: int, q: int, moduli: theory.Moduli, weights: theory.Weights, fill: Fill = "zero") -> Figure:
    """The wrap laws side by side, each with its mean."""
    named = wrap_laws(n, q, moduli, weights, fill)
    last = len(named["naive"][1]) - 1
    bar = 0.82 if last <= 60 else 1.0  # gaps between many bars would flicker
    figure = blank(11.2, 3.5)
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    for axes, (name, (title, law, mean)) in zip(panels, named.items(), strict=True):
        axes.bar(range(last + 1), law, width=bar, color=COLOURS[name])
        axes.axvline(mean, color=INK, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.set_title(title, color=COLOURS[name])
        _name_mean(axes, mean, left=mean > 0.6 * last)
        axes.set(xlabel="wraps of a label", xlim=(-0.6, last + 0.6))
        axes.xaxis.get_major_locator().set_params(integer=True)
        clean(axes)
    figure.axes[0].set_ylabel("probability")
    figure.suptitle(f"N = {n}, q = {q}", x=0.005, ha="left", fontsize=10, color=FAINT)
    return figure


def _name_mean(axes: Axes, mean: float, left: bool) -> None:
    place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    shift, side = ((-4, -9), "right") if left else ((4, -9), "left")
    axes.annotate(f"mean {mean:.2f}", (mean, 1), shift, ha=side, fontsize=8.5, color=INK, **place)


def _mixture_name(moduli: theory.Moduli, weights: theory.Weights) -> str:
    if len(moduli) == 2:
        return f"K = {moduli[1]}, r = {weights[1]:g}"
    return ", ".join(map(str, moduli))
