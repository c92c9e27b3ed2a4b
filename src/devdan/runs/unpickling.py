"""Pickles of earlier versions, whose classes lie elsewhere today."""

from __future__ import annotations

import io
import pickle
from typing import Any

_MOVED = {  # module by module: where it was, where it is
    "devdan.base": "devdan.model.evolving",
    "devdan.classes": "devdan.model.classes",
    "devdan.classifier": "devdan.model.devdan",
    "devdan.ensemble": "devdan.model.ensemble",
    "devdan.face": "devdan.model.estimator",
    "devdan.kernel": "devdan.kernel",
    "devdan.labels": "devdan.evaluation.labels",
    "devdan.layers": "devdan.model.layers",
    "devdan.learner": "devdan.evaluation.learners",
    "devdan.metrics": "devdan.evaluation.confusion",
    "devdan.onesample": "devdan.model.online",
    "devdan.options": "devdan.model.options",
    "devdan.prequential": "devdan.evaluation.loop",
    "devdan.record": "devdan.evaluation.record",
}
_RENAMED = {  # classes that are elsewhere than their module is, or have another name
    ("devdan.base", "Event"): ("devdan.kernel.state", "Event"),
    ("devdan.onesample", "OneSampleNetwork"): ("devdan.model.online", "OnlineNetwork"),
}


def loads(content: bytes) -> Any:
    """What was pickled, by this version or an earlier one. As with any pickle, only of your own."""
    return Unpickler(content).load()


class Unpickler(pickle.Unpickler):
    """Knows where classes are today."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class(*_RENAMED.get((module, name), (_MOVED.get(module, module), name)))
