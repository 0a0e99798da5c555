"""What an attitude is, and what all attitude classes share.

An attitude says how frame B lies in frame E: ``as_matrix()`` is R_BE, which takes E-coordinates to
B-coordinates (passive). A class defines its array, how to go to and from a quaternion, and its
kinematics; composition, comparison, components and containers come from here. It enters itself
under a name when it is defined, ``class Quaternion(AttitudeBase, name="quat")``, wherever that is;
conversions go from any class to any other by way of the quaternion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from archimedes.checks import as_array, as_scalar, check_finite, check_vector
from archimedes.spatial.attitudes import davenport, euler, quaternions, rotvec
from archimedes.spatial.attitudes.means import quaternion_mean
from archimedes.spatial.components import components, expand, matvec, scaled_norm, select, transpose
from archimedes.typing import Array, ArrayLike, Matrix, Quat

__all__ = ["Attitude", "AttitudeBase"]


@runtime_checkable
class Attitude(Protocol):
    """The four methods that make a class an attitude; any class that has them will do.

    `RigidBody`, `Transformation` and `KinematicTree` ask for no more.

    Parameters
    ----------
    *args
        Arguments of the class.
    **kwargs
        Keyword arguments of the class.

    Examples
    --------
    >>> from archimedes.spatial import Attitude, Quaternion
    >>> isinstance(Quaternion.identity(), Attitude)
    True
    """

    def as_matrix(self) -> np.ndarray:
        """Return R_BE (3, 3), which takes E-coordinates to B-coordinates."""

    def rotate(self, vectors: np.ndarray, inverse: bool = False) -> np.ndarray:
        """Return ``R_BE @ vectors`` for (3,) or (3, N); the transpose if `inverse`.

        Parameters
        ----------
        vectors : array (3,) or (3, N)
            Vectors in E.
        inverse : bool, optional
            Transform from B to E instead. False by default.
        """

    def inv(self) -> Attitude:
        """Return the attitude of E in B."""

    def kinematics(self, w_B: np.ndarray) -> Attitude:
        """Return the rate of change, in the same class, for the body rate `w_B` in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """


def rotate_vectors(matrix: Matrix, vectors: ArrayLike, inverse: bool = False) -> Any:
    """Apply one matrix to (3,) or (3, N), or matrices (..., 3, 3) to broadcast (..., 3)."""
    v = as_array(vectors, "vectors")
    m = transpose(matrix) if inverse else matrix
    if m.ndim == 2:
        if v.ndim not in (1, 2) or v.shape[0] != 3:
            raise ValueError(
                f"vectors must have shape (3,) or (3, N) for one attitude, got {tuple(v.shape)}"
            )
        return m @ v
    if tuple(v.shape[-1:]) != (3,):
        wanted = "(3,) or (..., 3) for a batch of attitudes"
        raise ValueError(f"vectors must have shape {wanted}, got {tuple(v.shape)}")
    return matvec(m, v)


#: The classes by name, each entered by itself.
_CLASSES: dict[str, type[AttitudeBase]] = {}


def array_of(x: Any) -> Any:
    """Return the array of an attitude (or of its rates), or `x` itself."""
    return x.array if isinstance(x, AttitudeBase) else x


def quaternion_of(attitude: Any) -> Any:
    """Return a quaternion (..., 4), of any length, of any attitude, a user's class included."""
    if isinstance(attitude, AttitudeBase):
        return attitude.quaternion()
    if isinstance(attitude, Attitude):
        return quaternions.dcm_to_quaternion(attitude.as_matrix())
    raise TypeError(
        f"expected an attitude (Quaternion, EulerAngles, ...), got {type(attitude).__qualname__}"
    )


def _angle(quaternion: Quat, degrees: bool) -> Any:
    """Return the angle of the rotation of a quaternion (..., 4), 0 to pi in rad or in degrees."""
    w, *v = components(quaternion, 4)
    angle = 2.0 * np.arctan2(scaled_norm(v), select(w < 0.0, -w, w))
    return np.rad2deg(angle) if degrees else angle


