"""A log with more keys than stay in memory, learned with snapshots and restarts, beside a fleet by hand."""

import random

from devdan import DEVDAN, DEVDANFleet
from devdan.fleet import saving
from devdan.service import ledger, sql
from devdan.service.fold import Fold, latest
from devdan.service.replay import replayed
from devdan.service.schema import StreamSettings, Submission, SubmittedRow

MOST = 5  # keys in memory
DECIDE = {"big": "f1", "small": {"budget": 0.3, "over": 200}}  # its thresholds are part of the fleet
CITIES = ("Bonn", "Köln", "Rome", None)


def features(source, k):
    return {"x": source.random(), "y": source.gauss(0, 1), "city": source.choice(CITIES[: 1 + k % 4])}


def label_of(row):
    return "big" if row["x"] > 0.5 else "small"


def by_hand(decide="likeliest"):
    """What a stream's fleet is, with all keys in memory."""
    return DEVDANFleet(DEVDAN(rehearse=0, random_state=0), n_jobs=1, decide=decide, random_state=0)


def saved(connection, number, fold):
    """Take a snapshot, as the learner does."""
    kept = fold.snapshot(0.0)
    sql.keep_snapshot(connection, number, kept)
    fold.note_saved(kept)
    return kept


def begun(connection, name="s", **settings):
    """A stream with keys, of which few stay in memory."""
    with connection.transaction():
        made = StreamSettings(keyed=True, **{"max_in_memory": MOST} | settings)
        return sql.create_stream(connection, name, made, 0.0).number


def committed(connection, number, fleet, source, k, n_keys=40):
    """Some rows and labels of random keys go into the log, and the fleet by hand learns them."""
    some = [(f"k{int(n_keys * source.random() ** 2)}", features(source, k)) for _ in range(source.randint(1, 6))]
    rows = [SubmittedRow(f"{k}-{place}", row, key) for place, (key, row) in enumerate(some)]
    labelled = rows[: source.randint(0, len(rows))]
    labels = [(row.id, label_of(row.features)) for row in labelled]
    ledger.commit(connection, [Submission(number, rows), Submission(number, labels=labels)], float(k))
    fleet.observe([row.key for row in rows], [row.features for row in rows])
    if labels:
        fleet.teach([row.key for row in labelled], [row.features for row in labelled], [label for _, label in labels])


def check_beside_a_fleet_by_hand(connection, scratch):
    """Whatever is in memory, and wherever it is killed, the fleet is the same bit for bit."""
    number, source, fleet = begun(connection, options={"decide": DECIDE}), random.Random(3), by_hand(DECIDE)
    stream = sql.streams(connection)[number]
    fold, most = Fold.restored(connection, stream, None), 0
    for k in range(150):
        committed(connection, number, fleet, source, k)
        for record in connection.records(number, fold.seq, 100):
            if fold.is_due:
                saved(connection, number, fold)
            fold.apply(record)
            if fold.model.__sklearn_is_fitted__():
                most = max(most, len(fold.model) - len(fold.model.not_in_memory(list(fleet))))
        if k % 20 == 19:
            saved(connection, number, fold)
        if k % 70 == 50:  # the log begins with a snapshot, and the networks of before go
            with connection.transaction():
                sql.begin_with_latest(connection, number)
        if k % 30 == 29:  # a kill: what came after the last snapshot is learned again
            fold = latest(connection, sql.streams(connection)[number])[0]
            for record in connection.records(number, fold.seq, 100):
                if fold.is_due:
                    saved(connection, number, fold)
                fold.apply(record)
        if k % 10 == 9:
            assert saving.are_same(fold.model, fleet)
            assert fold.model.thresholds_ == fleet.thresholds_
    assert len(fleet) > 30
    assert set(fleet.thresholds_) == {"big", "small"}
    assert fleet.thresholds_["big"] != 0.5
    assert most <= MOST + MOST // 2 + 6  # those that have changed since a snapshot, and of one record
    saved(connection, number, fold)
    stream = sql.streams(connection)[number]
    for folder in (None, scratch):
        again = replayed(connection, stream, folder=folder)
        assert again.same is True
        assert saving.are_same(again.fold.model, fleet)
        again.close()
    return number, fleet
