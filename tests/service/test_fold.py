"""The model as a function of the log: the same bits from the beginning, from any snapshot, and after compacting."""

import random
import tracemalloc

import msgspec
import numpy as np
import pytest
from changing import changing_frauds
from served import served_here, until

from devdan import DEVDAN, DEVDANFleet
from devdan.evaluation.loop import prequential
from devdan.kernel import LOG_TEMPERATURE, Network
from devdan.model.modelfile import content_of
from devdan.service import figures, ledger, models, sql
from devdan.service.figures import MOST_SPANS, Counts
from devdan.service.fold import Fold
from devdan.service.live import charts
from devdan.service.predictor import Predictor
from devdan.service.replay import found, history, records, replayed
from devdan.service.row_cache import GapError
from devdan.service.schema import (
    Assumption,
    LoggedColumns,
    LoggedCorrections,
    LoggedLabels,
    LoggedRows,
    LogRecord,
    StreamSettings,
    Submission,
    SubmittedRow,
)
from devdan.service.store import SqliteDatabase

DECIDE = {"big": "f1", "small": {"budget": 0.3, "over": 200}}  # its thresholds are part of the model
CITIES = ("Bonn", "Köln", "Rome", None)


def features(source):
    return {"x": source.random(), "y": source.gauss(0, 1), "city": source.choice(CITIES)}


def label_of(row):
    return "big" if row["x"] > 0.5 else "small"


@pytest.fixture
def log(tmp_path):
    """A stream of 600 rows in commits of different sizes, whose labels come late, out of order and not always.

    Some are corrected, some of these more than once.
    """
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        settings = StreamSettings(options={"random_state": 3, "decide": DECIDE})
        number = sql.create_stream(connection, "s", settings, 0.0).number
    source, waiting, known, k = random.Random(1), [], {}, 0
    while k < 600:
        some = [features(source) for _ in range(source.randint(1, 30))]
        rows = [SubmittedRow(f"r{k + j}", row, predicted="big", confidence=0.75) for j, row in enumerate(some)]
        waiting += [(row.id, label_of(row.features)) for row in rows]
        k += len(rows)
        source.shuffle(waiting)
        due, waiting = waiting[::2], waiting[1::2]
        submissions = [Submission(number, rows), Submission(number, labels=due)]
        ledger.commit(connection, submissions, float(k))
        known |= due
        wrong = source.sample(sorted(known), min(len(known), source.randint(0, 4)))
        known |= {id_: "small" if known[id_] == "big" else "big" for id_ in wrong}
        corrections = Submission(number, labels=[(id_, known[id_]) for id_ in wrong], replaces=True)
        assert ledger.commit(connection, [corrections], float(k))[0].corrected == len(wrong)
    yield connection, number
    database.close()


def folded(connection, number, fold=None, until=None):
    stream = sql.streams(connection)[number]
    fold = fold or Fold.restored(connection, stream, None)
    for record in connection.records(number, fold.seq, 10_000):
        if until is None or record.seq <= until:
            fold.apply(record)
    return fold


def test_it_is_what_observe_and_teach_in_the_same_portions_give(log):
    """The oracle: the model by hand, portion by portion."""
    connection, number = log
    model, rows = DEVDAN(random_state=3, decide=DECIDE), {}
    for record in connection.records(number, 0, 10_000):
        body = record.body
        if isinstance(body, LoggedRows):
            dicts = [dict(zip(["x", "y", "city"], values, strict=True)) for values in body.values]
            rows |= {(record.seq, place): row for place, row in enumerate(dicts)}
            model.observe(dicts)
        elif hasattr(body, "rows"):
            those = [rows[one] for one in body.rows]
            if isinstance(body, LoggedCorrections):
                model.forget(those, body.before)
            model.teach(those, body.labels)
    fold = folded(connection, number)
    assert fold.snapshot(0.0).model == content_of(model)
    assert fold.counts.n_unusable == 0


def test_from_any_snapshot_on_it_is_the_same_bit_for_bit(log):
    connection, number = log
    stream = sql.streams(connection)[number]
    whole = folded(connection, number).snapshot(0.0)
    last = connection.records(number, 0, 10_000)[-1].seq
    for seq in range(0, last, 7):
        part = folded(connection, number, until=seq)
        again = Fold.restored(connection, stream, part.snapshot(0.0))
        assert folded(connection, number, again).snapshot(0.0) == whole


