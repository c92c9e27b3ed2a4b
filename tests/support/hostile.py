"""Input that nobody should bring, and legal input in every form that people do bring it in."""

import json
import struct
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
from hypothesis import strategies as st
from scipy import sparse

EXTREMES = np.array(
    [np.nan, 0.0, 1.0, -1.0, 5e-324, -1e-310, 1e-300, 1e150, -1e150, 1e300, -1e300, 1.7e308, -1.7e308, 2.0**53]
)


@st.composite
def tables(draw, width, max_rows=12):
    """A legal chunk: numbers around 0, and some of the extremes among them."""
    random = np.random.default_rng(draw(st.integers(0, 2**16)))
    X = random.normal(size=(draw(st.integers(1, max_rows)), width))
    extreme = random.random(X.shape) < draw(st.sampled_from([0.0, 0.1, 0.6]))
    return np.where(extreme, random.choice(EXTREMES, X.shape), X)


CELLS = st.one_of(  # of a table, as people have them and as nobody should
    st.none(), st.floats(allow_infinity=False), st.booleans(), st.integers(-(10**6), 10**6), st.text(max_size=5),
    st.sampled_from(["a", "b", " a ", "yes", "no", "12", "$3", "2024-05-01", "2024-05-09T10:00:00Z", "NA", ""]),
    st.sampled_from(["\ud800", "9999-12-31", "0001-01-01", pd.NaT, pd.NA, pd.Timestamp(0, tz="Asia/Tokyo")]),
    st.integers(199, 202).map(lambda n: "x" * n),
    st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)), st.dates(),
)  # fmt: skip
NO_CELLS = st.sampled_from([np.inf, [1], {}, object(), 1j, b"x", 10**400])


@st.composite
def mixed(draw, columns=("a", "b", "c"), cells=CELLS, max_rows=12):
    """A table of all kinds of cells, as a frame or as dicts."""
    rows = draw(st.lists(st.fixed_dictionaries({name: cells for name in columns}), min_size=1, max_size=max_rows))
    rows = [{name: row[name] for name in columns} for row in rows]
    return rows if draw(st.booleans()) else pd.DataFrame(rows, columns=list(columns), dtype=object)


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


def whole(X):
    return np.nan_to_num(X).clip(-100, 100).astype(int)


def single(X):
    return X.clip(-1e30, 1e30).astype(np.float32)


def frame(X):
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


FORMS = {  # the same numbers, or nearly, as they come
    "as they are": lambda X: X,
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "turned": lambda X: X[::-1, ::-1],
    "read-only": read_only,
    "single": single,
    "long double": lambda X: X.astype(np.longdouble),
    "whole": whole,
    "unsigned": lambda X: whole(np.abs(X)).astype(np.uint8),
    "bool": lambda X: X > 0,
    "objects": lambda X: X.astype(object),
    "objects with None": lambda X: np.where(np.isnan(X), None, X),
    "big-endian": lambda X: X.astype(">f8"),
    "masked": lambda X: np.ma.masked_greater(X, 1.0),
    "lists": lambda X: X.tolist(),
    "frame": frame,
    "frame with NA": lambda X: frame(X).astype("Float64"),
    "Polars frame": lambda X: pl.DataFrame(X, schema=[f"x{j}" for j in range(X.shape[1])]),
}

BROKEN = {  # no chunks at all; each takes a legal one
    "None": lambda X: None,
    "a number": lambda X: 5.0,
    "text": lambda X: "text",
    "a set": lambda X: {1.0, 2.0},
    "nothing": lambda X: [],
    "an empty row": lambda X: [[]],
    "ragged": lambda X: [*X.tolist(), [1.0]] if X.shape[1] > 1 else [*X.tolist(), []],
    "one row": lambda X: X[0],
    "a cube": lambda X: X[None],
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "a column more": lambda X: np.hstack([X, X[:, :1]]),
    "sparse": sparse.csr_matrix,
    "texts": lambda X: X.astype(str),
    "bytes": lambda X: X.astype("S"),
    "dates": lambda X: whole(X).astype("M8[s]"),
    "complex": lambda X: X.astype(complex),
    "records": lambda X: np.zeros(len(X), [("a", float)]),
    "infinity": lambda X: np.vstack([X, np.full((1, X.shape[1]), np.inf)]),
    "dicts": lambda X: np.full(X.shape, {}, dtype=object),
    "words": lambda X: frame(X).astype(str).replace("nan", "word") + "!",
    "beyond floats": lambda X: np.full(X.shape, 10**400, dtype=object),
    "beyond doubles": lambda X: np.full(X.shape, np.longdouble("1e4000")),
}

