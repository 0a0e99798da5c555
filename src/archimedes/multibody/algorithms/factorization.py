"""The mass matrix factorised along the tree, and systems solved with it.

Legend: velocities are numbered so that those above come first; ``M = L' D L`` with L unit lower
triangular, whose row i has entries only at velocities above i. Its inverse L^-1 = 1 - N has the
same pattern, so that ``M^-1 = (1 - N) D^-1 (1 - N)'`` takes products along branches alone.
Source: Featherstone 2008, section 6.5 and table 6.3 (LTDL).

Right-hand sides follow the limbs of the tree: a limb is a run of velocities that have the same ones
above and below them on their branches, themselves included; the column of a right-hand side that
belongs to a velocity has entries at these alone. All columns of a limb go through the same
operations: in the recording of a large robot they are a loop, whose code is some hundred operations
where all columns unrolled would be tens of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import concrete
from archimedes.function import vmap
from archimedes.multibody.algorithms.links import ancestors
from archimedes.multibody.algorithms.mass_matrix import (
    Entries,
    check_inertia_of_joints,
    fill_matrix,
    mass_entries,
)
from archimedes.typing import Array, ArrayLike, Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["inverse_mass_matrix"]


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
            for up in ancestors(model, i)[1:]
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
                    change = gains[i] * H[k, j]
                    H[i, j] = H[i, j] - change if (i, j) in H else -change
        for i, gain in gains.items():
            H[k, i] = gain
    N: Entries = {}
    for k in range(model.nv):
        for n, i in enumerate(branch[k]):
            total = H.get((k, i))
            for j in branch[k][:n]:
                if (k, j) in H and (j, i) in N:
                    term = H[k, j] * N[j, i]
                    total = -term if total is None else total - term
            if total is not None:
                N[k, i] = total
    return Factors(branch, N, inverse_D)


def solve_rows(factors: Factors, rows: list[Any]) -> list[Any]:
    """Return M^-1 times a matrix given by its rows (a number or an array each)."""
    N, branch = factors.N, factors.branch
    y = list(rows)
    for k in range(len(rows)):
        for i in branch[k]:
            if (k, i) in N:
                y[i] = y[i] - N[k, i] * rows[k]
    y = [d * x for d, x in zip(factors.inverse_D, y, strict=True)]
    out = list(y)
    for k in range(len(rows)):
        for i in branch[k]:
            if (k, i) in N:
                out[k] = out[k] - N[k, i] * y[i]
    return out


def inverse_entries(factors: Factors) -> Entries:
    """Return the entries of M^-1 that are not zero."""
    n, N = len(factors.inverse_D), factors.N
    above = [[i for i in factors.branch[k] if (k, i) in N] for k in range(n)]
    scaled = {(k, i): x * factors.inverse_D[i] for (k, i), x in N.items()}
    inverse: Entries = {}
    for k in range(n):
        for j in range(k + 1):
            total = None
            for i in above[k]:
                if (j, i) in N:
                    term = scaled[k, i] * N[j, i]
                    total = term if total is None else total + term
            if j == k:
                total = factors.inverse_D[k] if total is None else total + factors.inverse_D[k]
            elif (k, j) in N:
                total = -scaled[k, j] if total is None else total - scaled[k, j]
            if total is not None:
                inverse[k, j] = inverse[j, k] = total
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
    solved: list[Entries] = [{} for _ in right]
    for columns, rows in groups_of(factors, right):
        sides = np.stack([[right[m].get((i, k), 0.0) for i in rows] for m, k in columns])
        solutions = vmap(lambda c, rows=rows: solve_column(factors, rows, c))(sides)
        for (m, k), solution in zip(columns, solutions, strict=True):
            solved[m].update(((i, k), solution[i]) for i in range(n))
    return [fill_matrix(entries, shape) for entries in solved]


def inverse_matrix(factors: Factors, shape: tuple[int, ...]) -> Matrix:
    """Return M^-1 (..., nv, nv), of which a loop of a large robot computes one half."""
    limbs = limbs_of(factors.branch)
    if not needs_loops(factors, shape) or len(limbs) * len(factors.N) > LIMBS:
        return fill_matrix(inverse_entries(factors), shape)
    N = factors.N
    inverse: Entries = {}
    for limb in limbs:
        rows = sorted({*limb, *factors.branch[limb[0]]})
        scaled = np.stack([[scale_entry(factors, k, i) for i in rows] for k in limb])
        each = vmap(lambda c, rows=rows: inverse_column(N, factors.branch, rows, c))(scaled)
        for k, column in zip(limb, each, strict=True):
            for j in range(k + 1):
                inverse[k, j] = inverse[j, k] = column[j]
    return fill_matrix(inverse, shape)


def scale_entry(factors: Factors, k: int, i: int) -> Any:
    """Return entry (k, i) of ``(N - 1) D^-1``."""
    if i == k:
        return -factors.inverse_D[k]
    return factors.N[k, i] * factors.inverse_D[i] if (k, i) in factors.N else 0.0


def inverse_column(
    N: Entries, branch: Sequence[Sequence[int]], rows: Sequence[int], scaled: Vector
) -> Vector:
    """Return a column of ``(N - 1) D^-1 (N - 1)'`` down to the last of some rows."""
    at = {i: scaled[k] for k, i in enumerate(rows)}
    column = []
    for j in range(rows[-1] + 1):
        total: Any = None
        for i in branch[j]:
            if i in at and (j, i) in N:
                term = at[i] * N[j, i]
                total = term if total is None else total + term
        if j in at:
            total = -at[j] if total is None else total - at[j]
        column.append(0.0 if total is None else total)
    return np.stack(column)


def needs_loops(factors: Factors, shape: tuple[int, ...]) -> bool:
    """Return whether a recording with all columns of two matrices unrolled is too long."""
    *batch, n, _ = shape
    known = all(concrete(x) is not None for x in factors.inverse_D)
    return not (known or batch) and len(factors.N) * 2 * n > UNROLLED


def groups_of(
    factors: Factors, right: Sequence[Entries]
) -> list[tuple[list[tuple[int, int]], list[int]]]:
    """Return columns (matrix, column) that go through one loop, and the rows they have."""
    n = len(factors.branch)
    limbs = limbs_of(factors.branch)
    if len(limbs) * len(factors.N) > LIMBS:
        limbs = [list(range(n))]
    groups = []
    for limb in limbs:
        keys = [(m, i, k) for m, x in enumerate(right) for i, k in x if k in set(limb)]
        columns = sorted({(m, k) for m, _, k in keys})
        if columns:
            groups.append((columns, sorted({i for _, i, _ in keys})))
    return groups


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
