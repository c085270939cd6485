"""Test that the generated block of the reliability page holds the stored measurements."""

import json

import reliability

from auxmod.reporting.documents.pages import replace_block


def test_the_page_is_what_the_results_give() -> None:
    text = reliability.PAGE.read_text()
    assert replace_block(text, reliability.COMMAND, reliability.block(json.loads(reliability.FILE.read_text()))) == text
