"""What joints do by themselves: damping, friction, springs, and tendons along several of them.

Legend: d damping, f Coulomb friction, k stiffness, each (nv,); the displacement of a spring is the
velocity that leads from rest to q, so that springs of turning joints have no seam. Friction is
``f tanh(v / FRICTION_SPEED)``: smooth, and within 1 % of f beyond 3 mm/s or 3 mrad/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from archimedes.multibody.algorithms.configurations import difference
from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.multibody.parts.ranges import known_zero
from archimedes.portable_numpy import matmul
from archimedes.typing import ArrayLike, Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["passive_torque"]

#: Where the friction of a joint changes its sign, in m/s or rad/s.
FRICTION_SPEED = 1e-3


def passive_torque(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the torques of damping, friction and springs.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Returns
    -------
    array (..., nv)
        Torques.

    Examples
    --------
    >>> from archimedes.multibody import Builder, passive_torque
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", damping=0.5, stiffness=3.0)
    >>> passive_torque(b.build(), q=[0.1], v=[2.0])
    array([-1.3])
    """
    v = check_coordinates(model, v, "v")
    total = -(model.damping * v)
    if not known_zero(model.friction):
        total = total - model.friction * np.tanh(v / FRICTION_SPEED)
    if not known_zero(model.stiffness):
        total = total - model.stiffness * difference(model, model.rest, q)
    if model.tendons is not None:
        at_q, at_v = tendon_offsets(model)
        q = check_coordinates(model, q, "q")
        own = model.tendons.torques(q[..., at_q], v[..., at_v])
        total = total + matmul(own, np.eye(model.nv)[at_v])
    return total


def tendon_offsets(model: Model) -> tuple[list[int], list[int]]:
    """Return where the coordinates and the velocities of the joints under tendons are."""
    names = model.tendons.joints
    return [model.q_slice(n).start for n in names], [model.v_slice(n).start for n in names]


def passive_derivatives(model: Model, q: ArrayLike, v: ArrayLike) -> tuple[Matrix, Matrix]:
    """Return the derivatives (nv, nv) of `passive_torque` in the tangent space of q, and in v."""
    v = check_coordinates(model, v, "v")
    slope = -model.damping + 0.0 * v
    if not known_zero(model.friction):
        slope = slope - model.friction / FRICTION_SPEED * (1.0 - np.tanh(v / FRICTION_SPEED) ** 2)
    by_v = slope[..., :, None] * np.eye(model.nv)
    by_q = 0.0 * by_v
    if not known_zero(model.stiffness):
        apart = difference(model, model.rest, q)
        by_q = -model.stiffness[:, None] * difference_slope(model, apart)
    if model.tendons is not None:
        at_q, at_v = tendon_offsets(model)
        arms = matmul(model.tendons.arms, np.eye(model.nv)[at_v])
        stiff = model.tendons.slack_stiffness(check_coordinates(model, q, "q")[..., at_q])
        by_q = by_q - matmul(arms.T * stiff[..., None, :], arms)
        by_v = by_v - matmul(arms.T * model.tendons.damping, arms)
    return by_q, by_v


def difference_slope(model: Model, apart: Vector) -> Matrix:
    """Return the derivative (nv, nv) of the way from rest to q along the tangent space at q."""
    slope = np.zeros((*np.shape(apart), model.nv))
    for link in model.links:
        if not link.mimic:
            own = link.v_slice
            slope[..., own, own] = link.kind.difference_slope(apart[..., own])
    return slope
