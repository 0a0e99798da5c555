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


def conv_net(seed: int = 0) -> Any:
    """Return convolutions, pooling, normalisation and a dense layer over images (N, 3, 12, 12)."""
    rng = np.random.default_rng(seed)

    def weight(*shape: int) -> Any:
        return (rng.normal(size=shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)

    nodes = [
        helper.make_node("Conv", ["x", "w0", "b0"], ["c0"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c0", "s", "b0", "m", "v"], ["n0"]),
        helper.make_node("Relu", ["n0"], ["r0"]),
        helper.make_node("MaxPool", ["r0"], ["p0"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["p0", "w1"], ["c1"], group=4, strides=[2, 2], pads=[1, 1, 1, 1]),
        helper.make_node("HardSwish", ["c1"], ["r1"]),
        helper.make_node("GlobalAveragePool", ["r1"], ["g"]),
        helper.make_node("Flatten", ["g"], ["f"]),
        helper.make_node("MatMul", ["f", "w2"], ["z"]),
        helper.make_node("Softmax", ["z"], ["y"]),
    ]
    constants = [
        ("w0", weight(8, 3, 3, 3)),
        ("b0", weight(8)),
        ("s", 1 + 0.1 * weight(8)),
        ("m", 0.1 * weight(8)),
        ("v", np.exp(0.1 * weight(8))),
        ("w1", weight(8, 2, 3, 3)),
        ("w2", weight(8, 5)),
    ]
    return model(nodes, [value("x", ["N", 3, 12, 12])], [value("y", ["N", 5])], constants)


def lstm_net(inputs: int = 3, hidden: int = 4, dtype: Any = np.float32, seed: int = 0) -> Any:
    """Return an LSTM over (steps, N, inputs) with all its outputs."""
    rng = np.random.default_rng(seed)
    shapes = {"w": (1, 4 * hidden, inputs), "r": (1, 4 * hidden, hidden), "b": (1, 8 * hidden)}
    constants = [(n, (0.5 * rng.normal(size=s)).astype(dtype)) for n, s in shapes.items()]
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node("LSTM", ["x", "w", "r", "b"], ["y", "h", "c"], hidden_size=hidden)
    outputs = [
        value("y", ["T", 1, "N", hidden], kind),
        value("h", [1, "N", hidden], kind),
        value("c", [1, "N", hidden], kind),
    ]
    return model([node], [value("x", ["T", "N", inputs], kind)], outputs, constants)


def attention_net(width: int = 8, heads: int = 2, tokens: int = 4, seed: int = 0) -> Any:
    """Return a layer of attention as exporters write it, for (N, tokens, width)."""
    rng = np.random.default_rng(seed)
    size = width // heads
    constants = [
        (name, (rng.normal(size=(width, width)) / np.sqrt(width)).astype(np.float32))
        for name in ("wq", "wk", "wv", "wo")
    ]
    constants += [
        ("split", np.array([0, tokens, heads, size])),
        ("join", np.array([0, tokens, width])),
        ("root", np.float32(np.sqrt(size))),
        ("one", np.ones(width, np.float32)),
        ("zero", np.zeros(width, np.float32)),
    ]
    nodes = []
    for name, order in (("q", (0, 2, 1, 3)), ("k", (0, 2, 3, 1)), ("v", (0, 2, 1, 3))):
        nodes += [
            helper.make_node("MatMul", ["x", f"w{name}"], [f"{name}0"]),
            helper.make_node("Reshape", [f"{name}0", "split"], [f"{name}1"]),
            helper.make_node("Transpose", [f"{name}1"], [name], perm=order),
        ]
    nodes += [
        helper.make_node("MatMul", ["q", "k"], ["qk"]),
        helper.make_node("Div", ["qk", "root"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["pv"]),
        helper.make_node("Transpose", ["pv"], ["pvt"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["pvt", "join"], ["flat"]),
        helper.make_node("MatMul", ["flat", "wo"], ["o"]),
        helper.make_node("Add", ["x", "o"], ["s"]),
        helper.make_node("LayerNormalization", ["s", "one", "zero"], ["y"], axis=-1),
    ]
    shape = ["N", tokens, width]
    return model(nodes, [value("x", shape)], [value("y", shape)], constants)


def quantized_net(seed: int = 0) -> Any:
    """Return a dense layer and a convolution in integers, between floats (N, 2, 6, 6)."""
    rng = np.random.default_rng(seed)
    constants = [
        ("xs", np.float32(0.02)),
        ("xz", np.uint8(120)),
        ("w", rng.integers(-127, 128, size=(3, 2, 3, 3)).astype(np.int8)),
        ("ws", np.array([0.01, 0.02, 0.015], np.float32)),
        ("wz", np.zeros(3, np.int8)),
        ("cs", np.float32(0.3)),
        ("cz", np.uint8(100)),
        ("d", rng.integers(0, 256, size=(48, 4)).astype(np.uint8)),
        ("ds", np.float32(0.01)),
        ("dz", np.uint8(130)),
        ("ys", np.float32(2.0)),
        ("yz", np.uint8(128)),
    ]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "xs", "xz"], ["q"]),
        helper.make_node("QLinearConv", ["q", "xs", "xz", "w", "ws", "wz", "cs", "cz"], ["c"]),
        helper.make_node("Flatten", ["c"], ["f"]),
        helper.make_node("QLinearMatMul", ["f", "cs", "cz", "d", "ds", "dz", "ys", "yz"], ["m"]),
        helper.make_node("DequantizeLinear", ["m", "ys", "yz"], ["y"]),
    ]
    outputs = [value("y", ["N", 4]), value("m", ["N", 4], onnx.TensorProto.UINT8)]
    return model(nodes, [value("x", ["N", 2, 6, 6])], outputs, constants, opset=21)
