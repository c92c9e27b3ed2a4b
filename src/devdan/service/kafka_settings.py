"""Where messages of Kafka come from and go to, and how its clients are configured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

try:
    from confluent_kafka import Consumer, KafkaException, Producer
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "devdan serve --kafka needs confluent_kafka: pip install 'devdan[serve,kafka]'", name=error.name
    ) from error

from devdan.service.kafka_watch import library
from devdan.service.naming import LONGEST, InvalidError, check_name

_NUMBERS = 40  # characters of an id for partition, offset and place
# What the promises rest on, so that a file cannot set it.
_OURS = {
    "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "group.protocol",
    "partition.assignment.strategy",
}  # fmt: skip


class Kafka(NamedTuple):
    """Where messages come from and go to, and the stream that they are for."""

    brokers: str
    rows: str
    labels: str
    predictions: str
    stream: str
    dead_letters: str | None = None
    config: Mapping[str, str] = {}

    def dead(self, topic: str) -> str:
        """Where messages of a topic go that cannot be used."""
        return self.dead_letters or f"{topic}.dead-letters"

    def check(self) -> None:
        """Raise an error that says what is not valid; no broker is asked."""
        topics = [self.rows, self.labels, self.predictions]
        dead = {self.dead(self.rows), self.dead(self.labels)}
        if len(set(topics)) < len(topics) or dead & set(topics):
            raise InvalidError(
                "--rows, --labels, --predictions and --dead-letters must be different topics, got "
                f"{', '.join([*topics, *sorted(dead)])}"
            )
        if len(self.rows) > LONGEST - _NUMBERS:
            raise InvalidError(
                f"--rows must have at most {LONGEST - _NUMBERS} characters, since ids are made of it, "
                f"got {len(self.rows)}"
            )
        check_name(self.stream)
        for name in sorted(_OURS & self.config.keys()):
            raise InvalidError(f"{name} cannot be set in --kafka-config: devdan serve sets it")
        try:
            Consumer(self.consumes(), logger=library).close()
            Producer(self.produces(), logger=library)
        except KafkaException as error:
            raise InvalidError(f"--kafka or --kafka-config is not valid: {error.args[0].str()}") from error

    def consumes(self) -> dict[str, Any]:
        """The properties of the consumer."""
        usual = {
            "group.id": f"devdan-{self.stream}",
            "auto.offset.reset": "earliest",
            "statistics.interval.ms": "1000",
            "topic.metadata.refresh.interval.ms": "10000",  # after which a topic is found that was made since
        }
        ours = {"enable.auto.commit": False, "enable.auto.offset.store": False}
        return usual | dict(self.config) | ours | {"bootstrap.servers": self.brokers}

    def produces(self) -> dict[str, Any]:
        """The properties of the producer."""
        usual = {"message.timeout.ms": "30000", "linger.ms": "1"}
        return usual | dict(self.config) | {"enable.idempotence": True, "bootstrap.servers": self.brokers}


def read_config(path: Path) -> dict[str, str]:
    """The properties of librdkafka in a file: on each line a name, an equals sign and a value; ``#`` for comments."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, sign, value = text.partition("=")
        if not sign:  # it may be a password, so it is not told
            raise InvalidError(f"line {number} of {path} must have the form name=value")
        found[name.strip()] = value.strip()
    return found
