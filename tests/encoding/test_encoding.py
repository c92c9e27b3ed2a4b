"""Tables as people have them become the same inputs, whatever door they come through."""

import gzip
import json
import pickle
import warnings
from datetime import date, datetime, time, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hostile import CELLS
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import SMALL, words
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from devdan import DEVDAN, DEVDANEnsemble, open_model
from devdan.bench import PClass, PENsemble
from devdan.encoding import values
from devdan.encoding.encoding import Encoding, EncodingWarning, Instructions, SingleRow
from devdan.encoding.rows import joined
from devdan.encoding.tables import TableError, from_dicts, rows_of
from devdan.evaluation import prequential
from devdan.kernel import Network
from devdan.kernel.state import check_state, new_evolving, new_replaying, with_features
from devdan.streams import StreamError, open_stream

N = 600


def frame(n=N, seed=0):
    """A table with a column of every kind, some values missing, and labels that depend on some."""
    random = np.random.default_rng(seed)
    start = pd.Timestamp("2023-12-20 06:30:00")
    columns = {
        "id": [f"user-{k:05}" for k in range(n)],
        "row": np.arange(n, dtype=float),
        "age": random.normal(40, 10, size=n).round(3),
        "city": random.choice(["Köln", "Bonn", "São Paulo", "a, b"], size=n),
        "plan": pd.Categorical(random.choice(["free", "gold"], size=n)),
        "member": random.random(n) > 0.5,
        "agrees": random.choice(["yes", "no"], size=n),
        "price": [f"${value:.2f}" for value in random.random(n) * 100],
        "when": start + pd.to_timedelta(np.arange(n) * 5000, unit="s"),
        "visits": random.integers(0, 9, size=n),
    }
    table = pd.DataFrame(columns)
    for name in ("age", "city", "when", "agrees", "price"):
        table.loc[random.random(n) < 0.05, name] = None
    table.loc[0, "age"] = None  # so that not even the first row tells everything
    label = np.where((table["city"] == "Bonn") ^ (table["age"] > 40), "in", "out")
    table["label"] = label
    return table


FRAME = frame()
FEATURES = [name for name in FRAME if name != "label"]


def texts(table):
    """The cells as a file has them."""
    whole = table.copy()
    whole["when"] = [None if pd.isna(value) else value.isoformat() for value in table["when"]]
    whole["member"] = ["true" if value else "false" for value in table["member"]]
    return whole


def write_csv(table, path):
    text = texts(table).to_csv(index=False)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())


def write_arff(table, path):
    kinds = {"age": "numeric", "row": "numeric", "visits": "numeric", "plan": "{free,gold}", "label": "{in,out}"}
    lines = ["@relation t", *(f"@attribute {name} {kinds.get(name, 'string')}" for name in table), "@data"]
    for row in texts(table).itertuples(index=False):
        lines.append(
            ",".join("?" if pd.isna(cell) else f"'{cell}'" if isinstance(cell, str) else str(cell) for cell in row)
        )
    path.write_text("\n".join(lines))


def write_npz(table, path):
    arrays = {}
    for name in table:
        column = table[name]
        if name == "when":
            arrays[name] = column.to_numpy("M8[us]")
        elif column.dtype == object or name == "plan" or str(column.dtype) == "str":
            arrays[name] = np.array(["" if pd.isna(value) else value for value in column])
        else:
            arrays[name] = column.to_numpy()
    np.savez(path, **arrays)


FILES = {"t.csv": write_csv, "t.csv.gz": write_csv, "t.arff": write_arff, "t.npz": write_npz}
TOKYO = "Asia/Tokyo"
FRAMES = {
    "pandas": lambda table: table,
    "pandas, all objects": lambda table: table.astype(object),
    "pandas, from Arrow": lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, with a zone": lambda table: table.assign(when=table["when"].dt.tz_localize("UTC").dt.tz_convert(TOKYO)),
    "pandas, dates as text": lambda table: table.assign(when=texts(table)["when"]),
    "Arrow": lambda table: pa.Table.from_pandas(table, preserve_index=False),
    "Arrow, dictionaries": lambda table: pa.Table.from_pandas(
        table.assign(city=table["city"].astype("category")), preserve_index=False
    ),
    "Polars": pl.from_pandas,
    "Polars, enum": lambda table: pl.from_pandas(table).with_columns(pl.col("plan").cast(pl.Enum(["free", "gold"]))),
}  # fmt: skip


def objects(table):
    """Rows as JSON has them."""
    text = texts(table).to_json(orient="records", lines=True)
    return [json.loads(line) for line in text.splitlines()]


def doors(tmp_path):
    for name, make in FILES.items():
        make(FRAME, tmp_path / name)
        yield name, open_stream(tmp_path / name, target="label", chunk=100)
    pa_parquet.write_table(pa.Table.from_pandas(FRAME, preserve_index=False), tmp_path / "t.parquet")
    yield "t.parquet", open_stream(tmp_path / "t.parquet", target="label", chunk=100)
    for name, make in FRAMES.items():
        yield name, open_stream(make(FRAME), target="label", chunk=100)
    samples = objects(FRAME)
    pairs = [({name: sample[name] for name in FEATURES}, sample["label"]) for sample in samples]
    yield "JSON", open_stream(pairs, chunk=100)
    yield "a frame and labels", open_stream((FRAME[FEATURES], FRAME["label"].to_numpy()), chunk=100)


def trained(model, stream):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = list(prequential(stream, model))
    return model, [record.counts for record in records]


def states(model):
    return [state.tobytes() for state in model.mixture_.networks]


