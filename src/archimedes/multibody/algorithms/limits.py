"""Limits of joints and tendons: their stops as stiff springs, and rows that contact solves exactly.

Legend: s is how far a joint is beyond a limit, s' its rate, w = `SMOOTH` the way over which a stop
becomes stiff, and r = min(s / w, 1). A stop pushes with ``max(k r (s - r w / 2) + d r s', 0)``: a
spring whose stiffness grows from zero to k over w, and a damper. It never pulls, so it returns less
energy than it takes: what it stores depends on s alone.

The stiffness is that of an oscillator of frequency f and damping ratio z: ``k = m f^2``,
``d = 2 z m f``, where m is the inertia that the joint moves where the springs are at rest, with all
other joints free: one over the diagonal of the inverse mass matrix. m is a number of the model, not
of the configuration: a spring that changes with the configuration could give energy. MuJoCo's
``solref`` (time constant T, ratio z) is f = 1 / (T z).
Source: MuJoCo documentation, "Computation", constraint model.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.algorithms.configurations import own_links
from archimedes.multibody.algorithms.lengths import one_tendon, tendon_jacobian
from archimedes.multibody.algorithms.links import (
    SameModel,
    check_coordinates,
    has_known_numbers,
    join_numbers,
)
from archimedes.multibody.algorithms.mass_matrix import (
    check_inertia_of_joints,
    factorize,
    inverse_entries,
    inverse_mass_matrix,
    mass_entries,
)
from archimedes.multibody.parts.joints import Free, Spherical
from archimedes.portable_numpy import matmul
from archimedes.spatial.components import components, join
from archimedes.typing import ArrayLike, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model

__all__ = ["limit_torque"]

#: Over this way, in m or rad, a stop becomes stiff.
SMOOTH = 1e-3


def limit_torque(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the torques of the stops that hold joints and tendons within their limits.

    A stop is a stiff spring with a damper: ``limit_frequency`` and ``limit_damping`` of the model
    are the frequency and the damping ratio of the joint on it, in rad/s and as a number. It begins
    at the limit, is smooth, never pulls, and never adds energy. A ball joint is stopped at its
    ``angle_limit``.

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
    >>> from archimedes.multibody import Builder, limit_torque
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", lower=-1.0, upper=1.0, limit_frequency=50.0)
    >>> limit_torque(b.build(), q=[1.1], v=[0.0]).round(3)  # 0.1 kg m^2 (50 rad/s)^2 0.1 rad
    array([-24.875])
    """
    q, v = check_coordinates(model, q, "q"), check_coordinates(model, v, "v")
    total = 0.0 * v
    straight, balls = limited_joints(model)
    if straight or balls:
        stiffness, damping = stop_constants(model)
    if straight:
        at_q, at_v = (list(x) for x in zip(*straight, strict=True))
        own_q, own_v, k, d = q[..., at_q], v[..., at_v], stiffness[at_v], damping[at_v]
        up = stop_force(model.lower[at_q] - own_q, -own_v, k, d)
        down = stop_force(own_q - model.upper[at_q], own_v, k, d)
        total = total + spread_columns(up - down, at_v, model.nv)
    for link in balls:
        own = link.v_slice
        angle, axis = ball_angle(link, q)
        speed = np.sum(axis * v[..., own], axis=-1)
        k, d = stiffness[link.v], damping[link.v]
        push = stop_force(angle - model.angle_limits[link.v], speed, k, d)
        total = total - spread_columns(
            push[..., None] * axis, [*range(own.start, own.stop)], model.nv
        )
    for n in limited_tendons(model):
        tendons, m = model.tendons, tendon_inertias(model)[n]
        length = one_tendon(model, n, q)
        speed, f = length.speed(v), tendons.limit_frequency[n]
        constants = m * f * f, 2.0 * m * f * tendons.limit_damping[n]
        pull = stop_force(length.value - tendons.upper[n], speed, *constants)
        push = stop_force(tendons.lower[n] - length.value, -speed, *constants)
        total = total + (push - pull)[..., None] * length.arms
    return total


def stop_force(beyond: Vector, rate: Vector, stiffness: Vector, damping: Vector) -> Any:
    """Return the force of stops that push against going beyond them."""
    s = np.maximum(beyond, 0.0)
    r = np.minimum(s / SMOOTH, 1.0)
    return np.maximum(stiffness * (r * (s - 0.5 * SMOOTH * r)) + damping * (r * rate), 0.0)


