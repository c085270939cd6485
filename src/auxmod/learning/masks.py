"""Dropout inside Triton kernels: the elements kept follow from the same random numbers as in `model.Dropout`.

No mask is ever stored: a backward kernel computes it again. Only `kernels` and `attention` import this file.
"""

from __future__ import annotations

import math
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from auxmod.learning.model import Dropout
from auxmod.problem import rng

GAMMA, MIX1, MIX2 = tl.constexpr(rng.GAMMA), tl.constexpr(rng.MIX[0]), tl.constexpr(rng.MIX[1])


@triton.jit
def _bits(key, counter):
    """`rng.bits`, on unsigned numbers."""
    x = (counter + 1).to(tl.uint64) * GAMMA + key
    x = (x ^ (x >> 30)) * MIX1
    x = (x ^ (x >> 27)) * MIX2
    return x ^ (x >> 31)


@triton.jit
def dropped(x, e, elements, keys, step, site, least: tl.constexpr, scale: tl.constexpr):
    """Dropout of ``x``, whose flat indices in member ``e`` are ``elements``: the kept are scaled up, the rest 0."""
    own = _bits(tl.load(keys + e).to(tl.uint64), tl.load(step))
    draws = _bits(_bits(own, site), elements.to(tl.int64)) >> 11
    return tl.where(draws.to(tl.int64) >= least, x * scale, 0.0)


def arguments(dropout: Dropout | None, site: int, unused: Tensor) -> dict[str, Any]:
    """A kernel's arguments for dropout at a site; without dropout, placeholders and DROP = False."""
    if dropout is None:
        return {"keys": unused, "step": unused, "site": 0, "least": 0, "scale": 1.0, "DROP": False}
    least = math.ceil(dropout.rate * 2**53)  # 53 random bits reach it exactly if their uniform reaches the rate
    known = {"keys": dropout.keys, "step": dropout.step, "site": site}
    return known | {"least": least, "scale": 1 / (1 - dropout.rate), "DROP": True}
