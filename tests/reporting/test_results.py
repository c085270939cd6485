"""Tests of looking up results by configuration: over seeds and files, with failures and missing runs."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

import made_up
from auxmod.errors import UserError
from auxmod.experiments import catalogue, recipes, results_file
from auxmod.experiments.results_file import result_row
from auxmod.experiments.run_directory import Run
from auxmod.files import write_lines
from auxmod.reporting import results, tables
from auxmod.reporting.web import stored_runs
from tiny import tiny

TREE = Path(__file__).parents[2]


def seeds(count: int = 3) -> list:
    return [tiny(seed=seed) for seed in range(count)]


def test_mean_and_deviation_over_seeds() -> None:
    stored = results.index(made_up.row(run, share) for run, share in zip(seeds(), (0.5, 0.6, 0.7), strict=True))
    found = results.collect(stored, tiny(seed=99))
    assert found is not None
    assert (found.mean, found.std, found.count) == (pytest.approx(60), pytest.approx(10), 3)
    assert results.chance(tiny()) == pytest.approx(100 / 7)
    assert results.collect(stored, tiny(seed=1), tau=0.05).mean == pytest.approx(90)  # type: ignore[union-attr]


def test_one_seed_has_no_deviation_and_none_no_figure() -> None:
    stored = results.index([made_up.row(tiny(), 0.5)])
    found = results.collect(stored, tiny())
    assert found is not None
    assert found.std is None
    assert results.collect(stored, tiny(lr=0.5)) is None
    assert results.collect({}, tiny()) is None


def test_the_last_of_one_run_counts_and_a_label_does_not() -> None:
    as_custom = dataclasses.replace(tiny(), method=dataclasses.replace(tiny().method, method="custom"))
    stored = results.index([made_up.row(tiny(), 0.1), made_up.row(as_custom, 0.2)])
    found = results.collect(stored, tiny())
    assert found is not None
    assert (found.mean, found.count) == (pytest.approx(20), 1)


def test_a_run_that_was_asked_often_serves_where_once_is_enough() -> None:
    often = tiny(asks=16)
    stored = results.index([made_up.row(often, 0.3)])
    assert results.missing(stored, [tiny(), tiny(seed=1)]) == [tiny(seed=1)]
    assert results.collect(stored, tiny()).mean == pytest.approx(30)  # type: ignore[union-attr]
    once = results.index([made_up.row(tiny(), 0.2)])
    assert results.missing(once, [often, tiny(asks=4)]) == [often, tiny(asks=4)]
    both = results.index([made_up.row(tiny(), 0.2), made_up.row(often, 0.3)])
    assert results.collect(both, tiny()).mean == pytest.approx(20)  # type: ignore[union-attr]
    assert results.collect(both, often).mean == pytest.approx(30)  # type: ignore[union-attr]


def test_what_failed_is_in_no_mean_and_is_counted() -> None:
    failed = [result_row(run, None, {}, failed="The loss stopped being finite.") for run in seeds(3)]
    stored = results.index([made_up.row(tiny(seed=0), 0.5), *failed])
    found = results.collect(stored, tiny())
    assert found is not None
    assert (found.mean, found.count, found.failed) == (50, 1, 2)
    assert (results.missing(stored, seeds(4)), results.failures(stored, seeds(4))) == (seeds(4)[3:], seeds(3)[1:])
    all_failed = results.collect(results.index(failed), tiny())
    assert all_failed is not None
    assert (all_failed.mean, all_failed.failed) == (None, 3)


def test_what_runs_were_made_on_is_told_once_each_with_all_commits() -> None:
    made = [{"device": "a", "precision": "fp16", "commit": commit} for commit in ("c1", "c2", "c1")]
    made += [{"device": "a", "commit": None}, {"device": {"b": "\x1b[2J\n"}}, {}]
    rows = [made_up.row(run, 0.5) | {"provenance": each} for run, each in zip(seeds(6), made, strict=True)]
    first, *others = results.made_on(rows)
    assert first == ("a", "fp16", ("c1", "c2"))
    assert first.told() == "a, fp16 trunk, commits `c1`, `c2`"
    assert first.told(named=False) == "a, fp16 trunk, 2 commits"
    assert [each.told(named=False) for each in others] == ["a", "{'b': '\\x1b[2J\\n'}", ""]
    assert results.origins(results.index(rows[:1]), [tiny(seed=7), tiny(lr=0.5)]) == "a, fp16 trunk, commit `c1`"
    (strange,) = results.made_on([rows[0] | {"provenance": {"device": "\x1b[2J\nb"}}])
    assert strange.device == " [2J b"


@pytest.mark.parametrize(("embedding", "percent"), [("token", 100 * 9 / 97), ("angular", 10.0)])
def test_chance_is_that_of_the_runs_answers(embedding: str, percent: float) -> None:
    assert results.chance(tiny(embedding=embedding, q=97), 0.05) == pytest.approx(percent)


def test_a_directory_is_read_whole_and_other_logs_in_it_are_left(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", [made_up.row(tiny(seed=0), 0.2)])
    write_lines(tmp_path / "b.jsonl", [made_up.row(tiny(seed=1), 0.4), made_up.row(tiny(seed=0), 0.3)])
    write_lines(tmp_path / "speed.jsonl", [{"tried": "something else"}])
    run = Run.create(tmp_path / "runs" / "one", tiny(seed=2))
    run.record({"device": "here"})
    run.log({"step": 3, "loss": 1.0, "accuracy": 0.25})
    run.finish(made_up.row(tiny(), 0.8)["scores"])
    found = results.collect(results.read(tmp_path), tiny())
    assert found is not None
    assert (found.mean, found.count) == (pytest.approx(50), 3)  # 30, 40, 80
    assert results.collect(results.read(run.path), tiny()) is not None
    assert results.curves(results.read(run.path), tiny()) == [[(3, 25.0)]]
    assert results.find(results.read(run.path), tiny())[0]["provenance"]["device"] == "here"


@pytest.mark.parametrize("first", [b'{"has', b"", b"\n"])
def test_a_damaged_file_in_a_directory_is_refused_and_not_passed_over(first: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_lines(path, [made_up.row(tiny())])
    path.write_bytes(first + path.read_bytes().partition(b"{")[2])
    with pytest.raises(UserError, match=r"Line 1 of .*a\.jsonl is not JSON"):
        results.read(tmp_path)


def test_a_row_whose_configuration_lost_its_name_is_refused_too(tmp_path: Path) -> None:
    row = made_up.row(tiny())
    write_lines(tmp_path / "a.jsonl", [{"confi": row.pop("config"), **row}, made_up.row(tiny(seed=1))])
    with pytest.raises(UserError, match=r"Line 1 of .*a\.jsonl"):
        results.read(tmp_path)


def test_what_is_no_run_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").mkdir()
    assert results.read(tmp_path) == {}
    (tmp_path / "x.jsonl" / "result.json").write_text("{}")
    with pytest.raises(UserError, match=r"x\.jsonl is not a run: it has no config\.json"):
        results.read(tmp_path)


def test_why_a_run_directory_failed_is_kept(tmp_path: Path) -> None:
    Run.create(tmp_path / "run", tiny()).finish({"failed": "The loss stopped being finite."})
    (row,) = results.find(results.read(tmp_path), tiny())
    assert row["failed"] == "The loss stopped being finite."


def test_the_repositorys_own_results_are_whole() -> None:
    """Every line has a correct checksum or none; files that hold no results, such as logs and trials, are skipped."""
    found, notes = catalogue.find(TREE / "results")
    assert len(found) > 1000
    assert notes == []


def test_a_report_reads_what_a_table_does() -> None:
    """A trial's row has a tag; its run may also have a result without one, and only that counts."""
    entries, _ = stored_runs.read(TREE / "results")
    assert not any("tag" in entry.row for entry in entries)
    by_report, by_table = results.index(entry.row for entry in entries), results.read(TREE / "results")
    for item in ("table1a", "table1b", "table2", "table3", "configs"):
        for preset in ("paper", "best"):
            assert tables.build(item, preset, by_report).cells == tables.build(item, preset, by_table).cells


