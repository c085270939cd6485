"""Tests of search spaces given as text."""

from typing import Any

import pytest

from auxmod.errors import UserError
from auxmod.experiments.space import DEFAULT, Interval, as_setting, parse, parse_space


@pytest.mark.parametrize(
    ("name", "text", "part"),
    [
        ("k", "4:9", Interval(4, 9, 1)),
        ("k", "4:9:2", Interval(4, 8, 2)),
        ("samples", "100K:1M", Interval(100_000, 1_000_000, 1)),
        ("samples", "100K:1M:300K", Interval(100_000, 1_000_000, 300_000)),
        ("k", "4:6,9", [4, 5, 6, 9]),
        ("k", "4:4", [4]),
        ("r", "0.05:0.6", Interval(0.05, 0.6)),
        ("r", "0.1:0.4:0.1", Interval(0.1, 0.4, 0.1)),
        ("lr", "1e-5:1e-3:log", Interval(1e-5, 1e-3, None, True)),
        ("width", "16:512:log", Interval(16, 512, None, True)),
        ("init", "0.01:0.1:log", Interval(0.01, 0.1, None, True)),
        ("init", "default,0.02", ["default", "0.02"]),
        ("pooling", "cls,mean", ["cls", "mean"]),
        ("moduli", "1,2,4;1,8", [(1, 2, 4), (1, 8)]),
        ("seed", 3, [3]),
    ],
)
def test_a_setting_is_a_range_a_list_or_one_value(name: str, text: Any, part: Any) -> None:
    assert parse(name, text) == part


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"k": "9:4"}, "--k is '9:4', an empty range"),
        ({"k": "4.5:9"}, "must be whole numbers"),
        ({"k": "4:9:x"}, "a range to search is low:high"),
        ({"k": "4:5:6:7"}, "a range to search is low:high"),
        ({"r": "0.1:0.4:-0.1"}, "a step is a number above 0"),
        ({"lr": "0:1:log"}, "begins above 0"),
        ({"seed": "0:2", "k": "4:9"}, "a trial is one run"),
        ({"test_data": "a.npz,b.npz"}, "--test-data has several values, and a search would choose the easiest"),
        ({"n": "4,5", "k": "4:9"}, "--n has several values, and a search would choose the easiest: give one"),
        ({"q": "17:2003"}, "--q has several values"),
        ({"colour": "red"}, "There is no setting 'colour'"),
        ({name: text.partition(",")[0].partition(":")[0] for name, text in DEFAULT.items()}, "nothing is left"),
    ],
)
def test_a_bad_space_is_a_sentence(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        parse_space(given)


def test_of_a_large_q_near_answers_are_sought_and_its_study_says_so() -> None:
    small, large = (parse_space({"q": q, "k": "4:9"}) for q in ("433", "3329"))
    assert (small.by, large.by) == ("match", "near")
    assert '"by": "near"' in large.describe()
    assert '"by"' not in small.describe()


def test_where_nothing_is_open_the_usual_is_searched_but_for_what_is_fixed() -> None:
    assert list(parse_space({"n": "8", "lr": "1e-4"}).searched) == ["k", "r", "draw", "init", "pooling"]
    assert list(parse_space({"method": "sparse"}).searched) == ["lr", "init", "pooling"]
    assert parse_space({"method": "auto"}).searched == {"lr": Interval(5e-4, 3e-2, log=True)}
    assert list(parse_space({"moduli": "1,3,9"}).searched) == ["lr", "init", "pooling"]
    adamw, muon = Interval(1e-5, 1e-3, log=True), Interval(5e-4, 3e-2, log=True)
    assert parse_space({"method": "auto", "optimiser": "adamw"}).searched == {"lr": adamw}
    assert parse_space({}).searched["lr"] == parse_space({}, "paper").searched["lr"] == adamw
    assert parse_space({}, "best").searched["lr"] == parse_space({"optimiser": "muon"}).searched["lr"] == muon
    assert list(parse_space({"k": "4:9", "r": "0.3"}).searched) == ["k"]


def test_what_a_presets_name_changes_is_fixed() -> None:
    space = parse_space({}, "demo+lr=0.01+pooling=max")
    assert list(space.searched) == ["k", "r", "draw", "init"]
    assert (space.fixed["lr"], space.fixed["pooling"]) == (0.01, "max")
    assert list(parse_space({"lr": "1e-4,1e-3"}, "demo+lr=0.01").searched) == ["lr"]  # a flag wins


def test_choices_become_settings_of_their_own_type() -> None:
    space = parse_space({"moduli": "1,2,4;1,8", "init": "0.01:0.1", "r": "0.3"})
    assert space.searched["moduli"] == ["1,2,4", "1,8"]
    assert space.settings({"moduli": "1,8", "init": 0.0123456789}) == {"r": 0.3, "moduli": (1, 8), "init": "0.0123457"}
    assert as_setting("r", 0.1 + 0.2) == 0.3
    assert [as_setting("k", 5.0), as_setting("k", 5.5)] == [5, 5.5]  # the configuration refuses the second
    assert as_setting("bias", True) is True
    assert space.name == parse_space({"r": "0.3", "init": "0.01:0.1", "moduli": "1,2,4;1,8"}).name


@pytest.mark.parametrize(("name", "text"), [("moduli", "1,1234567;1,3"), ("weights", "0.33333333,0.66666667;0.5,0.5")])
def test_lists_are_searched_as_they_were_typed(name: str, text: str) -> None:
    space = parse_space({"n": 4, "q": 7, "moduli": "1,2", name: text})
    first, *_ = space.searched[name]
    assert as_setting(name, first) == tuple(map(float, text.split(";")[0].split(",")))
