"""The server process: all operations of the service, and uvicorn plus timeouts for slow clients."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from devdan.encoding.encoding import EncodingWarning
from devdan.histories.histories import HistoryWarning
from devdan.model.compilation import compile_kernel
from devdan.model.devdan import DEVDAN
from devdan.service import api, inference, live
from devdan.service.auth import LOOPBACK, Tokens
from devdan.service.database import Database
from devdan.service.http import Application
from devdan.service.supervision import end_in_time

_SWITCH = 0.001  # seconds until another thread gets its turn, so that answers do not wait for learning
_GARBAGE = 100_000  # objects between two garbage collections: one request of many rows makes thousands
_CONNECTIONS = 1000
_BACKLOG = 2048  # connections that wait to be accepted
_GRACE = 10  # seconds for requests to end
_HEADERS = 64 * 2**10  # bytes of a request beside its body: headers, and what divides the body into chunks
_WAITING = 100  # requests of a connection that wait for their turn
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


class FailedError(RuntimeError):
    """The service cannot do its work any more; the process must end, to be started again."""


class ListenError(ValueError):
    """The service cannot or must not listen there; the message says what helps."""


def application(database: Database, **options: Any) -> Application:
    """The whole service; options are those of :class:`Application`."""
    return Application(database, (*api.OPERATIONS, *inference.OPERATIONS, *live.OPERATIONS), **options)


def check_address(host: str, tokens: Tokens | None, is_encrypted: bool = True) -> None:
    """Raise an error unless it is this machine's, or there are tokens; warn where these could be read on their way."""
    if tokens is None and host not in LOOPBACK:
        raise ListenError(
            f"without tokens the service listens on 127.0.0.1 only, got {host!r}; --tokens names a file with tokens"
        )
    if not is_encrypted and host not in LOOPBACK:
        warnings.warn(
            f"tokens, rows and labels are not encrypted on their way to {host}: whoever can listen in between can read "
            "and use them; --tls-certificate and --tls-key encrypt them, or a proxy in front of 127.0.0.1",
            stacklevel=2,
        )


def server(
    served: Application,
    host: str,
    port: int,
    *,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[int], None] = lambda port: None,
) -> uvicorn.Server:
    """A server, to be run; ``ready`` gets the port, which is chosen if it is 0."""
    config = uvicorn.Config(
        served,
        host=host,
        port=port,
        http=_Protocol,
        ws="none",  # an upgrade would leave its limits
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # the address of a client is not used
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=_GRACE,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
    )
    return _Server(config, served, ready)


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"{host}, port {port}"
        if error.errno == errno.EADDRINUSE:
            raise ListenError(f"another program listens on {where}; --port names another, and 0 chooses one") from None
        raise ListenError(f"cannot listen on {where}: {error.strerror or error}") from None


def serve(made: uvicorn.Server) -> None:
    """Serve until a signal ends the process."""
    sockets = [listening(made.config.host, made.config.port)]
    compile_kernel(DEVDAN())
    gc.collect()
    gc.freeze()  # what is there stays, and to go through it takes a fifth of a second
    gc.set_threshold(_GARBAGE)
    sys.setswitchinterval(_SWITCH)
    for kind in (EncodingWarning, HistoryWarning):  # the description of a stream says it
        warnings.simplefilter("ignore", kind)
    served: Any = made.config.app
    served.on_failure = partial(_end, made)
    made.run(sockets)
    if served.engine.supervisor.failure is not None:
        raise FailedError(served.engine.supervisor.failure)


def _end(made: uvicorn.Server) -> None:
    """End the server from any thread, whatever happens."""
    end_in_time()
    made.should_exit = True


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, served: Application, ready: Callable[[int], None]) -> None:
        super().__init__(config)
        self._served, self._ready = served, ready

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready(self.servers[0].sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        if hasattr(self._served, "engine"):
            self._served.engine.end_listening()


class _Protocol(HttpToolsProtocol):
    """A connection that is closed if a request takes too long or too much to arrive, or an answer to be received.

    Only one request arrives at a time; those behind it are not read before it is answered, and have their time then.
    """

    _arriving: asyncio.TimerHandle | None = None
    _leaving: asyncio.TimerHandle | None = None
    _is_incomplete = False  # whether the latest request is
    _n_other = _n_body = 0  # its bytes but the body, and those

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self._n_alike > _CONNECTIONS - len(self.connections):
            self.transport.write(_BUSY)
            self.transport.close()
        else:
            self._begin_arriving()

    def data_received(self, data: bytes) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self._begin_arriving()
        self._n_other += len(data)
        super().data_received(data)
        if self._n_other > _HEADERS + self._n_body and not self.transport.is_closing():
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_TOO_LARGE)
            self._cut_off()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_incomplete, self._n_other, self._n_body = True, 0, 0
        if not self.pipeline:
            self._begin_arriving()

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.pipeline:  # it waits for its turn, and nothing is read meanwhile
            self._stop_timer("_arriving")
        if len(self.pipeline) > _WAITING:
            self._cut_off()

    def on_body(self, body: bytes) -> None:
        self._n_body += len(body)
        self._n_other -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_incomplete = False
        self._stop_timer("_arriving")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._is_incomplete and not self.pipeline:
            self._begin_arriving()

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._leaving is None:
            self._leaving = self.loop.call_later(self._seconds, self._cut_off)

    def resume_writing(self) -> None:
        self._stop_timer("_leaving")
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer("_arriving")
        self._stop_timer("_leaving")
        super().connection_lost(exc)

    def _cut_off(self) -> None:
        for cycle in (self.cycle, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None:
                cycle.disconnected = True  # it may be about to write
        self.transport.abort()

    def _stop_timer(self, name: str) -> None:
        timer = getattr(self, name)
        if timer is not None:
            timer.cancel()
            setattr(self, name, None)

    @property
    def _n_alike(self) -> int:
        """Connections from the same address, which may have as many as are then left for others."""
        connections: Any = self.connections
        own = self.client and self.client[0]
        return sum((other.client and other.client[0]) == own for other in connections)

    def _begin_arriving(self) -> None:
        """Unless it runs already."""
        if self._arriving is None and not self.transport.is_closing():
            self._arriving = self.loop.call_later(self._seconds, self._cut_off)

    @property
    def _seconds(self) -> float:
        application: Any = self.config.app
        return float(application.engine.limits.seconds)
