"""The interior-point method on banded systems: dense algebra and IPOPT are the oracles."""

from __future__ import annotations

import numpy as np
import pytest

from archimedes.optimize import ElementFunction, OptimalControl, Status, minimize
from archimedes.optimize.problems.blocks import Block, Evaluator, Structure
from archimedes.optimize.solvers import ipopt
from archimedes.optimize.solvers.interior_point.banded_system import BandedSystem, find_chain
from archimedes.optimize.solvers.interior_point.loop_descriptions import native_loops


def chain_problem(n, touching):
    """Return the evaluator of a chain of n unknowns; ``touching`` adds one that all know."""
    rng = np.random.default_rng(3)
    index = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    names = rng.permutation(n)
    index = names[index]
    if touching:
        index = np.concatenate([index, np.full((n - 1, 1), n)], axis=1)

    def each(z):
        total = z[0] ** 2 + 0.3 * z[0] * z[1] + np.sin(z[1])
        last = z[2] if touching else 1.0
        return np.stack([total * last + last**2, z[1] * z[0] + last * z[0]])

    rows = np.stack([np.full(n - 1, -1), np.arange(n - 1)], axis=1)
    block = Block(each, index, rows)
    structure = Structure([block.patterns(())], n + touching, n - 1)
    return Evaluator([block], structure, ())


@pytest.mark.parametrize("touching", [0, 1])
def test_banded_systems_against_dense_ones(touching):
    n = 30
    evaluator = chain_problem(n, touching)
    structure = evaluator.structure
    free = np.ones(n + touching, dtype=bool)
    free[[4, 11]] = False
    chain = find_chain(structure.patterns, free, None)
    assert chain.border.size == touching
    system = BandedSystem(structure, chain, native_loops())
    assert system.sizes.width <= 2
    rng = np.random.default_rng(0)
    x, lam = rng.normal(size=n + touching), rng.normal(size=structure.m)
    entries, curvature = evaluator.slopes(x)[1], evaluator.curvature(x, 1.0, lam)
    kept = np.concatenate([chain.band, chain.border])
    A = structure.jacobian(entries)[:, kept]
    H = structure.hessian(curvature)[np.ix_(kept, kept)]
    D = np.where(np.arange(structure.m) % 3 == 0, 0.5, 0.0)
    system.take_jacobian(evaluator.slopes(x)[1])
    system.take_hessian(evaluator.curvature(x, 1.0, lam))
    r, rc = rng.normal(size=kept.size), rng.normal(size=structure.m)
    for shift in (0.0, 0.3, 5.0, 100.0):
        diagonal = np.full(kept.size, shift)
        K = np.block([[H + np.diag(diagonal), A.T], [A, -np.diag(D)]])
        negative = int(np.sum(np.linalg.eigvalsh(K) < 0))
        assert system.factor(diagonal, D) == (negative == structure.m)
    dx, dlam, left = system.solve(r, rc)
    assert left < 1e-6
    np.testing.assert_allclose(
        np.concatenate([dx, dlam]), np.linalg.solve(K, np.concatenate([r, rc])), atol=1e-7
    )


def test_the_order_of_a_chain_is_found():
    n = 200
    rng = np.random.default_rng(1)
    order = rng.permutation(n)
    pairs = order[np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)]
    target = rng.normal(size=n)
    result = minimize(
        [
            lambda x: 0.5 * np.sum((x - target) ** 2),
            ElementFunction(lambda z: (z[1] - z[0]) ** 2, pairs),
        ],
        np.zeros(n),
        method="ipm",
    )
    L = np.zeros((n, n))
    for i, j in pairs:
        L[np.ix_([i, j], [i, j])] += [[2, -2], [-2, 2]]
    np.testing.assert_allclose(result.x, np.linalg.solve(np.eye(n) + L, target), atol=1e-8)


@pytest.mark.usefixtures("ipopt")
def test_multipliers_are_those_of_ipopt():
    problem = {
        "obj": lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2 + 0.1 * x[2] ** 2,
        "x0": [0.5, 0.5, 0.5],
        "constr": {"disc": lambda x: x[0] ** 2 + x[1] ** 2, "plane": lambda x: x[0] + x[2]},
        "constr_bounds": {"disc": (None, 1.0), "plane": (1.0, 1.0)},
        "bounds": ([None, None, 0.3], [0.8, None, None]),
        "options": {"tol": 1e-9},
    }
    mine, peer = minimize(**problem, method="ipm"), minimize(**problem, method="ipopt")
    assert mine.solver == "ipm"
    np.testing.assert_allclose(mine.x, peer.x, atol=1e-7)
    np.testing.assert_allclose(mine.multipliers.bounds, peer.multipliers.bounds, atol=1e-5)
    for name in ("disc", "plane"):
        assert mine.multipliers.constr[name] == pytest.approx(
            peer.multipliers.constr[name], abs=1e-5
        )


