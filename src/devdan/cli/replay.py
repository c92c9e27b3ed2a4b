"""``devdan replay``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, fail, out, show_notes

_VERDICTS = {
    True: "the same as the snapshot, bit for bit",
    False: "NOT the same as the snapshot",
    None: "no snapshot to compare with",
}


def replay(
    data: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of the log of devdan serve, or postgresql://… if it is there.")
    ],
    stream: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Only this stream."),
    ] = None,
    until: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="TIME", help="Only what came up to this time, such as 2030-01-31T12:00."),
    ] = None,
    save: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--save", metavar="FILE", parser=opt.a_path("--save"), help="Save the model that was rebuilt."),
    ] = None,
    model: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--model", help="Evaluate another model on the same history instead, with the page of a run."),
    ] = None,
    chunk: opt.Chunk = 100,
    seed: opt.Seed = 0,
    folder: opt.Out = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Rebuild the models of a service from its log, and check that they are those it has kept, bit for bit.

    - devdan replay streams
    - devdan replay streams --stream payments --until 2030-01-31T12:00 --save then.devdan
    - devdan replay streams --stream payments --model devdan-ensemble
    """
    from devdan.service import replay as log
    from devdan.service.sql import Connection, StreamFacts
    from devdan.service.store import reading

    show_notes()

    def evaluate(connection: Connection, name: str, one: StreamFacts, end: float | None) -> None:
        from devdan.bench import models
        from devdan.cli import display
        from devdan.cli.follow import follow
        from devdan.evaluation.loop import Evaluation
        from devdan.report import RunReport
        from devdan.runs.preparation import describe, prepared
        from devdan.runs.runfolder import free_folder
        from devdan.runs.runjob import RunJob

        samples, labels = log.history(connection, one, chunk, end)
        samples, learner, classes, scaled = prepared(samples, models.build(name, seed))
        settings = describe(
            samples, learner, {}, model=name, seed=seed, chunk=chunk, labels=str(labels), scaled=scaled,
            command=f"devdan replay {data} --stream {one.name} --model {name}",
        )  # fmt: skip
        where = folder or free_folder(opt.PARENT, f"{one.name}-{name}".replace(":", "."), settings, False)
        evaluation = Evaluation(learner, labels, classes=classes)
        with RunJob(where, samples, evaluation, settings, overwrite=overwrite, page=RunReport) as job:
            follow(job)
        out.print(display.results(job.folder.summary()))
        out.print(f"\nReport: {job.folder.report_path}", highlight=False)

    with clear_errors():
        end = None if until is None else datetime.fromisoformat(until).timestamp()
        with reading(data) as connection:
            streams = log.found(connection, stream)
            if (model is not None or save is not None) and len(streams) != 1:
                names = ", ".join(one.name for one in streams)
                raise ValueError(f"say which stream with --stream; there {'are ' + names if names else 'is none'}")
            if model is not None:
                evaluate(connection, model, streams[0], end)
                return
            differ = False
            for one in streams:
                found = log.replayed(connection, one, end)
                counted = found.fold.counts
                counts = f"{found.n_records:,} records, {counted.n_rows:,} rows, {counted.n_labels:,} labels"
                out.print(f"{one.name}: {counts}: {_VERDICTS[found.same]}", highlight=False)
                differ |= found.same is False
                if save is not None:
                    content = found.fold.snapshot(0.0).model
                    if content is None:
                        raise ValueError(f"the stream {one.name} has no model yet: it begins with the first row")
                    from devdan.atomic import write_atomically

                    write_atomically(save, content)
        if differ:
            fail("a model differs from its snapshot: the log or the snapshot was changed, or devdan is another version")
