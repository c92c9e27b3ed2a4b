"""Kafka beside HTTP: rows and labels come in, predictions go out, and unusable messages become dead letters.

A message is committed once the log has it on disk and its predictions are delivered. After a crash it comes again, is
recognised by its topic, partition and offset, and gets the prediction that the log has of it. With ``exactly_once``
predictions are delivered and offsets committed in one transaction, so that whoever reads what is committed sees each
prediction once. A topic that was deleted and made anew has another id in Kafka, and counts as another one.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

try:
    from confluent_kafka import (
        OFFSET_BEGINNING,
        OFFSET_END,
        Consumer,
        KafkaError,
        KafkaException,
        Message,
        Producer,
        TopicCollection,
        TopicPartition,
    )
    from confluent_kafka.admin import AdminClient
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "devdan serve --kafka needs confluent_kafka: pip install 'devdan[serve,kafka]'", name=error.name
    ) from error
from prometheus_client import CollectorRegistry

from devdan.service import arrow, bodies, sql
from devdan.service.database import DamagedError, UnavailableError
from devdan.service.engine import ConflictError, Engine, KnownPrediction, Live, NotFoundError, UnusableError
from devdan.service.kafka_metrics import KafkaMetrics, library, logger
from devdan.service.schema import (
    LONGEST,
    BusyError,
    InvalidError,
    LimitError,
    Source,
    StreamSettings,
    Submission,
    SubmissionOutcome,
    check_name,
)
from devdan.service.sql import TopicFacts

Result = TypeVar("Result")
Headers = list[tuple[str, str | bytes | None]]

_NUMBERS = 50  # characters of an id for the topic's number, partition, offset and place
_BATCH, _LARGE = 200, 4 * 2**20  # messages that are read together, and bytes of them
_WAIT = 0.5  # seconds for the first of them
_HOLD = 1.0  # seconds until what could not be written or delivered is retried
_TIMEOUT = 10.0  # seconds to ask what was committed, and which topics there are
_ASK = 2.0  # seconds between two questions whether a topic was made anew
_NO_ID = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE)
_LATEST = ("latest", "largest", "end")
_LISTED = 20  # contradictions in a reason
_SENDER = "Kafka"  # all of it has one share of what waits
_STREAM = "stream"  # the header that names another stream
# The guarantees rest on these, so a file cannot set them.
_OURS = {
    "bootstrap.servers", "enable.auto.commit", "enable.auto.offset.store", "enable.idempotence", "group.protocol",
    "partition.assignment.strategy",
}  # fmt: skip


class KafkaSettings(NamedTuple):
    """Where messages come from and go to, and the stream that they are for."""

    brokers: str
    rows: str
    labels: str
    predictions: str
    stream: str
    dead_letters: str | None = None
    config: Mapping[str, str] = {}
    exactly_once: bool = False

    def dead(self, topic: str) -> str:
        """The topic for unusable messages of a topic."""
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
        if "transactional.id" in self.config and not self.exactly_once:
            raise InvalidError("transactional.id in --kafka-config needs --exactly-once")
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
            "topic.metadata.refresh.interval.ms": "10000",  # until a new topic is found
        }
        ours = {"enable.auto.commit": False, "enable.auto.offset.store": False}
        return usual | dict(self.config) | ours | {"bootstrap.servers": self.brokers}

    def asks(self) -> dict[str, Any]:
        """The properties of the client that asks which topics there are."""
        given = {name: value for name, value in self.config.items() if name != "transactional.id"}
        return given | {"bootstrap.servers": self.brokers}

    def produces(self) -> dict[str, Any]:
        """The properties of the producer."""
        usual = {"linger.ms": "1"}
        if self.exactly_once:
            # What a killed server left open, its successor of the same name ends at once, the broker after this time.
            name = f"{self.consumes()['group.id']}-{socket.gethostname()}-{os.getpid()}"
            usual |= {"transactional.id": name, "transaction.timeout.ms": "10000"}
            # Otherwise librdkafka 2.16 waits for ever for a coordinator that it has forgotten, as when all brokers were
            # away for a moment (its issues 5456 and 5511).
            usual["metadata.recovery.strategy"] = "none"
        else:
            usual["message.timeout.ms"] = "30000"
        return usual | dict(self.config) | {"enable.idempotence": True, "bootstrap.servers": self.brokers}


def read_config(path: Path) -> dict[str, str]:
    """The properties of librdkafka in a file: on each line a name, an equals sign and a value; ``#`` for comments."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, sign, value = text.partition("=")
        if not sign:  # the line may be a password, so the message does not have it
            raise InvalidError(f"line {number} of {path} must have the form name=value")
        found[name.strip()] = value.strip()
    return found


