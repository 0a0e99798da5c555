"""root and implicit against closed forms, their derivatives by the implicit function theorem."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.errors import ShapeDtypeError
from tests.graph.spec import validate


@arc.struct
class S:
    a: np.ndarray
    b: float


def test_scalar_root():
    x = arc.root(lambda x: x**2 - 2.0, 1.0)
    assert abs(x - np.sqrt(2)) < 1e-14 and isinstance(x, np.float64)
    assert abs(arc.root(lambda x: np.cos(x) - x, 1) - 0.7390851332151607) < 1e-14


def test_system_and_info():
    f = lambda x: np.array([x[0] ** 2 + x[1] ** 2 - 1.0, x[1] - 2 * x[0]])
    x, info = arc.root(f, np.ones(2), full_output=True)
    np.testing.assert_allclose(x, np.array([1.0, 2.0]) / np.sqrt(5), rtol=1e-14)
    assert info.success and 2 <= info.steps <= 10 and info.residual < 1e-14
    assert isinstance(info, arc.RootInfo)


def test_trees_of_unknowns_and_equations():
    def f(s, p):
        return {"p": s.a**2 - p["v"], "q": s.b**3 - p["w"]}

    x = arc.root(f, S(np.ones(2), 1.0), ({"v": np.array([4.0, 9.0]), "w": 8.0},))
    assert isinstance(x, S)
    np.testing.assert_allclose(x.a, [2.0, 3.0], rtol=1e-14)
    np.testing.assert_allclose(x.b, 2.0, rtol=1e-14)


def test_derivative_in_arguments():
    sqrt = arc.implicit(lambda x, p: x**2 - p)
    for p in (0.3, 2.0, 50.0):
        f = lambda p: sqrt(1.0, p)
        np.testing.assert_allclose(arc.grad(f)(p), 0.5 / np.sqrt(p), rtol=1e-12)
        np.testing.assert_allclose(arc.jvp(f)(p, 3.0), 1.5 / np.sqrt(p), rtol=1e-12)
        np.testing.assert_allclose(arc.vjp(f)(p, 3.0), 1.5 / np.sqrt(p), rtol=1e-12)
        np.testing.assert_allclose(arc.hess(f)(p), -0.25 * p**-1.5, rtol=1e-10)
        np.testing.assert_allclose(arc.grad(arc.grad(arc.grad(f)))(p), 0.375 * p**-2.5, rtol=1e-8)
    assert arc.grad(sqrt)(1.0, 2.0) == 0.0, "the starting value does not matter"


def test_derivative_of_a_system():
    """A(p) x = b: dx = -A^-1 dA x."""
    a = lambda p: np.array([[2.0 + p, 1.0], [p, 3.0]])
    f = lambda p: arc.root(lambda x, p: a(p) @ x - np.array([1.0, p]), np.zeros(2), p)
    p = 0.7
    x = np.linalg.solve(a(p), [1.0, p])
    da = np.array([[1.0, 0.0], [1.0, 0.0]])
    want = np.linalg.solve(a(p), np.array([0.0, 1.0]) - da @ x)
    np.testing.assert_allclose(f(p), x, rtol=1e-13)
    np.testing.assert_allclose(arc.jac(f)(p), want, rtol=1e-12)


def test_derivative_in_values_closed_over():
    def kepler(m, e):
        return arc.root(lambda y: y - e * np.sin(y) - m, m)

    m, e = 0.8, 0.3
    y = kepler(m, e)
    assert abs(y - e * np.sin(y) - m) < 1e-15
    rate = 1 / (1 - e * np.cos(y))
    np.testing.assert_allclose(arc.grad(kepler)(m, e), rate, rtol=1e-13)
    np.testing.assert_allclose(arc.grad(kepler, argnums=1)(m, e), np.sin(y) * rate, rtol=1e-13)
    mixed = arc.jac(arc.grad(kepler), argnums=1)(m, e)
    h = 1e-5
    diff = (arc.grad(kepler)(m, e + h) - arc.grad(kepler)(m, e - h)) / (2 * h)
    np.testing.assert_allclose(mixed, diff, rtol=1e-7)


def test_closures_and_arguments_together():
    f = lambda p, q: arc.root(lambda x, q: x**2 - p * q, 1.0, q)
    np.testing.assert_allclose(f(2.0, 8.0), 4.0)
    got = arc.jac(f, argnums=(0, 1))(2.0, 8.0)
    np.testing.assert_allclose(got, [1.0, 0.25], rtol=1e-12)


def test_inside_recordings_loops_and_maps():
    f = arc.compile(lambda ps: arc.vmap(lambda p: arc.root(lambda x: x**3 - p, 1.0))(ps))
    ps = np.array([1.0, 8.0, 27.0])
    validate(f.graph(ps))
    np.testing.assert_allclose(f(ps), [1.0, 2.0, 3.0], rtol=1e-13)
    g = lambda p: arc.scan(lambda c, _: (arc.root(lambda x: x**2 - c - p, 1.0), None), p, length=3)[
        0
    ]
    want = 2.0
    for _ in range(3):
        want = np.sqrt(want + 2.0)
    np.testing.assert_allclose(arc.compile(g)(2.0), want, rtol=1e-13)
    h = 1e-6
    np.testing.assert_allclose(arc.grad(g)(2.0), (g(2.0 + h) - g(2.0 - h)) / (2 * h), rtol=1e-8)


def test_static_and_other_arguments():
    def f(x, n, p, mode):
        assert isinstance(n, int)
        return sum(x**k for k in range(1, n + 1)) - p if mode == "sum" else x - p

    g = arc.implicit(f, static_argnames=("n", "mode"))
    np.testing.assert_allclose(g(1.0, 2, 6.0, "sum"), 2.0, rtol=1e-14)
    np.testing.assert_allclose(g(1.0, 1, 6.0, "sum"), 6.0, rtol=1e-14)
    np.testing.assert_allclose(g(1.0, 2, 6.0, "other"), 6.0, rtol=1e-14)
    np.testing.assert_allclose(
        arc.grad(lambda p: g(1.0, 2, p, "sum"))(6.0), 1 / (1 + 2 * 2.0), rtol=1e-12
    )
    integers = arc.root(lambda x, n, flag: x * n - (2.0 if flag else 3.0), 1.0, (4, True))
    np.testing.assert_allclose(integers, 0.5)


def test_damping_reaches_a_far_root():
    """Plain Newton from here diverges: arctan(x) = 0 from x = 3."""
    x, info = arc.root(np.arctan, 3.0, full_output=True)
    assert info.success and abs(x) < 1e-12


def test_no_convergence():
    message = r"Newton's method did not converge: after \d+ steps.*largest residual is.*max_steps"
    with pytest.raises(arc.ConvergenceError, match=message):
        arc.root(lambda x: x**2 + 1.0, 1.0)
    with pytest.raises(arc.ConvergenceError, match="after 2 steps"):
        arc.root(lambda x: np.exp(x) - 1e8, 0.0, max_steps=2)
    _, info = arc.root(lambda x: x**2 + 1.0, 1.0, full_output=True)
    assert not info.success and info.residual >= 1.0
    g = arc.implicit(lambda x, p: x**2 - p)
    f = arc.compile(lambda p: g.solve(1.0, p)[1].success)
    assert f(2.0) and not f(-2.0)
    loose = arc.root(lambda x: x**2, 1.0, tol=1e-4)
    assert 0 < loose**2 <= 1e-4


def test_starting_at_the_root_and_at_a_singular_point():
    x, info = arc.root(lambda x: x - 1.0, 1.0, full_output=True)
    assert x == 1.0 and info.steps == 0
    _, info = arc.root(lambda x: x**2 - 1.0, 0.0, full_output=True)
    assert not info.success


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: arc.root(3.0, 1.0), TypeError, "implicit: func must be a function, got float"),
        (lambda: arc.root(abs, 1.0, method="brent"), ValueError, "root: method='brent' is not one"),
        (lambda: arc.implicit(abs, solver="x"), ValueError, "implicit: solver='x' is not one of"),
        (
            lambda: arc.root(abs, 1.0, tol=-1.0),
            ValueError,
            "tol must be positive and finite, got -1.0",
        ),
        (
            lambda: arc.root(abs, 1.0, max_steps=0),
            ValueError,
            "max_steps must be a whole number of at least 1, got 0",
        ),
        (
            lambda: arc.root(lambda x: x[:1], np.ones(2)),
            ShapeDtypeError,
            "1 equations for 2 unknowns",
        ),
        (
            lambda: arc.implicit(lambda x: {"a": x, "b": x})(1.0),
            ShapeDtypeError,
            "2 equations for 1 unknowns",
        ),
        (lambda: arc.root(abs, np.zeros(0)), ShapeDtypeError, "x0 holds no numbers"),
        (lambda: arc.implicit(abs)("two"), ShapeDtypeError, "x0 must be a tree of numbers"),
        (
            lambda: arc.root(lambda x: x - 1.0, np.ones(2), bounds=(np.zeros(3), 4.0)),
            ShapeDtypeError,
            "bounds hold 3 numbers, x0 holds 2",
        ),
        (
            lambda: arc.root(lambda x: np.stack([x[0], x[0] - 1.0]), np.ones(2)),
            ValueError,
            "dF/dx is singular whatever the values are: some unknown enters no equation",
        ),
        (
            lambda: arc.implicit(lambda x: x, static_argnames="n"),
            ValueError,
            "static_argnames names 'n', which is not a parameter",
        ),
    ],
)
def test_misuse(call, error, message):
    with pytest.raises(error, match=message):
        call()


# ---- no solution, and single precision ---------------------------------------------------------


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_no_solution_in_recorded_code_is_nan_with_a_status(backend):
    none = arc.compile(lambda p: arc.root(lambda x: x**2 + p, 1.0), backend=backend)
    assert np.isnan(none(1.0)) and none(-4.0) == pytest.approx(2.0)
    tree = arc.compile(
        lambda p: arc.root(lambda s: S(s.a**2 + p, s.b - p), S(np.ones(2), 1.0)), backend=backend
    )
    assert np.isnan(tree(1.0).a).all() and np.isnan(tree(1.0).b)

    def kept(p):
        x, info = arc.root(lambda x: x**2 + p, 1.0, full_output=True)
        return np.where(info.success, x, -1.0), info.success, info.residual

    kept = arc.compile(kept, backend=backend)
    assert kept(1.0)[0] == -1.0 and not kept(1.0)[1] and kept(1.0)[2] >= 1.0
    assert kept(-4.0)[0] == pytest.approx(2.0) and kept(-4.0)[1]
    with pytest.raises(arc.ConvergenceError, match="did not converge"):
        arc.root(lambda x: x**2 + 1.0, 1.0)


def test_single_precision_meets_its_tolerance():
    for p in (2.0, 3.0, 5.0, 7.0, 0.1):
        x, info = arc.root(
            lambda x, p: x**2 - p, np.float32(1.0), (np.float32(p),), full_output=True
        )
        assert info.success and info.steps < 12 and x.dtype == np.float32
        assert x == pytest.approx(np.sqrt(p), rel=1e-6)
    f = arc.compile(lambda p: arc.root(lambda x: x**3 - p, np.ones(2, dtype=np.float32)))
    assert f(np.array([8.0, 27.0], dtype=np.float32)) == pytest.approx([2.0, 3.0], rel=1e-6)
    with pytest.raises(arc.ConvergenceError, match="the tolerance is 1e-05"):
        arc.root(lambda x: x**2 + np.float32(1.0), np.float32(1.0))
    with pytest.raises(arc.ConvergenceError, match="the tolerance is 1e-12"):
        arc.root(lambda x: x**2 - np.float32(2.0), np.float32(1.0), tol=1e-12)


@pytest.mark.parametrize("method", ["newton", "hybr", "lm"])
def test_small_residuals_alone_are_no_root(method):
    """Equations in other units are small everywhere; functions that fade far away have no root."""
    x, info = arc.root(lambda x: 1e-12 * (x**3 - 27.0), 1.0, method=method, full_output=True)
    assert info.success and x == pytest.approx(3.0, rel=1e-7)
    for fading in (np.exp, lambda x: np.exp(-x * x), lambda x: 1.0 / x):
        with pytest.raises(arc.ConvergenceError, match="the steps do not get shorter"):
            arc.root(lambda x, f=fading: f(x), 1.0, method=method)
        assert np.isnan(arc.compile(lambda a, f=fading: arc.root(f, a, method=method))(1.0))
    # A tolerance that the caller gives is in the caller's units.
    assert arc.root(lambda x: 1e-12 * (x**3 - 27.0), 1.0, method=method, tol=1e-10) == 1.0


def test_roots_where_the_slope_vanishes_are_still_roots():
    for power in (2, 3, 9):
        x, info = arc.root(lambda x, n=power: (x - 1.0) ** n, 2.0, full_output=True)
        # A step is 1/n of the way that is left, and the last one at most 1e-3 (1 + |x|).
        assert info.success and x == pytest.approx(1.0, abs=2e-3 * power)
    assert arc.root(lambda x: x - 3.0, 3.0) == 3.0


@pytest.mark.parametrize("backend", ["interpreter", "llvm"])
def test_equations_may_read_long_arrays_of_an_enclosing_recording(backend):
    """Linear equations of 70 unknowns, whose right side is an argument of the outer function."""
    n = 70
    rng = np.random.default_rng(3)
    A, x = rng.normal(size=(n, n)), rng.normal(size=n)
    M = np.eye(n) + 0.01 * A

    def solve(x):
        return arc.root(lambda y: M @ y - x, np.zeros(n))

    np.testing.assert_allclose(
        arc.compile(solve, backend=backend)(x), np.linalg.solve(M, x), rtol=0, atol=1e-13
    )
    total = arc.compile(arc.grad(lambda x: np.sum(solve(x))), backend=backend)
    np.testing.assert_allclose(total(x), np.linalg.inv(M).sum(axis=0), rtol=0, atol=1e-13)
