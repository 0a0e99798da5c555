"""What closes loops: frames held together as by a joint, and coordinates that are coupled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from archimedes.checks import (
    check_choice,
    check_not_negative,
    check_shape,
    check_that,
    check_vector,
)
from archimedes.multibody.parts.joints import KINDS, Screw, make_screw

__all__ = ["Closure", "Coupling", "Softness"]

#: What MuJoCo takes where a file says nothing: impedance at a constraint and beyond, over which
#: way, with the middle of the change, and its power.
IMPEDANCE = (0.9, 0.95, 0.001, 0.5, 2.0)


@dataclass(frozen=True)
class Softness:
    """How soft `soft_dynamics` makes a closure, a coupling or a contact, as MuJoCo does.

    Parameters
    ----------
    frequency : float, optional
        Frequency in rad/s with which a violation swings back, 50 by default.
    damping : float, optional
        Damping ratio of that, 1 by default.
    impedance : tuple of 5 floats, optional
        MuJoCo's ``solimp``: (0.9, 0.95, 0.001, 0.5, 2) by default.
    turning : float, optional
        How much rotation counts beside translation, 1 by default.
    mobility : (float, float), optional
        What a unit of force accelerates in 1/kg, and a unit of torque in 1/(kg m^2): the softness
        is a part of that. None, the default: what it is at each configuration, and for a contact
        what the centres of both bodies give at rest of the springs. A contact takes the first.

    Examples
    --------
    >>> from archimedes.multibody import Closure, Softness
    >>> Closure("rod", "rocker", "spherical", softness=Softness(frequency=100.0)).softness.damping
    1.0
    """

    frequency: float = 50.0
    damping: float = 1.0
    impedance: tuple[float, float, float, float, float] = IMPEDANCE
    turning: float = 1.0
    mobility: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        """Check the numbers."""
        numbers = tuple(float(x) for x in self.impedance)
        check_shape(np.array(numbers), "Softness impedance", (5,))
        object.__setattr__(self, "impedance", numbers)
        for name in ("frequency", "damping", "turning"):
            check_that(np.isfinite, getattr(self, name), f"Softness {name}", "must be finite")
        for name in ("frequency", "damping"):
            check_not_negative(getattr(self, name), f"Softness {name}")


@dataclass(frozen=True)
class Closure:
    """A constraint that holds one frame to another as a joint would, to close a kinematic loop.

    Parameters
    ----------
    first : str
        First frame, or ``"world"``.
    second : str
        Second frame.
    kind : str, optional
        Kind of joint that holds it: ``"fixed"``, ``"spherical"`` (a point), ``"revolute"``, ...
    axis : (float, float, float), optional
        Axis in the axes of both frames.
    place : (float, float, float), optional
        Position in m in the world, for ``"world"``.
    pitch : float, optional
        Translation in m per rad of a helical joint.
    second_axis : (float, float, float), optional
        Axis of a universal joint in the axes of the second frame; `axis` is then in those of the
        first.
    softness : Softness, optional
        How soft `soft_dynamics` makes it.

    Examples
    --------
    >>> from archimedes.multibody import Closure
    >>> Closure("coupler_end", "rocker_end", "revolute", axis=(0, 1, 0)).rows.shape
    (5, 6)
    """

    first: str
    second: str
    kind: str = "fixed"
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)
    place: tuple[float, float, float] = (0.0, 0.0, 0.0)
    pitch: float = 0.0
    second_axis: tuple[float, float, float] | None = None
    softness: Softness = Softness()

    def __post_init__(self) -> None:
        """Check the kind and the axes."""
        check_choice(self.kind, "Closure kind", [k.name for k in KINDS.values() if k.closes])
        kind = KINDS[self.kind]
        screw = make_screw(kind, "Closure", self.axis, self.second_axis, self.pitch)
        object.__setattr__(self, "axis", screw.axis)
        object.__setattr__(self, "second_axis", screw.second_axis)
        check_shape(check_vector(self.place, 3, "Closure place"), "Closure place", (3,))
        if self.first == self.second:
            raise ValueError(f"Closure holds frame {self.first!r} to itself")
        if self.first != "world" and any(self.place):
            remedy = f"to hold it elsewhere in {self.first!r} add a frame there"
            where = f"Closure place={self.place} is where the world holds a frame"
            raise ValueError(f"{where}; {remedy}")

    @property
    def names(self) -> set[str]:
        """The frames that it needs."""
        return {self.first, self.second}

    def renamed(self, prefix: str) -> Closure:
        """Return the same for frames whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        first = self.first if self.first == "world" else prefix + self.first
        return replace(self, first=first, second=prefix + self.second)

    @property
    def rows(self) -> np.ndarray:
        """What is forbidden: orthonormal rows (m, 6), but for universal ones, whose rows move."""
        kind = KINDS[self.kind]
        S = [c.array for c in kind.columns(Screw(self.axis, self.pitch), kind.neutral)]
        if not S:
            return np.eye(6)
        _, _, basis = np.linalg.svd(np.stack(S))
        return basis[len(S) :]


