"""Iterative LQR: controls of a discrete system that minimize a cost, and feedback gains around it.

    min  sum_k l(x_k, u_k) + phi(x_N),   x_{k+1} = f(x_k, u_k),   lower <= u_k <= upper

Legend: X (N+1, .) and U (N, m) trajectory, e (n,) an error of the state, x_k + e what `integrate`
makes of it, A, B slopes of the dynamics in e and u, V the cost to go, Q that before a step, k and
K the steps of the controls and their gains, du = alpha k + K e, mu the damping, lam the costate.

The backward pass is the Riccati recursion of the problem that is linear and quadratic around the
trajectory; the forward pass flies its control law, with steps alpha that are halved until the cost
falls. The costs have their whole Hessian, the dynamics none (Gauss-Newton). Limits of the controls
are those of a small quadratic program in each step of the backward pass, solved by projected
Newton steps; controls that are held by their limits have no feedback.

Solved means: the cost is convex along all steps of the controls that are free, a step of Newton's
would lower the cost by less than tol^2 of its terms, and so would each control alone, by the exact
gradient. These are numbers without units.

Sources: Y. Tassa, N. Mansard, E. Todorov, "Control-limited differential dynamic programming", ICRA
2014; Y. Tassa, T. Erez, E. Todorov, "Synthesis and stabilization of complex behaviors through
online trajectory optimization", IROS 2012 (damping, line search).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import check_positive, check_whole, concrete
from archimedes.display import Readable
from archimedes.errors import ShapeDtypeError, TraceError
from archimedes.function import cond, custom_jvp, grad, hess, jac, scan, vmap, while_loop
from archimedes.function.recording_store import Current, compile_frozen, find_or_make
from archimedes.optimize.problems.results import Status
from archimedes.optimize.problems.unknowns import as_unknowns, read_limits
from archimedes.optimize.small import linear_algebra as la
from archimedes.tree import struct
from archimedes.typing import Array, Matrix, Scalar, Tree, Vector

__all__ = ["ILQRSolution", "ilqr"]

#: The least and the largest damping, relative to the curvature in each control.
LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e10
#: Damping grows by this factor, then by its square, and so on; it shrinks likewise.
GROWTH = 2.0
#: A step must lower the cost by this part of what is expected; how often it is halved.
ENOUGH, HALVINGS = 1e-4, 12
#: Pivots below this part of the diagonal count as zero.
LEAST_PIVOT = 1e-11
#: Most steps, and halvings, of the quadratic program of a step.
BOX_STEPS, BOX_HALVINGS = 30, 12
#: Steps of this part of the controls themselves are no more than rounding, with a tol of 1e-6.
ROUNDING = 1e-4
#: Most values of the damping that an iteration tries.
SEARCHES = 20
#: What a step of Newton's may still promise, as a part of the cost, where no step lowers it.
NOISE = 1e-12

_REMEDIES = {
    Status.ITERATION_LIMIT: "stopped at the iteration limit: raise max_iter or start closer",
    Status.NOT_FINITE: (
        "the cost or a derivative is nan or infinite along the controls given: start with others, "
        "or take shorter steps in time"
    ),
    Status.STALLED: (
        "no step lowers the cost, though the conditions of a minimum do not hold: are dynamics "
        "and costs smooth here, as at a contact that opens and closes they are not?"
    ),
}


@struct
class ILQRSolution(Readable):
    """A trajectory, the gains of a controller around it, and how it was found.

    Inside a compiled function its numbers are traced.

    Parameters
    ----------
    x : tree
        States, with a leading axis of N + 1.
    u : tree
        Controls, with a leading axis of N.
    gains : array (N, m, n)
        Gains K: ``u[k] + gains[k] @ difference(x[k], x)`` is the best control for a state x nearby,
        to first order. Rows of controls at their limits are zero.
    fun : float
        Cost.
    status : int
        A number of :class:`Status`, 0 if solved.
    iterations : int
        Number of iterations.
    residual : float
        Square root of the part of the cost that a step of Newton's would gain; `tol` or less where
        it is solved.
    history : array (max_iter + 1,)
        Cost at the start and after each iteration, then nan.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.optimize import ilqr
    >>> found = ilqr(lambda x, u: x + u, 1.0, np.zeros(3), lambda x, u: x**2 + u**2)
    >>> bool(found.success), int(found.iterations), found.u.round(4)
    (True, 1, array([-0.6, -0.2,  0. ]))
    """

    x: Tree
    u: Tree
    gains: Array
    fun: Scalar
    status: Any
    iterations: Any
    residual: Scalar
    history: Array

    @property
    def success(self) -> Any:
        """Whether it was solved."""
        return self.status < 10

    @property
    def message(self) -> str:
        """What happened, and what to do about it; of numbers, outside recorded code."""
        status = Status(int(self.status))
        return _REMEDIES.get(status, status.message)


def ilqr(
    dynamics: Callable[..., Tree],
    x0: Tree,
    u: Tree | ILQRSolution,
    running_cost: Callable[..., Scalar] | None = None,
    terminal_cost: Callable[..., Scalar] | None = None,
    *,
    data: Tree = None,
    args: tuple[Any, ...] = (),
    control_bounds: Any = None,
    integrate: Callable[[Tree, Vector], Tree] | None = None,
    difference: Callable[[Tree, Tree], Vector] | None = None,
    second_order: bool = False,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> ILQRSolution:
    """Minimize a cost of a discrete system by iterative LQR with limits of the controls (box-DDP).

    Every trajectory on the way obeys the dynamics, so that it suits simulations step by step, such
    as those of robots with contact. The result has the gains of a controller around it. Everything
    is one recorded function: it works on numbers, inside compiled functions, mapped and in C.
    States and controls are trees. ``rest`` below stands for ``data[k]``, if there are data,
    followed by `args`.

    Parameters
    ----------
    dynamics : callable
        ``dynamics(x, u, *rest)`` returns the next state, with the structure of x.
    x0 : tree
        Initial state.
    u : tree or ILQRSolution
        Controls to start with: a leading axis of N steps. Or the solution of a similar problem,
        whose control law is followed, with its gains, from `x0`; what falls over without control
        starts better from there.
    running_cost : callable, optional
        ``running_cost(x, u, *rest)``, summed over the steps. None by default.
    terminal_cost : callable, optional
        ``terminal_cost(x, *args)`` of the last state. None by default.
    data : tree, optional
        What differs from step to step, such as references or contacts: leading axes of N.
    args : tuple, optional
        Further arguments of the functions.
    control_bounds : (lower, upper), optional
        Limits of the controls of a step, as in :func:`minimize`. None by default.
    integrate : callable, optional
        ``integrate(x, e)`` returns the state that differs from x by an error e (n,), for states
        with attitudes, of which not every change of their numbers is an attitude. By default errors
        are differences of numbers.
    difference : callable, optional
        ``difference(x0, x1)`` returns the error (n,) of x1 as seen from x0, so that
        ``integrate(x0, difference(x0, x1))`` is x1. It goes with `integrate`.
    second_order : bool, optional
        Whether the curvature of the dynamics counts (differential dynamic programming). Fewer but
        dearer iterations, for smooth dynamics. False by default.
    tol : float, optional
        The cost may be above the minimum by this part, squared, by the quadratic model.
    max_iter : int, optional
        Largest number of iterations, 100 by default.

    Examples
    --------
    A mass is pushed by one meter within a second, by at most 5 N.

    >>> import numpy as np
    >>> from archimedes.optimize import ilqr
    >>> found = ilqr(
    ...     lambda x, u: x + 0.1 * np.array([x[1] + 0.05 * u, u]),
    ...     np.zeros(2), np.zeros(10),
    ...     lambda x, u: 1e-4 * u**2,
    ...     lambda x: (x[0] - 1.0) ** 2 + x[1] ** 2,
    ...     control_bounds=(-5.0, 5.0))
    >>> bool(found.success), found.x[-1].round(2), found.u[:2].round(2)
    (True, array([0.99, 0.01]), array([5.  , 4.46]))
    """
    functions = (dynamics, running_cost, terminal_cost, integrate, difference)
    _check_functions(*functions)
    check_positive(tol, "tol")
    check_whole(max_iter, "max_iter", 1)
    x0 = _as_floats(x0, "x0")
    law: Tree = None
    if isinstance(u, ILQRSolution):
        u, law = u.u, (tree.map(lambda leaf: leaf[:-1], u.x), u.gains)
    u = _as_floats(u, "u")
    steps = _count_steps(u, data)
    one = tree.map(lambda leaf: 0.0 * leaf[0], u)
    bounds = read_limits(control_bounds, one, "control_bounds")
    forms = (control_bounds is not None, bool(second_order))

    def make(current: Current) -> Any:
        if integrate is not None and concrete(tree.ravel(x0)[0]) is not None:
            _check_chart(integrate, difference, x0)

        def ilqr(
            x0: Tree, u: Tree, law: Tree, data: Tree, args: Any, bounds: Any, tol: Scalar
        ) -> ILQRSolution:
            like = tree.map(lambda leaf: 0.0 * leaf[0], u)
            problem = _Problem(current.functions, x0, like, data, args, bounds, *forms)
            return problem.solve(x0, u, law, steps, tol, max_iter)

        kernel = compile_frozen(ilqr, (current,), "ilqr")
        kernel.drafts = True
        return kernel

    settings = (steps, *forms, int(max_iter), *map(tree.structure, (u, law, data)))
    kernel = find_or_make("ilqr", functions, settings, make)
    return kernel(x0, u, law, data, tuple(args), bounds, tol)


def _check_functions(
    dynamics: Any, running_cost: Any, terminal_cost: Any, integrate: Any, difference: Any
) -> None:
    """Raise where a function is missing or none."""
    if not callable(dynamics):
        raise TypeError("ilqr: dynamics must be a function (x, u) -> next x")
    if running_cost is None and terminal_cost is None:
        raise ValueError("ilqr: give a running_cost, a terminal_cost, or both")
    if (integrate is None) != (difference is None):
        raise ValueError("ilqr: integrate and difference go together: give both, or none")
    optional = {
        "running_cost": (running_cost, "(x, u) -> cost"),
        "terminal_cost": (terminal_cost, "(x) -> cost"),
        "integrate": (integrate, "(x, e) -> x"),
        "difference": (difference, "(x0, x1) -> e"),
    }
    for name, (function, form) in optional.items():
        if function is not None and not callable(function):
            raise TypeError(f"ilqr: {name} must be a function {form}, got {function!r}")


def _check_chart(integrate: Any, difference: Any, x0: Tree) -> None:
    """Raise where `difference` does not lead back from where `integrate` went."""
    none = 0.0 * difference(x0, x0)
    if np.ndim(none) != 1:
        shape = np.shape(none)
        raise ShapeDtypeError(f"ilqr: difference must return a vector (n,), got shape {shape}")
    back = jac(lambda e: difference(x0, integrate(x0, e)))(none)
    if not np.allclose(back, np.eye(len(none)), atol=1e-6):
        raise ValueError(
            "ilqr: difference(x0, integrate(x0, e)) is not e for small errors e of x0: do both "
            "have the same order of numbers, and the same axes?"
        )


def _as_floats(value: Tree, name: str) -> Tree:
    """Return a tree of floats; one of known numbers must be finite."""
    if concrete(tree.ravel(value)[0]) is not None:
        return as_unknowns(value, name)
    return tree.map(lambda leaf: leaf * 1.0, value)


def _count_steps(u: Tree, data: Tree) -> int:
    """Return the number of steps, the leading axis of all controls and data."""
    steps = None
    for value, name in ((u, "u"), (data, "data")):
        leaves, treedef = tree.flatten(value)
        for leaf, path in zip(leaves, treedef.paths(name)):
            shape = np.shape(leaf)
            if not shape or (steps is not None and shape[0] != steps):
                wanted = "the number of steps" if steps is None else f"{steps}, the steps of u"
                raise ShapeDtypeError(f"{path} must have a leading axis of {wanted}, got {shape}")
            steps = shape[0]
    if not steps:
        raise ShapeDtypeError("u must hold the controls of at least one step")
    return steps


class _Model(NamedTuple):
    """Slopes and curvature of each step (N, ...), in z = [e, u], and of the end."""

    AB: Array
    slope: Array
    curve: Array
    end_slope: Vector
    end_curve: Matrix


class _Policy(NamedTuple):
    """Steps k (N, m) and gains K (N, m, n), and what they should gain.

    ``expected`` are the sums of ``Q_u k`` and ``k Q_uu k / 2``; ``single`` is the largest gain of a
    step of one control alone, ``scale`` the sum of ``Q_uu u^2``.
    """

    k: Array
    K: Array
    expected: Vector
    single: Scalar
    scale: Scalar
    definite: Any


class _Search(NamedTuple):
    """The search for a lower cost from a trajectory: where it stands."""

    policy: _Policy
    X: Array
    U: Array
    cost: Scalar
    size: Scalar
    mu: Scalar
    growth: Scalar
    found: Any


class _State(NamedTuple):
    """Where the iteration stands."""

    X: Array
    U: Array
    K: Array
    cost: Scalar
    size: Scalar
    mu: Scalar
    growth: Scalar
    residual: Scalar
    history: Array
    status: Any
    steps: Any


class _Problem:
    """The functions of a problem in flat states and controls."""

    def __init__(
        self,
        functions: tuple[Any, ...],
        x0: Tree,
        u_like: Tree,
        data: Tree,
        args: tuple[Any, ...],
        bounds: tuple[Vector, Vector],
        bounded: bool,
        second_order: bool,
    ) -> None:
        self.functions, self.data, self.args = functions, data, args
        self.x_like, self.unravel_x = tree.structure(x0), tree.ravel(x0)[1]
        self.unravel_u = tree.ravel(u_like)[1]
        self.lower, self.upper = bounds
        self.bounded, self.second_order = bounded, second_order
        flat = tree.ravel(x0)[0]
        self.size = flat.shape[0]
        self.m = tree.ravel(u_like)[0].shape[0]
        self.n = self.difference(flat, flat).shape[0]

    def rest(self, item: Tree) -> tuple[Any, ...]:
        """Return the last arguments of the functions for an item of the data."""
        return self.args if self.data is None else (item, *self.args)

    def advance(self, x: Vector, u: Vector, item: Tree) -> Vector:
        """Return the next state."""
        after = self.functions[0](self.unravel_x(x), self.unravel_u(u), *self.rest(item))
        return self.flatten(after, "dynamics")

    def flatten(self, x: Tree, name: str) -> Vector:
        """Return the numbers of a state that a function returned."""
        flat = tree.ravel(x)[0]
        if tree.structure(x) != self.x_like or flat.shape != (self.size,):
            raise ShapeDtypeError(
                f"ilqr: {name} must return a state with the structure and shapes of x0, "
                f"{self.x_like!r} of {self.size} numbers, got {tree.structure(x)!r} of "
                f"{np.size(flat)}"
            )
        return flat * 1.0

    def running(self, x: Vector, u: Vector, item: Tree) -> Scalar:
        """Return the cost of a step."""
        if self.functions[1] is None:
            return 0.0 * x[0]
        cost = self.functions[1](self.unravel_x(x), self.unravel_u(u), *self.rest(item))
        return _check_cost(cost, "running_cost")

    def terminal(self, x: Vector) -> Scalar:
        """Return the cost of the last state."""
        if self.functions[2] is None:
            return 0.0 * x[0]
        return _check_cost(self.functions[2](self.unravel_x(x), *self.args), "terminal_cost")

    def integrate(self, x: Vector, e: Vector) -> Vector:
        """Return the state that differs from x by an error e (n,)."""
        if self.functions[3] is None:
            return x + e
        return self.flatten(self.functions[3](self.unravel_x(x), e), "integrate")

    def difference(self, x0: Vector, x1: Vector) -> Vector:
        """Return the error (n,) of x1 as seen from x0."""
        if self.functions[4] is None:
            return x1 - x0
        error = self.functions[4](self.unravel_x(x0), self.unravel_x(x1))
        if np.ndim(error) != 1:
            shape = np.shape(error)
            raise ShapeDtypeError(f"ilqr: difference must return a vector (n,), got shape {shape}")
        return error

    def limit(self, u: Vector) -> Vector:
        """Return controls within their limits."""
        return np.minimum(np.maximum(u, self.lower), self.upper) if self.bounded else u

    def fly(
        self, x0: Vector, steps: Tree, decide: Callable[[Vector, Tree], Vector]
    ) -> tuple[Array, Array, Scalar, Scalar]:
        """Return the trajectory under a control law, its cost and the cost's size.

        ``decide(x, step)`` returns the controls for an item of `steps`.
        """

        def one(carry: Any, both: Any) -> Any:
            x, cost, size = carry
            step, item = both
            u = self.limit(decide(x, step))
            paid = self.running(x, u, item)
            return (self.advance(x, u, item), cost + paid, size + np.abs(paid)), (x, u)

        zero = np.float64(0.0)
        (last, cost, size), (X, U) = scan(one, (x0, zero, zero), (steps, self.data))
        paid = self.terminal(last)
        return np.concatenate([X, last[None]]), U, cost + paid, size + np.abs(paid)

    def move(self, z: Vector, x: Vector, u: Vector, after: Vector, item: Tree) -> Vector:
        """Return the error (n,) of the next state, for errors z of a state and its controls."""
        reached = self.advance(self.integrate(x, z[: self.n]), u + z[self.n :], item)
        return self.difference(after, reached)

    def expand(self, X: Array, U: Array) -> _Model:
        """Return slopes and curvature around a trajectory."""
        n, zero = self.n, np.zeros(self.n + self.m)

        def one(x: Vector, u: Vector, after: Vector, item: Tree) -> tuple[Array, ...]:
            def move(z: Vector) -> Vector:
                return self.move(z, x, u, after, item)

            def pay(z: Vector) -> Scalar:
                return self.running(self.integrate(x, z[:n]), u + z[n:], item)

            return jac(move)(zero), grad(pay)(zero), hess(pay)(zero)

        def end(e: Vector) -> Scalar:
            return self.terminal(self.integrate(X[-1], e))

        AB, slope, curve = vmap(one)(X[:-1], U, X[1:], self.data)
        return _Model(AB, slope, curve, grad(end)(zero[:n]), hess(end)(zero[:n]))

    def plan(self, model: _Model, X: Array, U: Array, mu: Scalar) -> _Policy:
        """Return the control law of the problem that is linear and quadratic (backward pass)."""
        n, m = self.n, self.m
        zero = np.zeros(n + m)

        def one(carry: Any, step: Any) -> Any:
            V_x, V_xx, lam, expected, single, scale, definite = carry
            AB, slope, curve, *point = step
            u = point[1]
            Q_z = slope + AB.T @ V_x
            Q_zz = curve + AB.T @ (V_xx @ AB)
            if self.second_order:
                Q_zz = Q_zz + hess(lambda z: V_x @ self.move(z, *point))(zero)
            exact = slope + AB.T @ lam
            Q_u, Q_uu, Q_ux = Q_z[n:], Q_zz[n:, n:], Q_zz[n:, :n]
            curvature = np.abs(np.diagonal(Q_uu))
            # A control that does nothing gets a curvature of its own, so that it stays.
            curvature = np.where(curvature > 0.0, curvature, np.abs(Q_u) + 1.0)
            idle = np.where(np.diagonal(Q_uu) == 0.0, curvature, 0.0)
            H = Q_uu + np.diag(mu * curvature + idle)
            low, high = self.lower - u, self.upper - u
            k, free = _solve_box(H, Q_u, low, high) if self.bounded else (None, None)
            inner = H if free is None else _keep(H, free)
            solve = _solver(inner)
            rows = Q_ux if free is None else np.where(free[:, None], Q_ux, 0.0)
            K = -solve(rows)
            k = -solve(Q_u[:, None])[:, 0] if k is None else k
            good = np.all(la.find_pivots(inner) > LEAST_PIVOT * np.diagonal(inner))
            bent = Q_uu @ k
            V_x = Q_z[:n] + K.T @ (bent + Q_u) + Q_ux.T @ k
            V_xx = Q_zz[:n, :n] + K.T @ (Q_uu @ K) + K.T @ Q_ux + Q_ux.T @ K
            alone = -exact[n:] / curvature
            alone = np.minimum(np.maximum(alone, low), high) if self.bounded else alone
            carry = (
                V_x,
                0.5 * (V_xx + V_xx.T),
                exact[:n],
                expected + np.stack([Q_u @ k, 0.5 * (k @ bent)]),
                np.maximum(single, np.max(np.abs(exact[n:] * alone))),
                scale + np.sum(curvature * u * u),
                definite & good,
            )
            return carry, (k, K)

        none = np.float64(0.0)
        start = (model.end_slope, model.end_curve, model.end_slope, np.zeros(2), none, none)
        steps = (model.AB, model.slope, model.curve, X[:-1], U, X[1:], self.data)
        reverse = tree.map(lambda a: a[::-1], steps)
        carry, (k, K) = scan(one, (*start, np.bool_(True)), reverse)
        return _Policy(k[::-1], K[::-1], *carry[3:])

    def search(self, state: _State, model: _Model, newton: _Policy) -> _Search:
        """Return a trajectory of lower cost: steps are halved, then damping grows."""

        def is_searching(s: _Search) -> Any:
            return ~s.found & (s.mu <= MOST_DAMPING)

        def attempt(s: _Search) -> _Search:
            policy = self.plan(model, state.X, state.U, s.mu)
            X, U, cost, size, lower = self.descend(state, policy)
            found = lower & policy.definite
            growth = np.where(found, np.minimum(s.growth, 1.0) / GROWTH, 1.0)
            growth = np.where(found, growth, np.maximum(s.growth, 1.0) * GROWTH)
            changed = s.mu * growth
            down = np.where(changed >= LEAST_DAMPING, changed, 0.0)
            mu = np.where(found, down, np.maximum(changed, LEAST_DAMPING))
            return _Search(policy, X, U, cost, size, mu, growth, found)

        start = (newton, state.X, state.U, state.cost, state.size, state.mu, state.growth)
        return while_loop(
            is_searching, attempt, _Search(*start, np.bool_(False)), max_steps=SEARCHES
        )

    def descend(self, state: _State, policy: _Policy) -> tuple[Any, ...]:
        """Return the trajectory of the first step, of 1, 1/2, ..., that lowers the cost enough."""
        steps = (state.X[:-1], state.U, policy.k, policy.K)

        def fly(alpha: Scalar) -> tuple[Any, ...]:
            def decide(x: Vector, step: Any) -> Vector:
                nominal, u, k, K = step
                return u + alpha * k + K @ self.difference(nominal, x)

            X, U, cost, size = self.fly(state.X[0], steps, decide)
            first, second = policy.expected[0], policy.expected[1]
            gain = -alpha * (first + alpha * second)
            # nan is no lower cost.
            lower = (gain > 0.0) & (cost <= state.cost - ENOUGH * gain)
            return X, U, cost, size, lower, alpha

        def is_too_long(trial: tuple[Any, ...]) -> Any:
            return ~trial[4] & (trial[5] > 0.5**HALVINGS)

        trial = while_loop(
            is_too_long, lambda trial: fly(0.5 * trial[5]), fly(np.float64(1.0)), max_steps=HALVINGS
        )
        return trial[:5]

    def improve(self, state: _State, tol: Scalar, max_iter: int) -> _State:
        """Make one iteration."""
        model = self.expand(state.X, state.U)
        newton = self.plan(model, state.X, state.U, np.float64(0.0))
        size = state.size + ROUNDING**2 * newton.scale
        left = np.maximum(np.abs(np.sum(newton.expected)), newton.single)
        finite = np.all(np.stack([np.all(np.isfinite(part)) for part in (*model, state.cost)]))
        solved = newton.definite & (left <= tol * tol * size)
        residual = np.sqrt(left / np.where(size > 0.0, size, 1.0))
        status = np.where(finite, Status.ITERATION_LIMIT, Status.NOT_FINITE)
        status = np.where(solved, Status.SOLVED, status)
        here = state._replace(
            K=newton.K, residual=np.where(newton.definite, residual, np.inf), status=status
        )

        def move(here: _State) -> _State:
            s = self.search(state, model, newton)
            steps = here.steps + np.where(s.found, 1, 0)
            at = (np.arange(here.history.shape[0]) == steps) & s.found
            near = newton.definite & (left <= NOISE * size)
            code = np.where(near, Status.ACCEPTABLE, Status.STALLED)
            new = here._replace(
                X=s.X, U=s.U, K=s.policy.K, cost=s.cost, size=s.size, mu=s.mu, growth=s.growth
            )
            new = tree.map(lambda new, old: np.where(s.found, new, old), new, here)
            return new._replace(
                history=np.where(at, s.cost, here.history),
                status=np.where(s.found, Status.ITERATION_LIMIT, code),
                steps=steps,
            )

        return cond(finite & ~solved & (here.steps < max_iter), move, lambda here: here, here)

    def solve(
        self, x0: Tree, u: Tree, law: Tree, steps: int, tol: Scalar, max_iter: int
    ) -> ILQRSolution:
        """Return the solution from controls, or a control law, to start with."""
        U = np.concatenate([leaf.reshape(steps, -1) for leaf in tree.leaves(u)], axis=1)
        if law is None:
            X, U, cost, size = self.fly(tree.ravel(x0)[0], U, lambda x, u: u)
        else:

            def follow(x: Vector, step: Any) -> Vector:
                u, nominal, K = step
                return u + K @ self.difference(tree.ravel(nominal)[0], x)

            if law[1].shape[1:] != (self.m, self.n):
                raise ShapeDtypeError(
                    f"ilqr: u is a solution with gains {law[1].shape}, but here there are "
                    f"{self.m} controls and errors of {self.n} numbers: give its u alone"
                )
            X, U, cost, size = self.fly(tree.ravel(x0)[0], (U, *law), follow)
        K = np.zeros((steps, self.m, self.n))
        first = np.arange(max_iter + 1) == 0
        one, infinite = np.float64(1.0), np.float64(np.inf)
        state = _State(
            *(X, U, K, cost, size, 0.0 * one, one, infinite),
            *(np.where(first, cost, np.nan), np.int64(Status.ITERATION_LIMIT), np.int64(0)),
        )

        def is_going(state: _State) -> Any:
            return state.status == Status.ITERATION_LIMIT

        def improve(state: _State) -> _State:
            return self.improve(state, tol, max_iter)

        # Once more than there are iterations: was the last one enough?
        last = while_loop(is_going, improve, state, max_steps=max_iter + 1)
        parts = (last.X, last.U, last.K, last.cost, last.residual, last.history)
        X, U, K, cost, residual, history = _without_derivatives(*parts)
        x, u = vmap(self.unravel_x)(X), vmap(self.unravel_u)(U)
        return ILQRSolution(x, u, K, cost, last.status, last.steps, residual, history)


@custom_jvp
def _without_derivatives(*parts: Array) -> tuple[Array, ...]:
    return tuple(part * 1.0 for part in parts)


@_without_derivatives.defjvp
def _refuse(primals: Any, tangents: Any) -> Any:
    raise TraceError(
        "ilqr: a solution has no derivatives in what it is given; use arc.nlp_solver with the "
        "controls as unknowns, or the gains, which are the derivatives in the state"
    )


def _check_cost(cost: Any, name: str) -> Scalar:
    """Return a cost, which must be one number."""
    if np.shape(cost) != ():
        raise ShapeDtypeError(f"ilqr: {name} must return one number, got shape {np.shape(cost)}")
    return cost * 1.0


def _keep(H: Matrix, free: Array) -> Matrix:
    """Return H for the free unknowns, for the others the size of the diagonal alone.

    Whether the cost is convex along what is held does not matter.
    """
    both = free[:, None] & free
    return np.where(both, H, np.where(np.eye(H.shape[0], dtype=bool), np.abs(H), 0.0))


def _solver(H: Matrix) -> Callable[[Matrix], Matrix]:
    """Return the function b (m, n) -> H^-1 b."""
    if H.shape[0] <= la.UNROLLED:
        return la.make_solver(H)
    return lambda b: np.linalg.solve(H, b)


def _solve_box(H: Matrix, q: Vector, low: Vector, high: Vector) -> tuple[Vector, Array]:
    """Return the minimum of ``d H d / 2 + q d`` within limits around zero, and what is free.

    Projected Newton steps (Bertsekas, SIAM J. Control Optim. 20, 1982; Tassa 2014, section III).
    """

    def find_free(d: Vector, g: Vector) -> Array:
        return ~((d <= low) & (g > 0.0) | (d >= high) & (g < 0.0))

    def value(d: Vector) -> Scalar:
        return 0.5 * (d @ (H @ d)) + q @ d

    def advance(state: Any) -> Any:
        d, g, free, _ = state
        step = -_solver(_keep(H, free))(np.where(free, g, 0.0)[:, None])[:, 0]
        before = value(d)

        def clip(part: Scalar) -> Vector:
            return np.minimum(np.maximum(d + part * step, low), high)

        def is_too_long(trial: Any) -> Any:
            part, new = trial
            enough = value(new) - before <= 0.1 * (g @ (new - d))
            return ~enough & (part > 0.5**BOX_HALVINGS)

        def halve(trial: Any) -> Any:
            return 0.5 * trial[0], clip(0.5 * trial[0])

        one = np.float64(1.0)
        part, new = while_loop(is_too_long, halve, (one, clip(one)), max_steps=BOX_HALVINGS)
        slope = H @ new + q
        now = find_free(new, slope)
        # A whole step of Newton's to where the same unknowns are free is the minimum.
        whole = (part == 1.0) & np.all(new == d + step) & np.all(now == free)
        return new, slope, now, whole

    start = np.minimum(np.maximum(0.0 * q, low), high)
    g = H @ start + q
    state = (start, g, find_free(start, g), np.bool_(False))
    d, _, free, _ = while_loop(lambda s: ~s[3], advance, state, max_steps=BOX_STEPS)
    return d, free
