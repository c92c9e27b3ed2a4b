"""A fleet on disk: what was saved comes back bit for bit, whatever happened, and no file does harm."""

import errno
import itertools
import json
import os
import pickle
import shutil
import sqlite3
import zlib

import numpy as np
import pandas as pd
import pytest
from fleets import portions, rewritten, same, states
from fleetwork import LIMIT, N_ROWS, hold, portion, starve, work
from processes import context

from devdan import DEVDAN, DEVDANFleet, ModelFileError, kernel, open_model
from devdan.fleet import network_store as stores
from devdan.fleet.network_store import KeyStore, Store
from devdan.fleet.networks import Networks


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fleet.db"


def learned(n_portions=6, **options):
    fleet = DEVDANFleet(**{"random_state": 1, **options})
    for keys, X, y in portions(n_portions=n_portions, n_keys=30, most=60):
        fleet.partial_fit(keys, X, y)
    return fleet


# --- Larger than memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("limit", [1, 5, 20])
def test_networks_go_to_the_store_and_come_back_bit_for_bit(path, prior, limit):
    unlimited = DEVDANFleet(prior=prior, random_state=1)
    limited = DEVDANFleet(prior=prior, random_state=1, store=path, max_in_memory=limit)
    for t, (keys, X, y) in enumerate(portions(n_portions=12, n_keys=30, most=40)):
        if t > 0:
            np.testing.assert_array_equal(limited.predict_proba(keys, X), unlimited.predict_proba(keys, X))
        for fleet in (unlimited, limited):
            fleet.partial_fit(keys, X, y)
        assert len(limited._networks.slots) <= max(limit, len(set(keys.tolist())))
        if t == 5:
            limited.save()
        if t == 7:
            for fleet in (unlimited, limited):
                del fleet[int(keys[0])]
                fleet[1000] = fleet[int(keys[-1])] if keys[-1] != keys[0] else DEVDAN(rehearse=0).partial_fit(X, y)
    assert same(unlimited, limited)
    assert sorted(limited) == sorted(unlimited)
    assert all(key in limited for key in unlimited)
    assert 12345 not in limited


def test_those_not_used_for_longest_go_first(path):
    fleet = DEVDANFleet(store=path, max_in_memory=3, random_state=0)
    X = np.zeros((1, 2))
    for key in "abc":
        fleet.partial_fit([key], X, [0])
    fleet.predict(["a"], X)
    fleet.partial_fit(["d"], X, [1])
    assert sorted(fleet._networks.slots) == ["a", "c", "d"]
    fleet.predict(["b"], X)
    assert sorted(fleet._networks.slots) == ["a", "b", "d"]


def test_what_was_only_predicted_is_not_written_again(path, monkeypatch):
    fleet = learned(store=path, max_in_memory=2)
    fleet.save()
    written = []
    monkeypatch.setattr(stores, "_packed", lambda row, pack=stores._packed: written.append(row.text) or pack(row))
    for key in range(12):
        fleet.predict([key], np.zeros((1, 4)))
    assert written == []
    fleet.partial_fit([3], np.zeros((1, 4)), [0])
    for key in range(12):
        fleet.predict([key], np.zeros((1, 4)))
    assert written == ["3"]


def test_the_summary_has_the_keys_in_the_store_too(path):
    limited, unlimited = learned(store=path, max_in_memory=2), learned()
    assert same(limited, unlimited)
    limited.save()
    assert same(limited, unlimited)
    with sqlite3.connect(path.with_name("copy.db")) as copy:  # people may ask the file for figures
        limited.save(path.with_name("copy.db"))
        labels = dict(copy.execute("SELECT key, labels FROM networks"))
    copy.close()
    table = unlimited.summary()
    assert labels == dict(zip(map(str, table["key"].to_pylist()), table["labels"].to_pylist(), strict=True))


