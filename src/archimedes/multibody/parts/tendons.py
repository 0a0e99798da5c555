"""Tendons: springs, dampers and limits along sums of coordinates or along paths through space.

A tendon runs along joints, its length is a sum of arms times coordinates, or along a path: straight
from frame to frame, around spheres and cylinders on the shortest way, over pulleys that divide the
length of what follows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from archimedes import checks
from archimedes.multibody.parts.closures import IMPEDANCE
from archimedes.multibody.parts.ranges import known_numbers, read_only
from archimedes.tree import field, struct
from archimedes.typing import Vector

__all__ = ["Pulley", "Tendons", "Wrap"]


@dataclass(frozen=True)
class Wrap:
    """A sphere or a cylinder that a tendon wraps around, between two frames of its path.

    The tendon takes the shortest way around it, or runs straight if that does not touch it.

    Parameters
    ----------
    frame : str
        Frame at the centre of the sphere, or of the cylinder, whose axis is its z.
    radius : float
        Radius in m.
    shape : {"sphere", "cylinder"}, optional
        Shape. A cylinder, the default, has no ends.
    side : str, optional
        Frame on whose side the tendon stays, even where the other way is shorter. None, the
        default, for the shorter one.
    inside : bool, optional
        The tendon touches the surface from inside, at one point, as at a ring. False by default.

    Examples
    --------
    >>> from archimedes.multibody import Wrap
    >>> Wrap("elbow", 0.02, side="front").shape
    'cylinder'
    """

    frame: str
    radius: float
    shape: str = "cylinder"
    side: str | None = None
    inside: bool = False

    def __post_init__(self) -> None:
        """Check the shape and the radius."""
        checks.check_choice(self.shape, "Wrap shape", ("sphere", "cylinder"))
        remedy = "The frames of a path may be where traced numbers say"
        radius = known_numbers(self.radius, "Wrap radius, in m,", remedy)
        checks.check_not_negative(radius, "Wrap radius, in m,")
        object.__setattr__(self, "radius", float(radius))

    def __content__(self) -> tuple[Any, ...]:
        return self.frame, self.radius, self.shape, self.side, self.inside


@dataclass(frozen=True)
class Pulley:
    """A pulley on the path of a tendon: what follows counts less, and the path begins anew.

    Parameters
    ----------
    divisor : float
        What the length of all that follows is divided by, up to the next pulley.

    Examples
    --------
    >>> from archimedes.multibody import Pulley
    >>> Pulley(2.0).divisor
    2.0
    """

    divisor: float

    def __post_init__(self) -> None:
        """Check the divisor."""
        divisor = known_numbers(self.divisor, "Pulley divisor", "Give it as a number")
        checks.check_positive(divisor, "Pulley divisor")
        object.__setattr__(self, "divisor", float(divisor))

    def __content__(self) -> tuple[Any, ...]:
        return (self.divisor,)


#: Frames by name, what the tendon wraps around, and pulleys, in the order of the path.
Path: TypeAlias = "tuple[str | Wrap | Pulley, ...]"


def check_path(path: Any, where: str) -> Path:
    """Return a path as a tuple, checked: frames at all ends, and around all that it wraps."""
    parts = (path,) if isinstance(path, (str, Wrap, Pulley)) else tuple(path)
    for part in parts:
        if not isinstance(part, (str, Wrap, Pulley)):
            raise TypeError(f"{where}: path is of frames by name, Wrap and Pulley, got {part!r}")
    for branch in branches_of(parts):
        names = [isinstance(part, str) for part in branch]
        if sum(names) < 2 or not names[0] or not names[-1]:
            raise ValueError(f"{where}: each part of a path goes from a frame to a frame")
        for k in range(len(branch) - 1):
            if not names[k] and not names[k + 1]:
                raise ValueError(f"{where}: between two Wrap there must be a frame")
    return parts


def branches_of(path: Path) -> list[list[str | Wrap]]:
    """Return the parts of a path between pulleys."""
    branches: list[list[str | Wrap]] = [[]]
    for part in path:
        if isinstance(part, Pulley):
            branches.append([])
        else:
            branches[-1].append(part)
    return branches[1:] if path and isinstance(path[0], Pulley) else branches


def frames_of(path: Path) -> set[str]:
    """Return the frames that a path needs."""
    names = {part for part in path if isinstance(part, str)}
    for part in path:
        if isinstance(part, Wrap):
            names |= {part.frame} if part.side is None else {part.frame, part.side}
    return names


def rename_path(path: Path, prefix: str) -> Path:
    """Return a path of frames whose names have a prefix."""

    def rename(part: str | Wrap | Pulley) -> str | Wrap | Pulley:
        if isinstance(part, str):
            return prefix + part
        if isinstance(part, Pulley):
            return part
        side = None if part.side is None else prefix + part.side
        return Wrap(prefix + part.frame, part.radius, part.shape, side, part.inside)

    return tuple(map(rename, path))


@struct
class Tendons:
    """Tendons along joints of one coordinate, or along paths.

    Parameters
    ----------
    names : tuple of str
        Names of the tendons.
    joints : tuple of str
        Names of the joints.
    arms : array (t, n)
        Moment arms: ``length = arms @ q``. Zero for tendons along paths.
    stiffness : array (t,)
        Stiffness in N/m.
    damping : array (t,)
        Damping in N s/m.
    rest : array (t, 2)
        Lengths in m between which each tendon is slack.
    paths : tuple, optional
        Path of each tendon, () for those along joints.
    lower : array (t,), optional
        Least lengths in m. -inf by default.
    upper : array (t,), optional
        Largest lengths in m. inf by default.
    friction : array (t,), optional
        Dry friction in N. Zero by default.
    effort_lower : array (t,), optional
        Least force in N that actuators give each tendon together. -inf by default.
    effort_upper : array (t,), optional
        Largest such force in N. inf by default.
    limit_frequency : array (t,), optional
        Frequencies in rad/s of the stops at these lengths, 50 by default.
    limit_damping : array (t,), optional
        Damping ratios of these stops, 1 by default.
    limit_impedance : array (t, 5), optional
        MuJoCo's ``solimp`` of these stops, for `soft_dynamics`.
    friction_softness : array (t, 7), optional
        Frequency, damping ratio and ``solimp`` of dry friction, for `soft_dynamics`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> b.add_tendon("spring", {"hinge": 0.5}, stiffness=8.0)
    >>> arm = b.build()
    >>> arm.tendons.names, mb.passive_torque(arm, np.array([0.1]), np.zeros(1))
    (('spring',), array([-0.2]))
    """

    names: tuple[str, ...] = field(static=True)
    joints: tuple[str, ...] = field(static=True)
    arms: Any = field()
    stiffness: Any = field(units="N/m")
    damping: Any = field(units="N s/m")
    rest: Any = field(units="m")
    paths: tuple[Path, ...] = field(static=True, default=())
    lower: Any = field(units="m", default=None)
    upper: Any = field(units="m", default=None)
    friction: Any = field(units="N", default=None)
    effort_lower: Any = field(units="N", default=None)
    effort_upper: Any = field(units="N", default=None)
    limit_frequency: Any = field(units="rad/s", default=None)
    limit_damping: Any = field(units="", default=None)
    limit_impedance: Any = field(default=None)
    friction_softness: Any = field(default=None)

    def __post_init__(self) -> None:
        """Check the shapes."""
        t = len(self.names)
        if not self.paths:
            self.__dict__["paths"] = ((),) * t
        for name, value in USUAL.items():
            if getattr(self, name) is None:
                self.__dict__[name] = np.broadcast_to(value, (t, *np.shape(value))) * 1.0
        wanted: dict[str, tuple[int, ...]] = {
            "arms": (t, len(self.joints)), "stiffness": (t,), "damping": (t,), "rest": (t, 2),
            **{key: (t, *np.shape(usual)) for key, usual in USUAL.items()},
        }  # fmt: skip
        for name, shape in wanted.items():
            self.__dict__[name] = read_only(checks.as_array(getattr(self, name), f"Tendons {name}"))
            checks.check_shape(self.__dict__[name], f"Tendons {name}", shape)

    @property
    def through_space(self) -> bool:
        """Whether some run along paths."""
        return any(self.paths)

    def stretch(self, q: Vector) -> Vector:
        """Return by how much (..., t) tendons are longer or shorter than where they are slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        return self.stretch_of(np.matmul(q, self.arms.T))

    def stretch_of(self, length: Vector) -> Vector:
        """Return by how much (..., t) tendons of some lengths are longer or shorter than slack.

        Parameters
        ----------
        length : array (..., t)
            Lengths in m.
        """
        over = np.maximum(length - self.rest[:, 1], 0.0)
        return over + np.minimum(length - self.rest[:, 0], 0.0)

    def torques(self, q: Vector, v: Vector) -> Vector:
        """Return what tendons do at the joints (..., n), for their q and v.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        v : array (..., n)
            Velocities of the joints.
        """
        pull = self.stiffness * self.stretch(q) + self.damping * np.matmul(v, self.arms.T)
        return -np.matmul(pull, self.arms)

    def pull(self, length: Vector, speed: Vector) -> Vector:
        """Return the force (..., t) of springs and dampers, positive where they pull.

        Parameters
        ----------
        length : array (..., t)
            Lengths in m.
        speed : array (..., t)
            Rates of the lengths in m/s.
        """
        return self.stiffness * self.stretch_of(length) + self.damping * speed

    def slack_stiffness(self, q: Vector) -> Vector:
        """Return the stiffness (..., t) of tendons where they are: none where slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        return np.where(self.stretch(q) == 0.0, 0.0, self.stiffness)


#: Frequency in rad/s, damping ratio and impedance of dry friction, as in MuJoCo.
FRICTION_SOFTNESS = (50.0, 1.0, *IMPEDANCE)
#: Numbers of tendons that are usually not given.
USUAL: dict[str, Any] = {
    "lower": -np.inf, "upper": np.inf, "effort_lower": -np.inf, "effort_upper": np.inf,
    "friction": 0.0, "limit_frequency": 50.0,
    "limit_damping": 1.0, "limit_impedance": IMPEDANCE, "friction_softness": FRICTION_SOFTNESS,
}  # fmt: skip
