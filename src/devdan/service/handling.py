"""What all routes do alike: reading bodies, finding streams, answering."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import msgspec
from fastapi import HTTPException, Request
from fastapi.responses import Response

from devdan.service.engine import Engine, LimitError, Live
from devdan.service.metrics import Metrics
from devdan.service.naming import InvalidError, check_name
from devdan.service.submissions import Outcome
from devdan.service.writer import BusyError

_BYTES = "devdan.bytes"  # of a request's body, in its scope
encode = msgspec.json.Encoder().encode


def answered(content: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(encode(content), status, media_type="application/json")


class Service:
    """What the routes share."""

    def __init__(self, engine: Engine, metrics: Metrics, predict_unlogged: bool = False) -> None:
        self.engine, self.metrics, self.predict_unlogged = engine, metrics, predict_unlogged
        self.n_listeners = 0
        self._n_bytes = 0  # of bodies in memory

    async def body(self, request: Request) -> bytes:
        """The body of a request, unless it is too large."""
        most = self.engine.limits.body
        declared = request.headers.get("content-length")
        if declared is not None and declared.isdigit() and int(declared) > most:
            raise LimitError(f"a body may have {most} bytes, got {declared}")
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > most:
                raise LimitError(f"a body may have {most} bytes, got more")
            parts.append(part)
            self._n_bytes += len(part)
            request.scope[_BYTES] = size
            if self._n_bytes > self.engine.limits.bodies:
                raise BusyError("too much is being answered already; send it again later")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def answered(self, scope: MutableMapping[str, Any]) -> None:
        """A request is over: its body is not needed any more."""
        self._n_bytes -= scope.pop(_BYTES, 0)

    async def find(self, name: str) -> Live:
        """A stream by its name; another server may have made it just now."""
        if name not in self.engine.streams and self.engine.database.is_shared:
            await self.engine.refresh()
        live = self.engine.streams.get(check_name(name))
        if live is None:
            raise HTTPException(404, f"there is no stream {name!r}; PUT /v1/streams/{name} makes it")
        return live


def raise_if_refused(outcome: Outcome) -> None:
    """Raise the error of a submission that was refused as a whole."""
    if outcome.gone:
        raise HTTPException(404, "the stream was deleted")
    if outcome.error is not None:
        raise InvalidError(outcome.error)


def described(live: Live) -> dict[str, Any]:
    """What there is to know about a stream."""
    published = live.published
    tally = published.tally
    return {
        "stream": live.name,
        "settings": msgspec.structs.asdict(live.settings),
        "columns": published.predictor.columns,
        "created": live.created,
        "version": published.predictor.version,
        "classes": published.predictor.classes,
        "rows": tally.n_rows,
        "labels": tally.n_labels,
        "waiting": tally.n_waiting,
        "expired": tally.n_expired_rows,
        "unusable": tally.n_unusable,
        "problem": tally.problem or None,
        "accuracy": tally.accuracy,
        "expected_accuracy": tally.expected,
        "drifts": {"virtual": published.virtual, "real": published.real},
        "hidden_units": published.n_hidden,
        "keys": published.predictor.n_keys if live.settings.keyed else None,
    }


def takes(schema: str, *, required: bool = True) -> dict[str, Any]:
    """For the documentation: the body of a request."""
    content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
    return {"requestBody": {"content": content, "required": required}}
