"""Iterative LQR: Riccati recursions, quadratic programs, published problems, other solvers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are

import archimedes as arc
from archimedes.errors import ShapeDtypeError, TraceError
from archimedes.optimize import OptimalControl, Status, ilqr, minimize, solve_qp
from archimedes.spatial import Quaternion

RNG = np.random.default_rng(3)
A = np.array([[1.0, 0.1, 0.0], [-0.2, 0.95, 0.1], [0.0, 0.3, 1.1]])
B = np.array([[0.0, 0.1], [0.2, 0.0], [0.1, 0.3]])
Q, R = np.diag([1.0, 2.0, 0.5]), np.array([[0.3, 0.1], [0.1, 0.2]])
X0 = np.array([1.0, -2.0, 0.5])


def linear(x, u):
    return A @ x + B @ u


def quadratic(x, u):
    return 0.5 * (x @ Q @ x + u @ R @ u)


def riccati(P, steps):
    """Return gains and the matrix of the cost, by the recursion as textbooks have it."""
    gains = []
    for _ in range(steps):
        K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
        P = Q + A.T @ P @ (A + B @ K)
        gains.append(K)
    return np.array(gains[::-1]), P


def test_a_linear_problem_takes_one_iteration():
    steps, P_end = 25, np.diag([3.0, 1.0, 2.0])
    guess = RNG.normal(size=(steps, 2))
    found = ilqr(linear, X0, guess, quadratic, lambda x: 0.5 * x @ P_end @ x)
    gains, P = riccati(P_end, steps)
    assert found.status == Status.SOLVED and found.iterations == 1 and found.success
    np.testing.assert_allclose(found.gains, gains, atol=1e-10)
    assert found.fun == pytest.approx(0.5 * X0 @ P @ X0, rel=1e-12)
    x = X0
    for k in range(steps):
        np.testing.assert_allclose(found.x[k], x, atol=1e-10)
        np.testing.assert_allclose(found.u[k], gains[k] @ x, atol=1e-10)
        x = linear(x, gains[k] @ x)
    assert found.history[1] == found.fun and np.isnan(found.history[2:]).all()


def test_an_endless_horizon_has_the_gains_of_the_algebraic_equation():
    P = solve_discrete_are(A, B, Q, R)
    K = -np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    found = ilqr(linear, X0, np.zeros((10, 2)), quadratic, lambda x: 0.5 * x @ P @ x)
    np.testing.assert_allclose(found.gains, np.tile(K, (10, 1, 1)), atol=1e-10)
    assert found.fun == pytest.approx(0.5 * X0 @ P @ X0, rel=1e-12)


def condensed(steps):
    """Return the same problem as a quadratic program of all controls: Hessian and slope."""
    H, q = np.kron(np.eye(steps), R), np.zeros(2 * steps)
    free, G = X0, np.zeros((3, 2 * steps))
    for k in range(steps):
        H, q = H + G.T @ Q @ G, q + G.T @ Q @ free
        pick = np.eye(2 * steps)[2 * k : 2 * k + 2]
        free, G = A @ free, A @ G + B @ pick
    return H + G.T @ Q @ G, q + G.T @ Q @ free


@pytest.mark.parametrize("limit", [2.0, 4.0])
def test_limits_are_those_of_the_quadratic_program(limit):
    steps = 15
    wanted = solve_qp(*condensed(steps), lower=-limit, upper=limit, tol=1e-12).x.reshape(-1, 2)
    found = ilqr(
        *(linear, X0, np.zeros((steps, 2)), quadratic, lambda x: 0.5 * x @ Q @ x),
        control_bounds=(-limit, limit),
        tol=1e-9,
    )
    assert found.success
    np.testing.assert_allclose(found.u, wanted, atol=1e-7)
    held = np.abs(found.u) == limit
    assert 0 < held.sum() < held.size
    assert np.all(found.gains[held] == 0.0) and np.all(np.any(found.gains[~held] != 0.0, axis=-1))


def test_limits_on_one_side_and_controls_as_trees():
    """The second control is not limited; states and controls are dicts, the limits go by name."""
    found = ilqr(
        lambda x, u: {"all": linear(x["all"], np.stack([u["a"], u["b"]]))},
        {"all": X0},
        {"a": np.zeros(15), "b": np.zeros(15)},
        lambda x, u: quadratic(x["all"], np.stack([u["a"], u["b"]])),
        lambda x: 0.5 * x["all"] @ Q @ x["all"],
        control_bounds=({"a": None, "b": None}, {"a": 1.0, "b": None}),
        tol=1e-9,
    )
    high = np.tile([1.0, np.inf], 15)
    wanted = solve_qp(*condensed(15), upper=high, tol=1e-12).x.reshape(-1, 2)
    np.testing.assert_allclose(found.u["a"], wanted[:, 0], atol=1e-7)
    np.testing.assert_allclose(found.u["b"], wanted[:, 1], atol=1e-7)
    assert found.u["a"].max() == 1.0 and found.x["all"].shape == (16, 3)


@pytest.mark.long
@pytest.mark.parametrize("limit", [np.inf, 0.3])
def test_many_controls(limit):
    """More than are solved for in straight lines, some of which are fixed by their limits."""
    rng = np.random.default_rng(8)
    B, C = rng.normal(size=(4, 20)), 0.3 * np.eye(4)
    low, high = np.full(20, -limit), np.full(20, limit)
    low[3] = high[3] = 0.1
    x0, steps = 3.0 * rng.normal(size=4), 3
    found = ilqr(
        lambda x, u: C @ x + B @ u,
        *(x0, np.zeros((steps, 20)), lambda x, u: 0.5 * (x @ x + u @ u), lambda x: 5.0 * x @ x),
        control_bounds=(low, high),
        tol=1e-9,
    )
    free, G = x0, np.zeros((4, 20 * steps))
    H, q = np.eye(20 * steps), np.zeros(20 * steps)
    for k in range(steps):
        free, G = C @ free, C @ G + B @ np.eye(20 * steps)[20 * k : 20 * k + 20]
        weight = 10.0 if k == steps - 1 else 1.0
        H, q = H + weight * G.T @ G, q + weight * G.T @ free
    edges = {"lower": np.tile(low, steps), "upper": np.tile(high, steps)}
    wanted = solve_qp(H, q, tol=1e-12, **edges).x.reshape(steps, 20)
    assert found.success and np.all(found.u[:, 3] == 0.1)
    np.testing.assert_allclose(found.u, wanted, atol=1e-7)


def test_units_do_not_matter():
    """The same problem in mN, mm and mJ takes the same iterations to the same end."""

    def cart(x, u, m, N, J, end):
        f = u / N
        p, v = x[0] / m + 0.1 * x[1] / m, x[1] / m + 0.1 * (f - np.sin(x[0] / m))
        if end:
            return J * (10.0 * (x[0] / m - 1.0) ** 2 + (x[1] / m) ** 2)
        return m * np.stack([p, v])

    runs = []
    for m, N, J in ((1.0, 1.0, 1.0), (1e3, 1e6, 1e-9)):
        found = ilqr(
            lambda x, u: cart(x, u, m, N, J, False),  # noqa: B023
            *(np.zeros(2), np.zeros(20), lambda x, u: 1e-2 * J * (u / N) ** 2),  # noqa: B023
            lambda x: cart(x, 0.0, m, N, J, True),  # noqa: B023
            control_bounds=(-2.0 * N, 2.0 * N),
        )
        assert found.success
        runs.append((int(found.iterations), found.u / N, found.fun / J))
    assert runs[0][0] == runs[1][0]
    np.testing.assert_allclose(runs[1][1], runs[0][1], atol=1e-9)
    assert runs[1][2] == pytest.approx(runs[0][2], rel=1e-12)


def pole(t, x, u):
    """Return the rates of a pole of 0.3 kg on a cart of 1 kg."""
    c, s = np.cos(x[1]), np.sin(x[1])
    push = u + 0.3 * s * (0.5 * x[3] ** 2 + 9.81 * c)
    turn = -(0.15 * c * s * x[3] ** 2 + u * c + 1.3 * 9.81 * s) / 0.5
    return np.stack([x[2], x[3], push / (1.0 + 0.3 * s**2), turn / (1.0 + 0.3 * s**2)])


def swing_up(limit, second_order, **settings):
    """Return the swing of a pole in 2 s: 50 forces within limits, for 4 steps of RK4 each."""
    goal, h = np.array([0.0, np.pi, 0.0, 0.0]), 0.01

    def step(x, u):
        for _ in range(4):
            a = pole(0.0, x, u)
            b = pole(0.0, x + h / 2 * a, u)
            c = pole(0.0, x + h / 2 * b, u)
            d = pole(0.0, x + h * c, u)
            x = x + h / 6 * (a + 2 * b + 2 * c + d)
        return x

    return ilqr(
        *(step, np.zeros(4), np.zeros(50), lambda x, u: 4 * h * 0.01 * u**2),
        lambda x: 10.0 * np.sum((x - goal) ** 2),
        control_bounds=(-limit, limit),
        second_order=second_order,
        max_iter=3000,
        **settings,
    )


@pytest.mark.long
@pytest.mark.parametrize("limit", [10.0, 20.0])
def test_a_swing_up_is_the_minimum_of_multiple_shooting(limit):
    """The same discrete problem with all states as unknowns, by another solver from here."""
    goal = np.array([0.0, np.pi, 0.0, 0.0])
    problem = OptimalControl(
        pole,
        running_cost=lambda t, x, u: 0.01 * u**2,
        terminal_cost=lambda t0, x0, tf, xf: 10.0 * np.sum((xf - goal) ** 2),
        initial=np.zeros(4),
        tf=2.0,
        control_bounds=(-limit, limit),
    )
    for second_order in (False, True):
        found = swing_up(limit, second_order)
        assert found.status == Status.SOLVED and np.abs(found.u).max() <= limit
        at = lambda path: lambda s, p=path: p[min(int(s * 50 + 1e-9), len(p) - 1)]
        guess = {"x": at(found.x), "u": at(found.u)}
        other = problem.solve(
            guess, intervals=50, scheme="multiple-shooting", options={"tol": 1e-10}
        )
        assert other.success
        assert found.fun == pytest.approx(other.fun, rel=1e-7)
        np.testing.assert_allclose(found.x[::10], other.trajectory.x[::10], atol=2e-4)
    assert limit == 20.0 or np.abs(found.u).max() == limit


@pytest.mark.long
def test_parking_a_car():
    """The problem of Tassa, Mansard and Todorov (2014), section V, against an interior point."""
    h, axle = 0.03, 2.0

    def car(x, u):
        roll = h * x[3]
        back = axle + roll * np.cos(u[0]) - np.sqrt(axle**2 - (roll * np.sin(u[0])) ** 2)
        turn = np.arcsin(np.sin(u[0]) * roll / axle)
        return x + np.stack([np.cos(x[2]) * back, np.sin(x[2]) * back, turn, h * u[1]])

    def smooth_abs(x, p):
        return np.sqrt(x * x + p * p) - p

    def running(x, u):
        steer = 1e-2 * (u[0] ** 2 + 0.01 * u[1] ** 2)
        return steer + 1e-3 * np.sum(smooth_abs(x[:2], 0.1))

    def terminal(x):
        near = smooth_abs(x, np.array([0.01, 0.01, 0.01, 1.0]))
        return np.array([0.1, 0.1, 1.0, 0.3]) @ near

    start, limit = np.array([1.0, 1.0, 1.5 * np.pi, 0.0]), np.array([0.5, 2.0])
    found = ilqr(
        *(car, start, np.zeros((500, 2)), running, terminal),
        control_bounds=(-limit, limit),
        second_order=True,
        max_iter=500,
    )
    assert found.status == Status.SOLVED
    assert np.abs(found.x[-1][:3]).max() < 0.01  # parked: m, m, rad
    assert np.all(np.abs(found.u).max(axis=0) == limit)

    def path(z):
        return np.concatenate([start[None], z["x"]])

    edge = {"x": None, "u": np.tile(limit, (500, 1))}
    other = minimize(
        lambda z: np.sum(arc.vmap(running)(path(z)[:-1], z["u"])) + terminal(z["x"][-1]),
        {"x": found.x[1:], "u": found.u},
        constr=lambda z: z["x"] - arc.vmap(car)(path(z)[:-1], z["u"]),
        bounds=({"x": None, "u": -edge["u"]}, edge),
    )
    assert other.success
    assert found.fun == pytest.approx(other.fun, rel=1e-6)


@arc.struct
class Turning:
    att: Quaternion
    w: np.ndarray


H = 0.1


def turn(x, u):
    """A body of unit inertia turns about its axes."""
    w = x.w + H * u
    return Turning(x.att.mul(Quaternion.exp(H * w)), w)


def moved(x, e):
    return Turning(x.att.mul(Quaternion.exp(e[:3])), x.w + e[3:])


def between(x0, x1):
    return np.concatenate([x0.att.inv().mul(x1.att).log(), x1.w - x0.w])


@pytest.mark.long_cases("frame1")
@pytest.mark.parametrize("frame", [[0.0, 0.0, 0.0], [1.0, -2.0, 0.7]])
def test_attitudes(frame):
    """A slew about one axis is linear in its angle: the same as with the angle alone.

    Wherever the start is: errors of attitudes do not know a frame.
    """
    base, axis = Quaternion.exp(np.array(frame)), np.array([0.6, 0.0, 0.8])
    goal = base.mul(Quaternion.exp(2.5 * axis))

    def terminal(x):
        off = goal.inv().mul(x.att).log()
        return 50.0 * (off @ off) + 5.0 * (x.w @ x.w)

    spaces = {"integrate": moved, "difference": between}
    start = Turning(base, np.zeros(3))
    found = ilqr(turn, start, np.zeros((20, 3)), lambda x, u: 0.1 * u @ u, terminal, **spaces)
    plain = ilqr(
        lambda x, u: np.stack([x[0] + H * (x[1] + H * u), x[1] + H * u]),
        *(np.zeros(2), np.zeros(20), lambda x, u: 0.1 * u**2),
        lambda x: 50.0 * (x[0] - 2.5) ** 2 + 5.0 * x[1] ** 2,
    )
    assert found.success and found.gains.shape == (20, 3, 6)
    assert found.fun == pytest.approx(plain.fun, rel=1e-9)
    np.testing.assert_allclose(found.u, plain.u[:, None] * axis, atol=1e-7)
    np.testing.assert_allclose(np.linalg.norm(found.x.att.array, axis=-1), 1.0, atol=1e-12)


def track(x, u, wanted, gain):
    return x + gain * u


def test_data_of_each_step_and_arguments():
    """Without a cost of the controls they take the state to each reference at once."""
    wanted = np.sin(np.arange(12.0))
    found = ilqr(
        *(track, 0.3, np.zeros(12), lambda x, u, wanted, gain: (x + gain * u - wanted) ** 2),
        data=wanted,
        args=(2.0,),
    )
    assert found.success
    np.testing.assert_allclose(found.x[1:], wanted, atol=1e-12)
    assert found.fun < 1e-24


def test_the_same_functions_for_other_sizes():
    """What is recorded for one size must not be taken for another."""
    step, cost = lambda x, u: x + np.sum(u), lambda x, u: x**2 + np.sum(u**2)
    for m in (1, 3, 2):
        found = ilqr(step, 1.0, np.zeros((4, m)), cost)
        # m equal controls: one of sqrt(m) times the effect.
        plain = ilqr(
            lambda x, u, k: x + k * u,
            1.0,
            np.zeros(4),
            lambda x, u, k: x**2 + u**2,
            args=(np.sqrt(m),),
        )
        assert found.success and found.fun == pytest.approx(plain.fun, rel=1e-12)
        np.testing.assert_allclose(found.u, np.outer(plain.u, np.full(m, m**-0.5)), atol=1e-12)


def test_a_solution_to_start_from():
    """Its gains are those of a linear problem wherever that starts: nothing is left to do."""
    end = lambda x: 0.5 * x @ Q @ x
    first = ilqr(linear, X0, np.zeros((12, 2)), quadratic, end)
    other = ilqr(linear, -3.0 * X0, first, quadratic, end)
    assert other.success and other.iterations == 0
    np.testing.assert_allclose(other.u, -3.0 * first.u, atol=1e-12)
    np.testing.assert_allclose(other.x, -3.0 * first.x, atol=1e-12)
    again = ilqr(linear, X0, first.u, quadratic, end)
    assert again.iterations == 0 and again.fun == first.fun


@pytest.mark.long
def test_in_recorded_code_mapped_and_as_c(tmp_path):
    """Receding horizons: a batch, and C code with the bits of Python."""

    def first(x0):
        found = ilqr(
            lambda x, u: np.stack([x[0] + 0.1 * x[1], x[1] + 0.1 * (u - np.sin(x[0]))]),
            *(x0, np.zeros(8), lambda x, u: x @ x + 0.1 * u**2, lambda x: 10.0 * x @ x),
            control_bounds=(-1.0, 1.0),
            max_iter=8,
        )
        return found.u[0], found.status

    many = RNG.normal(size=(5, 2))
    each = [first(x0) for x0 in many]
    u, status = arc.vmap(first)(many)
    assert np.all(status == Status.SOLVED)
    np.testing.assert_allclose(u, [u for u, _ in each], atol=1e-12)
    np.testing.assert_allclose(arc.compile(first)(many[0])[0], each[0][0], atol=1e-12)
    arc.codegen(first, (many[0],), output_dir=tmp_path, verify=True)


def test_a_maximum_is_no_solution():
    """At the top of a hill the gradient is zero; with a slope it is left."""
    hill = {"running_cost": lambda x, u: 0.01 * u**2, "terminal_cost": lambda x: np.cos(x)}
    stuck = ilqr(lambda x, u: x + u, 0.0, np.zeros(3), **hill)
    assert stuck.status == Status.STALLED and not stuck.success and stuck.residual == np.inf
    assert "no step lowers the cost" in stuck.message
    free = ilqr(lambda x, u: x + u, 2.0, np.zeros(3), **hill)
    # cos(x) + 0.01 (x - 2)^2 / 3, the least of which is found by Newton's method.
    x = arc.root(lambda x: -np.sin(x) + 0.02 * (x - 2.0) / 3, 3.0)
    assert free.success
    assert free.x[-1] == pytest.approx(x, abs=1e-6)


def test_a_cost_that_is_concave_along_what_limits_hold():
    """All controls end at a limit, each pressed on by the exact gradient: a minimum."""

    def advance(x, u):
        return np.stack([x[0] + 0.1 * x[1], x[1] + 0.1 * u])

    def end(x):
        return 10.0 * ((x[0] - 1.0) ** 2 + x[1] ** 2)

    found = ilqr(
        advance, np.zeros(2), np.zeros(20), lambda x, u: -(u**2), end, control_bounds=(-1.0, 1.0)
    )

    def cost(u):
        x = np.zeros(2)
        for k in range(20):
            x = advance(x, u[k])
        return end(x) - np.sum(u**2)

    slope = arc.grad(cost)(found.u)
    np.testing.assert_array_equal(found.u, -np.sign(slope))
    assert found.success and np.abs(slope).min() > 1.0


def test_what_is_no_success():
    kink = ilqr(lambda x, u: x + u, 1.0, np.zeros(2), lambda x, u: np.abs(x + u) + 0.1 * u**2)
    assert not kink.success and kink.message
    lost = ilqr(lambda x, u: x + u, 1.0, np.zeros(2), lambda x, u: np.log(-1.0 - x**2) + u**2)
    assert lost.status == Status.NOT_FINITE and "nan or infinite" in lost.message


def test_a_step_into_nan_is_not_taken():
    found = ilqr(lambda x, u: x + u, 1.0, np.zeros(1), None, lambda x: x - np.log(x) + 0.0)
    assert found.success and found.x[-1] == pytest.approx(1.0, abs=1e-6)
    far = ilqr(lambda x, u: x + u, 5.0, np.zeros(1), None, lambda x: x - 2.0 * np.log(x))
    assert far.success and far.x[-1] == pytest.approx(2.0, abs=1e-5)


def test_controls_that_do_nothing_stay():
    """As those of a foot in the air: neither the cost nor the state depends on them."""
    found = ilqr(lambda x, u: x + u[0], 1.0, np.full((3, 2), 0.7), lambda x, u: x**2 + u[0] ** 2)
    plain = ilqr(lambda x, u: x + u, 1.0, np.zeros(3), lambda x, u: x**2 + u**2)
    assert found.success
    np.testing.assert_allclose(found.u[:, 0], plain.u, atol=1e-12)
    assert np.all(found.u[:, 1] == 0.7)


def test_derivatives_of_solutions_are_refused():
    def end(x0):
        return ilqr(lambda x, u: x + u, x0, np.zeros(3), lambda x, u: x**2 + u**2).fun

    with pytest.raises(TraceError, match="a solution has no derivatives"):
        arc.grad(end)(1.0)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"dynamics": 3}, TypeError, "dynamics must be a function"),
        ({"running_cost": None}, ValueError, "give a running_cost, a terminal_cost, or both"),
        ({"terminal_cost": 1.0}, TypeError, "terminal_cost must be a function"),
        ({"integrate": lambda x, e: x + e}, ValueError, "integrate and difference go together"),
        ({"u": 0.0}, ShapeDtypeError, "u must have a leading axis"),
        ({"u": {"a": np.zeros(3), "b": np.zeros(2)}}, ShapeDtypeError, "'b'.* leading axis of 3"),
        ({"data": np.zeros(4)}, ShapeDtypeError, "data must have a leading axis of 3"),
        ({"u": np.full(3, np.nan)}, ValueError, r"u\[0\] is nan"),
        ({"control_bounds": (1.0, -1.0)}, ValueError, "no number lies between"),
        ({"tol": 0.0}, ValueError, "tol"),
        ({"max_iter": 0}, ValueError, "max_iter"),
        ({"dynamics": lambda x, u: np.zeros(2)}, ShapeDtypeError, "dynamics must return a state"),
        ({"running_cost": lambda x, u: np.zeros(2)}, ShapeDtypeError, "must return one number"),
    ],
)
def test_misuse(change, error, message):
    good = {
        "dynamics": lambda x, u: x + u,
        "x0": 1.0,
        "u": np.zeros(3),
        "running_cost": lambda x, u: x**2 + u**2,
    }
    with pytest.raises(error, match=message):
        ilqr(**{**good, **change})


def identity(x, e):
    return x + e


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"difference": lambda x0, x1: x1[0] - x0[0]}, ShapeDtypeError, "difference must return a"),
        ({"difference": lambda x0, x1: x0 - x1}, ValueError, r"is not e for small errors e of x0"),
        ({"integrate": lambda x, e: x + e[::-1]}, ValueError, r"the same order of numbers"),
        ({"integrate": lambda x, e: (x + e)[:1]}, ValueError, "is not e for small errors"),
    ],
)
def test_errors_of_states_that_do_not_fit(change, error, message):
    good = {"integrate": identity, "difference": lambda x0, x1: x1 - x0}
    problem = (lambda x, u: x + u, np.ones(2), np.zeros(3), lambda x, u: x @ x + u**2)
    assert ilqr(*problem, **good).success
    with pytest.raises(error, match=message):
        ilqr(*problem, **{**good, **change})


def test_a_solution_of_another_problem_is_no_start():
    cost = lambda x, u: np.sum(x**2) + u**2
    first = ilqr(lambda x, u: x + u, 1.0, np.zeros(3), cost)
    with pytest.raises(ShapeDtypeError, match=r"a solution with gains \(3, 1, 1\)"):
        ilqr(lambda x, u: x + u, np.ones(2), first, cost)
