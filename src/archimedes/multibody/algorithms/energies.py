"""Kinetic and potential energy of the moving bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.algorithms.centroidal import first_moment
from archimedes.multibody.algorithms.jacobians import link_velocities
from archimedes.multibody.algorithms.links import (
    check_state,
    inertias_of,
    leading_axes,
    spread,
)
from archimedes.multibody.models.model import Model
from archimedes.multibody.models.spatial_algebra import dot, momentum

__all__ = ["kinetic_energy", "potential_energy"]


def kinetic_energy(model: Model, q: Any, v: Any) -> Any:
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
        total = total + dot(velocity, momentum(I, velocity))
    return spread(0.5 * total, leading_axes(q, v))


def potential_energy(model: Model, q: Any) -> Any:
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
