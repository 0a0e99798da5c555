"""The prediction-error method: a filter predicts each sample from those before it.

Innovations are weighted by their covariance at the parameters of the pass before, so that a fit
cannot win by believing itself less; the second pass uses the weights of the first one's result
(L. Ljung, "System identification", 2nd ed., 1999, 7.2 and 9.3).

Where the noise of the filter, Q and R, depends on parameters too, the fit maximizes the likelihood.
It minimizes the sum over samples of  1/2 e^T S^-1 e + 1/2 log det S,  of innovations e and their
covariances S, which both depend on the parameters. The covariance of the fit is the inverse of the
second derivatives there (Ljung, 7.4 and 9.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_whole
from archimedes.control.matrix_checks import symmetric_matrix
from archimedes.function import compile, hess, scan, vmap
from archimedes.observers.corrections import Filter
from archimedes.optimize import minimize
from archimedes.sysid.fit_results import Fit
from archimedes.sysid.timeseries import Timeseries
from archimedes.sysid.weighted_fits import Problem, Solved, Unknowns, check_given, make_fit, solve

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Tree

__all__ = ["pem"]


def _surprise(e: Array, S: Array) -> Any:
    """Return what one sample adds; one that is missing (e = 0, S = 1) adds nothing."""
    return 0.5 * (e @ np.linalg.solve(S, e)) + np.sum(np.log(np.diagonal(np.linalg.cholesky(S))))


def most_likely(
    along: Callable[[Any], tuple[Any, Any]], problem: Problem, options: Mapping[str, Any] | None
) -> Solved:
    """Maximise the likelihood of innovations (N, m) with covariances (N, m, m), functions of z."""
    held = np.array(problem.start)
    free = np.flatnonzero(problem.free)

    def cost(v: Array) -> Any:
        z = np.array(held)
        z[free] = v
        e, S = along(z)
        return np.sum(vmap(_surprise)(e, S)) / e.shape[0]

    start = held[free]
    if not np.isfinite(compile(cost)(start)):
        raise ValueError(
            "the likelihood is not finite with p_guess: start nearer, or keep Q and R positive "
            "with bounds= (or fit their logarithms)"
        )
    edges = (problem.lower[free], problem.upper[free])
    minimum = minimize(cost, start, bounds=edges, method="ipm", options=dict(options or {}))
    z = held.copy()
    z[free] = problem.start[free] = minimum.x
    e = np.asarray(compile(lambda z: along(z)[0])(z))
    H = np.zeros((z.size, z.size))
    H[np.ix_(free, free)] = e.shape[0] * hess(cost)(minimum.x)
    sizes, V = np.linalg.eigh(0.5 * (H + H.T))
    # As if they were slopes of residuals of variance one.
    slopes = np.sqrt(np.maximum(sizes, 0.0))[:, None] * V.T
    total = float(minimum.fun * e.shape[0])
    none = np.zeros((0, z.size))
    return Solved(
        z, e.ravel(), slopes, none, total, minimum.iterations, minimum.success, minimum.message, 1.0
    )


def pem(
    predictor: Filter | Callable[[Any], Filter],
    data: Timeseries,
    p_guess: Tree,
    x0: Tree,
    *,
    P0: ArrayLike | None = None,
    bounds: Tree = None,
    estimate_x0: bool = False,
    passes: int = 2,
    likelihood: bool = False,
    options: Mapping[str, Any] | None = None,
) -> Fit:
    """Fit parameters so that a filter predicts each sample best from those before it.

    The samples must be evenly spaced (use ``data.resample(dt)``); outputs that are nan are missing.
    With `likelihood`, ``cost`` of the result is the negative logarithm of the likelihood without
    its constant.

    Parameters
    ----------
    predictor : filter or callable
        A filter with functions ``dyn(t, x, u, p)`` and ``obs(t, x, u, p)``, or a function of p that
        returns a filter, whose functions are then ``dyn(t, x, u)`` and ``obs(t, x, u)``; a
        `KalmanFilter` needs B.
    data : Timeseries
        Measured data.
    p_guess : tree
        Parameters to start from.
    x0 : array or tree
        State at the first sample.
    P0 : array (n, n), optional
        Covariance of `x0`. By default that of the process noise of a step, Q.
    bounds : (tree, tree), optional
        Lower and upper limits of the parameters. Equal limits fix a number. None by default.
    estimate_x0 : bool, optional
        Fit `x0` as well. False by default.
    passes : int, optional
        Number of times that the fit is made, each with the weights that the last one estimated. 2
        by default.
    likelihood : bool, optional
        Fit the noise as well: maximize the likelihood. `predictor` is then a function of p that
        returns a filter whose Q and R depend on p, best through logarithms. False by default.
    options : mapping, optional
        Options of `least_squares`; with `likelihood`, of `minimize`.

    Examples
    --------
    >>> from archimedes.observers import ExtendedKalmanFilter
    >>> ts = 0.1 * np.arange(60)
    >>> us = np.sin(ts)[None]
    >>> ys = np.zeros((1, 60))
    >>> for k in range(59):
    ...     ys[:, k + 1] = 0.9 * ys[:, k] + 0.5 * us[:, k]
    >>> ekf = ExtendedKalmanFilter(lambda t, x, u, p: p["a"] * x + p["b"] * u,
    ...                            lambda t, x, u, p: x, Q=[[1e-6]], R=[[1e-4]])
    >>> found = pem(ekf, Timeseries(ts, us, ys), {"a": 0.5, "b": 1.0}, np.zeros(1))
    >>> {name: round(float(value), 4) for name, value in found.p.items()}
    {'a': 0.9, 'b': 0.5}
    """
    check_given(data, p_guess, x0)
    if not isinstance(predictor, Filter) and not callable(predictor):
        raise TypeError(
            "predictor must be a filter of archimedes.observers, or a function of p that returns "
            f"one, got {predictor!r}"
        )
    passes = check_whole(passes, "passes", 1)
    data.dt  # noqa: B018  raises where samples are not evenly spaced
    unknowns = Unknowns(p_guess, x0, bounds, 1, estimate_x0)
    run = _Run(predictor, unknowns, P0)

    def along(z: Array) -> tuple[Any, Any]:
        return run.along(unknowns.parameters(z), unknowns.states(z)[0], data)

    def residuals(z: Array, roots: Array) -> Any:
        innovations, _ = along(z)
        return np.reshape(np.sum(roots * innovations[:, None, :], axis=2), (-1,))

    def predict(p: Tree, x0: Tree, other: Timeseries) -> np.ndarray:
        flat = tree.ravel(x0)[0] * 1.0
        innovations = compile(lambda p, x: run.along(p, x, other)[0])(p, flat)
        return np.where(np.isfinite(other.ys), other.ys - np.asarray(innovations).T, np.nan)

    problem = Problem(residuals, None, unknowns.start, unknowns.lower, unknowns.upper)
    if likelihood:
        return make_fit(unknowns, problem, most_likely(along, problem, options), data, predict)
    spreads = compile(lambda z: along(z)[1])
    for _ in range(passes):
        # Roots of the inverse covariances of innovations, as they are believed now.
        S = np.asarray(spreads(problem.start))
        if not np.all(np.isfinite(S)):
            raise ValueError(
                "the predictor's covariances are not finite with p_guess: start nearer, or raise Q "
                "or R"
            )
        solved = solve(problem, np.linalg.inv(np.linalg.cholesky(S)), options)
    return make_fit(unknowns, problem, solved, data, predict)


class _Run:
    """A filter along data, for parameters and a first state."""

    def __init__(self, predictor: Any, unknowns: Unknowns, P0: ArrayLike | None) -> None:
        self.predictor, self.unknowns, self.P0 = predictor, unknowns, P0
        n = unknowns.nx
        if P0 is not None:
            self.P0 = symmetric_matrix(P0, "P0", n, eigenvalues="not negative")

    def of(self, p: Tree, inputs: int) -> tuple[Filter, Any]:
        """Return the filter, and its arguments as a function of u."""
        if isinstance(self.predictor, Filter):
            return self.predictor, lambda u: (u, p)
        observer = self.predictor(p)
        if not isinstance(observer, Filter):
            raise TypeError(f"predictor(p) must return a filter, got {type(observer).__name__}")
        return observer, lambda u: (u,) if inputs else ()

    def along(self, p: Tree, x: Array, data: Timeseries) -> tuple[Any, Any]:
        """Return innovations (N, rows) and their covariances (N, rows, rows)."""
        observer, args = self.of(p, len(data.us))
        P0 = getattr(observer, "Q", None) if self.P0 is None else self.P0
        if P0 is None:
            raise ValueError(f"give P0: a {type(observer).__name__} has no Q to take for it")
        P = observer.of_covariance(P0)
        us, ys = data.us.T, data.ys.T
        first = observer.correct(data.ts[0], self.unknowns.x.unravel(x), ys[0], P, args(us[0]))

        def sample(carry: Tree, step: Any) -> Any:
            t, later, before, u, y = step
            ahead = observer.predict(t, carry[0], carry[1], args(before))
            estimate = observer.correct(later, ahead.x, y, ahead.P, args(u))
            return (estimate.x, estimate.P), (estimate.innovation, estimate.S)

        steps = (data.ts[:-1], data.ts[1:], us[:-1], us[1:], ys[1:])
        _, (e, S) = scan(sample, (first.x, first.P), steps)
        return (
            np.concatenate([first.innovation[None], e]),
            np.concatenate([first.S[None], S]),
        )