def test_one_table_through_every_door_gives_the_same_bits(tmp_path):
    model, counts = trained(DEVDAN(random_state=1), open_stream(FRAME, target="label", chunk=100))
    expected = model.predict_proba(FRAME[FEATURES])
    assert model.score(FRAME[FEATURES], FRAME["label"]) > 0.9  # half of them are in
    for door, stream in doors(tmp_path):
        other, its = trained(DEVDAN(random_state=1), stream)
        assert its == counts, door
        assert other.encoding_.to_json() == model.encoding_.to_json(), door
        assert states(other) == states(model), door
        assert other.predict_proba(FRAME[FEATURES]).tobytes() == expected.tobytes(), door
    for form, make in FRAMES.items():
        table = make(FRAME)
        features = table[FEATURES] if "pandas" in form else table.select(FEATURES)
        assert model.predict_proba(features).tobytes() == expected.tobytes(), form
    assert model.predict_proba(rows_of(objects(FRAME)).select(range(len(FEATURES)))).tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["ensemble", "pclass", "pensemble"])
def test_every_estimator_takes_the_table(kind, tmp_path):
    make = {
        "ensemble": lambda: DEVDANEnsemble(SMALL, random_state=1),
        "pclass": PClass,
        "pensemble": PENsemble,
    }[kind]
    whole = FRAME.dropna().reset_index(drop=True) if kind[0] == "p" else FRAME
    pa_parquet.write_table(pa.Table.from_pandas(whole, preserve_index=False), tmp_path / "t.parquet")
    write_csv(whole, tmp_path / "t.csv")
    answers = []
    for name in ("t.parquet", "t.csv"):
        model, _ = trained(make(), open_stream(tmp_path / name, target="label", chunk=100))
        answers.append(model.predict_proba(whole[FEATURES]).tobytes())
        assert model.n_features_in_ == len(FEATURES)
        assert model.feature_names_in_.tolist() == FEATURES
    assert answers[0] == answers[1]


def test_rivers_class_takes_dicts_of_all_kinds():
    DEVDANClassifier = pytest.importorskip("devdan.river").DEVDANClassifier
    table = FRAME[:300]
    plain = [
        {name: None if value is pd.NaT else value for name, value in row.items()} for row in table.to_dict("records")
    ]
    python = [row | {"when": row["when"] and row["when"].to_pydatetime()} for row in plain]
    answers = []
    for samples in (plain, python, objects(table)):
        model = DEVDANClassifier(seed=1)
        for sample in samples:
            model.learn_one({name: sample[name] for name in FEATURES}, sample["label"])
        answers.append(words(model._online))
    model = DEVDANClassifier(seed=1)
    for part in (table[:120], table[120:]):
        model.learn_many(part[FEATURES], part["label"])
    answers.append(words(model._online))
    assert all(answer == answers[0] for answer in answers)
    shares = model.predict_proba_many(table[FEATURES])
    for row, sample in enumerate(objects(table)):
        one = model.predict_proba_one({name: sample[name] for name in FEATURES})
        np.testing.assert_array_equal(list(one.values()), shares.iloc[row])


def test_capymoas_class_gives_each_nominal_value_an_input():
    adapter = pytest.importorskip("devdan.capymoa")
    from capymoa.core import LabeledInstance  # noqa: PLC0415
    from capymoa.stream import Schema  # noqa: PLC0415

    schema = Schema.from_custom(["x", "city", "y"], target="y", categories={"city": ["Bonn", "Köln"], "y": ["a", "b"]})
    learner = adapter.DEVDANClassifier(schema)
    random = np.random.default_rng(0)
    for _ in range(300):
        x = np.array([random.normal(), random.integers(2)])
        learner.train(LabeledInstance.from_array(schema, x, int(x[1])))
    assert sorted(learner.encoding_.input_names) == ["city=Bonn", "city=Köln", "x"]
    assert learner.predict(LabeledInstance.from_array(schema, np.array([0.0, 1.0]), 0)) == 1


# --- What becomes of a column ------------------------------------------------------------------------------------


def encoded(**columns):
    rows = rows_of(pd.DataFrame(columns))
    return Encoding().learned(rows)


def test_kinds_and_what_they_become():
    X, encoding = encoded(
        number=[1.5, np.nan, 3.0], flag=[True, False, True], says=["yes", "No", None], city=["b", "a", "b"],
        money=["$1,234.50", "5 %", "-2"], clock=["00:00", "06:00", "18:30:30"],
    )  # fmt: skip
    names = [
        "number",
        "flag",
        "says",
        "city=b",
        "money",
        "clock: time of day (sine)",
        "clock: time of day (cosine)",
        "city=a",
    ]
    assert encoding.input_names == names
    np.testing.assert_array_equal(X[:, 0], [1.5, np.nan, 3.0])
    np.testing.assert_array_equal(X[:, 1], [1, 0, 1])
    np.testing.assert_array_equal(X[:, 2], [1, 0, np.nan])
    np.testing.assert_array_equal(X[:, [3, 7]], [[1, 0], [0, 1], [1, 0]])
    np.testing.assert_array_equal(X[:, 4], [1234.5, 5, -2])
    np.testing.assert_allclose(X[:2, 5:7], [[0.5, 1.0], [1.0, 0.5]], atol=1e-12)
    assert {name: column.kind for name, column in encoding.columns.items()} == {
        "number": "number", "flag": "flag", "says": "flag", "city": "nominal", "money": "number", "clock": "time",
    }  # fmt: skip
    assert "written as text such as '$1,234.50'" in repr(encoding)


