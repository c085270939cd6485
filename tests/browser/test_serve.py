"""Tests of the served page in a browser: it follows a run, answers sums, and shows what is in files as plain text."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import auxmod
import made_up
from auxmod.cli.display import percent
from auxmod.experiments import claims
from auxmod.experiments.results_file import result_row
from auxmod.experiments.run_directory import Run
from auxmod.serving.server import Server
from served import served
from tiny import flags, tiny

MOVED = (
    "before => { const d = document.querySelector('#loss .curve')?.getAttribute('d'); return d && d !== before && d }"
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an angular and a token model."""
    place = tmp_path_factory.mktemp("runs")
    auxmod.train(tiny(), out=place / "angular")
    auxmod.train(tiny(embedding="token"), out=place / "token")
    return place


@pytest.fixture
def server(store: Path) -> Iterator[Server]:
    with served(store) as server:
        yield server


def choose(page: Any, name: str) -> None:
    page.get_by_role("button", name=f"Try {name} in the playground").click()


def write(page: Any, numbers: list[int]) -> None:
    for number, value in enumerate(numbers, 1):
        page.get_by_label(f"x{number}", exact=True).fill(str(value))


@pytest.mark.parametrize("name", ["angular", "token"])
def test_the_playground_answers_a_typed_sum(
    name: str, server: Server, store: Path, page: Any, complaints: list[str]
) -> None:
    numbers = [6, 5, 4, 3]
    page.goto(server.url)
    choose(page, name)
    write(page, numbers)
    page.get_by_text("Sum 18 = 2 × 7 + 4").wait_for()
    answer = int(auxmod.load(store / name).predict([numbers])[0])
    assert page.locator("#answer strong").inner_text() == str(answer)
    verdict = "right" if answer == 4 else "wrong: the truth is 4"
    assert verdict in page.locator("#answer").inner_text()
    assert page.locator("#circles svg").count() == (2 if name == "angular" else 1)
    assert page.locator("#classes progress").count() == (0 if name == "angular" else 5)
    assert complaints == []


def test_numbers_can_be_drawn_and_pasted_and_wrong_ones_are_named(
    server: Server, page: Any, complaints: list[str]
) -> None:
    page.goto(server.url)
    choose(page, "angular")
    box = page.locator("#bars").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.1, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + box["height"] - 2, steps=20)
    page.mouse.up()
    drawn = [int(page.get_by_label(f"x{i}", exact=True).input_value()) for i in (1, 2, 3, 4)]
    assert drawn == sorted(drawn, reverse=True)
    assert drawn[0] >= 5
    assert drawn[3] <= 1
    page.get_by_label("x2", exact=True).evaluate(
        "input => { const data = new DataTransfer(); data.setData('text', '1, 2 3');"
        "input.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true})) }"
    )
    assert [page.get_by_label(f"x{i}", exact=True).input_value() for i in (2, 3, 4)] == ["1", "2", "3"]
    write(page, [7, 0, 0, 0])
    page.get_by_text("The numbers must be whole, from 0 to 6.").wait_for()
    assert complaints == []


def test_a_curve_moves_while_a_run_goes(server: Server, store: Path, page: Any, complaints: list[str]) -> None:
    command = [
        sys.executable,
        "-m",
        "auxmod",
        "train",
        *flags("--epochs", "3000", "--out", str(store / "live"), "--quiet"),
    ]
    page.goto(server.url)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            row = page.locator("tr", has_text="live")
            row.get_by_text("going").wait_for(timeout=60_000)
            first = page.wait_for_function(MOVED, arg="").json_value()
            page.wait_for_function(MOVED, arg=first)
            assert process.poll() is None, "it moved while the run was going"
        finally:
            process.terminate()
    assert complaints == []


