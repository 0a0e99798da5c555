"""Implicit Runge-Kutta methods for stiff systems: ESDIRK of order 4, and Radau IIA of order 5.

Both solve the equations of their stages by the simplified Newton iteration, with one matrix for all
iterations (E. Hairer, G. Wanner, "Solving Ordinary Differential Equations II", section IV.8).

**ESDIRK** is diagonally implicit, so that all stages share one matrix M = I - g h df/dx(t, x). It
is the implicit half of ARK4(3)6L[2]SA (L-stable, stiffly accurate, stage order 2), with its dense
output of order 3: C. A. Kennedy, M. H. Carpenter, "Additive Runge-Kutta schemes for
convection-diffusion-reaction equations", Applied Numerical Mathematics 44 (2003) 139-181. With the
slope k_i and the state X_i of stage i, and g = gamma:

    X_i = x + h sum_{j<i} a_ij k_j + g h k_i,    k_i = f(t + c_i h, X_i)

**Radau IIA** has three implicit stages that are solved for together; it is L-stable, and takes
fixed steps. Source: Hairer, Wanner, table IV.5.6, and section IV.8 for the unknowns
Z_i = X_i - x, the changes of the state up to stage i, stacked (3 n,):

    Z = h (A kron I) F,    F_i = f(t + c_i h, x + Z_i);    x(t + h) = x + Z_3
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import jac, stop_gradient, vmap, while_loop
from archimedes.function.linear_combinations import combine
from archimedes.records import record
from archimedes.simulate.methods import method_table
from archimedes.simulate.methods.method_table import Derivative, Method, Rows, Step

if TYPE_CHECKING:
    from archimedes.typing import Array, Scalar, Tree

#: Vectors of more numbers than this are multiplied by a matrix in a loop.
UNROLLED = 12


def product(matrix: Array, vector: Array) -> Any:
    """Return matrix @ vector, as a loop over the rows where n * n products compile for long.

    >>> import numpy as np
    >>> product(np.eye(2), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    if vector.size <= UNROLLED:
        return matrix @ vector
    return vmap(lambda row, vector: row @ vector, in_axes=(0, None))(matrix, vector)


class DenseJacobian:
    """A Jacobian (n, n) with all its elements."""

    def __init__(self, matrix: Array) -> None:
        self.matrix = matrix

    def solver(self, diagonal: Scalar, factor: Scalar) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (diagonal + factor J) x = r; diagonal may be a matrix."""
        if np.ndim(diagonal) == 0:
            diagonal = np.eye(len(self.matrix)) * diagonal
        return solver_of(diagonal + factor * self.matrix)

    def stage_solver(self, coefficients: np.ndarray, h: Scalar) -> Callable[[Any], Any]:
        """Return r -> x, the solution of (I - h coefficients kron J) x = r: all stages at once."""
        size = len(coefficients) * len(self.matrix)
        return solver_of(np.eye(size) - h * np.kron(coefficients, self.matrix))

    def norm(self) -> Any:
        """Return the largest sum of sizes in a row."""
        return np.max(np.sum(np.abs(self.matrix), axis=1))


def solver_of(matrix: Array) -> Callable[[Any], Any]:
    """Return r -> x, the solution of matrix x = r.

    A step has many right sides: one inverse and a product for each take a third of the time of as
    many eliminations, and are as accurate for matrices that are not nearly singular.
    """
    inverse = np.linalg.inv(matrix)
    return lambda right: product(inverse, right)


def linearize(f: Derivative, t: Scalar, x: Array) -> tuple[Any, Any]:
    """Return df/dt (n,) and the Jacobian df/dx, as an object with ``solver`` and ``norm``.

    A right-hand side that knows better says so itself (see ``stepping/stepwise.py``).
    """
    own = getattr(f, "linearize", None)
    if own is not None:
        return own(t, x)
    f_t, matrix = jac(f, argnums=(0, 1))(t, x)
    return f_t, DenseJacobian(matrix)


#: Without tolerances (fixed steps), Newton's iteration ends where its error is this small a part of
#: the unknowns.
FIXED_STEP_TOLERANCE = 1e-11
#: With tolerances, it ends where its error is this part of the error that a step may have.
ADAPTIVE_TOLERANCE = 1e-4
#: Errors below this part of the unknowns are rounding, whatever the tolerances.
_ROUNDING = 10.0 * float(np.finfo(np.float64).eps) / ADAPTIVE_TOLERANCE
#: A step of fixed size has failed where Newton's iteration leaves more than this part of the
#: unknowns.
FAILED = 1e-6
_TINY = 1e-300


def iterate_newton(
    residual: Callable[[Any], Any],
    base: Array,
    guess: Array,
    solve: Callable[[Any], Any],
    max_steps: int,
    scale: Array | None = None,
) -> tuple[Any, Any]:
    """Solve residual(X) = 0 by X += solve(residual(X)); return X and the norm of its error.

    ``solve`` is about the inverse of -d residual / dX. Changes count relative to ``scale``, the
    error that a step may have; without one, relative to abs(X) + abs(base). The iteration contracts
    by a rate, so that after a change d the error is about d rate / (1 - rate) (Hairer & Wanner II,
    IV.8.10). It ends where that is small or where the changes have begun to grow.
    """
    tolerance = FIXED_STEP_TOLERANCE if scale is None else ADAPTIVE_TOLERANCE

    def going(state: Tree) -> Any:
        _, size, before, count = state
        rate = size / np.maximum(before, _TINY)
        error = np.where(count > 1, size * rate / np.maximum(1.0 - rate, 0.01), size)
        return (count < 1) | ((error > tolerance) & (size <= 2.0 * before))

    def iterate(state: Tree) -> Any:
        X, size, _, count = state
        change = solve(residual(X))
        X = X + change
        least = np.abs(X) + np.abs(base) + _TINY
        unit = least if scale is None else np.maximum(scale, _ROUNDING * least)
        return X, method_table.rms_norm(change, unit), size, count + 1

    huge = np.full((), np.inf)
    start = (guess, huge, huge, 0)
    X, size, before, count = while_loop(going, iterate, start, max_steps=max_steps)
    rate = np.where(count > 1, size / np.maximum(before, _TINY), 1.0)
    # A diverging iteration has a rate above 1, and its last change tells how bad it is.
    return X, stop_gradient(size * np.minimum(rate, 1.0))


ESDIRK_ITERATIONS = 10
#: A step is refused where Newton's iteration leaves more than this part of the error it may have.
#: What it leaves says nothing about the local error, so it does not take part in step control.
REFUSED = 0.1


@record
class Esdirk:
    """The data of an ESDIRK method whose last stage is the solution.

    ``a``: rows of the strictly lower triangle, one per stage; ``c`` times of the stages;
    ``embedded``: weights of the error estimator's solution; ``dense[k][i]``: weight of stage i
    in the coefficient of theta^(k+1).
    """

    gamma: float
    a: Rows
    c: tuple[float, ...]
    embedded: tuple[float, ...]
    dense: Rows

    def start(self, f: Derivative, t: Scalar, x: Array) -> Any:
        """Return the slope, which is the first stage."""
        return f(t, x)

    def step(
        self,
        f: Derivative,
        t: Scalar,
        x: Array,
        h: Scalar,
        memory: Tree,
        scale: Array | None = None,
    ) -> Step:
        """Take one step; where Newton's iteration does not converge, the error is inf.

        Without ``scale`` no step is repeated, and the state is nan then.
        """
        gh = self.gamma * h
        solve = linearize(f, t, x)[1].solver(1.0, -gh)
        slopes = [memory]
        state, worst = x, np.zeros(())
        for c, row in zip(self.c[1:], self.a[1:]):
            base = combine(row, slopes, np.zeros_like(x), h, x)
            guess = base + gh * slopes[-1]

            def residual(X: Array, t: Scalar = t + c * h, base: Array = base) -> Array:
                return base + gh * f(t, X) - X

            state, error = iterate_newton(residual, base, guess, solve, ESDIRK_ITERATIONS, scale)
            worst = np.maximum(worst, error)
            # The slope from the equation, not from f: f would amplify what Newton left over.
            slopes.append((state - base) / gh)
        last = (*self.a[-1], self.gamma)
        difference = [b - e for b, e in zip(last, self.embedded)]
        local = combine(difference, slopes, None, h)
        if scale is None:
            return Step(np.where(worst <= FAILED, state, np.nan), local, slopes[-1], slopes)
        return Step(state, np.where(worst <= REFUSED, local, np.inf), slopes[-1], slopes)

    def dense_coefficients(self, f: Derivative, t: Scalar, x: Array, h: Scalar, step: Step) -> Any:
        """Return the coefficients of the interpolant."""
        return np.stack([combine(row, step.stages, None, h) for row in self.dense])


_TABLES = method_table.read_tables("ark4")
_ARK4 = Esdirk(
    gamma=1 / 4,
    a=((), *_TABLES["a"]),
    c=_TABLES["c"][0],
    embedded=_TABLES["embedded"][0],
    dense=_TABLES["dense"],
)

ESDIRK4 = method_table.register(
    Method(
        name="esdirk4",
        order=4,
        error_order=3,
        dense_order=3,
        dense_degree=3,
        start=_ARK4.start,
        step=_ARK4.step,
        dense=_ARK4.dense_coefficients,
        stiff=True,
        iterative=True,
    )
)


RADAU_ITERATIONS = 20
_ROOT = math.sqrt(6.0)
_C = np.array([(4 - _ROOT) / 10, (4 + _ROOT) / 10, 1.0])
_A = np.array(
    [
        [(88 - 7 * _ROOT) / 360, (296 - 169 * _ROOT) / 1800, (-2 + 3 * _ROOT) / 225],
        [(296 + 169 * _ROOT) / 1800, (88 + 7 * _ROOT) / 360, (-2 - 3 * _ROOT) / 225],
        [(16 - _ROOT) / 36, (16 + _ROOT) / 36, 1 / 9],
    ]
)
#: From the stages to the coefficients of the polynomial through them and x.
_TO_COEFFICIENTS = np.array(
    [
        [10.048809399827416, -1.382142733160749, 1 / 3],
        [-25.62959144707664, 10.296258113743306, -8 / 3],
        [15.580782047249224, -8.914115380582556, 10 / 3],
    ]
)


def _start(f: Derivative, t: Scalar, x: Array) -> Any:
    """Return a placeholder: no step needs anything from the one before."""
    return np.zeros_like(x)


def _step(f: Derivative, t: Scalar, x: Array, h: Scalar, memory: Tree) -> Step:
    """Take one step; nan where Newton's iteration does not converge, since no step is repeated."""
    solve = linearize(f, t, x)[1].stage_solver(_A, h)

    def residual(Z: Array) -> Any:
        changes = Z.reshape(3, x.size)
        slopes = [f(t + c * h, x + z) for c, z in zip(_C, changes)]
        return h * np.concatenate([combine(row, slopes) for row in _A]) - Z

    base = np.concatenate([x, x, x])
    Z, error = iterate_newton(residual, base, np.zeros_like(base), solve, RADAU_ITERATIONS)
    stages = Z.reshape(3, x.size)
    x_new = np.where(error <= FAILED, x + stages[-1], np.nan)
    return Step(x_new, None, memory, stages)


def _dense(f: Derivative, t: Scalar, x: Array, h: Scalar, step: Step) -> Any:
    """Return the coefficients of the collocation polynomial."""
    return np.stack([combine(row, step.stages) for row in _TO_COEFFICIENTS])


RADAU5 = method_table.register(
    Method(
        name="radau5",
        order=5,
        error_order=None,
        dense_order=3,
        dense_degree=3,
        start=_start,
        step=_step,
        dense=_dense,
        stiff=True,
    )
)
