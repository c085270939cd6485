"""Tests of figures from stored results: what they draw, what they mark as not run, and that they can be saved."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import made_up
from auxmod.config import RunConfig
from auxmod.errors import UserError
from auxmod.experiments import recipes, wants
from auxmod.experiments.results_file import result_row
from auxmod.problem import theory
from auxmod.reporting import published, results, tables
from auxmod.reporting.cells import Cell
from auxmod.reporting.figures import by_item, compared, heatmaps, looks

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def stored() -> results.Index:
    """Results of most runs that the figures show, in the paper's preset."""
    items = ("table1b", "configs", "curves", "redbox")
    runs = [run for item in items for run in recipes.cells(item, ["paper"], seeds=2 if item == "curves" else 1)]
    return results.index(made_up.rows(run for number, run in enumerate(runs) if number % 29))


@pytest.fixture(scope="module")
def drawn(stored):
    return {item: by_item.draw(item, "paper", stored) for item in by_item.FIGURES}


def words(figure) -> list[str]:
    """The texts in the legend."""
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("item", by_item.FIGURES)
def test_every_figure_saves(drawn, item: str, tmp_path: Path) -> None:
    looks.save(drawn[item], tmp_path / f"{item}.png")
    assert (tmp_path / f"{item}.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_figure_saves_in_every_format(drawn, suffix: str, start: bytes, tmp_path: Path) -> None:
    looks.save(drawn["configs"], tmp_path / "new" / f"configs.{suffix}")
    assert (tmp_path / "new" / f"configs.{suffix}").read_bytes().startswith(start)


def test_the_grid_is_eighteen_panels_on_one_scale(drawn) -> None:
    made = drawn["grid"]
    panels = [axes for axes in made.axes if axes.images]
    assert len(panels) == 18
    assert {axes.images[0].get_clim() for axes in panels} == {(0, 100)}
    assert [axes.get_title() for axes in panels[::9]] == ["N = 8, q = 31", "N = 16, q = 97"]
    assert "not run" in words(made)[-1]


def test_the_heatmap_has_its_figures_its_hatching_and_the_box_of_rho(stored, drawn) -> None:
    axes = drawn["redbox"].axes[0]
    grid = axes.images[0].get_array()
    run = next(
        want.run
        for want in recipes.RECIPES["redbox"]("paper", ())
        if (want.run.method.k, want.run.method.r) == (6, 0.3)
    )
    found = results.collect(stored, run)
    assert found is not None
    assert grid[2, 4] == pytest.approx(found.mean)
    absent = int(np.ma.getmaskarray(grid).sum())
    assert absent == len(axes.patches) > 0
    assert words(drawn["redbox"])[-1] == f"not run ({absent} of 81)"
    inside = [(k, r) for k, r in recipes.HEATMAP if 0.8 <= round(theory.rho((1, k), (1 - r, r)), 9) <= 1.2]
    edges = np.count_nonzero(np.isnan(heatmaps._outline()[0]))
    neighbours = {(k, round(10 * r)) for k, r in inside}
    assert edges == sum(
        (k + a, i + b) not in neighbours for k, i in neighbours for a, b in ((1, 0), (-1, 0), (0, 1), (0, -1))
    )


def test_the_configurations_have_bars_rings_and_switches(stored, drawn) -> None:
    upper, lower = drawn["configs"].axes
    cells = tables.build("configs", "paper", stored).cells
    assert len(upper.patches) == len(cells) == 32
    assert "chance" in words(drawn["configs"])
    circles = [line for line in upper.lines if line.get_marker() == "o"]
    assert not any(circle.get_clip_on() for circle in circles)
    rings = sorted(circle.get_ydata()[0] for circle in circles)
    assert rings == sorted(value for pair in published.CONFIGURATIONS.values() for value in pair)
    hatched = sum(bar.get_hatch() is not None for bar in upper.patches)
    assert hatched == sum(cell.ours is None for cell in cells) > 0
    on = {
        text.get_text(): line.get_xdata() for text, line in zip(lower.get_yticklabels(), lower.lines[1::2], strict=True)
    }
    configurations = list(published.CONFIGURATIONS)
    assert list(on["Pre-Norm"]) == [i for i, (norm, *_) in enumerate(configurations) if norm == "pre"]
    assert list(on["dropout"]) == [i for i, (*_, dropout) in enumerate(configurations) if dropout]


def test_table_1_as_a_picture_has_every_setting_in_both_panels(drawn) -> None:
    left, right = drawn["table1b"].axes
    assert [text.get_text() for text in left.get_yticklabels()][::8] == ["N = 16, q = 97", "N = 64, q = 433"]
    for panel, first in ((left, 0), (right, 2)):
        rings = {line.get_xdata()[0] for line in panel.lines if line.get_markerfacecolor() == "white"}
        assert rings == {value for row in published.TABLE1["angular"].values() for value in row[first : first + 2]}


def test_the_picture_of_table_1_has_our_figures_and_its_gaps(stored, drawn) -> None:
    cells = tables.build("table1b", "paper", stored).cells
    absent = hatched = 0
    for axes, samples in zip(drawn["table1b"].axes, (100_000, 1_000_000), strict=False):
        for method in ("aux", "sparse"):
            own = [c for c in cells if (c.facts["samples"], c.facts["method"]) == (samples, method)]
            colour = looks.COLOURS[method]
            points = [bars.lines[0] for bars in axes.containers if hasattr(bars, "has_xerr")]
            at = sorted(float(point.get_xdata()[0]) for point in points if point.get_color() == colour)
            assert at == pytest.approx(sorted(c.ours for c in own if c.ours is not None))
            absent += sum(c.ours is None for c in own)
        hatched += sum(patch.get_width() == 100 for patch in axes.patches if patch.get_hatch())
    assert 0 < absent == hatched < 10
    assert words(drawn["table1b"])[-3:] == ["chance", "± over 2 seeds", f"not run ({absent} of 36)"]


@pytest.mark.parametrize(("ours", "paper"), [(50.0, None), (50.0, 0.0), (None, 60.0), (None, None)])
def test_a_figure_that_is_missing_is_not_drawn_at_zero(ours: float | None, paper: float | None) -> None:
    axes = looks.blank(4, 3).subplots()
    compared._dot(axes, 1.0, Cell(facts={"method": "aux"}, ours=ours, paper=paper))
    rings = [float(line.get_xdata()[0]) for line in axes.lines if line.get_markerfacecolor() == "white"]
    between = [list(line.get_xdata()) for line in axes.lines if len(line.get_xdata()) == 2]
    assert rings == ([] if paper is None else [paper])
    assert between == ([] if ours is None or paper is None else [[ours, paper]])


@pytest.mark.parametrize(
    ("ours", "std", "ends"), [(40.0, 55.0, (0, 95)), (95.0, 8.0, (87, 100)), (50.0, 2.0, (48, 52))]
)
def test_a_deviation_ends_where_accuracies_do(ours: float, std: float, ends: tuple[float, float]) -> None:
    across, up = looks.blank(4, 3).subplots(1, 2)
    cell = Cell(facts={"method": "aux"}, ours=ours, std=std, count=2)
    compared._dot(across, 1.0, cell)
    compared._bar(up, 1.0, cell, "black")
    for axes, side in ((across, 0), (up, 1)):
        (segment,) = axes.collections[0].get_segments()
        assert tuple(segment[:, side]) == pytest.approx(ends)


def test_the_legend_says_how_many_seeds_a_deviation_is_of() -> None:
    runs = [run for run in recipes.cells("table1b", ["paper"], seeds=3) if run.seed < 2 or run.problem.q == 97]
    assert "± over 2–3 seeds" in words(by_item.draw("table1b", "paper", results.index(made_up.rows(runs))))


def test_where_ours_is_the_papers_both_are_seen() -> None:
    axes = looks.blank(4, 3).subplots()
    compared._dot(axes, 1.0, Cell(facts={"method": "aux"}, ours=50.0, paper=50.0))
    ring, dot = (line for line in axes.lines if line.get_marker() == "o")
    assert ring.get_markersize() - ring.get_markeredgewidth() > dot.get_markersize()
    assert ring.get_zorder() < dot.get_zorder()


def test_a_picture_tells_what_failed_from_what_was_not_run() -> None:
    runs = recipes.cells("table1b", ["paper"], seeds=1)
    failed = [result_row(run, None, {}, failed="diverged") for run in runs if run.problem.q == 257]
    made = by_item.draw("table1b", "paper", results.index(failed))
    assert words(made)[-1] == "not run (24 of 36), failed (12 of 36)"
    failed = [result_row(run, None, {}, failed="diverged") for run in recipes.cells("redbox", ["paper"], seeds=1)[:3]]
    made = by_item.draw("redbox", "paper", results.index(failed))
    assert words(made)[-1] == "not run (78 of 81), failed (3 of 81)"
    assert len(made.axes[0].patches) == 81


def test_curves_at_equal_data_and_equal_compute(stored, drawn) -> None:
    left, right = drawn["curves"].axes[:2]
    assert left.get_xlim()[1] == 4_000
    assert right.get_xlim()[1] == 40_000
    run = wants.wanted("paper", "aux", (8, 31), "token", 100_000).run
    mean = results.mean_curve(stored, run)
    thick = [line for line in left.lines if line.get_linewidth() > 2]
    assert list(thick[0].get_xdata()) == [step for step, _ in mean]
    assert "100K samples, 100 epochs" in words(drawn["curves"])
    empty = by_item.draw("curves", "best", {})
    assert "not run:\naux, 100K samples, 10 epochs" in absent(empty.axes[0])
    assert len(absent(empty.axes[1]).splitlines()) == 5
    assert words(empty) == ["aux", "sparse", "10 epochs (100K left, 1M right)", "chance"]
    assert absent(by_item.draw("headline", "paper", {}).axes[0]) == "not run:\naux\nsparse\nnaive"


def absent(axes) -> str:
    """The text in which a panel of curves lists what was not run."""
    text: str = axes.get_legend().get_title().get_text()
    return text


def test_bad_input_is_one_sentence(drawn, tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(UserError, match="There is no figure 'table9'; choose one of gap, rho"):
        by_item.draw("table9", "paper", {})
    with pytest.raises(UserError, match=r"does not end in \.png, \.svg or \.pdf"):
        looks.save(drawn["gap"], tmp_path / "gap.jpg")
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"cannot be written \(.*\): choose another --plots\."):
        looks.save(drawn["gap"], tmp_path / "file" / "gap.png", flag="--plots")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r"pip install 'auxmod\[plot\]'"):
        by_item.draw("configs", "paper", {})
    with pytest.raises(UserError, match=r"pip install 'auxmod\[plot\]'"):
        looks.check_name(tmp_path / "gap.png")


