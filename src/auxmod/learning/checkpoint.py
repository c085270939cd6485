"""Weights and training state on disk, as safetensors: no pickle, and loading runs no code.

A model is two files, `config.json` and `model.safetensors`. A third, `state.safetensors`, holds what a run needs to
resume exactly. Every file is written atomically. The metadata of a safetensors file holds the name of the run it
belongs to, a digest of its tensors and, for a saved ensemble, its account. All of this is one entry: safetensors writes
several entries in random order, and equal models should be equal files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from auxmod.config import RunConfig
from auxmod.errors import UserError, require
from auxmod.files import CONFIG, MODEL, STEPS, sealed, sha256, write_bytes, write_json
from auxmod.learning.engine import Ensemble, Progress, make_encoder
from auxmod.learning.model import Encoder

LAYOUT = "by-size:"
"""The order of parameters in a state's rows. A state in another order is refused, never read in the wrong order."""


def save_model(directory: Path, encoder: Encoder, member: int, config: RunConfig) -> None:
    """Write one member as a separate model: without the member axis, and without padding for other members."""
    directory.mkdir(parents=True, exist_ok=True)
    shapes = {name: p.shape[1:] for name, p in _empty(config).named_parameters()}
    tensors = {
        name: p.detach()[member][tuple(slice(size) for size in shapes[name])].float().contiguous().cpu()
        for name, p in encoder.named_parameters()
    }
    write_json(directory / CONFIG, sealed(config.to_dict()))
    _write(directory / MODEL, tensors, config.hash)


@dataclass
class OnTheWay:
    """Keeps models before the first step and every ``every`` steps (at the next event), beside the final model."""

    place: Callable[[RunConfig], Path]
    """A function that gives the directory of a run's final model."""
    every: int | None
    """None or 0 keeps none."""
    last: int
    """The step of the last event; before the first one, the step from which training goes on."""

    def start(self, ensemble: Ensemble) -> None:
        if self.every and self.last == 0:
            self._keep(ensemble, ensemble.dead(), 0)

    def see(self, ensemble: Ensemble, event: Progress) -> None:
        if self.every and event.step // self.every > self.last // self.every:
            self._keep(ensemble, event.dead, event.step)
        self.last = event.step

    def _keep(self, ensemble: Ensemble, dead: Sequence[int | None], step: int) -> None:
        save_models(ensemble, dead, lambda run: self.place(run) / STEPS / str(step))


def save_models(ensemble: Ensemble, dead: Sequence[int | None], place: Callable[[RunConfig], Path | None]) -> None:
    """Write the model of each member that is not dead, to the directory that ``place`` gives, if it gives one."""
    for member, (config, died) in enumerate(zip(ensemble.configs, dead, strict=True)):
        if died is None and (directory := place(config)):
            save_model(directory, ensemble.encoder, member, config)


def check_own(directory: Path) -> None:
    """Refuse a directory whose `config.json` is not a run's, or is missing beside a model: both may be another's."""
    alone = (directory / MODEL).exists() and not (directory / CONFIG).exists()
    require(
        not alone, f"{directory / MODEL} has no {CONFIG} beside it. It is not overwritten: choose another directory."
    )
    if (directory / CONFIG).exists():
        try:
            RunConfig.read(directory / CONFIG)
        except UserError as error:
            raise UserError(f"{error} It is not overwritten: choose another directory.") from None


def load_model(directory: Path, device: torch.device) -> tuple[Encoder, RunConfig]:
    """Read a run and its model, an encoder of one member in eval mode; a missing or damaged file is a UserError."""
    apart = "A sweep given --keep-models has its models in <results>.models/<hash>; grid and search keep none."
    require(directory.is_dir(), f"{directory} is not a run: there is no such directory. {apart}")
    require((directory / CONFIG).is_file(), f"{directory} is not a run: it has no {CONFIG}.")
    config = RunConfig.read(directory / CONFIG)
    tensors = _read(directory / MODEL, config.hash, "make the model anew, or take it from where it came from")
    sentence = f"{directory / MODEL} does not hold the model that {CONFIG} describes: restore either."
    require(config.model.layers <= len(tensors), sentence)  # else even a model on the meta device may be too large
    try:
        encoder = _empty(config)
    except RuntimeError:  # a size that overflows
        raise UserError(sentence) from None
    wanted = {name: (p.shape[1:], p.dtype) for name, p in encoder.named_parameters()}
    require(wanted == {name: (t.shape, t.dtype) for name, t in tensors.items()}, sentence)
    encoder.load_state_dict({name: t[None] for name, t in tensors.items()}, assign=True)
    return encoder.to(device).eval(), config


def save_state(path: Path, ensemble: Ensemble, account: str = "") -> None:
    """Write all that an ensemble needs to resume from here, and ``account``, any text to keep in the same file."""
    tensors = {name: t.detach().contiguous().cpu() for name, t in ensemble.snapshot().items()}
    _write(path, tensors, _name(ensemble.configs), account)


def load_state(path: Path, ensemble: Ensemble) -> None:
    """Put an ensemble where :func:`save_state` left it; a missing or damaged file, or another's, is a UserError."""
    tensors = _read(path, _name(ensemble.configs), "delete it to start over")
    wanted = {name: (t.shape, t.dtype) for name, t in ensemble.snapshot().items()}
    require(
        wanted == {name: (t.shape, t.dtype) for name, t in tensors.items()},
        f"{path} is the state of a differently shaped run: delete it to start over.",
    )
    ensemble.restore(tensors)


def _name(configs: Sequence[RunConfig]) -> str:
    return LAYOUT + ",".join(c.hash for c in configs)


def _empty(config: RunConfig) -> Encoder:
    with torch.device("meta"):
        return make_encoder([config]).float()  # whatever the process's default dtype is


def _digest(tensors: Mapping[str, Tensor]) -> str:
    return sha256(*(part for name in sorted(tensors) for part in (name.encode(), _bytes(tensors[name]))))


def _bytes(tensor: Tensor) -> memoryview:
    row = tensor.contiguous().as_strided((tensor.numel(),), (1,))  # a single number may have any stride
    return row.view(torch.uint8).numpy().data


def _write(path: Path, tensors: dict[str, Tensor], run: str, account: str = "") -> None:
    write_bytes(path, to_bytes(tensors, metadata={"run": f"{run} {_digest(tensors)} {account}".rstrip()}))


def _read(path: Path, run: str, remedy: str) -> dict[str, Tensor]:
    require(path.is_file(), f"There is no {path.name} in {path.parent}: the run has saved none.")
    try:
        with safe_open(path, "pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        found = _digest(tensors)
    except (SafetensorError, OSError, RuntimeError, ValueError, MemoryError) as error:
        raise UserError(f"{path} is damaged or not a safetensors file ({error}): {remedy}.") from None
    owner, _, rest = metadata.get("run", "").partition(" ")
    digest = rest.partition(" ")[0]
    require(
        owner == run,
        f"{path} belongs to another run than the {CONFIG} beside it, or to another version of auxmod: {remedy}.",
    )
    require(digest in ("", found), f"{path} does not match its digest, so it is damaged: {remedy}.")
    return tensors
