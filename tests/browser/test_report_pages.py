"""Tests of the report and of a run's page in a browser: charts, mouse and keys, dark colours, a phone, printing."""

import copy
import re
from pathlib import Path
from typing import Any

import pytest

import made_up
from auxmod.cli import main
from auxmod.experiments import recipes, wants
from auxmod.experiments.results_file import Results, result_row
from tiny import flags, tiny

EVIL = "</script><img src=x onerror=alert(1)>"
KS, RS = (4, 5, 6), (0.1, 0.2)


def rows() -> list[dict[str, Any]]:
    """One setting of Table 1b, six pairs (K, r) and a failure, with HTML in the commands and in the failure."""
    runs = [run for run in recipes.cells("table1b", ("paper",)) if (run.problem.n, run.problem.q) == (16, 97)]
    runs += [wants.wanted("paper", "aux", (32, 97), "angular", 100_000, k=k, r=r).run for k in KS for r in RS]
    made = [copy.deepcopy(made_up.row(run)) for run in {run.hash: run for run in runs}.values()]
    for row in made:
        row["scores"]["by_wraps"] = [{"bucket": b, "samples": 50, "correct": 5 * b} for b in range(4, 9)]
        row["scores"]["by_zeros"] = [{"bucket": b, "samples": 50, "correct": 40 - b} for b in range(3)]
        row["provenance"] = {"device": "a test", "command": f"auxmod {EVIL}"}
    return [*made, result_row(tiny(lr=1e30), None, {}, failed=EVIL)]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("report")
    Results(place / "runs.jsonl").append(rows())
    assert main(["report", str(place), "--out", str(place / "report.html")]) == 0
    return (place / "report.html").as_uri()


@pytest.fixture(scope="module", params=["angular", "token"])
def run_address(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("run")
    assert main(["train", *flags("--embedding", request.param), "--out", str(place / "run"), "--quiet"]) == 0
    assert main(["view", str(place / "run"), "--out", str(place / "view.html"), "--samples", "300"]) == 0
    return (place / "view.html").as_uri()


def see_all_charts(page: Any) -> None:
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        chart.locator("svg.main-svg").first.wait_for()


def test_the_report_is_drawn_without_complaint(page: Any, address: str, complaints: list[str]) -> None:
    page.goto(address)
    assert "ahead of sparse training" in page.locator("h1").inner_text()
    assert page.locator("details[open] table tbody tr").count() >= 18
    see_all_charts(page)
    assert page.locator("#wraps .scatterlayer .trace").count() == page.locator("#legend li").count() > 1
    assert page.locator("#heatmaps figure").count() == 1
    assert not complaints


def test_a_run_is_told_apart_by_what_most_runs_do_not_have(page: Any, address: str, complaints: list[str]) -> None:
    page.goto(address)
    page.locator("#list li").first.wait_for()
    page.get_by_label("Find runs").fill("state=failed")
    page.get_by_text("1 of 18 runs").wait_for()
    assert "lr 1e+30" in page.locator("#list small").inner_text()
    page.get_by_label("Find runs").fill("n=32 k=6 r=0.1")
    page.get_by_text("1 of 18 runs").wait_for()
    assert page.locator("#list small").inner_text() == ""
    assert not complaints


def test_a_heatmaps_cell_shows_its_value(page: Any, address: str, complaints: list[str]) -> None:
    page.goto(address)
    chart = page.locator("[data-chart=grid0]")
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.25)  # K = 5, r = 0.2
    run = wants.wanted("paper", "aux", (32, 97), "angular", 100_000, k=5, r=0.2).run
    hover = chart.locator(".hoverlayer .hovertext")
    hover.wait_for()
    said = hover.text_content()
    assert "K = 5, r = 0.2" in said
    assert f"{100 * made_up.likely(run):.1f} %" in said
    assert "chance 1.0 %" in said
    assert not complaints


def test_a_figure_tells_its_command_by_keyboard(page: Any, address: str, complaints: list[str]) -> None:
    page.goto(address)
    page.locator("#list li").first.wait_for()
    page.get_by_role("button", name=re.compile(r"\d ± ")).first.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    assert "auxmod reproduce table1b --preset paper --n 16 --q 97" in dialog.inner_text()
    dialog.get_by_role("button", name="Show such runs").press("Enter")
    assert page.locator("#found").inner_text() == "3 of 18 runs"
    page.keyboard.press("Escape")
    assert not complaints


def test_a_figure_finds_its_own_runs_alone(page: Any, tmp_path: Path, complaints: list[str]) -> None:
    runs = recipes.cells("configs", ("paper",), seeds=2)
    Results(tmp_path / "runs.jsonl").append(made_up.rows(runs))
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 0
    page.goto((tmp_path / "report.html").as_uri())
    page.locator("#list li").first.wait_for()
    table = page.get_by_role("region", name=re.compile("^Table 6.*paper$"))
    table.get_by_role("button", name=re.compile(r"\(2\)")).first.click()
    page.get_by_role("button", name="Show such runs").click()
    assert page.locator("#found").inner_text() == f"2 of {len(runs)} runs"
    assert "norm=pre bias=true init=linear-0.02 dropout=0" in page.get_by_label("Find runs").input_value()
    assert not complaints


