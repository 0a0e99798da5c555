"""Minima and equations: ``minimize``, ``nlp_solver``, ``least_squares``, ``root``, ``implicit``.

>>> import numpy as np
>>> from archimedes import optimize
>>> t = np.array([0.0, 1.0, 2.0])
>>> fit = optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - 2 * np.exp(-t), [1.0, 0.5])
>>> fit.success, fit.x.round(6)
(True, array([2., 1.]))
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
