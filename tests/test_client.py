"""The clients: against a service, and against one that loses answers, is busy and goes away."""

import asyncio
import json
import math
import secrets
from datetime import datetime, timezone
from decimal import Decimal
from fractions import Fraction

import httpx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from served import served_here, wait_until

from devdan.client import AsyncClient, Client, Labelled, ServiceError, UnansweredError, _Calls, records_of


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("served") / "data") as http:
        yield f"http://127.0.0.1:{http.port}"


def test_from_a_row_to_its_late_label(url):
    with Client(url, "late") as client:
        client.create(wait=3600)
        said = client.predict([{"x": 1.0, "city": "Bonn"}, {"x": 0.0, "city": "Köln"}])
        assert [one.label for one in said] == [None, None]
        assert client.label({said[0].id: "yes", said[1].id: "no"}) == Labelled(accepted=2)
        assert client.sample(said[0].id)["label"] == "yes"
        odd = "a/b?c=%20&ü#"
        client.predict([{"x": 1.0}], ids=[odd])
        assert client.sample(odd)["id"] == odd
        assert client.label({said[0].id: "yes"}) == Labelled(repeated=1)
        told = client.label({said[0].id: "no"})
        assert (told.accepted, told.refused[0].id) == (0, said[0].id)
        assert "its label is 'yes'" in told.refused[0].why
        client.delete()
        with pytest.raises(ServiceError, match="there is no stream 'late'"):
            client.show()


def test_an_answer_has_the_threshold_that_decides(url):
    with Client(url, "rare") as client:
        client.create(options={"decide": {"fraud": {"threshold": 0.1}}})
        rows = [{"x": k * 7 % 200 / 200} for k in range(200)]
        client.teach(rows, ["fraud" if row["x"] > 0.95 else "ok" for row in rows])
        wait_until(lambda: client.predict([{"x": 0.0}])[0].label is not None)
        for one in client.predict(rows):
            assert one.thresholds == {"fraud": 0.1}
            assert (one.label == "fraud") == (one.probabilities["fraud"] >= 0.1)
        client.delete()


def test_large_batches_go_in_parts(url):
    rows = [{"x": float(k)} for k in range(2500)]
    with Client(url, "parts") as client:
        client.create()
        told = client.teach(rows, [k % 2 for k in range(2500)])
        assert told == Labelled(accepted=2500)
        said = client.predict(rows)
        assert len({one.id for one in said}) == 2500
        with pytest.raises(ValueError, match="ids must have one for each of the 2500 rows, got 1"):
            client.predict(rows, ids=["a"])


def test_labels_are_corrected_in_parts(url):
    ids = [f"row {k}" for k in range(2500)]
    with Client(url, "corrects") as client:
        client.create()
        client.predict([{"x": float(k)} for k in range(2500)], ids)
        client.label(dict.fromkeys(ids[:2000], "wrong"))
        told = client.label(dict.fromkeys(ids, "right"), replaces=True)
        assert told == Labelled(accepted=500, corrected=2000)
        assert client.label(dict.fromkeys(ids, "right"), replaces=True) == Labelled(repeated=2500)
        assert client.sample(ids[0])["label"] == "right"


def test_a_contradiction_keeps_none_of_the_others_back(url):
    ids = [f"row {k}" for k in range(3000)]
    with Client(url, "contradicts") as client:
        client.create()
        client.predict([{"x": float(k)} for k in range(3000)], ids)
        client.label({ids[7]: 1})
        told = client.label({id_: 0 for id_ in ids})
        assert told._replace(refused=()) == Labelled(accepted=2999)
        assert [one.id for one in told.refused] == [ids[7]]
        assert client.sample(ids[2999])["label"] == 0
        again = client.predict([{"x": 0.5}, {"x": 1.0}], [ids[0], ids[1]])
        assert [one.refused is None for one in again] == [False, True]
        assert client.teach([{"x": 0.5}, {"x": 9.0}], [0, 1], [ids[0], "new"]).refused[0].id == ids[0]


def test_a_part_that_is_refused_keeps_none_of_the_others_back(url):
    ids = [f"row {k}" for k in range(2500)]
    with Client(url, "refuses") as client:
        client.create()
        client.predict([{"x": float(k)} for k in range(2500)], ids)
        with pytest.raises(ServiceError, match="422") as error:
            client.label({**dict.fromkeys(ids, 0), ids[3]: "x" * 300})
        assert error.value.told == Labelled(accepted=1500)
        with pytest.raises(ServiceError, match="422") as error:
            client.predict([*[{"x": 1.0}] * 1000, {"other": 1.0}])
        assert len(error.value.told) == 1000


