"""What all our attitude classes share: composition, comparison, components, containers.

A class defines its array, how to go to and from a quaternion, and its kinematics; everything else
comes from here and from `Representation`, by way of the quaternion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from archimedes.checks import as_scalar, check_vector
from archimedes.spatial.attitudes.attitude import Attitude, rotate_vectors
from archimedes.spatial.attitudes.quaternions import quaternion_conjugate, quaternion_multiply
from archimedes.spatial.attitudes.representation import Representation, array_of, quaternion_of
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian, so3_right_jacobian
from archimedes.spatial.components import components, scaled_norm, select

__all__ = ["AttitudeBase"]


def _angle(quaternion: Any, degrees: bool) -> Any:
    """Return the angle of the rotation of a quaternion (..., 4), 0 to pi in rad or in degrees."""
    w, *v = components(quaternion, 4)
    angle = 2.0 * np.arctan2(scaled_norm(v), select(w < 0.0, -w, w))
    return np.rad2deg(angle) if degrees else angle


class AttitudeBase(Representation):
    """Base of attitude classes; `array` holds one attitude or a batch (leading axes).

    A class of your own needs `array`, `quaternion`, `of_quaternion` and `kinematics`, and is a
    struct. With ``name=...`` every attitude converts to it by ``.to(name)``.

    >>> import archimedes as arc
    >>> from archimedes.spatial import AttitudeBase, Quaternion
    >>> @arc.struct
    ... class Conjugate(AttitudeBase, name="conjugate"):
    ...     array: object
    ...     def quaternion(self):
    ...         return self.array * [1.0, -1.0, -1.0, -1.0]
    ...     @classmethod
    ...     def of_quaternion(cls, q):
    ...         return cls(q * [1.0, -1.0, -1.0, -1.0])
    ...     def kinematics(self, w_B):
    ...         return self.of_quaternion(self.as_quat().kinematics(w_B).array)
    >>> Quaternion([0.8, 0.6, 0.0, 0.0]).to("conjugate")
    Conjugate([ 0.8 -0.6 -0.  -0. ])
    """

    __array_ufunc__ = None  # so that `array * attitude` comes to __rmul__

    # ---- operations ----------------------------------------------------------------------

    def rotate(self, vectors: Any, inverse: bool = False) -> Any:
        """Return the coordinates in B of vectors given in E, or the reverse if `inverse`.

        One attitude takes (3,) or (3, N); a batch takes (3,) or (..., 3) and broadcasts.

        Parameters
        ----------
        vectors : array (3,), (3, N) or (..., 3)
            Vectors in E. A single attitude takes (3,) or (3, N); a batch takes (3,) or (..., 3) and
            broadcasts.
        inverse : bool, optional
            Transform from B to E instead. False by default.
        """
        return rotate_vectors(self.as_matrix(), vectors, inverse)

    def inv(self) -> Any:
        """Return the attitude of E in B."""
        return self.of_quaternion(quaternion_conjugate(self.quaternion()), **self.static())

    def mul(self, other: Any) -> Any:
        """Return the attitude reached by this turn and then `other`, in this class.

        ``(a * b).as_matrix() == b.as_matrix() @ a.as_matrix()``; batches broadcast.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        """
        q = quaternion_multiply(self.quaternion(), quaternion_of(other))
        return self.of_quaternion(q, **self.static())

    def magnitude(self, degrees: bool = False) -> Any:
        """Return the angle of the rotation, 0 to pi in rad, or in degrees.

        Parameters
        ----------
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        return _angle(self.quaternion(), degrees)

    def angle_to(self, other: Any, degrees: bool = False) -> Any:
        """Return the angle, 0 to pi in rad or in degrees, of the turn from this to `other`.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        turn = quaternion_multiply(quaternion_conjugate(self.quaternion()), quaternion_of(other))
        return _angle(turn, degrees)

    def approx_equal(self, other: Any, atol: float = 1e-9) -> Any:
        """Return whether another attitude is the same rotation, in any representation.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        atol : float, optional
            Largest angle between them, in rad.
        """
        return self.angle_to(other) <= atol

    def left_jacobian(self, inverse: bool = False) -> Any:
        """Return the left Jacobian of exp (..., 3, 3) at `log()`, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse matrix instead. False by default.
        """
        return so3_left_jacobian(self.log(), inverse)

    def right_jacobian(self, inverse: bool = False) -> Any:
        """Return the right Jacobian of exp (..., 3, 3) at `log()`, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse matrix instead. False by default.
        """
        return so3_right_jacobian(self.log(), inverse)

    def like(self, array: Any) -> Self:
        """Return an object of this class and settings that holds another array.

        Parameters
        ----------
        array : array
            Numbers of the new object.
        """
        return self.make(array, **self.static())

    def check_rates(self, rates: Any) -> Any:
        """Return rates, an array or an attitude that holds rates, as an array.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        if isinstance(rates, AttitudeBase) and type(rates) is not type(self):
            raise TypeError(
                f"rates must be those of a {type(self).__name__}, got {type(rates).__name__}"
            )
        return check_vector(array_of(rates), self.array.shape[-1], "rates")

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, AttitudeBase) or isinstance(other, Attitude):  # noqa: SIM101
            return self.mul(other)  # the protocol alone would do, but takes microseconds
        return self._scaled(other)

    def __rmul__(self, other: Any) -> Any:
        return self._scaled(other)

    def __truediv__(self, other: Any) -> Any:
        return self._scaled(1.0 / as_scalar(other, "divisor"))

    def _scaled(self, factor: Any) -> Any:
        # Components times a number: not a rotation, but what integrators do with rates.
        if np.shape(factor) != ():
            raise TypeError(
                f"{type(self).__name__} can be multiplied by an attitude or a number, not by an "
                f"array of shape {np.shape(factor)}; to turn vectors use .rotate(vectors)"
            )
        return self.like(self.array * as_scalar(factor, "factor"))

    def __add__(self, other: Any) -> Any:
        return self.like(self.array + self._same(other))

    def __sub__(self, other: Any) -> Any:
        return self.like(self.array - self._same(other))

    def __neg__(self) -> Any:
        return self.like(-self.array)

    def _same(self, other: Any) -> Any:
        if isinstance(other, AttitudeBase) and (
            type(other) is not type(self) or other.static() != self.static()
        ):
            raise TypeError(
                f"the components of {other!r} cannot be added to those of a "
                f"{type(self).__name__} with {self.static() or 'no settings'}; to compose "
                "rotations use *"
            )
        return array_of(other)

    # ---- containers ----------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> Any:
        if self.array.ndim <= self.item_ndim:
            return self.array[key]
        parts = key if isinstance(key, tuple) else (key,)
        if sum(p is not None and p is not Ellipsis for p in parts) > len(self.shape):
            raise IndexError(
                f"index {key!r} cuts into the components of a {type(self).__name__} of batch "
                f"shape {self.shape}; index its .array for components"
            )
        if any(p is Ellipsis for p in parts):  # it stands for axes of the batch alone
            parts = (*parts, *(slice(None),) * self.item_ndim)
        return self.like(self.array[parts])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self.static().items() if value is not False]
        return f"{type(self).__name__}({', '.join([str(self.array), *shown])})"
