"""The system's Chromium, driven by Playwright, for tests and screenshots."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WIDTHS = {"desktop": 1280, "phone": 390}
THEMES = ("light", "dark")


class NoBrowserError(RuntimeError):
    """Chromium or Playwright is missing; the message says what to install."""


@contextmanager
def chromium() -> Iterator[Any]:
    """Launch Chromium with a temporary profile."""
    try:
        from playwright.sync_api import sync_playwright  # noqa: PLC0415 (of the test extra)
    except ModuleNotFoundError:
        raise NoBrowserError("Playwright is not installed: pip install 'devdan[test]'") from None
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise NoBrowserError(f"none of {', '.join(NAMES)} is installed: apt install chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, path: Any, width: str = "desktop", theme: str = "light", place: str = "", still: bool = False
) -> Iterator[Any]:
    """Open a page; errors and warnings in its console are raised. If ``still``, its clock is stopped."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme, has_touch=width == "phone"
    )
    page, problems = context.new_page(), list[str]()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    if still:
        page.clock.install(time="2030-01-01T00:00:00Z")
        page.clock.pause_at("2030-01-01T00:00:01Z")
    page.goto(f"file://{path}{place}")
    yield page
    context.close()
    if problems:
        raise AssertionError(f"{path}: {problems}")


def until(page: Any, condition: str) -> None:
    """Wait until a condition holds in the page, checked at every animation frame."""
    check = f"(function check() {{ ({condition}) ? done() : requestAnimationFrame(check); }})()"
    page.evaluate(f"() => new Promise((done) => {{ {check}; }})")
