"""Clients of ``devdan serve``: rows in, predictions out, labels later; requests without an answer are retried.

Retries are safe, since an id counts once: rows without one get theirs here, before they are first sent. Large batches
go in parts, and all of these are sent: what the service refuses of one is told with what became of the others, as it is
if the service stops answering in between.
"""

from __future__ import annotations

import asyncio
import math
import random
import secrets
import time
from collections.abc import Generator, Iterable, Mapping
from datetime import date
from datetime import time as clock
from decimal import Decimal
from numbers import Integral, Real
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import numpy as np

if TYPE_CHECKING:
    from typing_extensions import Self

Result = TypeVar("Result")

_BATCH = 1000  # rows of a request
_RETRIED = frozenset((429, 502, 503, 504))  # the server is busy or away
_HOPELESS = frozenset((401, 403, 404, 405))  # would be the answer to the other parts, too
_CONTRADICTS, _TOO_LARGE, _GONE = 409, 413, 404
_FIRST, _LONGEST = 0.1, 30.0  # seconds before the second attempt, and between two at most

Row = Mapping[str, Any]  # features by column
Label = int | str | bool


class ServiceError(RuntimeError):
    """The service has refused a request; ``status`` is that of HTTP, ``answer`` the body of the answer.

    ``told`` is what became of the other parts of a batch, if it was one: predictions, or a :class:`Labelled`.
    """

    def __init__(self, status: int, answer: Any) -> None:
        said = answer.get("error") if isinstance(answer, dict) else None
        super().__init__(f"{status}: {said or answer}")
        self.status, self.answer = status, answer
        self.told: Any = None


class UnansweredError(httpx.TransportError):
    """A request was not answered, however often it was sent; ``told`` is what became of the parts before it."""

    told: Any = None


class Prediction(NamedTuple):
    """The prediction for a row; before the first label was learned, ``label`` is None and ``probabilities`` empty.

    ``refused`` says why the row was not kept although it was predicted: its id is that of another one. ``thresholds``
    are the probabilities from which on classes are called, if the stream decides by such.
    """

    id: str
    label: Label | None
    probabilities: dict[str, float]
    version: int  # of the model
    refused: str | None = None
    thresholds: Mapping[str, float] = MappingProxyType({})


class Refused(NamedTuple):
    """A row or label that was refused, by its id, and why."""

    id: str
    why: str


class Labelled(NamedTuple):
    """How many labels were accepted, corrected others, repeated, wait for their rows, or came too late (expired).

    ``refused`` are those that contradict what is known.

    >>> Labelled(accepted=999, refused=(Refused("a", "other"),)) + Labelled(accepted=1000)
    Labelled(accepted=1999, corrected=0, repeated=0, waiting=0, expired=0, refused=(Refused(id='a', why='other'),))
    """

    accepted: int = 0
    corrected: int = 0
    repeated: int = 0
    waiting: int = 0
    expired: int = 0
    refused: tuple[Refused, ...] = ()

    def __add__(self, other: Any) -> Labelled:
        return Labelled(*(one + another for one, another in zip(self, other, strict=True)))


# --- What data scientists have, as JSON has it -----------------------------------------------------------------------


def records_of(rows: Any) -> list[dict[str, Any]]:
    """Rows as dicts of JSON's values: of a data frame (pandas, Polars, Arrow), or of dicts.

    >>> import pandas as pd
    >>> records_of(pd.DataFrame({"amount": [3.5, None], "at": pd.to_datetime(["2024-05-01 07:30", None])}))
    [{'amount': 3.5, 'at': '2024-05-01T07:30:00'}, {'amount': None, 'at': None}]
    """
    for way, options in (("to_pylist", {}), ("to_dicts", {}), ("to_dict", {"orient": "records"})):
        if hasattr(rows, way) and not isinstance(rows, Mapping):
            rows = getattr(rows, way)(**options)
            break
    if isinstance(rows, (Mapping, str)) or not isinstance(rows, Iterable):
        raise TypeError(f"rows must be a data frame or a list of dicts, got {type(rows).__name__}")
    records = []
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"a row must be a dict of features by column, got {row!r:.100} as row {place + 1}")
        records.append({str(name): _value(value, name, place) for name, value in row.items()})
    return records