def test_runs_are_found_opened_and_drawn_and_their_text_is_text(page: Any, address: str, complaints: list[str]) -> None:
    page.goto(address)
    page.locator("#list li").first.wait_for()  # the data is unpacked by then
    page.get_by_label("Find runs").fill("n=32 k=6 r=0.1")
    page.get_by_text("1 of 18 runs").wait_for()
    page.locator("#list summary").click()
    page.locator("#list details", has_text=f"auxmod {EVIL}").wait_for()  # rendered a moment after it is opened
    before = page.locator("#legend li").count()
    page.locator("#list input").check()
    page.locator("#legend li").nth(before).wait_for()
    assert page.locator("#legend li").count() == before + 1
    page.get_by_label("Find runs").fill("state=failed")
    page.get_by_text("1 of 18 runs").wait_for()
    page.locator("#list summary").click()
    page.locator("#list details", has_text=EVIL).wait_for()
    assert page.locator("img").count() == 0
    assert not complaints


def test_runs_that_differ_only_in_their_seed_are_one_row(page: Any, tmp_path: Path, complaints: list[str]) -> None:
    made = [made_up.row(tiny(seed=seed), share) for seed, share in enumerate((0.5, 0.6, 0.7))]
    failed = [result_row(tiny(seed=3), None, {}, failed="It diverged.")]
    Results(tmp_path / "runs.jsonl").append([*made, *failed, made_up.row(tiny(lr=0.5), 0.25)])
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 0
    page.goto((tmp_path / "report.html").as_uri())
    page.locator("#list li").first.wait_for()
    figures = page.locator("#list > li > details > summary b").all_inner_texts()
    assert figures == ["60.0 ± 10.0 % (3, 1 failed)", "25.0 %"]
    first = page.locator("#list li").first
    assert "4 seeds" in first.inner_text()
    first.locator("summary").click()
    first.locator("details details").nth(3).wait_for()
    own = [" ".join(text.split()) for text in first.locator("details details summary").all_inner_texts()]
    assert own == ["seed 2 70.0 %", "seed 1 60.0 %", "seed 0 50.0 %", "seed 3 failed"]
    first.locator("details details summary").first.click()
    first.locator("table.facts").first.wait_for()
    first.locator("input").uncheck()
    assert page.locator("#legend li").count() == 1
    first.locator("input").check()
    assert page.locator("#legend li").count() == 5
    page.get_by_label("Find runs").fill("seed=2")
    page.get_by_text("1 of 5 runs").wait_for()
    assert page.locator("#list summary b").inner_text() == "70.0 %"
    assert not complaints


def test_a_chart_that_waits_to_be_drawn_forgets_the_runs_that_are_unticked(
    page: Any, address: str, complaints: list[str]
) -> None:
    page.set_viewport_size({"width": 800, "height": 200})
    page.goto(address)
    page.locator("#list li").first.wait_for()
    assert page.locator("#wraps svg").count() == 0
    page.locator("#list input:checked").evaluate_all("boxes => boxes.forEach((box) => box.click())")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # draws all that waits
    assert page.locator("#curves:has(svg), #wraps:has(svg)").count() == 0
    assert page.locator("#wraps").inner_text() == "No run is ticked."
    assert page.locator("[data-chart]:not(:has(svg))").count() == 0
    assert not complaints


def test_it_is_dark_when_asked_and_fits_a_phone(page: Any, address: str, complaints: list[str]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    page.goto(address)
    page.locator("#list li").first.wait_for()
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate(background) != light
    page.locator("[data-chart=rho]").scroll_into_view_if_needed()
    page.locator("[data-chart=rho] .xtitle").wait_for()
    ink = page.evaluate("getComputedStyle(document.body).color")
    assert page.evaluate("document.querySelector('[data-chart=rho] .xtitle').style.fill") == ink
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not complaints


def test_it_prints_every_chart(page: Any, address: str, complaints: list[str], tmp_path: Path) -> None:
    page.goto(address)
    page.locator("#list li").first.wait_for()
    page.pdf(path=tmp_path / "report.pdf")
    assert page.locator("[data-chart]:not(:has(svg))").count() == 0
    assert not complaints


def test_a_runs_page_is_drawn_without_complaint(page: Any, run_address: str, complaints: list[str]) -> None:
    page.goto(run_address)
    assert "adds 4 numbers mod 7" in page.locator("h1").inner_text()
    see_all_charts(page)
    assert page.locator("#origin-facts").get_by_role("row", name=re.compile("^samples 60$")).count() == 1
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert not complaints