# --- Clients ---------------------------------------------------------------------------------------------------------


class OutgoingMessage(NamedTuple):
    """A message to be sent."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers

    def shortened(self) -> OutgoingMessage:
        """Without its value, which is too large."""
        why = f"{len(self.value or b'')} bytes, more than the topic takes"
        return self._replace(value=None, headers=[*self.headers, ("devdan.left-out", why.encode())])


class MadeAnewError(RuntimeError):
    """A topic was deleted and made anew while it was read."""


class KafkaClients:
    """A consumer and a producer, for the one thread that uses them.

    ``next_offsets`` tells how far the log has read each partition, ``know`` how it knows topics by their ids, and
    ``ends`` whether to stop waiting. ``known_as`` has the names of topics in the log.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        metrics: KafkaMetrics,
        next_offsets: Callable[[], Mapping[tuple[str, int], int]],
        know: Callable[[Mapping[str, str | None]], Mapping[str, TopicFacts]],
        ends: Callable[[], bool],
    ) -> None:
        self._settings, self._metrics, self._ends = settings, metrics, ends
        self._next_offsets, self._know = next_offsets, know
        self._ids: dict[str, str | None] = {}  # of the topics that are read
        self.known_as: dict[str, str] = {}
        self._asked: dict[str, Future[Any]] = {}  # which ids they have by now
        self._ask_at = 0.0
        self._has_joined = False
        self._hold_until: float | None = None
        errors: dict[str, Any] = {"error_cb": metrics.error}
        consumes = settings.consumes()
        self._begins = OFFSET_END if consumes["auto.offset.reset"] in _LATEST else OFFSET_BEGINNING
        self._consumer = Consumer(
            consumes | errors | {"stats_cb": metrics.statistics, "on_commit": self._committed}, logger=library
        )
        self._producer = Producer(settings.produces() | errors, logger=library)
        self._admin = AdminClient(settings.asks(), logger=library)

    def _join(self) -> bool:
        """Join the group, if that can be done by now: once no transaction of a predecessor is open any more."""
        if self._settings.exactly_once:
            try:
                self._producer.init_transactions(_WAIT)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                self._consumer.poll(0)  # which tells whether a broker can be reached
                return False
        self._consumer.subscribe([self._settings.rows, self._settings.labels], on_assign=self._assigned)
        return True

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """Begin where the log ends, or earlier if less is committed: some predictions may not be delivered.

        Partitions that are new to the log are read from their beginning, whatever the group has committed.
        """
        self._metrics.assigned()
        self._recognise(sorted({place.topic for place in partitions}))
        known = self._next_offsets()
        begins = consumer.committed(partitions, _TIMEOUT)
        for place in begins:
            name = self.known_as[place.topic]
            position = known.get((name, place.partition))
            first, end = consumer.get_watermark_offsets(place, _TIMEOUT)
            where = f"partition {place.partition} of {place.topic}"
            if position is not None and end < position:
                self._metrics.lacks(
                    f"{where} ends at offset {end}, but was read up to {position} before, so messages up to there are "
                    "skipped: the broker has lost some, or is too old to tell that the topic was made anew"
                )
            elif position is not None and first > position:
                self._metrics.lacks(f"{where} lacks messages {position} to {first - 1}, removed before they were read")
            if position is None:
                place.offset = self._begins if name == place.topic else OFFSET_BEGINNING
            elif place.offset < 0:
                place.offset = OFFSET_BEGINNING
            else:
                place.offset = min(place.offset, position)
        consumer.assign(begins)
        if self._hold_until is None:
            consumer.resume(begins)  # they may have been lost while they were paused
        else:
            consumer.pause(begins)

    def _recognise(self, topics: Sequence[str]) -> None:
        """Ask for the ids of these topics, and the log how it knows them: for each of these clients, by one name."""
        ids = {topic: _id_in(answer) for topic, answer in self._ask(topics).items()}
        for topic, own in self._know(ids).items():
            if own.is_anew:
                self._metrics.made_anew(topic, own.name)
            if self.known_as.setdefault(topic, own.name) != own.name:
                raise MadeAnewError(f"the topic {topic} was made anew")
        self._ids |= ids

    def _ask(self, topics: Sequence[str]) -> dict[str, Future[Any]]:
        """What will tell the ids of topics."""
        self._ask_at = time.monotonic() + _ASK
        return self._admin.describe_topics(TopicCollection(list(topics)), request_timeout=_TIMEOUT) if topics else {}

    def _check_topics(self) -> None:
        """Raise a ``MadeAnewError`` once a topic has another id than when its partitions were assigned.

        The consumer itself would not always notice, and go on at the offset that the old topic had.
        """
        if any(not answer.done() for answer in self._asked.values()):
            return
        for topic, answer in self._asked.items():
            with suppress(KafkaException):  # it will be asked again
                id_, before = _id_in(answer), self._ids.get(topic)
                if id_ is not None and before is not None and id_ != before:
                    raise MadeAnewError(f"the topic {topic} was made anew")
        self._asked = self._ask(list(self._ids)) if time.monotonic() >= self._ask_at else {}

    def consume(self) -> list[Message]:
        """The next messages; none if none come for a while."""
        self._has_joined = self._has_joined or self._join()
        if not self._has_joined:
            return []
        self._check_topics()
        if self._hold_until is not None and time.monotonic() >= self._hold_until:
            self._hold_until = None
            self._consumer.resume(self._consumer.assignment())
        came, size = list[Message](), 0
        for _ in range(_BATCH):
            message = self._consumer.poll(0 if came else _WAIT)
            if message is None:
                break
            error = message.error()
            if error is None:
                came.append(message)
                size += len(message)
                if size >= _LARGE:  # to process more takes longer than a group waits for its members
                    break
            else:
                self._metrics.failed(error.str())
        return came

    def answer(self, messages: Sequence[Message], outgoing: Sequence[OutgoingMessage]) -> None:
        """Send what answers these messages, and commit their offsets; raises a ``KafkaException``."""
        places = [_place(message, 1) for message in _by_partition(messages[::-1])]
        if not self._settings.exactly_once:
            while outgoing:
                outgoing = [outgoing[number].shortened() for number in self._deliver(outgoing)]
            self._consumer.commit(offsets=places)
            return
        self._producer.begin_transaction()
        too_large = self._deliver(outgoing)
        if too_large:
            self._producer.abort_transaction()
            self.answer(messages, [one.shortened() if n in too_large else one for n, one in enumerate(outgoing)])
            return
        self._producer.send_offsets_to_transaction(places, self._consumer.consumer_group_metadata())
        self._producer.commit_transaction()

    def _deliver(self, outgoing: Sequence[OutgoingMessage]) -> set[int]:
        """Send messages, and wait until they are acknowledged; returns which are too large."""
        failed: list[KafkaError] = []
        too_large = set[int]()

        def delivered(number: int, error: KafkaError | None, _: Message | None) -> None:
            if error is None:
                return
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE and outgoing[number].value is not None:
                too_large.add(number)
            else:
                failed.append(error)

        for number, message in enumerate(outgoing):
            while True:
                try:
                    self._producer.produce(
                        message.topic,
                        message.value,
                        message.key,
                        headers=message.headers,
                        on_delivery=partial(delivered, number),
                    )
                except BufferError:  # until there is room
                    self._producer.poll(_WAIT)
                    continue
                except KafkaException as error:
                    delivered(number, error.args[0], None)
                break
        while self._producer.flush(_WAIT):
            if self._ends():
                self._producer.purge()
        if failed and not (
            too_large and self._settings.exactly_once
        ):  # in a transaction one that is too large fails all
            raise KafkaException(failed[0])
        return too_large

    def _committed(self, error: KafkaError | None, places: list[TopicPartition]) -> None:
        if error is not None:  # the messages will be read again, and recognised
            self._metrics.failed(error.str())

    def hold(self, messages: Sequence[Message]) -> None:
        """Read nothing for a while, then these again."""
        for message in _by_partition(messages):
            self._consumer.seek(_place(message))
        self._consumer.pause(self._consumer.assignment())
        self._hold_until = time.monotonic() + _HOLD

    @property
    def holds(self) -> bool:
        """Whether nothing is read for a while."""
        return self._hold_until is not None

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()
        self._producer.purge()


