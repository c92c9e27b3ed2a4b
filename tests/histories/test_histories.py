"""Histories agree with an oracle that computes each from the raw events, whatever comes in whatever order."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_histories import NaiveHistories

from devdan import Histories
from devdan.histories.histories import HistoryWarning

pytestmark = pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
HORIZONS = [2.0, 9.0]
FIRST = {"who": "Ann", "where": "x", "day": 1.0, "amount": 1.5, "kind": "a"}  # all columns have a value
ROWS = st.fixed_dictionaries(
    {
        "who": st.sampled_from(["Ann", "Bob", 7.0, "7", None, float("nan"), "", "é" * 300]),
        "where": st.sampled_from(["x", "y", None]),
        "day": st.sampled_from([1.0, 1.5, 2.0, 3.0, 7.0, 40.0, 200.0, None, float("nan")]),
        "amount": st.sampled_from([1.0, 1.5, -3.0, 20.0, None, float("nan")]),
        "kind": st.sampled_from(["a", "b", "c", None]),
    }
)
EVENTS = st.lists(
    st.one_of(
        st.lists(ROWS, min_size=1, max_size=4),
        st.tuples(st.sampled_from(["label", "correct", "forget"]), st.integers(0, 99), st.integers(0, 2)),
    ),
    max_size=25,
)


@pytest.mark.fuzz
@pytest.mark.uncompiled
@settings(max_examples=60)
@given(EVENTS, st.sampled_from([("who",), ("who", "where")]), st.booleans())
def test_histories_are_what_the_raw_events_say(events, columns, timed):
    values = [name for name in ("who", "where", "kind") if (name,) != columns]
    time = "day" if timed else None
    histories = Histories([columns], time=time, horizons=HORIZONS).know_classes([0, 1, 2])
    numbers = ["amount"] if timed else ["day", "amount"]
    naive = NaiveHistories(columns, time, HORIZONS, numbers, values, 3)
    labels, forgotten = {}, set()
    for event in [[FIRST], *events]:
        if isinstance(event, list):
            found = histories.arrive(event)
            expected = [naive.arrive(row) for row in event]
            np.testing.assert_array_equal(histories.arrived_, [came for came, _ in expected])
            own = found.numbers[:, -len(histories.feature_names_) :]
            np.testing.assert_allclose(own, [features for _, features in expected], rtol=1e-5, atol=1e-5)
            continue
        what, place, label = event
        place %= len(naive.rows)
        row, came, _ = naive.rows[place]
        if row is None:
            continue
        if what == "label" and place not in labels:
            histories.teach([row], [label])
            labels[place] = len(naive.labels)
            naive.labels.append((place, label, naive.now))
        elif what == "correct" and place in labels:
            _, was, at = naive.labels[labels[place]]
            histories.correct([row], [label], [was], [at])
            naive.labels[labels[place]] = (place, label, at)
        elif what == "forget" and place not in forgotten:
            histories.forget([row], [came])
            forgotten.add(place)
            naive.rows[place] = (None, *naive.rows[place][1:])


def stream(n, seed=0, n_entities=40):
    random = np.random.default_rng(seed)
    days = np.cumsum(random.exponential(0.01, n))
    who = random.integers(n_entities, size=n)
    amounts, kinds = random.normal(50 + who, 5), np.where(random.random(n) < 0.8, who % 5, random.integers(5, size=n))
    columns = zip(who.tolist(), days.tolist(), amounts.tolist(), kinds.tolist(), strict=True)
    return [{"who": f"c{k}", "day": day, "amount": amount, "kind": f"k{kind}"} for k, day, amount, kind in columns]


def test_horizons_are_found_from_how_often_entities_come_and_nothing_decays_before():
    rows = stream(1300)
    histories = Histories("who", time="day").know_classes([0, 1])
    naive = NaiveHistories(("who",), "day", None, ["amount"], ["kind"], 2)
    found = histories.arrive(rows)
    assert histories.horizons_["who"] == [0.9, 6.0, 30.0]  # entities come every 0.4 days
    own, expected, n_gaps = found.numbers[:, -len(histories.feature_names_) :], [], 0
    for place, row in enumerate(rows):
        expected.append(naive.arrive(row, described=place % 17 == 0)[1])
        if n_gaps < 1000 <= len(naive.gaps):
            naive.began, naive.horizons = naive.now, histories.horizons_["who"]
        n_gaps = len(naive.gaps)
    np.testing.assert_allclose(own[::17], expected[::17], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (60, [60.0, 600.0, 3600.0]),
        (3600, [3600.0, 21_600.0, 86_400.0]),
        (86_400, [86_400.0, 604_800.0, 2_592_000.0]),
    ],
)
def test_of_dates_horizons_are_days_weeks_and_months_or_whatever_suits(unit, expected):
    rows = stream(1500)
    for row in rows:
        row["day"] = np.datetime64(1_700_000_000_000_000 + int(row["day"] / 0.4 * unit * 1e6), "us")
    histories = Histories("who", time="day")
    histories.arrive(rows)
    assert histories.horizons_["who"] == expected


@pytest.mark.parametrize("size", [1, 7, 100])
def test_bits_do_not_depend_on_how_rows_are_batched(size):
    rows = stream(1200 if size > 1 else 150)
    at_once, in_parts = (Histories(["who", ("who", "kind")], time="day", max_entities=30) for _ in range(2))
    expected = np.asarray(at_once.arrive(rows).numbers)
    found = [in_parts.arrive(rows[start : start + size]).numbers for start in range(0, len(rows), size)]
    assert np.concatenate(found).tobytes() == expected.tobytes()


def test_transform_says_what_arrive_would_and_changes_nothing():
    rows = stream(1200)
    histories = Histories(["who"], time="day")
    histories.partial_fit(rows[:1100], np.arange(1100) % 2)
    seen = histories.transform(rows[1100:]).numbers
    for row, expected in zip(rows[1100:], seen, strict=True):
        if row["who"] == rows[1100]["who"]:
            assert histories.transform([row]).numbers.tobytes() == expected.tobytes()
    assert histories.arrive(rows[1100:1101]).numbers.tobytes() == seen[:1].tobytes()


def test_a_label_counts_from_when_it_came_not_from_when_its_row_did():
    histories = Histories("who", time="day", horizons=[1.0]).know_classes(["ok", "fraud"])
    first = histories.arrive([{"who": "Ann", "day": 0.0}, {"who": "Bob", "day": 0.0}])
    share = first.names.index("who: share of fraud, lately")
    assert histories.arrive([{"who": "Ann", "day": 5.0}]).numbers[0, -1] == 0.0
    histories.teach(first, ["fraud", "ok"])
    seen = histories.arrive([{"who": "Ann", "day": 6.0}, {"who": "Bob", "day": 6.0}, {"who": "New", "day": 6.0}])
    np.testing.assert_allclose(seen.numbers[:, share - 1], [1.5 / 2, 0.5 / 2, 0.5])
    histories.teach(seen[:1], ["ok"])  # a day later, by which the first label has faded
    weight = math.exp(-1.0)
    overall = weight / (2 * weight + 1)
    seen = histories.arrive([{"who": "Ann", "day": 9.0}])
    np.testing.assert_allclose(seen.numbers[0, share - 1], (weight + overall) / (weight + 1 + 1))


def test_the_least_informative_entities_make_room():
    histories = Histories("who", time="day", horizons=[1.0], max_entities=100)
    regulars = [{"who": f"r{k}", "day": day / 10} for day in range(20) for k in range(50)]
    histories.arrive(regulars)
    histories.arrive([{"who": f"once{k}", "day": 2.0 + k / 1e5} for k in range(2000)])
    rows = histories.transform([{"who": f"r{k}", "day": 2.1} for k in range(50)])
    assert all(row["who: rows, lately"] > 1.0 for row in rows.dicts())
    assert histories.n_entities_ == {"who": 100}
    assert histories.n_evicted_ == {"who": 1950}
    assert any("1,950 of 'who' had to make room" in note for note in histories.notes_)


def test_mess_is_counted_and_noted():
    rows = [{"who": "Ann", "day": float(day), "id": float(day)} for day in range(150)]
    histories = Histories("who", time="day", horizons=[3.0])
    histories.arrive(rows)
    histories.arrive([{"who": None, "day": 3.0}, {"who": "Ann", "day": None}, {"who": "Ann", "day": 1e9}])
    assert histories.now_ == 149.0
    for part in (
        "of 1 of 153 rows is earlier", "of 1 of 153 rows is missing", "of 1 of 153 rows is far in the future",
        "1 rows name no 'who'", "'id' has no history, since it only ever rises",
    ):  # fmt: skip
        assert sum(part in note for note in histories.notes_) == 1, histories.notes_
    histories.arrive([{"who": "Ann", "day": 1e9 + k} for k in range(7)])
    assert histories.now_ == 1e9 + 6  # believed, since they follow each other


def test_a_note_is_said_once():
    histories = Histories("who", horizons=[3.0])
    with pytest.warns(HistoryWarning, match="1 rows name no 'who'"):
        histories.arrive([{"who": "Ann"}, {"who": None}])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        histories.arrive([{"who": None}])


def test_columns_and_classes_may_appear_and_vanish():
    histories = Histories("who", horizons=[3.0])
    histories.arrive([{"who": "Ann", "a": 1.0}] * 3)
    rows = histories.arrive([{"who": "Ann", "b": 2.0, "c": "x"}] * 2)
    named = dict(zip([name for name in rows.names if name not in ("who", "c")], rows.numbers[1], strict=True))
    assert named["who: a: mean, lately"] == 1.0
    assert named["who: c: usual"] != 0.0
    histories.teach(rows, ["p", "q"])
    histories.teach(rows, ["r", "s"])
    histories.teach(rows, ["t", None])
    rows = histories.arrive([{"who": "Ann"}])
    shares = [rows.numbers[0, k - 1] for k, name in enumerate(rows.names) if "share of" in name]
    assert sum(share > 0 for share in shares) == 4  # all classes but the first


def test_a_column_about_which_entities_tell_nothing_has_no_history():
    random = np.random.default_rng(0)
    rows = [
        {"who": f"c{k % 9}", "note": f"text {k}", "size": random.normal(), "place": f"p{k % 9}", "weight": float(k % 9)}
        for k in range(1000)
    ]
    found = Histories("who", horizons=[300.0])
    seen = found.arrive(rows).dicts()
    assert seen[300]["who: note: usual"] < -1.0
    assert (seen[-1]["who: note: usual"], seen[-1]["who: size: mean, lately"]) == (0.0, 0.0)
    assert seen[-1]["who: place: usual"] > 1.0
    assert seen[-2]["who: weight: mean, lately"] == pytest.approx(998 % 9, abs=0.2)
    notes = [note for note in found.notes_ if "tells nothing" in note]
    assert [note.split("'")[1] for note in notes] == ["size", "note"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"entities": []}, "entities must be"),
        ({"entities": ["who", "who"]}, "only once"),
        ({"entities": "whom"}, "need the column 'whom'"),
        ({"entities": "who", "time": "when"}, "need the column 'when'"),
        ({"entities": "who", "horizons": [3, 1]}, "horizons must be"),
        ({"entities": "who", "horizons": ["7 moons"]}, "a horizon must be"),
        ({"entities": "who", "max_entities": 0}, "max_entities must be"),
        ({"entities": "who", "time": "kind"}, "must hold times"),
    ],
)
def test_what_cannot_be_is_said_clearly(options, said):
    with pytest.raises(ValueError, match=said):
        Histories(**options).arrive([{"who": "Ann", "kind": "a"}])


def test_memory_per_entity_and_column_is_bounded():
    n_numbers, n_values = 6, 4
    random = np.random.default_rng(0)
    rows = [
        {"who": k, **{f"n{j}": random.random() for j in range(n_numbers)}, **{f"v{j}": "ab"[k % 2] for j in range(4)}}
        for k in range(4096)
    ]
    histories = Histories("who")
    histories.arrive(rows)
    per_entity = histories.n_bytes_ / 4096
    assert per_entity <= 200 + 400 * (n_numbers + n_values)
