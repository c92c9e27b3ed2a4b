"""What repeats in dates and times: the time of day, the day of the week, the day of the year."""

from __future__ import annotations

import math

import numpy as np

from devdan.arrays import Floats, Words
from devdan.encoding.values import DAY

TIME_OF_DAY, DAY_OF_WEEK, DAY_OF_YEAR = "time of day", "day of week", "day of year"
PERIODS = {TIME_OF_DAY: DAY, DAY_OF_WEEK: 7 * DAY, DAY_OF_YEAR: 365 * DAY}  # in microseconds
WAVES = ("sine", "cosine")


def wave(times: Words, kind: str, of: str) -> Floats:
    """The sine or cosine of where in the period a time is, mapped to [0, 1]."""
    if of == DAY_OF_YEAR:
        years = times.view("M8[us]").astype("M8[Y]")
        begin, end = (year.astype("M8[us]").view(np.int64) for year in (years, years + 1))
        share = (times - begin) / (end - begin)
    else:
        start = 3 * DAY if of == DAY_OF_WEEK else 0  # 1970 began on a Thursday
        share = (times + start) % PERIODS[of] / PERIODS[of]
    angle = 2.0 * math.pi * share
    return np.asarray(0.5 + 0.5 * (np.sin(angle) if kind == "sine" else np.cos(angle)))
