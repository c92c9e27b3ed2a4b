"""A real browser, for tests and pictures of pages: Chromium from the system, driven by Playwright."""

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
    """There is none, or nothing to drive it with; the message says what to install."""


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser, with a profile of its own that is removed afterwards."""
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
    """A page as somebody sees it; whatever it complains about is an error. If ``still``, its clock does not run."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme, has_touch=width == "phone"
    )
    page, complaints = context.new_page(), list[str]()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    if still:
        page.clock.install(time="2030-01-01T00:00:00Z")
        page.clock.pause_at("2030-01-01T00:00:01Z")
    page.goto(f"file://{path}{place}")
    yield page
    context.close()
    if complaints:
        raise AssertionError(f"{path}: {complaints}")


def until(page: Any, condition: str) -> None:
    """Wait until something is so in the page, which looks each time before it draws."""
    look = f"(function look() {{ ({condition}) ? done() : requestAnimationFrame(look); }})()"
    page.evaluate(f"() => new Promise((done) => {{ {look}; }})")
