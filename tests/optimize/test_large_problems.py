"""Large sparse problems with known optima, as functions of few unknowns at many places.

Names, formulas and optima are those of the CUTEst collection (Gould, Orban, Toint, Comput. Optim.
Appl. 60, 2015) and its sources: A. Conn et al. (ARWHEAD, LIARWHD, NONDIA, TRIDIA), A. Buckley
(SROSENBR), G. Li (WOODS), W. Hager (HAGER1), L. Luksan, J. Vlcek, "Sparse and partially separable
test problems", 1999 (chained problems with constraints).
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from archimedes.optimize import ElementFunction, Status, minimize
from tests.long_parameters import long_but


def neighbours(n, width=2, step=1):
    return np.arange(0, n - width + 1, step)[:, None] + np.arange(width)


def arwhead(n):
    index = np.stack([np.arange(n - 1), np.full(n - 1, n - 1)], axis=1)
    term = ElementFunction(lambda z: (z[0] ** 2 + z[1] ** 2) ** 2 - 4 * z[0] + 3, index)
    return {"obj": term, "x0": np.ones(n)}, 0.0


def liarwhd(n):
    index = np.stack([np.arange(n), np.zeros(n, dtype=int)], axis=1)
    term = ElementFunction(lambda z: 4 * (z[0] ** 2 - z[1]) ** 2 + (z[0] - 1) ** 2, index)
    return {"obj": term, "x0": np.full(n, 4.0)}, 0.0


def nondia(n):
    # Without the last unknown of the original, which enters nothing.
    n -= 1
    index = np.stack([np.arange(n), np.zeros(n, dtype=int)], axis=1)
    term = ElementFunction(lambda z: 100 * (z[1] - z[0] ** 2) ** 2, index)
    return {
        "obj": [ElementFunction(lambda z: (z[0] - 1) ** 2, [[0]]), term],
        "x0": np.full(n, -1.0),
    }, 0.0


def tridia(n):
    k = np.arange(2.0, n + 1)
    term = ElementFunction(lambda z, k: k * (2 * z[1] - z[0]) ** 2, neighbours(n), k)
    return {"obj": [ElementFunction(lambda z: (z[0] - 1) ** 2, [[0]]), term], "x0": np.ones(n)}, 0.0


def srosenbr(n):
    term = ElementFunction(
        lambda z: 100 * (z[1] - z[0] ** 2) ** 2 + (1 - z[0]) ** 2, neighbours(n, 2, 2)
    )
    return {"obj": term, "x0": np.tile([-1.2, 1.0], n // 2)}, 0.0


def woods(n):
    def term(z):
        a, b, c, d = z
        return (
            100 * (b - a**2) ** 2
            + (1 - a) ** 2
            + 90 * (d - c**2) ** 2
            + (1 - c) ** 2
            + 10 * (b + d - 2) ** 2
            + 0.1 * (b - d) ** 2
        )

    start = np.tile([-3.0, -1.0, -3.0, -1.0], n // 4)
    return {"obj": ElementFunction(term, neighbours(n, 4, 4)), "x0": start}, 0.0


def hager1(n):
    # States x_0..x_n, controls u_1..u_n: a linear system, cost 0.8807971 as n grows.
    x, u = np.arange(n + 1), n + 1 + np.arange(n)
    rule = ElementFunction(
        lambda z: (n - 0.5) * z[1] - (n + 0.5) * z[0] - z[2], np.stack([x[:-1], x[1:], u], axis=1)
    )
    cost = ElementFunction(lambda z: z[0] ** 2 / (2 * n), u[:, None])
    start = np.append(1.0, np.zeros(2 * n))
    lower = np.where(np.arange(2 * n + 1) == 0, 1.0, -np.inf)
    upper = np.where(np.arange(2 * n + 1) == 0, 1.0, np.inf)
    problem = {
        "obj": [cost, ElementFunction(lambda z: 0.5 * z[0] ** 2, [[n]])],
        "x0": start,
        "constr": rule,
    }
    return problem | {"bounds": (lower, upper)}, 0.8807971


def chained_rosenbrock_trigonometric(n):
    # Luksan, Vlcek, problem 5.1 (LUKVLE1): trigonometric-exponential constraints.
    def rule(z):
        a, b, c = z
        return 3 * b**3 + 2 * c - 5 + np.sin(b - c) * np.sin(b + c) + 4 * b - a * np.exp(a - b) - 3

    term = ElementFunction(lambda z: 100 * (z[0] ** 2 - z[1]) ** 2 + (z[0] - 1) ** 2, neighbours(n))
    start = np.where(np.arange(n) % 2 == 0, -1.2, 1.0)
    return {
        "obj": term,
        "x0": start,
        "constr": ElementFunction(rule, neighbours(n, 3)),
    }, 6.2324586324


def hanging_chain(n):
    # Links of length 1/n from (0, 0) to (0.6, 0), lowest energy: a catenary as n grows.
    x, y = np.arange(n + 1), n + 1 + np.arange(n + 1)
    links = np.stack([x[:-1], x[1:], y[:-1], y[1:]], axis=1)
    rule = ElementFunction(lambda z: n**2 * ((z[1] - z[0]) ** 2 + (z[3] - z[2]) ** 2) - 1.0, links)
    weight = ElementFunction(lambda z: (z[0] + z[1]) / (2 * n), links[:, 2:])
    s = np.linspace(0, 1, n + 1)
    start = np.append(0.6 * s, -0.4 * np.sin(np.pi * s))
    lower, upper = np.full(2 * n + 2, -np.inf), np.full(2 * n + 2, np.inf)
    ends = [0, n, n + 1, 2 * n + 1]
    lower[ends] = upper[ends] = [0.0, 0.6, 0.0, 0.0]
    problem = {"obj": weight, "x0": start, "constr": rule, "bounds": (lower, upper)}
    return problem, catenary_height(0.6)


def catenary_height(span):
    """Mean height of a hanging chain of length 1: y = a cosh(x/a) + c, by bisection."""
    low, high = 0.05, 5.0
    for _ in range(100):
        a = (low + high) / 2
        low, high = (a, high) if 2 * a * np.sinh(span / (2 * a)) > 1 else (low, a)
    s = np.linspace(-0.5, 0.5, 20001)
    y = np.sqrt(a**2 + s**2) - np.sqrt(a**2 + 0.25)
    return np.sum((y[1:] + y[:-1]) / 2) * (s[1] - s[0])


def obstacle(n):
    # A membrane over a square pressed from above, above a floor of -0.05: bounds that hold.
    m = round(np.sqrt(n))
    grid = np.arange(m * m).reshape(m, m)
    pairs = np.concatenate(
        [
            np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1),
            np.stack([grid[:, :-1].ravel(), grid[:, 1:].ravel()], axis=1),
        ]
    )
    h = 1.0 / (m - 1)
    stretch = ElementFunction(lambda z: 0.5 * (z[1] - z[0]) ** 2, pairs)
    load = ElementFunction(lambda z: 3.0 * h**2 * z[0], grid.reshape(-1, 1))
    edge = np.ones((m, m), dtype=bool)
    edge[1:-1, 1:-1] = False
    lower = np.where(edge, 0.0, -0.05).ravel()
    upper = np.where(edge, 0.0, np.inf).ravel()
    return {"obj": [stretch, load], "x0": np.zeros(m * m), "bounds": (lower, upper)}, None


CASES = {
    "arwhead": (arwhead, 5000),
    "liarwhd": (liarwhd, 1000),
    "nondia": (nondia, 1000),
    "tridia": (tridia, 10000),
    "srosenbr": (srosenbr, 10000),
    "woods": (woods, 4000),
    "hager1": (hager1, 2500),
    "chained rosenbrock": (chained_rosenbrock_trigonometric, 5000),
    "hanging chain": (hanging_chain, 200),
    "obstacle": (obstacle, 2500),
}


@pytest.mark.parametrize("name", long_but(["hanging chain", "hager1"], CASES))
def test_known_optima(name, without_ipopt):
    make, n = CASES[name]
    problem, best = make(n)
    found = minimize(**problem, options={"maxiter": 500})
    assert found.success, found.message
    assert found.violation < 1e-6
    if best is not None:
        tolerance = {"hager1": 1e-3, "hanging chain": 1e-3}.get(name, 1e-6)
        assert found.fun == pytest.approx(best, abs=tolerance)
    else:
        # No published digits to rely on: the conditions of a minimum, by other means.
        check_conditions(problem, found)


def check_conditions(problem, found):
    import archimedes as arc

    parts = problem["obj"] if isinstance(problem["obj"], list) else [problem["obj"]]
    gradient = np.zeros(found.x.size)
    for part in parts:
        slopes = arc.vmap(arc.grad(part.func))(found.x[part.index])
        np.add.at(gradient, part.index, slopes)
    rest = gradient + found.multipliers.bounds
    if "constr" in problem:
        part = problem["constr"]
        slopes = arc.vmap(arc.grad(part.func))(found.x[part.index])
        np.add.at(rest, part.index, slopes * found.multipliers.constr[:, None])
    assert np.abs(rest).max() < 1e-6


def test_setting_up_does_not_depend_on_the_number_of_places():
    term = lambda z: 100 * (z[1] - z[0] ** 2) ** 2 + (1 - z[0]) ** 2
    seconds = []
    for n in (20, 10_000):
        began = time.process_time()
        found = minimize(ElementFunction(term, neighbours(n)), np.zeros(n), options={"maxiter": 1})
        seconds.append(time.process_time() - began)
        assert found.status is Status.ITERATION_LIMIT
    assert seconds[1] < 2.0 + 3 * seconds[0]


def test_places_are_the_plain_function():
    n = 12
    term = ElementFunction(
        lambda z, k, p: p * (z[1] - k * z[0] ** 2) ** 2, neighbours(n), np.arange(11.0)
    )

    def plain(x, p):
        return np.sum(p * (x[1:] - np.arange(11.0) * x[:-1] ** 2) ** 2) + (x[0] - 1.0) ** 2

    rest = lambda x, p: (x[0] - 1.0) ** 2
    constr = {
        "steps": ElementFunction(lambda z, p: z[1] - z[0], neighbours(n)),
        "sum": lambda x, p: np.sum(x),
    }
    given = {"constr_bounds": {"steps": (-0.3, 0.3), "sum": (None, 3.0)}, "args": (2.0,)}
    one = minimize([term, rest], np.ones(n), constr=constr, **given)
    plain_constr = {**constr, "steps": lambda x, p: x[1:] - x[:-1]}
    two = minimize(plain, np.ones(n), constr=plain_constr, **given)
    assert one.success and two.success
    np.testing.assert_allclose(one.x, two.x, atol=1e-6)
    np.testing.assert_allclose(
        one.multipliers.constr["steps"], two.multipliers.constr["steps"], atol=1e-6
    )


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="index must be an array of integers"):
        ElementFunction(lambda z: z[0], [0.5, 1.5])
    with pytest.raises(ValueError, match="data 0 has 2 rows for 3 elements"):
        ElementFunction(lambda z, d: z[0], [[0], [1], [2]], [1.0, 2.0])
    with pytest.raises(ValueError, match="obj: index goes from 0 to 5, but there are 3 unknowns"):
        minimize(ElementFunction(lambda z: z[0] ** 2, [[0], [5]]), np.zeros(3))
