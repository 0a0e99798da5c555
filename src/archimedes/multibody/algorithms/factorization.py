"""The mass matrix factorised along the tree, and systems solved with it.

Legend: velocities are numbered so that those above come first; ``M = L' D L`` with L unit lower
triangular, whose row i has entries only at velocities above i. Its inverse L^-1 = 1 - N has the
same pattern, so that ``M^-1 = (1 - N) D^-1 (1 - N)'`` takes products along branches alone.
Source: Featherstone 2008, section 6.5 and table 6.3 (LTDL).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.algorithms.links import ancestors
from archimedes.multibody.algorithms.mass_matrix import filled, mass_entries
from archimedes.multibody.algorithms.singular_inertia import check_inertia_of_joints
from archimedes.multibody.models.model import Model

__all__ = ["Factors", "branch_of", "factorized", "inverse_mass_matrix", "solved"]

Entries = dict[tuple[int, int], Any]


class Factors:
    """N and 1 / D of a mass matrix, with the velocities above each."""

    def __init__(self, branch: list[list[int]], N: Entries, inverse_D: list[Any]) -> None:
        self.branch = branch
        self.N = N
        self.inverse_D = inverse_D


def branch_of(model: Model) -> list[list[int]]:
    """Return, per velocity, those above it on its branch, nearest first.

    The pattern of a model with mimic joints is not that of its tree: there all that come before.
    """
    if any(link.mimic for link in model.links):
        return [list(reversed(range(k))) for k in range(model.nv)]
    found: list[list[int]] = []
    for i, link in enumerate(model.links):
        above = [
            model.links[up].v + n
            for up in ancestors(model, i)[1:]
            for n in reversed(range(model.links[up].kind.nv))
        ]
        for n in range(link.kind.nv):
            found.append([link.v + m for m in reversed(range(n))] + above)
    return found


def factorized(model: Model, M: Entries) -> Factors:
    """Return the factors of a mass matrix given by its entries (row, column)."""
    check_inertia_of_joints(model)
    branch = branch_of(model)
    H = {place: value for place, value in M.items() if place[0] >= place[1]}
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


def solved(factors: Factors, rows: list[Any]) -> list[Any]:
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
    found: Entries = {}
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
                found[k, j] = found[j, k] = total
    return found


def inverse_mass_matrix(model: Model, q: Any) -> Any:
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
    factors = factorized(model, mass_entries(model, q))
    shape = (*np.shape(q)[:-1], model.nv, model.nv)
    return filled(inverse_entries(factors), shape)
