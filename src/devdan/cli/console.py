"""Output of the command line: results on standard output, everything else on standard error, errors in one line."""

from __future__ import annotations

import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

BAD_INPUT = 2
_MANY_ROWS = 50_000
out, err = Console(soft_wrap=True), Console(stderr=True)


def say(message: str) -> None:
    """Print a line on standard error."""
    err.print(escape(message), soft_wrap=True, highlight=False)


def note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning in one line."""
    err.print(f"[yellow]note:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def show_notes() -> None:
    """Show each warning as a note, once."""
    said: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in said:
            said.add(str(message))
            note(message)

    warnings.showwarning = show
    warnings.simplefilter("always", UserWarning)


def stopped() -> NoReturn:
    """Exit as after Ctrl-C."""
    raise typer.Exit(128 + signal.SIGINT)


@contextmanager
def stoppable() -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt, at the end of the block at the latest.

    Python drops an exception that is raised within a finaliser, an import's among them.
    """
    asked = False

    def stop(*_: Any) -> None:
        nonlocal asked
        asked = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
        if asked:
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress(name: str, total: int | None, wanted: bool = True) -> Iterator[Callable[[int], None]]:
    """A bar on a terminal, if there is much to do; call what it yields with the number of rows done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,} rows"),
        TimeRemainingColumn(),
    )
    is_long = total is None or total >= _MANY_ROWS
    with Progress(*columns, console=err, disable=not (wanted and is_long and err.is_terminal), transient=True) as bar:
        task = bar.add_task(name, total=total)
        yield lambda n_rows: bar.update(task, completed=n_rows)


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
