"""Every op and dtype: interpreter, scalar kernel, lanes and threads give the same bits."""

from __future__ import annotations

import platform

import numpy as np
import pytest

from archimedes.graph import B8, CODES, F32, F64, I64, Graph

from ..programs.ops import OPS, READS_SIGN, ROWS, op_program
from ..programs.values import SPECIAL_FLOATS, samples
from .checking import check


@pytest.mark.parametrize(("name", "dtype"), OPS, ids=lambda x: str(x))
def test_op(name, dtype):
    made = op_program(name, dtype)
    check(made.graph, made.columns, note=name)


def test_every_op_is_lowered():
    from archimedes.backends.llvm.lowering.instructions import LOWERING

    assert set(LOWERING) == {op.name for op in ROWS if not op.elementary}


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_all_ops_in_one_program_at_every_width(lanes):
    g = Graph()
    ids = {d: [g.input(d) for _ in range(3)] for d in (F64, F32, I64, B8)}
    outputs = []
    for name, dtype in OPS:
        row = next(op for op in ROWS if op.name == name)
        if row.elementary or name in READS_SIGN:
            continue
        operands = list(ids[dtype][: row.arity])
        if name == "select":
            operands[0] = ids[B8][0]
        outputs.append(g.emit(row.code, *operands))
    g.outputs = outputs
    rng = np.random.default_rng(lanes)
    columns = [samples(d, 101, rng) for d in g.input_dtypes]
    check(g, columns, lanes=[lanes])


FEATURES = [
    "-avx512f,-avx512vl,-avx512bw,-avx512dq,-avx512cd",
    "-avx,-avx2,-avx512f,-fma",
    "-sse3,-ssse3,-sse4.1,-sse4.2,-avx,-avx2,-avx512f,-fma",
]


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="features of x86-64")
@pytest.mark.parametrize("features", FEATURES)
def test_lesser_cpus_give_the_same_bits(features):
    g = Graph()
    x, y = g.input(F64), g.input(F64)
    single = g.emit(CODES["f32"], x)
    names = ("floor", "ceil", "trunc", "rint")
    g.outputs = [
        *(g.emit(CODES[name], i) for name in names for i in (x, single)),
        g.emit(CODES["sin"], x),
        g.emit(CODES["pow"], x, y),
        g.emit(CODES["max"], x, y),
        g.emit(CODES["truncate"], x),
        g.emit(CODES["add"], g.emit(CODES["mul"], x, y), x),
    ]
    rng = np.random.default_rng(0)
    columns = [np.concatenate([SPECIAL_FLOATS, samples(F64, 70, rng)]) for _ in range(2)]
    kernel = check(g, columns, target_features=features)
    assert kernel.lanes == (4 if "-avx," not in features else 2)
    assert "fma" not in kernel.source("asm")


def test_features_are_checked():
    from archimedes.backends.llvm.runtime.machine import host_target

    with pytest.raises(ValueError, match="write features as '\\+name' or '-name'"):
        host_target("avx2")
