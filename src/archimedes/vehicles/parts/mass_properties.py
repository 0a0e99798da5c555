"""Masses that are put together, tanks that empty, and tables of both.

Legend: com is the place of the centre of mass in the vehicle's axes, J_C the inertia about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import (
    as_array,
    check_increasing,
    check_matrix,
    check_shape,
    check_struct,
    check_vector,
)
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Matrix, Scalar, Vec3
from archimedes.vehicles.parts.actuators import check_axes

__all__ = ["MassProperties", "MassTable", "Tank", "combined", "cylinder"]


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
    axis: Any = field(units="", default_factory=lambda: np.array([1.0, 0.0, 0.0]))

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


@struct
class MassTable:
    """Mass properties from a table over the propellant left, linear between its rows.

    In place of a `Tank` it describes the propellant of a stage; among the `mass_tables` of a
    `Rocket` it describes the whole rocket while that stage is the lowest one.

    Parameters
    ----------
    propellant : array (n,)
        Propellant left in kg, increasing. Less or more counts as the first or last row.
    mass : array (n,)
        Mass in kg.
    com : array (n, 3)
        Centre of mass in m.
    inertia : array (n, 3, 3)
        Inertia in kg m^2 about the centre of mass.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import MassTable
    >>> com = np.array([[4.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    >>> inertia = np.stack([np.diag([1e3, 2e4, 2e4]), np.diag([2e3, 5e4, 5e4])])
    >>> table = MassTable(np.array([0.0, 500.0]), np.array([200.0, 700.0]), com, inertia)
    >>> half = table.contents(250.0)
    >>> float(half.mass), half.com, table.capacity
    (450.0, array([3.5, 0. , 0. ]), np.float64(500.0))
    """

    propellant: Any = field(units="kg")
    mass: Any = field(units="kg")
    com: Any = field(units="m")
    inertia: Any = field(units="kg m^2")

    def __post_init__(self) -> None:
        """Check rows and shapes where they are known."""
        check_increasing(self.propellant, "MassTable.propellant")
        check_struct(self, not_negative="propellant mass")
        n = len(as_array(self.propellant))
        for name, shape in {"mass": (n,), "com": (n, 3), "inertia": (n, 3, 3)}.items():
            check_shape(as_array(getattr(self, name)), f"MassTable.{name}", shape)

    @property
    def capacity(self) -> Any:
        """Propellant in kg of the last row: a full load."""
        return self.propellant[-1]

    def contents(self, propellant: Scalar) -> MassProperties:
        """Return the mass properties with a load of propellant.

        Parameters
        ----------
        propellant : float
            Propellant left in kg.
        """
        loads = as_array(self.propellant)
        # How much of each interval lies below the load.
        filled = np.clip((propellant - loads[:-1]) / np.diff(loads), 0.0, 1.0)
        rows = (as_array(table) for table in (self.mass, self.com, self.inertia))
        return MassProperties(*(v[0] + np.tensordot(filled, np.diff(v, axis=0), 1) for v in rows))
