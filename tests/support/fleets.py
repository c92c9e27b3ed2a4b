"""Rows for fleets, and what their networks have learned, to compare."""

import numpy as np
import pandas as pd
from numba import config

from devdan.fleet import network_store as stores
from devdan.kernel import Network
from devdan.kernel.memory import Sizes
from devdan.kernel.state import sizes_of, with_room

FEWER = 10 if config.DISABLE_JIT else 1  # by how much less there is to do where every step takes Python


def portions(seed=0, n_portions=6, n_keys=12, most=300, n_features=4):
    """Rows of several keys, some with other classes or rules than others."""
    random = np.random.default_rng(seed)
    for _ in range(n_portions):
        n = int(random.integers(1, most // FEWER))
        keys = random.integers(n_keys, size=n)
        X = random.normal(size=(n, n_features))
        X[random.random(X.shape) < 0.02] = np.nan
        y = (np.nan_to_num(X[:, 0]) * (keys % 3 - 1) + np.nan_to_num(X[:, 1]) > 0) + 2 * (keys % 5 == 0)
        yield keys, X, y.astype(int)


def words(state):
    """A state without what its room is, and without its events, of which a DEVDAN remembers more."""
    room = Sizes(max(sizes_of(state).features, 64), 64, 16, 1)
    bare = with_room(state, room)
    Network(bare).events[:] = 0
    Network(bare).causes[:] = 0
    return bare.tobytes()


def states(fleet):
    return {key: words(fleet[key].mixture_.networks[0]) for key in fleet}


def same(fleet, other):
    """Whether two fleets are the same to the bit."""
    assert states(fleet) == states(other)
    table, others = (each.summary().to_pandas().sort_values("key", ignore_index=True) for each in (fleet, other))
    pd.testing.assert_frame_equal(table, others)
    assert fleet.classes_.tolist() == other.classes_.tolist()
    assert (len(fleet), fleet.n_rows_) == (len(other), other.n_rows_)
    if fleet.prior:
        assert words(fleet.prior_.mixture_.networks[0]) == words(other.prior_.mixture_.networks[0])
    return True


def rewritten(connection, key, **changes):
    """Another row for a key, with a checksum that matches."""
    (row,) = connection.execute(f"SELECT {stores._LIST} FROM networks WHERE key = ?", (key,)).fetchall()
    text, figures, kept = stores._unpacked(row)
    kept = kept._replace(**{name: change(getattr(kept, name)) for name, change in changes.items()})
    connection.execute("DELETE FROM networks WHERE key = ?", (key,))
    connection.execute(stores._PUT.format("networks"), stores._packed(stores.Row(text, figures, kept)))
