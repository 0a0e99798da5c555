"""Attitude as a unit quaternion, scalar first."""

from __future__ import annotations

from typing import Any, Self

from archimedes.checks import check_vector
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.quaternions import (
    quaternion_inverse,
    quaternion_kinematics,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_dcm,
)
from archimedes.spatial.attitudes.representation import quaternion_of
from archimedes.tree import field, struct

__all__ = ["Quaternion"]


@struct
class Quaternion(AttitudeBase, name="quat"):
    """The attitude of frame B in frame E as a quaternion [w, x, y, z], or a batch (..., 4).

    Construction takes any finite numbers as they are, since rates are held in this class too;
    conversion to anything else normalises, and raises for the zero quaternion. ``a * b`` is the
    Hamilton product: first a, then b as seen from the turned frame.

    Parameters
    ----------
    array : array (..., 4)
        Components [w, x, y, z]. Any finite numbers are taken as they are, since rates are held in
        this class too.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import Quaternion
    >>> q = Quaternion.from_euler([0.1, 0.2, 0.3], seq="xyz")
    >>> q
    Quaternion([0.98334744 0.0342708  0.10602051 0.14357218])
    >>> q.rotate(np.array([1.0, 0.0, 0.0])).round(4)
    array([ 0.9363, -0.2751,  0.2184])
    """

    array: Any = field()

    def __post_init__(self) -> None:
        """Check the shape, and the values where they are known."""
        self.__dict__["array"] = check_vector(self.array, 4, "Quaternion array")

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4), of any length but zero, as an array."""
        return self.array

    @classmethod
    def of_quaternion(cls, q: Any) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(q)

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return quaternion_to_dcm(self.array)

    def as_quat(self) -> Quaternion:
        """Return the quaternion scaled to unit length."""
        return self.make(quaternion_normalize(self.array))

    def inv(self) -> Quaternion:
        """Return the attitude of E in B: the quaternion whose product with this one is 1."""
        return self.make(quaternion_inverse(self.array))

    def mul(self, other: Any, normalize: bool = False) -> Quaternion:
        """Return the Hamilton product with another quaternion, or with any attitude.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        normalize : bool, optional
            Normalize the product. False by default.
        """
        q = other.array if isinstance(other, Quaternion) else quaternion_of(other)
        product = quaternion_multiply(self.array, q)
        return self.make(quaternion_normalize(product) if normalize else product)

    def kinematics(self, w_B: Any, baumgarte: Any = 1.0) -> Quaternion:
        """Return dq/dt for the body rate `w_B` (..., 3) in rad/s; see `quaternion_kinematics`.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        baumgarte : float, optional
            Gain in 1/s with which the norm of the quaternion is driven to one. 1 by default; 0
            turns it off.
        """
        return self.make(quaternion_kinematics(self.array, w_B, baumgarte))

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for dq/dt, an array or a `Quaternion`.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        turn = quaternion_multiply(quaternion_inverse(self.array), self.check_rates(rates))
        return 2.0 * turn[..., 1:]

    def normalize(self) -> Quaternion:
        """Return the quaternion scaled to unit length."""
        return self.make(quaternion_normalize(self.array))
