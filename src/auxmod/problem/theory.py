"""The paper's quantities, computed correctly: chance, expected wraps, ρ, the gap bound, distances, a choice of (K, r).

Uses only the standard library and numpy, no torch. The distributions come from `laws` and are exact. Where the paper's
own formula differs, a function with `as_printed` in its name computes that too, so that the two can be compared.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from auxmod.config import Fill, RunConfig
from auxmod.errors import require
from auxmod.problem import laws

SPARSE_LIMIT = Fraction(2, 3)
"""The limit of E[X_2]/E[X_0] as N → ∞ (Proposition 2). It is approached slowly, from below: 2/3 − 0.243/√N + O(1/N)."""
GRID_K, GRID_R = (4, 9), (0.1, 0.4)
"""The ranges of the paper's search for K and r (Section 5.1)."""

Moduli = tuple[int, ...]
Weights = tuple[float, ...]

# ---- guessing ---------------------------------------------------------------------------------------------


def chance(q: int, tau: float | None, angles: bool) -> float:
    """The accuracy of a uniformly random guess: an angle on the circle, or one of q classes.

    ``tau`` is None for match accuracy. Both hold for any distribution of the target.
    """
    if tau is None:
        return 1 / q
    if angles:
        return min(1.0, 2 * tau)
    return min(1.0, (2 * int(tau * q + 1e-9) + 1) / q)


SEEN = 0.05
"""Once training has covered this share of the test inputs, accuracy does not prove learning."""


def seen_share(n: int, q: int, samples: int) -> float:
    """The expected share of uniform inputs that are also among ``samples`` others: 1 − (1 − q^−N)^samples."""
    n, q, _ = laws.check(n, q)
    return -math.expm1(samples * math.log1p(-float(Fraction(1, q**n))))


def seen_by(config: RunConfig) -> float | None:
    """The expected share of uniform test inputs that a run trains on; None if it does not draw its own like them."""
    if config.method.distribution != "uniform" or config.training.data:
        return None
    return seen_share(config.problem.n, config.problem.q, config.training.samples)


# ---- expected wraps ---------------------------------------------------------------------------------------


def expected_wraps(n: int, q: int, m: int = 1) -> Fraction:
    """E[S_N/mq] = N(q−1)/(2mq): wraps without the floor (Proposition 2); E[X_0] is the case m = 1."""
    n, q, m = laws.check(n, q, m)
    return Fraction(n * (q - 1), 2 * m * q)


def expected_wraps_floor(n: int, q: int, m: int = 1) -> Fraction:
    """E[D_mq], with the floor, as an exact fraction.

    For m = 1 it is (N−1)(q−1)/(2q). The partial sums R_i = x_1+…+x_i mod q are independent and uniform on
    {0..q−1}, since each x_i shifts the last one by a uniform amount. The sum wraps at step i exactly if
    R_i < R_{i−1}, which has probability (q−1)/(2q) at each of the N−1 steps. For other m the wraps are counted.
    """
    n, q, m = laws.check(n, q, m)
    if m == 1:
        return Fraction((n - 1) * (q - 1), 2 * q)
    return Fraction(sum(d * count for d, count in enumerate(laws.wrap_counts(n, q, m))), q**n)


def expected_label_wraps(n: int, q: int, moduli: Moduli, weights: Weights) -> float:
    """E[Σ_j w_j D_{m_j q}]: expected wraps of a training label (Section 4.1), with the floor."""
    return math.fsum(w * float(expected_wraps_floor(n, q, m)) for m, w in _shares(moduli, weights))


def expected_terms(n: int) -> float:
    """E[z] under g(z) ∝ 1/√(N−z+1), z in 1..N, which equals N + 1 − Σ√k / Σ(1/√k), k = 1..N."""
    return math.fsum(laws.term_law(n) * np.arange(n + 1))


def expected_sparse_wraps(n: int, q: int, fill: Fill = "zero") -> float:
    """E[X_2] = E[S_z]/q at this N, not in the limit: an entry's mean is (q−1)/2, or q/2 if filled from {1..q−1}."""
    n, q, _ = laws.check(n, q)
    return expected_terms(n) * ((q - 1) / (2 * q) if fill == "zero" else 0.5)


