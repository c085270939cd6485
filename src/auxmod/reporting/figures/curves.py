"""Figures of accuracy: learning curves of any runs, both methods at equal data and compute, and the demo's items."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from auxmod.config import RunConfig
from auxmod.experiments import recipes
from auxmod.reporting import results, tables
from auxmod.reporting.cells import NAMES, Cell, by_facts
from auxmod.reporting.figures.looks import CHANCE, COLOURS, FAINT, INK, TITLE, blank, clean, gaps, legend_below
from auxmod.reporting.render import amount, epochs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DASHED = (0, (4, 2))
RING: dict[str, Any] = {"linestyle": "none", "marker": "o", "markerfacecolor": "none", "markeredgewidth": 1.4}
"""A mark that belongs to no line."""


def accuracy_figure(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    what: str = "held-out match accuracy",
    spreads: Mapping[str, Sequence[float]] | None = None,
) -> Figure:
    """Accuracy against steps, with a line for each name. Accuracies are shares, drawn in percent.

    ``spreads`` has a standard deviation for each point of some lines, which is drawn as a band. The legend is outside,
    so that it covers nothing.
    """
    longest = max(map(len, curves), default=0)
    figure = blank(6.6 + 0.07 * longest, max(3.6, 0.4 + 0.2 * len(curves)))
    axes = figure.subplots()
    for (name, points), look in zip(curves.items(), looks_of(len(curves)), strict=True):
        steps, shares = [x for x, _ in points], [100 * y for _, y in points]
        axes.plot(steps, shares, marker="o", markersize=3, label=name, **look)
        if widths := [100 * width for width in (spreads or {}).get(name, ())]:
            low, high = ([y + sign * w for y, w in zip(shares, widths, strict=True)] for sign in (-1, 1))
            axes.fill_between(steps, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.set(xlabel="training steps", ylabel=f"{what} (%)", ylim=(0, 102))
    if any((spreads or {}).values()):
        axes.set_title("means over seeds, ± one standard deviation", **TITLE)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right upper", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def looks_of(count: int) -> list[dict[str, Any]]:
    """The looks of lines: no colour comes twice in twenty, and then its line is dashed."""
    from matplotlib import colormaps

    colours, many = colormaps["tab10" if count <= 10 else "tab20"], 10 if count <= 10 else 20
    dashes = ("-", "--", ":", "-.")
    return [{"color": colours(at % many), "linestyle": dashes[at // many % len(dashes)]} for at in range(count)]


# ---- equal data, equal compute ----------------------------------------------------------------------------


def equal_figure(preset: str, stored: results.Index) -> Figure:
    """Both methods' accuracy against steps, at equal data and at equal compute, which the paper never separates."""
    figure = blank(11.4, 6.6)
    panels = figure.subplots(len(recipes.CURVE_SIZES), 2, sharey=True)
    dashed = False
    for (embedding, (n, q)), (left, right) in zip(recipes.CURVE_SIZES, panels, strict=True):
        short, more, long = paces = _paces(preset, embedding, (n, q))
        _lines(left, stored, {_pace(short): short})
        _lines(right, stored, {_pace(more): more, _pace(long): long})
        dashed = dashed or any(results.curves(stored, run) for run in long.values())
        few = amount(short["aux"].training.samples)
        left.set_title(f"{embedding}, N = {n}, q = {q}: equal data, {few} samples", **TITLE)
        right.set_title(f"equal compute, {more['aux'].training.steps:,} steps", **TITLE)
        left.set_ylabel("held-out match accuracy (%)")
    for axes in panels[-1]:
        axes.set_xlabel("training steps")
    figure.suptitle(f"preset {preset}", fontsize=9, color=FAINT, x=0.995, ha="right")
    _legend(figure, paces, dashed)
    return figure


def _pace(runs: Mapping[str, RunConfig]) -> str:
    training = runs["aux"].training
    return f"{amount(training.samples)} samples, {epochs(training.epochs)}"


def _paces(preset: str, embedding: str, size: tuple[int, int]) -> list[dict[str, RunConfig]]:
    """Both methods' runs with few samples, with many, and with few for as many steps as the many take."""
    paces: dict[tuple[int, int], dict[str, RunConfig]] = {}
    for want in recipes.curves(preset):
        run = want.run
        if (run.model.embedding, (run.problem.n, run.problem.q)) == (embedding, size):
            paces.setdefault((run.training.epochs, run.training.samples), {})[want.variant] = run
    return [paces[pace] for pace in sorted(paces)]


