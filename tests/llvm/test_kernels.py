"""What a kernel tells about itself, what it refuses, and that it goes away."""

from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from archimedes.backends.llvm.runtime.kernel import build
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.errors import GraphError
from archimedes.graph import CODES, F32, F64, Graph


def square() -> Graph:
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    g.outputs = [g.emit(CODES["add"], g.emit(CODES["mul"], x, x), y)]
    return g


def test_sources_and_figures():
    kernel = build(square(), [(2, F64)], [(1, F64)])
    assert "fmul double" in kernel.source("llvm")
    assert "arc_scalar" in kernel.source("asm")
    assert f"fmul <{kernel.lanes} x double>" in kernel.batch_source()
    assert "arc_batch" in kernel.batch_source(asm=True)
    before = kernel.figures()
    assert (before.operations, before.from_disk, before.lanes) == (2, False, kernel.lanes)
    assert before.code_bytes > 0 and before.compile_seconds > 0
    kernel.call_batch([np.ones((3, 2))], [True], [np.empty((3, 1))], 3)
    assert kernel.figures().code_bytes > before.code_bytes


def test_no_fast_math_anywhere():
    text = build(square(), [(2, F64)], [(1, F64)]).source("llvm")
    assert not any(word in text for word in ("fast", "contract", "reassoc", "nnan", "fmuladd"))


def test_leaves_must_fit_the_graph():
    with pytest.raises(GraphError, match="in_leaves describe 3 values, but the graph has 2"):
        build(square(), [(3, F64)], [(1, F64)])
    with pytest.raises(
        GraphError, match="out_leaves: value 0 is listed as f32, but the graph has f"
    ):
        build(square(), [(2, F64)], [(1, F32)])


def test_lanes_must_be_a_power_of_two():
    with pytest.raises(ValueError, match="lanes=3: it must be a power of two"):
        build(square(), [(2, F64)], [(1, F64)], lanes=3)
    kernel = build(square(), [(2, F64)], [(1, F64)], lanes=1)
    out = np.empty((3, 1))
    kernel.call_batch([np.arange(6.0).reshape(3, 2)], [True], [out], 3)
    assert out[:, 0].tolist() == [1.0, 7.0, 21.0]


def test_arrays_must_fit_the_leaves():
    kernel = build(square(), [(2, F64)], [(1, F64)])
    out = np.empty(1)
    with pytest.raises(ValueError, match="input array 0 must have 2 items, not 3"):
        kernel.call([np.zeros(3)], [out])
    with pytest.raises(ValueError, match="input array 0 must be C-contiguous float64, not float32"):
        kernel.call([np.zeros(2, np.float32)], [out])
    with pytest.raises(ValueError, match=r"C-contiguous float64.*use np\.ascontiguousarray"):
        kernel.call([np.zeros(4)[::2]], [out])
    with pytest.raises(ValueError, match="has 1 output arrays, 0 given"):
        kernel.call([np.zeros(2)], [])
    with pytest.raises(ValueError, match="batched has 2 flags for 1 input arrays"):
        kernel.call_batch([np.zeros((4, 2))], [True, True], [np.empty((4, 1))], 4)
    with pytest.raises(ValueError, match="output array 0 must have 4 items, not 3"):
        kernel.call_batch([np.zeros((4, 2))], [True], [np.empty((3, 1))], 4)


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux's /proc")
def test_kernels_are_freed_with_their_owner():
    g = square()

    def make(count: int) -> None:
        for _ in range(count):
            build(g, [(2, F64)], [(1, F64)]).call([np.ones(2)], [np.empty(1)])
        gc.collect()

    make(40)
    before = resident_bytes()
    make(150)
    assert resident_bytes() - before < 2_000_000


def test_constants_of_lanes_are_operands_in_memory():
    """With AVX arithmetic reads constants of all lanes where they are, and copies none."""
    target = host_target(None)
    if target.constants_in_lanes == 0:
        pytest.skip("a CPU whose instructions copy constants, or need no copies")
    g = Graph()
    (x,) = g.add_inputs(F64, 1).tolist()
    y = x
    for k in range(40):
        y = g.emit(CODES["mul"], y, g.const(1.1 + k))
        y = g.emit(CODES["add"], y, g.const(0.3 * k + 0.1))
    g.outputs = [y]
    kernel = build(g, [(1, F64)], [(1, F64)])
    assert "vbroadcastsd" not in kernel.batch_source(asm=True)
    values, out = np.linspace(-1.0, 1.0, 9), np.empty(9)
    kernel.call_batch([values], [True], [out], 9)
    one = np.empty(1)
    for k, value in enumerate(values):
        kernel.call([np.array([value])], [one])
        assert out[k] == one[0]
