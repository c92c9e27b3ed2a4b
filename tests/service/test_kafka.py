"""Kafka in front of the service: librdkafka's mock, and in ``make test-kafka`` a real broker, too."""

import json
import sqlite3
import sys
import threading

import httpx
import numpy as np
import pyarrow as pa
import pytest
from commandline import run
from kafka_cluster import all_are_read
from prometheus_client import CollectorRegistry
from served import Process, limit, logged, metric, served_here, until, wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, TopicPartition  # noqa: E402
from kafka_cluster import PARTITIONS, QUICK, SECONDS, Reader  # noqa: E402
from kafka_service import labels, rows, service, topics  # noqa: E402

from devdan.service import bodies, ledger, sql  # noqa: E402
from devdan.service.database import NotStorableError  # noqa: E402
from devdan.service.kafka import KafkaClients, KafkaSettings, read_config  # noqa: E402
from devdan.service.kafka_metrics import KafkaMetrics  # noqa: E402
from devdan.service.schema import InvalidError, Limits  # noqa: E402
from devdan.service.store import FILE, SqliteDatabase  # noqa: E402


@pytest.fixture(scope="module")
def cluster(make_cluster):
    made = make_cluster()
    yield made
    made.stop()


def arrow(file=False, compression=None, **columns):
    """The columns as Arrow IPC."""
    table = pa.table(columns)
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=compression)
    with (pa.ipc.new_file if file else pa.ipc.new_stream)(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


# --- What becomes of messages ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shared(cluster, tmp_path_factory):
    """One service for all tests of single messages: joining a group takes seconds."""
    kafka = topics("shared", dead_letters="shared-dead")
    with service(cluster, kafka, tmp_path_factory.mktemp("shared") / "data", limits=Limits(body=2000, row=900)) as http:
        http.topics, http.dead = kafka, Reader(cluster, "shared-dead")
        http.put("/v1/streams/s", json={})  # unless it was made by now
        http.put("/v1/streams/other", json={})
        http.put("/v1/streams/keyed", json={"keyed": True})
        http.post("/v1/streams/s/predict", content=rows(first=1.0)).raise_for_status()
        http.post("/v1/streams/s/labels", content=labels(first="low")).raise_for_status()
        yield http
        http.dead.stop()


def test_from_a_row_to_its_late_label_and_a_prediction(cluster, shared):
    until(shared, "/v1/streams/s", lambda shown: shown["labels"] == 1)
    cluster.send(shared.topics.rows, rows(a=1.0, b=5.0))
    one, other = shared.predictions.of("a", "b")
    assert one == {"stream": "s", "id": "a", "label": "low", "confidence": pytest.approx(2 / 3)}
    assert other["id"] == "b"
    cluster.send(shared.topics.labels, labels(a="low", b="high"))
    until(shared, "/v1/streams/s", lambda shown: shown["labels"] == 3)
    cluster.send(shared.topics.rows, rows(c=5.0))
    (answer,) = shared.predictions.of("c")
    sample = shared.get("/v1/streams/s/samples/c").json()
    assert (answer["label"], answer["confidence"]) == (sample["predicted"], sample["confidence"])
    assert 0.5 <= answer["confidence"] < 1.0


def test_the_same_row_again_changes_nothing_and_gets_the_same_answer(cluster, shared):
    cluster.send(shared.topics.rows, rows(again=1.0))
    before = shared.predictions.of("again")
    taught = {f"taught{k}": "high" if k % 2 else "low" for k in range(20)}
    cluster.send(shared.topics.rows, rows(**{id_: float(k) for k, id_ in enumerate(taught)}))
    cluster.send(shared.topics.labels, labels(**taught))
    until(shared, "/v1/streams/s/samples/taught19", lambda shown: shown.get("state") == "learned")
    cluster.send(shared.topics.rows, rows(again=1.0))
    shared.predictions.until(lambda messages: sum(one.key() == b"again" for one in messages) == 2)
    assert shared.predictions.of("again") == before  # although the model would say something else by now


def test_an_id_that_is_made_follows_from_topic_partition_and_offset(cluster, shared):
    body = json.dumps({"rows": [{"features": {"x": 1.0}}, {"features": {"x": 2.0}}]})
    ((partition, offset),) = cluster.send(shared.topics.rows, body)
    ids = [f"{shared.topics.rows}-{partition}-{offset}-{place}" for place in range(2)]
    assert [one["id"] for one in shared.predictions.of(*ids)] == ids
    assert shared.get(f"/v1/streams/s/samples/{ids[1]}").json()["state"] == "waits for its label"


@pytest.mark.parametrize("file", [False, True])
def test_arrow_batches_are_as_json_is(cluster, shared, file):
    ids = [f"arrow-{file}-{k}" for k in range(3)]
    cluster.send(shared.topics.labels, arrow(file, id=ids, label=["low", "high", "low"]))
    cluster.send(shared.topics.rows, arrow(file, id=ids, x=[1.0, None, float("nan")], city=["Köln", "Bonn", None]))
    shared.predictions.of(*ids)
    for id_ in ids:
        until(shared, f"/v1/streams/s/samples/{id_}", lambda shown: shown["state"] == "learned")
    again = [{"id": ids[1], "features": {"x": None, "city": "Bonn"}}, {"id": ids[2], "features": {}}]
    assert shared.post("/v1/streams/s/predict", json={"rows": again}).json()["repeated"] == 2


def test_a_header_names_another_stream(cluster, shared):
    cluster.send(shared.topics.rows, rows(elsewhere=1.0), headers={"stream": b"other"})
    body = json.dumps({"rows": [{"id": "with-key", "key": "m7", "features": {"x": 1.0}}]})
    cluster.send(shared.topics.rows, body, headers={"stream": b"keyed"})
    answers = shared.predictions.of("elsewhere", "with-key")
    assert [one["stream"] for one in answers] == ["other", "keyed"]
    assert shared.get("/v1/streams/other/samples/elsewhere").status_code == 200
    assert shared.get("/v1/streams/s/samples/elsewhere").status_code == 404


def test_rows_of_a_stream_with_histories_are_predicted_with_what_came_before(cluster, shared):
    shared.put("/v1/streams/past", json={"history": ["city"]}).raise_for_status()
    headers, labels_of = {"stream": b"past"}, {f"h{k}": "low" if k % 2 else "high" for k in range(12)}
    for k, id_ in enumerate(labels_of):
        cluster.send(shared.topics.rows, rows(**{id_: float(k)}), headers=headers)
    cluster.send(shared.topics.labels, labels(**labels_of), headers=headers)
    until(shared, "/v1/streams/past", lambda shown: shown["labels"] == 12)
    cluster.send(shared.topics.rows, rows(h99=5.0), headers=headers)
    (answer,) = shared.predictions.of("h99")
    sample = shared.get("/v1/streams/past/samples/h99").json()
    assert (answer["label"], answer["confidence"]) == (sample["predicted"], sample["confidence"])
    assert answer["confidence"] is not None
    assert shared.get("/v1/streams/past").json()["entities"] == {"city": 1}


ROWS, LABELS = "rows", "labels"


@pytest.mark.parametrize(
    ("kind", "value", "headers", "says"),
    [
        (ROWS, b"{not json", {}, "must be JSON"),
        (ROWS, b"\xfe\x00", {}, "must be JSON"),
        (ROWS, None, {}, "must have a body"),
        (ROWS, b"", {}, "must have a body"),
        (ROWS, labels(a="x"), {}, "unknown field `labels`"),
        (ROWS, b'{"rows": []}', {}, "at least one"),
        (ROWS, b'{"rows": [{"features": {"x": [1]}}]}', {}, "got `array`"),
        (ROWS, b'{"rows": [{"features": {"x": 1}, "label": 1}]}', {}, "unknown field `label`"),
        (ROWS, b'{"rows": [{"features": {"x": 1}, "key": "k"}]}', {}, "must not have a key"),
        (ROWS, b'{"rows": [{"features": {"zip": 1}}]}', {"by": b"tests"}, "has no column 'zip'"),
        (ROWS, rows(q=1.0), {"stream": b"nowhere"}, "there is no stream 'nowhere'"),
        (ROWS, rows(q=1.0), {"stream": b"../x"}, "name of a stream must"),
        (ROWS, rows(**{f"r{k}": 1.0 for k in range(100)}), {}, "may have 2000 bytes"),
        (ROWS, json.dumps({"rows": [{"features": {"x": 1, "city": "y" * 901}}]}), {}, "may have 900 characters"),
        (ROWS, arrow(x=[1.0], city=["y" * 901]), {}, "may have 900 characters"),
        (ROWS, rows(first=2.0, fresh=1.0), {}, "first: the id was used before"),
        (ROWS, arrow(id=["w"], x=[1.0])[:100], {}, "cannot be read"),
        (ROWS, arrow(id=[1], x=[1.0]), {}, "Expected `str"),
        (ROWS, arrow(x=[float("inf")]), {}, "infinity"),
        (ROWS, arrow(x=[[1.0]]), {}, "not numbers, text, flags or times"),
        (ROWS, arrow(x=[1.0], at=pa.array([2**62], pa.timestamp("s"))), {}, "the column 'at' cannot be read"),
        (ROWS, arrow(x=[1.0], id=pa.array([2**62], pa.timestamp("s"))), {}, "the column 'id' cannot be read"),
        (ROWS, arrow(x=[1.0], id=pa.array([2**62], pa.timestamp("us"))), {}, "the column 'id' cannot be read"),
        (ROWS, arrow(compression="zstd", x=np.zeros(900)), {}, "bytes when it is unpacked"),
        (LABELS, rows(a=1.0), {}, "unknown field `rows`"),
        (LABELS, b'{"labels": [{"id": "a", "label": 1.5}]}', {}, "Expected"),
        (LABELS, labels(first="high"), {}, "first: its label is 'low'"),
        (LABELS, labels(first=1), {}, "labels of this stream are of type text"),
        (LABELS, arrow(id=["a"], y=["b"]), {}, "must have the columns id and label"),
    ],
)
def test_what_cannot_be_used_goes_to_the_dead_letters_with_the_reason(cluster, shared, kind, value, headers, says):
    topic = getattr(shared.topics, kind)
    value = value.encode() if isinstance(value, str) else value
    ((partition, offset),) = cluster.send(topic, value, headers=headers, key="its key")
    place = {"devdan.topic": topic, "devdan.partition": str(partition), "devdan.offset": str(offset)}
    place = {name: own.encode() for name, own in place.items()}

    def here(messages):
        return [one for one in messages if place.items() <= dict(one.headers()).items()]

    (letter,) = shared.dead.until(here)
    told = dict(letter.headers())
    assert says in told["devdan.reason"].decode()
    assert (letter.key(), letter.value() or b"") == (b"its key", value or b"")
    assert headers.items() <= told.items()


def test_a_message_whose_reading_fails_unexpectedly_is_not_read_for_ever(cluster, shared, monkeypatch):
    read = bodies.parsed

    def fails(decoder, content):
        if b"poison" in content:
            raise ZeroDivisionError("by chance")
        return read(decoder, content)

    monkeypatch.setattr(bodies, "parsed", fails)
    cluster.send(shared.topics.rows, rows(poison=1.0))
    cluster.send(shared.topics.rows, rows(behind=1.0))
    (letter,) = shared.dead.until(lambda messages: [one for one in messages if b"poison" in (one.value() or b"")])
    assert "unexpected error: ZeroDivisionError('by chance')" in dict(letter.headers())["devdan.reason"].decode()
    assert shared.predictions.of("behind")


def test_the_rest_of_a_contradictory_message_counts(cluster, shared):
    cluster.send(shared.topics.rows, rows(first=7.0, rest=1.0))
    shared.predictions.of("rest")
    assert shared.get("/v1/streams/s/samples/rest").status_code == 200


def test_metrics_count_messages(cluster, shared):
    before = metric(shared, "devdan_kafka_predictions_total")
    cluster.send(shared.topics.rows, rows(counted=1.0))
    shared.predictions.of("counted")
    wait_until(lambda: metric(shared, "devdan_kafka_predictions_total") > before)  # counted when it is delivered
    wait_until(lambda: metric(shared, "devdan_kafka_connected") == 1 and metric(shared, "devdan_kafka_lag") == 0)
    assert metric(shared, "devdan_kafka_paused") == 0
    assert metric(shared, "devdan_kafka_predictions_total") == before + 1
    text = shared.get("/metrics").text
    assert 'devdan_kafka_messages_total{outcome="new",topic="shared-rows"}' in text


def test_a_dead_letter_that_is_too_large_goes_without_its_value(cluster, tmp_path):
    """Messages may be larger than what the producer of dead letters may send."""
    config = {"message.max.bytes": "1000"}
    kafka = topics("large", config=config)
    dead = Reader(cluster, kafka.dead(kafka.rows))
    with service(cluster, kafka, tmp_path / "data"):
        cluster.send(kafka.rows, b"x" * 5000)
        (letter,) = dead.until(list)
    dead.stop()
    assert not letter.value()
    assert dict(letter.headers())["devdan.left-out"].startswith(b"5000 bytes")
    assert b"must be JSON" in dict(letter.headers())["devdan.reason"]


# --- What goes wrong around it -----------------------------------------------------------------------------------


def test_read_again_from_the_beginning_nothing_changes(cluster, tmp_path):
    """By another group, even though the log has forgotten ids meanwhile: messages are known by their places."""
    folder, kafka = tmp_path / "data", topics("again")
    cluster.send(kafka.labels, labels(never="low"))  # waits for its row, and is forgotten
    nameless = json.dumps({"rows": [{"features": {"x": 1.0, "city": "Bonn"}}]})
    for k in range(20):
        cluster.send(kafka.rows, rows(**{f"r{k}": float(k)}), nameless)
        cluster.send(kafka.labels, labels(**{f"r{k}": "low" if k % 2 else "high"}))
    with service(cluster, kafka, folder) as http:
        http.put("/v1/streams/s", json={})
        all_are_read(http, 61)
        http.application.engine.writer.run_job(forget).result()
        http.predictions.until(lambda messages: len(messages) >= 40)
        answers = {(one.key(), one.value()) for one in http.predictions.messages}
    before = logged(SqliteDatabase(folder, lock=False))
    with service(cluster, kafka._replace(config=QUICK | {"group.id": "somebody-else"}), folder) as http:
        all_are_read(http, 61)
        text = http.get("/metrics").text
        assert 'outcome="known"' in text
        assert 'outcome="new"' not in text
        assert 'outcome="dead"' not in text
        http.predictions.until(lambda messages: len(messages) >= 78)  # all but r1 and r2, which nothing is known of
        assert {(one.key(), one.value()) for one in http.predictions.messages} == answers
    assert logged(SqliteDatabase(folder, lock=False)) == before


def forget(connection):
    """What expiry and ``keep`` do to ids in the course of time."""
    with connection.transaction():
        connection.execute("DELETE FROM samples WHERE id IN ('never', 'r1', 'r2')")


def test_while_the_queue_is_full_nothing_is_taken_and_then_everything(cluster, tmp_path):
    kafka = topics("full")
    with service(cluster, kafka, tmp_path / "data", limits=Limits(queued=1, rows=20)) as http:
        cluster.send(kafka.rows, rows(before=1.0))
        http.predictions.of("before")
        go_on = threading.Event()
        http.application.engine.writer.run_job(lambda _: go_on.wait())
        asks = threading.Thread(target=http.post, args=["/v1/streams/s/predict"], kwargs={"content": rows(asked=1.0)})
        asks.start()
        until(http, "/v1/streams", lambda _: metric(http, "devdan_queued") == 1)
        cluster.send(kafka.rows, *(rows(**{f"r{k}": 1.0}) for k in range(50)))
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_paused") == 1)
        go_on.set()
        asks.join()
        http.predictions.of(*(f"r{k}" for k in range(50)))
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_paused") == 0)


def test_while_the_log_cannot_be_written_nothing_is_taken_and_then_everything(cluster, tmp_path):
    kafka = topics("unwritable")
    with service(cluster, kafka, tmp_path / "data") as http:
        cluster.send(kafka.rows, rows(before=1.0))
        http.predictions.of("before")
        limit(http, lambda pages: pages)
        ids = [f"r{k}" for k in range(5000)]
        cluster.send(kafka.rows, rows(**dict.fromkeys(ids, 1.0)), rows(after=1.0))
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_paused") == 1)
        limit(http, lambda pages: 10**6)
        http.predictions.of(*ids, "after")


def test_a_message_that_makes_an_unexpected_error_becomes_a_dead_letter_alone(cluster, tmp_path, monkeypatch):
    kafka, commit = topics("poison", dead_letters="poison-dead"), ledger.commit

    def picky(connection, submissions, *others):
        if any(row.id == "poison" for one in submissions for row in one.rows):
            raise NotStorableError("it is too large")
        return commit(connection, submissions, *others)

    monkeypatch.setattr(ledger, "commit", picky)
    with service(cluster, kafka, tmp_path / "data") as http:
        dead = Reader(cluster, "poison-dead")
        for id_ in ("a", "poison", "b"):
            cluster.send(kafka.rows, rows(**{id_: 1.0}))
        http.predictions.of("a", "b")
        letter = dead.until(lambda messages: messages)[0]
        assert "it is too large" in dict(letter.headers())["devdan.reason"].decode()
        wait_until(lambda: "kafka" not in http.get("/v2/health/ready").json().get("problems", {}))
        dead.stop()


@pytest.mark.parametrize("settings", [b"\xc1", b"\x81\xa5model\xa4none"])
def test_a_stream_that_cannot_be_loaded_holds_no_messages_of_others_up(cluster, tmp_path, settings):
    """Its settings cannot be read, or it is in quarantine without a model: neither ends by itself."""
    folder, kafka = tmp_path / "data", topics(f"unloadable{len(settings)}")
    with served_here(folder) as http:
        http.put("/v1/streams/bad", json={}).raise_for_status()
    spoil(folder, settings)
    dead = Reader(cluster, kafka.dead(kafka.rows))
    with service(cluster, kafka, folder) as http:
        until(http, "/v1/streams/bad", lambda shown: shown["quarantine"])
        for k in range(3):
            cluster.send(kafka.rows, rows(**{f"bad{k}": 1.0}), headers={"stream": b"bad"})
            cluster.send(kafka.rows, rows(**{f"good{k}": 1.0}))
        http.predictions.of("good0", "good1", "good2")
        letters = dead.until(lambda messages: messages if len(messages) == 3 else None)
        reasons = {dict(one.headers())["devdan.reason"].decode() for one in letters}
        (shown,) = reasons
        assert http.get("/v1/streams/bad").json()["quarantine"] in shown
        wait_until(lambda: metric(http, "devdan_kafka_lag") == 0)
        assert metric(http, "devdan_kafka_paused") == 0
        wait_until(lambda: "kafka" not in http.get("/v2/health/ready").json().get("problems", {}))
    dead.stop()


def spoil(folder, settings):
    """Write settings of the stream bad that cannot be used."""
    log = sqlite3.connect(folder / FILE)
    log.execute("UPDATE streams SET settings = ? WHERE name = 'bad'", (settings,))
    log.commit()
    log.close()


def test_answers_have_the_threshold_from_which_on_their_label_is_called(cluster, shared):
    """Also when they are given again, as the log has them."""
    shared.put("/v1/streams/decided", json={"options": {"decide": {"high": {"threshold": 0.01}}}}).raise_for_status()
    taught = [{"features": {"x": k, "city": "Bonn"}, "label": "high" if k % 5 == 0 else "low"} for k in range(60)]
    for part in (taught[:20], taught[20:40], taught[40:]):
        shared.post("/v1/streams/decided/samples", json={"rows": part}).raise_for_status()
    until(shared, "/v1/streams/decided", lambda shown: shown["labels"] == 60)
    for n in (1, 2):
        cluster.send(shared.topics.rows, rows(decided=5.0), headers={"stream": b"decided"})
        found = shared.predictions.until(lambda messages, n=n: of_key(messages, b"decided", n))
        assert len({one.value() for one in found}) == 1
        answer = json.loads(found[0].value())
        assert (answer["label"], answer["threshold"]) == ("high", 0.01)
    cluster.send(shared.topics.rows, rows(undecided=1.0))
    assert "threshold" not in shared.predictions.of("undecided")[0]


def of_key(messages, key, n):
    """The messages with this key, once there are so many."""
    found = [one for one in messages if one.key() == key]
    return found if len(found) == n else None


def test_an_unexpected_error_of_the_consumer_ends_the_process(cluster, tmp_path, monkeypatch, caplog):
    """The process is started again from outside, which reads again what is not committed."""

    def fails(clients):
        raise ZeroDivisionError("by chance")

    ended = []
    with service(cluster, topics("ended"), tmp_path / "data") as http:
        http.application.engine.supervisor.end = lambda: ended.append(True)
        assert http.get("/v2/health/live").status_code == 200
        monkeypatch.setattr(KafkaClients, "consume", fails)
        wait_until(lambda: http.get("/v2/health/live").status_code == 503)
        assert http.get("/v2/health/ready").json()["problems"]["kafka"] == "it has ended"
    assert ended == [True]
    assert "kafka has ended by an unexpected error, ZeroDivisionError: by chance; the process ends" in caplog.text


@pytest.mark.parametrize("exactly_once", [False, True])
def test_the_producer_is_idempotent_whatever_a_file_says(exactly_once):
    """A retry within the producer is the same message to the broker; a file cannot take that away."""
    given = KafkaSettings("127.0.0.1:1", "r", "l", "p", "s", exactly_once=exactly_once)
    assert given.produces()["enable.idempotence"] is True
    for name, value in (("enable.idempotence", "false"), ("acks", "1"), ("max.in.flight", "100")):
        set_ = given._replace(config={name: value})
        assert set_.produces()["enable.idempotence"] is True
        with pytest.raises(InvalidError, match=r"enable.idempotence cannot be set|`acks|max.in.flight"):
            set_.check()


def test_a_stream_that_is_deleted_is_made_again_for_what_comes_then(cluster, tmp_path):
    kafka = topics("deleted")
    with service(cluster, kafka, tmp_path / "data") as http:
        cluster.send(kafka.rows, rows(before=1.0))
        http.predictions.of("before")
        http.delete("/v1/streams/s").raise_for_status()
        cluster.send(kafka.rows, json.dumps({"rows": [{"id": "after", "features": {"other": 1.0}}]}))
        http.predictions.of("after")
        assert http.get("/v1/streams/s/samples/before").status_code == 404


def test_while_kafka_is_away_http_goes_on_and_then_everything_comes(make_cluster, tmp_path, caplog):
    cluster = make_cluster()
    soon = {"socket.timeout.ms": "1000", "message.timeout.ms": "1000", "reconnect.backoff.max.ms": "100"}
    kafka = topics("away", config=soon)
    with service(cluster, kafka, tmp_path / "data") as http:
        cluster.send(kafka.rows, rows(before=1.0))
        http.predictions.of("before")
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_connected") == 1)
        cluster.stand_still()
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_connected") == 0)
        told = wait_until(lambda: [one for one in [http.get("/v2/health/ready")] if one.status_code == 503])[0]
        assert told.json() == {"ready": False, "problems": {"kafka": "it waits"}}
        http.post("/v1/streams/s/predict", content=rows(meanwhile=1.0)).raise_for_status()
        http.post("/v1/streams/s/labels", content=labels(meanwhile="low")).raise_for_status()
        cluster.go_on()
        cluster.send(kafka.rows, rows(after=1.0))
        http.predictions.of("after")
        until(http, "/v1/streams", lambda _: metric(http, "devdan_kafka_connected") == 1)
    cluster.stop()
    said = [record.getMessage() for record in caplog.records if record.name == "devdan.service.kafka"]
    away = next(place for place, text in enumerate(said) if "HTTP continues" in text)
    assert any("can be reached again" in text for text in said[away:])


def test_the_same_trouble_is_told_once(caplog):
    watch = KafkaMetrics(CollectorRegistry())
    for attempt in range(3):
        watch.error(KafkaError(KafkaError._TRANSPORT, f"refused after {attempt} ms"))
        watch.error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
        watch.statistics('{"brokers": {"b": {"state": "DOWN"}}, "topics": {}}')
    assert [record.getMessage() for record in caplog.records] == [
        "Kafka: refused after 0 ms",
        "no Kafka broker can be reached; HTTP continues, and reading resumes once one can",
    ]


def test_a_rebalance_loses_nothing_and_repeats_nothing(cluster, tmp_path):
    """Another member takes half of the partitions, and goes without having committed what it was given."""
    folder, kafka = tmp_path / "data", topics("moved")
    with service(cluster, kafka, folder) as http:
        n = sum(len(cluster.send(kafka.rows, rows(**{f"a{k}": 1.0}), partition=k % PARTITIONS)) for k in range(20))
        http.predictions.of(*(f"a{k}" for k in range(20)))
        other = Consumer({"bootstrap.servers": cluster.brokers, "group.id": "moved", **QUICK})
        other.subscribe([kafka.rows, kafka.labels])
        while not other.assignment():
            other.poll(0.1)
        taken = {one.partition for one in other.assignment() if one.topic == kafka.rows}
        assert 0 < len(taken) < PARTITIONS
        for k in range(20):
            n += len(cluster.send(kafka.rows, rows(**{f"b{k}": 1.0}), partition=k % PARTITIONS))
        while other.poll(0.1) is None:  # it has some of them
            pass
        other.close()
        http.predictions.of(*(f"b{k}" for k in range(20)))
    ids = rows_in(folder)
    assert sorted(ids) == sorted({f"{letter}{k}" for letter in "ab" for k in range(20)})
    assert n == len(ids)


NAMELESS = json.dumps({"rows": [{"features": {"x": 1.0, "city": "Bonn"}}]})


@pytest.mark.parametrize("n_new", [1, 5])  # fewer messages than the old topic had, and more
@pytest.mark.parametrize("is_running", [False, True])
def test_a_topic_that_is_made_anew_is_read_from_its_beginning(make_cluster, tmp_path, caplog, is_running, n_new):
    """Its offsets, and the ids made of them, are others than those of the topic before; that it was made is told.

    Until that is noticed, messages behind the length of the old topic are taken for its own: only ids that are made of
    that can count again.
    """
    cluster, folder, kafka = make_cluster(), tmp_path / "data", topics("anew")
    old, new = ([f"{name}{k}" for k in range(n)] for name, n in (("old", 3), ("new", n_new)))
    nameless = f"{kafka.rows}-0-3-0", f"{kafka.rows}#2-0-{n_new}-0"

    def make_anew():
        cluster.delete(kafka.rows)
        cluster.make(kafka.rows)
        cluster.send(kafka.rows, *(rows(**{id_: 1.0}) for id_ in new), NAMELESS, partition=0)

    with service(cluster, kafka, folder) as http:
        cluster.send(kafka.rows, *(rows(**{id_: 1.0}) for id_ in old), NAMELESS, partition=0)
        http.predictions.of(*old, nameless[0])
        if is_running:
            make_anew()
            http.predictions.of(*new, nameless[1])
            wait_until(lambda: metric(http, "devdan_kafka_topics_made_anew_total") == 1)
    if not is_running:
        make_anew()
        with service(cluster, kafka, folder) as http:
            http.predictions.of(*new, nameless[1])
            assert metric(http, "devdan_kafka_topics_made_anew_total") == 1
    with service(cluster, kafka, folder) as http:
        cluster.send(kafka.rows, rows(last=1.0), partition=0)
        http.predictions.of("last")
        assert metric(http, "devdan_kafka_topics_made_anew_total") == 0
    found = rows_in(folder)
    assert len(found) == len(set(found))
    assert set(found) - {f"{kafka.rows}-0-{n_new}-0"} == {*old, nameless[0], *new, nameless[1], "last"}
    assert caplog.text.count(f"the topic {kafka.rows} was made anew; it is read from its beginning") == 1
    cluster.stop()


def rows_in(folder):
    """The ids of rows in the log, in its order."""
    return [id_ for record in logged(SqliteDatabase(folder, lock=False)) for id_ in getattr(record.body, "ids", ())]


def test_the_log_knows_topics_by_their_ids(tmp_path):
    """The first of a name by that; without an id, as by old brokers, it is the latest that is known."""
    database = SqliteDatabase(tmp_path / "data", "off")
    for id_, name, is_anew in (
        (None, "t", False),
        ("a", "t", False),
        ("a", "t", False),
        ("b", "t#2", True),
        ("b", "t#2", False),
        ("a", "t", False),  # as a server that has not heard of it yet says
        (None, "t#2", False),
        ("c", "t#3", True),
    ):
        assert sql.know_topics(database.own(), {"t": id_, "other": "a"}) == {
            "t": (name, is_anew),
            "other": ("other", False),
        }
    database.close()


@pytest.mark.parametrize(
    ("position", "committed", "reset", "begins"),
    [
        (7, 5, "earliest", 5),  # what is not committed may lack its predictions
        (5, 7, "earliest", 5),  # a log that was put back from a copy lacks what was committed since
        (5, None, "earliest", OFFSET_BEGINNING),  # another group reads all again
        (None, 7, "earliest", OFFSET_BEGINNING),  # another log has committed it
        (None, None, "latest", OFFSET_END),
        (5, None, "latest", OFFSET_BEGINNING),
    ],
)
def test_reading_begins_where_nothing_is_lost(monkeypatch, position, committed, reset, begins):
    class Group:
        def committed(self, places, timeout):
            return [TopicPartition("t", 0, -1001 if committed is None else committed)]

        def get_watermark_offsets(self, place, timeout):
            return 0, 6

        def assign(self, places):
            self.places = places

        def resume(self, places):
            assert places == self.places

    positions = {} if position is None else {("t", 0): position}
    settings = KafkaSettings("127.0.0.1:1", "t", "l", "p", "s", config={"auto.offset.reset": reset})
    registry = CollectorRegistry()
    monkeypatch.setattr(KafkaClients, "_ask", lambda clients, topics: {})
    know = lambda ids: {"t": sql.TopicFacts("t")}  # noqa: E731
    clients = KafkaClients(settings, KafkaMetrics(registry), lambda: positions, know, lambda: True)
    group = Group()
    clients._assigned(group, [TopicPartition("t", 0)])
    assert [place.offset for place in group.places] == [begins]
    clients.close()
    is_shorter = position is not None and position > 6  # as a topic that was made anew
    assert registry.get_sample_value("devdan_kafka_failures_total") == is_shorter


# --- As users meet it --------------------------------------------------------------------------------------------

GIVEN = ["--rows", "r", "--labels", "l", "--predictions", "p"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--rows", "r"], "--rows given, but not --kafka, --labels, --predictions"),
        (["--kafka", "h:1", "--rows", "r"], "but not --labels, --predictions"),
        (["--stream", "s"], "go together"),
        (["--exactly-once"], "--exactly-once given, but not --kafka"),
        (["--kafka-config", "f"], "go together"),
        (["--kafka", "", *GIVEN], "but not --kafka"),
        (["--kafka", "h:1", *GIVEN, "--dead-letters", "r"], "must be different topics"),
        (["--kafka", "h:1", "--rows", "r", "--labels", "r", "--predictions", "p"], "must be different topics"),
        (["--kafka", "h:1", *GIVEN, "--stream", "a b"], "name of a stream must"),
        (["--kafka", "h:1", "--rows", "r" * 151, *GIVEN[2:], "--stream", "s"], "at most 150 characters"),
        (["--kafka", "h:1", *GIVEN, "--kafka-config", "nothing"], "No such file"),
    ],
)
def test_wrong_options_are_told_in_a_line(tmp_path, options, says):
    code, said = run("serve", "--data", tmp_path, *options)
    assert (code, says in said, "Traceback" in said) == (2, True, False), said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# of the shop\nsecret", "line 2 of"),
        ("enable.auto.commit=true", "enable.auto.commit cannot be set"),
        ("no.such.property=1", "no.such.property"),
        ("transactional.id=a", "transactional.id in --kafka-config needs --exactly-once"),
        ("session.timeout.ms=soon", "session.timeout.ms"),
    ],
)
def test_a_file_of_properties_that_is_not_valid_says_where(tmp_path, text, says):
    (tmp_path / "f").write_text(text)
    code, said = run("serve", "--data", tmp_path, "--kafka", "h:1", *GIVEN, "--kafka-config", tmp_path / "f")
    assert (code, says in said, "secret" in said) == (2, True, False), said


def test_properties_are_read_as_librdkafka_writes_them(tmp_path):
    (tmp_path / "f").write_text("# comment\n\nsasl.password = a=b#c \ngroup.id=g\n")
    assert read_config(tmp_path / "f") == {"sasl.password": "a=b#c", "group.id": "g"}


def test_without_the_extra_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.delitem(sys.modules, "devdan.service.kafka")
    code, said = run("serve", "--data", tmp_path, "--kafka", "h:1", *GIVEN)
    assert (code, "pip install 'devdan[serve,kafka]'" in said) == (2, True), said


def test_without_any_broker_it_serves_and_ctrl_c_ends_it(tmp_path):
    server = Process("--data", tmp_path / "data", "--kafka", "127.0.0.1:1", *GIVEN)
    with httpx.Client(base_url=server.url, timeout=SECONDS) as http:
        until(http, "/v1/streams", lambda shown: [one["stream"] for one in shown["streams"]] == ["r"])
        assert metric(http, "devdan_kafka_connected") == 0
    assert server.stop() == 0
