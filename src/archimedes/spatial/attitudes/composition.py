"""Products of attitudes of any two classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.spatial.attitudes.attitude_base import AttitudeBase
from archimedes.spatial.attitudes.quaternion import Quaternion
from archimedes.spatial.attitudes.rotation_matrix import RotationMatrix

__all__ = ["compose"]


def compose(first: Any, then: Any) -> Any:
    """Return the attitude of C in E for the attitudes of B in E and of C in B.

    A `Quaternion` for our own classes, since products of the others have singularities of their
    own; a `RotationMatrix` where the first is one, or is of a user's class.
    """
    if isinstance(first, AttitudeBase) and first.item_ndim == 1:
        return Quaternion.make(first.quaternion()).mul(then)
    return RotationMatrix.make(np.matmul(then.as_matrix(), first.as_matrix()))
