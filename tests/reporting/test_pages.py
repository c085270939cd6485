"""Every generated block of the README and the docs is what `results/` gives now; a block is replaced in its place."""

import shutil
from pathlib import Path

import pytest

import made_up
from auxmod.errors import UserError
from auxmod.files import write_lines
from auxmod.reporting import pages
from auxmod.reporting.pages import replace_block
from tiny import tiny

ROOT = Path(__file__).parents[2]
TEXT = "a\n<!-- generated: one -->\nold\n<!-- /generated -->\nb\n<!-- generated: two -->\n<!-- /generated -->\n"


def test_the_pages_are_up_to_date():
    assert pages.stale(ROOT) == [], "run: make pages"


def test_a_changed_result_makes_a_page_stale(tmp_path):
    for name in {name for name, _, _ in pages.BLOCKS}:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    shutil.copytree(ROOT / "results", tmp_path / "results")
    log = tmp_path / "results" / "speed-log.jsonl"
    log.write_text(log.read_text().replace("0.114", "0.115"))
    assert pages.stale(tmp_path) == ["docs/performance.md: make pages: the log"]
    pages.stale(tmp_path, write=True)
    assert pages.stale(tmp_path) == []
    assert "0.115" in (tmp_path / "docs/performance.md").read_text()


def test_only_the_named_block_changes():
    assert replace_block(TEXT, "one", "new \\1 |") == TEXT.replace("\nold\n", "\n\nnew \\1 |\n\n")
    once = replace_block(TEXT, "two", "x")
    assert replace_block(once, "two", "x") == once


def test_a_document_without_the_block_is_refused():
    for text in ("nothing", "<!-- generated: one -->\nno end", TEXT + TEXT):
        with pytest.raises(UserError, match="needs one block"):
            replace_block(text, "one", "new")


def test_each_precision_has_the_chance_of_its_own_q(tmp_path):
    rows = [made_up.row(tiny(q=q, seed=seed, precision="fp32")) for q in (7, 97) for seed in (0, 1)]
    write_lines(tmp_path / "precision-h200.jsonl", [row | {"provenance": {"device": "", "commit": ""}} for row in rows])
    assert [line.split(" | ")[-1] for line in pages.precision(tmp_path).splitlines()[2:4]] == ["14.3 |", "1.0 |"]
