"""Output of the command line: results on standard output, everything else on standard error, errors in one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

BAD_INPUT = 2
out, err = Console(soft_wrap=True), Console(stderr=True)


def say(message: str) -> None:
    """Print a line on standard error."""
    err.print(escape(message), soft_wrap=True, highlight=False)


def note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in one line."""
    err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def fail(message: object) -> NoReturn:
    """Print an error in one line and exit."""
    err.print(f"[red]devdan:[/] {escape(' '.join(str(message).split()))}", soft_wrap=True, highlight=False)
    raise typer.Exit(BAD_INPUT)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Report errors in the input, the options or the disk in one line."""
    try:
        yield
    except ValueError as error:  # StreamError, RunError, ReportError, and a model's errors about options and data
        fail(error)
    except OSError as error:
        fail(of_disk(error))


def of_disk(error: OSError) -> str:
    """A disk error and the file it concerns."""
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"
