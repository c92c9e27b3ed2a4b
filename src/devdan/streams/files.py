"""The table of readers, and what opens a file, a folder, or the address of a database by it."""

from __future__ import annotations

import csv
import glob
import zipfile
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from devdan.streams import arff, columnar, databases, delimited, jsonfile, npz, workbook
from devdan.streams.delimited import Layout
from devdan.streams.reading import Reading
from devdan.streams.stream import Stream, StreamError, Table, name_of, reason
from devdan.streams.tablesource import Batch, TableSource
from devdan.streams.textfile import COMPRESSIONS, TextFile

_KNOWN = 1000  # files of a folder whose numbers of rows are added up


@dataclass(frozen=True)
class Reader:
    """A format: how it is known, and what opens it. Texts may also be compressed, or alone in a zip."""

    name: str
    endings: tuple[str, ...]
    opens: Callable[[Any, Reading], TableSource | npz.Arrays]  # a path or, for a text, a TextFile
    is_text: bool = False
    from_stdin: bool = False
    about: str = ""


def _delimited(file: TextFile, reading: Reading, delimiter: str | None = None) -> TableSource:
    return delimited.source(delimited.csv_layout(file, delimiter, reading))


READERS = (
    Reader("CSV", (".csv", ".txt", ".data"), _delimited, True, True,
           about="cells between commas, semicolons, tabs or bars, as the first line has them; others with `sep`"),
    Reader("TSV", (".tsv", ".tab"), partial(_delimited, delimiter="\t"), True, True, about="cells separated by tabs"),
    Reader("JSON", (".jsonl", ".ndjson", ".json"), lambda file, _: jsonfile.json_source(file), True, True,
           about="an object in each line or, from files, an array of objects"),
    Reader("ARFF", (".arff",), lambda file, _: delimited.source(arff.arff_layout(file)), True,
           about="dense rows; declared values are checked"),
    Reader("Parquet", (".parquet", ".pq"), lambda path, _: columnar.parquet(path),
           about="the index of a frame is left out"),
    Reader("Arrow", (".arrow", ".feather", ".ipc", ".arrows"), lambda path, _: columnar.arrow(path),
           about="files (Feather) and streams of Arrow IPC"),
    Reader("Excel", (".xlsx", ".xlsm"), workbook.workbook, about="the first sheet that has cells"),
    Reader("NumPy", (".npz",), lambda path, _: npz.Arrays(path),
           about="`X` and `y`, or an array for each column; an array stored by column is loaded whole"),
)  # fmt: skip
_BY_ENDING = {ending: reader for reader in READERS for ending in reader.endings}


def endings() -> str:
    """The endings of the files that can be read, for messages.

    >>> endings()[:28]
    '.csv, .txt, .data, .tsv, .ta'
    """
    texts = ", ".join(ending for ending, reader in _BY_ENDING.items() if reader.is_text)
    others = ", ".join(ending for ending, reader in _BY_ENDING.items() if not reader.is_text)
    return f"{texts} (also with {', '.join(COMPRESSIONS)}, .zip), {others}"


def file(
    path: str | Path, *, target: str | int | None = None, chunk: int = 500, name: str | None = None, **options: Any
) -> Stream:
    """Open a file as a stream. The ending of its name gives the format (:data:`READERS`).

    Texts may be compressed (.gz, .bz2, .zst, .xz), or alone in a .zip. A folder, or a pattern such as ``logs/*.csv``,
    is read file by file in order of name. The address of a database names a table or a query:
    ``sqlite:///orders.db?table=orders``. ``target`` is the column with the labels, by name or position (0 is the first,
    -1 the last); by default, it is the column called target, class or label, and in ARFF otherwise the last one.
    ``options`` are those of :class:`~devdan.streams.reading.Reading`. An NPZ file holds the samples in ``X``, or in an
    array for each column, and the labels in ``y``, or in the array that ``target`` names. The samples come as
    :class:`~devdan.encoding.rows.Rows`, in which the model encodes what is not a number.
    """
    reading = Reading(target=target, **options)
    with _readable(path):
        return opened(path, reading).stream(reading, chunk, name)


def table(path: str | Path, **options: Any) -> Table:
    """Open a file as a table without labels, to predict from; formats and ``options`` as in :func:`file`."""
    reading = Reading(**options)
    with _readable(path):
        return opened(path, reading).table(reading)


def opened(source: str | Path, reading: Reading) -> TableSource | npz.Arrays:
    """What holds a table: a file, a folder or a pattern of files, or the address of a database."""
    if databases.is_address(source):
        return databases.database(str(source))
    path, found = Path(source), files_of(source)
    if found == [path]:
        return _one(path, reading)
    if found:
        return _several(found, str(source), reading)
    if path.is_dir():
        raise StreamError(f"{path} is a folder without files")
    raise StreamError(f"no file matches {source}" if glob.has_magic(str(source)) else f"no such file: {path}")


def files_of(source: str | Path) -> list[Path]:
    """The files that hold a table, in the order in which they are read; none if there are none on this machine."""
    if databases.is_address(source):
        return databases.files_of(str(source))
    path = Path(source)
    if path.is_file():
        return [path]
    if path.is_dir():
        return sorted(each for each in path.iterdir() if each.is_file() and not each.name.startswith((".", "_")))
    if path.exists() or not glob.has_magic(str(source)):
        return [path] if path.exists() else []
    return [Path(each) for each in sorted(glob.glob(str(source), recursive=True)) if Path(each).is_file()]


