"""`auxmod train`: one run, from flags to a run directory."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from auxmod.cli.display import Bars, console, mapping, percent, print_json, say, table
from auxmod.cli.options import (
    RUN,
    SWITCH,
    WHOLE,
    CheckpointEvery,
    ConfigFile,
    Device,
    Json,
    Preset,
    Quiet,
    RunFlags,
    Track,
    given_settings,
)
from auxmod.cli.watch import duration, stop_when_asked
from auxmod.config import RunConfig
from auxmod.errors import require
from auxmod.experiments.choosing import by_near
from auxmod.experiments.run_directory import Run
from auxmod.experiments.track import Start, last_point, tracked, tracker
from auxmod.files import CONFIG
from auxmod.settings import flatten

_KEEP = (
    "Keep the model each so many steps too (at the next point of the curve), as steps/<step> in the run directory, to "
    "see how it came to be."
)


def train(
    flags: Annotated[RunFlags | None, Parameter(name="*")] = None,
    *,
    out: Annotated[Path | None, Parameter(help="The run directory. [default: runs/<name>]", group=RUN)] = None,
    resume: Annotated[
        bool, SWITCH, Parameter(help="Go on with the run in --out, as if it had never stopped.", group=RUN)
    ] = False,
    preset: Preset = None,
    config: ConfigFile = None,
    device: Device = "auto",
    checkpoint_every: CheckpointEvery = 1000,
    keep_every: Annotated[int | None, WHOLE, Parameter(help=_KEEP, group=RUN)] = None,
    track: Track = None,
    dry_run: Annotated[
        bool, SWITCH, Parameter(help="Print what would run, and what it needs; train nothing.", group=RUN)
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train one model, by default with auto, our best method; --preset paper gives the paper's method and setup.

    Example: auxmod train --n 16 --q 97 --method aux --k 5 --r 0.4 --samples 100_000
    """
    require(checkpoint_every >= 1, f"--checkpoint-every is {checkpoint_every}, but must be 1 step or more.")
    require(keep_every is None or keep_every >= 1, f"--keep-every is {keep_every}, but must be 1 step or more.")
    said = given_settings(flags, config)
    from auxmod.experiments.resolving import resolved, resumed

    run = resumed(out, said | ({"preset": preset} if preset else {})) if resume else None
    from auxmod.experiments.single import create_run
    from auxmod.learning.precision import resolve_device

    run_config = run.config if run else resolved(said, preset)
    if dry_run:
        return _describe(run_config, device, json)
    free = run is not None or out is None or not out.exists() or (out / CONFIG).is_file()  # a run may be resumed
    require(free, f"{out} exists already, and is not a run: choose another --out.")
    chosen = resolve_device(device)
    place = out or default_path(run_config)
    start = tracker(track, place.parent) if track else None
    say_measured([run_config])
    run = run or create_run(place, run_config, chosen)
    options: dict[str, Any] = {"checkpoint_every": checkpoint_every, "keep_every": keep_every}
    result = watch_run(run, chosen, quiet, resume=resume, start=start, **options)
    if json:
        return print_json({"run": str(run.path), "hash": run_config.hash, **result})
    console().print(scores_table(run.path, result))


def say_measured(configs: Collection[RunConfig]) -> None:
    """Warn on stderr if what runs are measured on says little about what they learn."""
    if any(c.training.test_data and c.training.test_data_sha256 == c.training.data_sha256 for c in configs):
        say("--test-data holds what is trained on: these figures do not tell what is learned.")
    drawn = [config for config in configs if not config.training.test_data]
    say_seen(drawn)
    if own := next((config.training.data for config in drawn if config.training.data), ""):
        told = f"Accuracy is measured on uniform inputs, though those of {Path(own).name} may be others"
        say(f"{told}: to measure, and to choose, on rows of your own, give --test-data.")


