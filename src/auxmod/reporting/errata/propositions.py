"""The paper's formulas and numbers, each as printed and by the exact theory."""

from __future__ import annotations

import bisect
import math
from collections.abc import Iterator

from auxmod.problem import laws, theory
from auxmod.problem.summary import summary
from auxmod.reporting.errata.finding import Finding
from auxmod.reporting.published import GAP

# ---- Proposition 1 ----------------------------------------------------------------------------------------


def _gap_proposition() -> Iterator[Finding]:
    n, q, delta = 8, 97, 0.01
    mass = theory.zero_free_mass(n, q)
    allowed = theory.gap_bound_with_training_law(n, q, 1.0, delta)
    ceilings = ", ".join(f"{theory.risk_ratio(size, q):.2f} (N={size})" for size in (8, 16, 64, 128))
    yield Finding(
        where="Proposition 1",
        claim="training risk ≤ δ and zero-free loss ≥ ε, both free, under the sparse law",
        printed=f"gap ≥ {theory.gap_bound(n, q, 1.0, delta):.3f} at N={n}, q={q}, ε=1, δ={delta}",
        computed=f"sparse inputs are zero-free with probability {mass:.3f}, so ε ≤ δ/{mass:.3f} = "
        f"{delta / mass:.4f}, and the bound says {allowed:.4f} at most",
    )
    yield Finding(
        where="Section 3",
        claim="error on zero-free inputs is “an irreducible test-time gap”",
        printed="no ceiling is given; the training law is never used, so the bound holds for any training",
        computed=f"test risk ≤ C_N × training risk for every q, C_N = Σ 1/√k: {ceilings}",
    )


def _gap_table() -> Iterator[Finding]:
    cells = [(n, q, v) for n, line in GAP.items() for q, v in line.items()]
    wrong = [(n, q, v) for n, q, v in cells if abs(theory.gap_bound(n, q) - v) > 0.005]
    for n, q, v in wrong:
        yield Finding(
            where="Table 4",
            claim=f"(1−1/q)^N at N={n}, q={q}",
            printed=f"{v:.2f}",
            computed=f"{theory.gap_bound(n, q):.4f}",
        )
    yield Finding(
        where="Table 4",
        claim="(1−1/q)^N in its other cells",
        printed=f"{len(cells) - len(wrong)} cells",
        computed="agree to the digits printed",
        verdict="right",
    )


# ---- expected wraps ---------------------------------------------------------------------------------------


def _terms() -> Iterator[Finding]:
    n, q = 8, 31
    terms = theory.expected_terms(n)
    yield Finding(
        where="Section 3",
        claim="z is the number of non-zero entries, yet they are filled from {0..q−1}",
        printed=f"{terms:.3f} non-zeros expected at N={n}, q={q}",
        computed=f"{float(laws.sparse_nonzero_law(n, q) @ range(n + 1)):.3f}: a filled entry is 0 with probability 1/q",
        verdict="rough",
    )
    yield Finding(
        where="Appendix C.1",
        claim="C_N and E[X_2] sum over z = 0..N, Section 3 draws z from 1..N",
        printed=f"E[X_2]/E[X_0] = {_constant_from_zero(n):.4f} at N={n}",
        computed=f"{terms / n:.4f}",
    )


def _constant_from_zero(n: int) -> float:
    """E[z]/N under the law of Appendix C, which allows z = 0."""
    weights = [1 / math.sqrt(n - z + 1) for z in range(n + 1)]
    return math.fsum(z * w for z, w in enumerate(weights)) / math.fsum(weights) / n


def _wraps() -> Iterator[Finding]:
    n, q, k = 8, 31, 5
    values = summary(n, q, k=k, r=0.2)
    smooth, floor = values["expected_wraps"], values["expected_wraps_floor"]
    yield Finding(
        where="Proposition 2",
        claim="expected wraps “for simplicity” without the floor",
        printed=f"q: {smooth['naive']:.3f}; Kq: {smooth['naive'] / k:.3f} at N={n}, q={q}, K={k}",
        computed=f"q: {floor['q']:.3f} = (N−1)(q−1)/2q; Kq: {floor['kq']:.3f}",
        verdict="rough",
    )
    yield Finding(
        where="Section 4.2",
        claim="all expectations share the factor N(q−1)/2q",
        printed=f"Kq wraps {smooth['naive'] / n:.3f} times at K = N = {n}",
        computed=f"{float(theory.expected_wraps_floor(n, q, n)):.0f}: a sum of N terms never reaches Nq",
        verdict="rough",
    )


def _sparse_limit() -> Iterator[Finding]:
    sizes = (8, 16, 32, 64, 128, 256)
    exact = ", ".join(f"{theory.expected_terms(n) / n:.4f} (N={n})" for n in sizes)
    rising = range(64, 10**4)  # the ratio falls until N = 32 and rises from there on
    close = rising[bisect.bisect(rising, 0.99 * 2 / 3, key=lambda n: theory.expected_terms(n) / n)]
    yield Finding(
        where="Proposition 2",
        claim="E[X_2] ≈ (2/3)·E[X_0] when N is large enough",
        printed=f"{2 / 3:.4f}",
        computed=f"{exact}; within 1 % only from N = {close}",
        verdict="rough",
    )


