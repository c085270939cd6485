"""Pages opened in a real browser: Debian's chromium, driven by playwright. Where either is missing, they skip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One chromium for all the tests of a process."""
    path = shutil.which("chromium") or pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    drive = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'auxmod[dev]'")
    with drive.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def complaints() -> list[str]:
    """What the page's console called an error, and what its scripts threw. A test asserts that it is empty."""
    return []


@pytest.fixture
def page(browser: Any, complaints: list[str]) -> Iterator[Any]:
    """A fresh page, 1280 wide; ``page.set_viewport_size`` makes it a phone's."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    fresh = context.new_page()
    fresh.set_default_timeout(30_000)
    fresh.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    fresh.on("pageerror", lambda error: complaints.append(str(error)))
    fresh.on("requestfailed", lambda request: complaints.extend(_failure(request)))
    yield fresh
    context.close()


def _failure(request: Any) -> list[str]:
    """Why a request failed; one that the page itself took back, for a newer question, did not."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]
