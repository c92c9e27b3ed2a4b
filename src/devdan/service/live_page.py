"""The live page: what the streams do, as they do it; and what Prometheus reads."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from fastapi import FastAPI, HTTPException
from fastapi.responses import HTMLResponse, Response
from markupsafe import Markup

from devdan.report.render import Tile, render
from devdan.report.words import number, percent
from devdan.service.engine import Engine, Live
from devdan.service.handling import Service
from devdan.service.live_charts import charts
from devdan.service.predictor import text_of
from devdan.service.tally import WINDOW

_NOTHING = "There is nothing to show yet: predictions begin with the first label."
_SAFE = {"x-frame-options": "DENY", "cache-control": "no-store"}


def add_routes(api: FastAPI, service: Service) -> None:
    """The page, and what Prometheus reads."""
    engine = service.engine

    @api.get("/metrics", summary="What Prometheus reads")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @api.get("/", include_in_schema=False)
    async def page(stream: str | None = None) -> Response:
        name = stream if stream is not None else next(iter(engine.streams), None)
        if name is None:
            told = "There is no stream yet: PUT /v1/streams/… makes one, see /docs."
            return HTMLResponse(render("live.html", title="devdan", told=told, stream=None, body=""), headers=_SAFE)
        live = await service.find(name)
        body = Markup(_stream(engine, live))
        return HTMLResponse(
            render("live.html", title=live.name, told="As of now.", stream=live.name, body=body), headers=_SAFE
        )

    @api.get("/live/{stream}", include_in_schema=False)
    async def part(stream: str) -> Response:
        return HTMLResponse(_stream(engine, await service.find(stream)), headers=_SAFE)

    @api.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        raise HTTPException(404, "there is no icon")


def _stream(engine: Engine, live: Live) -> str:
    """All that changes on the page of a stream."""
    tally = live.published.tally
    latest = [
        {
            "id": row.id,
            "at": f"{datetime.fromtimestamp(row.at, timezone.utc):%Y-%m-%d %H:%M:%S} UTC",
            "predicted": "–" if row.predicted is None else text_of(row.predicted),
            "confidence": percent(row.confidence),
        }
        for row in reversed(tally.latest)
    ]
    return render(
        "live_stream.html",
        stream=live.name,
        streams=[_listed(one) for one in engine.streams.values()],
        tiles=_tiles(live),
        charts=charts(tally),
        nothing=_NOTHING,
        latest=latest,
        problem=tally.problem,
    )


def _listed(live: Live) -> dict[str, Any]:
    tally = live.published.tally
    return {
        "name": live.name,
        "rows": number(tally.n_rows),
        "labels": number(tally.n_labels),
        "waiting": number(tally.n_waiting),
        "accuracy": percent(tally.accuracy),
    }


def _tiles(live: Live) -> list[Tile]:
    published = live.published
    tally = published.tally
    labelled = min(len(tally.outcomes), WINDOW)
    drifts = published.virtual + published.real
    return [
        Tile("Accuracy", percent(tally.accuracy), "", f"of the latest {number(labelled)} with labels"),
        Tile("Expected accuracy", percent(tally.expected), "", "of the latest predictions, before labels come"),
        Tile("Rows", number(tally.n_rows), "", f"{number(tally.n_labels)} with labels"),
        Tile("Waiting", number(tally.n_waiting), "", f"{number(tally.n_expired_rows)} came to an end without a label"),
        Tile("Drifts", number(drifts), "", f"{number(published.real)} real, {number(published.virtual)} virtual"),
        Tile("Hidden units", number(published.n_hidden), "", f"after record {number(published.predictor.version)}"),
    ]
