"""Conversion of tables to :class:`Rows`: pandas, Polars, Arrow, dicts, and arrays of any type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np

from devdan.arrays import Integers
from devdan.encoding.rows import Column, Numbers, Rows, Texts, Times, texts_of
from devdan.encoding.values import NO_TIME, Vocabulary, microseconds, microseconds_of_day, plain_text, time_text

if TYPE_CHECKING:
    import pyarrow as pa

_NUMBERS = "fiu"
_LARGEST = 2**62  # microseconds


class TableError(ValueError):
    """A table holds something other than numbers, texts, flags and times; the message names the column."""


def is_table(X: Any) -> bool:
    """Whether the columns of X may be of different types, rather than an array of numbers."""
    if type(X) is np.ndarray:
        return X.dtype.kind in "OUSTMmV"
    return isinstance(X, Rows) or hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") or is_pandas(X)


def are_dicts(X: Any) -> bool:
    """Whether X is a list of dicts, one for each row."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], Mapping)


def is_lazy(X: Any) -> bool:
    """Whether X is a lazy frame of Polars."""
    return type(X).__name__ == "LazyFrame" and hasattr(X, "collect")


def as_rows(X: Any) -> Any:
    """A single row, as a dict or a pandas Series, as a list of one dict; a lazy frame of Polars, collected."""
    if is_lazy(X):
        return X.collect(engine="streaming")
    if isinstance(X, Mapping) and not hasattr(X, "shape"):  # as a sparse matrix of SciPy has
        return [X]
    if type(X).__module__.partition(".")[0] == "pandas" and getattr(X, "ndim", 0) == 1 and hasattr(X, "to_dict"):
        return [X.to_dict()]
    return X


def in_order(rows: Rows, names: Sequence[str]) -> Rows:
    """Rows of dicts with the columns in this order; one that no dict has is missing, others stay behind them."""
    there = {name: place for place, name in enumerate(rows.names)}
    columns, missing = rows.columns(), Numbers(np.full(len(rows), np.nan))
    new = [name for name in rows.names if name not in set(names)]
    found = [columns[there[name]] if name in there else missing for name in (*names, *new)]
    return Rows.of([*names, *new], found, len(rows))


def rows_of(X: Any, names: Sequence[str] | None = None) -> Rows:
    """The rows of the table X. ``names`` are for a table without column names; by default, they are x0, x1, ….

    >>> rows_of([{"age": 31, "city": "Bonn"}, {"age": None, "city": "Köln"}]).objects()
    [[31.0, None], ['Bonn', 'Köln']]
    """
    if isinstance(X, Rows):
        return X
    X = as_rows(X)
    if is_pandas(X):
        return _from_pandas(X)
    if hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__"):
        return _from_arrow(X)
    if are_dicts(X):
        return from_dicts(X)
    return _from_array(np.array(X, dtype=object) if isinstance(X, (list, tuple)) else np.asarray(X), names)


def from_dicts(samples: Sequence[Mapping[Any, Any]], keys: Iterable[Any] | None = None, named: bool = False) -> Rows:
    """A row for each dict; a column for each key, in order of appearance. An absent key is a missing value.

    Names are converted to text, unless ``named``.
    """
    known = list(dict.fromkeys(key for sample in samples for key in sample) if keys is None else keys)
    columns = [column_of([sample.get(key) for sample in samples], str(key)) for key in known]
    return Rows.of(known if named else [str(key) for key in known], columns, len(samples))


def column_of(values: Sequence[Any], name: str, n_before: int = 0) -> Column:
    """A column of Python objects, perhaps of different types; messages count rows from ``n_before``."""
    plain = [_plain(value, name, n_before + row) for row, value in enumerate(values)]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {float} or kinds == {bool}:
        numbers = np.array([np.nan if value is None else value for value in plain], dtype=np.float64)
        return Numbers(numbers, flags=kinds == {bool})
    if kinds <= {_Moment} or kinds <= {_Clock}:
        return Times(np.array([NO_TIME if value is None else value for value in plain], np.int64), kinds == {_Clock})
    return texts_of([None if value is None else _text(value) for value in plain])


class _Moment(int):
    """Microseconds since 1970."""


class _Clock(int):
    """Microseconds since midnight."""