def expected_sparse_wraps_floor(n: int, q: int, fill: Fill = "zero") -> float:
    """E[D_q] under sparse inputs, with the floor: (E[S_z] − E[S_z mod q])/q.

    Filled from {0..q−1}, S_z mod q is uniform. Filled from {1..q−1}, every non-trivial character of x has mean
    −1/(q−1), so P(S_z ≡ s) = (1 + c(q·[s=0] − 1))/q with c = (−1/(q−1))^z, and E[S_z mod q] = (1−c)(q−1)/2.
    """
    n, q, _ = laws.check(n, q)
    mean, uniform = expected_sparse_wraps(n, q, fill), (q - 1) / (2 * q)
    if fill == "zero":
        return max(0.0, mean - uniform)  # with z = 1 only, nothing wraps: 0 up to rounding
    bias = math.fsum(g * (-1 / (q - 1)) ** z for z, g in enumerate(laws.term_law(n)))
    return max(0.0, mean - uniform * (1 - bias))


# ---- P(D_Kq = 0) ------------------------------------------------------------------------------------------


def p_no_wrap(n: int, q: int, k: int) -> Fraction:
    """P(D_Kq = 0) of Proposition 7, corrected: q^−N Σ_{i<K} (−1)^i C(N,i) C((K−i)q+N−1, N)."""
    n, q, k = laws.check(n, q, k)
    return Fraction(laws.wrap_counts(n, q, k)[0], q**n)


def p_no_wrap_as_printed(n: int, q: int, k: int) -> Fraction:
    """The paper's formula for P(D_Kq = 0), with C((K−i)q+N−1, N−1). It is wrong, and sometimes negative.

    The sum of C(s+N−1, N−1) over s < (K−i)q is C((K−i)q+N−1, N) by the identity the paper quotes. The printed
    formula instead equals P(S_N = Kq) less one term: P(S_N = Kq) − (−1)^K C(N,K)/q^N.
    """
    n, q, k = laws.check(n, q, k)
    terms = ((-1) ** i * math.comb(n, i) * math.comb((k - i) * q + n - 1, n - 1) for i in range(min(k, n + 1)))
    return Fraction(sum(terms), q**n)


# ---- ρ ----------------------------------------------------------------------------------------------------


def rho(moduli: Moduli, weights: Weights) -> float:
    """ρ = Σ_j (w_j/m_j) / (2/3): Eq. 4 for any moduli. For the paper's two it is ((1−r) + r/K)/(2/3)."""
    return math.fsum(w / m for m, w in _shares(moduli, weights)) / float(SPARSE_LIMIT)


BOX = 0.2
"""The paper's red box holds the pairs (K, r) whose ρ is at most so far from 1."""


def in_box(ratio: float) -> bool:
    """Whether a ρ is in the red box."""
    return abs(ratio - 1) <= BOX + 1e-9


def _shares(moduli: Moduli, weights: Weights) -> list[tuple[int, float]]:
    """Each modulus with its share of the training; the shares must sum to 1."""
    require(math.isclose(sum(weights), 1, abs_tol=1e-6), f"The weights sum to {sum(weights):g}: make them sum to 1.")
    return list(zip(moduli, weights, strict=True))


def rho_exact(n: int, q: int, moduli: Moduli, weights: Weights, fill: Fill = "zero") -> float | None:
    """The ratio ρ stands for: E[Σ_j w_j D_{m_j q}] under uniform inputs over E[D_q] under sparse ones.

    Both expectations keep the floor, and the sparse one is at this N, not in the limit. None if sparse inputs never
    wrap.
    """
    sparse = expected_sparse_wraps_floor(n, q, fill)
    return expected_label_wraps(n, q, moduli, weights) / sparse if sparse > 1e-12 else None


# ---- the gap between sparse training and uniform testing --------------------------------------------------


def gap_bound(n: int, q: int, epsilon: float = 1.0, delta: float = 0.0) -> float:
    """(1−1/q)^N·ε − δ ≤ R_te − R_tr (Proposition 1, Eq. 1): true, but independent of the training law."""
    _check_risks(n, q, epsilon, delta)
    return math.exp(n * math.log1p(-1 / q)) * epsilon - delta


def zero_free_mass(n: int, q: int, fill: Fill = "zero") -> float:
    """P_sparse(no zero entry): g(N)(1−1/q)^N, or g(N) if filled from {1..q−1}. Never zero."""
    n, q, _ = laws.check(n, q)
    kept = math.exp(n * math.log1p(-1 / q)) if fill == "zero" else 1.0
    return float(laws.term_law(n)[n]) * kept


