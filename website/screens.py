"""Screenshots of reports for docs/pages.md: `python website/screens.py` makes the runs first. Needs Chromium."""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from browser import chromium, opened
from PIL import Image

from devdan.bench import named_models, write_tables
from devdan.evaluation.loop import Evaluation
from devdan.report import RunReport, write_report
from devdan.runs.preparation import describe, prepared
from devdan.runs.runjob import RunJob
from devdan.streams import Stream, open_stream, sea

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ROOT / "docs" / "screens"
COLOURS = 96  # enough for pages of few colours


class Screen(NamedTuple):
    """A screenshot: the page, the viewport and theme, the zoom, and which part is kept."""

    name: str
    page: str
    height: int
    width: str = "desktop"
    theme: str = "light"
    place: str = ""  # what follows the path in the address
    first: str = "header"  # the topmost element, by its CSS selector
    point: float | None = None  # horizontal position of the pointer in the first chart, in [0, 1]


PICTURES = (
    Screen("run", "run", 1080),
    Screen("zoomed", "run", 560, place="#samples=70000-95000", first=".zoom", point=0.3, theme="dark"),
    Screen("phone", "orders", 900, "phone"),
    Screen("classes", "classes", 570, first=".charts + .pair"),
    Screen("comparison", "comparison", 1180),
    Screen("table", "table", 1000),
)


def run(folder: Path, stream: Stream, model: str) -> Path:
    """Make a run as `devdan run` does."""
    stream, learner, classes, scaled = prepared(stream, named_models.build(model, 0))
    settings = describe(stream, learner, {}, model=model, seed=0, chunk=stream.chunk, labels="all", scaled=scaled)
    with RunJob(folder, stream, Evaluation(learner, classes=classes), settings, page=RunReport) as job:
        list(job.records())
        job.finish()
    return folder


def thirty_classes() -> Stream:
    """Thirty clouds, some close together and some rare."""
    random = np.random.default_rng(0)
    centres = 2 * random.normal(size=(30, 8))
    centres[5], centres[12], centres[20] = centres[4] + 0.3, centres[11] + 0.4, centres[2] + 0.5
    frequency = 1 / np.arange(1, 31)
    labels = random.choice(30, 30_000, p=frequency / frequency.sum())
    names = np.array([f"sort {k:02}" for k in range(30)])
    return open_stream((centres[labels] + random.normal(size=(30_000, 8)), names[labels]), name="clouds")


def pages(folder: Path) -> dict[str, Path]:
    """Make a report of each kind."""
    own = {
        "run": run(folder / "sea", sea(), "devdan"),
        "paper": run(folder / "paper", sea(), "devdan-paper"),
        "mlp": run(folder / "mlp", sea(), "sklearn-mlp"),
        "classes": run(folder / "classes", thirty_classes(), "devdan"),
        "orders": run(
            folder / "orders", open_stream(ROOT / "docs" / "orders.csv", target="returned", chunk=100), "devdan"
        ),
    }
    found = {name: path / "report.html" for name, path in own.items()}
    found["comparison"] = folder / "comparison.html"
    write_report([own[name] for name in ("run", "paper", "mlp")], found["comparison"])
    shutil.copytree(ROOT / "benchmarks" / "results" / "table", folder / "table")
    write_tables(folder / "table")
    return found | {"table": folder / "table" / "table.html"}


def take(browser: Any, found: dict[str, Path]) -> Iterator[Path]:
    """Take and save each screenshot."""
    for screen in PICTURES:
        with opened(browser, found[screen.page], screen.width, screen.theme, screen.place) as page:
            if screen.point is not None:
                box = page.locator(".plot").first.bounding_box()
                page.mouse.move(box["x"] + screen.point * box["width"], box["y"] + box["height"] / 2)
            top = page.locator(screen.first).first.bounding_box()["y"]
            width, margin = page.viewport_size["width"], 14
            clip = {"x": 0, "y": max(top - margin, 0), "width": width, "height": screen.height}
            picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=clip)))
        path = SCREENS / f"{screen.name}.png"
        picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
        yield path


def main() -> None:
    SCREENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        for path in take(browser, pages(Path(folder))):
            print(f"{path.relative_to(ROOT)}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
