"""Lengths that forces act along, and their rates: tendons, and transmissions of actuators.

Legend: a length L has the moment arms r (nv,) with ``dL/dt = r v``; a force f along it, positive
where it would lengthen, gives the torques ``f r``. Between points x0 and x1 on two bodies r is
``u (J1 - J0)`` with u the direction from x0 to x1. How the places move at which the way touches
something does not count: they are where it is shortest. Where two points meet u is zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.links import (
    ancestors,
    broadcast_result,
    check_coordinates,
    offsets_of,
)
from archimedes.multibody.algorithms.wrapping import distance, inner, safe_root, unit, wrap
from archimedes.multibody.parts.joints import Free, Spherical, rotation_of
from archimedes.multibody.parts.tendons import Path, Pulley, Wrap
from archimedes.multibody.parts.transmissions import Transmission
from archimedes.portable_numpy import matmul
from archimedes.spatial.attitudes.rotvec import dcm_to_rotvec
from archimedes.spatial.components import components, cross, join, matvec, transpose
from archimedes.typing import ArrayLike, Matrix, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["tendon_jacobian", "tendon_length"]


class Length(NamedTuple):
    """A length and its moment arms (..., nv); of a joint the arm is one, `at` its velocity."""

    value: Any
    arms: Any
    at: int | None = None

    def speed(self, v: Vector) -> Any:
        """Return the rate of the length."""
        return inner(self.arms, v) if self.at is None else v[..., self.at]


def tendon_length(model: Model, q: ArrayLike) -> Vector:
    """Return the lengths of the tendons of a model.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., t)
        Lengths in m, in the order of ``model.tendons.names``.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> b.add_frame("hook", "world", position=[0.0, 0.0, 4.0])
    >>> b.add_frame("eye", "bob", position=[3.0, 0.0, 0.0])
    >>> b.add_tendon("rope", path=["hook", "eye"])
    >>> mb.tendon_length(b.build(), np.zeros(1))
    array([5.])
    """
    q = check_coordinates(model, q, "q")
    return np.stack([x.value for x in tendon_lengths(model, q)], axis=-1)


def tendon_jacobian(model: Model, q: ArrayLike) -> Matrix:
    """Return the moment arms of the tendons of a model: the rates of their lengths are arms @ v.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., t, nv)
        Moment arms.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> b.add_frame("hook", "world", position=[0.0, 0.0, 4.0])
    >>> b.add_frame("eye", "bob", position=[3.0, 0.0, 0.0])
    >>> b.add_tendon("rope", path=["hook", "eye"])
    >>> mb.tendon_jacobian(b.build(), np.zeros(1))
    array([[2.4]])
    """
    q = check_coordinates(model, q, "q")
    shape = (*np.shape(q)[:-1], model.nv)
    return np.stack([broadcast_result(x.arms, shape) for x in tendon_lengths(model, q)], axis=-2)


def tendon_lengths(model: Model, q: Vector) -> list[Length]:
    """Return the lengths of all tendons, which a model must have."""
    if model.tendons is None:
        raise ValueError(f"{model.name!r} has no tendons; Builder.add_tendon adds them")
    return [one_tendon(model, k, q) for k in range(len(model.tendons.names))]


def one_tendon(model: Model, k: int, q: Vector) -> Length:
    """Return the length of one tendon."""
    tendons = model.tendons
    if tendons.paths[k]:
        return along_path(model, tendons.paths[k], q)
    at_q, at_v = tendon_offsets(model)
    arms = matmul(tendons.arms[k], np.eye(model.nv)[at_v])
    return Length(np.sum(q[..., at_q] * tendons.arms[k], axis=-1), arms)


def tendon_offsets(model: Model) -> tuple[list[int], list[int]]:
    """Return where the coordinates and the velocities of the joints under tendons are."""
    names = model.tendons.joints
    return [model.q_slice(n).start for n in names], [model.v_slice(n).start for n in names]


# ---- paths through space -------------------------------------------------------------------------


def along_path(model: Model, path: Path, q: Vector) -> Length:
    """Return the length of a path."""
    total: Any = 0.0 * q[..., 0]
    arms: Any = np.zeros(model.nv)
    divisor, k = 1.0, 0
    while k < len(path) - 1:
        part, after = path[k], path[k + 1]
        if isinstance(part, Pulley):
            divisor = part.divisor
        if isinstance(part, Pulley) or isinstance(after, Pulley):
            k += 1
            continue
        assert isinstance(part, str)
        if isinstance(after, Wrap):
            end = path[k + 2]
            assert isinstance(end, str)
            own = around(model, part, after, end, q)
            k += 2
        else:
            own = straight(model, part, after, q)
            k += 1
        total, arms = total + own.value / divisor, arms + own.arms / divisor
    return Length(total, arms)


def straight(model: Model, first: str, second: str, q: Vector) -> Length:
    """Return the length from one frame to another."""
    x0, x1 = (world_pose(model, q, name).p for name in (first, second))
    return Length(distance(x0, x1), arms_between(model, (first, x0), (second, x1), q))


def around(model: Model, first: str, what: Wrap, second: str, q: Vector) -> Length:
    """Return the length from one frame to another around a sphere or cylinder."""
    x0, x1 = (world_pose(model, q, name).p for name in (first, second))
    side = None if what.side is None else world_pose(model, q, what.side).p
    sphere, at = what.shape == "sphere", world_pose(model, q, what.frame)
    way = wrap(x0, x1, at, what.radius, sphere=sphere, side=side, inside=what.inside)
    direct = straight(model, first, second, q)
    length = distance(x0, way.first) + way.length + distance(way.second, x1)
    arms = arms_between(model, (first, x0), (what.frame, way.first), q) + arms_between(
        model, (what.frame, way.second), (second, x1), q
    )
    return Length(
        np.where(way.touches, length, direct.value),
        np.where(np.asarray(way.touches)[..., None], arms, direct.arms),
    )


def arms_between(
    model: Model, first: tuple[str, Vec3], second: tuple[str, Vec3], q: Vector
) -> Vector:
    """Return the moment arms of the distance of points on two frames; none on one body."""
    if link_of(model, first[0]) == link_of(model, second[0]):
        return np.zeros(model.nv)
    u = unit(second[1] - first[1])
    return point_arms(model, *second, u, q) - point_arms(model, *first, u, q)


def point_arms(model: Model, frame: str, point: Vec3, direction: Vec3, q: Vector) -> Vector:
    """Return the speed (..., nv) of a point on a frame along a direction, per velocity."""
    if link_of(model, frame) < 0:
        return np.zeros(model.nv)
    arm = point - world_pose(model, q, frame).p
    direction = direction + 0.0 * arm
    wrench = np.concatenate([direction, cross(arm, direction)], axis=-1)
    return wrench_arms(model, q, frame, wrench)


def wrench_arms(
    model: Model, q: Vector, frame: str, wrench: Vector, axes: str = "aligned"
) -> Vector:
    """Return the torques (..., nv) of a wrench (..., 6) on a frame."""
    J = frame_jacobian(model, q, frame, axes)
    return matmul(wrench[..., None, :], J)[..., 0, :]


def link_of(model: Model, frame: str) -> int:
    """Return the link that carries a frame, -1 for the world."""
    return model.frames[model.frame(frame)].link


# ---- what actuators act on -----------------------------------------------------------------------

#: Why an actuator cannot be on a joint of several velocities.
DRIVES = "an actuator drives one: add_transmission takes a spherical or free joint with a gear"


def length_of(model: Model, name: str, q: Vector) -> Length:
    """Return the length of a joint of one coordinate, a tendon or a transmission, by its name."""
    if any(link.joint == name for link in model.links):
        i, j = offsets_of(model, name, DRIVES)
        return Length(q[..., i], np.eye(model.nv)[j], j)
    if model.tendons is not None and name in model.tendons.names:
        return one_tendon(model, model.tendons.names.index(name), q)
    for transmission in model.transmissions:
        if transmission.name == name:
            return transmit(model, transmission, q)
    offsets_of(model, name, DRIVES)  # raises: there is no such joint
    raise AssertionError(name)


def transmit(model: Model, t: Transmission, q: Vector) -> Length:
    """Return the length of a transmission."""
    if t.kind == "joint":
        return on_joint(model, t, q)
    if t.kind == "crank":
        return of_crank(model, t, q)
    if t.reference is None:
        arms = wrench_arms(model, q, t.on, t.gear, "body")
        return Length(0.0 * q[..., 0], arms)
    A, B = world_pose(model, q, t.reference), world_pose(model, q, t.on)
    place, turn = matvec(transpose(A.R), B.p - A.p), matmul(transpose(A.R), B.R)
    value = inner(t.gear[:3], place) + inner(t.gear[3:], dcm_to_rotvec(transpose(turn)))
    wrench = np.concatenate([matvec(A.R, t.gear[:3]), matvec(A.R, t.gear[3:])], axis=-1)
    arms = wrench_arms(model, q, t.on, wrench) - wrench_arms(model, q, t.reference, wrench)
    # What carries both frames moves neither against the other.
    chains = [set(ancestors(model, link_of(model, name))) for name in (t.on, t.reference)]
    keep = np.ones(model.nv)
    for i in chains[0] & chains[1]:
        keep[model.links[i].v_slice] = 0.0
    return Length(value, arms * keep)


def on_joint(model: Model, t: Transmission, q: Vector) -> Length:
    """Return the length of a transmission on a joint, of which a spherical or free one turns."""
    link = next((k for k in model.links if k.joint == t.on), None)
    if link is None or not isinstance(link.kind, Spherical):
        i, j = offsets_of(model, t.on, "a transmission takes a spherical or free one as well")
        return Length(t.gear[0] * q[..., i], t.gear[0] * np.eye(model.nv)[j])
    own = components(q, model.nq)[link.q_slice]
    R = rotation_of(own[-4:])
    torque = matvec(transpose(R), t.gear[3:]) if t.in_parent else t.gear[3:]
    onto = np.eye(model.nv)[link.v_slice]
    if isinstance(link.kind, Free):
        force = matvec(transpose(R), t.gear[:3])
        both = np.concatenate([force, torque + 0.0 * force], axis=-1)
        return Length(0.0 * q[..., 0], matmul(both, onto))
    turn = join(link.kind.difference(list(link.kind.neutral), own))
    return Length(inner(turn, torque), matmul(torque, onto))


def of_crank(model: Model, t: Transmission, q: Vector) -> Length:
    """Return where the slider of a crank is along its axis, times the gear."""
    assert t.reference is not None
    pin, slider = world_pose(model, q, t.on).p, world_pose(model, q, t.reference)
    axis, way = slider.R[..., :, 2], pin - slider.p
    along = inner(way, axis)
    root = safe_root(along * along + t.rod * t.rod - inner(way, way))
    reached = root > 0.0
    share = np.where(reached, 1.0 - along / np.where(reached, root, 1.0), 1.0)
    inverse = np.where(reached, 1.0 / np.where(reached, root, 1.0), 0.0)
    by_way = share[..., None] * axis + inverse[..., None] * way
    by_axis = share[..., None] * way
    arms = point_arms(model, t.on, pin, by_way, q) - point_arms(
        model, t.reference, slider.p, by_way, q
    )
    if link_of(model, t.reference) >= 0:
        turning = np.concatenate([0.0 * axis, cross(axis, by_axis)], axis=-1)
        arms = arms + wrench_arms(model, q, t.reference, turning)
    return Length(t.gear[0] * (along - root), t.gear[0] * arms)
