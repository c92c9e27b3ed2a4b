"""Before a run: the stream and the model are made to suit each other, and the run is described."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from typing import Any, NamedTuple

from devdan.evaluation.adapters import one_against_the_rest, takes_two_classes
from devdan.fleet.fleet import DEVDANFleet
from devdan.histories.histories import Histories
from devdan.model.classes import is_missing
from devdan.model.estimator import StreamClassifier
from devdan.streams import Stream, StreamError
from devdan.streams.reading import AS_FOUND, Reading

_HASHED = 1 << 28  # bytes of a file that are hashed to identify it


class Prepared(NamedTuple):
    """A stream and a model that suit each other."""

    stream: Stream
    model: Any
    classes: list[Any] | None  # those the model must know in advance, if the stream does not know them
    scaled: bool  # whether the stream is


def prepared(stream: Stream, model: Any, key: str | None = None, histories: Histories | None = None) -> Prepared:
    """Make a stream and a model suit each other.

    Models that do not scale their inputs get inputs in [0, 1], as in the paper. scikit-learn classifiers get the
    classes, and binary River classifiers are run one-vs-rest on more than two classes. For this, a stream that does not
    know its classes is read once. ``key`` is the column with the keys of a fleet. ``histories`` get the classes,
    too, if the stream can be read twice.
    """
    is_own = isinstance(model, (StreamClassifier, DEVDANFleet))
    if key is not None and key not in (stream.feature_names or ()):
        names = ", ".join(map(repr, (stream.feature_names or ())[:20]))
        raise StreamError(f"{stream.origin or stream.name} has no column {key!r} with keys; its columns are {names}")
    scaled = is_own and model.scaling is None and stream.origin != "generated"
    if scaled and histories is not None:
        raise StreamError(f"histories need a model that scales its inputs, but {type(model).__name__} has scaling=None")
    takes_two, classes = takes_two_classes(model), None
    wants_classes = stream.classes is None and (takes_two or (hasattr(model, "partial_fit") and not is_own))
    for name in [] if histories is None else histories.wanted_columns:
        if stream.feature_names is not None and name not in stream.feature_names:
            names = ", ".join(map(repr, stream.feature_names[:20]))
            raise StreamError(f"{stream.origin or stream.name} has no column {name!r}; its columns are {names}")
    if stream.is_single_pass and (scaled or wants_classes):
        why = "its inputs are scaled to [0, 1] in advance" if scaled else "it must know the classes in advance"
        raise StreamError(
            f"{type(model).__name__} needs a stream that can be read twice, since {why}, but {stream.origin} can be "
            "read only once: save it to a file first"
        )
    stream = stream.scaled([*_not_scaled(stream, model), *([key] if key else [])]) if scaled else stream
    if wants_classes or (histories is not None and stream.classes is None and not stream.is_single_pass):
        n_each = Counter(label for _, y in stream for label in y[~is_missing(y)].tolist())
        classes = sorted(n_each)
        if histories is not None:
            histories.know_classes([label for label, _ in n_each.most_common()])
    if takes_two and len(classes or stream.classes or ()) > 2:
        model = one_against_the_rest(model)
    return Prepared(stream, model, classes, scaled)


def _not_scaled(stream: Stream, model: StreamClassifier | DEVDANFleet) -> list[str]:
    """The columns that are not quantities, as the user says, even if they are written as numbers."""
    instructions = model._instructions()
    return [name for name in stream.feature_names or () if instructions.of(name).kind in ("nominal", "date")]


# --- Description -------------------------------------------------------------------------------------------------


def describe(
    stream: Stream, learner: Any, given: Mapping[str, Any], reading: Reading = AS_FOUND, **settings: Any
) -> dict[str, Any]:
    """The settings of a run; ``given`` are the options that the user has set, ``reading`` how the stream is read."""
    return {
        "stream": stream.name,
        **{name: list(value) if isinstance(value, tuple) else value for name, value in reading.as_keywords().items()},
        "target": stream.target if stream.target is not None else reading.target,
        **settings,
        "options": {name: _as_json(value) for name, value in {**given, **options_of(learner)}.items()},
        "origin": stream.origin,
        "source": fingerprint(stream.origin),
        "order": "shuffled" if stream.is_shuffled else None,
        "n_samples": stream.n_samples,
        "n_features": None if stream.feature_names is None else len(stream.feature_names),
        "feature_names": None if stream.feature_names is None else list(stream.feature_names),
        "drifts": None if stream.drifts is None else list(stream.drifts),
        "devdan": version("devdan"),
        **circumstances(),
    }


def options_of(model: Any) -> dict[str, Any]:
    """The options of a model of scikit-learn's or River's kind; none if it does not tell them.

    >>> from sklearn.naive_bayes import BernoulliNB
    >>> options_of(BernoulliNB(alpha=0.5))["alpha"]
    0.5
    """
    if hasattr(model, "get_params"):
        return dict(model.get_params(deep=False))
    if hasattr(model, "_get_params"):  # River's
        return {str(name): value for name, value in model._get_params().items()}
    return {}


def _as_json(value: Any) -> Any:
    """An option for JSON, the same in every process."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return re.sub(r" at 0x[0-9a-fA-F]+", "", " ".join(repr(value).split()))


def circumstances() -> dict[str, Any]:
    """The date, machine and versions of a run."""
    return {
        "started": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("devdan", "numpy", "numba", "scikit-learn")},
        },
        "machine": {"cpu": _cpu(), "cores": os.cpu_count(), "system": f"{platform.system()} {platform.release()}"},
    }


def fingerprint(source: str) -> str | None:
    """A fingerprint of what a file, a folder or a database holds; of much, of the beginning, the sizes and the dates.

    None of what is no file, such as a database on a server.
    """
    from devdan.streams.files import files_of  # noqa: PLC0415 (slow to import)

    paths = [path for path in files_of(source) if path.is_file()] if source else []
    if not paths:
        return None
    digest, left = hashlib.sha256(), _HASHED
    sizes = [path.stat().st_size for path in paths]
    is_large = sum(sizes) > _HASHED
    for path in paths:
        if len(paths) > 1:
            digest.update(path.name.encode())
        if is_large and len(paths) > 1:
            digest.update(f"{path.stat().st_size} {path.stat().st_mtime_ns}".encode())
        with open(path, "rb") as file:
            while left > 0 and (piece := file.read(min(1 << 20, left))):
                digest.update(piece)
                left -= len(piece)
    date = f", {paths[0].stat().st_mtime_ns}" if is_large else ""
    count = f"{len(paths):,} files, " if len(paths) > 1 else ""
    return f"{count}{sum(sizes)} bytes, {digest.hexdigest()[:16]}{date}"


def _cpu() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
