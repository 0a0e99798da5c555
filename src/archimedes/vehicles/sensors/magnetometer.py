"""A magnetometer: the magnetic field in body axes."""

from __future__ import annotations

from typing import Any

from archimedes.tree import field, struct
from archimedes.vehicles.sensors.triad_errors import TriadErrors

__all__ = ["Magnetometer"]


@struct
class Magnetometer:
    """A magnetometer, which reads the magnetic field in body axes.

    Parameters
    ----------
    errors : TriadErrors, optional
        Errors: hard iron is ``errors.bias``, soft iron the matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import Magnetometer, TriadErrors
    >>> Magnetometer(TriadErrors(bias=np.array([1e-7, 0.0, 0.0]))).errors.bias
    array([1.e-07, 0.e+00, 0.e+00])
    """

    errors: TriadErrors = field(default_factory=TriadErrors)

    def initial(self) -> Any:
        """Return the drift (3,) at the start."""
        return self.errors.initial()

    def step(self, drift: Any, B_B: Any, key: Any, dt: Any) -> tuple[Any, Any]:
        """Return the next drift and a reading in T.

        Parameters
        ----------
        drift : array (3,)
            Drift.
        B_B : array (3,)
            Magnetic field in T, in body axes.
        key : array (2,)
            Random key of `arc.random`.
        dt : float
            Time in s since the last reading.
        """
        return self.errors.step(drift, B_B, key, dt)