def test_dates_become_what_repeats_once_they_span_it():
    def periods(*times):
        return encoded(when=pd.to_datetime(list(times)), x=range(len(times)))[1].columns["when"].periods

    assert periods("2024-01-01 10:00", "2024-01-01 20:00") == []
    assert periods("2024-01-01 10:00", "2024-01-02 11:00") == ["time of day"]
    assert periods("2024-01-01", "2024-01-03") == []  # always midnight
    assert periods("2024-01-01", "2024-01-08") == ["day of week"]
    assert periods("2024-01-01", "2024-12-31") == ["day of week", "day of year"]
    times = pd.date_range("2023-01-01", periods=800, freq="17h")
    X, encoding = encoded(when=times)
    sine = dict(zip(encoding.input_names, X.T, strict=True))["when: day of week (sine)"]
    expected = [0.5 + 0.5 * np.sin(2 * np.pi * ((t.dayofweek * 24 + t.hour) / 168)) for t in times]
    np.testing.assert_allclose(sine, expected, atol=1e-9)


def test_a_category_of_tomorrow_is_neutral_and_learned_when_it_comes():
    rows = rows_of([{"city": "a", "x": 1.0}, {"city": "b", "x": 2.0}])
    _, encoding = Encoding().learned(rows)
    later = rows_of([{"city": "c", "x": 3.0}])
    np.testing.assert_array_equal(encoding.applied(later), [[np.nan, 3.0, np.nan]])
    X, grown = encoding.learned(later)
    np.testing.assert_array_equal(X, [[0, 3, 0, 1]])
    assert encoding.input_names == ["city=a", "x", "city=b"]  # as it was
    assert grown.input_names == ["city=a", "x", "city=b", "city=c"]


def test_counters_and_ids_are_left_out_and_told_about():
    n = 300
    random = np.random.default_rng(0)
    ids, x = [f"{k:x}-{k}" for k in range(n)], random.random(n)
    table = pd.DataFrame(
        {"id": ids, "row": range(n), "epoch": 1.7e9 + np.arange(n) * 60.0, "x": x, "step": x.cumsum() * 0}
    )
    with pytest.warns(UserWarning, match="the column 'id' is left out: it is nearly unique") as caught:
        model = DEVDAN(random_state=0).partial_fit(table, x > 0.5)
    assert len(caught) == 3
    assert [name for name, column in model.encoding_.columns.items() if column.left_out] == ["id", "row", "epoch"]
    assert model.encoding_.input_names == ["x", "step"]
    kept = DEVDAN(random_state=0, numeric=["row"], nominal=["id"], drop=["epoch"]).partial_fit(table, x > 0.5)
    assert kept.encoding_.columns["row"].left_out == ""
    assert len(kept.encoding_.columns["id"].values) == 64
    assert kept.encoding_.columns["epoch"].left_out == "dropped"


def test_a_column_whose_values_hardly_recur_is_left_out():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"customer": random.integers(700, size=1000), "shop": random.integers(400, size=1000)})
    table = table.astype(str).radd("n").assign(x=1.0)
    _, encoding = Encoding().learned(rows_of(table))
    assert encoding.columns["customer"].left_out.startswith("its values hardly recur: 5")
    assert encoding.columns["shop"].left_out == ""
    grown = in_pieces(table.to_dict("records"), 7)
    assert grown.columns["customer"].left_out == encoding.columns["customer"].left_out


def test_words_in_several_cases_are_one_value_and_codes_are_not():
    fuel = ["fuel", "Fuel", "gift cards", "FUEL", "GIFT CARDS", None]
    X, encoding = encoded(of=fuel, code=["aB", "ab", "x1Y", "X1y", "m", "M"])
    assert encoding.input_names[:3] == ["of=fuel", "code=aB", "code=ab"]
    np.testing.assert_array_equal(X[:5, 0], [1, 1, 0, 1, 0])
    assert len(encoding.columns["code"].values) == 6
    (note,) = encoding.notes
    assert note.startswith("the column 'of' has words in several cases, such as 'Fuel', which are taken for the same")
    told = Encoding(instructions=Instructions(nominal=["of"])).learned(rows_of([{"of": text} for text in fuel]))[1]
    assert len(told.columns["of"].values) == 5
    assert encoding.without(rows_of([{"of": "FUEL", "code": None}]), ["of"]).columns["of"].values == ["gift cards"]


def test_what_rose_for_a_while_is_back_when_it_falls():
    encoding, seen = Encoding(), []
    for value in [*range(150), 3, *range(1200)]:
        _, encoding = encoding.learned(rows_of([{"t": float(value), "x": 0.0}]))
        seen.append("t" in encoding.input_names)
    assert seen[:99] == [True] * 99
    assert seen[99:150] == [False] * 51
    assert all(seen[150:])


def test_further_values_share_inputs_and_memory_stays_flat():
    encoding = Encoding(instructions=Instructions(nominal=["name"]))
    sizes = []
    for start in range(0, 100_000, 5_000):
        rows = rows_of(pd.DataFrame({"name": np.repeat([f"v{k}" for k in range(start, start + 2_500)], 2), "x": 0.0}))
        X, encoding = encoding.learned(rows)
        sizes.append(len(pickle.dumps(encoding)))
        assert np.isfinite(X).all()
    assert len(encoding.columns["name"].values) == 64
    assert len(encoding) == 64 + 16 + 1
    assert len(set(sizes[2:])) == 1
    assert X[0].sum() == 1.0


