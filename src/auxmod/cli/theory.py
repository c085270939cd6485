"""`auxmod theory`: the paper's quantities for one problem, exact, beside the paper's own formulas."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.markup import escape

from auxmod.cli.display import console, print_json, table
from auxmod.cli.options import SWITCH, WHOLE, Json, given_settings
from auxmod.config import Fill
from auxmod.errors import require

_FILL = "Sparse inputs filled from 0..q−1 (zero) or 1..q−1 (nonzero)."


def theory(
    *,
    n: Annotated[int | None, WHOLE, Parameter(help="Number of terms N.", show_default="16")] = None,
    q: Annotated[int | None, WHOLE, Parameter(help="The modulus.", show_default="97")] = None,
    k: Annotated[int | None, WHOLE, Parameter(help="The auxiliary modulus is K·q.", show_default="4")] = None,
    r: Annotated[float | None, Parameter(help="Its weight; q has 1−r.", show_default="0.3")] = None,
    moduli: Annotated[str | None, Parameter(help="Any multipliers of q instead of K, such as 1,2,4.")] = None,
    weights: Annotated[str | None, Parameter(help="Their weights, such as .5,.25,.25 [default: equal].")] = None,
    fill: Annotated[Fill | None, Parameter(help=_FILL, show_default="zero")] = None,
    epsilon: Annotated[
        float | None, Parameter(help="Loss on zero-free inputs, for the gap bound.", show_default="1.0")
    ] = None,
    delta: Annotated[float | None, Parameter(help="Training risk, for the gap bound.", show_default="0.0")] = None,
    figures: Annotated[Path | None, Parameter(help="A folder to draw the figures into.")] = None,
    format: Annotated[
        Literal["png", "svg", "pdf"] | None, Parameter(help="What the figures are saved as.", show_default="png")
    ] = None,
    paper_errors: Annotated[
        bool, SWITCH, Parameter(help="Instead, the paper's claims against what is computed.")
    ] = False,
    json: Json = False,
) -> None:
    """Compute the paper's quantities exactly, for any N, q and moduli, beside the paper's own formulas.

    These are the expected wraps and their law, ρ, the gap bound, and how far sparse inputs are from uniform ones.

    Example: auxmod theory --n 8 --q 31 --k 5 --r 0.2
    """
    require(figures is not None or format is None, "--format is of the figures: give --figures too, or leave it out.")
    asked = SimpleNamespace(n=n, q=q, k=k, r=r, moduli=moduli, weights=weights, fill=fill, epsilon=epsilon, delta=delta)
    said = given_settings(asked, None)
    if paper_errors:
        idle = [*said, *(["figures"] if figures else [])]
        only = f"--paper-errors is of the paper as a whole, and draws nothing: leave out --{', --'.join(idle)}."
        require(not idle, only)
        return _print_errata(json)
    from auxmod.problem.summary import summary

    values = summary(**{"n": 16, "q": 97} | said)
    drawn = _draw(values, figures, format or "png") if figures else []
    if json:
        return print_json(values | ({"figures": drawn} if drawn else {}))
    _print_page(values)
    for path in drawn:
        console().print(f"drawn: {path}", markup=False)


def _draw(values: dict[str, Any], folder: Path, kind: str) -> list[str]:
    from auxmod.reporting.figures import looks
    from auxmod.reporting.figures.theory import figures

    multipliers = tuple(row["multiplier"] for row in values["moduli"])
    weights = tuple(row["weight"] for row in values["moduli"])
    drawn = figures(values["n"], values["q"], multipliers, weights, values["fill"])
    paths = {name: folder / f"{name}-n{values['n']}-q{values['q']}.{kind}" for name in drawn}
    taken = [str(path) for path in paths.values() if path.exists()]
    require(not taken, f"{', '.join(taken)} exist already: choose another directory for --figures, or remove them.")
    for name, figure in drawn.items():
        looks.save(figure, paths[name], flag="--figures")
    return [str(path) for path in paths.values()]


# ---- the page ---------------------------------------------------------------------------------------------


def _print_page(values: dict[str, Any]) -> None:
    out = console()
    mixture = ", ".join(f"{row['multiplier']}·q with weight {row['weight']:.3g}" for row in values["moduli"])
    out.print(f"[bold]N = {values['n']}, q = {values['q']}[/], trained modulo {mixture}\n")
    columns = ("", "the paper's formula", "as printed", "right formula", "exact")
    out.print(table("Wraps of a label", columns, _wrap_rows(values)))
    out.print()
    headings = ("", "as printed", "with the training law")
    out.print(table("Sparse training, uniform testing", headings, _gap_rows(values)))
    out.print()
    rows = _law_rows(values["wrap_law"])
    out.print(table(f"Law of the wraps of {values['k']}·q", ("wraps", "probability", ""), rows, texts=3))
    choice = values["choice"]
    out.print(
        f"\nFrom N and q alone: [bold]--k {choice['k']} --r {choice['r']:.2f}[/] "
        "[dim](within the paper's grid; at N = 16 and 32 a fixed K = 4, r = 0.3 learned far better: docs/results.md)[/]"
    )


def _wrap_rows(values: dict[str, Any]) -> list[tuple[str, str, str, str, str]]:
    smooth, floor, top = values["expected_wraps"], values["expected_wraps_floor"], values["k"]
    rows = [
        *(_modulus_row(row) for row in values["moduli"]),
        ("mean, weighted: aux", "Σ w·N(q−1)/2mq", smooth["aux"], "Σ w·E⌊S/mq⌋", floor["aux"]),
        ("mean, sparse", "⅔·N(q−1)/2q", smooth["sparse_limit"], "E⌊S_z/q⌋", floor["sparse"]),
        ("the same without floor", "⅔·N(q−1)/2q", smooth["sparse_limit"], "E(S_z)/q", smooth["sparse_exact"]),
        ("ρ, aux over sparse", "Σ (w/m) / ⅔", values["rho"], "ratio of the means", values["rho_exact"] or math.nan),
        (f"P(no wrap of {top}·q)", "… C((K−i)q+N−1, N−1)", values["p_no_wrap_as_printed"],
         "… C((K−i)q+N−1, N)", values["p_no_wrap"]),
    ]  # fmt: skip
    return [(name, left, _number(printed), right, _number(exact)) for name, left, printed, right, exact in rows]


def _modulus_row(row: dict[str, Any]) -> tuple[str, str, float, str, float]:
    m = row["multiplier"]
    right = "(N−1)(q−1)/2q" if m == 1 else f"E⌊S/{m}q⌋"
    left = "N(q−1)/2q" if m == 1 else f"N(q−1)/(2·{m}q)"
    return f"mean wraps of {m}·q", left, row["expected_wraps"], right, row["expected_wraps_floor"]


def _gap_rows(values: dict[str, Any]) -> list[tuple[str, str, str]]:
    risks = f"ε = {values['epsilon']:g}, δ = {values['delta']:g}"
    return [
        (f"gap bound, {risks}", _number(values["gap_bound"]), _number(values["gap_bound_with_training_law"])),
        ("P(zero-free) under sparse inputs", "unused", _number(values["zero_free_mass"])),
        ("largest test risk / training risk", "unused", _number(values["risk_ratio"])),
        ("total variation, sparse and uniform", "–", _number(values["tv_sparse_uniform"])),
        ("KL(sparse ‖ uniform), nats", "–", _number(values["kl_sparse_uniform"])),
        ("KL(uniform ‖ sparse), nats", "–", _number(values["kl_uniform_sparse"])),
    ]


def _law_rows(law: list[float]) -> list[tuple[str, str, str]]:
    """A row with a bar for each number of wraps whose probability is at least 0.002."""
    most = max(law)
    seen = [(d, p) for d, p in enumerate(law) if p >= 0.002]
    return [(str(d), f"{p:.4f}", "█" * round(40 * p / most)) for d, p in seen]


def _number(value: float | None) -> str:
    """Format to five digits; None, an infinite value of the summary, as ∞; NaN, an undefined one, as –."""
    if value is None:
        return "∞"
    return "–" if math.isnan(value) else f"{value:.5g}"


# ---- the paper's errors -----------------------------------------------------------------------------------


def _print_errata(json: bool) -> None:
    from auxmod.reporting import errata

    rows = errata.findings()
    if json:
        return print_json([dataclasses.asdict(row) for row in rows])
    for verdict, title in errata.TITLES.items():
        chosen = [row for row in rows if row.verdict == verdict]
        cells = [tuple(map(escape, (row.where, row.claim, row.printed, row.computed))) for row in chosen]
        heads = ("where", "the paper says", "printed", "computed")
        console().print(table(title, heads, cells, texts=4, lines=True))
    return None
