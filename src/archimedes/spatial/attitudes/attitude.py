"""What an attitude is: the `Attitude` protocol.

An attitude says how frame B lies in frame E: ``as_matrix()`` is R_BE, which takes E-coordinates to
B-coordinates (passive).
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from archimedes.checks import as_array
from archimedes.spatial.components import matvec, transpose

__all__ = ["Attitude", "rotate_vectors"]


@runtime_checkable
class Attitude(Protocol):
    """The four methods that make a class an attitude; any class that has them will do.

    `RigidBody`, `Transformation` and `KinematicTree` ask for no more.

    Parameters
    ----------
    *args
        Arguments of the class.
    **kwargs
        Keyword arguments of the class.

    Examples
    --------
    >>> from archimedes.spatial import Attitude, Quaternion
    >>> isinstance(Quaternion.identity(), Attitude)
    True
    """

    def as_matrix(self) -> np.ndarray:
        """Return R_BE (3, 3), which takes E-coordinates to B-coordinates."""

    def rotate(self, vectors: np.ndarray, inverse: bool = False) -> np.ndarray:
        """Return ``R_BE @ vectors`` for (3,) or (3, N); the transpose if `inverse`.

        Parameters
        ----------
        vectors : array (3,) or (3, N)
            Vectors in E.
        inverse : bool, optional
            Transform from B to E instead. False by default.
        """

    def inv(self) -> Attitude:
        """Return the attitude of E in B."""

    def kinematics(self, w_B: np.ndarray) -> Attitude:
        """Return the rate of change, in the same class, for the body rate `w_B` in rad/s.

        Parameters
        ----------
        w_B : array (..., 3)
            Angular velocity in rad/s, in body axes.
        """


def rotate_vectors(matrix: Any, vectors: Any, inverse: bool = False) -> Any:
    """Apply one matrix to (3,) or (3, N), or matrices (..., 3, 3) to broadcast (..., 3)."""
    v = as_array(vectors, "vectors")
    m = transpose(matrix) if inverse else matrix
    if m.ndim == 2:
        if v.ndim not in (1, 2) or v.shape[0] != 3:
            raise ValueError(
                f"vectors must have shape (3,) or (3, N) for one attitude, got {tuple(v.shape)}"
            )
        return m @ v
    if tuple(v.shape[-1:]) != (3,):
        raise ValueError(
            f"vectors must have shape (3,) or (..., 3) for a batch of attitudes, got "
            f"{tuple(v.shape)}"
        )
    return matvec(m, v)
