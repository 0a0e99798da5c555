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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.checks import check_choice, check_whole
from archimedes.function import compile, hess, vmap
from archimedes.observers.corrections import Filter
from archimedes.observers.series import along
from archimedes.sysid.fit_results import Fit
from archimedes.sysid.timeseries import UNEVEN, Timeseries
from archimedes.sysid.weighted_fits import (
    Problem,
    Solved,
    Unknowns,
    check_given,
    check_held,
    make_fit,
    minimize_free,
    minimize_squares,
    solve,
)

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Tree

__all__ = ["pem"]

METHODS = ("lm", "bfgs", "ipopt", "ipm")


def _surprise(e: Array, S: Array) -> Any:
    """Return what one sample adds; one that is missing (e = 0, S = 1) adds nothing."""
    return 0.5 * (e @ np.linalg.solve(S, e)) + np.sum(np.log(np.diagonal(np.linalg.cholesky(S))))


def most_likely(
    innovations: Callable[[Any], tuple[Any, Any]],
    problem: Problem,
    method: str,
    options: Mapping[str, Any] | None,
) -> Solved:
    """Maximise the likelihood of innovations (N, m) with covariances (N, m, m), functions of z."""

    def cost(z: Array) -> Any:
        e, S = innovations(z)
        return np.sum(vmap(_surprise)(e, S)) / e.shape[0]

    if not np.isfinite(compile(cost)(problem.start)):
        raise ValueError(
            "the likelihood is not finite with p_guess: start nearer, or keep Q and R positive "
            "with bounds= (or fit their logarithms)"
        )
    minimum = minimize_free(cost, problem, method, options)
    z, free = problem.start, problem.free
    e = np.asarray(compile(lambda z: innovations(z)[0])(z))
    H = np.zeros((z.size, z.size))
    H[np.ix_(free, free)] = e.shape[0] * hess(lambda v: cost(problem.whole(v)))(z[free])
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
    data: Timeseries | Sequence[Timeseries],
    p_guess: Tree,
    x0: Tree,
    *,
    method: str | None = None,
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
    data : Timeseries or list of Timeseries
        Measured data, from one experiment or from several with the same step.
    p_guess : tree
        Parameters to start from.
    x0 : array, tree or list of them
        State at the first sample. With several experiments a list of states has one for each; one
        state holds for all.
    method : {"lm", "bfgs", "ipopt", "ipm"}, optional
        How the sum of squares is minimized: by the Levenberg-Marquardt method (default), by BFGS
        (within bounds by L-BFGS-B), by IPOPT, an extra, or by this package's interior-point method,
        which is the default of `likelihood`.
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
        Options of `least_squares`; of `minimize` with other methods than ``"lm"``.

    Returns
    -------
    Fit
        Parameters and their covariance. If `data` is a list, then ``x0``, ``data``, ``predicted``
        and ``residuals`` are lists too.

    Examples
    --------
    >>> import numpy as np
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
    experiments, x0s = check_given(data, p_guess, x0)
    if not isinstance(predictor, Filter) and not callable(predictor):
        raise TypeError(
            "predictor must be a filter of archimedes.observers, or a function of p that returns "
            f"one, got {predictor!r}"
        )
    passes = check_whole(passes, "passes", 1)
    if method is not None:
        check_choice(method, "method", METHODS)
    if likelihood and method == "lm":
        raise ValueError(
            "method='lm' needs a sum of squares, which the likelihood is not: leave method out, or "
            "give 'ipm', 'ipopt' or 'bfgs'"
        )
    _check_steps(experiments)
    unknowns = Unknowns(p_guess, x0s, bounds, 1, estimate_x0)
    run = _Run(predictor, unknowns, P0)

    def innovations(z: Array) -> tuple[Any, Any]:
        p, states = unknowns.parameters(z), unknowns.states(z)
        runs = [run.along(p, states[k, 0], one) for k, one in enumerate(experiments)]
        e, S = zip(*runs)
        return np.concatenate(e), np.concatenate(S)

    def residuals(z: Array, roots: Array) -> Any:
        e, _ = innovations(z)
        return np.reshape(np.sum(roots * e[:, None, :], axis=2), (-1,))

    def predict(p: Tree, x0: Tree, other: Timeseries) -> np.ndarray:
        flat = tree.ravel(x0)[0] * 1.0
        e = compile(lambda p, x: run.along(p, x, other)[0])(p, flat)
        return np.where(np.isfinite(other.ys), other.ys - np.asarray(e).T, np.nan)

    problem = Problem(residuals, None, unknowns.start, unknowns.lower, unknowns.upper)
    if likelihood:
        solved = most_likely(innovations, problem, method or "ipm", options)
        return make_fit(unknowns, problem, solved, data, predict)
    spreads, iterations = compile(lambda z: innovations(z)[1]), 0
    for _ in range(passes):
        # Roots of the inverse covariances of innovations, as they are believed now.
        S = np.asarray(spreads(problem.start))
        if not np.all(np.isfinite(S)):
            raise ValueError(
                "the predictor's covariances are not finite with p_guess: start nearer, or raise Q "
                "or R"
            )
        roots = np.linalg.inv(np.linalg.cholesky(S))
        if method in (None, "lm"):
            solved = solve(problem, roots, options)
        else:
            solved = minimize_squares(problem, roots, method, options)
        iterations += solved.iterations
    solved = replace(solved, iterations=iterations)
    return make_fit(unknowns, problem, solved, data, predict)


def _check_steps(experiments: list[Timeseries]) -> None:
    """Raise where a filter cannot step along the samples."""
    for k, one in enumerate(experiments):
        check_held(one, "a filter")
        if abs(one.dt - experiments[0].dt) > UNEVEN * one.dt:  # dt raises where it is not one
            raise ValueError(
                f"data[{k}] has steps of {one.dt:.6g} s, data[0] of {experiments[0].dt:.6g} s, and "
                "a filter has one step: use data.resample(dt), or a fit for each"
            )


class _Run:
    """A filter along data, for parameters and a first state."""

    def __init__(self, predictor: Any, unknowns: Unknowns, P0: ArrayLike | None) -> None:
        self.predictor, self.unknowns, self.P0 = predictor, unknowns, P0

    def along(self, p: Tree, x: Array, data: Timeseries) -> tuple[Any, Any]:
        """Return innovations (N, rows) and their covariances (N, rows, rows)."""
        observer, us = self.predictor, data.us
        args: tuple[Any, ...] = (p,)
        if not isinstance(observer, Filter):
            observer, args = observer(p), ()
            us = us if len(us) else None
        if not isinstance(observer, Filter):
            raise TypeError(f"predictor(p) must return a filter, got {type(observer).__name__}")
        P0 = getattr(observer, "Q", None) if self.P0 is None else self.P0
        if P0 is None:
            raise ValueError(f"give P0: a {type(observer).__name__} has no Q to take for it")
        x0 = self.unknowns.x.unravel(x)
        _, found = along(observer, data.ts, data.ys, x0, P0, args, us, predict_first=False)
        return found.innovation, found.S