def test_samples_at_equal_steps_and_steps_from_equal_samples() -> None:
    rows = [
        made_up.row(run, match=run.training.steps / 4_000 if run.method.method == "aux" else 0.1)
        for run in recipes.cells("fewer")
        if run.method.method != "auto"
    ]
    left, right = by_item.draw("fewer", "demo", results.index(rows)).axes
    assert left.get_xticklabels()[0].get_text() == "250\n×1000"
    assert [label.get_text() for label in right.get_xticklabels()] == [
        "200\n×5",
        "400\n×10",
        "1,000\n×25",
        "2,000\n×50",
        "4,000\n×100",
    ]
    assert [container.get_label() for container in left.containers] == ["auto not run (10 of 10)", "aux", "sparse"]
    aux = right.containers[0].lines[0]
    assert aux.get_ydata().tolist() == [5.0, 10.0, 25.0, 50.0, 100.0]


def _of_aux(run: RunConfig) -> float:
    return 0.9 if (run.method.k, run.method.r) == (6, 0.2) else 1 / run.problem.n


def test_accuracy_by_terms_and_by_modulus_has_its_chance_beside_it() -> None:
    rows = [
        made_up.row(run, match=_of_aux(run) if run.method.method == "aux" else 0.5)
        for run in recipes.cells("harder")
        if run.method.method != "naive"
    ]
    left, right = by_item.draw("harder", "demo", results.index(rows)).axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["4", "6", "8", "12", "16", "24", "32", "48"]
    assert [label.get_text() for label in right.get_xticklabels()] == ["11", "31", "97", "257"]
    assert [each.get_label() for each in left.containers] == ["auto", "aux", "sparse", "naive not run (11 of 11)"]
    aux = left.containers[1].lines[0]
    assert aux.get_ydata().tolist() == pytest.approx([100 / n for n in (4, 6, 8, 12, 16, 24, 32, 48)])
    assert words(left.figure)[-2:] == ["aux, best of 24 K, r", "chance"]
    for axes, found in ((left, {48: 90}), (right, {97: 90, 257: 90})):
        assert dict(zip(*axes.lines[-2].get_data(), strict=True)) == found
    guessed = right.lines[-1]
    assert guessed.get_xdata().tolist() == [11, 31, 97, 257]
    assert guessed.get_ydata().tolist() == pytest.approx([100 / q for q in (11, 31, 97, 257)])


def test_gaps_of_either_panel_are_counted_once_and_failures_apart() -> None:
    runs = [run for run in recipes.cells("harder", seeds=1) if run.method.method != "auto"]
    absent = [run for run in runs if run.method.method == "sparse" and run.problem.q == 257]
    failed = [run for run in runs if run.method.method == "naive" and run.problem.n == 16 and run not in absent]
    rows = [result_row(run, None, {}, failed="diverged") for run in failed]
    rows += made_up.rows(run for run in runs if run not in absent and run not in failed)
    left, right = by_item.draw("harder", "demo", results.index(rows)).axes
    assert words(left.figure)[-2] == "aux, best of 24 K, r"
    labels = ["auto not run (11 of 11)", "aux", "sparse not run (1 of 11)", "naive failed (4 of 11)"]
    assert [each.get_label() for each in left.containers] == labels
    assert [each.get_label() for each in right.containers] == labels
