"""Histories in the one loop: known when a row comes, kept until its label does, whatever the model is."""

import pickle

import numpy as np
import pandas as pd
import pytest
from payments_stream import payments
from sklearn.linear_model import SGDClassifier

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet, Histories
from devdan.apply import learn_on
from devdan.encoding.rows import texts_of
from devdan.evaluation import Summary, prequential
from devdan.evaluation.loop import Evaluation
from devdan.histories import core
from devdan.histories.histories import HistoryWarning, hashes
from devdan.streams import open_stream

pytestmark = pytest.mark.filterwarnings("ignore::devdan.histories.histories.HistoryWarning")
ROWS, LABELS = payments(3000)


def stream(n=3000, chunk=100):
    return open_stream(list(zip(ROWS[:n], LABELS[:n], strict=True)), chunk=chunk)


class Noting(DEVDAN):
    """Notes what it is taught, and what it saw of these rows when they came."""

    def __init__(self, random_state=0):
        super().__init__(random_state=random_state)
        self.observed, self.taught = [], []

    def observe(self, X):
        self.observed.append(X.numbers)
        return super().observe(X)

    def teach(self, X, y, classes=None, sample_weight=None):
        self.taught.append(X.numbers)
        return super().teach(X, y, classes, sample_weight)


def test_a_label_is_learned_with_the_histories_that_its_row_came_with():
    model, histories = Noting(), Histories("customer", time="day")
    for _ in prequential(stream(1200), model, "delay:150-450", histories=histories):
        pass
    assert histories.hidden_ == []  # so few labels do not tell what to show
    came = {row.tobytes() for row in np.concatenate(model.observed)}
    taught = np.concatenate(model.taught)
    assert len(taught) > 700
    assert all(row.tobytes() in came for row in taught)


def test_labels_count_from_when_they_come():
    """The same rows, with labels of which none comes: no share of a class is known."""
    shares = []
    for labels in ("all", "delay:600", "fraction:0"):
        model = Noting()
        list(prequential(stream(1000), model, labels, histories=Histories("customer"), classes=["ok", "fraud"]))
        seen = model.observed or [np.zeros((1, 9))]
        shares.append(np.concatenate(seen) if labels != "all" else None)
    names = [name for name in model.histories_.feature_names_ if "share of fraud" in name]
    assert len(names) == 3
    places = [[name for name in model.feature_names_in_ if name != "country"].index(name) for name in names]
    late, never = shares[1][:, places], shares[2][:, places]
    assert (never == 0).all()
    assert (late[:600] == 0).all()
    assert (late[-100:] > 0).all()


def test_a_label_that_was_only_assumed_counts_no_longer_once_another_comes():
    """As if each label had come when the last one of its row did, but for the time in between."""
    given = {"histories": Histories("customer", horizons=[1e9]), "classes": ["ok", "fraud"]}
    list(prequential(stream(1000), DEVDAN(random_state=0), "positives:100+delay:300", **given))
    frauds = np.zeros(40)
    for row, label in zip(ROWS[:700], LABELS[:700], strict=True):
        frauds[int(row["customer"][1:])] += label == "fraud"
    (group,) = given["histories"]._groups
    at = core.HEAD + 1
    counted = [group.words[core._find.py_func(group.index, group.words, key), at : at + 2] for key in keys()]
    np.testing.assert_allclose([n for _, n in counted], frauds, atol=1e-4)
    assert sum(map(sum, counted)) == pytest.approx(900, abs=0.01)


def keys():
    return hashes(texts_of([f"c{who}" for who in range(40)])).tolist()


def test_histories_find_what_rows_do_not_show():
    without = Summary(prequential(stream(), DEVDAN(random_state=0, drop=["customer"]), "delay:200"))
    with_them = Summary(
        prequential(stream(), DEVDAN(random_state=0), "delay:200", histories=Histories("customer", time="day"))
    )
    assert with_them.figures()["roc_auc"] > without.figures()["roc_auc"] + 0.1


def of_river():
    pytest.importorskip("river")
    from river import linear_model, preprocessing  # noqa: PLC0415

    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


@pytest.mark.parametrize(
    "make",
    [
        lambda: SGDClassifier(loss="log_loss", random_state=0),
        of_river,
        lambda: pytest.importorskip("devdan.river").DEVDANClassifier(seed=0),
        lambda: DEVDANEnsemble(random_state=0, n_jobs=1),
    ],
)
def test_in_front_of_any_model(make):
    stream_of_numbers = open_stream(
        [({k: v for k, v in row.items() if k != "country"}, y) for row, y in zip(ROWS[:800], LABELS, strict=False)],
        chunk=100,
    )
    records = list(
        prequential(stream_of_numbers, make(), histories=Histories("customer", time="day"), classes=["fraud", "ok"])
    )
    assert [record.n_labels for record in records] == [100] * 8
    assert records[-1].accuracy > 0.5


def test_of_a_fleet_the_key_may_be_an_entity():
    fleet = DEVDANFleet(random_state=0)
    records = list(prequential(stream(600), fleet, key="customer", histories=Histories("customer", time="day")))
    assert len(fleet) == 40
    assert sum(record.n_labels for record in records) == 600


