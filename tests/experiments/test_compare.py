"""Tests of `compare`: ways to choose K and r are compared at equal cost, and what was compared is not run again."""

from pathlib import Path
from typing import Any

import pytest
import torch

from auxmod.errors import UserError
from auxmod.experiments.compare import FIXED, compare
from auxmod.experiments.resolving import resolved
from auxmod.experiments.space import DEFAULT
from auxmod.files import read_lines
from tiny import SETTINGS

CPU = torch.device("cpu")
GIVEN = {name: value for name, value in SETTINGS.items() if name not in ("n", "q")} | {"epochs": 1}
OPTIONS: dict[str, Any] = {"grid": {"k": "4:5", "r": "0.2,0.4"}, "members": 2, "seeds": (1, 2)}
WAYS = ("search", "fixed")
pytestmark = pytest.mark.usefixtures("quick_halving")


def test_ways_to_choose_are_compared_at_equal_cost(tmp_path: Path) -> None:
    rows = compare([(4, 7)], GIVEN, tmp_path, CPU, **OPTIONS)
    assert [row["way"] for row in rows] == ["grid", "search", "wide", "theory", "fixed"]
    assert [row["cost"] <= 4 for row in rows] == [True] * 5
    assert rows[0]["cost"] == 4
    assert all(row["seeds"] == 2 and 0 <= row["match"] <= 1 for row in rows)
    finals = {row["hash"]: row["scores"] for row in read_lines(tmp_path / "final.jsonl")}
    fixed = [finals[resolved({**GIVEN, "n": 4, "q": 7, **FIXED, "seed": seed}, None).hash] for seed in (1, 2)]
    for figure, shares in (("match", [s["match"] for s in fixed]), ("near", [s["tau"]["0.005"] for s in fixed])):
        assert rows[4][figure] == pytest.approx(sum(shares) / 2)
    assert set(rows[2]["choice"]) == set(DEFAULT) - {"lr"}  # `lr` is given
    before = (tmp_path / "compare.jsonl").read_bytes()
    assert compare([(4, 7)], GIVEN, tmp_path, CPU, **OPTIONS) == rows
    assert (tmp_path / "compare.jsonl").read_bytes() == before
    more = compare([(3, 5), (4, 7)], GIVEN, tmp_path, CPU, **OPTIONS, ways=("theory", "fixed"))
    assert [(row["n"], row["way"]) for row in more[:2]] == [(3, "theory"), (3, "fixed")]
    assert more[2:] == rows[3:]  # only the ways that are asked for are returned


def test_where_nothing_can_be_chosen_a_sentence_says_so(tmp_path: Path) -> None:
    for way, words in (("grid", "Every cell of the grid failed"), ("search", "No trial of the search")):
        with pytest.raises(UserError, match=words):
            compare([(4, 7)], GIVEN | {"lr": 1e30}, tmp_path / way, CPU, **OPTIONS, ways=(way,))


def test_another_embedding_or_preset_in_the_same_place_is_compared_too(tmp_path: Path) -> None:
    cases = [("token", "paper"), ("angular", "paper"), ("angular", "best")]
    rows = {}
    for embedding, preset in cases:
        settings = GIVEN | {"embedding": embedding}
        rows[embedding, preset] = compare([(4, 7)], settings, tmp_path, CPU, **OPTIONS, ways=WAYS, preset=preset)
    for (embedding, preset), made in rows.items():
        told = [(row["embedding"], row["preset"], row["n"], row["q"], row["way"]) for row in made]
        assert told == [(embedding, preset, 4, 7, way) for way in WAYS]
        again = GIVEN | {"embedding": embedding}
        assert compare([(4, 7)], again, tmp_path, CPU, **OPTIONS, ways=WAYS, preset=preset) == made
    assert len((tmp_path / "compare.jsonl").read_text().splitlines()) == 6


def test_other_settings_or_seeds_in_the_same_place_are_compared_too(tmp_path: Path) -> None:
    (first,) = compare([(4, 7)], GIVEN, tmp_path, CPU, **OPTIONS, ways=("fixed",))
    (longer,) = compare([(4, 7)], GIVEN | {"epochs": 2}, tmp_path, CPU, **OPTIONS, ways=("fixed",))
    (more,) = compare([(4, 7)], GIVEN, tmp_path, CPU, **OPTIONS | {"seeds": (1, 2, 3)}, ways=("fixed",))
    assert (first["seeds"], longer["seeds"], more["seeds"]) == (2, 2, 3)
    assert len({first["setup"], longer["setup"], more["setup"]}) == 3
