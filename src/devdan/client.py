"""Clients of ``devdan serve``: rows in, predictions out, labels later; requests without an answer are retried.

Retries are safe, since an id counts once: rows without one get theirs here, before they are first sent.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from typing_extensions import Self

_BATCH = 1000  # rows of a request
_RETRIED = frozenset((429, 502, 503, 504))  # the server is busy or away
_LONGEST = 30.0  # seconds between two attempts, at most

Row = Mapping[str, Any]  # features by column
Label = int | str | bool


class ServiceError(RuntimeError):
    """The service has refused a request; ``status`` is that of HTTP, ``answer`` the body of the answer."""

    def __init__(self, status: int, answer: Any) -> None:
        said = answer.get("error") if isinstance(answer, dict) else None
        super().__init__(f"{status}: {said or answer}")
        self.status, self.answer = status, answer


class Prediction(NamedTuple):
    """The prediction for a row; before the first label was learned, ``label`` is None and ``probabilities`` empty."""

    id: str
    label: Label | None
    probabilities: dict[str, float]
    version: int  # of the model


class Labelled(NamedTuple):
    """How many labels were accepted, repeated, wait for their rows, or came too late (expired)."""

    accepted: int = 0
    repeated: int = 0
    waiting: int = 0
    expired: int = 0

    def __add__(self, other: Any) -> Labelled:
        return Labelled(*map(sum, zip(self, other, strict=True)))


class _Calls:
    """The requests of both clients, and how answers are read; the clients differ in how they send."""

    def __init__(self, stream: str, attempts: int) -> None:
        self._path, self._attempts = f"/v1/streams/{stream}", attempts

    def _rows(
        self, rows: Sequence[Row], ids: Sequence[str] | None, keys: Sequence[str] | None, labels: Sequence[Label] | None
    ) -> Iterator[dict[str, Any]]:
        """Bodies with all rows, each with an id."""
        for name, values in (("ids", ids), ("keys", keys), ("labels", labels)):
            if values is not None and len(values) != len(rows):
                raise ValueError(f"{name} must have one for each of the {len(rows)} rows, got {len(values)}")
        made = []
        for place, row in enumerate(rows):
            one = {"id": secrets.token_hex(12) if ids is None else ids[place], "features": dict(row)}
            one |= {} if keys is None else {"key": keys[place]}
            made.append(one if labels is None else one | {"label": labels[place]})
        for start in range(0, len(made), _BATCH):
            yield {"rows": made[start : start + _BATCH]}

    def _labels(self, labels: Mapping[str, Label]) -> Iterator[dict[str, Any]]:
        pairs = [{"id": id_, "label": label} for id_, label in labels.items()]
        for start in range(0, len(pairs), _BATCH):
            yield {"labels": pairs[start : start + _BATCH]}

    def _waits(self, attempt: int, answer: httpx.Response | httpx.TransportError) -> float | None:
        """Seconds until the next attempt, or None if there is none."""
        if attempt + 1 >= self._attempts:
            return None
        if isinstance(answer, httpx.Response) and answer.status_code not in _RETRIED:
            return None
        told = answer.headers.get("retry-after", "") if isinstance(answer, httpx.Response) else ""
        return min(max(0.1 * 2.0**attempt, float(told) if told.isdigit() else 0.0), _LONGEST)

    def _read(self, answer: httpx.Response) -> Any:
        if answer.is_success:
            return answer.json() if answer.content else None
        try:
            said = answer.json()
        except ValueError:
            said = answer.text
        raise ServiceError(answer.status_code, said)


def _predictions(answer: Any) -> list[Prediction]:
    said = answer["predictions"]
    return [Prediction(one["id"], one["label"], one["probabilities"], answer["version"]) for one in said]


def _labelled(answer: Any) -> Labelled:
    return Labelled(*(answer[name] for name in Labelled._fields))


def _options(token: str | None, options: dict[str, Any]) -> dict[str, Any]:
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    return {"timeout": 30.0, **options, "headers": {**headers, **options.get("headers", {})}}


class Client(_Calls):
    """A stream of a service; its methods wait for the answer.

    ``attempts`` is how often a request is sent before it fails; further options are those of ``httpx.Client``.
    """

    def __init__(self, url: str, stream: str, *, token: str | None = None, attempts: int = 8, **options: Any) -> None:
        super().__init__(stream, attempts)
        self._http = httpx.Client(base_url=url, **_options(token, options))

    def _call(self, method: str, path: str, body: Any = None) -> Any:
        attempt = 0
        while True:
            answer: httpx.Response | httpx.TransportError
            try:
                answer = self._http.request(method, self._path + path, json=body)
            except httpx.TransportError as error:
                answer = error
            seconds = self._waits(attempt, answer)
            if seconds is None:
                if isinstance(answer, httpx.Response):
                    return self._read(answer)
                raise answer
            time.sleep(seconds)
            attempt += 1

    def create(self, **settings: Any) -> dict[str, Any]:
        """Create the stream, unless it is there with the same settings: ``options``, ``columns``, ``wait``, …"""
        shown: dict[str, Any] = self._call("PUT", "", settings)
        return shown

    def show(self) -> dict[str, Any]:
        """The stream's settings and state."""
        shown: dict[str, Any] = self._call("GET", "")
        return shown

    def delete(self) -> None:
        """Delete the stream with all its rows."""
        self._call("DELETE", "")

    def predict(
        self, rows: Sequence[Row], ids: Sequence[str] | None = None, keys: Sequence[str] | None = None
    ) -> list[Prediction]:
        """Predict rows; they wait for their labels under the ids given, or those in the predictions."""
        bodies = self._rows(rows, ids, keys, None)
        return [one for body in bodies for one in _predictions(self._call("POST", "/predict", body))]

    def label(self, labels: Mapping[str, Label]) -> Labelled:
        """Send labels, by the ids of their rows."""
        return sum((_labelled(self._call("POST", "/labels", body)) for body in self._labels(labels)), Labelled())

    def teach(
        self,
        rows: Sequence[Row],
        labels: Sequence[Label],
        ids: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
    ) -> Labelled:
        """Send rows with their labels."""
        bodies = self._rows(rows, ids, keys, labels)
        return sum((_labelled(self._call("POST", "/samples", body)) for body in bodies), Labelled())

    def sample(self, id_: str) -> dict[str, Any]:
        """What became of a row."""
        shown: dict[str, Any] = self._call("GET", f"/samples/{quote(id_, safe='')}")
        return shown

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

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        attempt = 0
        while True:
            answer: httpx.Response | httpx.TransportError
            try:
                answer = await self._http.request(method, self._path + path, json=body)
            except httpx.TransportError as error:
                answer = error
            seconds = self._waits(attempt, answer)
            if seconds is None:
                if isinstance(answer, httpx.Response):
                    return self._read(answer)
                raise answer
            await asyncio.sleep(seconds)
            attempt += 1

    async def create(self, **settings: Any) -> dict[str, Any]:
        """Create the stream, unless it is there with the same settings."""
        shown: dict[str, Any] = await self._call("PUT", "", settings)
        return shown

    async def show(self) -> dict[str, Any]:
        """The stream's settings and state."""
        shown: dict[str, Any] = await self._call("GET", "")
        return shown

    async def delete(self) -> None:
        """Delete the stream with all its rows."""
        await self._call("DELETE", "")

    async def predict(
        self, rows: Sequence[Row], ids: Sequence[str] | None = None, keys: Sequence[str] | None = None
    ) -> list[Prediction]:
        """Predict rows."""
        bodies = self._rows(rows, ids, keys, None)
        return [one for body in bodies for one in _predictions(await self._call("POST", "/predict", body))]

    async def label(self, labels: Mapping[str, Label]) -> Labelled:
        """Send labels, by the ids of their rows."""
        told = Labelled()
        for body in self._labels(labels):
            told += _labelled(await self._call("POST", "/labels", body))
        return told

    async def teach(
        self,
        rows: Sequence[Row],
        labels: Sequence[Label],
        ids: Sequence[str] | None = None,
        keys: Sequence[str] | None = None,
    ) -> Labelled:
        """Send rows with their labels."""
        told = Labelled()
        for body in self._rows(rows, ids, keys, labels):
            told += _labelled(await self._call("POST", "/samples", body))
        return told

    async def sample(self, id_: str) -> dict[str, Any]:
        """What became of a row."""
        shown: dict[str, Any] = await self._call("GET", f"/samples/{quote(id_, safe='')}")
        return shown

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()
