"""Control of linear systems: regulators, Riccati equations, discretisation, blocks that step.

>>> import numpy as np
>>> from archimedes import control
>>> A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [1.0]])
>>> K, X = control.lqr(A, B, Q=np.eye(2), R=np.eye(1))
>>> K.round(4)
array([[1.    , 1.7321]])
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
