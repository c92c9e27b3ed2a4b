"""A word to the user when the kernel is compiled, since a call then takes far longer than usual."""

from __future__ import annotations

import logging
from typing import Any

from numba.core import event

_log = logging.getLogger("devdan")


class _CompilationNotice(event.Listener):  # type: ignore[misc]
    """Logs one line at the first compilation in a process; loading from the disk cache does not count."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("devdan."):
            self.said = True
            _log.warning(
                "devdan is compiling its kernel for this machine: this takes a few seconds, once per installation; "
                "`devdan compile` does it ahead of time"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing."""


def omit() -> None:
    """Say nothing in this process, since what is going on is said otherwise."""
    _notice.said = True


_notice = _CompilationNotice()
event.register("numba:compile", _notice)


class EncodingWarning(UserWarning):
    """A column of a table was left out, or read in a way that the user should know of."""
