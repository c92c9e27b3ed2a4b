"""The types of arrays that modules hand to each other."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.int64]
