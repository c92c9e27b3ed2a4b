"""A run in a folder of its own: records as they come, checkpoints, and at the end the model, a summary and a page.

After a crash at any moment, the run goes on from its latest checkpoint and ends with the records and the model of an
unbroken one. The checkpoint is a pickle, since it holds any model: resume only folders of your own.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import pickle
import platform
import time
from collections.abc import Generator, Iterator
from datetime import datetime, timezone
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from devdan.atomic import lock, write_atomically
from devdan.evaluation.learners import one_against_the_rest, takes_two_classes
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Record, Summary
from devdan.model.classes import is_missing
from devdan.model.estimator import StreamClassifier
from devdan.model.evolving import EvolvingClassifier
from devdan.report import write_report
from devdan.report.runs import read_records
from devdan.streams import Stream, StreamError

RUN, RECORDS, CHECKPOINT, SUMMARY, REPORT = (
    "run.json",
    "records.jsonl",
    "checkpoint.pickle",
    "summary.json",
    "report.html",
)
LOCK = "lock"
MODEL, OTHER_MODEL = "model.devdan", "model.pickle"
MLFLOW = "mlflow_run_id"  # where its curves go in MLflow, if they do
_DIGEST = 32  # bytes of the checkpoint's checksum, before it
_HASHED = 1 << 28  # bytes of a file that are hashed to recognise it
IDENTITY = ("stream", "model", "seed", "chunk", "labels")
_MATCHED = (*IDENTITY, "options", "target", "header", "drop", "order", "limit", "endless", "scaled", "source", "devdan")


class RunError(ValueError):
    """A folder that cannot take a run, or does not hold the run it should."""


class Run:
    """One evaluation, kept in a folder: go through its :meth:`records`, then :meth:`finish` it. Use it as a context.

    ``settings`` tell what is run, for the summary, the page and to recognise the run again.
    """

    def __init__(
        self,
        folder: Path,
        stream: Stream,
        evaluation: Evaluation,
        settings: dict[str, Any],
        *,
        resume: bool = False,
        overwrite: bool = False,
        every: float = 5.0,
    ) -> None:
        self.folder, self.stream, self.evaluation, self.settings = folder, stream, evaluation, settings
        self.summary = Summary()
        self.every = every
        self.total_seconds = 0.0  # of the evaluation, with reading and recording
        self._n_bytes = 0
        self.n_safe = 0  # samples up to the latest checkpoint
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = open(self.folder / LOCK, "a")  # noqa: SIM115 (held as long as the run is)
        except OSError as error:
            raise RunError(f"{self.folder} cannot take the run: {error.strerror or error}") from error
        try:
            self._prepare(resume, overwrite)
        except BaseException:
            self.close()
            raise

    @property
    def is_finished(self) -> bool:
        """Whether there is nothing left to do."""
        return is_finished(self.folder)

    @property
    def results(self) -> list[Path]:
        """What a finished run leaves to look at and to use."""
        paths = (self.folder / name for name in (REPORT, SUMMARY, MODEL, OTHER_MODEL))
        return [path for path in paths if path.exists()]

    def past(self) -> Iterator[Record]:
        """The records before those that are still to come."""
        return islice(read_records(self.folder / RECORDS), None if self.is_finished else self.evaluation.n_chunks)

    def records(self) -> Generator[Record, None, None]:
        """Evaluate, from where the run stands; whatever ends the iteration between two chunks, nothing is lost."""
        begin = latest = time.monotonic()
        before = self.total_seconds
        path = self.folder / RECORDS
        with open(path, "r+b" if path.exists() else "wb", buffering=1 << 16) as file:
            file.truncate(self._n_bytes)
            file.seek(self._n_bytes)
            try:
                for record in self.evaluation.over(self.stream):
                    file.write(record.to_json().encode() + b"\n")
                    self.summary.add(record)
                    self.total_seconds = before + time.monotonic() - begin
                    if time.monotonic() - latest > self.every:
                        self._checkpoint(file)
                        latest = time.monotonic()
                    yield record
            except (GeneratorExit, StreamError):
                self._checkpoint(file)
                raise
            self._checkpoint(file)
        if self.summary.n_chunks == 0:
            raise StreamError(f"{self.stream.origin or self.stream.name} has no samples")

    def finish(self) -> None:
        """Keep the model, the summary and the page."""
        model = self.evaluation.model
        if isinstance(model, EvolvingClassifier):
            model.save(self.folder / MODEL)
        else:
            write_atomically(self.folder / OTHER_MODEL, pickle.dumps(model))
        result = {name: self.settings[name] for name in IDENTITY} | self.summary.criteria() | self.summary.details()
        result |= {"read_seconds": self.evaluation.read_seconds, "total_seconds": self.total_seconds}
        _write_json(self.folder / SUMMARY, result)
        self.report()
        (self.folder / CHECKPOINT).unlink()

    def close(self) -> None:
        """Let go of the folder."""
        self._lock.close()
        if self.is_finished:
            (self.folder / LOCK).unlink(missing_ok=True)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def report(self) -> None:
        """Draw the page of what there is so far."""
        write_report([self.folder], self.folder / REPORT)

    def _prepare(self, resume: bool, overwrite: bool) -> None:
        """Find out how things stand in the folder; what is there is only removed if the user wants it so."""
        try:
            lock(self._lock)
            for part in self.folder.glob("*.part"):  # of a process that was killed
                part.unlink()
            before = None if overwrite else read_settings(self.folder)
            if before is not None and resume:
                self._take_up(before)
                return
            if before is not None:
                state = "a finished" if is_finished(self.folder) else "an unfinished"
                way = "" if is_finished(self.folder) else "--resume goes on with it, "
                raise RunError(
                    f"{self.folder} holds {state} run: {way}--overwrite starts again, --out takes another folder"
                )
            for name in (CHECKPOINT, SUMMARY, REPORT, MODEL, OTHER_MODEL, RECORDS, MLFLOW):
                (self.folder / name).unlink(missing_ok=True)
            _write_json(self.folder / RUN, self.settings)
        except BlockingIOError:
            raise RunError(
                f"{self.folder} is in use by another run; wait for it, or take another folder with --out"
            ) from None
        except OSError as error:
            raise RunError(f"{self.folder} cannot take the run: {error.strerror or error}") from error

    def _take_up(self, before: dict[str, Any]) -> None:
        for name, theirs, ours in _differences(before, self.settings):
            raise RunError(
                f"{self.folder} holds another run: its {name} is {theirs!r}, not {ours!r}; resume with the same "
                "command, or take another folder with --out"
            )
        path = self.folder / CHECKPOINT
        if not path.exists():
            return
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
            raise RunError(f"{path} is damaged; --overwrite starts again")
        self._n_bytes, self.evaluation, self.summary, self.total_seconds = pickle.loads(content[_DIGEST:])
        self.n_safe = self.summary.n_samples
        records = self.folder / RECORDS
        if not records.exists() or records.stat().st_size < self._n_bytes:
            raise RunError(
                f"{self.folder / RECORDS} is shorter than it was at the checkpoint; --overwrite starts again"
            )

    def _checkpoint(self, file: Any) -> None:
        file.flush()
        os.fsync(file.fileno())
        self._n_bytes = file.tell()
        state = pickle.dumps((self._n_bytes, self.evaluation, self.summary, self.total_seconds))
        write_atomically(self.folder / CHECKPOINT, hashlib.sha256(state).digest() + state)
        self.n_safe = self.summary.n_samples


def _differences(before: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What distinguishes two runs: the setting's name, and both values."""
    for name in _MATCHED:
        theirs, ours = before.get(name), now.get(name)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            changed = [option for option in {**theirs, **ours} if theirs.get(option) != ours.get(option)]
            yield from ((f"option {option}", theirs.get(option), ours.get(option)) for option in changed)
        elif theirs != ours:
            yield name, theirs, ours


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a run that came to its end."""
    return (folder / SUMMARY).exists() and not (folder / CHECKPOINT).exists()


def read_settings(folder: Path) -> dict[str, Any] | None:
    """What is run in a folder, if anything."""
    try:
        settings = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise RunError(f"{folder / RUN} is damaged: {error}; --overwrite starts again") from error
    return settings if isinstance(settings, dict) else {}


def read_summary(folder: Path) -> dict[str, Any]:
    """What a finished run came to."""
    try:
        summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    except ValueError as error:
        raise RunError(f"{folder / SUMMARY} is damaged: {error}; --overwrite starts again") from error
    return summary


def describe(stream: Stream, learner: Any, **settings: Any) -> dict[str, Any]:
    """What is run, on what, with what."""
    options = learner.get_params(deep=False) if hasattr(learner, "get_params") else {}
    return {
        "stream": stream.name,
        **settings,
        "options": {name: value if _is_plain(value) else repr(value) for name, value in options.items()},
        "origin": stream.origin,
        "source": fingerprint(Path(stream.origin)),
        "order": "shuffled" if stream.is_shuffled else None,
        "n_samples": stream.n_samples,
        "n_features": None if stream.feature_names is None else len(stream.feature_names),
        "devdan": version("devdan"),
        **circumstances(),
    }


def circumstances() -> dict[str, Any]:
    """When, where and with what something is run."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("devdan", "numpy", "numba", "scikit-learn")},
        },
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}"},
    }


