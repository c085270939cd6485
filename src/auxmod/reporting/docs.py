"""Blocks of a document that a command writes: found by their markers, replaced, or checked to be up to date.

A block names the command that makes it, so that a reader can run it and a test can tell when it is stale:

    <!-- generated: auxmod theory --paper-errors --markdown -->
    …
    <!-- /generated -->
"""

from __future__ import annotations

import re
from pathlib import Path

from auxmod.errors import require

END = "<!-- /generated -->"


def replace_block(text: str, command: str, body: str) -> str:
    """The document ``text`` with what lies between ``command``'s markers replaced by ``body``."""
    start = f"<!-- generated: {command} -->"
    require(
        text.count(start) == 1 and END in text[text.find(start) :],
        f"The document needs one block that begins with {start} and ends with {END}.",
    )
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{start}\n\n{body.strip()}\n\n{END}", text, count=1)


def update(path: Path, command: str, body: str) -> bool:
    """Bring a file's block up to date; whether anything changed."""
    before = path.read_text(encoding="utf-8")
    after = replace_block(before, command, body)
    if after != before:
        path.write_text(after, encoding="utf-8")
    return after != before
