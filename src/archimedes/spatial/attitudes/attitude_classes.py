"""Classes of attitudes: quaternion, Euler angles, rotation matrix, rotation vector, and MRPs.

Each is a struct on `AttitudeBase` that enters itself under a name; products of any two classes are
by `compose`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np

from archimedes.checks import as_array, check_matrix, check_vector
from archimedes.spatial.attitudes import euler, quaternions, rotvec
from archimedes.spatial.attitudes.attitude_base import AttitudeBase, array_of, quaternion_of
from archimedes.spatial.components import expand, transpose
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Quat, Scalar

__all__ = [
    "EulerAngles",
    "ModifiedRodrigues",
    "Quaternion",
    "Rotation",
    "RotationMatrix",
    "RotationVector",
]


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
    def of_quaternion(cls, q: Quat) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(q)

    def as_quat(self) -> Quaternion:
        """Return the quaternion scaled to unit length."""
        return self.make(quaternions.quaternion_normalize(self.array))

    def inv(self) -> Quaternion:
        """Return the attitude of E in B: the quaternion whose product with this one is 1."""
        return self.make(quaternions.quaternion_inverse(self.array))

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
        product = quaternions.quaternion_multiply(self.array, q)
        return self.make(quaternions.quaternion_normalize(product) if normalize else product)

    def kinematics(self, w_B: ArrayLike, baumgarte: Scalar = 1.0) -> Quaternion:
        """Return dq/dt for the body rate `w_B` (..., 3) in rad/s; see `quaternion_kinematics`.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        baumgarte : float, optional
            Gain in 1/s with which the norm of the quaternion is driven to one. 1 by default; 0
            turns it off.
        """
        return self.make(quaternions.quaternion_kinematics(self.array, w_B, baumgarte))

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for dq/dt, an array or a `Quaternion`.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        turn = quaternions.quaternion_multiply(
            quaternions.quaternion_inverse(self.array), self.check_rates(rates)
        )
        return 2.0 * turn[..., 1:]

    def normalize(self) -> Quaternion:
        """Return the quaternion scaled to unit length."""
        return self.make(quaternions.quaternion_normalize(self.array))


#: The name of earlier programs for a `Quaternion`.
Rotation = Quaternion


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
        self.__dict__["array"] = euler.check_angles(self.array, self.seq, "EulerAngles array")

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return euler.euler_to_quaternion(self.radians(), self.seq)

    @classmethod
    def of_quaternion(cls, q: Quat, seq: str = "xyz", degrees: bool = False) -> Self:
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
        angles = euler.quaternion_to_euler(q, seq)
        attitude = object.__new__(cls)  # as `make` does, whose keywords take longer
        fields = attitude.__dict__
        fields["array"] = np.rad2deg(angles) if degrees else angles
        fields["seq"], fields["degrees"] = seq, degrees
        return attitude

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
        euler.check_order(angles, seq)
        seq = "xyz" if seq is None else seq
        if isinstance(angles, AttitudeBase):
            return cls.of_quaternion(angles.quaternion(), seq, degrees)
        return cls(as_array(angles, "angles"), seq, degrees)

    def static(self) -> dict[str, Any]:
        """Return the sequence and the unit."""
        return {"seq": self.seq, "degrees": self.degrees}

    def field_units(self) -> dict[str, str]:
        """Return the unit of the angles."""
        return {"array": "deg" if self.degrees else "rad"}

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return euler.euler_to_dcm(self.radians(), self.seq)

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
        euler.parse_sequence(self.seq, True)
        return super().mul(other)

    def __pow__(self, exponent: Any) -> EulerAngles:
        """Return the turn by a multiple of the angle, in this sequence, along the shortest way."""
        if len(self.seq) == 1:
            t = expand(self.check_exponent(exponent))
            return self.like(t * self.normalize().array)
        euler.parse_sequence(self.seq, True)
        return super().__pow__(exponent)

    def rate_matrix(self, inverse: bool = False) -> Any:
        """Return M (..., 3, 3), the rates of the angles in rad/s for w_B, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse. False by default.
        """
        return euler.euler_kinematics(self.radians(), inverse, self.seq)

    def normalize(self) -> EulerAngles:
        """Return the same attitude with each angle within half a turn of zero."""
        turn = 360.0 if self.degrees else 2.0 * np.pi
        return self.like(self.array - turn * np.rint(self.array / turn))


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
        return quaternions.dcm_to_quaternion(self.array)

    @classmethod
    def of_quaternion(cls, q: Quat) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(quaternions.quaternion_to_dcm(q))

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

    def kinematics(self, w_B: ArrayLike) -> RotationMatrix:
        """Return dR_BE/dt for the body rate `w_B` (..., 3) in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        return self.make(quaternions.dcm_kinematics(self.array, w_B))

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for dR_BE/dt.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        return quaternions.dcm_angular_velocity(self.array, array_of(rates))

    def normalize(self) -> RotationMatrix:
        """Return the nearest rotation to a matrix that has drifted from one."""
        return self.make(quaternions.dcm_normalize(self.array))


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

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude as an array."""
        return quaternions.quaternion_exp(self.radians())

    @classmethod
    def of_quaternion(cls, q: Quat, degrees: bool = False) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        v = quaternions.quaternion_log(q)
        return cls.make(np.rad2deg(v) if degrees else v, degrees=degrees)

    def static(self) -> dict[str, Any]:
        """Return the unit."""
        return {"degrees": self.degrees}

    def field_units(self) -> dict[str, str]:
        """Return the unit of the rotation vector."""
        return {"array": "deg" if self.degrees else "rad"}

    def inv(self) -> RotationVector:
        """Return the attitude of E in B: the opposite vector."""
        return self.like(-self.array)

    def rate_matrix(self, inverse: bool = False) -> Any:
        """Return M (..., 3, 3), the rate of the vector in rad/s for w_B, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse. False by default.
        """
        return rotvec.rotvec_kinematics(self.radians(), inverse)

    def normalize(self) -> RotationVector:
        """Return the same attitude with the angle at most half a turn."""
        return self.of_quaternion(self.quaternion(), **self.static())


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
        return rotvec.mrp_to_quaternion(self.array)

    @classmethod
    def of_quaternion(cls, q: Quat) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        return cls.make(rotvec.quaternion_to_mrp(q))

    def inv(self) -> ModifiedRodrigues:
        """Return the attitude of E in B: the opposite parameters."""
        return self.like(-self.array)

    def rate_matrix(self, inverse: bool = False) -> Any:
        """Return M (..., 3, 3), the rate of the parameters for w_B, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse. False by default.
        """
        return rotvec.mrp_kinematics(self.array, inverse)

    def shadow(self) -> ModifiedRodrigues:
        """Return the other parameters of the same attitude."""
        return self.like(rotvec.mrp_shadow(self.array))

    def normalize(self) -> ModifiedRodrigues:
        """Return the parameters of the same attitude with length at most one."""
        return self.like(rotvec.mrp_normalize(self.array))


def compose(first: Any, then: Any) -> Any:
    """Return the attitude of C in E for the attitudes of B in E and of C in B.

    A `Quaternion` for our own classes, since products of the others have singularities of their
    own; a `RotationMatrix` where the first is one, or is of a user's class.
    """
    if isinstance(first, AttitudeBase) and first.item_ndim == 1:
        return Quaternion.make(first.quaternion()).mul(then)
    return RotationMatrix.make(np.matmul(then.as_matrix(), first.as_matrix()))
