"""The live page."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import Response

from devdan.service.handling import Service


def add_routes(api: FastAPI, service: Service) -> None:
    """The page, and what Prometheus reads."""

    @api.get("/metrics", summary="What Prometheus reads")
    async def metrics() -> Response:
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
