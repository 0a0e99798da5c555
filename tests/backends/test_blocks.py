"""Random programs with blocks: every backend, bit for bit; memory, and passes over graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from archimedes.backends.interpreter import run
from archimedes.backends.llvm.lowering.entries import Source, scalar_program
from archimedes.backends.llvm.runtime.kernel import NativeKernel, build
from archimedes.backends.llvm.runtime.machine import host_target
from archimedes.backends.protocol import ArrayType
from archimedes.backends.protocol import Program as KernelProgram
from archimedes.backends.registry import get_backend
from archimedes.graph import F64, Graph
from archimedes.graph.dead_code import remove_dead_code
from archimedes.graph.dtypes import block_type
from archimedes.graph.expand import expand
from archimedes.graph.fast import fast
from archimedes.graph.passes import prune
from archimedes.graph.regions import Affine, Nest
from archimedes.graph.retype import retype
from tests.graph.spec import validate

from ..c.checking import Bundle, needs
from ..llvm.checking import check, check_shared
from ..long_parameters import long_but
from ..programs.program import Program, emit, graph_of
from ..programs.random_blocks import random_blocks
from ..programs.values import assert_bits, leaves_of, packed, reference, samples
from .toy import build as build_toy

SEEDS = long_but(range(3), range(24))


def case(seed: int, whole: bool = True, count: int = 4) -> Program:
    g = random_blocks(seed, whole=whole)
    rng = np.random.default_rng(seed)
    return Program(f"blocks_{seed}", g, [samples(d, count, rng) for d in g.input_dtypes])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("whole", [True, False])
def test_native(seed: int, whole: bool):
    """One instance, batches of them, in lanes of any width: with blocks outside, or scalars."""
    made = case(seed, whole)
    validate(made.graph)
    lanes = (1, 4) if whole else (2, 8)
    kernel = check(made.graph, made.columns, lanes=lanes, scalars=2, note=f"seed {seed}")
    check_shared(kernel, made.graph, made.columns, seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_native_in_parts(seed: int):
    made = case(seed, seed % 2 == 0, 2)
    check(made.graph, made.columns, lanes=(4,), part=5, scalars=2, note=f"seed {seed}")


@pytest.mark.parametrize("part", [1000, 6])
@pytest.mark.parametrize("seed", SEEDS)
def test_toy(seed: int, part: int):
    made = case(seed, count=1)
    row = [x[0] for x in made.columns]
    for got, want in zip(build_toy(made.graph, part)(*row), run(made.graph, row)):
        want = np.asarray(want)
        assert_bits(np.asarray(got, want.dtype), want, f"seed {seed}")


@pytest.mark.parametrize("scratch", ["stack", "workspace"])
@pytest.mark.parametrize("part", long_but([2000], [2000, 6]))
@pytest.mark.parametrize("float_type", long_but(["double"], ["double", "float"]))
def test_c(float_type: str, part: int, scratch: str, tmp_path: Path):
    needs("gcc")
    cases = [case(seed, count=2) for seed in range(12)]
    Bundle(cases, float_type, part=part, scratch=scratch).check(tmp_path, "gcc", "-O1")


@pytest.mark.parametrize("seed", SEEDS)
def test_passes_keep_blocks(seed: int):
    made = case(seed, count=1)
    row = [x[0] for x in made.columns]
    want = run(made.graph, row)
    for changed in (expand(made.graph), prune(made.graph), remove_dead_code(made.graph).graph):
        validate(changed)
        for got, wanted in zip(run(changed, row), want):
            assert_bits(np.asarray(got), np.asarray(wanted), f"seed {seed}")
    for other in (fast(made.graph), retype(made.graph)):
        validate(other)
    quick = fast(made.graph)
    check(quick, [x[:1] for x in made.columns], note=f"fast, seed {seed}")


@pytest.mark.parametrize("seed", SEEDS)
def test_interpreter_as_a_backend(seed: int):
    """Arrays in, arrays out; a batch one instance at a time."""
    made = case(seed)
    g = made.graph
    ins, outs = leaves_of(g.input_dtypes), leaves_of(g.output_dtypes)
    types = [tuple(ArrayType(d, (n,)) for n, d in leaves) for leaves in (ins, outs)]
    kernel = get_backend("interpreter").build(KernelProgram(g, *types))
    wanted = packed(reference(g, made.columns, made.count), outs)
    results = [np.zeros_like(x) for x in wanted]
    kernel.call_batch(packed(made.columns, ins), [True] * len(ins), results, made.count)
    for got, want in zip(results, wanted):
        assert_bits(got, want, f"seed {seed}")


# ---- memory --------------------------------------------------------------------------------------


def chain(length: int, steps: int) -> Graph:
    """A block that is computed from the one before, many times."""
    body = graph_of([F64], lambda g, x: emit(g, "mul", emit(g, "add", x, g.const(1.0)), x))

    def build_chain(g, x):
        for _ in range(steps):
            (x,) = g.region(Nest([x], body, (length,), (Affine(0, (1,)),), 1)).tolist()
        return x

    return graph_of([block_type(F64, length)], build_chain)


def native(g: Graph) -> NativeKernel:
    return build(g, leaves_of(g.input_dtypes), leaves_of(g.output_dtypes))


def test_arrays_are_used_again():
    """Ten steps need two arrays: the one read and the one written; the last is the caller's."""
    g, n = chain(1000, 10), 1000
    leaves = native(g).inputs
    made = scalar_program(Source(g, leaves, leaves, host_target()))
    assert made.frame <= 2 * 8 * n + 256


def test_results_go_where_they_are_wanted():
    g = chain(1000, 1)
    leaves = native(g).inputs
    assert scalar_program(Source(g, leaves, leaves, host_target())).frame <= 256


def test_code_does_not_grow_with_the_data():
    sizes = [len(native(chain(n, 3)).source("llvm")) for n in (10_000, 100_000)]
    assert abs(sizes[0] - sizes[1]) < 200
