"""A word to the user while the kernel is compiled: it takes seconds, once per installation."""

from __future__ import annotations

import logging
from typing import Any

from numba.core import event

_log = logging.getLogger("devdan")


class _CompilationNotice(event.Listener):  # type: ignore[misc]
    """Logs one line at the first compilation in a process; code that is loaded from the disk cache is none."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__.startswith("devdan."):
            self.said = True
            _log.warning("devdan is compiling its kernel for this machine: some 10 seconds, the first time only")

    def on_end(self, event: Any) -> None:
        """Nothing to say."""


event.register("numba:compile", _CompilationNotice())
