"""Compiling ahead of time: what calls would compile one by one, and keep in Numba's cache, is compiled at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import config
from numba.core import event
from numba.core.dispatcher import Dispatcher
from sklearn.base import clone

from devdan.kernel.jit import omit_notice
from devdan.model.devdan import DEVDAN
from devdan.model.ensemble import DEVDANEnsemble
from devdan.model.estimator import StreamClassifier
from devdan.model.online import OnlineMixture

_X = np.linspace(0.0, 1.0, 40)[:, None]  # as many rows as it takes until predictions are calibrated
_CODES = np.arange(40) % 2


def compile_kernel(model: StreamClassifier) -> None:
    """Compile what a model needs to learn and predict, or load it from the cache, so that no later call has to."""
    _trained(model).predict(_X)


class Job(NamedTuple):
    """Something that compiles what it uses."""

    name: str
    work: Callable[[], object]


class Outcome(NamedTuple):
    """What a job has compiled."""

    name: str
    n_compiled: int  # functions; 0 where all were in the cache
    seconds: float


def jobs() -> list[Job]:
    """All that the models do, behind each of their interfaces."""
    return [
        Job("networks", partial(_use, DEVDAN())),
        Job("ensemble", partial(compile_kernel, DEVDANEnsemble())),
        Job("sample by sample, for River and CapyMOA", _use_one_by_one),
    ]


def compile_ahead(work: Iterable[Job]) -> Iterator[Outcome]:
    """Do the jobs one by one; an ``OSError`` says that there is no place to keep what they compile.

    >>> [outcome.name for outcome in compile_ahead([Job("nothing", list)])]
    ['nothing']
    """
    if not config.DISABLE_JIT and not cache_folders():
        raise OSError(
            "there is no folder where compiled code can be kept: set NUMBA_CACHE_DIR to one that can be written to"
        )
    omit_notice()
    for job in work:
        begin = time.perf_counter()
        with event.install_recorder("numba:compile") as recorder:
            job.work()
        started = (record for _, record in recorder.buffer if record.is_start)
        n_compiled = sum(_folder(record.data["dispatcher"]) is not None for record in started)
        yield Outcome(job.name, n_compiled, time.perf_counter() - begin)


def cache_folders() -> list[Path]:
    """Where Numba keeps the compiled code of the modules that are loaded."""
    modules = [module for name, module in sys.modules.items() if name.startswith("devdan.")]
    functions = (value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher))
    return sorted({Path(folder) for folder in map(_folder, functions) if folder is not None})


def _folder(function: Any) -> str | None:
    """Where a function is kept, if it is."""
    folder: str | None = function.stats.cache_path
    return folder


def _trained(model: Any) -> Any:
    return clone(model).partial_fit(_X, _CODES).partial_fit(_X, _CODES)  # ensembles of rules judge from the second on


def _use(model: DEVDAN) -> None:
    trained = _trained(model)
    trained.predict(_X)
    trained.transform(_X)
    trained.reconstruct(_X)


def _use_one_by_one() -> None:
    online = OnlineMixture()
    online.begin(1, seed=0)
    online.observe(_X[:1])
    online.learn(_X[:1], 0)
    online.learn_rows(_X, _CODES)
    online.predict(_X, 2)