def test_curves_and_their_mean() -> None:
    rows = [made_up.row(run, share) for run, share in zip(seeds(2), (0.5, 0.7), strict=True)]
    rows[1]["curve"] = rows[1]["curve"][:10]
    stored = results.index(rows)
    assert [len(line) for line in results.curves(stored, tiny())] == [18, 10]
    mean = results.mean_curve(stored, tiny())
    assert len(mean) == 10
    last = rows[0]["curve"][9]
    assert mean[-1] == (last["step"], pytest.approx(100 * last["accuracy"] * 1.2))
    assert results.mean_curve({}, tiny()) == []


def test_the_place_is_results_here_or_that_of_the_source_tree(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    tree = Path(results.__file__).parents[3] / "results"  # there is none where the package was installed by itself
    assert results.default_place() == (tree if tree.is_dir() else Path("results"))
    (tmp_path / "results").mkdir()
    assert results.default_place() == Path("results")
    assert results.read() == {}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("not json\n", "Line 1 of .* is not JSON"),
        ('{"a": 1}\n', "Line 1 of .* is not a result"),
        (json.dumps(made_up.row(tiny()) | {"config": {"format": 9}}) + "\n", "has format 9"),
    ],
)
def test_a_file_that_is_none_is_refused_in_a_sentence(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(content)
    with pytest.raises(UserError, match=words) as refusal:
        results.read(path)
    assert str(refusal.value).endswith(".")


def test_a_place_that_is_not_there_and_a_row_without_its_figure_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or directory"):
        results.read(tmp_path / "nowhere")
    row = made_up.row(tiny())
    with pytest.raises(UserError, match=r"has no match accuracy, asked 16 times"):
        results.collect(results.index([row]), tiny(), asks=16)
    del row["scores"]["tau"]["0.05"]
    with pytest.raises(UserError, match=r"has no accuracy at τ = 0\.05"):
        results.collect(results.index([row]), tiny(), tau=0.05)


def test_a_file_that_cannot_be_opened_is_a_sentence(tmp_path: Path, monkeypatch) -> None:
    write_lines(tmp_path / "a.jsonl", [made_up.row(tiny())])

    def refuse(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(results_file, "open", refuse, raising=False)
    with pytest.raises(UserError, match=r"a\.jsonl cannot be read \(Permission denied\)"):
        results.read(tmp_path)


def test_a_recipe_cell_survives_a_file(tmp_path: Path) -> None:
    runs = recipes.cells("redbox", ["paper"])[:5]
    write_lines(tmp_path / "grid.jsonl", made_up.rows(runs))
    assert results.missing(results.read(tmp_path), runs) == []
