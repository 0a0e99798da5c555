"""Robust losses against SciPy, with outliers and bounds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize as scipy_optimize

import archimedes as arc
from archimedes.optimize import least_squares
from archimedes.optimize.fits.levenberg_marquardt import LOSSES

T = np.linspace(0.0, 3.0, 25)
CLEAN = 2.0 * np.exp(-0.8 * T) + 0.5
DATA = CLEAN + 0.01 * np.sin(31.0 * T)
DATA[[3, 10, 17]] += [2.0, -1.5, 3.0]


def misfit(p):
    return p[0] * np.exp(-p[1] * T) + p[2] - DATA


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("upper", [np.inf, 1.9], ids=["free", "bounded"])
def test_against_scipy(loss, upper):
    start, bounds = [1.5, 1.0, 0.3], ([0.0, 0.0, 0.0], [upper, 5.0, 5.0])
    found = least_squares(misfit, start, bounds=bounds, loss=loss, f_scale=0.1)
    peer = scipy_optimize.least_squares(
        misfit,
        start,
        jac=lambda p: arc.jac(misfit)(p),
        bounds=bounds,
        loss=loss,
        f_scale=0.1,
        xtol=1e-12,
        ftol=1e-12,
        gtol=1e-12,
    )
    assert found.success, found.message
    assert found.cost == pytest.approx(peer.cost, rel=1e-6)
    np.testing.assert_allclose(found.x, peer.x, atol=1e-4)
    np.testing.assert_allclose(found.fun, misfit(found.x), atol=1e-12)


def test_outliers_hardly_matter():
    plain = least_squares(misfit, [1.5, 1.0, 0.3])
    robust = least_squares(misfit, [1.5, 1.0, 0.3], loss="cauchy", f_scale=0.05)
    truth = np.array([2.0, 0.8, 0.5])
    assert np.abs(robust.x - truth).max() < 0.02 < np.abs(plain.x - truth).max()


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="loss='tukey' is not one of"):
        least_squares(misfit, [1.0, 1.0, 0.0], loss="tukey")