def test_a_word_among_numbers_is_missing_unless_it_recurs():
    X, encoding = encoded(x=["unknown", "1", "2", None, "3"])
    assert encoding.input_names == ["x"]
    np.testing.assert_array_equal(X, [[np.nan], [1], [2], [np.nan], [3]])
    assert encoding.notes == [
        "the column 'x' holds numbers, but also words such as 'unknown', which are missing or, once one has come 3 "
        "times, inputs of their own"
    ]
    assert repr(encoding) == "x  number; 1 of 4 values is none: 'unknown'"
    X, later = encoding.learned(rows_of([{"x": "unknown"}, {"x": "unknown"}, {"x": "4"}]))
    assert later.input_names == ["x", "x=unknown"]
    np.testing.assert_array_equal(X, [[np.nan, 1], [np.nan, 1], [4, 0]])


def test_a_kind_is_what_most_values_have_not_the_first():
    n = 1500
    amounts = ["unknown", *(f"{k % 97},{k % 7}" for k in range(1, n))]
    table = pd.DataFrame(
        {
            "amount": amounts,
            "money": [
                "see receipt" if k % 50 == 7 else f"EUR {k % 90}.50" if k % 3 else f"€{k % 90}.50" for k in range(n)
            ],
            "seat": [f"{k % 30}{'ABCDEF'[k % 6]}" for k in range(n)],
            "gate": [str(k % 9) if k % 3 == 0 else f"B{k % 9}" for k in range(n)],
            "when": ["soon", *pd.date_range("2024-01-01", periods=n - 1, freq="h").strftime("%Y-%m-%d %H:%M")],
            "weight": ["500 g" if k % 2 else "1.5 kg" for k in range(n)],
        }
    )
    X, encoding = Encoding().learned(rows_of(table))
    kinds = {"amount": "number", "money": "number", "seat": "nominal", "gate": "nominal", "when": "date"}
    assert {name: column.kind for name, column in encoding.columns.items()} == kinds | {"weight": "number"}
    assert encoding.columns["amount"].values == []  # one odd value is missing, and said
    assert "1 of 1,000 values is none: 'unknown'" in repr(encoding)
    assert encoding.columns["money"].values == ["see receipt"]  # one that recurs has an input
    assert X[:2, encoding.input_names.index("amount")].tolist() == pytest.approx([np.nan, 1.1], nan_ok=True)
    assert X[:4, encoding.input_names.index("weight")].tolist() == [1.5, 0.5, 1.5, 0.5]


def test_one_comma_before_three_digits_is_read_as_in_the_rest_of_its_column():
    X, encoding = encoded(a=["1,234", "5,6", "7,89"], b=["1,234", "5.6", "7.8"], c=["1,234", "5,678", "9"])
    np.testing.assert_array_equal(X[0], [1.234, 1234, 1234])
    (note,) = [note for note in encoding.notes if "nothing says" in note]
    assert note == (
        "the column 'c' has numbers such as '1,234', read as 1234: nothing says whether the comma is a decimal one; "
        "decimal= (--decimal) says it"
    )


def test_several_currencies_are_said():
    _, encoding = encoded(x=["$5", "5 EUR", "7", "USD 8"])
    assert "the column 'x' has several currencies or units (EUR, USD), which are not told apart" in encoding.notes


def test_a_kind_taken_wrongly_changes_at_a_defined_moment():
    encoding, kinds = Encoding(), []
    for k in range(30):
        value = "later" if k < 3 else f"{k},5"
        X, encoding = encoding.learned(rows_of([{"x": value, "y": float(k % 5)}]))
        kinds.append(encoding.columns["x"].kind)
        assert X.shape == (1, len(encoding))
    assert kinds == ["nominal"] * 9 + ["number"] * 21
    assert encoding.input_names == ["y", "x"]
    assert X[0, 1] == 29.5
    note = "the column 'x' was taken for nominal at first, and is now read as a number"
    assert note in encoding.notes
    again = Encoding.of_json(json.loads(json.dumps(encoding.to_json())), Instructions())
    assert again.to_json() == encoding.to_json()


def test_a_column_said_to_be_numeric_must_hold_a_number():
    letters = pd.DataFrame({"c": list("abcdefghij"), "x": range(10)})
    model = DEVDAN(numeric=["c"])
    with pytest.raises(
        ValueError, match=r"'c' is said to be numeric, but none of its first 10 values is .*, such as 'a'"
    ):
        model.partial_fit(letters, letters["x"] > 4)
    _, encoding = Encoding(instructions=Instructions(numeric=["c"])).learned(
        rows_of(letters.assign(c=["1", *"bcdefghij"]))
    )
    assert encoding.notes == ["the column 'c' holds numbers, but also words such as 'b', which are missing"]


BAD_DATES = ["9999-12-31", "1066-10-14", "2024-02-30", "NaT", "", "2024-01-01T00:00:00+25:00"]


def test_odd_values_have_one_meaning():
    huge = "x" * 1_000_000
    _, encoding = encoded(a=[huge, "\ud800 alone", " ", None, "NA"], b=[None] * 5)
    assert max(map(len, encoding.columns["a"].values)) < 200
    assert len(encoding.columns["a"].values) == 2
    assert encoding.columns["b"].kind == ""
    json.dumps(encoding.to_json())  # also what is no text in UTF-8
    X, encoding = encoded(when=["2024-01-01", *BAD_DATES])
    assert encoding.columns["when"].odd == "2024-02-30"
    assert np.isfinite(X).any(axis=1).tolist() == [True] * 3 + [False] * 3 + [True]  # 2024-02-30 is a text
    zones = encoded(when=["2024-01-01T12:00:00+02:00", "2024-01-02T10:00:00Z", "2024-01-09 10:00"])[0]
    same = encoded(when=pd.to_datetime(["2024-01-01 10:00", "2024-01-02 10:00", "2024-01-09 10:00"]))[0]
    np.testing.assert_array_equal(zones, same)


