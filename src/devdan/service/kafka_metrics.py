"""Metrics of Kafka for Prometheus, and log messages."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

from confluent_kafka import KafkaError
from prometheus_client import CollectorRegistry, Counter, Gauge

logger = logging.getLogger("devdan.service.kafka")
library = logging.getLogger("devdan.service.kafka.librdkafka")  # it logs each attempt to connect
library.setLevel(logging.CRITICAL)


class KafkaMetrics:
    """Its methods may be called from Kafka's thread and from the event loop."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._messages = Counter(
            "devdan_kafka_messages", "Messages, by outcome", ["topic", "outcome"], registry=registry
        )
        self._predictions = Counter(
            "devdan_kafka_predictions", "Predictions that Kafka has acknowledged", registry=registry
        )
        self._failures = Counter(
            "devdan_kafka_failures", "Failures that are retried, and partitions that lack messages", registry=registry
        )
        self._made_anew = Counter(
            "devdan_kafka_topics_made_anew", "Topics that took the place of deleted ones", ["topic"], registry=registry
        )
        self._connected = Gauge("devdan_kafka_connected", "1 while a broker can be reached", registry=registry)
        self._paused = Gauge("devdan_kafka_paused", "1 while no messages are read", registry=registry)
        self._lag = Gauge(
            "devdan_kafka_lag", "Messages that are not committed yet", ["topic", "partition"], registry=registry
        )
        self._is_connected: bool | None = None
        self._said = ""  # the latest failure

    @property
    def is_away(self) -> bool:
        """Whether no broker can be reached."""
        return self._is_connected is False

    def message(self, topic: str, outcome: str) -> None:
        """Count a message: new, known, or dead."""
        self._messages.labels(topic, outcome).inc()

    def predictions(self, n: int) -> None:
        """Count predictions that were delivered."""
        self._predictions.inc(n)

    def paused(self, is_paused: bool) -> None:
        """Reading pauses, or resumes."""
        self._paused.set(is_paused)
        if not is_paused:
            self._said = ""

    def failed(self, error: object) -> None:
        """Count a failure that is retried; the same one is logged once."""
        self._failures.inc()
        if str(error) != self._said:
            self._said = str(error)
            logger.warning("messages wait in Kafka: %s", error)

    def lacks(self, text: str) -> None:
        """Tell of messages that will not be read."""
        self._failures.inc()
        logger.warning("Kafka: %s", text)

    def reads(self, topics: Sequence[str]) -> None:
        """These topics are read."""
        for topic in topics:
            self._made_anew.labels(topic)

    def made_anew(self, topic: str, name: str) -> None:
        """Tell that a topic took the place of an older one of its name, and the name of it in ids."""
        self._made_anew.labels(topic).inc()
        logger.warning("Kafka: the topic %s was made anew; it is read from its beginning, as %s", topic, name)

    def error(self, error: KafkaError) -> None:
        """Called by librdkafka, which retries by itself; each attempt has a text of its own."""
        if error.code() != KafkaError._ALL_BROKERS_DOWN and error.name() != self._said:  # statistics have the former
            self._said = error.name()
            logger.warning("Kafka: %s", error.str())

    def assigned(self) -> None:
        """The partitions have changed."""
        self._lag.clear()

    def statistics(self, text: str) -> None:
        """Called by librdkafka every second."""
        said = json.loads(text)
        self._connect(any(one["state"] == "UP" for one in said["brokers"].values()))
        for topic, own in said["topics"].items():
            for number, partition in own["partitions"].items():
                if partition["consumer_lag"] >= 0:
                    self._lag.labels(topic, number).set(partition["consumer_lag"])

    def _connect(self, is_connected: bool) -> None:
        self._connected.set(is_connected)
        if is_connected != self._is_connected:
            if not is_connected:
                logger.warning("no Kafka broker can be reached; HTTP continues, and reading resumes once one can")
            elif self._is_connected is False:
                logger.warning("Kafka can be reached again")
                self._said = ""
            self._is_connected = is_connected
