"""What a `Builder` holds: bodies and joints as they were given, checked one by one."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as field_of
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_not_negative, check_vector, concrete
from archimedes.function.reproducible import norm
from archimedes.multibody.models.joints import KINDS, JointKind, Screw
from archimedes.multibody.models.ranges import check_numbers, kept, known_numbers
from archimedes.spatial.validation import check_rotation

__all__ = [
    "SLACK",
    "Body",
    "Joint",
    "Mimic",
    "Tendon",
    "check_screw",
    "check_values",
    "checked_axis",
    "checked_body",
    "inertia_fault",
    "kind_named",
    "placement",
    "within",
]

#: Kinds that are made of others, see `archimedes.multibody.models.joints.KINDS`.
BUILT = ("fixed", "universal")
#: An inertia may miss the triangle inequality by this much before it counts as no body's.
SLACK = 1e-6
#: Moments of inertia below this, in kg m^2, are what rounding in a file has left of zero.
ROUNDING = 1e-15
#: Numbers of a joint, and those of them that are not negative.
VALUES = (
    "lower", "upper", "rest", "speed_limit", "effort_limit", "damping", "friction", "stiffness",
    "armature",
)  # fmt: skip
NOT_NEGATIVE = ("speed_limit", "effort_limit", "damping", "friction", "armature")


@dataclass(frozen=True)
class Body:
    """A rigid body: mass, centre of mass, inertia about that centre, in its own axes.

    A `link_only` one is no body but what is between two joints: it has no name in the model.
    """

    name: str
    mass: Any
    com: Any
    inertia: Any
    link_only: bool = False


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = multiplier * q_other + offset``.

    Parameters
    ----------
    joint : str
        Joint to follow.
    multiplier : float, optional
        Factor.
    offset : float, optional
        Offset in rad or m.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> for name in ("left", "right"):
    ...     b.add_body(name, mass=0.1, inertia=[1e-4, 1e-4, 1e-4])
    >>> b.attach("left", joint="left", kind="prismatic")
    >>> b.attach("right", joint="right", kind="prismatic", mimic=mb.Mimic("left", multiplier=-1.0))
    >>> b.build().nq
    1
    """

    joint: str
    multiplier: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        """Check the numbers."""
        for name in ("multiplier", "offset"):
            known = known_numbers(
                getattr(self, name),
                f"Mimic of {self.joint!r}: {name}",
                "The arms of a tendon may be traced",
            )
            object.__setattr__(self, name, float(known))


@dataclass(frozen=True)
class Joint:
    """A joint: what it links, where it is in its parent, and all its numbers."""

    name: str
    kind: JointKind | str
    parent: str | None
    child: str
    rotation: Any
    position: Any
    screw: Screw
    second_axis: tuple[float, float, float] | None = None
    mimic: Mimic | None = None
    values: dict[str, Any] = field_of(default_factory=dict)


@dataclass(frozen=True)
class Tendon:
    """A tendon: arms by joint, stiffness, damping, and between which lengths (2,) it is slack."""

    arms: dict[str, Any]
    stiffness: Any
    damping: Any
    rest: Any


def kind_named(kind: Any) -> JointKind | str:
    """Return a kind of the table, or a user's own, or the name of one that is built of others."""
    if isinstance(kind, JointKind) or kind in BUILT:
        return kind
    if kind not in KINDS:
        raise ValueError(
            f"kind={kind!r} is no kind of joint; there are {', '.join([*KINDS, *BUILT])}, and "
            "user_joint(...) makes others"
        )
    return KINDS[kind]


def checked_axis(axis: Any, name: str) -> tuple[float, float, float]:
    """Return a unit vector along an axis; those along x, y, z keep exact zeros and ones."""
    values = concrete(as_array(axis, name))
    if values is None:
        raise ValueError(
            f"{name} must be known numbers: it decides which program is recorded. To vary the "
            "direction of a joint give it a traced rotation"
        )
    if values.shape != (3,) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be three finite numbers, got {axis}")
    largest = float(np.abs(values).max())
    if largest == 0.0:
        raise ValueError(f"{name} must not be zero")
    if not 1e-100 < largest < 1e100:
        values = values / largest  # whose squares are numbers
    if np.count_nonzero(values) == 1:
        values = np.sign(values)
    size = float(norm(values))
    if abs(size - 1.0) > 1e-15:
        values = values / size
    x, y, z = (float(c) for c in values)
    return (x, y, z)


def check_values(values: dict[str, Any], kind: JointKind | str, where: str) -> None:
    """Raise where numbers of a joint cannot be: those that are known."""
    if not isinstance(kind, str) and not kind.straight and {"lower", "upper"} & {*values}:
        raise ValueError(
            f"{where}: a {kind.name} joint has no limits: its coordinates are points of a manifold"
        )
    for key, value in values.items():
        if key not in VALUES:
            raise TypeError(f"{where}: unknown value {key!r}; there are {', '.join(VALUES)}")
        check = check_not_negative if key in NOT_NEGATIVE else check_numbers
        check(value, f"{where}: {key}")
    lower, upper = (
        concrete(as_array(values.get(key, default)))
        for key, default in (("lower", -np.inf), ("upper", np.inf))
    )
    if lower is not None and upper is not None and np.any(lower > upper):
        raise ValueError(
            f"{where}: the lower limit is above the upper one, {lower.tolist()} and "
            f"{upper.tolist()}"
        )


