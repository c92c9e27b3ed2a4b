"""The current predictor as an ONNX graph: scaling, layers or members, their averages, softmax. It no longer learns."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from devdan.arrays import Floats
from devdan.model import kernel, layers
from devdan.model.kernel import Network

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


def _scaled(graph: _Graph, net: Network, x: str) -> str:
    """Scale x as the kernel's ``find`` and ``scale`` do."""
    n = net.n_features
    missing, zero = graph.add("IsNaN", x), graph.constant(np.float64(0.0))
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


def _hidden(graph: _Graph, x: str, encoder: Floats, bias: Floats) -> str:
    product = graph.add("MatMul", x, graph.constant(encoder))
    return graph.add("Sigmoid", graph.add("Add", product, graph.constant(bias)))


def _network(graph: _Graph, net: Network, x: str, outputs: npt.NDArray[np.int64], weight: float) -> tuple[str, str]:
    """The hidden units of a network, and its probabilities times a weight."""
    n, r = net.n_features, net.n_hidden
    x = _scaled(graph, net, x)
    hidden = _hidden(graph, x, net.encoder[:n, :r], net.encoder_bias[:r])
    share = kernel.share_of_averages(net)
    slow = _hidden(graph, x, net.encoder_slow[:n, :r], net.encoder_bias_slow[:r]) if share > kernel.NEGLIGIBLE else ""
    parts = []
    for units, output, bias, part in (
        (hidden, net.output, net.output_bias, 1.0 - share),
        (slow, net.output_slow, net.output_bias_slow, share),
    ):
        if part > kernel.NEGLIGIBLE:
            product = graph.add("MatMul", units, graph.constant(output[outputs, :r].T.copy()))
            odds = graph.add("Softmax", graph.add("Add", product, graph.constant(bias[outputs])), axis=1)
            parts.append(graph.add("Mul", odds, graph.constant(np.float64(weight * part))))
    return hidden, parts[0] if len(parts) == 1 else graph.add("Sum", *parts)


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None) -> onnx.ModelProto:
    """A graph with the input ``X`` (double, NaN where missing) and the outputs ``label`` and ``probabilities``."""
    classes, outputs = model.classes_, model._classes.outputs
    graph, x, parts = _Graph(), "X", []
    nets = model._nets()
    is_layered = hasattr(model, "n_layers_")
    weights = layers.shares(model._networks) if is_layered else np.full(len(nets), 1.0 / len(nets))
    for k, net in enumerate(nets):
        hidden, part = _network(graph, net, x, outputs, float(weights[k]))
        if weights[k] > kernel.NEGLIGIBLE:
            parts.append(part)
        if is_layered:
            x = graph.add("Concat", "X", hidden, axis=1)
    graph.add("Sum", *parts, output="probabilities")
    best = graph.add("ArgMax", "probabilities", axis=1, keepdims=0)
    labels = classes.astype(object) if classes.dtype.kind in "UO" else classes
    kind = TensorProto.STRING if classes.dtype.kind in "UO" else helper.np_dtype_to_tensor_dtype(classes.dtype)
    graph.add("Gather", graph.constant(labels), best, output="label")
    description = helper.make_graph(
        graph.nodes,
        type(model).__name__,
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["samples", int(model._n_inputs)])],
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
