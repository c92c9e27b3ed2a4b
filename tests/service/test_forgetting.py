"""Forgetting samples: what the ledger, the model and the disk have of them afterwards, and that replaying agrees."""

import random
import struct

import pytest
from served import served_here, until

from devdan import DEVDAN, DEVDANFleet
from devdan.model.modelfile import content_of
from devdan.service import forgetting, ledger, sql
from devdan.service.fold import Fold
from devdan.service.replay import found, history, replayed
from devdan.service.schema import (
    EarlyLabels,
    LoggedCorrections,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    StreamSettings,
    Submission,
    SubmittedRow,
)
from devdan.service.store import SqliteDatabase
from devdan.streams import StreamError

CITIES = ("Bonn", "Köln", "Rome", None)


@pytest.fixture
def log(tmp_path):
    """An empty stream."""
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    yield connection, begun(connection)
    database.close()


def begun(connection, name="s", **settings):
    with connection.transaction():
        return sql.create_stream(connection, name, StreamSettings(**settings), 0.0).number


def features(source, name):
    return {"x": source.random(), "city": source.choice(CITIES), "name": name}


def commit(connection, number, *rows, at=1.0, labels=(), replaces=False):
    return ledger.commit(connection, [Submission(number, list(rows), list(labels), None, replaces)], at)[0]


def folded(connection, number, fold=None, until=None):
    fold = fold or Fold.restored(connection, sql.streams(connection)[number], None)
    for record in connection.records(number, fold.seq, 10_000):
        if until is None or record.seq <= until:
            fold.apply(record)
    return fold


def test_an_id_that_is_forgotten_is_as_if_it_had_never_come(log):
    connection, number = log
    row = SubmittedRow("a", {"x": 1.0})
    for state, steps in {
        "waiting": [{"rows": [row]}],
        "labelled": [{"rows": [row]}, {"labels": [("a", "yes")]}],
        "corrected": [{"rows": [row]}, {"labels": [("a", "no")]}, {"labels": [("a", "yes")], "replaces": True}],
        "early": [{"labels": [("a", "yes")]}],
        "early and replaced": [{"labels": [("a", "no")]}, {"labels": [("a", "yes")], "replaces": True}],
        "complete": [{"labels": [("a", "yes")]}, {"rows": [row]}],
    }.items():
        before = sql.streams(connection)[number]
        for step in steps:
            commit(connection, number, *step.get("rows", ()), labels=step.get("labels", ()),
                   replaces=step.get("replaces", False))  # fmt: skip
        assert forgetting.forget(connection, number, "b", 2.0) is None, state
        seq = forgetting.forget(connection, number, "a", 2.0)
        assert seq == sql.last_record(connection, number), state
        assert forgetting.forget(connection, number, "a", 2.0) is None, state
        after = sql.streams(connection)[number]
        assert (after.n_waiting, after.n_early) == (before.n_waiting, before.n_early), state
        assert connection.execute("SELECT * FROM waiting WHERE open <= 0") == []
        assert sql.known_ids(connection, number, ["a"]) == {}, state
        other = SubmittedRow("a", {"x": 2.0})
        assert commit(connection, number, other).rows == 1, state  # not a contradiction
        assert forgetting.forget(connection, number, "a", 2.0) is not None


def test_a_row_that_has_expired_can_be_forgotten_and_is_counted_once(log):
    connection, _ = log
    number = begun(connection, "short", wait=5.0)
    commit(connection, number, SubmittedRow("a", {"x": 1.0}), SubmittedRow("b", {"x": 2.0}))
    ledger.expire(connection, number, 100.0)
    forgetting.forget(connection, number, "a", 101.0)
    counts = folded(connection, number).counts
    assert (counts.n_waiting, counts.n_expired_rows, counts.n_forgotten, counts.n_forgotten_waiting) == (0, 2, 1, 0)
    assert sql.streams(connection)[number].n_waiting == 0


