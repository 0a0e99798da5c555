"""Rodas5P and ESDIRK4: order conditions, orders of convergence, and stiff problems.

References: HIRES at t = 321.8122 and Robertson at t = 1e11 from F. Mazzia, C. Magherini, "Test Set
for Initial Value Problem Solvers", release 2.4 (2008), sections II.1 and II.10; the others from
SciPy's Radau at tolerances far below those tested.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import archimedes as arc
from archimedes.simulate.methods import implicit, rosenbrock
from archimedes.simulate.methods.method_table import evaluate_dense
from archimedes.simulate.ode import odeint, solve_ode
from archimedes.simulate.solves.initial_value_problem import find_method

STIFF = ("rodas5p", "esdirk4")


def hires(t, y):
    return np.stack(
        [
            -1.71 * y[0] + 0.43 * y[1] + 8.32 * y[2] + 0.0007,
            1.71 * y[0] - 8.75 * y[1],
            -10.03 * y[2] + 0.43 * y[3] + 0.035 * y[4],
            8.32 * y[1] + 1.71 * y[2] - 1.12 * y[3],
            -1.745 * y[4] + 0.43 * y[5] + 0.43 * y[6],
            -280 * y[5] * y[7] + 0.69 * y[3] + 1.71 * y[4] - 0.43 * y[5] + 0.69 * y[6],
            280 * y[5] * y[7] - 1.81 * y[6],
            -280 * y[5] * y[7] + 1.81 * y[6],
        ]
    )


HIRES_START = np.array([1.0, 0, 0, 0, 0, 0, 0, 0.0057])
HIRES_END = [
    0.7371312573325668e-3,
    0.1442485726316185e-3,
    0.5888729740967575e-4,
    0.1175651343283149e-2,
    0.2386356198831331e-2,
    0.6238968252742796e-2,
    0.2849998395185769e-2,
    0.2850001604814231e-2,
]


def robertson(t, y):
    first, second = 0.04 * y[0] - 1e4 * y[1] * y[2], 3e7 * y[1] ** 2
    return np.stack([-first, first - second, second])


ROBERTSON_END = [0.2083340149701255e-07, 0.8333360770334713e-13, 0.9999999791665050]


def van_der_pol(t, y, mu):
    return np.stack([y[1], mu * ((1.0 - y[0] ** 2) * y[1]) - y[0]])


def forced(t, x):
    return np.stack([x[1], -x[0] + np.sin(t) * x[1] * 0.3 + 0.1 * x[0] ** 2])


def test_rodas5p_satisfies_the_order_conditions():
    # In the untransformed form, Hairer & Wanner II, table IV.7.1: alpha, gamma, b.
    n = len(rosenbrock.A)
    inverse, a = np.eye(n) / rosenbrock.GAMMA, np.zeros((n, n))
    for i in range(n):
        inverse[i, :i] -= rosenbrock.C[i]
        a[i, :i] = rosenbrock.A[i]
    gamma = np.linalg.inv(inverse)
    alpha, b = a @ gamma, np.array(rosenbrock.WEIGHTS) @ gamma
    beta = alpha + gamma
    at, bt = alpha.sum(1), beta.sum(1)
    assert at == pytest.approx(rosenbrock.ALPHA, abs=1e-13)
    assert gamma.sum(1) == pytest.approx(rosenbrock.GAMMA_I, abs=1e-13)
    conditions = {
        1: [b.sum()],
        2: [b @ bt],
        3: [b @ at**2, b @ beta @ bt],
        4: [b @ at**3, b @ (at * (alpha @ bt)), b @ beta @ at**2, b @ beta @ beta @ bt],
        5: [b @ at**4],
    }
    right = {1: [1], 2: [1 / 2], 3: [1 / 3, 1 / 6], 4: [1 / 4, 1 / 8, 1 / 12, 1 / 24], 5: [1 / 5]}
    for order, values in conditions.items():
        assert values == pytest.approx(right[order], abs=1e-13)


def test_esdirk4_satisfies_the_order_conditions():
    table = implicit._ARK4
    s = len(table.c)
    a = np.zeros((s, s))
    for i, row in enumerate(table.a):
        a[i, : len(row)] = row
        a[i, i] = table.gamma if i else 0.0
    c, b = np.array(table.c), a[-1]
    assert a.sum(1) == pytest.approx(c, abs=1e-14)
    fourth = [b @ c**3, b @ (c * (a @ c)), b @ a @ c**2, b @ a @ a @ c]
    assert fourth == pytest.approx([1 / 4, 1 / 8, 1 / 12, 1 / 24], abs=1e-14)
    third = [1.0, 1 / 2, 1 / 3, 1 / 6]
    for weights in (b, np.array(table.embedded)):
        found = [weights.sum(), weights @ c, weights @ c**2, weights @ a @ c]
        assert found == pytest.approx(third, abs=1e-14)
    for theta in (0.3, 1.0):
        weights = sum(np.array(row) * theta ** (k + 1) for k, row in enumerate(table.dense))
        found = [weights.sum(), weights @ c, weights @ c**2, weights @ a @ c]
        expected = [v * theta ** (k + 1) for v, k in zip(third, (0, 1, 2, 2))]
        assert found == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("name", STIFF)
def test_order_of_convergence(name):
    exact = solve_ivp(forced, (0, 2), [1.0, 0.3], method="DOP853", rtol=1e-13, atol=1e-14)
    steps = np.array([8, 16, 32])
    errors = [
        np.abs(odeint(forced, (0.0, 2.0), [1.0, 0.3], method=name, dt=2.0 / n) - exact.y[:, -1])
        for n in steps
    ]
    slope = -np.polyfit(np.log(steps), np.log(np.max(errors, axis=1)), 1)[0]
    order = find_method(name).order
    assert order - 0.6 < slope < order + 0.6


@pytest.mark.parametrize("name", STIFF)
def test_dense_output_and_error_estimate_converge(name):
    method = find_method(name)
    x = np.array([1.0, 0.3])

    @arc.compile
    def one(h):
        step = method.step(forced, 0.2, x, h, method.start(forced, 0.2, x))
        coefficients = method.dense(forced, 0.2, x, h, step)
        end = x + evaluate_dense(coefficients, 1.0)
        middle = x + evaluate_dense(coefficients, 0.4)
        return middle, end - step.x, np.reshape(step.error, (-1, 2))[0]

    middles, estimates = [], []
    for h in (0.2, 0.1):
        middle, gap, error = one(h)
        exact = solve_ivp(forced, (0.2, 0.2 + 0.4 * h), x, method="DOP853", rtol=1e-13, atol=1e-15)
        middles.append(np.abs(middle - exact.y[:, -1]).max())
        estimates.append(np.abs(error).max())
        assert gap == pytest.approx([0.0, 0.0], abs=1e-14)
    assert np.log2(middles[0] / middles[1]) > method.dense_order + 0.4
    assert abs(np.log2(estimates[0] / estimates[1]) - (method.error_order + 1)) < 0.8


@pytest.mark.parametrize("name", STIFF)
def test_hires(name):
    found = solve_ode(hires, (0.0, 321.8122), HIRES_START, method=name, atol=1e-12)
    assert found.success
    assert found.x[-1] == pytest.approx(HIRES_END, rel=1e-7)


@pytest.mark.parametrize("name", STIFF)
def test_robertson(name):
    found = solve_ode(robertson, (0.0, 1e11), [1.0, 0.0, 0.0], method=name, atol=1e-18)
    assert found.success
    assert found.x[-1] == pytest.approx(ROBERTSON_END, rel=1e-5)
    assert found.stats["steps"] < 4000


@pytest.fixture(scope="module")
def exact_van_der_pol():
    """The end at t = 2000 by SciPy, which takes seconds."""
    return solve_ivp(
        van_der_pol, (0, 2000), [2.0, 0.0], args=(1e3,), method="Radau", rtol=1e-11, atol=1e-14
    ).y[:, -1]


@pytest.mark.long
@pytest.mark.parametrize("name", STIFF)
def test_van_der_pol(name, exact_van_der_pol):
    found = odeint(van_der_pol, (0.0, 2000.0), [2.0, 0.0], method=name, args=(1e3,))
    assert found == pytest.approx(exact_van_der_pol, rel=1e-6)


def test_a_step_where_newton_fails_is_rejected():
    # From far out, the simplified iteration does not converge with a long step.
    found = solve_ode(
        lambda t, x: -np.exp(20.0 * x), (0.0, 1.0), 1.0, method="esdirk4", first_step=0.5
    )
    assert found.success and found.stats["rejected"] > 0
    assert float(found.x[-1]) == pytest.approx(-np.log(20.0 + np.exp(-20.0)) / 20.0, rel=1e-8)


@pytest.mark.parametrize("name", STIFF)
def test_batches_have_the_bits_of_single_solves(name):
    mus = np.array([1.0, 10.0, 100.0])
    start, span, times = np.array([2.0, 0.0]), (0.0, 20.0), np.linspace(0.0, 20.0, 5)
    many = solve_ode(
        van_der_pol, span, start, method=name, args=(mus,), in_axes=(None, 0), t_eval=times
    )
    for k, mu in enumerate(mus):
        alone = solve_ode(van_der_pol, span, start, method=name, args=(mu,), t_eval=times)
        assert np.array_equal(many.x[k], alone.x)


@pytest.mark.parametrize("name", STIFF)
def test_gradients(name):
    # x' = -k (x - cos t): the solution in closed form, and its derivative with respect to k.
    def solve(k):
        return odeint(
            lambda t, x, k: -k * (x - np.cos(t)),
            (0.0, 1.0),
            0.0,
            method=name,
            args=(k,),
            rtol=1e-10,
        )

    def exact(k):
        return (k * k * (np.cos(1.0) - np.exp(-k)) + k * np.sin(1.0)) / (1.0 + k * k)

    slope = arc.jac(exact)(30.0)
    assert float(arc.jac(solve)(30.0)) == pytest.approx(float(slope), rel=1e-7)
    assert float(arc.grad(solve)(30.0)) == pytest.approx(float(slope), rel=1e-7)
