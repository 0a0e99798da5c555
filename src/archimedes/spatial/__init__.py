"""Attitudes, transforms, frames and rigid bodies: plain NumPy code on arrays and structs."""

from __future__ import annotations

from archimedes.spatial.attitude import Attitude
from archimedes.spatial.earth_referenced import EarthReferencedBody
from archimedes.spatial.euler_angles import EulerAngles
from archimedes.spatial.modified_rodrigues import ModifiedRodrigues
from archimedes.spatial.quaternion import Quaternion
from archimedes.spatial.rigid_body import RigidBody
from archimedes.spatial.rotation_matrix import RotationMatrix
from archimedes.spatial.rotation_vector import RotationVector

__all__ = [
    "Attitude",
    "EarthReferencedBody",
    "EulerAngles",
    "ModifiedRodrigues",
    "Quaternion",
    "RigidBody",
    "RotationMatrix",
    "RotationVector",
]
