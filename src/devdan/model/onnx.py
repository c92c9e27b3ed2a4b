"""The current predictor as an ONNX graph: scaling, all networks, their averages and memories, and the decision.

It no longer learns: thresholds stay as they are, so that what a row is called does not depend on those before it.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from devdan import kernel
from devdan.arrays import Floats
from devdan.kernel import Network, Replaying
from devdan.model.decision import SMALLEST, CostDecision, Decision, place_of

OPSET = 17


class _Graph:
    """Nodes and constants, each with a unique name."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: npt.ArrayLike) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; returns the name of its output."""
        output = output or f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def clipped(self, x: str, low: float, high: float) -> str:
        return self.add("Clip", x, self.constant(np.float64(low)), self.constant(np.float64(high)))


def _within(graph: _Graph, net: Network, x: str) -> str:
    """Keep x within what was lately taught, as the kernel's ``clip`` does."""
    if net.clips == 0.0 or net.n_ranged.sum() < kernel.LEAST_RANGED:
        return x
    n = net.n_features
    low, high = net.lowest[:, :n].min(axis=0), net.highest[:, :n].max(axis=0)
    seen = low <= high
    x = graph.add("Max", x, graph.constant(np.where(seen, low, -np.inf)))
    return graph.add("Min", x, graph.constant(np.where(seen, high, np.inf)))


def _scaled(graph: _Graph, net: Network, x: str, missing: str) -> str:
    """Scale x as the kernel's ``find`` and ``see`` do."""
    n, zero = net.n_features, graph.constant(np.float64(0.0))
    x = graph.clipped(graph.add("Where", missing, zero, x), -kernel.LARGEST, kernel.LARGEST)
    if net.scaling == kernel.STANDARD:
        centre, spread, low, high = net.mean[:n], np.sqrt(net.square[:n]), -kernel.WIDEST, kernel.WIDEST
    elif net.scaling == kernel.MINMAX:
        seen = net.high[:n] > net.low[:n]
        centre, spread = np.where(seen, net.low[:n], 0.0), np.where(seen, net.high[:n] - net.low[:n], 0.0)
        low, high = 0.0, 1.0
    else:
        centre, spread, low, high = np.zeros(n), np.ones(n), 0.0, 1.0
    steps = graph.add("Sub", x, graph.constant(centre))
    x = graph.clipped(graph.add("Div", steps, graph.constant(np.where(spread > 0.0, spread, 1.0))), low, high)
    counts = graph.constant((spread > 0.0).astype(np.float64))  # a feature that never varied, or is missing, is 0
    return graph.add("Where", missing, zero, graph.add("Mul", x, counts))


def _in_fields(graph: _Graph, net: Replaying, x: str, raw: str, missing: str) -> str:
    """What the fields see of x, as the kernel's ``locate`` has it: the nearer the centre of a field, the more."""
    n, n_fields = net.n_features, net.n_fields
    low, width = (-kernel.FARTHEST, 2.0 * kernel.FARTHEST) if net.scaling == kernel.STANDARD else (0.0, 1.0)
    place = graph.add("Mul", x, graph.constant(np.float64(n_fields / width)))
    place = graph.add("Sub", place, graph.constant(np.float64(low * n_fields / width + 0.5)))
    place = graph.clipped(place, 0.0, n_fields - 1.0)
    is_ranked = net.field_places[:n, -1] > net.field_places[:n, 0]
    if is_ranked.any():
        between = graph.add("Mul", graph.add("Add", place, _ranks(graph, net, raw)), graph.constant(np.float64(0.5)))
        place = graph.add("Where", graph.constant(is_ranked), between, place)
    place = graph.add("Reshape", place, graph.constant(np.array([-1, n, 1])))
    apart = graph.add("Abs", graph.add("Sub", place, graph.constant(np.arange(n_fields, dtype=np.float64))))
    seen = graph.add("Relu", graph.add("Sub", graph.constant(np.float64(1.0)), apart))
    absent = graph.add("Reshape", missing, graph.constant(np.array([-1, n, 1])))
    varies = np.array([kernel.has_varied(net, j) for j in range(n)], dtype=np.float64)
    seen = graph.add("Mul", seen, graph.constant(varies[:, None]))
    seen = graph.add("Where", absent, graph.constant(np.float64(0.0)), seen)
    return graph.add("Reshape", seen, graph.constant(np.array([-1, n * n_fields])))


def _ranks(graph: _Graph, net: Replaying, raw: str) -> str:
    """Where values are among the places of the fields, as the kernel's ``rank`` has it: how many steps they passed."""
    n = net.n_features
    value = graph.add("Reshape", raw, graph.constant(np.array([-1, n, 1])))
    low, step = net.field_places[:n, :-1], np.diff(net.field_places[:n])
    beyond = graph.add("Sub", value, graph.constant(low))
    passed = graph.add("Div", beyond, graph.constant(np.where(step > 0.0, step, 1.0)))
    half = graph.constant(np.float64(0.5))  # of places at the same value
    at_once = graph.add("Add", graph.add("Mul", graph.add("Sign", beyond), half), half)
    passed = graph.clipped(graph.add("Where", graph.constant(step > 0.0), passed, at_once), 0.0, 1.0)
    return graph.add("ReduceSum", passed, graph.constant(np.array([2])), keepdims=0)


