"""Solves, minima, filters, random draws and campaigns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import archimedes as arc
from archimedes import control, observers, optimize, simulate

from .result import Result, of_function, seeded

__all__ = ["draws", "filters", "minima", "simulations"]

TIMES = np.linspace(0.0, 2.0, 9)


def pendulum(t: Any, x: Any, k: Any) -> Any:
    """A pendulum with drag that is pushed."""
    return np.stack([x[1], -9.81 * np.sin(x[0]) - k * x[1] * np.abs(x[1]) + np.cos(3.0 * t)])


def reaction(t: Any, x: Any, k: Any) -> Any:
    """Robertson's reaction: stiff."""
    a, b = 0.04 * x[0], 1e4 * x[1] * x[2]
    c = 3e7 * k * x[1] ** 2
    return np.stack([b - a, a - b - c, c])


def diffusion(t: Any, x: Any, k: Any) -> Any:
    """A reaction that spreads over eighty cells: large and stiff."""
    ends = np.zeros(1)
    around = np.concatenate([ends, x[:-1]]) + np.concatenate([x[1:], ends]) - 2.0 * x
    return 400.0 * around + k * x * np.exp(-x)


def simulations() -> Iterator[Result]:
    """Solves by explicit and stiff methods, with events, alone and in batches, and campaigns."""
    starts = np.stack([seeded(20, 12), 2.0 * seeded(21, 12)], 1)
    drag = 0.1 + 0.05 * seeded(22, 12)
    for method in ("dopri5", "dop853", "tsit5", "rk4", "rodas5p", "esdirk4", "auto"):
        options: dict[str, Any] = {"method": method, "t_eval": TIMES}
        options |= {"dt": 0.01} if method == "rk4" else {}
        yield _solve(method, pendulum, starts, drag, options)
    stiff = np.stack([np.ones(4), np.zeros(4), np.zeros(4)], 1)
    rates = 1.0 + 0.1 * seeded(23, 4)
    for method in ("rodas5p", "bdf"):
        yield _solve(
            f"{method}, a stiff reaction",
            *(
                reaction,
                stiff,
                rates,
                {"method": method, "t_eval": np.array([0.0, 0.4, 4.0, 40.0])},
            ),
            batch=method != "bdf",
        )
    cells = 1.0 + 0.5 * seeded(24, 1, 80)
    for method in ("rodas5p", "bdf"):
        yield _solve(
            f"{method}, eighty cells",
            *(diffusion, cells, np.ones(1), {"method": method, "t_eval": TIMES, "rtol": 1e-6}),
            batch=False,
        )
    bounce = arc.Event(
        lambda t, x, k: x[0], direction=-1, reset=lambda t, x, k: np.stack([0.0 * x[0], -k * x[1]])
    )
    fall = lambda t, x, k: np.stack([x[1], -9.81 - 0.01 * x[1] * np.abs(x[1])])
    up = np.stack([2.0 + seeded(25, 5), seeded(26, 5)], 1)
    options = {"events": bounce, "t_eval": TIMES}
    yield _solve("events", fall, up, 0.8 + 0.0 * up[:, 0], options)
    slope = arc.grad(lambda k: arc.odeint(pendulum, (0.0, 1.0), starts[0], args=(k,))[0])
    yield of_function("gradient", slope, drag, single=2)

    def drop(p: Any) -> Any:
        x = arc.odeint(pendulum, (0.0, 1.0), np.stack([p["angle"], p["rate"]]), args=(p["drag"],))
        return {"end": x, "noise": arc.random.normal(p["key"], 2)}

    spread = {
        "angle": simulate.Normal(0.3, 0.1),
        "rate": simulate.Uniform(-1.0, 1.0),
        "drag": simulate.LogNormal(-2.0, 0.3),
        "key": simulate.RunKey(),
    }

    def campaign() -> Any:
        found = arc.monte_carlo(drop, spread, n=100, seed=5)
        return found.params, found.results

    yield Result("campaign", {"native batch": campaign})


def _solve(
    name: str, f: Any, starts: Any, args: Any, options: dict[str, Any], batch: bool = True
) -> Result:
    """A solve alone, the first one interpreted too, and as one of a batch."""
    span = (0.0, float(options["t_eval"][-1]))

    def alone(backend: str) -> Any:
        runs = [
            arc.solve_ode(f, span, x, args=(k,), backend="llvm" if i else backend, **options)
            for i, (x, k) in enumerate(zip(starts, args))
        ]
        return np.stack([run.x for run in runs])

    def together() -> Any:
        return arc.solve_ode(f, span, starts, args=(args,), in_axes=(0, 0), **options).x

    ways = {"interpreted": lambda: alone("interpreter"), "native": lambda: alone("llvm")}
    return Result(name, ways | {"native batch": together} if batch else ways)


