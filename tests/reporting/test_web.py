"""Tests of a store's report: it has the store's figures, is self-contained, and stays quick and small at 2,000 runs."""

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

import made_up
from auxmod.cli import main
from auxmod.errors import UserError
from auxmod.experiments import recipes, wants
from auxmod.experiments.results_file import Results, result_row
from auxmod.experiments.run_directory import Run
from auxmod.reporting import published
from auxmod.reporting.web import charts, file, report, stored_runs, view
from tiny import tiny

ROOT = Path(__file__).parents[2]
TAG = "<svg onload=alert(1)>"
"""Hostile HTML that a file's name can hold."""
EVIL = f"</script>{TAG}"


def cells(*items: str) -> list[dict[str, Any]]:
    runs = {run.hash: run for item in items for run in recipes.cells(item, ("paper",))}
    return made_up.rows(runs.values())


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Table 1b and the 24 pairs of one setting; hostile HTML in its name, a failed run's reason and a run's command."""
    path = tmp_path_factory.mktemp("store") / TAG
    path.mkdir()
    pairs = [wants.wanted("paper", "aux", (64, 433), "angular", 100_000, k=k, r=r).run for k, r in recipes.SEARCHED]
    rows = [*cells("table1b"), *made_up.rows(pairs)]
    rows.append(result_row(tiny(lr=1e30), None, {}, failed=f"It failed. {EVIL}"))
    rows.append(made_up.row(tiny(method="naive"), 0.25) | {"provenance": {"command": EVIL}})
    Results(path / "runs.jsonl").append(rows)
    return path


@pytest.fixture(scope="module")
def page(store: Path) -> str:
    return report.page(store)[0]


def test_the_tables_hold_the_stores_figures(store: Path, page: str) -> None:
    run = wants.wanted("paper", "aux", (16, 97), "angular", 100_000).run
    means = [100 * made_up.likely(with_seed(run, seed)) for seed in range(3)]
    assert f">{sum(means) / 3:.1f} ± " in page
    assert "45 of 45 run" in page
    assert "0 of 128 run" not in page  # Table 2 in the preset best, say, is left out
    made, shown = len(report.SHOWN) * len(report.PRESETS), page.count('<details class="item"')
    assert 0 < shown < made
    assert f"nothing of them was run here: {made - shown} of {made} tables. <code>auxmod table all</code>" in page
    assert re.search(
        r"In the paper’s setup, the auxiliary modulus is ahead of sparse training in \d+ of 18 settings", page
    )
    # Table 1b; Table 2 at q = 257 (three N, two methods, two τ); Table 3's baseline at 1M (at 100K it is Table 1's)
    accuracies = sum(row.value is not None and row.metric in ("match", "tau") for row in published.rows())
    run = 36 + 12 + 9
    assert f"figures of the paper’s tables, in 2 presets, run</dt><dd>{run} of {2 * accuracies}" in page


def test_the_headline_is_of_the_preset_with_most_settings_and_of_the_methods_best_where_as_many() -> None:
    rows = []
    for preset, gain in (("paper", 0.2), ("best", 0.3)):
        for variant, match in (("aux", 0.5 + gain), ("sparse", 0.5)):
            rows.append(made_up.row(wants.wanted(preset, variant, (16, 97), "angular", 100_000).run, match))

    def headline(rows: list[dict[str, Any]]) -> str:
        stored = report.results.index(rows)
        return report.headline([report.tables.build("table1b", preset, stored) for preset in report.PRESETS], [])

    assert headline(rows) == (
        "With each method at its best, the auxiliary modulus is ahead of sparse training in 1 of 1 settings of the "
        "paper’s Table 1 and level in 0, by 30.0 points of match accuracy on average."
    )
    for variant in ("aux", "sparse"):
        match = 0.4 + 0.005 * (variant == "aux")  # half a point is no difference
        rows.append(made_up.row(wants.wanted("paper", variant, (64, 433), "angular", 100_000).run, match))
    assert headline(rows).startswith(
        "In the paper’s setup, the auxiliary modulus is ahead of sparse training in 1 of 2"
    )
    assert "and level in 1, by" in headline(rows)


def with_seed(run: Any, seed: int) -> Any:
    return type(run).from_dict(run.to_dict() | {"seed": seed})


def test_a_figure_names_its_command(store: Path) -> None:
    entries, _ = stored_runs.read(store)
    made = report.tables.build("table1b", "paper", report.results.index(entry.row for entry in entries))
    words, told = report._words([made])
    buttons = [cell["cell"] for row in words[0]["rows"] for cell in row if "cell" in cell]
    assert buttons == list(range(45)) == list(range(len(told)))
    first = told[0]
    assert first["command"] == "auxmod reproduce table1b --preset paper --n 16 --q 97 --samples 100000 --method aux"
    assert first["figures"]["the paper’s"] == "98.9"
    assert first["facts"] == {"embedding": "angular", "n": 16, "q": 97, "samples": 100_000, "method": "aux"} | {
        "k": 5,
        "r": 0.4,
    }
    assert main([*first["command"].split()[1:], "--dry-run"]) == 0


def test_a_command_runs_its_own_embedding_and_both_sides_of_a_gain() -> None:
    made = report.tables.build("table3", "paper", {})
    told = {(c.facts["embedding"], c.facts["n"], c.facts["statistic"]): report._command(made, c) for c in made.cells}
    assert told["token", 16, "max"].endswith("--samples 1000000 --embedding token --method aux")
    assert told["angular", 16, "gain"].endswith("--samples 1000000 --embedding angular")


def test_a_run_that_is_still_going_is_no_failure(tmp_path: Path) -> None:
    going, done, *_ = recipes.cells("table1b", ("paper",), seeds=1, samples=(100_000,))
    Run.create(tmp_path / "run", going)
    Results(tmp_path / "runs.jsonl").append([made_up.row(done)])
    page, _ = report.page(tmp_path)
    assert "1 of 45 run" in page
    assert re.search(r">\s*not run\s*<", page)
    assert not re.search(r">\s*failed\s*<", page)


def test_differences_are_tinted_by_side_and_size() -> None:
    cell = report.Cell(facts={}, paper=50.0, ours=20.0)
    assert report._tint(cell, "difference") == {"side": "below", "tint": 55}
    assert report._tint(report.Cell(facts={}, paper=50.0, ours=53.0), "difference") == {"side": "above", "tint": 6}
    assert "side" not in report._tint(cell, "ours")


def test_the_page_stands_alone_and_escapes(page: str) -> None:
    assert not re.findall(r"""(?:src|href)=(?!"#|"data:)\S*""", page)
    assert "url(" not in page
    assert "@import" not in page
    assert TAG not in page
    assert "auxmod: &lt;svg onload=alert(1)&gt;" in page  # the store's name
    assert len(page.encode()) < 8_000_000


def test_every_chart_is_one_that_plotly_knows() -> None:
    truth, error = [0, 3, 6], [0.0, 1.0, -3.4]
    pairs = {(k, r): [10.0 * k, 5.0] for k in (4, 5) for r in (0.1, 0.2)} | {(6, 0.2): [3.0]}
    settings = {"embedding": "angular", "n": 16, "q": 97}
    grid = stored_runs.Grid(settings, [4, 5, 6], [0.1, 0.2], pairs, 1.0)
    row = {"n": 8, "members": 1, "plain_eager": None, "plain_compiled": {"ms": 9.0}, "ours": {"ms": 1.0}}
    bench = charts.bench({"rows": [row | {"floor_ratio": 2.0}]})
    made = [charts.heatmap(grid), charts.gap(), charts.rho(), charts.wraps(4, 7, 2, 0.5), bench]
    made += [charts.ring(truth, error, 7), charts.histogram([-0.5, 0.0, 0.5], [3, 4])]
    made += [charts.plane([[0.0, 1.0]], [0.5], [3], circle=True), charts.spectrum([0.2, 0.8])]
    for each in made:
        go.Figure(json.loads(json.dumps(each, allow_nan=False)))  # raises if a name or value is wrong
    assert made[0]["data"][0]["z"] == [[22.5, 27.5, None], [22.5, 27.5, 3.0]]
    assert [trace["name"] for trace in bench["data"]] == [charts.CURVES[n] for n in list(charts.CURVES)[1:]]


def test_grids_are_runs_that_differ_in_k_r_and_seed_alone(store: Path) -> None:
    entries, notes = stored_runs.read(store)
    (grid,) = stored_runs.grids(entries)
    assert not notes
    assert (grid.ks, grid.rs) == (list(range(4, 10)), [0.1, 0.2, 0.3, 0.4])
    assert (grid.settings["n"], grid.settings["q"]) == (64, 433)
    assert len(grid.found[4, 0.3]) == 3  # the paper's own pair was run with three seeds
    assert stored_runs.differing([grid]) == [""]


def test_a_grid_of_rows_that_say_no_chance_has_one() -> None:
    rows = [made_up.row(tiny(k=k, r=r), 0.5) for k in (3, 4) for r in (0.2, 0.4)]
    entries = [stored_runs.Entry(Path("x"), row | {"scores": {"match": 0.5}}) for row in rows]
    (grid,) = stored_runs.grids(entries)
    assert grid.chance == pytest.approx(100 / 7)


def test_what_a_search_drew_is_no_row_of_a_grid() -> None:
    pairs = [(4, 0.1), (5, 0.1), (4, 0.2), (5, 0.2), (6, 0.2), (4, 0.2071)]
    rows = [made_up.row(tiny(k=k, r=r)) for k, r in pairs]
    (grid,) = stored_runs.grids([stored_runs.Entry(Path("x"), row) for row in rows])
    assert (grid.ks, grid.rs) == ([4, 5], [0.1, 0.2])


def test_the_errors_have_a_mark_on_their_axis_however_many_there_are() -> None:
    for counts in ([1, 0, 1], [60, 70, 65], [3, 40_000, 2]):
        low, high = charts.histogram([-0.5, -0.2, 0.2, 0.5], counts)["layout"]["yaxis"]["range"]
        assert low < 0 < 1 < high
        assert 10**high > max(counts)


def test_a_run_that_is_kept_twice_counts_once(tmp_path: Path) -> None:
    finished = made_up.row(tiny(), 0.5)
    Run.create(tmp_path / "begun", tiny())
    Results(tmp_path / "a.jsonl").append([finished])
    Results(tmp_path / "b.jsonl").append([finished | {"validation": 0.75}])
    (entry,), _ = stored_runs.read(tmp_path)
    assert (entry.state, entry.summary["validation"]) == ("done", 0.75)


def test_a_long_curve_is_thinned_to_its_end() -> None:
    curve = [{"step": step, "loss": 1.0, "accuracy": step / 1000} for step in range(1, 1001)]
    rows = [result_row(tiny(), None, {}, curve=curve[:3]), result_row(tiny(), None, {}, curve=curve)]
    short, long = stored_runs.told([stored_runs.Entry(Path("x"), row) for row in rows], Path("x"))["curves"]
    assert short == [[1, 2, 3], [0.1, 0.2, 0.3]]
    assert 100 <= len(long[0]) <= stored_runs.LONG
    assert (long[0][-1], long[1][-1]) == (1000, 100.0)


def test_runs_that_differ_only_in_their_seed_are_one_row() -> None:
    runs = [tiny(seed=1), tiny(lr=0.5), tiny(seed=0), tiny(lr=0.5, seed=2), tiny(method="naive")]
    assert stored_runs.alike([stored_runs.Entry(Path("x"), made_up.row(run)) for run in runs]) == [[0, 2], [1, 3], [4]]
    assert stored_runs.alike([]) == []


def test_the_runs_drawn_are_those_asked_for_or_the_best_of_each_method(store: Path) -> None:
    entries, _ = stored_runs.read(store)
    drawn = [entries[at] for at in stored_runs.telling(entries)]
    assert {"aux", "sparse", "naive"} <= {entry.settings["method"] for entry in drawn}
    assert len({(entry.settings["n"], entry.settings["q"]) for entry in drawn}) == 1
    with pytest.raises(UserError, match="No run is as --where 'n=1' asks: leave it out"):
        stored_runs.telling(entries, "n=1")
    asked = [entries[at].settings for at in stored_runs.telling(entries, "method=naive,n=16")]
    assert asked
    assert all(each["method"] == "naive" and each["n"] == 16 for each in asked)


def test_a_store_without_results_is_a_page_too(tmp_path: Path) -> None:
    Run.create(tmp_path / "begun", tiny())
    (tmp_path / f"{TAG}.jsonl").write_text('{"hash": "<b>"}\n')
    (tmp_path / "other.jsonl").write_text('{"tried": "<b>"}\n')
    page, entries = report.page(tmp_path)
    assert "No run in this store is finished yet." in page
    assert "Nothing of the paper’s tables was run here" in page
    assert '<details class="item"' not in page
    assert "Δ is ours less the paper’s" not in page
    assert "figures of the paper’s tables" not in page
    assert "1 left out" in page
    assert "&lt;svg onload=alert(1)&gt;.jsonl" in page
    assert TAG not in page
    assert len(entries) == 1


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"rows": [], "provenance": {}}', '{"rows": [{"n": 8}], "provenance": 1}']
)
def test_what_is_called_a_benchmark_and_is_none_is_left_out(tmp_path: Path, content: str) -> None:
    Run.create(tmp_path / "begun", tiny())
    (tmp_path / "bench-mine.json").write_text(content)
    page, _ = report.page(tmp_path)
    assert "1 left out" in page
    assert "bench-mine.json" in page


def test_a_benchmark_that_does_not_say_how_it_was_made_is_left_out(tmp_path: Path) -> None:
    Run.create(tmp_path / "begun", tiny())
    bench = json.loads((ROOT / "results" / "bench-h200.json").read_text())
    made = bench["provenance"]
    odd = [{"date": 20261115}, *({name: None} for name in ("command", "device", "torch", "commit", "date"))]
    for number, change in enumerate(odd):
        kept = {name: value for name, value in (made | change).items() if value is not None}
        (tmp_path / f"bench-{number}.json").write_text(json.dumps(bench | {"provenance": kept}))
    page, _ = report.page(tmp_path)
    assert "6 left out" in page
    assert "bench-5.json is not what auxmod bench writes." in page
    assert 'id="speed"' not in page
    (tmp_path / "bench-0.json").write_text(json.dumps(bench))
    page, _ = report.page(tmp_path)
    assert "5 left out" in page
    assert f"<code>{made['command']}</code>" in page
    assert f"{made['device']}, torch {made['torch']}, commit {made['commit']}, {made['date'][:10]}</li>" in page


@pytest.mark.slow
def test_two_thousand_runs_are_quick_and_light(tmp_path: Path) -> None:
    runs = {run.hash: run for item in ("table1a", "table1b", "grid") for run in recipes.cells(item)}
    rows = [made_up.row(run) for run in list(runs.values())[:2000]]
    for row in rows:
        row["scores"]["by_wraps"] = [{"bucket": b, "samples": 900 + b, "correct": 300 + 7 * b} for b in range(40)]
        row["provenance"] = {"command": "auxmod reproduce grid --preset both", "seconds": row["validation"]}
    Results(tmp_path / "runs.jsonl").append(rows)
    began = time.process_time()
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 0
    assert time.process_time() - began < 10
    assert (tmp_path / "report.html").stat().st_size < 8_000_000


# ---- the command --------------------------------------------------------------------------------------------


def test_the_command_writes_and_overwrites_only_when_told(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "deep" / "report.html"
    assert main(["report", str(store), "--out", str(out), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said == {"page": str(out), "runs": said["runs"], "bytes": out.stat().st_size}
    assert main(["report", str(store), "--out", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["report", str(store), "--out", str(out), "--force"]) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["report", "nowhere", "--out", "x.html"], "There is no store nowhere"),
        (["report", ".", "--out", "x.txt"], "must end in .html"),
        (["report", ".", "--out", "x.html", "--where", "nonsense"], "--where is 'nonsense'"),
        (["view", "nowhere", "--out", "x.html"], "nowhere is not a run"),
        (["view", ".", "--samples", "0"], "--samples is 0"),
    ],
)
def test_wrong_use_is_a_sentence(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert sentence in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(UserError, match=r"pip install 'auxmod\[report\]'"):
        file.render("report.html", {})


def test_a_runs_page_says_what_was_seen(tmp_path: Path) -> None:
    entry = stored_runs.Entry(tmp_path / f"{EVIL}", made_up.row(tiny(), 0.75))
    looked: dict[str, Any] = {"samples": 2, "truth": [0, 6], "error": [0.1, -3.0], "edges": [-0.5, 0.5], "counts": [2]}
    looked["plane"] = {"points": [[1.0, 0.0], [0.0, 0.5]], "radius": 0.75, "spread": 0.25}
    seen = entry, entry.row["scores"], looked
    page = view.page(*seen)
    assert "adds 4 numbers mod 7 and is right on 75.0\u00a0% of sums it has not seen" in page
    known = view.page(stored_runs.Entry(entry.path, made_up.row(tiny(samples=1200), 0.75)), *seen[1:])
    assert "right on 75.0\u00a0% of sums, 39.3\u00a0% of which it has trained on" in known
    other = view.page(stored_runs.Entry(entry.path, made_up.row(tiny(method="sparse"), 0.75)), *seen[1:])
    assert "right on 75.0\u00a0% of sums of numbers drawn evenly" in other
    assert "0.75 ± 0.25 from the centre" in page
    assert "last checkpoint" not in page
    several = view.page(stored_runs.Entry(entry.path, made_up.row(tiny(method="auto"), 0.75)), *seen[1:])
    assert "read from several points; that of q, which is drawn, lies 0.75 ± 0.25" in several
    begun = {key: value for key, value in entry.row.items() if key != "scores"}
    entry.path.mkdir(parents=True)
    (entry.path / "model.safetensors").touch()
    alone = view.page(stored_runs.Entry(entry.path, begun), entry.row["scores"], looked)  # as save_pretrained leaves it
    assert "unfinished" not in alone
    (entry.path / "state.safetensors").touch()
    for row, words in (
        (begun, "The run is unfinished; this is its last checkpoint."),
        (begun | {"failed": f"Why. {EVIL}"}, "Why. &lt;/script&gt;&lt;svg"),
    ):
        page = view.page(stored_runs.Entry(entry.path, row), entry.row["scores"], looked)
        assert words in page
        assert TAG not in page  # the run's name is hostile too
