"""Saved models with one field changed, or two, and checksums that match: each is refused, or a model that works.

As a script it tries the cases of some subjects and prints the number of each before it begins, so that whoever has
started it knows where it crashed or hangs: ``python tampering.py SUBJECT[,SUBJECT] FOLDER [NUMBER …]``.
"""

import copy
import hashlib
import json
import math
import shutil
import sqlite3
import struct
import sys
import traceback
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
from networks import SMALL

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet, ModelFileError
from devdan.encoding.encoding import SingleRow
from devdan.fleet import network_store as stores
from devdan.fleet.networks import Slots
from devdan.kernel.memory import SIZES
from devdan.kernel.network import KINDS
from devdan.kernel.state import aligned, sizes_of
from devdan.model import modelfile
from devdan.model.mixture import Mixture

DEEP = json.loads("[" * 900 + "]" * 900)
JSON_VALUES = [
    None, True, False, 0, 1, -1, 2, 3, 17, 2**31, 2**62, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308, math.nan,
    math.inf, "", "x", "1", "iso", "number", "\ud800", "\0", [], [[]], [0], [[0, 0]], {}, {"x": 1}, DEEP,
]  # fmt: skip
INTEGERS = [-1, 0, 1, 2, 3, 7, 8, 24, 100, 2**31, 2**62, 2**62 + 1, 2**63 - 1, -(2**63)]
FLOATS = [
    math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 24.0, 1e-320, 1e100, -1e100, 1.1e100,
    1e150, -1e150, 1e160, 1e300,
]  # fmt: skip

Content = dict[str, Any]  # of a file: JSON, and arrays for the states
Change = Callable[[Content], None]


class Case(NamedTuple):
    """A change, and what it changes in words."""

    name: str
    change: Change


# --- Cases -------------------------------------------------------------------------------------------------------


def cases_of(content: Content) -> list[Case]:
    """Each field with each hostile value."""
    found: list[Case] = []
    for path, node in nodes(content):
        if isinstance(node, np.ndarray):
            found += cases_of_state(path, node)
        elif path:
            found += [Case(f"{path} = {value!r:.40}", put(path, value)) for value in JSON_VALUES]
            found += cases_of_node(path, node)
    return found


def nodes(content: Any, path: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], Any]]:
    """What there is in a tree, and where; of a long list the first two and the last."""
    found = [(path, content)]
    if isinstance(content, dict):
        for key, value in content.items():
            found += nodes(value, (*path, key))
    elif isinstance(content, list):
        for place in dict.fromkeys([*range(min(2, len(content))), len(content) - 1] if content else []):
            found += nodes(content[place], (*path, place))
    return found