def gap_bound_with_training_law(n: int, q: int, epsilon: float = 1.0, delta: float = 0.0, fill: Fill = "zero") -> float:
    """The same bound with the largest ε that a training risk of δ allows.

    Sparse training sees zero-free inputs with probability p_0 (:func:`zero_free_mass`), and all of them alike.
    So δ ≥ R_tr ≥ p_0·ε. The proposition's premise cannot hold with ε > δ/p_0, and its bound is at most
    (1−1/q)^N·min(ε, δ/p_0) − δ. For a model that has learned its training law (δ = 0) it proves no gap.
    """
    _check_risks(n, q, epsilon, delta)
    return gap_bound(n, q, min(epsilon, delta / zero_free_mass(n, q, fill)), delta)


def risk_ratio(n: int, q: int, fill: Fill = "zero") -> float:
    """The largest R_te/R_tr that any non-negative loss can have: the maximum of P_te(x)/P_tr(x).

    Filled from {0..q−1}, each x has P_tr(x) ≥ g(N) q^−N (the term z = N), with equality if x is zero-free. So
    the maximum is C_N = 1/g(N) = Σ_{k≤N} 1/√k for every q, and R_te − R_tr ≤ (C_N − 1)·R_tr. Filled from
    {1..q−1}, the all-zero input is never trained on, and the ratio is infinite.
    """
    n, q, _ = laws.check(n, q)
    return 1 / float(laws.term_law(n)[n]) if fill == "zero" else math.inf


def _check_risks(n: int, q: int, epsilon: float, delta: float) -> None:
    laws.check(n, q)
    for name, value in (("epsilon", epsilon), ("delta", delta)):
        require(0 <= value < math.inf, f"--{name} is {value:g}, but an expected loss is a number of 0 or more.")


# ---- distances between sparse and uniform inputs ----------------------------------------------------------
# Both laws are exchangeable. Given which w entries are non-zero, both draw those entries uniformly from
# {1..q−1}. So P_tr(x)/P_te(x) depends on x only through w, and the distance between the two laws of x equals
# the distance between the two laws of w: a sum of N + 1 terms.


def tv_sparse_uniform(n: int, q: int, fill: Fill = "zero") -> float:
    """Total variation distance between sparse and uniform inputs, exact."""
    gaps = laws.sparse_nonzero_law(n, q, fill) - laws.uniform_nonzero_law(n, q)
    return math.fsum(np.abs(gaps)) / 2


def kl_sparse_uniform(n: int, q: int, fill: Fill = "zero") -> float:
    """KL(sparse ‖ uniform) in nats, exact; always finite, as every input occurs under the uniform law."""
    sparse = laws.sparse_nonzero_law(n, q, fill)
    seen = sparse > 0
    return max(0.0, math.fsum(sparse[seen] * (np.log(sparse[seen]) - laws.log_uniform_nonzero_law(n, q)[seen])))


def kl_uniform_sparse(n: int, q: int, fill: Fill = "zero") -> float:
    """KL(uniform ‖ sparse) in nats, exact; infinite if filled from {1..q−1}, which never gives all zeros."""
    if fill == "nonzero":
        return math.inf
    uniform, sparse = laws.uniform_nonzero_law(n, q), laws.sparse_nonzero_law(n, q)
    seen = uniform > 0
    return max(0.0, math.fsum(uniform[seen] * (laws.log_uniform_nonzero_law(n, q)[seen] - np.log(sparse[seen]))))


# ---- a choice of K and r ----------------------------------------------------------------------------------


def choose(n: int, q: int) -> tuple[int, float]:
    """Choose K and r from (N, q) alone, within the paper's grid (K in 4..9, r in 0.1..0.4).

    K is the smallest multiplier with P(D_Kq = 0) ≥ 1/2: at least half of the sums do not wrap Kq, so the auxiliary
    task is mostly plain addition. r then makes the expected wraps equal to those of sparse training
    (`rho_exact` = 1), the paper's notion of equal difficulty. Both are clipped to the grid.

    This is a principle, not a theorem: nothing proves that fewer wraps or ρ = 1 learn better, and the paper's
    own best pairs scatter. Experiments speak against it: with angles at N = 16 and 32 a fixed K = 4, r = 0.3
    learned far better (docs/results.md).
    """
    n, q, _ = laws.check(n, q)
    low, high = GRID_K
    k = next((k for k in range(low, high) if k >= n or 2 * p_no_wrap(n, q, k) >= 1), high)
    plain, aux = float(expected_wraps_floor(n, q)), float(expected_wraps_floor(n, q, k))
    r = (plain - expected_sparse_wraps_floor(n, q)) / (plain - aux) if plain > aux else GRID_R[0]
    return k, min(max(r, GRID_R[0]), GRID_R[1])
