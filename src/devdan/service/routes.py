"""The routes of streams: make, show and delete them; ask what became of a sample; follow what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import Response, StreamingResponse

from devdan.service.bodies import check_settings, parsed, parser
from devdan.service.engine import Live
from devdan.service.handling import Service, answered, described, encode, takes
from devdan.service.logged import Settings
from devdan.service.naming import check_name, check_text
from devdan.service.writer import BusyError

_SETTINGS = parser(Settings)
_EVERY = 0.5  # seconds between two events at least
_ALIVE = 15.0  # seconds after which a listener that hears nothing is told that the service is there


def add_routes(api: FastAPI, service: Service) -> None:
    """Streams, and what is in them."""
    engine = service.engine

    @api.get("/v1/streams", summary="All streams")
    async def streams() -> Response:
        if engine.database.is_shared:
            await engine.refresh()
        return answered({"streams": [described(live) for live in engine.streams.values()]})

    @api.put(
        "/v1/streams/{stream}",
        summary="Make a stream",
        openapi_extra=takes("Settings", required=False),
        responses={201: {"description": "It was made"}, 409: {"description": "There is one with other settings"}},
    )
    async def create(stream: str, request: Request) -> Response:
        check_name(stream)
        content = await service.body(request)
        settings = parsed(_SETTINGS, content) if content.strip() else Settings()
        check_settings(settings)
        live, is_new = await engine.create(stream, settings)
        return answered(described(live), 201 if is_new else 200)

    @api.get("/v1/streams/{stream}", summary="Show a stream")
    async def show(stream: str) -> Response:
        return answered(described(await service.find(stream)))

    @api.delete("/v1/streams/{stream}", summary="Delete a stream with all that is kept of it", status_code=204)
    async def delete(stream: str) -> Response:
        await engine.delete(await service.find(stream))
        service.metrics.forget(stream)
        return Response(status_code=204)

    @api.get("/v1/streams/{stream}/samples/{id:path}", summary="What became of a sample")
    async def sample(stream: str, id: str) -> Response:
        live = await service.find(stream)
        check_text(id, "an id")
        known = await engine.sample(live, id)
        if known is None:
            raise HTTPException(404, "there is no sample of this id")
        return answered(known._asdict())

    @api.get("/v1/streams/{stream}/model", summary="The model file")
    async def model(stream: str) -> Response:
        live = await service.find(stream)
        content = await asyncio.to_thread(live.predictor.content)
        if content is None:
            raise HTTPException(404, "there is no model yet: it begins with the first row")
        headers = {"content-disposition": f'attachment; filename="{live.name}.devdan"'}
        return Response(content, media_type="application/octet-stream", headers=headers)

    @api.get("/v1/streams/{stream}/events", summary="What happens, as server-sent events")
    async def events(stream: str) -> Response:
        live = await service.find(stream)
        if service.n_listeners >= engine.limits.listeners:
            raise BusyError(f"{service.n_listeners} listen already; try again later")
        headers = {"cache-control": "no-store"}
        return StreamingResponse(_events(service, live), media_type="text/event-stream", headers=headers)


async def _events(service: Service, live: Live) -> AsyncIterator[bytes]:
    """The stream whenever it has changed, but not too often; it ends when the stream is deleted."""
    engine = service.engine
    service.n_listeners += 1
    try:
        while engine.streams.get(live.name) is live and not engine.is_stopping:
            changed = live.changed
            yield b"data: " + encode(described(live)) + b"\n\n"
            await asyncio.sleep(_EVERY)
            while not changed.is_set() and not engine.is_stopping:
                try:
                    await asyncio.wait_for(changed.wait(), _ALIVE)
                except (TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
                    yield b": still here\n\n"
    finally:
        service.n_listeners -= 1
