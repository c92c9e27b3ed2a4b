"""What becomes of faults: expected ones are retried, one of a stream stops that stream alone, any other the process.

Parts of the process are the thread that writes, the one that learns, the one that gives up connections to PostgreSQL
that hang, and Kafka's consumer. A part that meets an expected fault (``UnavailableError``) says so and tries again,
after a longer while each time. If a part ends by an unexpected fault, or gives no sign of life for minutes, the process
cannot do its work any more: it ends with an exit code, and is started again from outside.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SHORTEST, _LONGEST = 0.25, 5.0  # seconds until an expected fault is retried: the first time, and at most
_STUCK = 60.0  # seconds without a sign of life after which a part is not well
_DEAD = 300.0  # after which it is given up
_CHECK, _CHECKS = 1.0, 10  # seconds between two looks for such parts, and how many in a row must find one
_APART = 3600.0  # seconds by which clocks may differ
_JUMP = 60.0  # seconds that a clock may be set by without being noticed
_GRACE = 20.0  # seconds for the process to end in good order
_EXIT_CODE = 70  # as of BSD's sysexits: an internal error

logger = logging.getLogger("devdan.service")


def _awake_or_asleep() -> float:
    """Seconds by a clock that nobody sets, and that runs while the machine sleeps, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class SteadyClock:
    """The time, in seconds since 1970, that does not follow when the clock is set while the process runs.

    It follows the small steps by which a clock is kept right. A larger one is told, and after the next start the clock
    is believed.
    """

    def __init__(self, wall: Callable[[], float] | None = None, steady: Callable[[], float] | None = None) -> None:
        self._wall = wall = wall or time.time
        self._steady = steady = steady or _awake_or_asleep
        self._offset = wall() - steady()
        self.jump = 0.0  # seconds by which the clock was set

    def now(self) -> float:
        """The time."""
        wall, steady = self._wall(), self._steady()
        jump = wall - steady - self._offset
        if abs(jump) <= _JUMP:
            if self.jump:
                logger.warning("the clock is right again")
            self.jump, self._offset = 0.0, wall - steady
            return wall
        if abs(jump - self.jump) > _JUMP:
            way = "forward" if jump > 0 else "back"
            logger.warning("the clock was set %s by %.0f seconds; until the next start, it is ignored", way, abs(jump))
            self.jump = jump
        return steady + self._offset


def disagreement(log: float, theirs: float, ours: float) -> tuple[float, str | None]:
    """By how many seconds a log or its database is ahead of this machine's clock, and words for it if that matters.

    ``log`` is the time of its last record, ``theirs`` that of the database.

    >>> disagreement(0.0, 7200.0, 7201.0)
    (-1.0, None)
    >>> disagreement(10_000.0, 1_000.0, 1_000.0)
    (9000.0, 'the log is 9000 seconds ahead of the clock; what comes until then has the time of its last record')
    >>> disagreement(0.0, 0.0, 7200.0)
    (-7200.0, "the database's clock is 7200 seconds behind this machine's")
    """
    skew, ahead = theirs - ours, log - ours
    if abs(skew) > _APART:
        return (
            skew,
            f"the database's clock is {abs(skew):.0f} seconds {'ahead of' if skew > 0 else 'behind'} this machine's",
        )
    if ahead > _APART:
        words = "what comes until then has the time of its last record"
        return ahead, f"the log is {ahead:.0f} seconds ahead of the clock; {words}"
    return skew, None


class ServicePart:
    """A part of the process: what it waits for, if it does, and when it last gave a sign of life."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problem: str | None = None  # the expected fault that it retries
        self.has_ended = False
        self._alive, self._wait = time.monotonic(), _SHORTEST

    def works(self) -> None:
        """Give a sign of life."""
        self._alive = time.monotonic()

    def goes_on(self) -> None:
        """What was retried has succeeded."""
        self.works()
        if self.problem is not None:
            logger.warning("%s continues", self.name)
        self.problem, self._wait = None, _SHORTEST

    def waits(self, error: Exception) -> float:
        """Note an expected fault; returns the seconds until it should be retried."""
        self.works()
        if self.problem != str(error):
            self.problem = str(error)
            logger.warning("%s waits: %s", self.name, error)
        seconds, self._wait = self._wait, min(2 * self._wait, _LONGEST)
        return seconds

    @property
    def is_stuck(self) -> bool:
        """Whether it has not given a sign of life for too long."""
        return self.has_ended or time.monotonic() - self._alive > _STUCK

    @property
    def is_dead(self) -> bool:
        """Whether it will not give another one."""
        return self.has_ended or time.monotonic() - self._alive > _DEAD


class Supervisor:
    """The parts of a process, and the fault that ends it, if there is one; ``end`` is told to end it."""

    def __init__(self) -> None:
        self.parts: dict[str, ServicePart] = {}
        self.failure: str | None = None
        self.end: Callable[[], object] = lambda: None
        self._n_dead, self._rests = 0, threading.Event()

    def watch(self) -> None:
        """Look for dead parts from now on, in a thread."""

        def run() -> None:
            while not self._rests.wait(_CHECK):
                self.check()

        threading.Thread(target=run, name="devdan-supervisor", daemon=True).start()

    def rest(self) -> None:
        """Look no more, as the parts are ended."""
        self._rests.set()

    def check(self) -> None:
        """End the process if parts are dead; not at once, as all may have been stopped together, such as by SIGSTOP."""
        dead = [part.name for part in self.parts.values() if part.is_dead and not part.has_ended]
        self._n_dead = self._n_dead + 1 if dead else 0
        if self._n_dead == _CHECKS and self.failure is None:
            self.failure = f"no sign of life for {_DEAD:.0f} seconds of: {', '.join(dead)}"
            logger.critical("%s; the process ends", self.failure)
            self.end()

    def part(self, name: str) -> ServicePart:
        """The part of this name."""
        return self.parts.setdefault(name, ServicePart(name))

    @contextmanager
    def guarding(self, part: ServicePart) -> Iterator[None]:
        """Do the work of a part: an error that comes out of it ends the process."""
        try:
            yield
        except BaseException as error:
            self.failure = f"{part.name} has ended by an unexpected error, {type(error).__name__}: {error}"
            logger.critical("%s; the process ends", self.failure, exc_info=error)
            self.end()
        finally:
            part.has_ended = True


def end_in_time() -> None:
    """End the process even if it does not manage to do so in good order."""
    timer = threading.Timer(_GRACE, os._exit, (_EXIT_CODE,))
    timer.daemon = True
    timer.start()
