"""Exact laws of uniform and sparse inputs: the sum S_N, the wraps D_mq = ⌊S_N/mq⌋, the number of non-zeros.

Uses only the standard library and numpy. Counts are Python integers, divided once at the end: a result called exact
is rounded in that division only. `theory` builds the paper's quantities on these laws.

The wrap laws are cheap, because at multiples of q the N·q values of the sum need no table. The inputs below m·q number

    #{x ∈ {0..q−1}^N : S_N < m·q} = Σ_i (−1)^i C(N,i) C((m−i)q+N−1, N),

which is the N-th backward difference of m ↦ C(mq+N−1, N): N² subtractions give the counts for all m at once.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxmod.checked import is_int
from auxmod.config import Fill, Problem
from auxmod.errors import require

Floats = NDArray[np.float64]
Integers = NDArray[Any]
"""An object array of Python integers."""

MOST_TERMS = 1024
"""Largest N of the exact law of D (about a second at q = 10^6)."""
MOST_SPARSE_TERMS = 256
"""Largest N of the sparse wrap law, which needs the law of D for every z ≤ N (two seconds)."""
MOST_SUMS = 2**24
"""Largest support of the law of S_N."""
EXACT_WORK = 500_000
"""N²·q up to which the law of S_N is counted in integers."""


def check(n: int, q: int, multiplier: int = 1) -> tuple[int, int, int]:
    """Check the three and return them as Python integers, since numpy's overflow; a bad value is a `UserError`."""
    problem = Problem(n=n, q=q)
    whole = is_int(multiplier) and multiplier >= 1
    require(whole, f"--k is {multiplier}, but a multiple of q is a whole number ≥ 1.")
    return problem.n, problem.q, int(multiplier)


# ---- wraps of uniform inputs ------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def below_counts(n: int, q: int) -> tuple[int, ...]:
    """How many of the q^N inputs have S_N < m·q, for m = 0..N (all of them at m = N)."""
    n, q, _ = check(n, q)
    require(
        n <= MOST_TERMS,
        f"--n is {n}, but the exact law of the wraps is computed up to N = {MOST_TERMS}: choose a smaller --n.",
    )
    counts = np.array([math.comb(m * q + n - 1, n) for m in range(n + 1)], dtype=object)
    return tuple(_differences(counts, n).tolist())


