"""A trained model for its users: an `nn.Module` that answers, saves itself, and converts to plain torch."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from auxmod.config import TAUS, Distribution, Fill, RunConfig
from auxmod.errors import require
from auxmod.files import check_apart, path_of, user_named
from auxmod.learning.activations import Hook, activations
from auxmod.learning.checkpoint import check_own, load_model, save_model
from auxmod.learning.evaluation import averaged, chunks, evaluate, rows_at_once
from auxmod.learning.model import Dropout, Encoder
from auxmod.learning.objective import Objective
from auxmod.learning.plain import PlainModel, to_plain
from auxmod.learning.precision import resolve_device
from auxmod.problem import labels, metrics
from auxmod.problem.rows import check_rows


class TrainedModel(nn.Module):
    """One model for one problem.

    `encoder` is the network (its parameters have a leading member axis of length 1), and `config` is the run that it
    comes from. Calling the module maps whole numbers (B, N) to raw outputs (B, ·). The module starts in `eval` mode; in
    `train` mode it applies the dropout of its configuration.
    """

    def __init__(self, encoder: Encoder, config: RunConfig) -> None:
        super().__init__()
        self.encoder, self.config = encoder, config
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (B, N), a tensor of whole numbers in 0..q−1 → outputs (B, ·): logits, or a point for each rung.

        A rung is a modulus or a harmonic. The range 0..q−1 is not checked here; the other methods check it.
        """
        n = self.config.problem.n
        whole = isinstance(x, Tensor) and not (x.is_floating_point() or x.is_complex())
        sentence = f"The model takes a tensor of whole numbers, {n} a row; `predict` takes what numpy reads."
        require(whole and x.dim() == 2 and x.shape[1] == n, sentence)
        rate = self.config.model.dropout
        if not (self.training and rate):
            return self._outputs(x[None])[0]
        key, step = torch.randint(2**62, (2,), device=x.device)
        return self._outputs(x[None], Dropout(rate, key[None], step))[0]

    def _outputs(self, x: Tensor, dropout: Dropout | None = None) -> Tensor:
        """Unchecked inputs (1, B, N) → outputs (1, B, ·); with dropout if it is given, whatever the mode."""
        outputs: Tensor = self.encoder(self._read(x), self.encoder.head.weight.dtype, dropout)
        return outputs

    def _read(self, x: Tensor) -> Tensor:
        """What the encoder reads of unchecked inputs (1, B, N); points are of its weights' dtype."""
        features = self._objective.features(x)
        return features.to(self.encoder.head.weight.dtype) if features.is_floating_point() else features

    def _changed(self, hooks: Mapping[str, Hook], x: Tensor) -> Tensor:
        """:meth:`_outputs` with values on the way changed."""
        return activations(self.encoder, self._read(x), hooks, ("outputs",))["outputs"][None]

    @property
    def _objective(self) -> Objective:
        """The objective of its run, on the device of its weights."""
        return Objective.of([self.config], self.encoder.head.weight.device)

    def features(self, x: Any) -> Tensor:
        """What the encoder reads of rows x (N,) or (B, N), on its device.

        These are the tokens (B, N) or, with angular embedding, a point for each term and rung, (B, N, 2·rungs).
        """
        rows = torch.from_numpy(check_rows(x, self.config.problem)).to(self.encoder.head.weight.device)
        return self._read(rows[None])[0]

    def activations(
        self,
        x: Any,
        hooks: Mapping[str, Hook] | None = None,
        *,
        names: Collection[str] | None = None,
        gradients: bool = False,
    ) -> dict[str, Tensor]:
        """Return the values computed on the way for rows x (N,) or (B, N), by name: TransformerLens's where it has one.

        ``names`` are those to return, in place of all. With ``gradients``, PyTorch keeps how they follow from each
        other and from the parameters, so that ``torch.autograd.grad`` can be asked.

        ``hooks`` changes values. A function under one of the names below (except the last) receives that value, and
        what it returns takes its place in all that follows. This can remove a head, for example, or insert the
        value that another input had.

        T is N, or N + 1 with `cls` pooling. L is a block's number, from 0. With post-norm the stream is what each norm
        returns.

        - ``hook_embed`` (B, T, D): the embedded terms
        - ``blocks.L.hook_resid_pre``, ``…_mid``, ``…_post`` (B, T, D): the stream before, between and after its layers
        - ``blocks.L.attn.hook_q``, ``…_k``, ``…_v``, ``…_z`` (B, T, heads, D/heads): z is v mixed by the pattern
        - ``blocks.L.attn.hook_pattern`` (B, heads, T, T): how much each position (axis 2) attends to each (axis 3)
        - ``blocks.L.hook_attn_out``, ``blocks.L.hook_mlp_out`` (B, T, D): what the two layers add
        - ``blocks.L.mlp.hook_post`` (B, T, hidden): the hidden layer, after its activation
        - ``ln_final.hook_normalized`` (B, T, D): the stream after the final norm, if there is one
        - ``pooled`` (B, D or N·D), ``outputs`` (B, ·): the read-out's input and output
        - ``values`` (B,): the unrounded answers in [0, q) that follow, as in :meth:`values`
        """
        features = self.features(x)
        require(len(features) >= 1, "There is no row to look at.")
        listed = names is None or (isinstance(names, Collection) and all(isinstance(name, str) for name in names))
        require(listed and not isinstance(names, str), f"names is {names!r}, but must be a list of names.")
        kept = None if names is None else {*names, "outputs"} - {"values"}
        with torch.set_grad_enabled(gradients):
            seen = activations(self.encoder, features[None], {} if hooks is None else hooks, kept)
            seen["values"] = self._objective.decode(seen["outputs"][None])[0]
        return {name: value for name, value in seen.items() if names is None or name in names}

    @torch.no_grad()
    def values(self, x: Any, asks: int = 1) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The unrounded answers in [0, q), one per row of x: whole numbers (N,) or (B, N), in any form numpy reads.

        Each row is asked in ``asks`` ways (shifted inputs, the answer shifted back), and the answers are averaged: more
        ways are slower, and more exact, if the model knows all inputs. A model trained on data of your own may know
        none of the shifted ones; then ask once.
        """
        rows = check_rows(x, self.config.problem)
        objective, answers = self._objective, []
        device = objective.q.device
        at_once = rows_at_once(self.encoder, device)
        for start, count in chunks(len(rows), min(4096, at_once)):
            batch = torch.from_numpy(rows[start : start + count]).to(device)
            outputs = averaged(self._outputs, objective, batch[None], asks)
            answers.append(objective.decode(outputs)[0].cpu().numpy())
            require(bool(np.isfinite(answers[-1]).all()), "An answer of the model is not a number: did it diverge?")
        return np.concatenate(answers) if answers else np.zeros(0)

    def predict(self, x: Any, asks: int = 1) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The model's answers to (x_1 + … + x_N) mod q: whole numbers in 0..q−1, one per row of x.

        ``x`` and ``asks`` are as in :meth:`values`.
        """
        return labels.rounded(torch.from_numpy(self.values(x, asks)), self.config.problem.q).numpy()

    def answers(self, x: Any, asks: int = 1) -> list[dict[str, Any]]:
        """What `auxmod predict` prints for each row of x: prediction, truth, circular error, unrounded value."""
        rows, q = check_rows(x, self.config.problem), self.config.problem.q
        value, truth = torch.from_numpy(self.values(rows, asks)), torch.from_numpy(rows.sum(1) % q)
        error = metrics.circular_error(value, truth, q)
        columns = labels.rounded(value, q).tolist(), truth.tolist(), error.tolist(), value.tolist()
        names = ("prediction", "truth", "error", "value")
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]

    def evaluate(
        self,
        samples: int | None = None,
        *,
        x: Any = None,
        distribution: Distribution | None = None,
        fill: Fill | None = None,
        taus: Iterable[float] = TAUS,
        asks: int = 1,
        hooks: Mapping[str, Hook] | None = None,
    ) -> dict[str, Any]:
        """Match and τ-accuracy with their chance levels, and accuracy by wraps and by zeros.

        They are measured on ``samples`` inputs (by default 100,000), drawn by ``distribution`` ("uniform" or "sparse")
        and ``fill`` ("zero" or "nonzero"), or on your own rows ``x`` (B, N). Of your own rows some answers may be more
        common than others, so what the best constant answer gets is there too. ``asks`` is as in :meth:`values`,
        ``hooks`` as in :meth:`activations`.
        """
        objective, asked = self._objective, {"samples": samples, "distribution": distribution, "fill": fill}
        drawn: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        if x is not None:
            require(not drawn, f"The rows given are what it is measured on: leave out {', '.join(drawn)}.")
            rows = torch.from_numpy(check_rows(x, self.config.problem)).to(objective.q.device)
            require(len(rows) >= 1, "There is no row to be measured on.")
            drawn = {"rows": rows, "samples": len(rows)}
        at_once, options = rows_at_once(self.encoder, objective.q.device), {"samples": 100_000, **drawn}
        forward = self._outputs if hooks is None else functools.partial(self._changed, hooks)
        return evaluate(forward, objective, at_once=at_once, taus=taus, asks=asks, **options)[0]

    def save_pretrained(self, directory: str | Path) -> None:
        """Write `config.json` and `model.safetensors`, which :func:`auxmod.load` reads.

        It refuses a run's directory, the models that a run or a sweep keeps, and files that are not of such a model.
        """
        place = path_of(directory, "directory")
        check_apart(place)
        check_own(place)
        with user_named(place, "directory"):
            place.mkdir(parents=True, exist_ok=True)
            save_model(place, self.encoder, 0, self.config)

    def to_torch(self) -> PlainModel:
        """The same network as an ordinary `torch.nn.TransformerEncoder` model.

        It takes whole numbers (B, N), as this one does, or, if the embedding is angular, :meth:`features`.
        """
        plain = to_plain(self.encoder)
        if self.config.model.embedding == "angular":
            objective = self._objective
            plain.rungs = torch.stack((objective.harmonics[0], objective.moduli[0]))
        return plain


def load(path: str | Path, device: str | torch.device = "auto") -> TrainedModel:
    """Load a model from a directory that a run, a sweep or :meth:`TrainedModel.save_pretrained` wrote."""
    return TrainedModel(*load_model(path_of(path, "path"), resolve_device(device)))
