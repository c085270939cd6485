"""`auxmod report` and `auxmod view`: a store, or one run, as a single-file web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from auxmod.cli.display import console, print_json
from auxmod.cli.options import RUN, WHOLE, Device, Force, Json
from auxmod.errors import require


def report(
    store: Annotated[
        Path | None,
        Parameter(
            help="A directory of runs or results files, or one such file. "
            "[default: results/ here, or else the source tree's]",
            show_default=False,
        ),
    ] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="The .html file to write.", group=RUN)] = Path("report.html"),
    where: Annotated[
        str | None, Parameter(help="Runs whose curves are drawn at first, such as method=aux,n=16.", group=RUN)
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Write a store as a single-file web page: tables beside the paper's, heatmaps, curves, theory, speed, every run.

    Example: auxmod report runs --out report.html
    """
    from auxmod.reporting import results
    from auxmod.reporting.web import file, report

    file.check(out, force)
    html, entries = report.page(store or results.default_place(), where)
    size = file.write(html, out)
    if json:
        return print_json({"page": str(out), "runs": len(entries), "bytes": size})
    console().print(f"written: {out} ({len(entries):,} runs, {size / 1e6:.1f} MB)", markup=False)


def view(
    run: Path,
    /,
    *,
    out: Annotated[Path, Parameter(help="The .html file to write.", group=RUN)] = Path("view.html"),
    samples: Annotated[int, WHOLE, Parameter(help="How many test inputs to ask it.", group=RUN)] = 2_000,
    device: Device = "auto",
    force: Force = False,
    json: Json = False,
) -> None:
    """Write one run as a single-file web page: its answers, errors, curve, and whether it found a circle.

    Example: auxmod view runs/aux-n16-q97-… --out view.html

    Parameters
    ----------
    run: Path
        The run's directory.
    """
    from auxmod.reporting.web import file, view

    require(samples >= 1, f"--samples is {samples}, but must be 1 or more.")
    file.check(out, force)
    from auxmod.experiments import catalogue
    from auxmod.experiments.inspection import inspect
    from auxmod.learning.trained import load

    model = load(run, device)
    (entry,), _ = catalogue.find(run)
    scores = entry.row.get("scores") or model.evaluate(samples)  # unfinished or failed: measured as it is now
    size = file.write(view.page(entry, scores, inspect(model, samples)), out)
    if json:
        return print_json({"page": str(out), "run": entry.name, "bytes": size})
    console().print(f"written: {out} ({size / 1e6:.1f} MB)", markup=False)
