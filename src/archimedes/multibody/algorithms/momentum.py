"""Centre of mass, momentum and energies of the moving bodies.

Legend: c is the centre of mass, h = (linear, angular momentum about c) in axes of the world, and
A the matrix with ``h = A v``: the momentum of what a joint carries, for each column of the joint.
Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.multibody.algorithms.kinematics import (
    column_matrix,
    link_velocities,
    world_poses,
)
from archimedes.multibody.algorithms.links import (
    broadcast_result,
    check_coordinates,
    check_state,
    inertias_of,
    leading_axes,
    links_at,
)
from archimedes.spatial.components import matvec
from archimedes.spatial.spatial_algebra import Pose, Spatial
from archimedes.typing import ArrayLike, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = [
    "center_of_mass",
    "centroidal_matrix",
    "centroidal_momentum",
    "kinetic_energy",
    "potential_energy",
]


def center_of_mass(model: Model, q: ArrayLike) -> Vec3:
    """Return the centre of mass of the moving bodies.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (..., 3)
        Position in m, in the world.

    Examples
    --------
    >>> from archimedes.multibody import Builder, center_of_mass
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1], position=[0, 0, 1])
    >>> center_of_mass(b.build(), [0.0])
    array([0.5, 0. , 1. ])
    """
    return first_moment(model, q) / np.sum(model.masses)


def first_moment(model: Model, q: ArrayLike) -> Vec3:
    """Return the sum (3,) of the masses times the positions of their centres in the world."""
    X = world_poses(model, links_at(model, q).X)
    total: Any = np.zeros(3)
    for i, at in enumerate(X):
        total = total + model.masses[i] * (at.p + matvec(at.R, model.centers[i]))
    return total


def centroidal_momentum(model: Model, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the momentum of the moving bodies, in axes of the world.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Returns
    -------
    array (..., 6)
        Linear momentum in kg m/s, then angular momentum about the centre of mass in kg m^2/s.

    Examples
    --------
    >>> from archimedes.multibody import Builder, centroidal_momentum
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> centroidal_momentum(b.build(), [0.0], [1.0])
    array([0. , 1. , 0. , 0. , 0. , 0.1])
    """
    A = centroidal_matrix(model, q)
    v = check_coordinates(model, v, "v")
    return reduce(add, [A[..., :, k] * v[..., k, None] for k in range(model.nv)])


def centroidal_matrix(model: Model, q: ArrayLike) -> Matrix:
    """Return the centroidal momentum matrix A (6, nv), with ``centroidal_momentum == A @ v``.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Examples
    --------
    >>> from archimedes.multibody import Builder, centroidal_matrix
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> centroidal_matrix(b.build(), [0.0]).T
    array([[0. , 1. , 0. , 0. , 0. , 0.1]])
    """
    _, X, S = links_at(model, q)
    Ic = inertias_of(model)
    for i in reversed(range(len(model.links))):
        parent = model.links[i].parent
        if parent >= 0:
            Ic[parent] = Ic[parent] + Ic[i].to_parent(X[i])
    c = center_of_mass(model, q)
    columns: list[tuple[int, Spatial]] = []
    for i, at in enumerate(world_poses(model, X)):
        about = Pose(at.R, at.p - c)
        columns += [(k, about.force_to_parent(Ic[i] @ column)) for k, column in S[i]]
    return column_matrix(model, leading_axes(q), columns)


def kinetic_energy(model: Model, q: ArrayLike, v: ArrayLike) -> Scalar:
    """Return the kinetic energy in J; armature is included.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Examples
    --------
    >>> from archimedes.multibody import Builder, kinetic_energy
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> round(float(kinetic_energy(b.build(), [0.0], [1.0])), 12)
    0.3
    """
    q, v = check_state(model, q=q, v=v)
    total = np.sum(model.armature * v * v, axis=-1)
    for I, velocity in zip(inertias_of(model), link_velocities(model, q, v), strict=True):
        total = total + velocity.dot(I @ velocity)
    return broadcast_result(0.5 * total, leading_axes(q, v))


def potential_energy(model: Model, q: ArrayLike) -> Scalar:
    """Return the potential energy in J, zero at the origin of the world.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.

    Examples
    --------
    >>> from archimedes.multibody import Builder, potential_energy
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1], position=[0, 0, 1])
    >>> round(float(potential_energy(b.build(), [0.0])), 12)
    19.62
    """
    return -np.sum(first_moment(model, q) * model.gravity, axis=-1)
