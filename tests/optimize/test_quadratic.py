"""Quadratic programs: random ones against another solver, certificates, batches, C, derivatives."""

from __future__ import annotations

import numpy as np
import pytest

import archimedes as arc
from archimedes.backends.lowering.analysis import cost
from archimedes.graph.regions import While
from archimedes.optimize import QPSolution, Status, qpsol, solve_qp
from archimedes.optimize.problems.tasks import Settings
from archimedes.optimize.solvers import sqp


def random_program(rng, n, m, rank):
    """A feasible program with a semidefinite cost and limits of all kinds."""
    root = rng.normal(size=(n, rank)) * 10.0 ** rng.uniform(-1, 1)
    q = rng.normal(size=n) * 10.0 ** rng.uniform(-2, 2)
    A = rng.normal(size=(m, n))
    z = A @ rng.normal(size=n)
    low = z - rng.uniform(0, 1, m) * (np.arange(m) >= m // 3)
    high = np.where(np.arange(m) < m // 3, low, z + rng.uniform(0, 1, m))
    high[m // 2 :: 2] = np.inf
    return root @ root.T, q, A, low, high, np.full(n, -5.0), np.full(n, 5.0)


def conditions(data, found):
    """What is left of the conditions of a minimum, all of which a solution meets."""
    P, q, A, low, high, lower, upper = data
    x, z = found.x, A @ found.x
    dual = P @ x + q + A.T @ found.lam_a + found.lam_x
    outside = [low - z, z - high, lower - x, x - upper]
    lam, values = np.append(found.lam_a, found.lam_x), np.append(z, x)
    low, high = np.append(low, lower), np.append(high, upper)
    slack = np.where(lam < 0, values - low, np.where(lam > 0, high - values, 0.0))
    slack = np.where(np.isfinite(slack), slack, 0.0)
    return [np.abs(dual).max(), max(np.max(part, initial=0.0) for part in outside)], (
        np.abs(lam * slack).max()
    )


@pytest.mark.long_cases("18*", "5*")
@pytest.mark.parametrize(("n", "m", "rank"), [(3, 2, 3), (5, 6, 3), (18, 10, 18)])
def test_conditions_of_a_minimum_on_random_programs(n, m, rank):
    rng = np.random.default_rng(n)
    for _ in range(5):
        data = random_program(rng, n, m, rank)
        found = solve_qp(*data)
        assert found.success, found
        scale = 1 + np.abs(data[1]).max() + np.abs(found.lam_a).max()
        rest, gap = conditions(data, found)
        assert max(rest) < 1e-6 * scale
        assert gap < 1e-6 * scale
        assert found.iterations < 25


def iterations(graph):
    """Yield what is repeated until something holds, wherever it is."""
    for region in graph.regions.values():
        if isinstance(region, While):
            yield region.body
        else:
            for body in region.bodies:
                yield from iterations(body)


@pytest.mark.long
def test_larger_programs_are_loops():
    """Their code does not grow with the number of unknowns; all ways give the same bits."""
    nodes = []
    for n in (18, 40):
        data = random_program(np.random.default_rng(n), n, 6, n)
        kernel = arc.compile(lambda q, data=data: solve_qp(data[0], q, *data[2:]))
        nodes.append(max(len(body) for body in iterations(kernel.recording(data[1]).blocks)))
    assert nodes[1] <= 1.1 * nodes[0]
    n = 18
    data = random_program(np.random.default_rng(n), n, 6, n)
    found = solve_qp(*data)
    rest, gap = conditions(data, found)
    scale = 1 + np.abs(data[1]).max() + np.abs(found.lam_a).max()
    assert found.success and max(*rest, gap) < 1e-6 * scale
    for backend in ("interpreter", "llvm"):
        other = arc.compile(lambda q: solve_qp(data[0], q, *data[2:]).x, backend=backend)
        assert np.array_equal(other(data[1]), found.x)
    batch = arc.vmap(lambda q: solve_qp(data[0], q, *data[2:]).x)(np.stack([data[1]] * 3))
    assert np.array_equal(batch[1], found.x)


def operations(figures):
    """Return how many operations a program has, those of its loops included.

    Elements that are only read, such as those that are passed on to a call, are left out.
    """
    bodies = (body for _, bodies in figures.regions for body in bodies)
    return figures.nodes - figures.by_op.get("element", 0) + sum(map(operations, bodies))


def test_programs_of_many_rows_are_loops():
    """The code of a program does not grow with the number of its rows."""

    def length(m):
        data = random_program(np.random.default_rng(9), 9, m, 9)
        return operations(arc.compile(solve_qp).statistics(*data))

    few, many = length(60), length(215)
    assert abs(many - few) <= 0.01 * few
    # Seen: 3,853; unrolled it has 16,588.
    assert many < 5_000


@pytest.mark.parametrize("backend", ["interpreter", pytest.param("llvm", marks=pytest.mark.long)])
def test_programs_of_many_rows_have_the_same_bits_everywhere(backend):
    data = random_program(np.random.default_rng(4), 4, 40, 4)
    found = solve_qp(*data)
    rest, gap = conditions(data, found)
    scale = 1 + np.abs(data[1]).max() + np.abs(found.lam_a).max()
    assert found.success and max(*rest, gap) < 1e-6 * scale

    @arc.compile(backend=backend)
    def solve(q):
        return solve_qp(data[0], q, *data[2:]).x

    assert np.array_equal(solve(data[1]), found.x)
    assert np.array_equal(arc.vmap(solve)(np.stack([data[1]] * 3))[1], found.x)


@pytest.mark.long
@pytest.mark.parametrize("n", [50, 100])
def test_dozens_of_unknowns(n):
    data = random_program(np.random.default_rng(n), n, n // 3, n)
    found = solve_qp(*data)
    rest, gap = conditions(data, found)
    scale = 1 + np.abs(data[1]).max() + np.abs(found.lam_a).max()
    assert found.success and max(*rest, gap) < 1e-6 * scale


@pytest.mark.long
def test_against_another_solver():
    import piqp

    data = random_program(np.random.default_rng(5), 5, 6, 3)
    P, q, A, low, high, lower, upper = data
    peer = piqp.DenseSolver()
    peer.settings.eps_abs = 1e-10
    peer.setup(P, q, np.zeros((0, 5)), np.zeros(0), A, low, high, lower, upper)
    peer.solve()
    theirs = 0.5 * peer.result.x @ P @ peer.result.x + q @ peer.result.x
    assert solve_qp(*data).fun == pytest.approx(theirs, rel=1e-7)


@pytest.mark.long
def test_resumed_from_a_program_nearby():
    """The same solution, in fewer iterations; a guess of another size is refused by name."""
    rng, saved = np.random.default_rng(2), []
    P, q, A, low, high, lower, upper = random_program(rng, 6, 5, 6)
    last = solve_qp(P, q, A, low, high, lower, upper)
    for _ in range(8):
        q = q + 0.01 * rng.normal(size=6) * np.abs(q).max()
        cold = solve_qp(P, q, A, low, high, lower, upper)
        warm = solve_qp(P, q, A, low, high, lower, upper, guess=last)
        assert cold.success and warm.success
        np.testing.assert_allclose(warm.x, cold.x, atol=1e-6)
        saved.append(cold.iterations - warm.iterations)
        last = warm
    assert min(saved) >= 0 and np.mean(saved) > 1.5
    cost, start = (lambda x, q: 0.5 * x @ P @ x + q @ x), np.zeros(6)
    kept = {"args": (q,), "lba": low, "uba": high}
    one = qpsol(cost, lambda x, q: A @ x, start, **kept)
    two = qpsol(cost, lambda x, q: A @ x, one.x, lam_a0=one.lam_a, **kept)
    np.testing.assert_allclose(two.x, one.x, atol=1e-6)
    assert two.iterations < one.iterations
    # Without bounds there are no multipliers of any.
    free = solve_qp(P, q, A, low, high)
    again = solve_qp(P, q, A, low, high, guess=free)
    np.testing.assert_allclose(again.x, free.x, atol=1e-6)
    with pytest.raises(ValueError, match=r"guess.x has shape \(6,\), not \(2,\)"):
        solve_qp(np.eye(2), np.ones(2), guess=last)


def test_no_limits_is_a_linear_system():
    P = np.array([[4.0, 1.0], [1.0, 3.0]])
    found = solve_qp(P, np.array([1.0, 2.0]))
    np.testing.assert_allclose(found.x, np.linalg.solve(P, [-1.0, -2.0]), rtol=1e-8)


def test_redundant_equations_are_harmless():
    A = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0]])
    found = solve_qp(np.eye(2), np.zeros(2), A, [1.0, 2.0, 1.0], [1.0, 2.0, 1.0])
    assert found.success
    np.testing.assert_allclose(found.x, 0.5, atol=1e-8)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        ((np.eye(2), np.zeros(2), np.ones((2, 2)), [1.0, -np.inf], [np.inf, 0.0]), "INFEASIBLE"),
        ((np.diag([1.0, 0.0]), np.array([0.0, -1.0])), "UNBOUNDED"),
        ((np.zeros((2, 2)), np.array([1.0, -1.0]), None, None, None, 0.0), "UNBOUNDED"),
        ((np.eye(2), np.array([np.nan, 0.0])), "NOT_FINITE"),
    ],
)
def test_programs_without_a_solution_say_so(data, status):
    found = solve_qp(*data)
    assert not found.success
    assert Status(int(found.status)) is Status[status]


