"""Look into a trained model: its answers beside the truth, and whether it holds a circle. Returns plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from auxmod.learning.model import Embedding
from auxmod.learning.trained import TrainedModel
from auxmod.problem import labels, sampling

SHOWN = 1500
"""The most answers that are drawn one by one."""
BINS = 101
SHUFFLES = 20
"""How many random orders of the same tokens a ring is compared with."""

Array = np.ndarray[Any, np.dtype[np.float64]]


def inspect(model: TrainedModel, samples: int) -> dict[str, Any]:
    """A model's answers to the first test inputs, and what is inside: the token table, the read-out plane, or both."""
    problem, device = model.config.problem, model.encoder.head.weight.device
    source: dict[str, Any] = {"seed": sampling.TEST_SEED, "stream": "test", "start": 0, "count": samples}
    x = sampling.uniform(**source, n=problem.n, q=problem.q, device=device)
    truth = labels.residues(labels.sums(x), problem.q).cpu().numpy()
    error = _signed(model.values(x.cpu().numpy()) - truth, problem.q)
    counts, edges = np.histogram(error / problem.q, min(BINS, problem.q // 2 * 2 + 1), (-0.5, 0.5))
    looked: dict[str, Any] = {"samples": samples, "truth": truth[:SHOWN].tolist(), "error": error[:SHOWN].tolist()}
    looked |= {"counts": counts.tolist(), "edges": edges.tolist()}
    if isinstance(model.encoder.embed, Embedding):
        looked["table"] = circle_of_table(model.encoder.embed.weight[0].detach().double().cpu().numpy())
    if model.config.model.angles:
        looked["plane"] = read_out_plane(model, x[:SHOWN])
    return looked


def _signed(gap: Array, q: int) -> Array:
    """The shorter way round the circle: positive if ahead, negative if behind."""
    return (gap + q / 2) % q - q / 2


@torch.no_grad()
def read_out_plane(model: TrainedModel, x: torch.Tensor) -> dict[str, Any]:
    """The model's points for q, and how far from the centre they lie: on the unit circle if all is well."""
    points = model(x)[:, :2].double().cpu().numpy()
    radius = np.hypot(*points.T)
    return {"points": points.tolist(), "radius": float(radius.mean()), "spread": float(radius.std())}


def circle_of_table(table: Array) -> dict[str, Any]:
    """An embedding table (q, D) seen three ways: its two main directions, its spectrum over 0..q−1, its best ring.

    A table that holds the residues as points of a circle, in any order a ↦ f·a mod q, has its variance in frequency f.
    Noise has a strongest frequency too, and agrees with its ring to some degree. ``shuffled`` is how far the same
    tokens agree in random orders: mean and standard deviation.
    """
    centred = np.pad(table - table.mean(0), ((0, 0), (0, table.shape[1] == 1)))  # one column gets an empty second one
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    power, phase, ring, order = _ring(centred)
    random = np.random.default_rng(0)
    shuffled = [_ring(random.permutation(centred))[-1] for _ in range(SHUFFLES)]
    return {
        "pca": (left[:, :2] * sizes[:2]).tolist(),
        "explained": (sizes[:2] ** 2 / (sizes**2).sum()).tolist(),
        "shares": (power / power.sum()).tolist(),
        "frequency": int(power.argmax()) + 1,
        "phase": phase.tolist(),
        "ring": np.stack((ring.real, ring.imag), 1).tolist(),
        "order": order,
        "shuffled": (float(np.mean(shuffled)), float(np.std(shuffled, ddof=1))),
    }


def _ring(centred: Array) -> tuple[Array, Array, np.ndarray[Any, Any], float]:
    """The power of each frequency; each token's phase at the strongest; its place there; and how far these agree.

    A token's place comes from the other tokens alone: if it counted itself, even noise would make a ring.
    """
    waves, q = np.fft.rfft(centred, axis=0)[1:], len(centred)
    power = (np.abs(waves) ** 2).sum(1)
    if q % 2 == 0:
        power[-1] /= 2  # the highest frequency of an even q has no mirror image
    best = int(power.argmax())
    phase = (best + 1) * np.arange(q) % q / q
    turn = np.exp(2j * np.pi * phase)
    ring = (centred @ waves[best]).conj() - (centred**2).sum(1) * turn
    ring /= np.abs(ring).mean()
    return power, phase, ring, float((ring * turn.conj()).mean().real)