def test_an_evaluation_that_is_pickled_in_between_goes_on_with_the_same_bits():
    model = DEVDAN(random_state=0)
    evaluation = Evaluation(model, "delay:250", histories=Histories("customer", time="day"))
    expected = [record for record in evaluation.over(stream(1500))]
    begun = Evaluation(DEVDAN(random_state=0), "delay:250", histories=Histories("customer", time="day"))
    found = []
    for _ in range(3):
        for record in begun.over(stream(1500)):
            found.append(record)
            if len(found) % 5 == 0:
                break
        begun = pickle.loads(pickle.dumps(begun))
    assert [(r.counts, r.scores) for r in found] == [(r.counts, r.scores) for r in expected]
    assert begun.model.histories_ is begun.histories
    assert begun.histories.content().tobytes() == evaluation.histories.content().tobytes()


# --- What comes late ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("later", [lambda k: k % 7 / 7, lambda k: f"k{k % 3}"], ids=["numbers", "categories"])
def test_a_column_may_get_its_first_values_after_the_first_chunk(later):
    rows = [dict(row, more=later(k) if k >= 250 else None) for k, row in enumerate(ROWS[:600])]
    model = DEVDAN(random_state=0)
    pairs = list(zip(rows, LABELS[:600], strict=True))
    records = list(prequential(open_stream(pairs, chunk=100), model, histories=Histories("customer", time="day")))
    assert sum(record.n_labels for record in records) == 600
    seen = model.histories_.transform(rows[-1:]).dicts()[0]
    assert seen["customer: more: deviation"] + seen["customer: more: different"] > 0


def test_classes_may_come_one_after_another_in_a_stream_that_names_none():
    labels = [f"class {k // 60}" for k in range(900)]
    model = DEVDAN(random_state=0)
    pairs = list(zip(ROWS[:900], labels, strict=True))
    records = list(prequential(open_stream(pairs, chunk=100), model, histories=Histories("customer", time="day")))
    assert records[-1].n_classes == 15
    assert any("whose shares have no column" in note for note in model.histories_.notes_)


def test_a_saved_model_learns_classes_that_it_did_not_know(tmp_path):
    model = DEVDAN(random_state=0)
    for _ in prequential(stream(500), model, histories=Histories("customer"), classes=["ok", "fraud"]):
        pass
    model.save(tmp_path / "model")
    again, table = DEVDAN.load(tmp_path / "model"), pd.DataFrame(ROWS[:200]).assign(fraud="stolen")
    for _ in range(2):
        result = learn_on(again, open_stream(table, target="fraud", chunk=100))
    assert result.n_labels == 200
    assert "stolen" in again.classes_


# --- What is said ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def learned():
    """A model that has learned with histories."""
    model = DEVDAN(random_state=0)
    for _ in prequential(stream(500), model, histories=Histories("customer", time="day"), classes=["ok", "fraud"]):
        pass
    return model


@pytest.mark.parametrize("raw", [ROWS[:3], pd.DataFrame(ROWS[:3])], ids=["dicts", "frame"])
def test_rows_without_histories_are_refused_with_a_hint(learned, raw):
    for ask in (learned.predict, learned.predict_proba, learned.encode):
        with pytest.raises(ValueError, match=r"lack the histories with which this DEVDAN has learned.*arrive\(X\)"):
            ask(raw)
    assert learned.predict(learned.histories_.transform(ROWS[:3])).shape == (3,)


def test_what_an_onnx_model_lacks_is_said(learned):
    pytest.importorskip("onnx")
    with pytest.warns(HistoryWarning, match="takes rows that have their histories"):
        learned.to_onnx()


def test_what_is_kept_for_corrections_does_not_grow_with_the_stream():
    evaluation = Evaluation(DEVDAN(random_state=0), "positives:100+delay:300", histories=Histories("customer"))
    sizes = []
    for _ in evaluation.over(stream(3000, chunk=50)):
        sizes.append(len(evaluation._ends))
    assert max(sizes) <= 10
    assert len(evaluation._clocks) == sizes[-1]


# --- Streams that say whom rows are about ------------------------------------------------------------------------


def test_a_stream_may_say_whom_its_rows_are_about(tmp_path):
    table = pd.DataFrame(ROWS[:800]).assign(fraud=LABELS[:800])
    table["customer"] = table.customer.str[1:].str.zfill(3)  # which look like numbers
    table.to_csv(tmp_path / "tx.csv", index=False)
    records = []
    for source in (table, tmp_path / "tx.csv"):
        model = DEVDAN(random_state=0)
        stream = open_stream(source, target="fraud", chunk=100, history="customer", time="day")
        records.append([record.counts for record in prequential(stream.first(700), model)])
        assert model.histories_.n_entities_ == {"customer": 40}
    given = Histories("customer", time="day")
    plain = open_stream(table, target="fraud", chunk=100).first(700)
    assert records[0] == [record.counts for record in prequential(plain, DEVDAN(random_state=0), histories=given)]
    assert records[0] == records[1]
    with pytest.raises(ValueError, match="has no column 'custommer', which histories need"):
        open_stream(table, target="fraud", history=["custommer"])
    with pytest.raises(ValueError, match="time is for histories"):
        open_stream(table, target="fraud", time="day")
