"""What hidden units stand for: together they are the reconstruction and the prediction."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from webpages import Text

from devdan import DEVDAN, DEVDANEnsemble, kernel
from devdan.kernel import Network
from devdan.kernel.state import scratch_for
from devdan.model import explain
from devdan.model.explain import SAMPLES
from devdan.model.recent import recent_inputs

X = np.random.default_rng(0).normal(size=(1500, 3)) * [1, 10, 0.1] + [0, 50, 3]
y = np.where(X[:, 0] > 0.7, "high", np.where(X[:, 1] > 50, "middle", "low"))


@pytest.mark.parametrize("scaling", ["standard", "minmax", None])
def test_what_is_reconstructed_is_what_the_kernel_reconstructs(scaling):
    inputs = X if scaling else (X - X.min(axis=0)) / np.ptp(X, axis=0)
    model = DEVDAN(random_state=0, scaling=scaling).fit(inputs, y)
    net = Network(model.mixture_.networks[0])
    hidden = model.transform(inputs[:20])
    a = (hidden @ net.encoder[:3, : net.n_hidden].T + net.decoder_bias[:3]).T
    np.testing.assert_allclose(
        explain.reconstructed(model.mixture_.nets[0], a).T, model.reconstruct(inputs[:20]), rtol=1e-9
    )


def test_units_are_on_for_what_drives_them_and_pull_towards_classes(monkeypatch):
    monkeypatch.setattr(explain, "_STRONGEST", 10)
    model = DEVDAN(random_state=0, n_hidden=4).fit(X, y)
    found = [unit for unit in model.units_ if unit.network == 0]
    assert [unit.unit for unit in found] == list(range(model.n_hidden_))
    recent = model.transform(recent_inputs(model.mixture_.networks, SAMPLES))
    weights = model.weights_
    deviation = np.sqrt(Network(model.mixture_.networks[0]).square[:3])
    for unit in found:
        assert unit.activation == pytest.approx(recent[:, unit.unit].mean())
        drivers, pulls, adds = map(dict, (unit.weights, unit.pulls, unit.adds))
        assert [drivers[f"x{j}"] for j in range(3)] == weights["encoder"][:, unit.unit].tolist()
        output = weights["output"][unit.unit]
        assert [pulls[label] for label in model.classes_] == pytest.approx((output - output.mean()).tolist())
        assert max(map(abs, drivers.values())) == abs(unit.weights[0][1])
        limit = 2 * kernel.WIDEST * deviation
        for j in range(3):  # exactly the weight on the scale of the stream, unless the whole is clipped
            assert abs(adds.get(f"x{j}", 0)) <= min(abs(drivers[f"x{j}"]) * deviation[j], limit[j]) * (1 + 1e-9)


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_a_unit_that_sees_through_fields_is_driven_as_far_as_a_feature_moves_it(scaling, monkeypatch):
    monkeypatch.setattr(explain, "_STRONGEST", 10)
    model = DEVDAN(random_state=0, scaling=scaling).fit(X, y)
    state = model.mixture_.networks[1]
    net = Network(state)
    found = [unit for unit in model.units_ if unit.network == 1][-net.n_field_units :]
    assert len(found) == net.n_hidden // 2 > 0
    centres = (np.arange(net.n_fields) + 0.5) / net.n_fields
    for j in range(3):
        rows = np.tile(X.mean(axis=0), (net.n_fields, 1))
        if scaling == "standard":
            rows[:, j] = net.mean[j] + np.sqrt(net.square[j]) * 5 * (centres - 0.5)
        else:
            rows[:, j] = net.low[j] + (net.high[j] - net.low[j]) * centres
        hidden = np.empty((net.n_fields, net.n_hidden))
        kernel.transform(state, scratch_for(state), rows, hidden)
        moved = np.log(hidden / (1 - hidden))
        for unit in found:
            sign = 1 if moved[-1, unit.unit] > moved[0, unit.unit] else -1
            assert dict(unit.weights)[f"x{j}"] == pytest.approx(sign * np.ptp(moved[:, unit.unit]), rel=1e-6)


def test_every_network_has_its_units():
    model = DEVDAN(random_state=0, rehearse=5).fit(X, y)
    sizes = [net.n_hidden for net in model.mixture_.nets]
    found = model.units_
    assert [(unit.network, unit.unit) for unit in found] == [
        (k, i) for k, size in enumerate(sizes) for i in range(size)
    ]
    assert all(unit.adds == () for unit in found if unit.network == 1), "the one that replays reconstructs nothing"
    ensemble = DEVDANEnsemble(random_state=0, n_jobs=1).fit(X, y)
    assert len(ensemble.units_) == ensemble.n_hidden_


def test_inputs_have_the_names_of_the_columns_and_classes_theirs():
    table = pd.DataFrame({"city": np.random.default_rng(0).choice(["Bonn", "<Ulm>"], 500)})
    model = DEVDAN(random_state=0).fit(table, np.where(table.city == "Bonn", "<b>", "c"))
    found = model.units_
    assert {name for unit in found for name, _ in unit.weights} == {"city=Bonn", "city=<Ulm>"}
    assert {label for unit in found for label, _ in unit.pulls} == {"<b>", "c"}
    html = found._repr_html_()
    assert "<Ulm>" not in html
    assert "&lt;Ulm&gt;" in html
    assert f"The first 20 of {len(found)} hidden units" in Text(html).text
    assert Text(html).text.count(f"{found[0].activation:.2f}") >= 1
    assert explain.UnitList()._repr_html_() == "<p>no hidden units yet</p>"


def test_units_before_labels_pull_nowhere():
    found = DEVDAN(random_state=0).observe(X).units_
    assert found
    assert all(unit.pulls == () for unit in found)
    with pytest.raises(NotFittedError, match="has not seen a sample yet"):
        DEVDAN().units_  # noqa: B018
