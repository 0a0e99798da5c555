"""Robots on the ground: a smooth compliant contact, and steps in time with a friction cone.

Legend: contacts are spheres on frames (points have radius zero); d is the gap between a sphere and
the ground, n the ground's normal, u the velocity of the point of contact. Compliant: the normal
force is ``k s^1.5 (1 + c s')`` with s = max(-d, 0) and never pulls, the friction
``-mu f u_t / sqrt(u_t^2 + slip^2)``. In steps: impulses l with ``l_n = max(l_n - r u_n, 0)`` and
``l_t`` the point nearest to ``l_t - r u_t`` of the disk of radius mu l_n, for any r > 0, which says
that nothing penetrates, that friction stays in its cone, and that it is against what slides.
Sources: Hunt and Crossley, J. Applied Mechanics 42, 1975; Acary and Brogliato, Numerical Methods
for Nonsmooth Dynamical Systems, 2008, sections 3.9 and 13.7 (Alart and Curnier's form, sweeps).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.function import while_loop
from archimedes.multibody.algorithms.configurations import integrate
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.jacobians import frame_jacobian
from archimedes.multibody.algorithms.kinematics import frame_twist, world_pose
from archimedes.multibody.algorithms.links import Forces
from archimedes.multibody.algorithms.passive_forces import passive_torque
from archimedes.multibody.models.model import Model
from archimedes.multibody.systems.constraints import condensed, single
from archimedes.multibody.systems.system import State
from archimedes.spatial.components import as_array, cross, skew
from archimedes.spatial.validation import check_vector, concrete
from archimedes.tree import field, struct

__all__ = ["Contacts", "Ground", "box", "capsule", "contact_forces", "contact_step", "sphere"]

#: Sweeps over the contacts end when impulses change by less than this part, or after so many.
SETTLED, SWEEPS = 1e-13, 5000


@struct
class Ground:
    """A half-space or a terrain, and what it is made of.

    The surface is the plane through `point` (3,) normal to `normal` (3,), plus ``height(x, y)`` in
    m above it, a function of plane coordinates, where given. `stiffness` in N/m^1.5 and
    `dissipation` in s/m are those of the compliant contact, as is `slip_speed`, below which
    friction is viscous.
    """

    normal: Any = field(default=np.array([0.0, 0.0, 1.0]))
    point: Any = field(units="m", default=np.zeros(3))
    friction: Any = 0.7
    stiffness: Any = field(units="N/m^1.5", default=1e6)
    dissipation: Any = field(units="s/m", default=0.5)
    slip_speed: Any = field(units="m/s", default=1e-3)
    height: Any = field(static=True, default=None)

    def __post_init__(self) -> None:
        """Check the directions, and make the normal one of length one."""
        n = check_vector(self.normal, 3, "Ground normal")
        known = concrete(n)
        if known is not None and not known.any():
            raise ValueError("Ground normal must not be zero")
        self.__dict__["normal"] = n / np.sqrt(np.sum(n * n))
        self.__dict__["point"] = check_vector(self.point, 3, "Ground point")

    def gap(self, place: Any) -> tuple[Any, Any]:
        """Return the distance of a place (3,) from the surface, and the normal (3,) below it.

        On a terrain it is that from its tangent plane below the place.
        """
        above = np.sum((place - self.point) * self.normal)
        if self.height is None:
            return above, self.normal
        from archimedes.function import grad

        x, y = tangents(self.normal)
        at = (np.sum((place - self.point) * x), np.sum((place - self.point) * y))
        sx, sy = grad(self.height, argnums=(0, 1))(*at)
        length = np.sqrt(1.0 + sx * sx + sy * sy)
        return (above - self.height(*at)) / length, (self.normal - sx * x - sy * y) / length


@struct
class Contacts:
    """Spheres of one radius, fixed to a frame at `centers` (n, 3) in its axes."""

    frame: str = field(static=True)
    centers: Any = field(units="m")
    radius: Any = field(units="m", default=0.0)

    def __post_init__(self) -> None:
        """Check the shape."""
        centers = as_array(self.centers, "Contacts centers")
        if centers.ndim != 2 or centers.shape[1] != 3:
            raise ValueError(f"Contacts centers must be (n, 3), got {tuple(centers.shape)}")
        self.__dict__["centers"] = centers


def sphere(frame: str, radius: Any, center: Any = (0.0, 0.0, 0.0)) -> Contacts:
    """Return the contact of a sphere.

    >>> from archimedes.multibody import sphere
    >>> sphere("wheel", 0.3).centers.shape
    (1, 3)
    """
    return Contacts(frame, check_vector(center, 3, "sphere center")[None, :], radius)


def capsule(frame: str, radius: Any, length: float) -> Contacts:
    """Return the contacts of a capsule along z, `length` between its two centres.

    >>> from archimedes.multibody import capsule
    >>> capsule("shin", 0.05, 0.4).centers[:, 2]
    array([-0.2,  0.2])
    """
    ends = np.array([[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]])
    return Contacts(frame, length * ends, radius)


def box(frame: str, size: Any) -> Contacts:
    """Return the eight corners of a box of `size` (3,) as contacts.

    >>> from archimedes.multibody import box
    >>> box("crate", [1.0, 1.0, 2.0]).centers.shape
    (8, 3)
    """
    signs = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)])
    return Contacts(frame, signs * check_vector(size, 3, "box size"), 0.0)


def tangents(n: Any) -> tuple[Any, Any]:
    """Return two directions that form a right-handed frame with a normal (3,)."""
    # Duff et al., Building an orthonormal basis, revisited, J. Computer Graphics Techniques 6, 2017
    sign = np.where(n[2] < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n[2])
    b = n[0] * n[1] * a
    first = np.stack([1.0 + sign * n[0] * n[0] * a, sign * b, -sign * n[0]])
    return first, np.stack([b, sign + n[1] * n[1] * a, -n[1]])


def touching(model: Model, q: Any, group: Contacts, k: int, ground: Ground) -> tuple[Any, Any, Any]:
    """Return the gap of a sphere, the normal, and the arm from its frame's origin, in the world."""
    X = world_pose(model, q, group.frame)
    arm = X.R @ group.centers[k]
    away, n = ground.gap(X.p + arm)
    return away - group.radius, n, arm - group.radius * n


