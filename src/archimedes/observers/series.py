"""A filter along a series of measurements."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.control.matrix_checks import matrix, symmetric_matrix, vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import scan
from archimedes.observers.charts import chart_of
from archimedes.observers.corrections import Estimate, Filter, Prediction

__all__ = ["along", "filter_series", "times_last"]


def times_last(rows: Any) -> Any:
    """Move the axis of samples to the end of arrays; trees keep it in front, as in `odeint`."""
    if not isinstance(rows, Estimate):
        return np.moveaxis(rows, 0, -1) if hasattr(rows, "dtype") else rows
    parts = {name: times_last(getattr(rows, name)) for name in ("x", "P", "innovation", "S", "nis")}
    return Estimate(**parts)


def along(
    observer: Filter, ts: Any, ys: Any, x0: Any, P0: Any, args: Any, us: Any
) -> tuple[Prediction, Estimate]:
    """Return predictions and estimates of all samples, which are the leading axis.

    Covariances are covariances, whatever the filter carries.
    """
    ts = vector(ts, "ts")
    ys = matrix(ys[None] if hasattr(ys, "ndim") and ys.ndim == 1 else ys, "ys")
    count = ts.shape[0]
    if count == 0:
        raise ShapeDtypeError("ts must hold at least one time")
    if ys.shape[1] != count:
        raise ShapeDtypeError(
            f"ys must have one column per time, shape (m, {count}), got {ys.shape}"
        )
    samples: tuple[Any, ...] = (ts, ys.T)
    if us is not None:
        samples = (*samples, matrix(us, "us", None, count).T)
    rest = () if args is None else tuple(args)

    def step(carry: Any, sample: Any) -> Any:
        t, y, *u = sample
        more = (*u, *rest)
        before = observer.predict(t, carry[0], carry[1], more)
        after = observer.correct(t, before.x, y, before.P, more)
        return (after.x, after.P), (plain(before), plain(after))

    def plain(found: Any) -> Any:
        return tree.replace(found, P=observer.to_covariance(found.P))

    chart, x0 = chart_of(x0)
    P0 = symmetric_matrix(P0, "P0", chart.size, eigenvalues="not negative")
    return scan(step, (x0, observer.of_covariance(P0)), samples)[1]


def filter_series(
    observer: Filter, ts: Any, ys: Any, x0: Any, P0: Any, args: Any = None, *, us: Any = None
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
        State one step before the first sample.
    P0 : array (n, n)
        Its covariance.
    args : tuple, optional
        Further arguments of the functions of the model.
    us : array (k, N), optional
        Inputs, which the functions of the model get before `args`. None by default.

    Returns
    -------
    Estimate
        Estimates of all samples, times last: ``x`` (n, N), ``P`` (n, n, N), ``nis`` (N,). A tree of
        states has the samples as its leading axis. P is a covariance, also with `square_root`.

    Examples
    --------
    >>> from archimedes.observers import KalmanFilter
    >>> kf = KalmanFilter(A=[[1.0]], C=[[1.0]], Q=[[0.0]], R=[[1.0]])
    >>> filter_series(kf, [0.0, 1.0, 2.0], [[1.0, np.nan, 4.0]], [0.0], [[1.0]]).x.round(3)
    array([[0.5  , 0.5  , 1.667]])
    """
    return times_last(along(observer, ts, ys, x0, P0, args, us)[1])
