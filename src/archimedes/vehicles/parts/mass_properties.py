"""Masses that are put together, and tanks that empty.

Legend: com is the place of the centre of mass in the vehicle's axes, J_C the inertia about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_matrix, check_struct, check_vector
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Matrix, Scalar, Vec3
from archimedes.vehicles.parts.actuators import check_axes

__all__ = ["MassProperties", "Tank", "combined", "cylinder"]


@struct
class MassProperties:
    """Mass, centre of mass and inertia.

    Parameters
    ----------
    mass : float
        Mass in kg.
    com : array (3,), optional
        Centre of mass in m, in the axes of the vehicle.
    inertia : array (3, 3), optional
        Inertia in kg m^2 about the centre of mass, in body axes.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import MassProperties
    >>> MassProperties(mass=2.0, inertia=np.eye(3)).com
    array([0., 0., 0.])
    """

    mass: Scalar = field(units="kg")
    com: Vec3 = field(units="m", default_factory=lambda: np.zeros(3))
    inertia: Matrix = field(units="kg m^2", default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        """Check mass and shapes where they are known; a point has no inertia."""
        check_struct(self, not_negative="mass")
        check_vector(self.com, 3, "MassProperties.com")
        check_matrix(self.inertia, 3, "MassProperties.inertia")


def combined(parts: Sequence[MassProperties]) -> MassProperties:
    """Return the mass properties of parts that are fixed to each other.

    Parameters
    ----------
    parts : sequence of MassProperties
        The parts.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import MassProperties, combined
    >>> ends = [MassProperties(1.0, np.array([x, 0.0, 0.0])) for x in (-1.0, 3.0)]
    >>> whole = combined(ends)
    >>> whole.com, np.diag(whole.inertia)
    (array([1., 0., 0.]), array([0., 8., 8.]))
    """
    mass = sum(part.mass for part in parts)
    com: Any = sum(part.mass * as_array(part.com) for part in parts) / mass
    inertia: Any = np.zeros((3, 3))
    for part in parts:
        arm = as_array(part.com) - com
        shift = np.sum(arm * arm) * np.eye(3) - arm[:, None] * arm
        inertia = inertia + as_array(part.inertia) + part.mass * shift
    return MassProperties(mass, com, inertia)


def cylinder(mass: Scalar, radius: Scalar, length: Scalar, axis: ArrayLike = (1, 0, 0)) -> Any:
    """Return the inertia (3, 3) in kg m^2 of a solid cylinder about its centre.

    Parameters
    ----------
    mass : float
        Mass in kg.
    radius : float
        Radius in m.
    length : float
        Length in m.
    axis : array (3,), optional
        Unit vector along its axis. x by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import cylinder
    >>> cylinder(mass=2.0, radius=0.5, length=1.0).diagonal().round(4)
    array([0.25  , 0.2917, 0.2917])
    """
    a = check_axes(as_array(axis)[None], "axis")[0]
    along = 0.5 * mass * radius**2
    across = mass * (3.0 * radius**2 + length**2) / 12.0
    return across * np.eye(3) + (along - across) * (a[:, None] * a)


@struct
class Tank:
    """A cylindrical tank that empties from the top: its contents sink to the bottom.

    Parameters
    ----------
    capacity : float
        Mass in kg of a full tank.
    bottom : array (3,)
        Centre of the floor in m.
    length : float
        Length in m.
    radius : float
        Radius in m.
    axis : array (3,), optional
        Unit vector from floor to roof.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import Tank
    >>> tank = Tank(capacity=1000.0, bottom=np.zeros(3), length=4.0, radius=0.5)
    >>> half = tank.contents(500.0)
    >>> float(half.mass), half.com
    (500.0, array([1., 0., 0.]))
    """

    capacity: Any = field(units="kg")
    bottom: Any = field(units="m")
    length: Any = field(units="m")
    radius: Any = field(units="m")
    axis: Any = field(default_factory=lambda: np.array([1.0, 0.0, 0.0]))

    def __post_init__(self) -> None:
        """Check sizes where they are known."""
        check_struct(self, positive="capacity length radius")

    def contents(self, mass: Scalar) -> MassProperties:
        """Return the mass properties of the contents, taken as solid.

        Parameters
        ----------
        mass : float
            Mass in kg. A negative one counts as none.
        """
        mass = np.maximum(mass, 0.0)
        height = self.length * mass / self.capacity
        com = as_array(self.bottom) + 0.5 * height * as_array(self.axis)
        return MassProperties(mass, com, cylinder(mass, self.radius, height, self.axis))
