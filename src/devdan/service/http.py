"""The service as an ASGI application: what every request passes, a table of operations, and their documentation."""

from __future__ import annotations

import inspect
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route, Router

import devdan
from devdan.report.render import policy_of, render
from devdan.service import audit
from devdan.service.auth import ADMIN, Guard, Refusal, Tokens, is_open, scope_for
from devdan.service.database import Database, UnavailableError
from devdan.service.engine import ConflictError, Engine, InitialModel, Live, NotFoundError, NotReadyError
from devdan.service.metrics import Metrics
from devdan.service.schema import BusyError, FairShares, InvalidError, LimitError, Limits, is_name

if TYPE_CHECKING:
    from devdan.service.kafka import KafkaSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_ABOUT = """Predictions now, labels whenever they come: each row is kept until its label arrives and is learned once.

A row or label that was acknowledged is on disk. Ids make requests repeatable: send again whatever was not answered.
"""
_ERROR = {
    "description": "An error, and why",
    "content": {
        "application/json": {
            "schema": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
        }
    },
}
_REFERENCE = "#/components/schemas/{name}"
_RETRY = {"retry-after": "1"}
_OK, _EMPTY, _CONFLICT, _FAILED = 200, 204, 409, 500
_TOKEN = {"type": "http", "scheme": "bearer", "description": "A token of the service, if it has any"}
_STATUS: dict[type[Exception], tuple[int, dict[str, str]]] = {
    InvalidError: (422, {}),
    LimitError: (413, {}),
    NotFoundError: (404, {}),
    ConflictError: (409, {}),
    BusyError: (429, _RETRY),
    NotReadyError: (503, _RETRY),
}
_EXPECTED = (HTTPException, UnavailableError, *_STATUS)
_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
]
_BYTES, _PATH = "devdan.bytes", "devdan.path"  # in the scope of a request: its sender and size, its operation's path

encode = msgspec.json.Encoder().encode
logger = logging.getLogger("devdan.service")