def _plain(value: Any, name: str, row: int) -> Any:
    """The value as None, a float, a bool, a text or a time."""
    kind = type(value)
    if kind is float:
        return _finite(value, name, row)
    if kind is str or kind is bool or value is None:
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "Mm":
        value = value.astype("M8[us]" if value.dtype.kind == "M" else "m8[us]").item()
        return None if value is None else _plain(value, name, row)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (Real, Decimal)):
        try:
            number = float(value)
        except OverflowError as error:
            raise TableError(
                f"X must hold numbers in the range of a float, got a larger one in row {row + 1}, column {name!r}"
            ) from error
        return _finite(number, name, row)
    if isinstance(value, str):
        return str(value)
    if type(value).__name__ in ("NaTType", "NAType"):  # pandas' missing values
        return None
    if isinstance(value, (datetime, date)):
        return _Moment(microseconds(value))
    if isinstance(value, time):
        return _Clock(microseconds_of_day(value))
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):  # as databases have them
        return str(value)
    raise TableError(
        f"row {row + 1} has a {type(value).__name__} in the column {name!r}; a value must be a number, a text, a flag "
        "or a time: convert the column, or leave it out"
    )


def _finite(value: float, name: str, row: int) -> float | None:
    if value - value == 0.0:
        return value
    if value != value:  # noqa: PLR0124
        return None
    raise TableError(
        f"row {row + 1} has infinity in the column {name!r}; a missing value is NaN, all others must be finite"
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, _Moment):
        return time_text(value)
    if isinstance(value, _Clock):
        return time_text(value)[11:]
    return plain_text(value) if isinstance(value, float) else str(value)


def _different(names: list[str]) -> list[str]:
    """The names, unless two are the same."""
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise TableError(f"X must have columns of different names, but two are called {twice!r}")
    return names


def _from_array(X: np.ndarray[Any, Any], names: Sequence[str] | None) -> Rows:
    if X.dtype.names is not None:
        columns = [array_column(X[name], name) for name in X.dtype.names]
        return Rows.of(X.dtype.names, columns, len(X))
    if X.ndim != 2:
        raise TableError(f"X must have two dimensions, a row for each sample; got {X.ndim}. Reshape your data")
    names = [f"x{place}" for place in range(X.shape[1])] if names is None else names
    if X.dtype.kind in "fiub":
        return Rows(names, np.asarray(X, dtype=np.float64))
    return Rows.of(names, [array_column(X[:, k], name) for k, name in enumerate(names)], len(X))


def array_column(values: np.ndarray[Any, Any], name: str) -> Column:
    kind = values.dtype.kind
    if kind in _NUMBERS or kind == "b":
        return Numbers(values.astype(np.float64), flags=kind == "b")
    if kind == "M":
        return Times(_microseconds(values, name))
    if kind == "m":
        return Numbers(values.astype("m8[us]").astype(np.float64) / 1e6 + np.where(np.isnat(values), np.nan, 0.0))
    if kind in "US":
        texts = np.char.decode(values, "utf-8") if kind == "S" else values
        distinct, places = np.unique(texts, return_inverse=True)
        return Texts(places.reshape(-1).astype(np.int64), Vocabulary(distinct.tolist()))
    return column_of(values.tolist(), name)


def _microseconds(values: np.ndarray[Any, Any], name: str) -> Integers:
    """NumPy's times in microseconds; its missing value is the same number as ours."""
    is_coarse = np.datetime_data(values.dtype)[0] not in ("us", "ns", "ps", "fs", "as")
    exact = values.astype("M8[us]")
    if is_coarse and (exact.astype(values.dtype) != values)[~np.isnat(values)].any():
        raise TableError(f"the column {name!r} has times outside the range of 64-bit microseconds")
    return exact.view(np.int64) if exact.flags.c_contiguous else np.ascontiguousarray(exact).view(np.int64)


# --- pandas ------------------------------------------------------------------------------------------------------


def is_pandas(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "iloc") and getattr(X, "ndim", 0) == 2


def _from_pandas(X: Any) -> Rows:
    names = _different([str(name) for name in X.columns])
    if all(getattr(dtype, "kind", "O") in "fiu" and isinstance(dtype, np.dtype) for dtype in X.dtypes):
        return Rows(names, X.to_numpy(dtype=np.float64))
    return Rows.of(names, [_from_series(X.iloc[:, place], name) for place, name in enumerate(names)], len(X))


