"""Tests with random input: whatever is typed or found in a file gives a valid answer or a `UserError`, nothing else.

`FUZZ=50 pytest tests/trust/test_fuzz.py` (`make fuzz`) tries fifty times as many cases, new ones each time.
"""

import contextlib
import io
import json
import re
import string
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chance import JSON, NUMBERS, RANGE, TIMES, TRIED, cases, chances, changed, counted, number, refused, typed
from desk import call, flipped
from hypothesis import given
from hypothesis import strategies as st

import made_up
from auxmod.cli.options import given_axes, numbers
from auxmod.config import Problem, RunConfig
from auxmod.errors import UserError
from auxmod.experiments import catalogue
from auxmod.experiments.ranges import TYPES, alternatives, expand
from auxmod.experiments.results_file import Results
from auxmod.experiments.space import Interval, parse_space
from auxmod.files import parse, sealed
from auxmod.problem.rows import check_rows, parse_rows, read_npz
from auxmod.settings import build, flatten
from tiny import flags, tiny

WANTED = 10_000

# -- range syntax ---------------------------------------------------------------------------------------------


def test_a_range_is_values_of_its_type_or_a_sentence() -> None:
    for chance in chances("ranges", 6000):
        name, text = chance.choice(sorted(TYPES)), typed(chance)
        try:
            found = alternatives(name, text)
        except UserError as error:
            refused(error)
            continue
        kind = TYPES[name]
        wanted = str if name == "init" else kind
        assert found, (name, text)
        assert not isinstance(kind, type) or all(isinstance(value, wanted) for value in found), (name, text, found)
        ends = re.fullmatch(r"(-?[0-9]{1,9}):(-?[0-9]{1,9})", text)
        if ends and kind is int:
            first, last = map(int, ends.groups())
            assert found == list(range(first, last + 1)), (name, text)


@cases(250)
@given(st.dictionaries(st.sampled_from([*sorted(TYPES), "colour"]), RANGE | JSON, max_size=3))
def test_a_space_or_a_sweep_is_cells_or_a_sentence(axes: dict[str, Any]) -> None:
    counted("spaces")
    with contextlib.suppress(UserError):
        assert len(expand(axes)) >= 1
    try:
        space = parse_space(axes)
    except UserError:
        return
    assert space.searched
    assert all(part.low < part.high for part in space.searched.values() if isinstance(part, Interval))


def test_numbers_with_commas_between() -> None:
    for chance in chances("numbers", 2000):
        try:
            assert all(np.isfinite(value) for value in numbers(typed(chance), "--tau"))
        except UserError as error:
            refused(error, "--tau")


# -- configurations -------------------------------------------------------------------------------------------


@cases(250)
@given(changed(tiny(k=3).to_dict()))
def test_a_configuration_round_trips_or_is_a_sentence(plain: dict[str, Any]) -> None:
    counted("configurations")
    try:
        config = RunConfig.from_dict(plain)
    except UserError:
        return
    again = RunConfig.from_dict(parse(json.dumps(config.to_dict())))
    assert again == config
    assert again.hash == config.hash
    assert build(**flatten(config)) == config


@cases(250)
@given(st.dictionaries(st.sampled_from(sorted(name for name in flatten(tiny()))), JSON | NUMBERS, max_size=4))
def test_flat_settings_are_a_run_or_a_sentence(given_settings: dict[str, Any]) -> None:
    counted("settings")
    try:
        config = build(**given_settings)
    except UserError:
        return
    assert RunConfig.from_dict(config.to_dict()) == config


@cases(250)
@given(
    st.text(alphabet=string.printable, max_size=40) | st.sampled_from(["[problem]\nn = 4\n[problem]\n", "n = 1e400"])
)
def test_a_file_of_settings_is_read_or_a_sentence(tmp_path: Path, text: str) -> None:
    counted("toml")
    path = tmp_path / "settings.toml"
    path.write_text(text)
    try:
        assert isinstance(given_axes(None, path), dict)
    except UserError as error:
        refused(error, "settings.toml")


# -- results files --------------------------------------------------------------------------------------------

ROW = made_up.row(tiny(k=3), 0.5)


