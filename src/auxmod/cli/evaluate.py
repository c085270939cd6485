"""`auxmod eval`, `predict` and `data`: a model's accuracy, its answers, and the data a run trains on."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from auxmod.checked import flag
from auxmod.cli.display import console, percent, print_json, say, table
from auxmod.cli.options import RUN, WHOLE, ConfigFile, Device, Force, Json, Preset, RunFlags, given_settings, numbers
from auxmod.cli.train import say_seen, scores_table
from auxmod.config import TAUS, Distribution, Fill, Problem, RunConfig, check_asks
from auxmod.errors import UserError, require
from auxmod.experiments.presets import with_preset
from auxmod.files import STATE, check_free, write_named
from auxmod.settings import build

_ASKS = (
    "Ask each question so many ways, of shifted inputs, and average: slower, and more exact, unless the model was "
    "trained on special inputs."
)


def evaluate(
    run: Path,
    *,
    samples: Annotated[int | None, WHOLE, Parameter(help="How many inputs to draw.", show_default="100,000")] = None,
    file: Annotated[
        Path | None, Parameter(help="Rows of your own in a .npz (array x) or .csv file, in place of drawn inputs.")
    ] = None,
    tau: Annotated[str, Parameter(help="Tolerances, such as 0.01,0.05.")] = ",".join(map(str, TAUS)),
    by: Annotated[
        Literal["wraps", "zeros"] | None,
        Parameter(help="Also accuracy for each number of wraps ⌊Σx/q⌋, or of zero entries."),
    ] = None,
    distribution: Annotated[Distribution | None, Parameter(help="Which inputs.", show_default="uniform")] = None,
    fill: Annotated[
        Fill | None, Parameter(help="Sparse inputs filled from 0..q−1 or 1..q−1.", show_default="zero")
    ] = None,
    asks: Annotated[int, WHOLE, Parameter(help=_ASKS)] = 1,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Measure a trained model on unseen inputs, with the chance level beside each figure.

    Parameters
    ----------
    run: Path
        The run's directory.
    """
    require(samples is None or samples >= 1, f"--samples is {samples}, but must be 1 or more.")
    check_asks(asks)
    taus = numbers(tau, "--tau")
    asked = {"samples": samples, "distribution": distribution, "fill": fill}
    drawn = {name: value for name, value in asked.items() if value is not None}
    idle = ", ".join(map(flag, drawn))
    require(file is None or not drawn, f"--file brings the inputs, {idle} would draw others: leave out one of them.")
    from auxmod.learning.trained import load

    model = load(run, device)
    _say_unfinished(run)
    _say_shifted(model.config, asks)
    if file:
        source, inputs = {"file": str(file)}, f"inputs of {file}"
        options: dict[str, Any] = {"x": _own_rows(file, run, model.config)}
    else:
        source = {"distribution": distribution or "uniform", "fill": fill or "zero"}
        inputs = f"{source['distribution']} inputs"
        options = source | {"samples": samples}
        say_seen([model.config] if distribution != "sparse" else [])
    scores = model.evaluate(**options, taus=taus, asks=asks)
    if json:
        return print_json({"run": str(run), **source, "asks": asks, **scores})
    out = console()
    out.print(scores_table(run, scores, inputs))
    if asks > 1:
        out.print(f"Each was asked {asks} ways, and the answers averaged.")
    if by:
        out.print(_by_parts(by, scores))


def _own_rows(file: Path, run: Path, config: RunConfig) -> Any:
    """Read the rows to measure on; warn if the model was trained on them."""
    from auxmod.experiments.resolving import digest

    rows = _rows(file, config.problem)
    if digest(rows) == config.training.data_sha256:
        say(f"{file} is what {run} was trained on: these figures do not tell what it has learned.")
    return rows


def _by_parts(by: str, scores: dict[str, Any]) -> Any:
    """A table of accuracy by number of wraps or of zeros."""
    chance = percent(scores["chance"])
    rows = [
        (str(row["bucket"]), f"{row['samples']:,}", percent(row["correct"] / row["samples"]), chance)
        for row in scores[f"by_{by}"]
    ]
    return table(f"By number of {by}", (by, "inputs", "match", "chance"), rows)


