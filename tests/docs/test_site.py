"""Tests that `make docs` builds without a warning, that its links work, and that reading it needs no network."""

import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import auxmod

ROOT = Path(__file__).parents[2]


class Links(HTMLParser):
    """A page's links, the files that it loads, and its anchors."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.to: list[str] = []
        self.loaded: list[str] = []
        self.anchors = {""}
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attributes if value}
        self.anchors.add(given.get("id", ""))
        target = given.get("href") or given.get("src")
        if target:
            (self.to if tag == "a" else self.loaded).append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site")
    (command,) = re.findall(r"\$\(BIN\)/(sphinx-build .*)", (ROOT / "Makefile").read_text())
    program, *flags = command.replace("docs site", f"docs {place}").split()
    words = [Path(sys.executable).with_name(program), *flags]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return place


def inside(site: Path) -> Iterator[tuple[Path, Links]]:
    for page in site.rglob("*.html"):
        yield page, Links(page)


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {page.resolve(): links for page, links in inside(site)}
    assert len(pages) > 6
    for page, links in pages.items():
        for target in links.to:
            parts = urlsplit(target)
            if parts.scheme in ("http", "https"):
                assert "." in parts.netloc, target
                continue
            assert not parts.scheme, f"{page.name}: {target}"
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert there.exists(), f"{page.name}: {target}"
            if there in pages:
                assert unquote(parts.fragment) in pages[there].anchors, f"{page.name}: {target}"


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for page, links in inside(site):
        assert not [target for target in links.loaded if "//" in target], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()[^;)]*https?://(?!www\.w3\.org)", sheet.read_text()), sheet.name


def test_the_api_is_there(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert all(f'id="auxmod.{name}"' in text for name in ("train", "load", "build", "TrainedModel.predict"))


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_between_the_files_of_the_repository(page: str) -> None:
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_citation_names_this_version() -> None:
    assert f"version: {auxmod.__version__}\n" in (ROOT / "CITATION.cff").read_text()
