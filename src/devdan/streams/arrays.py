"""Arrays as streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt


def chunks(
    X: npt.NDArray[Any], y: npt.NDArray[Any], *, chunk: int = 500
) -> Iterator[tuple[npt.NDArray[Any], npt.NDArray[Any]]]:
    """The samples in their order, chunk by chunk; the last chunk may be smaller.

    >>> import numpy as np
    >>> [len(y) for X, y in chunks(np.zeros((5, 2)), np.zeros(5), chunk=2)]
    [2, 2, 1]
    """
    for start in range(0, len(X), chunk):
        yield X[start : start + chunk], y[start : start + chunk]
