"""Equations and least squares: ``root``, ``implicit``, ``least_squares``, ``lm_solve``.

>>> import numpy as np
>>> from archimedes import optimize
>>> t = np.array([0.0, 1.0, 2.0])
>>> fit = optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - 2 * np.exp(-t), [1.0, 0.5])
>>> fit.success, fit.x.round(6)
(True, array([2., 1.]))
"""

from __future__ import annotations

from archimedes.function import implicit, root
from archimedes.optimize.fitting import least_squares
from archimedes.optimize.levenberg_marquardt import lm_solve
from archimedes.optimize.results import LMResult, LMStatus

__all__ = ["LMResult", "LMStatus", "implicit", "least_squares", "lm_solve", "root"]
