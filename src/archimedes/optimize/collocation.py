"""Collocation: nodes, weights and matrices of polynomials on an interval.

A polynomial is known by its values at n nodes c. Symbols: L_j the Lagrange polynomials of the nodes
(L_j(c_i) is 1 if i = j, else 0), w weights of quadrature, D differentiation matrix, A integration
matrix, P_n Legendre polynomials.

`OptimalControl` is built on these functions. They serve for a transcription of your own, or for
implicit Runge-Kutta methods: ``integration_matrix(radau(3, (0.0, 1.0))[0], 0.0)`` is the matrix of
Radau IIA.

Source: P. J. Davis, P. Rabinowitz, "Methods of numerical integration" (2nd ed.,
Academic Press 1984), section 2.7.

>>> nodes, weights = gauss(3)
>>> round(float(weights @ nodes**4), 12)  # the integral of x^4 from -1 to 1
0.4
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_choice, check_whole, concrete
from archimedes.typing import Array, ArrayLike

__all__ = ["differentiation_matrix", "gauss", "integration_matrix", "lagrange", "radau"]

#: Nodes and weights.
Rule = tuple[np.ndarray, np.ndarray]
#: Digits in which nodes are found; the step that ends Newton's method, and the most of them.
DIGITS, LAST_STEP, MOST_STEPS = 40, Decimal("1e-36"), 30


def gauss(n: int, interval: tuple[float, float] = (-1.0, 1.0)) -> Rule:
    """Return nodes and weights of Legendre-Gauss quadrature, which has no node at an end.

    They integrate polynomials up to degree 2n - 1. Every number is correctly rounded on every
    machine.

    Parameters
    ----------
    n : int
        Number of nodes, at least 1.
    interval : (float, float), optional
        Beginning and end of the interval, (-1, 1) by default as in
        ``numpy.polynomial.legendre.leggauss``.

    Returns
    -------
    nodes : array (n,)
        The zeros of P_n, in increasing order.
    weights : array (n,)
        Weights. Their sum is the length of the interval.

    Examples
    --------
    >>> gauss(2, (0.0, 1.0))
    (array([0.21132487, 0.78867513]), array([0.5, 0.5]))
    """
    return _move(_find_rule(check_whole(n, "gauss: n", 1), False), interval, "gauss")


def radau(n: int, interval: tuple[float, float] = (-1.0, 1.0), end: str = "right") -> Rule:
    """Return nodes and weights of Legendre-Gauss-Radau quadrature, with a node at one end.

    They integrate polynomials up to degree 2n - 2. Every number is correctly rounded on every
    machine.

    Parameters
    ----------
    n : int
        Number of nodes, at least 1.
    interval : (float, float), optional
        Beginning and end of the interval, (-1, 1) by default.
    end : {"right", "left"}, optional
        The end that is a node. ``"right"`` as in Radau IIA and ``scheme="radau3"`` of
        `OptimalControl`; ``"left"`` as in most pseudospectral methods.

    Returns
    -------
    nodes : array (n,)
        The zeros of P_n - P_(n-1), or their mirror images, in increasing order.
    weights : array (n,)
        Weights. Their sum is the length of the interval.

    Examples
    --------
    >>> radau(2, (0.0, 1.0))
    (array([0.33333333, 1.        ]), array([0.75, 0.25]))
    """
    check_choice(end, "radau: end", ("right", "left"))
    rule = _find_rule(check_whole(n, "radau: n", 1), True)
    if end == "left":
        rule = [(-x, w) for x, w in reversed(rule)]
    return _move(rule, interval, "radau")


def lagrange(nodes: ArrayLike, at: ArrayLike) -> Array:
    """Return the values of the Lagrange polynomials of some nodes.

    ``lagrange(nodes, at) @ values`` interpolates values at the nodes.

    Parameters
    ----------
    nodes : array (n,)
        Nodes, all different.
    at : array (m,)
        Where to evaluate. It may be traced.

    Returns
    -------
    array (m, n)
        L_j at each point.

    Examples
    --------
    >>> lagrange([0.0, 1.0], [0.25])
    array([[0.75, 0.25]])
    """
    points, where = _read_nodes(nodes, "lagrange"), _as_points(at, "lagrange: at")
    values = []
    for j, here in enumerate(points):
        others = np.delete(points, j)
        values.append(_multiply([where - other for other in others], where) / _span(here, others))
    return np.stack(values, axis=1)


def differentiation_matrix(nodes: ArrayLike, at: ArrayLike | None = None) -> Array:
    """Return the matrix D that takes values at nodes to slopes of the polynomial through them.

    Parameters
    ----------
    nodes : array (n,)
        Nodes, all different.
    at : array (m,), optional
        Where the slopes are wanted, the nodes by default. It may be traced.

    Returns
    -------
    array (m, n)
        Slopes of L_j at each point.

    Examples
    --------
    >>> differentiation_matrix([0.0, 0.5, 1.0]) @ np.array([0.0, 0.25, 1.0])  # of s^2
    array([0., 1., 2.])
    """
    points = _read_nodes(nodes, "differentiation_matrix")
    where = points if at is None else _as_points(at, "differentiation_matrix: at")
    slopes = []
    for j, here in enumerate(points):
        others = np.delete(points, j)
        factors = [where - other for other in others]
        terms = [_multiply(factors[:k] + factors[k + 1 :], where) for k in range(len(factors))]
        slopes.append((sum(terms) if terms else where * 0.0) / _span(here, others))
    return np.stack(slopes, axis=1)


def integration_matrix(nodes: ArrayLike, start: float, at: ArrayLike | None = None) -> Array:
    """Return the matrix A that takes values at nodes to integrals of the polynomial through them.

    Parameters
    ----------
    nodes : array (n,)
        Nodes, all different.
    start : float
        Lower limit of all integrals.
    at : array (m,), optional
        Upper limits, the nodes by default.

    Returns
    -------
    array (m, n)
        Integrals of L_j from ``start`` to each point.

    Examples
    --------
    >>> integration_matrix([1 / 3, 1.0], 0.0) * 12  # Radau IIA of order 3
    array([[ 5., -1.],
           [ 9.,  3.]])
    """
    points = _read_nodes(nodes, "integration_matrix")
    ends = points if at is None else np.asarray(_as_points(at, "integration_matrix: at"))
    inner, weights = gauss(len(points), (0.0, 1.0))
    lengths = ends - start
    values = lagrange(points, (start + lengths[:, None] * inner).ravel())
    return np.einsum("mqn,q,m->mn", values.reshape(len(ends), len(inner), -1), weights, lengths)


@cache
def _find_rule(n: int, with_end: bool) -> list[tuple[Decimal, Decimal]]:
    """Return nodes on [-1, 1] and their weights: of Radau with the node 1, or of Gauss.

    Newton's method in 40 digits finds them: eigenvalues by LAPACK would differ from processor to
    processor.
    """
    first, count = (0.0, 2 * n - 1) if with_end else (0.75, n + 0.5)
    turn = 2.0 if with_end else 1.0
    rule = []
    with localcontext() as context:
        context.prec = DIGITS
        for i in reversed(range(n)):
            x = Decimal(math.cos(turn * math.pi * (i + first) / count))
            for _ in range(MOST_STEPS):
                p, before, slope, slope_before = Decimal(1), Decimal(0), Decimal(0), Decimal(0)
                for j in range(n):
                    later = ((2 * j + 1) * x * p - j * before) / (j + 1)
                    slope, slope_before = slope_before + (2 * j + 1) * p, slope
                    p, before = later, p
                step = (p - before) / (slope - slope_before) if with_end else p / slope
                x -= step
                if abs(step) <= LAST_STEP:
                    break
            weight = (1 + x) / (n * before) ** 2 if with_end else 2 / ((1 - x * x) * slope**2)
            rule.append((x, weight))
    return rule


def _move(rule: list[tuple[Decimal, Decimal]], interval: Any, what: str) -> Rule:
    """Return a rule on another interval, as floats."""
    try:
        begin, end = map(float, interval)
    except (TypeError, ValueError):
        begin, end = math.nan, math.nan
    if not (begin < end and math.isfinite(end - begin)):
        raise ValueError(
            f"{what}: interval = {interval!r} must be two numbers, the lower one first"
        )
    with localcontext() as context:
        context.prec = DIGITS
        a, half = Decimal(begin), (Decimal(end) - Decimal(begin)) / 2
        nodes = [float(a + half * (1 + x)) for x, _ in rule]
        return np.array(nodes), np.array([float(half * w) for _, w in rule])


def _read_nodes(nodes: ArrayLike, what: str) -> np.ndarray:
    points = concrete(as_array(nodes, f"{what}: nodes"))
    if points is None or points.ndim != 1 or points.size == 0:
        raise ValueError(f"{what}: nodes must be one or more numbers (n,) that are known")
    if len(np.unique(points)) < len(points) or not np.all(np.isfinite(points)):
        raise ValueError(f"{what}: nodes must be finite and all different, got {points}")
    return points * 1.0


def _as_points(at: ArrayLike, what: str) -> Array:
    where = as_array(at, what) * 1.0
    if np.ndim(where) != 1:
        raise ValueError(f"{what} must have shape (m,), got {np.shape(where)}")
    return where


def _multiply(factors: list[Array], like: Array) -> Array:
    total = like * 0.0 + 1.0
    for factor in factors:
        total = total * factor
    return total


def _span(here: float, others: np.ndarray) -> Any:
    return np.prod(here - others)