def predict(
    run: Path,
    numbers: list[str] | None = None,
    /,
    *,
    file: Annotated[Path | None, Parameter(help="Rows in a .npz (array x) or .csv file.")] = None,
    asks: Annotated[int, WHOLE, Parameter(help=_ASKS)] = 1,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Ask a trained model for sums, of numbers as arguments or of rows in a file or on standard input.

    Parameters
    ----------
    run: Path
        The run's directory.
    numbers: list[str]
        x_1 … x_N.
    """
    require(not (numbers and file), "Give either numbers or --file, not both.")
    check_asks(asks)
    from auxmod.learning.trained import load

    model = load(run, device)
    _say_unfinished(run)
    _say_shifted(model.config, asks)
    problem = model.config.problem
    answers = model.answers([_whole(numbers)] if numbers else _rows(file, problem), asks)
    if json:
        return print_json(answers)
    lines = [(str(a["prediction"]), str(a["truth"]), f"{a['error']:.3f}") for a in answers]
    console().print(table(f"{run}, sums mod {problem.q}", ("prediction", "truth", "circular error"), lines))


def _say_unfinished(run: Path) -> None:
    from auxmod.experiments.run_directory import Run

    if (run / STATE).exists() and Run.open(run).result is None:
        say(f"{run} did not come to its end: this is its last checkpoint.")


def _say_shifted(config: RunConfig, asks: int) -> None:
    """Warn if a question is asked of shifted inputs, which the model may not know."""
    if asks > 1 and config.training.data:
        own = Path(config.training.data).name
        say(f"The model was trained on {own}, and may know none of the shifted inputs that --asks {asks} asks about.")


def _whole(words: list[str]) -> list[int]:
    """Read whole numbers as typed; refuse a fraction rather than round it."""
    try:
        return [int(word) for word in words]
    except ValueError:
        raise UserError(f"The inputs must be whole numbers; these are {' '.join(words)}.") from None


def _rows(file: Path | None, problem: Problem) -> Any:
    """Read rows from a file, or from standard input."""
    from auxmod.problem.rows import parse_rows, read_npz

    if file is not None and file.suffix == ".npz":
        return read_npz(file, problem)
    try:
        text = sys.stdin.read() if file is None else file.read_text(encoding="utf-8")
        return parse_rows(text.removeprefix("\ufeff").splitlines(), problem)  # spreadsheets put this mark in front
    except UnicodeDecodeError:
        raise UserError(f"The rows of {file or 'standard input'} are no text: give a .csv or a .npz file.") from None
    except OSError as error:
        raise UserError(f"The rows cannot be read ({error}).") from None


def data(
    flags: Annotated[RunFlags | None, Parameter(name="*")] = None,
    *,
    out: Annotated[Path, Parameter(help="The .npz file to write.", group=RUN)],
    force: Force = False,
    preset: Preset = None,
    config: ConfigFile = None,
) -> None:
    """Write what a run would train on: x, y = Σx mod q, and quotient = ⌊Σx / q⌋, as .npz."""
    run = build(**({"batch": 1} | with_preset(preset, given_settings(flags, config))))  # no batch is drawn here
    require(not run.training.data, "--data names inputs that are in a file already: leave it out.")
    require(out.suffix == ".npz", f"--out is {out}, but must end in .npz.")
    check_free(out, force)
    import numpy as np
    import torch

    from auxmod.problem import labels, sampling

    x = sampling.training(run, torch.device("cpu"))
    total, q = labels.sums(x), run.problem.q
    arrays = {"x": x, "y": labels.residues(total, q), "quotient": labels.quotients(total, q)}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{name: tensor.numpy() for name, tensor in arrays.items()})  # type: ignore[arg-type]
    write_named(out, buffer.getvalue())
    console().print(f"{out}: x {tuple(x.shape)}, y, quotient; N = {run.problem.n}, q = {q}", markup=False)
