"""What a query does with rows, labels and states, by PySpark's tester: without an engine, and without Java."""

import math
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

pytest.importorskip("pyspark", minversion="4.3", reason="pip install 'devdan[spark]'")

import spark_state
from pyspark.sql.streaming.tws_tester import TwsTester
from spark_events import events, expected, frame, likely, packed, plan

from devdan import DEVDAN, DEVDANFleet
from devdan.spark import statebytes
from devdan.spark.packing import unpack_rows
from devdan.spark.processor import FleetProcessor
from devdan.spark.shard import rounds

RESULT = ["prediction", "probabilities", "version", "accuracy", "drifts"]
NOTHING = [np.nan] * 3


def trial(**changed):
    return TwsTester(FleetProcessor(plan(**changed)), timeMode="EventTime", eventTimeExtractor=lambda row: math.inf)


def cut(table, n_parts):
    """Batches, each with the rows up to a time."""
    parts = np.array_split(np.unique(table["at"]), n_parts)
    return [table[table["at"].isin(part)] for part in parts]


def told(one, table, shard=0):
    return rows_of(one.testInPandas(shard, packed(table)))


def rows_of(told):
    """The rows that a shard has told."""
    batches = [pa.record_batch({"content": pa.array(told.content, pa.binary())})] if len(told) > 0 else []
    lines = [line for batch in unpack_rows(batches) for line in batch.to_pylist()]
    found = pd.DataFrame(lines, columns=["kind", "key", "id", "at", *RESULT, "label", "error"], dtype=object)
    found["probabilities"] = [None if shares is None else dict(shares) for shares in found.probabilities]
    return found


def parts_of(one, shard):
    return {name: content for name, (content,) in one.peekMapState("segments", shard).items()}


def samples_of(one, shard=0):
    return spark_state.samples(one.peekValueState("shared", shard)[0], parts_of(one, shard))


def states_of(one, shards=(0,)):
    return {
        key: kept
        for shard in shards
        for key, (kept, _) in spark_state.networks(one.peekValueState("shared", shard)[0], parts_of(one, shard)).items()
    }


def assert_same_networks(kept, fleet):
    assert set(kept) == set(fleet)
    for key, own in kept.items():
        assert own.state.tobytes() == fleet._networks.get(key).state.tobytes(), key


def assert_same_predictions(found, probabilities):
    predictions = found[found.kind == "prediction"].set_index("id").probabilities
    assert set(predictions.index) == set(probabilities)
    for id_, own in probabilities.items():
        if own is not None:
            assert likely(predictions[id_]) == likely(own), id_


@pytest.mark.parametrize("n_batches", [1, 2, 7, 60])
def test_the_numbers_are_those_of_a_fleet_that_is_given_row_after_row(n_batches):
    one, table = trial(), events()
    found = pd.concat([told(one, batch) for batch in cut(table, n_batches)])
    probabilities, fleet = expected(plan(), table)
    assert sum(own is not None for own in probabilities.values()) > 300
    assert_same_predictions(found, probabilities)
    assert_same_networks(states_of(one), fleet)


def test_the_numbers_do_not_depend_on_the_shards():
    one, table = trial(shards=3), events()
    shards = table.key.map(lambda key: zlib.crc32(key.encode()) % 3)
    assert shards.nunique() == 3
    found = [told(one, batch[shards[batch.index] == shard], shard) for batch in cut(table, 4) for shard in range(3)]
    probabilities, fleet = expected(plan(), table)
    assert_same_predictions(pd.concat(found), probabilities)
    assert_same_networks(states_of(one, range(3)), fleet)


def test_the_order_in_which_rows_of_a_batch_arrive_does_not_matter():
    table = events()
    ways = [table, table.sample(frac=1.0, random_state=1)]
    first, second = (told(trial(), way).sort_values(["id", "kind", "at"], ignore_index=True) for way in ways)
    pd.testing.assert_frame_equal(first, second)


