"""Forces of soft constraints: Newton's method on MuJoCo's convex problem, and exact derivatives.

Legend: l are the forces of all rows, G = J M^-1 J' what they do to the rows' accelerations, b these
accelerations without them, less what the rows want. So ``x = G l + b`` is by how much a row is off
what it wants, and a soft row answers with the force ``l = f(x)``. First come rows of one number, of
stiffness D: ``f = clip(-D x, least, most)``. Friction loss has bounds of both signs; a limit, a
contact without friction and an edge of a pyramid push, but never pull.

Then come contacts with an elliptic cone, (n, t_1, ...) each. With ``N = mu x_n``,
``U_j = mu_j x_j`` and ``T = |U|`` there is no force if ``N >= mu T``, and ``-D x`` if
``mu N + T <= 0``. Between these the force is on the cone, ``n = -D mu (N - mu T) / (mu^2 + mu^4)``
and ``t_j = -n mu_j U_j / T``. mu_j are coefficients of friction, and mu is the first one over the
root of how much stiffer friction is than the normal (MuJoCo's ``impratio``).

f is the slope, with its sign turned, of a convex function s, and l solves
``min l' G l / 2 + s(G l + b)``. With C = -df/dx, Newton's method takes ``(I + C G) dl = f - l``.
The function is quadratic in pieces, or nearly, and a search for the minimum along dl makes the
method converge from anywhere. Derivatives are those of the equation ``l = f(G l + b)``.
Source: MuJoCo documentation, "Computation", constraint model and algorithms: Newton.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from archimedes.function import compile, custom_jvp, jvp, while_loop
from archimedes.optimize.small.linear_algebra import times
from archimedes.typing import Array, Matrix, Scalar, Vector

#: Done when the energy of a step is this part of that of the forces, or after so many steps.
SETTLED, MOST_STEPS = 1e-22, 100
#: A step ends where the slope along it is this part of that at its start, or after so many tries.
FLAT, MOST_TRIES = 0.1, 40
#: The square of a length that has a direction.
TINY = 1e-300


class Springs(NamedTuple):
    """What forces are made of: stiffness D (n + m dim,), bounds (n,), and cones.

    These are mu (m,) and the coefficients of friction (m, dim - 1).
    """

    stiffness: Any
    least: Any
    most: Any
    mu: Any
    friction: Any


def soft_forces(J: Matrix, W: Matrix, b: Vector, springs: Springs) -> Vector:
    """Return the forces (n + m dim,) of soft rows and of contacts with elliptic cones.

    J are the rows (n + m dim, nv), and ``W = M^-1 J'`` (nv, n + m dim).
    """
    return soft_kernel(J, W, b, *springs)


@custom_jvp
def solve_forces(
    J: Matrix, W: Matrix, b: Vector, stiffness: Vector, least: Vector, most: Vector, mu: Vector,
    friction: Array,
) -> Vector:  # fmt: skip
    """Return `soft_forces`."""
    springs = Springs(stiffness, least, most, mu, friction)
    solve = prepare(J, W, springs)

    def one_step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        l, _ = state
        x = times(J, times(W, l)) + b
        dl = solve(x, force_at(x, springs) - l)
        dx = times(J, times(W, dl))
        dl = shorten(l, x, dl, dx, springs) * dl
        l = l + dl
        # Forces that are redundant may change without an effect.
        moved = np.sum(dl * times(J, times(W, dl)))
        size = np.sum(l * times(J, times(W, l)))
        return l, np.where(moved > SETTLED * size, 1.0, 0.0)

    def goes_on(state: tuple[Any, ...]) -> Any:
        return state[1] > 0.5

    start = (force_at(b, springs), 0.0 * b[0] + 1.0)
    return while_loop(goes_on, one_step, start, max_steps=MOST_STEPS)[0]


def prepare(J: Matrix, W: Matrix, springs: Springs) -> Callable[[Vector, Vector], Any]:
    """Return a function that solves ``(I + C G) dl = off`` at x, as the smaller of two systems.

    With ``da = W dl`` it is ``(I + W C J) da = W off``, which is smaller with more rows than
    velocities.
    """
    n, nv = J.shape
    if n <= nv:
        G = J @ W
        return lambda x, off: np.linalg.solve(np.eye(n) + soften(G, x, springs), off)

    def solve(x: Vector, off: Vector) -> Any:
        CJ = soften(J, x, springs)
        return off - times(CJ, np.linalg.solve(np.eye(nv) + W @ CJ, times(W, off)))

    return solve


def shorten(l: Vector, x: Vector, dl: Vector, dx: Vector, springs: Springs) -> Scalar:
    """Return which part of a step leads to the minimum along it, about.

    The slope grows with the step, at least as ``dl' G dl``: so it is zero before the end `high`.
    """

    def slope(part: Scalar) -> Any:
        return np.sum(dx * (l + part * dl - force_at(x + part * dx, springs)))

    start, own = slope(0.0), np.sum(dx * dl)
    still = (start >= 0.0) | (own <= 0.0)
    high = np.where(still, 1.0, -start / np.where(still, 1.0, own))

    def goes_on(state: tuple[Any, ...]) -> Any:
        return np.abs(state[1]) > -FLAT * start

    def narrow(state: tuple[Any, ...]) -> tuple[Any, ...]:
        part, now, low, high, at_low, at_high = state
        below = now < 0.0
        # Illinois: of the end that stays, the slope counts half.
        low, at_low = np.where(below, part, low), np.where(below, now, 0.5 * at_low)
        high, at_high = np.where(below, high, part), np.where(below, 0.5 * at_high, now)
        flat = at_high - at_low <= 0.0
        part = (low * at_high - high * at_low) / np.where(flat, 1.0, at_high - at_low)
        part = np.where(flat | (at_high <= 0.0), 0.5 * (low + high), part)
        return part, slope(part), low, high, at_low, at_high

    zero = 0.0 * start
    first = (zero + 1.0, slope(zero + 1.0), zero, high, start, slope(high))
    found = while_loop(goes_on, narrow, first, max_steps=MOST_TRIES)[0]
    return np.where(still, 1.0, found)


def split(x: Vector, springs: Springs) -> tuple[Vector, Matrix]:
    """Return the numbers of rows (n,) and of cones (m, dim)."""
    n, (m, across) = springs.least.shape[0], springs.friction.shape
    return x[:n], x[n:].reshape(m, across + 1)


class Cones(NamedTuple):
    """Of contacts N (m,), U (m, dim - 1), T (m,), which of them push fully, and are on the cone."""

    N: Any
    U: Any
    T: Any
    full: Any
    edge: Any


def cones_at(X: Matrix, springs: Springs) -> Cones:
    """Return where contacts (m, dim) are."""
    N, U = springs.mu * X[:, 0], springs.friction * X[:, 1:]
    T = np.sqrt(np.maximum(np.sum(U * U, axis=1), TINY))
    full = springs.mu * N + T <= 0.0
    return Cones(N, U, T, full, ~full & (springs.mu * T > N))


def force_at(x: Vector, springs: Springs) -> Vector:
    """Return the forces f(x) (n + m dim,)."""
    D, K = split(springs.stiffness, springs)
    x, X = split(x, springs)
    rows = np.minimum(np.maximum(-D * x, springs.least), springs.most)
    if not X.shape[0]:
        return rows
    at, mu = cones_at(X, springs), springs.mu
    push = K[:, 0] * (mu * at.T - at.N) / (mu * (1.0 + mu * mu))
    drag = (-push / at.T)[:, None] * springs.friction * at.U
    edge = np.concatenate([push[:, None], drag], axis=1)
    cones = np.where(at.full[:, None], -K * X, np.where(at.edge[:, None], edge, 0.0))
    return np.concatenate([rows, cones.ravel()])


def soften(A: Matrix, x: Vector, springs: Springs) -> Matrix:
    """Return C A for C = -df/dx."""
    D, K = split(springs.stiffness, springs)
    x, X = split(x, springs)
    n, (m, size) = x.shape[0], X.shape
    free = (-D * x > springs.least) & (-D * x < springs.most)
    rows = np.where(free, D, 0.0)[:, None] * A[:n]
    if not m:
        return rows
    at, mu, c = cones_at(X, springs), springs.mu, springs.friction
    w = at.U / at.T[:, None]
    bent = (mu * at.N / at.T)[:, None, None]
    corner = bent * (w[:, :, None] * w[:, None, :] - np.eye(size - 1))
    corner = corner + (mu * mu)[:, None, None] * np.eye(size - 1)
    first = np.concatenate([np.ones((m, 1)), -mu[:, None] * w], axis=1)
    rest = np.concatenate([first[:, 1:, None], corner], axis=2)
    scale = np.concatenate([mu[:, None], c], axis=1)
    slope = np.concatenate([first[:, None, :], rest], axis=1)
    stiff = K[:, 0] / (mu * mu * (1.0 + mu * mu))
    slope = stiff[:, None, None] * scale[:, :, None] * slope * scale[:, None, :]
    full = K[:, :, None] * np.eye(size)
    C = np.where(at.full[:, None, None], full, np.where(at.edge[:, None, None], slope, 0.0))
    cones = C @ A[n:].reshape(m, size, -1)
    return np.concatenate([rows, cones.reshape(m * size, -1)])


@solve_forces.defjvp
def force_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    """Return dl of dJ, dW, db and those of what forces are made of."""
    (J, W, b, *rest), (dJ, dW, db, *changes) = primals, tangents
    l, springs = solve_forces(J, W, b, *rest), Springs(*rest)
    a = times(W, l)
    x, dx = times(J, a) + b, times(dJ, a) + times(J, times(dW, l)) + db
    own = jvp(lambda x, *rest: force_at(x, Springs(*rest)), argnums=(0, 1, 2, 3, 4, 5))
    return l, prepare(J, W, springs)(x, own(x, *rest, (dx, *changes)))


#: Numbers take the way that recordings take: the loops are native code.
soft_kernel = compile(solve_forces)
