"""What the channels of an autopilot mean: speeds of rotors, throttle and surfaces.

PX4 sends numbers, 0 to 1 for motors and -1 to 1 for surfaces, ArduPilot the width of pulses in
microseconds, 1000 to 2000, and 0 for no pulse.

Rotors of a quadrotor X, seen from above, have the same numbers in both (PX4's airframe reference,
"Quadrotor x"; ArduPilot's "Connect ESCs and Motors", QUAD X):

    3 (cw)    1 (ccw)      front
         \\    /
         /    \\
    2 (ccw)   4 (cw)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, check_choice
from archimedes.tree import field, struct
from archimedes.typing import Vector
from archimedes.vehicles import F16, Multirotor
from archimedes.vehicles.f16.f16 import SURFACES

__all__ = ["CHANNELS", "RotorCommands", "SurfaceCommands", "commands_for"]

#: Channels that a model of commands is given, whatever the protocol sends: the rest are zero.
CHANNELS = 32
#: Signs of x and y of rotors 1 to 4, and of their spin about -z, counter-clockwise from above.
QUADROTOR_X = ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1))


def _share(channels: Any, pulses: bool) -> Any:
    """Return 0 to 1 of channels for motors."""
    return np.clip((channels - 1000.0) / 1000.0 if pulses else channels, 0.0, 1.0)


def _deflection(channels: Any, pulses: bool) -> Any:
    """Return -1 to 1 of channels for surfaces, 0 without pulses."""
    if pulses:
        channels = np.where(channels > 0.0, (channels - 1500.0) / 500.0, 0.0)
    return np.clip(channels, -1.0, 1.0)


@struct
class RotorCommands:
    """Speeds of the rotors of a `Multirotor` from the channels of an autopilot.

    Parameters
    ----------
    max_speed : float
        Speed in rad/s at full command.
    motors : tuple of int
        Channel of each rotor of the vehicle, the first is 0.
    curve : {"speed", "thrust"}, optional
        What is proportional to the command: the speed, by default, or its square.
    pulses : bool, optional
        Whether channels are pulse widths in microseconds. False by default: 0 to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.interchange import RotorCommands
    >>> rotors = RotorCommands(1000.0, motors=(0, 3, 1, 2))
    >>> rotors(np.array([0.1, 0.2, 0.3, 0.4])).speeds
    array([100., 400., 200., 300.])
    """

    max_speed: Any = field(units="rad/s")
    motors: tuple[int, ...] = field(static=True)
    curve: str = field(static=True, default="speed")
    pulses: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        """Check the curve and the channels."""
        check_choice(self.curve, "RotorCommands: curve", ("speed", "thrust"))
        if not all(0 <= m < CHANNELS for m in self.motors):
            raise ValueError(f"RotorCommands: motors={self.motors} must be channels, 0 to 31")

    def __call__(self, channels: Vector) -> Any:
        """Return the input of the vehicle.

        Parameters
        ----------
        channels : array (32,)
            Channels of the autopilot.
        """
        share = _share(as_array(channels)[np.array(self.motors)], self.pulses)
        return Multirotor.Input(self.max_speed * (share if self.curve == "speed" else share**0.5))

    def idle(self, channels: Vector) -> bool:
        """Return whether no rotor is asked to turn.

        Parameters
        ----------
        channels : array (32,)
            Channels of the autopilot.
        """
        return not np.any(_share(channels[list(self.motors)], self.pulses) > 0.0)


@struct
class SurfaceCommands:
    """Throttle and surfaces of an `F16` from the channels of an autopilot.

    A positive command rolls right, pitches up, yaws right. (Surfaces of the F-16 are positive
    where they turn it the other way.)

    Parameters
    ----------
    aileron, elevator, throttle, rudder : int, optional
        Channels, the first is 0. By default 0 to 3, ArduPilot's order for aeroplanes.
    pulses : bool, optional
        Whether channels are pulse widths in microseconds. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.interchange import SurfaceCommands
    >>> u = SurfaceCommands()(np.array([0.0, 1.0, 0.2, 0.0]))
    >>> float(u.throttle), round(float(np.rad2deg(u.elevator)), 6)
    (0.2, -25.0)
    """

    aileron: int = field(static=True, default=0)
    elevator: int = field(static=True, default=1)
    throttle: int = field(static=True, default=2)
    rudder: int = field(static=True, default=3)
    pulses: bool = field(static=True, default=False)

    def __call__(self, channels: Vector) -> Any:
        """Return the input of the vehicle.

        Parameters
        ----------
        channels : array (32,)
            Channels of the autopilot.
        """
        full_elevator, full_aileron, full_rudder = SURFACES
        surfaces = _deflection(channels, self.pulses)
        return F16.Input(
            throttle=_share(channels[self.throttle], self.pulses),
            elevator=-full_elevator * surfaces[self.elevator],
            aileron=-full_aileron * surfaces[self.aileron],
            rudder=-full_rudder * surfaces[self.rudder],
        )

    def idle(self, channels: Vector) -> bool:
        """Return whether the throttle is closed.

        Parameters
        ----------
        channels : array (32,)
            Channels of the autopilot.
        """
        return not _share(channels[self.throttle], self.pulses) > 0.0


def commands_for(vehicle: Any, pulses: bool) -> Any:
    """Return what the channels mean to a vehicle, as far as its kind and geometry say."""
    if isinstance(vehicle, F16):
        return SurfaceCommands(pulses=pulses)
    if isinstance(vehicle, Multirotor):
        return RotorCommands(vehicle.rotors.max_speed, _quadrotor_motors(vehicle), pulses=pulses)
    raise TypeError(
        f"SoftwareInTheLoop: give commands=, a function from channels (32,) to the input of "
        f"{type(vehicle).__name__}; there are defaults for Multirotor and F16"
    )


def _quadrotor_motors(vehicle: Any) -> tuple[int, ...]:
    """Return the channel of each rotor of a quadrotor X by where it is and how it spins."""
    positions, spins = np.asarray(vehicle.rotors.positions), np.asarray(vehicle.rotors.spins)
    remedy = "give commands=RotorCommands(max_speed, motors=(...)), the channel of each rotor"
    if len(spins) != 4:
        raise ValueError(f"SoftwareInTheLoop: {len(spins)} rotors have no usual order: {remedy}")
    corners = [(int(np.sign(p[0])), int(np.sign(p[1])), int(s)) for p, s in zip(positions, spins)]
    if sorted(corners) != sorted(QUADROTOR_X):
        raise ValueError(
            "SoftwareInTheLoop: the rotors are not those of a quadrotor X, front right and back "
            f"left counter-clockwise from above (1), the others clockwise (-1): {remedy}"
        )
    return tuple(QUADROTOR_X.index(corner) for corner in corners)