def answered(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """An answer in JSON."""
    return Response(encode(content), status, headers, media_type="application/json")


def refused(refusal: Refusal) -> Response:
    """The answer to a request that is refused."""
    return answered({"error": refusal.error}, refusal.status, refusal.headers)


def shown(page: str) -> Response:
    """A page, which no other may frame."""
    policy = f"{policy_of(page)}; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    return HTMLResponse(page, headers={"content-security-policy": policy, "cache-control": "no-store"})


class Call(Request):
    """A request, with the application that answers it."""

    @property
    def application(self) -> Application:
        application: Application = self.scope["app"]
        return application

    @property
    def engine(self) -> Engine:
        return self.application.engine

    @cached_property
    def sender(self) -> str:
        """Who has sent it, among whom what is limited is shared."""
        return self.application.guard.sender(self.scope)

    detail = ""  # of the call, for the audit

    async def live(self) -> Live:
        """The stream that the path names."""
        return await self.engine.find(self.path_params["stream"])

    async def content(self) -> bytes:
        """The body, unless it is too large, or all bodies together are."""
        application, limits = self.application, self.engine.limits
        declared = self.headers.get("content-length")
        if declared is not None and declared.isdigit() and int(declared) > limits.body:
            raise LimitError(f"a body may have {limits.body} bytes, got {declared}")
        shares, sender = application.bytes_answered, self.sender
        shares.check(sender, int(declared) if declared is not None and declared.isdigit() else 0, application.n_bytes)
        parts, size = [], 0
        async for part in self.stream():
            size += len(part)
            if size > limits.body:
                raise LimitError(f"a body may have {limits.body} bytes, got more")
            parts.append(part)
            application.n_bytes += len(part)
            shares.take(sender, len(part))
            self.scope[_BYTES] = sender, size
            if application.n_bytes > limits.bodies:  # it did not say how large it is
                raise BusyError("too much is being answered already; send it again later")
        return parts[0] if len(parts) == 1 else b"".join(parts)


@dataclass(frozen=True)
class Operation:
    """What the service does for a method and a path; those with a summary are documented."""

    method: str
    path: str
    answer: Callable[[Call], Awaitable[Response]]
    summary: str = ""
    body: type | None = None
    example: Any = None  # of a body
    responses: Mapping[int, str] = field(default_factory=dict)
    result: msgspec.Struct | None = None  # an example of an answer, whose type is its schema
    media: str = "application/json"  # of answers
    is_audited: bool = True  # if it needs the scope admin

    @property
    def shown_path(self) -> str:
        """The path without the types of its parameters."""
        return self.path.replace(":path}", "}")

    @property
    def parameters(self) -> list[str]:
        """The parameters in the path."""
        return re.findall(r"{(\w+)}", self.shown_path)

    @property
    def example_text(self) -> str:
        """The example in JSON."""
        return json.dumps(self.example, ensure_ascii=False)

    @property
    def result_text(self) -> str:
        """The example of an answer in JSON; none if there is no answer in JSON."""
        return "" if self.result is None else encode(self.result).decode()

    @property
    def access(self) -> str:
        """What a request needs where there are tokens."""
        if is_open(self.path):
            return "needs no token"
        return "needs a token" if self.scope is None else f"needs a token with the scope {self.scope}"

    @cached_property
    def scope(self) -> str | None:
        """The scope that a token needs for it; None if any token will do."""
        return scope_for(self.method, self.shown_path)

    def described(self) -> dict[str, Any]:
        """The operation in the format of OpenAPI."""
        answers = {200: "The answer", **self.responses}
        said: dict[str, Any] = {
            "summary": self.summary,
            "operationId": self.answer.__name__,
            "parameters": [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in self.parameters
            ],
            "responses": {str(status): self._response(status, about) for status, about in answers.items()}
            | {"default": _ERROR},
            "description": f"Where there are tokens, it {self.access}.",
        }
        if is_open(self.path):
            said["security"] = []
        if self.body is not None:
            content = {"schema": {"$ref": _REFERENCE.format(name=self.body.__name__)}, "example": self.example}
            said["requestBody"] = {"content": {"application/json": content}, "required": self.method == "POST"}
        return said

    def _response(self, status: int, about: str) -> dict[str, Any]:
        """An answer of this status; some are of the same form although something was refused, or is not ready."""
        said: dict[str, Any] = {"description": about}
        if self.result is not None and status != _EMPTY and not (self.method == "PUT" and status == _CONFLICT):
            schema = {"$ref": _REFERENCE.format(name=type(self.result).__name__)}
            said["content"] = {self.media: {"schema": schema, "example": json.loads(self.result_text)}}
        elif self.result is None and status == _OK and self.method == "GET":
            said["content"] = {self.media: {}}
        return said

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer a request."""
        scope[_PATH] = self.path
        call = Call(scope, receive)
        refusal = call.application.guard.lacks(scope, self.scope)
        if refusal is not None:
            response = await self._refused(call, refusal)
        else:
            response = await (self._audited(call) if self.scope == ADMIN and self.is_audited else self.answer(call))
        await response(scope, receive, send)

    async def _refused(self, call: Call, refusal: Refusal) -> Response:
        """Answer somebody who is known and may not; a call of administrators is written down."""
        if self.scope == ADMIN:
            engine, who = call.engine, call.application.guard.name(call.scope)
            at = engine.writer.clock.now()
            with suppress(UnavailableError):  # it is refused anyway
                await engine.write(partial(audit.refused, at=at, who=who or "", what=self.title, status=refusal.status))
        return refused(refusal)

    @property
    def title(self) -> str:
        """How the audit calls it."""
        return f"{self.method} {self.shown_path}"

    async def _audited(self, call: Call) -> Response:
        """Answer a request that is written down before, and its outcome after."""
        engine, who, stream = call.engine, call.application.guard.name(call.scope), call.path_params.get("stream", "")
        begin = partial(
            audit.begin,
            at=engine.writer.clock.now(),
            who=who or "",
            what=self.title,
            stream=stream if is_name(stream) else "",
        )
        number = await engine.write(begin)
        status = _FAILED
        try:
            response = await self.answer(call)
            status = response.status_code
        except Exception as error:
            status = _failure(error, self.method).status_code
            raise
        finally:
            with suppress(UnavailableError):  # it was answered then, and the entry has no outcome
                await engine.write(partial(audit.end, number=number, status=status, detail=call.detail))
        return response

    def route(self) -> Route:
        """The operation for Starlette's router."""
        route = Route(self.path, self, methods=[self.method])
        route.methods = {self.method}  # without HEAD, which would follow events for ever
        # Its own leaves the end of a line behind a path out, so that "a\n" would be the sample "a".
        route.path_regex = re.compile(route.path_regex.pattern.removesuffix("$") + r"\Z", re.DOTALL)
        return route


class Application:
    """The service; ``engine`` is there once it has started. ``kafka`` says where messages come from, too."""

    engine: Engine
    on_failure: Callable[[], object] = staticmethod(lambda: None)  # what ends the process

    def __init__(
        self,
        database: Database,
        operations: Sequence[Operation],
        *,
        model: InitialModel | None = None,
        limits: Limits | None = None,
        tokens: Tokens | None = None,
        local_only: bool = True,
        predict_unlogged: bool = False,
        snapshots: float | None = None,
        kafka: KafkaSettings | None = None,
    ) -> None:
        self._database, self._model, self._limits, self._kafka = database, model, limits, kafka
        self._options: dict[str, Any] = {"predict_unlogged": predict_unlogged, "snapshots": snapshots}
        self.guard = Guard(tokens, local_only)
        self.operations = (*operations, *_DOCUMENTATION)
        self._router = Router([one.route() for one in self.operations], lifespan=self._lifespan)
        self.n_bytes = 0  # of bodies in memory
        self.bytes_answered = FairShares((limits or Limits()).bodies, "bytes are being answered")

    @asynccontextmanager
    async def _lifespan(self, router: Any) -> AsyncIterator[None]:
        self.engine = engine = Engine(self._database, self._limits, **self._options)
        engine.supervisor.end = self.on_failure
        self.metrics = Metrics(engine)
        await engine.start(self._model)
        messages = None
        if self._kafka is not None:
            from devdan.service.kafka import KafkaWorker  # noqa: PLC0415 (an optional extra)

            messages = KafkaWorker(engine, self._kafka, self.metrics.registry)
            messages.start()
        try:
            yield
        finally:
            if messages is not None:
                await messages.stop()
            await engine.stop()
            self._database.close()

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        scope["app"] = self
        begin, status = time.perf_counter(), 0

        async def counted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = dict(message.get("headers", ()))
                message["headers"] = [*message.get("headers", ()), *(one for one in _SAFE if one[0] not in own)]
                method = scope["method"] if scope["method"] in _METHODS else "other"  # a client can send any word
                self.metrics.request(scope.get(_PATH, "other"), method, status, time.perf_counter() - begin)
            await send(message)

        try:
            refusal = self.guard.refusal(scope)
            if refusal is None:
                await self._router(scope, receive, counted)
            else:
                await refused(refusal)(scope, receive, counted)
        except ClientDisconnect:
            logger.info("a client left before its %s %s was complete", scope["method"], scope.get(_PATH, ""))
        except Exception as error:
            if status:  # the answer has begun; uvicorn logs the error and closes the connection
                raise
            await _failure(error, scope["method"])(scope, receive, counted)
            if not isinstance(error, _EXPECTED):
                logger.exception("unexpected error in an answer to %s %s", scope["method"], scope.get(_PATH, ""))
        finally:
            sender, size = scope.pop(_BYTES, ("", 0))
            self.n_bytes -= size
            self.bytes_answered.take(sender, -size)

    @cached_property
    def document(self) -> dict[str, Any]:
        """The description of the operations in the format of OpenAPI."""
        documented = [one for one in self.operations if one.summary]
        kinds = [kind for one in documented for kind in (one.body, one.result and type(one.result)) if kind is not None]
        _, schemas = msgspec.json.schema_components(dict.fromkeys(kinds), ref_template=_REFERENCE)
        for schema in schemas.values():
            schema["description"] = inspect.cleandoc(schema["description"])
        paths: dict[str, dict[str, Any]] = {}
        for one in documented:
            paths.setdefault(one.shown_path, {})[one.method.lower()] = one.described()
        info = {"title": "devdan", "version": devdan.__version__, "description": _ABOUT}
        components = {"schemas": schemas, "securitySchemes": {"token": _TOKEN}}
        security: list[dict[str, list[str]]] = [{"token": []}, *([] if self.guard.needs_tokens else [{}])]
        return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components, "security": security}


