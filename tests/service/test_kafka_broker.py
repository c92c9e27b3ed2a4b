"""What only a real Kafka broker does: topics made anew, retention, compression, TLS, passwords, and its own death."""

import json
import threading

import pytest

pytest.importorskip("confluent_kafka")

from confluent_kafka import Producer
from kafka_broker import Broker
from kafka_cluster import Reader, all_are_read
from kafka_service import rows, service, topics
from served import logged, until

from devdan.service.store import SqliteDatabase

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module")
def broker():
    made = Broker(is_secured=True)
    yield made
    made.stop()


def ids(folder):
    """Of the rows in the log, in its order."""
    return [id_ for record in logged(SqliteDatabase(folder, lock=False)) for id_ in getattr(record.body, "ids", ())]


def test_what_retention_removed_before_it_was_read_is_told_and_the_rest_is_read(broker, tmp_path, caplog):
    kafka, folder = topics("retention"), tmp_path / "data"
    with service(broker, kafka, folder) as http:
        broker.send(kafka.rows, rows(first=1.0), partition=0)
        http.predictions.of("first")
    for k in range(10):
        broker.send(kafka.rows, rows(**{f"r{k}": 1.0}), partition=0)
    broker.remove(kafka.rows, 0, before=5)
    with service(broker, kafka, folder) as http:
        http.predictions.of(*(f"r{k}" for k in range(4, 10)))
    assert ids(folder) == ["first", *(f"r{k}" for k in range(4, 10))]
    assert f"partition 0 of {kafka.rows} lacks messages 1 to 4, removed before they were read" in caplog.text


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_messages_may_be_compressed_in_every_way(broker, tmp_path, codec):
    kafka = topics(codec, config={"compression.type": codec})  # what goes out, too
    with service(broker, kafka, tmp_path / "data") as http:
        sender = Producer({**broker.client, "compression.type": codec, "linger.ms": 50})
        for k in range(100):
            sender.produce(kafka.rows, rows(**{f"r{k}": float(k)}))
        sender.flush()
        http.predictions.of(*(f"r{k}" for k in range(100)))


@pytest.mark.parametrize("exactly_once", [False, True])
def test_messages_are_as_large_as_the_topic_allows_and_dead_letters_as_theirs(broker, tmp_path, exactly_once):
    large = {"message.max.bytes": "8000000", "fetch.message.max.bytes": "8000000"}
    kafka = topics(f"large-{exactly_once}", config=large, exactly_once=exactly_once)
    broker.make(kafka.rows, **{"max.message.bytes": "6000000"})
    broker.make(kafka.dead(kafka.rows))
    dead = Reader(broker, kafka.dead(kafka.rows))
    sender = Producer({**broker.client, "message.max.bytes": 8_000_000})
    many = [{"id": f"r{k}", "features": {"x": k, "note": "long " * 400}} for k in range(1000)]
    with service(broker, kafka, tmp_path / "data") as http:
        sender.produce(kafka.rows, json.dumps({"rows": many}))
        sender.produce(kafka.rows, b"x" * 5_000_000)
        sender.flush()
        http.predictions.of(*(row["id"] for row in many))
        (letter,) = dead.until(list)
    dead.stop()
    told = dict(letter.headers())
    assert not letter.value()
    assert told["devdan.left-out"].startswith(b"5000000 bytes")
    assert b"must be JSON" in told["devdan.reason"]


def test_by_tls_and_with_a_password(broker, tmp_path):
    secured = {name: value for name, value in broker.secured.items() if name != "bootstrap.servers"}
    kafka = topics("secured", config=secured)
    with service(broker, kafka, tmp_path / "data", address=broker.secured["bootstrap.servers"]) as http:
        broker.send(kafka.rows, rows(a=1.0))
        http.predictions.of("a")


def test_with_a_wrong_password_http_goes_on_and_it_says_why(broker, tmp_path, caplog):
    secured = {**broker.secured, "sasl.password": "wrong"}
    kafka = topics("refused", config={name: value for name, value in secured.items() if name != "bootstrap.servers"})
    with service(broker, kafka, tmp_path / "data", address=broker.secured["bootstrap.servers"]) as http:
        until(http, "/v2/health/ready", lambda told: "kafka" in told.get("problems", {}))
        http.post("/v1/streams/s/predict", content=rows(meanwhile=1.0)).raise_for_status()
        until(http, "/v1/streams", lambda _: "Authentication failed" in caplog.text)


def test_a_broker_is_killed_while_messages_come(tmp_path):
    broker, kafka = Broker(), topics("killed", config={"message.timeout.ms": "2000"})
    with service(broker, kafka, tmp_path / "data") as http:
        sent, ends = [], threading.Event()

        def send():
            while not ends.is_set():
                sent.append(f"r{len(sent)}")
                broker.send(kafka.rows, rows(**{sent[-1]: 1.0}))

        sender = threading.Thread(target=send)
        sender.start()
        try:
            for _ in range(2):
                n = len(http.predictions.keys)
                http.predictions.until(lambda _, n=n: len(http.predictions.keys) >= n + 50)
                broker.kill()
                until(http, "/v2/health/ready", lambda told: "kafka" in told.get("problems", {}))
                http.post("/v1/streams/s/predict", json={"rows": [{"features": {"x": 1.0}}]}).raise_for_status()
                broker.start()
        finally:
            ends.set()
            sender.join()
        http.predictions.of(*sent)
        all_are_read(http, len(sent))
    assert sorted(set(ids(tmp_path / "data")) & set(sent)) == sorted(sent)
    assert len(ids(tmp_path / "data")) == len(sent) + 2
    broker.stop()
