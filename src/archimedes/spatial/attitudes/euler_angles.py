"""Attitude as Euler angles of any sequence of one to three axes."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from archimedes.checks import as_array, check_vector
from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.euler import (
    check_angles,
    euler_kinematics,
    euler_to_dcm,
    euler_to_quaternion,
    quaternion_to_euler,
)
from archimedes.spatial.attitudes.sequences import parse_sequence
from archimedes.spatial.components import matvec
from archimedes.tree import field, struct

__all__ = ["EulerAngles"]


@struct
class EulerAngles(AttitudeBase, name="euler"):
    """The attitude of frame B in frame E as angles about a sequence of axes, or a batch.

    The wind-to-body rotation is ``EulerAngles([-beta, alpha], "ZY")``. A product has the sequence
    of its left factor. An inverse has the reversed sequence, and is exact in gimbal lock too.

    Parameters
    ----------
    array : array (..., n)
        The angles, in rad unless `degrees`, in the order of the letters of `seq`. A sequence of one
        letter takes a number too.
    seq : str, optional
        Axes of the rotations, one to three letters as in SciPy: lower case about the fixed axes,
        upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.
    degrees : bool, optional
        Use degrees instead of radians. False by default.

    Examples
    --------
    >>> from archimedes.spatial import EulerAngles
    >>> EulerAngles([0.1, 0.2, 0.3], seq="xyz").as_euler("zyx")
    EulerAngles([0.2857717  0.22012403 0.03787988], seq='zyx')
    """

    array: Any = field()
    seq: str = field(static=True, default="xyz")
    degrees: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        """Check sequence and shape, and the values where they are known."""
        self.__dict__["array"] = check_angles(self.array, self.seq, "EulerAngles array")

    @classmethod
    def make(  # type: ignore[override]
        cls, array: Any, seq: str = "xyz", degrees: bool = False
    ) -> Self:
        """Make an attitude of an array known to be right, without the checks of the class.

        Parameters
        ----------
        array : array (..., n)
            The angles, which are known to be right.
        seq : str, optional
            Axes of the rotations, one to three letters as in SciPy: lower case about the fixed
            axes, upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        self = object.__new__(cls)
        fields = self.__dict__
        fields["array"] = array
        fields["seq"] = seq
        fields["degrees"] = degrees
        return self

    def radians(self) -> Any:
        """Return the angles (..., n) in rad as an array."""
        return np.deg2rad(self.array) if self.degrees else self.array

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return euler_to_quaternion(self.radians(), self.seq)

    @classmethod
    def of_quaternion(cls, q: Any, seq: str = "xyz", degrees: bool = False) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        seq : str, optional
            Axes of the rotations, one to three letters as in SciPy: lower case about the fixed
            axes, upper case about the rotated ones. ``"xyz"``, the default, is roll, pitch, yaw.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        angles = quaternion_to_euler(q, seq)
        return cls.make(np.rad2deg(angles) if degrees else angles, seq, degrees)

    @classmethod
    def from_euler(cls, angles: Any, seq: str | None = None, degrees: bool = False) -> Self:
        """Take angles (..., n) of sequence `seq` ("xyz"); `EulerAngles` are converted to it.

        Parameters
        ----------
        angles : array (..., n) or EulerAngles
            Angles, in rad unless `degrees`. `EulerAngles` are converted to `seq`.
        seq : str, optional
            Axes of the angles, ``"xyz"`` by default.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        seq = "xyz" if seq is None else seq
        if isinstance(angles, AttitudeBase):
            return cls.of_quaternion(angles.quaternion(), seq, degrees)
        return cls(as_array(angles, "angles"), seq, degrees)

    def static(self) -> dict[str, Any]:
        """Return the sequence and the unit."""
        return {"seq": self.seq, "degrees": self.degrees}

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return euler_to_dcm(self.radians(), self.seq)

    def inv(self) -> EulerAngles:
        """Return the attitude of E in B: the angles negated, in reverse order."""
        return self.make(-self.array[..., ::-1], seq=self.seq[::-1], degrees=self.degrees)

    def mul(self, other: Any) -> EulerAngles:
        """Return the attitude reached by this turn and then `other`, in this sequence.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        """
        parse_sequence(self.seq, True)
        return super().mul(other)

    def kinematics(self, w_B: Any) -> EulerAngles:
        """Return the rates of the angles for the body rate `w_B` (..., 3) in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        matrix = euler_kinematics(self.radians(), seq=self.seq)
        rates = matvec(matrix, check_vector(w_B, 3, "w_B"))
        return self.like(np.rad2deg(rates) if self.degrees else rates)

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for rates of the angles.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        rates = self.check_rates(rates)
        matrix = euler_kinematics(self.radians(), inverse=True, seq=self.seq)
        return matvec(matrix, np.deg2rad(rates) if self.degrees else rates)

    def normalize(self) -> EulerAngles:
        """Return the same attitude with each angle within half a turn of zero."""
        turn = 360.0 if self.degrees else 2.0 * np.pi
        return self.like(self.array - turn * np.rint(self.array / turn))
