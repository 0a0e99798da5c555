"""A robot as a system: states, their rates, and all that acts on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.multibody.algorithms.configurations import coordinate_rates, neutral
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.links import Forces, check_coordinates
from archimedes.multibody.models.model import Model
from archimedes.multibody.systems.actuators import activated, actuator_torque, stateful
from archimedes.tree import field, struct

__all__ = [
    "DrivenState", "State", "check_is_state", "driven", "driven_state", "dynamics", "rates_of",
    "rest_state",
]  # fmt: skip


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


def rest_state(model: Model, q: Any = None) -> State:
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
    place = neutral(model) if q is None else check_coordinates(model, q, "q")
    return State(place, 0.0 * place[..., :1] + [0.0] * model.nv)


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
    model: Model, actuators: Sequence[Any], q: Any = None, activations: Any = None
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
    rest, count = rest_state(model, q), len(stateful(actuators))
    a = np.zeros(count) if activations is None else check_activations(activations, count)
    leading = np.broadcast_shapes(np.shape(rest.q)[:-1], np.shape(a)[:-1])
    return DrivenState(
        *(np.broadcast_to(x, (*leading, np.shape(x)[-1])) * 1.0 for x in (rest.q, rest.v, a))
    )


def check_activations(x: Any, count: int) -> Any:
    """Return activations as an array (..., count)."""
    array = as_array(x, "activations")
    if tuple(array.shape[-1:]) != (count,):
        raise ValueError(
            f"activations must have shape ({count},), one per actuator with a state of its own, "
            f"got {tuple(array.shape)}"
        )
    return array


def check_is_state(x: Any) -> None:
    """Raise where something else was given for a state."""
    if not isinstance(x, State):
        raise TypeError(f"x must be a State, State(q=..., v=...), got {type(x).__name__}")


def dynamics(
    model: Model,
    t: Any,
    x: State,
    u: Any = None,
    forces: Forces = None,
    actuators: Sequence[Any] | None = None,
) -> State:
    """Return the rates of a state, for `arc.solve_ode` and its like.

    Damping, friction, springs and armature always act. The length of quaternions has no effect.

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
    torques, rates = driven(model, x, u, actuators)
    return rates_of(model, x, aba(model, x.q, x.v, torques, forces, True), rates)


def driven(model: Model, x: State, u: Any, actuators: Sequence[Any] | None) -> tuple[Any, Any]:
    """Return the torques (nv,) for `u` as `dynamics` has it, and the rates of activations."""
    if actuators is None:
        return 0.0 * x.v if u is None else u, getattr(x, "activations", 0.0) * 0.0
    if stateful(actuators) and not isinstance(x, DrivenState):
        raise ValueError(
            "x must be a driven_state(model, actuators): some actuators have a state of their "
            f"own; got {type(x).__name__}"
        )
    held = x.activations if isinstance(x, DrivenState) else np.zeros(0)
    held = check_activations(held, len(stateful(actuators)))
    commands = np.zeros(len(actuators)) if u is None else u
    acting, rates = activated(actuators, held, commands)
    return actuator_torque(model, actuators, x.q, x.v, acting), rates


def rates_of(model: Model, x: State, a: Any, activation_rates: Any) -> State:
    """Return the rates of a state with accelerations (nv,), a struct like it."""
    dq = coordinate_rates(model, x.q, x.v)
    return DrivenState(dq, a, activation_rates) if isinstance(x, DrivenState) else State(dq, a)


Model.dynamics = dynamics
