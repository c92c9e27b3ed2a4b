"""An archive of record linkage data, like UCI's."""

import csv
import io
import zipfile

import numpy as np

from devdan.streams.entries import ENTRIES


def rlcps(n_each=50, wrapped=False):
    """The bytes of an archive like UCI's, with a column that is always missing; and what is in it."""
    generator = np.random.default_rng(1)
    X = generator.integers(0, 2, (10 * n_each, 9)).astype(float)
    X[:, 1] = np.nan
    X[::7, 8] = np.nan
    y = np.arange(10 * n_each) % n_each < n_each // 10  # matches come first in each block
    outer = io.BytesIO()
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr("documentation", "ten blocks")
        archive.writestr("frequencies.csv", "cmp_sex,cmp_bd\n0.5,0.03\n")
        for block in (10, *range(1, 10)):
            rows = range((block - 1) * n_each, block * n_each)
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\r\n")
            writer.writerow(["id_1", "id_2", *ENTRIES["rlcps"].features, "is_match"])
            for row in rows:
                cells = ["?" if np.isnan(value) else f"{value:g}" for value in X[row]]
                writer.writerow([row, row + 1, *cells, "TRUE" if y[row] else "FALSE"])
            inner = io.BytesIO()
            with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as packed:
                packed.writestr(f"block_{block}.csv", text.getvalue())
            archive.writestr(f"block_{block}.zip", inner.getvalue())
    if wrapped:
        inside, outer = outer, io.BytesIO()
        with zipfile.ZipFile(outer, "w") as archive:
            archive.writestr("donation.zip", inside.getvalue())
    return outer.getvalue(), X, y
