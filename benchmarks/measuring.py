"""What the scripts of this folder share: the machine's name, the fastest of several runs, and tables put into pages."""

from __future__ import annotations

import platform
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def machine() -> str:
    """The processor's name."""
    try:
        return re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text()).group(1)
    except (OSError, AttributeError):
        return platform.processor() or platform.machine()


def best(run: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest of several runs: the others were disturbed."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def put(page: Path, mark: str, text: str) -> None:
    """Replace what is between two marks of a page."""
    begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
    before, rest = page.read_text().split(begin)
    page.write_text(before + begin + text + end + rest.split(end)[1])
