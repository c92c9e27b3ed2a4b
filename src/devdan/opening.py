"""Files that hold models or fleets: which kind it is, the file says."""

from __future__ import annotations

import os
from pathlib import Path

from devdan.fleet.fleet import DEVDANFleet
from devdan.model import modelfile
from devdan.model.devdan import DEVDAN
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.evolving import EvolvingClassifier

KINDS: tuple[type[EvolvingClassifier], ...] = (DEVDAN, DEVDANEnsemble)


def open_model(path: str | os.PathLike[str]) -> EvolvingClassifier | DEVDANFleet:
    """The model or the fleet in a file written by ``save``. Nothing in the file is executed."""
    if Path(path).is_file():
        with open(path, "rb") as file:
            if file.read(len(modelfile.SQLITE)) == modelfile.SQLITE:
                return DEVDANFleet.load(path)
    return modelfile.load(path, *KINDS)
