"""The mass matrix by the composite-rigid-body algorithm, and models in which it is singular.

Legend: Ic_i is the inertia of link i and all it carries, in its own axes; F is the force that
gives unit acceleration along a column, moved from link to link towards the world.
Source: Featherstone 2008, table 6.2.

Forward dynamics have no answer if a joint moves nothing with inertia. With the velocities
eliminated from the leaves on, as `aba` and LTDL do, D_k is the inertia that the k-th still meets
when those below it are free. Where D_k is zero, a torque there gives no finite acceleration. A link
with mass and three moments of its own, or a joint with armature, makes its D_k positive, whatever
it carries; other models are examined at one configuration in general position, so that what is
special to a configuration does not count.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes.checks import concrete
from archimedes.multibody.algorithms.configurations import integrate, neutral
from archimedes.multibody.algorithms.links import SameModel, check_model, links_at
from archimedes.multibody.algorithms.reduction import reduce_tree
from archimedes.typing import Array, ArrayLike, Matrix

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model

__all__ = ["crba"]

#: The entries of a matrix that are not zero, by row and column.
Entries: TypeAlias = dict[tuple[int, int], Any]


def crba(model: Model, q: ArrayLike) -> Matrix:
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
    return fill_matrix(mass_entries(model, q), (*np.shape(q)[:-1], model.nv, model.nv))


def mass_entries(model: Model, q: ArrayLike) -> Entries:
    """Return the entries of the mass matrix that are not zero."""
    model, Ic, _ = reduce_tree(model)
    _, X, S = links_at(model, q)
    entries: Entries = {}
    for i in reversed(range(len(model.links))):
        parent = model.links[i].parent
        if parent >= 0:
            Ic[parent] = Ic[parent] + Ic[i].to_parent(X[i])
        for n, (k, column) in enumerate(S[i]):
            F = Ic[i] @ column
            for j, other in S[i][: n + 1]:
                add_pair(entries, k, j, other.dot(F))
            at = i
            while (above := model.links[at].parent) >= 0:
                F = X[at].force_to_parent(F)
                at = above
                for j, other in S[at]:
                    add_pair(entries, k, j, other.dot(F), twice=k == j)
    for k in range(model.nv):
        add_entry(entries, k, k, model.armature[k])
    return entries


def add_entry(entries: Entries, row: int, column: int, value: Array) -> None:
    """Add to an entry."""
    key = (row, column)
    entries[key] = entries[key] + value if key in entries else value


def add_pair(entries: Entries, i: int, j: int, value: Array, twice: bool = False) -> None:
    """Add to the entries (i, j) and (j, i); a mimic joint and its own meet on the diagonal."""
    value = 2.0 * value if twice else value
    add_entry(entries, i, j, value)
    if i != j:
        add_entry(entries, j, i, value)


def fill_matrix(entries: Entries, shape: tuple[int, ...]) -> Matrix:
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


# ---- joints that move nothing with inertia -----------------------------------------------------

#: What is left of an inertia after the elimination and is only rounding.
ROUNDING = 1e-14


def check_inertia_of_joints(model: Model) -> None:
    """Raise if a joint of a model whose numbers are known moves nothing with inertia.

    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> check_inertia_of_joints(b.build())
    """
    check_model(model)
    numbers = (model.rotations, model.positions, model.masses, model.centers, model.inertias,
               model.armature)  # fmt: skip
    if any(concrete(array) is None for array in numbers) or np.ndim(model.masses) != 1:
        return
    if complaint := find_complaint(SameModel(model)):
        raise ValueError(complaint)


@lru_cache(maxsize=64)
def find_complaint(same: SameModel) -> str | None:
    """Return what is wrong with a model, or None if nothing is; those looked at last are kept."""
    model = same.model
    solid = solid_links(model)
    if all(whole or has_armature(model, k) for k, whole in zip(model.links, solid, strict=True)):
        return None
    directions = np.cos(1.0 + 1.7 * np.arange(model.nv))  # no two alike, none special
    M = np.array(crba(model, integrate(model, neutral(model), directions)))
    full = M.diagonal().copy()
    for k in reversed(range(model.nv)):
        if not abs(M[k, k]) > ROUNDING * abs(full[k]):
            return describe_complaint(model, k, nothing=not full[k])
        M[:k, :k] -= np.outer(M[k, :k], M[k, :k]) / M[k, k]
    return None


def solid_links(model: Model) -> np.ndarray:
    """Return which links have a mass and three positive moments of their own."""
    moments = np.linalg.eigvalsh(model.inertias)
    return (model.masses > 0.0) & (moments[:, 0] > 1e-12 * moments[:, 2])


def has_armature(model: Model, link: Link) -> bool:
    """Return whether all velocities of a joint have armature."""
    own = model.armature[link.v_slice]
    return not link.mimic and bool(np.all(own > 0.0))


def describe_complaint(model: Model, k: int, nothing: bool) -> str:
    """Return the message about the k-th velocity."""
    link = next(x for x in model.links if not x.mimic and x.v <= k < x.v + x.kind.nv)
    body = f"body {link.body!r}" if link.body else "the massless link behind it"
    why = (
        f"{body} and all that it carries have no inertia along it"
        if nothing
        else f"{body} has no inertia along it but what joints below can move by themselves"
    )
    return (
        f"{model.name!r}: no acceleration follows from a torque of joint {link.joint!r}: {why}, "
        f"and the joint has no armature. Give {body} a mass and an inertia (load(..., density=...) "
        "takes those of its shapes), or the joint an armature, or weld or lock the joint"
    )
