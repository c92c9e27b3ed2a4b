"""The Open Inference Protocol (KServe's version 2), for tools that deploy and probe models; it has no labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from starlette.responses import Response

import devdan
from devdan.model.decision import text_of
from devdan.service import answers
from devdan.service.bodies import Feature, RowIn, check_rows, parsed, parser
from devdan.service.engine import ConflictError, Live
from devdan.service.http import Call, Operation, answered
from devdan.service.predictor import Predictor
from devdan.service.schema import InvalidError

_NUMBERS = {"FP64", "FP32", "FP16", "INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"}


class Tensor(msgspec.Struct):
    """An input: values of one column, or of all columns row by row."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Feature | list[Feature]]
    parameters: dict[str, Any] = {}


class Output(msgspec.Struct):
    """An output that is asked for."""

    name: str
    parameters: dict[str, Any] = {}


class Inference(msgspec.Struct):
    """Rows to predict, as tensors."""

    inputs: list[Tensor]
    id: str | None = None
    parameters: dict[str, Any] = {}
    outputs: list[Output] = []


_INFERENCE = parser(Inference)
_OUTPUTS = ("label", "probabilities", "id")


async def server(call: Call) -> Response:
    return answered({"name": "devdan", "version": devdan.__version__, "extensions": []})


async def alive(call: Call) -> Response:
    is_alive = call.engine.is_alive
    return answered({"live": is_alive}, 200 if is_alive else 503)


async def ready(call: Call) -> Response:
    return _ready(call, {}, call.engine.problems())


def _ready(call: Call, about: dict[str, Any], problems: dict[str, str]) -> Response:
    told = {"problems": problems, "warnings": call.engine.warnings()}
    told = {name: own for name, own in told.items() if own}
    return answered({**about, "ready": not problems, **told}, 503 if problems else 200)


async def metadata(call: Call) -> Response:
    live = await call.live()
    n = len(live.predictor.names) or -1
    return answered({
        "name": live.name,
        "versions": [str(live.predictor.version)],
        "platform": "devdan",
        "inputs": [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in live.predictor.columns or ()],
        "outputs": [
            {"name": "label", "datatype": "BYTES", "shape": [-1]},
            {"name": "probabilities", "datatype": "FP64", "shape": [-1, n]},
            {"name": "id", "datatype": "BYTES", "shape": [-1]},
        ],
    })  # fmt: skip


async def model_ready(call: Call) -> Response:
    live = await call.live()
    return _ready(call, {"name": live.name}, call.engine.problems_of(live))


async def infer(call: Call) -> Response:
    live = await call.live()
    if "inference-header-content-length" in call.headers:
        raise InvalidError("tensors must be in JSON: binary data is not supported")
    content = await call.content()
    asked = parsed(_INFERENCE, content)
    for output in asked.outputs:  # before the rows are kept
        if output.name not in _OUTPUTS:
            raise InvalidError(f"outputs must be among label, probabilities and id, got {output.name!r}")
    rows = _rows(live, asked)
    check_rows(rows, live.settings.keyed, call.engine.limits, len(content))
    submitted, predictions, predictor, outcome = await call.engine.predict_and_log(live, rows, call.sender)
    if not predictor.names:
        raise ConflictError("no label has been learned yet, so there is no prediction; the rows were kept")
    if outcome is not None and outcome.refused:
        raise ConflictError(f"{outcome.refused[0].id}: {outcome.refused[0].why}")
    n, names = len(rows), predictor.names
    outputs: list[dict[str, Any]] = [
        {
            "name": "label",
            "shape": [n],
            "datatype": "BYTES",
            "data": ["" if said.label is None else text_of(said.label) for said in predictions],
        },
        {
            "name": "probabilities",
            "shape": [n, len(names)],
            "datatype": "FP64",
            "data": [probability for said in predictions for probability in said.probabilities],
            "parameters": {"classes": ", ".join(names), **_thresholds(predictor)},
        },
        {"name": "id", "shape": [n], "datatype": "BYTES", "data": [row.id for row in submitted]},
    ]
    wanted = {one.name for one in asked.outputs}
    return answered({
        "model_name": live.name,
        "model_version": str(predictor.version),
        "id": asked.id or submitted[0].id,
        "outputs": [one for one in outputs if not wanted or one["name"] in wanted],
    })  # fmt: skip


