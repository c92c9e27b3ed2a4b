"""The selection of histories, slow and obvious: each decision is computed anew from all labelled rows.

Nothing is kept but rows and labels. All numbers are written out here, none is the package's.
"""

import math
from statistics import NormalDist

EDGES = [NormalDist().inv_cdf(k / 8) for k in range(1, 8)]


def shown_of(rows, codes, n_columns):
    """Which columns are shown, after these rows with their labels."""
    shown, begin, end = [True] * n_columns, 500, 1000
    while len(rows) >= end:
        first = 0 if end == 1000 else begin - (end - begin) // 2  # of the period before, whose values make the bins
        period, labels = rows[begin:end], codes[begin:end]
        most = max(labels.count(code) for code in set(labels))
        if len(labels) - most >= 20:
            gains = [gain([row[k] for row in rows[first:begin]], [row[k] for row in period], labels)
                     for k in range(n_columns)]  # fmt: skip
            best = sorted(range(n_columns), key=lambda k: (-gains[k], k))[:16]
            shown = [k in best and gains[k] > 0 for k in range(n_columns)]
        begin, end = end, 2 * end
    return shown


def gain(before, values, labels):
    """How much more a column depends on the label than by chance; 0 if that may be chance."""
    centre = sum(before) / len(before)
    width = math.sqrt(sum((value - centre) ** 2 for value in before) / len(before))
    bins = [sum(value > centre + width * edge for edge in EDGES) for value in values]
    n, statistic = len(labels), 0.0
    for place in set(bins):
        for code in set(labels):
            both = sum(a == place and b == code for a, b in zip(bins, labels, strict=True))
            if both:
                statistic += 2 * both * math.log(both * n / (bins.count(place) * labels.count(code)))
    by_chance = (len(set(bins)) - 1) * (len(set(labels)) - 1)
    return statistic - by_chance if statistic > 2 * by_chance else 0.0