def within(joint: Joint, q: Any) -> None:
    """Raise where known coordinates are outside the limits of a joint."""
    known = concrete(q)
    for key, sign in (("lower", -1.0), ("upper", 1.0)):
        limit = concrete(as_array(joint.values.get(key, sign * np.inf)))
        if known is None or limit is None:
            continue
        beyond = sign * (known - limit) > 1e-9 * np.maximum(1.0, np.abs(limit))
        straight = isinstance(joint.kind, str) or joint.kind.straight
        if straight and np.any(beyond):
            raise ValueError(
                f"lock: joint {joint.name!r} at {known.tolist()} is beyond its {key} limit "
                f"{limit.tolist()}; angles are in rad, lengths in m"
            )


def check_screw(
    kind: Any, axis: tuple[float, ...], second: tuple[float, ...] | None, pitch: Any, where: str
) -> None:
    """Raise where a joint has an axis or a pitch that its kind does not use."""
    if pitch != 0.0 and kind_named(kind) is not KINDS["helical"]:
        raise ValueError(f"{where}: only helical joints have a pitch")
    if second is None:
        return
    if kind != "universal":
        raise ValueError(f"{where}: only universal joints have a second_axis")
    if abs(np.dot(axis, second)) > 1.0 - 1e-9:
        raise ValueError(
            f"{where}: second_axis={second} must not be along axis={axis}: kind='revolute' turns "
            "about one axis"
        )


def placement(rotation: Any, position: Any, name: str) -> tuple[Any, Any]:
    """Return a rotation (3, 3), child to parent, and a position (3,).

    A rotation is a matrix, or an attitude of `archimedes.spatial` of the child in the parent.
    """
    if hasattr(rotation, "as_matrix"):
        rotation = rotation.as_matrix().T
    R = np.eye(3) if rotation is None else check_rotation(rotation, f"{name} rotation")
    p = np.zeros(3) if position is None else check_vector(position, 3, f"{name} position")
    check_one(R, (3, 3), f"{name} rotation")
    check_one(p, (3,), f"{name} position")
    return kept(R), kept(p)


def check_one(array: Any, shape: tuple[int, ...], name: str) -> None:
    """Raise where there are several of what a builder takes one of."""
    if tuple(array.shape) != shape:
        raise ValueError(
            f"{name} must have shape {shape}, got {tuple(array.shape)}: a builder makes one model; "
            "arc.vmap of a function that builds makes many"
        )


def checked_body(name: str, mass: Any, com: Any, inertia: Any) -> Body:
    """Return a body; what cannot be one's mass or inertia is an error that names it."""
    where = f"body {name!r}"
    com = np.zeros(3) if com is None else check_vector(com, 3, f"{where}: com")
    check_one(com, (3,), f"{where}: com")
    J = as_array(inertia, f"{where}: inertia")
    if J.ndim == 1 and J.shape == (3,):
        J = J[:, None] * np.eye(3)
    if tuple(J.shape) != (3, 3):
        raise ValueError(f"{where}: inertia must be (3, 3), or (3,) on the diagonal, got {J.shape}")
    check_finite(J, f"{where}: inertia")
    if np.ndim(as_array(mass, f"{where}: mass")):
        raise ValueError(f"{where}: mass must be one number, in kg, got shape {np.shape(mass)}")
    known = concrete(mass if hasattr(mass, "shape") else as_array(mass, f"{where}: mass"))
    if known is not None and not 0.0 <= float(known) < np.inf:
        raise ValueError(f"{where}: mass must be finite and not negative, in kg, got {mass}")
    values = concrete(J)
    if values is not None:
        check_moments(values, where)
    return Body(name, float(known) if known is not None else mass, kept(com), kept(J))


def check_moments(J: np.ndarray, where: str) -> None:
    """Raise where an inertia is not symmetric or has a negative moment about an axis."""
    scale = float(np.abs(J).max())
    if np.abs(J - J.T).max() > 1e-9 * scale:
        raise ValueError(f"{where}: inertia must be symmetric, got {J.tolist()}")
    if np.diag(J).min() < -ROUNDING:
        raise ValueError(f"{where}: inertia has negative moments, got {J.tolist()}")


def least_moment(J: Any) -> float:
    """Return the least principal moment of an inertia where it is negative, else zero."""
    values = concrete(J)
    if values is None:
        return 0.0
    moments = np.linalg.eigvalsh(values)
    return float(moments[0]) if moments[0] < -ROUNDING - 1e-9 * moments[2] else 0.0


def inertia_fault(J: Any, slack: float) -> str:
    """Return why no body has an inertia, "" where one may or where it is not known."""
    if least := least_moment(J):
        return f"its least principal moment is negative, {least:.4g} kg m^2"
    excess = triangle_excess(J)
    if excess > slack:
        return f"its largest principal moment exceeds the sum of the others by {100 * excess:.2g} %"
    return ""


def triangle_excess(J: Any) -> float:
    """Return by how much, of its size, an inertia misses what any body has: a + b >= c."""
    values = concrete(J)
    if values is None or not np.abs(values).max() > 1e-15:
        return 0.0
    low, middle, high = np.linalg.eigvalsh(values)
    return max(0.0, float((high - low - middle) / high))
