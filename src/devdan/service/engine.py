"""The streams of a service: what a request or a message asks of them, whatever way it came."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from devdan.fleet.fleet import DEVDANFleet, open_model
from devdan.histories.histories import compile_histories
from devdan.model import modelfile
from devdan.model.compilation import compile_kernel
from devdan.model.devdan import DEVDAN
from devdan.service import entities, fold, forgetting, ledger, log_keys, models, sql
from devdan.service.bodies import RowIn
from devdan.service.database import Connection, Database, StaleError, UnavailableError
from devdan.service.figures import Counts
from devdan.service.learner import LearnerThread, StreamNews, StreamView
from devdan.service.predictor import NotFetchedError, Predictor
from devdan.service.schema import (
    BusyError,
    FairShares,
    Features,
    InvalidError,
    Label,
    LimitError,
    Limits,
    LoggedAssumptions,
    LoggedRows,
    RowPrediction,
    StreamSettings,
    Submission,
    SubmissionOutcome,
    SubmittedRow,
    check_name,
    new_id,
)
from devdan.service.sql import StreamFacts
from devdan.service.supervision import Supervisor
from devdan.service.watched import Outcomes
from devdan.service.writer import WriterThread

Result = TypeVar("Result")

_IN_THREAD = 1000  # rows from which on predictions are made beside the event loop
_PATIENCE = 30.0  # seconds for the log to take what a request brings, or to be read
_BEHIND = 60.0  # seconds that learning may be behind the log
_FREE = 100 * 2**20  # bytes on the disk that should be left
_TRIES, _MOMENT = 20, 0.1  # to have a prediction's networks of one snapshot; seconds between them
_OUTCOMES = ("accepted", "corrected", "repeated", "waiting", "expired")  # of labels


class NotFoundError(LookupError):
    """There is nothing of this name or id."""


class ConflictError(ValueError):
    """The request conflicts with what is there."""


class NotReadyError(UnavailableError):
    """The model of a stream is not there yet; the message says why."""


class UnusableError(NotReadyError):
    """The model of a stream will not be there by itself; the message says why."""


class Live:
    """A stream at work: its settings, and what the learner has published last."""

    def __init__(self, facts: StreamFacts) -> None:
        self.number, self.name, self.settings, self.created = facts.number, facts.name, facts.settings, facts.created
        self.view = StreamView(Predictor(None, facts.columns, 0), Counts(), 0, 0, 0, facts.created)
        self.is_loaded = False  # the view is that of its model
        self.is_learned_here = False
        self.is_wide = True  # its rows might make the model larger than it may become
        self.problem: str | None = None  # why it is in quarantine
        self.damage = facts.damage  # why nothing can be done with it
        self.changed = asyncio.Event()  # replaced whenever it is set
        self.received = Counter[str]()  # labels, by outcome

    @property
    def predictor(self) -> Predictor:
        return self.view.predictor

    @property
    def is_predicted_late(self) -> bool:
        """Whether rows are predicted when they are written, as they need the histories that they come with."""
        return self.settings.history is not None

    def outcomes(self) -> tuple[Outcomes, Outcomes]:
        """Of the latest rows with labels, and of all."""
        counts, decide, classes = self.view.counts, self.settings.options.get("decide"), self.predictor.classes
        return Outcomes(counts.scores_lately, decide, classes), Outcomes(counts.scores, decide, classes)

    def asked(self, predictor: Predictor) -> Predictor | None:
        """The predictor that is to predict rows when they are written, if that is not done before."""
        return predictor if self.is_predicted_late else None

    def check_loaded(self) -> None:
        """Raise an error unless there is something to predict from."""
        self.check_undamaged()
        if not self.is_loaded and self.problem is not None:
            raise UnusableError(f"the stream is in quarantine, and its model cannot be loaded: {self.problem}")
        if not self.is_loaded:
            raise NotReadyError("the model of the stream is being loaded; send the request again later")

    def check_undamaged(self) -> None:
        """Raise an error if nothing can be done with it but to delete it."""
        if self.damage is not None:
            raise UnusableError(self.damage)

    def count_labels(self, outcome: SubmissionOutcome) -> dict[str, int]:
        """Count labels that came; returns how many there were of each outcome."""
        counts = {name: getattr(outcome, name) for name in _OUTCOMES}
        self.received.update(counts, refused=len(outcome.refused))
        return counts


class InitialModel(NamedTuple):
    """A model that has learned before, to begin a stream with."""

    name: str
    content: bytes
    settings: StreamSettings

    @classmethod
    def of_file(cls, path: Path, name: str) -> InitialModel:
        """The model in a file; raises an error that says why it cannot become a stream."""
        model = open_model(path)
        if isinstance(model, DEVDANFleet):
            raise InvalidError(f"{path} holds a fleet, which cannot become a stream; a stream with keys begins empty")
        settings = StreamSettings(model=type(model).__name__, columns=models.columns_of(model))
        try:
            if (histories := getattr(model, "histories_", None)) is not None:
                settings = entities.settings_of(settings, histories)
            models.check_settings(settings, Limits(), model)
        except (InvalidError, LimitError) as error:
            raise InvalidError(f"{path} cannot become a stream: {error}") from error
        return cls(check_name(name), modelfile.content_of(model), settings)


class Answer(NamedTuple):
    """Predictions of rows, in their order; the outcome is None if the rows could not be written."""

    rows: list[SubmittedRow]
    predictions: Sequence[RowPrediction]
    predictor: Predictor
    outcome: SubmissionOutcome | None = None


class KnownPrediction(NamedTuple):
    """What was answered for a row: the label, its probability, and that from which on it is called, if there is one."""

    label: Label | None
    confidence: float | None
    threshold: float | None


class SampleStatus(NamedTuple):
    """What became of a sample."""

    id: str
    state: str
    at: float | None = None
    predicted: Label | None = None
    confidence: float | None = None
    label: Label | None = None
    labelled_at: float | None = None


class Engine:
    """Streams in a database, a thread that writes and one that learns. Its methods are for the event loop.

    ``predict_unlogged``: predict even while rows cannot be written. ``snapshots``: seconds between two snapshots of a
    model, from which a restart continues.
    """

    def __init__(
        self,
        database: Database,
        limits: Limits | None = None,
        *,
        predict_unlogged: bool = False,
        snapshots: float | None = None,
    ) -> None:
        self.database, self.limits = database, limits or Limits()
        self.streams: dict[str, Live] = {}
        self.n_listeners = 0  # connections that follow events
        self.is_stopping = False
        self._numbers: dict[int, Live] = {}
        self._predict_unlogged = predict_unlogged
        self._purging: asyncio.Task[None] | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._early: dict[int, StreamNews] = {}  # of streams that are not known yet
        self._promises: deque[tuple[float, asyncio.Future[Any]]] = deque()  # with the time until which they may take
        self._loop = asyncio.get_running_loop()
        self.rows_queued = FairShares(self.limits.queued, "rows and labels wait to be written")
        self.supervisor = Supervisor()
        self._part = self.supervisor.part("answers")
        self.writer = WriterThread(database, self.limits, self._deliver, self._wake, self.supervisor)
        self.learner = LearnerThread(
            database,
            self.writer,
            lambda *news: self._deliver(lambda: self._take(*news)),
            self.supervisor,
            snapshots,
        )

    async def start(self, model: InitialModel | None = None) -> None:
        """Open the streams; a model that is given becomes a stream, unless there is one of its name."""
        self.database.supervise(self.supervisor)
        self.writer.start()
        await asyncio.to_thread(compile_kernel, DEVDAN())  # so that no answer waits for it
        await self.refresh()
        if model is not None:
            await self._open_model(model)
        self.learner.start()
        self._sweeping = self._loop.create_task(self._sweep())
        self.supervisor.watch()
        self._purge()

    def end_listening(self) -> None:
        """End the connections that follow events."""
        self.is_stopping = True
        for live in self._numbers.values():
            live.changed.set()

    async def stop(self) -> None:
        """Write what has come, learn it, and take snapshots."""
        self.supervisor.rest()
        self.end_listening()
        if self._purging is not None:
            await self._purging
        for task in (self._sweeping, self._refreshing):
            if task is not None:
                task.cancel()
        if self.learner.is_alive():
            await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)

    # --- Streams -------------------------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Look which streams there are: another server may have made or removed some."""
        known = await self.read(sql.streams)
        for number, stream in known.items():
            if number not in self._numbers:
                self._add(stream)
        for number in self._numbers.keys() - known.keys():
            self._remove(number)

    async def find(self, name: str) -> Live:
        """A stream by its name; another server may have made it just now."""
        if name not in self.streams and self.database.is_shared:
            await self.refresh()
        live = self.streams.get(check_name(name))
        if live is None:
            raise NotFoundError(f"there is no stream {name!r}; PUT /v1/streams/{name} makes it")
        return live

    def _add(self, stream: StreamFacts) -> None:
        self.streams[stream.name] = self._numbers[stream.number] = Live(stream)
        if stream.number in self._early:
            self._take(stream.number, self._early.pop(stream.number))

    def _refresh_soon(self) -> None:
        """Look for the streams that there is news of."""

        async def refresh() -> None:
            with suppress(UnavailableError):
                await self.refresh()
                self._early.clear()  # the rest were deleted

        if self._refreshing is None or self._refreshing.done():
            self._refreshing = self._loop.create_task(refresh())

    def _remove(self, number: int) -> None:
        live = self._numbers.pop(number)
        self.streams.pop(live.name, None)
        live.changed.set()

    async def create(self, name: str, settings: StreamSettings) -> tuple[Live, bool]:
        """A stream, and whether it is new; one that is there already must have the same settings."""
        models.check_settings(settings, self.limits)

        def job(connection: Connection) -> tuple[StreamFacts, bool]:
            with connection.transaction():
                known = {one.name: one for one in sql.streams(connection).values()}
                if name in known:
                    return known[name], False
                if len(known) >= self.limits.streams:
                    raise LimitError(f"there are {len(known)} streams already, which is the most; delete one first")
                return sql.create_stream(connection, name, settings, self.writer.clock.now()), True

        def prepared(connection: Connection) -> tuple[StreamFacts, bool]:
            made, is_new = job(connection)
            if is_new and settings.history is not None:
                self.writer.ends[made.number] = entities.LogEnd.of_new(made)
            return made, is_new

        if settings.history is not None:
            await asyncio.to_thread(compile_histories)  # so that no row waits for it
        stream, is_new = await self.write(prepared)
        if stream.damage is not None:
            raise UnusableError(stream.damage)
        if stream.settings != settings:
            raise ConflictError("there is a stream of this name with other settings; delete it, or choose another name")
        if stream.number not in self._numbers:
            self._add(stream)
            self._numbers[stream.number].is_loaded = is_new  # there is nothing to load
        self.learner.wake({stream.number})
        return self._numbers[stream.number], is_new

    async def delete(self, live: Live) -> None:
        """Remove a stream with all that is kept of it."""

        def job(connection: Connection) -> bool:
            with connection.transaction():
                return sql.delete_stream(connection, live.number)

        was_there = await self.write(job)
        if live.number in self._numbers:
            self._remove(live.number)
        if not was_there:
            raise NotFoundError("the stream was deleted just before")
        self._purge()

    def _purge(self) -> None:
        """Begin to remove what deleted streams have left; what remains at the end is removed after the next start."""

        async def purge() -> None:
            with suppress(UnavailableError):
                while not self.is_stopping and await self.write(sql.purge):
                    pass

        if self._purging is None or self._purging.done():
            self._purging = self._loop.create_task(purge())

    async def _open_model(self, given: InitialModel) -> None:
        def job(connection: Connection) -> None:
            with connection.transaction():
                if all(one.name != given.name for one in sql.streams(connection).values()):
                    now = self.writer.clock.now()
                    made = sql.create_stream(connection, given.name, given.settings, now)
                    fold.begin_with(connection, made.number, given.content, now)

        await self.write(job)
        await self.refresh()

    # --- Rows and labels -----------------------------------------------------------------------------------------

    async def predict(self, live: Live, rows: Sequence[RowIn]) -> Answer:
        """Predict rows, and write nothing; rows of a stream with histories are predicted when they are written."""
        live.check_loaded()
        predictor = live.predictor
        keys = [row.key or "" for row in rows] if live.settings.keyed else None
        features = [row.features for row in rows]
        await self.check_keys(live, keys)
        await self.check_memory(live, features, keys)
        most = self.limits.probabilities
        if len(rows) * len(predictor.classes) > most:
            raise LimitError(
                f"an answer may have {most:,} probabilities, got {len(rows):,} rows for {len(predictor.classes):,} "
                f"classes; send up to {most // len(predictor.classes):,} rows at a time"
            )
        if live.is_predicted_late:
            if live.number not in self.writer.ends:
                raise NotReadyError(ledger.UNREADY)
            return Answer([_unpredicted(row) for row in rows], [], predictor)
        try:
            if keys is not None:
                predictor, predictions = await self._predict_keys(live, features, keys)
            elif len(rows) == 1:
                predictions = [predictor.one(features[0])]
            elif len(rows) < _IN_THREAD:
                predictions = predictor.many(features)
            else:
                predictions = await asyncio.to_thread(predictor.many, features)
        except ValueError as error:  # a model of numbers was given something else
            raise InvalidError(str(error)) from error
        submitted = [
            SubmittedRow(
                *(row.id or new_id(), row.features, row.key, own.label, own.confidence, None, row.id is None),
                own.threshold,
            )
            for row, own in zip(rows, predictions, strict=True)
        ]
        return Answer(submitted, predictions, predictor)

    async def _predict_keys(
        self, live: Live, rows: Sequence[Features], keys: Sequence[str]
    ) -> tuple[Predictor, list[RowPrediction]]:
        """Predict rows with the networks of their keys, of which some may have to be fetched from the log."""
        predictor, fetched = live.predictor, dict[str, bytes]()
        for _ in range(_TRIES):
            missing = [text for text in predictor.not_in_memory(keys) if text not in fetched]
            try:
                if missing:
                    find = partial(sql.networks, stream=live.number, seq=predictor.snapshot_seq, keys=missing)
                    fetched |= dict.fromkeys(missing, b"") | await self.read(find)
                if len(rows) < _IN_THREAD:
                    return predictor, predictor.many(rows, keys, fetched)
                return predictor, await asyncio.to_thread(predictor.many, rows, keys, fetched)
            except NotFetchedError:
                continue
            except StaleError:  # two snapshots were taken meanwhile: a newer predictor is on its way
                await asyncio.sleep(_MOMENT)
                predictor, fetched = live.predictor, {}
        raise NotReadyError("the networks of its keys are changing; send the request again later")

    async def predict_and_log(self, live: Live, rows: Sequence[RowIn], sender: str = "") -> Answer:
        """Predict rows, and write them with their predictions."""
        answer = await self.predict(live, rows)
        try:
            outcome = await self.submit(live, answer.rows, sender=sender, predictor=live.asked(answer.predictor))
        except (UnavailableError, BusyError):
            if not self._predict_unlogged or live.is_predicted_late:
                raise
            return answer
        predictions = outcome.predictions if live.is_predicted_late else answer.predictions
        return answer._replace(predictions=predictions, outcome=outcome)

    async def check_keys(self, live: Live, keys: Sequence[str] | None) -> None:
        """Raise an error for a new key where there are as many as may be; keys not learned yet do not count."""
        most, n_keys = self.limits.keys, live.predictor.n_keys
        if keys is not None and n_keys >= most and await self._new_keys(live, keys):
            raise LimitError(f"the stream has {n_keys:,} keys, and may have {most:,}; there is a new one among these")

    async def _new_keys(self, live: Live, keys: Sequence[str]) -> set[str]:
        return await self.read(partial(sql.new_members, stream=live.number, kind="key", values=set(keys)))

    async def check_memory(
        self,
        live: Live,
        rows: Sequence[Features],
        keys: Sequence[str] | None,
        labels: Sequence[Label] | None = None,
    ) -> None:
        """Raise an error before rows are logged that the model could not learn for lack of memory."""
        if not live.is_wide:
            return
        live.check_undamaged()
        named = (row for row in rows if isinstance(row, dict))
        columns = live.predictor.columns or list(dict.fromkeys(name for row in named for name in row))
        values = [row if isinstance(row, tuple) else [row.get(name) for name in columns] for row in rows]
        model = live.predictor.model
        if model is None:
            model = models.new_model(live.settings)
        try:
            models.check_memory(model, live.settings, columns, values, keys, labels)
        except InvalidError:
            if keys is None:
                raise
            new = sorted(await self._new_keys(live, keys))  # the others may only not be in memory
            models.check_memory(model, live.settings, columns, values, new, labels)

    async def submit(
        self,
        live: Live,
        rows: Sequence[SubmittedRow] = (),
        labels: Sequence[tuple[str, Label]] = (),
        replaces: bool = False,
        sender: str = "",
        predictor: Predictor | None = None,
    ) -> SubmissionOutcome:
        """Have rows or labels written; returns when they are on disk, or raises an error if all are refused."""
        live.check_undamaged()
        submission = Submission(live.number, rows, labels, None, replaces, predictor)
        (outcome,) = await self.submit_together([submission], sender)
        if outcome.gone:
            raise NotFoundError("the stream was deleted")
        if outcome.unready:
            raise NotReadyError(outcome.error)
        if outcome.error is not None:
            raise InvalidError(outcome.error)
        return outcome

    def submit_together(
        self, submissions: Sequence[Submission], sender: str = ""
    ) -> asyncio.Future[list[SubmissionOutcome]]:
        """Have all written, or none if that fails; the outcomes are there when they are on disk."""
        size = sum(len(one.rows) + len(one.labels) for one in submissions)
        self.rows_queued.check(sender, size, self.writer.queued)
        promise: asyncio.Future[list[SubmissionOutcome]] = self._loop.create_future()
        self.writer.submit(submissions, promise)
        self.rows_queued.take(sender, size)
        promise.add_done_callback(lambda _: self.rows_queued.take(sender, -size))
        self._promises.append((self._loop.time() + _PATIENCE, promise))
        return promise

    async def _sweep(self) -> None:
        """Break promises that take too long: the log hangs. What was promised may still be written, but once."""
        while True:
            await asyncio.sleep(1.0)
            self._part.works()
            now = self._loop.time()
            while self._promises and (self._promises[0][1].done() or self._promises[0][0] < now):
                _, promise = self._promises.popleft()
                if not promise.done():
                    promise.set_exception(UnavailableError("the log does not answer"))

    async def logged(self, live: Live, ids: Sequence[str]) -> dict[str, KnownPrediction]:
        """What was predicted for rows in the log, by their ids."""

        def find(connection: Connection) -> dict[str, KnownPrediction]:
            known = sql.known_ids(connection, live.number, ids)
            found, record = {}, None
            for id_, facts in sorted(known.items(), key=lambda one: one[1].seq):  # one record after the other
                if record is None or record.seq != facts.seq:
                    record = connection.record(live.number, facts.seq)
                if record is not None and isinstance(record.body, LoggedRows):
                    body, place = record.body, facts.place
                    threshold = None if body.thresholds is None else body.thresholds[place]
                    found[id_] = KnownPrediction(body.predicted[place], body.confidence[place], threshold)
            return found

        return await self.read(find)

    async def sample(self, live: Live, id_: str) -> SampleStatus:
        """What became of a sample; it is learned once it is in the model that predicts.

        It is unusable if the model could not take its label. Of labels long ago it may only be known that it was one
        of both.
        """
        view = live.view
        version = view.predictor.version if live.is_loaded else -1

        def find(connection: Connection) -> SampleStatus | None:
            facts = sql.known_ids(connection, live.number, [id_]).get(id_)
            stream = sql.streams(connection, [live.number]).get(live.number)
            if facts is None or stream is None:
                return None
            came = connection.record(live.number, facts.seq)
            labelled = connection.record(live.number, facts.label_seq) if facts.label_seq is not None else None
            labelled_at = None if labelled is None else labelled.at
            if came is None or not isinstance(came.body, LoggedRows):
                return SampleStatus(id_, "waits for its features", label=facts.label, labelled_at=labelled_at)
            if facts.label_seq is not None:
                state = view.refusals.fate(facts.label_seq) if facts.label_seq <= version else "waits to be learned"
                if state == "learned" and labelled is not None and isinstance(labelled.body, LoggedAssumptions):
                    state = "assumed"
            else:
                state = "expired" if facts.seq <= stream.horizon else "waits for its label"
            predicted, confidence = came.body.predicted[facts.place], came.body.confidence[facts.place]
            return SampleStatus(id_, state, came.at, predicted, confidence, facts.label, labelled_at)

        found = await self.read(find)
        if found is None:
            raise NotFoundError("there is no sample of this id")
        return found

    async def forget(self, live: Live, id_: str) -> int:
        """Forget a sample; returns the record of the log from which on it is forgotten."""
        live.check_undamaged()
        for _ in range(_TRIES):
            searched = await asyncio.to_thread(lambda: forgetting.search(self.database.own(), live.number, id_))
            now = self.writer.clock.now()
            job = partial(forgetting.forget, stream=live.number, id_=id_, now=now, searched=searched)
            with suppress(forgetting.ChangedError):
                seq = await self.write(job)
                break
        else:
            raise NotReadyError("other samples are being forgotten; send the request again later")
        if seq is None:
            raise NotFoundError("there is no sample of this id")
        self.learner.wake({live.number})
        return seq

    async def snapshot_model(self, live: Live) -> bytes | None:
        """The model file of the latest snapshot, if there is one."""
        kept = await self.read(partial(sql.snapshot, stream=live.number, kind=sql.LATEST))
        return None if kept is None else kept.model

    def write_fleet(self, live: Live, path: Path) -> bool:
        """Write the fleet of a stream with keys, as the latest snapshot has it, to a new file, in any thread.

        Returns whether there is a snapshot.
        """
        connection = self.database.connect()
        try:
            kept = sql.snapshot(connection, live.number, sql.LATEST)
            if kept is None or kept.model is None:
                return False
            log_keys.whole(connection, live.number, live.settings, kept, path).close()
            return True
        finally:
            connection.close()

    # --- Health --------------------------------------------------------------------------------------------------

    async def retry(self, live: Live) -> None:
        """End the quarantine of a stream: learn from its latest snapshot on."""
        await self.write(partial(sql.end_quarantine, stream=live.number))
        self.learner.retry(live.number)

    @property
    def is_alive(self) -> bool:
        """Whether the process can do its work, or will again; else it should be started again."""
        return self.supervisor.failure is None and not any(part.is_dead for part in self.supervisor.parts.values())

    def problems(self) -> dict[str, str]:
        """What keeps the process from its work, by the part of it, in words that anybody may read."""
        found, parts = {}, self.supervisor.parts
        loading = sum(not live.is_loaded and live.problem is None for live in self._numbers.values())
        if loading:
            found["models"] = f"{loading} of {len(self._numbers)} are being loaded"
        if parts["writer"].problem is not None:
            found["log"] = "it cannot be written at present"
        if parts["learner"].problem is not None:
            found["database"] = "it cannot be read at present"
        n_behind = sum(live.problem is None and self.is_behind(live) for live in self._numbers.values())
        if n_behind:
            found["learning"] = f"the models of {n_behind} streams are behind the log"
        free = self.database.free_bytes()
        if free is not None and free < _FREE:
            found["disk"] = f"it has {free // 2**20} MiB left"
        for name, part in parts.items():
            if part.is_stuck:
                found[name] = "it has ended" if part.has_ended else "it has not given a sign of life for a while"
            elif name not in ("writer", "learner") and part.problem is not None:
                found[name] = "it waits"
        return found

    def warnings(self) -> dict[str, str]:
        """What is not as it should be, and does not keep the process from its work."""
        found = {}
        if self.learner.clock_problem is not None:
            found["clock"] = self.learner.clock_problem
        elif self.writer.clock.jump:
            found["clock"] = f"it was set by {self.writer.clock.jump:.0f} seconds; until the next start, it is ignored"
        return found

    def is_behind(self, live: Live) -> bool:
        """Whether the model of a stream has not been up to date with the log for too long."""
        return self.learner.behind(live.number) > _BEHIND

    def problems_of(self, live: Live) -> dict[str, str]:
        """What keeps a stream from being predicted and learned."""
        found = self.problems()
        for name in ("models", "learning"):
            found.pop(name, None)
        if live.problem is not None:
            found["quarantine"] = live.problem
        if not live.is_loaded:
            found["model"] = "it is being loaded" if live.problem is None else "it cannot be loaded"
        elif live.problem is None and self.is_behind(live):
            found["learning"] = "the model is behind the log"
        return found

    # --- Threads -------------------------------------------------------------------------------------------------

    async def write(self, job: Callable[[Connection], Result]) -> Result:
        """Run something in the thread that writes."""
        return await self._patiently(asyncio.wrap_future(self.writer.run_job(job)))

    async def read(self, job: Callable[[Connection], Result]) -> Result:
        """Run something in a thread that reads."""
        return await self._patiently(asyncio.to_thread(lambda: job(self.database.own())))

    async def _patiently(self, waiting: Awaitable[Result]) -> Result:
        try:
            return await asyncio.wait_for(waiting, _PATIENCE)
        except (TimeoutError, asyncio.TimeoutError):  # the same from Python 3.11 on
            raise UnavailableError("the log does not answer") from None

    def _deliver(self, function: Callable[[], None]) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(function)

    def _wake(self, streams: set[int]) -> None:
        self.learner.wake(streams)

    def _take(self, number: int, news: StreamNews) -> None:
        live = self._numbers.get(number)
        if live is None:  # another server may have made it, or it was deleted
            self._early[number] = news
            self._refresh_soon()
        else:
            if news.view is not None:
                live.view, live.is_loaded = news.view, True
                model, columns = news.view.predictor.model, news.view.predictor.columns
                live.is_wide = model is None or not models.fits(
                    model,
                    live.settings,
                    len(columns or ()),
                    self.limits.classes,
                    min(self.limits.keys, live.settings.max_in_memory),
                )
            live.problem, live.is_learned_here = news.problem, news.is_ours
            changed, live.changed = live.changed, asyncio.Event()
            changed.set()


def _unpredicted(row: RowIn) -> SubmittedRow:
    return SubmittedRow(row.id or new_id(), row.features, row.key, is_new=row.id is None)
