"""Streams with histories: rows are predicted and learned with what was known when they came, exactly."""

import copy
import random

import numpy as np
import pytest
from payments_stream import payments
from served import limit, served_here, until, wait_until

from devdan import DEVDAN, Histories
from devdan.evaluation.loop import prequential
from devdan.model.modelfile import content_of
from devdan.service import entities, forgetting, ledger, models, sql
from devdan.service.engine import InitialModel
from devdan.service.fold import Fold, latest
from devdan.service.predictor import Predictor
from devdan.service.replay import found, replayed
from devdan.service.schema import (
    Assumption,
    InvalidError,
    LoggedCorrections,
    LoggedForgetting,
    LoggedLabels,
    LoggedRows,
    StreamSettings,
    Submission,
    SubmittedRow,
)
from devdan.service.store import SqliteDatabase
from devdan.streams import open_stream

pytestmark = [
    pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning"),
    pytest.mark.filterwarnings("ignore::devdan.encoding.encoding.EncodingWarning"),
]
HISTORY = ["customer", ["customer", "country"]]
COLUMNS = ["customer", "day", "amount", "country"]


class Log:
    """A stream, whose learner takes records when it is told to, and what several servers know of its entities."""

    def __init__(self, folder, n_servers=1, **settings):
        self.database = SqliteDatabase(folder / "log", "off")
        self.connection = self.database.connect()
        self.settings = StreamSettings(**{"history": HISTORY, "time": "day"} | settings)
        with self.connection.transaction():
            self.number = sql.create_stream(self.connection, "s", self.settings, 0.0).number
        self.ends = [{} for _ in range(n_servers)]
        self.fold = Fold.restored(self.connection, self.stream, None)
        self.predicted = {}  # by id: the version that predicted, and the prediction

    @property
    def stream(self):
        return sql.streams(self.connection)[self.number]

    def load(self, ends):
        """As the learner does."""
        fold, _ = latest(self.connection, self.stream)
        known = fold.histories or entities.new_histories(fold.settings, fold.model)
        end = ends[self.number] = entities.LogEnd(self.number, fold.settings, known, fold.columns, fold.seq)
        end.sync(self.connection)

    def commit(self, rows=(), labels=(), at=1.0, replaces=False, server=0, predicts=True):
        """Rows are pairs of ids and dicts."""
        ends = self.ends[server]
        if self.number not in ends:
            self.load(ends)
        predictor = Predictor(self.fold.model, self.fold.columns, self.fold.seq)
        submitted = [SubmittedRow(id_, row) for id_, row in rows]
        one = Submission(self.number, submitted, list(labels), None, replaces, predictor if predicts else None)
        (outcome,) = ledger.commit(self.connection, [one], at, ends=ends)
        if not outcome.unready:
            said = zip(rows, outcome.predictions, strict=bool(predicts and rows))
            self.predicted |= {row[0]: (self.fold.seq, own) for row, own in said}
        return outcome

    def learn(self, until=None):
        for record in self.records(self.fold.seq):
            if until is None or record.seq <= until:
                self.fold.apply(record)

    def snapshot(self):
        if self.fold.can_be_saved:
            sql.keep_snapshot(self.connection, self.number, self.fold.snapshot(0.0))

    def records(self, after=0):
        return self.connection.records(self.number, after, 10_000, 2**30)

    def close(self):
        self.database.close()


@pytest.fixture
def log(tmp_path):
    made = Log(tmp_path, n_servers=2)
    yield made
    made.close()


