"""The mass matrix by the composite-rigid-body algorithm, its factors, and models without one.

Legend: Ic_i is the inertia of link i and all it carries, in its own axes; F is the force that
gives unit acceleration along a column, moved from link to link towards the world.
Source: Featherstone 2008, table 6.2.

Forward dynamics have no answer if a joint moves nothing with inertia. With the velocities
eliminated from the leaves on, as `aba` and LTDL do, D_k is the inertia that the k-th still meets
when those below it are free. Where D_k is zero, a torque there gives no finite acceleration. A link
with mass and three moments of its own, or a joint with armature, makes its D_k positive, whatever
it carries; other models are examined at one configuration in general position, so that what is
special to a configuration does not count.

Factors along the tree: velocities are numbered so that those above come first; ``M = L' D L`` with
L unit lower triangular, whose row i has entries only at velocities above i. Its inverse L^-1 = 1 -
N has the same pattern, so that ``M^-1 = (1 - N) D^-1 (1 - N)'`` takes products along branches
alone.
Source: Featherstone 2008, section 6.5 and table 6.3 (LTDL).

Right-hand sides follow the limbs of the tree: a limb is a run of velocities that have the same ones
above and below them on their branches, themselves included; the column of a right-hand side that
belongs to a velocity has entries at these alone. All columns of a limb go through the same
operations: in the recording of a large robot they are a loop, whose code is some hundred operations
where all columns unrolled would be tens of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.checks import concrete
from archimedes.function import vmap
from archimedes.multibody.algorithms import links
from archimedes.multibody.algorithms.configurations import integrate, neutral
from archimedes.multibody.algorithms.links import links_at, reduce_tree
from archimedes.typing import Array, ArrayLike, Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Link, Model

__all__ = ["crba", "inverse_mass_matrix"]


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


def subtract_entry(entries: Entries, row: int, column: int, value: Array) -> None:
    """Subtract from an entry."""
    key = (row, column)
    entries[key] = entries[key] - value if key in entries else -value


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
    links.check_model(model)
    if not links.has_known_numbers(model) or np.ndim(model.masses) != 1:
        return
    if complaint := find_complaint(links.SameModel(model)):
        raise ValueError(complaint)


@lru_cache(maxsize=64)
def find_complaint(same: links.SameModel) -> str | None:
    """Return what is wrong with a model, or None if nothing is; those looked at last are kept."""
    model = same.model
    moments = np.linalg.eigvalsh(model.inertias)
    solid = (model.masses > 0.0) & (moments[:, 0] > 1e-12 * moments[:, 2])
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


# ---- factors along the tree, and systems solved with them ---------------------------------------


class Factors(NamedTuple):
    """The velocities above each velocity, and N and 1 / D of a mass matrix."""

    branch: list[list[int]]
    N: Entries
    inverse_D: list[Any]


def branch_of(model: Model) -> list[list[int]]:
    """Return, per velocity, those above it on its branch, nearest first.

    The pattern of a model with mimic joints is not that of its tree: there all that come before.
    """
    if any(link.mimic for link in model.links):
        return [list(reversed(range(k))) for k in range(model.nv)]
    branches: list[list[int]] = []
    for i, link in enumerate(model.links):
        above = [
            model.links[up].v + n
            for up in links.ancestors(model, i)[1:]
            for n in reversed(range(model.links[up].kind.nv))
        ]
        for n in range(link.kind.nv):
            branches.append([link.v + m for m in reversed(range(n))] + above)
    return branches


def factorize(model: Model, M: Entries) -> Factors:
    """Return the factors of a mass matrix given by its entries (row, column)."""
    check_inertia_of_joints(model)
    branch = branch_of(model)
    H = {(i, j): value for (i, j), value in M.items() if i >= j}
    inverse_D: list[Any] = [None] * model.nv
    for k in reversed(range(model.nv)):
        inverse_D[k] = 1.0 / H[k, k]
        gains = {i: H[k, i] * inverse_D[k] for i in branch[k] if (k, i) in H}
        for n, i in enumerate(branch[k]):
            if i not in gains:
                continue
            for j in [i, *branch[k][n + 1 :]]:
                if (k, j) in H:
                    subtract_entry(H, i, j, gains[i] * H[k, j])
        H |= {(k, i): gain for i, gain in gains.items()}
    N: Entries = {}
    for k in range(model.nv):
        for n, i in enumerate(branch[k]):
            if (k, i) in H:
                N[k, i] = H[k, i]
            for j in branch[k][:n]:
                if (k, j) in H and (j, i) in N:
                    subtract_entry(N, k, i, H[k, j] * N[j, i])
    return Factors(branch, N, inverse_D)


def solve_rows(factors: Factors, rows: list[Any]) -> list[Any]:
    """Solve M X = B for the rows of X; ``rows`` of B are numbers or arrays."""
    return sweep_from_base(factors, sweep_to_base(factors, rows))


def sweep_to_base(factors: Factors, rows: list[Any]) -> list[Any]:
    """Return the rows of ``(1 - N)' B``: what acts on a velocity acts on all above it, too."""
    y = list(rows)
    for k in range(len(rows)):
        for i in factors.branch[k]:
            if (k, i) in factors.N:
                y[i] = y[i] - factors.N[k, i] * rows[k]
    return y