# --- Saving and loading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", [False, True])
@pytest.mark.parametrize("labels", [[3, 7, 9, 11], ["dry", "rain", "snow", "ü"], [False, True, True, False]], ids=str)
def test_a_loaded_fleet_continues_bit_for_bit(path, prior, labels):
    labels = np.array(labels)
    fleet = DEVDANFleet(DEVDAN(rehearse=0, masking=0.2, class_weight="balanced"), prior=prior, random_state=1)
    for keys, X, y in portions(n_keys=9, most=60):
        fleet.partial_fit(keys, X, labels[y], classes=labels)
    fleet.save(path)
    loaded, limited = DEVDANFleet.load(path), DEVDANFleet.load(path, max_in_memory=2)
    assert same(fleet, loaded)
    assert same(fleet, limited)
    assert loaded.get_params(deep=False)["random_state"] == 1
    assert loaded.estimator.masking == 0.2
    for keys, X, y in portions(seed=4, n_keys=15, most=60):
        for each in (fleet, loaded, limited):
            each.partial_fit(keys, X, labels[y])
    assert same(fleet, loaded)
    assert same(fleet, limited)


def test_tables_and_names_and_options_come_back(path):
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0], "colour": ["red", "blue", "red"]})
    fleet = DEVDANFleet(DEVDAN(rehearse=0, max_categories=8, class_weight={0: 2.0}), prior=False, random_state=3)
    fleet.partial_fit(["a", "b", "a"], table, [0, 1, 0]).partial_fit(["b"], table[:1].assign(colour="green"), [1])
    fleet.set_params(estimator__masking=0.4).observe(["a"], table[:1])
    fleet.save(path)
    loaded = DEVDANFleet.load(path)
    assert loaded.feature_names_in_.tolist() == ["x", "colour"]
    assert str(loaded.encoding_) == str(fleet.encoding_)
    assert loaded.estimator.get_params() == fleet.estimator.get_params()
    for each in (fleet, loaded):
        each.partial_fit(["b", "c"], table[:2].assign(colour="blue"), [1, 0])
    assert same(fleet, loaded)


@pytest.mark.parametrize("keys", [["a", "ü\ud800"], [1, -7], [1.5, 2], [True, False], [("a", 1), ("a", "1")]])
def test_keys_of_every_kind_come_back(path, keys):
    fleet = DEVDANFleet(random_state=0).partial_fit(keys, np.zeros((2, 2)), [0, 1])
    fleet.save(path)
    loaded = DEVDANFleet.load(path)
    assert list(loaded) == keys
    assert [type(key) for key in loaded] == [type(key) for key in keys]
    with pytest.raises(ValueError, match="must be of one kind"):
        loaded.partial_fit(["x"] if not isinstance(keys[0], str) else [1], np.zeros((1, 2)), [0])


def test_only_what_has_changed_is_written_again(path, tmp_path, monkeypatch):
    fleet = learned()
    written = []
    monkeypatch.setattr(stores, "_packed", lambda row, pack=stores._packed: written.append(row.text) or pack(row))

    def saved(to=path, which=fleet):
        written.clear()
        which.save(to)
        assert same(DEVDANFleet.load(to), which)
        return len(written)

    assert saved() == len(fleet)
    assert saved() == 0
    fleet.partial_fit([1, 2, 1], np.zeros((3, 4)), [0, 1, 0])
    assert saved() == 2
    del fleet[1]
    fleet[500] = fleet[2]
    assert saved() == 1
    assert saved(tmp_path / "other.db") == len(fleet)  # a file that has nothing yet
    assert saved() == len(fleet)  # it was last saved elsewhere
    assert saved() == 0
    loaded = DEVDANFleet.load(path)
    loaded.partial_fit([2], np.zeros((1, 4)), [0])
    assert saved(which=loaded) == 1
    assert saved() == len(fleet)  # somebody else has saved there
    limited = learned(store=tmp_path / "store.db", max_in_memory=3)
    assert saved(tmp_path / "copy.db", limited) == len(limited)


class Archive(KeyStore):
    """A store that has nothing yet, and is only read."""

    def __str__(self):
        return "the archive"

    def get(self, texts):
        return iter(())

    rows = figures = lambda self: iter(())
    count = lambda self: 0  # noqa: E731


def test_keys_of_a_store_that_is_only_read_cannot_be_deleted():
    fleet, untouched = learned(store=Archive()), learned()
    with pytest.raises(TypeError, match="only if its store takes changes, got the archive, which is only read"):
        del fleet[2]
    assert sorted(fleet) == sorted(untouched)
    assert same(fleet, untouched)


