"""What drives joints: motors with gears and a torque-speed line, and servos.

Legend: tau_m, w_m are torque and speed of a motor's shaft, g the ratio of its gear: the joint gets
g tau_m and turns at w_m / g. A motor gives at most ``stall (1 - w_m / w_0)`` in the direction it
turns, the line of a direct-current motor at full voltage.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.multibody.models.model import Model
from archimedes.spatial.components import as_array
from archimedes.tree import field, replace, struct

__all__ = ["Motor", "Servo", "actuator_torque", "with_rotors"]


@struct
class Motor:
    """A motor on a joint of one velocity; its command is the torque of its shaft in N m.

    `stall_torque` in N m and `no_load_speed` in rad/s are the shaft's, unlimited unless given;
    `rotor_inertia` in kg m^2 counts by the square of `gear`, see `with_rotors`.
    """

    joint: str = field(static=True)
    gear: Any = 1.0
    stall_torque: Any = field(units="N m", default=np.inf)
    no_load_speed: Any = field(units="rad/s", default=np.inf)
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def torque(self, q: Any, v: Any, command: Any) -> Any:
        """Return the torque at the joint."""
        share = self.gear * v / self.no_load_speed
        most = self.stall_torque * np.minimum(1.0 - share, 1.0)
        least = -self.stall_torque * np.minimum(1.0 + share, 1.0)
        # Beyond the speed without load the motor can only brake.
        return self.gear * np.minimum(np.maximum(command, least), most)


@struct
class Servo:
    """A servo on a joint of one coordinate; its command is where the joint should be.

    ``stiffness (command - q) - damping v``, between plus and minus `effort_limit`.
    """

    joint: str = field(static=True)
    stiffness: Any = field(units="N m")
    damping: Any = field(units="N m s", default=0.0)
    effort_limit: Any = field(units="N m", default=np.inf)
    gear: Any = 1.0
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def torque(self, q: Any, v: Any, command: Any) -> Any:
        """Return the torque at the joint."""
        wanted = self.stiffness * (command - q) - self.damping * v
        return np.minimum(np.maximum(wanted, -self.effort_limit), self.effort_limit)


def actuator_torque(model: Model, actuators: Sequence[Any], q: Any, v: Any, u: Any) -> Any:
    """Return the torques (nv,) of actuators with commands `u` (n,), for `u` of `dynamics`.

    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Motor, actuator_torque
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> motor = Motor("hinge", gear=10.0, stall_torque=0.5, no_load_speed=100.0)
    >>> actuator_torque(b.build(), [motor], np.zeros(1), np.array([5.0]), np.array([1.0]))
    array([2.5])
    """
    q = check_coordinates(model, q, "q", model.nq)
    v = check_coordinates(model, v, "v", model.nv)
    u = check_commands(u, len(actuators))
    total = 0.0 * v
    for k, actuator in enumerate(actuators):
        i, j = place(model, actuator.joint)
        one = np.eye(model.nv)[j]
        torque = actuator.torque(q[..., i], v[..., j], u[..., k])
        total = total + torque[..., None] * one
    return total


def with_rotors(model: Model, actuators: Sequence[Any]) -> Model:
    """Return the model with the inertia of the rotors in its armature.

    >>> from archimedes.multibody import Builder, Motor, with_rotors
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> with_rotors(b.build(), [Motor("hinge", gear=10.0, rotor_inertia=1e-4)]).armature
    array([0.01])
    """
    armature = model.armature
    for actuator in actuators:
        _, j = place(model, actuator.joint)
        armature = armature + actuator.gear**2 * actuator.rotor_inertia * np.eye(model.nv)[j]
    return replace(model, armature=armature)


def place(model: Model, joint: str) -> tuple[int, int]:
    """Return where the coordinate and the velocity of a joint are."""
    q, v = model.q_slice(joint), model.v_slice(joint)
    if v.stop - v.start != 1 or q.stop - q.start != 1:
        raise ValueError(
            f"joint {joint!r} has {v.stop - v.start} velocities; an actuator drives one: give "
            "dynamics the torques themselves"
        )
    return q.start, v.start


def check_commands(u: Any, count: int) -> Any:
    """Return commands as an array (..., count)."""
    array = as_array(u, "u")
    if tuple(array.shape[-1:]) != (count,):
        raise ValueError(
            f"u must have shape ({count},), one command per actuator, got {tuple(array.shape)}"
        )
    return array
