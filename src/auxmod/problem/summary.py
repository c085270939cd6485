"""Everything the theory says about one problem, as plain values; `auxmod theory` prints it. Needs no torch."""

from __future__ import annotations

import math
from typing import Any

from auxmod.config import Fill
from auxmod.problem import laws, theory
from auxmod.settings import resolve_method


def summary(
    n: int,
    q: int,
    *,
    k: int | None = None,
    r: float | None = None,
    moduli: theory.Moduli | None = None,
    weights: theory.Weights | None = None,
    fill: Fill = "zero",
    epsilon: float = 1.0,
    delta: float = 0.0,
) -> dict[str, Any]:
    """What `theory` says about one problem and one set of moduli, ready for JSON; infinite values are None.

    The moduli are the paper's 1 and K with weights 1−r and r (K = 4, r = 0.3 unless given), or any others. Values
    for a single modulus (`k`, `kq`, `p_no_wrap`, `wrap_law`) are for the largest; `moduli` lists them all.
    """
    n, q, _ = laws.check(n, q)
    method = resolve_method(n, True, method="aux", k=k, r=r, moduli=moduli, weights=weights, fill=fill)
    m, w, top = method.moduli, method.weights, max(method.moduli)
    return {
        **{"n": n, "q": q, "k": top, "fill": fill, "epsilon": epsilon, "delta": delta},
        **_wraps(n, q, m, w, fill),
        **{"rho": theory.rho(m, w), "rho_exact": theory.rho_exact(n, q, m, w, fill)},
        "p_no_wrap": float(theory.p_no_wrap(n, q, top)),
        "p_no_wrap_as_printed": float(theory.p_no_wrap_as_printed(n, q, top)),
        "wrap_law": laws.wrap_law(n, q, top),
        "moduli": [_modulus(n, q, each, weight) for each, weight in zip(m, w, strict=True)],
        **_gap(n, q, epsilon, delta, fill),
        "choice": dict(zip(("k", "r"), theory.choose(n, q), strict=True)),
    }


def _wraps(n: int, q: int, moduli: theory.Moduli, weights: theory.Weights, fill: Fill) -> dict[str, Any]:
    plain, limit = float(theory.expected_wraps(n, q)), float(theory.SPARSE_LIMIT)
    continuous = {
        "naive": plain,
        "aux": theory.rho(moduli, weights) * limit * plain,
        "sparse_exact": theory.expected_sparse_wraps(n, q, fill),
        "sparse_limit": limit * plain,
    }
    floored = {
        "q": float(theory.expected_wraps_floor(n, q)),
        "kq": float(theory.expected_wraps_floor(n, q, max(moduli))),
        "aux": theory.expected_label_wraps(n, q, moduli, weights),
        "sparse": theory.expected_sparse_wraps_floor(n, q, fill),
    }
    constant = continuous["sparse_exact"] / plain
    return {"expected_wraps": continuous, "expected_wraps_floor": floored, "sparse_constant": constant}


def _modulus(n: int, q: int, m: int, weight: float) -> dict[str, float]:
    return {
        "multiplier": m,
        "weight": weight,
        "expected_wraps": float(theory.expected_wraps(n, q, m)),
        "expected_wraps_floor": float(theory.expected_wraps_floor(n, q, m)),
        "p_no_wrap": float(theory.p_no_wrap(n, q, m)),
    }


def _gap(n: int, q: int, epsilon: float, delta: float, fill: Fill) -> dict[str, float | None]:
    values = {
        "gap_bound": theory.gap_bound(n, q, epsilon, delta),
        "gap_bound_with_training_law": theory.gap_bound_with_training_law(n, q, epsilon, delta, fill),
        "zero_free_mass": theory.zero_free_mass(n, q, fill),
        "risk_ratio": theory.risk_ratio(n, q, fill),
        "tv_sparse_uniform": theory.tv_sparse_uniform(n, q, fill),
        "kl_sparse_uniform": theory.kl_sparse_uniform(n, q, fill),
        "kl_uniform_sparse": theory.kl_uniform_sparse(n, q, fill),
    }
    return {name: value if math.isfinite(value) else None for name, value in values.items()}