class Prepared(NamedTuple):
    """A stream and a model that fit each other."""

    stream: Stream
    model: Any
    classes: list[Any] | None  # that the model must know beforehand, where the stream does not
    scaled: bool  # whether the stream was


def prepared(stream: Stream, model: Any) -> Prepared:
    """Make them fit each other.

    Models without a scaling of their own get inputs in [0, 1], as in the paper; those of scikit-learn's get the
    classes, and River's for two classes learn more of them one against the rest. For that, a stream that does not know
    its classes is read through once.
    """
    is_own = isinstance(model, StreamClassifier)
    scaled = is_own and model.scaling is None and stream.origin != "generated"
    stream = stream.scaled() if scaled else stream
    takes_two, classes = takes_two_classes(model), None
    if stream.classes is None and (takes_two or (hasattr(model, "partial_fit") and not is_own)):
        classes = sorted({label for _, y in stream for label in y[~is_missing(y)].tolist()})
    if takes_two and len(classes or stream.classes or ()) > 2:
        model = one_against_the_rest(model)
    return Prepared(stream, model, classes, scaled)


def free_folder(parent: Path, name: str, settings: dict[str, Any], resume: bool) -> Path:
    """Where a run goes if the user does not say: a folder of its own, or to resume, that of the latest such run."""
    taken = [folder for folder in parent.glob(f"{glob.escape(name)}*") if folder.is_dir()]
    if resume:
        same = []
        for folder in taken:
            try:
                before = read_settings(folder)
            except RunError:
                continue  # whatever it was
            if before is not None and not list(_differences(before, settings)):
                same.append((not is_finished(folder), before.get("started", ""), folder))
        if same:
            return max(same)[2]
    number = 1
    while (folder := parent / (name if number == 1 else f"{name}-{number}")) in taken:
        number += 1
    return folder


def _write_json(path: Path, value: dict[str, Any]) -> None:
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode())


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def fingerprint(path: Path) -> str | None:
    """Tells one file from another: by all of it, or where that would take long, by its beginning, size and date."""
    if not path.is_file():
        return None
    told = path.stat()
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for _ in range(_HASHED >> 20):
            digest.update(file.read(1 << 20))
    date = f", {told.st_mtime_ns}" if told.st_size > _HASHED else ""
    return f"{told.st_size} bytes, {digest.hexdigest()[:16]}{date}"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
