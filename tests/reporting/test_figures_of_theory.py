"""Tests of the theory's figures: what they draw, that they can be saved, and the error without matplotlib."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from auxmod.errors import UserError
from auxmod.problem import theory
from auxmod.reporting import published
from auxmod.reporting.figures import looks
from auxmod.reporting.figures import theory as figures

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def drawn():
    return figures.figures(8, 31, (1, 5), (0.8, 0.2))


@pytest.mark.parametrize(
    ("name", "suffix", "start"),
    [("gap-bound", "png", b"\x89PNG"), ("rho", "svg", b"<?xml"), ("wraps", "pdf", b"%PDF"), ("rho", "PNG", b"\x89PNG")],
)
def test_every_figure_saves_by_its_suffix(drawn, name: str, suffix: str, start: bytes, tmp_path: Path) -> None:
    path = tmp_path / "made" / f"{name}.{suffix}"
    looks.save(drawn[name], path)
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("suffix", ["svg", "pdf"])
def test_a_figure_drawn_again_gives_the_same_file(suffix: str, tmp_path: Path) -> None:
    for name in ("a", "b"):
        looks.save(figures.wrap_figure(4, 5, (1, 2), (0.5, 0.5)), tmp_path / f"{name}.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_an_unknown_suffix_is_refused(drawn, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"does not end in \.png, \.svg or \.pdf"):
        looks.save(drawn["rho"], tmp_path / "rho.jpeg")


def test_the_gap_lines_are_the_bound(drawn) -> None:
    axes = drawn["gap-bound"].axes[0]
    moduli = [int(text.get_text().removeprefix("q = ")) for text in axes.texts]
    *lines, points = axes.lines
    assert moduli == [5, 17, 23, 47, 113, 433, 3329]
    for q, line in zip(moduli, lines, strict=True):
        n, value = int(line.get_xdata()[-1]), line.get_ydata()[-1]
        assert n == figures.SIZES[-1]
        assert value == pytest.approx(theory.gap_bound(n, q))
    assert sorted(zip(*points.get_data(), strict=True)) == sorted(
        (n, value) for n, row in published.GAP.items() for value in row.values()
    )


def test_the_heatmaps_are_rho_and_its_exact_counterpart(drawn) -> None:
    printed, exact = (axes.images[0].get_array() for axes in drawn["rho"].axes[:2])
    assert printed.shape == exact.shape == (9, 9)  # r = 0.1..0.9, K = 2..10
    assert printed[3, 2] == pytest.approx(theory.rho((1, 4), (0.6, 0.4)))
    assert exact[3, 2] == pytest.approx(theory.rho_exact(8, 31, (1, 4), (0.6, 0.4)))
    for k, r in zip(*drawn["rho"].axes[1].lines[0].get_data(), strict=True):
        assert theory.rho_exact(8, 31, (1, int(k)), (1 - r, r)) == pytest.approx(1)


def test_the_cells_of_rho_are_rounded_with_halves_going_up(drawn) -> None:
    shown = [text.get_text() for text in drawn["rho"].axes[0].texts]
    exact = [Fraction(3, 2) * (1 - Fraction(i, 10) + Fraction(i, 10 * k)) for i in range(1, 10) for k in range(2, 11)]
    assert shown[:81] == [f"{math.floor(100 * value + Fraction(1, 2)) / 100:.2f}" for value in exact]


def test_the_wrap_laws_are_laws_with_their_means(drawn) -> None:
    axes = drawn["wraps"].axes
    assert [a.get_title().split(":")[0] for a in axes] == ["naive", "aux", "ladder", "sparse"]
    means = [a.lines[0].get_xdata()[0] for a in axes]
    for a, mean in zip(axes, means, strict=True):
        heights = np.array([bar.get_height() for bar in a.patches])
        assert heights.sum() == pytest.approx(1, abs=0.01)
        assert heights @ np.arange(heights.size) == pytest.approx(mean, abs=0.02)
    assert means[1] == pytest.approx(theory.expected_label_wraps(8, 31, (1, 5), (0.8, 0.2)))
    assert means[3] == pytest.approx(theory.expected_sparse_wraps_floor(8, 31))


def test_many_wraps_are_drawn_too() -> None:
    axes = figures.wrap_figure(150, 7, (1, 2, 8), (0.5, 0.25, 0.25), "nonzero").axes
    bars = axes[3].patches
    assert len(bars) > 61
    assert [bar.get_width() for bar in bars] == pytest.approx([1.0] * len(bars)), "no gaps between so many"
    heights = np.array([bar.get_height() for bar in bars])
    assert heights @ np.arange(len(bars)) == pytest.approx(
        theory.expected_sparse_wraps_floor(150, 7, "nonzero"), rel=0.005
    )


def test_one_term_never_wraps_and_has_no_rho() -> None:
    with pytest.raises(UserError, match="--n is 1"):
        figures.rho_figure(1, 31)


def test_without_matplotlib_one_is_told_what_to_install(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install 'auxmod\[plot\]'"):
        figures.gap_figure()
