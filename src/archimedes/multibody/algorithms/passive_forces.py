"""What joints do by themselves: damping, friction, springs, tendons, and the fluid around.

Legend: d damping, f Coulomb friction, k stiffness, each (nv,); the displacement of a spring is the
velocity that leads from rest to q, so that springs of turning joints have no seam. Friction is
``f tanh(v / FRICTION_SPEED)``: smooth, and within 1 % of f beyond 3 mm/s or 3 mrad/s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.function import jac
from archimedes.multibody.algorithms.configurations import difference, integrate
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.lengths import (
    point_arms,
    tendon_jacobian,
    tendon_length,
    tendon_offsets,
)
from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.multibody.parts.ranges import known_zero
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import cross, matvec, transpose
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["passive_torque"]

#: Where the friction of a joint changes its sign, in m/s or rad/s.
FRICTION_SPEED = 1e-3


def passive_torque(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the torques of damping, friction, springs, tendons and the fluid around.

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
        q = check_coordinates(model, q, "q")
        if model.tendons.through_space:
            total = total + tendon_torque(model, q, v)
        else:
            at_q, at_v = tendon_offsets(model)
            own = model.tendons.torques(q[..., at_q], v[..., at_v])
            total = total + matmul(own, np.eye(model.nv)[at_v])
            total = total + tendon_friction(model, q, v)
    if model.compensation is not None:
        total = total + carried_torque(model, check_coordinates(model, q, "q"))
    if model.fluid is not None:
        total = total + fluid_torque(model, check_coordinates(model, q, "q"), v)
    return total


def tendon_torque(model: Model, q: Vector, v: Vector) -> Vector:
    """Return what tendons along paths and joints do at the joints (..., nv)."""
    length, arms = tendon_length(model, q), tendon_jacobian(model, q)
    speed = matmul(arms, v[..., None])[..., 0]
    pull = model.tendons.pull(length, speed)
    if not known_zero(model.tendons.friction):
        pull = pull + model.tendons.friction * np.tanh(speed / FRICTION_SPEED)
    return -matmul(pull[..., None, :], arms)[..., 0, :]


def tendon_friction(model: Model, q: Vector, v: Vector) -> Vector | float:
    """Return the friction (..., nv) of tendons along joints."""
    if known_zero(model.tendons.friction):
        return 0.0
    arms = tendon_jacobian(model, q)
    speed = matmul(arms, v[..., None])[..., 0]
    pull = model.tendons.friction * np.tanh(speed / FRICTION_SPEED)
    return -matmul(pull[..., None, :], arms)[..., 0, :]


def carried_torque(model: Model, q: Vector) -> Vector:
    """Return the torques (..., nv) that carry a part of the weights."""
    total: Any = 0.0
    for link, row in zip(model.links, model.compensation, strict=True):
        if link.body and not known_zero(row):
            at = world_pose(model, q, link.body)
            center = at.p + matvec(at.R, row[1:] / np.where(row[0] == 0.0, 1.0, row[0]))
            total = total - row[0] * point_arms(model, link.body, center, model.gravity, q)
    return total


def fluid_torque(model: Model, q: Vector, v: Vector) -> Vector:
    """Return the torques (..., nv) of the fluid around."""
    total: Any = 0.0 * v
    fluid = model.fluid
    for shape in fluid.shapes:
        J = frame_jacobian(model, q, shape.frame)
        twist = matmul(J, v[..., None])[..., 0]
        linear, angular = twist[..., :3], twist[..., 3:]
        back, at = transpose(shape.rotation), world_pose(model, q, shape.frame)
        wind = matvec(transpose(at.R), fluid.wind)
        through = matvec(back, linear + cross(angular, shape.position) - wind)
        wrench = shape.wrench(fluid.density, fluid.viscosity, through, matvec(back, angular))
        force, torque = (matvec(shape.rotation, x) for x in wrench)
        both = np.concatenate([force, torque + cross(shape.position, force)], axis=-1)
        total = total + matmul(both[..., None, :], J)[..., 0, :]
    return total


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
    bent = model.compensation is not None or model.fluid is not None
    if model.tendons is not None:
        bent = bent or model.tendons.through_space or not known_zero(model.tendons.friction)
    if bent:  # by the rules of derivatives: what the rest does is left out
        check_single_row(q)
        rest = replace(model, **{key: 0.0 * getattr(model, key) for key in SIMPLE})

        def torque(e: Vector, speed: Vector) -> Vector:
            return passive_torque(rest, integrate(model, q, e), speed)

        own_q, own_v = jac(torque, argnums=(0, 1))(0.0 * v, v)
        return by_q + own_q, by_v + own_v
    if model.tendons is not None:
        at_q, at_v = tendon_offsets(model)
        arms = matmul(model.tendons.arms, np.eye(model.nv)[at_v])
        stiff = model.tendons.slack_stiffness(check_coordinates(model, q, "q")[..., at_q])
        by_q = by_q - matmul(arms.T * stiff[..., None, :], arms)
        by_v = by_v - matmul(arms.T * model.tendons.damping, arms)
    return by_q, by_v


#: What `passive_derivatives` knows by formulas.
SIMPLE = ("damping", "friction", "stiffness")


def check_single_row(q: ArrayLike) -> None:
    """Raise if configurations have leading axes."""
    if np.ndim(q) > 1:
        what = "derivatives of tendons along paths, their friction, carried weights and fluids"
        raise ValueError(f"{what} take one configuration (nq,); use arc.vmap for many")


def difference_slope(model: Model, apart: Vector) -> Matrix:
    """Return the derivative (nv, nv) of the way from rest to q along the tangent space at q."""
    slope = np.zeros((*np.shape(apart), model.nv))
    for link in model.links:
        if not link.mimic:
            own = link.v_slice
            slope[..., own, own] = link.kind.difference_slope(apart[..., own])
    return slope
