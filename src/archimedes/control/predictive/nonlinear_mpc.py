"""Nonlinear model-predictive control by real-time iterations.

Each step makes one (or a few) iterations of sequential quadratic programming on the problem as
multiple shooting has it, from the last plan, moved on by an interval: linearise along the plan,
eliminate the states, solve a small quadratic program in the controls. (M. Diehl, H. G. Bock,
J. P. Schloeder, "A real-time iteration scheme for nonlinear optimization in optimal feedback
control", SIAM J. Control Optim. 43, 2005; Rawlings, Mayne, Diehl, "Model predictive control",
2nd ed., 8.9.)

Symbols: N intervals, X (N+1, nx) and U (N, nu) the plan, dx = G dU + g its change, c defects.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_whole
from archimedes.function import grad, hess, jac, scan, vmap, while_loop
from archimedes.function.recording_store import Current
from archimedes.optimize import OptimalControl, solve_qp
from archimedes.optimize.optimal_control.equations import Equations, Guess
from archimedes.optimize.optimal_control.schemes import find_scheme
from archimedes.optimize.problems.unknowns import as_vector, read_limits
from archimedes.optimize.small.linear_algebra import UNROLLED, find_pivots
from archimedes.tree import field, struct
from archimedes.typing import Array, Scalar, Tree

__all__ = ["NonlinearMPC"]

#: How often the cost's Hessian may be shifted to be positive definite.
SHIFTS = 20


@struct
class NonlinearMPC:
    """Model predictive control by the plan of an optimal control problem.

    Each step improves the plan by multiple shooting. The curvature is that of the cost, made
    positive definite where it is not. The number of operations is bounded and there are no branches
    on data: it compiles, maps, differentiates and generates C. If a quadratic program is not
    solved, the plan is limited.

    Parameters
    ----------
    problem : OptimalControl
        The problem, with fixed times. Its horizon is tf - t0. Cost, bounds, path and boundary
        constraints and final states are those of the problem.
    x : tree
        State as the functions of the problem take it.
    u : tree
        Controls as the functions of the problem take them.
    intervals : int, optional
        Number N of intervals of the horizon, 10 by default.
    iterations : int, optional
        Number of quadratic programs that are solved in each step, 1 by default.
    moving : bool, optional
        Whether one interval passes between two calls, so that the horizon moves. True by default.
    max_iter : int, optional
        Largest number of iterations.
    tol : float, optional
        Tolerance of the quadratic program.

    Examples
    --------
    >>> problem = OptimalControl(lambda t, x, u: np.array([x[1], u - np.sin(x[0])]),
    ...                          running_cost=lambda t, x, u: np.sum(x**2) + 0.1 * u**2,
    ...                          tf=2.0, control_bounds=(-1.0, 1.0))
    >>> mpc = NonlinearMPC(problem, np.zeros(2), 0.0, intervals=5)
    >>> state, u = mpc.step(mpc.start(np.array([0.5, 0.0])), np.array([0.5, 0.0]))
    >>> bool(-1.0 <= u < 0.0), int(state.status)
    (True, 0)
    """

    @struct
    class State:
        """The plan, the time, and how it was solved.

        Parameters
        ----------
        X : array (N + 1, nx)
            Planned states.
        U : array (N, nu)
            Planned controls.
        t : float
            Time now in s.
        status : int
            0 if the last quadratic program was solved.
        change : float
            Size of the last change of the plan.
        """

        X: Array
        U: Array
        t: Scalar = field(units="s")
        status: Any
        change: Scalar

    problem: OptimalControl = field(static=True)
    x: Tree
    u: Tree
    intervals: int = field(static=True, default=10)
    iterations: int = field(static=True, default=1)
    moving: bool = field(static=True, default=True)
    max_iter: int = field(static=True, default=20)
    tol: float = field(static=True, default=1e-8)

    def __post_init__(self) -> None:
        if not isinstance(self.problem, OptimalControl):
            raise TypeError(f"problem must be an OptimalControl, got {type(self.problem).__name__}")
        for name in ("t0", "tf"):
            if isinstance(getattr(self.problem, name), (tuple, list)):
                raise ValueError(f"problem.{name} is free: give a number, the horizon is fixed")
        for name in ("intervals", "iterations", "max_iter"):
            check_whole(getattr(self, name), name, 1)
        for name in ("x", "u"):
            floats = tree.map(lambda leaf: np.asarray(leaf) * 1.0, getattr(self, name))
            object.__setattr__(self, name, floats)

    @property
    def dt(self) -> float:
        """Seconds between steps: the length of an interval."""
        return (float(self.problem.tf) - float(self.problem.t0)) / self.intervals

    def start(self, x: Tree = None, u: Tree = None) -> State:
        """Return the state with a plan that stays at one point.

        Parameters
        ----------
        x : tree, optional
            State at which the plan stays. By default that of the controller.
        u : tree, optional
            Controls at which the plan stays. By default those of the controller.
        """
        flat_x = tree.ravel(self.x if x is None else x)[0] * 1.0
        flat_u = tree.ravel(self.u if u is None else u)[0] * 1.0
        N = self.intervals
        X, U = np.zeros((N + 1, flat_x.shape[0])) + flat_x, np.zeros((N, flat_u.shape[0])) + flat_u
        # The first step does not move the plan on: it has not begun.
        t = np.float64(self.problem.t0) - (self.dt if self.moving else 0.0)
        return self.State(X, U, t, np.int64(0), np.float64(np.inf))

    def plan(self, state: State) -> tuple[Array, Tree, Tree]:
        """Return times (N+1,), states and controls of a plan, trees with time as leading axis.

        Parameters
        ----------
        state : NonlinearMPC.State
            State of the controller.
        """
        t = state.t + self.dt * np.arange(self.intervals + 1)
        return t, vmap(tree.ravel(self.x)[1])(state.X), vmap(tree.ravel(self.u)[1])(state.U)

    def step(self, state: State, input: Tree, args: tuple[Any, ...] = ()) -> tuple[State, Tree]:
        """Return the next state and the control.

        Parameters
        ----------
        state : NonlinearMPC.State
            State of the controller.
        input : tree
            State of the plant, like x.
        args : tuple, optional
            Further arguments of the functions of the problem.
        """
        steps = _Iteration(self, args)
        x = steps.flatten(input)
        X, U, t = state.X, state.U, state.t
        if self.moving:
            t = t + self.dt
            X, U = np.concatenate([X[1:], X[-1:]]), np.concatenate([U[1:], U[-1:]])
        status, change = state.status, state.change
        for _ in range(self.iterations):
            X, U, status, change = steps.improve(X, U, t, x)
        return self.State(X, U, t, status, change), steps.equations.unravel_u(U[0])


class _Iteration:
    """Equations of the problem along a plan, for given arguments."""

    def __init__(self, mpc: NonlinearMPC, args: tuple[Any, ...]) -> None:
        self.mpc, self.args, problem = mpc, tuple(args), mpc.problem
        zero = [tree.ravel(v)[0] * 0.0 for v in (mpc.x, mpc.u)]
        t0, tf = float(problem.t0), float(problem.tf)
        x, u = (lambda s, v=v: np.tile(v, (s.size, 1)) for v in zero)
        still = Guess(x, u, mpc.x, mpc.u, None, t0, tf)
        scheme = find_scheme("multiple-shooting")
        self.equations = Equations(Current(problem.functions), scheme, still)
        self.nx, self.nu, self.N = self.equations.nx, self.equations.nu, mpc.intervals
        self.length = tf - t0

    def times(self, t: Scalar) -> Array:
        """Return the times of both ends of the horizon."""
        return np.stack([t, t + self.length])

    def flatten(self, x: Tree) -> Array:
        """Return a state as a vector."""
        flat = tree.ravel(x)[0] * 1.0
        if flat.shape != (self.nx,):
            raise ValueError(f"input holds {flat.shape[0]} numbers, the state x {self.nx}")
        return flat

    def interval(
        self, w: Array, x_next: Array, t: Scalar, begin: Scalar, args: tuple[Any, ...]
    ) -> Array:
        """Return [cost, defects, path] for w = [x, u] (nx + nu,)."""
        z = np.concatenate([self.times(t), w[: self.nx], x_next, w[self.nx :]])
        return self.equations.interval(z, np.ones(z.shape[0]), begin, begin + 1.0 / self.N, *args)

    def ends(self, x: Array, u: Array, x0: Array, t: Scalar, args: tuple[Any, ...]) -> Array:
        """Return [terminal cost, path at the end, boundary] for the last state."""
        z = np.concatenate([self.times(t), x0, x, u])
        return self.equations.ends(z, np.ones(z.shape[0]), *args)

    def improve(self, X: Array, U: Array, t: Scalar, x: Array) -> tuple[Array, Array, Array, Array]:
        """Make one iteration of sequential quadratic programming."""
        N, nx, nu = self.N, self.nx, self.nu
        W = np.concatenate([X[:-1], U], axis=1)
        begin = np.arange(N) / N

        def differentiate(w: Array, x_next: Array, begin: Scalar, t: Scalar, args: Any) -> Any:
            rest = (x_next, t, begin, args)
            values, slopes = self.interval(w, *rest), jac(self.interval)(w, *rest)
            curve = hess(lambda w, *rest: self.interval(w, *rest)[0])(w, *rest)
            return values, slopes, curve

        along = vmap(differentiate, in_axes=(0, 0, 0, None, None))
        values, slopes, curves = along(W, X[1:], begin, t, self.args)
        last = (U[-1], X[0], t, self.args)
        end, end_slope = self.ends(X[-1], *last), jac(self.ends)(X[-1], *last)
        pull = grad(lambda x, *last: self.ends(x, *last)[0])(X[-1], *last)
        bend = hess(lambda x, *last: self.ends(x, *last)[0])(X[-1], *last)
        # dx = G dU + g along the plan; A, B are slopes of the flow, the defects its jumps.
        AB, jumps = -slopes[:, 1 : 1 + nx], -values[:, 1 : 1 + nx]
        picks = np.reshape(np.eye(N * nu), (N, nu, N * nu))

        def advance(carry: Any, item: Any) -> Any:
            G, g, H, q = carry
            AB, jump, pick, slope, curve = item
            M = np.concatenate([G, pick])
            shift = np.concatenate([g, np.zeros(nu)])
            H, q = H + M.T @ (curve @ M), q + M.T @ (slope + curve @ shift)
            return (AB @ M, AB[:, :nx] @ g + jump, H, q), (M, shift)

        none = (np.zeros((nx, N * nu)), x - X[0], np.zeros((N * nu, N * nu)), np.zeros(N * nu))
        items = (AB, jumps, picks, slopes[:, 0], curves)
        (G, g, H, q), (Ms, shifts) = scan(advance, none, items)
        H, q = H + G.T @ (bend @ G), q + G.T @ (pull + bend @ g)
        rows = self.rows(X, (values, slopes, Ms, shifts), (end, end_slope, G, g))
        edges = read_limits(self.mpc.problem.control_bounds, self.mpc.u, "control_bounds")
        solution = solve_qp(
            *(_make_definite(0.5 * (H + H.T)), q, *rows, *(np.ravel(edge - U) for edge in edges)),
            tol=self.mpc.tol,
            max_iter=self.mpc.max_iter,
        )
        good = (solution.status == 0) & np.all(np.isfinite(solution.x))
        step = np.where(good, solution.x, 0.0)
        dX = np.concatenate([Ms[:, :nx] @ step + shifts[:, :nx], (G @ step + g)[None]])
        U = U + np.reshape(step, (N, nu))
        return np.where(good, X + dX, X), U, solution.status, np.max(np.abs(step))

    def rows(
        self, X: Array, along: tuple[Array, ...], ends: tuple[Array, ...]
    ) -> tuple[Array, Array, Array]:
        """Return limits of states, paths and ends as rows of dU."""
        problem, nx, N = self.mpc.problem, self.nx, self.N
        values, slopes, Ms, shifts = along
        end, end_slope, G, g = ends
        parts: list[tuple[Array, ...]] = []  # rows, what they are now, limits
        edges = read_limits(problem.state_bounds, self.mpc.x, "state_bounds")
        limited = np.flatnonzero(np.isfinite(edges[0]) | np.isfinite(edges[1]))
        if limited.size:
            inner, now = _stack(Ms[1:, limited]), np.ravel(X[1:-1, limited] + shifts[1:, limited])
            parts.append((inner, now, *(np.tile(edge[limited], N - 1) for edge in edges)))
            now, both = X[-1, limited] + g[limited], [edge[limited] for edge in edges]
            parts.append((G[limited], now, *both))
        path, count = self._limits("path", 0.0, self.mpc.x, self.mpc.u), values.shape[1] - 1 - nx
        if count:
            J, now = slopes[:, 1 + nx :], values[:, 1 + nx :]
            after = now + np.sum(J * shifts[:, None, :], axis=2)
            both = [np.tile(edge, count // edge.size * N) for edge in path]
            parts.append((_stack(J @ Ms), np.ravel(after), *both))
        if end.shape[0] > 1:
            J = end_slope[1:]
            boundary = self._limits("boundary", 0.0, self.mpc.x, self.length, self.mpc.x)
            both = [np.concatenate(pair) for pair in zip(path, boundary)]
            parts.append((J @ G, end[1:] + J @ g, *both))
        final = as_vector(problem.final, self.mpc.x, np.inf, "final")
        held = np.flatnonzero(np.isfinite(final))
        if held.size:
            parts.append((G[held], X[-1, held] + g[held], final[held], final[held]))
        if not parts:
            return np.zeros((0, N * self.nu)), np.zeros(0), np.zeros(0)
        C, now, low, high = (np.concatenate(kind) for kind in zip(*parts))
        return C, low - now, high - now

    def _limits(self, name: str, *arguments: Any) -> tuple[Array, Array]:
        """Return the limits of path or boundary constraints, none without these."""
        function = getattr(self.mpc.problem, name)
        if function is None:
            return np.zeros(0), np.zeros(0)
        like = tree.map(lambda leaf: np.zeros(np.shape(leaf)), function(*arguments, *self.args))
        bounds = getattr(self.mpc.problem, f"{name}_bounds")
        return read_limits(bounds, like, f"{name}_bounds", (0.0, 0.0))


def _stack(blocks: Array) -> Array:
    return np.reshape(blocks, (-1, blocks.shape[-1]))


def _make_definite(H: Array) -> Array:
    """Return H, with a multiple of the identity where it is not positive definite."""
    n = H.shape[0]
    size = np.max(np.abs(np.diagonal(H))) + 1e-12

    def is_indefinite(shift: Array) -> Array:
        shifted = H + shift * np.eye(n)
        if n > UNROLLED:  # in recorded code a factor that does not exist is nan
            return np.isnan(np.sum(np.linalg.cholesky(shifted - 1e-9 * size * np.eye(n))))
        return ~(np.min(find_pivots(shifted)) > 1e-9 * size)

    def more(shift: Array) -> Array:
        return np.maximum(4.0 * shift, 1e-3 * size)

    shift = while_loop(is_indefinite, more, np.float64(0.0), max_steps=SHIFTS)
    return H + shift * np.eye(n)
