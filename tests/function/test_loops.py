"""scan, while_loop, fori_loop, switch, cond: recorded equal to run plainly, and to Python loops."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import CodegenError, TraceError
from tests.graph.spec import validate

X = np.array([0.5, -1.0, 2.0])


@arc.struct
class S:
    a: np.ndarray
    n: int


def check(program, *args):
    """Plain and recorded agree, the graph is valid; returns the recorded result."""
    f = arc.compile(program)
    plain, recorded = program(*args), f(*args)
    validate(f.graph(*args))
    left, right = arc.tree.flatten(plain), arc.tree.flatten(recorded)
    assert left[1] == right[1]
    for a, b in zip(left[0], right[0]):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(b, a, rtol=1e-15)
    return recorded


# ---- scan --------------------------------------------------------------------------------------


def test_scan_carries_and_stacks_trees():
    def step(c, x):
        new = S(c.a * x["u"] + 1.0, c.n + 1)
        return new, {"out": c.a[0], "pair": (x["v"], None)}

    def program(a, u, v):
        return arc.scan(step, S(a, 0), {"u": u, "v": v})

    u, v = np.arange(1.0, 5.0), np.arange(12.0).reshape(4, 3)
    carry, ys = check(program, X, u, v)
    want, outs = X, []
    for k in range(4):
        outs.append(want[0])
        want = want * u[k] + 1.0
    np.testing.assert_array_equal(carry.a, want)
    assert carry.n == 4
    np.testing.assert_array_equal(ys["out"], outs)
    np.testing.assert_array_equal(ys["pair"][0], v)
    assert ys["pair"][1] is None


@pytest.mark.parametrize("length", [0, 1, 2])
def test_scan_lengths(length):
    program = lambda c, xs: arc.scan(lambda c, x: (c + x, (c * x, x)), c, xs)
    xs = np.arange(1.0, length + 1.0)
    carry, (ys, zs) = check(program, 2.0, xs)
    assert carry == 2.0 + xs.sum()
    assert ys.shape == zs.shape == (length,)
    for d in (arc.jac(program), arc.jac(program, argnums=1)):
        validate(d.graph(2.0, xs))
    assert arc.jac(program)(2.0, xs)[0] == 1.0
    np.testing.assert_array_equal(arc.jac(program, argnums=1)(2.0, xs)[0], np.ones(length))
    assert arc.grad(lambda c: program(c, xs)[0])(2.0) == 1.0


def test_scan_without_xs_and_without_ys():
    carry, ys = check(lambda c: arc.scan(lambda c, _: (c * 2, None), c, length=5), 1.0)
    assert carry == 32.0 and ys is None
    carry, ys = check(lambda c: arc.scan(lambda c, _: (c * 2, c), c, length=0), 1.0)
    assert carry == 1.0 and ys.shape == (0,)
    assert arc.scan(lambda c, x: (c, None), 1.0, np.zeros((3, 0)))[0] == 1.0


def test_scan_over_rows_of_matrices_and_empty_rows():
    a = np.arange(24.0).reshape(4, 3, 2)
    carry, ys = check(lambda a: arc.scan(lambda c, m: (c + m.sum(), m.T @ m), 0.0, a), a)
    assert carry == a.sum() and ys.shape == (4, 2, 2)
    check(lambda a: arc.scan(lambda c, m: (c, m * 2), 0.0, a), np.zeros((3, 0)))


def test_scan_size_does_not_grow_with_its_length():
    f = arc.compile(lambda x, xs: arc.scan(lambda c, s: (np.sin(c) * s, None), x, xs)[0])
    assert f.statistics(1.0, np.ones(3)).nodes == f.statistics(1.0, np.ones(300)).nodes == 1


def test_carry_dtypes_are_widened():
    def program(xs):
        return arc.scan(lambda c, x: ((c[0] + x, c[1] + 1, c[2] & (x > 0)), c[1]), (0, 0, True), xs)

    f = arc.compile(program)
    (total, count, flag), ys = f(X)
    assert total == X.sum() and total.dtype == np.float64
    assert count == 3 and count.dtype == np.int64
    assert flag.dtype == np.bool_ and not flag
    assert ys.dtype == np.int64
    total = arc.compile(lambda xs: arc.scan(lambda c, x: (c + x, None), np.int64(0), xs)[0])(X)
    assert total == X.sum()


def test_python_numbers_do_not_widen_loops_and_branches():
    single = np.float32([1, 2, 3])
    programs = [
        lambda x: arc.scan(lambda c, s: (c + s, c * s), 0.0, x),
        lambda x: arc.while_loop(lambda s: np.sum(s) < 50, lambda s: s * x, 2.0 * x),
        lambda x: arc.while_loop(lambda s: s < 50, lambda s: s + x[0], 0),
        lambda x: arc.cond(x[0] > 0, lambda k: k * x, lambda k: x - k, 2.0),
        lambda x: arc.fori_loop(0, 3, lambda i, s: s + i * x[0], 0.0),
    ]
    for program in programs:
        plain, recorded = program(single), arc.compile(program)(single)
        for a, b in zip(arc.tree.leaves(plain), arc.tree.leaves(recorded)):
            assert a.dtype == b.dtype == np.float32
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_closures_in_loops():
    def program(x, k):
        y = np.sin(x)
        return arc.scan(lambda c, s: (c * k + s @ y, c - k), k, np.stack([x, y]))

    check(program, X, 2.0)
    f = lambda k: program(X, k)[0]
    got = arc.grad(f)(2.0)
    y = np.sin(X)
    np.testing.assert_allclose(got, 3 * 2.0**2 + X @ y)  # k -> k^3 + (X.y) k + y.y


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arc.scan(lambda c, x: (c, x), 0.0, 1.0), "every leaf of xs needs a leading axis"),
        (
            lambda: arc.scan(lambda c, x: (c, x), 0.0, (np.ones(2), np.ones(3))),
            r"different lengths \[2, 3\]",
        ),
        (lambda: arc.scan(lambda c, x: (c, x), 0.0), "give xs or length"),
        (
            lambda: arc.scan(lambda c, x: (c, x), 0.0, np.ones(2), length=3),
            "length=3, but xs has 2",
        ),
        (
            lambda: arc.scan(lambda c, x: (c, x), 0.0, length=-1),
            "length must be a whole number of at least 0, got -1",
        ),
    ],
)
def test_scan_misuse(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    with pytest.raises(ValueError, match=message):
        arc.compile(lambda y: call())(1.0)


RECORDED_MISUSE = {
    "no pair": (
        lambda x: arc.scan(lambda c, s: c, x[0], x),
        r"scan: the function must return a pair \(carry, y\).*return carry, None",
    ),
    "structure": (
        lambda x: arc.scan(lambda c, s: ((c, c), s), x[0], x),
        "scan: the function must return a carry of the structure it was given; at carry",
    ),
    "shape": (
        lambda x: arc.scan(lambda c, s: (x, s), x[0], x),
        r"scan: carry has shape \(\) on entry and \(3,\) after a step",
    ),
    "shape of a leaf": (
        lambda x: arc.scan(lambda c, s: ({"p": c["p"], "q": x[:1]}, s), {"p": 0.0, "q": x}, x),
        r"scan: carry\['q'\] has shape \(3,\) on entry and \(1,\)",
    ),
    "text": (
        lambda x: arc.scan(lambda c, s: (c, s), {"name": "a"}, x),
        r"init_carry\['name'\] is a str: loops and branches carry numbers",
    ),
    "text out": (
        lambda x: arc.scan(lambda c, s: (c, "y"), 0.0, x),
        r"result\[1\] is a str: bodies of loops and branches return numbers",
    ),
    "while structure": (
        lambda x: arc.while_loop(lambda s: s[0] < 1, lambda s: (s, s), x),
        "while_loop: the function must return a carry of the structure",
    ),
    "while shape": (
        lambda x: arc.while_loop(lambda s: s[0] < 1, lambda s: s[:2], x),
        r"while_loop: carry has shape \(3,\) on entry and \(2,\)",
    ),
    "while condition": (
        lambda x: arc.while_loop(lambda s: s < 1, lambda s: s * 2, x),
        "while_loop: the condition must return one bool",
    ),
    "branches structure": (
        lambda x: arc.cond(x[0] > 0, lambda: (x, x), lambda: x),
        "switch: branches 0 and 1 return different structures: at result",
    ),
    "branches shape": (
        lambda x: arc.switch((x[0] > 0).astype(int), [lambda: x, lambda: x[:2]]),
        r"switch: result has shape \(3,\) in branch 0 and \(2,\) in branch 1.*broadcast_to",
    ),
    "branch text": (
        lambda x: arc.cond(x[0] > 0, lambda: "a", lambda: "b"),
        "result is a str: bodies of loops and branches return numbers",
    ),
    "argument text": (
        lambda x: arc.cond(x[0] > 0, lambda s: 1.0, lambda s: 2.0, "a"),
        r"args\[0\] is a str: loops and branches carry numbers",
    ),
}


@pytest.mark.parametrize("name", RECORDED_MISUSE)
def test_recorded_misuse(name):
    program, message = RECORDED_MISUSE[name]
    with pytest.raises(arc.TraceError, match=message):
        arc.compile(program)(X)


def test_plain_scan_checks_the_pair_too():
    with pytest.raises(arc.TraceError, match="must return a pair"):
        arc.scan(lambda c, x: c + x, 0.0, X)


# ---- while, fori -------------------------------------------------------------------------------


def test_while():
    program = lambda x, limit: arc.while_loop(
        lambda s: s["x"] < limit, lambda s: {"x": s["x"] * 2, "n": s["n"] + 1}, {"x": x, "n": 0}
    )
    got = check(program, 3.0, 100.0)
    assert got["x"] == 192.0 and got["n"] == 6
    assert check(program, 300.0, 100.0)["n"] == 0


@pytest.mark.parametrize("limit", [0, 1, 5, 7, 1000])
def test_while_stops_at_its_bound(limit):
    program = lambda x: arc.while_loop(lambda s: s < 100.0, lambda s: s * 2, x, max_steps=limit)
    want = min(3.0 * 2.0**limit, 192.0)
    assert check(program, 3.0) == want
    for d in (arc.grad(program), arc.jac(program)):
        validate(d.graph(3.0))
        assert d(3.0) == want / 3.0


def test_while_closures_and_widening():
    program = lambda x, k: arc.while_loop(lambda s: s < k, lambda s: s + x, 0, max_steps=9)
    assert check(program, 0.5, 3.2) == 3.5
    assert arc.grad(program)(0.5, 3.2) == 7.0


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_while_without_a_bound_runs_to_its_end(backend):
    program = lambda x: arc.while_loop(lambda s: s < 5000.0, lambda s: s + x, 0.0)
    assert program(1.0) == 5000.0
    assert arc.compile(program, backend=backend)(1.0) == 5000.0
    assert arc.jvp(program)(1.0, 1.0) == 5000.0
    many = arc.vmap(arc.compile(program, backend=backend))(np.array([1.0, 0.5]))
    assert many.tolist() == [5000.0, 5000.0]


def test_a_gradient_asks_for_the_bound():
    program = lambda x: arc.while_loop(lambda s: s < 5.0, lambda s: s + x, 0.0)
    with pytest.raises(TraceError, match=r"while_loop\(\.\.\., max_steps=\.\.\.\)") as error:
        arc.grad(program)(1.0)
    assert "test_loops.py" in str(error.value)
    with pytest.raises(CodegenError, match="a while_loop without max_steps"):
        arc.codegen(program, (1.0,))


def test_while_misuse():
    with pytest.raises(ValueError, match="max_steps must be a whole number of at least 0, got -1"):
        arc.while_loop(lambda s: s, lambda s: s, 1.0, max_steps=-1)


def test_fori():
    program = lambda x: arc.fori_loop(2, 6, lambda i, s: s * x + i, x)
    assert check(program, 2.0) == ((((2 * 2.0 + 2) * 2 + 3) * 2 + 4) * 2) + 5
    assert check(lambda x: arc.fori_loop(5, 5, lambda i, s: s * 2, x), 3.0) == 3.0
    assert check(lambda x: arc.fori_loop(5, 1, lambda i, s: s * 2, x), 3.0) == 3.0
    table = np.arange(10.0) ** 2
    got = check(lambda x: arc.fori_loop(0, 4, lambda i, s: s + arc.array(table)[i] * x, 0.0), 2.0)
    assert got == 2.0 * (0 + 1 + 4 + 9)


def test_fori_with_a_traced_bound_suggests_a_while_loop():
    for program in (
        lambda n: arc.fori_loop(0, n, lambda i, s: s + 1.0, 0.0),
        lambda n: arc.fori_loop(n, 9, lambda i, s: s + 1.0, 0.0),
    ):
        with pytest.raises(TraceError, match=r"arc.while_loop\(lambda c: c\[0\] < upper") as error:
            arc.compile(program)(3)
        assert "test_loops.py" in str(error.value)
        assert arc.compile(program, static_argnames="n")(3) in (3.0, 6.0)
    # What the message says to write.
    count = arc.compile(
        lambda n: arc.while_loop(
            lambda c: c[0] < n, lambda c: (c[0] + 1, (lambda i, s: s + i)(*c)), (0, 0.0)
        )[1]
    )
    assert count(5) == 10.0


def test_the_steps_of_fori_cost_nothing_but_time():
    # 2 million steps took 489 MB to record, 1e12 more than there is.
    for steps in (10**6, 10**12):
        program = arc.compile(
            lambda x, steps=steps: arc.fori_loop(0, steps, lambda i, s: s * 0.5 + i, x)
        )
        tracemalloc.start()
        text = program.source("llvm", 1.0)
        slopes = arc.jvp(program).source("llvm", 1.0, 1.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20e6
        assert len(text) + len(slopes) < 20_000


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_derivatives_of_long_loops(backend):
    steps = 5000
    program = lambda x: arc.fori_loop(0, steps, lambda i, s: s * 0.999 + x * i, x)
    slope = 0.999**steps + sum(i * 0.999 ** (steps - 1 - i) for i in range(steps))
    for derivative in (arc.grad, arc.jac):
        found = arc.compile(derivative(program), backend=backend)(2.0)
        assert float(found) == pytest.approx(slope, rel=1e-12)


def test_the_counter_of_fori_does_not_widen():
    x = np.float32([1, 2])
    program = lambda x: arc.fori_loop(0, 3, lambda i, s: s + i, x)
    assert program(x).dtype == np.float32
    assert arc.compile(program)(x).dtype == np.float32


# ---- branches ----------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 7])
def test_switch(index):
    branches = [lambda x, k: x * k, lambda x, k: np.sin(x), lambda x, k: x - k]
    program = lambda i, x: arc.switch(i, branches, x, 2.0)
    got = check(program, index, X)
    np.testing.assert_allclose(got, branches[min(max(index, 0), 2)](X, 2.0), rtol=1e-15)
    j = arc.jac(program, argnums=1)
    validate(j.graph(index, X))
    want = [2.0 * np.ones(3), np.cos(X), np.ones(3)][min(max(index, 0), 2)]
    np.testing.assert_allclose(j(index, X), np.diag(want), rtol=1e-15)


def test_switch_promotes_dtypes_and_takes_trees():
    program = lambda i, x: arc.switch(
        i, [lambda: {"a": 1, "b": x}, lambda: {"a": x[0], "b": np.float32(2) * x}]
    )
    f = arc.compile(program)
    assert f(0, X)["a"].dtype == np.float64 and f(0, X)["a"] == 1.0
    assert f(1, X)["a"] == X[0]


def test_switch_takes_bools_and_known_indices():
    f = arc.compile(lambda x: arc.switch(x > 0, [lambda: -x, lambda: x]))
    assert f(-2.0) == 2.0 and f(3.0) == 3.0
    known = arc.compile(lambda x: arc.switch(np.int64(1), [lambda: x, lambda: x * 2]))
    assert known(3.0) == 6.0 and "switch" not in known.statistics(3.0).by_op


def test_cond_runs_one_side():
    f = arc.compile(lambda x: arc.cond(x > 0, lambda y: np.log(y), lambda y: 0.0 * y, x))
    assert f(-1.0) == 0.0
    assert arc.grad(f)(-1.0) == 0.0, "no nan from the side that is not taken"
    np.testing.assert_allclose(arc.grad(f)(2.0), 0.5)
    assert arc.cond(np.bool_(False), lambda: 1, lambda: 2) == 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: arc.switch(0, []), ValueError, "give at least one branch"),
        (lambda: arc.switch(X, [abs]), ValueError, r"index must be one integer, got shape \(3,\)"),
        (
            lambda: arc.compile(lambda x: arc.switch(x, [abs, abs]))(1.0),
            TypeError,
            "index must be an integer or a bool, got a float64",
        ),
        (
            lambda: arc.cond(X > 0, lambda: 1, lambda: 2),
            ValueError,
            r"must be one bool, got shape \(3,\); use np\.where",
        ),
    ],
)
def test_branch_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_plain_switch_refuses_a_float_index_too():
    with pytest.raises(TypeError, match="index must be an integer or a bool, got a float64"):
        arc.switch(1.7, [abs, abs], 1.0)


def test_nested_control_flow_with_closures():
    def program(x, n):
        def step(c, s):
            inner = arc.while_loop(
                lambda v: v < s + n, lambda v: v * 1.5 + x[0], s * s + 1.0, max_steps=50
            )
            return arc.cond(s > 0, lambda: c + inner, lambda: c - inner * n), inner

        return arc.scan(step, np.sum(x), x)

    check(program, np.array([0.53, -1.07, 2.03, 0.11]), 3.0)
    f = lambda x: program(x, 3.0)[0]
    x, h = np.array([0.53, -1.07, 2.03, 0.11]), 1e-6
    want = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(4)]
    np.testing.assert_allclose(arc.grad(f)(x), want, rtol=1e-7)
    np.testing.assert_allclose(arc.jac(f)(x), want, rtol=1e-7)


def test_numbers_of_enclosing_python_loops():
    """Closures made in a Python loop see the value of their own turn."""

    def program(x):
        total = 0.0
        for k in range(4):
            total = total + arc.cond(x > k, lambda k=k: x * k, lambda: 0.0)
        return total

    assert check(program, 2.5) == 2.5 * (0 + 1 + 2)