def _failure(error: Exception, method: str) -> Response:
    """The answer to a request that has failed."""
    if isinstance(error, HTTPException):  # of the router
        return answered({"error": error.detail}, error.status_code, error.headers)
    if isinstance(error, UnavailableError) and not isinstance(error, NotReadyError):
        done = "read" if method in ("GET", "HEAD") else "written"
        return answered({"error": f"the log cannot be {done} at present; send the request again later"}, 503, _RETRY)
    for kind in type(error).__mro__:
        if kind in _STATUS:
            return answered({"error": str(error)}, *_STATUS[kind])
    return answered({"error": "internal error"}, 500)


# --- Documentation ---------------------------------------------------------------------------------------------------


async def openapi(call: Call) -> Response:
    return answered(call.application.document)


async def docs(call: Call) -> Response:
    """The document as a page, which needs neither a network nor a script, but sends requests with one."""
    schemas = call.application.document["components"]["schemas"]
    page = render(
        "docs.html",
        version=devdan.__version__,
        about=_ABOUT,
        operations=[one for one in call.application.operations if one.summary],
        address=str(call.base_url).rstrip("/"),
        schemas={name: json.dumps(schema, indent=2, ensure_ascii=False) for name, schema in schemas.items()},
        needs_tokens=call.application.guard.needs_tokens,
    )
    return shown(page)


_DOCUMENTATION = (Operation("GET", "/docs", docs), Operation("GET", "/openapi.json", openapi))