@pytest.fixture
def history_of_people(log):
    """Rows of people, labelled late, corrected, and some of them forgotten; with who is there in the end."""
    connection, number = log
    source, there, forgotten = random.Random(1), {}, []
    for step in range(40):
        ids = [f"p{step}-{k}" for k in range(source.randint(1, 12))]
        rows = [SubmittedRow(id_, features(source, f"name of {id_}"), predicted="small") for id_ in ids]
        commit(connection, number, *rows, at=float(step))
        there |= {row.id: [row.features, None] for row in rows}
        for replaces in (False, True):
            some = [id_ for id_ in source.sample(sorted(there), len(there) // 5) if replaces == bool(there[id_][1])]
            labels = {id_: source.choice(["big", "small"]) for id_ in some}
            commit(connection, number, labels=labels.items(), at=float(step), replaces=replaces)
            for id_, label in labels.items():
                there[id_][1] = label
        for id_ in source.sample(sorted(there), min(len(there), source.randint(0, 2))):
            forgotten.append((forgetting.forget(connection, number, id_, float(step)), id_, *there.pop(id_)))
    return connection, number, there, forgotten


def test_it_is_what_forget_gives_and_the_values_of_no_other_row_go(history_of_people):
    """The oracle: the model by hand."""
    connection, number, _, forgotten = history_of_people
    model, rows = DEVDAN(random_state=0), {}
    columns = ["x", "city", "name"]
    told = {seq: (row, label) for seq, _, row, label in forgotten}
    for record in connection.records(number, 0, 10_000):
        body = record.body
        if isinstance(body, LoggedRows):
            dicts = [dict(zip(columns, values, strict=True)) for values in body.values]
            rows |= {(record.seq, place): row for place, row in enumerate(dicts)}
            model.observe(dicts)
        elif isinstance(body, LoggedForgetting):
            row, label = told[record.seq]
            assert rows.pop(body.row) == row
            alone = {c: row[c] for c in columns if all(other[c] != row[c] for other in rows.values())}
            if label is not None:
                model.forget([row], [label])
            model.forget([row])
            model.forget_values([row], [name for name in ("city", "name") if alone.get(name)])
        elif isinstance(body, (LoggedLabels, LoggedCorrections)):
            those = [rows[one] for one in body.rows]
            if isinstance(body, LoggedCorrections):
                model.forget(those, body.before)
            model.teach(those, body.labels)
    fold = folded(connection, number)
    assert fold.counts.n_unusable == 0
    assert fold.counts.n_forgotten == len(forgotten) > 20
    assert fold.snapshot(0.0).model == content_of(model)


def test_from_any_snapshot_on_before_and_after_erasing_it_is_the_same_bit_for_bit(history_of_people):
    connection, number, there, forgotten = history_of_people
    stream, whole = sql.streams(connection)[number], folded(connection, number).snapshot(0.0)
    last = sql.last_record(connection, number)
    for seq in range(0, last, 31):
        part = folded(connection, number, until=seq)
        again = Fold.restored(connection, stream, part.snapshot(0.0))
        assert folded(connection, number, again).snapshot(0.0) == whole
    for seq in range(last // 3, last + 1, last // 3):
        latest = folded(connection, number, Fold.restored(connection, stream, sql.snapshot(connection, number, "base")),
                        until=seq).snapshot(0.0)  # fmt: skip
        sql.keep_snapshot(connection, number, latest)
        forgetting.erase(connection, number)
        assert forgetting.n_pending(connection, number) == sum(one[0] > seq for one in forgotten)
        again = replayed(connection, stream)
        assert again.same is True
        assert again.fold.snapshot(0.0) == whole
        forgetting.erase(connection, number)  # once more, in vain
    assert forgetting.n_pending(connection, number) == 0
    ids = [id_ for one in connection.records(number, 0, 10_000) for id_ in getattr(one.body, "ids", ())]
    assert sorted(set(ids) - {forgetting.ERASED}) == sorted(there)
    samples, labels = history(connection, stream, 10)
    assert sum(len(y) for _, y in samples) == len(there)
    assert (labels.late >= 0).sum() == sum(label is not None for _, label in there.values())
    with pytest.raises(StreamError, match="can be replayed from"):
        replayed(connection, stream, until=-1.0)


def test_labels_of_rows_beside_it_are_learned_after_it_was_erased(log):
    connection, number = log
    commit(connection, number, *(SubmittedRow(f"r{k}", {"x": float(k)}) for k in range(10)))
    forgetting.forget(connection, number, "r3", 2.0)
    sql.keep_snapshot(connection, number, folded(connection, number).snapshot(0.0))
    forgetting.erase(connection, number)
    outcome = commit(connection, number, at=3.0, labels=[(f"r{k}", k > 4) for k in range(10)])
    assert (outcome.accepted, outcome.waiting) == (9, 1)
    fold = replayed(connection, sql.streams(connection)[number]).fold
    assert fold.counts.n_labels == 9
    model = DEVDAN(random_state=0).observe([{"x": float(k)} for k in range(10)])
    model.forget([{"x": 3.0}])
    there = [k for k in range(10) if k != 3]
    model.teach([{"x": float(k)} for k in there], [k > 4 for k in there])
    assert fold.snapshot(0.0).model == content_of(model)


def test_compacting_leaves_what_the_model_has_yet_to_forget(log):
    connection, _ = log
    number = begun(connection, "kept", keep=0)
    commit(connection, number, SubmittedRow("a", {"x": 1.0}), labels=[("a", "yes")])
    commit(connection, number, SubmittedRow("b", {"x": 2.0}), labels=[("b", "no")])
    covered = folded(connection, number)
    sql.keep_snapshot(connection, number, covered.snapshot(1.0))
    seq = forgetting.forget(connection, number, "a", 2.0)
    assert sql.compact(connection, number, before=9.0, after=0) is None
    ids = [id_ for one in connection.records(number, 0, 99) for id_ in getattr(one.body, "ids", ())]
    assert ids == ["a"]
    fold = replayed(connection, sql.streams(connection)[number]).fold
    assert (fold.seq, fold.counts.n_forgotten) == (seq, 1)
    sql.keep_snapshot(connection, number, fold.snapshot(3.0))
    forgetting.erase(connection, number)
    assert sql.compact(connection, number, before=9.0, after=0) is None
    assert connection.records(number, 0, 99) == []


def test_a_text_stays_known_as_long_as_another_row_has_it(log):
    """In the same record or another one, and among rows that are forgotten one after the other, until the last."""
    connection, number = log
    one, other = {"name": "Ann", "x": 1.0}, {"name": "Bob", "x": 2.0}
    commit(connection, number, SubmittedRow("a1", one), SubmittedRow("a2", one), SubmittedRow("b1", other))
    commit(connection, number, SubmittedRow("a3", one), SubmittedRow("c1", {"name": "Anna", "x": 3.0}))
    for id_, knows in (("a1", True), ("a3", True), ("a2", False)):
        forgetting.forget(connection, number, id_, 2.0)
        names = folded(connection, number).model.encoding_.input_names
        assert ("name=Ann" in names, "name=Anna" in names) == (knows, True), id_
    sql.keep_snapshot(connection, number, folded(connection, number).snapshot(0.0))
    forgetting.erase(connection, number)
    commit(connection, number, SubmittedRow("a4", one))
    fold = replayed(connection, sql.streams(connection)[number]).fold
    assert fold.model.encoding_.input_names == ["x", "name=Bob", "name=Anna", "name=Ann"]


def test_a_search_beforehand_finds_what_one_at_the_end_finds(history_of_people, monkeypatch):
    """Whatever comes in between, however few records are looked at at a time."""
    connection, number, there, _ = history_of_people
    monkeypatch.setattr(forgetting, "_PART", 3)
    monkeypatch.setattr(forgetting, "_VALUES", 1)
    source = random.Random(5)
    for id_ in source.sample(sorted(there), 20):
        searched = forgetting.search(connection, number, id_)
        row = there[id_][0]
        commit(connection, number, SubmittedRow(f"since {id_}", {"x": 0.5, "city": row["city"], "name": "other"}))
        expected = forgetting.forget(connection, number, id_, 50.0, searched)
        found = connection.record(number, expected).body.columns
        assert found == [2], "its name is its own, its city is not"
    for id_ in source.sample(sorted(there), 20):
        if id_ not in sql.known_ids(connection, number, [id_]):
            continue
        searched = forgetting.search(connection, number, id_)
        commit(connection, number, SubmittedRow(f"again {id_}", there[id_][0]))
        seq = forgetting.forget(connection, number, id_, 60.0, searched)
        assert connection.record(number, seq).body.columns == []


def test_a_search_is_repeated_if_another_sample_was_forgotten_since(log):
    """Else each of two would leave their text to the other one."""
    connection, number = log
    for id_ in ("a", "b", "c"):
        commit(connection, number, SubmittedRow(id_, {"name": "Ann" if id_ < "c" else "Bob", "x": 1.0}))
    searched = {id_: forgetting.search(connection, number, id_) for id_ in ("a", "b")}
    assert [one.columns for one in searched.values()] == [[], []]
    forgetting.forget(connection, number, "a", 2.0, searched["a"])
    sql.keep_snapshot(connection, number, folded(connection, number).snapshot(0.0))
    for _ in range(2):  # also once it is erased
        with pytest.raises(forgetting.ChangedError):
            forgetting.forget(connection, number, "b", 2.0, searched["b"])
        forgetting.erase(connection, number)
    forgetting.forget(connection, number, "b", 2.0, forgetting.search(connection, number, "b"))
    assert "name=Ann" not in folded(connection, number).model.encoding_.input_names


def test_numbers_that_are_categories_are_forgotten_too(log):
    connection, _ = log
    number = begun(connection, "codes", options={"nominal": ["code"]})
    commit(connection, number, SubmittedRow("a", {"code": 4711.0}), SubmittedRow("b", {"code": 1.0}))
    forgetting.forget(connection, number, "a", 2.0)
    assert folded(connection, number).model.encoding_.input_names == ["code=1"]


def test_the_networks_of_keys_forget_labels_and_texts(log):
    connection, _ = log
    number = begun(connection, "keyed", keyed=True)
    rows = [SubmittedRow(f"r{k}", {"x": float(k), "name": f"n{k}"}, f"k{k % 2}") for k in range(6)]
    commit(connection, number, *rows, labels=[(f"r{k}", k > 2) for k in range(6)])
    forgetting.forget(connection, number, "r5", 2.0)
    fold = folded(connection, number)
    names, dicts = [f"k{k % 2}" for k in range(6)], [row.features for row in rows]
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=0), n_jobs=1, random_state=0)
    fleet.observe(names, dicts).teach(names, dicts, [k > 2 for k in range(6)])
    fleet.forget(["k1"], dicts[5:], [True]).forget_values(dicts[5:], ["name"])
    assert "name=n5" not in fold.model.encoding_.input_names
    assert set(fold.model) == set(fleet)
    assert all(content_of(fold.model[key]) == content_of(fleet[key]) for key in fleet)
    sql.keep_snapshot(connection, number, fold.snapshot(0.0))
    forgetting.erase(connection, number)
    commit(connection, number, SubmittedRow("again", dicts[5], "k1"), labels=[("again", True)], at=3.0)
    assert replayed(connection, sql.streams(connection)[number]).fold.counts.n_unusable == 0


def test_only_what_is_forgotten_is_erased(log):
    connection, number = log
    commit(connection, number, labels=[("a", "no"), ("b", "no")])
    commit(connection, number, labels=[("a", "yes")], replaces=True)
    rows = [SubmittedRow(id_, {"x": 1.0}, predicted="no", confidence=0.9) for id_ in "abc"]
    commit(connection, number, *rows)
    commit(connection, number, labels=[("a", "no"), ("b", "yes"), ("c", "yes")], replaces=True)
    forgetting.forget(connection, number, "a", 2.0)
    sql.keep_snapshot(connection, number, folded(connection, number).snapshot(0.0))
    forgetting.erase(connection, number)
    bodies = [one.body for one in connection.records(number, 0, 99)]
    assert [body.ids for body in bodies if isinstance(body, EarlyLabels)] == [["b"], []]
    (body,) = (body for body in bodies if isinstance(body, LoggedRows))
    assert (body.ids, body.values) == (["", "b", "c"], [[None], [1.0], [1.0]])
    assert (body.predicted, body.confidence) == ([None, "no", "no"], [None, 0.9, 0.9])
    taught = [(body.labels, body.rows) for body in bodies if isinstance(body, (LoggedLabels, LoggedCorrections))]
    assert [labels for labels, _ in taught] == [["no"], ["yes"], ["yes"]]
    assert not {place for _, places in taught for _, place in places} & {0}


# --- On the disk -----------------------------------------------------------------------------------------------------


NUMBER = 0.43219876543217


def traces(folder, *marks):
    """Where something is in the files of a folder: texts as they are, numbers as bytes in either order or as text."""
    needles = []
    for mark in marks:
        if isinstance(mark, str):
            needles.append(mark.encode())
        else:
            needles += [struct.pack(">d", mark), struct.pack("<d", mark), repr(mark).encode()]
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return [(path.name, needle) for path, content in files.items() for needle in needles if needle in content]


@pytest.mark.parametrize("keep", [None, 0])
def test_nothing_is_left_of_it_in_any_file_of_the_folder(tmp_path, keep):
    """While the server is at work, with the WAL; nor after it has ended."""
    data, source = tmp_path / "data", random.Random(3)
    people = [f"MARKED-{k}" for k in range(12)]
    with served_here(data, snapshots=0.05) as http:
        http.put("/v1/streams/s", json={} if keep is None else {"keep": keep}).raise_for_status()

        def send(first, n):
            rows = [{"id": f"r{k}", "features": features(source, f"n{k % 9}")} for k in range(first, first + n)]
            http.post("/v1/streams/s/predict", json={"rows": rows}).raise_for_status()
            labels = [{"id": f"r{k}", "label": source.choice("ab")} for k in range(first, first + n, 2)]
            http.post("/v1/streams/s/labels", json={"labels": labels}).raise_for_status()

        for k, person in enumerate(people):
            send(100 * k, 100)
            row = {"id": f"id of {person}", "features": {"x": NUMBER, "city": "Bonn", "name": f"name of {person}"}}
            http.post("/v1/streams/s/predict", json={"rows": [row]}).raise_for_status()
            for label in "ab"[: 0 if keep == 0 else k % 3]:  # else it may be removed before it is forgotten
                body = {"labels": [{"id": row["id"], "label": label}], "replaces": True}
                http.post("/v1/streams/s/labels", json=body).raise_for_status()
        early = {"labels": [{"id": "id of MARKED early", "label": "a"}]}
        http.post("/v1/streams/s/labels", json=early).raise_for_status()
        last = http.application.engine.streams["s"]
        until(http, "/v1/streams/s", lambda shown: shown["rows"] == 1212 and shown["labels"] >= 600)
        assert len({needle for _, needle in traces(data, "MARKED", NUMBER)}) > 1
        for person in [*people, None]:
            id_ = "id of MARKED early" if person is None else f"id of {person}"
            answer = http.delete(f"/v1/streams/s/samples/{id_}").json()
            assert answer["id"] == id_
            assert http.get(f"/v1/streams/s/samples/{id_}").status_code == 404
            assert http.delete(f"/v1/streams/s/samples/{id_}").status_code == 404
        send(5000, 100)
        until(http, "/v1/streams/s", lambda shown: shown["version"] >= answer["version"] and not shown["erasing"])
        assert traces(data, "MARKED", NUMBER) == []
        assert "MARKED" not in http.get("/").text
        assert "MARKED" not in repr(last.view.counts)
        assert "MARKED" not in repr(last.predictor.model.encoding_.input_names)
        assert http.get("/v1/streams/s").json()["forgotten"] == len(people)
    assert traces(data, "MARKED", NUMBER) == []
    connection = SqliteDatabase(data, lock=False).connect()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()