def test_a_save_that_fails_leaves_what_was_saved_and_the_fleet(path, monkeypatch):
    fleet = learned()
    fleet.save(path)
    before = learned()
    fleet.partial_fit([1, 2], np.zeros((2, 4)), [0, 1])
    rows = Networks.rows

    def broken(self, slots):
        yield from itertools.islice(rows(self, slots), 1)
        raise KeyboardInterrupt

    monkeypatch.setattr(Networks, "rows", broken)
    with pytest.raises(KeyboardInterrupt):
        fleet.save(path)
    monkeypatch.undo()
    assert same(DEVDANFleet.load(path), before)
    fleet.save(path)
    assert same(DEVDANFleet.load(path), fleet)
    assert sorted(file.name for file in path.parent.iterdir()) == ["fleet.db"]


def test_what_cannot_be_saved_or_loaded_is_said(path, tmp_path):
    with pytest.raises(ValueError, match="has not seen a sample"):
        DEVDANFleet().save(path)
    fleet = learned()
    with pytest.raises(ValueError, match="path must be given, as this fleet has no store"):
        fleet.save()
    with pytest.raises(FileNotFoundError, match="no such folder"):
        fleet.save(tmp_path / "nowhere" / "fleet.db")
    with pytest.raises(FileNotFoundError):
        DEVDANFleet.load(tmp_path / "nothing.db")
    with pytest.raises(IsADirectoryError):
        DEVDANFleet.load(tmp_path)
    with pytest.raises(ValueError, match="max_in_memory must be"):
        DEVDANFleet.load(path, max_in_memory=-1)
    assert list(tmp_path.iterdir()) == []


def test_a_fleet_with_a_store_is_not_copied_and_a_store_in_use_is_not_taken(path):
    fleet = learned(store=path, max_in_memory=5)
    with pytest.raises(TypeError, match="cannot be copied or pickled: save it to another file"):
        pickle.dumps(fleet)
    with pytest.raises(BlockingIOError, match="in use"):
        DEVDANFleet.load(path)
    with pytest.raises(BlockingIOError, match="in use"):
        learned().save(path)
    with pytest.raises(BlockingIOError, match="in use"):
        learned(store=path)
    fleet.save()
    fleet.close()
    with pytest.raises(FileExistsError, match=r"it holds a fleet: load it with DEVDANFleet.load"):
        learned(store=path)
    with pytest.raises(ValueError, match="was closed: load it again"):
        fleet.predict([0], np.zeros((1, 4)))
    assert same(open_model(path), learned())
    loaded = DEVDANFleet.load(path)
    assert same(loaded, learned())
    assert loaded.max_in_memory == 5


def test_a_store_that_another_process_has(path):
    has_it, go_on = context().Event(), context().Event()
    process = context().Process(target=hold, args=(path, has_it, go_on))
    process.start()
    has_it.wait()
    try:
        with pytest.raises(BlockingIOError, match="in use"):
            DEVDANFleet.load(path)
        with pytest.raises(BlockingIOError, match="in use"):
            learned(store=path)
        with pytest.raises(BlockingIOError, match="in use"):
            learned().save(path)
    finally:
        go_on.set()
        process.join()
    with pytest.raises(ModelFileError, match="none was ever saved to it"):
        DEVDANFleet.load(path)
    learned(store=path).save()  # nothing was saved there, so it is free


def test_a_file_that_cannot_be_written_to_can_be_loaded(path, monkeypatch):
    fleet = learned()
    fleet.save(path)
    monkeypatch.setattr(stores.os, "access", lambda *_: False)  # to root everything can be written
    connect = stores._connected
    monkeypatch.setattr(stores, "_connected", lambda path, mode: connect(path, mode.replace("rw", "ro")))
    assert same(DEVDANFleet.load(path), fleet)
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(PermissionError, match="cannot be written to"):
        fleet.partial_fit([1], np.zeros((1, 4)), [0]).save(path)
    with pytest.raises(PermissionError, match="cannot be written to"):
        DEVDANFleet.load(path, max_in_memory=2)


# --- Crashes -----------------------------------------------------------------------------------------------------


def expected(numbers, known={}):  # noqa: B006 (once for all tests)
    """The fleets that were saved after so many portions."""
    if not known:
        fleet = DEVDANFleet(random_state=5)
        for number in range(max(numbers) + 1):
            fleet.partial_fit(*portion(number))
            known[number + 1] = states(fleet)
    return known


def loaded_or_none(path):
    """The fleet in a file; None if nothing was ever saved there."""
    try:
        return DEVDANFleet.load(path)
    except ModelFileError as error:
        if "none was ever saved" in str(error) or os.path.getsize(path) == 0:
            return None
        raise


