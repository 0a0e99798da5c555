"""Losses that give outliers less weight than squares do, as in SciPy.

Of a residual r the cost is s^2 rho((r / s)^2) / 2 with s = ``f_scale``. Each loss returns rho and
rho' at z. (P. Huber, "Robust statistics", Wiley 1981, section 7.8: reweighted least squares.)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["LOSSES", "Loss", "scaled"]

Loss = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def linear(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares themselves."""
    return z, np.ones_like(z)


def soft_l1(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares of small residuals, sizes of large ones, without a corner."""
    t = 1.0 + z
    return 2.0 * (np.sqrt(t) - 1.0), t**-0.5


def huber(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Squares up to f_scale, then sizes."""
    inside, t = z <= 1.0, np.maximum(z, 1.0)
    return np.where(inside, z, 2.0 * np.sqrt(t) - 1.0), np.where(inside, 1.0, t**-0.5)


def cauchy(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms: far outliers hardly count."""
    return np.log1p(z), 1.0 / (1.0 + z)


def arctan(z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bounded: one residual costs no more than pi/2 s^2 / 2."""
    return np.arctan(z), 1.0 / (1.0 + z**2)


LOSSES: dict[str, Loss] = {
    "linear": linear,
    "soft_l1": soft_l1,
    "huber": huber,
    "cauchy": cauchy,
    "arctan": arctan,
}


def scaled(loss: Loss, scale: float, r: np.ndarray, J: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return residuals and Jacobian, weighted, whose squares have the cost's gradient.

    The weights are sqrt(rho'). Losses bend down as z grows, so that the true cost falls at least as
    much as these squares do: steps need no second derivative, and are never misled by one.

    >>> scaled(linear, 1.0, np.array([2.0]), np.array([[1.0]]))
    (array([2.]), array([[1.]]))
    """
    weight = np.sqrt(loss((r / scale) ** 2)[1])
    return r * weight, J * weight[:, None]