def contact_forces(
    model: Model, q: Any, v: Any, contacts: Sequence[Contacts], ground: Ground
) -> dict[str, Any]:
    """Return the compliant contact forces on bodies, for `forces` of `rnea`, `aba`, `dynamics`.

    Smooth in q and v but where a sphere first touches, where the first derivative is continuous.

    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Ground, contact_forces, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> q = neutral(ball)
    >>> q[2] = 0.1 - 1e-4
    >>> contact_forces(ball, q, np.zeros(6), [sphere("ball", 0.1)], Ground())["ball"].round(6)
    array([0., 0., 1., 0., 0., 0.])
    """
    q, v = single(model, q, "q", model.nq), single(model, v, "v", model.nv)
    found: dict[str, Any] = {}
    for group in contacts:
        name = body_of(model, group.frame)
        twist = frame_twist(model, q, v, group.frame, "aligned")
        body, frame = world_pose(model, q, name), world_pose(model, q, group.frame)
        for k in range(group.centers.shape[0]):
            d, n, arm = touching(model, q, group, k, ground)
            speed = twist[:3] + cross(twist[3:], arm)
            f = compliant(d, n, speed, ground)
            moment = cross(frame.p + arm - body.p, f)
            force = np.concatenate([body.R.T @ f, body.R.T @ moment])
            found[name] = found[name] + force if name in found else force
    return found


def compliant(d: Any, n: Any, speed: Any, ground: Ground) -> Any:
    """Return the force (3,) on a sphere."""
    inside = np.maximum(-d, 0.0)
    along = np.sum(speed * n)
    push = ground.stiffness * inside * np.sqrt(np.where(inside > 0.0, inside, 1.0))
    push = push * np.maximum(1.0 - ground.dissipation * along, 0.0)
    sliding = speed - along * n
    size = np.sqrt(np.sum(sliding * sliding) + ground.slip_speed**2)
    return push * (n - ground.friction * sliding / size)


def body_of(model: Model, frame: str) -> str:
    """Return the body that a frame is on."""
    link = model.frames[model.frame(frame)].link
    if link < 0 or not model.links[link].body:
        raise ValueError(f"contacts of frame {frame!r}: it is on no body that moves")
    return model.links[link].body