def sweep_from_base(factors: Factors, rows: Sequence[Any]) -> list[Any]:
    """Return the rows of ``(1 - N) D^-1 Y``, which solve M X = B for ``Y = (1 - N)' B``."""
    y = [d * x for d, x in zip(factors.inverse_D, rows, strict=True)]
    out = list(y)
    for k in range(len(rows)):
        for i in factors.branch[k]:
            if (k, i) in factors.N:
                out[k] = out[k] - factors.N[k, i] * y[i]
    return out


def inverse_entries(factors: Factors) -> Entries:
    """Return the entries of M^-1 that are not zero."""
    N, inverse_D = factors.N, factors.inverse_D
    scaled = {(k, i): x * inverse_D[i] for (k, i), x in N.items()}
    inverse: Entries = {}
    for k, above in enumerate(factors.branch):
        for j in range(k + 1):
            for i in above:
                if (k, i) in N and (j, i) in N:
                    add_entry(inverse, k, j, scaled[k, i] * N[j, i])
            if j == k:
                add_entry(inverse, k, k, inverse_D[k])
            elif (k, j) in N:
                subtract_entry(inverse, k, j, scaled[k, j])
            if (k, j) in inverse:
                inverse[j, k] = inverse[k, j]
    return inverse


def inverse_mass_matrix(model: Model, q: ArrayLike) -> Matrix:
    """Return the inverse of the mass matrix, by factors along the tree.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., nv, nv)
        The inverse.

    Examples
    --------
    >>> from archimedes.multibody import Builder, inverse_mass_matrix
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0], armature=0.2)
    >>> inverse_mass_matrix(b.build(), [0.3])
    array([[1.25]])
    """
    factors = factorize(model, mass_entries(model, q))
    shape = (*np.shape(q)[:-1], model.nv, model.nv)
    return fill_matrix(inverse_entries(factors), shape)


#: Products that are unrolled in a recording; beyond, the columns of a limb are a loop, and
#: where the loops of all limbs have more products than that, all columns are one.
UNROLLED, LIMBS = 10_000, 50_000


