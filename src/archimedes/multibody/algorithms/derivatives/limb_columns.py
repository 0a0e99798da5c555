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

from archimedes.function import vmap
from archimedes.multibody.algorithms.factorization import Entries, Factors, solved
from archimedes.multibody.algorithms.mass_matrix import filled
from archimedes.spatial.validation import concrete

__all__ = ["limbs_of", "solved_columns"]

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
    *batch, n, _ = shape
    known = all(concrete(x) is not None for entries in right for x in entries.values())
    if known or batch or len(factors.N) * n * len(right) <= UNROLLED:
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