def test_dates_in_other_forms_by_being_told():
    when = pd.to_datetime(["2024-03-01 00:00", "2024-03-02 12:00", "2024-04-20 18:30"])
    reference = encoded(when=when)[0]
    forms = {
        "epoch": (when - pd.Timestamp(0)).total_seconds().to_numpy(),
        "epoch-ms": (when - pd.Timestamp(0)).total_seconds().to_numpy() * 1000,
        "dd/mm/yyyy HH:MM": when.strftime("%d/%m/%Y %H:%M"),
        "%m-%d-%y %H.%M": when.strftime("%m-%d-%y %H.%M"),
        "iso": when.strftime("%Y-%m-%d %H:%M"),
    }
    for form, column in forms.items():
        told = Encoding(instructions=Instructions(dates={"when": form}))
        np.testing.assert_array_equal(told.learned(rows_of(pd.DataFrame({"when": column})))[0], reference)
    with pytest.raises(ValueError, match=r"the column 'when' is said to hold dates .* begins with '2024"):
        Encoding(instructions=Instructions(dates={"when": "dd/mm/yyyy"})).learned(
            rows_of(pd.DataFrame({"when": ["2024-03-01"]}))
        )
    clock = Encoding(instructions=Instructions(numeric=["when"])).learned(rows_of(pd.DataFrame({"when": when})))[0]
    np.testing.assert_array_equal(clock[:, 0], forms["epoch"])


def test_values_of_python_of_all_kinds():
    zone = timezone(timedelta(hours=1))
    at = datetime(2024, 1, 1, 1, tzinfo=zone)
    minute = np.timedelta64(1, "m")
    rows = rows_of([
        {"a": at, "b": date(2024, 1, 1), "c": time(10, 30), "d": timedelta(minutes=1)},
        {"a": np.datetime64("2024-01-01"), "b": pd.Timestamp("2024-01-01"), "c": time(10, 30), "d": minute},
        {"a": pd.NaT, "b": None, "c": None, "d": pd.NaT},
    ])  # fmt: skip
    a, b, c, d = rows.objects()
    assert a[0] == a[1] == b[0] == b[1] == "2024-01-01T00:00:00.000000"
    assert [a[2], b[2], c[2], d[2]] == [None] * 4
    assert d[:2] == [60.0, 60.0]
    for value in ([1], {}, object(), 1j):
        with pytest.raises(TableError, match=r"row 1 has a .* in the column 'x'"):
            rows_of([{"x": value}])
    with pytest.raises(TableError, match=r"the column 'x' holds list.*leave it out"):
        rows_of(pa.table({"x": [[1]]}))


def test_labels_keep_their_identity(tmp_path):
    (tmp_path / "t.csv").write_text("x,label\n1,01\n2,1\n3,1\n")
    assert [y.tolist() for _, y in open_stream(tmp_path / "t.csv")] == [["01", "1", "1"]]
    (tmp_path / "t.csv").write_text("x,label\n" + "1,1\n" * 300_000 + "1,01\n")
    with pytest.raises(StreamError, match=r"has the label '01' after row .* but numbers before"):
        list(open_stream(tmp_path / "t.csv"))


# --- Properties --------------------------------------------------------------------------------------------------

TABLES = st.lists(st.fixed_dictionaries({"a": CELLS, "b": CELLS, "c": CELLS}), min_size=1, max_size=12)


ALIKE = [st.floats(-1e6, 1e6), st.booleans(), st.sampled_from(["a", "b", " a ", "c", "dee", "Dee"]),
         st.sampled_from(["$3", "-1"]), st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)),
         st.sampled_from(["10:30", "23:59:59"])]  # fmt: skip
COLUMNS = st.sampled_from(ALIKE).flatmap(lambda cells: st.lists(st.none() | cells, min_size=12, max_size=12))


def in_pieces(samples, size, instructions=None):
    """What a table teaches in chunks of a size."""
    encoding = Encoding(instructions=instructions)
    for k in range(0, len(samples), size):
        before, part = encoding.to_json(), from_dicts(samples[k : k + size], list(samples[0]))
        X, later = encoding.learned(part)
        assert encoding.to_json() == before
        assert X.shape == (len(part), len(later))
        encoding = later
    return encoding


@given(st.lists(COLUMNS, min_size=1, max_size=3), st.integers(1, 12), st.integers(1, 3))
@settings(max_examples=150)
def test_chunks_of_any_size_teach_the_same_where_the_values_of_a_column_are_alike(columns, size, max_categories):
    told = Instructions(max_categories=max_categories)
    samples = [dict(zip("abc", row, strict=False)) for row in zip(*columns, strict=True)]
    grown, whole = in_pieces(samples, size, told), in_pieces(samples, len(samples), told)
    assert grown.to_json() == whole.to_json()
    again = Encoding.of_json(json.loads(json.dumps(grown.to_json())), told)
    np.testing.assert_array_equal(again.applied(from_dicts(samples)), grown.applied(from_dicts(samples)))


@given(TABLES, st.integers(1, 12))
@settings(max_examples=150)
def test_chunks_of_any_size_give_the_same_evidence(samples, size):
    grown, whole = in_pieces(samples, size), in_pieces(samples, len(samples))
    for name, column in whole.columns.items():
        for kind in ("number", "flag", "date", "time", "nominal"):
            assert grown.columns[name].evidence.of(kind) == column.evidence.of(kind)
    again = Encoding.of_json(json.loads(json.dumps(grown.to_json())), Instructions())
    assert again.to_json() == grown.to_json()


