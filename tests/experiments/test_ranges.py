"""Tests that lists and ranges become cells, exactly and in a stable order, and that a mistake gives a sentence."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxmod.errors import UserError
from auxmod.experiments.ranges import MOST_CELLS, TYPES, alternatives, expand, expand_all, read_tables
from auxmod.settings import SETTINGS, build


def test_of_several_methods_k_and_r_are_of_aux_alone() -> None:
    cells = expand_all([{"method": "naive,aux", "k": "4:5", "lr": "0.1,0.2"}])
    lone = [{"method": "naive", "lr": lr} for lr in (0.1, 0.2)]
    assert cells == lone + [{"method": "aux", "k": k, "lr": lr} for k in (4, 5) for lr in (0.1, 0.2)]
    together = expand_all([{"seed": "0:1", "method": "naive,aux", "k": "4:5"}])  # in the order given
    assert [(cell["seed"], cell["method"], cell.get("k")) for cell in together] == [
        (seed, *cell) for seed in (0, 1) for cell in (("naive", None), ("aux", 4), ("aux", 5))
    ]
    twice = expand_all([{"method": ["naive", "aux"], "k": 4, "seed": [0, 0]}])
    assert [cell["method"] for cell in twice] == ["naive", "naive", "aux", "aux"]
    left_open = expand_all([{"method": [None, "aux", "naive"], "k": [4, 5]}])
    assert [cell.get("k") for cell in left_open] == [4, 5, 4, 5, None]
    many = {"method": "naive,sparse,auto,aux", "k": "2:51", "r": "0.01:0.5:0.01", "seed": "0:10"}
    assert len(expand_all([many])) == 11 * (3 + 50 * 50)  # the whole product would be too many
    apart = [{"method": "naive", "k": 4}, {"method": "aux", "k": 4}]  # as in the cells of a file
    assert expand_all(apart) == [{"method": "naive"}, {"method": "aux", "k": 4}]
    assert expand_all([{"method": "naive", "k": 4}]) == [{"method": "naive", "k": 4}], "to be refused"


@pytest.mark.parametrize(
    ("name", "text", "values"),
    [
        ("k", "4:9", [4, 5, 6, 7, 8, 9]),
        ("k", "9:3:-2", [9, 7, 5, 3]),
        ("k", "4:9:2", [4, 6, 8]),
        ("k", "7:7", [7]),
        ("k", "4, 6:8 ,16", [4, 6, 7, 8, 16]),
        ("seed", "0:2", [0, 1, 2]),
        ("seed", "9007199254740993", [9007199254740993]),
        ("samples", "100_000,1e6", [100_000, 1_000_000]),
        ("r", "0.1:0.4:0.1", [0.1, 0.2, 0.3, 0.4]),
        ("r", "0.1:0.35:0.1", [0.1, 0.2, 0.3]),
        ("r", "0.1:0.9:0.1", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]),
        ("lr", "1e-4:4e-4:1e-4", [1e-4, 2e-4, 3e-4, 4e-4]),
        ("clip", "0:2", [0.0, 1.0, 2.0]),
        ("init", "default,0.01:0.03:0.01", ["default", "0.01", "0.02", "0.03"]),
        ("method", "naive,aux", ["naive", "aux"]),
        ("bias", "true,False", [True, False]),
        ("data", "a:b.npz,c.npz", ["a:b.npz", "c.npz"]),
        ("moduli", "1,2,4;1,8", [(1, 2, 4), (1, 8)]),
        ("weights", ".5,.5;0.75,0.25", [(0.5, 0.5), (0.75, 0.25)]),
        ("moduli", [1, 2, 4], [(1, 2, 4)]),
        ("moduli", [[1, 2], [1, 4]], [(1, 2), (1, 4)]),
        ("k", 4, [4]),
        ("k", [4, "6:7"], [4, 6, 7]),
        ("bias", [True, False], [True, False]),
    ],
)
def test_what_is_written_means(name: str, text: Any, values: list[Any]) -> None:
    assert alternatives(name, text) == values
    assert [type(value) for value in alternatives(name, text)] == [type(value) for value in values]


@given(st.integers(-50, 50), st.integers(1, 40), st.integers(0, 200), st.integers(0, 6))
def test_a_range_has_both_ends_and_exact_decimals(first: int, step: int, count: int, places: int) -> None:
    unit = Decimal(1).scaleb(-places)
    texts = [f"{first * unit:f}", f"{(first + count * step) * unit:f}", f"{step * unit:f}"]
    expected = [float(str((first + i * step) * unit)) for i in range(count + 1)]
    assert alternatives("lr", ":".join(texts)) == expected


def test_the_product_is_in_the_order_given_and_the_last_varies_fastest() -> None:
    cells = expand({"n": "8,4", "k": "4:5", "q": 7})
    assert [(cell["n"], cell["k"]) for cell in cells] == [(8, 4), (8, 5), (4, 4), (4, 5)]
    assert [list(cell) for cell in cells] == [["n", "k", "q"]] * 4
    assert expand({}) == [{}]


def test_every_setting_has_a_type_and_every_cell_is_a_run() -> None:
    assert set(TYPES) == {*SETTINGS, "k", "r", "seed"}
    cells = expand({"n": "4,8", "k": "4:5", "r": "0.1:0.2:0.1", "bias": "true,false", "init": "0.02,default"})
    assert len({build(**cell).hash for cell in cells}) == 32


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("colour", "4:9", "There is no setting 'colour'; known are: .*activation"),
        ("k", "9:4", "--k is '9:4', an empty range"),
        ("k", "4:9:-1", "an empty range: steps of -1 do not lead from 4 to 9"),
        ("k", "4:9:0", "step of 0"),
        ("k", "4:9:1:1", "a range is first:last or first:last:step"),
        ("k", "4:", "--k is '4:', but must be a number"),
        ("k", ":9", "but must be a number"),
        ("k", "four", "--k is 'four', but must be a number, a list such as 4,6 or a range such as 4:9"),
        ("k", "4,,5", "leaves a value empty"),
        ("k", "", "leaves a value empty"),
        ("k", [], "--k is an empty list"),
        ("k", "4.5", "whole numbers"),
        ("k", "4:5:0.5", "whole numbers"),
        ("r", "0.1:0.4", "say its step"),
        ("r", "nan", "must be a number"),
        ("lr", "1e999999", "must be a number"),
        ("lr", "0:10:1e-999999", "must be a number"),
        ("seed", "0:999999999", "more than the 100,000 cells"),
        ("bias", "maybe", "true or false"),
        ("moduli", "1,two;1,4", "a semicolon before another list"),
        ("moduli", "1,2.5", "whole numbers"),
        ("moduli", 4, "must be a list"),
        ("test_samples", "x", "--test-samples is 'x'"),
    ],
)
def test_a_mistake_is_a_sentence(name: str, text: Any, words: str) -> None:
    with pytest.raises(UserError, match=words) as caught:
        expand({name: text})
    assert str(caught.value).endswith(".")


def test_too_many_cells_are_refused_before_they_are_made() -> None:
    with pytest.raises(UserError, match=r"1,000,000,000,000 cells, but a sweep has at most 100,000"):
        expand(dict.fromkeys(("n", "q", "seed", "k"), "1:1000"))
    with pytest.raises(UserError, match=r"at most 100,000"):
        expand_all([{"seed": f"1:{MOST_CELLS}"}, {"seed": 1}])


# -- files ----------------------------------------------------------------------------------------------------


def test_a_file_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text("""
        n = 4
        seed = "0:1"
        [training]
        samples = [100, 200]
        [[cells]]
        method = "naive"
        [[cells]]
        method = "aux"
        k = "4:6"
        n = 8
    """)
    cells = expand_all(read_tables(path))
    assert len(cells) == 4 + 12
    assert cells[0] == {"n": 4, "seed": 0, "samples": 100, "method": "naive"}
    assert cells[-1] == {"n": 8, "seed": 1, "samples": 200, "method": "aux", "k": 6}
    path.write_text("k = 4\nmoduli = [[1, 2], [1, 4]]")
    assert read_tables(path) == [{"k": 4, "moduli": [[1, 2], [1, 4]]}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("k = ", "cannot be read"),
        ("cells = 3", r"'cells' must be tables, each headed \[\[cells\]\]"),
        ("cells = []", "must be tables"),
        ("[colours]\nk = 4", r"there is no part \[colours\]; known are problem"),
    ],
)
def test_a_file_that_is_none_is_a_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "sweep.toml"
    path.write_text(content)
    with pytest.raises(UserError, match=words):
        read_tables(path)
    with pytest.raises(UserError, match="cannot be read"):
        read_tables(tmp_path / "none.toml")


def test_thousands_and_millions_may_be_written_short() -> None:
    assert [cell["samples"] for cell in expand({"samples": "100K,1.5M"})] == [100_000, 1_500_000]
    with pytest.raises(UserError, match="must be whole numbers"):
        expand({"samples": "1.2345K"})
