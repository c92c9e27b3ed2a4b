"""Python in a fresh process, where nothing is loaded yet."""

import os
import subprocess
import sys

LEARN = """
import hashlib, numpy as np
from devdan import DEVDAN
from devdan.streams import sea
model = DEVDAN(random_state=7)
for X, y in sea(3000, seed=2):
    model.partial_fit(X, y)
print(hashlib.sha256(model.mixture_.networks[0].tobytes()).hexdigest())
"""


def python(code, **environment):
    """Run code in a fresh process; returns what it printed."""
    command = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout, run.stderr
