"""A robot as a system: states, their rates, torques of actuators, and the inertia of rotors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_last, check_type
from archimedes.multibody.algorithms.configurations import coordinate_rates, neutral
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.lengths import DRIVES, Length, length_of
from archimedes.multibody.algorithms.limits import has_limits, limit_torque
from archimedes.multibody.algorithms.links import Forces, check_coordinates, offsets_of
from archimedes.multibody.parts.actuators import is_infinite
from archimedes.multibody.parts.ranges import known_zero
from archimedes.tree import field, replace, struct
from archimedes.typing import ArrayLike, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = [
    "DrivenState",
    "Keyframe",
    "State",
    "actuator_torque",
    "driven_state",
    "dynamics",
    "rest_state",
    "with_rotors",
]


@struct
class State:
    """Configuration and velocity, or their rates.

    Parameters
    ----------
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import State
    >>> State(q=np.zeros(2), v=np.ones(2)).v
    array([1., 1.])
    """

    q: Any = field()
    v: Any = field()


def rest_state(model: Model, q: ArrayLike | None = None) -> State:
    """Return the state at rest.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq), optional
        Configuration. By default neutral.

    Examples
    --------
    >>> from archimedes.multibody import Builder, rest_state
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> rest_state(b.build())
    State(q=array([0.]), v=array([0.]))
    """
    q = neutral(model) if q is None else check_coordinates(model, q, "q")
    return State(q, 0.0 * q[..., :1] + [0.0] * model.nv)


@struct
class Keyframe(State):
    """A state that a file gives a name to, with activations and commands of its actuators.

    Parameters
    ----------
    q : array (nq,)
        Configuration.
    v : array (nv,)
        Velocity in m/s and rad/s.
    activations : array (k,), optional
        Activations of the actuators that have a state.
    commands : array (n,), optional
        Commands of the actuators.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Keyframe
    >>> Keyframe(q=np.zeros(2), v=np.zeros(2)).q
    array([0., 0.])
    """

    activations: Any = field(default=np.zeros(0))
    commands: Any = field(default=np.zeros(0))


@struct
class DrivenState(State):
    """A state with the activations of actuators, or their rates.

    Parameters
    ----------
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    activations : array (..., k)
        Activations, or their rates.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import DrivenState
    >>> DrivenState(np.zeros(2), np.zeros(2), activations=np.ones(1)).activations
    array([1.])
    """

    activations: Any = field()


def driven_state(
    model: Model,
    actuators: Sequence[Any],
    q: ArrayLike | None = None,
    activations: ArrayLike | None = None,
) -> DrivenState:
    """Return the state at rest, with activations of the actuators.

    Leading axes of `q` and `activations` broadcast.

    Parameters
    ----------
    model : Model
        The robot.
    actuators : sequence
        Actuators, such as those of an MJCF file, ``model.actuators``.
    q : array (..., nq), optional
        Configuration. By default neutral.
    activations : array (..., k), optional
        Activations of the actuators that have a state, in their order. Zero by default.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> servo = mb.Lagged(mb.Servo("hinge", stiffness=50.0), time_constant=0.1)
    >>> mb.driven_state(b.build(), [servo])
    DrivenState(q=array([0.]), v=array([0.]), activations=array([0.]))
    """
    rest, count = rest_state(model, q), len(find_stateful(actuators))
    a = check_row(np.zeros(count) if activations is None else activations, count, ACTIVATIONS)
    leading = np.broadcast_shapes(np.shape(rest.q)[:-1], np.shape(a)[:-1])
    return DrivenState(
        *(np.broadcast_to(x, (*leading, np.shape(x)[-1])) * 1.0 for x in (rest.q, rest.v, a))
    )


def check_row(x: ArrayLike, count: int, name: str) -> Vector:
    """Return an argument as an array (..., count)."""
    array = as_array(x, name)
    check_last(array, count, name)
    return array


#: Names of arguments with what they belong to.
ACTIVATIONS = "activations, one per actuator with a state of its own,"
COMMANDS = "u, one command per actuator,"


def check_is_state(x: State) -> None:
    """Raise if something else was given for a state."""
    check_type(x, "x", State, "write State(q=..., v=...)")


def dynamics(
    model: Model,
    t: Scalar,
    x: State,
    u: ArrayLike | None = None,
    forces: Forces = None,
    actuators: Sequence[Any] | None = None,
    *,
    limits: bool = True,
) -> State:
    """Return the rates of a state, for `arc.solve_ode` and its like.

    Damping, friction, springs and armature always act, and stops at the limits of joints. The
    length of quaternions has no effect.

    Parameters
    ----------
    model : Model
        The robot.
    t : float
        Time in s. The equations do not depend on it.
    x : State or DrivenState
        State. If actuators have states of their own (`Lagged`), it is a `driven_state`.
    u : array (nv,), optional
        Torques of the joints, zero by default. With `actuators`, their commands (n,).
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    actuators : sequence, optional
        Actuators, such as ``model.actuators``. None by default.
    limits : bool, optional
        Whether joints have stops at their limits, see `limit_torque`. True by default.

    Examples
    --------
    >>> import archimedes as arc
    >>> from archimedes.multibody import Builder, dynamics, rest_state
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> bob = b.build()
    >>> sol = arc.solve_ode(lambda t, x: dynamics(bob, t, x), (0.0, 0.1), rest_state(bob))
    >>> sol.x.q[-1].round(3)
    array([0.082])
    """
    check_is_state(x)
    torques, rates = drive(model, x, u, actuators, limits)
    return rates_of(model, x, aba(model, x.q, x.v, torques, forces, True), rates)


def drive(
    model: Model, x: State, u: ArrayLike | None, actuators: Sequence[Any] | None, limits: bool
) -> tuple[Any, Any]:
    """Return the torques (nv,) of `u`, as `dynamics` has it, and of stops; rates of activations."""
    torques, rates = commanded(model, x, u, actuators)
    check_type(limits, "limits", bool, "True for stops at the limits of joints, False for none")
    if limits and has_limits(model):
        torques = torques + limit_torque(model, x.q, x.v)
    return torques, rates


def commanded(
    model: Model, x: State, u: ArrayLike | None, actuators: Sequence[Any] | None
) -> tuple[Any, Any]:
    """Return the torques (nv,) for `u` as `dynamics` has it, and the rates of activations."""
    if actuators is None:
        return 0.0 * x.v if u is None else u, getattr(x, "activations", 0.0) * 0.0
    if find_stateful(actuators) and not isinstance(x, DrivenState):
        why = f"some actuators have a state of their own; got {type(x).__name__}"
        raise ValueError(f"x must be a driven_state(model, actuators): {why}")
    held = x.activations if isinstance(x, DrivenState) else np.zeros(0)
    held = check_row(held, len(find_stateful(actuators)), ACTIVATIONS)
    acting, rates = activate(actuators, held, np.zeros(len(actuators)) if u is None else u)
    return actuator_torque(model, actuators, x.q, x.v, acting), rates


def rates_of(model: Model, x: State, a: Vector, activation_rates: Vector) -> State:
    """Return the rates of a state with accelerations (nv,), a struct like it."""
    dq = coordinate_rates(model, x.q, x.v)
    return DrivenState(dq, a, activation_rates) if isinstance(x, DrivenState) else State(dq, a)


def actuator_torque(
    model: Model, actuators: Sequence[Any], q: ArrayLike, v: ArrayLike, u: ArrayLike
) -> Vector:
    """Return the torques of actuators, for `u` of `dynamics`.

    What they give a joint or a tendon together is within its limits of effort.

    An actuator of your own is a struct with `joints`, a tuple of names of joints with one
    coordinate, tendons or transmissions, and ``torques(q, v,
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
    q, v = check_coordinates(model, q, "q"), check_coordinates(model, v, "v")
    find_stateful(actuators)  # an error where they are no list
    u = check_row(u, len(actuators), COMMANDS)
    total, bounds = 0.0 * v, efforts_of_tendons(model)
    pulls: dict[str, tuple[Any, Length]] = {}
    for k, actuator in enumerate(actuators):
        lengths = [length_of(model, name, q) for name in actuator.joints]
        speeds = [length.speed(v) for length in lengths]
        forces = actuator.torques([x.value for x in lengths], speeds, u[..., k])
        for name, length, force in zip(actuator.joints, lengths, forces, strict=True):
            if name in bounds:
                pulls[name] = (pulls[name][0] + force if name in pulls else force), length
            else:
                total = total + force[..., None] * length.arms
    for name, (pull, length) in pulls.items():
        least, most = bounds[name]
        total = total + np.minimum(np.maximum(pull, least), most)[..., None] * length.arms
    most = model.effort_limits
    return total if is_infinite(most) else np.minimum(np.maximum(total, -most), most)


def efforts_of_tendons(model: Model) -> dict[str, tuple[Scalar, Scalar]]:
    """Return, by name, the least and the largest force of actuators on tendons that have such."""
    own = model.tendons
    if own is None:
        return {}
    rows = zip(own.names, own.effort_lower, own.effort_upper, strict=True)
    return {n: (low, high) for n, low, high in rows if not is_infinite(np.stack([low, high]))}


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
        if actuator.joints[0] not in model.joint_names:
            check_no_rotor(actuator)
            continue
        _, j = offsets_of(model, actuator.joints[0], DRIVES)
        inner = actuator
        while hasattr(inner, "actuator"):
            inner = inner.actuator
        ratio = actuator.gear * (inner.arms[0] if hasattr(inner, "arms") else 1.0)
        armature = armature + ratio * ratio * actuator.rotor_inertia * np.eye(model.nv)[j]
    return replace(model, armature=armature)


def check_no_rotor(actuator: Any) -> None:
    """Raise if an actuator of several joints may have a rotor with inertia."""
    if not known_zero(actuator.rotor_inertia):
        raise ValueError(
            f"with_rotors: the rotor of an actuator of {', '.join(map(repr, actuator.joints))} "
            "couples these joints; make it a body on a joint of its own, held by a Coupling"
        )


def find_stateful(actuators: Sequence[Any]) -> list[int]:
    """Return which actuators have a state of their own."""
    if not isinstance(actuators, (list, tuple)):
        raise TypeError(f"actuators must be a list, got {type(actuators).__name__}")
    return [k for k, actuator in enumerate(actuators) if hasattr(actuator, "activation_rate")]


def activate(actuators: Sequence[Any], activations: Vector, u: ArrayLike) -> tuple[Vector, Vector]:
    """Return what actuators act on (n,), commands or activations, and the rates of activations."""
    u = check_row(u, len(actuators), COMMANDS)
    own = find_stateful(actuators)
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
