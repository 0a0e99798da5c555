"""Problems written with ``vmap``: only the map's body is differentiated, whatever its length."""

from __future__ import annotations

import time

import numpy as np
import pytest

import archimedes as arc
from archimedes.optimize import minimize, nlp_solver

N = 60
WEIGHTS = np.linspace(1.0, 2.0, N)


def step(a, b, u, h, k):
    """An Euler step of a pendulum, long enough not to be unrolled."""
    return b - a - h * np.stack([a[1], u - k * np.sin(a[0]) + 0.01 * np.exp(-(a[0] ** 2))])


def cost(u, w):
    return w * (0.1 * u**2 + 1e-3 * np.exp(u) + 1e-3 * np.cosh(u))


def constr(z, k):
    h = z["T"] / (N - 1)
    return arc.vmap(step, in_axes=(0, 0, 0, None, None))(z["x"][:-1], z["x"][1:], z["u"][:-1], h, k)


def obj(z, k):
    return 0.5 * (2.0 * np.sum(arc.vmap(cost)(z["u"], WEIGHTS)) + 2.0 * z["T"] ** 2)


def plain_constr(z, k):
    h = z["T"] / (N - 1)
    x, u = z["x"], z["u"]
    return np.stack([step(x[i], x[i + 1], u[i], h, k) for i in range(N - 1)])


def plain_obj(z, k):
    return np.sum(cost(z["u"], WEIGHTS)) + z["T"] ** 2


START = {"T": 1.0, "u": np.zeros(N), "x": np.zeros((N, 2))}


def bounds():
    low, high = np.full((N, 2), -np.inf), np.full((N, 2), np.inf)
    low[0] = high[0] = 0.0
    low[-1] = high[-1] = [1.0, 0.0]
    return {"T": 0.1, "u": None, "x": low}, {"T": 5.0, "u": None, "x": high}


@pytest.mark.long
def test_maps_give_the_solution_of_plain_code():
    given = {"args": (0.5,), "bounds": bounds()}
    one = minimize(obj, START, constr=constr, **given)
    two = minimize(plain_obj, START, constr=plain_constr, **given)
    assert one.success and two.success
    assert one.fun == pytest.approx(two.fun, rel=1e-9)
    np.testing.assert_allclose(one.x["x"], two.x["x"], atol=1e-7)
    np.testing.assert_allclose(one.multipliers.constr, two.multipliers.constr, atol=1e-6)


def test_they_are_blocks_of_their_own():
    solver = nlp_solver(obj, constr)
    solver.solve(START, 0.5, bounds=bounds())
    program = solver.program(START, (0.5,))
    assert sorted(len(block.index) for block in program.blocks) == [1, N - 1, N]
    # Other arguments are other numbers, not other code.
    other = solver.solve(START, 0.9, bounds=bounds())
    assert solver.program(START, (0.9,)) is program
    assert other.fun == pytest.approx(
        minimize(plain_obj, START, (0.9,), constr=plain_constr, bounds=bounds()).fun, rel=1e-9
    )


def test_what_a_map_reads_may_change():
    gain = np.array([1.0])

    def total(x):
        return np.sum(arc.vmap(lambda a, b: gain[0] * np.exp(a - b) + (a + b) ** 2)(x[1:], x[:-1]))

    def again(x):
        a, b = x[1:], x[:-1]
        return np.sum(gain[0] * np.exp(a - b) + (a + b) ** 2)

    solver = nlp_solver(total)
    for value in (1.0, 3.0):
        gain[0] = value
        mine, peer = solver.solve(np.zeros(200)), minimize(again, np.zeros(200))
        assert mine.fun == pytest.approx(peer.fun, rel=1e-9)


def test_setting_up_does_not_depend_on_the_length():
    def total(x):
        return np.sum(arc.vmap(lambda a, b: (b - np.sin(a)) ** 2 + np.cosh(a - 1))(x[:-1], x[1:]))

    seconds = []
    for n in (50, 1000):
        began = time.process_time()
        assert minimize(total, np.zeros(n)).success
        seconds.append(time.process_time() - began)
    assert seconds[1] < 3.0 + 4 * seconds[0]
