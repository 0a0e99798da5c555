"""What a `Builder` holds: bodies, joints and tendons, checked one by one, and its report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes import checks
from archimedes.display import COLUMNS, brief
from archimedes.multibody.parts.joints import JointKind, Screw, Spherical
from archimedes.multibody.parts.ranges import check_numbers, check_one, known_numbers, read_only
from archimedes.multibody.parts.tendons import Path
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import ArrayLike, Matrix, Scalar, Vector

__all__ = ["Mimic", "Report"]

#: An inertia may miss the triangle inequality by this much before it counts as no body's.
SLACK = 1e-6
#: Moments of inertia below this, in kg m^2, are what rounding in a file has left of zero.
ROUNDING = 1e-15
#: Numbers of a joint, and those of them that are not negative, and finite.
VALUES = (
    "lower", "upper", "rest", "speed_limit", "effort_limit", "damping", "friction", "stiffness",
    "armature", "angle_limit", "limit_frequency", "limit_damping", "limit_impedance",
    "friction_softness",
)  # fmt: skip
NOT_NEGATIVE = (
    "speed_limit", "effort_limit", "damping", "friction", "armature", "angle_limit",
    "limit_frequency", "limit_damping",
)  # fmt: skip
FINITE = ("damping", "friction", "stiffness", "armature", "limit_frequency", "limit_damping")


@dataclass(frozen=True)
class Body:
    """A rigid body: mass, centre of mass, inertia about that centre, in its own axes.

    A part of its weight, `compensated`, is carried as by a balloon at its centre of mass. Where
    `carried` (4,) is given, it says what is carried instead: a mass in kg and its first moment. A
    `link_only` one is no body but what is between two joints: it has no name in the model.
    """

    name: str
    mass: Any
    com: Any
    inertia: Any
    link_only: bool = False
    compensated: Any = 0.0
    carried: Any = None


def carried_row(body: Body) -> Any:
    """Return the mass and first moment (4,) that is gravity-compensated, in the body's axes."""
    if body.carried is not None:
        return body.carried
    return body.compensated * body.mass * np.concatenate([np.ones(1), checks.as_array(body.com)])


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
    kind: JointKind
    parent: str | None
    child: str
    at: Pose
    screw: Screw
    mimic: Mimic | None = None
    values: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Tendon:
    """A tendon: arms by joint or a path, and its numbers; within `rest` (2,) it is slack."""

    arms: dict[str, Any]
    stiffness: Any
    damping: Any
    rest: Any
    path: Path = ()
    values: dict[str, Any] = field(default_factory=dict)


def check_values(values: dict[str, Any], kind: JointKind, where: str) -> None:
    """Raise if known numbers of a joint are impossible."""
    if not kind.straight and {"lower", "upper"} & {*values}:
        raise ValueError(
            f"{where}: a {kind.name} joint has no limits: its coordinates are points of a manifold"
        )
    if type(kind) is not Spherical and "angle_limit" in values:
        raise ValueError(
            f"{where}: angle_limit is for spherical joints; a {kind.name} joint has lower and upper"
        )
    for key, value in values.items():
        if key not in VALUES:
            raise TypeError(f"{where}: unknown value {key!r}; there are {', '.join(VALUES)}")
        check = checks.check_not_negative if key in NOT_NEGATIVE else check_numbers
        check(value, f"{where}: {key}")
        if key in FINITE:
            checks.check_that(np.isfinite, value, f"{where}: {key}", "must be finite")
    for key, nowhere in (("lower", np.inf), ("upper", -np.inf)):
        known = checks.concrete(checks.as_array(values.get(key, 0.0), f"{where}: {key}"))
        if known is not None and np.any(known == nowhere):
            raise ValueError(f"{where}: {key}={known.tolist()} leaves the joint no position at all")
    checks.check_limits(values.get("lower", -np.inf), values.get("upper", np.inf), where)


def check_within_limits(joint: Joint, q: Vector) -> None:
    """Raise if known coordinates are outside the limits of a joint."""
    known = checks.concrete(q)
    for key, sign in (("lower", -1.0), ("upper", 1.0)):
        limit = checks.concrete(checks.as_array(joint.values.get(key, sign * np.inf)))
        if known is None or limit is None:
            continue
        excess = sign * (known - limit)
        if joint.kind.straight and np.any(excess > 1e-9 * np.maximum(1.0, np.abs(limit))):
            beyond = f"is beyond its {key} limit {limit.tolist()}; angles are in rad, lengths in m"
            raise ValueError(f"lock: joint {joint.name!r} at {known.tolist()} {beyond}")