class AttitudeBase:
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

    array: Any
    item_ndim: ClassVar[int] = 1
    degrees: bool = False
    __array_ufunc__ = None  # so that `array * attitude` comes to __rmul__

    def __init_subclass__(cls, name: str | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if name is None:
            return
        known = _CLASSES.get(name, cls)
        # Run again, as in a notebook, a definition replaces itself.
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            taken = f"name={name!r} is taken by {known.__module__}.{known.__qualname__}"
            raise ValueError(f"attitude class {cls.__qualname__}: {taken}; choose another")
        _CLASSES[name] = cls

    # ---- for each representation to define -----------------------------------------------

    def quaternion(self) -> Any:
        """Return the quaternion (..., 4) of this attitude, of unit length, as an array."""
        raise NotImplementedError(f"{type(self).__name__} must define quaternion()")

    @classmethod
    def of_quaternion(cls, q: Quat) -> Self:
        """Make an attitude of a quaternion array (..., 4) of any length but zero.

        Parameters
        ----------
        q : array (..., 4)
            Quaternion, scalar first, of any length but zero.
        """
        raise NotImplementedError(f"{cls.__name__} must define of_quaternion()")

    def static(self) -> dict[str, Any]:
        """Return the settings, besides the array, that attitudes made from this one keep."""
        return {}

    # ---- factories -----------------------------------------------------------------------

    @classmethod
    def make(cls, array: Array, **static: Any) -> Self:
        """Make an attitude of an array known to be right, without the checks of the class.

        Parameters
        ----------
        array : array
            Numbers of the attitude, which are known to be right.
        **static : any
            Settings of the class besides the array.
        """
        self = object.__new__(cls)
        fields = self.__dict__
        fields["array"] = array
        if static:
            fields.update(static)
        return self

    @classmethod
    def identity(cls, **target: Any) -> Self:
        """Return the attitude of a frame in itself.

        Parameters
        ----------
        **target : any
            Settings of the class.
        """
        return cls.of_quaternion(np.array([1.0, 0.0, 0.0, 0.0]), **target)

    @classmethod
    def random(
        cls,
        rng: np.random.Generator | int | None = None,
        shape: int | Sequence[int] = (),
        **target: Any,
    ) -> Self:
        """Return attitudes spread evenly over all rotations; `rng` is a generator or a seed.

        Parameters
        ----------
        rng : np.random.Generator or int, optional
            Generator, or its seed.
        shape : int or tuple of int, optional
            Shape of the batch. () by default: one attitude.
        **target : any
            Settings of the class.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        q = np.random.default_rng(rng).normal(size=(*shape, 4))
        return cls.of_quaternion(q / np.linalg.norm(q, axis=-1, keepdims=True), **target)

    @classmethod
    def from_quat(cls, quat: Any, *target: Any, **named: Any) -> Self:
        """Convert from a quaternion (..., 4), scalar first, or any attitude; it is normalised.

        `target` is the sequence for `EulerAngles`; the other classes take none.

        Parameters
        ----------
        quat : array (..., 4) or attitude
            Quaternion, scalar first, or any attitude.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        **named : any
            The same, by name.
        """
        q = quaternion_of(quat) if hasattr(quat, "as_matrix") else as_array(quat, "quat")
        return cls.of_quaternion(quaternions.quaternion_normalize(q), *target, **named)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, *target: Any, **named: Any) -> Self:
        """Convert from a passive rotation matrix R_BE (..., 3, 3), checked to be one.

        Parameters
        ----------
        matrix : array (..., 3, 3)
            Rotation matrix R_BE, which takes E to B coordinates.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        **named : any
            The same, by name.
        """
        return cls.of_quaternion(quaternions.dcm_to_quaternion(array_of(matrix)), *target, **named)

    @classmethod
    def from_euler(cls, angles: Any, seq: str | None = None, degrees: bool = False) -> Self:
        """Convert from Euler angles (..., n) of sequence `seq` ("xyz"), or from `EulerAngles`.

        The latter bring their own sequence and unit: another one is an error.

        Parameters
        ----------
        angles : array (..., n) or EulerAngles
            Angles, in rad unless `degrees`.
        seq : str, optional
            Axes of the angles, ``"xyz"`` by default.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        euler.check_order(angles, seq)
        if isinstance(angles, AttitudeBase):
            own = angles.static()
            if seq not in (None, own.get("seq")) or (degrees and not own.get("degrees")):
                argument = f"seq={seq!r}" if seq is not None else "degrees=True"
                raise ValueError(
                    f"from_euler was given {argument} for {type(angles).__name__} that bring their "
                    f"own ({own}): leave it out, or pass the array of angles"
                )
            return cls.of_quaternion(angles.as_quat().array)
        angles = as_array(angles, "angles")
        radians = np.deg2rad(angles) if degrees else angles
        return cls.of_quaternion(euler.euler_to_quaternion(radians, "xyz" if seq is None else seq))

    @classmethod
    def from_rotvec(
        cls, rotvec: ArrayLike, *target: Any, degrees: bool = False, **named: Any
    ) -> Self:
        """Convert from a rotation vector (..., 3): axis times angle.

        Parameters
        ----------
        rotvec : array (..., 3)
            Rotation vector: the axis times the angle.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        **named : any
            The same as `target`, by name.
        """
        if isinstance(rotvec, AttitudeBase):
            return cls.of_quaternion(rotvec.as_quat().array, *target, **named)
        v = as_array(rotvec, "rotvec")
        return cls.of_quaternion(
            quaternions.quaternion_exp(np.deg2rad(v) if degrees else v), *target, **named
        )

    @classmethod
    def from_mrp(cls, mrp: ArrayLike, *target: Any, **named: Any) -> Self:
        """Convert from modified Rodrigues parameters (..., 3) of either set.

        Parameters
        ----------
        mrp : array (..., 3)
            Modified Rodrigues parameters.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        **named : any
            The same, by name.
        """
        return cls.of_quaternion(rotvec.mrp_to_quaternion(array_of(mrp)), *target, **named)

    @classmethod
    def from_davenport(
        cls,
        axes: ArrayLike,
        order: str,
        angles: ArrayLike,
        degrees: bool = False,
        *target: Any,
        **named: Any,
    ) -> Self:
        """Convert from angles about one to three axes, each orthogonal to the next, as in SciPy.

        Parameters
        ----------
        axes : array (n, 3) or (3,)
            Axes of any length.
        order : {"extrinsic", "e", "intrinsic", "i"}
            Whether the axes are fixed in space or turn with the body.
        angles : array (..., n)
            Angles, in rad unless `degrees`; a number for one axis.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        **named : any
            The same as `target`, by name.

        Examples
        --------
        >>> from archimedes.spatial import Quaternion
        >>> Quaternion.from_davenport([0.0, 3.0, 4.0], "e", 90.0, degrees=True)
        Quaternion([0.70710678 0.         0.42426407 0.56568542])
        """
        radians = np.deg2rad(as_array(angles, "angles")) if degrees else angles
        q = davenport.davenport_to_quaternion(radians, axes, order)
        return cls.of_quaternion(q, *target, **named)

    @classmethod
    def exp(cls, rotvec: ArrayLike, *target: Any, **named: Any) -> Self:
        """Return the attitude reached by turning about `rotvec` (..., 3) by its length in rad.

        Parameters
        ----------
        rotvec : array (..., 3)
            Rotation vector in rad: the axis times the angle.
        *target : any
            Sequence of the angles for `EulerAngles`; the other classes take none.
        **named : any
            The same, by name.
        """
        return cls.from_rotvec(rotvec, *target, **named)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an attitude of plain data, as written by `to_dict` and read from JSON.

        Parameters
        ----------
        data : mapping
            What `to_dict` returned.
        """
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

        Parameters
        ----------
        name : str
            Name of the class.
        *settings : any
            Settings of the class.
        **named : any
            The same, by name.

        Examples
        --------
        >>> from archimedes.spatial import Quaternion
        >>> Quaternion([1.0, 0.0, 0.0, 0.0]).to("euler", "zyx")
        EulerAngles([0. 0. 0.], seq='zyx')
        """
        kind: Any = _CLASSES.get(name)
        if kind is None:
            known = ", ".join(map(repr, _CLASSES))
            remedy = f"write one of {known}, or define class ...(AttitudeBase, name={name!r})"
            raise ValueError(f"no attitude class is named {name!r}: {remedy}")
        return kind.of_quaternion(self.quaternion(), *settings, **named)

    def as_matrix(self) -> Any:
        """Return the passive rotation matrix R_BE (..., 3, 3)."""
        return quaternions.quaternion_to_dcm(self.quaternion())

    def as_quat(self) -> Any:
        """Return the `Quaternion`, of unit length."""
        return self.to("quat")

    def as_euler(self, seq: str = "xyz", degrees: bool = False) -> Any:
        """Return the `EulerAngles` of a sequence of three letters, in rad or in degrees.

        Parameters
        ----------
        seq : str, optional
            Axes of the angles, ``"xyz"`` by default.
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        return self.to("euler", seq, degrees)

    def as_rotvec(self, degrees: bool = False) -> Any:
        """Return the `RotationVector`, of length at most pi (180 degrees).

        Parameters
        ----------
        degrees : bool, optional
            Use degrees instead of radians. False by default.
        """
        return self.to("rotvec", degrees)

    def as_davenport(self, axes: ArrayLike, order: str, degrees: bool = False) -> Any:
        """Return the angles (..., 3), an array, about three axes, each orthogonal to the next.

        Parameters
        ----------
        axes : array (3, 3)
            Axes of any length.
        order : {"extrinsic", "e", "intrinsic", "i"}
            Whether the axes are fixed in space or turn with the body.
        degrees : bool, optional
            Return degrees instead of radians. False by default.

        Examples
        --------
        >>> from archimedes.spatial import Quaternion
        >>> q = Quaternion.from_euler([0.1, 0.2, 0.3], "XZX")
        >>> q.as_davenport([[1.0, 0, 0], [0, 0, 1.0], [1.0, 0, 0]], "intrinsic")
        array([0.1, 0.2, 0.3])
        """
        angles = davenport.quaternion_to_davenport(self.quaternion(), axes, order)
        return np.rad2deg(angles) if degrees else angles

    def as_mrp(self) -> Any:
        """Return the `ModifiedRodrigues` parameters of length at most one."""
        return self.to("mrp")

    def log(self) -> Any:
        """Return the rotation vector (..., 3) as an array: the inverse of `exp`."""
        return quaternions.quaternion_log(self.quaternion())

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, ready for JSON, from which `from_dict` makes an equal attitude."""
        return {"type": type(self).__name__, "array": self.array.tolist(), **self.static()}

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the batch: () for one attitude."""
        return tuple(self.array.shape[: self.array.ndim - self.item_ndim])

    # ---- operations ----------------------------------------------------------------------

    def rotate(self, vectors: ArrayLike, inverse: bool = False) -> Any:
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
        return self.of_quaternion(
            quaternions.quaternion_conjugate(self.quaternion()), **self.static()
        )

    def mul(self, other: Any) -> Any:
        """Return the attitude reached by this turn and then `other`, in this class.

        ``(a * b).as_matrix() == b.as_matrix() @ a.as_matrix()``; batches broadcast.

        Parameters
        ----------
        other : attitude
            Another attitude, of any class.
        """
        q = quaternions.quaternion_multiply(self.quaternion(), quaternion_of(other))
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
        turn = quaternions.quaternion_multiply(
            quaternions.quaternion_conjugate(self.quaternion()), quaternion_of(other)
        )
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

    def mean(self, weights: ArrayLike | None = None, axis: int | Sequence[int] | None = 0) -> Any:
        """Return the mean of a batch, a `Quaternion`, over axes of it: `archimedes.spatial.mean`.

        Parameters
        ----------
        weights : array, optional
            Weights, equal by default: one per attitude along `axis`, or of the shape of the batch.
        axis : int, tuple of int or None, optional
            Axes of the batch to average over. The first by default; None for all.

        Examples
        --------
        >>> from archimedes.spatial import RotationVector
        >>> turns = RotationVector([[0.1, 0.0, 0.0], [0.3, 0.0, 0.0]])
        >>> turns.mean(weights=[3.0, 1.0]).log().round(3)
        array([0.15, 0.  , 0.  ])
        """
        return _CLASSES["quat"].of_quaternion(quaternion_mean(self.quaternion(), weights, axis))

    def __pow__(self, exponent: Any) -> Any:
        """Return the turn by a multiple of the angle, in this class, along the shortest way.

        ``a ** 2`` is the turn made twice, ``a ** -1`` the inverse, and ``a ** 0.5`` half way from
        no turn to this one. The exponent may be an array, and broadcasts against the batch.
        """
        q = quaternions.quaternion_exp(expand(self.check_exponent(exponent)) * self.log())
        return self.of_quaternion(q, **self.static())

    @staticmethod
    def check_exponent(exponent: Any) -> Any:
        """Return an exponent as a number or an array of finite numbers.

        Parameters
        ----------
        exponent : array_like
            The exponent.
        """
        if hasattr(exponent, "as_matrix"):
            kind = type(exponent).__name__
            raise TypeError(f"the exponent must be a number, got {kind}; to compose turns use *")
        t = as_scalar(exponent, "exponent")
        check_finite(t, "exponent")
        return t

    def left_jacobian(self, inverse: bool = False) -> Any:
        """Return the left Jacobian of exp (..., 3, 3) at `log()`, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse matrix instead. False by default.
        """
        return rotvec.so3_left_jacobian(self.log(), inverse)

    def right_jacobian(self, inverse: bool = False) -> Any:
        """Return the right Jacobian of exp (..., 3, 3) at `log()`, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse matrix instead. False by default.
        """
        return rotvec.so3_right_jacobian(self.log(), inverse)

    def field_units(self) -> dict[str, str]:
        """Return the unit of the numbers."""
        return {"array": ""}

    def like(self, array: Array) -> Self:
        """Return an object of this class and settings that holds another array.

        Parameters
        ----------
        array : array
            Numbers of the new object.
        """
        return self.make(array, **self.static())

    def radians(self) -> Any:
        """Return the components, angles in rad, as an array."""
        return np.deg2rad(self.array) if self.degrees else self.array

    def rate_matrix(self, inverse: bool = False) -> Any:
        """Return M (..., 3, 3) with ``rates = M @ w_B``, rates in rad/s, or its inverse.

        Parameters
        ----------
        inverse : bool, optional
            Return the inverse. False by default.
        """
        raise NotImplementedError(f"{type(self).__name__} must define rate_matrix()")

    def kinematics(self, w_B: ArrayLike) -> Any:
        """Return the rates of the components, in this class, for a body rate.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """
        rates = matvec(self.rate_matrix(), check_vector(w_B, 3, "w_B"))
        return self.like(np.rad2deg(rates) if self.degrees else rates)

    def angular_velocity(self, rates: Any) -> Any:
        """Return the body rate w_B (..., 3) in rad/s for rates of the components.

        Parameters
        ----------
        rates : array or attitude
            Rates of change, as an array or as an object of this class.
        """
        rates = self.check_rates(rates)
        matrix = self.rate_matrix(inverse=True)
        return matvec(matrix, np.deg2rad(rates) if self.degrees else rates)

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
        return self._scale(other)

    def __rmul__(self, other: Any) -> Any:
        return self._scale(other)

    def __truediv__(self, other: Any) -> Any:
        return self._scale(1.0 / as_scalar(other, "divisor"))

    def _scale(self, factor: Any) -> Any:
        # Components times a number: not a rotation, but what integrators do with rates.
        if np.shape(factor) != ():
            factor = f"an array of shape {np.shape(factor)}; to turn vectors use .rotate(vectors)"
            name = type(self).__name__
            raise TypeError(f"{name} can be multiplied by an attitude or a number, not by {factor}")
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
            batch = f"a {type(self).__name__} of batch shape {self.shape}; index its .array"
            raise IndexError(f"index {key!r} cuts into the components of {batch}")
        if any(p is Ellipsis for p in parts):  # it stands for axes of the batch alone
            parts = (*parts, *(slice(None),) * self.item_ndim)
        return self.like(self.array[parts])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self.static().items() if value is not False]
        return f"{type(self).__name__}({', '.join([str(self.array), *shown])})"