def say_seen(configs: Iterable[RunConfig]) -> None:
    """Warn on stderr if a run trains on many of its test inputs: accuracy is then no proof of learning."""
    from auxmod.problem.theory import SEEN, seen_by

    most = max(configs, key=lambda config: seen_by(config) or 0.0, default=None)
    if most is not None and (share := seen_by(most) or 0.0) >= SEEN:
        problem, samples = most.problem, most.training.samples
        inputs = (
            f"there are {problem.q**problem.n:,} inputs of {problem.n} number{'s' * (problem.n > 1)} mod {problem.q}"
        )
        say(f"About {percent(share)} of the test inputs are trained on: {inputs}, and {samples:,} are drawn.")


def default_path(config: RunConfig) -> Path:
    """runs/<method>-n16-q97-<hash>, with a number added if that exists."""
    name = f"{config.method.method}-n{config.problem.n}-q{config.problem.q}-{config.hash[:6]}"
    return free_path(Path("runs") / name)


def free_path(path: Path) -> Path:
    """The first of path, path-2, path-3, … that does not exist."""
    candidate, number = path, 2
    while candidate.exists():
        candidate, number = path.with_name(f"{path.name}-{number}"), number + 1
    return candidate


def watch_run(
    run: Run, device: Any, quiet: bool, *, start: Start | None = None, keep_every: int | None = None, **options: Any
) -> dict[str, Any]:
    """Train a run, showing progress; return its figures. ``options`` are those of `single.train_run`."""
    from auxmod.experiments.single import curve_point, train_run
    from auxmod.learning.engine import Progress

    with (
        stop_when_asked() as stopping,
        Bars(quiet) as bars,
        tracked(start, f"{run.path.name}-{run.config.hash[:6]}", flatten(run.config)) as tell,
    ):
        for event in train_run(run, device, stopping=stopping, keep_every=keep_every, **options):
            if isinstance(event, Progress):
                bars.show(run.config.method.method, event, by_near([run.config.problem.q]))
                tell(curve_point(event, 0))
                if event.step == event.steps:
                    on = run.resume_command(keep_every)
                    stopping.saved = f"Stopped while measuring; the model is saved. To go on: {on}."
        result = run.result or {}
        tell(last_point(run.config, result))
    return result


def scores_table(run: Path, scores: dict[str, Any], inputs: str | None = None) -> Any:
    """A table of accuracies, each beside its chance level; ``inputs`` are by default what a run is measured on."""
    usual = "rows of its --test-data" if "constant" in scores else "uniform inputs"
    often, title = scores.get("asked"), f"{run} on {scores['samples']:,} {inputs or usual}"
    if often and often["samples"] < scores["samples"]:
        title += f" ({often['samples']:,} of them asked {often['asks']} ways)"
    columns: dict[str, list[Any]] = {
        "accuracy": ["match", *(f"τ = {tau}" for tau in scores["tau"])],
        "model": [scores["match"], *scores["tau"].values()],
        **({f"asked {often['asks']} ways": [often["match"], *often["tau"].values()]} if often else {}),
        "chance": [scores["chance"], *scores["tau_chance"].values()],
        **({"best constant": [scores["constant"], *scores["tau_constant"].values()]} if "constant" in scores else {}),
    }
    rows = [[name, *map(percent, shares)] for name, *shares in zip(*columns.values(), strict=True)]
    return table(title, list(columns), rows)


def _describe(config: RunConfig, device: str, as_json: bool) -> None:
    from auxmod.learning.memory import describe

    cost = describe(config, device)
    if as_json:
        return print_json({"config": config.to_dict(), "hash": config.hash, "cost": cost})
    out = console()
    out.print(mapping(f"Run {config.hash}", flatten(config)))
    out.print(mapping("What it needs", _readable(cost)))
    if cost["bytes"] > cost["free_bytes"]:
        out.print("[red]It does not fit into the memory that is free[/]: use a smaller --batch, model or --samples.")


def _readable(cost: dict[str, Any]) -> dict[str, str]:
    sizes = {name: f"{cost[key] / 2**30:,.2f} GiB" for name, key in (("memory", "bytes"), ("free", "free_bytes"))}
    counts = {name: f"{cost[name]:,}" for name in ("parameters", "steps")}
    rough = {"FLOPs": f"{cost['flops']:.3g}", "time": f"about {duration(cost['seconds'])}"}
    return {"device": cost["device"], "precision": cost["precision"], **counts, **sizes, **rough}
