"""What residuals of a good model are: white, and uncorrelated with the inputs.

L. Ljung, "System identification", 2nd ed., 1999, 16.6; G. Ljung, G. Box, "On a measure of lack of
fit in time series models", Biometrika 65, 1978.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.control.matrix_checks import matrix

__all__ = ["ResidualTests", "residual_tests"]


@dataclass(frozen=True)
class ResidualTests:
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
        # The largest of all is judged: each alone must be so much more likely.
        reach = norm.ppf(1.0 - 0.5 * (1.0 - self.level) / past.size)
        one = norm.ppf(0.5 * (1.0 + self.level))
        return bool(past.max() <= self.bound * reach / one)

    def __str__(self) -> str:
        values = ", ".join(f"{v:.3g}" for v in self.whiteness)
        return (
            f"residuals {'are' if self.white else 'are NOT'} white (p-values {values}), "
            f"{'do not depend' if self.independent else 'DEPEND'} on the inputs"
        )


def residual_tests(
    residuals: Any, us: Any = None, lags: int = 20, level: float = 0.95, fitted: int = 0
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
    >>> noise = np.random.default_rng(0).normal(size=(1, 500))
    >>> print(residual_tests(noise))
    residuals are white (p-values 0.617), do not depend on the inputs
    """
    from scipy.stats import chi2, norm

    e = np.asarray(matrix(residuals, "residuals"), dtype=float)
    count = e.shape[1]
    if not 1 <= lags < count // 2:
        raise ValueError(f"lags must be between 1 and half of the {count} samples, got {lags}")
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must be between 0 and 1, got {level}")
    u = np.zeros((0, count)) if us is None else np.asarray(matrix(us, "us", None, count))
    e, u = _standard(e), _standard(u)
    bound = float(norm.ppf(0.5 * (1.0 + level))) / np.sqrt(count)
    auto = np.array([[row[k:] @ row[: count - k] for k in range(1, lags + 1)] for row in e])
    cross = np.array(
        [[[_shifted(a, b, k) for k in range(-lags, lags + 1)] for b in u] for a in e]
    ).reshape(len(e), len(u), 2 * lags + 1)
    ljung_box = count * (count + 2) * np.sum(auto**2 / (count - np.arange(1, lags + 1)), axis=1)
    whiteness = chi2.sf(ljung_box, max(lags - fitted, 1))
    return ResidualTests(auto, cross, bound, level, np.asarray(whiteness))


def _standard(rows: np.ndarray) -> np.ndarray:
    """Return rows with mean 0 and sum of squares 1; zero where missing."""
    if rows.size == 0:
        return rows
    away = np.nan_to_num(rows - np.nanmean(rows, axis=1, keepdims=True))
    size = np.sqrt(np.sum(away**2, axis=1, keepdims=True))
    return away / np.where(size > 0.0, size, 1.0)


def _shifted(e: np.ndarray, u: np.ndarray, k: int) -> float:
    """Return the correlation of e with u, k samples earlier."""
    return float(e[k:] @ u[: len(u) - k]) if k >= 0 else float(e[:k] @ u[-k:])
