"""Meshes made finer where the error is largest."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["refined"]

#: An interval is cut into at most this many at a time.
MOST = 4


def refined(solution: Any, tol: float, order: int) -> np.ndarray | None:
    """Return a mesh on which errors should be below ``tol``, or None if they are.

    An interval whose error is e is cut into (e / tol)^(1/(order + 1)) parts, at most ``MOST``.
    """
    if not tol > 0:
        raise ValueError(f"mesh_tol = {tol} must be positive")
    errors, mesh = solution.errors, solution.mesh
    if np.all(errors <= tol):
        return None
    wanted = np.ceil((np.maximum(errors, 1e-300) / tol) ** (1.0 / (order + 1)))
    parts = np.clip(wanted, 1, MOST).astype(int)
    parts = np.where((errors > tol) & (parts < 2), 2, parts)
    pieces = [np.linspace(a, b, n, endpoint=False) for a, b, n in zip(mesh[:-1], mesh[1:], parts)]
    return np.append(np.concatenate(pieces), 1.0)