@cases(250)
@given(changed(ROW), st.booleans())
def test_a_row_is_read_as_it_is_or_refused_by_its_line(tmp_path: Path, row: dict[str, Any], seal: bool) -> None:
    """Some rows are sealed after the change, since a stranger can compute a checksum too."""
    counted("rows")
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps(sealed(row) if seal else row) + "\n")
    try:
        entries, _ = catalogue.find(path)
    except UserError as error:
        return refused(error, "Line 1 of ")
    for entry in entries:
        assert entry.row["hash"] == RunConfig.from_dict(entry.row["config"]).hash
        assert entry.summary["state"] in ("done", "failed")
        assert all(0 <= accuracy <= 1 for _, accuracy in entry.curve())
        assert entry.summary["match"] is None or 0 <= entry.summary["match"] <= 1


def test_bits_turned_in_a_results_file_change_nothing_or_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    Results(path).append([ROW])
    content = path.read_bytes()
    for chance in chances("bits", 600):
        damaged = content
        for _ in range(chance.randrange(1, 4)):
            damaged = flipped(damaged, chance.randrange(8 * len(content)))
        path.write_bytes(damaged)
        try:
            found = Results(path).refresh()
        except UserError as error:
            refused(error, "r.jsonl")
            continue
        assert found in ([], [ROW])


# -- inputs ---------------------------------------------------------------------------------------------------

PROBLEM = Problem(n=3, q=7)


def test_rows_of_text_are_inputs_or_a_sentence() -> None:
    for chance in chances("text rows", 4000):
        lines = [
            " ".join(number(chance) for _ in range(chance.choice((3, 3, 3, 2)))) for _ in range(chance.randrange(3))
        ]
        lines += [typed(chance)] if chance.random() < 0.3 else []
        try:
            rows = parse_rows(lines, PROBLEM)
        except UserError as error:
            refused(error)
            continue
        words = [word for line in lines for word in line.replace(",", " ").split()]
        assert rows.flatten().tolist() == [int(word) for word in words]
        assert rows.shape[1] == 3
        assert ((rows >= 0) & (rows < 7)).all()


@cases(250)
@given(JSON | st.lists(st.lists(st.integers(-1, 8) | st.floats(), min_size=3, max_size=3), max_size=3))
def test_rows_of_anything_are_inputs_or_a_sentence(given_rows: Any) -> None:
    counted("rows of anything")
    try:
        rows = check_rows(given_rows, PROBLEM)
    except UserError:
        return
    assert rows.dtype == np.int64
    assert rows.shape[1] == 3
    assert ((rows >= 0) & (rows < 7)).all()


def test_npz_files_are_whole_or_a_sentence(tmp_path: Path) -> None:
    buffer, x = io.BytesIO(), np.arange(21).reshape(7, 3) % 7
    np.savez_compressed(buffer, x=x)
    content, path = buffer.getvalue(), tmp_path / "x.npz"
    for chance in chances("npz", 400):
        cut = chance.randrange(60) if chance.random() < 0.5 else 0
        path.write_bytes(flipped(content, chance.randrange(8 * len(content)))[: len(content) - cut])
        try:
            assert (read_npz(path, PROBLEM) == x).all()
        except UserError as error:
            refused(error, "x.npz")


# -- the command line -----------------------------------------------------------------------------------------

WORDS = st.one_of(
    NUMBERS,
    st.sampled_from(
        ["aux", "ladder", "token", "none", "--k", "--r", "--n", "--json", "--where", "match>0.5", "--sort"]
    ),
    st.text(max_size=6),
)


@cases(50)
@given(
    st.sampled_from(
        [["train", "--dry-run"], ["sweep", "--dry-run"], ["theory"], ["runs", "list"], ["runs", "show"], ["table"]]
    ),
    st.lists(WORDS, max_size=4),
)
def test_arguments_end_in_an_answer_or_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], words: list[str]
) -> None:
    counted("command lines")
    monkeypatch.chdir(tmp_path)
    shape = flags() if command[0] in ("train", "sweep") else []
    outcome = call(*command, *shape, *words)
    assert outcome.code in (0, 1, 2)
    assert (outcome.code == 0) == (outcome.err == "" or "Error:" not in outcome.err)
    assert "Traceback" not in outcome.err
    assert [path.name for path in tmp_path.iterdir()] == []


def test_enough_cases_were_tried(record_property: Any, request: pytest.FixtureRequest) -> None:
    """Count the cases of the other tests; must stay the last test of this file."""
    if len(TRIED) < 12:
        pytest.skip("only some of the tests of this file were run")
    record_property("cases", sum(TRIED.values()))
    assert sum(TRIED.values()) >= WANTED * TIMES, TRIED