def _lines(axes: Axes, stored: results.Index, paces: Mapping[str, Mapping[str, RunConfig]]) -> None:
    """Draw each run's mean over seeds, with the seeds faint behind it. Name the runs that are missing or failed."""
    absent: dict[str, list[str]] = {}
    for (name, runs), dashes in zip(paces.items(), ("-", DASHED), strict=False):
        for variant, run in runs.items():
            style: dict[str, Any] = {"color": COLOURS[variant], "linestyle": dashes}
            for seed in results.curves(stored, run):
                axes.plot(*zip(*seed, strict=True), linewidth=0.8, alpha=0.35, **style)
            mean = results.mean_curve(stored, run)
            axes.plot([step for step, _ in mean], [share for _, share in mean], linewidth=2.2, **style)
            if not mean:
                said = "failed" if results.failures(stored, [run]) else "not run"
                absent.setdefault(said, []).append(f"{variant}, {name}" if name else variant)
            axes.axhline(results.chance(run), zorder=0, **CHANCE)
            axes.set(ylim=(0, 102), xlim=(0, run.training.steps))
    if absent:
        look: dict[str, Any] = {"title_fontsize": 8.5, "edgecolor": "none", "framealpha": 0.9}
        words = "\n".join("\n".join((f"{said}:", *names)) for said, names in absent.items())
        note = axes.legend([], [], title=words, loc="best", **look)  # "best" avoids the lines
        note.get_title().set_color(FAINT)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    clean(axes)


def _legend(figure: Figure, paces: Sequence[Mapping[str, RunConfig]], dashed: bool) -> None:
    from matplotlib.lines import Line2D

    short, more, long = (runs["aux"].training for runs in paces)
    few, many = amount(short.samples), amount(more.samples)
    marks = [Line2D([], [], color=COLOURS[name], linewidth=2.2, label=name) for name in ("aux", "sparse")]
    marks += [Line2D([], [], color=INK, linewidth=2, label=f"{epochs(short.epochs)} ({few} left, {many} right)")]
    if dashed:
        marks += [
            Line2D([], [], color=INK, linewidth=2, linestyle=DASHED, label=f"{few} samples, {epochs(long.epochs)}")
        ]
    marks += [Line2D([], [], label="chance", **CHANCE)]
    legend_below(figure, marks)


# ---- harder sums, more samples, more steps ----------------------------------------------------------------


def fewer_figure(stored: results.Index) -> Figure:
    """The methods' accuracy by number of samples at equal steps, and by number of steps at equal samples."""
    figure = blank(11.4, 3.6)
    left, right = figure.subplots(1, 2, sharey=True)
    run = next(recipes.fewer()).run
    cells = tables.build("fewer", "demo", stored).cells
    equal = [cell for cell in cells if cell.facts["samples"] * cell.facts["epochs"] == recipes.VISITS]
    held = [cell for cell in cells if cell.facts["samples"] == recipes.HELD and cell.facts["method"] != "auto"]
    labels = _labels([cell for cell in cells if cell in equal or cell in held])
    _against(left, equal, labels, "samples", lambda cell: _seen(cell, amount(cell.facts["samples"])))
    _against(right, held, labels, "steps", lambda cell: _seen(cell, f"{cell.facts['steps']:,}"))
    left.set_title(f"equal compute, {run.training.steps:,} steps", **TITLE)
    right.set_title(f"equal data, {recipes.HELD:,} samples", **TITLE)
    left.set(xlabel="distinct samples, and how often each is seen", ylabel="match accuracy (%)")
    right.set(xlabel="training steps, and how often each sample is seen")
    for axes in (left, right):
        axes.axhline(results.chance(run), zorder=0, **CHANCE)
        clean(axes)
    _legend_of(figure, left)
    return figure


