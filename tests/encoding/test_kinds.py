"""The kind of a column follows from what its values are, also later on, at the same value however rows are cut."""

import json
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from commandline import results
from hypothesis import given
from hypothesis import strategies as st

from devdan import DEVDAN, open_model
from devdan.encoding import evidence
from devdan.encoding.encoding import Encoding, EncodingWarning, Instructions, SingleRow
from devdan.encoding.evidence import Doubt
from devdan.encoding.rows import Numbers, Rows, Texts, joined, texts_of
from devdan.encoding.tables import from_dicts, rows_of
from devdan.evaluation import prequential
from devdan.evaluation.loop import Evaluation
from devdan.evaluation.record import Record
from devdan.model.modelfile import content_of
from devdan.report.event_marks import event_rows
from devdan.report.shown_run import read_run
from devdan.runs.preparation import describe
from devdan.runs.runjob import RunJob
from devdan.streams import open_stream

WORDS = [f"merchant {chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(400)]


def amounts(n_words=1200, n=3600):
    """A column that holds words until a till was connected, and numbers with few words from then on."""
    return [WORDS[k % 7] if k < n_words or k % 40 == 3 else f"{k % 97}.5" for k in range(n)]


def kinds(values, size, **told):
    """The kind of a column after each of its values, learned in chunks of a size."""
    encoding, found = Encoding(instructions=Instructions(**told)), []
    for k in range(0, len(values), size):
        part = values[k : k + size]
        _, encoding = encoding.learned(rows_of(pd.DataFrame({"x": part, "z": np.arange(len(part)) % 3.0})))
        found += [encoding.columns["x"].kind] * len(part)
    return found, encoding


def changed_at(found):
    return [place for place in range(1, len(found)) if found[place] != found[place - 1]]


def test_text_that_turns_out_to_be_numbers_changes_its_kind_at_the_same_value_in_chunks_of_any_size():
    (at,) = changed_at(kinds(amounts(), 1)[0])
    assert 2200 <= at < 2700  # after 1,000 numbers, and nine more for each word among them
    for size in (7, 500, 3600):
        found, encoding = kinds(amounts(), size)
        assert set(found[at:]) == {"number"}
        assert size == 3600 or changed_at(found) == [at // size * size]
        assert encoding.columns["x"].doubt == Doubt()
        if size < 3600:  # in one piece, it is a number from the first value on
            assert "the column 'x' was taken for nominal at first, and is now read as a number" in encoding.notes
            assert encoding.input_names[0] == "z"


def test_numbers_that_turn_out_to_be_text_change_their_kind_unless_their_words_are_few():
    numbers = [f"{k % 97}.5" for k in range(1100)]
    found, encoding = kinds(numbers + WORDS * 4, 100)
    assert (found[1099], found[-1]) == ("number", "nominal")
    assert encoding.columns["x"].values == WORDS[: len(encoding.columns["x"].values)]
    found, encoding = kinds(numbers + ["offline"] * 1500 + numbers, 100)  # its input says it as well
    assert set(found) == {"number"}
    assert encoding.columns["x"].values == ["offline"]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (WORDS[:50], ["2024-01-05", "2024-02-05 12:00"], "date"),
        (WORDS[:50], ["10:30", "11:45"], "time"),
        (WORDS[:50], ["yes", "no"], "flag"),
        ([f"o-{k}" for k in range(1000)], ["17", "1.5"], "number"),  # left out as ids before
        ([f"{k}" for k in range(1000)], [f"o-{k}" for k in range(1000)], "nominal"),  # left out as a counter
        (["A12", "B7"], ["007", "012"], "nominal"),  # codes are no numbers
        (["a window", "an aisle"], ["12A", "7F", "3C"], "nominal"),  # nor is what has several units
    ],
)
def test_what_a_column_turns_out_to_be(before, after, kind):
    n = 2400
    found, encoding = kinds(
        [*(before[k % len(before)] for k in range(1000)), *(after[k % len(after)] for k in range(n))], 200
    )
    assert found[-1] == kind
    assert encoding.columns["x"].left_out == "" or kind == "nominal"


@pytest.mark.parametrize("told", [{"nominal": ["x"]}, {"numeric": ["x"]}])
def test_what_the_user_says_stays(told):
    values = ["5", *WORDS * 3] if "numeric" in told else [*WORDS, *(f"{k}.5" for k in range(3000))]
    found, encoding = kinds(values, 100, **told)
    assert len(set(found)) == 1
    assert encoding.columns["x"].doubt == Doubt()


def test_values_of_two_kinds_in_turn_change_nothing():
    found, _ = kinds(["a", "b", "c", *("a" if k % 3 else "4.5" for k in range(6000))], 250)
    assert set(found) == {"nominal"}


LETTERS = st.lists(st.tuples(st.sampled_from(["w", "w", "5", "5", "5", "5", "5", ""]), st.integers(1, 9)), max_size=60)