@pytest.mark.parametrize("in_sqlite", [False, True])
def test_kill_9_at_random_moments_loses_nothing_that_was_saved(path, in_sqlite):
    """Killed again and again while it learns, evicts and saves; each time it goes on from what the file has."""
    random = np.random.default_rng(0)
    after = expected(range(60))
    saved, kills, soon = 0, 0, 1.0
    while saved < 60 or kills <= 3:
        if saved == 60:  # it was too fast for them: once more, with earlier ones
            for file in path.parent.glob(f"{path.name}*"):
                file.unlink()
            saved, soon = 0, soon / 2
        steps = int(random.integers(1 + 1500 * soon)) if in_sqlite else None
        process = context().Process(target=work, args=(path, 60, steps))
        process.start()
        process.join(None if in_sqlite else random.uniform(0.0, 0.4 * soon))
        kills += process.exitcode != 0
        process.kill()
        process.join()
        if not path.exists():
            continue
        found = shutil.copy(path, path.with_name("found.db"))  # as it was left, with what SQLite has beside it
        for beside in ("-wal", "-journal"):
            if os.path.exists(f"{path}{beside}"):
                shutil.copy(f"{path}{beside}", f"{found}{beside}")
        fleet = loaded_or_none(found)
        if fleet is None:
            assert saved == 0
            continue
        n_learned = fleet.n_rows_ // N_ROWS
        assert n_learned >= saved
        assert n_learned % 3 == 0
        assert states(fleet) == after[n_learned]
        saved = n_learned
        fleet.close()


# --- A full disk -------------------------------------------------------------------------------------------------


def test_a_full_disk_while_networks_go_to_the_store(path):
    fleet, twin = learned(store=path, max_in_memory=10), learned()
    fleet.save()
    store = fleet.content().networks.store._connection
    (n_pages,) = store.execute("PRAGMA page_count").fetchone()
    store.execute(f"PRAGMA max_page_count = {n_pages}")
    rows = next(portions(seed=8, n_portions=1, n_keys=400, most=900))

    def learn_new_keys():
        for key in range(100, 400):
            fleet.partial_fit([key], rows[1][:1], rows[2][:1])
            twin.partial_fit([key], rows[1][:1], rows[2][:1])

    with pytest.raises(OSError, match="no space left") as raised:
        learn_new_keys()
    assert raised.value.errno == errno.ENOSPC
    assert same(fleet, twin)
    store.execute("PRAGMA max_page_count = 100000")
    for each in (fleet, twin):
        each.partial_fit(*rows)
    fleet.save()
    fleet.close()
    assert same(DEVDANFleet.load(path), twin)


