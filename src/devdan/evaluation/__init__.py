"""Evaluation of a model on a stream: the test-then-train loop, label policies, measures and records."""

from typing import TYPE_CHECKING

from devdan import lazy

if TYPE_CHECKING:
    from devdan.evaluation.labels import Labels
    from devdan.evaluation.loop import Evaluation, prequential
    from devdan.evaluation.record import Record, Summary
else:
    __getattr__, __dir__ = lazy.exports(
        __name__, Labels="labels", Evaluation="loop", prequential="loop", Record="record", Summary="record"
    )

__all__ = ["Evaluation", "Labels", "Record", "Summary", "prequential"]
