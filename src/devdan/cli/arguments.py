"""Options that commands share, and the command that was typed."""

from __future__ import annotations

import csv
import inspect
import shlex
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional, get_type_hints

import typer

from devdan.bench import named_models
from devdan.cli.console import clear_errors, fail
from devdan.evaluation.labels import SPELLINGS
from devdan.streams import entries
from devdan.streams.reading import Reading

if TYPE_CHECKING:
    from devdan.histories.histories import Histories
    from devdan.streams import Stream

STREAM, MODEL, RUN = "The stream", "The model", "The run"
LOGGERS = ("tensorboard", "mlflow")
PARENT = Path("runs")
FILES = (  # what streams.files and streams.databases read, which are slow to import
    "a file (CSV, TSV, JSON, ARFF, also packed as .gz, .bz2, .zst, .xz, .zip; Parquet, Arrow, Excel, NumPy), a folder "
    "or 'pattern*.csv' of such, or the address of a database"
)


def a_path(option: str) -> Callable[[str | Path], Path]:
    """A parser of paths, which refuses an empty one, since that would be the current folder."""

    def path(text: str | Path) -> Path:
        if not str(text).strip():
            fail(f"{option} needs a path, got an empty text")
        return Path(text)

    return path


def option(metavar: str, about: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, metavar=metavar, help=about, rich_help_panel=panel, **more)


def path_option(name: str, metavar: str, about: str, panel: str | None = None) -> Any:
    return option(metavar, about, name, parser=a_path(name), panel=panel)


def words(text: str) -> list[str]:
    """The words between commas, each once; a word that contains a comma is quoted, as in CSV."""
    try:
        found = next(csv.reader([text], skipinitialspace=True), [])
    except csv.Error as error:
        raise ValueError(f"a list must be words separated by commas, got {text!r}: {error}") from None
    return list(dict.fromkeys(word.strip() for word in found if word.strip()))


def histories(given: list[str], time: str | None, key: str | None = None) -> Histories | None:
    """The histories that options ask for, or None."""
    if not given:
        if time is not None:
            raise ValueError("--time is for --history, which names the columns that say whom a row is about")
        return None
    if key is not None:
        raise ValueError("--history is not for fleets: of a key, its own network knows the past; leave --key out")
    from devdan.histories.histories import Histories

    named = [word for text in given for word in words(text)]
    return Histories([tuple(word.split("+")) if "+" in word else word for word in named], time=time)


class Order(str, Enum):
    file = "file"
    shuffled = "shuffled"


def _files(incomplete: str) -> list[str]:
    """Shell completion: files and folders."""
    folder, _, start = incomplete.rpartition("/")
    paths = sorted(Path(folder or ".").glob(f"{start}*")) if "*" not in start else []
    return [f"{path}/" if path.is_dir() else str(path) for path in paths if not path.name.startswith(".")]


def _streams(incomplete: str) -> list[str]:
    """Shell completion: the paper's streams, and files."""
    return [name for name in entries.ENTRIES if name.startswith(incomplete)] + _files(incomplete)


def _models(incomplete: str) -> list[str]:
    """Shell completion: folders, and files with models."""
    return [path for path in _files(incomplete) if path.endswith(("/", ".devdan", ".fleet"))]


