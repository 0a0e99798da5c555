"""What travels: solvers, filters, controllers, robots and vehicles, with rows of arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import multibody as mb
from archimedes import observers, tree
from archimedes.control import PID, LinearMPC
from archimedes.vehicles import F16, FlightState, load

from ..multibody.robots import path_of
from .checking import Case, function_case

X = np.array([0.4, -0.3])


def van_der_pol(t: Any, x: Any, mu: Any) -> Any:
    return np.array([x[1], mu * (1.0 - x[0] ** 2) * x[1] - x[0]])


def _rows(*arguments: Any) -> list[tuple[Any, ...]]:
    """The arguments, and others near them."""
    rng = np.random.default_rng(0)
    near = [tuple(x + 0.01 * rng.uniform(-1.0, 1.0, np.shape(x)) for x in arguments) for _ in "ab"]
    return [arguments, *near]


def solvers() -> dict[str, Callable[[], Case]]:
    def solve(method: str, mu: float) -> Callable[[], Case]:
        def function(x: Any, mu: Any) -> Any:
            t = np.linspace(0.0, 2.0, 5)
            return arc.odeint(van_der_pol, (0.0, 2.0), x, t_eval=t, args=(mu,), method=method)

        return lambda: function_case(method, function, *_rows(X, np.float64(mu)))

    names = {"tsit5": 1.0, "dop853": 1.0, "rodas5p": 50.0, "esdirk4": 20.0}
    return {name: solve(name, mu) for name, mu in names.items()}


def discretized() -> Case:
    step = arc.discretize(van_der_pol, 0.01, method="rk4")

    def fly(x: Any, mu: Any) -> Any:
        return arc.fori_loop(0, 300, lambda k, x: step(0.01 * k, x, mu), x)

    return function_case("discretize", fly, *_rows(X, np.float64(2.0)))


def kalman() -> Case:
    ekf = observers.ExtendedKalmanFilter(
        dyn=lambda t, x: np.array([x[0] + 0.1 * x[1], x[1] - 0.1 * np.sin(x[0])]),
        obs=lambda t, x: np.array([np.cos(x[0]), x[0] * x[1]]),
        Q=1e-4 * np.eye(2),
        R=1e-2 * np.eye(2),
    )

    def step(x: Any, y: Any, P: Any) -> Any:
        made = ekf.step(0.0, x, y, P)
        return made.x, made.P, made.innovation

    return function_case("ekf", step, *_rows(X, np.array([0.9, -0.1]), np.eye(2)))


def controller() -> Case:
    pid = PID(3.0, 2.0, 0.1, dt=0.05)

    def run(errors: Any) -> Any:
        return arc.scan(pid.step, pid.start(), errors)[1]

    return function_case("pid", run, *_rows(np.linspace(-1.0, 1.0, 30)))


def predictive() -> Case:
    A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
    mpc = LinearMPC(A, B, np.diag([1.0, 0.1]), np.array([[0.05]]), horizon=8, lower=-1.0, upper=1.0)

    def fly(x: Any) -> Any:
        def step(held: Any, k: Any) -> Any:
            state, x = held
            state, u = mpc.step(state, x)
            return (state, A @ x + B @ u), u

        return arc.scan(step, (mpc.start(), x), length=10)[1]

    return function_case("mpc", fly, *_rows(np.array([2.0, 0.0])))


def contact() -> Case:
    b = mb.Builder()
    b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    ball = b.build(base="floating")

    def bounce(q: Any, v: Any) -> Any:
        def step(k: Any, x: Any) -> Any:
            shapes = [mb.sphere("ball", 0.1)]
            return mb.contact_step(ball, x, 1e-3, shapes, mb.Ground(), restitution=0.5)

        x = arc.fori_loop(0, 20, step, mb.State(q, v))
        return x.q, x.v

    q = np.array([0.0, 0.0, 0.11, 1.0, 0.0, 0.0, 0.0])
    speeds = np.random.default_rng(0).normal(size=(3, 6))
    return function_case("contact", bounce, *[(q, v) for v in speeds])


def draws() -> Case:
    def draw(seed: Any) -> Any:
        key = arc.random.fold_in(arc.random.key(7), seed)
        first, second = arc.random.split(key, 2)
        return arc.random.normal(first, (5,)), arc.random.uniform(second, (3,))

    return function_case("random", draw, *[(np.int64(k),) for k in (0, 1, 2**40)])


def humanoid() -> Case:
    model = mb.load(path_of("g1"), "floating")
    rng = np.random.default_rng(4)
    rows = [
        (mb.random_configuration(model, rng), *rng.normal(size=(2, model.nv))) for _ in range(3)
    ]
    return function_case("g1", lambda q, v, u: mb.aba(model, q, v, u), *rows)


def fighter(steps: int = 200) -> Case:
    """Steps of the F-16 in one call."""
    plane = load("f16")
    flight = FlightState(
        lat=0.6,
        lon=0.2,
        alt=3000.0,
        v_NED=np.array([150.0, 0.0, 0.0]),
        rpy=np.array([0.0, 0.05, 0.3]),
        w_B=np.zeros(3),
    )
    x0, unravel = tree.ravel(plane.state(flight, 30.0))

    def rates(t: Any, x: Any, u: Any) -> Any:
        return tree.ravel(plane.dynamics(t, unravel(x), F16.Input(*u)))[0]

    step = arc.discretize(rates, 0.02, method="rk4")

    def fly(x: Any, u: Any) -> Any:
        def move(x: Any, k: Any) -> Any:
            x = step(0.0, x, u)
            return x, x

        return arc.scan(move, x, length=steps)[1]

    u = np.array([0.4, -2.0, 0.1, 0.1])
    return function_case("f16", fly, (x0, u), (x0, 0.9 * u), (x0 * (1.0 + 1e-3), u))


_MAKERS: dict[str, Callable[[], Case]] = {
    **solvers(),
    "discretize": discretized,
    "ekf": kalman,
    "pid": controller,
    "mpc": predictive,
    "contact": contact,
    "random": draws,
    "g1": humanoid,
    "f16": fighter,
}


@cache
def traveller(name: str) -> Case:
    """One of them."""
    return _MAKERS[name]()


#: The names of all of them.
NAMES = tuple(_MAKERS)
