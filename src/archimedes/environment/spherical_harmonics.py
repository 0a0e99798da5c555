"""Fields given by spherical harmonics of any degree, without a singularity at the poles.

Legend: (s, t, u) is the direction of the point, A[m] the fully normalised Legendre functions of one
degree n divided by cos(lat)^m, r[m] + i i[m] = (s + i t)^m, D E F the combinations of coefficients
in Pines' paper, a1 to a4 his sums. The loop runs over degrees; each of its rounds works on the row
of all orders, so that the program does not grow with the square of the degree.
Source: Pines, AIAA Journal 11 (1973) 1508; normalised recursions of Lundberg and Schutz, Journal of
Guidance 11 (1988) 31.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_struct
from archimedes.environment.geodesy import WGS84
from archimedes.environment.gravity import check_away_from_centre, length_squared
from archimedes.function import scan
from archimedes.tree import field, struct
from archimedes.typing import Array, Matrix, Scalar, Vec3

__all__ = ["SphericalHarmonicGravity"]


class Tables:
    """Factors of the recursions up to a degree, one row per degree from 1 on."""

    def __init__(self, degree: int) -> None:
        shape = (degree, degree + 1)
        self.one_back, self.two_back = np.zeros(shape), np.zeros(shape)
        self.diagonal, self.slope = np.zeros(shape), np.zeros(shape)
        sectoral = 1.0
        for n in range(1, degree + 1):
            row = n - 1
            sectoral *= math.sqrt((2.0 if n == 1 else 1.0) * (2 * n + 1) / (2 * n))
            self.diagonal[row, n] = sectoral
            for m in range(n + 1):
                if m < n:
                    across = (n - m) * (n + m)
                    self.one_back[row, m] = math.sqrt((2 * n - 1) * (2 * n + 1) / across)
                    if m < n - 1:
                        self.two_back[row, m] = math.sqrt(
                            (2 * n + 1) * (n + m - 1) * (n - m - 1) / (across * (2 * n - 3))
                        )
                    self.slope[row, m] = math.sqrt((0.5 if m == 0 else 1.0) * (n - m) * (n + m + 1))


def check_coefficients(field: Any, *names: str) -> None:
    """Raise where the coefficients of a field are not finite, square and of the same shape."""
    shapes = []
    for name in names:
        array = as_array(getattr(field, name), name)
        check_finite(array, f"{type(field).__name__}.{name}")
        shapes.append(tuple(array.shape))
    if len(set(shapes)) > 1 or len(shapes[0]) != 2 or len(set(shapes[0])) != 1:
        raise ValueError(
            f"{type(field).__name__}: {' and '.join(names)} must be square and of the same shape "
            f"(degree + 1, degree + 1), got {' and '.join(map(str, shapes))}"
        )


def harmonic_gradient(p: Vec3, scale: Scalar, radius: Scalar, C: Matrix, S: Matrix) -> Any:
    """Return the gradient (..., 3) of a potential in spherical harmonics at positions (..., 3).

    The potential is ``scale / r * sum (radius / r)^n P_nm (C_nm cos(m lon) + S_nm sin(m lon))``,
    with fully normalised coefficients `C` and `S` (degree + 1, degree + 1), first index n.
    """
    degree = C.shape[0] - 1
    r2 = length_squared(p)
    r = np.sqrt(r2)
    direction = p / r[..., None]
    s, t, u = (direction[..., k, None] for k in range(3))
    ratio = (radius / r)[..., None]
    real, imaginary = _powers(s[..., 0], t[..., 0], degree)
    tables = Tables(degree)
    orders = np.arange(degree + 1.0)
    zero = np.zeros_like(u)

    def shift(row: Array) -> Any:  # row[m - 1]
        return np.concatenate([zero, row[..., :-1]], axis=-1)

    real1, imaginary1 = shift(real), shift(imaginary)

    def of_degree(carry: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, Any]:
        A1, A2, power, a1, a2, a3, a4 = carry
        n, c, sn, one_back, two_back, diagonal, slope = row
        A = one_back * u * A1 - two_back * A2 + diagonal
        power = power * ratio
        higher = slope * np.concatenate([A[..., 1:], zero], axis=-1)
        D = c * real + sn * imaginary
        mA = orders * A
        a1 = a1 + power * mA * (c * real1 + sn * imaginary1)
        a2 = a2 + power * mA * (sn * real1 - c * imaginary1)
        a3 = a3 + power * higher * D
        a4 = a4 - power * ((n + orders + 1.0) * A + u * higher) * D
        return (A, A1, power, a1, a2, a3, a4), None

    empty = zero + np.zeros(degree + 1)
    first = empty + (orders == 0.0)
    carry = (first, empty, zero + 1.0, empty, empty, empty, -C[0, 0] * first)
    rows = (
        np.arange(1.0, degree + 1.0),
        *(C[1:], S[1:], tables.one_back, tables.two_back, tables.diagonal, tables.slope),
    )
    if degree > 0:
        carry, _ = scan(of_degree, carry, rows)
    a1, a2, a3, a4 = (np.sum(total, axis=-1, keepdims=True) for total in carry[3:])
    return (scale / r2)[..., None] * np.concatenate(
        [a1 + s * a4, a2 + t * a4, a3 + u * a4], axis=-1
    )


def _powers(s: Scalar, t: Scalar, degree: int) -> tuple[Any, Any]:
    """Return real and imaginary parts (..., degree + 1) of (s + i t)^m."""

    def times(carry: tuple[Any, ...], _: object) -> tuple[Any, Any]:
        real, imaginary = carry
        return (real * s - imaginary * t, real * t + imaginary * s), carry

    one = np.ones_like(s)
    _, (real, imaginary) = scan(times, (one, np.zeros_like(s)), length=degree + 1)
    return np.moveaxis(real, 0, -1), np.moveaxis(imaginary, 0, -1)


@struct
class SphericalHarmonicGravity:
    """Gravitational attraction by spherical harmonics of any degree.

    Positions are in Earth-fixed axes.

    Parameters
    ----------
    mu : float, optional
        Gravitational parameter in m^3/s^2. By default that of the Earth.
    radius : float, optional
        Reference radius in m.
    C : array (n + 1, n + 1), optional
        Fully normalized cosine coefficients, indexed by degree and order; ``C[0, 0]`` is 1.
    S : array (n + 1, n + 1), optional
        Fully normalized sine coefficients.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import SphericalHarmonicGravity
    >>> C = np.zeros((3, 3)); C[0, 0] = 1.0; C[2, 0] = -4.84165371736e-4
    >>> model = SphericalHarmonicGravity(3.986004415e14, 6378136.3, C, np.zeros((3, 3)))
    >>> model(np.array([7e6, 0.0, 0.0])).round(6)
    array([-8.14567,  0.     ,  0.     ])
    """

    mu: float = field(units="m^3/s^2", default=WGS84.mu)
    radius: float = field(units="m", default=WGS84.a)
    C: Any = field(default_factory=lambda: np.ones((1, 1)))
    S: Any = field(default_factory=lambda: np.zeros((1, 1)))

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_struct(self, positive="mu radius")
        check_coefficients(self, "C", "S")

    def __call__(self, p_E: Vec3) -> Any:
        """Return the attraction (..., 3) at positions (..., 3) in Earth-fixed axes."""
        C, S = as_array(self.C, "C"), as_array(self.S, "S")
        return harmonic_gradient(check_away_from_centre(p_E), self.mu, self.radius, C, S)
