"""Fixtures for pages in a real browser: Debian's chromium, driven by playwright. If either is missing, tests skip."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
ARGUMENTS += ["--disable-background-networking", "--disable-component-update"]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One chromium for all tests of a process."""
    path = shutil.which("chromium") or pytest.skip("no chromium on this machine (Debian: apt-get install chromium)")
    drive = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install 'auxmod[dev]'")
    with drive.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture
def complaints() -> list[str]:
    """Errors in the page's console, exceptions in its scripts and failed requests. Tests assert that there are none."""
    return []


@pytest.fixture
def page(browser: Any, complaints: list[str]) -> Iterator[Any]:
    """A new page, 1280 pixels wide; ``page.set_viewport_size`` makes it as narrow as a phone's."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    fresh = context.new_page()
    fresh.set_default_timeout(30_000)
    fresh.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    fresh.on("pageerror", lambda error: complaints.append(str(error)))
    fresh.on("requestfailed", lambda request: complaints.extend(_failure(request)))
    yield fresh
    context.close()


def _failure(request: Any) -> list[str]:
    """Why a request failed; nothing if the page itself cancelled it for a newer question."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"{request.url}: {request.failure}"]