def _from_series(series: Any, name: str) -> Column:
    dtype = series.dtype
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return column_of(series.tolist(), name)
        return array_column(series.to_numpy(), name)
    if type(dtype).__name__ == "CategoricalDtype":
        known = column_of(dtype.categories.tolist(), name)
        texts = [_text(value) for value in _spelled(known)]
        return Texts(series.cat.codes.to_numpy().astype(np.int64), Vocabulary(texts), declared=True)
    if type(dtype).__name__ == "DatetimeTZDtype":
        return array_column(series.dt.tz_convert("UTC").dt.tz_localize(None).to_numpy(), name)
    if getattr(dtype, "kind", "O") in "fiub" and hasattr(dtype, "numpy_dtype"):
        numbers = series.to_numpy(dtype=np.float64, na_value=np.nan)
        return Numbers(numbers, flags=dtype.kind == "b")
    import pyarrow as pa  # noqa: PLC0415 (slow to import, and only for the rarer types)

    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        return column_of(series.astype(object).tolist(), name)
    return arrow_column(array, name)


def _spelled(column: Column) -> list[Any]:
    if isinstance(column, Numbers) and column.flags:
        return [bool(value) for value in column.objects()]
    return column.objects()


# --- Arrow and Polars --------------------------------------------------------------------------------------------


def _from_arrow(X: Any) -> Rows:
    import pyarrow as pa  # noqa: PLC0415

    try:
        table = X if isinstance(X, (pa.Table, pa.RecordBatch)) else pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TableError(f"X cannot be read as a table: {error}") from error
    columns = []
    for name, values in zip(table.schema.names, table.columns, strict=True):
        parts = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        columns.append(arrow_column(parts, name))
    return Rows.of(_different(table.schema.names), columns, table.num_rows)


def arrow_column(values: Any, name: str) -> Column:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind = values.type
    try:
        if pa.types.is_dictionary(kind):
            return _from_dictionary(values, name)
        if is_text_type(kind):
            return _from_dictionary(pc.dictionary_encode(values), name, declared=False)
        if pa.types.is_boolean(kind):
            return Numbers(_floats(pc.cast(values, pa.uint8())), flags=True)
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return Numbers(_floats(values))
        if pa.types.is_null(kind):
            return Numbers(np.full(len(values), np.nan))
        if pa.types.is_time(kind):
            return Times(_whole(pc.cast(values, pa.time64("us"), safe=False)), clock=True)
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            zone = kind.tz if pa.types.is_timestamp(kind) else None
            return Times(_whole(pc.cast(values, pa.timestamp("us", zone), safe=kind != pa.timestamp("ns", zone))))
        if pa.types.is_duration(kind):
            return Numbers(_floats(pc.cast(pc.cast(values, pa.duration("us")), pa.int64())) / 1e6)
    except pa.ArrowException as error:
        raise TableError(f"the column {name!r} cannot be read: {str(error).splitlines()[0]}") from error
    raise TableError(
        f"the column {name!r} holds {kind}, not numbers, text, flags or times: convert it, or leave it out"
    )


def is_text_type(kind: pa.DataType) -> bool:
    """Whether Arrow has texts of this type."""
    import pyarrow as pa  # noqa: PLC0415

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _floats(values: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    numbers = pc.cast(values, pa.float64(), safe=False)
    return numbers.to_numpy(zero_copy_only=False)


def _whole(values: Any) -> Integers:
    """Times as integers; a null becomes ``NO_TIME``."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    whole = pc.fill_null(pc.cast(values, pa.int64()), NO_TIME).to_numpy(zero_copy_only=False)
    return np.asarray(whole, dtype=np.int64)


def _from_dictionary(values: Any, name: str, declared: bool = True) -> Column:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.compute as pc  # noqa: PLC0415

    if not is_text_type(values.type.value_type):
        known = arrow_column(values.dictionary, name)
        texts = ["" if value is None else _text(value) for value in _spelled(known)]
    else:
        texts = ["" if value is None else value for value in values.dictionary.to_pylist()]
    places = pc.fill_null(pc.cast(values.indices, pa.int64()), -1).to_numpy(zero_copy_only=False)
    return Texts(np.asarray(places, dtype=np.int64), Vocabulary(texts), declared)