def test_a_prior_is_that_of_a_fleet_which_is_given_the_same_rounds():
    one = trial(prior=True)
    table = events(n=120, delay=2)
    table = table[table.f0.notna() & table.label.notna()]
    fleet = DEVDANFleet(prior=True, n_jobs=1, random_state=3)
    for batch in cut(table, 3):
        told(one, batch)
        keys = batch.key.tolist()
        numbers = [keys[:place].count(key) for place, key in enumerate(keys)]
        for number in range(max(numbers) + 1):
            own = batch[np.array(numbers) == number]
            fleet.partial_fit(own.key.tolist(), own[["f0", "f1", "f2"]].to_numpy(), own.label.astype(int).tolist())
    assert_same_networks(states_of(one), fleet)
    header, network = statebytes.unpack_shared(one.peekValueState("shared", 0)[0])
    assert header["fleet"]["options"]["prior"] is True
    assert network.tobytes() == fleet._shared.network().tobytes()


# --- Labels ------------------------------------------------------------------------------------------------------

X, OTHER = [0.2, 0.3, 0.4], [0.9, 0.9, 0.9]


def kinds(found):
    return list(zip(found.kind, found.id, strict=True))


@pytest.mark.parametrize("together", [True, False])
def test_a_label_may_come_before_its_features(together):
    one = trial()
    lines = [("a", "1", 10, 1, *NOTHING), ("a", "1", 20, None, *X)]
    parts = [frame(lines)] if together else [frame(lines[:1]), frame(lines[1:])]
    found = [told(one, part) for part in parts]
    assert kinds(pd.concat(found)) == [("prediction", "1"), ("label", "1")]
    assert_same_networks(states_of(one), plan().new_fleet().partial_fit(["a"], [X], [1]))


@pytest.mark.parametrize("n_batches", [1, 5])
def test_what_comes_again_is_not_learned_again(n_batches):
    one = trial()
    lines = [
        ("a", "1", 10, None, *X),
        ("a", "1", 11, None, *X),  # features again
        ("a", "1", 12, 1, *NOTHING),
        ("a", "1", 13, 1, *NOTHING),  # label again
        ("a", "1", 14, 1, *X),  # all of it again
    ]
    found = pd.concat([told(one, part) for part in cut(frame(lines), n_batches)])
    assert [kind for kind, _ in kinds(found)] == ["prediction", "repeated", "label", "repeated", "repeated", "repeated"]
    assert_same_networks(states_of(one), plan().new_fleet().observe(["a"], [X]).teach(["a"], [X], [1]))


@pytest.mark.parametrize("n_batches", [1, 5])
def test_what_contradicts_is_told_and_not_learned(n_batches):
    one = trial()
    lines = [
        ("a", "1", 10, None, *X),
        ("a", "1", 11, None, *OTHER),
        ("a", "1", 12, 1, *NOTHING),
        ("a", "1", 13, 0, *NOTHING),
        ("a", "2", 14, 1, *NOTHING),  # early
        ("a", "2", 15, 0, *OTHER),
    ]
    found = pd.concat([told(one, part) for part in cut(frame(lines), n_batches)])
    assert found[found.kind == "error"].error.tolist() == [
        "the id was used before, with other features",
        "its label is '1', which came before",
        "its label is '1', which came before",
    ]
    fleet = plan().new_fleet().observe(["a"], [X]).teach(["a"], [X], [1]).partial_fit(["a"], [OTHER], [1])
    assert_same_networks(states_of(one), fleet)


@pytest.mark.parametrize("n_batches", [1, 2])
@pytest.mark.parametrize(("label", "kind"), [(1, "repeated"), (0, "error")])
def test_a_label_that_came_before_its_features_counts_and_not_the_one_with_them(n_batches, label, kind):
    one = trial()
    lines = [("a", "1", 10, 1, *NOTHING), ("a", "1", 11, label, *X)]
    found = pd.concat([told(one, part) for part in cut(frame(lines), n_batches)])
    assert found.kind.tolist() == ["prediction", "label", kind]
    assert found.label.tolist()[1:] == ["1", str(label)]
    assert_same_networks(states_of(one), plan().new_fleet().partial_fit(["a"], [X], [1]))


