"""Operators as older versions of ONNX have them, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc

from ..optional_packages import import_or_skip
from .onnx_models import FLOAT, INT64, helper, model, value

runtime = import_or_skip("onnxruntime")

#: Version, operator, attributes, shape of the input, further constants, and types of the outputs.
F, K = FLOAT, INT64
CASES = [
    (7, "BatchNormalization", {"epsilon": 1e-3}, (2, 3, 4), [(3,)] * 3 + ["positive"], [F]),
    (7, "Dropout", {"ratio": 0.7}, (2, 3), [], [F]),
    (7, "Upsample", {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest"}, (1, 2, 3, 4), [], [F]),
    (7, "Upsample", {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, (1, 2, 3, 4), [], [F]),
    (7, "Gemm", {"alpha": 0.5, "beta": 2.0, "transA": 1}, (4, 3), [(4, 5), (5,)], [F]),
    (7, "Clip", {"min": -0.5, "max": 0.25}, (3, 4), [], [F]),
    (7, "Pad", {"pads": [0, 1, 2, 0], "mode": "reflect"}, (3, 4), [], [F]),
    (7, "Pad", {"pads": [1, 0, 0, 2], "mode": "constant", "value": 3.0}, (3, 4), [], [F]),
    (7, "Slice", {"starts": [1, -3], "ends": [9, 4], "axes": [0, 1]}, (3, 4), [], [F]),
    (7, "Softmax", {}, (2, 3, 4), [], [F]),
    (7, "LogSoftmax", {"axis": 2}, (2, 3, 4), [], [F]),
    (7, "Hardmax", {"axis": 1}, (2, 3, 4), [], [F]),
    (7, "Split", {"axis": 1, "split": [1, 3]}, (3, 4), [], [F, F]),
    (7, "Squeeze", {"axes": [0, 2]}, (1, 3, 1, 4), [], [F]),
    (7, "Unsqueeze", {"axes": [0, 3]}, (3, 4), [], [F]),
    (7, "ReduceSum", {"axes": [1], "keepdims": 0}, (3, 4), [], [F]),
    (7, "ReduceLogSumExp", {"axes": [0]}, (3, 4), [], [F]),
    (7, "ArgMax", {"axis": 1}, (3, 4), [], [K]),
    (7, "TopK", {"k": 2, "axis": 1}, (3, 4), [], [F, K]),
    (7, "AveragePool", {"kernel_shape": [2, 2], "pads": [1] * 4}, (1, 2, 5, 5), [], [F]),
    (7, "GRU", {"hidden_size": 2}, (4, 2, 3), [(1, 6, 3), (1, 6, 2), (1, 12)], [F, F]),
    (8, "Sum", {}, (3, 4), [(4,), (3, 1)], [F]),
    (8, "MaxPool", {"kernel_shape": [2], "strides": [2]}, (1, 2, 5), [], [F]),
    (9, "Upsample", {"mode": "nearest"}, (1, 1, 2, 3), [np.float32([1, 1, 2, 1.5])], [F]),
    (9, "Scatter", {"axis": 1}, (3, 4), [np.array([[0, 3]]), (1, 2)], [F]),
    (9, "Where", {}, None, [np.array([[True, False]]), (3, 2), (3, 1)], [F]),
    (10, "Resize", {"mode": "linear"}, (1, 1, 4, 4), [np.float32([1, 1, 2, 0.5])], [F]),
    (10, "Resize", {"mode": "nearest"}, (1, 1, 4, 4), [np.float32([1, 1, 0.6, 2])], [F]),
    (10, "Dropout", {}, (3, 4), [], [F]),
    (11, "Clip", {}, (3, 4), [np.float32(-0.5), np.float32(0.25)], [F]),
    (11, "Softmax", {"axis": -2}, (2, 3, 4), [], [F]),
    (11, "Pad", {"mode": "edge"}, (3, 4), [np.array([1, 1, 1, 1])], [F]),
    (12, "Unsqueeze", {"axes": [-1]}, (3, 4), [], [F]),
    (12, "ReduceMax", {"axes": [-1]}, (3, 4), [], [F]),
    (13, "Unsqueeze", {}, (3, 4), [np.array([-1, 0])], [F]),
    (13, "Split", {"axis": 1}, (3, 4), [np.array([1, 3])], [F, F]),
    (13, "ReduceSum", {"noop_with_empty_axes": 1}, (3, 4), [], [F]),
    (18, "Split", {"axis": 1, "num_outputs": 3}, (2, 7), [], [F, F, F]),
    (18, "ReduceMean", {}, (3, 4), [np.array([0])], [F]),
    (
        18,
        "Pad",
        {"mode": "constant"},
        (3, 4),
        [np.array([1, -1]), np.float32(2), np.array([1])],
        [F],
    ),
]


def build(version, op, attributes, shape, constants, kinds):
    """Return a model of one node, and its input."""
    rng = np.random.default_rng(version)
    given = [] if shape is None else ["x"]
    arrays = []
    for k, c in enumerate(constants):
        if isinstance(c, str):
            c = np.exp(rng.normal(size=constants[k - 1])).astype(np.float32)
        elif isinstance(c, tuple):
            c = rng.normal(size=c).astype(np.float32)
        arrays.append((f"c{k}", c))
    names = [*given, *(n for n, _ in arrays)]
    if shape is None:  # the first array of floats is the input
        shape, arrays = constants[1], [a for a in arrays if a[0] != "c1"]
        given = ["c1"]
    outputs = [f"y{k}" for k in range(len(kinds))]
    node = helper.make_node(op, names, outputs, **attributes)
    infos = [helper.make_tensor_value_info(n, t, None) for n, t in zip(outputs, kinds)]
    proto = model([node], [value(given[0], shape)], infos, arrays, opset=version)
    proto.ir_version = 8
    return proto, rng.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c[1]}-{c[0]}")
def test_older_versions(case):
    proto, x = build(*case)
    session = runtime.InferenceSession(proto.SerializeToString())
    expected = session.run(None, {session.get_inputs()[0].name: x})
    got = arc.from_onnx(proto).function(x)
    for a, b in zip(got if isinstance(got, tuple) else (got,), expected, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