@given(LETTERS, st.lists(st.integers(1, 40), min_size=1, max_size=8))
def test_doubts_are_those_of_counting_value_by_value(runs, sizes):
    """The oracle: one value after the other, with small numbers in place of a thousand."""
    values = [value for value, n in runs for _ in range(n)]
    level, begun, expected = 0, 0, []
    for place, value in enumerate(values):
        if value:
            level = max(level + (1 if value == "5" else -9), 0)
        begun = begun if level else place + 1
        if level >= 20:
            expected.append((place, sum(map(bool, values[begun : place + 1]))))
            level, begun = 0, place + 1
    found, start, k, doubt = [], 0, 0, Doubt()
    with patch.object(evidence, "ENOUGH", 20):
        while start < len(values):
            part = values[start : start + sizes[k % len(sizes)]]
            k += 1
            there = [place for place, value in enumerate(part, start) if value]
            column = texts_of([value for value in part if value])
            while len(column) > 0:
                n = doubt.add(column, evidence.weights_of(column, "nominal", ()))
                if doubt.level >= 20:
                    found.append((there[n - 1], doubt.evidence.n))
                    doubt = Doubt()
                column, there = column[n:], there[n:]
            start += len(part)
    assert found == expected
    assert doubt.level == level
    assert Doubt.of_json(json.loads(json.dumps(doubt.to_json()))).to_json() == doubt.to_json()


def test_numbers_and_texts_weigh_alike():
    numbers = Numbers(np.array([1.5, 2.5]))
    for kind in evidence.KINDS:
        of_texts = evidence.weights_of(texts_of(["1.5", "2.5"]), kind, ())
        assert evidence.weights_of(numbers, kind, ()).tolist() == of_texts.tolist()
    declared = Texts(np.array([0, 0]), texts_of(["5"]).vocabulary, declared=True)
    assert (evidence.weights_of(declared, "nominal", ()) < 0).all()


def test_a_single_row_never_passes_over_a_doubt():
    samples = [{"x": WORDS[k % 5], "y": 0.5} for k in range(1000)] + [{"x": "7", "y": 1.0}]
    encoding = Encoding().learned(from_dicts(samples))[1]
    assert encoding.columns["x"].doubt.level == 1
    assert not SingleRow(encoding).settled
    encoding = Encoding().learned(from_dicts(samples[:1000]))[1]
    assert SingleRow(encoding).settled
    row = np.empty((1, len(encoding)))
    assert not SingleRow(encoding).fill({"x": "7", "y": 1.0}, row)


def test_a_text_that_is_forgotten_is_no_evidence_of_a_doubt():
    samples = [{"x": float(k % 7), "y": 0.5} for k in range(1000)] + [{"x": "Anna", "y": 1.0}]
    encoding = Encoding().learned(from_dicts(samples))[1]
    assert "Anna" in json.dumps(encoding.to_json())
    assert "Anna" not in json.dumps(encoding.without(from_dicts(samples[-1:]), ["x"]).to_json())


# --- The same bits after an interruption -------------------------------------------------------------------------


def table(n=3600):
    random = np.random.default_rng(4)
    frame = pd.DataFrame({"amount": amounts(n=n), "z": random.normal(size=n)})
    frame["label"] = np.where((frame["z"] > 0) ^ (np.arange(n) % 97 > 48), "late", "paid")
    return frame


def job(folder, **options):
    stream, model = open_stream(table(), target="label", chunk=300), DEVDAN(random_state=0)
    settings = describe(stream, model, {}, model="devdan", seed=0, chunk=300, labels="all")
    return RunJob(folder, stream, Evaluation(model), settings, **options)


@pytest.mark.filterwarnings("ignore:the column")
def test_a_run_that_is_resumed_while_there_is_doubt_gives_the_same_bits_and_tells_the_change(tmp_path):
    with job(tmp_path / "whole") as whole:
        list(whole.records())
        whole.finish()
    with job(tmp_path / "cut", every=0.0) as begun:
        going = begun.records()
        for _ in range(6):
            next(going)
        assert begun.evaluation.model.encoding_.columns["amount"].doubt.level > 0
        going.close()
    with job(tmp_path / "cut", resume=True) as resumed:
        list(resumed.records())
        resumed.finish()
    assert results(tmp_path / "whole") == results(tmp_path / "cut")
    lines = (tmp_path / "whole" / "records.jsonl").read_text().splitlines()
    (change,) = [change for line in lines for change in Record.from_json(line).kind_changes]
    assert change[1:] == ("amount", "nominal", "number")
    said = (f"{change.sample:,}", "the column amount is read as number, no longer as nominal", change.why)
    assert said in event_rows(read_run(tmp_path / "whole"))


@pytest.mark.filterwarnings("ignore:the column")
def test_a_model_that_is_saved_while_there_is_doubt_goes_on_with_the_same_bits(tmp_path):
    frame = table()
    X, y = frame[["amount", "z"]], frame["label"].to_numpy()
    model = DEVDAN(random_state=1)
    for k in range(0, 2100, 100):
        model.partial_fit(X[k : k + 100], y[k : k + 100])
    assert model.encoding_.columns["amount"].doubt.level > 0
    model.save(tmp_path / "m.devdan")
    loaded = open_model(tmp_path / "m.devdan")
    for k in range(2100, 3600, 100):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", EncodingWarning)
            model.partial_fit(X[k : k + 100], y[k : k + 100])
        changed = any("now read as a number" in str(each.message) for each in said)
        assert changed == (
            model.encoding_.columns["amount"].kind == "number" and loaded.encoding_.columns["amount"].kind != "number"
        )
        loaded.partial_fit(X[k : k + 100], y[k : k + 100])
    assert model.encoding_.columns["amount"].kind == "number"
    assert content_of(model) == content_of(loaded)