def minima() -> Iterator[Result]:
    """Nonlinear and quadratic programs, optimal control, fits, roots."""

    def energy(x: Any, k: Any) -> Any:
        return np.sum(k * (x[1:] - x[:-1]) ** 2) + np.sum(np.cosh(x) + 0.1 * x)

    def constrained(method: str) -> Any:
        found = arc.minimize(
            *(energy, 0.1 + np.zeros(12)),
            args=(2.0,),
            constr=lambda x, k: {"ends": x[[0, -1]], "middle": x[5] * x[6]},
            constr_bounds={"ends": (0.5, 0.5), "middle": (0.05, None)},
            method=method,
        )
        return found.x, found.fun, found.multipliers.constr

    yield Result("ipm", {"native": lambda: constrained("ipm")})
    yield Result("sqp", {"native": lambda: constrained("sqp")})

    pairs = np.stack([np.arange(199), np.arange(1, 200)], axis=1)
    links = optimize.ElementFunction(
        lambda z: (z[1] - np.sin(z[0])) ** 2 + 0.1 * (1 - z[1]) ** 2 + 0.01 * np.exp(z[0]), pairs
    )

    def chain() -> Any:
        return arc.minimize(links, np.zeros(200), bounds=(-2.0, 0.9), method="ipm").x

    yield Result("ipm, a chain", {"native": chain})

    def control_problem() -> Any:
        problem = optimize.OptimalControl(
            lambda t, x, u: np.array([x[1], u - 0.1 * np.sin(x[0])]),
            terminal_cost=lambda t0, x0, tf, xf: tf,
            initial=[0.0, 0.0],
            final=[1.0, 0.0],
            tf=(0.1, 10.0),
            control_bounds=(-1.0, 1.0),
        )
        guess = {"x": np.zeros(2), "u": 0.0, "tf": 1.5}
        found = problem.solve(guess, intervals=10, scheme="radau3")
        return found.x, found.u, found.tf

    yield Result("optimal control", {"native": control_problem})

    A = seeded(30, 40, 3, 4)

    def program(A: Any, q: Any) -> Any:
        return optimize.solve_qp(A.T @ A + np.eye(4), q, A, -np.ones(3), np.ones(3)).x

    yield of_function("quadratic program", program, A, seeded(31, 40, 4))
    ts = np.linspace(0.0, 1.0, 20)

    def fit(noise: Any) -> Any:
        data = 1.5 * np.exp(-2.0 * ts) + 0.01 * noise
        misfit = lambda p: p[0] * np.exp(-p[1] * ts) - data
        return optimize.least_squares(misfit, np.array([1.0, 1.0])).x

    noise = seeded(32, 20)
    yield Result("least squares", {"native": lambda: fit(noise)})
    equation = lambda p: arc.root(lambda x, p: x + np.exp(x) - p, 0.3, args=(p,))
    yield of_function("root", equation, 2.0 + seeded(33, 40))
    F = np.array([[0.0, 1.0, 0.0], [-2.0, -0.3, 1.0], [0.0, 0.2, -1.5]])
    G = np.array([[0.0], [1.0], [0.5]])

    def regulate(F: Any) -> Any:
        Ad, Bd, _, _ = control.discretize_linear(F, G, np.eye(3), np.zeros((3, 1)), 0.1)
        return control.lqr(F, G, np.eye(3), np.eye(1)), control.dlqr(Ad, Bd, np.eye(3), np.eye(1))

    yield Result(
        "regulator",
        {"interpreted": lambda: arc.compile(regulate, backend="interpreter")(F)},
    )


def filters() -> Iterator[Result]:
    """Kalman filters along a series, and the smoother."""
    move = lambda t, x: np.stack([x[0] + 0.05 * x[1], x[1] - 0.05 * 9.81 * np.sin(x[0])])
    see = lambda t, x: np.stack([np.sin(x[0]), np.cos(x[0])])
    noise = np.diag([1e-5, 1e-4]), np.diag([0.01, 0.01])
    ts = 0.05 * np.arange(20)
    ys = np.stack([0.3 * seeded(40, 8, 20), 1.0 + 0.1 * seeded(41, 8, 20)], 1)
    for name, kind in (
        ("extended", observers.ExtendedKalmanFilter),
        ("unscented", observers.UnscentedKalmanFilter),
    ):
        one = kind(move, see, *noise)

        def run(ys: Any, one: Any = one) -> Any:
            return observers.rts_smoother(one, ts, ys, np.zeros(2), np.eye(2))

        yield of_function(f"{name} Kalman filter and smoother", run, ys, single=2)


def draws() -> Iterator[Result]:
    """Random draws, special functions and interpolation."""
    keys = arc.random.split(arc.random.key(99), 20)
    spread = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 4.0]])

    def draw(key: Any) -> Any:
        return (
            *(arc.random.uniform(key, (2, 3)), arc.random.normal(key, 9)),
            *(arc.random.exponential(key, 6), arc.random.integers(key, -7, 2**61, shape=5)),
            arc.random.choice(key, np.arange(6.0), 4, p=[1, 2, 3, 0, 2, 1]),
            arc.random.multivariate_normal(key, np.zeros(3), spread, 2),
            arc.random.permutation(key, 20),
        )

    yield of_function("random", draw, keys)
    knots = np.linspace(0.0, 3.0, 15) + 0.05 * seeded(50, 15)
    values = seeded(51, 15)
    curves = [
        arc.interpolant(knots, values, method=method, outside="extrapolate")
        for method in ("linear", "cubic")
    ]
    at = 1.5 + 1.7 * seeded(52, 60)
    yield of_function("interpolation", lambda x: [c(x) for c in curves], at)
    yield of_function("matrix exponential", arc.expm, 3.0 * seeded(53, 20, 4, 4))
