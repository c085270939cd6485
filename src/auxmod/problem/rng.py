"""Random numbers as a pure function of (seed, stream, counter), the same on every device.

This is SplitMix64 (Steele, Lea, Flood 2014) used as a counter-based generator: number i of a stream is
mix(key + (i+1)·γ), in wrapping 64-bit integer tensor operations. So a run has no generator state to save: it can
resume anywhere, and an ensemble member's draws do not depend on the other members.
"""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

GAMMA = 0x9E3779B97F4A7C15
UNDO = 0xF1DE83E19937733D
"""GAMMA's inverse modulo 2^64."""
MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def signed(value: int) -> int:
    """The signed number as which torch stores a 64-bit pattern."""
    return (value & (2**64 - 1)) - ((value & 2**63) << 1)


def key(seed: int, *stream: str | int) -> int:
    """The stream's starting point: a 64-bit digest of the seed and the stream's name."""
    name = "/".join(map(str, (seed, *stream)))
    return signed(int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big"))


def _shift(x: Tensor, bits: int) -> Tensor:
    """Logical right shift; torch's own operator copies the sign bit."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def bits(keys: int | Tensor, counter: Tensor) -> Tensor:
    """64 random bits for each counter, as int64.

    The key is added before the multiplication. Otherwise the compiler sees only a counter times a constant, treats it
    as an index expression, and the constant is too large for that.
    """
    start = signed(keys * UNDO + 1) if isinstance(keys, int) else keys * signed(UNDO) + 1
    x = (counter + start) * signed(GAMMA)
    x = (x ^ _shift(x, 30)) * signed(MIX[0])
    x = (x ^ _shift(x, 27)) * signed(MIX[1])
    return x ^ _shift(x, 31)


def integers(keys: int | Tensor, counter: Tensor, high: int | Tensor) -> Tensor:
    """Whole numbers uniform on 0..high−1; 63 bits make the bias of the remainder below high/2^63."""
    return _shift(bits(keys, counter), 1) % high


def uniforms(keys: int | Tensor, counter: Tensor) -> Tensor:
    """float64 uniform on [0, 1), with 53 random bits."""
    return _shift(bits(keys, counter), 11).double() * 2.0**-53


def normals(keys: int, counter: Tensor) -> Tensor:
    """float64 standard normals by the Box–Muller method; each uses two counters."""
    radius = torch.sqrt(-2 * torch.log1p(-uniforms(keys, 2 * counter)))
    return radius * torch.cos(2 * math.pi * uniforms(keys, 2 * counter + 1))


def permutation(keys: int, count: int, device: torch.device) -> Tensor:
    """A random order of 0..count−1: the argsort of their hashes."""
    return bits(keys, torch.arange(count, device=device)).argsort()
