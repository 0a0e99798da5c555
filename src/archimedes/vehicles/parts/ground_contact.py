"""Contact with level ground: points of the body on springs and dampers, with friction.

The ground pushes at every point that is below it, along the vertical, with a spring and a damper
that never pull; friction opposes sliding and is smoothed below `slip` m/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_struct
from archimedes.spatial.components import cross
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Vec3

__all__ = ["GroundContact"]


@struct
class GroundContact:
    """Points of a body that touch a plane: feet, wheels, skids.

    Parameters
    ----------
    points : array (n, 3)
        Points in m, in body axes.
    stiffness : float, optional
        Stiffness in N/m.
    damping : float, optional
        Damping in N s/m.
    friction : float, optional
        Coefficient of friction.
    slip : float, optional
        Speed in m/s below which friction is viscous.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import GroundContact
    >>> skids = GroundContact(np.array([[0.2, 0.1, 0.1], [0.2, -0.1, 0.1], [-0.2, 0.0, 0.1]]))
    >>> skids.friction
    0.7
    """

    points: Any = field(units="m")
    stiffness: Any = field(units="N/m", default=1e4)
    damping: Any = field(units="N s/m", default=1e3)
    friction: Any = 0.7
    slip: Any = field(units="m/s", default=0.01)

    def __post_init__(self) -> None:
        """Check shapes and sizes where they are known."""
        points = as_array(self.points, "points")
        if points.ndim != 2 or points.shape[1] != 3:
            raise ValueError(f"GroundContact.points must have shape (n, 3), got {points.shape}")
        check_struct(self, "stiffness slip", "damping friction")

    def wrench(self, alt: Scalar, att: Any, v_B: Vec3, w_B: Vec3) -> tuple[Any, Any]:
        """Return force and moment on a body above ground at altitude zero.

        Parameters
        ----------
        alt : float
            Altitude of the origin of the body in m.
        att : attitude
            Attitude in NED axes.
        v_B : array (3,)
            Velocity over the ground in m/s, in body axes.
        w_B : array (3,)
            Angular velocity in rad/s, in body axes.

        Returns
        -------
        (array (3,), array (3,))
            Force in N and moment in N m, in body axes.
        """
        points = as_array(self.points)
        R = att.as_matrix()  # NED to body
        down = R[:, 2]
        depth = points @ down - alt
        v = v_B + cross(w_B, points)
        sinking = v @ down
        load = np.maximum(self.stiffness * depth + self.damping * sinking, 0.0)
        load = np.where(depth > 0.0, load, 0.0)
        sliding = v - sinking[:, None] * down
        speed = np.sqrt(np.sum(sliding * sliding, axis=1) + self.slip**2)
        forces = -load[:, None] * (down + (self.friction / speed)[:, None] * sliding)
        return np.sum(forces, axis=0), np.sum(cross(points, forces), axis=0)
