"""The routes by which rows and labels come, answered without the layers that FastAPI puts around every route.

Those take longer than reading, predicting and answering one row together. FastAPI still documents these routes, and its
handlers of errors are asked.
"""

from __future__ import annotations

import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response
from fastapi.routing import APIRoute

_DIRECT = re.compile(r"/v1/streams/([^/]+)/(predict|labels|samples)")


class Direct:
    """Around the application: POSTs of rows and labels do not reach it."""

    def __init__(self, api: FastAPI) -> None:
        self._api = api
        self._routes: dict[str, APIRoute] = {}

    def find_routes(self) -> None:
        """Those that the application has by now, by the last part of their paths."""
        for route in self._api.routes:
            if isinstance(route, APIRoute) and _DIRECT.fullmatch(route.path):
                self._routes[route.path.rpartition("/")[2]] = route

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        match = _DIRECT.fullmatch(scope["path"]) if scope["type"] == "http" and scope["method"] == "POST" else None
        if match is None:
            await self._api(scope, receive, send)
            return
        scope["route"] = route = self._routes[match[2]]
        scope["path_params"] = {"stream": match[1]}
        request = Request(scope, receive)
        try:
            response: Response = await route.endpoint(request)
        except Exception as error:
            handler: Any = next(filter(None, map(self._api.exception_handlers.get, type(error).__mro__)), None)
            if handler is None:
                raise
            response = await handler(request, error)
        await response(scope, receive, send)
