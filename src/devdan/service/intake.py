"""The routes by which rows and labels come."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec
from fastapi import FastAPI, Request
from fastapi.responses import Response

from devdan.service.bodies import (
    LABELS,
    SAMPLES,
    LabelsIn,
    RowIn,
    RowsIn,
    SamplesIn,
    check_labels,
    check_rows,
    parsed,
    parsed_rows,
)
from devdan.service.database import UnavailableError
from devdan.service.engine import LimitError, Live
from devdan.service.handling import Service, answered, raise_if_refused, takes
from devdan.service.logged import Label
from devdan.service.naming import InvalidError, check_texts, new_id, struct_of
from devdan.service.predictor import Prediction, Predictor
from devdan.service.submissions import Outcome, Row
from devdan.service.writer import BusyError

BODIES = (RowsIn, SamplesIn, LabelsIn)
_IN_THREAD = 1000  # rows from which on predictions are made beside the event loop
_STREAM = {"parameters": [{"name": "stream", "in": "path", "required": True, "schema": {"type": "string"}}]}
_SAYS: dict[int | str, dict[str, Any]] = {
    409: {"description": "Something contradicts what is known of an id; the rest was accepted"}
}


class Answer(NamedTuple):
    """Predictions of rows, in their order; without an outcome, the rows could not be written."""

    ids: list[str]
    predictions: list[Prediction]
    predictor: Predictor
    outcome: Outcome | None


def check_keys(service: Service, live: Live, keys: Sequence[str] | None) -> None:
    """Raise an error for a new key where there are as many as may be; those on their way do not count yet."""
    most, predictor = service.engine.limits.keys, live.predictor
    if keys is not None and predictor.n_keys >= most and not all(map(predictor.knows, keys)):
        raise LimitError(f"the stream has {predictor.n_keys} keys, and may have {most}; there is a new one among these")


class _Predicted(msgspec.Struct, gc=False):
    """A prediction as it is answered."""

    id: str
    label: Label | None
    probabilities: Any  # by label


async def foreseen(
    service: Service, live: Live, rows: Sequence[RowIn]
) -> tuple[list[Row], list[Prediction], Predictor]:
    """Predict rows; returns them as they are to be written down, and what to answer."""
    predictor = live.predictor
    keys = [row.key or "" for row in rows] if live.settings.keyed else None
    check_keys(service, live, keys)
    try:
        if len(rows) == 1:
            predictions = [predictor.one(rows[0].features, rows[0].key)]
        elif len(rows) < _IN_THREAD:
            predictions = predictor.many([row.features for row in rows], keys)
        else:
            predictions = await asyncio.to_thread(predictor.many, [row.features for row in rows], keys)
    except ValueError as error:  # a model of numbers was given something else
        raise InvalidError(str(error)) from error
    ids = [row.id or new_id() for row in rows]
    written = [
        Row(id_, row.features, row.key, said.label, said.confidence, None, row.id is None)
        for id_, row, said in zip(ids, rows, predictions, strict=True)
    ]
    return written, predictions, predictor


async def predicted(service: Service, live: Live, rows: Sequence[RowIn]) -> Answer:
    """Predict rows, and write them down with what was answered."""
    written, predictions, predictor = await foreseen(service, live, rows)
    ids = [row.id for row in written]
    try:
        outcome = await service.engine.submit(live, written)
    except (UnavailableError, BusyError):
        if not service.predict_unlogged:
            raise
        return Answer(ids, predictions, predictor, None)
    raise_if_refused(outcome)
    return Answer(ids, predictions, predictor, outcome)


def add_routes(api: FastAPI, service: Service) -> None:
    """Predict, labels and samples, each a function of the request alone; see :mod:`devdan.service.direct`."""
    engine = service.engine

    @api.post(
        "/v1/streams/{stream}/predict", summary="Predict rows", openapi_extra=takes("RowsIn") | _STREAM, responses=_SAYS
    )
    async def predict(request: Request) -> Response:
        live = await service.find(request.path_params["stream"])
        rows = parsed_rows(await service.body(request), live.predictor.columns)
        check_rows(rows, live.settings.keyed, engine.limits)
        ids, predictions, predictor, outcome = await predicted(service, live, rows)
        named = struct_of(tuple(predictor.names), float) or partial(_as_dict, predictor.names)
        answer: dict[str, Any] = {
            "predictions": [
                _Predicted(id_, said.label, named(*said.shares)) for id_, said in zip(ids, predictions, strict=True)
            ],
            "version": predictor.version,
        }
        if not predictor.names:
            answer["note"] = "no label has been learned yet, so there is no prediction"
        if outcome is None:
            answer["logged"] = False
        elif outcome.repeated_rows:
            answer["repeated"] = outcome.repeated_rows
        if outcome is not None and outcome.refused:
            return _contradicted(answer, outcome)
        return answered(answer)

    @api.post(
        "/v1/streams/{stream}/labels",
        summary="Labels of rows",
        openapi_extra=takes("LabelsIn") | _STREAM,
        responses=_SAYS,
    )
    async def labels(request: Request) -> Response:
        live = await service.find(request.path_params["stream"])
        given = parsed(LABELS, await service.body(request)).labels
        check_labels(given, engine.limits)
        outcome = await engine.submit(live, labels=[(one.id, one.label) for one in given])
        raise_if_refused(outcome)
        return _told(service, live, outcome, {})

    @api.post(
        "/v1/streams/{stream}/samples",
        summary="Rows with labels",
        openapi_extra=takes("SamplesIn") | _STREAM,
        responses=_SAYS,
    )
    async def samples(request: Request) -> Response:
        live = await service.find(request.path_params["stream"])
        rows = parsed(SAMPLES, await service.body(request)).rows
        check_rows(rows, live.settings.keyed, engine.limits)
        check_keys(service, live, [row.key or "" for row in rows] if live.settings.keyed else None)
        check_texts([row.label for row in rows if isinstance(row.label, str)], "a label")
        ids = [row.id or new_id() for row in rows]
        written = [
            Row(id_, row.features, row.key, None, None, row.label, row.id is None)
            for id_, row in zip(ids, rows, strict=True)
        ]
        outcome = await engine.submit(live, written)
        raise_if_refused(outcome)
        return _told(service, live, outcome, {"ids": ids})


def counted(service: Service, live: Live, outcome: Outcome) -> dict[str, int]:
    """Count labels, and return by outcome how many there were."""
    counts = {name: getattr(outcome, name) for name in ("accepted", "repeated", "waiting", "expired")}
    service.metrics.labels(live.name, **counts, refused=len(outcome.refused))
    return counts


def _told(service: Service, live: Live, outcome: Outcome, more: dict[str, Any]) -> Response:
    answer: dict[str, Any] = counted(service, live, outcome) | more
    return _contradicted(answer, outcome) if outcome.refused else answered(answer)


def _as_dict(names: Sequence[str], *values: float) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


def _contradicted(answer: dict[str, Any], outcome: Outcome) -> Response:
    refused = [one._asdict() for one in outcome.refused]
    error = f"{len(refused)} contradict what is known and were refused; the rest was accepted"
    return answered({"error": error, "refused": refused} | answer, 409)