def _proof_of_the_limit() -> Iterator[Finding]:
    n, far = 64, 10**6
    slope = (2 / 3 - theory.expected_terms(far) / far) * math.sqrt(far)
    yield Finding(
        where="Appendix C.1",
        claim="on the way, E[X_2] ≈ (q−1)/2q·(2N/3 + 1): above the limit",
        printed=f"E[X_2]/E[X_0] = {2 / 3 + 1 / n:.4f} at N={n}",
        computed=f"{_constant_from_zero(n):.4f} by its own law: the sums' next term, ζ(1/2), is larger than what "
        f"is kept, and the limit is neared from below, 2/3 − {slope:.3f}/√N",
    )


# ---- ρ ----------------------------------------------------------------------------------------------------


def _difficulty() -> Iterator[Finding]:
    moduli, weights = (1, 4), (5 / 9, 4 / 9)
    exact = [(n, q, theory.rho_exact(n, q, moduli, weights)) for n, q in ((4, 31), (8, 31), (16, 97), (64, 433))]
    yield Finding(
        where="Section 5.3",
        claim="at ρ = 1 the difficulty “theoretically coincides” with the sparse method's",
        printed=f"{theory.rho(moduli, weights):.2f} at K=4, r=4/9",
        computed="wraps with the floor, exact: " + ", ".join(f"{value:.3f} (N={n}, q={q})" for n, q, value in exact),
        verdict="rough",
    )


def _rho_range() -> Iterator[Finding]:
    grid = [theory.rho((1, k), (1 - r / 10, r / 10)) for k in range(2, 11) for r in range(1, 10)]
    yield Finding(
        where="Figure 2",
        claim="“The range of ρ is from 0.0 to 1.5”",
        printed="0.0 to 1.5",
        computed=f"{min(grid):.3f} to {max(grid):.3f} over K = 2..10, r = 0.1..0.9",
        verdict="rough",
    )


def _swapped() -> Iterator[Finding]:
    n, q, k, r = 8, 31, 5, 0.2
    plain = float(theory.expected_wraps(n, q))
    wraps = theory.expected_label_wraps(n, q, (1, k), (1 - r, r))
    yield Finding(
        where="Approach 1",
        claim="f_q is the label with probability r, f_Kq with 1−r; Eq. 2 has them the other way",
        printed=f"{r:.1f} of the labels are f_q at r={r}",
        computed=f"{1 - r:.1f}",
    )
    yield Finding(
        where="Proposition 6",
        claim="the same swap in its bound on the method's expected wraps",
        printed=f"≤ {plain * (r + (1 - r) / k):.3f} at N={n}, q={q}, K={k}, r={r}",
        computed=f"{wraps:.3f}, above that; with Eq. 2's weights the bound is {plain * (1 - r + r / k):.3f}",
    )


def _no_wrap() -> Iterator[Finding]:
    cases = ((3, 5, 2), (2, 5, 2), (8, 31, 5), (16, 97, 8))
    each = [f"{{:.4g}} (N={n}, q={q}, K={k})" for n, q, k in cases]
    printed = [float(theory.p_no_wrap_as_printed(*case)) for case in cases]
    exact = [float(theory.p_no_wrap(*case)) for case in cases]
    yield Finding(
        where="Proposition 7",
        claim="P(D_Kq = 0), with C((K−i)q+N−1, N−1) where C((K−i)q+N−1, N) belongs",
        printed=", ".join(text.format(value) for text, value in zip(each, printed, strict=True)),
        computed=", ".join(f"{value:.4g}" for value in exact),
    )


def _decoding() -> Iterator[Finding]:
    q = 97
    yield Finding(
        where="Section 5.1",
        claim="an angle becomes φq/2π in [0, q), “rounded to the nearest integer”",
        printed=f"values in [q−1/2, q) become {q}, which no label is",
        computed=f"they are 0: without mod q, up to 1/2q = {50 / q:.2f} % of an almost perfect model's answers "
        f"are lost at q={q}",
    )


def _right() -> Iterator[Finding]:
    cases = [(n, q) for n in range(1, 6) for q in range(2, 7)]
    sums = sum(n * (q - 1) + 1 for n, q in cases)
    same = all(
        laws.sum_probability(n, q, s) * q**n == count
        for n, q in cases
        for s, count in enumerate(laws.sum_counts(n, q).tolist())
    )
    yield Finding(
        where="Proposition 5",
        claim="the law of S_N",
        printed=f"{sums} probabilities, N = 1..5, q = 2..6",
        computed="equal to counting, as fractions" if same else "differs from counting",
        verdict="right" if same else "wrong",
    )
    yield Finding(
        where="Proposition 6",
        claim="max{0, N(q−1)/2qK − 1} ≤ E[D_Kq] ≤ N(q−1)/2qK (the first line)",
        printed="holds",
        computed="holds: S_N/Kq − 1 < D_Kq ≤ S_N/Kq for each input",
        verdict="right",
    )


PARTS = (
    _gap_proposition, _gap_table, _terms, _wraps, _sparse_limit, _proof_of_the_limit, _difficulty, _rho_range,
    _swapped, _no_wrap, _decoding, _right,
)  # fmt: skip
"""In the paper's order, with the claims that hold at the end."""
