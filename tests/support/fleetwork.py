"""What a process does with a fleet until it is killed, and what the fleet should be afterwards."""

import os
import resource
import signal
import sys

import numpy as np

from devdan import DEVDANFleet
from devdan.fleet import network_store as stores

N_KEYS, N_ROWS, LIMIT = 60, 40, 12


def portion(number):
    """The rows that come then, always the same."""
    random = np.random.default_rng(number)
    keys = random.integers(N_KEYS, size=N_ROWS)
    X = random.normal(size=(N_ROWS, 3))
    return [f"key {key}" for key in keys], X, (X[:, 0] * (keys % 2 - 0.5) > 0).astype(int)


def opened(path):
    """The fleet in the file, or a new one; and how many portions it has learned."""
    if os.path.exists(path) and os.path.getsize(path) > 0:
        try:
            fleet = DEVDANFleet.load(path)
            return fleet, fleet.n_rows_ // N_ROWS
        except stores.ModelFileError as error:  # it was killed before anything was saved
            if "none was ever saved" not in str(error):
                raise
    return DEVDANFleet(random_state=5, store=path, max_in_memory=LIMIT, n_jobs=1), 0


def work(path, n_portions, dies_after=None):
    """Learn on, save now and then, and end in the middle of something."""
    if dies_after is not None:
        die_in_sqlite(dies_after)
    fleet, start = opened(path)
    for number in range(start, n_portions):
        fleet.partial_fit(*portion(number))
        if number % 3 == 2:
            fleet.save()


def die_in_sqlite(steps):
    """Be killed after so many steps of SQLite's virtual machine, wherever that is."""
    connect, left = stores._connected, [steps]

    def step():
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def connected(*given):
        connection = connect(*given)
        connection.set_progress_handler(step, 20)
        return connection

    stores._connected = connected


def hold(path, has_it, go_on):
    """Have a store until told otherwise."""
    fleet, _ = opened(path)
    fleet.partial_fit(*portion(0))
    has_it.set()
    go_on.wait()


def starve(path, most_bytes, said):
    """Go on with files that cannot grow, and tell what was said."""
    fleet, start = opened(path)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        for number in range(start, start + 300):
            fleet.partial_fit(*portion(number))
            fleet.save()
    except OSError as error:
        said.put((type(error).__name__, str(error)))
        sys.exit(0)
    said.put(("nothing", ""))
