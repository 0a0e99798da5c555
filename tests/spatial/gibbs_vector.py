"""An attitude class of a user's, in a file of its own: the Gibbs vector, axis * tan(angle / 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

import archimedes as arc
from archimedes.spatial import AttitudeBase, quaternion_normalize


@arc.struct
class GibbsVector(AttitudeBase, name="gibbs"):
    array: Any

    def quaternion(self):
        ones = np.ones_like(self.array[..., :1])
        return quaternion_normalize(np.concatenate([ones, self.array], axis=-1))

    @classmethod
    def of_quaternion(cls, q):
        return cls(q[..., 1:] / q[..., :1])

    def kinematics(self, w_B):
        g = self.array
        along = np.sum(g * w_B, axis=-1, keepdims=True)
        return self.like(0.5 * (w_B + np.cross(g, w_B) + g * along))
