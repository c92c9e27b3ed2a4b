"""Saved models with any field changed: each is refused in words, or a model that works. None does any harm.

The cases run in processes of their own, so that a crash is seen, and which case it was. ``make fuzz`` tries more
of them, ``make fuzz-files`` all, which takes more than an hour.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import settings

pytestmark = pytest.mark.fuzz
SUPPORT = Path(__file__).parent / "support"
SOURCES = Path(__file__).parents[1] / "src"
HANGS = 300  # seconds that no case takes; the slowest take one
EVERY = "DEVDAN_FUZZ_EVERY_FIELD" in os.environ
PART = (
    () if EVERY else ("-40",) if settings().derandomize else ("-400",)
)  # of each subject; else all, and as many pairs


def tried(names, folder, without_jit):
    """What a process tells that tries the cases of some subjects; it is ended once a case takes for ever."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1" if without_jit else "0",
        "PYTHONPATH": os.pathsep.join([str(SOURCES), str(SUPPORT)]),
    }
    said, latest = folder / "said", (0, time.monotonic())
    with said.open("wb") as output:
        command = [sys.executable, str(SUPPORT / "tampering.py"), names, str(folder), *PART]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment)
        try:
            while True:
                try:
                    process.wait(1)
                    break
                except subprocess.TimeoutExpired:
                    size = said.stat().st_size
                    latest = latest if size == latest[0] else (size, time.monotonic())
                    assert time.monotonic() - latest[1] < HANGS, f"it hangs: {told(said)}"
        finally:
            process.kill()
            process.wait()
    return process.returncode, told(said)


def told(said):
    """What was wrong, and what came last."""
    lines = said.read_text(errors="replace").splitlines()
    wrong = [place for place, line in enumerate(lines) if line.startswith("WRONG")]
    return "\n".join([line for place in wrong[:20] for line in lines[place : place + 14]] + lines[-15:])


@pytest.mark.parametrize("without_jit", [False, True], ids=["compiled", "as plain Python"])
@pytest.mark.parametrize(
    "names", ["model,momentum,table,ensemble", "fleet,fleet of tables,fleet with a prior", "spark"]
)
def test_a_changed_field_is_noticed_or_does_no_harm(names, without_jit, tmp_path):
    if names == "spark":
        pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")
    status, said = tried(names, tmp_path, without_jit)
    assert status == 0, said
    assert said.endswith("DONE 0 wrong")