def test_a_full_disk_while_a_fleet_is_saved(path, monkeypatch):
    fleet = learned()
    fleet.save(path)
    before = learned()
    connect = stores._connected

    def connected(*given):
        connection = connect(*given)
        (n_pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {n_pages}")
        return connection

    monkeypatch.setattr(stores, "_connected", connected)
    for keys, X, y in portions(seed=3, n_portions=4, n_keys=300, most=900):
        fleet.partial_fit(keys, X, y)
    with pytest.raises(OSError, match="no space left"):
        fleet.save(path)
    monkeypatch.undo()
    assert same(DEVDANFleet.load(path), before)
    fleet.save(path)
    assert same(DEVDANFleet.load(path), fleet)


def test_files_that_cannot_grow(path):
    work(path, 3)
    said = context().Queue()
    process = context().Process(target=starve, args=(path, 2 * path.stat().st_size, said))
    process.start()
    name, text = said.get()
    process.join()
    assert name == "OSError"
    assert "fleet.db" in text
    fleet = DEVDANFleet.load(path)
    n_learned = fleet.n_rows_ // N_ROWS
    assert n_learned >= 3
    again = DEVDANFleet(random_state=5)
    for number in range(n_learned):
        again.partial_fit(*portion(number))
    assert states(fleet) == states(again)


# --- Files that are no fleets ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "fleet.db"
    learned(n_portions=2).save(path)
    return path


def altered(saved, tmp_path, change):
    """A copy with a change: a function of the connection, or an SQL statement."""
    path = shutil.copy(saved, tmp_path / "altered.db")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(change) if isinstance(change, str) else change(connection)
    connection.close()
    return path


@pytest.mark.parametrize(
    "content", [b"text", b"", b"SQLite format 3\0", b"\x80pickle", b"\x89DEVDAN\n" + bytes(100), bytes(200)]
)
def test_other_files(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=r"is not a fleet|truncated"):
        DEVDANFleet.load(path)
    if content:
        with pytest.raises(ModelFileError, match=r"is not a fleet|truncated"):
            learned(n_portions=1).save(path)
        with pytest.raises(ModelFileError, match=r"is not a fleet|truncated"):
            learned(n_portions=1, store=path)
        assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("PRAGMA application_id = 5", "an SQLite file, but not a fleet"),
        ("PRAGMA user_version = 2", r"newer devdan \(format 2, this one reads 1\): upgrade"),
        ("PRAGMA user_version = 0", "format 0"),
        ("CREATE TRIGGER t AFTER DELETE ON changes BEGIN DELETE FROM networks; END", "other tables"),
        ("CREATE TABLE more (x)", "other tables"),
        ("DROP TABLE changes", "other tables"),
        ("ALTER TABLE networks ADD COLUMN more", "other tables"),
        ("DELETE FROM fleet", "holds no fleet"),
        ("DELETE FROM fleet WHERE name = 'network'", "no readable header"),
        ("UPDATE fleet SET value = 'x' WHERE name = 'header'", "no readable header"),
        ("UPDATE fleet SET value = x'00' WHERE name = 'network'", "no readable header"),
        ("UPDATE fleet SET value = 5 WHERE name = 'checksum'", "no readable header"),
        ("UPDATE networks SET checksum = 1", "row of the key '.*' is not whole"),
        ("UPDATE networks SET state = NULL", "is not whole"),
        ("UPDATE networks SET codes = 5", "is not whole"),
        ("UPDATE networks SET state = substr(state, 9)", "is not whole"),
        ("UPDATE networks SET last_seen = 'never'", "is not whole"),
        ("UPDATE networks SET judged = 'a'", "is not whole"),
    ],
)  # fmt: skip
def test_files_with_something_else_in_them(saved, tmp_path, change, message):
    path = altered(saved, tmp_path, change)
    for options in ({}, {"max_in_memory": 2}):
        with pytest.raises(ModelFileError, match=message):
            DEVDANFleet.load(path, **options).predict(list(range(30)), np.zeros((30, 4)))


def test_keys_are_not_mixed_up(saved, tmp_path):
    """Two rows that were exchanged are noticed, also if all of both was."""

    def exchange(connection):
        (a, b) = connection.execute("SELECT key FROM networks LIMIT 2").fetchall()
        connection.execute("UPDATE networks SET key = 'tmp' WHERE key = ?", a)
        connection.execute("UPDATE networks SET key = ? WHERE key = ?", (*a, *b))
        connection.execute("UPDATE networks SET key = ? WHERE key = 'tmp'", b)

    with pytest.raises(ModelFileError, match="is not whole"):
        DEVDANFleet.load(altered(saved, tmp_path, exchange))


@pytest.mark.parametrize("part", np.linspace(0, 1, 40, endpoint=False))
def test_a_truncated_file(saved, tmp_path, part):
    content = saved.read_bytes()
    path = tmp_path / "truncated.db"
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(ModelFileError, match=r"truncated|not a fleet|other tables"):
        DEVDANFleet.load(path)


def with_words(**values):
    def change(state):
        state = state.copy()
        for name, value in values.items():
            setattr(kernel.Network(state), name, value)
        return state

    return change


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": lambda state: state[:-1].copy()}, "length does not match"),
        ({"state": lambda state: state[:3].copy()}, "no header"),
        ({"state": with_words(n_hidden=500)}, "sizes are out of range"),
        ({"state": with_words(n_hidden=0)}, "sizes are out of range"),
        ({"state": with_words(n_features=3)}, "its inputs are not those of the fleet"),
        ({"state": with_words(encoder=np.nan)}, "not finite"),
        ({"state": with_words(masking=0.9)}, "its settings are not those of the fleet"),
        ({"state": with_words(n_named=9)}, "counters are out of range"),
        ({"codes": lambda codes: codes[:0]}, "other outputs than classes"),
        ({"codes": lambda codes: codes * 0 + 99}, "not distinct classes"),
        ({"codes": lambda codes: np.arange(100)}, "not distinct classes"),
        ({"inputs": lambda version: 5}, "an unknown version"),
        ({"settings": lambda version: 5}, "an unknown version"),
        ({"n_judged": lambda n: -1}, "counters are out of range"),
    ],
)
def test_networks_that_are_none(saved, tmp_path, changes, message):
    path = altered(saved, tmp_path, lambda connection: rewritten(connection, "3", **changes))
    for options in ({}, {"max_in_memory": 2}):
        with pytest.raises(ValueError, match=f"the key 3 is not valid: .*({message})"):
            DEVDANFleet.load(path, **options).predict([3, 4], np.zeros((2, 4)))


