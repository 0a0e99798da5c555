"""Representations of attitudes: what each class defines, and the conversions between them.

A class enters itself under a name when it is defined, ``class Quaternion(AttitudeBase,
name="quat")``, wherever that is; conversions go from any class to any other by way of the
quaternion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from archimedes.checks import as_array
from archimedes.spatial.attitudes.attitude import Attitude
from archimedes.spatial.attitudes.euler import euler_to_quaternion
from archimedes.spatial.attitudes.mrp import mrp_to_quaternion
from archimedes.spatial.attitudes.quaternions import (
    dcm_to_quaternion,
    quaternion_exp,
    quaternion_log,
    quaternion_normalize,
    quaternion_to_dcm,
)

__all__ = ["Representation", "array_of", "quaternion_of"]

#: The classes by name, each entered by itself.
_REPRESENTATIONS: dict[str, type[Representation]] = {}


def array_of(x: Any) -> Any:
    """Return the array of an attitude (or of its rates), or `x` itself."""
    return x.array if isinstance(x, Representation) else x


def quaternion_of(attitude: Any) -> Any:
    """Return a quaternion (..., 4), of any length, of any attitude, a user's class included."""
    if isinstance(attitude, Representation):
        return attitude.quaternion()
    if isinstance(attitude, Attitude):
        return dcm_to_quaternion(attitude.as_matrix())
    raise TypeError(
        f"expected an attitude (Quaternion, EulerAngles, ...), got {type(attitude).__qualname__}"
    )


class Representation:
    """An attitude as an array, one or a batch (leading axes), and its ways to and from others."""

    array: Any
    item_ndim: ClassVar[int] = 1

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is None:
            return
        known = _REPRESENTATIONS.get(name, cls)
        # Run again, as in a notebook, a definition replaces itself.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(
                f"attitude class {cls.__qualname__}: name={name!r} is taken by "
                f"{known.__module__}.{known.__qualname__}; choose another"
            )
        _REPRESENTATIONS[name] = cls

    # ---- for each representation to define -----------------------------------------------

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude, of unit length, as an array."""
        raise NotImplementedError(f"{type(self).__name__} must define quaternion()")

    @classmethod
    def of_quaternion(cls, q: Any) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero."""
        raise NotImplementedError(f"{cls.__name__} must define of_quaternion()")

    def static(self) -> dict[str, Any]:
        """Return the settings, besides the array, that attitudes made from this one keep."""
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
        if isinstance(angles, Representation):
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
        if isinstance(rotvec, Representation):
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

    def to(self, name: str, *settings: Any, **named: Any) -> Any:
        """Return the same rotation in the class that entered itself under a name.

        These are "quat", "euler", "rotvec", "mrp", "matrix" and those of users; `settings` are
        what the class keeps besides its array (for "euler" the sequence, and the unit).

        >>> from archimedes.spatial import Quaternion
        >>> Quaternion([1.0, 0.0, 0.0, 0.0]).to("euler", "zyx")
        EulerAngles([0. 0. 0.], seq='zyx')
        """
        kind: Any = _REPRESENTATIONS.get(name)
        if kind is None:
            raise ValueError(
                f"no attitude class is named {name!r}: write one of "
                f"{', '.join(map(repr, _REPRESENTATIONS))}, or define one with "
                f"class ...(AttitudeBase, name={name!r})"
            )
        return kind.of_quaternion(self.quaternion(), *settings, **named)

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return quaternion_to_dcm(self.quaternion())

    def as_quat(self) -> Any:
        """Return the `Quaternion`, of unit length."""
        return self.to("quat")

    def as_euler(self, seq: str = "xyz", degrees: bool = False) -> Any:
        """Return the `EulerAngles` of a sequence of three letters, in rad or in degrees."""
        return self.to("euler", seq, degrees)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return the `RotationVector`, of length at most pi (180 degrees)."""
        return self.to("rotvec", degrees)

    def as_mrp(self) -> Any:
        """Return the `ModifiedRodrigues` parameters of length at most one."""
        return self.to("mrp")

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
