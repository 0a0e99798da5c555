"""Limits and dry friction as soft constraints, all at once, as MuJoCo has them.

Legend: J are the rows of what is beyond a limit or has dry friction, scaled so that the inertia of
each is one where the springs are at rest; r is a gap, negative beyond a limit. A constraint wants
the acceleration ``a_ref = -b J v - k d r`` with ``b = 2 z f / d_max``, ``k = f^2 / d_max^2`` for
the frequency f and the damping ratio z of its stop, and is as soft as ``R = (1 - d) / d``. The
impedance d grows with ``|r|`` over a way. Forces l solve ``(J M^-1 J' + R) l + J a - a_ref >= 0``,
``l >= 0``, one of both zero; those of friction are between -F and F.
Source: MuJoCo documentation, "Computation", constraint model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_shape, check_that
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.limits import FAR, held_rows
from archimedes.multibody.algorithms.links import Forces
from archimedes.multibody.contact import impulses
from archimedes.multibody.systems.constraints import check_single, mass_factors, solve_mass
from archimedes.multibody.systems.dynamics import State, check_is_state, commanded, rates_of
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["soft_dynamics"]

#: What MuJoCo takes where a file says nothing: impedance at the limit and beyond, over which way,
#: with the middle of the change, and its power.
IMPEDANCE = (0.9, 0.95, 0.001, 0.5, 2.0)
#: The frequency in rad/s and damping ratio of dry friction that creeps.
CREEP = (50.0, 1.0)


def soft_dynamics(
    model: Model,
    t: Scalar,
    x: State,
    u: ArrayLike | None = None,
    forces: Forces = None,
    *,
    actuators: Sequence[Any] | None = None,
    impedance: ArrayLike = IMPEDANCE,
) -> State:
    """Return the rates of a state with limits and dry friction as MuJoCo has them.

    Where `dynamics` has a spring for each limit and smooth friction, here all of them are one
    optimization, which takes most of a load off a limit and lets friction hold. Motions are
    MuJoCo's, for its usual ``solimp``; energy may grow a little. Each evaluation solves for the
    forces, which takes longer.

    Parameters
    ----------
    model : Model
        The robot.
    t : float
        Time in s. The equations do not depend on it.
    x : State or DrivenState
        State.
    u : array (nv,), optional
        Torques of the joints, zero by default. With `actuators`, their commands (n,).
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    actuators : sequence, optional
        Actuators, such as ``model.actuators``. None by default.
    impedance : array (5,), optional
        MuJoCo's ``solimp``: (0.9, 0.95, 0.001, 0.5, 2) by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1], lower=0.0)
    >>> x = mb.State(np.array([-0.01]), np.zeros(1))
    >>> mb.soft_dynamics(b.build(), 0.0, x).v.round(3)  # 0.95 (50 rad/s)^2 0.01 m - 0.05 g
    array([24.51])
    """
    check_is_state(x)
    solimp = as_array(impedance, "impedance")
    check_shape(solimp, "impedance", (5,))
    check_that(lambda d: (d[:2] > 0.0) & (d[:2] < 1.0), solimp, "impedance", "must be in (0, 1)")
    torques, rates = commanded(model, x, u, actuators)
    q, v = check_single(model, x.q, "q"), check_single(model, x.v, "v")
    held = held_rows(model, q, True)
    smooth = replace(model, friction=0.0 * model.friction)
    if model.tendons is not None:
        sliding = replace(model.tendons, friction=0.0 * model.tendons.friction)
        smooth = replace(smooth, tendons=sliding)
    a = aba(smooth, q, v, torques, forces, True)
    if held is None:
        return rates_of(model, x, a, rates)
    below = -held.low < held.high
    gap = np.where(below, -held.low, held.high)
    side = np.where(below, 1.0, -1.0)
    d_max = solimp[1]
    d = impedance_at(gap / held.scale, solimp)
    b = 2.0 * held.damping * held.frequency / d_max
    wanted = -b * (side * (held.J @ v)) - (held.frequency / d_max) ** 2 * d * gap
    J = np.concatenate([side[:, None] * held.J, held.J])
    creep = -2.0 * CREEP[0] * CREEP[1] / d_max * (held.J @ v)
    dry = impedance_at(0.0 * gap, solimp)
    soft = np.concatenate([(1.0 - d) / d, (1.0 - dry) / dry])
    across = solve_mass(mass_factors(model, q), J.T)
    G = J @ across + soft[:, None] * np.eye(J.shape[0])
    zero, far = 0.0 * gap, 0.0 * gap + FAR
    rows = impulses.Rows(
        np.concatenate([np.where(gap < 0.0, 0.0, -FAR), -far]),
        np.concatenate([far, far]),
        np.concatenate([zero, held.friction]),
    )
    l = impulses.row_impulses(G, J @ a - np.concatenate([wanted, creep]), rows)
    return rates_of(model, x, a + across @ l, rates)


def impedance_at(gap: Vector, solimp: Vector) -> Vector:
    """Return the impedance (n,) of constraints at gaps."""
    low, high, width, middle, power = (solimp[k] for k in range(5))
    x = np.minimum(np.abs(gap) / width, 1.0)
    first = x**power / middle ** (power - 1.0)
    second = 1.0 - (1.0 - x) ** power / (1.0 - middle) ** (power - 1.0)
    return low + (high - low) * np.where(x <= middle, first, second)
