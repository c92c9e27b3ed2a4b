"""Which labels arrive, and when."""

import numpy as np
import pytest

from devdan.evaluation.labels import NEVER, SPELLINGS, Labels


@pytest.mark.parametrize("text", [*SPELLINGS, "uncertain:0.1:0.2", "fraction:0.5+delay:10", "warmup:9+delay:1-2"])
def test_a_policy_spells_as_it_is_written(text):
    assert str(Labels.parse(text)) == text
    assert Labels.parse(str(Labels.parse(text))) == Labels.parse(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("some", "labels must be one of all, fraction:0.1"),
        ("fraction", "must be one of"),
        ("fraction:x", "must be one of"),
        ("fraction:1.5", r"fraction must be in \[0, 1\], got 1.5"),
        ("delay:9-2", "delay must be"),
        ("delay:-3", "must be one of"),
        ("uncertain:0", "budget of uncertain must be"),
        ("uncertain:0.1:2", "margin of uncertain must be"),
        ("uncertain:0.1:0.2:0.3", "must be one of"),
        ("warmup:0", "warmup must be"),
        ("delay:1+delay:2", "delay twice"),
        ("", "must be one of"),
    ],
)
def test_a_wrong_policy_is_told_apart(text, message):
    with pytest.raises(ValueError, match=message):
        Labels.parse(text)


def test_all_arrive_at_once():
    assert (Labels().lateness(10, 5, None) == 0).all()


def test_a_fraction_arrives_at_random_and_by_the_seed():
    late = Labels.parse("fraction:0.3", seed=4).lateness(0, 100_000, None)
    assert set(late) == {0, NEVER}
    assert np.mean(late == 0) == pytest.approx(0.3, abs=0.01)
    in_parts = Labels.parse("fraction:0.3", seed=4)
    parts = [in_parts.lateness(start, 1000, None) for start in range(0, 100_000, 1000)]
    np.testing.assert_array_equal(late, np.concatenate(parts))
    assert (late != Labels.parse("fraction:0.3", seed=5).lateness(0, 100_000, None)).any()


def test_delays_are_as_given():
    assert (Labels.parse("delay:7").lateness(0, 100, None) == 7).all()
    late = Labels.parse("delay:0-20").lateness(0, 10_000, None)
    assert set(late) == set(range(21))


def test_warm_up_ends():
    policy = Labels.parse("warmup:5")
    assert policy.lateness(0, 3, None).tolist() == [0, 0, 0]
    assert policy.lateness(3, 4, None).tolist() == [0, 0, NEVER, NEVER]
    assert policy.lateness(7, 2, None).tolist() == [NEVER, NEVER]


@pytest.mark.parametrize("text", ["uncertain:0.1", "uncertain:0.1:0.3"])
def test_the_budget_is_never_overdrawn_and_goes_to_the_unsure(text):
    margins = np.random.default_rng(0).random(20_000)
    late = Labels.parse(text).lateness(0, len(margins), margins)
    asked = np.cumsum(late == 0)
    assert (asked <= 0.1 * np.arange(1, len(margins) + 1) + 1e-6).all()
    assert asked[-1] > 0.09 * len(margins)  # yet most of it is used
    assert margins[late == 0].mean() < 0.4 * margins.mean()


def test_a_fixed_margin_holds():
    margins = np.random.default_rng(0).random(5000)
    late = Labels.parse("uncertain:1:0.2").lateness(0, len(margins), margins)
    np.testing.assert_array_equal(late == 0, margins < 0.2)


def test_a_model_that_knows_nothing_is_unsure_of_all():
    assert np.sum(Labels.parse("uncertain:0.2").lateness(0, 100, None) == 0) == 20


def test_who_is_sure_of_all_still_asks():
    late = Labels.parse("uncertain:0.1").lateness(0, 2000, np.ones(2000))
    assert 100 <= np.sum(late == 0) <= 200
