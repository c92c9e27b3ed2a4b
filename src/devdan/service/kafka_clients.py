"""A consumer and a producer of Kafka, for the one thread that uses them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, Message, Producer
from confluent_kafka import TopicPartition as Place

from devdan.service.kafka_settings import Kafka
from devdan.service.kafka_watch import Watch, library

_MOST, _LARGE = 200, 4 * 2**20  # messages that are taken together, and bytes of them
_WAIT = 0.5  # seconds for the first of them
_HOLD = 1.0  # seconds until what could not be written or delivered is tried again
_PATIENCE = 10.0  # seconds to ask what was committed
_LAST = ("latest", "largest", "end")

Headers = list[tuple[str, str | bytes | None]]


class Letter(NamedTuple):
    """A message to be sent."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers

    def shortened(self) -> Letter:
        """Without its value, which is too large."""
        said = f"{len(self.value or b'')} bytes, more than the topic takes"
        return self._replace(value=None, headers=[*self.headers, ("devdan.left-out", said.encode())])


class Clients:
    """What has come from Kafka stays there until it is committed; ``hold`` lets it come again."""

    def __init__(
        self,
        kafka: Kafka,
        watch: Watch,
        positions: Callable[[], Mapping[tuple[str, int], int]],
        ends: Callable[[], bool],
    ) -> None:
        self._watch, self._positions, self._ends = watch, positions, ends
        self._hold_until: float | None = None
        told: dict[str, Any] = {"error_cb": watch.error}
        consumes = kafka.consumes()
        self._begins = OFFSET_END if consumes["auto.offset.reset"] in _LAST else OFFSET_BEGINNING
        self._consumer = Consumer(
            consumes | told | {"stats_cb": watch.statistics, "on_commit": self._committed}, logger=library
        )
        self._producer = Producer(kafka.produces() | told, logger=library)
        self._consumer.subscribe([kafka.rows, kafka.labels], on_assign=self._assigned)

    def _assigned(self, consumer: Consumer, partitions: list[Place]) -> None:
        """Begin where the log ends, or before it where less is committed: some predictions may not be delivered.

        Of what the log has nothing of, all is read, whatever another log has committed.
        """
        self._watch.assigned()
        known = self._positions()
        begins = consumer.committed(partitions, _PATIENCE)
        for place in begins:
            position = known.get((place.topic, place.partition))
            if position is not None and (end := consumer.get_watermark_offsets(place, _PATIENCE)[1]) < position:
                self._watch.failed(
                    f"{place.topic} ends at offset {end} of partition {place.partition}, but {position} were read from "
                    "it before: if it was made anew, what it has up to there is not taken; use another name"
                )
            if position is None:
                place.offset = self._begins
            elif place.offset < 0:
                place.offset = OFFSET_BEGINNING
            else:
                place.offset = min(place.offset, position)
        consumer.assign(begins)
        if self._hold_until is not None:
            consumer.pause(begins)

    def consume(self) -> list[Message]:
        """Some messages; none if there are none for a while."""
        if self._hold_until is not None and time.monotonic() >= self._hold_until:
            self._hold_until = None
            self._consumer.resume(self._consumer.assignment())
        came, size = list[Message](), 0
        for _ in range(_MOST):
            message = self._consumer.poll(0 if came else _WAIT)
            if message is None:
                break
            error = message.error()
            if error is None:
                came.append(message)
                size += len(message)
                if size >= _LARGE:  # more would take longer than a group waits for its members
                    break
            else:
                self._watch.failed(error.str())
        return came

    def deliver(self, letters: Sequence[Letter]) -> None:
        """Send messages, and wait until all are acknowledged; raises a ``KafkaException``."""
        failed: list[KafkaError] = []
        too_large: list[Letter] = []

        def told(letter: Letter, error: KafkaError | None, _: Message | None) -> None:
            if error is None:
                return
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and letter.value is not None:
                too_large.append(letter.shortened())
            else:
                failed.append(error)

        for letter in letters:
            while True:
                try:
                    self._producer.produce(
                        letter.topic,
                        letter.value,
                        letter.key,
                        headers=letter.headers,
                        on_delivery=partial(told, letter),
                    )
                except BufferError:  # until there is room
                    self._producer.poll(_WAIT)
                    continue
                except KafkaException as error:
                    told(letter, error.args[0], None)
                break
        while self._producer.flush(_WAIT):
            if self._ends():
                self._producer.purge()
        if failed:
            raise KafkaException(failed[0])
        if too_large:
            self.deliver(too_large)

    def commit(self, messages: Sequence[Message]) -> None:
        """These are dealt with."""
        self._consumer.commit(offsets=[_place(message, 1) for message in _by_partition(messages[::-1])])

    def _committed(self, error: KafkaError | None, places: list[Place]) -> None:
        if error is not None:  # they will be read again, and recognised
            self._watch.failed(error.str())

    def hold(self, messages: Sequence[Message]) -> None:
        """Take nothing for a while, then these again."""
        for message in _by_partition(messages):
            self._consumer.seek(_place(message))
        self._consumer.pause(self._consumer.assignment())
        self._hold_until = time.monotonic() + _HOLD

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._producer.purge()


def _by_partition(messages: Sequence[Message]) -> list[Message]:
    """The first message of each partition."""
    found: dict[tuple[str | None, int | None], Message] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), message)
    return list(found.values())


def _place(message: Message, further: int = 0) -> Place:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return Place(topic, partition, offset + further)
