"""Small ONNX networks for tests, built with the ``onnx`` package."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..optional_packages import import_or_skip

onnx = import_or_skip("onnx")
helper, numpy_helper = onnx.helper, onnx.numpy_helper
FLOAT, DOUBLE, INT64 = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64


def value(name: str, shape: Any, kind: int = FLOAT) -> Any:
    """Return an input or output of a graph."""
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name: str, array: Any) -> Any:
    """Return a constant of a graph."""
    return numpy_helper.from_array(np.asarray(array), name)


def model(
    nodes: Any,
    inputs: Any,
    outputs: Any,
    constants: Any = (),
    opset: int = 17,
    functions: Any = (),
    domains: Any = (),
) -> Any:
    """Return a model; shapes of outputs may be None."""
    graph = helper.make_graph(
        list(nodes), "network", list(inputs), list(outputs), [constant(*c) for c in constants]
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=opsets, functions=list(functions), ir_version=10)


def mlp(sizes: Any, activation: str = "Tanh", dtype: Any = np.float32, seed: int = 0) -> Any:
    """Return a network of dense layers, with any number of rows."""
    rng = np.random.default_rng(seed)
    nodes, constants, last = [], [], "x"
    for k, (n, m) in enumerate(itertools.pairwise(sizes)):
        constants.append((f"w{k}", (rng.normal(size=(m, n)) / np.sqrt(n)).astype(dtype)))
        constants.append((f"b{k}", rng.normal(size=m).astype(dtype) * 0.1))
        end = k == len(sizes) - 2
        out = "y" if end else f"h{k}"
        nodes.append(helper.make_node("Gemm", [last, f"w{k}", f"b{k}"], [out], transB=1))
        if not end:
            nodes.append(helper.make_node(activation, [out], [f"a{k}"]))
            last = f"a{k}"
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    shapes = value("x", ["N", sizes[0]], kind), value("y", ["N", sizes[-1]], kind)
    return model(nodes, [shapes[0]], [shapes[1]], constants)


def reference(proto: Any, *args: Any) -> list[Any]:
    """Return what ONNX's own evaluator gives."""
    from onnx.reference import ReferenceEvaluator

    names = [one.name for one in proto.graph.input]
    return ReferenceEvaluator(proto).run(None, dict(zip(names, args)))