def harder_figure(stored: results.Index) -> Figure:
    """Each method's accuracy by number of terms and by modulus, at equal samples and equal steps."""
    figure = blank(11.4, 3.6)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(2, 1))
    demo = next(recipes.headline()).run
    cells = tables.build("harder", "demo", stored).cells
    labels = _labels(cells)
    for axes, fact, other in ((left, "n", "q"), (right, "q", "n")):
        here = [cell for cell in cells if cell.facts[other] == getattr(demo.problem, other)]
        own = [cell for cell in here if cell.facts["method"] != "searched"]
        _against(axes, own, labels, fact, lambda cell, fact=fact: str(cell.facts[fact]))  # type: ignore[misc]
        best = {cell.facts[fact]: cell.ours for cell in here if cell not in own and cell.ours is not None}
        axes.plot(best.keys(), best.values(), label=labels["searched"], color=COLOURS["aux"], **RING)
        guessed = sorted({(cell.facts[fact], cell.chance) for cell in own if cell.chance is not None})
        axes.plot(*zip(*guessed, strict=True), zorder=0, **CHANCE)
        clean(axes)
    seen = f"{amount(demo.training.samples)} samples, {demo.training.steps:,} steps"
    left.set_title(f"by the number of terms N, at q = {demo.problem.q}: {seen}", **TITLE)
    right.set_title(f"by the modulus q, at N = {demo.problem.n}", **TITLE)
    left.set(xlabel="terms", ylabel="match accuracy (%)")
    right.set(xlabel="modulus")
    _legend_of(figure, left)
    return figure


def _legend_of(figure: Figure, axes: Axes) -> None:
    """A legend for what is drawn in a panel, and for chance."""
    from matplotlib.lines import Line2D

    drawn = sorted(axes.get_legend_handles_labels()[0], key=lambda mark: isinstance(mark, Line2D))  # lone marks last
    legend_below(figure, [*drawn, Line2D([], [], label="chance", **CHANCE)])


def _seen(cell: Cell, amount: str) -> str:
    """An amount, and how often each sample is seen."""
    return f"{amount}\n×{cell.facts['epochs']}"


def _labels(cells: Sequence[Cell]) -> dict[str, str]:
    """Each method's name, and how many of its cells have no figure."""
    found = {}
    for (variant,), own in by_facts(cells, ["method"]).items():
        empty = [cell.failed for cell in own if cell.ours is None]
        found[variant] = f"{NAMES[variant]} {gaps(empty.count(0), sum(map(bool, empty)), len(own))}".strip()
    return found


def _against(
    axes: Axes, cells: Sequence[Cell], labels: Mapping[str, str], fact: str, word: Callable[[Cell], str]
) -> None:
    """Draw each method's mean and spread over seeds against ``fact``, on a logarithmic scale."""
    for (variant,), group in by_facts(cells, ["method"]).items():
        own = sorted(group, key=lambda cell: int(cell.facts[fact]))
        ours = [math.nan if cell.ours is None else cell.ours for cell in own]
        look: dict[str, Any] = {"color": COLOURS[variant], "marker": "o", "markersize": 4, "capsize": 2}
        spread, at = [cell.std or 0.0 for cell in own], [cell.facts[fact] for cell in own]
        axes.errorbar(at, ours, spread, label=labels[variant], **look)
        axes.set(xscale="log", xticks=at, xticklabels=list(map(word, own)), ylim=(0, 102))


# ---- the picture at the top of the README -----------------------------------------------------------------


def headline_figure(stored: results.Index) -> Figure:
    """The demo's methods while they learn: the mean over seeds, with the seeds faint behind it."""
    figure = blank(7.6, 3.4)
    axes = figure.subplots()
    runs = {want.variant: want.run for want in recipes.headline()}
    _lines(axes, stored, {"": runs})
    for variant, run in runs.items():
        mean = results.mean_curve(stored, run)
        if mean:
            step, share = mean[-1]
            axes.annotate(
                f"{variant}  {share:.0f} %", (step, share), (6, 0), textcoords="offset points", va="center",
                color=COLOURS[variant], fontweight="bold", fontsize=10, annotation_clip=False,
            )  # fmt: skip
    problem, training = run.problem, run.training
    axes.set(xlabel="training steps", ylabel="held-out match accuracy (%)")
    axes.set_title(
        f"$x_1 + … + x_{{{problem.n}}}$ mod {problem.q} from {training.samples:,} samples, on a CPU", **TITLE
    )
    clean(axes)
    return figure