def test_what_cannot_be_solved_says_so():
    square = lambda x: np.sum(x**2)
    none = minimize(square, [1.0, 1.0], constr=lambda x: x[0] ** 2 + 1.0 + 0.0 * x[1], method="ipm")
    assert none.status is Status.INFEASIBLE
    assert "no point near here" in none.message
    falls = minimize(lambda x: -np.sum(x**2), [1.0, 1.0], method="ipm")
    assert falls.status is Status.UNBOUNDED
    rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    short = minimize(rosenbrock, [-1.2, 1.0], method="ipm", options={"maxiter": 2})
    assert short.status is Status.ITERATION_LIMIT
    assert short.iterations == 2
    late = minimize(rosenbrock, [-1.2, 1.0], method="ipm", options={"maxtime": 1e-9})
    assert late.status is Status.TIME_LIMIT
    bad = minimize(lambda x: np.sum(np.log(x)), [-1.0], method="ipm")
    assert bad.status is Status.NOT_FINITE
    with pytest.raises(ValueError, match="option='mu_target' is not one of"):
        minimize(square, [1.0], method="ipm", options={"mu_target": 1.0})


def test_callbacks_stop_it_and_errors_pass():
    seen = []

    def watch(iteration):
        seen.append(iteration.number)
        return iteration.number >= 3

    rosenbrock = lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
    stopped = minimize(rosenbrock, [-1.2, 1.0], method="ipm", callback=watch)
    assert stopped.status is Status.INTERRUPTED
    assert seen == [0, 1, 2, 3]

    def fail(iteration):
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        minimize(rosenbrock, [-1.2, 1.0], method="ipm", callback=fail)


def test_equations_that_depend_on_each_other():
    # The third follows from the first two: their Jacobian has no full rank.
    def rows(x):
        first, second = x[0] + x[1] - 1.0, x[1] - x[2]
        return np.stack([first, second, first + second])

    found = minimize(lambda x: np.sum((x - 3.0) ** 2), np.zeros(3), constr=rows, method="ipm")
    assert found.success, found.message
    # With x1 = x2 = a, x0 = 1 - a: least (a + 2)^2 + 2 (a - 3)^2 is at a = 4/3.
    np.testing.assert_allclose(found.x, [-1 / 3, 4 / 3, 4 / 3], atol=1e-6)
    assert found.violation < 1e-7


@pytest.mark.long_cases("mult*", "radau3")
@pytest.mark.usefixtures("ipopt")
@pytest.mark.parametrize("method", ["hermite-simpson", "radau3", "multiple-shooting"])
def test_the_optimum_of_ipopt_in_optimal_control(method):
    problem = OptimalControl(
        lambda t, x, u: np.array([x[1], u - 0.2 * x[1] ** 2]),
        terminal_cost=lambda t0, x0, tf, xf: tf,
        running_cost=lambda t, x, u: 0.01 * u**2,
        initial=[0.0, 0.0],
        final=[1.0, 0.0],
        tf=(0.1, 10.0),
        control_bounds=(-1.0, 1.0),
        path=lambda t, x, u: x[1],
        path_bounds=(None, 0.7),
    )
    guess = {"x": np.zeros(2), "u": 0.0, "tf": 1.5}
    mine = problem.solve(guess, intervals=30, scheme=method, method="ipm")
    peer = problem.solve(guess, intervals=30, scheme=method, method="ipopt")
    assert mine.success and peer.success
    assert "IPOPT" not in mine.answer.details
    assert mine.fun == pytest.approx(peer.fun, rel=1e-7)
    assert mine.iterations <= 1.2 * peer.iterations + 3
    again = problem.solve(mine, intervals=30, scheme=method)
    assert again.iterations <= mine.iterations / 2


