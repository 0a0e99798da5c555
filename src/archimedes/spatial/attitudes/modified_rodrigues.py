"""Attitude as modified Rodrigues parameters."""

from __future__ import annotations

from typing import Any, Self

from archimedes.checks import check_vector
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.mrp import (
    mrp_kinematics,
    mrp_normalize,
    mrp_shadow,
    mrp_to_quaternion,
    quaternion_to_mrp,
)
from archimedes.spatial.components import matvec
from archimedes.tree import field, struct

__all__ = ["ModifiedRodrigues"]


@struct
class ModifiedRodrigues(AttitudeBase, name="mrp"):
    """The attitude of frame B in frame E as axis times tan(angle/4), (3,) or a batch (..., 3).

    Three numbers without trigonometry, singular only at a full turn. `normalize` switches to the
    shadow set where the length is above one, which keeps an integration away from there.

    Parameters
    ----------
    array : array (..., 3)
        The parameters.

    Examples
    --------
    >>> from archimedes.spatial import ModifiedRodrigues
    >>> ModifiedRodrigues([0.0, 0.0, 2.0]).normalize()
    ModifiedRodrigues([-0.  -0.  -0.5])
    """

    array: Any = field()

    def __post_init__(self) -> None:
        """Check the shape, and the values where they are known."""
        self.__dict__["array"] = check_vector(self.array, 3, "ModifiedRodrigues array")

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return mrp_to_quaternion(self.array)

    @classmethod
    def of_quaternion(cls, q: Any) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(quaternion_to_mrp(q))

    def inv(self) -> ModifiedRodrigues:
        """Return the attitude of E in B: the opposite parameters."""
        return self.like(-self.array)

    def kinematics(self, w_B: Any) -> ModifiedRodrigues:
        """Return the rate of the parameters for the body rate `w_B` (..., 3) in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        return self.like(matvec(mrp_kinematics(self.array), check_vector(w_B, 3, "w_B")))

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for the rate of the parameters.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        return matvec(mrp_kinematics(self.array, inverse=True), self.check_rates(rates))

    def shadow(self) -> ModifiedRodrigues:
        """Return the other parameters of the same attitude."""
        return self.like(mrp_shadow(self.array))

    def normalize(self) -> ModifiedRodrigues:
        """Return the parameters of the same attitude with length at most one."""
        return self.like(mrp_normalize(self.array))
