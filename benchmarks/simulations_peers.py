"""The same initial value problem in Archimedes, SciPy, CasADi and diffrax.

A solver of a problem is ``make(rtol) -> run``, and ``run() -> states (m, n)`` at the problem's
times: what ``make`` does (recording, building integrators) is not timed.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.simulations_problems import Problem, robertson_residual

__all__ = [
    "casadi",
    "casadi_dae",
    "diffrax",
    "diffrax_batch",
    "keep_compilations",
    "ours",
    "ours_batch",
    "ours_dae",
    "scipy",
    "scipy_function",
]

Make = Callable[[float], Callable[[], np.ndarray]]

#: Steps that diffrax may make: it keeps nothing for each of them in forward mode.
MOST_STEPS = 1_000_000


def ours(problem: Problem, method: str) -> Make:
    """``solve_ode``, called as a user calls it."""
    from archimedes.simulate import solve_ode

    x0, end = np.array(problem.x0), float(problem.times[-1])
    function = problem.function

    def make(rtol: float) -> Callable[[], np.ndarray]:
        tolerances = {"rtol": rtol, "atol": rtol * problem.atol}

        def run() -> np.ndarray:
            found = solve_ode(
                function, (0.0, end), x0, method=method, t_eval=problem.times, **tolerances
            )
            return found.x

        return run

    return make


def ours_batch(problem: Problem, x0: np.ndarray, method: str, times: np.ndarray) -> Make:
    """``solve_ode`` with ``in_axes``: states (N, m, n), on all cores."""
    from archimedes.simulate import solve_ode

    end = float(problem.times[-1])

    def make(rtol: float) -> Callable[[], np.ndarray]:
        options = {"rtol": rtol, "atol": rtol * problem.atol, "in_axes": (0,)}
        return lambda: (
            solve_ode(problem.function, (0.0, end), x0, method=method, t_eval=times, **options).x
        )

    return make


def ours_dae(problem: Problem) -> Make:
    """``solve_dae`` of Robertson's problem."""
    from archimedes.simulate.dae import solve_dae

    x0, end = np.array(problem.x0), float(problem.times[-1])

    def make(rtol: float) -> Callable[[], np.ndarray]:
        tolerances = {"rtol": rtol, "atol": rtol * problem.atol}
        return lambda: (
            solve_dae(robertson_residual, (0.0, end), x0, t_eval=problem.times, **tolerances).x
        )

    return make


def scipy_function(problem: Problem, by_hand: bool) -> Callable[[float, Any], Any]:
    """A right-hand side for SciPy: scalar Python written by hand, or our compiled function."""
    if by_hand:
        rates, sqrt = problem.rates, math.sqrt
        return lambda t, x: rates(x.tolist(), sqrt)
    import archimedes as arc

    return arc.compile(problem.function)


def scipy(problem: Problem, method: str, by_hand: bool = False) -> Make:
    """``solve_ivp``, for stiff problems with our compiled Jacobian."""
    from scipy.integrate import solve_ivp

    import archimedes as arc

    function = scipy_function(problem, by_hand)
    options: dict[str, Any] = {"method": method, "t_eval": problem.times}
    if problem.stiff:
        options["jac"] = arc.jac(problem.function, argnums=1)
    x0, end = np.array(problem.x0), float(problem.times[-1])

    def make(rtol: float) -> Callable[[], np.ndarray]:
        tolerances = {"rtol": rtol, "atol": rtol * problem.atol}
        return lambda: solve_ivp(function, (0.0, end), x0, **options, **tolerances).y.T

    return make


def _casadi_options(rtol: float, problem: Problem) -> dict[str, Any]:
    return {
        "reltol": rtol,
        "abstol": rtol * problem.atol,
        "max_num_steps": 1_000_000,
        "show_eval_warnings": False,
    }


#: CVODES' settings by name; the first suits problems that are not stiff.
CVODES = {
    "Adams, functional": ("adams", "functional"),
    "Adams, Newton": ("adams", "newton"),
    "BDF, Newton": ("bdf", "newton"),
}