def test_iterations_are_bounded():
    data = random_program(np.random.default_rng(2), 3, 2, 3)
    found = solve_qp(*data, max_iter=2)
    assert Status(int(found.status)) is Status.ITERATION_LIMIT
    assert found.iterations == 2


B = np.random.default_rng(0).normal(size=(3, 5))


def allocation(v):
    """Effectors within limits whose moments B u come closest to v."""
    return solve_qp(B.T @ B + 1e-3 * np.eye(5), -B.T @ v, lower=-0.5, upper=0.5)


V = np.random.default_rng(1).normal(size=(40, 3))


def test_a_batch_is_a_loop_to_the_bit_in_all_backends():
    batch = arc.vmap(allocation)(V)
    one = arc.compile(allocation)
    np.testing.assert_array_equal(batch.x, [one(v).x for v in V])
    slow = arc.compile(allocation, backend="interpreter")
    np.testing.assert_array_equal(slow(V[0]).x, batch.x[0])
    assert np.all(batch.status == 0)


@pytest.mark.long
def test_as_c(tmp_path):
    def effectors(v):
        return allocation(v).x

    project = arc.codegen(effectors, (V[0],), output_dir=tmp_path, return_names=["u"])
    assert project.verify(samples=8).outputs == 5


@pytest.mark.long
def test_derivatives_against_differences():
    P, q, A, low, high, lower, upper = random_program(np.random.default_rng(8), 4, 3, 4)

    def solution(q, shift, upper):
        # The first row is an equation, whose two limits move together.
        return solve_qp(P, q, A, low + shift, high + shift, lower, upper, tol=1e-12).x

    given = (q, np.zeros(3), upper)
    slopes = arc.jac(solution, argnums=(0, 1, 2))(*given)
    for k, slope in enumerate(slopes):
        for j in range(slope.shape[1]):
            ends = []
            for step in (1e-5, -1e-5):
                shifted = [np.array(v) for v in given]
                shifted[k][j] += step
                ends.append(solution(*shifted))
            np.testing.assert_allclose(slope[:, j], (ends[0] - ends[1]) / 2e-5, atol=1e-5)


