"""Files that hold models or fleets: which they are, their first bytes say."""

from __future__ import annotations

import os
from pathlib import Path

from devdan.fleet.fleet import DEVDANFleet
from devdan.model.evolving import EvolvingClassifier
from devdan.model.modelfile import SQLITE
from devdan.model.opening import open_model


def open_model_or_fleet(path: str | os.PathLike[str]) -> EvolvingClassifier | DEVDANFleet:
    """The model or the fleet in a file written by ``save``. Nothing in the file is executed."""
    if Path(path).is_file():
        with open(path, "rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                return DEVDANFleet.load(path)
    return open_model(path)