def limbs_of(branch: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the velocities of each limb, given those above each velocity.

    >>> limbs_of([[], [0], [1, 0], [0], [3, 0]])  # a body with two arms
    [[0], [1, 2], [3, 4]]
    """
    related = [{k, *above} for k, above in enumerate(branch)]
    for k, above in enumerate(branch):
        for i in above:
            related[i].add(k)
    limbs: dict[frozenset[int], list[int]] = {}
    for k, others in enumerate(related):
        limbs.setdefault(frozenset(others), []).append(k)
    return list(limbs.values())


def solve_columns(
    factors: Factors, right: Sequence[Entries], shape: tuple[int, ...]
) -> Sequence[Matrix]:
    """Return M^-1 times some matrices (..., nv, nv), which are given by their entries."""
    n = shape[-1]
    if not needs_loops(factors, shape):
        both = np.concatenate([fill_matrix(entries, shape) for entries in right], axis=-1)
        each = [both[..., k, :] for k in range(n)]
        solution = np.stack(solve_rows(broadcast(factors), each), axis=-2)
        return [solution[..., m * n : (m + 1) * n] for m in range(len(right))]
    limbs = limbs_of(factors.branch)
    if len(limbs) * len(factors.N) > LIMBS:
        limbs = [list(range(n))]
    solved: list[Entries] = [{} for _ in right]
    for limb in limbs:
        keys = [(m, i, k) for m, entries in enumerate(right) for i, k in entries if k in limb]
        if not keys:
            continue
        columns, rows = sorted({(m, k) for m, _, k in keys}), sorted({i for _, i, _ in keys})
        sides = np.stack([[right[m].get((i, k), 0.0) for i in rows] for m, k in columns])
        solutions = vmap(lambda c, rows=rows: solve_column(factors, rows, c))(sides)
        for (m, k), solution in zip(columns, solutions, strict=True):
            solved[m].update(((i, k), solution[i]) for i in range(n))
    return [fill_matrix(entries, shape) for entries in solved]


def inverse_matrix(factors: Factors, shape: tuple[int, ...]) -> Matrix:
    """Return M^-1 (..., nv, nv), of which a loop of a large robot computes one half."""
    branch, N, inverse_D = factors
    limbs = limbs_of(branch)
    if not needs_loops(factors, shape) or len(limbs) * len(N) > LIMBS:
        return fill_matrix(inverse_entries(factors), shape)
    scaled = {(k, i): x * inverse_D[i] for (k, i), x in N.items()}  # (N - 1) D^-1
    scaled |= {(k, k): -d for k, d in enumerate(inverse_D)}
    inverse: Entries = {}
    for limb in limbs:
        rows = sorted({*limb, *branch[limb[0]]})
        sides = np.stack([[scaled.get((k, i), 0.0) for i in rows] for k in limb])
        each = vmap(lambda c, rows=rows: inverse_column(N, branch, rows, c))(sides)
        for k, column in zip(limb, each, strict=True):
            for j in range(k + 1):
                inverse[k, j] = inverse[j, k] = column[j]
    return fill_matrix(inverse, shape)


def inverse_column(
    N: Entries, branch: Sequence[Sequence[int]], rows: Sequence[int], scaled: Vector
) -> Vector:
    """Return a column of ``(N - 1) D^-1 (N - 1)'`` down to the last of some rows."""
    at = {i: scaled[k] for k, i in enumerate(rows)}
    column: Entries = {}
    for j in range(rows[-1] + 1):
        for i in branch[j]:
            if i in at and (j, i) in N:
                add_entry(column, j, 0, at[i] * N[j, i])
        if j in at:
            subtract_entry(column, j, 0, at[j])
    return np.stack([column.get((j, 0), 0.0) for j in range(rows[-1] + 1)])


def needs_loops(factors: Factors, shape: tuple[int, ...]) -> bool:
    """Return whether a recording with all columns of two matrices unrolled is too long."""
    *batch, n, _ = shape
    known = all(concrete(x) is not None for x in factors.inverse_D)
    return not (known or batch) and len(factors.N) * 2 * n > UNROLLED


def solve_column(factors: Factors, rows: Sequence[int], values: Vector) -> Vector:
    """Return M^-1 times a vector that has values in some rows."""
    right: list[Any] = [0.0] * len(factors.branch)
    for k, i in enumerate(rows):
        right[i] = values[k]
    return np.stack(solve_rows(factors, right))


def broadcast(factors: Factors) -> Factors:
    """Return factors whose entries multiply rows."""

    def last(x: Array) -> Array:
        return x if np.ndim(x) == 0 else x[..., None]

    N = {key: last(value) for key, value in factors.N.items()}
    return Factors(factors.branch, N, [last(d) for d in factors.inverse_D])
