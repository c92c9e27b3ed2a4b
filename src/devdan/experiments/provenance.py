"""What is run, on what, when, where and with what."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Mapping
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from devdan.streams import Stream

_HASHED = 1 << 28  # bytes of a file that are hashed to identify it


def describe(stream: Stream, learner: Any, given: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """What is run, on what, with what; ``given`` are the options that the user has set."""
    return {
        "stream": stream.name,
        **settings,
        "options": {name: _told(value) for name, value in {**given, **options_of(learner)}.items()},
        "origin": stream.origin,
        "source": fingerprint(Path(stream.origin)),
        "order": "shuffled" if stream.is_shuffled else None,
        "n_samples": stream.n_samples,
        "n_features": None if stream.feature_names is None else len(stream.feature_names),
        "feature_names": None if stream.feature_names is None else list(stream.feature_names),
        "drifts": None if stream.drifts is None else list(stream.drifts),
        "devdan": version("devdan"),
        **circumstances(),
    }


def options_of(model: Any) -> dict[str, Any]:
    """The options of a model, as scikit-learn's or River's tell them; none, if it does not.

    >>> from sklearn.naive_bayes import BernoulliNB
    >>> options_of(BernoulliNB(alpha=0.5))["alpha"]
    0.5
    """
    if hasattr(model, "get_params"):
        return dict(model.get_params(deep=False))
    if hasattr(model, "_get_params"):  # River's
        return {str(name): value for name, value in model._get_params().items()}
    return {}


def _told(value: Any) -> Any:
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


def fingerprint(path: Path) -> str | None:
    """A fingerprint of a file: of all of it or, if it is large, of its beginning, size and date."""
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