def at(content: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        content = content[step]
    return content


def put(path: tuple[Any, ...], value: Any) -> Change:
    return lambda content: at(content, path[:-1]).__setitem__(path[-1], value)


def edit(path: tuple[Any, ...], change: Callable[[Any], Any]) -> Change:
    return lambda content: put(path, change(at(content, path)))(content)


def cases_of_node(path: tuple[Any, ...], node: Any) -> list[Case]:
    """Changes that depend on what is there."""
    found = []
    if isinstance(path[-1], str):
        found.append(Case(f"{path} removed", lambda content: at(content, path[:-1]).pop(path[-1])))
    if isinstance(node, int):
        found += [Case(f"{path} {by:+}", edit(path, lambda n, by=by: n + by)) for by in (1, -1)]
    if isinstance(node, list) and node:
        ways = {
            "without the first": lambda it: it[1:],
            "without the last": lambda it: it[:-1],
            "with the first twice": lambda it: [it[0], *it],
            "with the last twice": lambda it: [*it, it[-1]],
            "reversed": lambda it: it[::-1],
        }
        found += [Case(f"{path} {name}", edit(path, change)) for name, change in ways.items()]
    if isinstance(node, dict):
        found.append(Case(f"{path} with more", lambda content: at(content, path).update(unknown=1)))
    return found


def cases_of_state(path: tuple[Any, ...], state: Any) -> list[Case]:
    """Each field of a network: its first word, its last one and all; then each of its sizes, with words for it."""
    block = KINDS[state.view(np.int64).item(0)]
    found = []
    for name, (start, shape) in block.places(sizes_of(state)).items():
        words = slice(start, start + math.prod(shape))
        is_integer = block.fields()[name].dtype == np.int64
        values = INTEGERS if is_integer else FLOATS
        if is_integer and not shape:
            values = [*values, *(int(state.view(np.int64)[start]) + by for by in (1, -1))]
        n_words = math.prod(shape)
        wheres = {"": words} if n_words == 1 else {"[0]": start, "[-1]": words.stop - 1, "[:]": words}
        for where, place in wheres.items() if n_words > 0 else ():
            for value in values:
                found.append(Case(f"{path}.{name}{where} = {value}", write_word(path, place, value, is_integer)))
    for name, size in zip(SIZES, sizes_of(state), strict=True):
        for other in sorted({0, 1, 2, max(size - 1, 0), size + 1, 2 * size} - {size}):
            found.append(Case(f"{path} with {name}={other}", relay(path, name, other)))
    found += [
        Case(f"{path} cut by {n}", edit(path, lambda words, n=n: words[: max(len(words) - n, 0)]))
        for n in (1, 400, 10**6)
    ]
    return found


def write_word(path: tuple[Any, ...], place: Any, value: Any, is_integer: bool) -> Change:
    def change(content: Content) -> None:
        state = at(content, path)
        (state.view(np.int64) if is_integer else state)[place] = value

    return change


def relay(path: tuple[Any, ...], name: str, size: int) -> Change:
    """A state with another size, whatever is in use; what there is no room for is left out."""

    def change(content: Content) -> None:
        state = at(content, path)
        block, sizes = KINDS[state.view(np.int64).item(0) % 2], sizes_of(state)
        room = sizes._replace(**{dict(zip(SIZES, sizes._fields, strict=True))[name]: size})
        copied = aligned(block.n_words(room))
        if min(sizes) < 0 or block.n_words(sizes) != len(state):
            return  # another change was there before
        places, new_places = block.places(sizes), block.places(room)
        for field, (start, shape) in places.items():
            new_start, new_shape = new_places[field]
            common = tuple(slice(min(pair)) for pair in zip(shape, new_shape, strict=True))
            old = state[start : start + math.prod(shape)].reshape(shape)
            copied[new_start : new_start + math.prod(new_shape)].reshape(new_shape)[common] = old[common]
        copied.view(np.int64)[1 : 1 + len(SIZES)] = room
        put(path, copied)(content)
        if "states" in content.get("header", ()) and path[0] == "states":
            content["header"]["states"][path[1]] = len(copied)

    return change


# --- Subjects ----------------------------------------------------------------------------------------------------

N_ROWS = 12
X = np.random.default_rng(0).normal(size=(N_ROWS, 3))
Y = np.arange(N_ROWS) % 3
NAMES = np.array(["dry", "rain", "snow"])[Y]
TABLE = pd.DataFrame(
    {
        "size": X[:, 0],
        "town": np.array(["Bonn", "Ulm", "Köln"])[Y],
        "at": pd.date_range("2024-05-01 07:00", periods=N_ROWS, freq="31h"),
        "is_open": Y == 1,
        "odd": [*map(str, range(N_ROWS - 1, 0, -1)), "word"],
    }
)


class ModelSubject:
    """A model in a file."""

    def __init__(self, model: Any, rows: Any) -> None:
        self.kind, self.rows = type(model), rows
        content = modelfile.header_of(model), np.concatenate(model.mixture_.networks)
        self.content = {"header": plain(content[0]), "states": [state.copy() for state in model.mixture_.networks]}

    def write(self, folder: Path, content: Content) -> Path:
        words = np.concatenate(content["states"])
        text = json.dumps(content["header"]).encode()
        whole = modelfile._PREFIX.pack(modelfile.MAGIC, modelfile.VERSION, len(text), len(words)) + text
        whole += words.tobytes()
        (folder / "model").write_bytes(whole + hashlib.sha256(whole).digest())
        return folder / "model"

    def works(self, path: Path) -> None:
        model = self.kind.load(path)
        rows = rows_for(model, self.rows)
        answer = answered(model, lambda: model.predict_proba(rows))
        if model.mixture_.encoding is not None:
            SingleRow(model.mixture_.encoding).fill(dict(TABLE.iloc[0]), np.empty((1, len(model.mixture_.encoding))))
        model.save(path)
        again = self.kind.load(path)
        check_same(answer, answered(again, lambda: again.predict_proba(rows)))
        for one in (model, again):
            one.observe(rows)
            one.partial_fit(rows, labels_for(one))
            one.teach(rows, labels_for(one))
        check_same(
            answered(model, lambda: model.predict_proba(rows)), answered(again, lambda: again.predict_proba(rows))
        )
        tell(model, rows)


def tell(model: Any, rows: Any) -> None:
    """What people look at."""
    assert repr(model)
    assert len(model.events_) <= model.n_events_
    assert model.encoding_.records()
    model.score_samples(rows)
    if hasattr(model, "classes_"):
        model.importances_  # noqa: B018
        model.units_  # noqa: B018


class FleetSubject:
    """A fleet in a file, opened as a whole and as a store."""

    def __init__(self, fleet: Any, keys: list[Any], rows: Any, folder: Path) -> None:
        self.keys, self.rows = keys, rows
        fleet.save(folder / "saved")
        connection = sqlite3.connect(folder / "saved")
        (own,) = [dict(connection.execute("SELECT name, value FROM fleet").fetchall())]
        found = [
            stores._unpacked(row) for row in connection.execute(f"SELECT {stores._LIST} FROM networks ORDER BY key")
        ]
        connection.close()
        self.blank = folder / "blank"
        (folder / "saved").rename(self.blank)
        rows_of_keys = [{"text": text, "figures": list(figures), **row_of(kept)} for text, figures, kept in found]
        network = np.frombuffer(own["network"], "<f8").copy()
        self.content = {"header": json.loads(own["header"]), "network": network, "rows": rows_of_keys[:1]}
        self.others = rows_of_keys[1:]

    def write(self, folder: Path, content: Content) -> Path:
        path = Path(shutil.copy(self.blank, folder / "fleet"))
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("DELETE FROM networks")
        for row in [*content["rows"], *self.others]:
            connection.execute(stores._PUT.format("networks"), packed(row))
        text, network = json.dumps(content["header"]).encode(), content["network"].tobytes()
        parts = {"header": text, "network": network, "checksum": zlib.crc32(network, zlib.crc32(text))}
        connection.executemany("INSERT OR REPLACE INTO fleet VALUES (?, ?)", parts.items())
        connection.commit()
        connection.close()
        return path

    def works(self, path: Path) -> None:
        stored = Path(shutil.copy(path, path.with_name("stored")))
        errors = []
        for place, options in ((path, {}), (stored, {"max_in_memory": 2})):
            try:
                self._works(place, options)
            except ModelFileError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def _works(self, path: Path, options: dict[str, Any]) -> None:
        fleet = DEVDANFleet.load(path, **options)
        try:
            rows = rows_for(fleet, self.rows)
            keys = [*self.keys, self.keys[0]] if len(self.keys) < N_ROWS else self.keys
            keys = (keys * N_ROWS)[:N_ROWS]
            new = [other_key(key) if place % 3 == 0 else key for place, key in enumerate(keys)]
            answer = answered(fleet, lambda: fleet.predict_proba(keys, rows))
            fleet.save(path.with_name("again"))
            again = DEVDANFleet.load(path.with_name("again"))
            again.n_jobs = 1
            check_same(answer, answered(again, lambda: again.predict_proba(keys, rows)))
            for one in (fleet, again):
                one.observe(keys, rows)
                one.partial_fit(new, rows, labels_for(one))
                one.teach(keys, rows, labels_for(one))
            check_same(
                answered(fleet, lambda: fleet.predict_proba(new, rows)),
                answered(again, lambda: again.predict_proba(new, rows)),
            )
            fleet.save() if options else fleet.save(path.with_name("later"))
            assert repr(fleet)
            fleet.summary()
            tell(fleet[keys[1]], rows)
            if fleet.prior:
                tell(fleet.prior_, rows)
        finally:
            fleet.close()
            for name in ("again", "later"):
                path.with_name(name).unlink(missing_ok=True)


def other_key(key: Any) -> Any:
    return f"{key}?" if isinstance(key, str) else key + 1000


class SparkSubject:
    """The state of a shard."""

    def __init__(self) -> None:
        from spark_events import plan  # noqa: PLC0415 (only where there is PySpark)

        from devdan.spark import segments, shard, statebytes  # noqa: PLC0415

        self.plan, self.shards, self.bytes, self.segments = plan(), shard, statebytes, segments
        keys, labels = (np.array([text[row % len(text)] for row in range(N_ROWS)], object) for text in ("ab", "012"))
        self.events = shard.SampleEvents(keys, np.arange(N_ROWS), np.ones(N_ROWS, np.bool_), labels)
        first = shard.Shard(self.plan)
        first.learn(self.events, X, N_ROWS)
        ((_, time, kept),) = statebytes.unpack_networks(first.networks({"a": 5}))
        header, words = first.header()
        self.content = {
            "header": header,
            "network": words,
            "rows": [row_of(kept) | {"time": time}],
            "n_header": 0,
        }

    def write(self, folder: Path, content: Content) -> Path:
        text = json.dumps(content["header"]).encode()
        shared = self.bytes._SHARED.pack(1, len(text) + content["n_header"]) + text + content["network"].tobytes()
        (folder / "shared").write_bytes(shared)
        (row,) = content["rows"]
        given = {name: [row[name]] for name in ("time", *_COUNTERS, "codes")}
        given |= {"key": ["a"], "state": [row["state"].tobytes()]}
        entries = pa.RecordBatch.from_pydict(given, schema=self.bytes.NETWORKS)
        (folder / "networks").write_bytes(self.segments.packed(entries))
        return folder

    def works(self, path: Path) -> None:
        answers = []
        for _ in range(2):
            one = self.shards.Shard(self.plan, *self.bytes.unpack_shared((path / "shared").read_bytes()))
            entries = self.segments.unpacked((path / "networks").read_bytes(), self.bytes.NETWORKS, "networks")
            one.check(entries)
            one.take(pa.Table.from_batches([entries]), 0)
            answer = one.learn(self.events, X, N_ROWS)
            shares = answer.probabilities(self.events.rows, self.events.is_new).to_pylist()
            for own in shares:
                if own is not None:
                    assert abs(sum(share for _, share in own) - 1) < 1e-6
            kept = one.networks({"a": 6, "b": 6})
            answers.append((answer.labels, answer.versions, shares, one.header(), kept.to_pylist()))
        assert repr(answers[0]) == repr(answers[1])


_COUNTERS = ("n_judged", "judged", "seen", "inputs", "settings")


def row_of(kept: Any) -> dict[str, Any]:
    """What is kept of a key, as a tree."""
    return {name: getattr(kept, name) for name in _COUNTERS} | {
        "codes": kept.codes.tolist(),
        "state": kept.state.copy(),
    }


def packed(row: dict[str, Any]) -> tuple[Any, ...]:
    """A row of a store with its checksum, as far as SQLite takes it."""
    words = tuple(row[name] for name in ("n_judged", "judged", "inputs", "settings"))
    figures = tuple(row["figures"]) if isinstance(row["figures"], list) else (row["figures"],) * len(stores.FIGURES)
    figures = (*figures[:-1], row["seen"]) if figures else figures
    codes, state = np.array(row["codes"], "<i8").tobytes(), row["state"].tobytes()
    return row["text"], *figures, *words, codes, state, stores._checksum(row["text"], figures, words, codes, state)


def plain(header: Any) -> Any:
    return json.loads(json.dumps(header, default=modelfile.plain))


def rows_for(model: Any, rows: Any) -> Any:
    """Rows with as many columns as the model has, by their names."""
    n, names, encoding = model.n_features_in_, getattr(model, "feature_names_in_", None), model.mixture_.encoding
    names = list(encoding.columns) if names is None and encoding is not None else names
    assert n < 1000
    if isinstance(rows, np.ndarray) and names is None:
        return np.abs(np.tile(rows, (1, -(-n // rows.shape[1])))[:, :n]) % 1
    frame = pd.DataFrame(rows)
    frame = frame.iloc[:, [place % frame.shape[1] for place in range(n)]]
    frame.columns = list(names) if names is not None else [str(place) for place in range(n)]
    return frame if names is not None else frame.select_dtypes("number").to_numpy()


def labels_for(model: Any) -> Any:
    known = model._classes.labels
    return np.resize(known, N_ROWS) if len(known) > 0 else Y


def answered(model: Any, predict: Callable[[], Any]) -> Any:
    """What is predicted, twice, with other words in fresh memory: it must not matter what was there."""
    if not hasattr(model, "classes_"):
        return None
    scratch, fleet_scratch = Mixture._scratch, Slots.new_scratch
    answers = []
    try:
        for word in (math.nan, 7.0):
            Mixture._scratch = lambda self, word=word: filled(scratch(self), word)
            Slots.new_scratch = lambda self, word=word: tuple(filled(part, word) for part in fleet_scratch(self))
            if hasattr(model, "_networks"):
                model._networks.slots.scratch = model._networks.slots.new_scratch()
            answers.append(predict())
    finally:
        Mixture._scratch, Slots.new_scratch = scratch, fleet_scratch
    check_same(*answers)
    assert np.isfinite(answers[0]).all(), answers[0]
    np.testing.assert_allclose(answers[0].sum(axis=1), 1, atol=1e-6)
    return answers[0]


def filled(words: Any, word: float) -> Any:
    words[...] = word
    return words


def check_same(one: Any, other: Any) -> None:
    np.testing.assert_array_equal(one, other)


# --- Trying ------------------------------------------------------------------------------------------------------


def subjects(folder: Path) -> dict[str, Callable[[], Any]]:
    """All of them, by name, made when they are needed."""

    def model(made: Any, rows: Any = X) -> Callable[[], Any]:
        return lambda: ModelSubject(made().partial_fit(rows, Y if rows is X else NAMES), rows)

    momentum = {"scaling": "minmax", "optimizer": "momentum", "scope": "adaptive", "rehearse": 0}

    def fleet(made: Callable[[], Any], keys: list[Any], rows: Any) -> Callable[[], Any]:
        return lambda: FleetSubject(made(), keys, rows, folder)

    def of_numbers() -> Any:
        return DEVDANFleet(random_state=0).partial_fit(list(range(4)) * 3, X, np.arange(N_ROWS) % 5)

    def of_tables(prior: bool) -> Any:
        one = DEVDANFleet(DEVDAN(rehearse=0), prior=prior, random_state=0)
        keys = ["a", "b", "c"]
        one.partial_fit(keys, TABLE.iloc[:3], NAMES[:3])
        one.partial_fit(["c"], TABLE.iloc[3:4].assign(town="Trier"), NAMES[3:4])
        one.estimator = DEVDAN(rehearse=0, learning_rate=0.02)
        return one.partial_fit(["b", "c"], TABLE.iloc[4:6].assign(odd="more"), NAMES[4:6])

    return {
        "model": model(lambda: DEVDAN(random_state=0)),
        "momentum": model(lambda: DEVDAN(random_state=0, **momentum)),
        "table": model(lambda: DEVDAN(random_state=0, class_weight="balanced", dates=["at"]), TABLE),
        "ensemble": model(lambda: DEVDANEnsemble(SMALL, random_state=0, n_jobs=1)),
        "fleet": fleet(of_numbers, list(range(4)), X),
        "fleet of tables": fleet(lambda: of_tables(False), ["a", "b", "c"], TABLE),
        "fleet with a prior": fleet(lambda: of_tables(True), ["a", "b", "c"], TABLE),
        "spark": SparkSubject,
    }


def case(cases: list[Case], number: int) -> Case:
    """The case of this number; beyond the single ones, two at once, drawn by the number."""
    if number < len(cases):
        return cases[number]
    first, second = np.random.default_rng(number).integers(len(cases), size=2).tolist()
    one, other = cases[first], cases[second]

    def change(content: Content) -> None:
        one.change(content)
        other.change(content)

    return Case(f"{one.name} AND {other.name}", change)


_UNSAID = (  # there is no file that says so
    TypeError, ValueError, KeyError, IndexError, OverflowError, AttributeError, MemoryError,
    struct.error, sqlite3.Error,
)  # fmt: skip


def attempt(subject: Any, one: Case, folder: Path) -> str:
    """What is wrong with what becomes of a case; nothing if all is well."""
    content = copy.deepcopy(subject.content)
    try:
        one.change(content)
        path = subject.write(folder, content)
    except _UNSAID:
        return ""
    try:
        subject.works(path)
    except ModelFileError as error:
        return "" if str(folder) in str(error) else f"the file is not named: {error}"
    except ValueError as error:
        if isinstance(subject, SparkSubject) and "the checkpoint" in str(error):
            return ""
        return "".join(traceback.format_exception(error)[-4:])
    except BaseException as error:
        return "".join(traceback.format_exception(error)[-4:])
    return ""


def main(names: str, place: str, *numbers: str) -> None:
    """Try the cases of these numbers of each subject, or all and as many pairs."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    n_wrong = 0
    for name in names.split(","):
        folder = Path(place) / name
        folder.mkdir(parents=True, exist_ok=True)
        subject = subjects(folder)[name]()
        cases = cases_of(subject.content)
        wanted = map(int, numbers) if numbers else range(2 * len(cases))
        if numbers and numbers[0].startswith("-"):  # so many, evenly drawn
            wanted = (
                np.random.default_rng(0)
                .choice(2 * len(cases), min(-int(numbers[0]), 2 * len(cases)), replace=False)
                .tolist()
            )
        for number in wanted:
            one = case(cases, number)
            print(f"{name} {number}: {one.name}".encode("ascii", "backslashreplace").decode(), flush=True)
            wrong = attempt(subject, one, folder)
            if wrong:
                n_wrong += 1
                print(
                    f"WRONG {name} {number}: {one.name}\n{wrong}".encode("ascii", "backslashreplace").decode(),
                    flush=True,
                )
    print(f"DONE {n_wrong} wrong", flush=True)
    sys.exit(n_wrong > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
