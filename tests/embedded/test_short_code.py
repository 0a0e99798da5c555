"""Loops in generated C: short and quick, the same bits; the 15-state filter of the benchmarks."""

from __future__ import annotations

import re

import numpy as np
import pytest
from benchmarks.c_code import flash_bytes, our_code
from benchmarks.c_code_cases import Case
from benchmarks.c_filter import example, filter_step

import archimedes as arc
from archimedes.embedded import CodegenError, codegen, report, resource_report, run_in_qemu
from archimedes.embedded.boards import BOARDS

from .toolchain import needs

M4 = needs(*BOARDS["cortex-m4"].programs)
HOST = needs("gcc")


@pytest.mark.long_cases("speed")
@HOST
@pytest.mark.parametrize("optimize", ["size", "speed", "smallest"])
def test_filter_has_the_bits_of_python(optimize):
    project = codegen(filter_step, example(), optimize=optimize, verify=True)
    text = project.files["filter_step.c"]
    assert text.count("\n") < 1500, "loops, not one line for each product"


@pytest.mark.long
@M4
def test_filter_is_short_and_quick_on_the_board():
    """At least 4 times shorter than written out, and no slower than 1.2 times, the same bits."""
    args = tuple(np.asarray(a, dtype=np.float32) for a in example())
    written = arc.compile(filter_step, loops_from=10**6)
    found = {}
    for name, function in (("loops", filter_step), ("written", written)):
        project = codegen(
            function, example(), float_type=np.float32, optimize="speed", name="filter_step"
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


@M4
def test_arithmetic_in_tables_is_shortest_without_double_hardware():
    """In double 4 times smaller than CasADi's shortest (22,896 bytes), as quick as its fastest."""
    code = our_code(Case(filter_step, example(), {}, 0), optimize="smallest")
    assert 4 * flash_bytes(code, "cortex-m4", "-Os") < 22896
    project = codegen(filter_step, example(), optimize="smallest", name="filter_step")
    run = run_in_qemu(project, [example()], board="cortex-m4", optimize="-Os")
    assert max(run.instructions) < 530_000
    for ours, other in zip(arc.tree.leaves(run.outputs[0]), filter_step(*example())):
        np.testing.assert_allclose(ours, other, rtol=1e-9, atol=1e-9)


def straight(x):
    """More values than a table has places for, in-place sums, signs, and what is read twice."""
    a, b, c = x[0], x[1], x[2]
    kept = []
    for k in range(90):
        a, b, c = a * b - c / (b * b + 1.1), c * a + b, -(a * c) + 0.5 * b
        a, b, c = a / (1.0 + a * a), b / (1.0 + b * b), c / (1.0 + c * c)
        kept += [a + float(k), b - a * c, c * c]
    return np.array(kept), a * b


def repeated(A, x):
    def step(y, k):
        z = np.array([y[k % 3] * y[1] - x[1], y[0] + x[0] * y[2], y[1] / (1.0 + y[2] * y[2])])
        return z * A[0, 0], np.sum(A * z[0])

    return arc.scan(step, x, np.arange(5))


@HOST
@pytest.mark.parametrize("function", [straight, repeated], ids=lambda f: f.__name__)
@pytest.mark.parametrize("scratch", ["stack", "workspace"])
def test_tables_of_arithmetic_have_the_same_bits(function, scratch):
    x, A = np.array([0.3, -1.2, 0.7]), np.arange(16.0).reshape(4, 4) / 7.0
    args = (x,) if function is straight else (A, x)
    options = {"scratch": scratch}
    made = codegen(function, args, optimize="smallest", options=options, verify=True)
    assert "arc_steps(" in made.files[f"{function.__name__}.c"]


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


def kernel_of(text, name):
    """Return the functions that are written for a model, without helpers and defaults."""
    start = text.index(f"static void {name}_kernel")
    return text[start : text.index("/* Values that the inputs have")]


@HOST
def test_loops_that_differ_in_their_blocks_are_one_function():
    def step(A, P, Q, b):
        F = np.eye(15)
        F[0, 3:6], F[7, 2], F[1, 9:] = b[:3], b[3], b[4:10]
        return F @ P @ F.T + Q, F @ A @ F.T

    args = (np.ones((15, 15)), np.eye(15), np.eye(15), np.arange(10.0))
    short = codegen(step, args, optimize="size", verify=True)
    text = kernel_of(short.files["step.c"], "step")
    assert text.count("static void step_kernel_call1(") == 1
    assert text.count("    step_kernel_call1(") == 4, "F P, (F P) F', F A, (F A) F'"
    quick = kernel_of(codegen(step, args).files["step.c"], "step")
    assert "step_kernel_call" not in quick and len(text) < 0.5 * len(quick)


def test_numbers_go_into_the_blocks_that_functions_read():
    """Written there as they are computed, without a name, and once for all calls."""

    def step(A, P, x):
        F = np.eye(15)
        F[0, 3:13] = np.sin(x)
        return F @ A @ F.T, F @ P @ F.T

    args = np.eye(15), np.eye(15), np.arange(10.0)
    text = codegen(step, args, optimize="size").files["step.c"]
    assert len(re.findall(r"\n    s\d+\[\d+\] = arc_sin\(x\[\d\]\);", text)) == 10


@HOST
def test_products_of_a_few_dozen_factors_are_loops_for_size():
    def step(K, y, x):
        S = K[:6] + 3.0 * np.eye(6)
        return x + np.linalg.solve(S, K.T).T @ (y - x[:6])

    rng = np.random.default_rng(4)
    args = rng.normal(size=(15, 6)), rng.normal(size=6), rng.normal(size=15)
    text = kernel_of(codegen(step, args, optimize="size", verify=True).files["step.c"], "step")
    assert text.count(" * ") < 60, "15 x 6 products are not written out"


@HOST
@pytest.mark.parametrize(("shape", "most"), [((10, 10), 30), ((30, 30), 30), ((33, 100), 30)])
def test_products_with_constant_matrices_are_loops_by_default(shape, most):
    A = np.random.default_rng(5).normal(size=shape)

    def product(x):
        return A @ x

    x = np.random.default_rng(6).normal(size=shape[1])
    project = codegen(product, (x,), verify=True)
    assert kernel_of(project.files["product.c"], "product").count(" * ") < most
    library = project.load()
    library.inputs["x"][...] = x
    library.step()
    (result,) = library.outputs.views
    assert np.array_equal(result, arc.compile(product, backend="llvm")(x)), "the bits of Python"


@HOST
def test_small_systems_with_many_columns_are_a_call_for_size():
    """Four measurements of 20 states: 4 x 4 equations with 20 right-hand sides."""

    def gain(P, H, R):
        return np.linalg.solve(H @ P @ H.T + R, H @ P).T

    rng = np.random.default_rng(6)
    args = np.eye(20) + 0.1, rng.normal(size=(4, 20)), np.eye(4)
    short = kernel_of(codegen(gain, args, optimize="size", verify=True).files["gain.c"], "gain")
    long = kernel_of(codegen(gain, args).files["gain.c"], "gain")
    assert "arc_solve(" in short and "arc_solve(" not in long
    assert 5 * len(short) < len(long)


@HOST
def test_huge_angles_have_the_bits_of_python():
    """The loop over digits of 2/pi in C against the graph's program, near multiples of pi too."""

    def turns(x):
        return np.sin(x), np.cos(x), np.tan(x)

    rng = np.random.default_rng(5)
    x = np.ldexp(rng.uniform(1.0, 2.0, size=200), rng.integers(16, 1024, size=200))
    x *= rng.choice([-1.0, 1.0], size=x.size)
    x[:6] = 102900.0, -102900.0, 1.7976931348623157e308, 6381956970095103 * 2.0**797, np.inf, np.nan
    codegen(turns, (x,), options={"nonfinite": True}, verify=True)


def test_lines_of_loops_are_traced():
    def gains(P):
        Q = np.sin(P) @ P
        return np.sum(Q * Q, axis=0)

    project = codegen(gains, (np.ones((9, 9)),), options={"traceability": True})
    table = resource_report.traceability_table(project)
    assert {"Q = np.sin(P) @ P", "return np.sum(Q * Q, axis=0)"} <= {t.text for t in table}


def test_blocks_are_made_where_they_are_wanted():
    def f(x):
        return np.concatenate([np.sin(x), x * x, x + 1.0])

    text = codegen(f, (np.ones(100),)).files["f.c"]
    kernel = text[text.index("static void f_kernel") : text.index("void f_init")]
    assert "double s1[" not in kernel, "results go to the caller's array at once"


def test_unknown_aims_are_named():
    with pytest.raises(
        CodegenError, match="optimize='-O3' is not one of 'speed', 'size', 'smallest'"
    ):
        codegen(lambda x: x, (1.0,), name="f", optimize="-O3")