@dataclass(frozen=True)
class Coupling:
    """A constraint on a sum of coordinates, ``sum of arm * q == offset``.

    Tendons and transmissions count as joints, with their lengths. With `follows` the sum equals
    ``offset + c[0] (p - start) + c[1] (p - start)^2 + ...``, a polynomial of another coordinate p.

    It can be a gear between two joints, a differential, or an inextensible tendon. A mimic joint is
    the same with one coordinate less; use a coupling if the torque in the gear is of interest.

    Parameters
    ----------
    arms : mapping
        Factors by the name of the joint.
    offset : float, optional
        Value of the sum.
    follows : str, optional
        Name of the joint or tendon that the sum follows. None by default.
    polynomial : sequence of float, optional
        Factors c of the powers of its coordinate, the linear one first.
    start : float, optional
        Coordinate at which the sum is `offset`. 0 by default.
    softness : Softness, optional
        How soft `soft_dynamics` makes it.

    Examples
    --------
    >>> from archimedes.multibody import Coupling
    >>> Coupling({"motor": 1.0, "wheel": -3.0}).arms
    (('motor', 1.0), ('wheel', -3.0))
    """

    arms: Any
    offset: float = 0.0
    follows: str | None = None
    polynomial: tuple[float, ...] = ()
    start: float = 0.0
    softness: Softness = Softness()

    def __post_init__(self) -> None:
        """Take a mapping for a tuple of pairs."""
        items = self.arms.items() if hasattr(self.arms, "items") else self.arms
        pairs = tuple((str(name), float(arm)) for name, arm in items)
        if not pairs or any(arm == 0.0 or not np.isfinite(arm) for _, arm in pairs):
            raise ValueError(
                f"Coupling arms must be joints with finite arms that are not zero, got {self.arms}"
            )
        if not np.isfinite(self.offset):
            raise ValueError(f"Coupling offset must be finite, got {self.offset}")
        object.__setattr__(self, "arms", pairs)
        factors = tuple(float(c) for c in self.polynomial)
        if (self.follows is None) == bool(factors):
            raise ValueError("Coupling: follows and polynomial belong together, give both or none")
        if not np.isfinite([*factors, self.start]).all():
            raise ValueError(f"Coupling polynomial and start must be finite, got {factors}")
        object.__setattr__(self, "polynomial", factors)

    @property
    def names(self) -> set[str]:
        """The joints that it needs."""
        return {name for name, _ in self.arms} | ({self.follows} if self.follows else set())

    def renamed(self, prefix: str) -> Coupling:
        """Return the same for joints whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        follows = self.follows and prefix + self.follows
        arms = tuple((prefix + name, arm) for name, arm in self.arms)
        return replace(self, arms=arms, follows=follows)