Source = Annotated[
    str,
    typer.Argument(
        help=f"One of the paper's streams by name, {FILES}, or - for standard input.",
        metavar="STREAM",
        show_default=False,
        autocompletion=_streams,
    ),
]
Target = Annotated[
    Optional[str],
    option("COLUMN", "The column with the labels, by name or position (0 is the first, -1 the last).", panel=STREAM),
]
History = Annotated[
    Optional[list[str]],
    option(
        "COLUMNS",
        "Columns that say whom a row is about, separated by commas, such as customer,terminal,customer+terminal: what "
        "was known of each before the row is added to it; may be repeated.",
        panel=STREAM,
    ),
]
Time = Annotated[
    Optional[str],
    option(
        "COLUMN", "With --history: the column with the time of each row; else time is counted in rows.", panel=STREAM
    ),
]
Key = Annotated[
    Optional[str],
    option(
        "COLUMN",
        "The column that says which device or customer a row belongs to: a fleet has a network for each such key.",
        panel=STREAM,
    ),
]
Drop = Annotated[Optional[list[str]], option("COLUMN", "A column to leave out; may be repeated.", panel=STREAM)]
Header = Annotated[
    Optional[bool],
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file has a header; by default, it has one if its first line contains no number.",
        rich_help_panel=STREAM,
    ),
]
Separator = Annotated[
    Optional[str],
    option("CHARACTER", "What separates the cells of a text file; by default, it is found.", panel=STREAM),
]
Encoding = Annotated[
    Optional[str],
    option("NAME", "Of a text file: utf-8, utf-16, latin-1, …; by default, it is found.", panel=STREAM),
]
Decimal = Annotated[
    Optional[str],
    option(". or ,", "The decimal sign of numbers; by default, it is found for each column.", panel=STREAM),
]
Nominal = Annotated[
    Optional[list[str]],
    option("COLUMN", "A column of categories, whatever it looks like; may be repeated.", panel=STREAM),
]
Numeric = Annotated[
    Optional[list[str]], option("COLUMN", "A column of numbers, whatever it looks like; may be repeated.", panel=STREAM)
]
Dates = Annotated[
    Optional[list[str]],
    option(
        "COLUMN[=FORMAT]",
        "A column of dates and, if not as in 2030-12-31, how they are written: born=dd/mm/yyyy, sent=epoch; may "
        "be repeated.",
        panel=STREAM,
    ),
]
Ordered = Annotated[
    Optional[Order],
    typer.Option(help="Default: as in the paper, with kddcup and rlcps shuffled.", rich_help_panel=STREAM),
]
Limit = Annotated[Optional[int], option("N", "Stop after this many samples.", min=1, panel=STREAM)]
Endless = Annotated[
    bool, typer.Option("--endless", help="Generate sea or hyperplane endlessly.", rich_help_panel=STREAM)
]
Data = Annotated[
    Optional[Path],
    path_option(
        "--data", "DIR", "Folder with the paper's streams; default: DEVDAN_DATA, or ~/devdan-data.", panel=STREAM
    ),
]
Model = Annotated[
    str,
    option(
        "NAME",
        f"{', '.join(named_models.NAMES)}; or any class with partial_fit, or a River classifier, as module:Class.",
        autocompletion=lambda: list(named_models.NAMES),
        panel=MODEL,
    ),
]
Settings = Annotated[
    Optional[list[str]],
    option("OPTION=VALUE", "An option of the model, such as masking=0.2; may be repeated.", "--set", panel=MODEL),
]
Seed = Annotated[int, option("N", "Seed of model and label policy.", min=0, panel=MODEL)]
Chunk = Annotated[int, option("N", "Chunk size in samples.", min=1, panel=RUN)]
ChunkOrOwn = Annotated[
    Optional[int],
    option("N", "Chunk size in samples; default: 500, or a named stream's own.", min=1, panel=RUN),
]
Which = Annotated[
    str,
    option(
        "WHICH",
        "Label policy: which labels arrive, and when; see above.",
        autocompletion=lambda: list(SPELLINGS),
        panel=RUN,
    ),
]
Alerts = Annotated[
    str,
    option(
        "K/N",
        "Alert budget: what the K highest scores of each N samples find of a class is measured.",
        panel=RUN,
    ),
]
Out = Annotated[
    Optional[Path], path_option("--out", "DIR", f"Output folder; by default a new one in {PARENT}/.", panel=RUN)
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped.", rich_help_panel=RUN)]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Start again, even if --out contains a run.", rich_help_panel=RUN)
]
Checkpoint = Annotated[float, option("SECONDS", "Seconds between checkpoints.", "--checkpoint", min=0.0, panel=RUN)]
Logs = Annotated[
    Optional[list[str]],
    option(
        "WHERE",
        "Curves for tensorboard (tensorboard:DIR) or mlflow (mlflow:EXPERIMENT, mlflow:URI); may be repeated.",
        "--log",
        autocompletion=lambda: list(LOGGERS),
        panel=RUN,
    ),
]
By = Annotated[
    Optional[str],
    option(
        "MEASURE",
        "What runs are compared by, such as CR, rarest_average_precision or log_loss; default: the classification "
        "rate or, where a class is rare, its average precision.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.", rich_help_panel=RUN)]

