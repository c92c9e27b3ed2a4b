"""An option is one row of one table: everything that repeats a part of it agrees with it."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

from devdan import DEVDAN, DEVDANEnsemble, DEVDANFleet
from devdan.kernel.state import SETTINGS
from devdan.model import options
from devdan.model.scales import QUICK, settings_at

ROOT = Path(__file__).parents[2]
BESIDE = {"initial_weights", "random_state", "seed", "random_seed", "schema", "estimator", "store", "self"}


def adapters():
    found = [DEVDAN, DEVDANEnsemble, DEVDANFleet]
    for module in ("devdan.river", "devdan.capymoa"):
        found.append(pytest.param(module, id=module))
    return found


def loaded(adapter):
    return adapter if isinstance(adapter, type) else pytest.importorskip(adapter).DEVDANClassifier


def rows_of(adapter):
    """The options that an estimator or an adapter has."""
    if adapter is DEVDANEnsemble:
        return options.ENSEMBLE
    if adapter is DEVDANFleet:
        return options.FLEET
    return [row for row in (*options.NETWORK, *options.ENCODING) if row.is_online or adapter is DEVDAN]


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("adapter", adapters())
def test_signatures_have_the_options_and_their_defaults(adapter):
    adapter = loaded(adapter)
    parameters = inspect.signature(adapter.__init__).parameters
    ours = {name: parameter.default for name, parameter in parameters.items() if name not in BESIDE}
    is_model = adapter in (DEVDAN, DEVDANEnsemble, DEVDANFleet)
    beside = {} if is_model else {"ensemble": False}  # which is a class of its own here
    assert ours == {row.name: row.default for row in rows_of(adapter)} | beside


@pytest.mark.parametrize("adapter", adapters())
def test_docstrings_say_what_the_table_says(adapter):
    adapter = loaded(adapter)
    assert "options}" not in inspect.getdoc(adapter), "a place for options that nothing fills"
    text = words(inspect.getdoc(adapter))
    for row in rows_of(adapter):
        assert f"{row.name} : {row.kind} {words(row.about)}" in text, row.name


def test_the_documentation_has_the_table():
    page = (ROOT / "docs" / "options.md").read_text()
    assert options.markdown() in page


def test_each_setting_of_the_kernel_is_the_word_of_one_option():
    chosen = DEVDAN()._options()
    every = {name for names in SETTINGS.values() for name in names}
    assert set(options.settings(chosen)) | {"mixed"} == every
    named = [row.word for row in options.OPTIONS.values() if row.word]
    of_scales = set(settings_at(QUICK)) - {"start"}  # which also an option says
    # the last two follow from the scaling, and from the number of networks
    assert sorted([*named, *of_scales, "clips", "mixed"]) == sorted(every)


@pytest.mark.parametrize("row", options.OPTIONS.values(), ids=lambda row: row.name)
def test_a_value_out_of_range_is_refused_with_the_range(row):
    row.check(row.default)
    for wrong in ("nonsense", -1.5, np.inf, [1], 10**9 + 0.5):
        with pytest.raises(ValueError, match=re.escape(f"{row.name} must be {row.range}, got {wrong!r}")):
            row.check(wrong)


def test_the_papers_options_differ_from_the_defaults():
    assert all(value != options.OPTIONS[name].default for name, value in options.PAPER.items())


def test_editors_know_the_options_of_the_adapters():
    assert tuple(options.OnlineOptions.__annotations__) == options.ONLINE
    with pytest.raises(TypeError, match="'masks' is not an option; there are n_hidden, masking, "):
        options.online({"masks": 0.1})
