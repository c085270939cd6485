"""Generated blocks: replaced in place, and refused where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from auxmod.errors import UserError
from auxmod.reporting.docs import replace_block, update

TEXT = "a\n<!-- generated: one -->\nold\n<!-- /generated -->\nb\n<!-- generated: two -->\n<!-- /generated -->\n"


def test_only_the_named_block_changes() -> None:
    assert replace_block(TEXT, "one", "new \\1 |") == TEXT.replace("\nold\n", "\n\nnew \\1 |\n\n")
    once = replace_block(TEXT, "two", "x")
    assert replace_block(once, "two", "x") == once


def test_a_document_without_the_block_is_refused() -> None:
    for text in ("nothing", "<!-- generated: one -->\nno end", TEXT + TEXT):
        with pytest.raises(UserError, match="needs one block"):
            replace_block(text, "one", "new")


def test_update_says_whether_anything_changed(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(TEXT, encoding="utf-8")
    assert update(path, "one", "new")
    assert not update(path, "one", "new")
    assert "new" in path.read_text(encoding="utf-8")