def _one(path: Path, reading: Reading) -> TableSource | npz.Arrays:
    """A file."""
    ending = path.suffix.lower()
    if ending == ".zip":
        return _zipped(path, reading)
    compression = COMPRESSIONS.get(ending)
    kind = path.with_suffix("").suffix.lower() if compression else ending
    reader = _BY_ENDING.get(kind)
    if reader is None or (compression and not reader.is_text):
        raise StreamError(
            f"{path}: unknown file extension {''.join(path.suffixes[-2:]) or '(it has none)'!r}; {endings()} can be "
            "read"
        )
    return reader.opens(TextFile(path, compression, encoding=reading.encoding) if reader.is_text else path, reading)


def _zipped(path: Path, reading: Reading) -> TableSource | npz.Arrays:
    """The only file in a zip, which is unpacked as it is read."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if not each.is_dir() and not each.filename.startswith("__")]
    except zipfile.BadZipFile as error:
        raise StreamError(f"{path} cannot be read: it is not compressed as its name says, or is incomplete") from error
    if len(members) != 1:
        listed = ", ".join(each.filename for each in members[:5]) + (", …" if len(members) > 5 else "")
        raise StreamError(f"{path} must hold one file, got {len(members)}: {listed or 'none'}; unpack it first")
    member = members[0]
    reader = _BY_ENDING.get(Path(member.filename).suffix.lower())
    if reader is None or not reader.is_text:
        raise StreamError(f"{path} holds {member.filename}, which cannot be read within a zip; unpack it first")

    def unpacked() -> IO[bytes]:
        try:
            with zipfile.ZipFile(path) as archive:  # which stays open as long as its member
                return archive.open(member)
        except RuntimeError as error:  # it wants a password, or zipfile does not know its compression
            raise StreamError(f"{path} cannot be unpacked: {reason(error)}") from error

    return reader.opens(TextFile(path, None, unpacked, reading.encoding), reading)


def _several(paths: Sequence[Path], origin: str, reading: Reading) -> TableSource:
    """Files with the same columns, one after the other."""

    def part(path: Path) -> TableSource:
        with _readable(path):
            found = _one(path, reading)
            if not isinstance(found, TableSource):
                raise StreamError(f"{path} cannot be one of several files: those of NumPy are read one at a time")
            return found

    first = part(paths[0])
    known, n_rows = [first], first.n_rows
    for path in paths[1:]:
        other = part(path)
        if sorted(other.names) != sorted(first.names) or other.named != first.named:
            raise StreamError(
                f"{path} must have the columns of {paths[0]}, {', '.join(first.names[:12])}, "
                f"got {', '.join(other.names[:12])}"
            )
        if len(known) < _KNOWN:
            known.append(other)
    if len(known) == len(paths):
        counts = [each.n_rows for each in known]
        n_rows = None if None in counts else sum(count or 0 for count in counts)
        guesses = [each.n_rows or each.estimated_rows for each in known]
        n_estimated = None if None in guesses else sum(guess or 0 for guess in guesses)
    else:
        n_rows = n_estimated = None

    def batches(
        columns: Sequence[int], written: Sequence[int], as_text: Collection[int]
    ) -> Generator[Batch, None, None]:
        for path in paths:
            own = part(path)
            places = {place: own.names.index(name) for place, name in enumerate(first.names)}
            if len(set(first.names)) < len(first.names):
                places = {place: place for place in range(len(first.names))}
            wanted = ([places[place] for place in which] for which in (columns, written, as_text))
            with _readable(path), closing(own.batches(*wanted)) as found:
                yield from found

    return replace(
        first, name=name_of(origin), origin=origin, batches=batches, n_rows=n_rows, estimated_rows=n_estimated
    )


def text(
    path: Path,
    names: Sequence[str],
    *,
    target: str | int,
    name: str,
    chunk: int = 500,
    skipped: int = 0,
    drop: Sequence[str | int] = (),
    values: Mapping[str, Sequence[str]] | None = None,
    opened: Callable[[], IO[bytes]] | None = None,
) -> Stream:
    """Open a comma-separated text with known columns, whatever its extension, as arrays of numbers.

    ``skipped`` is the number of lines before the first row. ``values`` are the values of text columns, so that codes do
    not depend on the order of the rows. ``opened`` opens a text inside another file; ``path`` is then for messages.
    """
    compression = None if opened else COMPRESSIONS.get(path.suffix.lower())
    file = TextFile(path, compression, opened, encoding="utf-8")
    layout = Layout(file, list(names), decimal=".", skipped=skipped, counts_lines=opened is None)
    with _readable(path):
        reading = Reading(target=target, drop=tuple(drop), decimal=".")
        return delimited.source(layout).stream(reading, chunk, name).coded(values)


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    """Turn read errors into one-line messages."""
    try:
        yield
    except StreamError:
        raise
    except UnicodeDecodeError:
        raise StreamError(f"{path} is not UTF-8 text; name its encoding with encoding= (--encoding)") from None
    except (OSError, pa.ArrowException, csv.Error) as error:
        raise StreamError(f"{path} cannot be read: {reason(error)}") from error