@pytest.mark.filterwarnings("ignore:the column")
def test_a_column_that_changes_its_kind_does_so_from_any_snapshot_on(tmp_path):
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        number = sql.create_stream(connection, "s", StreamSettings(options={"random_state": 3}), 0.0).number
    for k in range(0, 2600, 100):
        some = [{"amount": "unknown" if j < 1100 else f"{j % 97},5", "x": j % 89 / 89} for j in range(k, k + 100)]
        rows = [SubmittedRow(f"r{k + j}", row, predicted="big", confidence=0.75) for j, row in enumerate(some)]
        labels = [(row.id, label_of(row.features)) for row in rows]
        ledger.commit(connection, [Submission(number, rows), Submission(number, labels=labels)], float(k))
    stream, kinds = sql.streams(connection)[number], []
    whole = folded(connection, number).snapshot(0.0)
    last = connection.records(number, 0, 10_000)[-1].seq
    for seq in (last // 5, last // 2, last * 3 // 4):
        part = folded(connection, number, until=seq)
        kinds.append(part.model.encoding_.columns["amount"].kind)
        again = Fold.restored(connection, stream, part.snapshot(0.0))
        assert folded(connection, number, again).snapshot(0.0) == whole
    assert kinds == ["nominal", "nominal", "number"]
    sql.keep_snapshot(connection, number, whole)
    rebuilt = replayed(connection, stream)
    assert rebuilt.same is True
    assert rebuilt.fold.model.encoding_.columns["amount"].kind == "number"
    database.close()


def test_replaying_compares_with_the_snapshot(log):
    connection, number = log
    stream = sql.streams(connection)[number]
    assert replayed(connection, stream).same is None
    part = folded(connection, number, until=40)
    sql.keep_snapshot(connection, number, part.snapshot(0.0))
    assert replayed(connection, stream).same is True
    other = folded(connection, number, until=39)
    sql.keep_snapshot(connection, number, other.snapshot(0.0)._replace(seq=part.seq))
    assert replayed(connection, stream).same is False


def compacted(connection, number, before):
    after = 0
    while after is not None:
        after = sql.compact(connection, number, before, after)


def test_rows_stay_until_the_snapshot_covers_their_labels(tmp_path):
    """Labels that were committed after the snapshot are learned again from it, and need their rows."""
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        number = sql.create_stream(connection, "s", StreamSettings(columns=["x"]), 0.0).number
    stream = sql.streams(connection)[number]
    for k in range(2500):
        ledger.commit(connection, [Submission(number, [SubmittedRow(f"r{k}", {"x": float(k)})])], float(k))
    early = [(f"r{k}", "x") for k in range(0, 1200, 2)]
    ledger.commit(connection, [Submission(number, labels=early)], 2500.0)
    covered = folded(connection, number).snapshot(2501.0)
    sql.keep_snapshot(connection, number, covered)
    ledger.commit(connection, [Submission(number, labels=[(f"r{k}", "y") for k in range(1, 2500, 2)])], 2502.0)
    compacted(connection, number, before=9999.0)
    ids = {id_ for one in connection.records(number, 0, 10_000) for id_ in getattr(one.body, "ids", ())}
    assert ids == {f"r{k}" for k in range(2500)} - {id_ for id_, _ in early}
    again = folded(connection, number, Fold.restored(connection, stream, covered))
    assert again.counts.n_labels == 600 + 1250
    assert replayed(connection, sql.streams(connection)[number]).fold.snapshot(0.0) == again.snapshot(0.0)
    sql.keep_snapshot(connection, number, again.snapshot(2503.0))
    compacted(connection, number, before=9999.0)
    ids = {id_ for one in connection.records(number, 0, 10_000) for id_ in getattr(one.body, "ids", ())}
    assert ids == {f"r{k}" for k in range(1200, 2500, 2)}, "only what still waits is left"
    database.close()


def test_labels_long_after_their_rows_are_learned_although_little_is_kept(tmp_path):
    """Longer than the learner has rows in memory, so that it must find them in the log."""
    n, apart, some = 30_000, 21_000, 100
    with served_here(tmp_path / "data", snapshots=0.0) as http:
        http.put("/v1/streams/s", json={"keep": 0}).raise_for_status()
        for k in range(0, n + apart, some):
            if k < n:
                rows = [{"id": f"r{j}", "features": {"x": j % 7}} for j in range(k, k + some)]
                http.post("/v1/streams/s/predict", json={"rows": rows}).raise_for_status()
            if k >= apart:
                labels = [{"id": f"r{j}", "label": j % 7 > 3} for j in range(k - apart, k - apart + some)]
                http.post("/v1/streams/s/labels", json={"labels": labels}).raise_for_status()
        until(http, "/v1/streams/s", lambda shown: shown["labels"] == n)


def test_compacting_keeps_what_is_needed(log):
    connection, number = log
    stream = sql.streams(connection)[number]
    fold = folded(connection, number)
    n_before = len(connection.records(number, 0, 10_000))
    base = fold.snapshot(700.0)
    sql.keep_snapshot(connection, number, base)
    compacted(connection, number, before=500.0)
    kept = connection.records(number, 0, 10_000)
    assert len(kept) < n_before / 2
    assert {one.seq for one in kept if one.at < 500.0} == {
        seq for (seq,) in connection.execute("SELECT seq FROM waiting WHERE stream = ? AND served < 500", (number,))
    }
    ids = [id_ for one in kept if isinstance(one.body, LoggedRows) for id_ in one.body.ids]
    known = sql.known_ids(connection, number, ids)
    late = next(id_ for id_, one in known.items() if one.label is None)
    assert ledger.commit(connection, [Submission(number, labels=[(late, "big")])], 800.0)[0].accepted == 1
    again = folded(connection, number, Fold.restored(connection, stream, base))
    assert again.counts.n_labels == fold.counts.n_labels + 1
    assert replayed(connection, stream).fold.snapshot(0.0) == again.snapshot(0.0)


def test_compacting_removes_a_bounded_number_of_rows_at_a_time(tmp_path):
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        stream = sql.create_stream(connection, "s", StreamSettings(), 0.0)
    some = [SubmittedRow(f"r{k}", {"x": float(k)}, label="x") for k in range(3000)]
    ledger.commit(connection, [Submission(stream.number, some)], 1.0)
    fold = folded(connection, stream.number)
    sql.keep_snapshot(connection, stream.number, fold.snapshot(2.0))
    left, after = [], 0
    while (after := sql.compact(connection, stream.number, 2.0, after)) is not None:
        left += connection.execute("SELECT COUNT(*) FROM samples")
    assert left == [(2000,), (1000,), (0,)]
    assert not connection.records(stream.number, 0, 10)
    database.close()


def test_rows_in_memory_are_limited_by_their_bytes(tmp_path):
    """However large they are, and whichever labels come: those that left memory are read again."""
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        settings = StreamSettings(options={"drop": ["text"]})
        number = sql.create_stream(connection, "s", settings, 0.0).number
    n, size = 60, 2**20
    for k in range(n):
        row = SubmittedRow(f"r{k}", {"x": float(k), "text": f"{k:03}" * (size // 3)})
        ledger.commit(connection, [Submission(number, [row])], float(k))
    for k in (0, 59, 30, 1):
        ledger.commit(connection, [Submission(number, labels=[(f"r{k}", k % 2)])], float(n))
    stream = sql.streams(connection)[number]
    fold = Fold.restored(connection, stream, None)
    tracemalloc.start()
    for record in records(connection, stream, 0):
        fold.apply(record)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 40 * size
    assert (fold.seq, fold.counts.n_rows, fold.counts.n_labels) == (sql.last_record(connection, number), n, 4)
    database.close()


def test_records_are_read_one_at_a_time_if_they_are_large(log):
    connection, number = log
    everything = connection.records(number, 0, 10_000)
    read, after = [], 0
    while some := connection.records(number, after, 5, 1000):
        assert len(some) == 1 or (len(some) <= 5 and sum(one.n_bytes for one in some) <= 1000)
        read += some
        after = read[-1].seq
    assert read == everything


def test_what_the_model_cannot_take_is_counted():
    fold = Fold(StreamSettings(options={"drop": ["x"]}))
    fold.apply(LogRecord(1, 1, 0.0, LoggedColumns(["x"])))
    fold.apply(LogRecord(2, 1, 0.0, LoggedRows(0, ["a", "b"], [[1.0], [2.0]], [None] * 2, [None] * 2)))
    assert fold.counts.n_unusable == 2
    assert "no column of X gives an input" in fold.counts.problem
    assert fold.snapshot(0.0).model is None


def test_what_would_need_too_much_memory_is_not_learned_the_same_in_each_replay():
    def folded_with(n_texts):
        fold = Fold(StreamSettings(options={"random_state": 3}, max_memory=1))
        fold.apply(LogRecord(1, 1, 0.0, LoggedColumns(["x", "y", "z", "u"])))
        for seq in range(2, 12):
            values = [[f"t{(seq * 20 + 7 * k) % n_texts}"] * 4 for k in range(20)]
            rows = LoggedRows(20 * (seq - 2), [f"{k}" for k in range(20)], values, [None] * 20, [None] * 20)
            fold.apply(LogRecord(seq, 1, 0.0, rows))
        return fold

    few, many = folded_with(5), folded_with(200)
    assert (few.counts.n_unusable, few.model.n_seen_) == (0, 200)
    assert 0 < many.counts.n_unusable < 200
    assert "and may take 1 (max_memory)" in many.counts.problem
    assert sum(net.words.nbytes for net in many.model.mixture_.nets) <= 2**20
    assert folded_with(200).snapshot(0.0) == many.snapshot(0.0)


def calibration(model):
    """The logarithm of the power to which the model raises its probabilities; 0 before calibration has moved."""
    return Network(model.mixture_.networks[0]).calibration[LOG_TEMPERATURE]


@pytest.mark.parametrize("options", [{}, {"rehearse": 0}])
def test_a_predictor_says_what_the_model_says_and_goes_on_saying_it(options):
    """One row and many, mixed and calibrated; labels are noisy, so that calibration has moved far."""
    source = random.Random(0)
    rows = [features(source) for _ in range(600)]
    labels = [label_of(row) if source.random() < 0.8 else "big" for row in rows]
    model = DEVDAN(random_state=0, **options)
    for k in range(0, 600, 20):
        model.partial_fit(rows[k : k + 20], labels[k : k + 20])
    assert abs(calibration(model)) > 0.05
    predictor = Predictor(model, list(rows[0]), 5)
    expected = model.predict_proba(rows)
    model.partial_fit(rows, ["other"] * len(rows))
    assert np.array_equal([one.probabilities for one in predictor.many(rows)], expected)
    assert np.array([predictor.one(row).probabilities for row in rows]) == pytest.approx(expected, abs=1e-12)
    in_order = tuple(rows[0].values())
    assert predictor.one(in_order) == predictor.one(rows[0])
    unknown = {"city": "Oslo"}
    assert predictor.one(unknown).probabilities == pytest.approx(predictor.many([unknown])[0].probabilities, abs=1e-12)
    assert predictor.classes == ["big", "small"]


def test_labels_that_come_long_after_their_rows_read_a_record_once():
    """However many labels it has, in one record or in several: a record may hold thousands of rows."""
    rows = LoggedRows(0, [f"r{k}" for k in range(50)], [[float(k)] for k in range(50)], [None] * 50, [None] * 50)
    asked = []

    def stored(seq):
        asked.append(seq)
        return LogRecord(seq, 1, 0.0, rows)

    fold = Fold(StreamSettings(columns=["x"]), stored)
    for seq, half in ((9, range(25)), (10, range(25, 50))):
        fold.apply(
            LogRecord(seq, 1, 0.0, LoggedLabels([(7, k) for k in half], ["low" if k < 20 else "high" for k in half]))
        )
    assert asked == [7]
    assert fold.counts.n_labels == 50


def test_a_correction_of_what_the_model_could_not_take_teaches_the_new_label():
    rows = LoggedRows(0, ["a", "b"], [[1.0], [2.0]], [None] * 2, [None] * 2)
    bodies = [
        LoggedColumns(["x"]),
        rows,
        LoggedLabels([(2, 0)], ["low"]),
        LoggedCorrections([(2, 1)], ["never taught"], ["high"]),
    ]
    fold = Fold(StreamSettings())
    for seq, body in enumerate(bodies, start=1):
        fold.apply(LogRecord(seq, 1, 0.0, body))
    assert (fold.counts.n_corrected, fold.counts.n_unusable) == (1, 0)
    assert fold.model.classes_.tolist() == ["high", "low"]


def test_what_is_assumed_is_taught_and_a_label_that_comes_later_corrects_it(tmp_path):
    """The oracle: the model by hand."""
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    settings = StreamSettings(options={"random_state": 3}, assume=Assumption("small", 100.0))
    with connection.transaction():
        number = sql.create_stream(connection, "s", settings, 0.0).number
    source, model = random.Random(1), DEVDAN(random_state=3)
    some = {f"r{k}": features(source) for k in range(60)}
    rows = [SubmittedRow(id_, row, predicted="big", confidence=0.75) for id_, row in some.items()]
    big = [(id_, "big") for id_, row in some.items() if label_of(row) == "big"]
    ledger.commit(connection, [Submission(number, rows)], 0.0)
    ledger.commit(connection, [Submission(number, labels=big[::2])], 50.0)
    ledger.expire(connection, number, 101.0)
    ledger.commit(connection, [Submission(number, labels=big[1::2])], 150.0)
    fold = folded(connection, number)
    known, late = dict(big[::2]), [some[id_] for id_, _ in big[1::2]]
    model.observe(list(some.values())).teach([some[id_] for id_ in known], ["big"] * len(known))
    rest = [row for id_, row in some.items() if id_ not in known]
    model.teach(rest, ["small"] * len(rest))
    model.forget(late, ["small"] * len(late)).teach(late, ["big"] * len(late))
    assert fold.snapshot(0.0).model == content_of(model)
    counts = fold.counts
    assert (counts.n_labels, counts.n_assumed, counts.n_corrected) == (60, len(rest), len(late))
    assert sum(counts.delays) == len(known)  # of labels that came
    assert counts.accuracy == len(big) / 60
    assert history(connection, sql.streams(connection)[number], 60)[0].classes == ("big", "small")
    database.close()


def test_labels_of_many_large_records_do_not_need_the_memory_of_all():
    """A label each: only its own row is kept until all are taught."""
    large = "x" * 50_000

    def made(seq):
        rows = LoggedRows(20 * seq, [f"r{seq}-{k}" for k in range(20)], [[f"{k}{large}"] for k in range(20)], *NOTHING)
        return LogRecord(seq, 1, 0.0, rows, 10**6)

    fold = Fold(StreamSettings(columns=["x"]), made)
    places = [(seq, seq % 20) for seq in range(2, 62)]
    tracemalloc.start()
    try:
        fold.apply(LogRecord(99, 1, 0.0, LoggedLabels(places, ["a", "b"] * 30)))
        assert tracemalloc.get_traced_memory()[1] < 2**25  # the records have 60 MB
    finally:
        tracemalloc.stop()
    assert fold.counts.n_labels == 60


NOTHING = [None] * 20, [None] * 20


def test_the_accuracy_of_the_latest_rows_counts_each_by_its_label_of_now():
    n = 1500
    rows = LoggedRows(0, [f"r{k}" for k in range(n)], [[float(k)] for k in range(n)], ["yes"] * n, [0.5] * n)
    counts, record = Counts(), LogRecord(1, 1, 0.0, rows)
    counts.rows(record, rows)
    places = [(1, k) for k in range(n)]
    counts.labels(record, LoggedLabels(places, ["yes"] * n), [(record, rows)] * n)
    assert (counts.accuracy, len(counts.outcomes)) == (1.0, 1000)
    counts.corrections(LoggedCorrections(places[::2], ["yes"] * 750, ["no"] * 750), [(record, rows)] * 750)
    assert (counts.accuracy, counts.n_labels, counts.n_corrected) == (0.5, n, 750)
    assert sum(span.n_correct for span in counts.spans) == 750


def test_a_log_with_a_gap_is_not_folded():
    fold = Fold(StreamSettings())
    fold.apply(LogRecord(1, 1, 0.0, LoggedColumns(["x"])))
    with pytest.raises(GapError, match="lacks the rows of record 7"):
        fold.apply(LogRecord(8, 1, 0.0, LoggedLabels([(7, 0)], ["yes"])))


def test_streams_with_keys_are_fleets(tmp_path):
    """The oracle: a fleet by hand. From a snapshot it goes on bit for bit, and replaying finds the same."""
    database = SqliteDatabase(tmp_path / "log", "off")
    connection = database.connect()
    with connection.transaction():
        number = sql.create_stream(connection, "s", StreamSettings(keyed=True), 0.0).number
    source = random.Random(2)
    fleet = DEVDANFleet(DEVDAN(rehearse=0, random_state=0), n_jobs=1, random_state=0)
    for k in range(30):
        some = [(source.choice("abc"), features(source)) for _ in range(20)]
        rows = [SubmittedRow(f"{k}-{j}", row, key) for j, (key, row) in enumerate(some)]
        labels = [(row.id, label_of(row.features)) for row in rows[:10]]
        ledger.commit(connection, [Submission(number, rows), Submission(number, labels=labels)], float(k))
        fleet.observe([key for key, _ in some], [row for _, row in some])
        fleet.teach([key for key, _ in some[:10]], [row for _, row in some[:10]], [label for _, label in labels])
        before = labels[3][1]
        after = "small" if before == "big" else "big"
        ledger.commit(connection, [Submission(number, labels=[(labels[3][0], after)], replaces=True)], float(k))
        key, wrong = some[3]
        fleet.forget([key], [wrong], [before]).teach([key], [wrong], [after])
    stream = sql.streams(connection)[number]
    whole = folded(connection, number)
    assert all(content_of(whole.model[key]) == content_of(fleet[key]) for key in "abc")
    part = folded(connection, number, until=31)
    kept = part.snapshot(0.0)
    sql.keep_snapshot(connection, number, kept)
    again = folded(connection, number, Fold.restored(connection, stream, kept))
    assert all(content_of(again.model[key]) == content_of(fleet[key]) for key in "abc")
    assert replayed(connection, stream).same is True
    sql.keep_snapshot(connection, number, folded(connection, number, until=29).snapshot(0.0)._replace(seq=part.seq))
    assert replayed(connection, stream).same is False
    predictor = Predictor(fleet, ["x", "y", "city"], 1)
    rows = [features(source) for _ in range(5)]
    assert [one.probabilities for one in predictor.many(rows, list("abcab"))] == fleet.predict_proba(
        list("abcab"), rows
    ).tolist()
    assert predictor.many(rows[:1], ["a"])[0].probabilities == fleet.predict_proba(["a"], rows[:1])[0].tolist()
    assert (predictor.not_in_memory(["a", "z"]), predictor.n_keys) == ([], 3)  # there is no log to fetch from
    database.close()


@pytest.mark.parametrize("n", [1, 2, 50])
@pytest.mark.parametrize("keyed", [False, True])
def test_a_class_that_came_alone_is_not_certain(n, keyed):
    """Laplace's rule of succession, until there is another class."""
    fold = Fold(StreamSettings(columns=["x"], keyed=keyed))
    keys = ["k"] * n if keyed else None
    values = [[float(k * 7 % 13)] for k in range(n)]
    for body in (
        LoggedRows(0, [f"r{k}" for k in range(n)], values, [None] * n, [None] * n, keys),
        LoggedLabels([(1, k) for k in range(n)], ["fraud"] * n),
    ):
        fold.apply(LogRecord(fold.seq + 1, 1, 0.0, body))
    said = Predictor(fold.model, ["x"], fold.seq).many([{"x": 1.0}], ["k"] if keyed else None)[0]
    assert (said.label, said.confidence) == ("fraud", pytest.approx((n + 1) / (n + 2)))
    fold.apply(LogRecord(3, 1, 0.0, LoggedRows(n, ["a"], [[3.0]], [None], [None], ["k"] if keyed else None)))
    fold.apply(LogRecord(4, 1, 0.0, LoggedLabels([(3, 0)], ["ok"])))
    said = Predictor(fold.model, ["x"], fold.seq).many([{"x": 1.0}], ["k"] if keyed else None)[0]
    assert sum(said.probabilities) == pytest.approx(1.0)


def test_the_labels_of_a_fleet_without_a_prior_are_those_of_all_keys():
    fleet = DEVDANFleet(prior=False, random_state=0)
    for k in range(40):
        fleet.partial_fit([f"k{k % 4}"] * 10, [{"x": float(j)} for j in range(10)], ["fraud"] * 10)
    (said,) = Predictor(fleet, ["x"], 1).many([{"x": 1.0}], ["k1"])
    assert said.confidence == pytest.approx(401 / 402)


def test_a_predictor_knows_nothing_before_the_first_label():
    model = DEVDAN(random_state=0).observe([{"x": 1.0}])
    for predictor in (Predictor(DEVDAN(), None, 0), Predictor(model, ["x"], 1)):
        assert predictor.one({"x": 1.0}).label is None
        assert predictor.many([{"x": 1.0}] * 2) == [predictor.one({"x": 1.0})] * 2


# --- Counting ----------------------------------------------------------------------------------------------------


def test_counts_by_the_time_of_prediction(log):
    connection, number = log
    counts = folded(connection, number).counts
    records = connection.records(number, 0, 10_000)
    rows = {
        (one.seq, place): (one, place)
        for one in records
        if isinstance(one.body, LoggedRows)
        for place in range(len(one.body.ids))
    }
    correct, delays = {}, []
    for one in records:
        if isinstance(one.body, (LoggedLabels, LoggedCorrections)):
            correct |= {row: label == "big" for row, label in zip(one.body.rows, one.body.labels, strict=True)}
        if isinstance(one.body, LoggedLabels):
            delays += [one.at - rows[row][0].at for row in one.body.rows]
    correct = list(correct.values())
    assert counts.n_corrected == sum(len(one.body.rows) for one in records if isinstance(one.body, LoggedCorrections))
    assert counts.n_rows == len(rows) == sum(span.n_rows for span in counts.spans)
    assert counts.n_labels == len(correct) == sum(span.n_labelled for span in counts.spans)
    assert sum(span.n_correct for span in counts.spans) == sum(correct)
    assert counts.accuracy == pytest.approx(np.mean(correct[-1000:]))
    assert counts.expected == pytest.approx(0.75)
    assert counts.held == pytest.approx(np.mean(correct) - 0.75)
    assert counts.delay_sum == pytest.approx(sum(delays))
    assert sum(counts.delays) == len(delays)


def test_drifts_of_rare_classes_are_counted_by_class():
    X, y = changing_frauds()
    fold = Fold(StreamSettings(options={"random_state": 0}))
    fold.apply(LogRecord(1, 1, 0.0, LoggedColumns(list("abcd"))))
    for k in range(160):
        part, rows = slice(100 * k, 100 * k + 100), [(2 * k + 2, place) for place in range(100)]
        ids = [f"r{row}" for row in range(part.start, part.stop)]
        came = LoggedRows(part.start, ids, X[part].tolist(), ["ok"] * 100, [0.9] * 100)
        fold.apply(LogRecord(2 * k + 2, 1, float(k), came))
        fold.apply(LogRecord(2 * k + 3, 1, float(k), LoggedLabels(rows, y[part].tolist())))
    told = [event.label for event in fold.model.events_ if event.label is not None]
    assert set(told) == {"fraud"}
    assert fold.counts.class_drifts == {"fraud": len(told)}
    assert sum(span.real for span in fold.counts.spans) == fold.model.drifts_["discriminative"]
    html = str([chart.chart for chart in charts(fold.counts)])
    assert f"({len(told)} of fraud)" in html


def test_the_number_of_spans_is_bounded_whatever_comes():
    counts = Counts()
    for number in range(0, 1_000_000, 997):
        counts.span(number).n_rows += 1
    assert len(counts.spans) <= MOST_SPANS
    assert sum(span.n_rows for span in counts.spans) == len(range(0, 1_000_000, 997))


# --- What another model would have done --------------------------------------------------------------------------


def test_history_has_each_row_with_its_label_and_when_it_came(log):
    connection, number = log
    (stream,) = found(connection, "s")
    samples, labels = history(connection, stream, chunk=50)
    y = np.concatenate([y for _, y in samples])
    known = [label is not None for label in y]
    assert len(y) == stream.n_rows == samples.n_samples
    assert (labels.late >= 0).tolist() == known
    assert sum(known) == folded(connection, number).counts.n_labels
    x = np.concatenate([rows.numbers[:, 0] for rows, _ in samples])
    facts = sql.known_ids(connection, number, [f"r{k}" for k in range(len(y))])
    assert y.tolist() == [facts[f"r{k}"].label for k in range(len(y))]
    uncorrected = [not facts[f"r{k}"].earlier and own for k, own in enumerate(known)]
    assert [label for label, own in zip(y, uncorrected, strict=True) if own] == [
        label_of({"x": value}) for value, own in zip(x, uncorrected, strict=True) if own
    ]
    records = list(prequential(samples, DEVDAN(random_state=0), labels))
    assert sum(record.n_labels for record in records) == sum(known)


def test_a_model_from_a_file_goes_on_learning():
    model = DEVDAN(random_state=0).fit(np.random.default_rng(0).random((50, 2)), [0, 1] * 25)
    again = models.of_content(content_of(model), "it")
    assert models.columns_of(again) == ["x0", "x1"]
    rows = models.table(["x0", "x1"], [[0.5, 0.25]])
    assert np.array_equal(again.predict_proba(models.given(again, rows)), model.predict_proba([[0.5, 0.25]]))


@pytest.mark.parametrize("keyed", [False, True])
def test_now_and_then_it_is_asked_which_columns_matter(tmp_path, keyed):
    source, fold = random.Random(0), Fold(StreamSettings(options={"random_state": 3}, keyed=keyed))
    fold.apply(LogRecord(1, 1, 0.0, LoggedColumns(["x", "y", "z"])))
    for k in range(0, 3000, 50):
        values = [[source.random(), source.random(), source.random()] for _ in range(50)]
        keys = ["a"] * 50 if keyed else None
        rows = LoggedRows(k, [f"{k + j}" for j in range(50)], values, [None] * 50, [None] * 50, keys)
        fold.apply(LogRecord(fold.seq + 1, 1, 0.0, rows))
        labels = ["big" if x > 0.5 else "small" for x, *_ in values]
        fold.apply(LogRecord(fold.seq + 1, 1, 0.0, LoggedLabels([(fold.seq, j) for j in range(50)], labels)))
    asked = [span.importances for span in fold.counts.spans if span.importances]
    assert 4 <= len(asked) <= 6
    assert asked[-1]["x"] > 0.9
    (shown,) = [one for one in charts(fold.counts) if one.title == "Which columns matter"]
    assert next(key.text for key in shown.chart.legend) == "x"
    kept = fold.snapshot(0.0)
    database = SqliteDatabase(tmp_path, "off")
    connection = database.connect()
    with connection.transaction():
        facts = sql.create_stream(connection, "s", fold.settings, 0.0)
    facts.columns = fold.columns
    sql.keep_snapshot(connection, facts.number, kept)
    assert Fold.restored(connection, facts, kept).is_same_as(kept, fold.model if keyed else None)
    connection.close()
    database.close()


def test_which_labels_the_model_did_not_take_is_remembered_within_bounds(monkeypatch):
    """The oracle: all of them. What is not remembered any more is not told to be learned."""
    source, teach, taken = random.Random(3), models.teach, []
    fold = Fold(StreamSettings(columns=["x"]))
    fold.apply(LogRecord(1, 1, 0.0, LoggedRows(0, ["a"], [[1.0]], [None], [None])))

    def picky(*given):
        if not taken[-1]:
            raise ValueError("it would need too much memory")
        teach(*given)

    monkeypatch.setattr(models, "teach", picky)
    monkeypatch.setattr(figures, "_REFUSALS", 20)
    for seq in range(2, 200):
        taken.append(source.random() < 0.5)
        fold.apply(LogRecord(seq, 1, 0.0, LoggedLabels([(1, 0)], ["yes"])))
    refusals = fold.counts.refusals
    assert len(refusals.ranges) <= 20
    told = [refusals.fate(seq) for seq in range(2, 200)]
    assert {"learned", "unusable", "learned or unusable"} == set(told)
    for one, is_taken in zip(told, taken, strict=True):
        assert one in ("learned or unusable", "learned" if is_taken else "unusable")
    again = Fold(StreamSettings(columns=["x"]))
    again.counts = msgspec.msgpack.decode(fold.snapshot(0.0).counts, type=figures.Counts)
    assert again.counts.refusals == refusals
