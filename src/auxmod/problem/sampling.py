"""Inputs x ∈ {0..q−1}^N, uniform or sparse, made on the device from a seed.

Row i depends on (seed, stream, i) alone, so any slice of a data set can be made by itself.
"""

from __future__ import annotations

import torch
from torch import Tensor

from auxmod.config import Distribution, Fill, RunConfig
from auxmod.problem import rng

TEST_SEED = 0
"""Test inputs depend on (N, q) alone: every run of a problem is judged on the same ones."""
AT_ONCE = 2**20
"""Numbers drawn at once: on their way they take ten times the memory that they will."""


def uniform(seed: int, stream: str, start: int, count: int, n: int, q: int, device: torch.device) -> Tensor:
    """Rows start..start+count−1 of the uniform data set, int32 (count, N)."""
    counter = torch.arange(start * n, (start + count) * n, device=device)
    return rng.integers(rng.key(seed, stream, "value"), counter, q).to(torch.int32).view(count, n)


def sparse(
    seed: int, stream: str, start: int, count: int, n: int, q: int, device: torch.device, fill: Fill = "zero"
) -> Tensor:
    """The sparse law of Saxena et al.: z ~ g on 1..N, z places at random, filled uniformly; the rest are 0."""
    rows = torch.arange(start, start + count, device=device)
    u = rng.uniforms(rng.key(seed, stream, "nonzeros"), rows)
    z = 1 + torch.searchsorted(sparse_law(n).cumsum(0)[:-1].to(device), u, right=True)
    cells = torch.arange(start * n, (start + count) * n, device=device).view(count, n)
    places = rng.bits(rng.key(seed, stream, "place"), cells).argsort(1).argsort(1)
    low = 0 if fill == "zero" else 1
    values = low + rng.integers(rng.key(seed, stream, "value"), cells, q - low)
    return torch.where(places < z[:, None], values, 0).to(torch.int32)


def sparse_law(n: int) -> Tensor:
    """g(z) ∝ 1/√(N−z+1) for z = 1..N, float64."""
    law = (n + 1 - torch.arange(1, n + 1, dtype=torch.float64)).rsqrt()
    return law / law.sum()


def inputs(
    distribution: Distribution,
    fill: Fill,
    *,
    seed: int,
    stream: str,
    start: int,
    count: int,
    n: int,
    q: int,
    device: torch.device,
) -> Tensor:
    """Rows of the named distribution, int32 (count, N)."""
    x = torch.empty(count, n, dtype=torch.int32, device=device)
    size = max(1, AT_ONCE // n)
    for at in range(0, count, size):
        part = seed, stream, start + at, min(size, count - at), n, q, device
        x[at : at + size] = sparse(*part, fill) if distribution == "sparse" else uniform(*part)
    return x


def training(config: RunConfig, device: torch.device) -> Tensor:
    """What a run trains on where it has no data of its own, int32 (samples, N)."""
    m, t, p = config.method, config.training, config.problem
    return inputs(
        m.distribution, m.fill, seed=config.seed, stream="train", start=0, count=t.samples, n=p.n, q=p.q, device=device
    )
