"""The keys of a fleet on the page of a run: figures, charts and tables."""

import json

import numpy as np
import pandas as pd
import pytest
from runs import record, save
from webpages import Text

from devdan import DEVDANFleet
from devdan.evaluation.loop import prequential
from devdan.evaluation.record import KeyCount, Record
from devdan.report.key_charts import (
    FEW,
    MOST_DRIFTING,
    MOST_ROWS,
    RECENT,
    KeyFigures,
    by_samples,
    drifting,
    extremes,
    searchable,
)
from devdan.report.words import percent
from devdan.streams import open_stream


def chunk(number, counts, n=100):
    """A record of a fleet."""
    return Record(
        number, number * n, n, 2, (), ((0, 0, n),), n, (0, 0), 3, 20, None, None, None, None, 0.1, 0.1, keys=counts
    )


@pytest.fixture(scope="module")
def records():
    """Of a stream with a few keys, some of whose names look like markup or are long."""
    random = np.random.default_rng(0)
    names = np.array(["</script><b>&", "'\"<i>", "é" * 300, *(f"pump {k}" for k in range(9))])
    rows = pd.DataFrame({"device": names[(12 * random.random(3000) ** 2).astype(int)], "x": random.random(3000)})
    rows["y"] = rows["x"] > 0.5
    return list(prequential(open_stream(rows, target="y", chunk=200), DEVDANFleet(random_state=0), key="device"))


def test_figures_of_keys_are_those_of_their_rows():
    random = np.random.default_rng(0)
    keys, rights = KeyFigures(), {}
    for number in range(60):
        counts = []
        for key in random.choice(30, 8, replace=False).tolist():
            right = (random.random(5) < key / 30).tolist()
            rights.setdefault(f"k{key}", []).extend(right)
            counts.append(KeyCount(f"k{key}", 6, 5, sum(right), 0, int(number == 50)))
        keys.add(chunk(number, tuple(counts)))
    assert keys.names == list(rights)
    np.testing.assert_array_equal(keys.accuracy, [np.mean(own) for own in rights.values()])
    np.testing.assert_array_equal(keys.table["samples"], [len(own) // 5 * 6 for own in rights.values()])
    few = [len(own) <= RECENT for own in rights.values()]
    np.testing.assert_allclose(keys.recent[few], keys.accuracy[few])
    assert keys.table["real"].sum() == len(keys.drifts) == 8
    worst, best = extremes(keys)
    judged = {key: np.mean(own) for key, own in rights.items() if len(own) >= FEW}
    assert [row.name for row in worst] == sorted(judged, key=lambda k: (judged[k], -len(rights[k])))[: len(worst)]
    assert best[0].accuracy == percent(max(judged.values()))
    assert sum(int(row.n_keys) for row in by_samples(keys)) == 30


def test_the_recent_accuracy_follows_a_key_that_has_got_worse():
    keys = KeyFigures()
    for number in range(40):
        keys.add(chunk(number, (KeyCount("a", 10, 10, 9 if number < 20 else 2, 0, 0),)))
    assert keys.accuracy.tolist() == [0.55]
    assert 0.2 <= keys.recent[0] < 0.25
    assert keys.table["last"].tolist() == [4000]


def test_points_and_rows_are_bounded_however_many_there_are():
    keys, n_keys = KeyFigures(), MOST_ROWS + 500
    for number in range(900):
        places = range(10 * number % n_keys, 10 * number % n_keys + 10)
        keys.add(chunk(number, tuple(KeyCount(str(k % n_keys), 10, 10, k % 10, 1, 0) for k in places)))
    assert len(keys) == n_keys
    assert 50 <= len(keys.spreads) <= 200
    assert keys.spreads[-1].end > 80_000
    assert len(searchable(keys)) == MOST_ROWS
    assert len(drifting(keys, 90_000)) == MOST_DRIFTING


def test_the_page_shows_the_keys_and_their_names_only_as_text(tmp_path, page, records):
    html = page(save(tmp_path / "run", records))
    text = Text(html)
    assert text.open == []
    for words in ("Accuracy of the keys", "Worst keys", "Best keys", "Keys by number of samples", "12 in all"):
        assert words in text.text
    rows = json.loads(html.partition('id="key-rows">')[2].partition("</script>")[0])
    counted = {}
    for count in (count for one in records for count in one.keys):
        counted[count.key] = counted.get(count.key, 0) + count.n_samples
    assert {row[0][:79]: row[1] for row in rows} == {key[:79]: n for key, n in counted.items()}
    assert "<b>" not in html
    assert "<i>" not in html


def test_keys_are_no_part_of_the_page_of_a_model(tmp_path, page):
    assert "all-keys" not in page(save(tmp_path / "run", [record(0), record(1)]))
