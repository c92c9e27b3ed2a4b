"""What notebooks show of models, events and summaries."""

import io
import re

import pandas as pd
import pytest
import sklearn
from rich.console import Console
from runs import record
from webpages import Text

from devdan import DEVDAN, DEVDANEnsemble
from devdan.bench import PENsemble
from devdan.cli.display import Display
from devdan.evaluation.record import Summary
from devdan.streams import sea

X, y = next(iter(sea(500)))


@pytest.mark.parametrize("kind", [DEVDAN, DEVDANEnsemble])
def test_a_model_shows_what_it_has_come_to_beside_its_options(kind):
    model = kind(random_state=0)
    before = model._repr_html_()
    assert "samples seen" not in before
    model.fit(X, y)
    html = model._repr_html_()
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    for shown in (html, bundle["text/html"]):
        text = Text(shown[shown.rindex("<table>") :]).text
        assert text.startswith("samples seen 500 classes 2: 0, 1 columns 3, as 3 inputs hidden units ")
        assert f"hidden units {model.n_hidden_:,}, {model.n_parameters_:,} parameters" in text
        assert "random_state" in shown
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert list(model._repr_mimebundle_()) == ["text/plain"]


def test_what_users_write_stays_text():
    frame = pd.DataFrame({"<script>": ["<b>", "c", "<b>", "d"]})
    model = DEVDAN(random_state=0).fit(frame, ["<i>", "a", "<i>", "a"])
    html = model._repr_html_()
    told = html[html.index("samples seen") :]
    assert "<script>" not in told
    assert "&lt;script&gt;" in told
    assert "2: &lt;i&gt;, a" in told


def test_events_are_a_list_that_is_shown_as_a_table():
    model = DEVDAN(random_state=0).fit(X, y)
    events = model.events_
    assert events == list(events)
    rows = re.findall("<tr>", events._repr_html_())
    assert len(rows) == 1 + len(events)
    assert Text(events._repr_html_()).text.startswith("sample phase kind unit n hidden network")
    many = type(events)(events * 10)
    assert f"The latest 20 of {len(many)} events" in many._repr_html_()
    assert type(events)()._repr_html_() == "<p>no events</p>"
    assert "rule added" in PENsemble().partial_fit(X, y).events_._repr_html_()


def test_a_summary_has_its_figures():
    summary = Summary([record(chunk) for chunk in range(5)])
    assert repr(summary) == "<Summary: 50 samples in 5 chunks, classification rate 80.00 ± 0.00 %>"
    text = Text(summary._repr_html_()).text
    assert text.startswith("Samples 50 in 5 chunks, 50 labels used Classes 2 Classification rate 80.00 ± 0.00 %")
    assert "Calibration error" not in text  # which these do not have
    assert repr(Summary()) == "<Summary: 0 samples in 0 chunks, classification rate –>"


def test_the_sparkline_of_the_terminal_says_what_it_is(monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    monkeypatch.setattr("devdan.cli.display.time.monotonic", iter(range(1000)).__next__)
    summary = Summary()
    with Display(console, sea(500), summary) as display:
        for chunk in range(3):
            summary.add(record(chunk))
            display.show(record(chunk))
        drawn = Console(file=io.StringIO(), width=120)
        drawn.print(display._panel(1000.0))
    assert "hidden units over time: 3 ▁▁▁ 3" in drawn.file.getvalue()
