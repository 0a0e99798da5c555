"""The result of a fit of a model to data, with tests of its residuals.

Residuals of a good model are white, and uncorrelated with the inputs: L. Ljung, "System
identification", 2nd ed., 1999, 16.6; G. Ljung, G. Box, "On a measure of lack of fit in time series
models", Biometrika 65, 1978.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_whole
from archimedes.control.matrix_checks import matrix, signal_rows
from archimedes.display import COLUMNS, LINES, Readable, brief, number, text_table, wrap
from archimedes.sysid.timeseries import Timeseries

if TYPE_CHECKING:
    from archimedes.typing import ArrayLike

__all__ = ["Fit", "ResidualTests", "residual_tests"]


@dataclass(frozen=True, repr=False)
class ResidualTests(Readable):
    """Correlations of residuals, and how likely they are for a good model.

    Parameters
    ----------
    auto : array (p, L)
        Autocorrelations at the lags 1 to L.
    cross : array (p, m, 2 L + 1)
        Correlations with the inputs at the lags -L to L.
    bound : float
        Limit within which each correlation of a good model lies with probability `level`.
    level : float
        The probability.
    whiteness : array (p,)
        p-values of the test of Ljung and Box: small if the residuals are not white.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import residual_tests
    >>> found = residual_tests(np.random.default_rng(0).normal(size=(1, 500)), lags=10)
    >>> found.auto.shape, bool(np.abs(found.auto).max() < 2 * found.bound)
    ((1, 10), True)
    """

    auto: np.ndarray
    cross: np.ndarray
    bound: float
    level: float
    whiteness: np.ndarray

    @property
    def white(self) -> bool:
        """Whether no output's residuals are found to be correlated, at this level."""
        return bool(np.all(self.whiteness > 1.0 - self.level))

    @property
    def independent(self) -> bool:
        """Whether no correlation with past and present inputs is larger than chance makes one.

        Negative lags, inputs after the residual, tell of feedback and are left out.
        """
        from scipy.stats import norm

        past = np.abs(self.cross[:, :, self.cross.shape[2] // 2 :])
        if past.size == 0:
            return True
        # The largest of all is tested, so that each alone must be more likely.
        reach = norm.ppf(1.0 - 0.5 * (1.0 - self.level) / past.size)
        one = norm.ppf(0.5 * (1.0 + self.level))
        return bool(past.max() <= self.bound * reach / one)

    def __repr__(self) -> str:
        values = brief(", ".join(f"{v:.3g}" for v in self.whiteness), 40)
        return (
            f"residuals {'are' if self.white else 'are NOT'} white (p-values {values}), "
            f"{'do not depend' if self.independent else 'DEPEND'} on the inputs"
        )


def residual_tests(
    residuals: ArrayLike,
    us: ArrayLike | None = None,
    lags: int = 20,
    level: float = 0.95,
    fitted: int = 0,
) -> ResidualTests:
    """Return the correlations of residuals, among themselves and with the inputs.

    Parameters
    ----------
    residuals : array (p, N)
        Residuals, nan where missing.
    us : array (m, N), optional
        Inputs. None by default.
    lags : int, optional
        Number of lags, 20 by default.
    level : float, optional
        Probability, 0.95 by default.
    fitted : int, optional
        Number of parameters that were fitted, 0 by default.

    Examples
    --------
    >>> import numpy as np
    >>> noise = np.random.default_rng(0).normal(size=(1, 500))
    >>> print(residual_tests(noise))
    residuals are white (p-values 0.617), do not depend on the inputs
    """
    from scipy.stats import chi2, norm

    e = np.asarray(matrix(residuals, "residuals"), dtype=float)
    count = e.shape[1]
    if e.shape[0] > count:
        raise ValueError(
            f"residuals must have one column per time, shape (outputs, N), got {e.shape}: "
            "transpose it, residuals.T"
        )
    if not 1 <= lags < count // 2:
        raise ValueError(f"lags must be between 1 and half of the {count} samples, got {lags}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    u = np.zeros((0, count)) if us is None else np.asarray(signal_rows(us, "us", count))
    # Samples at which nothing was measured tell nothing.
    seen = int(np.count_nonzero(np.any(np.isfinite(e), axis=0)))
    e, u = _standard(e), _standard(u)
    bound = float(norm.ppf(0.5 * (1.0 + level))) / np.sqrt(max(seen, 1))
    auto = np.array([[row[k:] @ row[: count - k] for k in range(1, lags + 1)] for row in e])
    # The inputs (m, 2 L + 1, N) from L samples later to L samples earlier.
    around = np.pad(u, ((0, 0), (lags, lags)))
    shifted = np.lib.stride_tricks.sliding_window_view(around, count, axis=1)[:, ::-1]
    cross = np.einsum("mkn,pn->pmk", shifted, e)
    pairs = np.maximum(seen - np.arange(1, lags + 1), 1)
    ljung_box = seen * (seen + 2) * np.sum(auto**2 / pairs, axis=1)
    whiteness = chi2.sf(ljung_box, max(lags - fitted, 1))
    return ResidualTests(auto, cross, bound, level, np.asarray(whiteness))


def _standard(rows: np.ndarray) -> np.ndarray:
    """Return rows with mean 0 and sum of squares 1; zero where missing."""
    if rows.size == 0:
        return rows
    away = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    size = np.sqrt(np.sum(away**2, axis=1, keepdims=True))
    return away / np.where(size > 0.0, size, 1.0)


@dataclass(frozen=True, repr=False)
class Fit:
    """Fitted parameters, and how well they are known.

    ``residuals`` (p, N) are measured minus predicted outputs, nan where missing.

    Parameters
    ----------
    p : tree
        Fitted parameters, with the structure of the guess.
    x0 : array, tree or list of them
        State at the first sample; of each experiment if the data were a list.
    names : tuple of str
        Names of the numbers of p, in order.
    covariance : array (n, n)
        Covariance of these numbers. A number that is at a bound, or whose bounds are equal, has no
        variance of its own: 0.
    unravel : callable
        Function that makes a tree like p from a vector.
    values : array (n,)
        The numbers of p.
    dof : int
        Degrees of freedom of the residuals.
    predicted : array (p, N) or list of them
        Predicted outputs; of each experiment if the data were a list.
    data : Timeseries or list of Timeseries
        Measured data.
    at_bounds : tuple of str
        Names of numbers that are at a bound.
    cost : float
        Cost at the solution.
    iterations : int
        Number of iterations.
    success : bool
        Whether the search converged.
    message : str
        How the search ended.
    predictor : callable
        Function ``predictor(x0, data)`` that predicts the outputs for other data.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.sysid import Timeseries, output_error
    >>> ts = np.linspace(0.0, 2.0, 41)
    >>> data = Timeseries(ts, np.ones(41), 2.0 * (1.0 - np.exp(-3.0 * ts)))
    >>> lag = lambda t, x, u, p: p["rate"] * (p["gain"] * u - x)
    >>> guess = {"gain": 1.0, "rate": 1.0}
    >>> found = output_error(lag, lambda t, x, u, p: x, data, guess, np.zeros(1))
    >>> found.names, found.covariance.shape, found.residuals.shape
    (('gain', 'rate'), (2, 2), (1, 41))
    """

    p: Any
    x0: Any
    names: tuple[str, ...]
    covariance: np.ndarray
    unravel: Callable[[Any], Any]
    values: np.ndarray
    dof: int
    predicted: Any
    data: Any
    at_bounds: tuple[str, ...]
    cost: float
    iterations: int
    success: bool
    message: str
    predictor: Callable[[Any, Timeseries], np.ndarray]

    @property
    def x(self) -> Any:
        """The parameters, as results of optimisation call them."""
        return self.p

    @property
    def nit(self) -> int:
        """The number of iterations, as SciPy's results call it."""
        return self.iterations

    @property
    def fun(self) -> float:
        """The cost at the solution, as results of optimisation call it."""
        return self.cost

    @property
    def residuals(self) -> Any:
        """Measured less predicted outputs (p, N); a list of them for several experiments."""
        left = [one.ys - predicted for one, predicted in self.experiments]
        return left[0] if isinstance(self.data, Timeseries) else left

    @property
    def experiments(self) -> list[tuple[Timeseries, np.ndarray]]:
        """Data and predictions of each experiment."""
        if isinstance(self.data, Timeseries):
            return [(self.data, self.predicted)]
        return list(zip(self.data, self.predicted))

    @property
    def std(self) -> Any:
        """Standard deviations of the parameters, as a tree like p."""
        return self.unravel(np.sqrt(np.diagonal(self.covariance)))

    def confidence(self, level: float = 0.95) -> tuple[Any, Any]:
        """Return confidence limits of the parameters: two trees like p.

        Parameters
        ----------
        level : float, optional
            Probability, 0.95 by default.
        """
        from scipy.stats import t

        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        reach = float(t.ppf(0.5 * (1.0 + level), max(self.dof, 1)))
        away = reach * np.sqrt(np.diagonal(self.covariance))
        return self.unravel(self.values - away), self.unravel(self.values + away)

    @property
    def correlation(self) -> np.ndarray:
        """Correlations of the parameters (n, n)."""
        size = np.sqrt(np.diagonal(self.covariance))
        size = np.where(size > 0.0, size, 1.0)
        return self.covariance / np.outer(size, size)

    @property
    def fit(self) -> np.ndarray:
        """How much of each output is explained, in percent (p,): ``100 (1 - |e| / |y - mean|)``."""
        return percent(self.experiments)

    def predict(self, data: Timeseries, x0: Any = None) -> np.ndarray:
        """Return outputs (p, N) for other data, with these parameters.

        Parameters
        ----------
        data : Timeseries
            Other data.
        x0 : array or tree, optional
            State at their first sample. By default that of the fit, of its first experiment.
        """
        if x0 is None:
            x0 = self.x0 if isinstance(self.data, Timeseries) else self.x0[0]
        return self.predictor(x0, data)

    def validate(self, data: Timeseries, x0: Any = None) -> np.ndarray:
        """Return how much of other data is explained, in percent (p,).

        Parameters
        ----------
        data : Timeseries
            Other data.
        x0 : array or tree, optional
            State at their first sample. By default that of the fit, of its first experiment.
        """
        return percent([(data, self.predict(data, x0))])

    def tests(self, lags: int = 20, level: float = 0.95) -> ResidualTests:
        """Return the tests of the residuals: white, and uncorrelated with the inputs.

        Parameters
        ----------
        lags : int, optional
            Number of lags, 20 by default.
        level : float, optional
            Probability, 0.95 by default.
        """
        check_whole(lags, "lags", 1)
        free = int(np.count_nonzero(np.diagonal(self.covariance)))
        # Between experiments as much is missing as correlations reach.
        pairs = [(one.ys - predicted, one.us) for one, predicted in self.experiments]
        e, u = (
            np.concatenate(
                [np.pad(part, ((0, 0), (0, lags)), constant_values=np.nan) for part in p], 1
            )
            for p in zip(*pairs)
        )
        return residual_tests(e[:, :-lags], u[:, :-lags], lags, level, free)

    def __repr__(self) -> str:
        return self._describe(LINES - 6)

    def report(self) -> str:
        """Return all parameters, their correlations and the tests of the residuals as text."""
        near = [
            f"  {a} and {b}: {self.correlation[i, j]:+.3f}"
            for i, a in enumerate(self.names)
            for j, b in enumerate(self.names[:i])
        ]
        lines = [self._describe(), "correlations:", *(near or ["  none: one parameter"])]
        count = min(len(one) for one, _ in self.experiments)
        if count > 4:
            lines.append(repr(self.tests(min(20, count // 2 - 1))))
        return "\n".join([*lines, f"cost {number(self.cost)}"])

    def _describe(self, most: int | None = None) -> str:
        """Return how the search ended, `most` parameters at most, and what is explained."""
        rows = []
        for name, value, sigma in zip(self.names, self.values, np.sqrt(np.diag(self.covariance))):
            part = f"{100.0 * sigma / abs(value):.2g} %" if value else ""
            note = "at a bound" if name in self.at_bounds else part
            rows.append([f"  {name}", number(value), f"+- {number(sigma, 3)}", note])
        rest = [] if most is None or len(rows) <= most else [f"  ... {len(rows) - most} more"]
        shares = ", ".join(
            f"{n} {v:.1f} %" for n, v in zip(self.experiments[0][0].outputs, self.fit)
        )
        explained = textwrap.wrap(f"  explained: {shares}", COLUMNS)
        shown = explained if most is None else explained[:2]
        return "\n".join([wrap(self.message), text_table(rows[:most]), *rest, *shown])


def percent(experiments: list[tuple[Timeseries, np.ndarray]]) -> np.ndarray:
    """Return 100 (1 - |y - predicted| / |y - mean|) for each output, over all experiments."""
    away = [one.ys - np.nanmean(one.ys, axis=1, keepdims=True) for one, _ in experiments]
    left = [one.ys - predicted for one, predicted in experiments]
    size, error = (np.sqrt(np.nansum(np.concatenate(p, axis=1) ** 2, axis=1)) for p in (away, left))
    return 100.0 * (1.0 - error / np.where(size > 0.0, size, 1.0))