class Oracle:
    """The library's histories and model by hand, in the order of the log."""

    def __init__(self, log):
        self.log, self.histories, self.model = log, Histories(log.settings.entities, time="day"), DEVDAN(random_state=0)
        self.rows, self.labels = {}, {}
        self.told = {seq for seq, _ in log.predicted.values()}
        self.models = {}  # as they were when they predicted
        self.arrived = {}

    def follow(self):
        for record in self.log.records():
            self.take(record)
            if record.seq in self.told:
                self.models[record.seq] = copy.deepcopy(self.model)
        self.model.histories_ = self.histories
        return self

    def take(self, record):
        body = record.body
        if isinstance(body, LoggedRows):
            dicts = [dict(zip(self.log.fold.columns, values, strict=True)) for values in body.values]
            came = self.histories.arrive(dicts)
            self.histories.limit(self.log.settings.max_memory * 2**19)
            n = len(self.histories.feature_names_)
            logged = np.frombuffer(b"".join(body.histories)).reshape(-1, n)
            assert logged.tobytes() == came.numbers[:, -n:].tobytes()
            for place, id_ in enumerate(body.ids):
                row = came[place : place + 1]
                inputs = self.histories.inputs(row)
                self.rows[record.seq, place] = row, inputs, self.histories.arrived_[place]
                self.arrived[id_] = inputs
            self.model.observe(self.histories.inputs(came))
        elif isinstance(body, LoggedForgetting):
            row, inputs, arrived = self.rows[body.row]
            if body.row in self.labels:
                label, came = self.labels[body.row]
                self.histories.retract(row, [label], [came])
                self.model.forget(inputs, [label])
            self.histories.forget(row, [arrived])
            self.model.forget(inputs)
            self.model.forget_values(inputs, [COLUMNS[k] for k in body.columns if COLUMNS[k] != "customer"])
        elif isinstance(body, LoggedCorrections):
            for row, label, before in zip(body.rows, body.labels, body.before, strict=True):
                was, came = self.labels[row]
                assert was == before
                self.labels[row] = label, came
            rows = self.joined(body.rows, 0)
            self.histories.correct(rows, body.labels, body.before, [self.labels[row][1] for row in body.rows])
            self.model.forget(self.inputs(body.rows), body.before)
            self.model.teach(self.inputs(body.rows), body.labels)
        elif isinstance(body, LoggedLabels):
            self.histories.teach(self.joined(body.rows, 0), body.labels)
            self.labels |= {
                row: (label, self.histories.now_) for row, label in zip(body.rows, body.labels, strict=True)
            }
            self.model.teach(self.inputs(body.rows), body.labels)

    def inputs(self, rows):
        return self.joined(rows, 1)

    def joined(self, rows, which):
        found = [self.rows[row][which] for row in rows]
        values = [value for one in found for value in zip(*one.objects(), strict=True)]
        return models.table(list(found[0].names), values)


