"""`auxmod.sweep`: train many runs from Python, and return their figures and models."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from auxmod.checked import is_int
from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.experiments.ensembles import Notice
from auxmod.experiments.kept import Models
from auxmod.experiments.ranges import MOST_CELLS, expand_all
from auxmod.experiments.resolving import resolved_all, with_digest
from auxmod.experiments.results_file import Results, rows_of
from auxmod.experiments.single import check_options
from auxmod.experiments.sweep import Event, run_sweep
from auxmod.learning.precision import resolve_device
from auxmod.learning.trained import TrainedModel, load


@dataclass(frozen=True, repr=False)
class Cell:
    """A run of a sweep and its outcome."""

    settings: dict[str, Any]
    """The settings that the sweep was given, with this run's values; empty if it was given runs."""
    config: RunConfig
    scores: dict[str, Any] | None
    """The run's figures on test inputs, as in `result.json`: ``match``, ``chance``, ``tau``, ``by_wraps`` and others;
    None if it failed."""
    failed: str | None
    """Why there are no figures; None if there are."""
    curve: list[dict[str, Any]]
    """Points of the learning curve: ``step``, ``loss``, and ``accuracy`` on held-out inputs."""
    provenance: dict[str, Any]
    """On what the run was made, as in its line of ``results``: ``commit``, ``device``, ``precision``, ``command`` and
    others. Its ``members`` were trained together, and its ``seconds`` are the time of them all."""
    model: TrainedModel | None
    """None if the run failed, or failed when it was trained again for its model."""

    def __repr__(self) -> str:
        said = ", ".join(f"{name}={value!r}" for name, value in self.settings.items()) or self.config.hash
        came = f"failed={self.failed!r}" if self.scores is None else f"match={self.scores['match']:.4f}"
        return f"Cell({said}: {came})"


def sweep(
    runs: Sequence[RunConfig] | None = None,
    *,
    preset: str | None = None,
    results: str | Path | None = None,
    keep_every: int | None = None,
    members: int | None = None,
    retry_failed: bool = False,
    device: str | torch.device = "auto",
    tell: Callable[[Event], object] = lambda event: None,
    **settings: Any,
) -> list[Cell]:
    """Train many models, those of one shape together, and return a :class:`Cell` for each, in order.

    Give settings of :func:`train`, with a list for each setting that takes several values. Every combination is a
    cell: ``k=[4, 5], seed=range(3)`` makes six. Or give ``runs``, a list of `RunConfig`.

    With ``results``, a file, each cell becomes a line of it, and its model is kept in the directory `<results>.models`
    under the run's hash. Cells that have both already are not trained again, nor are failed ones; with ``retry_failed``
    each of these is tried once more. If the call is stopped, the same call goes on from the last save. Every
    ``keep_every`` steps (at the next point of the curve) the models are also kept, in `steps/<step>` below that; cells
    that are done stay as they are. At most ``members`` train together, except those that a stopped call saved together.
    ``tell`` is called with each event.
    """
    check_options(keep_every, tell, results=results)
    able = members is None or (is_int(members) and members >= 1)
    require(able, f"members is {members!r}, but must be a whole number of models.")
    file = results is None or Path(results).name != ""
    require(file, f"results is {results!r}, but must be a file, or None to keep nothing.")
    require(keep_every is None or results is not None, "keep_every needs results, the file beside which models lie.")
    cells, configs = _cells(runs, preset, settings)
    chosen = resolve_device(device)
    with contextlib.ExitStack() as stack:
        own = None if results is None else Path(results)
        place = own or Path(stack.enter_context(tempfile.TemporaryDirectory()), "results.jsonl")
        models = Models(place, keep_every)
        options: dict[str, Any] = {"models": models, "members": members, "retry_failed": retry_failed}
        book = Results(place, models)
        book.refresh()
        if said := models.without_steps(config for config in configs if book.done(config.hash)):
            tell(Notice(said))
        events = stack.enter_context(contextlib.closing(run_sweep(configs, place, chosen, **options)))  # frees claims
        for event in events:
            tell(event)
        return [
            _cell(given, config, row, models, chosen)
            for given, config, row in zip(cells, configs, rows_of(configs, place), strict=True)
        ]


def _cells(
    runs: Sequence[RunConfig] | None, preset: str | None, settings: dict[str, Any]
) -> tuple[list[dict[str, Any]], list[RunConfig]]:
    """The settings each cell was given (empty if ``runs`` are given), and its run."""
    if runs is None:
        cells = expand_all([{name: _plain(value) for name, value in settings.items()}])
        return cells, resolved_all(cells, preset)
    listed = isinstance(runs, Sequence) and bool(runs) and all(isinstance(run, RunConfig) for run in runs)
    require(listed, "auxmod.sweep takes a list of RunConfigs, or settings by name, as in k=[4, 5], seed=range(3).")
    require(not settings and preset is None, "Give RunConfigs, or a preset and settings, not both.")
    return [{} for _ in runs], [with_digest(run) for run in runs]


def _plain(value: Any) -> Any:
    """Convert ranges, tuples and numpy arrays to the lists and numbers that a file would have."""
    if isinstance(value, range):
        require(len(value) <= MOST_CELLS, f"A range of {len(value):,} values is more than {MOST_CELLS:,} cells.")
    if isinstance(value, range | list | tuple):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value


def _cell(said: dict[str, Any], config: RunConfig, row: dict[str, Any], models: Models, device: torch.device) -> Cell:
    model, place = None, models.of(config)
    if "scores" in row and models.has(config.hash):
        try:
            model = load(place, device)
        except UserError as error:
            raise UserError(f"{error} To train it anew, delete {place} and give the same call again.") from None
    made, curve = row.get("provenance", {}), row.get("curve", [])
    return Cell(said, config, row.get("scores"), row.get("failed"), curve, made, model)
