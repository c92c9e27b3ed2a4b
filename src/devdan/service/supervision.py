"""What becomes of faults: expected ones are retried, one of a stream stops that stream alone, any other the process.

Parts of the process are the thread that writes, the one that learns, and Kafka's consumer. A part that meets an
expected fault (``UnavailableError``) says so and tries again, after a longer while each time. If a part ends by an
unexpected fault, the process cannot do its work any more: it ends with an exit code, and is started again from outside.
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
            logger.warning("%s goes on", self.name)
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
