"""The text of kernels."""

from __future__ import annotations

import re

from archimedes.backends.cuda.cuda_c import device_helpers
from archimedes.backends.cuda.kernel_text import (
    assemble_file,
    inline_single_calls,
    kernel_text,
    layout,
)
from archimedes.backends.interpreter import run as interpreted
from archimedes.backends.protocol import ArrayType, Program
from archimedes.graph import CODES, F64, Call, Graph

from ..programs.catalogue import programs
from .cases import Case


def scaled(row: int) -> Program:
    g = Graph()
    x, a = [g.input(F64) for _ in range(row)], g.input(F64)
    g.outputs = [g.emit(CODES["mul"], i, a) for i in x]
    return Program(g, (ArrayType(F64, (row,)), ArrayType(F64, ())), (ArrayType(F64, (row,)),))


def test_a_kernel():
    """A row per instance through shared memory, a shared number where it is."""
    program = scaled(2)
    text = kernel_text(program, layout(program, [True, False])).text
    assert (
        text
        == """\
__device__ static __forceinline__ void archimedes_kernel_instance(const double *__restrict__ in0, \
const double *__restrict__ in1, double *__restrict__ out0)
{
    out0[0] = in0[0] * in1[0];
    out0[1] = in0[1] * in1[0];
}

extern "C" __global__ void __launch_bounds__(128) archimedes_kernel(\
const double *__restrict__ in0, const double *__restrict__ in1, double *__restrict__ out0, \
uint64_t count)
{
    extern __shared__ __align__(16) unsigned char arc_shared[];
    const uint64_t first = (uint64_t)blockIdx.x * 128;
    const unsigned n = count - first < 128 ? (unsigned)(count - first) : 128;
    double *const tile_in0 = (double *)(arc_shared + 0);
    double *const tile_out0 = (double *)(arc_shared + 3072);
    arc_fetch<double, 2, 3, 128>(tile_in0, in0 + first * 2, n);
    arc_arrived();
    if (threadIdx.x < n) {
        archimedes_kernel_instance(tile_in0 + threadIdx.x * 3, in1, tile_out0 + threadIdx.x * 3);
    }
    __syncthreads();
    arc_put<double, 2, 3, 128>(out0 + first * 2, tile_out0, n);
}
"""
    )


def test_nothing_of_a_host_or_a_library():
    """All functions and tables are the device's; there are no headers and no calls of libc."""
    text = assemble_file([Case(made).kernel() for made in programs()])
    whole = text + "\n".join(device_helpers().values())
    assert "#include" not in whole and "__builtin_inf" not in whole
    assert not re.search(r"^(?!__device__).*\bstatic\b", whole, re.MULTILINE)
    assert not re.search(r"\b(malloc|memcpy|memset|printf)\b", whole)


def test_the_same_text_every_time():
    program = scaled(5)
    plan = layout(program, [True, True])
    assert kernel_text(program, plan) == kernel_text(program, plan)


def test_calls_of_long_programs_are_inlined():
    """Functions that are called once; what is called twice stays a function."""

    def calling(times: int) -> Graph:
        body, g = Graph(), Graph()
        a, b = body.input(F64), body.input(F64)
        body.outputs = [body.emit(CODES["mul"], a, b), body.emit(CODES["add"], a, b)]
        x, y = g.input(F64), g.input(F64)
        for _ in range(times):
            x, y = (int(i) for i in g.region(Call([x, y], body)))
        g.outputs = [g.emit(CODES["sub"], x, y)]
        return g

    once = inline_single_calls(calling(1), 2)
    assert not once.regions and len(once.live()) == 5
    assert interpreted(once, [3.0, 4.0]) == interpreted(calling(1), [3.0, 4.0]) == [5.0]
    assert inline_single_calls(calling(2), 2).regions
    assert inline_single_calls(calling(1), 100).regions, "short ones stay as they are"