@pytest.mark.parametrize("refused", [False, True])
def test_when_answers_end_amid_a_batch_what_was_told_is_kept(refused):
    """Also where a part before was refused."""
    sent = []

    def answer(request):
        sent.append(json.loads(request.content)["labels"])
        if len(sent) > 2:
            raise httpx.ConnectError("refused", request=request)
        if refused and len(sent) == 1:
            return httpx.Response(422, json={"error": "no"})
        return httpx.Response(200, json=Labelled(accepted=len(sent[-1]))._asdict() | {"refused": []})

    transport = httpx.MockTransport(answer)
    with (
        Client("http://away", "s", attempts=1, transport=transport) as client,
        pytest.raises(UnansweredError, match=r"does not answer: refused \(attempts: 1\)") as error,
    ):
        client.label({f"r{k}": 0 for k in range(4500)})
    assert error.value.told == Labelled(accepted=1000 if refused else 2000)
    assert isinstance(error.value, httpx.TransportError)
    assert isinstance(error.value.__cause__, httpx.ConnectError)
    assert len(sent) == 3  # the others would not be answered, either


def test_a_part_that_is_too_large_is_halved():
    """By a service that takes ten rows at once."""
    sent = []

    def answer(request):
        rows = json.loads(request.content)["rows"]
        if len(rows) > 10:
            return httpx.Response(413, json={"error": "too large"})
        sent.extend(row["id"] for row in rows)
        said = [{"id": row["id"], "label": None, "probabilities": {}} for row in rows]
        return httpx.Response(200, json={"predictions": said, "version": 1})

    with Client("http://small", "s", transport=httpx.MockTransport(answer)) as client:
        ids = list(map(str, range(2300)))
        assert [one.id for one in client.predict([{"x": 1.0}] * 2300, ids)] == ids == sent


AT = datetime(2024, 5, 1, 7, 30, tzinfo=timezone.utc)
COLUMNS = {
    "amount": [3.5, math.nan],
    "town": ["Bonn", None],
    "is_open": [True, False],
    "at": [AT.replace(tzinfo=None), None],
}
PLAIN = [
    {"amount": 3.5, "town": "Bonn", "is_open": True, "at": "2024-05-01T07:30:00"},
    {"amount": None, "town": None, "is_open": False, "at": None},
]


@pytest.mark.parametrize(
    "rows",
    [
        pd.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS, nan_to_null=True),
        pl.DataFrame(COLUMNS),
        pa.table(pd.DataFrame(COLUMNS)),
        pd.DataFrame(COLUMNS).convert_dtypes(),
        pd.DataFrame(COLUMNS).to_dict("records"),
        [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)],
    ],
    ids=["pandas", "Polars", "Polars with NaN", "Arrow", "pandas with NA", "records", "dicts"],
)
def test_rows_of_data_frames_are_sent_as_what_they_mean(url, rows):
    assert records_of(rows) == PLAIN
    name = f"frames{secrets.token_hex(4)}"
    with Client(url, name) as client:
        client.create()
        said = client.predict(rows, ids=["a", "b"])
        assert client.sample(said[1].id)["id"] == "b"
        assert client.label(pd.Series([1.0, 0.0], index=["a", "b"])) == Labelled(accepted=2)


def test_columns_of_a_frame_may_be_ids_and_labels(url):
    frame = pd.DataFrame({"id": ["a", "b"], "x": [1, 2], "y": ["low", "high"]})
    with Client(url, "columns") as client:
        client.create()
        assert client.teach(frame, labels="y", ids="id") == Labelled(accepted=2)
        wait_until(lambda: client.show()["columns"] == ["x"])
        assert client.sample("b")["label"] == "high"
        with pytest.raises(ValueError, match="ids names the column 'number', which not all rows have"):
            client.predict(frame, ids="number")


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (np.float32(0.5), 0.5), (np.int64(3), 3), (np.bool_(True), True), (np.str_("a"), "a"),
        (np.float64("nan"), None),
        (np.datetime64("2024-05-01T07:30"), "2024-05-01T07:30"), (np.datetime64("NaT"), None), (pd.NaT, None),
        (pd.NA, None), (pd.Timestamp(AT), "2024-05-01T07:30:00+00:00"), (AT.date(), "2024-05-01"),
        (AT.time(), "07:30:00"), (Decimal("0.5"), 0.5), (Decimal("NaN"), None), (Fraction(1, 2), 0.5), (2**40, 2**40),
    ],
)  # fmt: skip
def test_single_values_are_sent_as_what_they_mean(value, sent):
    (row,) = records_of([{"x": value}])
    assert row == {"x": sent}
    assert type(row["x"]) is type(sent)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([{"x": math.inf}], ValueError, "row 1 has infinity in the column 'x'"),
        ([{"x": 1.0}, {"x": [1.0]}], TypeError, r"row 2 has \[1.0\] in the column 'x'"),
        ([{"x": np.timedelta64(1, "s")}], TypeError, "in the column 'x'; convert it"),
        ([[1.0]], TypeError, r"a row must be a dict of features by column, got \[1.0\] as row 1"),
        ({"x": [1.0]}, TypeError, "rows must be a data frame or a list of dicts, got dict"),
        (5, TypeError, "got int"),
    ],
)
def test_what_is_no_row_is_said_before_it_is_sent(rows, error, message):
    with pytest.raises(error, match=message):
        records_of(rows)


