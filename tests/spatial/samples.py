"""Rotations and helpers that several tests of spatial share."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.spatial.transform import Rotation

from archimedes.spatial import (
    EulerAngles,
    ModifiedRodrigues,
    Quaternion,
    RotationMatrix,
    RotationVector,
)

LETTERS = ["".join(p) for p in itertools.product("xyz", repeat=3) if p[0] != p[1] != p[2]]
#: All 24 sequences of three axes: 12 extrinsic, 12 intrinsic.
SEQUENCES = LETTERS + [s.upper() for s in LETTERS]
SHORT = ["x", "y", "z", "X", "Z", "xy", "zy", "ZY", "XZ", "zx"]

CLASSES = [Quaternion, EulerAngles, RotationMatrix, RotationVector, ModifiedRodrigues]

ANGLES = np.array([0.1, 0.2, 0.3])


def is_proper(seq: str) -> bool:
    """Whether the first and last axes are equal (gimbal lock at 0 and pi)."""
    return seq[0] == seq[2]


def scipy_of(attitude) -> Rotation:
    """The SciPy rotation with the same quaternion (active where ours is passive)."""
    return Rotation.from_quat(attitude.as_quat().array, scalar_first=True)


def passive(rotation: Rotation) -> np.ndarray:
    """The passive matrices of SciPy's active rotations."""
    return np.swapaxes(rotation.as_matrix(), -1, -2)


def turns(rotation: Rotation) -> np.ndarray:
    """Quaternions, scalar first."""
    return rotation.as_quat(scalar_first=True)


def up_to_sign(a: np.ndarray, b: np.ndarray) -> float:
    """Largest difference of quaternions, either sign."""
    both = np.minimum(np.abs(a - b).max(axis=-1), np.abs(a + b).max(axis=-1))
    return float(both.max())


def wrapped(x: np.ndarray) -> np.ndarray:
    """Angles taken to [-pi, pi)."""
    return (x + np.pi) % (2 * np.pi) - np.pi


def conditioning(angles: np.ndarray, seq: str) -> np.ndarray:
    """What errors of the outer angles are divided by near gimbal lock."""
    middle = angles[..., 1]
    return np.abs(np.sin(middle) if is_proper(seq) else np.cos(middle))
