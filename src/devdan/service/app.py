"""The application: routes, errors, documentation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException as StarletteHTTPException

import devdan
from devdan.service import inference, intake, live_page, routes
from devdan.service.database import Database, UnavailableError
from devdan.service.direct import Direct
from devdan.service.engine import ConflictError, Engine, Given, LimitError, Limits
from devdan.service.gate import App, Gate
from devdan.service.handling import Service, answered
from devdan.service.logged import Settings
from devdan.service.metrics import Metrics
from devdan.service.naming import InvalidError
from devdan.service.tokens import Tokens
from devdan.service.writer import BusyError

_ABOUT = """Predictions now, labels whenever they come: each row is kept until its label arrives and is learned once.

A row or label that was acknowledged is on disk. Ids make requests repeatable: send again whatever was not answered.
"""
_RETRY = {"retry-after": "1"}
_STATUS: dict[type[Exception], tuple[int, dict[str, str]]] = {
    InvalidError: (422, {}),
    LimitError: (413, {}),
    ConflictError: (409, {}),
    BusyError: (429, _RETRY),
}


class Door(Protocol):
    """Another way in beside HTTP, open while the service runs."""

    async def start(self) -> None:
        """Open it."""

    async def stop(self) -> None:
        """Close it."""


class Application:
    """The service as an ASGI application; ``engine`` is there once it has started."""

    engine: Engine

    def __init__(
        self,
        database: Callable[[], Database],
        *,
        model: Given | None = None,
        limits: Limits | None = None,
        tokens: Tokens | None = None,
        local_only: bool = True,
        predict_unlogged: bool = False,
        door: Callable[[Service], Door] | None = None,
    ) -> None:
        self._database, self._model, self._limits, self._door = database, model, limits, door
        self._predict_unlogged = predict_unlogged
        self.api: FastAPI = FastAPIOffline(
            title="devdan", version=devdan.__version__, description=_ABOUT, redoc_url=None, lifespan=self._lifespan
        )
        for kind in _STATUS:
            self.api.add_exception_handler(kind, _refused)
        self.api.add_exception_handler(UnavailableError, _unavailable)
        self.api.add_exception_handler(StarletteHTTPException, _told)
        self._direct = Direct(self.api)
        self.gate: App = Gate(self._direct, lambda: self._service, tokens, local_only)

    @asynccontextmanager
    async def _lifespan(self, api: FastAPI) -> AsyncIterator[None]:
        database = self._database()
        self.engine = engine = Engine(database, self._limits)
        self._service = service = Service(engine, Metrics(engine), self._predict_unlogged)
        for part in (intake, inference, routes, live_page):
            part.add_routes(api, service)
        self._direct.find_routes()
        api.openapi = self._described  # type: ignore[method-assign]
        await engine.start(self._model)
        door = None if self._door is None else self._door(service)
        if door is not None:
            await door.start()
        try:
            yield
        finally:
            if door is not None:
                await door.stop()
            await engine.stop()
            database.close()

    def _described(self) -> dict[str, Any]:
        schema: dict[str, Any] = FastAPI.openapi(self.api)
        schema.setdefault("components", {}).setdefault("schemas", {}).update(_schemas())
        return schema

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.gate(scope, receive, send)


def _schemas() -> dict[str, Any]:
    """For the documentation: what bodies look like."""
    kinds = (*intake.BODIES, Settings)
    return msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")[1]


async def _refused(request: Request, error: Exception) -> Response:
    status, headers = next(_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS)
    response = answered({"error": str(error)}, status)
    response.headers.update(headers)
    return response


async def _unavailable(request: Request, error: Exception) -> Response:
    response = answered({"error": "the log cannot be written at present; nothing of this request was kept"}, 503)
    response.headers.update(_RETRY)
    return response


async def _told(request: Request, error: Exception) -> Response:
    assert isinstance(error, StarletteHTTPException)
    response = answered({"error": str(error.detail)}, error.status_code)
    response.headers.update(error.headers or {})
    return response