@pytest.mark.parametrize("label", [None, math.nan, 0.5, pd.NA, [1]])
def test_what_is_no_label_is_said_before_it_is_sent(label):
    with Client("http://none", "s") as client, pytest.raises(ValueError, match="labels must be texts, whole numbers"):
        client.label({"a": 1, "b": label})


def test_clients_that_failed_together_do_not_come_again_together():
    clients = [_Calls("s", 8) for _ in range(200)]
    waits = [client._waits(3, httpx.ConnectError("away")) for client in clients]
    assert max(waits) <= 0.8
    assert min(waits) >= 0.4
    assert len(set(waits)) > 100
    busy = httpx.Response(429, headers={"retry-after": "2"})
    assert all(2.0 < client._waits(0, busy) <= 2.1 for client in clients)
    assert clients[0]._waits(7, busy) is None
    assert clients[0]._waits(0, httpx.UnsupportedProtocol("ftp")) is None
    assert clients[0]._waits(0, httpx.Response(500)) is None


def test_a_deletion_whose_answer_was_lost_is_one(url):
    with Client(url, "deleted") as client:
        client.create()
        with Client("http://lossy", "deleted", transport=httpx.MockTransport(Unreliable(url))) as other:
            other.delete()
        with pytest.raises(ServiceError, match="404"):
            client.delete()


def test_a_sample_is_forgotten_even_if_the_answer_was_lost(url):
    with Client(url, "private") as client:
        client.create()
        client.predict([{"name": "Ann"}, {"name": "Bob"}], ids=["a/1", "b"])
        assert client.forget("a/1") > 0
        with pytest.raises(ServiceError, match="404"):
            client.sample("a/1")
        with pytest.raises(ServiceError, match="404"):
            client.forget("a/1")
        with Client("http://lossy", "private", transport=httpx.MockTransport(Unreliable(url))) as other:
            assert other.forget("b") is None
        assert client.show()["columns"] == ["name"]


def test_the_same_without_waiting(url):
    async def use():
        async with AsyncClient(url, "async") as client:
            await client.create()
            said = await client.predict([{"x": 1.0}], ids=["a"])
            told = await client.label({"a": True}) + await client.teach([{"x": 2.0}], [False])
            known, shown = await client.sample("a"), await client.show()
            assert await client.forget("a") > 0
            await client.delete()
            with pytest.raises(ServiceError, match="404"):
                await client.show()
            return said, told, known, shown

    said, told, known, shown = asyncio.run(use())
    assert (said[0].id, told, known["label"], shown["stream"]) == ("a", Labelled(accepted=2), True, "async")


class Unreliable:
    """Passes requests on, but loses each answer at first, in one way after the other."""

    def __init__(self, url):
        self._url = url
        self._failures = [httpx.ReadError("gone"), 503, httpx.ConnectError("away"), 429]
        self.n = 0

    def __call__(self, request):
        failure = self._failures[self.n] if self.n < len(self._failures) else None
        self.n += 1
        if isinstance(failure, httpx.ConnectError):
            raise failure
        body = json.loads(request.content) if request.content else None
        answer = httpx.request(request.method, f"{self._url}{request.url.path}", json=body)
        if isinstance(failure, Exception):
            raise failure
        return httpx.Response(failure or answer.status_code, content=answer.content, headers={"retry-after": "0"})


def test_what_was_not_answered_is_sent_again_and_counts_once(url):
    with Client(url, "again") as client:
        client.create()
        lossy = Unreliable(url)
        with Client("http://lossy", "again", transport=httpx.MockTransport(lossy)) as other:
            said = other.predict([{"x": 1.0}])
            assert lossy.n == 5
            other.label({said[0].id: 1})
        wait_until(lambda: client.show()["labels"] > 0)
        shown = client.show()
        assert (shown["rows"], shown["labels"]) == (1, 1)


def test_in_the_end_it_gives_up():
    def away(request):
        raise httpx.ConnectError("away")

    client = Client("http://away", "s", attempts=2, transport=httpx.MockTransport(away))
    with client, pytest.raises(UnansweredError, match="away"):
        client.show()