def test_ids_are_those_of_a_key():
    one = trial()
    found = told(one, frame([("a", "1", 10, 1, *X), ("b", "1", 11, 0, *OTHER)]))
    assert found.kind.tolist() == ["prediction", "label"] * 2
    assert set(samples_of(one)) == {("a", "1"), ("b", "1")}


def test_what_a_key_has_come_to_comes_out_with_its_predictions():
    """Its accuracy and its drifts, as a fleet tells of them that has learned all rows before this one."""
    random = np.random.default_rng(2)
    rows = random.random((1000, 3))
    labels = [int(x[0] > 0.5) if row < 600 else int(x[0] <= 0.5) for row, x in enumerate(rows)]
    lines = [("a" if row % 50 else "b", f"{row:04}", 10 + row, labels[row], *rows[row]) for row in range(1000)]
    one, fleet, expected_ = trial(), plan().new_fleet(), []
    found = pd.concat([told(one, part) for part in cut(frame(lines), 3)])
    for key, _, _, label, *x in lines:
        known = fleet.summary().to_pylist() if fleet.__sklearn_is_fitted__() else []
        own = next((each for each in known if each["key"] == key), {"accuracy": None, "real_drifts": 0})
        expected_.append((own["accuracy"], own["real_drifts"]))
        fleet.partial_fit([key], [x], [label])
    predictions = found[found.kind == "prediction"].sort_values("id")
    assert list(zip(predictions.accuracy, predictions.drifts, strict=True)) == expected_
    assert max(drifts for _, drifts in expected_) > 0


def test_predictions_are_decided_by_what_mistakes_cost_also_after_a_restart():
    one = trial()
    lines = [("a", f"{row}", row, int(row % 8 == 0), *X) for row in range(40)]
    told(one, frame(lines))
    assert told(one, frame([("a", "x", 50, None, *X)])).prediction.tolist() == ["0"]
    one.processor._plan = plan(decide={1: {"missed": 50, "false": 1}})
    assert told(one, frame([("a", "y", 51, None, *X)])).prediction.tolist() == ["1"]
    assert told(one, frame([("a", "z", 52, None, *X)])).prediction.tolist() == ["1"]


def test_a_label_tells_what_had_been_predicted_even_if_it_comes_batches_later():
    one = trial()
    told(one, frame([("a", str(at), at, at % 2, *(OTHER if at % 2 else X)) for at in range(10)]))
    first = told(one, frame([("a", "next", 12, None, *X)]))
    later = told(one, frame([("a", "next", 13, 1, *NOTHING)]))
    assert first.prediction.tolist() == later.prediction.tolist() == ["0"]
    assert later.label.tolist() == ["1"]
    assert later.version.tolist() == [None]


def test_labels_are_not_told_unless_asked_for():
    found = told(trial(with_labels=False), frame([("a", "1", 10, 0, *X)]))
    assert found.kind.tolist() == ["prediction"]


def test_a_bad_row_tells_why_and_the_others_go_on():
    one = trial()
    lines = [
        (None, "1", 10, 1, *X),
        ("a", None, 11, 1, *X),
        ("a", "2", 12, None, *NOTHING),
        ("a", "3", 13, 1, np.inf, 0.0, 0.0),
        ("a", "4", 14, 1, *X),
        ("a", "5", 15, 1, *X),
    ]
    table = frame(lines)
    table["at"] = table["at"].where(table.id != "5")
    one.handle.setGroupingKey(0)  # the tester itself cannot do without a time
    out = rows_of(pd.concat(one.processor.handleInputRows((0,), iter([packed(table)]), one._getTimerValues())))
    assert out[out.kind == "error"].error.tolist() == [
        "the time must not be missing",
        "the key must not be missing",
        "the id must not be missing",
        "a row must have features, a label or both, got neither",
        "features must be finite or missing, got infinity",
    ]
    assert kinds(out)[-2:] == [("prediction", "4"), ("label", "4")]
    assert_same_networks(states_of(one), plan().new_fleet().partial_fit(["a"], [X], [1]))


# --- Time --------------------------------------------------------------------------------------------------------


