"""A rigid body described in a frame that rotates with the planet (ECEF).

Legend: E is the planet-fixed frame, which turns at Omega about its z-axis relative to the
Newtonian frame N with the same origin; pos and v_E are position and velocity relative to E in E
axes; att is the attitude of B in E; w_B is the angular velocity of B relative to N, in body axes,
so that Euler's equation holds as it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, as_scalar, check_vector
from archimedes.spatial.class_methods import on_class_too
from archimedes.spatial.components import expand, join
from archimedes.spatial.pseudo_forces import rotating_frame_acceleration
from archimedes.spatial.rigid_body import as_attitude, attitude_rate, euler_equation
from archimedes.spatial.validation import check_inertia, check_mass
from archimedes.tree import field, struct

__all__ = ["EarthReferencedBody"]


@struct
class EarthReferencedBody:
    """Equations of motion in a planet-fixed frame, with Coriolis and centrifugal terms.

    Parameters
    ----------
    rot_earth : float, optional
        Angular velocity of the planet in rad/s, about the z axis of E.
    baumgarte : float, optional
        Gain in 1/s with which the norm of the quaternion is driven to one. 1 by default; 0 turns it
        off.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import EarthReferencedBody, Quaternion
    >>> body = EarthReferencedBody()
    >>> x = body.State(np.array([7e6, 0, 0]), Quaternion.identity(), np.zeros(3), np.zeros(3))
    >>> u = body.Input(F_E=np.zeros(3), M_B=np.zeros(3), m=1.0, J_B=np.eye(3))
    >>> body.dynamics(0.0, x, u).v_E.round(4)
    array([0.0372, 0.    , 0.    ])
    """

    rot_earth: float = field(units="rad/s", default=7.292e-5)
    baumgarte: float = 1.0

    @struct
    class State:
        """Position, attitude and velocity relative to E; inertial angular velocity.

        Parameters
        ----------
        pos : array (..., 3)
            Position in m from the centre of the planet, in E axes.
        att : attitude
            Attitude of the body, of any class with the methods of `Attitude`, or a plain array of 3
            (roll, pitch, yaw) or 4 (quaternion).
        v_E : array (..., 3)
            Velocity in m/s relative to E, in E axes.
        w_B : array (..., 3)
            Inertial angular velocity in rad/s, in body axes.
        """

        pos: Any = field(units="m")
        att: Any = field()
        v_E: Any = field(units="m/s")
        w_B: Any = field(units="rad/s")

    @struct
    class Input:
        """Net force in E axes, moment about the centre of mass in body axes; mass and inertia.

        Parameters
        ----------
        F_E : array (..., 3)
            Net force in N, in E axes, gravitational attraction included. The centrifugal and
            Coriolis terms are added by `dynamics`.
        M_B : array (..., 3)
            Net moment in N m about the centre of mass, in body axes.
        m : float
            Mass in kg.
        J_B : array (..., 3, 3)
            Inertia in kg m^2 about the centre of mass, in body axes.
        """

        F_E: Any = field(units="N")
        M_B: Any = field(units="N m")
        m: Any = field(units="kg")
        J_B: Any = field(units="kg m^2")

        def __post_init__(self) -> None:
            """Check mass and inertia where they are known."""
            check_mass(self.m, "EarthReferencedBody.Input.m")
            check_inertia(self.J_B, "EarthReferencedBody.Input.J_B")

    @on_class_too
    def dynamics(self, t: Any, x: Any, u: Any) -> Any:
        """Return the time derivative of the state `x` as an `EarthReferencedBody.State`.

        Parameters
        ----------
        t : float
            Time in s. The equations do not depend on it.
        x : State
            State of the body.
        u : Input
            Force, moment, mass and inertia.
        """
        att = as_attitude(x.att)
        pos, v_E = check_vector(x.pos, 3, "x.pos"), check_vector(x.v_E, 3, "x.v_E")
        w_B, F_E = check_vector(x.w_B, 3, "x.w_B"), check_vector(u.F_E, 3, "u.F_E")
        rate = as_scalar(self.rot_earth, "rot_earth")
        Omega_E = join([0.0 * rate, 0.0 * rate, rate])
        apparent = rotating_frame_acceleration(pos, v_E, Omega_E)
        return EarthReferencedBody.State(
            pos=v_E,
            att=attitude_rate(x.att, att, w_B - att.rotate(Omega_E), self.baumgarte),
            v_E=F_E / expand(as_scalar(u.m, "u.m")) + apparent,
            w_B=euler_equation(as_array(u.J_B, "u.J_B"), w_B, check_vector(u.M_B, 3, "u.M_B")),
        )

    def inertial_velocity(self, x: Any) -> Any:
        """Return the velocity (..., 3) relative to N, in E axes, in m/s.

        Parameters
        ----------
        x : State
            State of the body.
        """
        px, py, pz = (as_array(x.pos, "x.pos")[..., n] for n in range(3))
        rate = self.rot_earth
        return as_array(x.v_E, "x.v_E") + np.stack([-rate * py, rate * px, 0.0 * pz], axis=-1)