def write(log, seed, n=400, forgets=True):
    """Payments in portions, through one server or the other; labels that are early, late, corrected, and never come.

    Some payments are forgotten, some come twice, and some transactions fail.
    """
    source = random.Random(seed)
    rows, labels = payments(n, seed)
    ids = [f"p{k}" for k in range(n)]
    actual, known, k = dict(zip(ids, labels.tolist(), strict=True)), {}, 0
    while k < n:
        at, server, size = float(k), source.randint(0, 1), source.choice([1, 1, 2, 10, 30])
        some = list(zip(ids, rows, strict=True))[k : k + size]
        again = [(ids[j], rows[j]) for j in source.sample(range(k), min(k, 2)) if ids[j] in actual]
        k += size
        if source.random() < 0.1:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(ledger.Appender, "close", lambda self: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    log.commit(some, at=at, server=server)
        assert log.commit(some, at=at, server=server, predicts=source.random() < 0.9).rows == len(some)
        assert log.commit(again, at=at, server=server).repeated_rows == len(again)
        due = source.sample(ids[: k + 5], min(k, source.randint(0, 40)))  # some before their rows
        due = [id_ for id_ in due if id_ in actual and id_ not in known]
        known |= {id_: source.choice(["ok", "fraud"]) if source.random() < 0.1 else actual[id_] for id_ in due}
        log.commit(labels=[(id_, known[id_]) for id_ in due], at=at, server=source.randint(0, 1))
        wrong = source.sample(sorted(known), min(len(known), source.randint(0, 3)))
        known |= {id_: "ok" if known[id_] == "fraud" else "fraud" for id_ in wrong}
        log.commit(labels=[(id_, known[id_]) for id_ in wrong], at=at, replaces=True, server=server)
        for id_ in source.sample(ids[:k], source.randint(0, 1) if forgets else 0):
            if actual.pop(id_, None) is not None:
                known.pop(id_, None)
                forgetting.forget(log.connection, log.number, id_, at)
        if source.random() < 0.5:
            log.learn()
        if source.random() < 0.1:
            log.snapshot()
    log.learn()


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_model_have_the_histories_that_the_library_gives(log, seed):
    """Whichever server writes, with late, early, corrected and forgotten labels, and after failed transactions."""
    write(log, seed)
    oracle = Oracle(log).follow()
    assert log.fold.snapshot(0.0).model == content_of(oracle.model)
    assert log.fold.counts.n_unusable == 0
    n_compared = 0
    for id_, (seq, said) in log.predicted.items():
        if said.label is not None:
            expected = oracle.models[seq].predict_proba(oracle.arrived[id_])[0]
            if len(expected) > 1:
                np.testing.assert_allclose(said.probabilities, expected, rtol=1e-9)
                n_compared += 1
    assert n_compared > 100
    for ends in log.ends:
        if log.number in ends:
            ends[log.number].sync(log.connection)
            assert ends[log.number].histories.content().tobytes() == oracle.histories.content().tobytes()


def test_from_any_snapshot_on_it_is_the_same_bit_for_bit(log):
    write(log, 5, n=200)
    whole, records = log.fold.snapshot(0.0), log.records()
    for end in range(5, len(records), 9):
        part = Fold.restored(log.connection, log.stream, None)
        for record in records[:end]:
            part.apply(record)
        if part.can_be_saved:
            again = Fold.restored(log.connection, log.stream, part.snapshot(0.0))
            for record in records[end:]:
                again.apply(record)
            assert again.snapshot(0.0) == whole
    log.snapshot()
    assert replayed(log.connection, log.stream).same is True


def test_what_is_forgotten_is_erased_from_the_log_with_its_histories(log):
    write(log, 6, n=150)
    log.commit([("gone", {"customer": "MARKED", "day": 99.0, "amount": 77.0, "country": "k1"})], [], 200.0)
    log.commit(labels=[("gone", "fraud")], at=200.0)
    log.commit([("next", {"customer": "MARKED", "day": 99.5, "amount": 5.0, "country": "k1"})], [], 201.0)
    log.learn()
    n_entities = log.fold.histories.n_entities_
    for id_ in ("gone", "next"):
        forgetting.forget(log.connection, log.number, id_, 202.0)
    log.learn()
    assert log.fold.histories.n_entities_["customer"] == n_entities["customer"] - 1
    log.snapshot()
    forgetting.erase(log.connection, log.number)
    assert b"MARKED" not in b"".join(body for (body,) in log.connection.execute("SELECT body FROM records"))
    assert replayed(log.connection, log.stream).same is True
    behind = log.ends[0]  # it has not taken what was erased
    row = ("more", {"customer": "c1", "day": 100.0, "amount": 5.0, "country": "k1"})
    assert log.commit([row], at=203.0).unready
    assert behind == {}
    assert log.commit([row], at=203.0).rows == 1
    log.learn()
    log.snapshot()
    assert replayed(log.connection, log.stream).same is True


def test_labels_that_are_assumed_count_in_histories_until_they_are_corrected(tmp_path):
    log = Log(tmp_path, n_servers=2, assume=Assumption("ok", 30.0))
    write(log, 7, n=300, forgets=False)
    oracle = Oracle(log).follow()
    assert log.fold.counts.n_assumed > 50
    assert log.fold.snapshot(0.0).model == content_of(oracle.model)
    log.close()


def test_what_is_kept_no_longer_changes_nothing(tmp_path):
    """Compaction removes rows and labels; what is known of entities goes on from the snapshot."""
    whole, short = (Log(tmp_path / name, **settings) for name, settings in (("a", {}), ("b", {"keep": 1.0})))
    rows, labels = payments(300)
    for log in (whole, short):
        for k in range(0, 300, 10):
            some = [(f"p{j}", rows[j]) for j in range(k, k + 10)]
            log.commit(some, at=float(k), predicts=False)
            log.commit(labels=[(f"p{j}", str(labels[j])) for j in range(max(k - 20, 0), max(k - 10, 0))], at=float(k))
            log.learn()
            log.snapshot()
            if log is short and k > 100:
                sql.compact(log.connection, log.number, before=float(k) - 50, after=0)
                log.ends[0].clear()  # as after a restart
    n_records = [len(log.records()) for log in (whole, short)]
    assert n_records[1] < n_records[0] - 20
    assert short.fold.snapshot(0.0) == whole.fold.snapshot(0.0)
    assert replayed(short.connection, short.stream).same is True
    for log in (whole, short):
        log.close()


def test_more_entities_than_max_memory_has_room_for_are_evicted(tmp_path):
    log = Log(tmp_path, history=["customer"], max_memory=4, options={"rehearse": 0})
    row = {"day": 1.0, "amount": 5.0, "country": "k1"}
    for k in range(20):
        rows = [(f"{k}-{j}", {"customer": f"c{k}-{j}", **row}) for j in range(500)]
        log.commit(rows, at=float(k), predicts=False)
    log.learn()
    histories = log.fold.histories
    assert histories.n_evicted_["customer"] > 0
    assert histories.n_bytes_ < 2**21
    assert histories.n_entities_["customer"] > 500
    log.close()


# --- Over HTTP -------------------------------------------------------------------------------------------------------

STREAM = "/v1/streams/s"
SETTINGS = {"history": HISTORY, "time": "day"}


def predicted(http, *rows, columns=None):
    """The answer for rows, which are dicts with an id."""
    body = [{"id": row["id"], "features": {k: v for k, v in row.items() if k != "id"}} for row in rows]
    answer = http.post(f"{STREAM}/predict", json={"rows": body})
    answer.raise_for_status()
    return answer.json()["predictions"]


def labelled(http, labels, **more):
    pairs = [{"id": id_, "label": label} for id_, label in labels.items()]
    http.post(f"{STREAM}/labels", json={"labels": pairs, **more}).raise_for_status()


def learned(http):
    """Wait until the model is up to date with the log."""
    seq = http.application.engine.writer.run_job(lambda connection: sql.last_record(connection, 1)).result()
    return until(http, STREAM, lambda shown: shown["version"] == seq)


def test_the_service_answers_as_the_library_does_also_after_a_restart(tmp_path):
    """Each row is asked for alone: it has what the rows and labels before it told."""
    rows, labels = payments(160)
    model, histories = DEVDAN(random_state=0), Histories([*map(tuple, [["customer"], HISTORY[1]])], time="day")
    came, seen = [], []

    def serve(http, start, end):
        for k in range(start, end):
            (said,) = predicted(http, {"id": f"p{k}", **rows[k]})
            came.append(histories.arrive([rows[k]]))
            histories.limit(2**28)
            seen.append(inputs := histories.inputs(came[-1]))
            if k > 60:
                expected = dict(zip(map(str, model.classes_), model.predict_proba(inputs)[0].tolist(), strict=True))
                assert said["probabilities"] == pytest.approx(expected, rel=1e-9)
            model.observe(inputs)
            if k >= 20:
                labelled(http, {f"p{k - 20}": str(labels[k - 20])})
                histories.teach(came[k - 20], [str(labels[k - 20])])
                model.teach(seen[k - 20], [str(labels[k - 20])])
            if k >= 60:
                learned(http)

    with served_here(tmp_path / "data") as http:
        assert http.put(STREAM, json=SETTINGS).status_code == 201
        serve(http, 0, 110)
    with served_here(tmp_path / "data") as http:
        until(http, STREAM, lambda shown: shown["state"] == "ready")
        serve(http, 110, 150)
        shown = learned(http)
        assert shown["columns"] == COLUMNS
        assert shown["entities"] == histories.n_entities_
        assert http.put(STREAM, json=SETTINGS).status_code == 200
    with served_here(tmp_path / "data") as http:
        kept = until(http, STREAM, lambda shown: shown["state"] == "ready") and http.get(f"{STREAM}/model")
        model.histories_ = histories
        assert kept.content == content_of(model)


def test_a_row_that_comes_again_is_not_counted_again_and_one_that_contradicts_is_refused(tmp_path):
    rows, labels = payments(100)
    with served_here(tmp_path / "data") as http:
        http.put(STREAM, json=SETTINGS).raise_for_status()
        for k in range(0, 100, 10):
            predicted(http, *({"id": f"p{j}", **rows[j]} for j in range(k, k + 10)))
        labelled(http, {f"p{k}": str(label) for k, label in enumerate(labels)})
        row = {"id": "p1000", **rows[0], "day": 99.0}
        predicted(http, row)
        learned(http)
        assert predicted(http, row) == predicted(http, row)
        assert predicted(http, row, row) == 2 * predicted(http, row)
        other = {"rows": [{"id": "p1000", "features": {**rows[1], "day": 99.0}}]}
        answer = http.post(f"{STREAM}/predict", json=other)
        assert answer.status_code == 409
        assert len(answer.json()["predictions"]) == 1
        learned(http)
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    assert replayed(connection, found(connection, "s")[0]).fold.histories.n_rows_ == 101
    connection.close()


def test_single_rows_tables_samples_and_tensors_go_the_same_way(tmp_path):
    rows, labels = payments(40)
    with served_here(tmp_path / "data") as http:
        http.put(STREAM, json=SETTINGS).raise_for_status()
        samples = [{"id": f"p{k}", "features": rows[k], "label": str(labels[k])} for k in range(20)]
        assert http.post(f"{STREAM}/samples", json={"rows": samples}).json()["accepted"] == 20
        learned(http)
        tensors = [{"name": name, "shape": [1], "datatype": "BYTES", "data": [rows[20][name]]} for name in rows[20]]
        answer = http.post("/v2/models/s/infer", json={"id": "t", "inputs": tensors}).json()
        (again,) = predicted(http, {"id": "t", **rows[20]})
        assert answer["outputs"][1]["data"] == list(again["probabilities"].values())
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    bodies = [record.body for record in connection.records(1, 0, 1000) if isinstance(record.body, LoggedRows)]
    histories = Histories(StreamSettings(history=HISTORY).entities, time="day")
    for body in bodies:
        dicts = [dict(zip(COLUMNS, values, strict=True)) for values in body.values]
        came, n = histories.arrive(dicts), len(histories.feature_names_)
        assert b"".join(body.histories) == came.numbers[:, -n:].tobytes()
        if body is bodies[0]:
            histories.teach(came, labels[:20])
    assert sum(len(body.ids) for body in bodies) == 21
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()


def test_while_the_log_cannot_be_written_nothing_is_counted(tmp_path):
    rows, _ = payments(400)
    with served_here(tmp_path / "data", predict_unlogged=True) as http:
        http.put(STREAM, json=SETTINGS).raise_for_status()
        predicted(http, *({"id": f"p{k}", **rows[k]} for k in range(20)))
        limit(http, lambda pages: pages)
        body = {"rows": [{"features": row} for row in rows]}
        wait_until(lambda: http.post(f"{STREAM}/predict", json=body).status_code == 503)
        limit(http, lambda pages: 1_000_000)
        wait_until(lambda: http.post(f"{STREAM}/predict", json={"rows": body["rows"][:1]}).status_code == 200)
        learned(http)
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    histories = Histories(StreamSettings(history=HISTORY).entities, time="day")
    for record in connection.records(1, 0, 1000):
        if isinstance(record.body, LoggedRows):
            came = histories.arrive([dict(zip(COLUMNS, values, strict=True)) for values in record.body.values])
            n = len(histories.feature_names_)
            assert b"".join(record.body.histories) == came.numbers[:, -n:].tobytes()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()


def with_histories(n=300):
    """A model that has learned with histories, and its payments."""
    rows, labels = payments(n)
    model = DEVDAN(random_state=0)
    stream = open_stream(list(zip(rows, labels, strict=True)), chunk=50)
    for _ in prequential(stream, model, histories=Histories(["customer"], time="day")):
        pass
    return model


def test_a_model_with_histories_goes_on_and_asks_for_the_columns_of_the_table(tmp_path):
    with_histories().save(tmp_path / "s.devdan")
    model = DEVDAN.load(tmp_path / "s.devdan")
    row = {"customer": "c3", "day": 99.0, "amount": 60.0, "country": "k3"}
    with served_here(tmp_path / "data", model=InitialModel.of_file(tmp_path / "s.devdan", "s")) as http:
        shown = until(http, STREAM, lambda shown: shown["state"] == "ready")
        assert shown["columns"] == COLUMNS
        assert (shown["settings"]["history"], shown["settings"]["time"]) == (["customer"], "day")
        (said,) = predicted(http, {"id": "a", **row})
        inputs = model.histories_.inputs(model.histories_.arrive([row]))
        assert list(said["probabilities"].values()) == pytest.approx(model.predict_proba(inputs)[0].tolist(), rel=1e-9)
        labelled(http, {"a": "fraud"})
        learned(http)
    connection = SqliteDatabase(tmp_path / "data", lock=False).connect()
    assert replayed(connection, found(connection, "s")[0]).same is True
    connection.close()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"time": "day"}, "time is for history"),
        ({"history": []}, "history must be names of columns"),
        ({"history": ["a", "a"]}, "history must be named only once"),
        ({"history": [[]]}, "history must be names of columns"),
        ({"history": ["a"], "keyed": True}, "history must be left out with keyed"),
        ({"history": ["a"], "time": "a"}, "time must be another column"),
        ({"history": ["a"], "columns": ["b"]}, "history needs the column 'a'"),
        ({"history": ["a"], "options": {"scaling": None}}, "scaling must not be null with history"),
        ({"history": ["a"], "options": {"nominal": ["a"]}}, "nominal must not have 'a'"),
        ({"history": "a"}, "the body must be JSON"),
    ],
)
def test_settings_that_cannot_be_are_refused_with_a_sentence(shared, settings, says):
    answer = shared.put("/v1/streams/refused", json=settings)
    assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.text


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with served_here(tmp_path_factory.mktemp("shared") / "data") as opened:
        yield opened


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ({"customer": "a", "amount": 1.0}, "history needs the column 'day'"),
        ({"customer": "a", "day": "yesterday"}, "must hold times"),
        ({"customer": "a", "day": 1.0, "customer: since the last": 2.0}, "have histories already"),
    ],
)
def test_first_rows_that_cannot_have_histories_are_refused_and_leave_nothing(shared, features, says):
    shared.put("/v1/streams/first", json={"history": ["customer"], "time": "day"}).raise_for_status()
    answer = shared.post("/v1/streams/first/predict", json={"rows": [{"features": features}]})
    assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.text
    assert shared.get("/v1/streams/first").json()["columns"] is None
    row = {"features": {"customer": "a", "day": 1.0, "amount": 1.0}}
    shared.put("/v1/streams/good", json={"history": ["customer"], "time": "day"}).raise_for_status()
    assert shared.post("/v1/streams/good/predict", json={"rows": [row]}).status_code == 200


def test_a_model_whose_entities_take_too_much_memory_is_refused(tmp_path, monkeypatch):
    with_histories().save(tmp_path / "s.devdan")
    monkeypatch.setattr(Histories, "n_bytes_", 2**29)
    with pytest.raises(InvalidError, match="train it with a lower max_entities"):
        InitialModel.of_file(tmp_path / "s.devdan", "s")
