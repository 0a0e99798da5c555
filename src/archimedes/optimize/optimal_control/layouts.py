"""Where the unknowns of a mesh are.

They are [t0, tf, p, states in order of time, controls in order of time], each divided by its size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.optimize.optimal_control.schemes import Scheme

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """Where the unknowns of a mesh are; see the module's text."""

    scheme: Scheme
    count: int  # intervals
    np_: int
    nx: int
    nu: int

    @property
    def head(self) -> int:
        """Numbers before the states."""
        return 2 + self.np_

    @property
    def state_count(self) -> int:
        """Points with states."""
        return self.count * (len(self.scheme.state_points) - 1) + 1

    @property
    def control_count(self) -> int:
        """Points with controls."""
        b = len(self.scheme.control_points)
        return self.count * (b - 1) + 1 if self.scheme.shares_controls else self.count * b

    @property
    def size(self) -> int:
        """All unknowns."""
        return self.head + self.state_count * self.nx + self.control_count * self.nu

    def state_index(self) -> np.ndarray:
        """Where the states of each interval are, (count, points, nx)."""
        a = len(self.scheme.state_points)
        points = np.arange(self.count)[:, None] * (a - 1) + np.arange(a)
        return self.head + points[:, :, None] * self.nx + np.arange(self.nx)

    def control_index(self) -> np.ndarray:
        """Where the controls of each interval are, (count, points, nu)."""
        b = len(self.scheme.control_points)
        stride = b - 1 if self.scheme.shares_controls else b
        points = np.arange(self.count)[:, None] * stride + np.arange(b)
        start = self.head + self.state_count * self.nx
        return start + points[:, :, None] * self.nu + np.arange(self.nu)

    def state_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all states."""
        return self._times(mesh, self.scheme.state_points[:-1], [1.0])

    def control_times(self, mesh: np.ndarray) -> np.ndarray:
        """Return s of all controls."""
        points = self.scheme.control_points
        return self._times(
            mesh,
            points[:-1] if self.scheme.shares_controls else points,
            [1.0] if self.scheme.shares_controls else [],
        )

    def order(self, mesh: np.ndarray) -> np.ndarray:
        """Return the time of each unknown, nan for those that touch every interval."""
        states = np.repeat(self.state_times(mesh), self.nx)
        controls = np.repeat(self.control_times(mesh), self.nu)
        return np.concatenate([np.full(self.head, np.nan), states, controls])

    def _times(self, mesh: np.ndarray, points: Any, last: list[float]) -> np.ndarray:
        h = np.diff(mesh)
        return np.append((mesh[:-1, None] + h[:, None] * np.array(points)).ravel(), last)