def _id_in(answer: Future[Any]) -> str | None:
    """The id of a topic; None if there is none, or the broker gives topics none. Raises a ``KafkaException``."""
    try:
        found = answer.result().topic_id
    except KafkaException as error:
        if error.args[0].code() in _NO_ID:
            return None
        raise
    return str(found) if any((found.get_most_significant_bits(), found.get_least_significant_bits())) else None


def _by_partition(messages: Sequence[Message]) -> list[Message]:
    """The first message of each partition."""
    found: dict[tuple[str | None, int | None], Message] = {}
    for message in messages:
        found.setdefault((message.topic(), message.partition()), message)
    return list(found.values())


def _place(message: Message, further: int = 0) -> TopicPartition:
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition, offset + further)


# --- From messages to the log and back -------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A message, what is to be written of it, and why it is unusable, if it is."""

    message: Message
    live: Live
    submission: Submission
    why: str | None = None


class _GoneError(RuntimeError):
    """A stream was deleted meanwhile."""


_FAULTS = (UnavailableError, BusyError, KafkaException, MadeAnewError, _GoneError, OSError, MemoryError)
_PASSING = (*_FAULTS, DamagedError)  # not the message's fault
_EXPECTED = (*_FAULTS, ConflictError, InvalidError, LimitError, NotFoundError)  # its stream cannot be made


