"""The streams at work: what requests ask of them, without HTTP."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from devdan.fleet.fleet import DEVDANFleet
from devdan.model.compilation import compile_kernel
from devdan.model.devdan import DEVDAN
from devdan.service import models, register, snapshots
from devdan.service.database import Connection, Database, UnavailableError
from devdan.service.learner import Learner, Published
from devdan.service.logged import Label, Rows, Settings
from devdan.service.naming import InvalidError, check_name
from devdan.service.predictor import Predictor
from devdan.service.register import Facts
from devdan.service.submissions import Outcome, Row, Submission
from devdan.service.tally import Tally
from devdan.service.writer import Writer

Result = TypeVar("Result")


class Limits(msgspec.Struct, frozen=True):
    """How much a service takes; more is refused."""

    body: int = 8 * 2**20  # bytes of a request
    bodies: int = 256 * 2**20  # bytes of all requests that are being answered
    rows: int = 10_000  # of a request
    columns: int = 1000
    streams: int = 100
    keys: int = 10_000  # of a stream
    queued: int = 50_000  # rows and labels that wait to be written
    listeners: int = 100  # connections that follow events
    seconds: float = 20.0  # for a request to arrive, and for an answer to be taken


class LimitError(ValueError):
    """More than the service takes."""


class ConflictError(ValueError):
    """There is something else of this name."""


class Live:
    """A stream: its facts, and what the learner has published last."""

    def __init__(self, number: int, name: str, settings: Settings, created: float, published: Published) -> None:
        self.number, self.name, self.settings, self.created = number, name, settings, created
        self.published = published
        self.changed = asyncio.Event()  # replaced whenever it is set

    @property
    def predictor(self) -> Predictor:
        return self.published.predictor


class Given(NamedTuple):
    """A model that has learned before, to begin a stream with."""

    name: str
    content: bytes
    settings: Settings

    @classmethod
    def of_file(cls, path: Path, name: str) -> Given:
        """The model in a file; raises an error that says why it cannot be a stream."""
        content = path.read_bytes()
        model = models.of_content(content, str(path))
        if isinstance(model, DEVDANFleet):
            raise InvalidError(f"{path} holds a fleet, which cannot become a stream; a stream with keys begins empty")
        return cls(check_name(name), content, Settings(model=type(model).__name__, columns=models.columns_of(model)))


class Known(NamedTuple):
    """What became of a sample."""

    id: str
    state: str
    at: float | None = None
    predicted: Label | None = None
    confidence: float | None = None
    label: Label | None = None
    labelled_at: float | None = None


class Engine:
    """Streams in a database, a thread that writes and one that learns. Its methods are for the event loop."""

    def __init__(self, database: Database, limits: Limits | None = None) -> None:
        self.database, self.limits = database, limits or Limits()
        self.streams: dict[str, Live] = {}
        self._numbers: dict[int, Live] = {}
        self.is_stopping = False
        self._cleaning: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self.writer = Writer(database, self.limits.queued, self._deliver, self._wake)
        self.learner = Learner(database, self.writer, lambda *news: self._deliver(lambda: self._take(*news)))

    async def start(self, model: Given | None = None) -> None:
        """Open the streams; a model that is given becomes a stream, unless there is one of this name."""
        self.writer.start()
        await asyncio.to_thread(compile_kernel, DEVDAN())  # so that no answer waits for it
        await self.refresh()
        if model is not None:
            await self._open_model(model)
        self.learner.start()
        self._clean()

    def end_listening(self) -> None:
        """Let those go who follow events."""
        self.is_stopping = True
        for live in self._numbers.values():
            live.changed.set()

    async def stop(self) -> None:
        """Write what has come, learn it, and keep snapshots."""
        self.end_listening()
        if self._cleaning is not None:
            await self._cleaning
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)

    # --- Streams -------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Look which streams there are: another server may have made or removed some."""
        known = await self.read(register.facts)
        for number, stream in known.items():
            if number not in self._numbers:
                self._add(stream)
        for number in self._numbers.keys() - known.keys():
            self._remove(number)

    def _add(self, stream: Facts) -> Live:
        nothing = Published(Predictor(models.new_model(stream.settings), None, 0), Tally(), 0, 0, 0, stream.created)
        live = Live(stream.number, stream.name, stream.settings, stream.created, nothing)
        self.streams[stream.name] = self._numbers[stream.number] = live
        return live

    def _remove(self, number: int) -> None:
        live = self._numbers.pop(number)
        self.streams.pop(live.name, None)
        live.changed.set()

    async def create(self, name: str, settings: Settings) -> tuple[Live, bool]:
        """A stream, and whether it is new; one that is there already must have the same settings."""
        models.new_model(settings)
        if settings.columns is not None and len(settings.columns) > self.limits.columns:
            raise LimitError(f"a stream may have {self.limits.columns} columns, got {len(settings.columns)}")

        def job(connection: Connection) -> tuple[Facts, bool]:
            with connection.transaction():
                known = {one.name: one for one in register.facts(connection).values()}
                if name in known:
                    return known[name], False
                if len(known) >= self.limits.streams:
                    raise LimitError(f"there are {len(known)} streams already, which is the most; delete one first")
                return register.create(connection, name, settings, time.time()), True

        stream, is_new = await self.write(job)
        if stream.settings != settings:
            raise ConflictError("there is a stream of this name with other settings; delete it, or choose another name")
        if stream.number not in self._numbers:
            self._add(stream)
        self.learner.wake({stream.number})
        return self._numbers[stream.number], is_new

    async def delete(self, live: Live) -> None:
        """Remove a stream with all that is kept of it."""

        def job(connection: Connection) -> None:
            with connection.transaction():
                register.delete(connection, live.number)

        await self.write(job)
        if live.number in self._numbers:
            self._remove(live.number)
        self._clean()

    def _clean(self) -> None:
        """Begin to remove what is kept of deleted streams; what is left at the end is removed after the next start."""

        async def clean() -> None:
            with suppress(UnavailableError):
                while not self.is_stopping and await self.write(register.clean):
                    pass

        if self._cleaning is None or self._cleaning.done():
            self._cleaning = self._loop.create_task(clean())

    async def _open_model(self, given: Given) -> None:

        def job(connection: Connection) -> None:
            with connection.transaction():
                if all(one.name != given.name for one in register.facts(connection).values()):
                    made = register.create(connection, given.name, given.settings, time.time())
                    snapshots.begin_with(connection, made.number, given.content, time.time())

        await self.write(job)
        await self.refresh()

    # --- Rows and labels -----------------------------------------------------------------------------------------

    async def submit(self, live: Live, rows: Sequence[Row] = (), labels: Sequence[tuple[str, Label]] = ()) -> Outcome:
        """Have rows or labels written; returns the outcome when they are on disk."""
        return (await self.submit_together([Submission(live.number, rows, labels)]))[0]

    def submit_together(self, submissions: Sequence[Submission]) -> asyncio.Future[list[Outcome]]:
        """Have all written, or none if that fails; the outcomes are there when they are on disk."""
        promise: asyncio.Future[list[Outcome]] = self._loop.create_future()
        self.writer.submit(submissions, promise)
        return promise

    async def answered(self, live: Live, ids: Sequence[str]) -> dict[str, tuple[Label | None, float | None]]:
        """What was answered for rows in the log, by their ids: the label and its probability."""

        def find(connection: Connection) -> dict[str, tuple[Label | None, float | None]]:
            known = register.samples(connection, live.number, ids)
            records = {seq: connection.record(live.number, seq) for seq in {one.seq for one in known.values()}}
            said = {}
            for id_, sample in known.items():
                record = records[sample.seq]
                if record is not None and isinstance(record.body, Rows):
                    said[id_] = record.body.predicted[sample.place], record.body.confidence[sample.place]
            return said

        return await self.read(find)

    async def sample(self, live: Live, id_: str) -> Known | None:
        """What became of a sample."""

        def find(connection: Connection) -> Known | None:
            sample = register.samples(connection, live.number, [id_]).get(id_)
            stream = register.facts(connection, [live.number]).get(live.number)
            if sample is None or stream is None:
                return None
            came = connection.record(live.number, sample.seq)
            said = connection.record(live.number, sample.label_seq) if sample.label_seq is not None else None
            labelled_at = None if said is None else said.at
            if came is None or not isinstance(came.body, Rows):
                return Known(id_, "waits for its features", None, None, None, sample.label, labelled_at)
            state = (
                "learned"
                if sample.label is not None
                else "expired"
                if sample.seq <= stream.horizon
                else "waits for its label"
            )
            place = sample.place
            answered = came.body.predicted[place], came.body.confidence[place]
            return Known(id_, state, came.at, *answered, sample.label, labelled_at)

        return await self.read(find)

    # --- Threads -------------------------------------------------------------------------------------------------

    async def write(self, job: Callable[[Connection], Result]) -> Result:
        """Run something in the thread that writes."""
        return await asyncio.wrap_future(self.writer.run_job(job))

    async def read(self, job: Callable[[Connection], Result]) -> Result:
        """Run something in a thread that reads."""
        return await asyncio.to_thread(lambda: job(self.database.own()))

    def _deliver(self, function: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _wake(self, streams: set[int]) -> None:
        self.learner.wake(streams)

    def _take(self, number: int, published: Published) -> None:
        live = self._numbers.get(number)
        if live is not None:
            live.published = published
            changed, live.changed = live.changed, asyncio.Event()
            changed.set()
