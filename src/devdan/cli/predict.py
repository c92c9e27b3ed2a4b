"""``devdan predict``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, note, out, progress, say, show_notes, stoppable, stopped

if TYPE_CHECKING:
    from devdan.serving.predicting import Predicting

_AT_A_TIME = 1000  # rows of standard input, if nobody waits for each


def predict(
    model: opt.Saved,
    file: opt.Rowwise,
    proba: Annotated[bool, typer.Option("--proba", help="Also the probability of each class.")] = False,
    path: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--out",
            metavar="FILE",
            parser=opt.a_path("--out"),
            help="Write to a .csv, .parquet or .jsonl file instead; it is there when all is predicted, and not before.",
        ),
    ] = None,
    keep: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            metavar="COLUMNS",
            help="Columns of the input to put first, unchanged, separated by commas; may be repeated.",
        ),
    ] = None,
    key: opt.Key = None,
    header: opt.Header = None,
) -> None:
    """Predict the rows of a file with a model that `devdan run` or `save` has left; nothing is learned.

    The file has the columns that the model has learned from, in any order; no labels are needed. The predictions are
    printed as CSV, in the order of the rows.

    - devdan predict runs/my-devdan new.csv --keep id --proba
    - devdan predict model.devdan new.parquet --out predicted.parquet
    - tail -n +1 -f log.csv | devdan predict model.devdan -
    - devdan predict runs/my-fleet new.csv --key device

    From standard input (-), each row is answered as soon as it has been read: CSV with a header, or an object of JSON
    in each line, which is answered with one.
    """
    from devdan.opening import open_model
    from devdan.serving import answers
    from devdan.serving.matching import model_path
    from devdan.serving.predicting import Predicting
    from devdan.streams import files, lines

    show_notes()
    with clear_errors():
        if path is not None:
            answers.check_format(path)
        learned = open_model(model_path(model))
        try:
            if file == "-":
                table = lines.table(header=header, n_at_a_time=1 if path is None else _AT_A_TIME)
            else:
                table = files.table(file, header=header)
            job = Predicting(learned, table, [name for text in keep or [] for name in opt.words(text)], key)
            if job.ignored:
                note(f"the model does not know, and ignores: {', '.join(job.ignored[:20])}")
            if path is None:
                _print(job, proba)
                return
            n_rows = 0
            with (
                progress(table.origin, table.n_rows or table.estimated_rows) as show,
                answers.into_file(path, job, proba) as answering,
                stoppable(),
            ):
                for some in job:
                    answering.write(some)
                    n_rows += len(some.labels)
                    show(n_rows)
        except KeyboardInterrupt:
            if path is not None:
                say(f"Stopped: {path} is not written.")
            stopped()
    out.print(f"{n_rows:,} predictions: {path}", highlight=False)


def _print(job: Predicting, proba: bool) -> None:
    """Print each block as soon as it is there; whoever reads it may have enough of it."""
    from devdan.serving import answers

    file, n_rows = sys.stdout.buffer, 0
    try:
        answering = answers.onto(file, job, proba)
        file.flush()
        with progress(job.table.origin, job.table.n_rows or job.table.estimated_rows or 0, not out.is_terminal) as show:
            for some in job:
                answering.write(some)
                file.flush()
                n_rows += len(some.labels)
                show(n_rows)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())  # for what is left in the buffer when Python ends
