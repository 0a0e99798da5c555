"""What contacts did in a step: forces, where they acted, and whether Coulomb's law holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.display import Readable
from archimedes.multibody.contact.impulses import Solved, sizes_of
from archimedes.tree import field, struct
from archimedes.typing import Array, Matrix, Scalar, Vector

__all__ = ["ContactResult"]

#: The residual, in m/s, up to which a step counts as solved: a contact may creep at this speed.
SOLVED = 1e-6


@struct
class ContactResult(Readable):
    """What contacts and joints did in a step of `contact_step`, and whether it was solved.

    Contacts are in the order of `contacts`, then `pairs`; a shape may have several.

    Parameters
    ----------
    success : bool
        Whether Coulomb's law, limits and dry friction hold: the residual is at most 1e-6 m/s.
    residual : float
        The largest violation of these laws as a velocity, in m/s. For limits and dry friction of
        joints it is the speed at which the whole robot would have the same kinetic energy.
    force : array (m, 3)
        Mean force of the step on the first shape, in N, in axes of the world.
    moment : array (m, 3)
        Mean moment on the first shape by torsional and rolling friction, in N m.
    point : array (m, 3)
        Where the contact is at the start of the step, in m in the world.
    normal : array (m, 3)
        Direction from the second shape to the first.
    gap : array (m,)
        Gap at the start of the step in m, negative where shapes overlap.
    torque : array (nv,)
        Mean torques in N m, or forces in N, of the limits and the dry friction of joints.
    frames : tuple of (str, str or None)
        Frames of the two shapes of each contact, None for the ground.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("ball", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> x = mb.rest_state(ball, [0, 0, 0.1, 1, 0, 0, 0])
    >>> shapes, ground = [mb.sphere("ball", 0.1)], mb.Ground()
    >>> x, contact = mb.contact_step(ball, x, 1e-3, shapes, ground, full_output=True)
    >>> bool(contact.success), contact.force.round(6)
    (True, array([[ 0.  ,  0.  , 19.62]]))
    """

    success: Any = field()
    residual: Any = field(units="m/s")
    force: Any = field(units="N")
    moment: Any = field(units="N*m")
    point: Any = field(units="m")
    normal: Any = field()
    gap: Any = field(units="m")
    torque: Any = field()
    frames: tuple[tuple[str, str | None], ...] = field(static=True, default=())


def contact_result(
    solved: Sequence[Solved],
    places: tuple[Vector, Matrix, Matrix],
    axes: Array,
    impulse: Vector,
    mu: Array | None,
    torque: Vector,
    frames: Sequence[tuple[str, str | None]],
    step: float,
    scale: Scalar = 1.0,
) -> ContactResult:
    """Return forces, moments and the residual of a step from its impulses.

    `places` has the gaps (m,), normals and points (m, 3) of the contacts, and `axes` (m, 3, 3)
    their normals and tangents as rows. `impulse` (n,) is the impulse along these axes. Dividing
    velocities of the problems in `solved` by `scale` gives m/s.
    """
    off = [0.0 * torque[0], *(one.speed_off() for one in solved)]
    residual = np.max(np.stack(off)) / scale
    m, each = (0, 3) if mu is None else sizes_of(mu)
    L = impulse.reshape(m, each) / step
    force = np.sum(L[:, :3, None] * axes, axis=1)
    moment = np.sum(L[:, 3:, None] * axes[:, : each - 3], axis=1) if each > 3 else 0.0 * force
    gap, normal, point = places
    return ContactResult(
        residual <= SOLVED,
        residual,
        force,
        moment,
        point,
        normal,
        gap,
        torque / step,
        tuple(frames),
    )
