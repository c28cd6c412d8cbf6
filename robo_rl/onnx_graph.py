"""A network as an ONNX graph: what its ``forward`` does, operation by operation.

``torch.fx`` follows ``forward`` once with stand-ins for its arguments; each operation met has its
ONNX form here. Policies are a few layers between scales and bounds, so few forms are needed, and
what has none is refused by name. torch's own exporter knows them all; it takes seconds
where this takes hundredths, which is much of a small training.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import fx, nn

OPSET = 18
_IR_VERSION = 10  # of ONNX Runtime 1.18 on


class ExportError(RuntimeError):
    """A policy that cannot be exported, or whose graph does not answer like it."""


def to_graph(network: nn.Module, widths: Mapping[str, int], output: str) -> onnx.ModelProto:
    """``network`` as an ONNX model of inputs {name: (N, width)}, in its arguments' order, and one
    output (N, k), all float32. ExportError where it does what has no form here."""
    with torch.inference_mode():
        answer = network(*(torch.zeros(1, width) for width in widths.values()))
    return _Writer(network, widths, output, answer.shape[1]).model


class _Writer:
    """The ONNX nodes of one network, written as its operations are walked through."""

    def __init__(self, network: nn.Module, widths: Mapping[str, int], output: str, width: int):
        self.modules = dict(network.named_modules())
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.tensors = dict(network.named_parameters()) | dict(network.named_buffers())
        values: dict[fx.Node, str] = {}
        names = iter(widths)
        for node in fx.Tracer().trace(network).nodes:
            if node.op == "placeholder":
                values[node] = next(names)
            elif node.op == "get_attr":
                values[node] = self.tensor(node.target)
            elif node.op == "output":
                self.add("Identity", values[node.args[0]], named=output)
            else:
                values[node] = self.operation(node, values)
        inputs = [_rows(name, width) for name, width in widths.items()]
        graph = helper.make_graph(
            self.nodes, "policy", inputs, [_rows(output, width)], list(self.constants.values())
        )
        opsets = [helper.make_opsetid("", OPSET)]
        self.model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)

    def operation(self, node: fx.Node, values: Mapping[fx.Node, str]) -> str:
        """Writes one; the name of what it gives."""
        if node.op == "call_module":
            made: Any = self.modules[node.target]
            form = LAYERS.get(type(made))
            args, kwargs = (node.target, made), {}
        else:
            made, form, args, kwargs = node.target, OPERATIONS.get(node.target), (), node.kwargs
        if form is None:
            what = type(made).__name__ if isinstance(made, nn.Module) else made
            raise ExportError(
                f"a policy of this run does {what}, which has no ONNX form in {__name__}; known: "
                f"{', '.join(sorted(layer.__name__ for layer in LAYERS))} and the operations of "
                "OPERATIONS; add it there"
            )
        given = fx.map_arg((node.args, kwargs), values.__getitem__)
        return form(self, *given[0], *args, **given[1])

    def add(self, kind: str, *inputs: Any, named: str = "", **attributes: Any) -> str:
        """One node; ``inputs`` are names of values, or numbers."""
        name = named or f"{kind.lower()}_{len(self.nodes)}"
        given = [x if isinstance(x, str) else self.number(x) for x in inputs]
        self.nodes.append(helper.make_node(kind, given, [name], name=name, **attributes))
        return name

    def tensor(self, name: str) -> str:
        """A parameter or buffer of the network, which travels with the graph."""
        array = self.tensors[name].detach().cpu().numpy()
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def number(self, value: float | None) -> str:
        """A constant of its own; "" for what is left out."""
        if value is None:
            return ""
        name = f"number_{float(value)!r}"
        self.constants[name] = numpy_helper.from_array(np.array(value, np.float32), name)
        return name


def _rows(name: str, width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", width])


def _plain(kind: str) -> Callable[..., str]:
    """The form of an operation that ONNX has as it is."""
    return lambda writer, *inputs: writer.add(kind, *inputs)


def _clamp(writer: _Writer, x: str, min: float | None = None, max: float | None = None) -> str:
    return writer.add("Clip", x, min, max)


def _cat(writer: _Writer, parts: list[str], dim: int = 0) -> str:
    return writer.add("Concat", *parts, axis=dim)


def _log1p(writer: _Writer, x: str) -> str:
    return writer.add("Log", writer.add("Add", x, 1.0))


def _linear(writer: _Writer, x: str, name: str, layer: nn.Linear) -> str:
    weight = writer.tensor(f"{name}.weight")
    bias = [] if layer.bias is None else [writer.tensor(f"{name}.bias")]
    return writer.add("Gemm", x, weight, *bias, transB=1)


def _hardtanh(writer: _Writer, x: str, name: str, layer: nn.Hardtanh) -> str:
    return writer.add("Clip", x, layer.min_val, layer.max_val)


def _flatten(writer: _Writer, x: str, name: str, layer: nn.Flatten) -> str:
    return writer.add("Flatten", x, axis=layer.start_dim)


# What a forward calls: (writer, the call's own arguments) -> name of the result.
OPERATIONS: Mapping[Any, Callable[..., str]] = {
    operator.add: _plain("Add"),
    operator.sub: _plain("Sub"),
    operator.mul: _plain("Mul"),
    "abs": _plain("Abs"),
    torch.sign: _plain("Sign"),
    torch.log1p: _log1p,
    torch.clamp: _clamp,
    torch.cat: _cat,
}

# Layers: (writer, input, the layer's path in the network, the layer) -> name of the result.
LAYERS: Mapping[type[nn.Module], Callable[..., str]] = {
    nn.Linear: _linear,
    nn.Tanh: lambda writer, x, name, layer: writer.add("Tanh", x),
    nn.ReLU: lambda writer, x, name, layer: writer.add("Relu", x),
    nn.Hardtanh: _hardtanh,
    nn.Flatten: _flatten,
}