def test_qpsol_on_trees():
    def cost(x, target):
        return np.sum((x["u"] - target) ** 2) + 0.5 * x["v"] ** 2 + 3.0

    found = qpsol(
        cost,
        lambda x, target: {"sum": np.sum(x["u"]) + x["v"] - 1.0},
        {"u": np.zeros(2), "v": 0.0},
        args=(np.array([2.0, 1.0]),),
        lba={"sum": 0.0},
        uba={"sum": 0.0},
        bounds=(None, {"u": 1.8, "v": None}),
    )
    assert isinstance(found, QPSolution)
    # By hand: minimise with u + v = 1: du = -lam / 2, dv = -lam.
    lam = found.lam_a["sum"]
    np.testing.assert_allclose(found.x["u"], np.array([2.0, 1.0]) - lam / 2, atol=1e-7)
    assert found.x["v"] == pytest.approx(-lam, abs=1e-7)
    assert found.fun == pytest.approx(cost(found.x, np.array([2.0, 1.0])))


def test_qpsol_recorded():
    def nearest(p):
        return qpsol(
            lambda x, p: np.sum((x - p) ** 2), None, np.zeros(3), args=(p,), bounds=(0, 1)
        ).x

    p = np.array([-1.0, 0.5, 3.0])
    np.testing.assert_allclose(arc.compile(nearest)(p), [0, 0.5, 1], atol=1e-8)
    np.testing.assert_allclose(arc.jac(nearest)(p), np.diag([0, 1, 0]), atol=1e-6)


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="obj is not quadratic"):
        qpsol(lambda x: np.sum(x**4 - x**2 + x), None, np.ones(2), bounds=(-1, 1))
    with pytest.raises(ValueError, match=r"P has shape \(2, 3\)"):
        solve_qp(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"A has shape \(2, 3\), not \(m, 2\)"):
        solve_qp(np.eye(2), np.zeros(2), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="lower and upper must broadcast"):
        solve_qp(np.eye(2), np.zeros(2), lower=np.zeros(3))
    with pytest.raises(ValueError, match="lba and uba: no number lies between"):
        qpsol(lambda x: np.sum(x**2), lambda x: np.sum(x), np.zeros(2), lba=2.0, uba=1.0)
    crossed = arc.compile(lambda k: solve_qp(np.eye(2), np.zeros(2), lower=k, upper=-k).status)
    assert Status(int(crossed(np.ones(2)))) is Status.INFEASIBLE
    with pytest.raises(TypeError, match="obj must be a function"):
        qpsol(3.0, None, np.zeros(2))