def test_nothing_to_move():
    """Bounds that hold every unknown, and functions without curvature."""
    square = lambda x: np.sum(x**2)
    held = {"bounds": ([1.0, 2.0], [1.0, 2.0]), "method": "ipm"}
    found = minimize(square, [1.0, 2.0], **held)
    assert found.success and found.fun == 5.0
    np.testing.assert_array_equal(found.multipliers.bounds, [-2.0, -4.0])
    beyond = minimize(square, [1.0, 2.0], constr=lambda x: x[0] + x[1] - 4.0, **held)
    assert beyond.status is Status.INFEASIBLE
    kinked = minimize(lambda x: np.sum(np.abs(x - 1.0)), [3.0, 2.0], method="ipm")
    np.testing.assert_allclose(kinked.x, 1.0, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("case", [(100, 3.1), (120, 3.0), (180, 3.0), (400, 3.0)])
def test_meshes_of_the_quadrotor(case, monkeypatch):
    """Its final attitude is almost one equation too many: each stopped at a limit, or stalled."""
    from benchmarks.optimisation import states_along
    from benchmarks.optimisation_problems import PROBLEMS as FLIGHTS

    def none(*_):
        raise ImportError("none here")

    monkeypatch.setattr(ipopt, "solve", none)
    flight, (intervals, tf) = FLIGHTS["quadrotor, 13 states"], case
    low, high, hover = flight.control
    problem = OptimalControl(
        lambda t, x, u: np.stack(flight.rate(np, x, u)),
        running_cost=lambda t, x, u: flight.running(np, x, u),
        terminal_cost=lambda t0, x0, tf, xf: tf,
        initial=flight.initial,
        final=flight.final,
        tf=flight.tf[:2],
        control_bounds=(low, high),
        path=lambda t, x, u: flight.path(x),
        path_bounds=(flight.path_low, None),
    )
    guess = {"x": lambda s: states_along(flight, s), "u": np.full(4, hover), "tf": tf}
    found = problem.solve(guess, intervals=intervals, options={"maxiter": 250})
    assert found.success, found.message
    # IPOPT finds 1.8275 as well.
    assert found.fun == pytest.approx(1.8275, abs=2e-4)


def test_wrong_words_are_named():
    rest = OptimalControl(lambda t, x, u: u, running_cost=lambda t, x, u: u**2, initial=0.0)
    guess = {"x": 0.0, "u": 0.0}
    with pytest.raises(ValueError, match="method='foo' is not one of"):
        rest.solve(guess, method="foo")
    with pytest.raises(ValueError, match=r"intervals = 2\.5 must be a whole number"):
        rest.solve(guess, intervals=2.5)
    with pytest.raises(ValueError, match="a mesh that rises from 0 to 1"):
        rest.solve(guess, intervals=np.zeros((2, 2)))
    growing = {"x": lambda s: np.zeros(1 if s < 0.5 else 2), "u": 0.0}
    with pytest.raises(ValueError, match=r"guess\['x'\] has 1 numbers at s = 0, but 2 at s"):
        rest.solve(growing)
    with pytest.raises(ValueError, match=r"options\['maxiter'\] = 'a' must be a positive number"):
        minimize(lambda x: x**2, 1.0, options={"maxiter": "a"})
    with pytest.raises(ValueError, match="x0 must be a tree of numbers"):
        minimize(lambda x: np.sum(x**2), [1j])


A_ALP = np.array([[-10.0, 0, 0, 0], [0, -2, 0, 0], [0, 0, -3, 5], [0, 0, 5, -3]])
B_ALP = np.array([[1.0, 1], [1, 2], [1, -1], [1, 3]])
PEAKS = ((3.0, 3.0, 12.0), (3.0, 6.0, 10.0), (3.0, 10.0, 6.0), (8.0, 15.0, 4.0))


def terrain(t):
    return 0.01 + sum(height * np.exp(-steep * (t - at) ** 2) for height, at, steep in PEAKS)


@pytest.mark.parametrize("intervals", [30, pytest.param(100, marks=pytest.mark.long)])
def test_the_alp_rider(intervals, monkeypatch):
    """J. Betts, "Practical methods for optimal control" (SIAM 2010): terrain following.

    Its filter kept points that no step could better: the limit of 3,000 iterations was reached.
    """
    monkeypatch.setattr(ipopt, "solve", refuse)
    problem = OptimalControl(
        lambda t, x, u: A_ALP @ x + B_ALP @ u,
        running_cost=lambda t, x, u: 100 * (x @ x) + 0.01 * (u @ u),
        initial=[2.0, 1.0, 2.0, 1.0],
        final=[2.0, 3.0, 1.0, -2.0],
        tf=20.0,
        path=lambda t, x, u: x @ x - terrain(t),
        path_bounds=(0.0, None),
    )
    found = problem.solve({"x": np.zeros(4), "u": np.zeros(2)}, intervals=intervals)
    assert found.success, found.message
    assert found.iterations < 200
    # IPOPT's minimum on the same mesh.
    assert found.fun == pytest.approx({30: 2847.89, 100: 2179.568}[intervals], rel=1e-5)


def refuse(*_):
    raise ImportError("none here")