def with_header(change):
    """Another header, with a checksum that matches."""

    def rewrite(connection):
        found = dict(connection.execute("SELECT name, value FROM fleet").fetchall())
        header = json.loads(found["header"])
        change(header)
        text = json.dumps(header).encode()
        checksum = zlib.crc32(found["network"], zlib.crc32(text))
        connection.executemany("UPDATE fleet SET value = ? WHERE name = ?", [(text, "header"), (checksum, "checksum")])

    return rewrite


def test_a_fleet_with_another_prior_than_its_network(tmp_path):
    """New keys would have been given room for two of its forty classes."""
    many = DEVDANFleet(random_state=0).partial_fit(list(range(40)), np.eye(40), np.arange(40))
    many.save(tmp_path / "many.db")
    for prior in (False, "", 0, None):
        path = altered(
            tmp_path / "many.db", tmp_path, with_header(lambda it, prior=prior: it["options"].update(prior=prior))
        )
        for options in ({}, {"max_in_memory": 2}):
            with pytest.raises(ModelFileError, match=r"altered\.db .*prior"):
                DEVDANFleet.load(path, **options)


def test_a_fleet_whose_inputs_cannot_have_become_those_of_its_encoding(tmp_path):
    """A key of an earlier version would have been given features that no row has."""
    fleet = DEVDANFleet(random_state=0)
    fleet.partial_fit(["a"], [{"x": 1.0, "town": "Bonn"}], [0]).partial_fit(["b"], [{"x": 2.0, "town": "Ulm"}], [1])
    fleet.save(tmp_path / "towns.db")
    inputs = DEVDANFleet.load(tmp_path / "towns.db")._shared.inputs
    assert inputs == [(0, 1), (0, 1, 2)]
    for first in ([], [1, 0], [0, 2], [0, 0], [2, 0, 1]):
        change = with_header(lambda it, first=first: it["shared"]["inputs"].__setitem__(0, first))
        path = altered(tmp_path / "towns.db", tmp_path, change)
        for options in ({}, {"max_in_memory": 2}):
            with pytest.raises(ModelFileError, match=r"altered\.db .*a version of its inputs"):
                DEVDANFleet.load(path, **options)


def test_a_network_is_checked_as_what_it_will_be_with_the_options_of_now(tmp_path):
    """It counts as one of other options, which it is to get; with these, its statistics would be none."""
    fleet = DEVDANFleet(DEVDAN(rehearse=0), random_state=0).partial_fit([1, 2], np.eye(2), [0, 1])
    fleet.estimator = DEVDAN(rehearse=0, learning_rate=0.01)
    fleet.partial_fit([2, 3], np.eye(2), [0, 1]).save(tmp_path / "options.db")

    def change(state):
        return with_words(adaptive_rate=0.0, output_bias_moment=-1.0)(state)

    path = altered(tmp_path / "options.db", tmp_path, lambda connection: rewritten(connection, "1", state=change))
    for options in ({}, {"max_in_memory": 2}):
        with pytest.raises(ModelFileError, match=r"altered\.db .*the key 1 is not valid"):
            DEVDANFleet.load(path, **options).predict([1, 2], np.eye(2))


def test_rows_that_a_crash_has_left_count_for_nothing(saved, tmp_path):
    path = altered(saved, tmp_path, "INSERT INTO changes SELECT * FROM networks LIMIT 2")
    fleet = DEVDANFleet.load(path, max_in_memory=4)
    assert same(fleet, DEVDANFleet.load(saved))
    fleet.close()
    assert same(DEVDANFleet.load(path), DEVDANFleet.load(saved))


def test_a_store_opens_only_what_it_made(path):
    store = Store.create(path, exclusive=False)
    assert store.header() is None
    store.close()
    assert Store.open_or_create(path).header() is None
    assert len(portion(0)[0]) == N_ROWS > LIMIT
