"""Fields given by spherical harmonics of any degree: gravity, and the Earth's magnetic field.

There is no singularity at the poles. Legend: (s, t, u) is the direction of the point, A[m] the
fully normalised Legendre functions of one degree n divided by cos(lat)^m, r[m] + i i[m] =
(s + i t)^m, D E F the combinations of coefficients in Pines' paper, a1 to a4 his sums. The loop
runs over degrees; each of its rounds works on the row of all orders, so that the program does not
grow with the square of the degree. B_E is the magnetic field in tesla in Earth-fixed axes; g and h
are Schmidt semi-normalised coefficients, as the World Magnetic Model and the IGRF publish them, in
nT.
Source: Pines, AIAA Journal 11 (1973) 1508; normalised recursions of Lundberg and Schutz, Journal of
Guidance 11 (1988) 31.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_struct
from archimedes.environment.geodesy import WGS84
from archimedes.environment.gravity import check_away_from_centre, length_squared
from archimedes.function import scan
from archimedes.tree import field, struct
from archimedes.typing import Array, Matrix, Scalar, Vec3

__all__ = [
    "MagneticDipole",
    "MagneticField",
    "SphericalHarmonicGravity",
    "read_magnetic_coefficients",
]


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
                        above = (2 * n + 1) * (n + m - 1) * (n - m - 1)
                        self.two_back[row, m] = math.sqrt(above / (across * (2 * n - 3)))
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
    total = np.concatenate([a1 + s * a4, a2 + t * a4, a3 + u * a4], axis=-1)
    return (scale / r2)[..., None] * total


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


#: Radius in m to which geomagnetic coefficients refer.
REFERENCE_RADIUS = 6371200.0
#: Highest degree that is read: the Enhanced Magnetic Model has 790.
_MOST = 1000


@struct
class MagneticDipole:
    """The field of a magnetic dipole at the centre of the Earth, ``(a / r)^3 (3 (m . u) u - m)``.

    Parameters
    ----------
    moment : array (3,), optional
        Dipole moment in T at the reference radius, ``(g11, h11, g10)`` of a geomagnetic model. By
        default that of the year 2020 (IGRF-13: Alken et al., Earth Planets Space 73 (2021) 49).
    radius : float, optional
        Reference radius in m.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import MagneticDipole
    >>> (1e9 * MagneticDipole()(np.array([6371200.0, 0.0, 0.0]))).round(1)
    array([-2901.8, -4652.5, 29404.8])
    """

    moment: Any = field(
        units="T", default_factory=lambda: 1e-9 * np.array([-1450.9, 4652.5, -29404.8])
    )
    radius: float = field(units="m", default=REFERENCE_RADIUS)

    def __post_init__(self) -> None:
        """Check the radius where it is known."""
        check_struct(self, positive="radius")

    def __call__(self, p_E: Vec3) -> Any:
        """Return the field B_E (..., 3) in T at positions (..., 3)."""
        p_E = check_away_from_centre(p_E)
        r2 = length_squared(p_E)
        r = np.sqrt(r2)
        u, m = p_E / r[..., None], as_array(self.moment, "moment")
        along = 3.0 * np.sum(u * m, axis=-1)
        return (self.radius**3 / (r2 * r))[..., None] * (along[..., None] * u - m)


@struct
class MagneticField:
    """A main field of Schmidt semi-normalized coefficients, with its secular variation.

    `read_magnetic_coefficients` reads the files that are published with the World Magnetic Model.

    Parameters
    ----------
    g : array (n + 1, n + 1)
        Cosine coefficients in nT, indexed by degree and order.
    h : array (n + 1, n + 1)
        Sine coefficients in nT.
    dg : array (n + 1, n + 1), optional
        Secular variation of `g` in nT per year. None by default.
    dh : array (n + 1, n + 1), optional
        Secular variation of `h` in nT per year. None by default.
    epoch : float, optional
        Decimal year that the coefficients belong to.
    radius : float, optional
        Reference radius in m.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.environment import MagneticField
    >>> g = np.zeros((2, 2)); g[1, 0] = -29404.8
    >>> (1e9 * MagneticField(g, np.zeros((2, 2)))(np.array([6371200.0, 0.0, 0.0]))).round(1)
    array([   -0. ,    -0. , 29404.8])
    """

    g: Any = field(units="nT")
    h: Any = field(units="nT")
    dg: Any = field(units="nT/yr", default=None)
    dh: Any = field(units="nT/yr", default=None)
    epoch: float = field(units="yr", default=2020.0)
    radius: float = field(units="m", default=REFERENCE_RADIUS)

    def __post_init__(self) -> None:
        """Check the shapes."""
        check_coefficients(self, "g", "h")
        if (self.dg is None) != (self.dh is None):
            raise ValueError("MagneticField: give both dg and dh, or neither")

    def __call__(self, p_E: Vec3, year: Scalar | None = None) -> Any:
        """Return the field B_E (..., 3) in T at positions (..., 3), in the decimal `year`."""
        p_E = check_away_from_centre(p_E)
        g, h = as_array(self.g, "g"), as_array(self.h, "h")
        if self.dg is not None and year is not None:
            g = g + (year - self.epoch) * as_array(self.dg, "dg")
            h = h + (year - self.epoch) * as_array(self.dh, "dh")
        # Schmidt's functions are the fully normalised ones over sqrt(2 n + 1).
        full = 1.0 / np.sqrt(2.0 * np.arange(g.shape[0]) + 1.0)[:, None]
        scale = -1e-9 * self.radius**2
        return harmonic_gradient(p_E, scale, self.radius, g * full, h * full)


def read_magnetic_coefficients(path: str | os.PathLike[str]) -> MagneticField:
    r"""Read a coefficient file of the World Magnetic Model.

    Parameters
    ----------
    path : path
        The file, such as ``WMM.COF``. Its first line has the epoch, each other line n, m, g, h, dg,
        dh; a line of nines ends it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from archimedes.environment import read_magnetic_coefficients
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "dipole.cof")
    ...     lines = ["2025.0 dipole 01/01/2025", "1 0 -29351.8 0.0 12.0 0.0",
    ...              "1 1 -1410.8 4545.4 9.7 -21.5", "999999999"]
    ...     _ = file.write_text("\n".join(lines))
    ...     field = read_magnetic_coefficients(file)
    >>> field.epoch, float(field.g[1, 0])
    (2025.0, -29351.8)
    """
    lines = [line for line in Path(path).read_text().splitlines() if line.strip(" 9\t")]
    try:
        epoch = float(lines[0].split()[0])
        rows = np.array([line.split() for line in lines[1:]], dtype=float).reshape(-1, 6)
        check_finite(rows, "a coefficient")
    except (IndexError, ValueError):
        raise ValueError(
            f"{path} is not a file of magnetic coefficients: its first line must begin with the "
            "epoch, and each other line must hold n, m, g, h, dg, dh"
        ) from None
    if not len(rows):
        raise ValueError(f"{path} holds no coefficients: lines of n, m, g, h, dg, dh")
    n, m = rows[:, 0], rows[:, 1]
    if n.max() > _MOST:
        raise ValueError(f"{path} holds a degree beyond {_MOST}, more than any published model")
    wrong = (m < 0) | (m > n) | (n != np.rint(n)) | (m != np.rint(m))
    if wrong.any():
        raise ValueError(
            f"{path}: n = {n[wrong][0]}, m = {m[wrong][0]} are not a valid degree and order"
        )
    tables = np.zeros((4, int(n.max()) + 1, int(n.max()) + 1))
    tables[:, n.astype(int), m.astype(int)] = rows[:, 2:].T
    g, h, dg, dh = tables
    return MagneticField(g, h, dg, dh, epoch)
