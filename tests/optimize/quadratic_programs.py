"""Quadratic programs whose answers are known by construction.

    min 1/2 x^T P x + q^T x,   low <= A x <= high,   lower <= x <= upper

A solvable one is made backwards: x, the limits it lies on and their multipliers are chosen, and q
follows from the conditions of a minimum. An infeasible one has rows that contradict each other,
an unbounded one a ray along which the cost falls and no limit is met. Then unknowns, rows and the
cost are given other units, which change no answer. All have N unknowns and M rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

__all__ = ["PROGRAMS", "Program"]

N, M = 8, 10
INF = np.inf


@dataclass(frozen=True)
class Program:
    """Data as ``solve_qp`` takes it; ``status`` is 0, 10 (infeasible) or 11 (unbounded)."""

    P: np.ndarray
    q: np.ndarray
    A: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: int = 0
    x: Any = None

    @property
    def data(self) -> tuple[np.ndarray, ...]:
        return self.P, self.q, self.A, self.low, self.high, self.lower, self.upper

    def cost(self, x: np.ndarray) -> float:
        return float(0.5 * x @ self.P @ x + self.q @ x)

    def cost_size(self, x: np.ndarray) -> float:
        """Return the size of the numbers whose sum the cost is."""
        return float(0.5 * abs(x) @ abs(self.P) @ abs(x) + abs(self.q) @ abs(x))

    def in_units(self, unknowns: Any, rows: Any, cost: float = 1.0) -> Program:
        """Return the program for x / unknowns, rows * A and cost * (P, q)."""
        u, r = np.broadcast_to(unknowns, (N,)), np.broadcast_to(rows, (M,))
        return replace(
            self,
            P=cost * u[:, None] * self.P * u,
            q=cost * u * self.q,
            A=r[:, None] * self.A * u,
            low=r * self.low,
            high=r * self.high,
            lower=self.lower / u,
            upper=self.upper / u,
            x=None if self.x is None else self.x / u,
        )


def solvable(seed, rank=N, equations=2, active=2, at_bounds=2, idle=0, dependent=0, size=1.0):
    """Make a program backwards from its solution.

    ``idle`` of the limits that hold have no multiplier (degenerate), ``dependent`` rows are
    combinations of others.
    """
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(N, rank))
    P, A, x = root @ root.T, rng.normal(size=(M, N)), size * rng.normal(size=N)
    for k in range(dependent):
        A[equations + active - 1 - k] = A[: equations + active - dependent].sum(axis=0) * (k + 1)
    z = A @ x
    low, high = z - size * rng.uniform(0.5, 2.0, M), z + size * rng.uniform(0.5, 2.0, M)
    lower, upper = x - size * rng.uniform(0.5, 2.0, N), x + size * rng.uniform(0.5, 2.0, N)
    high[M // 2 :: 2] = INF
    upper[::3] = INF
    lam, lam_x = np.zeros(M), np.zeros(N)
    low[:equations] = high[:equations] = z[:equations]
    lam[:equations] = rng.normal(size=equations)
    holding = slice(equations, equations + active)
    low[holding], lam[holding] = z[holding], -rng.uniform(0.5, 2.0, active)
    lower[:at_bounds], lam_x[:at_bounds] = x[:at_bounds], -rng.uniform(0.5, 2.0, at_bounds)
    lam[equations : equations + idle] = 0.0
    lam_x[:idle] = 0.0
    q = -(P @ x + size * (A.T @ lam + lam_x))
    return Program(P, q, A, low, high, lower, upper, 0, x)


def vertex(seed, more=0):
    """Return a linear program: N rows and bounds hold at its solution, and ``more`` besides."""
    return solvable(seed, 0, 2, 3 + more, N - 5, idle=0)


def infeasible(seed, gap=1.0, by_bounds=False):
    """Return rows that no x satisfies: weights >= 0 add them up to 0 <= -gap."""
    program = solvable(seed)
    A, low, high = program.A.copy(), program.low.copy(), program.high.copy()
    lower, upper = program.lower.copy(), program.upper.copy()
    if by_bounds:
        lower, upper = program.x - 1.0, program.x + 1.0
        most = A[5] @ program.x + abs(A[5]).sum()
        low[5], high[5] = most + gap, INF
    else:
        A[7] = A[4:7].sum(axis=0)
        low[4:7], high[4:7] = -INF, A[4:7] @ program.x
        low[7], high[7] = high[4:7].sum() + gap, INF
    return replace(program, A=A, low=low, high=high, lower=lower, upper=upper, status=10, x=None)


def unbounded(seed, linear=False):
    """Return a cost that falls along a ray, which has no curvature and meets no limit."""
    rng = np.random.default_rng(5000 + seed)
    program = solvable(seed, rank=0 if linear else 4, at_bounds=0)
    ray = rng.normal(size=N)
    away = np.eye(N) - np.outer(ray, ray) / (ray @ ray)
    P, A = away @ program.P @ away, program.A @ away
    A[M // 2 :: 2] = program.A[M // 2 :: 2]
    A[M // 2 :: 2] *= np.sign(A[M // 2 :: 2] @ ray)[:, None]  # these have a lower limit only
    z = A @ program.x
    low, high = z - 1.0, z + 1.0
    low[:2] = high[:2] = z[:2]
    high[M // 2 :: 2] = INF
    lower = np.where(ray > 0, program.x - 1.0, -INF)
    upper = np.where(ray > 0, INF, program.x + 1.0)
    q = program.q - ray * ((program.q @ ray) + 1.0) / (ray @ ray)
    return Program(P, q, A, low, high, lower, upper, 11)


def far_limits(seed):
    """Return bounds of 1e9 where none hold, as people write them who mean none."""
    program = solvable(seed)
    lower = np.where(program.lower < program.x, -1e9, program.lower)
    return replace(program, lower=lower, upper=np.full(N, 1e9))


def staircase(seed, spread):
    """Return stages that feed each other, x[k + 1] = a x[k] + u[k], of growing size."""
    rng = np.random.default_rng(seed)
    half = N // 2
    A = np.zeros((M, N))
    for k in range(half - 1):
        A[k, k], A[k, k + 1], A[k, half + k] = -spread, 1.0, -1.0
    A[half - 1, 0] = 1.0
    A[half:] = rng.normal(size=(M - half, N)) * (rng.uniform(size=(M - half, N)) < 0.4)
    x = rng.uniform(0.5, 1.5, N)
    for k in range(half - 1):
        x[k + 1] = spread * x[k] + x[half + k]
    P = np.diag(np.append(np.zeros(half), np.ones(half)))
    z = A @ x
    low, high = z - 1.0 - abs(z), np.full(M, INF)
    low[:half] = high[:half] = z[:half]
    low[half] = z[half]
    lam = np.append(rng.normal(size=half), np.zeros(M - half))
    lam[half] = -1.0
    lower, upper = np.zeros(N), np.full(N, INF)
    return Program(P, -(P @ x + A.T @ lam), A, low, high, lower, upper, 0, x)


def spread_units(seed, decades, rows=True):
    rng = np.random.default_rng(1000 + seed)
    u = 10.0 ** rng.uniform(-decades / 2, decades / 2, N)
    return u, 10.0 ** rng.uniform(-decades / 2, decades / 2, M) if rows else 1.0


def _catalogue():
    programs = {}
    for k in range(6):
        programs[f"unknowns in units that differ by 1e4, {k}"] = solvable(k).in_units(
            *spread_units(k, 4, rows=False)
        )
    for k in range(6):
        programs[f"unknowns and rows in units that differ by 1e8, {k}"] = solvable(k).in_units(
            *spread_units(k, 8)
        )
    for k in range(4):
        programs[f"little curvature, units that differ by 1e6, {k}"] = solvable(
            20 + k, rank=3
        ).in_units(*spread_units(k, 6))
    for k, (size, cost) in enumerate([(1e6, 1.0), (1e-6, 1.0), (1.0, 1e8), (1.0, 1e-8)]):
        programs[f"numbers of size {size}, cost of size {cost}"] = solvable(
            30 + k, size=size
        ).in_units(1.0, 1.0, cost)
    for k in range(6):
        programs[f"degenerate, {k}"] = solvable(40 + k, rank=8 - k, idle=2, active=3).in_units(
            *spread_units(k, 2 * (k % 3))
        )
    for k in range(4):
        programs[f"dependent rows, {k}"] = solvable(
            50 + k, rank=5, active=3, dependent=1 + k % 2
        ).in_units(*spread_units(k, 2 * k))
    for k in range(6):
        programs[f"linear, vertex of {k // 2} rows too many, {k}"] = vertex(
            60 + k, more=k // 2
        ).in_units(*spread_units(k, k))
    for k in range(4):
        programs[f"staircase, {k}"] = staircase(70 + k, 10.0 ** (k / 2))
    for k in range(6):
        programs[f"infeasible rows, {k}"] = infeasible(80 + k, gap=10.0 ** (1 - k)).in_units(
            *spread_units(k, k)
        )
    for k in range(3):
        programs[f"limits far away, {k}"] = far_limits(110 + k)
    for k in range(4):
        programs[f"infeasible bounds, {k}"] = infeasible(90 + k, 1.0, True).in_units(
            *spread_units(k, 2 * k)
        )
    for k in range(8):
        programs[f"unbounded, {k}"] = unbounded(100 + k, linear=k % 2 == 1).in_units(
            *spread_units(k, k)
        )
    return programs


PROGRAMS = _catalogue()
