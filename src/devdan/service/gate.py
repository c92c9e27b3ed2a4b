"""What every request passes: who may ask for what, and counting."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from devdan.service.handling import Service
from devdan.service.tokens import ADMIN, LABEL, LOOPBACK, PREDICT, Tokens

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

_OPEN = re.compile(r"/v2/health/(live|ready)")
_NEEDS = (  # the first that matches; anything else needs a token of any scope
    ("POST", re.compile(r"/v1/streams/[^/]*/predict|/v2/models/.*/infer"), PREDICT),
    ("POST", re.compile(r"/v1/streams/[^/]*/(labels|samples)"), LABEL),
    ("GET", re.compile(r"/v1/streams/[^/]*/model"), ADMIN),
    ("PUT", re.compile(r".*"), ADMIN),
    ("DELETE", re.compile(r".*"), ADMIN),
)
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class Gate:
    """Around the application: tokens, or only requests to this machine by its own name; answers are counted.

    A page from elsewhere that the user's browser shows must not use the service: neither by sending requests, of which
    browsers tell the origin, nor, without tokens, under a name of its own (DNS rebinding).
    """

    def __init__(self, app: App, service: Callable[[], Service], tokens: Tokens | None, local_only: bool) -> None:
        self._app, self._service, self._tokens, self._local_only = app, service, tokens, local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 0

        async def counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_SAFE]
                route = getattr(scope.get("route"), "path", "other")
                self._service().metrics.request(route, _method(scope), status, time.perf_counter() - begin)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            try:
                await self._app(scope, receive, counted)
            finally:
                self._service().answered(scope)
            return
        code, error, headers = refusal
        content = json.dumps({"error": error}).encode()
        headers = [*headers, (b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
        await counted({"type": "http.response.start", "status": code, "headers": headers})
        await counted({"type": "http.response.body", "body": content})

    def _refusal(self, scope: Scope) -> tuple[int, str, list[tuple[bytes, bytes]]] | None:
        headers = dict(scope["headers"])
        path, method = scope["path"], scope["method"]
        kind = headers.get(b"content-type", b"application/json").partition(b";")[0].strip().lower()
        if method in ("POST", "PUT") and kind != b"application/json":
            return 415, "the body must be JSON, with the header Content-Type: application/json", []
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != headers.get(b"host"):
            return 403, "pages from elsewhere may not use the service", []
        if self._local_only:
            host = headers.get(b"host", b"").decode("latin-1")
            if re.sub(r":\d+$", "", host).strip("[]").lower() not in LOOPBACK:
                return 421, "without tokens, the service answers only to localhost and 127.0.0.1", []
        if self._tokens is None or _OPEN.fullmatch(path):
            return None
        given = headers.get(b"authorization")
        scopes = self._tokens.scopes(None if given is None else given.decode("latin-1"))
        if scopes is None:
            challenge = [(b"www-authenticate", b'Basic realm="devdan", charset="UTF-8"')]
            return 401, "a token is needed: Authorization: Bearer …", challenge
        needed = next((scope_ for verb, where, scope_ in _NEEDS if verb == method and where.fullmatch(path)), None)
        if needed is not None and needed not in scopes:
            return 403, f"the token lacks the scope {needed}", []
        return None


def _method(scope: Scope) -> str:
    """The method, if it is one that there is: anybody can send any word."""
    method = scope["method"]
    return method if method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH") else "other"