def _hidden(graph: _Graph, net: Network, x: str, fields: str | None, slow: str = "") -> str:
    """The hidden units, by the weights or, with ``_slow``, by their averages; ``fields`` is what those see, if any."""
    n, r = net.n_features, net.n_hidden
    encoder, bias = getattr(net, f"encoder{slow}")[:n, :r], getattr(net, f"encoder_bias{slow}")[:r]
    product = graph.add("MatMul", x, graph.constant(encoder))
    if fields is not None:
        weights = np.zeros((n * net.n_fields, r))
        weights[:, r - net.n_field_units :] = getattr(net, f"field_weights{slow}")[:n].reshape(len(weights), -1)
        product = graph.add("Add", product, graph.add("MatMul", fields, graph.constant(weights)))
    return graph.add("Sigmoid", graph.add("Add", product, graph.constant(bias)))


def _network(graph: _Graph, state: Floats, x: str, outputs: npt.NDArray[np.int64], weight: float) -> list[str]:
    """What a network predicts by its weights and by their averages, each times its weight in the prediction."""
    net = Network(state)
    r, known = net.n_hidden, outputs < net.n_classes  # one that is new may not know all yet
    missing = graph.add("IsNaN", x)
    raw = _within(graph, net, x)
    x = _scaled(graph, net, raw, missing)
    fields = None
    if isinstance(net, Replaying) and net.n_fields > 0:
        fields = _in_fields(graph, net, x, raw, missing)
    hidden, parts = _hidden(graph, net, x, fields), []
    for predictor in (kernel.BY_WEIGHTS, kernel.BY_AVERAGES):
        part = weight * kernel.predictor_weight(net, predictor)
        if part <= kernel.NEGLIGIBLE:
            continue
        if predictor == kernel.BY_WEIGHTS:
            odds = _softmax(graph, hidden, net.output[outputs, :r], np.where(known, net.output_bias[outputs], -np.inf))
        else:
            slow = _hidden(graph, net, x, fields, "_slow")
            offsets = np.where(known, net.output_bias_slow[outputs], -np.inf)
            odds = _softmax(graph, slow, net.output_slow[outputs, :r], offsets)
        parts.append(graph.add("Mul", odds, graph.constant(np.float64(part))))
    return parts


def _softmax(graph: _Graph, units: str, output: Floats, bias: Floats) -> str:
    product = graph.add("MatMul", units, graph.constant(output.T.copy()))
    return graph.add("Softmax", graph.add("Add", product, graph.constant(bias)), axis=1)


def _called(graph: _Graph, decision: Decision, labels: list[Any]) -> str:
    """Which of the labels each row is called, as the decision's ``places`` has it."""
    if isinstance(decision, CostDecision):
        saved = graph.add("MatMul", "probabilities", graph.constant(-decision.costs(labels)))
        return graph.add("ArgMax", saved, axis=1, keepdims=0)
    rules = [(place, rule.threshold) for name, rule in decision.rules.items() for place in place_of(name, labels)]
    own, thresholds = [place for place, _ in rules][::-1], np.array([threshold for _, threshold in rules])[::-1]
    if not own:
        return graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    is_left_out = np.isin(np.arange(len(labels)), own) & (len(own) < len(labels))
    others = graph.add("Where", graph.constant(is_left_out), graph.constant(np.float64(-1.0)), "probabilities")
    # The last of several rules wins a tie, and the first of several places: so they are in reverse.
    scores = graph.add("Gather", "probabilities", graph.constant(np.array(own)), axis=1)
    reached = graph.add("GreaterOrEqual", scores, graph.constant(thresholds))
    by = graph.add("Div", scores, graph.constant(np.maximum(thresholds, SMALLEST)))
    by = graph.add("Where", reached, by, graph.constant(np.float64(-1.0)))
    farthest = graph.add("Gather", graph.constant(np.array(own)), graph.add("ArgMax", by, axis=1, keepdims=0))
    is_any = graph.add("GreaterOrEqual", graph.add("ReduceMax", by, axes=[1], keepdims=0), graph.constant(0.0))
    return graph.add("Where", is_any, farthest, graph.add("ArgMax", others, axis=1, keepdims=0))


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> onnx.ModelProto:
    """A graph with the input ``X`` (double, NaN where missing) and the outputs ``label`` and ``probabilities``."""
    classes, mixture = model.classes_, model.mixture_
    outputs, graph, parts = mixture.classes.outputs, _Graph(), []
    for state, weight in zip(mixture.networks, mixture.network_weights, strict=True):
        parts += _network(graph, state, "X", outputs, weight)
    first = mixture.nets[0]
    if first.calibrates and first.calibration[kernel.LOG_TEMPERATURE] != 0.0:
        exponent = graph.constant(np.exp(-first.calibration[kernel.LOG_TEMPERATURE]))
        powers = graph.add("Pow", graph.add("Sum", *parts), exponent)
        total = graph.add("ReduceSum", powers, graph.constant(np.array([1])), keepdims=1)
        graph.add("Div", powers, total, output="probabilities")
    else:
        graph.add("Sum", *parts, output="probabilities")
    called = _called(graph, model.decision_, classes.tolist())
    labels = classes.astype(object) if classes.dtype.kind in "UO" else classes
    kind = TensorProto.STRING if classes.dtype.kind in "UO" else helper.np_dtype_to_tensor_dtype(classes.dtype)
    graph.add("Gather", graph.constant(labels), called, output="label")
    description = helper.make_graph(
        graph.nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["samples", mixture.n_inputs])],
        [
            helper.make_tensor_value_info("label", kind, ["samples"]),
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["samples", len(classes)]),
        ],
        graph.constants,
    )
    result = helper.make_model(description, opset_imports=[helper.make_opsetid("", OPSET)], producer_name="devdan")
    result.ir_version = 8  # the IR version of this opset, so that older runtimes accept the file
    onnx.checker.check_model(result)
    if path is not None:
        onnx.save(result, os.fspath(path))
    return result
