"""Six-degree-of-freedom rigid bodies, in inertial axes and in axes that rotate with a planet.

Legend: N is a Newtonian (inertial) frame, B the body frame with its origin at the centre of mass;
pos is the position of B in N, att the attitude of B in N, v_B and w_B the inertial velocity and
angular velocity in body axes.
Source: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 2016, section 1.7.

E is the planet-fixed frame (ECEF), which rotates at Omega about its z-axis relative to N with the
same origin. There pos and v_E are position and velocity relative to E in E axes and att is the
attitude of B in E; w_B is still the angular velocity of B relative to N, in body axes, so that
Euler's equation holds as it stands.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from archimedes.checks import as_array, as_scalar, check_positive, check_vector
from archimedes.spatial.attitudes.attitude_base import Attitude
from archimedes.spatial.attitudes.attitude_classes import EulerAngles, Quaternion
from archimedes.spatial.components import cross, expand, join, matvec
from archimedes.spatial.pseudo_forces import rotating_frame_acceleration
from archimedes.spatial.validation import check_inertia
from archimedes.tree import field, struct
from archimedes.typing import Matrix, Scalar, Vec3

__all__ = ["EarthReferencedBody", "RigidBody"]


class on_class_too:
    """Decorator: a method that, called on the class, uses an instance with default fields.

    ``RigidBody.dynamics(t, x, u)`` is ``RigidBody().dynamics(t, x, u)``, and
    ``RigidBody.dynamics(body, t, x, u)`` is ``body.dynamics(t, x, u)`` as for any method. The
    defaults are those of the class that defines the method, so a subclass may add required
    fields.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    @functools.cached_property
    def on_class(self) -> Callable[..., Any]:
        """The function that the class itself shows; one object, so that it can be cached by."""
        function, owner = self.function, self.owner
        signature = inspect.signature(function)
        count = len(signature.parameters)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(args) + len(kwargs) == count and args and isinstance(args[0], owner):
                return function(*args, **kwargs)
            return function(owner(), *args, **kwargs)

        without_self = list(signature.parameters.values())[1:]
        call.__signature__ = signature.replace(parameters=without_self)  # type: ignore[attr-defined]
        del call.__wrapped__
        return call

    def __get__(self, instance: object, owner: type) -> Callable[..., Any]:
        return self.on_class if instance is None else self.function.__get__(instance, owner)


def as_attitude(att: Any) -> Any:
    """Return `att` itself, or for a plain array the attitude it stands for.

    Three numbers are roll, pitch and yaw (``"xyz"``), four a quaternion.
    """
    if hasattr(att, "as_matrix"):
        return att
    array = as_array(att, "att")
    kinds: dict[Any, Any] = {(3,): EulerAngles, (4,): Quaternion}
    if (size := tuple(array.shape[-1:])) not in kinds:
        wanted = "an attitude, an array of 3 (roll, pitch, yaw) or of 4 (quaternion)"
        raise ValueError(f"att must be {wanted}, got shape {tuple(array.shape)}")
    return kinds[size](array)


def attitude_rate(original: Any, att: Any, w_B: Vec3, baumgarte: Scalar) -> Any:
    """Return the rate of an attitude in the form it was given: an attitude or an array."""
    settings = (baumgarte,) if isinstance(att, Quaternion) else ()
    rate = att.kinematics(w_B, *settings)
    return rate if original is att else rate.array


def euler_equation(J_B: Matrix, w_B: Vec3, M_B: Vec3) -> Any:
    """Return the angular acceleration (..., 3): ``J_B^-1 (M_B - w_B x (J_B w_B))``."""
    moment = M_B - cross(w_B, matvec(J_B, w_B))
    if moment.ndim == 1:
        return np.linalg.solve(J_B, moment)
    return np.linalg.solve(J_B, moment[..., None])[..., 0]