Saved = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model file, such as runs/my-devdan/model.devdan, or the folder of a run.",
        show_default=False,
        autocompletion=_models,
    ),
]
Rowwise = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help=f"{FILES[0].upper()}{FILES[1:]}; or - for standard input: CSV, or JSON in each line.",
        show_default=False,
        autocompletion=_files,
    ),
]

# --- How a source is read ----------------------------------------------------------------------------------------

_READING: dict[str, Any] = {
    "target": Target, "drop": Drop, "header": Header, "sep": Separator, "encoding": Encoding, "decimal": Decimal,
    "nominal": Nominal, "numeric": Numeric, "dates": Dates,
}  # fmt: skip

UNLABELLED = tuple(name for name in _READING if name not in ("target", "drop"))  # columns not known are ignored there
LOGGED = ("drop", "nominal", "numeric", "dates")  # what a log leaves to say


def takes_reading(*only: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of reading, or ``only`` these of them, in place of its argument ``reading``.

    An argument ``columns`` gets what they say about columns as options of a model.
    """
    names = only or tuple(_READING)

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = inspect.signature(command).parameters
        parameters: list[inspect.Parameter] = []
        for name, parameter in own.items():
            if name == "reading":
                kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
                parameters += [inspect.Parameter(each, kind, default=None, annotation=_READING[each]) for each in names]
            elif name != "columns":
                parameters.append(parameter.replace(annotation=hints[name]))

        def run(**given: Any) -> None:
            said = {name: value for name in names if (value := given.pop(name)) not in (None, [])}
            with clear_errors():
                about = named_models.about_columns(*(said.get(name, []) for name in ("nominal", "numeric", "dates")))
                reading = Reading(**said | {"dates": tuple(about.get("dates", ()))})
            more = {"columns": about} if "columns" in own else {}
            command(reading=reading, **more, **given)

        run.__name__, run.__doc__ = command.__name__, command.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return run

    return decorated


def refuse_reading(reading: Reading, since: str, key: str | None = None) -> None:
    """Raise an error if options for files were given, since there is none."""
    given = [*reading.as_keywords(), *([] if key is None else ["key"])]
    if given:
        names = " and ".join(f"--{name}" for name in given)
        raise ValueError(f"{names} {'is' if len(given) == 1 else 'are'} for files; {since}")


# --- The command that was typed ----------------------------------------------------------------------------------


def command(*more: str) -> str:
    """The command that was typed, without the options for resuming or overwriting."""
    return shlex.join(["devdan", *_typed(("--resume", "--overwrite"), ()), *more])


def repeated(stream: Stream, data: Path | None) -> str:
    """A command that repeats the run anywhere, in a new folder."""
    words = _typed(("--resume", "--overwrite", "--json"), ("--out", "--checkpoint", "--log"))
    from_folder = entries.is_name(stream.name) and stream.origin != "generated" and data is None
    return shlex.join(["devdan", *words, *(["--data", str(entries.data_folder())] if from_folder else [])])


def _typed(flags: tuple[str, ...], options: tuple[str, ...]) -> list[str]:
    """The words that were typed, without these flags and these options with their values."""
    words, kept = iter(sys.argv[1:]), []
    for word in words:
        if word in options:
            next(words, None)
        elif word not in flags and word.partition("=")[0] not in options:
            kept.append(word)
    return kept
