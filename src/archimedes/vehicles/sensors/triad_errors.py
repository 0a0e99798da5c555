"""Errors of sensors with three axes: what makes a reading of a true vector.

    reading = (1 + diag(scale) + misalignment) v + bias + drift + noise / sqrt(dt) n

with n standard normal numbers. Drift is a state that walks randomly; everything else is constant.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import check_not_negative, limited

__all__ = ["TriadErrors"]


@struct
class TriadErrors:
    """Errors of three sensors along the body axes.

    Parameters
    ----------
    bias : array (3,), optional
        Constant bias.
    scale : array (3,), optional
        Errors of scale.
    misalignment : array (3, 3), optional
        Cross-coupling of the axes.
    noise : float, optional
        Noise density per root hertz: the standard deviation is ``noise / sqrt(dt)`` for readings
        every dt seconds.
    walk : float, optional
        Random walk per root second: the drift grows by ``walk * sqrt(dt)``.
    limit : float, optional
        Largest reading. inf by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import TriadErrors
    >>> TriadErrors(bias=np.array([0.01, 0.0, 0.0]), noise=1e-3).bias
    array([0.01, 0.  , 0.  ])
    """

    bias: Any = field(default_factory=lambda: np.zeros(3))
    scale: Any = field(default_factory=lambda: np.zeros(3))
    misalignment: Any = field(default_factory=lambda: np.zeros((3, 3)))
    noise: Any = 0.0
    walk: Any = 0.0
    limit: Any = np.inf

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_not_negative(self.noise, "TriadErrors.noise", "the reading's unit per root hertz")
        check_not_negative(self.walk, "TriadErrors.walk", "the reading's unit per root second")

    def initial(self) -> Any:
        """Return the drift (3,) at the start."""
        return np.zeros(3)

    def step(self, drift: Any, vector: Any, key: Any, dt: Any) -> tuple[Any, Any]:
        """Return the next drift and the reading of a true vector.

        Parameters
        ----------
        drift : array (3,)
            Drift.
        vector : array (3,)
            True vector.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        n = random.normal(key, (2, 3))
        drift = drift + self.walk * np.sqrt(dt) * n[0]
        turned = vector + as_array(self.scale) * vector + as_array(self.misalignment) @ vector
        reading = turned + as_array(self.bias) + drift + self.noise / np.sqrt(dt) * n[1]
        return drift, limited(reading, self.limit)
