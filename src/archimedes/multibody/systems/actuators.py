"""What actuators do: torques at the joints for their commands, and the inertia of rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array, concrete
from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.multibody.models.model import Model
from archimedes.tree import replace

__all__ = ["activated", "actuator_torque", "stateful", "with_rotors"]


def actuator_torque(model: Model, actuators: Sequence[Any], q: Any, v: Any, u: Any) -> Any:
    """Return the torques of actuators, for `u` of `dynamics`.

    An actuator of your own is a struct with `joints`, a tuple of names, and ``torques(q, v,
    command)``, which returns a torque for each.

    Parameters
    ----------
    model : Model
        The robot.
    actuators : sequence
        Actuators, such as those of an MJCF file, ``model.actuators``.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    u : array (n,)
        Commands of the actuators.

    Returns
    -------
    array (nv,)
        Torques of the joints.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Motor, actuator_torque
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> motor = Motor("hinge", gear=10.0, stall_torque=0.5, no_load_speed=100.0)
    >>> actuator_torque(b.build(), [motor], np.zeros(1), np.array([5.0]), np.array([1.0]))
    array([2.5])
    """
    q = check_coordinates(model, q, "q")
    v = check_coordinates(model, v, "v")
    stateful(actuators)  # an error where they are no list
    u = check_commands(u, len(actuators))
    total = 0.0 * v
    for k, actuator in enumerate(actuators):
        places = [place(model, joint) for joint in actuator.joints]
        own_q, own_v = [q[..., i] for i, _ in places], [v[..., j] for _, j in places]
        torques = actuator.torques(own_q, own_v, u[..., k])
        for (_, j), torque in zip(places, torques, strict=True):
            total = total + torque[..., None] * np.eye(model.nv)[j]
    return total


def with_rotors(model: Model, actuators: Sequence[Any]) -> Model:
    """Return the model with the inertia of the rotors in its armature.

    A rotor rotates ``gear`` times as fast as the length that its actuator acts on. One that acts on
    several joints couples them, which armature cannot represent: its rotor is an error.

    Parameters
    ----------
    model : Model
        The robot.
    actuators : sequence
        Actuators, such as those of an MJCF file, ``model.actuators``.

    Examples
    --------
    >>> from archimedes.multibody import Builder, Motor, with_rotors
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> with_rotors(b.build(), [Motor("hinge", gear=10.0, rotor_inertia=1e-4)]).armature
    array([0.01])
    """
    armature = model.armature
    for actuator in actuators:
        if len(actuator.joints) > 1:
            check_no_rotor(actuator)
            continue
        _, j = place(model, actuator.joints[0])
        ratio = actuator.gear * arm_of(actuator)
        armature = armature + ratio * ratio * actuator.rotor_inertia * np.eye(model.nv)[j]
    return replace(model, armature=armature)


def arm_of(actuator: Any) -> Any:
    """Return by how much the length grows that an actuator of one joint acts on."""
    inner = getattr(actuator, "actuator", actuator)
    return inner.arms[0] if hasattr(inner, "arms") else 1.0


def check_no_rotor(actuator: Any) -> None:
    """Raise where an actuator of several joints may have a rotor with inertia."""
    known = concrete(as_array(actuator.rotor_inertia))
    if known is None or known.any():
        raise ValueError(
            f"with_rotors: the rotor of an actuator of {', '.join(map(repr, actuator.joints))} "
            "couples these joints; make it a body on a joint of its own, held by a Coupling"
        )


def stateful(actuators: Sequence[Any]) -> list[int]:
    """Return which actuators have a state of their own."""
    if not isinstance(actuators, (list, tuple)):
        raise TypeError(f"actuators must be a list of them, got {type(actuators).__name__}")
    return [k for k, actuator in enumerate(actuators) if hasattr(actuator, "activation_rate")]


def activated(actuators: Sequence[Any], activations: Any, u: Any) -> tuple[Any, Any]:
    """Return what actuators act on (n,), commands or activations, and the rates of activations."""
    u = check_commands(u, len(actuators))
    own = stateful(actuators)
    if not own:
        return u, activations
    leading = np.broadcast_shapes(np.shape(u)[:-1], np.shape(activations)[:-1])
    u = np.broadcast_to(u, (*leading, len(actuators)))
    activations = np.broadcast_to(activations, (*leading, len(own)))
    acting = [u[..., k] for k in range(len(actuators))]
    rates = []
    for n, k in enumerate(own):
        rates.append(actuators[k].activation_rate(activations[..., n], acting[k]))
        acting[k] = activations[..., n]
    return np.stack(acting, axis=-1), np.stack(rates, axis=-1)


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
