"""ONNX's own tests of operators: ``python -m tests.interchange.onnx_node_tests`` prints a table.

Every test is run whose operators are all listed and whose types exist here; none of them may fail.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np

import archimedes as arc
from archimedes.interchange import OnnxError
from archimedes.interchange.onnx.ops.lookup import operators
from archimedes.interchange.onnx.tensors import dtype_of, type_name

#: Tests that are refused, by the beginning of their names, with the message.
REFUSED = {
    "test_batchnorm_example_training_mode": "training_mode is set",
    "test_batchnorm_epsilon_training_mode": "training_mode is set",
    "test_training_dropout": "training_mode is set",
    "test_not_": r"operators of version (opset) 1",  # the operator is tested by other tests too
    "test_resize_tf_crop_and_resize": "'tf_crop_and_resize' is not known",
    "test_scan_sum": "version 8 of Scan is not known",
}
#: What messages say where an input must be known before the network is recorded.
NEEDS_CONSTANTS = ("constants=", "fixed number of steps", "to the power of a traced integer")


def cases() -> Iterator[Any]:
    """Yield the tests of listed operators with types that exist here."""
    from onnx.backend.test.case.node import collect_testcases

    listed = set(operators())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        every = collect_testcases(None)
    for case in every:
        graph = case.model.graph
        if {node.op_type for node in graph.node} <= listed and _types_exist(graph):
            yield case


def _types_exist(graph: Any) -> bool:
    for one in (*graph.input, *graph.output):
        if one.type.WhichOneof("value") != "tensor_type":
            return False
        try:
            dtype_of(type_name(one.type.tensor_type.elem_type), "")
        except OnnxError:
            return False
    return True


def as_array(value: Any) -> Any:
    """Return a value of a test as it is given to a network: integers are int64."""
    from onnx import TensorProto, numpy_helper

    array = np.asarray(numpy_helper.to_array(value) if isinstance(value, TensorProto) else value)
    return array.astype(np.int64) if "int" in array.dtype.name else array


def network_and_arguments(case: Any, given: list[Any]) -> tuple[Any, list[Any]]:
    """Return the network of a test, with those inputs as constants that decide on shapes."""
    names = arc.from_onnx(case.model).input_names
    integers = {n for n, v in zip(names, given) if v.dtype.kind in "ib"}
    for fixed in (set(), integers, set(names[1:]), set(names)):
        constants = {n: v for n, v in zip(names, given) if n in fixed}
        network = arc.from_onnx(case.model, constants=constants)
        arguments = [v for n, v in zip(names, given) if n not in fixed]
        try:
            network.recording(*arguments)
        except (OnnxError, arc.TraceError) as error:
            if fixed == set(names) or not any(text in str(error) for text in NEEDS_CONSTANTS):
                raise
        else:
            break
    return network, arguments


def check(case: Any) -> tuple[Any, list[Any]]:
    """Run a test; return its network and the arguments of the last call."""
    for inputs, wanted in case.data_sets:
        network, arguments = network_and_arguments(case, [as_array(v) for v in inputs])
        got = network(*arguments)
        for a, b in zip(got if isinstance(got, tuple) else (got,), wanted, strict=True):
            b = as_array(b)
            assert a.shape == b.shape and a.dtype == b.dtype, (case.name, a.shape, a.dtype)
            np.testing.assert_allclose(a, b, rtol=case.rtol, atol=case.atol, err_msg=case.name)
    return network, arguments


def refusal(name: str) -> str | None:
    """Return the message with which a test is refused, or None."""
    return next((text for start, text in REFUSED.items() if name.startswith(start)), None)


def main() -> None:
    """Print for each operator how many tests pass, and how many are refused."""
    passed: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    total = Counter(passed=0, refused=0)
    for case in cases():
        names = {node.op_type for node in case.model.graph.node}
        if refusal(case.name) is None:
            check(case)
            passed.update(names)
            total["passed"] += 1
        else:
            refused.update(names)
            total["refused"] += 1
    for name in sorted(operators()):
        print(f"{name:28s} {passed[name]:5d} passed {refused[name]:3d} refused")
    print(f"{len(operators())} operators, {dict(total)}")


if __name__ == "__main__":
    main()
