"""Attitude as a rotation matrix."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from archimedes.checks import check_matrix
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.dcm import dcm_angular_velocity, dcm_kinematics, dcm_normalize
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion, quaternion_to_dcm
from archimedes.spatial.attitudes.representation import array_of
from archimedes.spatial.components import transpose
from archimedes.tree import field, struct

__all__ = ["RotationMatrix"]


@struct
class RotationMatrix(AttitudeBase, name="matrix"):
    """The attitude of frame B in frame E as R_BE (3, 3), or a batch (..., 3, 3).

    R_BE takes E-coordinates to B-coordinates. Construction takes any finite numbers, since rates
    are held in this class too; conversion raises where the matrix is not a rotation.

    Parameters
    ----------
    array : array (..., 3, 3)
        The matrix R_BE. Any finite numbers are taken, since rates are held in this class too.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import RotationMatrix
    >>> RotationMatrix(np.eye(3)).as_quat()
    Quaternion([1. 0. 0. 0.])
    """

    array: Any = field()
    item_ndim: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Check the shape, and the values where they are known."""
        self.__dict__["array"] = check_matrix(self.array, 3, "RotationMatrix array")

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return dcm_to_quaternion(self.array)

    @classmethod
    def of_quaternion(cls, q: Any) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(quaternion_to_dcm(q))

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return self.array

    def inv(self) -> RotationMatrix:
        """Return the attitude of E in B: the transpose."""
        return self.make(transpose(self.array))

    def mul(self, other: Any) -> RotationMatrix:
        """Return the attitude reached by this turn and then `other`: their matrices' product.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        """
        return self.make(np.matmul(other.as_matrix(), self.array))

    def kinematics(self, w_B: Any) -> RotationMatrix:
        """Return dR_BE/dt for the body rate `w_B` (..., 3) in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        return self.make(dcm_kinematics(self.array, w_B))

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for dR_BE/dt.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        return dcm_angular_velocity(self.array, array_of(rates))

    def normalize(self) -> RotationMatrix:
        """Return the nearest rotation to a matrix that has drifted from one."""
        return self.make(dcm_normalize(self.array))
