"""What becomes of rows and labels: against an obvious version in memory, and in each case that happens."""

import tracemalloc
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devdan.service import ledger, sql
from devdan.service.database import UnavailableError
from devdan.service.schema import (
    Assumption,
    EarlyLabels,
    InvalidError,
    LoggedAssumptions,
    LoggedCorrections,
    LoggedExpiry,
    LoggedLabels,
    LoggedRows,
    Source,
    StreamSettings,
    Submission,
    SubmissionOutcome,
    SubmittedRow,
)
from devdan.service.store import SqliteDatabase


@pytest.fixture
def database(tmp_path):
    made = SqliteDatabase(tmp_path / "log", "off")
    yield made
    made.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One database for all examples, each of which has a stream of its own."""
    made = SqliteDatabase(tmp_path_factory.mktemp("shared") / "log", "off")
    yield made.connect()
    made.close()


NUMBERS = count()


def begun(database, **settings):
    connection = database.connect()
    return connection, stream_in(connection, **settings)


def stream_in(connection, **settings):
    with connection.transaction():
        return sql.create_stream(connection, f"s{next(NUMBERS)}", StreamSettings(**settings), 0.0).number


def row(id_, x=1.0, **more):
    return SubmittedRow(id_, {"x": x}, **more)


def rows(connection, number, *some, at=1.0):
    return ledger.commit(connection, [Submission(number, some)], at)[0]


def labels(connection, number, at=1.0, **pairs):
    return ledger.commit(connection, [Submission(number, labels=list(pairs.items()))], at)[0]


def corrected(connection, number, at=1.0, **pairs):
    return ledger.commit(connection, [Submission(number, labels=list(pairs.items()), replaces=True)], at)[0]


def bodies(connection, number, kind):
    return [one.body for one in connection.records(number, 0, 10_000) if isinstance(one.body, kind)]


def test_a_label_finds_its_row_once(database):
    connection, number = begun(database)
    assert rows(connection, number, row("a"), row("b", 2.0)) == SubmissionOutcome(rows=2, refused=[])
    assert labels(connection, number, b="yes").accepted == 1
    assert labels(connection, number, b="yes").repeated == 1
    refused = labels(connection, number, b="no", a="no")
    assert refused.accepted == 1
    assert [(one.id, one.why) for one in refused.refused] == [("b", "its label is 'yes', which came before")]
    assert [body.labels for body in bodies(connection, number, LoggedLabels)] == [["yes"], ["no"]]
    (seq, place), *_ = bodies(connection, number, LoggedLabels)[0].rows
    assert connection.record(number, seq).body.ids[place] == "b"


def test_a_label_that_comes_first_waits_for_its_row(database):
    connection, number = begun(database)
    assert labels(connection, number, a="yes").waiting == 1
    assert labels(connection, number, a="yes").repeated == 1
    assert labels(connection, number, a="no").refused[0].id == "a"
    rows(connection, number, row("a"))
    assert bodies(connection, number, LoggedLabels)[0].labels == ["yes"]
    stream = sql.streams(connection)[number]
    assert (stream.n_waiting, stream.n_early) == (0, 0)


def test_a_label_that_replaces_another_is_logged_beside_it(database):
    connection, number = begun(database)
    rows(connection, number, row("a"), row("b"), row("c"))
    labels(connection, number, a="yes", b="yes")
    outcome = corrected(connection, number, a="no", b="yes", c="no", never="no")
    counted = outcome.corrected, outcome.repeated, outcome.accepted, outcome.waiting
    assert counted == (1, 1, 1, 1), "a, b, c and never"
    assert corrected(connection, number, a="no").repeated == 1
    assert labels(connection, number, a="yes").refused[0].why == "its label is 'no', which came before"
    assert [body.labels for body in bodies(connection, number, LoggedLabels)] == [["yes", "yes"], ["no"]]
    (body,) = bodies(connection, number, LoggedCorrections)
    assert (body.before, body.labels) == (["yes"], ["no"])
    assert corrected(connection, number, a="yes").corrected == 1
    stream = sql.streams(connection)[number]
    assert (stream.n_waiting, stream.n_early) == (0, 1)
    assert len(sql.known_ids(connection, number, ["a"])["a"].earlier) == 2


ASSUME = Assumption("ok", "1 min")


def assumed(connection, number):
    """Ids that were taught as the class that is assumed, record by record."""
    found = []
    for one in connection.records(number, 0, 10_000):
        if isinstance(one.body, LoggedAssumptions):
            assert set(one.body.labels) == {"ok"}
            found.append([connection.record(number, seq).body.ids[place] for seq, place in one.body.rows])
    return found


def test_rows_whose_label_does_not_come_are_taught_as_the_class_that_is_assumed(database):
    connection, number = begun(database, assume=ASSUME)
    rows(connection, number, row("a"), row("b"), at=0.0)
    rows(connection, number, row("c"), at=10.0)
    labels(connection, number, at=20.0, a="fraud", early="fraud")
    ledger.expire(connection, number, 60.0)
    assert assumed(connection, number) == []
    ledger.expire(connection, number, 65.0)
    assert assumed(connection, number) == [["b"]]
    rows(connection, number, row("d"), at=71.0)  # what is due is noticed with any submission
    assert assumed(connection, number) == [["b"], ["c"]]
    stream = sql.streams(connection)[number]
    assert (stream.n_waiting, stream.n_early) == (1, 1)
    ledger.expire(connection, number, 200.0)
    stream = sql.streams(connection)[number]
    assert (stream.n_waiting, stream.n_early) == (0, 0)
    assert assumed(connection, number) == [["b"], ["c"], ["d"]]
    assert bodies(connection, number, LoggedExpiry)[-1].n_labels == 1


def test_a_label_that_comes_later_corrects_the_one_that_was_assumed(database):
    connection, number = begun(database, assume=ASSUME)
    rows(connection, number, row("a"), row("b"), row("c"), at=0.0)
    ledger.expire(connection, number, 100.0)
    told = labels(connection, number, at=101.0, a="fraud", b="ok")
    assert (told.corrected, told.repeated, told.refused) == (1, 1, [])
    (body,) = bodies(connection, number, LoggedCorrections)
    assert (body.before, body.labels) == (["ok"], ["fraud"])
    told = labels(connection, number, at=102.0, a="ok", b="fraud")  # a has a label that came; that of b was assumed
    assert (told.corrected, [one.id for one in told.refused]) == (1, ["a"])
    assert corrected(connection, number, at=103.0, a="ok").corrected == 1
    assert labels(connection, number, at=104.0, a="fraud").refused[0].id == "a"  # "ok" is no assumption any more
    assert labels(connection, number, at=105.0, c=1).error == "labels of this stream are of type text, got number: 1"


def test_what_is_read_again_corrects_no_assumption(database):
    connection, number = begun(database, assume=ASSUME)
    early = Submission(number, labels=[("a", "fraud")], source=Source("labels", 0, 0))
    assert ledger.commit(connection, [early], 0.0)[0].waiting == 1
    ledger.expire(connection, number, 100.0)  # the early label is gone
    rows(connection, number, row("a"), at=100.0)
    ledger.expire(connection, number, 200.0)
    assert assumed(connection, number) == [["a"]]
    assert ledger.commit(connection, [early], 201.0)[0].repeated == 1


def test_where_too_many_wait_the_oldest_are_taught_as_what_is_assumed(database):
    connection, number = begun(database, assume=ASSUME, max_waiting=3)
    for k in range(5):
        rows(connection, number, row(f"r{k}"), at=float(k))
    assert assumed(connection, number) == [["r0"], ["r1"]]
    assert sql.streams(connection)[number].n_waiting == 3
    assert bodies(connection, number, LoggedExpiry) == []


def test_many_assumptions_are_in_records_of_a_bounded_size(database):
    connection, number = begun(database, assume=ASSUME)
    for k in range(90):
        rows(connection, number, *(row(f"r{k}_{j}") for j in range(17)), at=float(k) / 10)
    labels(connection, number, at=10.0, r0_0="fraud")
    ledger.expire(connection, number, 100.0)
    found = assumed(connection, number)
    assert max(map(len, found)) <= 500 + 17
    assert sorted(id_ for ids in found for id_ in ids) == sorted(
        f"r{k}_{j}" for k in range(90) for j in range(17) if (k, j) != (0, 0)
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"assume": Assumption("ok", "soon")}, "after must be seconds, or text such as '12 hours'"),
        ({"assume": Assumption("ok", 0)}, "after must be a duration of up to a hundred years, got 0"),
        ({"assume": ASSUME, "wait": 5.0}, "wait must be left out with assume"),
        ({"assume": Assumption("o\nk", 5)}, "a label must not have control characters"),
    ],
    ids=str,
)
def test_what_cannot_be_assumed(settings, message):
    with pytest.raises(InvalidError, match=message):
        StreamSettings(**settings).check()


def test_an_early_label_is_replaced_while_it_waits_and_expires_by_its_own_time(database):
    connection, number = begun(database, wait=10.0)
    labels(connection, number, at=1.0, a="yes", b="yes")
    assert corrected(connection, number, at=8.0, a="no").waiting == 1
    assert sql.streams(connection)[number].n_early == 2
    ledger.expire(connection, number, 15.0)
    assert sorted(sql.known_ids(connection, number, ["a", "b"])) == ["a"]
    assert sql.streams(connection)[number].n_early == 1
    rows(connection, number, row("a"), row("b"), at=16.0)
    assert [body.labels for body in bodies(connection, number, LoggedLabels)] == [["no"]]


def test_a_row_its_label_and_the_one_that_replaces_it_may_come_together(database):
    connection, number = begun(database)
    group = [
        Submission(number, labels=[("a", "no")], replaces=True),
        Submission(number, labels=[("a", "maybe")], replaces=True),
        Submission(number, [row("a", label="yes")]),
        Submission(number, labels=[("a", "maybe")]),
    ]
    outcomes = ledger.commit(connection, [group[2], *group[:2], group[3]], 1.0)
    counted = [(one.accepted, one.corrected, one.repeated) for one in outcomes]
    assert counted == [(1, 0, 0), (0, 1, 0), (0, 1, 0), (0, 0, 1)]
    assert bodies(connection, number, LoggedLabels)[0].labels == ["yes"]
    (body,) = bodies(connection, number, LoggedCorrections)
    assert (body.before, body.labels) == (["yes"], ["maybe"]), "only the last of one commit is taught"


def test_what_is_read_again_does_not_undo_what_has_replaced_it(database):
    connection, number = begun(database)
    group = [
        Submission(number, labels=[("early", "yes")], source=Source("t", 0, 0)),
        Submission(number, [row("a"), row("early")], source=Source("t", 0, 1)),
        Submission(number, labels=[("a", "yes")], source=Source("t", 0, 2)),
        Submission(number, labels=[("a", "other")], source=Source("t", 0, 3)),
        Submission(number, labels=[("a", "no"), ("early", "no")], source=Source("t", 0, 4), replaces=True),
        Submission(number, labels=[("a", "yes")], source=Source("t", 0, 5), replaces=True),
        Submission(number, labels=[("a", "no")], source=Source("t", 0, 6), replaces=True),
    ]
    for one in group:
        ledger.commit(connection, [one], 1.0)
    before = connection.records(number, 0, 100)
    for again in (group, group[2:], group[4:]):
        outcomes = ledger.commit(connection, again, 2.0)
        assert connection.records(number, 0, 100) == before
        assert [one.labels for one, outcome in zip(again, outcomes, strict=True) if outcome.refused] == (
            [[("a", "other")]] if group[3] in again else []
        )


def test_rows_that_come_again_count_once_and_must_be_the_same(database):
    connection, number = begun(database)
    group = [Submission(number, [row("a")]), Submission(number, [row("a")]), Submission(number, [row("a", 2.0)])]
    outcomes = ledger.commit(connection, group, 1.0)
    assert [(one.rows, one.repeated_rows, len(one.refused)) for one in outcomes] == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
    assert rows(connection, number, row("a")).repeated_rows == 1
    assert (
        rows(connection, number, row("a", 3.0)).refused[0].why
        == "the id was used before, with other features or another key"
    )
    assert sum(len(body.ids) for body in bodies(connection, number, LoggedRows)) == 1


def test_the_first_row_says_which_columns_there_are(database):
    connection, number = begun(database)
    assert "must have features" in rows(connection, number, SubmittedRow("e", {})).error
    rows(connection, number, SubmittedRow("a", {"x": 1.0, "city": "Bonn"}))
    assert rows(connection, number, SubmittedRow("b", {"city": "Köln"})).rows == 1
    assert bodies(connection, number, LoggedRows)[1].values == [[None, "Köln"]]
    assert rows(connection, number, SubmittedRow("c", {"x": 1.0, "y": 1.0})).error == (
        "the stream has no column 'y': its columns are x, city"
    )


def test_columns_that_the_options_name_must_be_there(database):
    connection, number = begun(database, options={"nominal": ["zip"]})
    assert "nominal names the column 'zip'" in rows(connection, number, row("a")).error
    assert rows(connection, number, SubmittedRow("a", {"zip": 1.0})).rows == 1


def test_labels_of_a_stream_are_of_one_type(database):
    connection, number = begun(database)
    labels(connection, number, a=1)
    assert labels(connection, number, b="one").error == "labels of this stream are of type number, got text: 'one'"
    assert labels(connection, number, b=True).error.endswith("got true or false: True")


def test_rows_expire_by_age(database):
    connection, number = begun(database, wait=10.0)
    rows(connection, number, row("a"), at=1.0)
    rows(connection, number, row("b"), at=8.0)
    late = labels(connection, number, at=11.5, a="yes", b="yes")
    assert (late.accepted, late.expired) == (1, 1)
    rows(connection, number, row("c"), at=12.0)
    ledger.expire(connection, number, 22.5)
    assert labels(connection, number, at=22.5, c="yes").expired == 1
    assert [(body.n_rows, body.n_labels) for body in bodies(connection, number, LoggedExpiry)] == [(1, 0), (1, 0)]
    assert sql.streams(connection)[number].n_waiting == 0


def test_rows_expire_by_number_the_oldest_first(database):
    connection, number = begun(database, max_waiting=3)
    for k in range(5):
        rows(connection, number, row(f"r{k}"))
    assert [labels(connection, number, **{f"r{k}": "y"}).accepted for k in range(5)] == [0, 0, 1, 1, 1]
    assert sql.streams(connection)[number].n_waiting == 0


def test_labels_without_rows_expire_too_and_their_ids_are_free_again(database):
    connection, number = begun(database, wait=10.0)
    labels(connection, number, at=1.0, a="yes")
    ledger.expire(connection, number, 20.0)
    assert bodies(connection, number, EarlyLabels)[0].ids == ["a"]
    assert [(body.n_rows, body.n_labels) for body in bodies(connection, number, LoggedExpiry)] == [(0, 1)]
    assert rows(connection, number, row("a"), at=20.0).rows == 1
    assert labels(connection, number, at=20.0, a="no").accepted == 1


def test_a_jump_of_the_clock_expires_nothing_and_served_time_goes_on(database):
    connection, number = begun(database, wait=10_000.0)
    rows(connection, number, row("a"), row("b"), row("c"), at=1000.0)
    assert labels(connection, number, at=1000.0 + 40 * 86_400, a="yes").accepted == 1  # an hour has gone
    assert labels(connection, number, at=2000.0, b="yes").accepted == 1  # the clock is right again
    for at in range(3000, 9000, 1000):
        ledger.expire(connection, number, float(at))
        sql.probe(connection, float(at))
    assert labels(connection, number, at=9000.0, c="yes").expired == 1
    times = [one.at for one in connection.records(number, 0, 100)]
    assert times == sorted(times)


def test_a_clock_that_is_set_back_does_not_reorder_the_log(database):
    connection, number = begun(database)
    for at in (5.0, 3.0, 7.0):
        rows(connection, number, row(f"at {at}"), at=at)
    times = [one.at for one in connection.records(number, 0, 100)]
    assert times == sorted(times)


def test_a_deleted_stream_is_gone(database):
    connection, number = begun(database)
    rows(connection, number, row("a"))
    with connection.transaction():
        sql.delete_stream(connection, number)
    assert rows(connection, number, row("a")).gone
    with connection.transaction():
        assert sql.create_stream(connection, "s", StreamSettings(), 0.0).number == number + 1


def test_what_is_kept_of_a_deleted_stream_is_removed_in_parts(database):
    connection, number = begun(database)
    with connection.transaction():
        other = sql.create_stream(connection, "other", StreamSettings(), 0.0).number
    for stream in (number, other):
        many = Submission(stream, [row(f"r{k}") for k in range(1200)], labels=[("early", "x")])
        assert ledger.commit(connection, [many], 1.0)[0].rows == 1200
    with connection.transaction():
        sql.delete_stream(connection, number)
    before = at_first = kept(connection)
    parts = 0
    while sql.purge(connection):
        after = kept(connection)
        assert before[number] - after[number] <= 500
        before, parts = after, parts + 1
    assert parts > 3
    assert (before[number], before[other]) == (0, at_first[other])
    assert not sql.purge(connection)


def kept(connection):
    """How many rows of tables belong to each stream."""
    counts = Counter()
    for table in ("records", "samples", "waiting"):
        counts += Counter(dict(connection.execute(f"SELECT stream, COUNT(*) FROM {table} GROUP BY stream")))
    return counts


def test_a_full_disk_changes_nothing_and_later_all_is_well(database):
    connection, number = begun(database)
    rows(connection, number, row("a"))
    ((pages,),) = connection.execute("PRAGMA page_count")
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(UnavailableError, match="full"):
        rows(connection, number, *(row(f"r{k}") for k in range(5000)))
    assert len(bodies(connection, number, LoggedRows)) == 1
    connection.execute("PRAGMA max_page_count = 1000000")
    assert rows(connection, number, *(row(f"r{k}") for k in range(5000))).rows == 5000


def test_what_is_read_again_is_known_even_if_its_ids_were_forgotten(database):
    connection, number = begun(database, wait=10.0)
    group = [
        Submission(number, [row("a")], source=Source("t", 0, 0)),
        Submission(number, [row("a", 2.0), row("b")], source=Source("t", 0, 1)),
        Submission(number, labels=[("a", "yes"), ("never", "yes")], source=Source("u", 0, 0)),
        Submission(number, labels=[("a", "no")], source=Source("u", 0, 1)),
    ]
    first = ledger.commit(connection, group, 1.0)
    ledger.expire(connection, number, 20.0)  # the id never is as if it had not come
    connection.execute("DELETE FROM samples WHERE id = 'b'")  # as compacting does
    before = connection.records(number, 0, 100)
    again = ledger.commit(connection, group, 21.0)
    assert connection.records(number, 0, 100) == before
    assert [one.refused for one in again] == [one.refused for one in first]  # which may not have been told yet
    assert sum(one.rows + one.accepted + one.waiting + one.expired for one in again) == 0
    other = Submission(number, [row("c")], source=Source("t", 1, 0))  # of another partition
    assert ledger.commit(connection, [other], 22.0)[0].rows == 1
    assert sql.next_offsets(connection) == {("t", 0): 2, ("t", 1): 1, ("u", 0): 2}


def test_positions_go_with_their_stream_and_are_not_those_of_another(database):
    connection, number = begun(database)
    ledger.commit(connection, [Submission(number, [row("a")], source=Source("t", 0, 5))], 1.0)
    with connection.transaction():
        other = sql.create_stream(connection, "other", StreamSettings(), 0.0).number
    assert ledger.commit(connection, [Submission(other, [row("a")], source=Source("t", 0, 3))], 1.0)[0].rows == 1
    assert (sql.next_offsets(connection, number), sql.next_offsets(connection, other)) == (
        {("t", 0): 6},
        {("t", 0): 4},
    )
    with connection.transaction():
        sql.delete_stream(connection, number)
    assert sql.next_offsets(connection) == {("t", 0): 4}


# --- Against an obvious version ----------------------------------------------------------------------------------


@dataclass
class Naive:
    """Everything in dicts; one label or row at a time. Without expiry."""

    features: dict = field(default_factory=dict)
    label: dict = field(default_factory=dict)
    learned: list = field(default_factory=list)
    corrected: list = field(default_factory=list)

    def row(self, id_, x):
        if id_ in self.features:
            return "repeated" if self.features[id_] == x else "refused"
        self.features[id_] = x
        if id_ in self.label:
            self.learned.append((id_, self.label[id_]))
        return "new"

    def labelled(self, id_, label):
        if id_ in self.label:
            return "repeated" if self.label[id_] == label else "refused"
        self.label[id_] = label
        if id_ in self.features:
            self.learned.append((id_, label))
            return "accepted"
        return "waiting"

    def replaced(self, id_, label):
        before = self.label.get(id_)
        if before is None or before == label:
            return self.labelled(id_, label)
        self.label[id_] = label
        if id_ not in self.features:
            return "waiting"
        self.corrected.append((id_, before, label))
        return "corrected"

    def take(self, kind, id_, value):
        return {"row": self.row, "label": self.labelled, "replace": self.replaced}[kind](id_, value)


IDS = st.sampled_from("abcdefg")
STEPS = st.lists(
    st.lists(
        st.one_of(
            st.tuples(st.just("row"), IDS, st.sampled_from([1.0, 2.0])),
            st.tuples(st.sampled_from(["label", "replace"]), IDS, st.sampled_from(["yes", "no"])),
        ),
        min_size=1,
        max_size=6,
    ),
    max_size=8,
)


def submission(number, kind, id_, value, source=None):
    if kind == "row":
        return Submission(number, [row(id_, value)], source=source)
    return Submission(number, labels=[(id_, value)], source=source, replaces=kind == "replace")


def learned_from(connection, number):
    """By the log: each id with its first label."""
    return [
        (connection.record(number, seq).body.ids[place], label)
        for body in bodies(connection, number, LoggedLabels)
        for (seq, place), label in zip(body.rows, body.labels, strict=True)
    ]


def labels_from(connection, number):
    """By the log, in order: the label of each id whose row has come. A correction says what it corrects."""
    found = {}
    for body in bodies(connection, number, (LoggedLabels, LoggedCorrections)):
        ids = [connection.record(number, seq).body.ids[place] for seq, place in body.rows]
        if isinstance(body, LoggedCorrections):
            assert [found[id_] for id_ in ids] == body.before
        found |= zip(ids, body.labels, strict=True)
    return found


@given(STEPS, st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=8))
def test_however_often_messages_are_read_again_each_counts_once(shared, steps, readings):
    """Each reading begins some messages before where the log ends; the last ones are read in the end."""
    connection, number = shared, stream_in(shared)
    events = [one for step in steps for one in step]
    messages = [submission(number, *event, Source("t", 0, offset)) for offset, event in enumerate(events)]
    for back, n in [*readings, (0, len(messages))]:
        begin = max(sql.next_offsets(connection, number).get(("t", 0), 0) - back, 0)
        ledger.commit(connection, messages[begin : begin + n], 1.0)
    naive = Naive()
    for event in events:
        naive.take(*event)
    ids = [id_ for body in bodies(connection, number, LoggedRows) for id_ in body.ids]
    assert sorted(ids) == sorted(naive.features)
    assert labels_from(connection, number) == {id_: naive.label[id_] for id_, _ in naive.learned}


@given(STEPS)
def test_groups_of_any_size_do_what_one_by_one_would_do(shared, steps):
    """Within a group, rows are taken before labels."""
    connection, number = shared, stream_in(shared)
    naive = Naive()
    for step in steps:
        group = sorted(step, key=lambda one: one[0] != "row")
        submissions = [submission(number, *event) for event in group]
        outcomes = ledger.commit(connection, submissions, 1.0)
        for (kind, id_, value), outcome in zip(group, outcomes, strict=True):
            expected = naive.take(kind, id_, value)
            if kind == "row":
                got = "new" if outcome.rows else "repeated" if outcome.repeated_rows else "refused"
            else:
                told = ("accepted", "corrected", "repeated", "waiting")
                got = next((name for name in told if getattr(outcome, name)), "refused")
            assert got == expected, (group, kind, id_, value)
    assert sorted(learned_from(connection, number)) == sorted(naive.learned)
    assert labels_from(connection, number) == {id_: naive.label[id_] for id_, _ in naive.learned}
    stream = sql.streams(connection)[number]
    assert stream.n_waiting == len(naive.features) - len(naive.learned)
    assert stream.n_early == len(naive.label) - len(naive.learned)


def test_many_rows_are_several_records(database):
    connection, number = begun(database)
    some = [row(f"r{k}", float(k)) for k in range(1200)]
    assert ledger.commit(connection, [Submission(number, some)], 1.0)[0].rows == 1200
    written = bodies(connection, number, LoggedRows)
    assert [(body.first, len(body.ids)) for body in written] == [(0, 500), (500, 500), (1000, 200)]
    assert ledger.commit(connection, [Submission(number, labels=[("r1100", "x")])], 1.0)[0].accepted == 1
    ((seq, place),) = bodies(connection, number, LoggedLabels)[0].rows
    assert connection.record(number, seq).body.values[place] == [1100.0]
    assert ledger.commit(connection, [Submission(number, some)], 1.0)[0].repeated_rows == 1200
    assert sql.streams(connection)[number].n_waiting == 1199


def test_large_rows_are_records_of_their_own(database):
    connection, number = begun(database)
    some = [row(f"r{k}", "x" * (200_000 if k % 50 == 0 else 10)) for k in range(500)]
    assert ledger.commit(connection, [Submission(number, some)], 1.0)[0].rows == 500
    written = connection.records(number, 0, 1000)
    assert max(one.n_bytes for one in written) < 1.1 * 2**20
    assert [id_ for one in written for id_ in getattr(one.body, "ids", ())] == [one.id for one in some]
    assert len(written) < 10


def test_labels_are_learned_so_many_at_a_time_that_their_rows_fit_the_memory(database, monkeypatch):
    """In records of their own, also of rows that come with their labels, and of corrections; each once."""
    monkeypatch.setattr(ledger, "_LABELS", 3)
    connection, number = begun(database)
    with_labels = [row(f"r{k}", label="yes") for k in range(7)]
    assert rows(connection, number, *with_labels).accepted == 7
    assert corrected(connection, number, **{f"r{k}": "no" for k in range(4)}).corrected == 4
    again = [*(row(f"s{k}", label="yes") for k in range(4))]
    both = [Submission(number, again), Submission(number, labels=[("s3", "no")], replaces=True)]
    assert [one.accepted + one.corrected for one in ledger.commit(connection, both, 1.0)] == [4, 1]
    known = [len(body.labels) for body in bodies(connection, number, (LoggedLabels, LoggedCorrections))]
    assert known == [3, 3, 1, 3, 1, 3, 1, 1]
    assert corrected(connection, number, s3="no").repeated == 1
    facts = sql.known_ids(connection, number, ["r6", "s3"])
    learned = [one.seq for one in connection.records(number, 0, 100) if isinstance(one.body, LoggedLabels)]
    assert facts["r6"].label_seq == learned[2]
    assert facts["s3"].earlier == [learned[4]]


def test_rows_that_come_again_are_compared_with_few_records_at_a_time(database, monkeypatch):
    """Each may be in another large record."""
    monkeypatch.setattr(ledger, "_CACHED_BYTES", 2**20)
    connection, number = begun(database)
    for k in range(40):
        rows(connection, number, SubmittedRow(f"r{k}", {"x": f"{k}{'x' * 200_000}"}))
    again = [SubmittedRow(f"r{k}", {"x": f"{k}{'x' * 200_000}"}) for k in range(39)]
    other = SubmittedRow("r39", {"x": "another"})
    tracemalloc.start()
    try:
        outcome = rows(connection, number, *again, other)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    assert (outcome.repeated_rows, [one.id for one in outcome.refused]) == (39, ["r39"])