def test_a_sweep_shows_how_far_it_is(tmp_path: Path, page: Any, complaints: list[str]) -> None:
    cells, results = [tiny(seed=seed) for seed in range(4)], tmp_path / "s.jsonl"
    made_up.append(results, result_row(cells[0], None, {}, failed="It diverged."))
    claims.announce(claims.directory_of(results), {cell.hash: cell.to_dict() for cell in cells})
    claim = claims.take(claims.directory_of(results), [cells[1].hash, cells[2].hash])
    with served(tmp_path) as server:
        page.goto(server.url)
        page.get_by_text(
            "s.jsonl: 0 of 4 cells done, 2 in training (0.0 % of their steps), 1 failed, 1 waiting"
        ).wait_for()
        assert page.locator(".sweep progress").evaluate("bar => [bar.value, bar.max]") == [1, 4]
        assert page.locator("tbody tr").count() == 3
    claim.release()
    assert complaints == []


def test_of_a_large_q_it_says_what_the_curve_is_of(tmp_path: Path, page: Any, complaints: list[str]) -> None:
    config = tiny(q=974269)
    curve = [{"step": 18, "loss": 1.0, "accuracy": 1e-6, "near": 0.75}]
    scores = made_up.row(config, match=1e-6, tau=0.875)["scores"]
    made_up.append(tmp_path / "r.jsonl", result_row(config, scores, {}, validation=1e-6, curve=curve))
    with served(tmp_path) as server:
        page.goto(server.url)
        page.locator("#counted", has_text="Held-out answers: within 0.005·q").wait_for()
        page.locator("#accuracy[aria-label*='75.0 %']").wait_for()
        cells = page.locator("tbody tr td").all_inner_texts()
        heldout, match, chance = (" ".join(cell.split()) for cell in cells[3:6])
        assert heldout == "75.0 % within 0.005·q"
        assert (match, chance) == ("0.0001 % 87.5 % within 0.005·q", "0.0001 % 1.0 % within 0.005·q")
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.locator(".scroll").evaluate("table => table.scrollWidth - table.clientWidth") == 0
        Run.create(tmp_path / "small", tiny()).log({"step": 1, "loss": 1.0, "accuracy": 0.5})
        page.locator("#counted", has_text=" or ").wait_for()
        page.locator("#legend", has_text="small (exact)").wait_for()
    assert complaints == []


def test_shares_read_as_in_the_terminal(server: Server, page: Any, complaints: list[str]) -> None:
    shares = [None, 0, 1, 0.98765, 0.5, 0.0005, 0.00049, 1 / 974269, 0.00023]
    page.goto(server.url)
    shown = page.evaluate("shares => import('/parts.js').then((parts) => shares.map(parts.percent))", shares)
    assert shown == [percent(share) for share in shares]
    assert complaints == []


def test_what_files_say_is_shown_as_text(tmp_path: Path, page: Any, complaints: list[str]) -> None:
    name = "<img src=x onerror=alert(1)>"
    Run.create(tmp_path / name, tiny()).log({"step": 1, "loss": 1.0, "accuracy": 0.5})
    made_up.append(tmp_path / "r.jsonl", result_row(tiny(seed=1), None, {}, failed="<script>alert(2)</script>"))
    (tmp_path / "<b>bad.jsonl").write_text("<i>nonsense</i>\n")
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    with served(tmp_path) as server:
        page.goto(server.url)
        page.locator("tbody").get_by_text(name, exact=True).wait_for()
        page.get_by_text("<script>alert(2)</script>").wait_for()
        assert "<b>bad.jsonl" in page.locator("#notes").inner_text()
        assert page.locator("img, #rows script, #notes b, #notes i").count() == 0
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_its_window(width: int, server: Server, page: Any, complaints: list[str]) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.goto(server.url)
    page.locator("#answer strong").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".scroll").evaluate("table => table.scrollWidth - table.clientWidth") == 0
    assert complaints == []


def test_with_a_token_the_printed_address_opens_it_and_hides_the_token(
    store: Path, page: Any, complaints: list[str]
) -> None:
    with served(store, "0.0.0.0") as server:
        page.goto(server.url.replace("0.0.0.0", "127.0.0.1"))
        page.locator("#answer strong").wait_for()
        assert page.url == f"http://127.0.0.1:{server.port}/"
    assert complaints == []
