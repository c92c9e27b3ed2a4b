"""Kafka as one more door to the log: rows and labels come in, predictions go out; what cannot be used is set aside.

A message is committed when the log has it on disk and its predictions are delivered. After a crash it comes again, is
recognised by its topic, partition and offset, and gets the prediction that the log has of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple, TypeVar

from confluent_kafka import KafkaException, Message
from fastapi import HTTPException

from devdan.service import arrow_bodies, register
from devdan.service.bodies import LABELS, ROWS, check_labels, check_rows, parsed
from devdan.service.database import UnavailableError
from devdan.service.engine import LimitError, Live
from devdan.service.handling import Service, encode
from devdan.service.intake import counted, foreseen
from devdan.service.kafka_clients import Clients, Headers, Letter
from devdan.service.kafka_settings import Kafka
from devdan.service.kafka_watch import Watch, logger
from devdan.service.logged import Label, Settings
from devdan.service.naming import InvalidError
from devdan.service.register import Source
from devdan.service.submissions import Outcome, Submission
from devdan.service.writer import BusyError

Result = TypeVar("Result")

_AGAIN = 5.0  # seconds until the clients are made again after an error that nobody knows
_NAMED = 20  # contradictions in a reason
_STREAM = "stream"  # the header that names another stream


class _Read(NamedTuple):
    """A message, what is to be written of it, and why it cannot be used."""

    message: Message
    live: Live
    submission: Submission
    why: str | None = None


class _GoneError(RuntimeError):
    """A stream was deleted meanwhile."""


class KafkaDoor:
    """Reads, writes down and answers messages until it is stopped; its methods are for the event loop."""

    def __init__(self, service: Service, kafka: Kafka) -> None:
        self._service, self._engine, self._kafka = service, service.engine, kafka
        self._watch = Watch(service.metrics.registry)
        self._thread = ThreadPoolExecutor(1, "devdan-kafka")
        self._ends = asyncio.Event()

    async def start(self) -> None:
        """Begin; brokers need not be there yet."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """End; what is not committed is read again by the next."""
        self._ends.set()
        await self._task
        self._thread.shutdown()

    async def _run(self) -> None:
        while not self._ends.is_set():
            try:
                await self._serve()
            except Exception as error:  # whatever it was: what is not committed is read again
                self._watch.failed(error)
                if not isinstance(error, (KafkaException, UnavailableError)):
                    logger.exception("the door to Kafka begins anew")
                with suppress(TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
                    await asyncio.wait_for(self._ends.wait(), _AGAIN)

    async def _serve(self) -> None:
        await self._own()
        clients = await self._call(
            lambda: Clients(
                self._kafka, self._watch, lambda: register.positions(self._engine.database.own()), self._ends.is_set
            )
        )
        try:
            while not self._ends.is_set():
                messages = await self._call(clients.consume)
                if messages:
                    await self._take(clients, messages)
        finally:
            await self._call(clients.close)

    async def _call(self, function: Callable[[], Result]) -> Result:
        """Run something in Kafka's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    # --- From messages to the log --------------------------------------------------------------------------------

    async def _take(self, clients: Clients, messages: Sequence[Message]) -> None:
        """Write messages down and answer them, some at a time; those for which that fails come again."""
        n_done, some = 0, list[_Read]()
        try:
            for place, message in enumerate(messages, start=1):
                some.append(await self._read(message))
                size = sum(len(one.submission.rows) + len(one.submission.labels) for one in some)
                if size >= self._engine.limits.rows or place == len(messages):
                    await self._write(clients, some)
                    n_done, some = place, []
                await asyncio.sleep(0)  # requests get their turn
        except (UnavailableError, BusyError, KafkaException, _GoneError) as error:
            if isinstance(error, KafkaException) and error.args[0].fatal():
                raise
            self._watch.failed(error)
            self._watch.paused(True)
            await self._call(lambda: clients.hold(messages[n_done:]))
        else:
            self._watch.paused(False)

    async def _read(self, message: Message) -> _Read:
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        source = Source(topic, partition, offset)
        try:
            live = await self._stream(message)
            content = self._content(message)
            submission = await (self._rows if topic == self._kafka.rows else self._labels)(live, content, source)
            return _Read(message, live, submission)
        except (InvalidError, LimitError, HTTPException) as error:
            why = error.detail if isinstance(error, HTTPException) else str(error)
            own = await self._own()
            return _Read(message, own, Submission(own.number, source=source), why)

    async def _stream(self, message: Message) -> Live:
        named = dict(_headers(message)).get(_STREAM)
        if named is None:
            return await self._own()
        return await self._service.find(named if isinstance(named, str) else named.decode(errors="replace"))

    async def _own(self) -> Live:
        """The stream that messages are for unless they name another one."""
        try:
            return await self._service.find(self._kafka.stream)
        except HTTPException:
            return (await self._engine.create(self._kafka.stream, Settings()))[0]

    def _content(self, message: Message) -> bytes:
        content, most = message.value(), self._engine.limits.body
        if not content:
            raise InvalidError("the message must have a body, got an empty one")
        if len(content) > most:
            raise LimitError(f"a message may have {most} bytes, got {len(content)}")
        return content

    async def _rows(self, live: Live, content: bytes, source: Source) -> Submission:
        limits = self._engine.limits
        is_arrow = arrow_bodies.is_arrow(content)
        rows = arrow_bodies.rows_of(content, limits) if is_arrow else parsed(ROWS, content).rows
        for place, row in enumerate(rows):
            row.id = row.id or "-".join(map(str, (*source, place)))  # the same at each reading
        check_rows(rows, live.settings.keyed, limits)
        written, _, _ = await foreseen(self._service, live, rows)
        return Submission(live.number, written, source=source)

    async def _labels(self, live: Live, content: bytes, source: Source) -> Submission:
        limits = self._engine.limits
        is_arrow = arrow_bodies.is_arrow(content)
        labels = arrow_bodies.labels_of(content, limits) if is_arrow else parsed(LABELS, content).labels
        check_labels(labels, limits)
        return Submission(live.number, labels=[(one.id, one.label) for one in labels], source=source)

    # --- From the log to messages --------------------------------------------------------------------------------

    async def _write(self, clients: Clients, some: Sequence[_Read]) -> None:
        outcomes = await self._engine.submit_together([one.submission for one in some])
        predictions, dead = list[Letter](), list[Letter]()
        for one, outcome in zip(some, outcomes, strict=True):
            if outcome.gone:
                raise _GoneError(f"the stream {one.live.name!r} was deleted")
            said = await self._answers(one, outcome)
            predictions += [self._prediction(one.live, id_, *answer) for id_, answer in said.items()]
            why = one.why or _refusal(outcome)
            if why is not None:
                dead.append(self._dead_letter(one.message, why))
        await self._call(lambda: clients.deliver([*predictions, *dead]))
        await self._call(lambda: clients.commit([one.message for one in some]))
        self._watch.predictions(len(predictions))
        for one, outcome in zip(some, outcomes, strict=True):
            self._count(one, outcome)

    def _count(self, one: _Read, outcome: Outcome) -> None:
        if one.submission.labels and outcome.error is None:
            counted(self._service, one.live, outcome)
        is_new = outcome.rows or outcome.accepted or outcome.waiting or outcome.expired
        is_dead = one.why is not None or _refusal(outcome) is not None
        self._watch.message(one.message.topic() or "", "dead" if is_dead else "new" if is_new else "known")

    async def _answers(self, one: _Read, outcome: Outcome) -> dict[str, tuple[Label | None, float | None]]:
        """By id, the predictions in the log: of rows that came before, what was answered then."""
        if outcome.error is not None or not one.submission.rows:
            return {}
        if outcome.rows == len(one.submission.rows):
            return {row.id: (row.predicted, row.confidence) for row in one.submission.rows}
        return await self._engine.answered(one.live, [row.id for row in one.submission.rows])

    def _prediction(self, live: Live, id_: str, label: Label | None, confidence: float | None) -> Letter:
        value = encode({"stream": live.name, "id": id_, "label": label, "confidence": confidence})
        return Letter(self._kafka.predictions, id_.encode(), value, [])

    def _dead_letter(self, message: Message, why: str) -> Letter:
        topic = message.topic() or ""
        about = {"reason": why, "topic": topic, "partition": message.partition(), "offset": message.offset()}
        headers: Headers = [(f"devdan.{name}", str(value).encode()) for name, value in about.items()]
        return Letter(self._kafka.dead(topic), message.key(), message.value(), [*_headers(message), *headers])


def _headers(message: Message) -> Headers:
    found = message.headers() or []
    return list(found.items()) if isinstance(found, dict) else found


def _refusal(outcome: Outcome) -> str | None:
    """Why a message was refused, or some of its rows or labels; the others were accepted."""
    if outcome.error is not None or not outcome.refused:
        return outcome.error
    more = len(outcome.refused) - _NAMED
    told = [f"{one.id}: {one.why}" for one in outcome.refused[:_NAMED]]
    return "; ".join([*told, f"and {more} more"] if more > 0 else told)
