"""Compiled work in threads: it releases Python's lock, so that parts of it run at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TypeVar

import joblib

Result = TypeVar("Result")

_WORTH = 2000  # number of visits to samples below which threads cost more than they save


def n_threads(n_jobs: int | None, n_visits: int) -> int:
    """How many threads are worth it for this number of visits to samples."""
    wanted = 1 if n_visits < _WORTH else int(joblib.effective_n_jobs(n_jobs))
    return 1 if wanted == 1 else min(wanted, _n_cores())


@cache
def _n_cores() -> int:
    """Those that the process may use: counting them reads files, which takes as long as 25 samples."""
    return int(joblib.cpu_count())


def run(tasks: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """What comes of the tasks, which this many threads begin in their order, or this thread if one is enough."""
    if min(threads, len(tasks)) == 1:
        return [task() for task in tasks]
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(task) for task in tasks]
        try:
            return [future.result() for future in futures]
        except BaseException:
            _abandon(futures)
            raise


def _abandon(futures: Sequence[Future[Result]]) -> None:
    """Wait for what has begun, even if Ctrl-C comes again: compiled code still writes to what the caller owns."""
    for future in futures:
        future.cancel()
    while True:
        try:
            wait(futures)
            return
        except KeyboardInterrupt:
            continue
