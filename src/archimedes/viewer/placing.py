"""From the axes of a model to those of a scene: flat Earth, turning Earth, inertial, robots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.environment import ecef_to_geodetic, ned
from archimedes.spatial import Quaternion
from archimedes.spatial.attitudes.quaternions import quaternion_multiply
from archimedes.viewer.scene import Earth, Ground

__all__ = ["Placing", "placing_of"]

#: From north, east, down to axes with z up: x is east, y north.
R_UP_NED = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
#: Flights on the ellipsoid that stay within this many m are shown above a level ground.
LOCAL = 150e3


@dataclass(frozen=True, eq=False)
class Placing:
    """How the world's coordinates become the scene's: ``R (p - origin)``; what lies below."""

    R: np.ndarray
    origin: np.ndarray
    ground: Ground | None = None
    earth: Earth | None = None

    def points(self, p: Any) -> np.ndarray:
        """Return positions (..., 3) in the scene."""
        return (np.asarray(p, dtype=float) - self.origin) @ self.R.T

    def vectors(self, v: Any) -> np.ndarray:
        """Return vectors (..., 3) in the axes of the scene."""
        return np.asarray(v, dtype=float) @ self.R.T

    def attitudes(self, q: Any) -> np.ndarray:
        """Return the attitudes of bodies (..., 4) in the axes of the scene."""
        q = np.asarray(getattr(q, "array", q), dtype=float)
        # A quaternion's matrix takes the scene's axes to the world's here: the other way round.
        own = np.asarray(Quaternion.from_matrix(self.R.T).array)
        return np.asarray(quaternion_multiply(np.broadcast_to(own, q.shape), q))


def placing_of(world: Any, pos: Any) -> Placing:
    """Return the placing for a vehicle's world and where it goes, `pos` (..., 3)."""
    ellipsoid = getattr(world, "ellipsoid", None)
    if ellipsoid is None:
        return Placing(R_UP_NED, np.zeros(3), ground=Ground(0.0))
    flat = np.asarray(pos, dtype=float).reshape(-1, 3)
    first = flat[0]
    reach = np.nanmax(np.linalg.norm(flat - first, axis=1))
    if reach > LOCAL:
        return Placing(np.eye(3), np.zeros(3), earth=Earth(float(ellipsoid.a)))
    lat, lon, alt = ecef_to_geodetic(first, ellipsoid)
    R_NE = np.asarray(ned(lat, lon).as_matrix())
    below = first - float(alt) * -R_NE[2]
    return Placing(R_UP_NED @ R_NE, below, ground=Ground(0.0))
