"""Attitude as a rotation vector: axis times angle."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from archimedes.checks import check_vector
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.quaternions import quaternion_exp, quaternion_log
from archimedes.spatial.attitudes.rotvec import rotvec_kinematics
from archimedes.spatial.components import matvec
from archimedes.tree import field, struct

__all__ = ["RotationVector"]


@struct
class RotationVector(AttitudeBase, name="rotvec"):
    """The attitude of frame B in frame E as the vector of the rotation from E to B, or a batch.

    Its direction is the axis, the same in E and in B, and its length the angle. The rates are
    finite for angles below a full turn; `normalize` brings the angle to at most half a turn.

    Parameters
    ----------
    array : array (..., 3)
        The rotation vector, in rad unless `degrees`.
    degrees : bool, optional
        Use degrees instead of radians. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import RotationVector
    >>> RotationVector([0.0, 0.0, np.pi / 2]).rotate([1.0, 0.0, 0.0]).round(15)
    array([ 0., -1.,  0.])
    """

    array: Any = field()
    degrees: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        """Check the shape, and the values where they are known."""
        self.__dict__["array"] = check_vector(self.array, 3, "RotationVector array")

    def radians(self) -> Any:
        """Return the vector (..., 3) in rad as an array."""
        return np.deg2rad(self.array) if self.degrees else self.array

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return quaternion_exp(self.radians())

    @classmethod
    def of_quaternion(cls, q: Any, degrees: bool = False) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        v = quaternion_log(q)
        return cls.make(np.rad2deg(v) if degrees else v, degrees=degrees)

    def static(self) -> dict[str, Any]:
        """Return the unit."""
        return {"degrees": self.degrees}

    def inv(self) -> RotationVector:
        """Return the attitude of E in B: the opposite vector."""
        return self.like(-self.array)

    def kinematics(self, w_B: Any) -> RotationVector:
        """Return the rate of the vector for the body rate `w_B` (..., 3) in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        rates = matvec(rotvec_kinematics(self.radians()), check_vector(w_B, 3, "w_B"))
        return self.like(np.rad2deg(rates) if self.degrees else rates)

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for the rate of the vector.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        rates = self.check_rates(rates)
        matrix = rotvec_kinematics(self.radians(), inverse=True)
        return matvec(matrix, np.deg2rad(rates) if self.degrees else rates)

    def normalize(self) -> RotationVector:
        """Return the same attitude with the angle at most half a turn."""
        return self.of_quaternion(self.quaternion(), **self.static())