@given(TABLES, TABLES)
@settings(max_examples=150)
def test_a_single_row_is_filled_as_in_a_table(samples, others):
    encoding = Encoding().learned(from_dicts(samples))[1]
    row = np.empty((1, len(encoding)))
    for sample in (*samples, *others):
        if SingleRow(encoding).fill(sample, row):
            np.testing.assert_array_equal(row, encoding.applied(from_dicts([sample])))


@given(TABLES, TABLES, TABLES)
@settings(max_examples=100)
def test_rows_can_be_cut_and_joined(first, second, third):
    whole = from_dicts([*first, *second, *third], ["a", "b", "c"])
    parts = [from_dicts(part, ["a", "b", "c"]) for part in (first, second, third)]
    encoding = Encoding().learned(whole)[1]
    np.testing.assert_array_equal(encoding.applied(joined(parts)), encoding.applied(whole))
    pieces = joined([whole[: len(first)], whole[len(first) :]])
    np.testing.assert_array_equal(encoding.applied(pieces), encoding.applied(whole))
    order = np.arange(len(whole))[::-1]
    np.testing.assert_array_equal(encoding.applied(whole[order]), encoding.applied(whole)[order])


# --- In a model --------------------------------------------------------------------------------------------------


def test_rows_are_taken_in_whatever_form_they_come():
    table = FRAME[FEATURES].drop(columns=["id", "plan"])
    model = DEVDAN(random_state=1).partial_fit(table, FRAME["label"])
    expected = model.predict_proba(table[7:8])
    (row,) = objects(table[7:8])
    backwards = dict(reversed(row.items()))
    known = {name: value for name, value in backwards.items() if value is not None}
    for X in ([row], row, [backwards], backwards, known, table.iloc[7], pl.from_pandas(table).lazy().slice(7, 1)):
        np.testing.assert_array_equal(model.predict_proba(X), expected)
    with pytest.warns(EncodingWarning, match="columns that the model does not know are ignored: towm") as said:
        for X in ({"towm": 1, **row}, [row, {"towm": 2, **backwards}]):
            np.testing.assert_array_equal(model.predict_proba(X)[:1], expected)
    assert len(said) == 1
    _, *others = row
    with pytest.raises(ValueError, match=r"(?s)names unseen at fit time.*towm"):  # which may be misspelt
        model.predict({"towm": 1, **{name: row[name] for name in others}})
    learned = [DEVDAN(random_state=1).partial_fit(table, FRAME["label"]) for _ in range(2)]
    learned[0].partial_fit(table[:2], ["in", "out"])
    learned[1].partial_fit([dict(reversed(each.items())) for each in objects(table[:2])], ["in", "out"])
    assert states(learned[0]) == states(learned[1])


def test_a_column_that_becomes_something_else_is_said_once_with_its_name():
    table = pd.DataFrame({"x": np.arange(20) % 7 * 1.0, "n": ["5 EUR", "7 EUR"] * 10, "c": ["a", "b"] * 10})
    model = DEVDAN(random_state=1).partial_fit(table, table["x"] > 3)
    other = table.assign(n="hello", x=[f"w{k}" for k in range(20)], c=1.0)
    with pytest.warns(UserWarning, match="was learned as") as caught:
        for _ in range(2):
            model.predict(other)
            model.predict(table.assign(n=None, c="new"))  # this is nothing new
    assert sorted(str(each.message)[:40] for each in caught) == [
        "the column 'c' was learned as nominal, b",
        "the column 'n' was learned as number, bu",
        "the column 'x' was learned as number, bu",
    ]


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_labels_that_are_missing_are_observed_and_no_more(missing):
    X, y = FRAME[["age", "city", "visits"]], FRAME["label"].to_numpy(object)
    known = np.arange(N) % 3 != 0
    partly = np.where(known, y, missing)
    one = DEVDAN(random_state=1).partial_fit(X[:300], partly[:300]).partial_fit(X[300:], list(partly[300:]))
    two = DEVDAN(random_state=1)
    for part in (slice(0, 300), slice(300, None)):
        two.observe(X[part]).teach(X[part][known[part]], y[part][known[part]])
    assert states(one) == states(two)
    before = states(one)
    one.partial_fit(X, [missing] * N)
    assert one.mixture_.n_taught == known.sum()
    with pytest.raises(ValueError, match="y must hold labels of the type seen so far"):
        two.partial_fit(X, np.where(known, 1.0, np.nan))
    assert states(two) == before
    for y in (partly, None):
        with pytest.raises(ValueError, match=r"observe\(X\) learns from samples without labels, partial_fit from both"):
            two.teach(X, y)


def test_numbers_as_labels_may_be_missing_too():
    X = np.arange(6.0).reshape(-1, 1)
    model = DEVDAN(random_state=1).partial_fit(X, [0, 1, np.nan, 0, 1, 2], sample_weight=[1, 2, 1, 0, 1, 1])
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.classes_.dtype.kind == "i"
    assert (model.n_seen_, model.mixture_.n_taught) == (5, 4)
    flags = DEVDAN(random_state=1).partial_fit(X, [True, False, np.nan, True, False, True])
    assert flags.classes_.tolist() == [False, True]
    large = DEVDAN(random_state=1).partial_fit(X, [2**60 + 1, 2**60, np.nan, 2**60, 2**60, 2**60])
    assert large.classes_.tolist() == [2**60, 2**60 + 1]


