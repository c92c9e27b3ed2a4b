"""What the command line says: results on standard output, the rest on standard error, an error in one line."""

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
    """A line beside the results."""
    err.print(escape(message), soft_wrap=True, highlight=False)


def note(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning in one line."""
    err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def fail(message: object) -> NoReturn:
    """What is wrong in one line, and the end."""
    err.print(f"[red]devdan:[/] {escape(' '.join(str(message).split()))}", soft_wrap=True, highlight=False)
    raise typer.Exit(BAD_INPUT)


@contextmanager
def clear_errors() -> Iterator[None]:
    """What is wrong with the input, the options or the disk is said in one line."""
    try:
        yield
    except ValueError as error:  # StreamError, RunError, ReportError, and what a model says of its options and data
        fail(error)
    except OSError as error:
        fail(of_disk(error))


def of_disk(error: OSError) -> str:
    """What the disk refused, and where."""
    where = f" ({error.filename})" if error.filename else ""
    return f"{error.strerror or error}{where}"
