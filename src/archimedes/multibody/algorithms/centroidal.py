"""Centre of mass and momentum of the moving bodies.

Legend: c is the centre of mass, h = (linear, angular momentum about c) in axes of the world, and
A the matrix with ``h = A v``: the momentum of what a joint carries, for each column of the joint.
Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.algorithms.jacobians import matrix
from archimedes.multibody.algorithms.kinematics import world_poses
from archimedes.multibody.algorithms.links import (
    columns_of,
    coordinates_of,
    inertias_of,
    leading_axes,
    poses_of,
    speeds_of,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import (
    Pose,
    Spatial,
    force_to_parent,
    momentum,
    rigid_sum,
    rigid_to_parent,
)
from archimedes.spatial.components import matvec

__all__ = ["center_of_mass", "centroidal_matrix", "centroidal_momentum", "first_moment"]


def center_of_mass(model: Model, q: Any) -> Any:
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


def first_moment(model: Model, q: Any) -> Any:
    """Return the sum (3,) of the masses times the places of their centres in the world."""
    X = world_poses(model, poses_of(model, coordinates_of(model, q)))
    total: Any = np.zeros(3)
    for i, at in enumerate(X):
        total = total + model.masses[i] * (at.p + matvec(at.R, model.centers[i]))
    return total


def centroidal_momentum(model: Model, q: Any, v: Any) -> Any:
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
    speeds = speeds_of(model, v)
    return sum_of([A[..., :, k] * np.asarray(s)[..., None] for k, s in enumerate(speeds)])


def sum_of(parts: list[Any]) -> Any:
    """Return the sum of arrays."""
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def centroidal_matrix(model: Model, q: Any) -> Any:
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
    qs = coordinates_of(model, q)
    X, S = poses_of(model, qs), columns_of(model, qs)
    Ic = inertias_of(model)
    for i in reversed(range(len(model.links))):
        parent = model.links[i].parent
        if parent >= 0:
            Ic[parent] = rigid_sum(Ic[parent], rigid_to_parent(X[i], Ic[i]))
    c = center_of_mass(model, q)
    columns: list[tuple[int, Spatial]] = []
    for i, at in enumerate(world_poses(model, X)):
        about = Pose(at.R, at.p - c)
        columns += [(k, force_to_parent(about, momentum(Ic[i], column))) for k, column in S[i]]
    return matrix(model, leading_axes(q), columns)
