"""Inertias that give the same torques and take less work: what turns idly belongs to the parent.

A thin rod along the axis of a revolute joint resists the same whether it turns with the joint or
not. So much of a body as is such a rod (its mass, its first moment along the axis, one second
moment across) is moved to the parent; what is left has four numbers less to multiply with. Torques
and accelerations of the joints are the same, the forces that carry the bodies are others.
Source: Gautier and Khalil, Direct calculation of minimum set of inertial parameters of serial
robots, IEEE Trans. Robotics and Automation 6, 1990.
"""

from __future__ import annotations

from archimedes.multibody.algorithms.links import inertias_of, placement_of
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import Rigid, rigid_sum, rigid_to_parent
from archimedes.multibody.models.turns import about_axis
from archimedes.spatial.components import components, join, join_matrix, matrix_components

__all__ = ["moved_inertias_of"]


def moved_inertias_of(model: Model) -> list[Rigid]:
    """Return the inertia of each link without its rod, and with those of the links it carries."""
    found = inertias_of(model)
    for i in reversed(range(len(model.links))):
        link = model.links[i]
        axis = about_axis(link.screw.axis, 0.0)
        if not link.kind.spins or axis is None or any(link.screw.anchor):
            continue
        rod, found[i] = split_rod(found[i], axis[0].axis)
        if link.parent >= 0:
            moved = rigid_to_parent(placement_of(model, i), rod)
            found[link.parent] = rigid_sum(found[link.parent], moved)
    return found


def split_rod(I: Rigid, k: int) -> tuple[Rigid, Rigid]:
    """Return the part of an inertia that is a thin rod along coordinate axis k, and the rest."""
    i, j = (k + 1) % 3, (k + 2) % 3
    along, J = list(components(I.h, 3)), [list(row) for row in matrix_components(I.J)]
    zero, across = 0.0 * along[k], J[j][j]
    rod_h, rod_J = [zero] * 3, [[zero] * 3 for _ in range(3)]
    rod_h[k], rod_J[i][i], rod_J[j][j] = along[k], across, across
    along[k], J[i][i], J[j][j] = zero, J[i][i] - across, zero
    flat = [x for row in J for x in row]
    rod = Rigid(I.m, join(rod_h), join_matrix([x for row in rod_J for x in row]))
    return rod, Rigid(0.0, join(along), join_matrix(flat))
