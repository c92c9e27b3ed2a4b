"""Histories agree with an oracle that computes each from the raw events, whatever comes in whatever order."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_histories import NaiveHistories

from devdan import DEVDAN, Histories
from devdan.encoding.rows import texts_of
from devdan.histories import core
from devdan.histories.histories import HistoryWarning, hashes

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
BEGINNINGS = ROWS.map(lambda row: {**row, "who": row["who"] if row["who"] in ("Ann", "Bob", None) else ""})
GROUPS = [["who"], [("who", "where")], ["who", ("who", "where"), "kind"]]
EVENTS = st.lists(
    st.one_of(
        st.lists(ROWS, min_size=1, max_size=4),
        st.tuples(
            st.sampled_from(["label", "early", "correct", "replace", "retract", "forget"]),
            st.integers(0, 99),
            st.integers(0, 2),
        ),
    ),
    max_size=25,
)


class Both:
    """Histories, and the oracle of each kind of entity."""

    def __init__(self, entities, timed, first, **options):
        self.timed = timed
        self.histories = Histories(entities, time="day" if timed else None, horizons=HORIZONS, **options)
        self.histories.know_classes([0, 1, 2])
        single = [name for name in entities if isinstance(name, str)]
        numbers = [name for name in ("day", "amount") if not (timed and name == "day")]
        values = [name for name in ("who", "where", "kind") if name not in single]
        unknown = [name for name in FIRST if first[name] in (None, "") or first[name] != first[name]]
        shown = [[name for name in first if name in own or (name in unknown and name in numbers + values)]
                 for own in (numbers, values)]  # fmt: skip
        self.naive = [
            NaiveHistories((each,) if isinstance(each, str) else each, "day" if timed else None, HORIZONS,
                           numbers, values, 3, shown)
            for each in entities
        ]  # fmt: skip

    def arrive(self, rows):
        """Both say the same of rows; what they say."""
        found = self.histories.arrive(rows)
        expected = [[naive.arrive(row) for row in rows] for naive in self.naive]
        if any(naive.went_back for naive in self.naive):
            return None
        np.testing.assert_array_equal(self.histories.arrived_, [came for came, _ in expected[0]])
        own = found.numbers[:, -len(self.histories.feature_names_) :]
        features = np.concatenate([[of for _, of in each] for each in expected], axis=1)
        np.testing.assert_allclose(own, features, rtol=1e-5, atol=1e-5)
        return own

    def label(self, row, label):
        self.histories.teach([row], [label])
        for naive in self.naive:
            naive.labels.append((naive.entity(row), label, naive.now))

    def retract(self, row, place):
        """Returns when that label came."""
        _, was, at = self.naive[0].labels[place]
        self.histories.retract([row], [was], [at])
        for naive in self.naive:
            naive.labels[place] = None
        return at

    def correct(self, row, place, label):
        _, was, at = self.naive[0].labels[place]
        self.histories.correct([row], [label], [was], [at])
        for naive in self.naive:
            naive.labels[place] = (naive.entity(row), label, at)

    def forget(self, place):
        row, came, _ = self.naive[0].rows[place]
        self.histories.forget([row], [came])
        for naive in self.naive:
            naive.forget(place)


@pytest.mark.fuzz
@pytest.mark.uncompiled
@settings(max_examples=60)
@given(BEGINNINGS, EVENTS, st.sampled_from(GROUPS), st.booleans())
def test_histories_are_what_the_raw_events_say(first, events, entities, timed):
    """Rows and labels in any order: late, early, repeated, corrected, replaced later, taken back, forgotten."""
    both, one_by_one = (Both(entities, timed, first) for _ in range(2))
    naive, labels, forgotten = both.naive[0], [], set()
    for event in [[first], [FIRST], *events]:
        if isinstance(event, list):
            found = both.arrive(event)
            if found is None:  # the clock went back, by which what had decayed was lost
                return
            parts = [one_by_one.histories.arrive([row]) for row in event]
            own = np.concatenate([part.numbers[:, -found.shape[1] :] for part in parts])
            assert own.tobytes() == found.tobytes()
            continue
        what, place, label = event
        place %= len(naive.rows)
        row = naive.rows[place][0]
        if what == "forget" and place not in forgotten:
            came = naive.rows[place][1]
            one_by_one.histories.forget([row], [came])
            both.forget(place)
            forgotten.add(place)
        elif what in ("label", "early"):
            row = dict(FIRST, who="Eve") if what == "early" else row  # who has not had a row
            if row is not None:
                both.label(row, label)
                one_by_one.histories.teach([row], [label])
                labels.append(row)
        elif labels and what != "forget":
            place %= len(labels)
            if naive.labels[place] is None:
                continue
            _, was, at = naive.labels[place]
            if what == "correct":
                both.correct(labels[place], place, label)
                one_by_one.histories.correct([labels[place]], [label], [was], [at])
                continue
            both.retract(labels[place], place)
            one_by_one.histories.retract([labels[place]], [was], [at])
            if what == "replace":
                both.label(labels[place], label)
                one_by_one.histories.teach([labels[place]], [label])
                labels.append(labels[place])
    assert one_by_one.histories.content().tobytes() == both.histories.content().tobytes()


@pytest.mark.parametrize("room", [3, 10])
def test_an_entity_that_had_to_make_room_is_as_new_if_it_comes_again(room):
    random = np.random.default_rng(room)
    both = Both(["who"], True, FIRST, max_entities=room)
    (naive,), n_evicted = both.naive, 0
    for k in range(300):
        name = f"c{int(random.exponential(6.0))}"
        row = dict(FIRST, who=name, day=1.0 + k / 5, amount=float(random.normal()), kind="abc"[k % 3])
        both.arrive([row])
        if k % 4 == 0:
            both.label(row, k % 3)
        kept = set(both.histories._groups[0].words[1:, core.KEY].astype(np.int64).tolist())
        for own in list(naive.latest):
            if hashes(texts_of([own[0]])).tolist()[0] not in kept:
                naive.evict(own)
                n_evicted += 1
        assert len(naive.latest) <= room
    assert both.histories.n_evicted_ == {"who": n_evicted}
    assert n_evicted > 20


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


@pytest.mark.parametrize(("dates", "expected"), [(True, [86_400.0, 604_800.0, 2_592_000.0]), (False, [1.0, 7.0, 30.0])])
def test_horizons_are_not_shorter_than_the_steps_of_the_clock(dates, expected):
    """Of times that are days, though entities come a hundred times a day."""
    days = [float(k // 500) for k in range(2000)]
    rows = [
        {"who": k % 5, "day": np.datetime64("2025-03-01") + int(day) if dates else day} for k, day in enumerate(days)
    ]
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


def test_columns_and_classes_may_come_later_and_the_rows_stay_as_wide():
    histories = Histories("who", horizons=[3.0])
    first = histories.arrive([{"who": "Ann", "a": 1.0, "c": None}] * 3)
    rows = histories.arrive([{"who": "Ann", "b": 2.0, "c": "x"}] * 2)
    assert rows.names[-len(histories.feature_names_) :] == first.names[-len(histories.feature_names_) :]
    named = histories.arrive([{"who": "Ann", "c": "x"}]).dicts()[0]
    assert named["who: a: mean, lately"] == 1.0
    assert (named["who: c: usual"] != 0.0, named["who: c: different"], named["who: c: deviation"]) == (True, 1.0, 0.0)
    assert any("'b' came after the first rows" in note for note in histories.notes_)
    for label in ("p", "q", "r", "s", "t", None, "u"):
        histories.teach(rows, [label, label])
    rows = histories.arrive([{"who": "Ann"}])
    shares = [rows.numbers[0, k - 1] for k, name in enumerate(rows.names) if "share of" in name]
    np.testing.assert_allclose(shares, [(2 + 2 / 14) / 15 if k < 3 else 0 for k in range(3)], rtol=0.5)
    assert any("4 labels are of classes whose shares have no column" in note for note in histories.notes_)
    words = histories.content().tobytes()
    histories.retract(rows, ["never seen"], [histories.now_])  # nor does it become a class
    assert list(histories._codes) == ["p", "q", "r", "s"]
    assert histories.content().tobytes() != words  # it counts as those without a column


def test_a_class_that_is_taken_back_before_it_came_is_none():
    histories = Histories("who", horizons=[3.0])
    rows = histories.arrive([{"who": "Ann"}])
    words = histories.content().tobytes()
    histories.retract(rows, ["never seen"], [histories.now_])
    assert (list(histories._codes), histories.content().tobytes()) == ([], words)


def test_classes_and_columns_can_be_chosen():
    histories = Histories("who", horizons=[3.0], classes=["fraud"], columns=["a"])
    rows = histories.arrive([{"who": "Ann", "a": 1.0, "b": 2.0}] * 2)
    assert histories.feature_names_ == [
        "who: since the last", "who: rows, lately", "who: share of fraud, lately", "who: a: mean, lately",
        "who: a: position, lately", "who: a: deviation",
    ]  # fmt: skip
    histories.teach(rows, ["fraud", "ok"])
    assert histories.arrive([{"who": "Ann"}]).dicts()[0]["who: share of fraud, lately"] == pytest.approx(0.5)
    for options in ({"columns": ["c"]}, {"classes": []}, {"classes": list(range(17))}):
        with pytest.raises(ValueError, match=r"need the column 'c'|classes must be one to 16"):
            Histories("who", **options).arrive([{"who": "Ann", "a": 1.0}])


def test_what_the_user_says_of_columns_holds_for_their_histories():
    rows = [{"who": "Ann", "zip": 12.0, "size": "?", "day": 3.0}]
    model = DEVDAN(nominal=["zip"], numeric=["size"], dates={"day": "epoch"})
    histories = Histories("who", horizons=[3.0]).know_columns(model._instructions())
    histories.arrive(rows)
    names = [name.split(": ")[1] for name in histories.feature_names_ if name.count(": ") == 2]
    assert (names.count("zip"), names.count("size"), names.count("day")) == (2, 3, 0)


def test_rows_that_have_histories_are_refused_before_they_count():
    histories = Histories("who", horizons=[3.0])
    rows = histories.arrive([{"who": "Ann"}])
    for ask in (histories.arrive, histories.transform):
        with pytest.raises(ValueError, match="have histories already"):
            ask(rows)
    assert histories.n_rows_ == 1


@pytest.mark.parametrize("timed", [True, False])
def test_rows_to_predict_are_seen_as_if_each_came_next(timed):
    rows = stream(300)
    histories = Histories("who", time="day" if timed else None, horizons=[50.0])
    histories.arrive(rows[:200])
    seen = histories.transform([rows[200]] * 20).numbers
    assert (seen == seen[0]).all()
    assert histories.arrive(rows[200:201]).numbers[0, 1:].tobytes() == seen[0, 1:].tobytes()


# --- The clock ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 1, 30, 99])
@pytest.mark.parametrize("wrong", [1e9, 1e4])
def test_one_time_in_the_far_future_does_not_stop_the_clock(place, wrong):
    rows = [{"who": f"c{k % 7}", "day": 10.0 + k / 10} for k in range(400)]
    rows[place]["day"] = wrong
    histories, in_parts = (Histories("who", time="day", horizons=[1.0]) for _ in range(2))
    found = histories.arrive(rows)
    assert histories.now_ == 10.0 + 39.9
    assert found.dicts()[-1]["who: rows, lately"] == pytest.approx(math.log1p(0.986), abs=0.01)
    assert found.dicts()[-1]["who: since the last"] == pytest.approx(math.log1p(0.7))
    parts = [in_parts.arrive(rows[start : start + 13]).numbers for start in range(0, 400, 13)]
    assert np.concatenate(parts).tobytes() == np.asarray(found.numbers).tobytes()


def test_first_times_in_the_far_past_are_not_taken_for_the_beginning():
    rows = stream(1300)
    for k in (0, 1):
        rows[k] = dict(rows[k], day=-1e7)
    histories = Histories("who", time="day")
    histories.arrive(rows)
    assert histories.horizons_["who"] == [0.9, 6.0, 30.0]


def test_times_out_of_order_are_not_taken_for_a_wrong_clock():
    days = [float(k // 40) for k in range(2000)]
    random = np.random.default_rng(0)
    order = np.argsort(np.arange(2000) + random.uniform(0, 300, 2000))
    histories = Histories("who", time="day", horizons=[1.0])
    histories.arrive([{"who": "Ann", "day": days[k]} for k in order])
    went = histories.arrived_
    assert (np.diff(went[100:]) >= 0).all()


# --- Forgetting --------------------------------------------------------------------------------------------------


def test_of_an_entity_without_rows_and_labels_nothing_is_left():
    histories = Histories("who", time="day", horizons=[2.0]).know_classes([0, 1])
    others = [{"who": f"c{k}", "day": float(k), "amount": 1.0, "kind": "a"} for k in range(20)]
    histories.arrive(others[:10])
    ann = {"who": "Ann", "day": 9.5, "amount": 77.0, "kind": "rare"}
    rows = histories.arrive([ann, ann])
    came = histories.arrived_.tolist()
    histories.arrive([{"who": "c9", "day": 9.75}])
    histories.teach(rows, [1, 1])
    labelled = histories.now_
    histories.arrive(others[10:])
    (group,) = histories._groups
    hidden = {float(hashes(texts_of([text]))[0]) for text in ("Ann", "rare")} | {9.5}
    assert hidden <= set(group.words.ravel().tolist())
    histories.retract(rows, [1, 1], [labelled] * 2)
    histories.forget(rows, came)
    assert not hidden & set(group.words.ravel().tolist())
    assert histories.n_entities_ == {"who": 20}
    seen = histories.transform([{"who": f"c{k}", "day": 19.0} for k in range(20)]).dicts()
    assert [row["who: since the last"] for row in seen] == pytest.approx(
        [math.log1p(19.0 - (9.75 if k == 9 else k)) for k in range(20)]
    )


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
    histories = Histories("who").know_classes([0, 1])
    for n in range(64, 4096, 64):
        histories.arrive(rows[n - 64 : n])
        assert histories.n_bytes_ / n <= 200 + 400 * (n_numbers + n_values)


@pytest.mark.parametrize(("n_numbers", "n_values"), [(0, 8), (1, 0), (8, 0)])
def test_memory_is_bounded_just_above_each_growth(n_numbers, n_values):
    histories = Histories("who").know_classes([0, 1])
    row = {**{f"n{j}": 1.0 for j in range(n_numbers)}, **{f"v{j}": "a" for j in range(n_values)}}
    for n in range(1, 3000, 7):
        histories.arrive([{"who": f"{n}-{k}", **row} for k in range(7)])
        if n > 200:
            assert histories.n_bytes_ / (n + 6) <= 200 + 400 * (n_numbers + n_values)


def test_of_a_column_that_is_given_up_nothing_is_kept_and_the_others_stay_the_same():
    random = np.random.default_rng(0)
    rows = [
        {"who": f"c{k % 9}", "weight": k % 9 + random.normal(), "size": random.normal(), "id": float(k),
         "note": f"text {k}", "place": f"p{k % 9}"}
        for k in range(1000)
    ]  # fmt: skip
    whole, chosen = Histories("who", horizons=[50.0]), Histories("who", horizons=[50.0], columns=["weight", "place"])
    found, expected = whole.arrive(rows), chosen.arrive(rows)
    whole.forget(rows[:900], list(range(900)))
    chosen.forget(rows[:900], list(range(900)))
    for one, other in ((found, expected), (whole.transform(rows), chosen.transform(rows))):
        for name in chosen.feature_names_:
            of_whole, of_chosen = ([row[name] for row in part.dicts()] for part in (one, other))
            assert of_whole == of_chosen
    (group,), (small,) = whole._groups, chosen._groups
    assert np.count_nonzero(group.words) == np.count_nonzero(small.words)


def test_every_history_is_told_in_words():
    histories = Histories(["who", ("who", "kind")], time="day").know_classes(["ok", "fraud"])
    rows = stream(1300)
    for row in rows:
        row["day"] = np.datetime64(1_700_000_000_000_000 + int(row["day"] * 86_400e6), "us")
    came = histories.arrive(rows)
    histories.teach(came, ["fraud" if k % 4 == 0 else "ok" for k in range(1300)])
    came = histories.arrive(rows[-1:])
    said, (told,) = histories.words_, histories.tell(came)
    assert list(said) == list(told) == histories.feature_names_
    assert all(told[name].startswith(f"{said[name]}: ") for name in said)
    assert len(set(said.values())) == len(said)
    assert said["who: rows, middle"] == "rows of this who, last 7 days"
    assert (
        said["who+kind: share of fraud, short"] == "share of fraud among the labels of this who and kind, last 7 days"
    )
    values = came.dicts()[0]
    own = math.expm1(values["who: rows, long"])
    usual = histories._groups[0].words[0, core.HEAD + 2] / 40
    assert told["who: rows, long"].endswith(f": {own / usual:.1f} times as many as usual")


def test_rows_get_the_histories_again_that_they_came_with():
    histories = Histories(["who"], time="day")
    rows = [{**FIRST, "day": float(k)} for k in range(5)]
    came = histories.arrive(rows)
    histories.teach(rows, ["a"] * 5).arrive([{**FIRST, "day": 9.0}])
    again = histories.restored(rows, came.numbers[:, -len(histories.feature_names_) :])
    assert (again.names, again.dicts()) == (came.names, came.dicts())


@pytest.mark.parametrize("before", [[], [{**FIRST, "day": None}]])
def test_rows_are_checked_without_being_counted(before):
    histories = Histories(["who"], time="day")
    if before:
        histories.arrive(before)
    assert not histories.is_settled
    with pytest.raises(ValueError, match="must hold times"):
        histories.check([{**FIRST, "day": "yesterday"}])
    assert histories.check([FIRST]).arrive([FIRST]).dicts()[0]["who"] == "Ann"
    assert (histories.is_settled, histories.n_rows_) == (True, len(before) + 1)


def test_a_limit_of_memory_is_room_for_fewer_entities():
    histories = Histories(["who", ("who", "where")], time="day")
    for k in range(2000):
        histories.arrive([{**FIRST, "who": f"p{k}", "day": float(k)}])
        histories.limit(2**19)
    assert 2**18 < histories.n_bytes_ < 2**19
    assert min(histories.n_evicted_.values()) > 0
