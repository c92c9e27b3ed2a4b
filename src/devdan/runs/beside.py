"""Checkpoints of fleets: a fleet is no part of the pickle, but has a file of its own beside it."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

from devdan.fleet.fleet import DEVDANFleet
from devdan.model.modelfile import ModelFileError
from devdan.runs.unpickling import Unpickler


class OtherFleetError(Exception):
    """The file beside a checkpoint does not hold the fleet as it was then."""


class Pickler(pickle.Pickler):
    """Leaves out a fleet that has learned; the pickle says how often it will have been saved, which is to follow."""

    fleet: DEVDANFleet | None = None

    def persistent_id(self, value: Any) -> int | None:
        """How often it will have been saved; None for all else."""
        if not isinstance(value, DEVDANFleet) or not value.__sklearn_is_fitted__():
            return None
        self.fleet = value
        return value._n_saves + 1


class _Unpickler(Unpickler):
    def __init__(self, content: bytes, path: Path) -> None:
        super().__init__(content)
        self._path = path
        self._fleet: DEVDANFleet | None = None

    def persistent_load(self, n_saves: int) -> DEVDANFleet:
        """The fleet that was saved so often."""
        if self._fleet is None:
            try:
                self._fleet = DEVDANFleet.load(self._path)
            except (FileNotFoundError, ModelFileError) as error:
                raise OtherFleetError from error
        if self._fleet._n_saves != n_saves:
            self._fleet.close()
            raise OtherFleetError
        return self._fleet


def loads_beside(content: bytes, path: Path) -> Any:
    """What was pickled, with the fleet in a file; raises :class:`OtherFleetError` if that is another."""
    return _Unpickler(content, path).load()
