"""Systems with the mass matrix of a tree, for right-hand sides that follow its limbs.

Legend: a limb is a run of velocities that have the same ones above and below them on their
branches, themselves included; the column of a right-hand side that belongs to a velocity has
entries at these alone. All columns of a limb go through the same operations: in the recording of a
large robot they are a loop, whose code is some hundred operations where all columns written out
would be tens of thousands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import concrete
from archimedes.function import vmap
from archimedes.multibody.algorithms.factorization import Entries, Factors, inverse_entries, solved
from archimedes.multibody.algorithms.mass_matrix import filled

__all__ = ["inverse_matrix", "limbs_of", "solved_columns"]

#: Products that are written out in a recording; beyond, the columns of a limb are a loop, and
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
    found: dict[frozenset[int], list[int]] = {}
    for k, others in enumerate(related):
        found.setdefault(frozenset(others), []).append(k)
    return list(found.values())


def solved_columns(
    factors: Factors, right: Sequence[Entries], shape: tuple[int, ...]
) -> Sequence[Any]:
    """Return M^-1 times some matrices (..., nv, nv), which are given by their entries."""
    n = shape[-1]
    if not in_loops(factors, shape):
        both = np.concatenate([filled(entries, shape) for entries in right], axis=-1)
        each = [both[..., k, :] for k in range(n)]
        moved = np.stack(solved(broadcast(factors), each), axis=-2)
        return [moved[..., m * n : (m + 1) * n] for m in range(len(right))]
    found: list[Entries] = [{} for _ in right]
    for columns, rows in groups_of(factors, right):
        given = np.stack([[right[m].get((i, k), 0.0) for i in rows] for m, k in columns])
        solutions = vmap(lambda c, rows=rows: one_column(factors, rows, c))(given)
        for (m, k), solution in zip(columns, solutions, strict=True):
            found[m].update(((i, k), solution[i]) for i in range(n))
    return [filled(entries, shape) for entries in found]


def inverse_matrix(factors: Factors, shape: tuple[int, ...]) -> Any:
    """Return M^-1 (..., nv, nv), of which a loop of a large robot computes one half."""
    limbs = limbs_of(factors.branch)
    if not in_loops(factors, shape) or len(limbs) * len(factors.N) > LIMBS:
        return filled(inverse_entries(factors), shape)
    N = factors.N
    found: Entries = {}
    for limb in limbs:
        rows = sorted({*limb, *factors.branch[limb[0]]})
        given = np.stack([[scaled_entry(factors, k, i) for i in rows] for k in limb])
        each = vmap(lambda c, rows=rows: one_inverse_column(N, factors.branch, rows, c))(given)
        for k, column in zip(limb, each, strict=True):
            for j in range(k + 1):
                found[k, j] = found[j, k] = column[j]
    return filled(found, shape)


def scaled_entry(factors: Factors, k: int, i: int) -> Any:
    """Return entry (k, i) of ``(N - 1) D^-1``."""
    if i == k:
        return -factors.inverse_D[k]
    return factors.N[k, i] * factors.inverse_D[i] if (k, i) in factors.N else 0.0


def one_inverse_column(
    N: Entries, branch: Sequence[Sequence[int]], rows: Sequence[int], scaled: Any
) -> Any:
    """Return a column of ``(N - 1) D^-1 (N - 1)'`` down to the last of some rows."""
    at = {i: scaled[k] for k, i in enumerate(rows)}
    found = []
    for j in range(rows[-1] + 1):
        total: Any = None
        for i in branch[j]:
            if i in at and (j, i) in N:
                term = at[i] * N[j, i]
                total = term if total is None else total + term
        if j in at:
            total = -at[j] if total is None else total - at[j]
        found.append(0.0 if total is None else total)
    return np.stack(found)


def in_loops(factors: Factors, shape: tuple[int, ...]) -> bool:
    """Tell whether a recording is too long with all columns of two matrices written out."""
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
    found = []
    for limb in limbs:
        places = [(m, i, k) for m, x in enumerate(right) for i, k in x if k in set(limb)]
        columns = sorted({(m, k) for m, _, k in places})
        if columns:
            found.append((columns, sorted({i for _, i, _ in places})))
    return found


def one_column(factors: Factors, rows: Sequence[int], values: Any) -> Any:
    """Return M^-1 times a vector that has values in some rows."""
    right: list[Any] = [0.0] * len(factors.branch)
    for k, i in enumerate(rows):
        right[i] = values[k]
    return np.stack(solved(factors, right))


def broadcast(factors: Factors) -> Factors:
    """Return factors whose entries multiply rows."""

    def last(x: Any) -> Any:
        return x if np.ndim(x) == 0 else x[..., None]

    N = {place: last(value) for place, value in factors.N.items()}
    return Factors(factors.branch, N, [last(d) for d in factors.inverse_D])
