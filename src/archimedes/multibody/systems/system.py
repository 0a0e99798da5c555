"""A robot as a system: states, their rates, and all that acts on it."""

from __future__ import annotations

from typing import Any

from archimedes.multibody.algorithms.configurations import coordinate_rates, neutral
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.links import Forces, check_coordinates
from archimedes.multibody.models.model import Model
from archimedes.tree import field, struct

__all__ = ["State", "dynamics", "rest_state"]


@struct
class State:
    """Configuration q (nq,) and velocity v (nv,), or their rates.

    >>> import numpy as np
    >>> from archimedes.multibody import State
    >>> State(q=np.zeros(2), v=np.ones(2)).v
    array([1., 1.])
    """

    q: Any = field()
    v: Any = field()


def rest_state(model: Model, q: Any = None) -> State:
    """Return the state at rest at `q` (nq,), neutral unless given.

    >>> from archimedes.multibody import Builder, rest_state
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> rest_state(b.build())
    State(q=array([0.]), v=array([0.]))
    """
    place = neutral(model) if q is None else check_coordinates(model, q, "q", model.nq)
    return State(place, 0.0 * place[..., :1] + [0.0] * model.nv)


def dynamics(model: Model, t: Any, x: State, u: Any = None, forces: Forces = None) -> State:
    """Return the rates of a state, for `arc.solve_ode` and its like.

    `u` (nv,) are torques of the joints, zero unless given; damping, friction, springs and armature
    always act, and `forces` as in `rnea`. Quaternions need no care: their length has no effect.

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
    torques = 0.0 * x.v if u is None else u
    return State(coordinate_rates(model, x.q, x.v), aba(model, x.q, x.v, torques, forces, True))


Model.dynamics = dynamics
