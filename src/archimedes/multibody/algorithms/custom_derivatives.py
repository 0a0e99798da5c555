"""Recordings of the dynamics that bring their derivatives: `arc.jac` of a model uses them.

A function of a model whose numbers are known, recorded at one state, is recorded with its analytic
Jacobians. These are along the tangent space of q; the derivative in the numbers of q is that times
the matrix T of ``v = T(q) dq/dt``. All else (numbers of the model that are traced, forces on
bodies, a few directions only, joints of the user's own) is differentiated as it is computed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from archimedes.checks import concrete
from archimedes.function import custom_jac
from archimedes.multibody.algorithms import links
from archimedes.typing import Matrix, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model


#: From so many directions on the Jacobians take less work than tangents of the algorithms.
DIRECTIONS = 4
#: Functions of three vectors of a model, with `forces` at their end; and their Jacobians.
Plain: TypeAlias = "Callable[..., Vector]"
Jacobians: TypeAlias = "Callable[..., tuple[Matrix, Matrix, Matrix]]"


def call_with_derivatives(
    plain: Plain, jacobians: Jacobians, model: Model, x: tuple[Vector, ...], forces: links.Forces
) -> Any:
    """Return ``plain(model, *x, forces)``; a recording gets the analytic derivatives with it."""
    if all(type(part) is np.ndarray for part in x) or not has_derivatives(model, x):
        return plain(model, *x, forces)
    acting = links.external_forces(model, forces)
    if any(np.ndim(force.linear) != 1 for force in acting.values()):
        return plain(model, *x, forces)
    bodies = tuple(model.links[i].body for i in acting)
    function = function_with_derivatives(plain, jacobians, links.SameModel(model), bodies)
    return function(*x, *(force.array for force in acting.values()))


def has_derivatives(model: Model, x: tuple[Vector, ...]) -> bool:
    """Return whether Jacobians are known: of one state, and a model of known numbers."""
    if any(np.ndim(part) != 1 for part in x) or any(link.kind.varies for link in model.links):
        return False
    return links.has_known_numbers(model) and concrete(model.gravity) is not None


@lru_cache(maxsize=64)
def function_with_derivatives(
    plain: Plain, jacobians: Jacobians, same: links.SameModel, bodies: tuple[str, ...]
) -> custom_jac:
    """Return the function of (q, v, a, *forces) of a model; those used last are kept."""
    model = same.model

    @custom_jac
    def function(q: Vector, v: Vector, a: Vector, *forces: Vector) -> Vector:
        return plain(model, q, v, a, dict(zip(bodies, forces, strict=True)) or None)

    def rule(q: Vector, v: Vector, a: Vector, *forces: Vector) -> tuple[Any, ...]:
        acting = dict(zip(bodies, forces, strict=True)) or None
        by_q, by_v, by_a = jacobians(model, q, v, a, acting)
        return (in_coordinates(model, q, by_q), by_v, by_a, *(None for _ in forces))

    function.defjac(rule, directions=DIRECTIONS)
    return function


def in_coordinates(model: Model, q: Vector, along: Matrix) -> Matrix:
    """Return the derivative (nv, nq) in the numbers of q, from that in its tangent space."""
    if all(link.kind.straight for link in model.links):
        return along
    qs = links.coordinates_of(model, q)
    columns = []
    for link, own in zip(model.links, qs, strict=True):
        if link.mimic:
            continue
        mine = along[:, link.v_slice]
        if link.kind.straight:
            columns.append(mine)
            continue
        units = np.eye(link.kind.nq)
        T = np.stack([np.stack(link.kind.tangent(own, list(unit))) for unit in units], axis=1)
        columns.append(np.matmul(mine, T))
    return np.concatenate(columns, axis=1)
