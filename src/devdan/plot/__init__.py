"""Plots for notebooks, with Matplotlib, in the manner of scikit-learn's displays: ``pip install 'devdan[plot]'``.

Most take the records of an evaluation, or those that a run has kept (``RunFolder("runs/sea-devdan").records()``); all
take ``ax`` to draw into, and ``ax_`` and ``figure_`` are there to change what was drawn.
"""

from devdan.plot.accuracy_display import AccuracyDisplay
from devdan.plot.confusion_display import ConfusionDisplay
from devdan.plot.explanation_display import ExplanationDisplay
from devdan.plot.importances_display import ImportancesDisplay
from devdan.plot.reliability_display import ReliabilityDisplay
from devdan.plot.structure_display import StructureDisplay

__all__ = [
    "AccuracyDisplay",
    "ConfusionDisplay",
    "ExplanationDisplay",
    "ImportancesDisplay",
    "ReliabilityDisplay",
    "StructureDisplay",
]
