"""The rows per second that `devdan serve --kafka` takes, for docs/service.md.

`python benchmarks/kafka.py` starts a Kafka broker (Java and Maven are needed), fills a topic and measures how fast what
waits there goes through the log to predictions in another topic, by the times of the predictions. A bare consumer and
producer that parses the same messages and echoes a constant for each row takes turns with the service, so their ratio
is from one run. `--write` saves the figures in benchmarks/results/kafka.json and puts the table into the page,
`--size 0.01` takes a hundredth of the rows, to see that it works. Run nothing else on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
from confluent_kafka import OFFSET_BEGINNING, Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from measuring import machine, put
from serve import FEATURES, PAGE, Server, row, server

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from kafka_broker import Broker
from kafka_cluster import PARTITIONS

RESULTS = Path(__file__).parent / "results" / "kafka.json"
ROUNDS, LEARNED, POLL = 3, 2000, 200
ECHO = """
import json, sys
from confluent_kafka import Consumer, Producer

brokers, rows, predictions, group = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False})
producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "linger.ms": 1})
consumer.subscribe([rows])
while True:
    messages = consumer.consume(200, 0.5)
    for message in messages:
        for one in json.loads(message.value())["rows"]:
            producer.produce(predictions, json.dumps({"id": one["id"], "label": "a", "confidence": 0.6}), one["id"])
            producer.poll(0)
    producer.flush()
    if messages:
        consumer.commit(asynchronous=True)
"""


def fill(broker: Broker, topic: str, n_rows: int, rows: int, label: bool = False) -> int:
    """Put rows into a topic, so many in a message, and perhaps their labels into another; returns the messages."""
    source, producer = (
        random.Random(0),
        Producer({**broker.client, "linger.ms": 50, "queue.buffering.max.messages": 10**6}),
    )
    for first in range(0, n_rows, rows):
        made = [{"id": f"{topic}-{k}", "features": row(source, FEATURES)} for k in range(first, first + rows)]
        producer.produce(topic, json.dumps({"rows": made}))
        if label:
            known = [{"id": one["id"], "label": "ab"[one["features"]["x0"] > 0.5]} for one in made]
            producer.produce(f"{topic}-labels", json.dumps({"labels": known}))
    producer.flush()
    return -(-n_rows // rows)


def all_committed(broker: Broker, group: str, topic: str, n_messages: int) -> None:
    """Wait until a group has committed so many messages of a topic."""
    places = [TopicPartition(topic, number) for number in range(PARTITIONS)]
    asked = ConsumerGroupTopicPartitions(group, places)
    while (
        sum(
            max(one.offset, 0)
            for one in broker.admin.list_consumer_group_offsets([asked])[group].result().topic_partitions
        )
        < n_messages
    ):
        time.sleep(0.1)


def per_second(broker: Broker, topic: str, n_rows: int) -> float:
    """Predictions per second in a topic, by their times: those after the first moment, by the time that they took."""
    consumer = Consumer({**broker.client, "group.id": "times"})
    consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(PARTITIONS)])
    times: list[int] = []
    while len(times) < n_rows:
        times += [message.timestamp()[1] for message in consumer.consume(10_000, 1.0)]
    consumer.close()
    first, last = min(times), max(times)
    return 1000 * sum(one > first for one in times) / max(last - first, 1)  # which a tiny size may not take


@contextlib.contextmanager
def served(broker: Broker, folder: str, topic: str, predictions: str, *options: str) -> Iterator[Server]:
    """The service, in a group of the topic's name."""
    config = Path(folder, "kafka")
    config.write_text(f"group.id={topic}\n")
    with server(
        "-m", "devdan", "serve", "--port", "0", "--data", f"{folder}/data", "--kafka", broker.brokers, "--rows", topic,
        "--labels", f"{topic}-labels", "--predictions", predictions, "--stream", "s", "--kafka-config", str(config),
        *options,
    ) as started:  # fmt: skip
        yield started
        started.process.send_signal(signal.SIGINT)  # it leaves its group
        started.process.wait()


def service(broker: Broker, name: str, n_rows: int, rows: int, *options: str) -> float:
    """Rows per second of the service, with a model that has learned."""
    broker.make(name, f"{name}-labels", f"{name}-learned", f"{name}-predictions")
    with tempfile.TemporaryDirectory() as folder:
        n_before = fill(broker, name, LEARNED, 100, label=True)
        with served(broker, folder, name, f"{name}-learned") as at:
            while httpx.get(f"{at.url}/v1/streams/s").json().get("labels") != LEARNED:
                time.sleep(0.1)
            all_committed(broker, name, name, n_before)
        n_messages = fill(broker, name, n_rows, rows)
        with served(broker, folder, name, f"{name}-predictions", *options):
            all_committed(broker, name, name, n_before + n_messages)
    return per_second(broker, f"{name}-predictions", n_rows)


def echo(broker: Broker, name: str, n_rows: int, rows: int) -> float:
    """Rows per second of the bare consumer and producer."""
    broker.make(name, f"{name}-predictions")
    n_messages = fill(broker, name, n_rows, rows)
    process = subprocess.Popen([sys.executable, "-c", ECHO, broker.brokers, name, f"{name}-predictions", name])
    try:
        all_committed(broker, name, name, n_messages)
    finally:
        process.kill()
        process.wait()
    return per_second(broker, f"{name}-predictions", n_rows)


@contextlib.contextmanager
def stopping(broker: Broker) -> Iterator[Broker]:
    """Stop the broker in the end."""
    try:
        yield broker
    finally:
        broker.stop()


def measured(size: float) -> dict[str, Any]:
    """All figures: of each kind the medians of some rounds."""
    found: dict[str, list[float]] = {}
    with stopping(Broker()) as broker:
        for turn in range(ROUNDS):
            for kind, rows, n_rows in (("batches", 100, int(500_000 * size)), ("singles", 1, int(60_000 * size))):
                told = {
                    f"{kind}": service(broker, f"{kind}-{turn}", n_rows, rows),
                    f"{kind} in transactions": service(broker, f"{kind}-once-{turn}", n_rows, rows, "--exactly-once"),
                    f"{kind} echoed": echo(broker, f"{kind}-echo-{turn}", n_rows, rows),
                }
                for name, rate in told.items():
                    print(f"{name}: {rate:,.0f} rows per second", flush=True)
                    found.setdefault(name, []).append(rate)
    return {name: statistics.median(rates) for name, rates in found.items()}


def table(figures: dict[str, float]) -> str:
    """The page's table."""
    lines = ["| rows per second | service | in transactions | echoed | service / echo |", "|---|---|---|---|---|"]
    for kind, words in (("batches", "messages of 100 rows"), ("singles", "messages of one row")):
        ours, once, bare = (figures[f"{kind}{more}"] for more in ("", " in transactions", " echoed"))
        lines.append(f"| {words} | {ours:,.0f} | {once:,.0f} | {bare:,.0f} | {ours / bare:.0%} |".replace("%", " %"))
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, print, and write if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="save the figures, and put the table into docs/service.md")
    parser.add_argument("--size", type=float, default=1.0, help="share of the rows")
    arguments = parser.parse_args()
    figures = measured(arguments.size)
    text = table(figures)
    print(text)
    if arguments.write:
        RESULTS.write_text(json.dumps({"machine": machine(), "size": arguments.size, **figures}, indent=1) + "\n")
        put(PAGE, "kafka", text)


if __name__ == "__main__":
    main()
