"""A real browser for tests of pages: Chromium, driven by Playwright. Without them, such tests are skipped."""

import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
OPTIONS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
WIDTHS = {"desktop": 1280, "phone": 390}
THEMES = ("light", "dark")


@contextmanager
def chromium():
    """The browser, with a profile of its own that is removed afterwards."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed (apt install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=OPTIONS)
        yield browser
        browser.close()


@contextmanager
def opened(browser, path, width="desktop", theme="light", place="", still=False):
    """A page as somebody sees it; whatever it complains about is an error. If ``still``, its clock does not run."""
    context = browser.new_context(
        viewport={"width": WIDTHS[width], "height": 900}, color_scheme=theme, has_touch=width == "phone"
    )
    page, complaints = context.new_page(), []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
    if still:
        page.clock.install(time="2030-01-01T00:00:00Z")
        page.clock.pause_at("2030-01-01T00:00:01Z")
    page.goto(f"file://{path}{place}")
    yield page
    context.close()
    assert complaints == []


def until(page, condition):
    """Wait until something is so in the page, which looks each time before it draws."""
    look = f"(function look() {{ ({condition}) ? done() : requestAnimationFrame(look); }})()"
    page.evaluate(f"() => new Promise((done) => {{ {look}; }})")
