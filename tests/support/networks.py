"""Small ensembles, and what a network has learned, to compare."""

SMALL = ((1,), (3, 2, 20), (2, 1, 30, 3))  # the scales of an ensemble whose members are of all kinds


def words(network):
    """All that an ``OnlineNetwork`` has learned, to compare."""
    return [one.state.tobytes() for one in network._networks]


def plain(function):
    """A compiled function as Python."""
    return getattr(function, "py_func", function)
