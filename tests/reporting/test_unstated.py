"""The search for the paper's setup: what agrees with its figures at 1M, and what more samples bring at equal steps."""

from pathlib import Path

import pytest

import made_up
from auxmod.experiments import recipes, wants
from auxmod.files import write_lines
from auxmod.reporting import unstated

TIMES = {1: 0.20, 2: 0.79, 4: 0.811, 10: 0.9}
"""What a run of so many epochs is made to have learned; the paper's figures are 97.4, 81.1 and 53.8."""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """aux at N = 64 in the preset `paper`, with 1M samples and with 100K; of the others, nothing."""
    rows = [
        made_up.row(want.run, match=TIMES[want.run.training.epochs])
        for want in recipes.RECIPES["longer"]("paper")
        if want.variant == "aux" and want.run.problem.n == 64 and want.run.model.lift
    ]
    rows += [
        made_up.row(want.run, match={97: 0.1, 257: 0.21, 433: 0.2}[want.run.problem.q])
        for want in recipes.RECIPES["table1b"]("paper", (wants.SMALL,))
        if want.variant == "aux" and want.run.problem.n == 64
    ]
    write_lines(tmp_path / "longer.jsonl", rows)
    return tmp_path


def test_each_setup_stands_beside_the_papers_figure(place: Path) -> None:
    lines = {line.split(" | ")[0]: line.strip("| ").split(" | ")[1:] for line in unstated.longer(place).splitlines()}
    assert lines["| case"][1:] == [
        "the paper's",
        *(f"`paper`, {e} epoch{'s' * (e > 1)}" for e in TIMES),
        "`stated`, 10 epochs",
    ]
    assert lines["| angular, N = 64, q = 257"] == ["0.4", "81.1", "20.0", "79.0", "81.1", "90.0", "not run"]
    assert lines["| token, N = 8, q = 31"][2:] == ["not run"] * 5


def test_agreement_is_counted_over_what_was_run(place: Path) -> None:
    (line,) = (line for line in unstated.longer(place).splitlines() if line.startswith("| angular: so many agree"))
    assert [cell.split(",")[0].strip() for cell in line.strip("| ").split("|")[3:]] == [
        "0 of 3",
        "1 of 3",
        "1 of 3",
        "0 of 3",
    ]


def test_more_samples_are_compared_at_equal_steps(place: Path) -> None:
    assert unstated.longer(place).endswith("−1.0 to +10.0 points, +3.0 in the mean (3 cells).")