class KafkaWorker:
    """Reads messages, writes them to the log and answers them until it is stopped; to be used in the event loop."""

    def __init__(self, engine: Engine, settings: KafkaSettings, registry: CollectorRegistry) -> None:
        self._engine, self._settings, self._metrics = engine, settings, KafkaMetrics(registry)
        self._thread = ThreadPoolExecutor(1, "devdan-kafka")
        self._ends = asyncio.Event()
        self._part = engine.supervisor.part("kafka")

    def start(self) -> None:
        """Begin; brokers need not be there yet."""
        self._loop = asyncio.get_running_loop()
        self._metrics.reads([self._settings.rows, self._settings.labels])
        self._task = self._loop.create_task(self._run())

    async def stop(self) -> None:
        """End; what is not committed is read again by the next worker."""
        self._ends.set()
        await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        with self._engine.supervisor.guarding(self._part):
            while not self._ends.is_set():
                try:
                    await self._serve()
                except _EXPECTED as error:  # what is not committed is read again
                    self._metrics.failed(error)
                    with suppress(TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
                        await asyncio.wait_for(self._ends.wait(), self._part.waits(error))

    async def _serve(self) -> None:
        await self._own()
        clients = await self._call(
            lambda: KafkaClients(
                self._settings,
                self._metrics,
                lambda: sql.next_offsets(self._engine.database.own()),
                self._know,
                self._ends.is_set,
            )
        )
        try:
            while not self._ends.is_set():
                messages = await self._call(clients.consume)
                if messages:
                    await self._take(clients, messages)
                self._part.works()
                if self._metrics.is_away:
                    self._part.waits(UnavailableError("no broker can be reached"))
                elif not clients.holds:
                    self._part.goes_on()
        finally:
            await self._call(clients.close)

    def _know(self, ids: Mapping[str, str | None]) -> Mapping[str, TopicFacts]:
        """How the log knows topics; to be asked in Kafka's thread."""
        job = partial(sql.know_topics, ids=ids)
        return asyncio.run_coroutine_threadsafe(self._engine.write(job), self._loop).result()

    async def _call(self, function: Callable[[], Result]) -> Result:
        """Run something in Kafka's thread."""
        return await self._loop.run_in_executor(self._thread, function)

    async def _take(self, clients: KafkaClients, messages: Sequence[Message]) -> None:
        """Write messages to the log and answer them, some at a time; those for which that fails are read again."""
        n_done, some = 0, list[_Read]()
        try:
            for place, message in enumerate(messages, start=1):
                some.append(await self._read(message, clients.known_as))
                size = sum(len(one.submission.rows) + len(one.submission.labels) for one in some)
                if size >= self._engine.limits.rows or place == len(messages):
                    await self._write(clients, some)
                    n_done, some = place, []
                await asyncio.sleep(0)  # let HTTP requests run
        except (UnavailableError, BusyError, KafkaException, _GoneError) as error:
            if isinstance(error, KafkaException) and (error.args[0].fatal() or self._settings.exactly_once):
                raise  # new clients end the open transaction
            self._metrics.failed(error)
            self._metrics.paused(True)
            self._part.waits(error)
            await self._call(lambda: clients.hold(messages[n_done:]))
        else:
            self._metrics.paused(False)

    async def _read(self, message: Message, known_as: Mapping[str, str]) -> _Read:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        source = Source(known_as[topic], partition, offset)
        try:
            live = await self._stream(message)
            content = self._content(message)
            submission = await (self._rows if topic == self._settings.rows else self._labels)(live, content, source)
            return _Read(message, live, submission)
        except (InvalidError, LimitError, NotFoundError, UnusableError) as error:  # before those that pass
            return await self._unusable(message, source, str(error))
        except _PASSING:
            raise
        except Exception as error:  # it would be the same each time that the message is read
            logger.exception("unexpected error: %s, partition %s, offset %s becomes a dead letter", *source)
            return await self._unusable(message, source, f"unexpected error: {error!r:.200}")

    async def _unusable(self, message: Message, source: Source, why: str) -> _Read:
        own = await self._own()
        return _Read(message, own, Submission(own.number, source=source), why)

    async def _stream(self, message: Message) -> Live:
        named = dict(_headers(message)).get(_STREAM)
        if named is None:
            return await self._own()
        return await self._engine.find(named if isinstance(named, str) else named.decode(errors="replace"))

    async def _own(self) -> Live:
        """The stream that messages are for unless they name another one."""
        try:
            return await self._engine.find(self._settings.stream)
        except NotFoundError:
            return (await self._engine.create(self._settings.stream, StreamSettings()))[0]

    def _content(self, message: Message) -> bytes:
        content, most = message.value(), self._engine.limits.body
        if not content:
            raise InvalidError("the message must have a body, got an empty one")
        if len(content) > most:
            raise LimitError(f"a message may have {most} bytes, got {len(content)}")
        return content

    async def _rows(self, live: Live, content: bytes, source: Source) -> Submission:
        limits = self._engine.limits
        if arrow.is_arrow(content):  # of which a few bytes may be many characters
            rows, size = arrow.arrow_rows(content, limits), limits.body
        else:
            rows, size = bodies.parsed(bodies.ROWS, content).rows, len(content)
        for place, row in enumerate(rows):
            row.id = row.id or "-".join(map(str, (*source, place)))  # the same at each reading
        bodies.check_rows(rows, live.settings.keyed, limits, size)
        answer = await self._engine.predict(live, rows)
        return Submission(live.number, answer.rows, source=source, predictor=live.asked(answer.predictor))

    async def _labels(self, live: Live, content: bytes, source: Source) -> Submission:
        limits = self._engine.limits
        if arrow.is_arrow(content):
            given = arrow.arrow_labels(content, limits)
        else:
            given = bodies.parsed(bodies.LABELS, content)
        bodies.check_labels(given.labels, limits)
        pairs = [(one.id, one.label) for one in given.labels]
        return Submission(live.number, labels=pairs, source=source, replaces=given.replaces)

    async def _write(self, clients: KafkaClients, some: Sequence[_Read]) -> None:
        try:
            outcomes = await self._engine.submit_together([one.submission for one in some], _SENDER)
        except (UnavailableError, BusyError):
            raise
        except Exception as error:  # of one message, which must not come for ever
            if len(some) > 1:
                for one in some:
                    await self._write(clients, [one])
                return
            if some[0].why is not None:
                raise
            logger.exception("unexpected error; the message becomes a dead letter")
            nothing = Submission(some[0].submission.stream, source=some[0].submission.source)
            reason = f"unexpected error: {type(error).__name__}: {error}"
            await self._write(clients, [some[0]._replace(submission=nothing, why=reason)])
            return
        predictions, dead = list[OutgoingMessage](), list[OutgoingMessage]()
        for one, outcome in zip(some, outcomes, strict=True):
            if outcome.gone:
                raise _GoneError(f"the stream {one.live.name!r} was deleted")
            if outcome.unready:
                raise UnavailableError(outcome.error)
            said = await self._answers(one, outcome)
            predictions += [self._prediction(one.live, id_, answer) for id_, answer in said.items()]
            why = one.why or _refusal(outcome)
            if why is not None:
                dead.append(self._dead_letter(one.message, why))
        await self._call(lambda: clients.answer([one.message for one in some], [*predictions, *dead]))
        self._metrics.predictions(len(predictions))
        for one, outcome in zip(some, outcomes, strict=True):
            self._count(one, outcome)

    def _count(self, one: _Read, outcome: SubmissionOutcome) -> None:
        if one.submission.labels and outcome.error is None:
            one.live.count_labels(outcome)
        is_new = outcome.rows or outcome.accepted or outcome.corrected or outcome.waiting or outcome.expired
        is_dead = one.why is not None or _refusal(outcome) is not None
        self._metrics.message(one.message.topic() or "", "dead" if is_dead else "new" if is_new else "known")

    async def _answers(self, one: _Read, outcome: SubmissionOutcome) -> dict[str, KnownPrediction]:
        """By id, the predictions in the log: of rows that came before, what was answered then."""
        if outcome.error is not None or not one.submission.rows:
            return {}
        if outcome.rows == len(one.submission.rows):
            rows = one.submission.rows
            if one.submission.predictor is not None:
                said = zip(rows, outcome.predictions, strict=True)
                return {row.id: KnownPrediction(own.label, own.confidence, own.threshold) for row, own in said}
            return {row.id: KnownPrediction(row.predicted, row.confidence, row.threshold) for row in rows}
        return await self._engine.logged(one.live, [row.id for row in one.submission.rows])

    def _prediction(self, live: Live, id_: str, said: KnownPrediction) -> OutgoingMessage:
        answer: dict[str, Any] = {"stream": live.name, "id": id_, "label": said.label, "confidence": said.confidence}
        if said.threshold is not None:
            answer["threshold"] = said.threshold
        return OutgoingMessage(self._settings.predictions, id_.encode(), msgspec.json.encode(answer), [])

    def _dead_letter(self, message: Message, why: str) -> OutgoingMessage:
        topic = message.topic() or ""
        about = {"reason": why, "topic": topic, "partition": message.partition(), "offset": message.offset()}
        headers: Headers = [(f"devdan.{name}", str(value).encode()) for name, value in about.items()]
        return OutgoingMessage(
            self._settings.dead(topic), message.key(), message.value(), [*_headers(message), *headers]
        )


def _headers(message: Message) -> Headers:
    found = message.headers() or []
    return list(found.items()) if isinstance(found, dict) else found


def _refusal(outcome: SubmissionOutcome) -> str | None:
    """Why a message was refused, or some of its rows or labels, while the others were accepted."""
    if outcome.error is not None or not outcome.refused:
        return outcome.error
    more = len(outcome.refused) - _LISTED
    told = [f"{one.id}: {one.why}" for one in outcome.refused[:_LISTED]]
    return "; ".join([*told, f"and {more} more"] if more > 0 else told)
