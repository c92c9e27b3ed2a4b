"""The command that was typed, and how to repeat it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from devdan.streams import entries

if TYPE_CHECKING:
    from devdan.streams import Stream


def command(*more: str) -> str:
    """The typed command, without options that only mattered that time."""
    return shlex.join(["devdan", *_typed(("--resume", "--overwrite"), ()), *more])


def again(stream: Stream, data: Path | None) -> str:
    """A command that gives the same records anywhere, in a new folder."""
    words = _typed(("--resume", "--overwrite", "--json"), ("--out", "--checkpoint", "--log"))
    from_folder = entries.is_name(stream.name) and stream.origin != "generated" and data is None
    return shlex.join(["devdan", *words, *(["--data", str(entries.data_folder())] if from_folder else [])])


def _typed(flags: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """The typed words, without certain flags and certain options with their values."""
    words, kept = iter(sys.argv[1:]), []
    for word in words:
        if word in options:
            next(words, None)
        elif word not in flags and word.partition("=")[0] not in options:
            kept.append(word)
    return kept
