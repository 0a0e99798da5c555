"""Every operator against ONNX's own tests, recorded; and its bits as WebAssembly."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.interchange import OnnxError
from archimedes.interchange.onnx.ops.lookup import operators

from ..embedded.toolchain import needs
from .onnx_models import helper, model, value

#: Operators that ONNX has no test of its own for: the test below is theirs.
UNTESTED = {"GlobalLpPool"}


@pytest.fixture(scope="module")
def results():
    """Run all tests; return the network of each, by name, and operators that took part."""
    from .onnx_node_tests import cases, check, refusal

    networks, seen = {}, set()
    for case in cases():
        seen |= {node.op_type for node in case.model.graph.node}
        message = refusal(case.name)
        if message is None:
            networks[case.name] = (case, *check(case))
        else:
            with pytest.raises(OnnxError) as error:
                check(case)
            assert message in str(error.value)
    return networks, seen


@pytest.mark.long
def test_all_node_tests_pass(results):
    networks, seen = results
    assert len(networks) > 1000
    assert set(operators()) - seen <= UNTESTED


def test_operators_without_a_test_of_their_own():
    node = helper.make_node("GlobalLpPool", ["x"], ["y"], p=3)
    proto = model([node], [value("x", [1, 2, 3, 4])], [value("y", [1, 2, 1, 1])])
    x = np.random.default_rng(0).normal(size=(1, 2, 3, 4)).astype(np.float32)
    norms = np.linalg.norm(x.reshape(2, 12), ord=3, axis=1).reshape(1, 2, 1, 1)
    np.testing.assert_allclose(arc.from_onnx(proto)(x), norms, rtol=1e-6)


@pytest.mark.long
@needs("node")
def test_operators_have_the_same_bits_in_webassembly(results, tmp_path):
    from ..wasm.checking import differences, function_case

    # The shortest of the tests of each operator that is not constant.
    chosen = {}
    for name, (case, network, arguments) in results[0].items():
        nodes = case.model.graph.node
        if len(nodes) == 1 and arguments and all(a.size for a in arguments):
            size = sum(a.size for a in arguments)
            op = nodes[0].op_type
            if op not in chosen or size < chosen[op][0]:
                chosen[op] = (size, name, network, arguments)
    assert len(chosen) > 100
    wasm_cases = [function_case(n, network, tuple(a)) for _, n, network, a in chosen.values()]
    assert differences(wasm_cases, tmp_path) == {}