def _thresholds(predictor: Predictor) -> dict[str, str]:
    """From which probability on each class is called, in their order, if the stream decides by such."""
    known = predictor.thresholds
    return {"thresholds": ", ".join(str(known.get(name, "")) for name in predictor.names)} if known else {}


def _rows(live: Live, asked: Inference) -> list[RowIn]:
    """The rows in the tensors: one for each column, or one for all."""
    if not asked.inputs:
        raise InvalidError("inputs must have a tensor for each column, or one for all; got none")
    columns: dict[str, Sequence[Feature]] = {}
    if len(asked.inputs) == 1 and len(asked.inputs[0].shape) == 2 and asked.inputs[0].shape[1] != 1:
        tensor = asked.inputs[0]
        names = live.predictor.columns
        if names is None or tensor.shape[1] != len(names):
            known = "are not known yet" if names is None else f"are {len(names)}"
            raise InvalidError(
                f"a tensor of all columns must have as many as the stream, which {known}; got {tensor.shape}"
            )
        values = _flat(tensor)
        columns = {name: values[place :: len(names)] for place, name in enumerate(names)}
    else:
        for tensor in asked.inputs:
            if len(tensor.shape) not in (1, 2) or tensor.shape[1:] not in ([], [1]):
                raise InvalidError(f"the tensor of a column must have the shape [n] or [n, 1], got {tensor.shape}")
            columns[tensor.name] = _flat(tensor)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1:
        raise InvalidError(f"all tensors must have as many rows, got {sorted(lengths)}")
    (n,) = lengths
    if asked.id is not None and not 0 < len(asked.id) <= 150:
        raise InvalidError("the id of a request must have 1 to 150 characters")
    own = None if asked.id is None else [asked.id] if n == 1 else [f"{asked.id}-{place}" for place in range(n)]
    keys = columns.pop("key", None) if live.settings.keyed else None
    if keys is not None and not all(isinstance(key, str) for key in keys):
        raise InvalidError("the tensor 'key' must have texts")
    names = list(columns)
    return [
        RowIn(
            dict(zip(names, row, strict=True)),
            None if own is None else own[place],
            None if keys is None else str(keys[place]),
        )
        for place, row in enumerate(zip(*columns.values(), strict=True))
    ]


def _flat(tensor: Tensor) -> list[Any]:
    """The values of a tensor, one after the other."""
    if tensor.parameters.get("binary_data_size") is not None:
        raise InvalidError("tensors must be in JSON: binary data is not supported")
    values: list[Any] = []
    for one in tensor.data:
        values.extend(one if isinstance(one, list) else [one])
    size = 1
    for length in tensor.shape:
        size *= max(length, 0)
    if len(values) != size:
        raise InvalidError(f"the tensor {tensor.name!r} must have {size} values by its shape, got {len(values)}")
    if tensor.datatype in _NUMBERS:
        if not all(value is None or isinstance(value, float) for value in values):
            raise InvalidError(f"the tensor {tensor.name!r} is of type {tensor.datatype}, but has other values")
    elif tensor.datatype not in ("BYTES", "BOOL"):
        raise InvalidError(f"the datatype of {tensor.name!r} is not known: {tensor.datatype!r}")
    return values


_EXAMPLE = {"inputs": [{"name": "amount", "shape": [1], "datatype": "FP64", "data": [3.2]}]}
_MODEL = "/v2/models/{stream}"
OPERATIONS = (
    Operation("POST", f"{_MODEL}/infer", infer, "Predict rows", Inference, _EXAMPLE, result=answers.INFERRED),
    Operation("GET", "/v2", server, "Show the server", result=answers.SERVER_FACTS),
    Operation(
        "GET", "/v2/health/live", alive, "Whether the server is alive",
        responses={503: "It should be started again"}, result=answers.LIVENESS,
    ),
    Operation(
        "GET", "/v2/health/ready", ready, "Whether it can predict, write and learn",
        responses={503: "It cannot"}, result=answers.READINESS,
    ),
    Operation("GET", _MODEL, metadata, "Show a stream as a model", result=answers.MODEL_FACTS),
    Operation(
        "GET", f"{_MODEL}/ready", model_ready, "Whether a stream is predicted and learned",
        responses={503: "It is not"}, result=answers.MODEL_READINESS,
    ),
)  # fmt: skip