def test_samples_and_early_labels_expire_by_event_time():
    one = trial(wait=1000 * 1_000_000)
    told(one, frame([("a", "1", 10, None, *X), ("a", "2", 20, 1, *NOTHING), ("a", "3", 600, None, *X)]))
    one.setWatermark(1_015_000)  # 1 has expired, the others have not
    found = told(one, frame([("a", "1", 1090, None, *X), ("a", "3", 1090, None, *OTHER)]))
    assert kinds(found) == [("prediction", "1"), ("error", "3")]
    one.setWatermark(1_021_000)  # 2 too
    found = told(one, frame([("a", "2", 1100, None, *X), ("a", "3", 1100, 0, *NOTHING)]))
    assert kinds(found) == [("prediction", "2"), ("label", "3")]
    one.setWatermark(10_000_000)
    assert samples_of(one) == {}
    assert {kind for kind, *_ in parts_of(one, 0)} == {"networks"}
    assert list(one.handle._timers.getAllKeysWithTimers()) == []  # nothing is left to be looked after
    told(one, frame([("a", "4", 20_000, None, *X)]))
    assert list(one.handle._timers.listTimers(0)) == [20_125_000]


def test_a_row_that_comes_too_late_is_told_and_not_learned():
    one = trial()
    told(one, frame([("a", "1", 10, 1, *X), ("a", "2", 600, 0, *OTHER)]))
    before = states_of(one)
    one.setWatermark(500_000)
    found = told(one, frame([("a", "3", 500, 1, *X), ("a", "2", 500, 1, *NOTHING)]))
    assert kinds(found) == [("error", "3"), ("error", "2")]
    assert found.error.str.startswith("it came too late: rows up to 1970-01-01T00:08:20.000000 (UTC) are final").all()
    assert {key: kept.state.tobytes() for key, kept in states_of(one).items()} == {
        key: kept.state.tobytes() for key, kept in before.items()
    }
    assert told(one, frame([("a", "4", 501, None, *X)])).kind.tolist() == ["prediction"]


def test_keys_that_are_not_seen_begin_anew():
    one = trial(forget=1000 * 1_000_000)
    told(one, frame([("a", "1", 10, 1, *X), ("b", "2", 900, 0, *X)]))
    one.setWatermark(1_300_000)
    assert told(one, frame([("a", "3", 1301, None, *X)])).version.tolist() == [0]
    assert told(one, frame([("b", "4", 1301, None, *X)])).version.tolist() == [2]
    one.handle._timers._key_to_timers.clear()  # nothing is swept from here on
    one.setWatermark(2_302_000)
    told(one, frame([("b", "3", 2400, 1, *OTHER)]))
    assert (
        states_of(one)["b"].state.tobytes()
        == plan().new_fleet().partial_fit(["b"], [OTHER], [1])._networks.get("b").state.tobytes()
    )


# --- Kinds of columns --------------------------------------------------------------------------------------------

