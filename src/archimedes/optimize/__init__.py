"""Minima and equations: ``minimize``, ``nlp_solver``, ``least_squares``, ``root``, ``implicit``.

>>> import numpy as np
>>> from archimedes import optimize
>>> t = np.array([0.0, 1.0, 2.0])
>>> fit = optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - 2 * np.exp(-t), [1.0, 0.5])
>>> fit.success, fit.x.round(6)
(True, array([2., 1.]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from archimedes.lazy_names import lazy_names

if TYPE_CHECKING:
    from archimedes.function import implicit, root
    from archimedes.optimize.fitting import least_squares
    from archimedes.optimize.levenberg_marquardt import lm_solve
    from archimedes.optimize.nlp import NlpSolver, minimize, nlp_solver
    from archimedes.optimize.results import LMResult, LMStatus
    from archimedes.optimize.solutions import Iteration, Multipliers, OptimizeResult
    from archimedes.optimize.statuses import Status

_HOMES = {
    "archimedes.function": "implicit root",
    "archimedes.optimize.fitting": "least_squares",
    "archimedes.optimize.levenberg_marquardt": "lm_solve",
    "archimedes.optimize.nlp": "NlpSolver minimize nlp_solver",
    "archimedes.optimize.results": "LMResult LMStatus",
    "archimedes.optimize.solutions": "Iteration Multipliers OptimizeResult",
    "archimedes.optimize.statuses": "Status",
}

__all__ = [
    "Iteration",
    "LMResult",
    "LMStatus",
    "Multipliers",
    "NlpSolver",
    "OptimizeResult",
    "Status",
    "implicit",
    "least_squares",
    "lm_solve",
    "minimize",
    "nlp_solver",
    "root",
]

__getattr__ = lazy_names(__name__, _HOMES)
