"""Filters along series of measurements: estimates, smoothed estimates, and their consistency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes import tree
from archimedes.control.matrix_checks import signal_rows, symmetric_matrix, vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import scan
from archimedes.observers.charts import Args, chart_of
from archimedes.observers.corrections import Estimate, Filter, Prediction, symmetric
from archimedes.simulate import InputSeries

if TYPE_CHECKING:
    from archimedes.typing import Array, ArrayLike, Tree

__all__ = ["consistency_bounds", "filter_series", "nees", "rts_smoother"]


def times_last(rows: Tree) -> Any:
    """Move the axis of samples to the end of arrays; trees keep it in front, as in `odeint`."""
    if not isinstance(rows, Estimate):
        return np.moveaxis(rows, 0, -1) if hasattr(rows, "dtype") else rows
    parts = {name: times_last(getattr(rows, name)) for name in ("x", "P", "innovation", "S", "nis")}
    return Estimate(**parts)


def along(
    observer: Filter,
    ts: ArrayLike,
    ys: Any,
    x0: Tree,
    P0: ArrayLike,
    args: Args | None,
    us: ArrayLike | InputSeries | None,
    predict_first: bool,
) -> tuple[Prediction, Estimate]:
    """Return predictions and estimates of all samples, which are the leading axis.

    The step that ends at a sample has the time and the input of the sample before: an input is
    held until the next one. Covariances are covariances, whatever the filter carries.
    """
    times = vector(ts, "ts")
    count = times.shape[0]
    if count == 0:
        raise ShapeDtypeError("ts must hold at least one time")
    rows = signal_rows(ys, "ys", count)
    # What comes before the first sample: the same step, the same input.
    step_back = times[:1] if count == 1 else 2.0 * times[:1] - times[1:2]
    samples: tuple[Any, ...] = (rows.T, np.concatenate([step_back, times[:-1]]), times)
    if us is not None:
        inputs = signal_rows(_held(us, times), "us", count).T
        samples = (*samples, np.concatenate([inputs[:1], inputs[:-1]]), inputs)
    rest = () if args is None else tuple(args)

    def step(carry: Tree, sample: Tree) -> Any:
        y, t_before, t, *u = sample
        before = observer.predict(t_before, carry[0], carry[1], (*u[:1], *rest))
        after = observer.correct(t, before.x, y, before.P, (*u[1:], *rest))
        return (after.x, after.P), (plain(before), plain(after))

    def plain(estimate: Tree) -> Tree:
        return tree.replace(estimate, P=observer.to_covariance(estimate.P))

    chart, x0 = chart_of(x0)
    P0 = symmetric_matrix(P0, "P0", chart.size, eigenvalues="not negative")
    P = observer.of_covariance(P0)
    if predict_first:
        return scan(step, (x0, P), samples)[1]
    y, _, t, *u = (part[0] for part in samples)
    after = observer.correct(t, x0, y, P, (*u[1:], *rest))
    first = (Prediction(x0, P0, P0), plain(after))
    if count == 1:
        return tree.map(lambda leaf: np.asarray(leaf)[None], first)
    later = scan(step, (after.x, after.P), tuple(part[1:] for part in samples))[1]
    return tree.map(
        lambda a, b: np.concatenate([np.reshape(a, (1, *b.shape[1:])), b]), first, later
    )


def _held(us: Any, times: Array) -> Any:
    """Return the samples of a series; raise where a filter would hold what is not held."""
    if hasattr(us, "input_series"):  # a Timeseries
        us = us.input_series()
    if not isinstance(us, InputSeries):
        return us
    if us.hold != "zoh":
        raise ValueError(
            f"us.hold={us.hold!r}, but a filter sees one input per step, held until the next "
            "sample ('zoh'): give samples that are, as us=InputSeries(t, u)"
        )
    return us(times).T


def filter_series(
    observer: Filter,
    ts: ArrayLike,
    ys: ArrayLike,
    x0: Tree,
    P0: ArrayLike,
    args: Args | None = None,
    *,
    us: ArrayLike | InputSeries | None = None,
    predict_first: bool = True,
) -> Estimate:
    """Filter a series of measurements.

    Parameters
    ----------
    observer : filter
        A filter of this package.
    ts : array (N,)
        Times in s.
    ys : array (m, N) or (N,)
        Measurements, nan where missing.
    x0 : array (n,) or tree
        State one step before the first sample, or at it: see `predict_first`.
    P0 : array (n, n)
        Its covariance.
    args : tuple, optional
        Further arguments of the functions of the model.
    us : array (k, N), (N,), InputSeries or Timeseries, optional
        Inputs, which the functions of the model get before `args`. They are held ("zoh"): ``dyn``
        gets time and input of the sample at which its step begins, ``obs`` those of its own
        sample. None by default.
    predict_first : bool, optional
        True, the default: `x0` is the state one step before the first sample. False: it is the
        state at the first sample, as in `pem` and `output_error`.

    Returns
    -------
    Estimate
        Estimates of all samples, times last: ``x`` (n, N), ``P`` (n, n, N), ``nis`` (N,). A tree of
        states has the samples as its leading axis. P is a covariance, also with `square_root`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.observers import KalmanFilter
    >>> kf = KalmanFilter(A=[[1.0]], C=[[1.0]], Q=[[0.0]], R=[[1.0]])
    >>> filter_series(kf, [0.0, 1.0, 2.0], [[1.0, np.nan, 4.0]], [0.0], [[1.0]]).x.round(3)
    array([[0.5  , 0.5  , 1.667]])
    """
    return times_last(along(observer, ts, ys, x0, P0, args, us, predict_first)[1])


#: What is added to variances so that singular covariances can be divided by.
ROUNDING = float(np.finfo(float).eps)


def rts_smoother(
    observer: Filter,
    ts: ArrayLike,
    ys: ArrayLike,
    x0: Tree,
    P0: ArrayLike,
    args: Args | None = None,
    *,
    us: ArrayLike | InputSeries | None = None,
    predict_first: bool = True,
) -> tuple[Any, Any]:
    """Smooth a series of measurements: estimate each state from the measurements of all times.

    Any filter can be used (Rauch-Tung-Striebel smoother; Saerkkae, "Bayesian filtering and
    smoothing", 2013, 8.2 and 9.2).

    Parameters
    ----------
    observer : filter
        A filter of this package.
    ts : array (N,)
        Times in s.
    ys : array (m, N) or (N,)
        Measurements, nan where missing.
    x0 : array (n,) or tree
        State one step before the first sample, or at it: see `predict_first`.
    P0 : array (n, n)
        Its covariance.
    args : tuple, optional
        Further arguments of the functions of the model.
    us : array (k, N), (N,), InputSeries or Timeseries, optional
        Inputs, which the functions of the model get before `args`. They are held ("zoh"): ``dyn``
        gets time and input of the sample at which its step begins, ``obs`` those of its own
        sample. None by default.
    predict_first : bool, optional
        True, the default: `x0` is the state one step before the first sample. False: it is the
        state at the first sample, as in `pem` and `output_error`.

    Returns
    -------
    (array, array)
        States (n, N) and covariances (n, n, N). A tree of states has the samples as its leading
        axis.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.observers import KalmanFilter
    >>> kf = KalmanFilter(A=[[1.0]], C=[[1.0]], Q=[[0.0]], R=[[1.0]])
    >>> x, P = rts_smoother(kf, [0.0, 1.0, 2.0], [[1.0, np.nan, 4.0]], [0.0], [[1.0]])
    >>> x.round(3)
    array([[1.667, 1.667, 1.667]])
    """
    before, after = along(observer, ts, ys, x0, P0, args, us, predict_first)
    last = tree.map(lambda leaf: leaf[-1], (after.x, after.P))
    chart, _ = chart_of(last[0])

    def back(later: Tree, sample: Tree) -> Any:
        x, P, ahead = sample
        # States that are known exactly have no variance: nothing later corrects them.
        known = np.diagonal(ahead.P) * ROUNDING + 1e-300
        G = np.linalg.solve(ahead.P + np.diag(known), ahead.cross.T).T
        x = chart.plus(x, G @ chart.minus(later[0], ahead.x))
        P = symmetric(P + G @ (later[1] - ahead.P) @ G.T)
        return (x, P), (x, P)

    xs, Ps = tree.map(lambda leaf: leaf[-1:], (after.x, after.P))
    if Ps.shape[0] < after.P.shape[0]:
        backwards = tree.map(lambda leaf: leaf[-2::-1], (after.x, after.P))
        ahead = tree.map(lambda leaf: leaf[:0:-1], before)
        earlier = scan(back, last, (*backwards, ahead))[1]
        xs, Ps = tree.map(lambda a, b: np.concatenate([a, b])[::-1], (xs, Ps), earlier)
    return times_last(xs), times_last(Ps)


def nees(x_true: Tree, x: Tree, P: Array) -> Any:
    """Return the normalized estimation error squared, ``e^T P^-1 e`` with e = x_true - x.

    Errors of attitudes are rotations, as in the filters. It is chi-square distributed with n
    degrees of freedom if the filter is consistent (Bar-Shalom et al., "Estimation with applications
    to tracking and navigation", 5.4.2). For many at once: ``arc.vmap(nees)``.

    Parameters
    ----------
    x_true : array (n,) or tree
        True state.
    x : array (n,) or tree
        Estimate.
    P : array (n, n)
        Its covariance.

    Examples
    --------
    >>> import numpy as np
    >>> nees([1.0, 2.0], [0.0, 0.0], np.diag([1.0, 4.0]))
    np.float64(2.0)
    """
    chart, x = chart_of(x)
    if chart.plain:
        x_true = vector(x_true, "x_true", chart.size)
    e = chart.minus(x_true, x)
    return e @ np.linalg.solve(symmetric_matrix(P, "P", chart.size, eigenvalues="positive"), e)


def consistency_bounds(size: int, count: int, level: float = 0.95) -> tuple[float, float]:
    """Return the limits within which the mean of independent NEES or NIS values should lie.

    A consistent filter is within them with the given probability.

    Parameters
    ----------
    size : int
        Number of states, or of measurements.
    count : int
        Number of values that are averaged.
    level : float, optional
        Probability, 0.95 by default.

    Examples
    --------
    >>> low, high = consistency_bounds(6, 1000)
    >>> round(low, 3), round(high, 3)
    (5.787, 6.217)
    """
    from scipy.stats import chi2

    if size < 1 or count < 1 or not 0.0 < level < 1.0:
        raise ValueError(f"size={size}, count={count} must be positive, level={level} below one")
    tail = 0.5 * (1.0 - level)
    low, high = (float(chi2.ppf(p, size * count)) / count for p in (tail, 1.0 - tail))
    return low, high
