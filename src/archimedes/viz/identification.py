"""Measured data over time, and models fitted to them: predictions, residuals, correlations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from archimedes.display import axis_label
from archimedes.simulate import Trajectory
from archimedes.sysid import Fit, Timeseries, residual_tests
from archimedes.sysid.fit_results import percent
from archimedes.viz.themes import Figure, File, sheet
from archimedes.viz.trajectories import Panel, draw_panels

__all__ = ["plot_fit", "plot_timeseries"]

#: Lags of the correlations.
LAGS = 20


def plot_timeseries(data: Timeseries, *, title: str | None = None, file: File = None) -> Figure:
    """Plot measured inputs and outputs over time, a panel for each; held inputs as steps.

    Parameters
    ----------
    data : Timeseries
        The data.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import Timeseries
    >>> from archimedes.viz import plot_timeseries
    >>> t = np.linspace(0.0, 1.0, 11)
    >>> figure = plot_timeseries(Timeseries(t, t, t**2, inputs=("throttle",), outputs=("speed",)))
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['throttle', 'speed']
    """
    ts, us, ys = (np.asarray(part) for part in (data.ts, data.us, data.ys))
    signals = [(name, ts, row) for name, row in zip(data.inputs, us)]
    if data.hold == "zoh":  # two points at each jump
        signals = [(name, np.repeat(t, 2)[1:], np.repeat(row, 2)[:-1]) for name, t, row in signals]
    signals += [(name, ts, row) for name, row in zip(data.outputs, ys)]
    panels = [Panel(name, "", [name], t, row[:, None]) for name, t, row in signals]
    return draw_panels(Trajectory(data.ts, np.zeros(len(data.ts))), panels, title, file)


def plot_fit(
    fit: Fit, data: Timeseries | None = None, *, title: str | None = None, file: File = None
) -> Figure:
    """Plot measured and predicted outputs, what is left, and its autocorrelation.

    Correlations of a good model lie in the band.

    Parameters
    ----------
    fit : Fit
        The fit.
    data : Timeseries, optional
        Other data to show. By default those of the fit, experiment by experiment.
    title : str, optional
        Title.
    file : path, optional
        File to save the figure to. Its ending determines the format.

    Returns
    -------
    matplotlib Figure
        The figure.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import Timeseries, output_error
    >>> from archimedes.viz import plot_fit
    >>> ts = np.linspace(0.0, 2.0, 41)
    >>> data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    >>> lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    >>> guess = {"gain": 1.0, "rate": 1.0}
    >>> figure = plot_fit(output_error(lag, lambda t, x, u, p: x, data, guess, np.zeros(1)))
    >>> figure.axes[0].get_xlabel(), figure.axes[2].get_xlabel()
    ('time (s)', 'lag (samples)')
    """
    shown = fit.experiments if data is None else [(data, fit.predict(data))]
    count = sum(len(one.ys) for one, _ in shown)
    with sheet((11.0, 2.4 * count + 0.6), title, file, count, 3, squeeze=False) as (figure, grid):
        rows = iter(grid)
        for one, predicted in shown:
            draw_experiment(one, predicted, rows)
        grid[0, 0].legend(loc="best")
        for axes, label in zip(grid[-1], (("time", "s"), ("time", "s"), ("lag", "samples"))):
            axes.set_xlabel(axis_label(*label))
    return figure


def draw_experiment(data: Timeseries, predicted: np.ndarray, rows: Iterator[Any]) -> None:
    """Draw a row of axes for each output of an experiment."""
    residuals = data.ys - predicted
    tests = residual_tests(residuals, data.us, min(LAGS, len(data) // 2 - 1))
    explained = percent([(data, predicted)])
    for k, (name, (over, left, correlation)) in enumerate(zip(data.outputs, rows)):
        over.plot(data.ts, data.ys[k], ".", markersize=3, label="measured")
        over.plot(data.ts, predicted[k], label="model")
        over.set_title(f"{explained[k]:.1f} % explained", fontsize="small", loc="left")
        over.set_ylabel(name)
        left.plot(data.ts, residuals[k], ".", markersize=3, color="C2")
        left.set_ylabel(f"{name} - model")
        correlation.bar(np.arange(1, tests.auto.shape[1] + 1), tests.auto[k], width=0.5)
        correlation.axhspan(-tests.bound, tests.bound, color="C1", alpha=0.15, zorder=0)
        correlation.set_ylabel("autocorrelation")
        whiteness = f"whiteness: p = {tests.whiteness[k]:.2g}"
        correlation.set_title(whiteness, fontsize="small", loc="left")
