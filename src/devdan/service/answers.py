"""What the service answers, for its documentation: each answer by an example, whose type is its schema.

Tests compare them with the answers that are given.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from devdan.service.schema import Label, StreamSettings


class RefusedItem(msgspec.Struct, forbid_unknown_fields=True):
    """A row or label that contradicts what is known of its id."""

    id: str
    why: str


class _InPart(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """With status 409, some was refused, and the rest was accepted."""

    error: str | UnsetType = UNSET
    refused: list[RefusedItem] | UnsetType = UNSET


class PredictedRow(msgspec.Struct, forbid_unknown_fields=True):
    """A row's prediction; before the first label was learned, ``label`` is null and there are no probabilities."""

    id: str
    label: Label | None
    probabilities: dict[str, float]


class Predictions(_InPart):
    """Predictions of rows, in their order, by the model after the record ``version`` of the log.

    ``thresholds`` are the probabilities from which on classes are called, if the stream decides by such (``decide``).
    ``logged`` is false if the rows could not be written; ``repeated`` is how many had come before.
    """

    predictions: list[PredictedRow]
    version: int
    thresholds: dict[str, float] | UnsetType = UNSET
    note: str | UnsetType = UNSET
    logged: bool | UnsetType = UNSET
    repeated: int | UnsetType = UNSET


class LabelCounts(_InPart):
    """How many labels were accepted, corrected others, came again, wait for their rows, or came too late."""

    accepted: int
    corrected: int
    repeated: int
    waiting: int
    expired: int


class SampleCounts(LabelCounts):
    """The same for rows with their labels, and the ids of the rows."""

    ids: list[str]


class Drifts(msgspec.Struct, forbid_unknown_fields=True):
    """Drifts of the inputs, and of the labels of the same inputs; of these, those of a single class, by class."""

    virtual: int
    real: int
    classes: dict[str, int] = {}


class StreamState(msgspec.Struct, forbid_unknown_fields=True):
    """A stream: its settings, what has come, and how well it is predicted."""

    stream: str
    settings: StreamSettings
    columns: list[str] | None
    created: float
    version: int
    classes: list[Label]
    rows: int
    labels: int
    corrected: int
    waiting: int
    expired: int
    forgotten: int
    erasing: bool  # some of them are still on the disk
    unusable: int
    problem: str | None
    state: str
    quarantine: str | None
    accuracy: float | None
    expected_accuracy: float | None
    drifts: Drifts
    hidden_units: int
    keys: int | None
    entities: dict[str, int] | None  # how many are known, by the columns that name them
    notes: list[str]  # on their histories


class StreamStates(msgspec.Struct, forbid_unknown_fields=True):
    """All streams."""

    streams: list[StreamState]


class SampleState(msgspec.Struct, forbid_unknown_fields=True):
    """What became of a sample; times are seconds since 1970."""

    id: str
    state: str
    at: float | None
    predicted: Label | None
    confidence: float | None
    label: Label | None
    labelled_at: float | None


class Forgotten(msgspec.Struct, forbid_unknown_fields=True):
    """A sample is forgotten: models of this ``version``, and of later ones, have taken it out of their buffers."""

    id: str
    version: int


class AuditEntry(msgspec.Struct, forbid_unknown_fields=True):
    """A call by who has a token of this name, or from this address.

    Refusals within an hour are one call, with their number in ``times``. ``status`` is null if the process ended before
    the call was answered.
    """

    number: int
    at: float
    who: str
    what: str
    stream: str
    status: int | None
    detail: str
    times: int


class Audit(msgspec.Struct, forbid_unknown_fields=True):
    """The latest calls that need the scope admin, newest first; ``?before=`` a number has older ones."""

    calls: list[AuditEntry]


class ServerFacts(msgspec.Struct, forbid_unknown_fields=True):
    """The server."""

    name: str
    version: str
    extensions: list[str]


class Liveness(msgspec.Struct, forbid_unknown_fields=True):
    """Whether the process can do its work, or will again."""

    live: bool


class Readiness(msgspec.Struct, forbid_unknown_fields=True):
    """Whether it can be asked, and what keeps it from that, by the part."""

    ready: bool
    name: str | UnsetType = UNSET  # of a stream
    problems: dict[str, str] | UnsetType = UNSET
    warnings: dict[str, str] | UnsetType = UNSET  # of what does not keep it from that


class TensorFacts(msgspec.Struct, forbid_unknown_fields=True):
    """An input or output of a model; -1 stands for any length."""

    name: str
    datatype: str
    shape: list[int]


class ModelFacts(msgspec.Struct, forbid_unknown_fields=True):
    """A stream as a model."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorFacts]
    outputs: list[TensorFacts]


class OutputTensor(msgspec.Struct, forbid_unknown_fields=True):
    """An output, with its values row by row."""

    name: str
    shape: list[int]
    datatype: str
    data: list[Any]
    parameters: dict[str, str] | UnsetType = UNSET


class Inferred(msgspec.Struct, forbid_unknown_fields=True):
    """Predictions of rows, as tensors."""

    model_name: str
    model_version: str
    id: str
    outputs: list[OutputTensor]


# --- An example of each ----------------------------------------------------------------------------------------------

PREDICTIONS = Predictions([PredictedRow("a1", "fraud", {"fine": 0.1, "fraud": 0.9})], 7)
LABEL_COUNTS = LabelCounts(accepted=1, corrected=0, repeated=0, waiting=0, expired=0)
SAMPLE_COUNTS = SampleCounts(
    accepted=1, corrected=0, repeated=0, waiting=0, expired=0, ids=["5f3a0c9b7d21e8640b1c2d3e"]
)
STREAM_STATE = StreamState(
    "payments", StreamSettings(columns=["amount", "city"]), ["amount", "city"], 1893456000.0, 7, ["fine", "fraud"],
    rows=1000, labels=400, corrected=3, waiting=600, expired=0, forgotten=1, erasing=False, unusable=0, problem=None,
    state="ready", quarantine=None, accuracy=0.97, expected_accuracy=0.96, drifts=Drifts(0, 1),
    hidden_units=31, keys=None, entities=None, notes=[],
)  # fmt: skip
STREAM_STATES = StreamStates([STREAM_STATE])
SAMPLE_STATE = SampleState("a1", "learned", 1893456000.0, "fraud", 0.9, "fraud", 1893542400.0)
FORGOTTEN = Forgotten("a1", 1402)
AUDIT = Audit([AuditEntry(7, 1893456000.0, "alice", "DELETE /v1/streams/{stream}", "payments", 204, "", 1)])
SERVER_FACTS = ServerFacts("devdan", "0.1.0", [])
LIVENESS = Liveness(True)
READINESS = Readiness(True)
MODEL_FACTS = ModelFacts(
    "payments", ["7"], "devdan", [TensorFacts("amount", "BYTES", [-1])], [TensorFacts("label", "BYTES", [-1])]
)
MODEL_READINESS = Readiness(False, "payments", {"model": "it is being loaded"})
INFERRED = Inferred("payments", "7", "a1", [OutputTensor("label", [1], "BYTES", ["fraud"])])