CLASSES = {  # few, so that they come again
    "whole": np.array([3, -1, 250, 7, 8]),
    "text": np.array(["dry", "rain", "ü", "", "long " * 100]),
    "bool": np.array([False, True, True, False, True]),
    "whole floats": np.array([1.0, 2.0, -5.0, 2.0**53, 0.0], dtype=np.float32),
    "objects": np.array(["x", "y", "a long one", "z", "w"], dtype=object),
    "small": np.array([1, 2, 3, 4, 5], dtype=np.uint8),
    "huge": np.array([2**63, 2**63 + 1, 2**64 - 1, 2**63 + 5, 2**63 + 6], dtype=np.uint64),
    "half floats": np.array([1, 2, 3, 4, 5], dtype=np.float16),
    "long doubles": np.array([1, 2, 3, 4, 5], dtype=np.longdouble),
}

MISLABELLED = {  # no labels at all; each takes how many there should be
    "None": lambda n: None,
    "a word": lambda n: "word",
    "a set": lambda n: {1, 2},
    "too many": lambda n: np.zeros(n + 1, int),
    "two columns": lambda n: np.zeros((n, 2), int),
    "NaN": lambda n: np.full(n, np.nan),
    "infinity": lambda n: np.full(n, np.inf),
    "parts": lambda n: np.arange(n) + 0.5,
    "Nones": lambda n: [None] * n,
    "mixed": lambda n: np.array([*[1] * n, "a"], dtype=object)[1:],
    "NaN among text": lambda n: np.array([*["a"] * n, np.nan], dtype=object)[1:],
    "bytes": lambda n: [b"a"] * n,
    "lists": lambda n: [[1]] * (n - 1) + [[1, 2]],
    "dates": lambda n: np.zeros(n, "M8[D]"),
    "complex": lambda n: np.zeros(n, complex),
    "beyond integers": lambda n: [10**30] * n,
    "beyond whole floats": lambda n: np.full(n, 1e300),
    "masked": lambda n: np.ma.masked_all(n, int),
    "frames": lambda n: pd.DataFrame({"a": range(n), "b": range(n)}),
    "missing": lambda n: pd.Series([None] * n, dtype="string"),
}


@st.composite
def labels(draw, n, kind):
    """Labels of a kind, in one of the forms that they come in."""
    values = np.random.default_rng(draw(st.integers(0, 2**16))).integers(draw(st.integers(1, 5)), size=n)
    form = draw(st.sampled_from([np.asarray, list, pd.Series, lambda y: y[:, None], np.ma.asarray]))
    return form(CLASSES[kind][values])


@st.composite
def changes(draw, length):
    """A function of a file's bytes: some flipped, left out, put in or exchanged."""
    a, b = sorted(draw(st.tuples(st.integers(0, length), st.integers(0, length))))
    what = draw(st.binary(min_size=1, max_size=40))
    way = draw(st.sampled_from(["flip", "cut", "truncate", "insert", "repeat", "swap"]))

    def change(content):
        a_, b_ = a % (len(content) + 1), b % (len(content) + 1)
        if way == "flip":
            flipped = bytes(x ^ y for x, y in zip(content[a_:], what, strict=False))
            return content[:a_] + flipped + content[a_ + len(flipped) :]
        return {
            "cut": content[:a_] + content[b_:],
            "truncate": content[:a_],
            "insert": content[:a_] + what + content[a_:],
            "repeat": content[:b_] + content[a_:b_] + content[b_:],
            "swap": content[b_:] + content[a_:b_] + content[:a_],
        }[way]

    return change


TEXTS = "auto standard minmax momentum adaptive object |b1 <U1 <U9999999 <f2 >i4 <M8[s] ((1)i4,i4 DEVDAN"
DEEP = json.loads("[" * 900 + "]" * 900)  # what "deep" stands for, since nobody could print it
VALUES = st.one_of(
    st.sampled_from(
        [None, True, 0, 1, -1, 2, 7, 1000, 2**31, 2**62, 2**63, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf")]
    ),
    st.sampled_from(["", "deep", *TEXTS.split()]),
    st.sampled_from([[], {}, [[]], [0], [1, 0], [0, 1, 2], ["a", "b", "c"], ["a"] * 3, [0.5, 1.5, 2.5], {"a": 1}]),
)
WORDS = st.one_of(
    st.sampled_from([0, 1, 2, 3, 15, 16, 17, 1000, 1001, 10**6, 2**31, 2**53, 2**62, 2**63 - 1, -1, -(2**63)]).map(
        lambda word: struct.unpack("<d", struct.pack("<q", word))[0]
    ),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, -1.0, 2.0, 1e99, -1e99, 1e150, 1e308, 1e-320, np.nan, np.inf, -np.inf]),
)