def _value(value: Any, name: Any, place: int) -> Any:
    """A number, text, flag or date as JSON has it, or None if it is missing."""
    if type(value) in (str, bool, int, type(None)):
        return value
    value = _plain(value)
    if isinstance(value, float) and math.isinf(value):
        raise ValueError(
            f"row {place + 1} has infinity in the column {name!r}; a missing value is NaN or None, all others must be "
            "finite"
        )
    if value is not None and not isinstance(value, (str, bool, int, float)):
        raise TypeError(
            f"row {place + 1} has {value!r:.100} in the column {name!r}; convert it to a number, a text, a flag or a "
            "date"
        )
    return value


def _plain(value: Any) -> Any:
    """A value of NumPy, pandas or the standard library as JSON has it, as far as it can be one."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else str(value)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (date, clock)):
        return value.isoformat()
    if isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, (Real, Decimal)):
        number = float(value)
        return None if math.isnan(number) else number
    return value


def _label(value: Any, place: int) -> Label:
    """A label: text, a whole number or a flag."""
    label = _plain(value)
    if isinstance(label, float) and label.is_integer():  # as in a column that had gaps
        label = int(label)
    if not isinstance(label, (str, int)):
        raise ValueError(
            f"labels must be texts, whole numbers or flags, got {value!r} as label {place + 1}; leave those out that "
            "are not known yet"
        )
    return label


def _listed(values: Any) -> list[Any]:
    """Values of a list, an array or a column."""
    return list(values.to_list() if hasattr(values, "to_list") else values)


# --- Requests, and what becomes of them ------------------------------------------------------------------------------


class _Request(NamedTuple):
    method: str
    path: str
    body: Any = None


_Answer = httpx.Response | httpx.TransportError | None
_Steps = Generator[
    _Request | float, _Answer, Result
]  # sends requests, or waits for a number of seconds; then there is a result
_Parts = list[dict[str, Any]]


class _Calls:
    """The logic of both clients, as steps that each takes in its own way: requests to be sent, and seconds to wait."""

    def __init__(self, stream: str, attempts: int) -> None:
        self._path, self._attempts = f"/v1/streams/{stream}", attempts

    def _call(self, method: str, path: str = "", body: Any = None) -> _Steps[Any]:
        """A request, until it is answered; raises a ``ServiceError`` if it is refused, else an ``UnansweredError``."""
        attempt = 0
        while True:
            answer = yield _Request(method, self._path + path, body)
            seconds = self._waits(attempt, answer)
            if seconds is None:
                break
            yield seconds
            attempt += 1
        if isinstance(answer, httpx.TransportError):
            raise UnansweredError(f"the service does not answer: {answer} (attempts: {attempt + 1})") from answer
        assert answer is not None
        if answer.is_success:
            return answer.json() if answer.content else None
        if method == "DELETE" and attempt > 0 and answer.status_code == _GONE:  # an attempt without an answer did it
            return None
        try:
            said = answer.json()
        except ValueError:
            said = answer.text
        raise ServiceError(answer.status_code, said)

    def _waits(self, attempt: int, answer: _Answer) -> float | None:
        """Seconds until the next attempt, or None if there is none; by chance, so that clients do not come together."""
        if attempt + 1 >= self._attempts or isinstance(answer, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
            return None
        if isinstance(answer, httpx.Response) and answer.status_code not in _RETRIED:
            return None
        told = answer.headers.get("retry-after", "") if isinstance(answer, httpx.Response) else ""
        longest = min(_FIRST * 2.0**attempt, _LONGEST)
        return min(float(told) if told.isdigit() else 0.0, _LONGEST) + random.uniform(0.5, 1.0) * longest

    def _send_parts(self, path: str, name: str, items: _Parts, told: Result, read: Any, **more: Any) -> _Steps[Result]:
        """Send all items, in parts, with ``more``; ``read`` turns an answer into what is added to what was ``told``.

        A part that is too large is halved. If the service refuses one as a whole, the others are sent nevertheless; if
        it does not answer, they are not.
        """
        parts = [items[start : start + _BATCH] for start in range(0, len(items), _BATCH)][::-1]
        refusal: ServiceError | None = None
        while parts:
            part = parts.pop()
            try:
                answer = yield from self._call("POST", path, {name: part} | more)
            except UnansweredError as error:
                error.told = told
                raise
            except ServiceError as error:
                if error.status == _TOO_LARGE and len(part) > 1:
                    parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                    continue
                if error.status != _CONTRADICTS or "refused" not in error.answer:
                    refusal = refusal or error
                    if error.status in _HOPELESS:
                        break
                    continue
                answer = error.answer
            told = told + read(answer)
        if refusal is not None:
            refusal.told = told
            raise refusal
        return told

    def _predicting(self, rows: Any, ids: Any, keys: Any) -> _Steps[list[Prediction]]:
        return self._send_parts("/predict", "rows", _rows(rows, ids, keys, None), [], _predictions)

    def _teaching(self, rows: Any, labels: Any, ids: Any, keys: Any) -> _Steps[Labelled]:
        return self._send_parts("/samples", "rows", _rows(rows, ids, keys, labels), Labelled(), _labelled)

    def _labelling(self, labels: Any, replaces: bool) -> _Steps[Labelled]:
        pairs = [
            {"id": _plain(id_), "label": _label(label, place)} for place, (id_, label) in enumerate(labels.items())
        ]
        more = {"replaces": True} if replaces else {}
        return self._send_parts("/labels", "labels", pairs, Labelled(), _labelled, **more)


def _rows(rows: Any, ids: Any, keys: Any, labels: Any) -> _Parts:
    """Rows as the service takes them, each with an id; ids, keys and labels may be named columns of the rows."""
    records = records_of(rows)
    columns: dict[str, list[Any]] = {}
    for name, values in (("ids", ids), ("keys", keys), ("labels", labels)):
        if isinstance(values, str):
            if not all(values in row for row in records):
                raise ValueError(f"{name} names the column {values!r}, which not all rows have")
            columns[name] = [row.pop(values) for row in records]
        elif values is not None:
            columns[name] = list(map(_plain, _listed(values)))
            if len(columns[name]) != len(records):
                raise ValueError(f"{name} must have one for each of the {len(records)} rows, got {len(columns[name])}")
    made = []
    for place, row in enumerate(records):
        one = {"id": columns["ids"][place] if "ids" in columns else secrets.token_hex(12), "features": row}
        one |= {"key": columns["keys"][place]} if "keys" in columns else {}
        made.append(one | ({"label": _label(columns["labels"][place], place)} if "labels" in columns else {}))
    return made


def _predictions(answer: Any) -> list[Prediction]:
    refused = {one["id"]: one["why"] for one in answer.get("refused", ())}
    common = answer["version"], answer.get("thresholds", {})
    return [
        Prediction(one["id"], one["label"], one["probabilities"], common[0], refused.get(one["id"]), common[1])
        for one in answer["predictions"]
    ]


def _labelled(answer: Any) -> Labelled:
    refused = tuple(Refused(one["id"], one["why"]) for one in answer.get("refused", ()))
    return Labelled(**{name: answer[name] for name in Labelled._fields if name != "refused"}, refused=refused)


def _options(token: str | None, options: dict[str, Any]) -> dict[str, Any]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return {"timeout": 30.0, **options, "headers": {**headers, **options.get("headers", {})}}


# --- The clients -----------------------------------------------------------------------------------------------------


class Client(_Calls):
    """A stream of a service; its methods wait for the answer.

    Rows are a data frame (pandas, Polars, Arrow) or a list of dicts, with numbers, texts, flags, dates, and NaN or None
    for what is missing, of NumPy or Python. ``ids``, ``keys`` and ``labels`` have one for each row, or name a column.
    ``attempts`` is how often a request is sent before it fails; further options are those of ``httpx.Client``.
    """

    def __init__(self, url: str, stream: str, *, token: str | None = None, attempts: int = 8, **options: Any) -> None:
        super().__init__(stream, attempts)
        self._http = httpx.Client(base_url=url, **_options(token, options))

    def _run(self, steps: _Steps[Result]) -> Result:
        answer: _Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = None
            if isinstance(step, _Request):
                try:
                    answer = self._http.request(step.method, step.path, json=step.body)
                except httpx.TransportError as error:
                    answer = error
            else:
                time.sleep(step)

    def create(self, **settings: Any) -> dict[str, Any]:
        """Create the stream, unless it is there with the same settings: ``options``, ``columns``, ``history``, …"""
        return self._run(self._call("PUT", body=settings))

    def show(self) -> dict[str, Any]:
        """The stream's settings and state."""
        return self._run(self._call("GET"))

    def delete(self) -> None:
        """Delete the stream with all its rows."""
        self._run(self._call("DELETE"))

    def predict(self, rows: Any, ids: Any = None, keys: Any = None) -> list[Prediction]:
        """Predict rows; they wait for their labels under the ids given, or those in the predictions."""
        return self._run(self._predicting(rows, ids, keys))

    def label(self, labels: Mapping[str, Any], replaces: bool = False) -> Labelled:
        """Send labels, by the ids of their rows: a dict, or a series of pandas with ids as its index.

        ``replaces``: they correct the labels that came before, where these are others.
        """
        return self._run(self._labelling(labels, replaces))

    def teach(self, rows: Any, labels: Any, ids: Any = None, keys: Any = None) -> Labelled:
        """Send rows with their labels."""
        return self._run(self._teaching(rows, labels, ids, keys))

    def sample(self, id_: str) -> dict[str, Any]:
        """What became of a row."""
        return self._run(self._call("GET", _sample_path(id_)))

    def forget(self, id_: str) -> int | None:
        """Have a sample forgotten for good; models of this version and later ones have forgotten it.

        None if that was the answer to an earlier attempt, which did not arrive.
        """
        return _version(self._run(self._call("DELETE", _sample_path(id_))))

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class AsyncClient(_Calls):
    """The methods of :class:`Client` for ``await``; further options are those of ``httpx.AsyncClient``."""

    def __init__(self, url: str, stream: str, *, token: str | None = None, attempts: int = 8, **options: Any) -> None:
        super().__init__(stream, attempts)
        self._http = httpx.AsyncClient(base_url=url, **_options(token, options))

    async def _run(self, steps: _Steps[Result]) -> Result:
        answer: _Answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = None
            if isinstance(step, _Request):
                try:
                    answer = await self._http.request(step.method, step.path, json=step.body)
                except httpx.TransportError as error:
                    answer = error
            else:
                await asyncio.sleep(step)

    async def create(self, **settings: Any) -> dict[str, Any]:
        """Create the stream, unless it is there with the same settings."""
        return await self._run(self._call("PUT", body=settings))

    async def show(self) -> dict[str, Any]:
        """The stream's settings and state."""
        return await self._run(self._call("GET"))

    async def delete(self) -> None:
        """Delete the stream with all its rows."""
        await self._run(self._call("DELETE"))

    async def predict(self, rows: Any, ids: Any = None, keys: Any = None) -> list[Prediction]:
        """Predict rows."""
        return await self._run(self._predicting(rows, ids, keys))

    async def label(self, labels: Mapping[str, Any], replaces: bool = False) -> Labelled:
        """Send labels, by the ids of their rows; ``replaces``: they correct those that came before."""
        return await self._run(self._labelling(labels, replaces))

    async def teach(self, rows: Any, labels: Any, ids: Any = None, keys: Any = None) -> Labelled:
        """Send rows with their labels."""
        return await self._run(self._teaching(rows, labels, ids, keys))

    async def sample(self, id_: str) -> dict[str, Any]:
        """What became of a row."""
        return await self._run(self._call("GET", _sample_path(id_)))

    async def forget(self, id_: str) -> int | None:
        """Have a sample forgotten for good."""
        return _version(await self._run(self._call("DELETE", _sample_path(id_))))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()


def _sample_path(id_: str) -> str:
    return f"/samples/{quote(id_, safe='')}"


def _version(answer: dict[str, Any] | None) -> int | None:
    return None if answer is None else answer["version"]
