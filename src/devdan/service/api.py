"""The operations on streams, under ``/v1``: predict, labels, samples; create, show and delete; follow what happens."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from starlette.background import BackgroundTask
from starlette.responses import FileResponse, Response, StreamingResponse

from devdan.service import answers, audit
from devdan.service.bodies import (
    LABELS,
    SAMPLES,
    SETTINGS,
    LabelsIn,
    RowsIn,
    SamplesIn,
    check_labels,
    check_rows,
    parsed,
    parsed_rows,
    struct_of,
)
from devdan.service.engine import Engine, Live, NotFoundError
from devdan.service.http import Call, Operation, answered, encode
from devdan.service.schema import (
    BusyError,
    InvalidError,
    Label,
    StreamSettings,
    SubmissionOutcome,
    SubmittedRow,
    check_name,
    check_texts,
    new_id,
)

_EVERY = 0.5  # seconds between two events at least
_CALLS = 1000  # in an answer
_NUMBER = re.compile(r"[0-9]{1,15}")
_ALIVE = 15.0  # seconds without an event after which a listener gets a sign of life


class _PredictedRow(msgspec.Struct, gc=False):
    id: str
    label: Label | None
    probabilities: Any  # by label


async def predict(call: Call) -> Response:
    live = await call.live()
    content = await call.content()
    rows = parsed_rows(content, live.predictor.columns)
    check_rows(rows, live.settings.keyed, call.engine.limits, len(content))
    submitted, predictions, predictor, outcome = await call.engine.predict_and_log(live, rows, call.sender)
    named = struct_of(tuple(predictor.names), float) or partial(_as_dict, predictor.names)
    answer: dict[str, Any] = {
        "predictions": [
            _PredictedRow(row.id, said.label, named(*said.probabilities))
            for row, said in zip(submitted, predictions, strict=True)
        ],
        "version": predictor.version,
    }
    if predictor.thresholds:
        answer["thresholds"] = predictor.thresholds
    if not predictor.names:
        answer["note"] = "no label has been learned yet, so there is no prediction"
    if outcome is None:
        answer["logged"] = False
    elif outcome.repeated_rows:
        answer["repeated"] = outcome.repeated_rows
    return _told(answer, outcome)


async def labels(call: Call) -> Response:
    live = await call.live()
    given = parsed(LABELS, await call.content())
    check_labels(given.labels, call.engine.limits)
    pairs = [(one.id, one.label) for one in given.labels]
    outcome = await call.engine.submit(live, labels=pairs, replaces=given.replaces, sender=call.sender)
    return _told(live.count_labels(outcome), outcome)


async def samples(call: Call) -> Response:
    live = await call.live()
    content = await call.content()
    rows = parsed(SAMPLES, content).rows
    check_rows(rows, live.settings.keyed, call.engine.limits, len(content))
    check_texts([row.label for row in rows if isinstance(row.label, str)], "a label")
    keys = [row.key or "" for row in rows] if live.settings.keyed else None
    await call.engine.check_keys(live, keys)
    await call.engine.check_memory(live, [row.features for row in rows], keys, [row.label for row in rows])
    submitted = [
        SubmittedRow(row.id or new_id(), row.features, row.key, None, None, row.label, row.id is None) for row in rows
    ]
    outcome = await call.engine.submit(live, submitted, sender=call.sender)
    return _told(live.count_labels(outcome) | {"ids": [row.id for row in submitted]}, outcome)


def _as_dict(names: Sequence[str], *values: float) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


def _told(answer: dict[str, Any], outcome: SubmissionOutcome | None) -> Response:
    """The answer; with what was refused, if something was."""
    if outcome is None or not outcome.refused:
        return answered(answer)
    refused = [one._asdict() for one in outcome.refused]
    error = f"{len(refused)} contradict what is known and were refused; the rest was accepted"
    return answered({"error": error, "refused": refused} | answer, 409)


async def streams(call: Call) -> Response:
    if call.engine.database.is_shared:
        await call.engine.refresh()
    return answered({"streams": [_shown(live) for live in call.engine.streams.values()]})


async def create(call: Call) -> Response:
    name = check_name(call.path_params["stream"])
    content = await call.content()
    settings = parsed(SETTINGS, content) if content.strip() else StreamSettings()
    live, is_new = await call.engine.create(name, settings)
    return answered(_shown(live), 201 if is_new else 200)


async def show(call: Call) -> Response:
    return answered(_shown(await call.live()))


async def delete(call: Call) -> Response:
    await call.engine.delete(await call.live())
    return Response(status_code=204)


async def retry(call: Call) -> Response:
    live = await call.live()
    await call.engine.retry(live)
    return answered(_shown(live), 202)


async def sample(call: Call) -> Response:
    live, id_ = await call.live(), call.path_params["id"]
    check_texts([id_], "an id")
    return answered((await call.engine.sample(live, id_))._asdict())


async def forget(call: Call) -> Response:
    live, id_ = await call.live(), call.path_params["id"]
    check_texts([id_], "an id")
    version = await call.engine.forget(live, id_)
    call.detail = f"record {version}"
    return answered({"id": id_, "version": version})


async def audited(call: Call) -> Response:
    before = call.query_params.get("before")
    if before is not None and not _NUMBER.fullmatch(before):
        raise InvalidError(f"before must be the number of a call, got {before[:100]!r}")
    job = partial(audit.calls, before=None if before is None else int(before), most=_CALLS)
    return answered({"calls": [one._asdict() for one in await call.engine.read(job)]})


async def model(call: Call) -> Response:
    live = await call.live()
    live.check_loaded()
    kind, headers = "application/octet-stream", {"content-disposition": f'attachment; filename="{live.name}.devdan"'}
    if live.settings.keyed:
        folder = TemporaryDirectory(prefix="devdan-")
        path = Path(folder.name) / "fleet"
        try:
            made = await asyncio.to_thread(call.engine.write_fleet, live, path)
        except BaseException:
            folder.cleanup()
            raise
        if not made:
            folder.cleanup()
            raise NotFoundError(
                "there is no snapshot of the model yet: the first one is taken soon after the first row"
            )
        return FileResponse(path, media_type=kind, headers=headers, background=BackgroundTask(folder.cleanup))
    if live.settings.history is None:
        content = await asyncio.to_thread(live.predictor.content)
    else:  # what is known of entities is saved with the snapshot
        content = await call.engine.snapshot_model(live)
    if content is None:
        raise NotFoundError("there is no model yet: it begins with the first row")
    return Response(content, media_type=kind, headers=headers)


async def events(call: Call) -> Response:
    live, engine = await call.live(), call.engine
    if engine.n_listeners >= engine.limits.listeners:
        raise BusyError(f"{engine.n_listeners} listen already; try again later")
    headers = {"cache-control": "no-store"}
    return StreamingResponse(_events(engine, live), media_type="text/event-stream", headers=headers)


async def _events(engine: Engine, live: Live) -> AsyncIterator[bytes]:
    """The stream whenever it has changed, but not too often; it ends when the stream is deleted."""
    engine.n_listeners += 1
    try:
        while engine.streams.get(live.name) is live and not engine.is_stopping:
            changed = live.changed
            yield b"data: " + encode(_shown(live)) + b"\n\n"
            await asyncio.sleep(_EVERY)
            while not changed.is_set() and not engine.is_stopping:
                try:
                    await asyncio.wait_for(changed.wait(), _ALIVE)
                except (TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
                    yield b": still here\n\n"
    finally:
        engine.n_listeners -= 1


def _shown(live: Live) -> dict[str, Any]:
    """What there is to know about a stream."""
    view, predictor, counts = live.view, live.predictor, live.view.counts
    return {
        "stream": live.name,
        "settings": msgspec.structs.asdict(live.settings),
        "columns": predictor.columns,
        "created": live.created,
        "version": predictor.version,
        "classes": predictor.classes,
        "rows": counts.n_rows,
        "labels": counts.n_labels,
        "corrected": counts.n_corrected,
        "waiting": counts.n_waiting,
        "expired": counts.n_expired_rows,
        "forgotten": counts.n_forgotten,
        "erasing": view.is_erasing,
        "unusable": counts.n_unusable,
        "problem": counts.problem or None,
        "state": "in quarantine" if live.problem is not None else "ready" if live.is_loaded else "loading",
        "quarantine": live.problem,
        "accuracy": counts.accuracy,
        "expected_accuracy": counts.expected,
        "drifts": {"virtual": view.virtual, "real": view.real, "classes": counts.class_drifts},
        "hidden_units": view.n_hidden,
        "keys": predictor.n_keys if live.settings.keyed else None,
        "entities": view.n_entities,
        "notes": view.notes,
    }


_FEATURES = {"amount": 3.2, "city": "Köln"}
_REFUSED = {409: "Something contradicts what is known of an id; the rest was accepted"}
_CREATED = {201: "It was created", 409: "There is one with other settings"}
_STREAM = "/v1/streams/{stream}"
OPERATIONS = (
    Operation(
        "POST", f"{_STREAM}/predict", predict, "Predict rows",
        RowsIn, {"rows": [{"id": "a1", "features": _FEATURES}]}, _REFUSED, answers.PREDICTIONS,
    ),
    Operation(
        "POST", f"{_STREAM}/labels", labels, "Send labels of rows",
        LabelsIn, {"labels": [{"id": "a1", "label": "fraud"}]}, _REFUSED, answers.LABEL_COUNTS,
    ),
    Operation(
        "POST", f"{_STREAM}/samples", samples, "Send rows with their labels",
        SamplesIn, {"rows": [{"features": _FEATURES, "label": "fraud"}]}, _REFUSED, answers.SAMPLE_COUNTS,
    ),
    Operation("GET", "/v1/streams", streams, "Show all streams", result=answers.STREAM_STATES),
    Operation("PUT", _STREAM, create, "Create a stream", StreamSettings, {}, _CREATED, answers.STREAM_STATE),
    Operation("GET", _STREAM, show, "Show a stream", result=answers.STREAM_STATE),
    Operation("DELETE", _STREAM, delete, "Delete a stream with all its rows", responses={204: "It was deleted"}),
    Operation(
        "POST", f"{_STREAM}/retry", retry, "End the quarantine of a stream",
        responses={202: "It is learned again from its latest snapshot on"}, result=answers.STREAM_STATE,
    ),
    Operation(
        "GET", f"{_STREAM}/samples/{{id:path}}", sample, "Show what became of a sample", result=answers.SAMPLE_STATE,
    ),
    Operation(
        "DELETE", f"{_STREAM}/samples/{{id:path}}", forget, "Forget a sample", result=answers.FORGOTTEN,
    ),
    Operation("GET", f"{_STREAM}/model", model, "Download the model file", media="application/octet-stream"),
    Operation(
        "GET", f"{_STREAM}/events", events, "Follow what happens, as server-sent events", media="text/event-stream",
    ),
    Operation(
        "GET", "/v1/audit", audited, "Show who made which calls that need the scope admin", result=answers.AUDIT,
        is_audited=False,
    ),
)  # fmt: skip
