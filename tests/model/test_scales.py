"""Lists of scales are checked before a model is made of them."""

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble
from devdan.model.scales import SCALES, is_scales


def test_what_is_no_list_of_scales_is_refused():
    assert is_scales(SCALES)
    assert is_scales([(1,), [3, np.int64(2), 10], (1, 0, 5, 2), (1, 0, 5)])
    for value in (
        [],
        "1",
        [1],
        [()],
        [(0,)],
        [(1, 1)],
        [(1, 0, 0, 5)],
        [(1.5,)],
        [(1, 2, 3, 4, 5)],
        [(1, 0, 0, 8)],
        [(1, 0, 5, 1)],
        [(1, 0, 5, 1001)],
    ):
        assert not is_scales(value)
        with pytest.raises(ValueError, match="scales must be None or a list of"):
            DEVDANEnsemble(value).fit([[0.0], [1.0]], [0, 1])
    for member in (DEVDAN(n_hidden=2), DEVDAN(rehearse=1)):
        with pytest.raises(ValueError, match=r"estimator must leave (n_hidden|rehearse) to the scales"):
            DEVDANEnsemble(estimator=member).fit([[0.0], [1.0]], [0, 1])
