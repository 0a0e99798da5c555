"""Magnetorquers: coils whose dipole turns the body in the Earth's magnetic field."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import check_axes, check_not_negative, limited

__all__ = ["Magnetorquers"]


@struct
class Magnetorquers:
    """Magnetic coils.

    Parameters
    ----------
    axes : array (n, 3), optional
        Unit vectors of the axes, in body axes.
    max_dipole : float, optional
        Largest dipole in A m^2. inf by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import Magnetorquers
    >>> coils = Magnetorquers(max_dipole=0.2)
    >>> coils.max_dipole
    0.2
    """

    axes: Any = field(default_factory=lambda: np.eye(3))
    max_dipole: Any = field(units="A m^2", default=np.inf)

    def __post_init__(self) -> None:
        """Check axes and limit where they are known."""
        check_axes(self.axes, "Magnetorquers.axes")
        check_not_negative(self.max_dipole, "Magnetorquers.max_dipole", "A m^2")

    def moment(self, dipole: Any, B_B: Any) -> Any:
        """Return the moment (3,) in N m of dipoles in a magnetic field.

        Parameters
        ----------
        dipole : array (n,)
            Dipoles of the coils in A m^2.
        B_B : array (3,)
            Magnetic field in T, in body axes.
        """
        return cross(limited(dipole, self.max_dipole) @ as_array(self.axes), B_B)
