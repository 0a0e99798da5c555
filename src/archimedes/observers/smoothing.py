"""The Rauch-Tung-Striebel smoother: estimates from all measurements, also later ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import tree
from archimedes.function import scan
from archimedes.observers.charts import chart_of
from archimedes.observers.corrections import Filter, symmetric
from archimedes.observers.series import along, times_last

__all__ = ["rts_smoother"]

#: What is added to variances so that singular covariances can be divided by.
ROUNDING = float(np.finfo(float).eps)


def rts_smoother(
    observer: Filter, ts: Any, ys: Any, x0: Any, P0: Any, args: Any = None, *, us: Any = None
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
        State one step before the first sample.
    P0 : array (n, n)
        Its covariance.
    args : tuple, optional
        Further arguments of the functions of the model.
    us : array (k, N), optional
        Inputs, which the functions of the model get before `args`. None by default.

    Returns
    -------
    (array, array)
        States (n, N) and covariances (n, n, N). A tree of states has the samples as its leading
        axis.

    Examples
    --------
    >>> from archimedes.observers import KalmanFilter
    >>> kf = KalmanFilter(A=[[1.0]], C=[[1.0]], Q=[[0.0]], R=[[1.0]])
    >>> x, P = rts_smoother(kf, [0.0, 1.0, 2.0], [[1.0, np.nan, 4.0]], [0.0], [[1.0]])
    >>> x.round(3)
    array([[1.667, 1.667, 1.667]])
    """
    before, after = along(observer, ts, ys, x0, P0, args, us)
    last = tree.map(lambda leaf: leaf[-1], (after.x, after.P))
    chart, _ = chart_of(last[0])

    def back(later: Any, sample: Any) -> Any:
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