def test_a_saved_model_goes_on_bit_for_bit(tmp_path):
    for kind in (DEVDAN(random_state=1), DEVDANEnsemble(SMALL, random_state=1)):
        model, _ = trained(kind, open_stream(FRAME[:250], target="label", chunk=50))
        model.save(tmp_path / "m.devdan")
        again = type(model).load(tmp_path / "m.devdan")
        assert again.encoding_.to_json() == model.encoding_.to_json()
        for each in (model, again):
            trained(each, open_stream(FRAME[250:], target="label", chunk=50))
            for state in each.mixture_.networks:
                check_state(state)
        assert [state.tobytes() for state in again.mixture_.networks] == [
            state.tobytes() for state in model.mixture_.networks
        ]
        assert (again.predict_proba(FRAME[FEATURES]) == model.predict_proba(FRAME[FEATURES])).all()


def test_new_inputs_do_not_change_what_is_predicted():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=200), "city": random.choice(["a", "b"], size=200)})
    y = table["x"] > 0
    for kind in (DEVDAN(random_state=1), DEVDANEnsemble(SMALL, random_state=1)):
        model = kind.partial_fit(table, y).partial_fit(table, y)
        before = model.predict_proba(table)
        n_before = len(model.encoding_)
        later = model._encoding.learned(rows_of(pd.DataFrame({"x": [0.0, 1.0], "city": ["c", "d"]})))[1]
        model.mixture_.prepare(encoding=later)
        assert len(model.encoding_) == n_before + 2
        np.testing.assert_allclose(model.predict_proba(table), before, atol=1e-12)


def test_columns_are_checked_by_scikit_learns_rules():
    model = DEVDAN(random_state=0).fit(FRAME[FEATURES], FRAME["label"])
    with pytest.raises(ValueError, match="same order as they were in fit"):
        model.predict(FRAME[FEATURES[::-1]])
    with pytest.raises(ValueError, match="yet now missing:\n- city"):
        model.predict(FRAME[FEATURES].drop(columns="city"))
    with pytest.raises(ValueError, match="unseen at fit time:\n- label"):
        model.predict(FRAME)
    with pytest.raises(ValueError, match="nominal names the column 'town', but there are only"):
        DEVDAN(nominal=["town"]).fit(FRAME[FEATURES], FRAME["label"])
    with pytest.raises(ValueError, match="'city' is named twice"):
        DEVDAN(nominal=["city"], drop=["city"]).fit(FRAME[FEATURES], FRAME["label"])
    with pytest.raises(ValueError, match="no column of X gives an input"):
        DEVDAN().fit(FRAME[["id", "row"]], FRAME["label"])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(FRAME[FEATURES].to_numpy())


def test_an_array_of_objects_works_as_a_table():
    X = np.array([["a", 1.0, None], ["b", 2.0, "x"], ["a", 3.0, "x"]], dtype=object)
    model = DEVDAN(random_state=0).fit(X, [0, 1, 0])
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert model.encoding_.input_names == ["x0=a", "x1", "x2=x", "x0=b"]
    assert model.predict_proba(X.tolist()).tobytes() == model.predict_proba(X).tobytes()
    with pytest.raises(ValueError, match="X has 2 features, but DEVDAN is expecting 3"):
        model.predict(X[:, :2])


def test_an_array_of_records_works_as_the_table_that_it_is():
    X = np.array([("a", 1.0), ("b", 2.0), ("a", 3.0)], dtype=[("city", "U1"), ("age", float)])
    table = pd.DataFrame(X)
    model, same = (DEVDAN(random_state=0).fit(X, [0, 1, 0]) for X in (X, table))
    assert model.n_features_in_ == 2
    assert model.feature_names_in_.tolist() == ["city", "age"]
    assert states(model) == states(same)
    assert model.predict_proba(X).tobytes() == model.predict_proba(table).tobytes()
    with pytest.raises(ValueError, match="yet now missing:\n- city"):
        model.predict(X[["age"]])


def test_a_column_transformer_in_front_still_works():
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), ("passthrough", ["visits"]))
    encoder.set_output(transform="default")
    lives_there = FRAME["city"] == "Bonn"  # a quarter does
    pipeline = make_pipeline(encoder, DEVDAN(random_state=0)).fit(FRAME[FEATURES], lives_there)
    assert pipeline.score(FRAME[FEATURES], lives_there) > 0.95
    model = DEVDAN(random_state=0).set_output(transform="pandas").fit(FRAME[FEATURES], FRAME["label"])
    hidden = model.transform(FRAME[FEATURES])
    assert hidden.shape == (N, model.n_hidden_)
    assert list(hidden.columns) == model.get_feature_names_out().tolist()


def test_plain_numbers_in_a_frame_are_those_of_an_array():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(300, 4)), random.integers(2, size=300)
    X[0, 1] = X[5, 2] = np.nan
    plain = DEVDAN(random_state=0).partial_fit(X, y).partial_fit(X, y)
    named = DEVDAN(random_state=0)
    table = pd.DataFrame(X, columns=list("abcd"))
    named.partial_fit(table, y).partial_fit(table, y)
    assert states(named) == states(plain)
    assert repr(plain.encoding_) == "x0  number\nx1  number\nx2  number\nx3  number"


@pytest.mark.parametrize(
    "options",
    [{"nominal": "city"}, {"dates": {"when": "sometimes"}}, {"max_categories": 0}, {"drop": [1]}, {"dates": [3]}],
    ids=str,
)
def test_options_out_of_range(options):
    with pytest.raises(ValueError, match="must be"):
        DEVDAN(**options).fit(FRAME[FEATURES], FRAME["label"])


