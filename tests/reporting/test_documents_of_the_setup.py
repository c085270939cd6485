"""Tests of the page on the paper's setup: how long it may have trained, and what more samples bring at equal steps."""

import itertools
from pathlib import Path

import pytest

import made_up
from auxmod.experiments import recipes, wants
from auxmod.files import write_lines
from auxmod.reporting import published
from auxmod.reporting.documents import blocks, setup_search

TIMES = {1: 0.20, 2: 0.79, 4: 0.811, 10: 0.9}
"""The made-up accuracy of a run, by its number of epochs."""
TABLES = tuple(itertools.product((wants.SMALL, wants.LARGE), wants.SIZES))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Only `aux` at N = 64 in the preset `paper` was run, with 1M samples and with 100K."""
    rows = [
        made_up.row(want.run, match=TIMES[want.run.training.epochs])
        for want in recipes.RECIPES["longer"]("paper", (wants.LARGE,))
        if want.run.problem.n == 64 and want.preset == "paper"
    ]
    rows += [
        made_up.row(want.run, match={97: 0.1, 257: 0.21, 433: 0.2}[want.run.problem.q])
        for want in recipes.RECIPES["table1b"]("paper", (wants.SMALL,))
        if want.variant == "aux" and want.run.problem.n == 64
    ]
    write_lines(tmp_path / "longer.jsonl", rows)
    return tmp_path


def cells(place: Path, start: str, samples: int = wants.LARGE, embedding: str = "angular") -> list[str]:
    """The cells of the row that begins with ``start``, in the table of this number of samples and embedding."""
    whole = [text for text in setup_search.longer(place).split("\n\n") if text.startswith("| case |")]
    tables = {(each, count): table for (count, each), table in zip(TABLES, whole, strict=True)}
    (line,) = (line for line in tables[embedding, samples].splitlines() if line.startswith(f"| {start} |"))
    return [cell.strip() for cell in line.split("|")[2:-1]]


def test_each_setup_stands_beside_the_papers_figure(place: Path) -> None:
    heads = [f"`paper`, {count} epoch{'s' * (count > 1)}" for count in TIMES]
    assert cells(place, "case") == ["chance", "the paper's", *heads]
    assert cells(place, "angular, N = 64, q = 257") == ["0.4", "81.1", "20.0", "79.0", "81.1", "90.0"]
    assert cells(place, "angular, N = 32, q = 257")[2:] == ["not run"] * 4
    heads = [f"`paper+init=0.02`, {count} epoch{'s' * (count > 1)}" for count in TIMES]
    assert cells(place, "case", embedding="token")[2:] == [*heads, "`paper`, 10 epochs", "`stated`, 10 epochs"]
    assert cells(place, "token, N = 8, q = 31", embedding="token")[2:] == ["not run"] * 6


def test_fewer_samples_have_a_table_of_their_own(place: Path) -> None:
    """The paper's figures are 83.2, 43.2 and 29.0; for these it gives no spread over pairs."""
    assert cells(place, "case", wants.SMALL)[2:] == ["`paper`, 10 epochs"]
    assert cells(place, "angular, N = 64, q = 257", wants.SMALL) == ["0.4", "43.2", "21.0"]
    assert cells(place, "so many agree", wants.SMALL)[2:] == ["0 of 3, 34.8"]
    assert setup_search.longer(place).count("| in the paper's spread |") == 2  # both with 1M samples


def test_agreement_is_counted_over_what_was_run(place: Path) -> None:
    """The paper's figures are 97.4, 81.1 and 53.8."""
    agree = ["0 of 3, 57.4", "1 of 3, 15.2", "1 of 3, 14.5", "0 of 3, 17.5"]
    assert cells(place, "so many agree")[2:] == agree
    assert cells(place, "so many agree", embedding="token")[2:] == [""] * 6


def test_what_lies_within_the_papers_own_spread_is_counted(place: Path) -> None:
    """From its worst to its best pair, the paper has 91.8 to 99.5, 64.7 to 94.1 and 34.0 to 78.4."""
    assert cells(place, "in the paper's spread")[2:] == ["0 of 3", "1 of 3", "1 of 3", "1 of 3"]


def test_a_setup_of_which_nothing_was_run_is_named_beneath(place: Path) -> None:
    notes = [line for line in setup_search.longer(place).splitlines() if line.startswith("Match accuracy")]
    assert [" Not run: " in note for note in notes] == [False, True, False, True]  # with tokens, nothing was run at all
    assert "Not run: `stated`, 10 epochs; `stated`, 20 epochs; `stated`, 30 epochs; `stated+pooling=max+" in notes[1]


def test_more_samples_are_compared_at_equal_steps(place: Path) -> None:
    assert setup_search.longer(place).endswith("−1.0 to +10.0 points, +3.0 in the mean (3 cells).")


def test_where_little_was_run_nothing_is_compared(tmp_path: Path) -> None:
    write_lines(tmp_path / "longer.jsonl", [])
    assert setup_search.setup(tmp_path) == setup_search.finalists(tmp_path) == blocks.NONE
    assert "in the mean (" not in setup_search.longer(tmp_path)


def test_what_was_tried_on_one_angular_cell_is_told_at_the_stated_rate_and_at_all(tmp_path: Path) -> None:
    rows = []
    wanted = recipes.RECIPES["finalists"]("paper", (wants.SMALL,))
    for run in dict.fromkeys(want.run for want in wanted if want.variant == "aux"):
        if (run.model.embedding, run.problem.n, run.problem.q) == ("angular", 16, 257):
            match = 0.6 + 0.1 * (run.training.lr == 1e-4) + 0.05 * (run.model.pooling == "mean")
            rows.append(made_up.row(run, match=match if run.model.init == "0.02" else 0.5))
    (tmp_path / "trials").mkdir()
    write_lines(tmp_path / "trials" / "precision.jsonl", [])
    write_lines(tmp_path / "finalists.jsonl", rows)
    slow = sum(row["config"]["training"]["lr"] == 3e-5 for row in rows)
    (line,) = (line for line in setup_search.finalists(tmp_path).splitlines() if line.startswith("On angles"))
    assert line.startswith(f"On angles, N = 16, q = 257, {len(rows)} configurations of `aux` were tried, the paper's")
    assert f"93.0 %. Of the {slow} at the stated rate the best has 65.0 % (init 0.02, pooling mean); of all" in line
    assert line.endswith(" 75.0 % (init 0.02, lr 0.0001, pooling mean).")


def test_finalists_are_measured_at_each_number_of_samples_apart(tmp_path: Path) -> None:
    off, rows = {wants.SMALL: 0.4, wants.LARGE: 7.0}, []
    for want in recipes.RECIPES["finalists"]("paper", ()):
        model, facts = want.run.model, want.facts
        if (model.embedding, model.init, model.pooling, want.variant) == ("token", "0.02", "max", "aux"):
            theirs = published.find("table1a", **{name: facts[name] for name in ("n", "q", "samples", "method")})
            rows.append(made_up.row(want.run, match=(theirs - off[facts["samples"]]) / 100))
    (tmp_path / "trials").mkdir()
    write_lines(tmp_path / "trials" / "precision.jsonl", [])
    write_lines(tmp_path / "finalists.jsonl", rows)
    (line,) = (line for line in setup_search.finalists(tmp_path).splitlines() if "init 0.02, pooling max |" in line)
    assert [cell.strip() for cell in line.split("|")[2:-1]] == ["9 of 9, 0.4", "", "", "", "0 of 9, 7.0", ""]
