"""`auxmod bench`: what a training step costs here, beside plain PyTorch and the hardware's limit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from auxmod.cli.display import console, print_json, table
from auxmod.cli.options import Device, Json, ModelFlags, given_settings, whole_numbers
from auxmod.files import check_free, json_bytes, write_named

COLUMNS = ("case", "ms/step/member", "×compile+AMP", "×eager", "TFLOP/s", "of peak", "×floor", "memory", "compile s")


def bench(
    flags: Annotated[ModelFlags | None, Parameter(name="*")] = None,
    *,
    n: Annotated[str | None, Parameter(help="Numbers of terms, such as 8,16,32. [default: a set of cases]")] = None,
    members: Annotated[str | None, Parameter(help="Models trained at once, such as 1,8,24, with each N.")] = None,
    device: Device = "auto",
    precision: Annotated[str, Parameter(help="auto, fp32, tf32, fp16 or bf16.")] = "auto",
    out: Annotated[Path | None, Parameter(help="Write the figures to this JSON file.")] = None,
    plot: Annotated[Path | None, Parameter(help="Draw cost against N and E into this file (.png, .svg, .pdf).")] = None,
    plain: Annotated[bool, Parameter(help="Measure plain PyTorch beside ours.")] = True,
    only_steps: Annotated[bool, Parameter(negative="", help="Leave out evaluation, a sweep, and auto.")] = False,
    force: Annotated[bool, Parameter(negative="", help="Overwrite what --out and --plot name.")] = False,
    json: Json = False,
) -> None:
    """Time a training step: ours, plain PyTorch's, and the arithmetic alone at the matrix rate measured here.

    The model's flags are those of train. They do not apply to the line about
    auto, which is always about the default model.

    Example: auxmod bench --n 16,64 --members 1,8 --norm post --out bench.json
    """
    ns, sizes = whole_numbers(n, "--n"), whole_numbers(members, "--members")
    if out:
        check_free(out, force)
    if plot:
        from auxmod.reporting.figures import looks
        from auxmod.reporting.figures.bench import figure

        looks.check_name(plot)
        check_free(plot, force, "--plot")
    from auxmod import bench as library
    from auxmod.learning.precision import resolve_device

    chosen = resolve_device(device)
    settings = given_settings(flags, None)
    cases = library.cases(chosen, ns, sizes, precision=precision, **settings)
    progress = console(stderr=True)
    options = {"plain": plain, "only_steps": only_steps}
    result = library.run(cases, chosen, **options, tell=lambda what: progress.print(f"measuring {what} …"))
    result["settings"] = settings
    try:
        (print_json if json else _show)(result)  # first, so that the figures are seen even if they cannot be written
    finally:
        if out:
            write_named(out, json_bytes(result))
        if plot:
            looks.save(figure(result), plot, flag="--plot")


def _show(result: dict[str, Any]) -> None:
    out, made = console(), result["provenance"]
    rates = ", ".join(f"{name} {rate:.3g} TFLOP/s" for name, rate in result["matrix_tflops"].items())
    given = "".join(f", {name} {value}" for name, value in result["settings"].items())
    title = f"A training step on {made['device']}{given} (matrix products: {rates})"
    out.print(table(title, COLUMNS, [_cells(row) for row in result["rows"]]))
    if evaluation := result["evaluation"]:
        scaled = "" if evaluation["samples"] == 1_000_000 else f" (scaled from {evaluation['samples']:,})"
        out.print(
            f"Evaluating 1,000,000 samples at N = {evaluation['n']}: {evaluation['seconds_per_million']:.1f} s{scaled}."
        )
    if sweep := result["sweep"]:
        out.print(
            f"A sweep of {sweep['cells']} cells took {100 * sweep['beyond_training']:.2f} % longer than training them."
        )
    for row in result["methods"]:
        out.print(f"A step of auto takes {row['ratio']:.2f} times one of aux (N = {row['n']}, E = {row['members']}).")
    for note in result["notes"]:
        out.print(note)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    def times(ratio: float | None) -> str:
        return "–" if ratio is None else f"{ratio:.1f}×"

    ours = row["ours"]
    return (
        f"N = {row['n']}, E = {row['members']}, {row['precision']}",
        f"{ours['ms']:.3g} ({ours['low']:.3g}–{ours['high']:.3g})",
        times(row["faster_than_compiled"]),
        times(row["faster_than_eager"]),
        f"{row['tflops']:.3g}",
        f"{100 * row['share_of_matrix_rate']:.1f} %",
        times(row["floor_ratio"]),
        "–" if row["peak_bytes"] is None else f"{row['peak_bytes'] / 2**30:.2f} GiB",
        f"{row['prepare_seconds']:.1f}" + ("" if row["captured"] else " (eager)"),
    )
