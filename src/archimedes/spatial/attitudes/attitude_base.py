"""What all our representations of attitudes share.

A representation defines its array, how to go to and from a quaternion, and its kinematics;
everything else comes from `AttitudeBase`, by way of the quaternion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from archimedes.spatial.attitudes.attitude import Attitude, rotate_vectors
from archimedes.spatial.attitudes.components import (
    as_array,
    as_scalar,
    components,
    scaled_norm,
    select,
)
from archimedes.spatial.attitudes.euler import euler_to_quaternion
from archimedes.spatial.attitudes.mrp import mrp_to_quaternion
from archimedes.spatial.attitudes.quaternions import (
    dcm_to_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_normalize,
    quaternion_to_dcm,
)
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian, so3_right_jacobian
from archimedes.spatial.validation import check_vector

__all__ = ["AttitudeBase", "array_of", "compose", "quaternion_of"]

#: The representations by name, each entered by its own module.
REPRESENTATIONS: dict[str, Any] = {}


def array_of(x: Any) -> Any:
    """Return the array of an attitude (or of its rates), or `x` itself."""
    return x.array if isinstance(x, AttitudeBase) else x


def quaternion_of(attitude: Any) -> Any:
    """Return a quaternion (..., 4), of any length, of any attitude, a user's class included."""
    if isinstance(attitude, AttitudeBase):
        return attitude.quaternion()
    if isinstance(attitude, Attitude):
        return dcm_to_quaternion(attitude.as_matrix())
    raise TypeError(
        f"expected an attitude (Quaternion, EulerAngles, ...), got {type(attitude).__qualname__}"
    )


def compose(first: Any, then: Any) -> Any:
    """Return the attitude of C in E for the attitudes of B in E and of C in B.

    A `Quaternion` for our own classes, since products of the others have singularities of their
    own; a `RotationMatrix` where the first is one, or is of a user's class.
    """
    if isinstance(first, AttitudeBase) and first.item_ndim == 1:
        return REPRESENTATIONS["Quaternion"].make(first.quaternion()).mul(then)
    product = np.matmul(then.as_matrix(), first.as_matrix())
    return REPRESENTATIONS["RotationMatrix"].make(product)