def wrap_counts(n: int, q: int, k: int = 1) -> list[int]:
    """How many of the q^N inputs have D_Kq = 0, 1, …, up to the largest D_Kq that can occur."""
    n, q, k = check(n, q, k)
    if k * q > n * (q - 1):
        return [q**n]  # S_N never reaches Kq
    return _steps(below_counts(n, q), k, last=n * (q - 1) // (k * q))


def wrap_law(n: int, q: int, k: int = 1) -> list[float]:
    """P(D_Kq = d) for d = 0, 1, … under uniform inputs."""
    n, q, k = check(n, q, k)
    whole = q**n
    return [count / whole for count in wrap_counts(n, q, k)]


def mixed_wrap_law(n: int, q: int, moduli: tuple[int, ...], weights: tuple[float, ...]) -> list[float]:
    """The wrap law of a training label whose modulus m_j·q is drawn with probability w_j (Eq. 2)."""
    return _mixture([wrap_law(n, q, m) for m in moduli], weights)


# ---- the sum of uniform inputs ----------------------------------------------------------------------------


def sum_probability(n: int, q: int, s: int) -> Fraction:
    """P(S_N = s) by the closed form of the paper's Proposition 5, which is correct."""
    n, q, _ = check(n, q)
    if not 0 <= s <= n * (q - 1):
        return Fraction(0)
    terms = ((-1) ** i * math.comb(n, i) * math.comb(s - q * i + n - 1, n - 1) for i in range(s // q + 1))
    return Fraction(sum(terms), q**n)


def sum_counts(n: int, q: int) -> Integers:
    """How many of the q^N inputs have S_N = s, for s = 0..N(q−1), by N running sums over q values each."""
    counts = np.array([1], dtype=object)
    for _ in range(n):
        total = np.cumsum(np.concatenate([counts, np.zeros(q - 1, dtype=object)]))
        total[q:] -= total[:-q].copy()
        counts = total
    return counts


def sum_law(n: int, q: int) -> Floats:
    """P(S_N = s) for s = 0..N(q−1): exact where that is cheap, otherwise within :func:`sum_law_error`."""
    n, q, _ = check(n, q)
    size = n * (q - 1) + 1
    require(
        size <= MOST_SUMS,
        f"S_N takes {size} values at --n {n} --q {q}; its law is computed for at most {MOST_SUMS}. Choose a "
        "smaller --q, or use the law of the wraps, which needs no such table.",
    )
    if n * n * q <= EXACT_WORK:
        whole = q**n
        return np.array([count / whole for count in sum_counts(n, q)])
    return _sum_law_by_fourier(n, q)


def sum_law_error(n: int, q: int) -> float:
    """A bound on the absolute error of every probability that :func:`sum_law` returns.

    Let u = 2^−53. Every angle is reduced in integers to [0, π/2], so a characteristic value φ = sin(qω)/(q sin ω)
    has a relative error of at most 10u, and φ^N (|φ| ≤ 1) one of (10N + 2)u. Its phase adds 14u. The inverse
    transform is a mean and passes on at most (10N + 16)u. Its own rounding is at most 8u·log2(M) in the 2-norm,
    and the law's 2-norm is at most 1.
    """
    n, q, _ = check(n, q)
    if n * n * q <= EXACT_WORK:
        return 2.0**-53  # one division, rounded to nearest, of a number in [0, 1]
    return 2.0**-53 * (10 * n + 16 + 8 * math.log2(_transform_length(n, q)))


def _transform_length(n: int, q: int) -> int:
    return 1 << (n * (q - 1)).bit_length()


def _sum_law_by_fourier(n: int, q: int) -> Floats:
    """Invert the characteristic function of S_N − N(q−1)/2, which is real, at M > N(q−1) frequencies."""
    length = _transform_length(n, q)
    k = np.arange(length // 2 + 1, dtype=np.int64)
    ratio = np.ones(k.size)
    ratio[1:] = _sine(q * k[1:], length) / (q * _sine(k[1:], length))
    magnitude = np.abs(ratio) ** n * np.where(ratio < 0, (-1.0) ** n, 1.0)
    phase = (k * (n * (q - 1) % (2 * length))) % (2 * length)
    law = np.fft.irfft(magnitude * np.exp(-1j * np.pi * phase / length), length)
    return np.maximum(law[: n * (q - 1) + 1], 0.0)


def _sine(numerator: NDArray[np.int64], length: int) -> Floats:
    """sin(π·numerator/length); reducing the angle in integers keeps the relative accuracy near zeros."""
    turn = numerator % (2 * length)
    half = turn % length
    sign = np.where(turn >= length, -1.0, 1.0)
    sine: Floats = sign * np.sin(np.pi * np.minimum(half, length - half) / length)
    return sine


# ---- sparse inputs ----------------------------------------------------------------------------------------


def term_law(n: int) -> Floats:
    """g(z) = 1/(C_N √(N−z+1)) at index z, for z in 1..N (Section 3); g(0) = 0."""
    n, *_ = check(n, 2)
    law = np.zeros(n + 1)
    law[1:] = 1 / np.sqrt(np.arange(n, 0, -1))
    normalised: Floats = law / math.fsum(law)
    return normalised


def sparse_wrap_law(n: int, q: int, k: int = 1, fill: Fill = "zero") -> list[float]:
    """P(D_Kq = d) for d = 0, 1, … under sparse inputs: the laws for z terms, mixed with weights g(z)."""
    n, q, k = check(n, q, k)
    require(
        n <= MOST_SPARSE_TERMS,
        f"--n is {n}, but the sparse wrap law is computed up to N = {MOST_SPARSE_TERMS}: choose a smaller --n.",
    )
    table = _below_table(n, q)
    if fill == "nonzero":
        table = _nonzero_only(table)
    values = q if fill == "zero" else q - 1
    last = n * (q - 1) // (k * q)
    wholes = [values**z for z in range(n + 1)]
    laws = [[count / wholes[z] for count in _steps(table[z], k, last)] for z in range(1, n + 1)]
    return _mixture(laws, tuple(term_law(n)[1:]))


def _below_table(n: int, q: int) -> Integers:
    """#{x ∈ {0..q−1}^z : S_z < m·q} at [z, m], for z and m in 0..N."""
    sums = np.arange(n + 1).astype(object) * q
    table = np.ones((n + 1, n + 1), dtype=object)
    table[0, 0] = 0  # the empty sum is 0, never below 0
    power = np.ones(n + 1, dtype=object)
    for z in range(1, n + 1):
        power = power * (sums + (z - 1)) // z  # C(mq+z−1, z), from C(mq+z−2, z−1)
        table[z, : z + 1] = _differences(power[: z + 1], z)
        table[z, z + 1 :] = q**z
    return table


def _nonzero_only(table: Integers) -> Integers:
    """The same counts over {1..q−1}^z: z-th differences along z, which is inclusion–exclusion over the zeros."""
    rows = [table[0]]
    for _ in range(1, len(table)):
        table = np.diff(table, axis=0)
        rows.append(table[0])
    return np.stack(rows)


def sparse_nonzero_law(n: int, q: int, fill: Fill = "zero") -> Floats:
    """P(an input has w non-zeros), w = 0..N, under the sparse law.

    Filled from {1..q−1}, w is z. Filled from {0..q−1} (the paper), w is binomial: z terms, each non-zero with
    probability 1 − 1/q. Each binomial row is a sum of positive terms of the row before, so nothing cancels.
    """
    n, q, _ = check(n, q)
    g = term_law(n)
    if fill == "nonzero":
        return g
    law = np.zeros(n + 1)
    for z, row in enumerate(_binomial_rows(n, q)):
        law += g[z] * row
    return law


def uniform_nonzero_law(n: int, q: int) -> Floats:
    """P(an input has w non-zeros), w = 0..N, under uniform inputs: Bin(N, 1 − 1/q)."""
    n, q, _ = check(n, q)
    return _binomial_rows(n, q)[n]


def log_uniform_nonzero_law(n: int, q: int) -> Floats:
    """The logarithm of :func:`uniform_nonzero_law`, which stays finite where q^−N is below the smallest float."""
    n, q, _ = check(n, q)
    keep, drop = math.log1p(-1 / q), math.log(q)
    return np.array([math.log(math.comb(n, w)) + w * keep - (n - w) * drop for w in range(n + 1)])


def _binomial_rows(n: int, q: int) -> list[Floats]:
    """Bin(z, 1 − 1/q) for z = 0..N."""
    rows = np.zeros((n + 1, n + 1))
    rows[0, 0] = 1.0
    for z in range(n):
        rows[z + 1] = rows[z] / q
        rows[z + 1, 1:] += rows[z, :-1] * ((q - 1) / q)
    return list(rows)


# ---- small tools ------------------------------------------------------------------------------------------


def _differences(values: Integers, times: int) -> Integers:
    for _ in range(times):
        values = np.diff(values, prepend=0)
    return values


def _steps(below: Any, k: int, last: int) -> list[int]:
    """Turn the counts below m·q, m = 0..N, into counts between consecutive multiples of Kq."""
    edges = [below[min(d * k, len(below) - 1)] for d in range(last + 2)]
    return [high - low for low, high in itertools.pairwise(edges)]


def _mixture(laws: list[list[float]], weights: tuple[float, ...]) -> list[float]:
    longest = max(map(len, laws))
    padded = [law + [0.0] * (longest - len(law)) for law in laws]
    return [math.fsum(w * p for w, p in zip(weights, column, strict=True)) for column in zip(*padded, strict=True)]
