"""How a model does on a stream: the one test-then-train loop, which labels arrive when, measures and records."""

from devdan.evaluation.labels import Labels
from devdan.evaluation.loop import Evaluation, prequential
from devdan.evaluation.record import Record, Summary

__all__ = ["Evaluation", "Labels", "Record", "Summary", "prequential"]
