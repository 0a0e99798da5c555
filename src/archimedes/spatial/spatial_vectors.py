"""Six-dimensional motion and force vectors, and the inertia that links them.

Legend: at the origin of the frame in which it is given, a `Motion` has the linear velocity v and
the angular velocity w, a `Force` the force f and the moment n. Arrays list the linear part first,
as the state of `RigidBody` does. In body coordinates ``f = I a + v x* (I v)`` with a = (dv_B/dt,
dw_B/dt) is the equation of motion of `RigidBody`.
Source: Featherstone, Rigid Body Dynamics Algorithms, 2008, chapter 2 (angular part first there).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from archimedes.checks import as_array, as_scalar, check_positive, check_type, check_vector
from archimedes.spatial.components import cross, expand, matvec, skew
from archimedes.spatial.spatial_algebra import Spatial
from archimedes.spatial.validation import check_inertia
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Vec3

if TYPE_CHECKING:
    from archimedes.spatial.transformation import Transformation

__all__ = ["Force", "Motion", "SpatialInertia"]


class SpatialVector:
    """What motion and force vectors share: two 3-vectors, added and scaled together."""

    linear: Any
    angular: Any
    __array_ufunc__ = None

    def __init__(self, linear: Vec3, angular: Vec3) -> None:
        raise NotImplementedError

    def __post_init__(self) -> None:
        """Check the shapes, and the values where they are known."""
        name = type(self).__name__
        self.__dict__["linear"] = check_vector(self.linear, 3, f"{name} linear")
        self.__dict__["angular"] = check_vector(self.angular, 3, f"{name} angular")

    def field_units(self) -> dict[str, str]:
        """Return that the units are open: velocity or acceleration, force or momentum."""
        return {"linear": "?", "angular": "?"}

    @classmethod
    def from_array(cls, array: Array) -> Self:
        """Make a vector of an array (..., 6), linear part first."""
        a = check_vector(array, 6, "array")
        return cls(a[..., :3], a[..., 3:])

    @classmethod
    def zero(cls) -> Self:
        """Return the vector of zeros."""
        return cls(np.zeros(3), np.zeros(3))

    @property
    def array(self) -> Any:
        """The six numbers (..., 6), linear part first."""
        return np.concatenate([self.linear, self.angular], axis=-1)

    def __add__(self, other: Any) -> Self:
        self._check(other)
        return type(self)(self.linear + other.linear, self.angular + other.angular)

    def __sub__(self, other: Any) -> Self:
        self._check(other)
        return type(self)(self.linear - other.linear, self.angular - other.angular)

    def __neg__(self) -> Self:
        return type(self)(-self.linear, -self.angular)

    def __mul__(self, factor: Any) -> Self:
        s = expand(as_scalar(factor, "factor"))
        return type(self)(s * self.linear, s * self.angular)

    __rmul__ = __mul__

    def _check(self, other: Any) -> None:
        if type(other) is not type(self):
            both = f"a {type(self).__name__} and a {type(other).__qualname__}"
            raise TypeError(f"{both} do not add: motions and forces are different spaces")


@struct
class Motion(SpatialVector):
    """A velocity or acceleration of a rigid body: linear part at the origin, and angular part.

    Parameters
    ----------
    linear : array (..., 3)
        Velocity in m/s, or acceleration, of the point of the body at the origin of the frame.
    angular : array (..., 3)
        Angular velocity in rad/s, or acceleration.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Motion
    >>> Motion(np.array([1.0, 0, 0]), np.array([0, 0, 2.0])).velocity_at([0.0, 1.0, 0.0])
    array([-1.,  0.,  0.])
    """

    linear: Any = field(units="m/s")
    angular: Any = field(units="rad/s")

    def velocity_at(self, point: ArrayLike) -> Any:
        """Return the velocity (..., 3) of the body's point at `point` (..., 3).

        Parameters
        ----------
        point : array (..., 3)
            Point in m.
        """
        return self.linear + cross(self.angular, as_array(point, "point"))

    def cross(self, other: Any) -> Any:
        """Return this motion's cross product with a `Motion` or a `Force`, of that class.

        It is the rate of change of a vector that moves along with this motion.

        Parameters
        ----------
        other : Motion or Force
            What moves along with this motion.
        """
        own = Spatial(self.linear, self.angular)
        if isinstance(other, Force):
            return Force(*own.cross_force(Spatial(other.linear, other.angular)))
        if isinstance(other, Motion):
            return Motion(*own.cross(Spatial(other.linear, other.angular)))
        raise TypeError(f"cross takes a Motion or a Force, got {type(other).__qualname__}")

    def dot(self, force: Force) -> Any:
        """Return the power, in W, of a force on a body with this velocity.

        Parameters
        ----------
        force : Force
            Force on the body.
        """
        check_type(force, "force", Force, "power is of a Motion and a Force")
        return np.sum(self.linear * force.linear + self.angular * force.angular, axis=-1)


@struct
class Force(SpatialVector):
    """A force and its moment about the origin.

    Parameters
    ----------
    linear : array (..., 3)
        Force in N, or momentum in N s.
    angular : array (..., 3)
        Moment in N m about the origin of the frame, or angular momentum in N m s.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Force
    >>> Force.at_point(np.array([0.0, 0, 1.0]), np.array([0.0, 2.0, 0.0])).angular
    array([2., 0., 0.])
    """

    linear: Any = field(units="N")
    angular: Any = field(units="N m")

    @classmethod
    def at_point(cls, force: ArrayLike, point: ArrayLike) -> Force:
        """Return the force vector of a force (3,) that acts at a point (3,).

        Parameters
        ----------
        force : array (..., 3)
            Force in N.
        point : array (..., 3)
            Point in m at which it acts.
        """
        f = as_array(force, "force")
        return cls(f, cross(as_array(point, "point"), f))

    def dot(self, motion: Motion) -> Any:
        """Return the power, in W, of this force on a body with the velocity `motion`.

        Parameters
        ----------
        motion : Motion
            Velocity of the body.
        """
        return motion.dot(self)


@struct
class SpatialInertia:
    """Inertia of a rigid body: mass, centre of mass in the frame, inertia about that centre.

    ``I @ motion`` is the momentum, a `Force`.

    Parameters
    ----------
    m : float
        Mass in kg.
    com : array (..., 3)
        Centre of mass in m, in the frame.
    J : array (..., 3, 3)
        Inertia in kg m^2 about the centre of mass.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Motion, SpatialInertia
    >>> inertia = SpatialInertia(m=2.0, com=np.zeros(3), J=np.eye(3))
    >>> (inertia @ Motion(np.array([3.0, 0, 0]), np.zeros(3))).linear
    array([6., 0., 0.])
    """

    m: Any = field(units="kg")
    com: Any = field(units="m")
    J: Any = field(units="kg m^2")

    def __post_init__(self) -> None:
        """Check mass and inertia where they are known."""
        check_positive(self.m, "SpatialInertia m", "kg")
        check_inertia(self.J, "SpatialInertia J")
        self.__dict__["com"] = check_vector(self.com, 3, "SpatialInertia com")

    def about_origin(self) -> Any:
        """Return the rotational inertia (3, 3) about the origin of the frame."""
        c = skew(self.com)
        return as_array(self.J) - self.m * np.matmul(c, c)

    def as_matrix(self) -> Any:
        """Return the matrix (6, 6), linear part first."""
        mc = self.m * skew(self.com)
        top = np.concatenate([self.m * np.eye(3), -mc], axis=-1)
        return np.concatenate([top, np.concatenate([mc, self.about_origin()], axis=-1)], axis=-2)

    def __matmul__(self, motion: Motion) -> Force:
        p = self.m * motion.velocity_at(self.com)
        return Force(p, matvec(as_array(self.J), motion.angular) + cross(self.com, p))

    def solve(self, force: Force) -> Motion:
        """Return the motion whose momentum is `force`: the inverse of ``@``.

        Parameters
        ----------
        force : Force
            Momentum.
        """
        moment = force.angular - cross(self.com, force.linear)
        w = np.linalg.solve(as_array(self.J), moment)
        return Motion(force.linear / self.m - cross(w, self.com), w)

    def kinetic_energy(self, motion: Motion) -> Any:
        """Return the kinetic energy in J of the body with the velocity `motion`.

        Parameters
        ----------
        motion : Motion
            Velocity of the body.
        """
        return 0.5 * motion.dot(self @ motion)

    def transform(self, X_BA: Transformation) -> SpatialInertia:
        """Return the inertia, given in A, in the coordinates of B.

        Parameters
        ----------
        X_BA : Transformation
            Transformation from A to B.
        """
        R = X_BA.r.as_matrix()
        return SpatialInertia(self.m, X_BA.apply(self.com), R @ as_array(self.J) @ R.T)

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        check_type(other, "what is added to a SpatialInertia", SpatialInertia)
        m = self.m + other.m
        com = (self.m * self.com + other.m * other.com) / m
        J = as_array(self.J) + as_array(other.J)
        for part in (self, other):
            shift = skew(part.com - com)
            J = J - part.m * np.matmul(shift, shift)
        return SpatialInertia(m, com, J)

    def equation_of_motion(self, acceleration: Motion, velocity: Motion) -> Force:
        """Return the force that gives this acceleration: ``I a + v x* (I v)``.

        Parameters
        ----------
        acceleration : Motion
            Acceleration, component by component in the frame of the body.
        velocity : Motion
            Velocity of the body.
        """
        return (self @ acceleration) + velocity.cross(self @ velocity)
