"""Tests that every command that a page names exists, and that the commands of the guide and the README work."""

from __future__ import annotations

import contextlib
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cyclopts import MissingArgumentError

from auxmod.cli import app, main
from auxmod.experiments import resolving

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
TINY = {"layers": 1, "heads": 2, "width": 8, "hidden": 16, "samples": 400, "batch": 200, "epochs": 1}
TINY |= {"test_samples": 500}


class Block(NamedTuple):
    """A fenced block: the words after the fence (`shell`, `shell unrun`, `python`, …), and its text."""

    kind: str
    text: str

    @property
    def commands(self) -> list[list[str]]:
        """The lines of a shell block as words, without comments and empty lines."""
        lines = (shlex.split(line, comments=True) for line in self.text.splitlines())
        return [words for words in lines if words]


def blocks(page: Path) -> Iterator[Block]:
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
        yield Block(found[1].strip(), found[2])


def named(page: Path) -> Iterator[list[str]]:
    """Every command on a page: the lines of its shell blocks, and the commands between backticks in its text."""
    for block in blocks(page):
        yield from block.commands if block.kind.startswith("shell") else []
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    yield from (shlex.split(code) for code in re.findall(r"`((?:auxmod|make) [^`|]+)`", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_that_a_page_names_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for program, *rest in named(page):
        if program == "auxmod":
            with contextlib.suppress(MissingArgumentError):  # a page may name a command without its arguments
                app.parse_args(rest, exit_on_error=False, print_error=False)
        elif program == "make":
            assert {word for word in rest if "=" not in word} <= targets, rest
        elif program == "pip":
            asked = re.search(r"\[(.+)\]", " ".join(rest))
            assert asked, rest
            assert set(asked[1].split(",")) <= set(extras), rest


def test_a_command_that_does_not_exist_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Say `auxmod trian --n 4`.\n")
    with pytest.raises(Exception, match="trian"):
        test_every_command_that_a_page_names_exists(page)


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md"])
def test_a_page_runs_from_top_to_bottom(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("auxmod.learning.engine.VALIDATION_SAMPLES", 100)
    monkeypatch.setattr(resolving, "with_preset", tiny(resolving.with_preset))
    ran = 0
    for block in blocks(ROOT / page):
        if block.kind == "toml":
            name, _, text = block.text.removeprefix("# ").partition("\n")
            Path(name).write_text(text)
        elif block.kind == "python":
            exec(block.text, {})
        for words in block.commands if block.kind == "shell" else []:
            assert words[0] == "auxmod", f"only auxmod is run here; mark the block unrun: {words}"
            for name, value in TINY.items():
                monkeypatch.setenv(f"AUXMOD_{name.upper()}", str(value))
            if "--data" in words:
                monkeypatch.delenv("AUXMOD_SAMPLES")
            assert main(words[1:]) == 0, f"{shlex.join(words)}\n{capsys.readouterr().err}"
            ran += 1
    assert ran >= 5


def tiny(with_preset: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Wrap `with_preset` so that every run is small: Python's `train` reads no environment variables."""

    def small(preset: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        return with_preset(preset, given) | TINY

    return small
