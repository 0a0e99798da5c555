"""States estimated from measurements: Kalman filters, a smoother, figures of consistency.

>>> import numpy as np
>>> from archimedes import observers
>>> ekf = observers.ExtendedKalmanFilter(
...     dyn=lambda t, x: np.array([x[0] + 0.1 * x[1], x[1] - 0.1 * np.sin(x[0])]),
...     obs=lambda t, x: x[:1],
...     Q=1e-4 * np.eye(2),
...     R=np.array([[0.01]]),
... )
>>> x, P, innovation = ekf.step(0.0, np.zeros(2), np.array([0.2]), np.eye(2))
>>> x.round(3)
array([0.198, 0.   ])
"""

from archimedes.lazy_names import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__)
