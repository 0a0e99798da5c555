"""Transmissions: what actuators act on besides joints of one coordinate and tendons.

A transmission has a length, as a joint has a coordinate, and a force along it acts as a wrench. Its
name takes the place of a joint in an actuator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_choice, check_finite, check_shape, check_that
from archimedes.multibody.parts.ranges import read_only
from archimedes.tree import field, replace, struct

__all__ = ["Transmission"]

#: What a transmission is on.
KINDS = ("frame", "joint", "crank")


@struct
class Transmission:
    """A length that actuators act on: of a frame, a spherical or free joint, or a crank.

    On a frame (a site of MJCF) a force is the wrench ``gear`` times it, in axes of the frame, such
    as the thrust of a rotor with its reaction torque. With a `reference` the wrench is in axes of
    that frame and acts between the two, and the length is ``gear`` times position and rotation
    vector of the frame in it; without one it is zero.

    On a spherical joint the length is ``gear[3:]`` times the rotation vector. On a free joint a
    force is the wrench ``gear`` times it, the linear part in axes of the parent.

    A crank pushes a slider along the z axis of `reference` by a rod from `on`; the length is where
    the slider is.

    Parameters
    ----------
    name : str
        Name.
    kind : {"frame", "joint", "crank"}
        What it is on.
    on : str
        The frame, the joint, or the frame at the pin of the crank.
    gear : array (6,)
        Force and torque of a unit of the actuator, linear part first. Of a crank the first number
        counts.
    reference : str, optional
        The frame that the first one is held against, or the slider of a crank.
    in_parent : bool, optional
        Torques at a joint are in axes of its parent, not of the child. False by default.
    rod : float, optional
        Length in m of the rod of a crank.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder("drone")
    >>> b.add_body("hull", mass=1.0, inertia=[0.01, 0.01, 0.02])
    >>> b.add_frame("rotor", "hull", position=[0.1, 0.0, 0.0])
    >>> b.add_transmission("thrust", frame="rotor", gear=[0, 0, 1, 0, 0, 0.02])
    >>> drone = b.build(base="floating")
    >>> motor = mb.Motor("thrust")
    >>> mb.actuator_torque(drone, [motor], mb.neutral(drone), np.zeros(6), np.array([5.0])).round(3)
    array([ 0. ,  0. ,  5. ,  0. , -0.5,  0.1])
    """

    name: str = field(static=True)
    kind: str = field(static=True)
    on: str = field(static=True)
    gear: Any = field(default=np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0]))
    reference: str | None = field(static=True, default=None)
    in_parent: bool = field(static=True, default=False)
    rod: Any = field(units="m", default=0.0)

    def __post_init__(self) -> None:
        """Check the kind and the gear."""
        where = f"Transmission {self.name!r}"
        check_choice(self.kind, f"{where}: kind", KINDS)
        self.__dict__["gear"] = gear = read_only(as_array(self.gear, f"{where}: gear"))
        check_shape(gear, f"{where}: gear, force and torque,", (6,))
        check_finite(gear, f"{where}: gear")
        if self.kind == "crank":
            if self.reference is None:
                raise ValueError(f"{where}: a crank needs the frame of its slider, reference=...")
            check_that(lambda x: x > 0.0, self.rod, f"{where}: rod, in m,", "must be positive")

    def renamed(self, prefix: str) -> Transmission:
        """Return the same for joints and frames whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        reference = None if self.reference is None else prefix + self.reference
        return replace(self, name=prefix + self.name, on=prefix + self.on, reference=reference)
