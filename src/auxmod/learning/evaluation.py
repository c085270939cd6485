"""Measure models on given inputs, or on inputs drawn independently of training, in chunks that fit the device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, get_args

import torch
from torch import Tensor

from auxmod.checked import is_int, number, shown
from auxmod.config import TAUS, Distribution, Fill, check_asks
from auxmod.errors import require
from auxmod.learning.memory import free_bytes
from auxmod.learning.model import Encoder
from auxmod.learning.objective import Objective
from auxmod.problem import labels, metrics, rng, sampling

LEAST_NUMBERS, MOST_NUMBERS = 2**24, 2**31
"""Numbers per chunk: on a CPU the least; on a GPU as many as a 16th of its free memory holds, within these bounds."""


@torch.no_grad()
def evaluate(
    forward: Callable[[Tensor], Tensor],
    objective: Objective,
    samples: int,
    *,
    at_once: int,
    stream: str = "test",
    distribution: Distribution = "uniform",
    fill: Fill = "zero",
    rows: Tensor | None = None,
    taus: Iterable[float] = TAUS,
    asks: int = 1,
) -> list[dict[str, Any]]:
    """Return each member's figures on ``samples`` inputs; ``forward`` maps x (E, B, N) to outputs (E, B, ·).

    The inputs depend only on (N, q, stream, distribution, fill), so that every model answers the same questions; or
    ``rows`` (samples, N) gives them. Of such rows some answers may be common, so there is a second chance level beside
    the figures: what the best constant answer gets. If ``at_once`` inputs do not fit into a GPU's memory, fewer are
    tried.
    """
    require(is_int(samples) and samples >= 1, f"--samples is {samples!r}, but must be a whole number, 1 or more.")
    for name, value, known in (("distribution", distribution, get_args(Distribution)), ("fill", fill, get_args(Fill))):
        require(value in known, f"--{name} is {value!r}; choose one of {', '.join(known)}.")
    samples, known = int(samples), _tolerances(taus)  # numpy's small integers overflow
    require(
        fill == "zero" or distribution == "sparse",
        "--fill nonzero is about sparse inputs: add --distribution sparse, or leave out --fill.",
    )
    qs, device, angles = objective.q.tolist(), objective.q.device, objective.model.angles
    about: dict[str, Any] = {"seed": sampling.TEST_SEED, "stream": stream, "n": objective.n, "device": device}

    def measured() -> list[dict[str, Any]]:
        tally = metrics.Tally.empty(objective.q, objective.n, known)
        for start, count in chunks(samples, at_once):
            at = about | {"start": start, "count": count}
            drawn = {q: sampling.inputs(distribution, fill, q=q, **at) for q in set(qs) if rows is None}
            x = torch.stack([drawn[q] if rows is None else rows[start : start + count] for q in qs])
            tally.add(objective.decode(averaged(forward, objective, x, asks)), x)
        return tally.report(angles)

    while True:
        try:
            found = measured()
            break
        except torch.OutOfMemoryError:
            if at_once == 1:
                raise
        torch.cuda.empty_cache()  # not in the handler, where the error keeps tensors alive
        at_once = max(1, min(at_once, samples) // 2)
    if rows is None:
        return found
    return [figures | _constant(rows, q, known, angles) for figures, q in zip(found, qs, strict=True)]


def _tolerances(taus: Iterable[float]) -> tuple[float, ...]:
    """The tolerances τ, checked."""
    several = isinstance(taus, Iterable) and getattr(taus, "ndim", 1) == 1
    tolerances = [number(tau) for tau in taus] if several else [None]
    require(None not in tolerances, f"--tau is {taus!r}, but must be a list of tolerances.")
    known = tuple(tau for tau in tolerances if tau is not None)
    wide = [tau for tau in known if not 0 < tau <= 0.5]
    require(not wide, f"--tau is {shown(wide)}, but tolerances lie in (0, 0.5] of the circle.")
    return known


def _constant(rows: Tensor, q: int, taus: Iterable[float], angles: bool) -> dict[str, Any]:
    """What always giving the same answer to these rows gets: exact, and within each tolerance."""
    residues = labels.sums(rows) % q
    within = {f"{tau:.7g}": metrics.best_constant(residues, q, tau, angles) for tau in taus}
    return {"constant": metrics.best_constant(residues, q, None, angles), "tau_constant": within}


def averaged(forward: Callable[[Tensor], Tensor], objective: Objective, x: Tensor, times: int) -> Tensor:
    """The outputs for x (E, B, N), averaged over ``times`` ways of asking the same question.

    For constants c_i, chosen in advance and the same for all inputs, f_q(x + c) − Σc is f_q(x), mod q (the random
    self-reduction of Blum, Luby and Rubinfeld). The model makes other errors there, which average out. The change of
    the sum itself, wraps of single terms included, is also known, so this works for every modulus. With ``times`` above
    1, the result holds only what :meth:`Objective.decode` reads.
    """
    check_asks(times)
    outputs = forward(x)
    if times == 1:
        return outputs
    sums, terms = labels.sums(x), torch.arange(x.shape[-1], device=x.device)
    total = objective.turned_back(outputs, torch.zeros_like(sums))
    for ask in range(1, times):
        c = rng.integers(rng.key(ask, "ask"), terms, objective.q[:, None]).to(x.dtype)
        moved = (x + c[:, None]) % objective.q[:, None, None].to(x.dtype)
        total = total + objective.turned_back(forward(moved), labels.sums(moved) - sums)
    return total / times


def rows_at_once(encoder: Encoder, device: torch.device) -> int:
    """Samples per chunk: enough to fill the device, few enough to fit its memory."""
    widest = encoder.model.hidden + 12 * encoder.model.width  # a position's numbers in a block, at its peak
    alive = widest * (encoder.n + 1) + encoder.outputs
    numbers = LEAST_NUMBERS
    if device.type == "cuda":
        numbers = max(LEAST_NUMBERS, min(MOST_NUMBERS, free_bytes(device) // 64))
    return max(1, numbers // (alive * encoder.members))


def chunks(total: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, count) pairs that cover 0..total−1."""
    for start in range(0, total, size):
        yield start, min(size, total - start)
