"""The array types that modules pass to each other."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]


def writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy where it cannot be written to: what joblib hands to its workers lies in read-only memory.

    To compiled code a read-only array would be another type, too, and all of it would be compiled once more.
    """
    return np.require(array, requirements=["W", "E"])


def all_writable(attributes: dict[str, Any]) -> dict[str, Any]:
    """What an object is made of, with every array in it writable, also those in lists."""

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(item) for item in value]
        return writable(value) if isinstance(value, np.ndarray) else value

    return {name: own(value) for name, value in attributes.items()}