class AttitudeBase:
    """What all representations share; `array` holds one attitude or a batch (leading axes)."""

    array: Any
    __array_ufunc__ = None  # so that `array * attitude` comes to __rmul__
    item_ndim: ClassVar[int] = 1

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith("archimedes.spatial."):
            REPRESENTATIONS[cls.__name__] = cls

    # ---- for each representation to define -----------------------------------------------

    def quaternion(self) -> Any:
        """Return a quaternion (..., 4) of this attitude, of any length but zero, as an array."""
        raise NotImplementedError(f"{type(self).__name__} must define quaternion()")

    @classmethod
    def of_quaternion(cls, q: Any) -> Self:
        """Make an attitude of a unit quaternion array (..., 4)."""
        raise NotImplementedError(f"{cls.__name__} must define of_quaternion()")

    def static(self) -> dict[str, Any]:
        """Return the settings, beside the array, that attitudes made from this one keep."""
        return {}

    # ---- factories -----------------------------------------------------------------------

    @classmethod
    def make(cls, array: Any, **static: Any) -> Self:
        """Make an attitude of an array known to be right, without the checks of the class."""
        self = object.__new__(cls)
        fields = self.__dict__
        fields["array"] = array
        if static:
            fields.update(static)
        return self

    @classmethod
    def identity(cls, **target: Any) -> Self:
        """Return the attitude of a frame in itself."""
        return cls.of_quaternion(np.array([1.0, 0.0, 0.0, 0.0]), **target)

    @classmethod
    def random(
        cls, rng: np.random.Generator | int | None = None, shape: Any = (), **target: Any
    ) -> Self:
        """Return attitudes spread evenly over all rotations; `rng` is a generator or a seed."""
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        q = np.random.default_rng(rng).normal(size=(*shape, 4))
        return cls.of_quaternion(q / np.linalg.norm(q, axis=-1, keepdims=True), **target)

    @classmethod
    def from_quat(cls, quat: Any, *target: Any, **named: Any) -> Self:
        """Convert from a quaternion (..., 4), scalar first, or any attitude; it is normalised.

        `target` is the sequence for `EulerAngles`; the other classes take none.
        """
        q = quaternion_of(quat) if hasattr(quat, "as_matrix") else as_array(quat, "quat")
        return cls.of_quaternion(quaternion_normalize(q), *target, **named)

    @classmethod
    def from_matrix(cls, matrix: Any, *target: Any, **named: Any) -> Self:
        """Convert from a passive rotation matrix R_BE (..., 3, 3), checked to be one."""
        return cls.of_quaternion(dcm_to_quaternion(array_of(matrix)), *target, **named)

    @classmethod
    def from_euler(cls, angles: Any, seq: str | None = None, degrees: bool = False) -> Self:
        """Convert from Euler angles (..., n) of sequence `seq` ("xyz"), or from `EulerAngles`.

        The latter bring their own sequence and unit: another one is an error.
        """
        if isinstance(angles, AttitudeBase):
            own = angles.static()
            if seq not in (None, own.get("seq")) or (degrees and not own.get("degrees")):
                given = f"seq={seq!r}" if seq is not None else "degrees=True"
                raise ValueError(
                    f"from_euler was given {given} for {type(angles).__name__} that bring their "
                    f"own ({own}): leave it out, or pass the array of angles"
                )
            return cls.of_quaternion(angles.as_quat().array)
        angles = as_array(angles, "angles")
        return cls.of_quaternion(
            euler_to_quaternion(
                np.deg2rad(angles) if degrees else angles, "xyz" if seq is None else seq
            )
        )

    @classmethod
    def from_rotvec(cls, rotvec: Any, *target: Any, degrees: bool = False, **named: Any) -> Self:
        """Convert from a rotation vector (..., 3): axis times angle."""
        if isinstance(rotvec, AttitudeBase):
            return cls.of_quaternion(rotvec.as_quat().array, *target, **named)
        v = as_array(rotvec, "rotvec")
        return cls.of_quaternion(quaternion_exp(np.deg2rad(v) if degrees else v), *target, **named)

    @classmethod
    def from_mrp(cls, mrp: Any, *target: Any, **named: Any) -> Self:
        """Convert from modified Rodrigues parameters (..., 3) of either set."""
        return cls.of_quaternion(mrp_to_quaternion(array_of(mrp)), *target, **named)

    @classmethod
    def exp(cls, rotvec: Any, *target: Any, **named: Any) -> Self:
        """Return the attitude reached by turning about `rotvec` (..., 3) by its length in rad."""
        return cls.from_rotvec(rotvec, *target, **named)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an attitude of plain data, as written by `to_dict` and read from JSON."""
        fields = {name: value for name, value in data.items() if name != "type"}
        kind = data.get("type", cls.__name__)
        if kind != cls.__name__ or "array" not in fields:
            raise ValueError(f"expected the data of a {cls.__name__} with its array, got {data!r}")
        return cls(**fields)

    # ---- accessors -----------------------------------------------------------------------

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return quaternion_to_dcm(self.quaternion())

    def as_quat(self) -> Any:
        """Return the `Quaternion`, of unit length."""
        return REPRESENTATIONS["Quaternion"].make(self.quaternion())

    def as_euler(self, seq: str = "xyz", degrees: bool = False) -> Any:
        """Return the `EulerAngles` of a sequence of three letters, in rad or in degrees."""
        return REPRESENTATIONS["EulerAngles"].of_quaternion(self.quaternion(), seq, degrees)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return the `RotationVector`, of length at most pi (180 degrees)."""
        return REPRESENTATIONS["RotationVector"].of_quaternion(self.quaternion(), degrees)

    def as_mrp(self) -> Any:
        """Return the `ModifiedRodrigues` parameters of length at most one."""
        return REPRESENTATIONS["ModifiedRodrigues"].of_quaternion(self.quaternion())

    def log(self) -> Any:
        """Return the rotation vector (..., 3) as an array: the inverse of `exp`."""
        return quaternion_log(self.quaternion())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which `from_dict` makes an equal attitude."""
        return {"type": type(self).__name__, "array": self.array.tolist(), **self.static()}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch: () for one attitude."""
        return tuple(self.array.shape[: self.array.ndim - self.item_ndim])

    # ---- operations ----------------------------------------------------------------------

    def rotate(self, vectors: Any, inverse: bool = False) -> Any:
        """Return the coordinates in B of vectors given in E, or the reverse if `inverse`.

        One attitude takes (3,) or (3, N); a batch takes (3,) or (..., 3) and broadcasts.
        """
        return rotate_vectors(self.as_matrix(), vectors, inverse)

    def inv(self) -> Any:
        """Return the attitude of E in B."""
        return self.of_quaternion(quaternion_conjugate(self.quaternion()), **self.static())

    def mul(self, other: Any) -> Any:
        """Return the attitude reached by this turn and then `other`, in this class.

        ``(a * b).as_matrix() == b.as_matrix() @ a.as_matrix()``; batches broadcast.
        """
        q = quaternion_multiply(self.quaternion(), quaternion_of(other))
        return self.of_quaternion(q, **self.static())

    def magnitude(self, degrees: bool = False) -> Any:
        """Return the angle of the rotation, 0 to pi in rad, or in degrees."""
        w, *v = components(self.quaternion(), 4)
        angle = 2.0 * np.arctan2(scaled_norm(v), select(w < 0.0, -w, w))
        return np.rad2deg(angle) if degrees else angle

    def angle_to(self, other: Any, degrees: bool = False) -> Any:
        """Return the angle, 0 to pi in rad or in degrees, of the turn from this to `other`."""
        turn = quaternion_multiply(quaternion_conjugate(self.quaternion()), quaternion_of(other))
        return REPRESENTATIONS["Quaternion"].make(turn).magnitude(degrees)

    def approx_equal(self, other: Any, atol: float = 1e-9) -> Any:
        """Tell whether `other` is the same rotation within `atol` rad, in any representation."""
        return self.angle_to(other) <= atol

    def left_jacobian(self, inverse: bool = False) -> Any:
        """Return the left Jacobian of exp (..., 3, 3) at `log()`, or its inverse."""
        return so3_left_jacobian(self.log(), inverse)

    def right_jacobian(self, inverse: bool = False) -> Any:
        """Return the right Jacobian of exp (..., 3, 3) at `log()`, or its inverse."""
        return so3_right_jacobian(self.log(), inverse)

    def like(self, array: Any) -> Self:
        """Return an object of this class and settings that holds another array."""
        return self.make(array, **self.static())

    def check_rates(self, rates: Any) -> Any:
        """Return rates, an array or an attitude that holds rates, as an array."""
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
