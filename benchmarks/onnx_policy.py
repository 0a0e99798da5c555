"""Networks from ONNX files against onnxruntime: calls from Python, of one instance and of many.

The networks are made here, with random weights, in the sizes of policies that robots learn. Both
get the same arrays and may use all cores; results are compared first. Needs onnx and onnxruntime.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.report import Table, in_processes, medians

__all__ = ["measure", "tables"]

PROCESSES = 3
SECONDS = 0.5
#: Widths of the layers, and how many instances a call has.
CASES = {
    "24-32-12, one instance": ((24, 32, 12), 1),
    "24-32-12, 10,000 instances": ((24, 32, 12), 10_000),
    "48-128-128-12, one instance": ((48, 128, 128, 12), 1),
    "48-128-128-12, 10,000 instances": ((48, 128, 128, 12), 10_000),
}


def policy(widths: tuple[int, ...]) -> Any:
    """Return an ONNX model of dense layers with tanh between them."""
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights, last = [], [], "x"
    for k, (n, m) in enumerate(pairwise(widths)):
        w = (rng.normal(size=(m, n)) / np.sqrt(n)).astype(np.float32)
        b = (0.1 * rng.normal(size=m)).astype(np.float32)
        weights += [numpy_helper.from_array(w, f"w{k}"), numpy_helper.from_array(b, f"b{k}")]
        end = k == len(widths) - 2
        out = "y" if end else f"z{k}"
        nodes.append(helper.make_node("Gemm", [last, f"w{k}", f"b{k}"], [out], transB=1))
        if not end:
            nodes.append(helper.make_node("Tanh", [out], [f"h{k}"]))
            last = f"h{k}"
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", widths[0]])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", widths[-1]])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def seconds_per_call(call: Callable[[], Any]) -> float:
    """Return the least time of a call."""
    for _ in range(20):
        call()
    best, end = np.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return float(best)


def measure() -> dict[str, float]:
    """Time all cases once."""
    import onnxruntime

    import archimedes as arc

    found = {}
    for name, (widths, count) in CASES.items():
        model = policy(widths)
        x = np.random.default_rng(1).normal(size=(count, widths[0])).astype(np.float32)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        start = time.perf_counter()
        network = arc.from_onnx(model)
        y = network(x)
        found[f"{name}: first"] = time.perf_counter() - start
        np.testing.assert_allclose(y, session.run(None, {"x": x})[0], rtol=1e-4, atol=1e-5)
        found[f"{name}: ours"] = seconds_per_call(lambda f=network, x=x: f(x))
        found[f"{name}: peer"] = seconds_per_call(lambda s=session, x=x: s.run(None, {"x": x}))
    return found


def tables() -> list[Table]:
    """Return the table of times."""
    times = medians(in_processes("benchmarks.onnx_policy", "measure", PROCESSES))
    rows = []
    for name in CASES:
        ours, peer, first = (times[f"{name}: {x}"] for x in ("ours", "peer", "first"))
        figures = [f"{1e6 * x:,.1f} µs" for x in (ours, peer)]
        rows.append([name, *figures, f"{ours / peer:.2f}", f"{first:.2f} s"])
    columns = ["network", "archimedes", "onnxruntime", "ratio", "read and first call"]
    note = (
        "Dense layers of float32 with tanh between them, called from Python, both with all cores. "
        "Ratio: archimedes to onnxruntime, below 1 is quicker. The last column is the time from "
        "the model in memory to the first result."
    )
    return [Table("Networks from ONNX files", columns, rows, note)]


if __name__ == "__main__":
    print(json.dumps(measure(), indent=1))
