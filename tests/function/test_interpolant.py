"""interpolant against SciPy, in one to four dimensions, at and beyond the edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.interpolate import (
    CubicSpline,
    NdBSpline,
    RegularGridInterpolator,
    make_interp_spline,
)

import archimedes as arc
from tests.graph.spec import validate

RNG = np.random.default_rng(11)
EVEN = np.linspace(-1.0, 2.0, 7)
UNEVEN = np.array([-1.0, -0.7, 0.1, 0.2, 1.1, 1.9, 2.0])
SIZES = (6, 5, 5, 4)


def axes(n, even=False):
    return [
        np.linspace(-1.0, 2.0, m) if even else np.sort(RNG.uniform(-1, 2, m)) for m in SIZES[:n]
    ]


def inside(grid, count=40):
    return [RNG.uniform(g[0], g[-1], count) for g in grid]


def oracle(grid, data, method):
    if method == "linear":
        f = RegularGridInterpolator(grid, data)
        return lambda *xs: f(np.stack(xs, axis=-1))
    knots, c = [], data
    for k, g in enumerate(grid):
        spline = make_interp_spline(g, np.moveaxis(c, k, 0), k=3)
        knots.append(spline.t)
        c = np.moveaxis(spline.c, 0, k)
    f = NdBSpline(tuple(knots), c, 3)
    return lambda *xs: f(np.stack(xs, axis=-1))


@pytest.mark.long_cases("cubic-4*")
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_against_scipy(method, n, even):
    grid = axes(n, even)
    data = RNG.normal(size=SIZES[:n])
    table = arc.interpolant(grid, data, method)
    xs = inside(grid)
    want = oracle(grid, data, method)(*xs)
    np.testing.assert_allclose(table(*xs), want, rtol=1e-10, atol=1e-11)
    f = arc.compile(lambda *xs: table(*xs))
    one = [x[0] for x in xs]
    validate(f.graph(*one))
    np.testing.assert_allclose(f(*one), want[0], rtol=1e-10, atol=1e-11)
    batch = arc.vmap(lambda *xs: table(*xs))(*xs)
    np.testing.assert_allclose(batch, want, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("grid", [EVEN, UNEVEN, np.array([0.0, 1.0]), np.arange(4.0)])
@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_knots_are_met(grid, method):
    if method == "cubic" and len(grid) < 4:
        return
    data = np.cos(3 * grid)
    table = arc.interpolant(grid, data, method)
    f = arc.compile(lambda x: table(x))
    for x, y in zip(grid, data):
        np.testing.assert_allclose([table(x), f(x)], y, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("count", range(2, 40))
def test_every_interval_is_found(count):
    """Data that number the intervals tell which one a point fell into."""
    grid = np.cumsum(1.0 + np.arange(count) % 3)
    table = arc.interpolant(grid, np.arange(count, dtype=float))
    middles = 0.5 * (grid[1:] + grid[:-1])
    np.testing.assert_allclose(table(middles), np.arange(count - 1) + 0.5, rtol=1e-13)
    np.testing.assert_array_equal(table(grid), np.arange(count))


def test_cubic_splines_of_three_kinds_agree():
    data = np.sin(UNEVEN)
    x = np.linspace(-1, 2, 50)
    table = arc.interpolant(UNEVEN, data, "cubic")
    np.testing.assert_allclose(table(x), CubicSpline(UNEVEN, data)(x), rtol=1e-12, atol=1e-13)


def test_cubic_is_exact_for_cubics():
    cubic = lambda x, y: (x**3 - 2 * x + 1) * (y**3 + y**2)
    gx, gy = UNEVEN, EVEN
    table = arc.interpolant([gx, gy], cubic(gx[:, None], gy[None]), "cubic")
    x, y = inside([gx, gy])
    np.testing.assert_allclose(table(x, y), cubic(x, y), rtol=1e-12, atol=1e-12)


# ---- outside the grid --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_beyond_the_edges(method):
    data = np.exp(UNEVEN)
    x = np.array([-9.0, -1.0001, 2.0001, 50.0])
    make = lambda outside: arc.interpolant(UNEVEN, data, method, outside=outside)
    edges = np.array([data[0], data[0], data[-1], data[-1]])
    np.testing.assert_allclose(make("clamp")(x), edges, rtol=1e-13)
    assert np.all(np.isnan(make("nan")(x)))
    assert not np.any(np.isnan(make("nan")(UNEVEN))), "the edges themselves are inside"
    spline = make_interp_spline(UNEVEN, data, k=1 if method == "linear" else 3)
    np.testing.assert_allclose(make("extrapolate")(x), spline(x), rtol=1e-9)
    for outside in ("clamp", "nan", "extrapolate"):
        table = make(outside)
        f = arc.compile(lambda x, t=table: t(x))
        np.testing.assert_allclose(f(x), table(x), rtol=1e-12)


def test_beyond_one_edge_of_two():
    data = np.outer(EVEN, EVEN)
    f = arc.interpolant([EVEN, EVEN], data)
    np.testing.assert_allclose(f(5.0, 0.3), 2.0 * 0.3, rtol=1e-13)
    assert np.isnan(arc.interpolant([EVEN, EVEN], data, outside="nan")(0.3, 5.0))
    far = arc.interpolant([EVEN, EVEN], data, outside="extrapolate")(5.0, -4.0)
    np.testing.assert_allclose(far, -20.0, rtol=1e-12)


def test_nan_and_inf_arguments():
    f = arc.interpolant(EVEN, EVEN**2)
    assert np.isnan(f(np.nan)) and np.isnan(arc.compile(lambda x: f(x))(np.nan))
    assert f(np.inf) == 4.0 and f(-np.inf) == 1.0
    g = arc.interpolant(EVEN, EVEN**2, outside="nan")
    assert np.isnan(g(np.inf)) and np.isnan(g(np.nan))


# ---- derivatives -------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["linear", "cubic"])
def test_derivatives_against_scipy(method):
    data = np.sin(2 * UNEVEN)
    table = arc.interpolant(UNEVEN, data, method)
    spline = make_interp_spline(UNEVEN, data, k=1 if method == "linear" else 3)
    f = lambda x: table(x)
    for x in RNG.uniform(-1, 2, 12):
        np.testing.assert_allclose(arc.grad(f)(x), spline(x, 1), rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(arc.jvp(f)(x, 2.0), 2 * spline(x, 1), rtol=1e-10, atol=1e-11)
        second = spline(x, 2) if method == "cubic" else 0.0
        np.testing.assert_allclose(arc.hess(f)(x), second, rtol=1e-8, atol=1e-9)


def test_derivatives_outside():
    data = UNEVEN**3
    slope = lambda outside, x: arc.grad(lambda x: _cubic(outside)(x))(x)
    _cubic = lambda outside: arc.interpolant(UNEVEN, data, "cubic", outside=outside)
    assert slope("clamp", 5.0) == 0.0 and slope("clamp", -5.0) == 0.0
    np.testing.assert_allclose(slope("extrapolate", 5.0), 75.0, rtol=1e-9)
    assert arc.compile(lambda x: _cubic("nan")(x))(0.5) == pytest.approx(0.125)
    np.testing.assert_allclose(slope("nan", 0.5), 0.75, rtol=1e-9)


def test_gradient_in_several_dimensions():
    f = lambda x, y, z: x * y + y * z**2 - x**2 * z
    grid = [UNEVEN, EVEN, EVEN[:5]]
    mesh = np.meshgrid(*grid, indexing="ij")
    table = arc.interpolant(grid, f(*mesh), "cubic")
    x, y, z = 0.3, 0.9, 0.4
    got = arc.grad(lambda p: table(p[0], p[1], p[2]))(np.array([x, y, z]))
    want = [y - 2 * x * z, x + z**2, 2 * y * z - x**2]
    np.testing.assert_allclose(got, want, rtol=1e-11)


# ---- arguments ---------------------------------------------------------------------------------


def test_shapes_dtypes_and_integers():
    f = arc.interpolant(np.arange(5), np.arange(5) ** 2)
    assert f(3) == 9.0 and f(np.int64(2)) == 4.0
    assert f(np.ones((2, 3))).shape == (2, 3)
    assert arc.compile(lambda x: f(x))(np.arange(3)).tolist() == [0.0, 1.0, 4.0]
    g = arc.interpolant([np.arange(3.0), np.arange(4.0)], np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(
        g(np.array([[0.0], [1.0]]), np.array([1.0, 2.0])), [[1, 2], [5, 6]]
    )
    np.testing.assert_array_equal(f([1.0, 2.0]), [1.0, 4.0])


def test_names_and_repr():
    f = arc.interpolant([EVEN, EVEN], np.zeros((7, 7)), arg_names=["mach", "alpha"], name="CL")
    assert f.__name__ == "CL"
    assert repr(f) == "<interpolant CL(mach, alpha), linear, (7, 7) points>"
    with pytest.raises(TypeError, match=r"CL\(\) takes 2 coordinates \['mach', 'alpha'\], got 1"):
        f(0.3)
    with pytest.raises(ValueError, match=r"grid axis alpha must increase"):
        arc.interpolant([EVEN, EVEN[::-1]], np.zeros((7, 7)), arg_names=["mach", "alpha"])


def test_data_are_copied():
    data = EVEN.copy()
    f = arc.interpolant(EVEN, data)
    data[:] = 0.0
    assert f(2.0) == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: arc.interpolant(EVEN, EVEN, method="spline"), "method='spline' is not one of"),
        (lambda: arc.interpolant(EVEN, EVEN, outside="error"), "outside='error' is not one of"),
        (lambda: arc.interpolant(EVEN, EVEN[:3]), r"data has shape \(3,\), but the grid is \(7,\)"),
        (lambda: arc.interpolant([EVEN], np.zeros((7, 7))), r"data has shape \(7, 7\)"),
        (lambda: arc.interpolant([0.0], [1.0]), "x0 must be a vector of at least 2 numbers"),
        (lambda: arc.interpolant([EVEN[:, None]], EVEN), r"x0 must be a vector.*got shape"),
        (lambda: arc.interpolant([1.0, 1.0], [0.0, 1.0]), "x0 must increase strictly"),
        (lambda: arc.interpolant([0.0, np.nan], [0.0, 1.0]), "x0 must be finite"),
        (lambda: arc.interpolant([0.0, 1.0], [0.0, np.inf]), "data must be finite"),
        (
            lambda: arc.interpolant([0.0, 1.0, 2.0], [0.0] * 3, "cubic"),
            "at least 4 points along x0",
        ),
        (
            lambda: arc.interpolant([EVEN], EVEN, arg_names=["a", "b"]),
            "arg_names lists 2 names for 1 axes",
        ),
        (lambda: arc.interpolant([], []), "grid must be"),
        (lambda: arc.interpolant(5.0, [1.0]), "grid must be"),
    ],
)
def test_misuse(call, message):
    with pytest.raises(ValueError, match=f"interpolant: .*{message}"):
        call()
