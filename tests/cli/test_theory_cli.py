"""Tests of `auxmod theory`: the page, the JSON, the figures, the findings about the paper, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auxmod.cli.theory import theory
from auxmod.errors import UserError
from auxmod.reporting import errata

KEYS = {
    "expected_wraps", "expected_wraps_floor", "rho", "rho_exact", "gap_bound", "p_no_wrap", "p_no_wrap_as_printed",
    "wrap_law", "tv_sparse_uniform", "kl_sparse_uniform",
}  # fmt: skip


def said(capsys) -> dict[str, object]:
    return json.loads(capsys.readouterr().out)


def test_json_has_the_promised_keys(capsys) -> None:
    theory(n=3, q=5, k=2, r=0.2, json=True)
    values = said(capsys)
    assert set(values) >= KEYS
    assert values["p_no_wrap"] == pytest.approx(0.92)
    assert values["p_no_wrap_as_printed"] == pytest.approx(0.024)


def test_any_moduli_and_weights(capsys) -> None:
    theory(n=8, q=31, moduli="1, 2,4", weights=".5,.25,.25", json=True)
    values = said(capsys)
    assert [row["multiplier"] for row in values["moduli"]] == [1, 2, 4]
    assert values["rho"] == pytest.approx((0.5 + 0.125 + 0.0625) * 1.5)
    theory(n=8, q=31, moduli="1,3", json=True)
    assert [row["weight"] for row in said(capsys)["moduli"]] == [0.5, 0.5]


def test_the_page_has_both_formulas_labelled(capsys) -> None:
    theory(n=8, q=31, k=5, r=0.2)
    page = capsys.readouterr().out
    for text in ("as printed", "exact", "0.0062463", "0.91205", "C((K−i)q+N−1, N−1)", "1.26", "1.32", "3.3871"):
        assert text in page


def test_a_page_where_some_things_are_infinite_or_undefined(capsys) -> None:
    theory(n=1, q=31, fill="nonzero")
    page = capsys.readouterr().out
    assert "∞" in page
    assert "nan" not in page


def test_figures_are_drawn_and_named(capsys, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    theory(n=4, q=5, figures=tmp_path / "f", format="svg", json=True)
    files = said(capsys)["figures"]
    assert sorted(Path(f).name for f in files) == ["gap-bound-n4-q5.svg", "rho-n4-q5.svg", "wraps-n4-q5.svg"]
    assert all(Path(f).exists() for f in files)


def test_a_file_in_the_place_of_the_folder_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "f").touch()
    with pytest.raises(UserError, match="choose another --figures"):
        theory(n=4, q=5, figures=tmp_path / "f")


def test_paper_errors_in_both_forms(capsys) -> None:
    rows = errata.findings()
    theory(paper_errors=True, json=True)
    assert len(said(capsys)) == len(rows)
    theory(paper_errors=True)
    page = capsys.readouterr().out
    assert all(title in page for title in errata.TITLES.values())


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"n": 0}, "--n is 0"),
        ({"q": 1}, "--q is 1"),
        ({"k": 1}, "--k is 1"),
        ({"r": 1.0}, "--r is 1"),
        ({"moduli": "1,two"}, "--moduli is '1,two'"),
        ({"moduli": "1,2.5"}, "--moduli is '1,2.5', but must be whole numbers"),
        ({"moduli": ""}, "--moduli is ''"),
        ({"moduli": "1,2", "weights": ".5,"}, "--weights is '.5,'"),
        ({"moduli": "1,2", "weights": ".5,.4"}, "sums to 0.9"),
        ({"moduli": "1,2", "k": 3}, "not both"),
        ({"paper_errors": True, "figures": Path("there")}, "leave out --n, --q, --figures"),
        ({"format": "svg"}, "give --figures too"),
        ({"delta": -1.0}, "--delta is -1"),
    ],
)
def test_bad_input_is_one_sentence(asked: dict[str, object], words: str) -> None:
    with pytest.raises(UserError, match=words) as refusal:
        theory(**({"n": 8, "q": 31} | asked))
    assert str(refusal.value).endswith(".")