def spread_columns(x: Vector, at: list[int], n: int) -> Vector:
    """Return numbers (..., k) as those at some places of (..., n)."""
    return x if at == [*range(n)] else matmul(x, np.eye(n)[at])


def limited_joints(model: Model) -> tuple[list[tuple[int, int]], list[Link]]:
    """Return where coordinates and velocities with limits are, and the ball joints with one.

    A limit that is not known, in a model that is traced, may be finite.
    """
    lower, upper, angles = map(concrete, (model.lower, model.upper, model.angle_limits))
    some = [True] * model.nq
    if lower is not None and upper is not None:
        each = np.isfinite(lower) | np.isfinite(upper)
        some = [bool(np.any(each[..., i])) for i in range(model.nq)]
    straight, balls = [], []
    for link in own_links(model):
        if link.kind.straight:
            both = zip(range(model.nq)[link.q_slice], range(model.nv)[link.v_slice], strict=True)
            straight += [(i, j) for i, j in both if some[i]]
        elif type(link.kind) is Spherical and (
            angles is None or np.isfinite(angles[..., link.v]).any()
        ):
            balls.append(link)
    return straight, balls


def has_limits(model: Model) -> bool:
    """Return whether a joint of a model has a limit, as far as is known."""
    return any(limited_joints(model)) or bool(limited_tendons(model))


def limited_tendons(model: Model) -> list[int]:
    """Return which tendons have limits, as far as is known."""
    if model.tendons is None:
        return []
    lower, upper = concrete(model.tendons.lower), concrete(model.tendons.upper)
    every = range(len(model.tendons.names))
    if lower is None or upper is None:
        return list(every)
    return [k for k in every if np.isfinite(lower[k]) or np.isfinite(upper[k])]


def tendon_inertias(model: Model) -> Vector:
    """Return the inertia (t,) in kg that each tendon moves at rest of the springs.

    Where it moves nothing there, in line with its joint, it is the mass of the robot.
    """
    known = has_known_numbers(model) and concrete(model.rest) is not None
    known = known and concrete(model.frame_positions) is not None
    known = known and concrete(model.tendons.arms) is not None
    if known and np.ndim(model.masses) == 1:
        return find_known_tendon_inertias(SameModel(model))
    return find_tendon_inertias(model)


@lru_cache(maxsize=64)
def find_known_tendon_inertias(same: SameModel) -> Vector:
    """Return `tendon_inertias` of a model whose numbers are known."""
    return find_tendon_inertias(same.model)


def find_tendon_inertias(model: Model) -> Vector:
    """Return `tendon_inertias`."""
    check_inertia_of_joints(model)
    arms = tendon_jacobian(model, model.rest)
    mobility = np.sum(arms * matmul(arms, inverse_mass_matrix(model, model.rest)), axis=-1)
    least = 1e-9 / np.sum(model.masses)
    still = mobility <= least
    return np.where(still, np.sum(model.masses), 1.0 / np.where(still, 1.0, mobility))


# ---- the same limits, and dry friction, for contact ---------------------------------------------

#: How far a joint without a limit may go, in m or rad.
FAR = 1e15


class HeldRows(NamedTuple):
    """Velocities ``J v`` (n,) that limits or dry friction hold.

    They may go on by low (n,) to high (n,), against forces up to `friction` (n,). Each row is
    scaled by the root of an inertia, so that rows of joints that turn and slide are of one kind,
    m/s times the root of kg. `frequency` and `damping` (n,) are those of their stops, `impedance`
    (n, 5) and `creep` (n, 7) what `soft_dynamics` takes of limits and of friction.
    """

    J: Any
    low: Any
    high: Any
    friction: Any
    scale: Any
    frequency: Any
    damping: Any
    impedance: Any
    creep: Any


def free_velocities(model: Model) -> np.ndarray:
    """Return which velocities (nv,) are of free joints, whose friction is a drag, not a stop."""
    free = np.zeros(model.nv, dtype=bool)
    for link in own_links(model):
        free[link.v_slice] = isinstance(link.kind, Free)
    return free