SCHEMA = pa.schema(
    [
        ("load", pa.float64()),
        ("city", pa.string()),
        ("on", pa.bool_()),
        ("seen", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
    ]
)


def table_of(n, seed=0):
    """Features of all kinds, as Arrow has them."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "load": pa.array([None if number % 13 == 0 else random.random() for number in range(n)], pa.float64()),
            "city": pa.array(random.choice(["Bonn", "Köln", "Ulm"], n)),
            "on": pa.array([None if number % 7 == 0 else bool(random.random() > 0.5) for number in range(n)]),
            "seen": pa.array(random.integers(0, 10**15, n), pa.int64()).cast(pa.timestamp("us", "UTC")),
            "day": pa.array(random.integers(0, 9000, n).astype(np.int32), pa.int32()).cast(pa.date32()),
        },
        schema=SCHEMA,
    )


def test_columns_of_all_kinds_are_encoded_as_in_a_fleet_and_kept_while_they_wait():
    n = 60
    chosen = {"features": tuple(SCHEMA.names), "schema": SCHEMA}
    one, table, fleet = trial(**chosen), table_of(n), plan(**chosen).new_fleet()
    rows = pd.DataFrame(
        {"key": "a", "id": [f"{number:03}" for number in range(n)], "at": np.arange(n) * 10**6 + 10**6, "label": None}
    )
    for place, name in enumerate(SCHEMA.names):
        kept = {"seen": pa.int64(), "day": pa.int32()}
        rows[f"f{place}"] = table[name].cast(kept.get(name, SCHEMA.field(name).type)).to_pandas()
    labels = rows.assign(at=rows["at"] + 60 * 10**6, label=["1" if number % 3 else "0" for number in range(n)])
    labels[[f"f{place}" for place in range(5)]] = None
    told(one, rows)
    told(one, labels)
    for row in range(n):
        fleet.observe(["a"], table.slice(row, 1))
    for row in range(n):
        fleet.teach(["a"], table.slice(row, 1), [1 if row % 3 else 0])
    assert_same_networks(states_of(one), fleet)


@pytest.mark.parametrize(
    ("kind", "texts", "values"), [("numbers", ["7", "-3"], [7, -3]), ("flags", ["true", "false"], [True, False])]
)
def test_keys_and_labels_of_other_kinds(kind, texts, values):
    one = trial(key_kind=kind, label_kind=kind)
    table = frame([(texts[0], "1", 10, 0, *X), (texts[1], "2", 11, 1, *OTHER), (texts[0], "3", 12, None, *X)])
    table["label"] = [texts[0], texts[1], None]
    found = told(one, table)
    assert found.prediction.tolist()[-1] == texts[0]
    fleet = plan(label_kind=kind).new_fleet()
    fleet.partial_fit([values[0]], [X], [values[0]]).partial_fit([values[1]], [OTHER], [values[1]]).observe(
        [values[0]], [X]
    )
    kept = {value: states_of(one)[text] for text, value in zip(texts, values, strict=True)}
    assert_same_networks(kept, fleet)


# --- Checkpoints -------------------------------------------------------------------------------------------------


def test_a_state_of_a_newer_version_is_refused_in_words():
    one = trial()
    told(one, frame([("a", "1", 10, 1, *X)]))
    (content,) = one.peekValueState("shared", 0)
    one.updateValueState("shared", 0, (bytes([statebytes.VERSION + 1]) + content[1:],))
    with pytest.raises(
        ValueError, match=r"written by a newer devdan .* upgrade devdan on the driver and on all workers"
    ):
        told(one, frame([("a", "2", 11, 1, *X)]))


@pytest.mark.parametrize("changed", [{"shards": 2}, {"prior": True}, {"random_state": 4}, {"label_kind": "text"}])
def test_what_must_stay_with_a_checkpoint_is_said(changed):
    one = trial()
    told(one, frame([("a", "1", 10, 1, *X)]))
    one.processor._plan = plan(**changed)
    (name,) = changed
    with pytest.raises(ValueError, match=f"{name} must stay .* another checkpointLocation"):
        told(one, frame([("a", "2", 11, 1, *X)]))


def test_options_may_be_changed_when_a_query_is_restarted():
    one, fleet = trial(), plan().new_fleet()
    told(one, frame([("a", "1", 10, 1, *X)]))
    one.processor._plan = plan(estimator=DEVDAN(rehearse=0, learning_rate=0.001))
    told(one, frame([("a", "2", 11, 0, *OTHER)]))
    fleet.partial_fit(["a"], [X], [1])
    fleet.estimator = DEVDAN(rehearse=0, learning_rate=0.001)
    fleet.partial_fit(["a"], [OTHER], [0])
    assert_same_networks(states_of(one), fleet)


def test_rounds_have_every_event_once_and_keep_the_order_of_a_key():
    codes = np.random.default_rng(0).integers(5, size=100)
    found = list(rounds(codes))
    assert sorted(np.concatenate(found).tolist()) == list(range(100))
    assert all(len(set(codes[together].tolist())) == len(together) for together in found)
    for code in range(5):
        own = [place for together in found for place in together.tolist() if codes[place] == code]
        assert own == sorted(own)
