"""`auxmod search`: search the settings of a problem with Optuna, in ensembles that drop the runs that lag."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from auxmod.checked import flag, number
from auxmod.cli.display import console, percent, print_json, table
from auxmod.cli.options import RUN, WHOLE, ConfigFile, Device, Json, Preset, Quiet, SweepFlags, given_axes, numbers
from auxmod.cli.sweep import ResultsFile
from auxmod.cli.train import say_measured
from auxmod.cli.watch import Watch, stop_when_asked
from auxmod.errors import require
from auxmod.experiments.choosing import NEAR
from auxmod.experiments.results_file import Results
from auxmod.experiments.space import as_setting, parse_space
from auxmod.reporting.figures.looks import check_name, save

if TYPE_CHECKING:
    from auxmod.experiments.asking import Plan

DEFAULT_RESULTS, DEFAULT_STORAGE = Path("runs/search.jsonl"), "sqlite:///runs/search.db"
SHOWN = 10
"""The most trials that the table shows."""
_TRIALS = "Trials in the study when it is done. [default: 48, or as many as the budget pays]"
Trials = Annotated[int | None, WHOLE, Parameter(help=_TRIALS, group=RUN, show_default=False)]
_BUDGET = "The most it may cost, in whole runs; what is pruned costs less."
Budget = Annotated[float | None, Parameter(help=_BUDGET, group=RUN)]
Members = Annotated[int, WHOLE, Parameter(help="Trials to ask for at once.", group=RUN)]
_RUNGS = "Shares of the training after which the worse half is pruned, but who trails by no more than chance; or none."
Rungs = Annotated[str, Parameter(help=_RUNGS, group=RUN)]
SeedSampler = Annotated[int, WHOLE, Parameter(help="The search's own seed; --seed is the runs'.", group=RUN)]
Storage = Annotated[str, Parameter(help="The study's database, by its URL.", group=RUN, env_var="AUXMOD_STORAGE")]
_STUDY = "The study's name. [default: made from what is searched]"
Study = Annotated[str | None, Parameter(help=_STUDY, group=RUN, show_default=False)]
Plots = Annotated[Path | None, Parameter(help="Where to draw the history and the importances.", group=RUN)]


def search(
    flags: Annotated[SweepFlags | None, Parameter(name="*")] = None,
    *,
    trials: Trials = None,
    budget: Budget = None,
    members: Members = 24,
    rungs: Rungs = "0.25,0.5",
    seed_sampler: SeedSampler = 0,
    storage: Storage = DEFAULT_STORAGE,
    study: Study = None,
    results: ResultsFile = DEFAULT_RESULTS,
    plots: Plots = None,
    preset: Preset = None,
    config: ConfigFile = None,
    device: Device = "auto",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Search with Optuna for the settings with the best held-out accuracy.

    4:9 is any whole number from 4 to 9, 0.05:0.6 any number between, 1e-5:1e-3:log evenly in the logarithm, and
    cls,mean either of the two; a single value is fixed. If no flag leaves a choice, the search is over K, r, draw, lr,
    init and pooling of aux, or over those of them that another --method has (auto: lr). If q is above 1000, few answers
    are exact, so the search goes by near answers, within 0.005·q. The same command resumes a stopped search; with more
    --trials, or a larger --budget, it continues a finished one.

    Example: auxmod search --n 16 --q 97 --preset best --k 4:9 --r 0.05:0.6 --budget 24
    """
    space = parse_space(given_axes(flags, config), preset)
    _require_means(plots)
    from auxmod.experiments.origin import hidden
    from auxmod.experiments.search import examples, run_search
    from auxmod.experiments.study import opened, summary
    from auxmod.learning.precision import resolve_device

    how, chosen = _plan(trials, budget, members, rungs, seed_sampler), resolve_device(device)
    say_measured(examples(space, chosen)[:1])
    Results(results).refresh()
    with opened(storage, study or space.name, space) as kept, stop_when_asked() as stopping:
        with Watch(quiet) as watch:
            for event in run_search(kept, space, results, chosen, how, stopping=stopping):
                watch.see(event)
        found = summary(kept, space)
    if plots:
        _draw(found, plots)
    if json:
        print_json(found | {"storage": hidden(storage), "results": str(results)})
    else:
        _show(found)
    if found["best"] is None:
        raise RuntimeError("No trial came to an end, so there is no choice: look at --json for the reasons.")


def _require_means(plots: Path | None) -> None:
    """Refuse, before the search starts, if Optuna is missing or the plots could not be drawn at the end."""
    if plots:
        require(not plots.is_file(), f"--plots {plots} is a file: name a directory.")
        check_name(plots / "history.png")
    has_optuna = importlib.util.find_spec("optuna") is not None
    require(has_optuna, "Searching needs Optuna: install it with pip install 'auxmod[search]'.")


def _plan(trials: int | None, budget: float | None, members: int, rungs: str, seed: int) -> Plan:
    from auxmod.experiments.asking import MOST, Plan

    shares, pays = () if rungs == "none" else numbers(rungs, "--rungs"), number(budget)
    if trials is None:
        trials = 48 if pays is None else int(10 * min(pays, MOST))
    return Plan(trials=trials, members=members, budget=budget, seed=seed, rungs=shares)


def _draw(found: Mapping[str, Any], place: Path) -> None:
    from auxmod.reporting.figures.search import history_figure, importance_figure

    study = re.sub(r"[^\w.-]+", "-", found["study"])  # in the names, so that no search overwrites another's
    save(history_figure(found["trials"]), place / f"history-{study}.png", flag="--plots")
    save(importance_figure(found["importances"]), place / f"importance-{study}.png", flag="--plots")


def _show(found: Mapping[str, Any]) -> None:
    out, names, near = console(), found["searched"], found["by"] == "near"
    whole = [trial for trial in found["trials"] if trial["state"] == "complete"]
    rows = [
        (
            str(trial["number"]),
            percent(trial["validation"]),
            percent(trial["near" if near else "match"]),
            *(_value(trial["params"].get(name)) for name in names),
        )
        for trial in whole[:SHOWN]
    ]
    held_out = f"held-out, within {NEAR:g}·q" if near else "held-out"
    out.print(table(f"The best of study {found['study']}", ("trial", held_out, "test", *names), rows))
    if found["importances"]:
        shares = [(name, percent(share)) for name, share in found["importances"].items()]
        out.print(table("Which settings mattered", ("setting", "importance"), shares))
    counts = f"{found['complete']} trials trained to the end, {found['pruned']} pruned, {found['failed']} failed"
    out.print(f"{counts}, at the cost of {found['cost']:g} whole runs.")
    if found["best"]:
        words = " ".join(_said(name, as_setting(name, value)) for name, value in found["best"]["params"].items())
        out.print(f"The choice: {words}", markup=False, soft_wrap=True)


def _said(name: str, value: Any) -> str:
    """A setting as a flag of `auxmod train`, with all its digits."""
    if isinstance(value, bool):
        return flag(name) if value else flag(f"no_{name}")
    return f"{flag(name)} {','.join(map(str, value)) if isinstance(value, list | tuple) else value}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
