"""Dropout inside Triton kernels: which elements are kept, from the same numbers that `model.Dropout` has.

No mask is ever stored: a backward kernel makes it again. Only `kernels` and `attention` import this file.
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
    """`rng.bits`, in unsigned numbers."""
    x = (counter + 1).to(tl.uint64) * GAMMA + key
    x = (x ^ (x >> 30)) * MIX1
    x = (x ^ (x >> 27)) * MIX2
    return x ^ (x >> 31)


@triton.jit
def dropped(x, e, elements, keys, step, site, least: tl.constexpr, scale: tl.constexpr):
    """``x`` where its elements of member ``e`` are kept, scaled up for the others; and 0 elsewhere."""
    own = _bits(tl.load(keys + e).to(tl.uint64), tl.load(step))
    draws = _bits(_bits(own, site), elements.to(tl.int64)) >> 11
    return tl.where(draws.to(tl.int64) >= least, x * scale, 0.0)


def arguments(dropout: Dropout | None, site: int, unused: Tensor) -> dict[str, Any]:
    """What a kernel with a parameter DROP is told of a site; without dropout, of nothing."""
    if dropout is None:
        return {"keys": unused, "step": unused, "site": 0, "least": 0, "scale": 1.0, "DROP": False}
    least = math.ceil(dropout.rate * 2**53)  # of 53 random bits: exactly where a uniform is at least the rate
    known = {"keys": dropout.keys, "step": dropout.step, "site": site}
    return known | {"least": least, "scale": 1 / (1 - dropout.rate), "DROP": True}
