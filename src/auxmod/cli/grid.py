"""`auxmod grid`: the paper's search for K and r, trained in ensembles, and its choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.table import Table
from rich.text import Text

from auxmod.checked import flag
from auxmod.cli.display import console, percent, print_json, titled
from auxmod.cli.options import RUN, WHOLE, GridFlags, given_axes
from auxmod.cli.sweep import Common, CommonFlags, runs_of
from auxmod.cli.train import default_path, scores_table, watch_run
from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.choosing import NEAR, pairs
from auxmod.experiments.presets import GRID
from auxmod.experiments.ranges import alternatives, expand
from auxmod.experiments.run_directory import Run
from auxmod.files import check_free
from auxmod.settings import build, flatten


def grid(
    flags: Annotated[GridFlags | None, Parameter(name="*")] = None,
    *,
    then_samples: Annotated[
        int | None, WHOLE, Parameter(help="Train a run of its own with the choice, on so many samples.", group=RUN)
    ] = None,
    out: Annotated[
        Path | None, Parameter(help="That run's directory. [default: runs/<name>]", group=RUN, show_default=False)
    ] = None,
    common: CommonFlags = None,
) -> None:
    """Search for K and r as the paper does: train every pair of a grid, and choose by held-out accuracy.

    By default K is 4 to 9 and r is 0.1 to 0.4 in steps of 0.1. If --seed has several values, a pair counts by its mean
    over them. The held-out inputs are drawn apart from those for training and for testing, so that the choice does not
    flatter the test accuracy shown beside it. If q is above 1000, few answers are exact, so the choice goes by near
    answers, within 0.005·q.

    Example: auxmod grid --n 16 --q 97 --preset best --then-samples 1_000_000
    """
    common = common or Common()
    axes = GRID | given_axes(flags, common.config)
    fixed = " and ".join(flag(name) for name in ("moduli", "weights") if name in axes)
    require(not fixed, f"A grid is of K and r, which give the moduli and their weights: leave out {fixed}.")
    for name, given in axes.items():
        single = name in ("k", "r", "seed") or len(alternatives(name, given)) == 1
        require(single, f"{flag(name)} has several values, but a grid is of --k and --r (and --seed).")
    method = axes.get("method", "aux")
    aux = f"A grid is of K and r, which --method aux has, and {method} has not: leave out --method."
    require(method == "aux", aux)
    configs = runs_of(expand(axes), common.preset)
    longer = _longer(configs[0], then_samples, out)
    found = pairs(configs, common.run(configs))
    if not common.json:
        show(found)
    elif found["best"] is None:
        print_json(found)
    if found["best"] is None:
        raise RuntimeError("Every cell of the grid failed, so there is no choice: --retry-failed tries them again.")
    made = _train_longer(found["best"], longer, out, common) if longer else None
    if common.json:
        print_json(found | ({"then": {"run": str(made.path), **(made.result or {})}} if made else {}))
    elif made:
        console().print(scores_table(made.path, made.result or {}))


# -- the longer run -------------------------------------------------------------------------------------------


def _longer(config: RunConfig, samples: int | None, out: Path | None) -> RunConfig | None:
    """The longer run, still without the choice; None if none is asked for. It is checked here, before the search."""
    require(samples is not None or out is None, "--out is the place of the longer run: give --then-samples with it.")
    if out is not None:
        require(not out.exists(), f"{out} exists already: choose another --out.")
        check_free(out, force=False)  # nor may its folder be a file
    if samples is None:
        return None
    require(not config.training.data, "--then-samples draws samples, but --data names a file of them: give one.")
    return build(**flatten(config) | {"samples": samples})


def _train_longer(best: Mapping[str, Any], longer: RunConfig, out: Path | None, common: Common) -> Run:
    from auxmod.experiments.single import create_run
    from auxmod.learning.precision import resolve_device

    k, r = best["k"], best["r"]
    config = build(**flatten(longer) | {"moduli": (1, k), "weights": (1 - r, r)})
    chosen = resolve_device(common.device)
    made = create_run(out or default_path(config), config, chosen)
    watch_run(made, chosen, common.quiet, checkpoint_every=common.checkpoint_every)
    return made


# -- the heatmap ----------------------------------------------------------------------------------------------


def show(found: Mapping[str, Any]) -> None:
    """Print the heatmap, the choice, and its caveats: ties and failed cells."""
    out = console()
    size = f"N = {found['n']}, q = {found['q']}, {found['samples']:,} samples"
    near = found["by"] == "near"
    what = f"answers within {NEAR:g}·q" if near else "match accuracy"
    out.print(titled(f"Held-out {what}, {size}", heatmap(found)))
    best = found["best"]
    if found["failed"]:
        out.print(f"[red]{found['failed']} cells failed and are left out.[/]")
    if best is not None:
        out.print(
            f"The choice: [bold]--k {best['k']} --r {best['r']:.12g}[/], {percent(best['sought'])} held-out, "
            f"{percent(best['match'])} exact on the test inputs (chance {percent(found['chance'])})"
            + (f", {percent(best['near'])} within {NEAR:g}·q." if near and best["near"] is not None else ".")
        )
    if found["equals"] > 1:
        others = found["equals"] - 1
        out.print(f"{others} other{'s are' if others > 1 else ' is'} as good; the first is taken.")
    if best is not None and best["failed"]:
        seeds = best["seeds"] + best["failed"]
        out.print(f"[red]{best['failed']} of its {seeds} seeds failed, and are not in its mean.[/]")


def heatmap(found: Mapping[str, Any]) -> Table:
    """A table of held-out accuracy over K and r, with ρ below each."""
    cells = {(cell["k"], cell["r"]): cell for cell in found["cells"]}
    ks, rs = sorted({k for k, _ in cells}), sorted({r for _, r in cells})
    chance = found["near_chance" if found["by"] == "near" else "chance"]
    labels = [f"{r:.12g} " for r in rs]
    out = Table(caption=f"ρ below each; chance {percent(chance)}", caption_justify="left", padding=0, show_edge=False)
    out.add_column("r \\ K", justify="right", min_width=max(map(len, ["r \\ K", *labels])))
    for k in ks:
        out.add_column(str(k), justify="center", min_width=10)
    out.min_width = sum(1 + (column.min_width or 0) for column in out.columns)  # no figure is cut
    for label, r in zip(labels, rs, strict=True):
        out.add_row(label, *(_cell(cells.get((k, r)), found) for k in ks))
    return out


def _cell(cell: Mapping[str, Any] | None, found: Mapping[str, Any]) -> Text:
    if cell is None or cell["sought"] is None:
        return Text("" if cell is None else "  failed  \n" if cell["failed"] else " unknown  \n", style="red")
    share = cell["sought"]
    mark = "*" if cell is found["best"] else " "
    return Text(f"{percent(share) + mark:^10}\n{'ρ ' + format(cell['rho'], '.2f'):^10}", style=_colour(share))


def _colour(share: float) -> str:
    """A cell's style: dark purple at 0 through green to yellow at 1, and a text colour that can be read on it."""
    stops = ((68, 1, 84), (49, 104, 142), (53, 183, 121), (253, 231, 37))
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(place), len(stops) - 2)
    red, green, blue = (round(a + (b - a) * (place - i)) for a, b in zip(stops[i], stops[i + 1], strict=True))
    return f"{'black' if share > 0.6 else 'white'} on rgb({red},{green},{blue})"