def check_body(name: str, mass: Scalar, com: ArrayLike | None, inertia: ArrayLike) -> Body:
    """Return a body; an impossible mass or inertia raises an error that names it."""
    where = f"body {name!r}"
    com = np.zeros(3) if com is None else checks.check_vector(com, 3, f"{where}: com")
    check_one(com, (3,), f"{where}: com")
    J = checks.as_array(inertia, f"{where}: inertia")
    if J.ndim == 1 and J.shape == (3,):
        J = J[:, None] * np.eye(3)
    if tuple(J.shape) != (3, 3):
        raise ValueError(f"{where}: inertia must be (3, 3), or (3,) on the diagonal, got {J.shape}")
    checks.check_finite(J, f"{where}: inertia")
    known = checks.concrete(checks.as_array(mass, f"{where}: mass"))
    if np.ndim(mass):
        raise ValueError(f"{where}: mass must be one number, in kg, got shape {np.shape(mass)}")
    if known is not None and not 0.0 <= float(known) < np.inf:
        raise ValueError(f"{where}: mass must be finite and not negative, in kg, got {mass}")
    values = checks.concrete(J)
    if values is not None:
        check_moments(values, where)
    return Body(name, float(known) if known is not None else mass, read_only(com), read_only(J))


def check_moments(J: np.ndarray, where: str) -> None:
    """Raise if an inertia is not symmetric or has a negative moment about an axis."""
    scale = float(np.abs(J).max())
    if np.abs(J - J.T).max() > 1e-9 * scale:
        raise ValueError(f"{where}: inertia must be symmetric, got {J.tolist()}")
    if np.diag(J).min() < -ROUNDING:
        raise ValueError(f"{where}: inertia has negative moments, got {J.tolist()}")


def inertia_fault(J: Matrix, slack: float) -> str:
    """Return why no body has an inertia, "" if one may have it or it is not known.

    Its moments are positive, and none exceeds the sum of the others, but for a share `slack`.
    """
    values = checks.concrete(J)
    if values is None:
        return ""
    low, middle, high = np.linalg.eigvalsh(values)
    if low < -ROUNDING - 1e-9 * high:
        return f"its least principal moment is negative, {low:.4g} kg m^2"
    if not np.abs(values).max() > 1e-15:
        return ""
    excess = max(0.0, float((high - low - middle) / high))
    if excess > slack:
        return f"its largest principal moment exceeds the sum of the others by {100 * excess:.2g} %"
    return ""


@dataclass
class Report:
    """What became of the elements of a file.

    ``load(..., strict=True)`` raises if anything is approximated or ignored.

    Parameters
    ----------
    used : dict, optional
        Number of elements of each name that are in the model.
    approximated : list of str, optional
        Elements that are approximated: "file:line: ...".
    ignored : list of str, optional
        Elements that are ignored: "file:line: ...".

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> mb.Report(used={"joint": 2}, ignored=["arm.urdf:7: <gazebo>: for a simulator"]).ignored
    ['arm.urdf:7: <gazebo>: for a simulator']
    """

    used: dict[str, int] = field(default_factory=dict)
    approximated: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)

    def __copy__(self) -> Report:
        return Report(dict(self.used), list(self.approximated), list(self.ignored))

    def use(self, tag: str) -> None:
        """Count an element that is in the model.

        Parameters
        ----------
        tag : str
            Name of the element.
        """
        self.used[tag] = self.used.get(tag, 0) + 1

    def add(self, other: Report) -> None:
        """Take over what another report says.

        Parameters
        ----------
        other : Report
            Another report.
        """
        for tag, count in other.used.items():
            self.used[tag] = self.used.get(tag, 0) + count
        self.approximated += other.approximated
        self.ignored += other.ignored

    def check(self) -> None:
        """Raise if something was left out or changed."""
        lost = [*self.approximated, *self.ignored]
        if lost:
            shown = "\n  ".join(lost[:10])
            more = f"\n  and {len(lost) - 10} more" if len(lost) > 10 else ""
            what = f"{len(lost)} elements are not in the model as they are in the file"
            raise ValueError(f"strict=True: {what}:\n  {shown}{more}")

    def __repr__(self) -> str:
        return self._list(8, COLUMNS)

    def report(self) -> str:
        """Return everything that is approximated or ignored as text."""
        return self._list(None, 10_000)

    __call__ = report  # builder.report() is text, as that of results

    def _list(self, most: int | None, width: int) -> str:
        counts = ", ".join(f"{n} {tag}" for tag, n in sorted(self.used.items()))
        lines = [brief(f"used: {counts or 'nothing'}", width)]
        for title, entries in (("approximated", self.approximated), ("ignored", self.ignored)):
            shown = [f"  {brief(entry, width - 2)}" for entry in entries[:most]]
            rest = [f"  ... {len(entries) - len(shown)} more"] if len(entries) > len(shown) else []
            lines += [f"{title}:", *shown, *rest] if entries else []
        return "\n".join(lines)
