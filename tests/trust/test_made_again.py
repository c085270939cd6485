"""Test that a stored result can be made again: one behind the README's table, with the command that made it."""

from __future__ import annotations

from pathlib import Path

from auxmod.cli import main
from auxmod.experiments import recipes
from auxmod.reporting import results

ROOT = Path(__file__).parents[2]


def test_a_cell_of_the_repository_made_again_agrees_within_the_noise_of_its_seeds(tmp_path: Path) -> None:
    (run,) = (want.run for want in recipes.headline() if want.variant == "aux")
    stored = results.collect(results.read(ROOT / "results"), run)
    place = tmp_path / "again.jsonl"
    arguments = ("--method", "aux", "--seeds", "1", "--results", str(place), "--device", "cpu", "--quiet")
    assert main(["reproduce", "headline", *arguments]) == 0
    again = results.collect(results.read(place), run)
    assert stored is not None
    assert again is not None
    assert (stored.count, again.count) == (3, 1)
    assert abs((again.mean or 0.0) - (stored.mean or 0.0)) <= 5 * (stored.std or 0.0)
