"""Linear model-predictive control: a condensed quadratic program at every step.

Symbols: N steps of horizon, X = T x + S U the states ahead (N n,) for inputs U (N m,), H and q the
cost U'HU/2 + q'U. (J. Rawlings, D. Mayne, M. Diehl, "Model predictive control", 2nd ed., 2017,
sections 1.3 and 8.8.4: condensing.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import checks
from archimedes.control.linear.matrix_equations import solve_dare
from archimedes.control.matrix_checks import check_sizes, matrix, symmetric_matrix, vector
from archimedes.optimize import QPSolution, solve_qp
from archimedes.portable_numpy import matmul
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

__all__ = ["LinearMPC"]


@struct
class LinearMPC:
    """Model predictive control of x+ = A x + B u within limits.

    It minimizes the sum of (x - x_ref)'Q(x - x_ref) + (u - u_ref)'R(u - u_ref) over the horizon. If
    the quadratic program is not solved, the last plan is followed. The number of iterations is
    bounded and there are no branches on data: it compiles, maps, differentiates and generates C.

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.
    Q : array (n, n)
        Weights of the states, symmetric.
    R : array (m, m)
        Weights of the inputs, symmetric and positive definite.
    horizon : int
        Number of steps N that are planned.
    P : array (n, n), optional
        Weights of the last state. By default the cost matrix of the regulator `dlqr`, so that the
        controller is that regulator where no limit is active.
    lower : float or array (m,), optional
        Lower limit of the inputs.
    upper : float or array (m,), optional
        Upper limit of the inputs.
    change : float or array (m,), optional
        Largest change of the inputs in one step.
    x_lower : float or array (n,), optional
        Lower limit of the states.
    x_upper : float or array (n,), optional
        Upper limit of the states.
    soft : float, optional
        Weight of exceeding the limits of states. Without it, limits that cannot be met make the
        plan fail.
    max_iter : int, optional
        Largest number of iterations.
    tol : float, optional
        Tolerance of the quadratic program.
    warm_start : bool, optional
        Start from the last plan, moved on by one step. True by default.

    Examples
    --------
    >>> A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.005], [0.1]])
    >>> mpc = LinearMPC(A, B, np.eye(2), 0.1 * np.eye(1), horizon=10, lower=-1.0, upper=1.0)
    >>> state, u = mpc.step(mpc.start(), np.array([2.0, 0.0]))
    >>> u.round(6), int(state.status)
    (array([-1.]), 0)
    """

    @struct
    class State:
        """The plan with its multipliers, the last input, and how the solver ended.

        Parameters
        ----------
        plan : array (N, m)
            Planned inputs.
        slack : array
            Amounts by which limits of states are exceeded.
        lam_a : array
            Multipliers of the constraints.
        lam_x : array
            Multipliers of the limits of the inputs.
        u : array (m,)
            Last input.
        status : int
            0 if the last quadratic program was solved.
        iterations : int
            Number of iterations.
        """

        plan: Array
        slack: Scalar
        lam_a: Array
        lam_x: Array
        u: Array
        status: Any
        iterations: Any

    A: Array
    B: Array
    Q: Array
    R: Array
    horizon: int = field(static=True)
    P: Any = None
    lower: Scalar = -np.inf
    upper: Scalar = np.inf
    change: Scalar = np.inf
    x_lower: Scalar = -np.inf
    x_upper: Scalar = np.inf
    soft: float | None = field(static=True, default=None)
    max_iter: int = field(static=True, default=25)
    tol: float = field(static=True, default=1e-8)
    warm_start: bool = field(static=True, default=True)

    def __post_init__(self) -> None:
        n = matrix(self.A, "A").shape[0]
        put = object.__setattr__
        put(self, "A", matrix(self.A, "A", n, n))
        put(self, "B", matrix(self.B, "B", n))
        m = self.B.shape[1]
        put(self, "Q", symmetric_matrix(self.Q, "Q", n, eigenvalues="not negative"))
        put(self, "R", symmetric_matrix(self.R, "R", m, eigenvalues="positive"))
        P = solve_dare(self.A, self.B, self.Q, self.R) if self.P is None else self.P
        put(self, "P", symmetric_matrix(P, "P", n, eigenvalues="not negative"))
        checks.check_whole(self.horizon, "horizon", 1)
        checks.check_positive(1.0 if self.soft is None else self.soft, "soft")
        checks.check_limits(self.lower, self.upper, "lower and upper")
        checks.check_limits(self.x_lower, self.x_upper, "x_lower and x_upper")
        checks.check_not_negative(self.change, "change")
        check_sizes(self, {"lower": m, "upper": m, "change": m, "x_lower": n, "x_upper": n})

    def start(self, u: Scalar = 0.0) -> State:
        """Return the state before the first step.

        Parameters
        ----------
        u : float or array (m,), optional
            Input that was held before the first step.
        """
        m, N = self.B.shape[1], self.horizon
        u, none = u + np.zeros(m), np.int64(0)
        count = self._make_rows(np.zeros(self.A.shape[0]), u)[0].shape[0]
        lam = np.zeros(count), np.zeros(N * m + (self.soft is not None))
        return self.State(np.zeros((N, m)) + u, np.float64(0.0), *lam, u, none, none)

    def step(self, state: State, input: ArrayLike | tuple[ArrayLike, ...]) -> tuple[State, Array]:
        """Return the next state and the input u (m,).

        Parameters
        ----------
        state : LinearMPC.State
            State.
        input : array (n,) or tuple
            State x of the plant, or ``(x, x_ref)``, or ``(x, x_ref, u_ref)``.
        """
        (n, m), N = self.B.shape, self.horizon
        x, x_ref, u_ref = _read_target(input, n, m)
        T, S = self._predict()
        QS = self._weigh(S)
        R = np.kron(np.eye(N), self.R)
        H = matmul(S.T, QS) + R
        q = QS.T @ (T @ x - np.tile(x_ref, N)) - R @ np.tile(u_ref, N)
        rows, low, high = self._make_rows(x, state.u)
        lower, upper = (np.tile(edge + np.zeros(m), N) for edge in (self.lower, self.upper))
        if self.soft is not None:
            H, q, lower, upper = self._add_slack(H, q, lower, upper)
        # On from the last plan, whose last input is used again.
        later = np.concatenate([state.plan[1:], state.plan[-1:]])
        start = np.reshape(later, (-1,))
        if self.soft is not None:
            start = np.concatenate([start, np.reshape(state.slack, (1,))])
        nothing = np.float64(0.0)
        guess = QPSolution(start, state.lam_a, state.lam_x, nothing, nothing, nothing, nothing)
        solution = solve_qp(
            *(H, q, rows, low, high, lower, upper),
            tol=self.tol,
            max_iter=self.max_iter,
            guess=guess if self.warm_start else None,
        )
        good = (solution.status == 0) & np.all(np.isfinite(solution.x))
        plan = np.where(good, np.reshape(solution.x[: N * m], (N, m)), later)
        u = np.minimum(np.maximum(plan[0], self.lower), self.upper)
        slack = nothing if self.soft is None else np.where(good, solution.x[-1], 0.0)
        pairs = (solution.lam_a, state.lam_a), (solution.lam_x, state.lam_x)
        lam_a, lam_x = (np.where(good, new, old) for new, old in pairs)
        return self.State(plan, slack, lam_a, lam_x, u, solution.status, solution.iterations), u

    def _predict(self) -> tuple[Array, Array]:
        """Return T (N n, n) and S (N n, N m)."""
        powers = [np.eye(self.A.shape[0])]
        for _ in range(self.horizon):
            powers.append(matmul(self.A, powers[-1]))
        effects = [matmul(power, self.B) for power in powers]
        none = np.zeros(self.B.shape)
        N = self.horizon
        columns = [np.concatenate([none] * j + effects[: N - j]) for j in range(N)]
        return np.concatenate(powers[1:]), np.concatenate(columns, axis=1)

    def _weigh(self, S: Array) -> Array:
        n, N = self.A.shape[0], self.horizon
        blocks = [matmul(self.Q, S[k * n : (k + 1) * n]) for k in range(N - 1)]
        return np.concatenate([*blocks, matmul(self.P, S[(N - 1) * n :])])

    def _make_rows(self, x: Array, last: Array) -> tuple[Array, Array, Array]:
        """Return rows with their limits: states that have any, then changes of inputs."""
        (n, m), N = self.B.shape, self.horizon
        T, S = self._predict()
        edges = [edge + np.zeros(n) for edge in (self.x_lower, self.x_upper)]
        limited = np.arange(n)
        if not checks.is_traced(edges):
            limited = np.flatnonzero(np.isfinite(edges[0]) | np.isfinite(edges[1]))
        rows = (np.arange(N)[:, None] * n + limited).ravel()
        free = (T @ x)[rows]
        low, high = (np.tile(edge[limited], N) - free for edge in edges)
        G = S[rows]
        if self.soft is not None:
            # G u + s >= low and G u - s <= high, with one s >= 0 for all.
            one, inf = np.ones((len(rows), 1)), np.full(len(rows), np.inf)
            G = np.concatenate([np.concatenate([G, one], 1), np.concatenate([G, -one], 1)])
            low, high = np.concatenate([low, -inf]), np.concatenate([inf, high])
        if not checks.is_traced(self.change) and not np.any(np.isfinite(self.change)):
            return G, low, high
        D = np.eye(N * m) - np.eye(N * m, k=-m)
        if self.soft is not None:
            D = np.concatenate([D, np.zeros((N * m, 1))], axis=1)
        first = np.concatenate([last, np.zeros((N - 1) * m)])
        change = np.tile(self.change + np.zeros(m), N)
        low, high = np.concatenate([low, first - change]), np.concatenate([high, first + change])
        return np.concatenate([G, D]), low, high

    def _add_slack(
        self, H: Array, q: Array, lower: Array, upper: Array
    ) -> tuple[Array, Array, Array, Array]:
        """Add the slack of soft limits, which costs soft (s + s^2 / 2)."""
        k, price = H.shape[0], np.full(1, float(self.soft or 0.0))
        side, corner = np.zeros((k, 1)), np.diag(price)
        H = np.concatenate([np.concatenate([H, side], 1), np.concatenate([side.T, corner], 1)])
        limits = np.concatenate([lower, np.zeros(1)]), np.concatenate([upper, np.full(1, np.inf)])
        return H, np.concatenate([q, price]), *limits


def _read_target(
    input: ArrayLike | tuple[ArrayLike, ...], n: int, m: int
) -> tuple[Array, Array, Array]:
    parts: tuple[Any, ...] = input if isinstance(input, tuple) else (input,)
    if not 1 <= len(parts) <= 3:
        raise ValueError("input must be x, or a tuple (x, x_ref) or (x, x_ref, u_ref)")
    zeros: tuple[Any, ...] = (np.zeros(n), np.zeros(m))
    x, x_ref, u_ref = parts + zeros[len(parts) - 1 :]
    return vector(x, "x", n), vector(x_ref, "x_ref", n), vector(u_ref, "u_ref", m)
