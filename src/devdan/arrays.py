"""Array types, and arrays that can be written to."""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]


def writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The array, or a copy if it is read-only, as are those that joblib hands to its workers.

    For a read-only array, which is another type to Numba, all code would be compiled once more.
    """
    return np.require(array, requirements=["W", "E"])


def all_writable(attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an object with all arrays writable, including those in lists."""

    def own(value: Any) -> Any:
        if isinstance(value, list):
            return [own(item) for item in value]
        return writable(value) if isinstance(value, np.ndarray) else value

    return {name: own(value) for name, value in attributes.items()}
