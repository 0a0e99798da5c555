"""The mass matrix by the composite-rigid-body algorithm.

Legend: Ic_i is the inertia of link i and all it carries, in its own axes; F is the force that
gives unit acceleration along a column, moved from link to link towards the world.
Source: Featherstone 2008, table 6.2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.algorithms.joint_frames import in_joint_frames
from archimedes.multibody.algorithms.links import columns_of, coordinates_of, poses_of
from archimedes.multibody.algorithms.moved_inertias import moved_inertias_of
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    dot,
    force_to_parent,
    momentum,
    rigid_sum,
    rigid_to_parent,
)

__all__ = ["add_pair", "crba", "filled", "mass_entries"]


def crba(model: Model, q: Any) -> Any:
    """Return the mass matrix, by the composite-rigid-body algorithm; armature is included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., nv, nv)
        The mass matrix.

    Examples
    --------
    >>> from archimedes.multibody import Builder, crba
    >>> b = Builder("pendulum")
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", "world", joint="hinge", kind="revolute", axis=[0, 1, 0])
    >>> crba(b.build(), [0.3])
    array([[0.6]])
    """
    return filled(mass_entries(model, q), (*np.shape(q)[:-1], model.nv, model.nv))


def mass_entries(model: Model, q: Any) -> dict[tuple[int, int], Any]:
    """Return the entries of the mass matrix that are not zero."""
    model, _ = in_joint_frames(model)
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    Ic = moved_inertias_of(model)
    entries: dict[tuple[int, int], Any] = {}
    for i in reversed(range(len(model.links))):
        parent = model.links[i].parent
        if parent >= 0:
            Ic[parent] = rigid_sum(Ic[parent], rigid_to_parent(X[i], Ic[i]))
        for n, (k, column) in enumerate(S[i]):
            F = momentum(Ic[i], column)
            for j, other in S[i][: n + 1]:
                add_pair(entries, k, j, dot(other, F))
            at = i
            while (above := model.links[at].parent) >= 0:
                F = force_to_parent(X[at], F)
                at = above
                for j, other in S[at]:
                    add_pair(entries, k, j, dot(other, F), twice=k == j)
    for k in range(model.nv):
        entries[k, k] = entries[k, k] + model.armature[k]
    return entries


def add_pair(
    entries: dict[tuple[int, int], Any], i: int, j: int, value: Any, twice: bool = False
) -> None:
    """Add to the entries (i, j) and (j, i); a mimic joint and its own meet on the diagonal."""
    value = 2.0 * value if twice else value
    for place in {(i, j), (j, i)}:
        entries[place] = entries[place] + value if place in entries else value


def filled(entries: dict[tuple[int, int], Any], shape: tuple[int, ...]) -> Any:
    """Return the matrix (..., rows, columns) of some entries; the others are zero.

    In a recording it is put together of its entries: numbers written into an array of zeros would
    make a block of it, whose zeros are not known any more.
    """
    if all(concrete(value) is not None for value in entries.values()):
        matrix = np.zeros(shape)
        for (i, j), value in entries.items():
            matrix[..., i, j] = value
        return matrix
    *batch, rows, columns = shape
    zero = np.zeros(batch) if batch else 0.0
    each = [[entries.get((i, j), zero) for j in range(columns)] for i in range(rows)]
    if batch:
        each = [[np.broadcast_to(x, batch) for x in row] for row in each]
    return np.stack([np.stack(row, axis=-1) for row in each], axis=-2)