def test_dates_are_read_as_programs_write_them():
    for text in ("2024-13-01", "2024-01-01T24:00", "24-01-01", "2024-01-01T10:00:00+1", "٢٠٢٤-01-01"):
        assert values.moment(text) == values.NO_TIME, text
    assert values.moment("2024-01-01 10:00:00.123456789+0530") == values.moment("2024-01-01T04:30:00.123456Z")


def test_inputs_that_come_find_room():
    state = new_evolving(3, 16, 2, 10, seed=1)
    Network(state).n_hidden = 1
    larger = with_features(state, [1], 4)
    assert Network(larger).n_features == 6 < Network(larger).max_features + 1


def test_weights_of_fields_go_with_their_inputs():
    state = new_replaying(3, 16, 2, 5, 4, seed=1)
    net = Network(state)
    net.field_weights[:] = np.arange(3 * 4 * 8).reshape(3, 4, 8)
    net.field_weights_slow[:] = -net.field_weights
    changed = Network(with_features(state, [1], 4))
    for name in ("field_weights", "field_weights_slow"):
        before, after = getattr(net, name), getattr(changed, name)
        np.testing.assert_array_equal(after[:2], before[[0, 2]])
        assert not after[2:].any()


def test_columns_of_the_same_name_are_refused():
    table = pd.DataFrame([["x", 1.0], ["y", 2.0], ["x", 3.0]], columns=["a", "a"])
    for X in (table, table.astype(float, errors="ignore"), pa.table([[1.0], [2.0]], names=["a", "a"])):
        with pytest.raises(ValueError, match="two are called 'a'"):
            DEVDAN().fit(X, [0, 1, 0][: len(X)])


def test_values_that_are_forgotten_leave_no_trace_and_the_model_goes_on(tmp_path):
    people = [
        {"name": f"n{k % 5}", "code": float(k % 3), "odd": "n/k" if k == 5 else str(k % 4), "x": k % 2}
        for k in range(60)
    ]
    y = [k % 2 for k in range(60)]
    model = DEVDAN(random_state=0, nominal=["code"]).fit(people, y)
    before = model.encoding_.input_names
    model.forget_values(people[5:6], ["name", "code", "odd"])
    gone = {"name=n0", "code=2", "odd=n/k"}
    assert set(model.encoding_.input_names) == set(before) - gone
    assert model.encoding_.input_names == [name for name in before if name not in gone]
    assert b"n/k" not in json.dumps(model.encoding_.to_json()).encode()
    model.save(tmp_path / "model")
    again = open_model(tmp_path / "model")
    for one in (model, again):
        one.partial_fit(people, y)
    assert again.encoding_.input_names == model.encoding_.input_names
    assert set(model.encoding_.input_names) == set(before)
    assert (again.predict_proba(people) == model.predict_proba(people)).all()
    model.forget_values(
        [{"name": f"n{k}", "code": float(k), "odd": "n/k", "x": 0} for k in range(5)], ["name", "code", "odd"]
    )
    assert sorted(model.encoding_.input_names) == ["odd", "x"]


def test_a_text_that_is_forgotten_counts_no_more_for_finding_ids():
    encoding = Encoding().learned(rows_of([{"id": f"i{k}"} for k in range(150)]))[1]
    encoding = encoding.without(rows_of([{"id": "i7"}]), ["id"])
    assert '"i7"' not in json.dumps(encoding.to_json())
    encoding = encoding.learned(rows_of([{"id": f"j{k}"} for k in range(51)]))[1]
    assert "nearly unique" in encoding.columns["id"].left_out


def test_models_of_plain_numbers_have_no_values_to_forget():
    model = DEVDAN(random_state=0).fit([[0.0], [1.0]], [0, 1])
    before = [state.tobytes() for state in model.mixture_.networks]
    assert [state.tobytes() for state in model.forget_values([[1.0]], [0]).mixture_.networks] == before


def test_an_odd_first_value_is_quoted_however_the_rows_come():
    values = ["unknown", *(str(k * 7 % 50) for k in range(30))]
    for at_once in (1, 3, 31):
        encoding = Encoding()
        for start in range(0, 31, at_once):
            _, encoding = encoding.learned(rows_of([{"a": value} for value in values[start : start + at_once]]))
        assert any("also words such as 'unknown'" in note for note in encoding.notes), at_once
        assert "such as 'unknown'" in repr(encoding) or "is none: 'unknown'" in repr(encoding)


@pytest.mark.parametrize("size", [1, 3, 10, 25])
def test_a_column_of_text_that_is_said_to_be_numeric_is_refused_however_small_the_chunks(size):
    """Once ten values have come, none of which is a number."""
    X = [{"c": "abcdef"[k % 6], "a": float(k % 9)} for k in range(30)]
    model, start = DEVDAN(numeric=["c"], random_state=0), 0
    while start + size < 10:
        model.partial_fit(X[start : start + size], np.arange(size) % 2)
        start += size
    with pytest.raises(ValueError, match=r"'c' is said to be numeric, but none of its first [\d,]+ values is a number"):
        model.partial_fit(X[start : start + size], np.arange(size) % 2)


def test_a_batch_of_which_most_values_are_of_another_kind_is_told_once():
    X = [{"c": float(k % 7), "a": float(k % 9)} for k in range(200)]
    model = DEVDAN(random_state=0).partial_fit(X, [k % 2 for k in range(200)])
    few, most = ([{"c": "x" if k < n else 1.0, "a": 1.0} for k in range(10)] for n in (3, 8))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(few)
    with pytest.warns(EncodingWarning, match="'c' was learned as number, but now holds values such as 'x'") as said:
        model.predict(most)
        model.predict(most)
    assert len(said) == 1