@pytest.mark.parametrize("n", [5, 16, pytest.param(18, marks=pytest.mark.long)])
def test_contradictions_of_many_unknowns_are_seen(n):
    rows = {"A": np.ones((2, n)), "low": [1.0, -np.inf], "high": [np.inf, -1.0]}
    assert solve_qp(np.eye(n), np.ones(n), **rows).status == Status.INFEASIBLE


def test_costs_that_are_no_convex_functions_are_refused():
    with pytest.raises(ValueError, match="P is not symmetric"):
        solve_qp([[1.0, 2.0], [0.0, 1.0]], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"least eigenvalue is -1.* use minimize"):
        solve_qp(-np.eye(2), np.ones(2))
    np.testing.assert_allclose(solve_qp([[1, 0], [0, 1]], [1, 2]).x, [-1.0, -2.0], rtol=1e-9)


@pytest.mark.long
def test_nonlinear_programs_hardly_grow_with_their_unknowns():
    """Larger ones are loops over whole arrays: first solves take no longer."""
    solver = arc.nlp_solver(lambda x, p: np.sum((x - p) ** 4), lambda x, p: x[:2], method="sqp")

    def length(n):
        program = solver.program(np.zeros(n), (1.0,))
        kernel = sqp.record(program, Settings(tol=1e-8, maxiter=60))
        limits = (np.zeros(n), np.ones(n), np.zeros(2), np.ones(2))
        return cost(kernel.recording(np.zeros(n), limits, 1.0).blocks, {})

    assert length(80) < 1.4 * length(40)


def near_two(x):
    return np.sum((x - 2.0) ** 2)


PIECEWISE = [
    lambda x: np.maximum(x[0], x[1]),  # at 0 and at 1 its derivatives are those of x[0]
    lambda x: np.abs(x[0]) + x[1],
    lambda x: np.where(x[0] > 5.0, x[1], x[0]),
    lambda x: x + np.floor(x),
    lambda x: np.sort(x)[1],
]


@pytest.mark.parametrize("constr", PIECEWISE)
def test_constraints_that_are_linear_in_places_only_are_refused(constr):
    with pytest.raises(ValueError, match="constr is not linear"):
        qpsol(near_two, constr, np.zeros(2), uba=1.0)
    with pytest.raises(ValueError, match="constr is not linear"):
        arc.compile(lambda k: qpsol(near_two, constr, np.zeros(2), uba=k).x)(1.0)


@pytest.mark.parametrize(
    "obj",
    [
        lambda x: np.sum(np.abs(x - 1.0)),
        lambda x: np.sum(x**2) + np.maximum(x[0], x[1]),
        lambda x: np.sum(np.where(x > 0.0, 2.0, 1.0) * x**2),
        lambda x: np.sum((x - 1.0) ** 2 * x * (x - 1.0)),
    ],
)
def test_costs_that_are_quadratic_in_places_only_are_refused(obj):
    with pytest.raises(ValueError, match="obj is not quadratic"):
        qpsol(obj, None, np.zeros(2))


def test_programs_of_loops_are_linear_and_quadratic():
    """Second derivatives of a scan over squares, and those of large arrays, do not read x."""
    x = np.zeros(40)

    def obj(x):
        return arc.scan(lambda c, u: (0.9 * c + u, (c - 1.0) ** 2), x[0], x[1:])[1].sum() + x @ x

    found = qpsol(obj, lambda x: np.cumsum(x), x, uba=np.linspace(0.0, 3.0, 40))
    assert found.success
    best = qpsol(obj, lambda x: np.cumsum(x) - 0.0, x, uba=np.linspace(0.0, 3.0, 40) + 1e-4)
    assert found.fun == pytest.approx(obj(found.x), rel=1e-9) and best.fun <= found.fun


def test_qpsol_without_limits_is_unconstrained():
    """Limits that are both None were read as equations, constr(x) = 0."""
    found = qpsol(near_two, lambda x: x[0] + x[1], np.zeros(2))
    np.testing.assert_allclose(found.x, 2.0, rtol=1e-9)
    assert found.lam_a == 0.0
