"""Model files of any kind: which class a model is of, its file says."""

from __future__ import annotations

import os

from devdan.model import modelfile
from devdan.model.devdan import DEVDAN
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.evolving import EvolvingClassifier

KINDS: tuple[type[EvolvingClassifier], ...] = (DEVDAN, DEVDANEnsemble)


def open_model(path: str | os.PathLike[str]) -> EvolvingClassifier:
    """The model in a file written by ``save``, whichever kind it is. Nothing in the file is executed."""
    return modelfile.load(path, *KINDS)