def contact_step(
    model: Model,
    x: State,
    step: float,
    contacts: Sequence[Contacts],
    ground: Ground,
    u: Any = None,
    forces: Forces = None,
    *,
    restitution: float = 0.0,
    recovery: float = 0.1,
) -> State:
    """Return the state after a `step` in s with exact Coulomb friction and no penetration.

    Semi-implicit Euler: impulses are found so that contacts stick or slide as the friction cone
    says. Of a penetration the part `recovery` is taken back in a step; `restitution` is the part of
    a normal speed that comes back. Passive forces act.

    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Ground, State, contact_step, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> x = State(neutral(ball) + np.array([0, 0, 0.1, 0, 0, 0, 0]), np.zeros(6))
    >>> x = contact_step(ball, x, 1e-3, [sphere("ball", 0.1)], Ground())
    >>> np.abs(x.v).max() < 1e-12
    np.True_
    """
    q, v = single(model, x.q, "q", model.nq), single(model, x.v, "v", model.nv)
    rows, gaps = [], []
    for group in contacts:
        J = frame_jacobian(model, q, group.frame, "aligned")
        for k in range(group.centers.shape[0]):
            d, n, arm = touching(model, q, group, k, ground)
            at_point = J[:3] - skew(arm) @ J[3:]
            rows.append(np.stack([n, *tangents(n)]) @ at_point)
            gaps.append(d)
    J, gap = np.concatenate(rows), np.stack(gaps)
    torques = passive_torque(model, q, v) if u is None else u + passive_torque(model, q, v)
    rest = torques - rnea(model, q, v, np.zeros(model.nv), forces)
    freely, across, G = condensed(model, q, J, rest)
    before = v + step * freely
    # A gap may close within the step; what has closed is opened again by the recovery.
    allowed = np.where(gap > 0.0, gap, recovery * gap) / step
    bounce = restitution * np.where(gap <= 0.0, np.minimum(J[::3] @ v, 0.0), 0.0)
    offset = J @ before + spread(allowed + bounce)
    impulses = coulomb_impulses(G, offset, ground.friction)
    v = before + across @ impulses
    return State(integrate(model, q, step * v), v)


def spread(normals: Any) -> Any:
    """Return numbers (m,) as the normal parts of (3 m,)."""
    zero = 0.0 * normals
    return np.stack([normals, zero, zero], axis=1).ravel()


def coulomb_impulses(G: Any, offset: Any, mu: Any) -> Any:
    """Return impulses (3 m,) in their cones with velocities ``G l + offset`` as Coulomb's law says.

    Contacts are taken one after the other, each first along its normal, then across it.
    """
    m = offset.shape[0] // 3

    def sweep(state: tuple[Any, ...]) -> tuple[Any, ...]:
        impulses, _, count = state
        parts = [impulses[k] for k in range(3 * m)]
        for i in range(m):
            n, t, b = 3 * i, 3 * i + 1, 3 * i + 2
            speed = G[n] @ np.stack(parts) + offset[n]
            parts[n] = np.maximum(parts[n] - speed / G[n, n], 0.0)
            across = G[t : b + 1] @ np.stack(parts) + offset[t : b + 1]
            # Of [[p, r], [r, q]] the larger eigenvalue: the quickest pace that settles.
            half, apart = 0.5 * (G[t, t] + G[b, b]), 0.5 * (G[t, t] - G[b, b])
            pace = half + np.sqrt(apart * apart + G[t, b] * G[t, b])
            parts[t], parts[b] = in_disk(
                parts[t] - across[0] / pace, parts[b] - across[1] / pace, mu * parts[n]
            )
        after = np.stack(parts)
        unsettled = np.max(np.abs(after - impulses)) > SETTLED * np.max(np.abs(after))
        return after, unsettled, count + 1

    start = (0.0 * offset, offset[0] == offset[0], np.int64(0))
    impulses, _, _ = while_loop(lambda s: s[1] & (s[2] < SWEEPS), sweep, start)
    return impulses


def in_disk(x: Any, y: Any, radius: Any) -> tuple[Any, Any]:
    """Return the point of a disk around zero nearest to (x, y)."""
    size = np.sqrt(np.maximum(x * x + y * y, 1e-300))
    shrink = np.minimum(radius / size, 1.0)
    return shrink * x, shrink * y
