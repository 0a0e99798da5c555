"""Thrusters fixed to the body: force, moment and what they burn."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import check_axes, check_not_negative

__all__ = ["Thrusters"]

STANDARD_GRAVITY = 9.80665


@struct
class Thrusters:
    """Thrusters that push the body along given directions.

    Parameters
    ----------
    positions : array (n, 3)
        Positions in m, in body axes.
    directions : array (n, 3)
        Unit vectors of the forces on the body.
    thrust : array (n,)
        Thrust at full throttle in N.
    specific_impulse : float, optional
        Specific impulse in vacuum in s.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import Thrusters
    >>> jets = Thrusters(np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]]), thrust=5.0)
    >>> jets.thrust
    5.0
    """

    positions: Any = field(units="m")
    directions: Any = field()
    thrust: Any = field(units="N")
    specific_impulse: Any = field(units="s", default=220.0)

    def __post_init__(self) -> None:
        """Check shapes and sizes where they are known."""
        directions = check_axes(self.directions, "Thrusters.directions")
        if as_array(self.positions, "positions").shape != directions.shape:
            raise ValueError("Thrusters: positions and directions must both have shape (n, 3)")
        check_not_negative(self.thrust, "Thrusters.thrust", "N")
        check_not_negative(self.specific_impulse, "Thrusters.specific_impulse", "s")

    def wrench(self, throttle: Any, p_B: Any = None) -> tuple[Any, Any, Any]:
        """Return force, moment and mass flow.

        Parameters
        ----------
        throttle : array (n,)
            Throttles, limited to 0 to 1.
        p_B : array (3,), optional
            Centre of mass in m, in body axes. The origin by default.

        Returns
        -------
        (array (3,), array (3,), float)
            Force in N, moment in N m about the centre of mass, and mass flow in kg/s, positive for
            what leaves.
        """
        size = as_array(self.thrust) * np.clip(as_array(throttle, "throttle"), 0.0, 1.0)
        forces = size[:, None] * as_array(self.directions)
        arms = as_array(self.positions) - (np.zeros(3) if p_B is None else p_B)
        flow = np.sum(size / (STANDARD_GRAVITY * as_array(self.specific_impulse)))
        return np.sum(forces, axis=0), np.sum(cross(arms, forces), axis=0), flow
