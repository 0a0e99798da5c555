"""Methods for equations, and fixed points: classical systems, bounds, no solution."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import fixed_point, qpsol, root


def powell_badly_scaled(x):
    return np.stack([1e4 * x[0] * x[1] - 1.0, np.exp(-x[0]) + np.exp(-x[1]) - 1.0001])


def rosenbrock(x):
    return np.stack([10 * (x[1] - x[0] ** 2), 1 - x[0]])


def helical(x):
    # From (-1, 0, 0): the angle is continued to the right half plane.
    angle = np.arctan2(x[1], x[0]) / (2 * np.pi)
    return np.stack([10 * (x[2] - 10 * angle), 10 * (np.hypot(x[0], x[1]) - 1), x[2]])


def broyden(x):
    padded = np.concatenate([np.zeros(1), x, np.zeros(1)])
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


# More, Garbow, Hillstrom, ACM TOMS 7(1), 1981: functions 1, 3, 7, 30.
SYSTEMS = {
    "rosenbrock": (rosenbrock, [-1.2, 1.0]),
    "badly scaled": (powell_badly_scaled, [0.0, 1.0]),
    "helical": (helical, [-1.0, 0.5, 0.0]),
    "broyden": (broyden, [-1.0] * 6),
}


#: Newton's method needs a region of trust for the badly scaled system: see below.
PAIRS = [(n, m) for n in SYSTEMS for m in ("newton", "hybr", "lm")]
PAIRS.remove(("badly scaled", "newton"))


@pytest.mark.parametrize(("name", "method"), PAIRS)
def test_classical_systems(name, method):
    func, x0 = SYSTEMS[name]
    x = root(func, np.array(x0), method=method)
    assert np.abs(func(x)).max() < 1e-8


def test_trust_finds_what_newton_does_not():
    func, x0 = SYSTEMS["badly scaled"]
    with pytest.raises(arc.ConvergenceError, match="try method='hybr' or 'lm'"):
        root(func, np.array(x0), method="newton")
    # Powell 1970: the Jacobian is singular along x1 = 0.1 on the way to the solution, the origin.
    func = lambda x: np.stack([x[0], 10 * x[0] / (x[0] + 0.1) + 2 * x[1] ** 2])
    found = root(func, np.array([3.0, 1.0]), method="hybr", tol=1e-6)
    assert np.abs(func(found)).max() < 1e-6


def test_bounds_choose_the_solution():
    func = lambda x: x**2 - 4.0
    assert root(func, 1.0, bounds=(None, -0.5)) == pytest.approx(-2.0)
    assert root(func, -1.0, bounds=(0.5, None)) == pytest.approx(2.0)
    tree = {"a": 0.1, "b": np.array([3.0])}
    pair = lambda p: {"r": p["a"] - p["b"][0] ** 2, "s": p["a"] + p["b"] - 2.0}
    found = root(pair, tree, bounds=(0.0, 5.0))
    assert found["a"] == pytest.approx(1.0)


@pytest.mark.parametrize("method", ["newton", "hybr", "lm"])
def test_no_solution_says_so(method):
    with pytest.raises(arc.ConvergenceError, match="There may be no solution"):
        root(lambda x: x**2 + 1.0, 0.7, method=method)
    with pytest.raises(arc.ConvergenceError, match="There may be no solution"):
        root(lambda x: x - 3.0, 1.0, bounds=(0.0, 2.0))


@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_recorded_mapped_and_differentiated(method):
    def solution(p):
        return root(
            lambda x, p: np.stack([x[0] ** 3 + x[1] - p, x[1] - x[0]]), np.ones(2), p, method=method
        )

    p = np.array([0.5, 2.0, 10.0])
    batch = arc.vmap(solution)(p)
    one = arc.compile(solution)
    np.testing.assert_array_equal(batch, [one(v) for v in p])
    np.testing.assert_array_equal(arc.compile(solution, backend="interpreter")(p[1]), batch[1])
    slope = arc.jac(solution)(2.0)  # x^3 + x = p: dx/dp = 1 / (3 x^2 + 1)
    np.testing.assert_allclose(slope, 1 / (3 * batch[1] ** 2 + 1), rtol=1e-9)


def test_fixed_points():
    # Plain iteration runs away from the second: the slope there is 2.
    assert fixed_point(lambda x, k: np.cos(k * x), 1.0, 1.0) == pytest.approx(0.7390851332)
    assert fixed_point(lambda x: 2 * x - 1.0, 5.0) == pytest.approx(1.0)
    slope = arc.grad(lambda k: fixed_point(lambda x, k: np.cos(k * x), 1.0, (k,)))(1.0)
    x = 0.7390851332151607
    assert slope == pytest.approx(-np.sin(x) * x / (1 + np.sin(x)))
    found = fixed_point(lambda p: {"a": p["b"] / 2 + 1, "b": p["a"] / 2}, {"a": 0.0, "b": 0.0})
    assert found["a"] == pytest.approx(4 / 3)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="takes no bounds: use 'lm'"):
        root(lambda x: x, 1.0, method="hybr", bounds=(0, 1))
    with pytest.raises(ValueError, match=r"bounds must be a pair"):
        root(lambda x: x, 1.0, bounds=3.0)
    with pytest.raises(ValueError, match="bounds hold 3 numbers, x0 holds 2"):
        root(lambda x: x, np.ones(2), bounds=(np.zeros(3), None))
    with pytest.raises(ValueError, match="method='secant' is not one of"):
        root(lambda x: x, 1.0, method="secant")
    with pytest.raises(ValueError, match="1 equations for 2 unknowns"):
        root(lambda x: x[:1], np.ones(2), method="hybr")


def test_lists_of_numbers_are_arrays():
    """As in SciPy: func may compute with x as a whole."""
    both = np.sqrt([2.0, 2.0])
    np.testing.assert_allclose(root(lambda x: x**2 - 2.0, [1.0, 2]), both)
    np.testing.assert_allclose(root(lambda x: [x[0] ** 2 - 2.0, x[1] - x[0]], [1.0, 2.0]), both)
    started = arc.compile(lambda a: root(lambda x: x**2 - 2.0, [a, 2.0]))
    np.testing.assert_allclose(started(1.0), both)
    np.testing.assert_allclose(fixed_point(np.cos, [1.0, 2.0]), 0.739085, atol=1e-6)
    np.testing.assert_allclose(qpsol(lambda x: np.sum((x - 1.0) ** 2), None, [0, 0]).x, 1.0)
