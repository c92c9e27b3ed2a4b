"""The size of a long run's page, the time until it opens, and the size of charting libraries, for docs/pages.md.

`python benchmarks/pages.py` prints the table, `--write` puts it into the page. Needs Chromium; other libraries are
measured if they are installed (`pip install bokeh plotly`).
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from measuring import put

from devdan import DEVDAN
from devdan.evaluation.loop import Evaluation
from devdan.report import RunReport, write_report
from devdan.runs.preparation import describe
from devdan.runs.runjob import RunJob
from devdan.streams import sea

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "pages.md"
TEMPLATES = ROOT / "src" / "devdan" / "report" / "templates"
SCRIPTS = ("zoom.js", "crosshair.js", "page.js")
OTHERS = {"Bokeh": ("bokeh", "server/static/js/bokeh.min.js"), "Plotly": ("plotly", "package_data/plotly.min.js")}
TIMES = 9

sys.path.append(str(ROOT / "website"))
from browser import chromium, opened  # noqa: E402


def long_run(folder: Path, n_samples: int) -> int:
    """A run on SEA; returns the number of its chunks."""
    stream, model = sea(None).first(n_samples), DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=500, labels="all")
    with RunJob(folder, stream, Evaluation(model), settings, page=RunReport) as job:
        n_chunks = sum(1 for _ in job.records())
        job.finish()
    return n_chunks


def opening(path: Path) -> list[float]:
    """Seconds from the beginning until everything is drawn and the scripts have run."""
    found = []
    with chromium() as browser:
        for _ in range(TIMES):
            with opened(browser, path) as page:
                found.append(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd") / 1000)
    return found


def script_of(package: str, path: str) -> int | None:
    """The bytes of a library's script, if it is installed."""
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else (Path(spec.origin).parent / path).stat().st_size


def table(n_samples: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        n_chunks = long_run(folder, n_samples)
        begin = time.perf_counter()
        write_report([folder], folder / "report.html")
        seconds = time.perf_counter() - begin
        size = (folder / "report.html").stat().st_size
        opens = statistics.median(opening(folder / "report.html"))
    scripts = [(TEMPLATES / script).read_text() for script in SCRIPTS]
    rows = [
        (f"page of {n_samples:,} samples in {n_chunks:,} chunks", f"{size / 1000:,.0f} kB"),
        ("written from the records in", f"{seconds:.1f} s"),
        (f"opened in, median of {TIMES}", f"{1000 * opens:.0f} ms"),
        (
            "our scripts in each page",
            f"{sum(map(len, scripts)) / 1000:.0f} kB, {sum(s.count(chr(10)) for s in scripts)} lines",
        ),
    ]
    for library, place in OTHERS.items():
        n_bytes = script_of(*place)
        told = "not installed" if n_bytes is None else f"{n_bytes / 1000:,.0f} kB"
        rows.append((f"{library}'s script, which each page would need", told))
    return "| | |\n|---|---|\n" + "".join(f"| {what} | {value} |\n" for what, value in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.name}")
    arguments = parser.parse_args()
    told = table(arguments.samples)
    print(told)
    if arguments.write:
        put(PAGE, "pages", told)


if __name__ == "__main__":
    main()
