"""``devdan serve``, ``devdan replay`` and ``devdan backup``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from devdan.cli import arguments as opt
from devdan.cli.console import clear_errors, fail, out, say, show_notes
from devdan.streams.reading import Reading

if TYPE_CHECKING:
    from devdan.service.database import Connection
    from devdan.service.kafka import KafkaSettings
    from devdan.service.sql import StreamFacts

_KAFKA = "Kafka"
_VERDICTS = {
    True: "the same as the snapshot, bit for bit",
    False: "NOT the same as the snapshot",
    None: "no snapshot to compare with",
}


@contextmanager
def _log_errors() -> Iterator[None]:
    """Report that the log is in use, or cannot be reached, in one line."""
    from devdan.service.database import DamagedError, UnavailableError
    from devdan.service.store import InUseError

    try:
        yield
    except (DamagedError, InUseError, UnavailableError, ModuleNotFoundError) as error:
        fail(error)


def _messages(
    brokers: str | None,
    rows: str | None,
    labels: str | None,
    predictions: str | None,
    dead_letters: str | None,
    stream: str | None,
    config: Path | None,
    exactly_once: bool,
) -> KafkaSettings | None:
    """The settings of Kafka from the options, or None if there are none."""
    needed = {"--kafka": brokers, "--rows": rows, "--labels": labels, "--predictions": predictions}
    others = {"--dead-letters": dead_letters, "--stream": stream, "--kafka-config": config}
    given = {**needed, **others, "--exactly-once": exactly_once or None}
    if all(value is None for value in given.values()):
        return None
    if not (brokers and rows and labels and predictions):
        named = ", ".join(name for name, value in given.items() if value is not None)
        lacking = ", ".join(name for name, value in needed.items() if not value)
        raise ValueError(f"--kafka, --rows, --labels and --predictions go together: {named} given, but not {lacking}")
    from devdan.service.kafka import KafkaSettings, read_config

    properties = {} if config is None else read_config(config)
    messages = KafkaSettings(
        brokers, rows, labels, predictions, stream or rows, dead_letters or None, properties, exactly_once
    )
    messages.check()
    return messages


def serve(
    data: Annotated[Optional[Path], opt.path_option("--data", "DIR", "Folder of the log, created if needed.")] = None,
    model: Annotated[Optional[Path], opt.path_option("--model", "FILE", "A model that begins a stream.")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; any but this machine needs --tokens.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 chooses a free one.")] = 8000,
    store: Annotated[
        Optional[str], opt.option("URL", "postgresql://… instead of a folder, which several servers may share.")
    ] = None,
    durability: Annotated[
        str,
        opt.option(
            "full|normal|off",
            "full: acknowledged rows and labels survive a power failure. normal: they survive a crash of the "
            "program; a power failure may lose the latest. off: with SQLite, a power failure may damage the log.",
        ),
    ] = "full",
    tokens: Annotated[
        Optional[Path],
        opt.path_option(
            "--tokens", "FILE", "Tokens, one per line, with their rights (predict,label,admin) and perhaps a name."
        ),
    ] = None,
    certificate: Annotated[
        Optional[Path], opt.path_option("--tls-certificate", "PEM", "Serve HTTPS with this certificate.")
    ] = None,
    key: Annotated[Optional[Path], opt.path_option("--tls-key", "PEM", "Its private key.")] = None,
    predict_unlogged: Annotated[
        bool,
        typer.Option("--predict-unlogged", help="Predict even while the log cannot be written; such rows are lost."),
    ] = False,
    snapshots: Annotated[
        Optional[float],
        opt.option(
            "SECONDS",
            "How often models are saved beside the log; a restart learns what came later once more. By default 20, "
            "with PostgreSQL 1.",
        ),
    ] = None,
    kafka: Annotated[
        Optional[str],
        opt.option(
            "BROKERS", "host:port, or several separated by commas: also read rows and labels from Kafka.", panel=_KAFKA
        ),
    ] = None,
    rows: Annotated[Optional[str], opt.option("TOPIC", "Topic of the rows.", panel=_KAFKA)] = None,
    labels: Annotated[Optional[str], opt.option("TOPIC", "Topic of the labels.", panel=_KAFKA)] = None,
    predictions: Annotated[Optional[str], opt.option("TOPIC", "Topic to write predictions to.", panel=_KAFKA)] = None,
    dead_letters: Annotated[
        Optional[str],
        opt.option(
            "TOPIC",
            "Topic for invalid messages; by default, the name of their own topic with .dead-letters.",
            panel=_KAFKA,
        ),
    ] = None,
    stream: Annotated[
        Optional[str],
        opt.option(
            "NAME", "The stream they belong to, created if necessary; by default, named like --rows.", panel=_KAFKA
        ),
    ] = None,
    kafka_config: Annotated[
        Optional[Path],
        opt.path_option(
            "--kafka-config",
            "FILE",
            "Properties of librdkafka, one per line, such as security.protocol=SASL_SSL.",
            panel=_KAFKA,
        ),
    ] = None,
    exactly_once: Annotated[
        bool,
        typer.Option(
            "--exactly-once",
            help="Commit predictions and offsets together, so that readers of what is committed see each once.",
            rich_help_panel=_KAFKA,
        ),
    ] = False,
) -> None:
    """Serve predictions over HTTP, and learn from labels whenever they arrive.

    Everything that is acknowledged is in a log on disk, which determines the model: `devdan replay` rebuilds it.

    - devdan serve --data streams
    - devdan serve --data streams --model runs/my-devdan --port 9000
    - devdan serve --data streams --host 0.0.0.0 --tokens tokens.txt --tls-certificate c.pem --tls-key k.pem
    - devdan serve --data streams --kafka localhost:9092 --rows payments --labels frauds --predictions scores
    """
    if (data is None) == (store is None):
        fail("say where the log is: --data DIR, or --store postgresql://…")
    try:
        from devdan.service.auth import Tokens
        from devdan.service.engine import InitialModel
        from devdan.service.server import FailedError, application, check_address, server
        from devdan.service.server import serve as serve_forever
        from devdan.service.store import open_database
    except ModuleNotFoundError as error:
        fail(f"devdan serve needs {error.name}: pip install 'devdan[serve]'")
    from devdan.apply import model_path

    with clear_errors(), _log_errors():
        show_notes()
        known = None if tokens is None else Tokens(tokens)
        check_address(host, known, certificate is not None)
        if (certificate is None) != (key is None):
            raise ValueError("--tls-certificate and --tls-key are needed both, or none")
        scheme = "http" if certificate is None else "https"
        begins = (
            None
            if model is None
            else InitialModel.of_file(model_path(model), model.name if model.is_dir() else model.stem)
        )
        messages = _messages(kafka, rows, labels, predictions, dead_letters, stream, kafka_config, exactly_once)
        served = application(
            open_database(data, store, durability),
            model=begins,
            tokens=known,
            local_only=known is None,
            predict_unlogged=predict_unlogged,
            snapshots=snapshots,
            kafka=messages,
        )

        def ready(chosen: int) -> None:
            say(f"Serving on {scheme}://{host}:{chosen} (documentation: /docs). Ctrl-C ends it.")
            if messages is not None:
                say(
                    f"Kafka at {messages.brokers}: rows from {messages.rows} and labels from {messages.labels} are for "
                    f"the stream {messages.stream}, predictions go to {messages.predictions}."
                )

        with suppress(KeyboardInterrupt):  # the usual way to stop it
            try:
                serve_forever(server(served, host, port, certificate=certificate, key=key, ready=ready))
            except FailedError as error:
                fail(error)


def backup(
    data: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of the log of devdan serve, which may be running.")
    ],
    target: Annotated[Path, typer.Argument(metavar="BACKUP", help="Folder for the copy, created if needed.")],
) -> None:
    """Copy the log of a service while it runs, as it is at one moment, and check the copy.

    A backup is a folder like any other: `devdan replay` rebuilds its models, and `devdan serve --data` serves it.

    - devdan backup streams backups/monday
    """
    from devdan.service.store import back_up, is_url

    with clear_errors(), _log_errors():
        if is_url(data):
            raise ValueError("a log in PostgreSQL is backed up with PostgreSQL's own tools, such as pg_dump")
        copied = back_up(Path(data), target)
        when = datetime.fromtimestamp(copied.at).astimezone().isoformat(timespec="seconds")
        out.print(f"{target} has the log up to record {copied.seq:,} of {when}", highlight=False)


@opt.takes_reading(*opt.LOGGED)
def replay(
    data: Annotated[
        str, typer.Argument(metavar="DIR", help="Folder of the log of devdan serve, or postgresql://… if it is there.")
    ],
    reading: Reading,
    columns: dict[str, Any],
    stream: Annotated[Optional[str], typer.Option(help="Only this stream.")] = None,
    until: Annotated[
        Optional[str], opt.option("TIME", "Only what arrived up to this time, such as 2030-01-31T12:00.")
    ] = None,
    save: Annotated[Optional[Path], opt.path_option("--save", "FILE", "Save the model that was rebuilt.")] = None,
    model: Annotated[
        Optional[str],
        typer.Option("--model", help="Evaluate another model on the same history instead, with the page of a run."),
    ] = None,
    chunk: opt.Chunk = 100,
    options: opt.Settings = None,
    seed: opt.Seed = 0,
    folder: opt.Out = None,
    overwrite: opt.Overwrite = False,
) -> None:
    """Rebuild the models of a service from its log, and check that its snapshots are the same, bit for bit.

    - devdan replay streams
    - devdan replay streams --stream payments --until 2030-01-31T12:00 --save then.devdan
    - devdan replay streams --stream payments --model devdan-ensemble
    """
    from devdan.service import replay as log
    from devdan.service import store

    show_notes()

    def evaluate(connection: Connection, name: str, one: StreamFacts, end: float | None) -> None:
        from devdan.bench import named_models
        from devdan.cli import display
        from devdan.cli.run import follow
        from devdan.evaluation.loop import Evaluation
        from devdan.report import RunReport
        from devdan.runs.preparation import describe, prepared
        from devdan.runs.runfolder import free_folder
        from devdan.runs.runjob import RunJob

        chosen = named_models.parse_options(options or [])
        samples, labels = log.history(connection, one, chunk, end, reading.drop)
        learner = named_models.build(name, seed, chosen, columns)
        if columns:
            learner.check_columns(samples.feature_names)
        histories = log.histories(one)
        samples, learner, classes, scaled = prepared(samples, learner, histories=histories)
        settings = describe(
            samples, learner, chosen, reading, model=name, seed=seed, chunk=chunk, labels=str(labels), scaled=scaled,
            command=opt.command(),
        )  # fmt: skip
        where = folder or free_folder(opt.PARENT, f"{one.name}-{name}".replace(":", "."), settings, False)
        evaluation = Evaluation(learner, labels, classes=classes, histories=histories)
        with RunJob(where, samples, evaluation, settings, overwrite=overwrite, page=RunReport) as job:
            follow(job)
        out.print(display.results(job.folder.summary()))
        out.print(f"\nReport: {job.folder.report_path}", highlight=False)

    with clear_errors(), _log_errors():
        given = [*(["set"] if options else []), *reading.as_keywords()]
        if given and model is None:
            raise ValueError(f"--{given[0]} is for --model: the models of the log keep the options that they have")
        end = None if until is None else datetime.fromisoformat(until).timestamp()
        with store.reading(data) as connection:
            streams = log.found(connection, stream)
            if (model is not None or save is not None) and len(streams) != 1:
                names = ", ".join(one.name for one in streams)
                raise ValueError(f"say which stream with --stream; there {'are ' + names if names else 'is none'}")
            if model is not None:
                evaluate(connection, model, streams[0], end)
                return
            same = [_rebuilt(connection, one, end, save) for one in streams]
        if False in same:
            fail("a model differs from its snapshot: the log or the snapshot was changed, or devdan is another version")


def _rebuilt(connection: Connection, stream: StreamFacts, end: float | None, save: Path | None) -> bool | None:
    """Rebuild the model of a stream, say whether it is that of the snapshot, and save it."""
    from tempfile import TemporaryDirectory

    from devdan.service import replay as log

    with TemporaryDirectory(prefix="devdan-") as scratch:
        found = log.replayed(connection, stream, end, Path(scratch))
        counted = found.fold.counts
        counts = f"{found.n_records:,} records, {counted.n_rows:,} rows, {counted.n_labels:,} labels"
        out.print(f"{stream.name}: {counts}: {_VERDICTS[found.same]}", highlight=False)
        if save is not None:
            rebuilt = found.fold.model
            if not rebuilt.__sklearn_is_fitted__():
                raise ValueError(f"the stream {stream.name} has no model yet: it begins with the first row")
            rebuilt.save(save)
        found.close()
    return found.same