def casadi(problem: Problem, method: str, buffers: bool = True) -> Make:
    """CVODES behind one integrator object, made once and called again, over all times at once.

    ``buffers``: results are written straight into an array; converting CasADi's matrices to
    arrays takes as long as half of a solve.
    """
    import casadi as ca

    x = ca.SX.sym("x", len(problem.x0))
    rates = problem.rates([x[k] for k in range(len(problem.x0))], ca.sqrt)
    equations = {"x": x, "ode": ca.vertcat(*rates)}
    multistep, iteration = CVODES[method]

    def make(rtol: float) -> Callable[[], np.ndarray]:
        options = {
            **_casadi_options(rtol, problem),
            "linear_multistep_method": multistep,
            "nonlinear_solver_iteration": iteration,
        }
        integrator = ca.integrator("F", "cvodes", equations, 0.0, problem.times[1:], options)
        x0 = np.array(problem.x0)
        if not buffers:
            return lambda: np.concatenate([x0[None], np.array(integrator(x0=x0)["xf"]).T])
        states = np.tile(x0, (len(problem.times), 1))
        rest = states[1:]

        def run() -> np.ndarray:
            buffer, call = integrator.buffer()
            buffer.set_arg(0, memoryview(x0))
            buffer.set_res(0, memoryview(rest))
            rest.fill(np.nan)  # a solve that fails must not show the states of the one before
            call()
            return states

        return run

    return make


def casadi_dae(problem: Problem) -> Make:
    """IDAS on Robertson's problem with its last number as the algebraic one."""
    import casadi as ca

    x, z = ca.SX.sym("x", 2), ca.SX.sym("z")
    first, second, _ = problem.rates([x[0], x[1], z], ca.sqrt)
    equations = {"x": x, "z": z, "ode": ca.vertcat(first, second), "alg": x[0] + x[1] + z - 1.0}
    x0 = np.array(problem.x0)

    def make(rtol: float) -> Callable[[], np.ndarray]:
        options = {**_casadi_options(rtol, problem), "init_xdot": [-0.04, 0.04]}
        integrator = ca.integrator("F", "idas", equations, 0.0, problem.times[1:], options)

        def run() -> np.ndarray:
            found = integrator(x0=x0[:2], z0=x0[2:])
            states = np.concatenate([np.array(found["xf"]), np.array(found["zf"])])
            return np.concatenate([x0[:, None], states], axis=1).T

        return run

    return make


def _diffrax_solve(problem: Problem, method: str, times: Any) -> Callable[..., Any]:
    """``(x0, rtol) -> states``, to be jitted: one compilation serves all tolerances."""
    import diffrax as dx
    import jax

    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy
    if problem.arrays is None:
        rates = lambda t, x, _: jnp.stack(problem.rates(x, jnp.sqrt))
    else:
        rates = lambda t, x, _: problem.arrays(jnp, x)
    solver, end = getattr(dx, method)(), float(problem.times[-1])

    def solve(x0: Any, rtol: Any) -> Any:
        return dx.diffeqsolve(
            dx.ODETerm(rates),
            solver,
            0.0,
            end,
            None,
            x0,
            saveat=dx.SaveAt(ts=jnp.asarray(times)),
            stepsize_controller=dx.PIDController(rtol=rtol, atol=rtol * problem.atol),
            adjoint=dx.ForwardMode(),
            max_steps=MOST_STEPS,
            throw=False,
        ).ys

    return solve


def diffrax(problem: Problem, method: str) -> Make:
    """``jit(diffeqsolve)``, float64."""
    solve = _diffrax_solve(problem, method, problem.times)
    import jax

    compiled = jax.jit(solve)
    x0 = np.array(problem.x0)
    return lambda rtol: lambda: np.asarray(compiled(x0, rtol))


def diffrax_batch(problem: Problem, x0: np.ndarray, method: str, times: np.ndarray) -> Make:
    """``vmap(diffeqsolve)``, jitted, on as many devices as JAX has: states (N, m, n)."""
    import jax

    solve = _diffrax_solve(problem, method, times)
    count = jax.local_device_count()
    if count == 1 or len(x0) % count:
        one = jax.jit(jax.vmap(solve, in_axes=(0, None)))
        return lambda rtol: lambda: np.asarray(one(x0, rtol))
    many = jax.pmap(jax.vmap(solve, in_axes=(0, None)), in_axes=(0, None))
    parts = x0.reshape(count, -1, x0.shape[1])

    def make(rtol: float) -> Callable[[], np.ndarray]:
        def run() -> np.ndarray:
            found = many(parts, rtol)
            found.block_until_ready()
            return found

        return run

    return make


def keep_compilations() -> None:
    """Let JAX keep compiled programs between processes: they take most of its time here."""
    import jax

    folder = Path(tempfile.gettempdir()) / "archimedes-benchmarks-jax"
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