def held_rows(model: Model, q: Vector, limits: bool) -> HeldRows | None:
    """Return what limits and dry friction of joints hold at `q` (nq,), None if there is nothing."""
    straight, balls = limited_joints(model) if limits else ([], [])
    loose, friction = free_velocities(model), concrete(model.friction)
    rough = ~loose if friction is None else ~loose & (friction != 0.0)
    coordinate = {j: i for i, j in straight}
    held = [j for j in range(model.nv) if rough[j] or j in coordinate]
    tendons = limited_tendons(model) if limits else []
    if model.tendons is not None:
        sliding = concrete(model.tendons.friction)
        every = range(len(model.tendons.names))
        tendons = [k for k in every if k in tendons or sliding is None or sliding[k] != 0.0]
    if not held and not balls and not tendons:
        return None
    scale = np.sqrt(joint_inertias(model))
    rows: list[tuple[Any, ...]] = []
    for j in held:
        low, high = -FAR, FAR
        if j in coordinate:
            i = coordinate[j]
            low = np.maximum(scale[j] * (model.lower[i] - q[i]), -FAR)
            high = np.minimum(scale[j] * (model.upper[i] - q[i]), FAR)
        dry = model.friction[j] / scale[j] if rough[j] else 0.0
        stop = stop_of(model, j)
        rows.append((scale[j] * np.eye(model.nv)[j], low, high, dry, scale[j], *stop))
    for link in balls:
        angle, axis = ball_angle(link, q)
        size = scale[link.v]
        high = np.minimum(size * (model.angle_limits[link.v] - angle), FAR)
        row = size * matmul(axis, np.eye(model.nv)[link.v_slice])
        stop = stop_of(model, link.v)
        rows.append((row, -FAR, high, 0.0, size, *stop))
    for k in tendons:
        own, length = model.tendons, one_tendon(model, k, q)
        size = np.sqrt(tendon_inertias(model)[k])
        low = np.maximum(size * (own.lower[k] - length.value), -FAR) if limits else -FAR
        high = np.minimum(size * (own.upper[k] - length.value), FAR) if limits else FAR
        stop = stop_of(own, k)
        rows.append((size * length.arms, low, high, own.friction[k] / size, size, *stop))
    return HeldRows(*(np.stack([np.asarray(x) * 1.0 for x in part]) for part in zip(*rows)))


def stop_of(owner: Any, k: int) -> tuple[Any, ...]:
    """Return the numbers of the k-th stop of a model or of tendons, and of its friction."""
    own = owner.limit_impedance[k], owner.friction_softness[k]
    return owner.limit_frequency[k], owner.limit_damping[k], *own


def ball_angle(link: Link, q: Vector) -> tuple[Any, Any]:
    """Return by how much a ball joint is turned, 0 to pi, and about which axis (..., 3)."""
    numbers = components(q, q.shape[-1])[link.q_slice]
    turn = join(link.kind.difference(list(link.kind.neutral), numbers))
    angle = np.sqrt(np.maximum(np.sum(turn * turn, axis=-1), 1e-300))
    return angle, turn / angle[..., None]


def stop_constants(model: Model) -> tuple[Vector, Vector]:
    """Return stiffness and damping (nv,) of stops."""
    m = joint_inertias(model)
    f, z = model.limit_frequency, model.limit_damping
    return m * f * f, 2.0 * m * f * z


def joint_inertias(model: Model) -> Vector:
    """Return the inertia (nv,) that each joint moves at rest of the springs, all others free."""
    known = has_known_numbers(model) and concrete(model.rest) is not None
    if known and np.ndim(model.masses) == 1:
        return find_known_inertias(SameModel(model))
    return find_inertias(model)


@lru_cache(maxsize=64)
def find_known_inertias(same: SameModel) -> Vector:
    """Return `joint_inertias` of a model whose numbers are known; those asked last are kept."""
    return find_inertias(same.model)


def find_inertias(model: Model) -> Vector:
    """Return `joint_inertias`; those of a ball joint, about any axis, are one mean."""
    check_inertia_of_joints(model)
    inverse = inverse_entries(factorize(model, mass_entries(model, model.rest)))
    mobility = [inverse[k, k] for k in range(model.nv)]
    for link in own_links(model):
        if type(link.kind) is Spherical:
            own = link.v_slice
            mobility[own] = [sum(mobility[own]) / 3.0] * 3
    return join_numbers([1.0 / x for x in mobility])