@struct
class RigidBody:
    """Equations of motion of a rigid body under given force and moment.

    `dynamics` works on the class, on an instance and through ``super()``.

    Parameters
    ----------
    rpy_attitude : bool, optional
        Require that attitudes are roll, pitch and yaw; anything else is then an error. False by
        default.
    baumgarte : float, optional
        Gain in 1/s with which the norm of the quaternion is driven to one. 1 by default; 0 turns it
        off.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Quaternion, RigidBody
    >>> x = RigidBody.State(np.zeros(3), Quaternion.identity(), np.zeros(3), np.zeros(3))
    >>> u = RigidBody.Input(F_B=np.array([0, 0, 9.8]), M_B=np.zeros(3), m=10.0, J_B=np.eye(3))
    >>> RigidBody.dynamics(0.0, x, u).v_B
    array([0.  , 0.  , 0.98])
    """

    rpy_attitude: bool = field(static=True, default=False)
    baumgarte: float = field(units="1/s", default=1.0)

    @struct
    class State:
        """Position and attitude of the body in N, and its velocities in body axes.

        Parameters
        ----------
        pos : array (..., 3)
            Position of the centre of mass in m.
        att : attitude
            Attitude of the body, of any class with the methods of `Attitude`, or a plain array of 3
            (roll, pitch, yaw) or 4 (quaternion).
        v_B : array (..., 3)
            Velocity in m/s of the centre of mass, in body axes.
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """

        pos: Any = field(units="m")
        att: Any = field()
        v_B: Any = field(units="m/s")
        w_B: Any = field(units="rad/s")

    @struct
    class Input:
        """Net force and moment about the centre of mass in body axes; mass and inertia.

        `dm_dt` and `dJ_dt` enter as the force ``-dm_dt v_B`` and the moment ``-dJ_dt w_B``: right
        where mass leaves with zero inertial velocity. A rocket leaves them at zero, since its
        thrust already carries the momentum of the exhaust (the term depends on the observer).

        Parameters
        ----------
        F_B : array (..., 3)
            Net force in N, in body axes.
        M_B : array (..., 3)
            Net moment in N m about the centre of mass, in body axes.
        m : float
            Mass in kg.
        J_B : array (..., 3, 3)
            Inertia in kg m^2 about the centre of mass, in body axes.
        dm_dt : float, optional
            Rate of change of the mass in kg/s, negative if mass leaves.
        dJ_dt : array (..., 3, 3), optional
            Rate of change of the inertia in kg m^2/s.
        """

        F_B: Any = field(units="N")
        M_B: Any = field(units="N m")
        m: Any = field(units="kg")
        J_B: Any = field(units="kg m^2")
        dm_dt: Any = field(units="kg/s", default=0.0)
        dJ_dt: Any = field(units="kg m^2/s", default_factory=lambda: np.zeros((3, 3)))

        def __post_init__(self) -> None:
            """Check mass and inertia where they are known."""
            check_positive(self.m, "RigidBody.Input.m", "kg")
            check_inertia(self.J_B, "RigidBody.Input.J_B")

    @on_class_too
    def dynamics(self, t: Scalar, x: Any, u: Any) -> Any:
        """Return the time derivative of the state `x` as a `RigidBody.State`.

        Parameters
        ----------
        t : float
            Time in s. The equations do not depend on it.
        x : State
            State of the body.
        u : Input
            Force, moment, mass and inertia.
        """
        att = self.attitude(x)
        v_B, w_B = check_vector(x.v_B, 3, "x.v_B"), check_vector(x.w_B, 3, "x.w_B")
        F_B, M_B = check_vector(u.F_B, 3, "u.F_B"), check_vector(u.M_B, 3, "u.M_B")
        J_B, dJ_dt = as_array(u.J_B, "u.J_B"), as_array(u.dJ_dt, "u.dJ_dt")
        m, dm_dt = expand(as_scalar(u.m, "u.m")), expand(as_scalar(u.dm_dt, "u.dm_dt"))
        return RigidBody.State(
            pos=att.rotate(v_B, inverse=True),
            att=attitude_rate(x.att, att, w_B, self.baumgarte),
            v_B=(F_B - dm_dt * v_B) / m - cross(w_B, v_B),
            w_B=euler_equation(J_B, w_B, M_B - matvec(dJ_dt, w_B)),
        )

    def attitude(self, x: Any) -> Attitude:
        """Return the attitude of a state, checked against `rpy_attitude`.

        Parameters
        ----------
        x : State
            State of the body.
        """
        att = as_attitude(x.att)
        if self.rpy_attitude and not (isinstance(att, EulerAngles) and att.seq == "xyz"):
            wanted = "roll, pitch and yaw, EulerAngles(..., 'xyz') or an array of 3"
            raise ValueError(f"x.att must be {wanted}, since rpy_attitude is True; got {att!r}")
        return att

    @on_class_too
    def kinetic_energy(self, x: Any, u: Any) -> Any:
        """Return the kinetic energy in J.

        Parameters
        ----------
        x : State
            State of the body.
        u : Input
            Force, moment, mass and inertia.
        """
        v_B, w_B = as_array(x.v_B), as_array(x.w_B)
        h_B = matvec(as_array(u.J_B), w_B)
        return 0.5 * (u.m * np.sum(v_B * v_B, axis=-1) + np.sum(w_B * h_B, axis=-1))

    @on_class_too
    def linear_momentum(self, x: Any, u: Any) -> Any:
        """Return the momentum (..., 3) in inertial axes, in kg m/s.

        Parameters
        ----------
        x : State
            State of the body.
        u : Input
            Force, moment, mass and inertia.
        """
        m = expand(as_scalar(u.m, "u.m"))
        return self.attitude(x).rotate(m * as_array(x.v_B), inverse=True)

    @on_class_too
    def angular_momentum(self, x: Any, u: Any) -> Any:
        """Return the angular momentum about the centre of mass in inertial axes, in kg m^2/s.

        Parameters
        ----------
        x : State
            State of the body.
        u : Input
            Force, moment, mass and inertia.
        """
        h_B = matvec(as_array(u.J_B), as_array(x.w_B))
        return self.attitude(x).rotate(h_B, inverse=True)


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
    baumgarte: float = field(units="1/s", default=1.0)

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
            check_positive(self.m, "EarthReferencedBody.Input.m", "kg")
            check_inertia(self.J_B, "EarthReferencedBody.Input.J_B")

    @on_class_too
    def dynamics(self, t: Scalar, x: Any, u: Any) -> Any:
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
