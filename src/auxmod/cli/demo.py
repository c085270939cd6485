"""`auxmod demo`: show the paper's effect on two CPU cores, in a few minutes."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from auxmod.cli.display import Bars, console, line_chart, percent, print_json, table
from auxmod.cli.options import RUN, SWITCH, WHOLE, Device, Json, Quiet
from auxmod.cli.train import free_path
from auxmod.cli.watch import stop_when_asked
from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.catalogue import measured
from auxmod.experiments.presets import demo as demo_settings
from auxmod.experiments.run_directory import Run
from auxmod.settings import build

METHODS = ("naive", "sparse", "aux")


def demo(
    *,
    out: Annotated[Path | None, Parameter(help="Where the three runs go. [default: runs/demo]", group=RUN)] = None,
    quick: Annotated[
        bool, SWITCH, Parameter(help="A few seconds of training: shows that it works, not the effect.", group=RUN)
    ] = False,
    seed: Annotated[int, WHOLE, Parameter(help="Data, weights, order and draws follow from it.", group=RUN)] = 0,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train naive, sparse and aux side by side on a small problem, and compare them."""
    from auxmod.learning.precision import resolve_device

    chosen = resolve_device(device)
    place = out or free_path(Path("runs/demo"))
    require(not place.exists(), f"{place} exists already: choose another --out.")
    size = {"samples": 2_000, "epochs": 1, "test_samples": 2_000} if quick else {}
    runs = {}
    for method in METHODS:
        settings = demo_settings({"method": method}) | {"method": method, "seed": seed} | size
        runs[method] = Run.create(place / method, build(**settings))
    seconds = _train_side_by_side(runs, chosen, quiet)
    rows = [_row(method, runs[method], seconds[method]) for method in METHODS]
    if json:
        return print_json({"runs": str(place), "rows": rows})
    _show(runs, rows, place)
    if quick:
        console().print("Too short a training to show the effect: [bold]auxmod demo[/] takes some minutes and does.")


def _train_side_by_side(runs: dict[str, Run], device: Any, quiet: bool) -> dict[str, float]:
    """Train the three in turn, a stretch of steps each, so that they race on screen; a stop saves all of them."""
    from auxmod.experiments.single import Interrupted, train_run
    from auxmod.learning.engine import Finished

    seconds, measuring = dict.fromkeys(runs, 0.0), False
    with stop_when_asked() as stopping, Bars(quiet) as bars:
        racing = {method: train_run(run, device, stopping=stopping) for method, run in runs.items()}
        while racing:
            for method in list(racing):
                if measuring:
                    stopping.saved = _stopped(runs)
                began = time.monotonic()
                try:
                    event = next(racing[method])
                except Interrupted:
                    del racing[method]
                    continue
                seconds[method] += time.monotonic() - began
                if isinstance(event, Finished):
                    del racing[method]
                else:
                    bars.show(method, event)
                    measuring = event.step == event.steps and method == METHODS[-1]  # all are equally long
    if any(run.result is None for run in runs.values()):
        raise Interrupted(_stopped(runs))
    return seconds


def _stopped(runs: dict[str, Run]) -> str:
    """Say that training stopped and was saved, and how to resume each unfinished run."""
    commands = [run.resume_command() for run in runs.values() if run.result is None]
    return f"Stopped; what was trained is saved. To go on: {', '.join(commands)}."


def _row(method: str, run: Run, seconds: float) -> dict[str, Any]:
    scores = run.result or {}
    return {
        "method": method,
        "match": scores["match"],
        "tau_0.05": scores["tau"]["0.05"],
        "chance": scores["chance"],
        "tau_0.05_chance": scores["tau_chance"]["0.05"],
        "seconds": round(seconds, 1),
    }


def _show(runs: dict[str, Run], rows: list[dict[str, Any]], place: Path) -> None:
    shown, config = console(), runs["aux"].config
    columns = ("method", "match accuracy", "chance", "τ = 0.05 accuracy", "chance", "seconds")
    shares = ("match", "chance", "tau_0.05", "tau_0.05_chance")
    cells = [(row["method"], *(percent(row[name]) for name in shares), f"{row['seconds']:.0f}") for row in rows]
    curves = {name: measured(run.curve()) for name, run in runs.items()}
    shown.print()
    shown.print(table(f"Sums of {config.problem.n} numbers mod {config.problem.q}, at equal data", columns, cells))
    shown.print("\nHeld-out match accuracy")
    shown.print(line_chart(curves))
    picture = _save_picture(curves, place)
    shown.print(f"\nThe same as a picture: {picture}" if picture else "", markup=False)
    shown.print("Next:")
    for command, why in _next_commands(place, config):
        shown.print(f"  {command}  # {why}", markup=False, soft_wrap=True)


def _next_commands(place: Path, config: RunConfig) -> list[tuple[str, str]]:
    n, q, kept = config.problem.n, config.problem.q, shlex.quote(str(place))
    numbers = " ".join(str(i * (q - 1) // (n - 1)) for i in range(n))
    return [
        (f"auxmod predict {kept}/aux {numbers}", "ask it"),
        (f"auxmod eval {kept}/sparse --by zeros --distribution sparse", "the covariate shift, made visible"),
        ("auxmod train --preset demo --method auto", "our own: no K and r to choose"),
    ]


def _save_picture(curves: dict[str, list[tuple[float, float]]], place: Path) -> Path | None:
    """Draw the curves and return the file; None without matplotlib, which the demo does not need."""
    from auxmod.reporting.figures import looks
    from auxmod.reporting.figures.curves import accuracy_figure

    path = place / "demo.png"
    try:
        looks.check_name(path)
    except UserError:
        return None
    looks.save(accuracy_figure(curves), path)
    return path
