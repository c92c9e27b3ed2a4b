"""The paper's streams at hand, as they are or, as in its experiments, scaled to [0, 1] beforehand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from devdan.streams import Stream, entries, open_stream

FOLDER = Path(os.environ.get("DEVDAN_DATA", Path(__file__).parents[2] / "shared" / "data"))


def missing(name: str) -> str | None:
    """Why a stream cannot be had as a file, if it cannot."""
    path = entries.found(name, FOLDER)
    return None if path else f"{name} is not in {FOLDER}; set DEVDAN_DATA to the folder that has it"


def load(name: str, scaled: bool = True) -> Stream:
    """The stream, held in memory."""
    stream = open_stream(name, data=FOLDER)
    stream = stream.scaled() if scaled else stream
    X, y = (np.concatenate(parts) for parts in zip(*stream, strict=True))
    return open_stream((X, y))
