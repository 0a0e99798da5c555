"""Delays: Padé approximations, chains of steps, and responses of systems with exact delays.

The last inputs w of such a system are its last outputs z some time ago, w_i(t) = z_i(t - delay_i).
Responses are found by the method of steps: between the times at which delayed signals may jump
everything is smooth, and polynomials through Radau points follow it to rounding (A. Bellen,
M. Zennaro, "Numerical methods for delay differential equations", 2003, ch. 4).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from archimedes.checks import check_not_negative, is_traced
from archimedes.optimize.collocation import differentiation_matrix, lagrange, radau
from archimedes.typing import Array, Scalar

__all__ = ["pade"]

#: Radau points of a polynomial, and how far the fastest mode may go along one.
POINTS, REACH = 7, 0.7
#: Most polynomials of one response.
MOST_PIECES = 200_000


def pade(delay: Scalar, order: int = 1, numdeg: int | None = None) -> tuple[Array, Array]:
    """Return numerator and denominator of the Padé approximation of a delay, exp(-delay s).

    Parameters
    ----------
    delay : float
        Delay in s.
    order : int, optional
        Degree of the denominator, 1 by default.
    numdeg : int, optional
        Degree of the numerator; that of the denominator by default.

    Examples
    --------
    >>> num, den = pade(2.0, 1)
    >>> num, den
    (array([-1.,  1.]), array([1., 1.]))
    """
    check_not_negative(delay, "delay", "s")
    m = order if numdeg is None else numdeg
    if order < 0 or m < 0:
        raise ValueError(f"pade: degrees must not be negative, got {order} and {m}")
    if not is_traced(delay) and delay == 0.0:
        return np.ones(1), np.ones(1)
    # Golub, Van Loan, Matrix computations, 3rd ed., sect. 11.3.1.
    num, den = [1.0], [1.0]
    for k in range(1, m + 1):
        num.append(-num[-1] * (m - k + 1) / ((m + order - k + 1) * k))
    for k in range(1, order + 1):
        den.append(den[-1] * (order - k + 1) / ((m + order - k + 1) * k))
    num_s, den_s = (
        np.array(p[::-1]) * np.asarray(delay) ** np.arange(len(p) - 1, -1, -1) for p in (num, den)
    )
    first = den_s[0]
    return num_s / first, den_s / first


def pade_matrices(delay: Scalar, order: int) -> tuple[Array, Array, Array, Array]:
    """Return A, B, C, D of the Padé approximation of a delay, in units of time that suit it."""
    num, den = pade(1.0, order)
    A = np.concatenate([-den[None, 1:], np.eye(order - 1, order)]) if order else np.zeros((0, 0))
    B, C = np.eye(order, 1), (num[1:] - num[0] * den[1:])[None]
    return A / delay, B / delay, C, num[:1, None]


def chain_matrices(steps: int) -> tuple[Array, Array, Array, Array]:
    """Return A, B, C, D of a delay by some steps in discrete time: a state for each."""
    A, B, C = np.eye(steps, k=-1), np.eye(steps, 1), np.eye(1, steps, steps - 1)
    return A, B, C, np.ones((1, 1)) * (steps == 0)


def sums_of_delays(delays: np.ndarray, span: float, most: int = 4000) -> np.ndarray:
    """Return the times up to ``span`` at which something that began at zero may come back."""
    every = np.zeros(1)
    while True:
        more = (every[:, None] + [0.0, *delays]).ravel()
        more = _merge(more[more <= span], span)
        if len(more) == len(every) or len(more) > most:
            return every
        every = more


def respond(
    matrices: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    delays: np.ndarray,
    times: np.ndarray,
    x0: np.ndarray,
    inputs: Callable[[np.ndarray], np.ndarray] | None,
    kinks: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """Return states (N, n, r) and outputs (N, p, r) of r solutions with exact delays.

    ``inputs`` gives u (times, m, r); None is an impulse at each input. ``kinks`` says whether the
    inputs have them at all times, and not at the first one alone.
    """
    A, B, C, D = matrices
    k = len(delays)
    n, m, columns = len(A), B.shape[1] - k, x0.shape[1]
    run = _Run(A, B, C, D, delays)
    t0, span = times[0], times[-1] - times[0]
    run.divide(np.array([0.0, span]))  # raises where that is too much
    marks = sums_of_delays(delays, span)
    if kinks:  # one that has passed the plant twice is smooth enough
        once = np.append(0.0, delays)
        marks = np.append(marks, times - t0 + (once[:, None] + once).ravel()[:, None])
    grid = _merge(np.concatenate([times - t0, marks[marks <= span]]), span)
    starts = run.divide(grid)
    impulses: dict[float, np.ndarray] = {}
    if inputs is None:
        x0 = x0 + B[:, :m]
        run.emit(impulses, 0.0, D[-k:, :m])
    u_at = inputs or (lambda t: np.zeros((len(t), m, columns)))
    lengths = np.diff(np.append(starts, 2.0 * starts[-1] - starts[-2]))  # one more beyond the end
    X, Y = np.zeros((len(starts), n, columns)), np.zeros((len(starts), len(C) - k, columns))
    run.begin(starts, lengths, columns)
    x = x0
    for j, (start, h) in enumerate(zip(starts, lengths)):
        for time in [time for time in impulses if time <= start + 1e-9 * h]:
            amount = impulses.pop(time)
            x = x + B[:, m:] @ amount
            run.emit(impulses, time, D[-k:, m:] @ amount)
        u = u_at(t0 + start + h * run.nodes)
        X[j], x, Y[j] = x, *run.step(j, x, u)
    at = np.searchsorted(starts, times - t0 - 1e-9 * span / len(times))
    return X[at], Y[at]


def _merge(times: np.ndarray, span: float) -> np.ndarray:
    """Return times in order without those that differ by rounding."""
    times = np.sort(times)
    return times[np.append(True, np.diff(times) > 1e-11 * span)]


class _Run:
    """Polynomials of the delayed signals so far, and the step to the next one."""

    def __init__(
        self, A: np.ndarray, B: np.ndarray, C: np.ndarray, D: np.ndarray, delays: np.ndarray
    ) -> None:
        self.A, self.B, self.C, self.D, self.delays = A, B, C, D, delays
        self.nodes = np.append(0.0, radau(POINTS, (0.0, 1.0))[0])
        self.slopes = differentiation_matrix(self.nodes)[1:]
        fastest = np.abs(np.linalg.eigvals(A)).max(initial=0.0)
        self.longest = min(delays.min(), REACH / fastest if fastest else np.inf)
        self.solvers: dict[float, np.ndarray] = {}

    def divide(self, grid: np.ndarray) -> np.ndarray:
        """Return where polynomials begin, so that none is longer than ``longest``."""
        counts = np.maximum(np.ceil(np.diff(grid) / self.longest - 1e-9), 1.0).astype(int)
        if (total := counts.sum()) > MOST_PIECES:
            raise ValueError(
                f"the response needs {total} pieces of at most {self.longest:.3g} s, because a "
                "delay or a mode is so short: give shorter times, or use system.pade(2)"
            )
        parts = [a + (b - a) / c * np.arange(c) for a, b, c in zip(grid[:-1], grid[1:], counts)]
        return np.append(np.concatenate(parts), grid[-1])

    def begin(self, starts: np.ndarray, lengths: np.ndarray, columns: int) -> None:
        """Make room for the polynomials."""
        self.starts, self.lengths = starts, lengths
        self.z = np.zeros((len(starts), len(self.nodes), len(self.delays), columns))

    def emit(self, impulses: dict[float, np.ndarray], time: float, amount: np.ndarray) -> None:
        """Note the impulses that delays send on."""
        for i, delay in enumerate(self.delays):
            if np.any(amount[i]):
                later = float(time + delay)
                same = next((t for t in impulses if abs(t - later) <= 1e-9 * delay), later)
                there = impulses.setdefault(same, np.zeros_like(amount))
                there[i] += amount[i]

    def step(self, j: int, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the state at the end of a polynomial, and the output at its beginning."""
        h, k = self.lengths[j], len(self.delays)
        v = np.concatenate([u, self._delayed(j)], axis=1)
        n, q = len(self.A), len(self.nodes) - 1
        key = float(f"{h:.12g}")
        if key not in self.solvers:
            rates = np.kron(np.eye(q), h * self.A)
            self.solvers[key] = np.linalg.inv(np.kron(self.slopes[:, 1:], np.eye(n)) - rates)
        right = h * (self.B @ v[1:]) - self.slopes[:, :1, None] * x
        states = (self.solvers[key] @ right.reshape(q * n, -1)).reshape(q, n, -1)
        states = np.concatenate([x[None], states])
        y = self.C @ states + self.D @ v
        self.z[j] = y[:, -k:]
        return states[-1], y[0, : len(self.C) - k]

    def _delayed(self, j: int) -> np.ndarray:
        """Return the delayed signals (q + 1, k, r) at the points of a polynomial."""
        start, h = self.starts[j], self.lengths[j]
        w = np.zeros((len(self.nodes), *self.z.shape[2:]))
        # A point at the end of a smooth part belongs to that part.
        inside = start + h * (self.nodes * (1.0 - 2e-6) + 1e-6)
        for i, delay in enumerate(self.delays):
            piece = np.searchsorted(self.starts, inside - delay, side="right") - 1
            for which in np.unique(piece[piece >= 0]):
                here = piece == which
                s = start + h * self.nodes[here] - delay - self.starts[which]
                weights = lagrange(self.nodes, s / self.lengths[which])
                w[here, i] = weights @ self.z[which, :, i]
        return w
