"""Loops in generated C: short and quick, the same bits; the 15-state filter of the benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.c_filter import example, filter_step

import archimedes as arc
from archimedes.embedded import CodegenError, codegen, report, run_in_qemu
from archimedes.embedded.boards import BOARDS

from .toolchain import needs

M4 = needs(*BOARDS["cortex-m4"].programs)
HOST = needs("gcc")


@HOST
@pytest.mark.parametrize("optimize", ["size", "speed"])
def test_filter_has_the_bits_of_python(optimize):
    project = codegen(filter_step, example(), optimize=optimize, verify=True)
    text = project.files["filter_step.c"]
    assert text.count("\n") < 1500, "loops, not one line for each product"


@M4
def test_filter_is_short_and_quick_on_the_board():
    """At least 4 times shorter than written out, and no slower than 1.2 times, the same bits."""
    args = tuple(np.asarray(a, dtype=np.float32) for a in example())
    written = arc.compile(filter_step, loops_from=10**6)
    found = {}
    for name, function in (("loops", filter_step), ("written", written)):
        project = codegen(
            function, example(), float_type=np.float32, optimize="size", name="filter_step"
        )
        figures = report(project, optimize="size")
        run = run_in_qemu(project, [args], board="cortex-m4", optimize="-Os")
        found[name] = figures.code + figures.constants, run
    size, run = found["loops"]
    long, slow = found["written"]
    assert 4 * size < long
    assert max(run.instructions) < 1.2 * max(slow.instructions)
    for ours, other in zip(*(arc.tree.leaves(r.outputs) for r in (run, slow))):
        np.testing.assert_array_equal(ours, other)


def sparse_products(A, x, P):
    F = np.eye(20)
    F[0, 3:6], F[7, 2], F[19, 0] = x[:3], x[3], -1.0
    return F @ P @ F.T + A, np.eye(20)[:5] @ P, F.T @ A


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_sparse_products_as_loops(backend):
    rng = np.random.default_rng(3)
    args = rng.normal(size=(20, 20)), rng.normal(size=5), rng.normal(size=(20, 20))
    f = arc.compile(sparse_products, loops_from=16, backend=backend)
    written = arc.compile(sparse_products, loops_from=10**6, backend="interpreter")
    for mine, other, plain in zip(f(*args), written(*args), sparse_products(*args)):
        assert mine.tobytes() == other.tobytes()
        np.testing.assert_allclose(mine, plain, rtol=1e-12, atol=1e-13)
    assert len(f.graph(*args).op) < 3000
    slope, long = (arc.jac(g, argnums=1)(*args)[0] for g in (f, written))
    np.testing.assert_allclose(slope, long, rtol=1e-12, atol=1e-13)


def test_lines_of_loops_are_traced():
    def gains(P):
        Q = np.sin(P) @ P
        return np.sum(Q * Q, axis=0)

    project = codegen(gains, (np.ones((9, 9)),), options={"traceability": True})
    table = arc.embedded.traceability.traceability_table(project)
    assert {"Q = np.sin(P) @ P", "return np.sum(Q * Q, axis=0)"} <= {t.text for t in table}


def test_blocks_are_made_where_they_are_wanted():
    def f(x):
        return np.concatenate([np.sin(x), x * x, x + 1.0])

    text = codegen(f, (np.ones(100),)).files["f.c"]
    kernel = text[text.index("static void f_kernel") : text.index("void f_init")]
    assert "double s1[" not in kernel, "results go to the caller's array at once"


def test_unknown_aims_are_named():
    with pytest.raises(CodegenError, match="optimize='-O3' is not one of 'speed', 'size'"):
        codegen(lambda x: x, (1.0,), name="f", optimize="-O3")