@pytest.mark.filterwarnings("ignore:the column")
def test_one_that_changes_learns_what_the_numbers_say():
    frame = table(8000)
    frame["amount"] = amounts(n=8000)
    frame["label"] = np.where(np.arange(8000) % 97 > 48, "late", "paid")
    records = list(prequential(open_stream(frame, target="label", chunk=200), DEVDAN(random_state=0)))
    late = [record.accuracy for record in records if record.start >= 6000]
    assert np.mean(late) > 0.9


# --- Files -------------------------------------------------------------------------------------------------------


@pytest.fixture
def in_small_blocks(monkeypatch):
    """Files of some kilobytes are read as if they were long."""
    for name, value in {
        "textfile.BLOCK": 4000,
        "delimited.BLOCK": 4000,
        "delimited.PIECE": 600,
        "jsonfile.PIECE": 1500,
    }.items():
        monkeypatch.setattr(f"devdan.streams.{name}", value)


def first_kinds(path):
    X, _ = next(iter(open_stream(path, target="label", chunk=50)))
    return {name: column.kind for name, column in Encoding().learned(X)[1].columns.items()}


def test_the_kinds_of_the_columns_of_a_file_are_judged_by_values_from_all_over_it(in_small_blocks, tmp_path):
    n = 4000
    frame = pd.DataFrame({
        "amount": ["unknown" if k < 1000 else f"{k % 97}.5" for k in range(n)],
        "code": [f"{k % 9}" if k < 1000 else f"A{k % 9}" for k in range(n)],
        "rare": [f"{k % 9}" if k % 1000 != 700 else "none of these" for k in range(n)],
        "price": [f"{k % 7},5" for k in range(n)],
        "when": [f"{k % 12 + 1:02}/{k % 12 + (1 if k < 2000 else 13):02}/2030" for k in range(n)],
        "gaps": ["NA" if k % 50 == 1 else f"{k % 11}.25" for k in range(n)],
        "label": ["a" if k % 3 else "b" for k in range(n)],
    })  # fmt: skip
    expected = dict(amount="number", code="nominal", rare="number", price="number", when="date", gaps="number")
    frame.to_csv(tmp_path / "t.csv", index=False, sep=";")
    assert first_kinds(tmp_path / "t.csv") == expected
    frame.to_csv(tmp_path / "t.csv.gz", index=False, sep=";")
    assert first_kinds(tmp_path / "t.csv.gz") == expected | {"amount": "nominal", "code": "number"}
    (X, _), *_ = open_stream(tmp_path / "t.csv", target="label", chunk=50)
    assert [X.names[place] for place in X.others] == ["amount", "code", "price", "when"]
    encoding = Encoding().learned(X)[1]
    assert encoding.columns["when"].date_order == "mdy"  # as its end tells
    assert encoding.input_names[:3] == ["amount", "amount=unknown", "code=0"]


def test_so_are_those_of_lines_of_json_and_of_parquet(in_small_blocks, tmp_path):
    n = 4000
    amounts = ["unknown" if k < 1200 else f"{k % 97}.5" for k in range(n)]
    frame = pd.DataFrame({"amount": amounts, "x": np.arange(n) % 7 / 7, "label": ["a", "b"] * (n // 2)})
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=400)
    frame.to_parquet(tmp_path / "one.parquet")
    expected = {"amount": "number", "x": "number"}
    assert first_kinds(tmp_path / "t.jsonl") == first_kinds(tmp_path / "t.parquet") == expected
    assert first_kinds(tmp_path / "one.parquet") == expected | {"amount": "nominal"}  # until later


def test_a_piece_that_begins_within_quotes_is_no_evidence(in_small_blocks, tmp_path):
    lines = ["x,note,label", *(f'{k % 9}.5,"first\nsecond, {k}\n\n""third"" ",{"ab"[k % 2]}' for k in range(4000))]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    assert first_kinds(tmp_path / "t.csv")["x"] == "number"
    assert sum(len(y) for _, y in open_stream(tmp_path / "t.csv", target="label")) == 4000


def test_the_sample_goes_with_the_texts_however_they_are_cut_and_joined():
    sample = texts_of(["5"] * 1000)
    parts = [from_dicts([{"x": "a"}, {"x": "b"}]), from_dicts([{"x": "c"}])]
    parts = [Rows.of(part.names, [replace(part.columns()[0], sample=sample)], len(part)) for part in parts]
    for some in (joined(parts), joined(parts)[:2], joined([joined(parts)[1:], parts[0]])):
        assert some.columns()[0].sample is sample
        assert Encoding().learned(some)[1].columns["x"].kind == "number"
