"""Fields given by spherical harmonics of any degree: gravity, and the Earth's magnetic field.

There is no singularity at the poles. Legend: (s, t, u) is the direction of the point, A[m] the
fully normalised Legendre functions of one degree n divided by cos(lat)^m, r[m] + i i[m] =
(s + i t)^m, D E F the combinations of coefficients in Pines' paper, a1 to a4 his sums. The loop
runs over degrees; each of its rounds works on the row of all orders, so that the program does not
grow with the square of the degree. B_E is the magnetic field in tesla in Earth-fixed axes; g and h
are Schmidt semi-normalised coefficients, as the World Magnetic Model and the IGRF publish them, in
nT.
Source: Pines, AIAA Journal 11 (1973) 1508; normalised recursions of Lundberg and Schutz, Journal of
Guidance 11 (1988) 31. Format of SHC files: Swarm Level 2 Processing System, Product Specification,
SW-DS-DTU-GS-0001, ESA; IGRF-14: https://doi.org/10.5281/zenodo.14012302.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.checks import (
    as_array,
    as_finite,
    check_finite,
    check_increasing,
    check_struct,
    check_that,
)
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


def check_coefficients(
    field: Any, *names: str, lead: tuple[int, ...] = (), degree: int | None = None
) -> None:
    """Raise where the coefficients of a field are not finite, square and of the same shape.

    `lead` are the axes before degree and order; `degree` is the number of degrees, if known.
    """
    shapes = []
    for name in names:
        array = as_array(getattr(field, name), name)
        check_finite(array, f"{type(field).__name__}.{name}")
        shapes.append(tuple(array.shape))
    size = shapes[0][-1] if degree is None and shapes[0] else degree
    if {(*lead, size, size)} != {*shapes}:
        wanted = ", ".join([*map(str, lead), "degree + 1, degree + 1"])
        raise ValueError(
            f"{type(field).__name__}: {' and '.join(names)} must be square and of the same shape "
            f"({wanted}), got {' and '.join(map(str, shapes))}"
        )


def harmonic_gradient(p: Vec3, scale: Scalar, radius: Scalar, C: Matrix, S: Matrix) -> Any:
    """Return the gradient (..., 3) of a potential in spherical harmonics at positions (..., 3).

    The potential is ``scale / r * sum (radius / r)^n P_nm (C_nm cos(m lon) + S_nm sin(m lon))``,
    with fully normalised coefficients `C` and `S` (..., degree + 1, degree + 1), first index n.
    """
    degree = C.shape[-1] - 1
    C, S = np.moveaxis(C, -2, 0), np.moveaxis(S, -2, 0)
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
    carry = (first, empty, zero + 1.0, empty, empty, empty, -C[0, ..., :1] * first)
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
    C: Any = field(units="", default_factory=lambda: np.ones((1, 1)))
    S: Any = field(units="", default_factory=lambda: np.zeros((1, 1)))

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
    """A main field of Schmidt semi-normalized coefficients that change with time.

    `read_magnetic_coefficients` reads the files that are published with the World Magnetic Model
    and the International Geomagnetic Reference Field (IGRF). Of the latter, the coefficients are
    polynomials of time between epochs: ``g[k] + dg[k] t`` with t the years since ``epoch[k]``.

    Parameters
    ----------
    g : array (n + 1, n + 1) or (epochs, n + 1, n + 1)
        Cosine coefficients in nT, indexed by degree and order.
    h : array of the same shape
        Sine coefficients in nT.
    dg : array, optional
        Secular variation of `g` in nT per year, of the same shape; or with one axis more, before
        the last two, the factors of t, t^2, ... None by default.
    dh : array, optional
        Secular variation of `h`, like `dg`. None by default.
    epoch : float or array (epochs,), optional
        Decimal year that the coefficients belong to, or years that increase.
    radius : float, optional
        Reference radius in m.
    years : (float, float), optional
        First and last decimal year that the coefficients are valid for. By default any.

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
    epoch: Any = field(units="yr", default=2020.0)
    radius: float = field(units="m", default=REFERENCE_RADIUS)
    years: tuple[float, float] | None = field(static=True, default=None)

    def __post_init__(self) -> None:
        """Check the shapes, and the numbers where they are known."""
        check_struct(self, positive="radius")
        if (self.dg is None) != (self.dh is None):
            raise ValueError("MagneticField: give both dg and dh, or neither")
        epoch = np.shape(self.epoch)
        if epoch:
            check_increasing(self.epoch, "MagneticField.epoch", 1)
        check_coefficients(self, "g", "h", lead=epoch)
        if self.dg is not None:
            g, dg = np.shape(self.g), np.shape(self.dg)
            powers = (dg[-3],) if len(dg) > len(g) else ()
            check_coefficients(self, "dg", "dh", lead=(*epoch, *powers), degree=g[-1])
        if self.years is not None:
            check_increasing(self.years, "MagneticField.years")

    def coefficients(self, year: Scalar | None = None) -> tuple[Any, Any]:
        """Return the coefficients g and h (..., n + 1, n + 1) in nT at a time.

        Parameters
        ----------
        year : array_like, optional
            Decimal year, or a batch. By default the epoch, where there is only one.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes.environment import MagneticField
        >>> g = np.array([[0.0, 0.0], [-30000.0, -2000.0]])
        >>> field = MagneticField(g, 0 * g, 0.001 * g, 0 * g, epoch=2020.0)
        >>> field.coefficients(2021.0)[0][1]
        array([-30030.,  -2002.])
        """
        g, h = as_array(self.g, "g"), as_array(self.h, "h")
        epoch = as_array(self.epoch, "epoch")
        if year is None and len(epoch.shape) == 0:
            return g, h
        if year is None:
            raise ValueError(
                "year must be given: the coefficients of this MagneticField change between epochs"
                + ("" if self.years is None else f", from {self.years[0]} to {self.years[1]}")
            )
        t = as_finite(year, "year")
        if self.years is not None:
            first, last = self.years
            check_that(
                lambda y: (y >= first) & (y <= last), t, "year",
                f"must lie within {first} to {last}, which the coefficients are valid for",
            )  # fmt: skip
            # While a function is being recorded, nothing is known and nan takes the error's place.
            t = np.where((t >= first) & (t <= last), t, np.nan)
        tables = [g, h, *((self.dg, self.dh) if self.dg is not None else ())]
        if epoch.shape:
            piece = np.sum(t[..., None] >= epoch[1:], axis=-1)
            tables = [np.take(as_array(x, "g"), piece, axis=0) for x in tables]
            epoch = np.take(epoch, piece)
        since = (t - epoch)[..., None, None]
        values = [x + 0.0 * since for x in tables[:2]]
        for k, rates in enumerate(tables[2:]):
            rates = as_array(rates, "dg")
            listed = len(np.shape(self.dg)) > len(g.shape)
            factors = np.moveaxis(rates, -3, 0) if listed else rates[None]
            change: Any = 0.0
            for j in reversed(range(factors.shape[0])):
                change = (change + factors[j]) * since
            values[k] = values[k] + change
        return values[0], values[1]

    def at(self, year: Scalar) -> MagneticField:
        """Return the field of one time, which needs no year: for a vehicle's flight, say.

        Parameters
        ----------
        year : float
            Decimal year.

        Examples
        --------
        >>> import numpy as np
        >>> from archimedes.environment import MagneticField
        >>> g = np.array([[0.0, 0.0], [-30000.0, -2000.0]])
        >>> field = MagneticField(g, 0 * g, 0.001 * g, 0 * g, epoch=2020.0).at(2021.0)
        >>> (1e9 * field(np.array([0.0, 0.0, 6371200.0]))).round(1) + 0.0
        array([  2002.,      0., -60060.])
        """
        g, h = self.coefficients(year)
        return MagneticField(g, h, epoch=year, radius=self.radius)

    def __call__(self, p_E: Vec3, year: Scalar | None = None) -> Any:
        """Return the field B_E (..., 3) in T at positions (..., 3), in the decimal `year`."""
        p_E = check_away_from_centre(p_E)
        g, h = self.coefficients(year)
        # Schmidt's functions are the fully normalised ones over sqrt(2 n + 1).
        full = 1.0 / np.sqrt(2.0 * np.arange(g.shape[-1]) + 1.0)[:, None]
        scale = -1e-9 * self.radius**2
        return harmonic_gradient(p_E, scale, self.radius, g * full, h * full)


def read_magnetic_coefficients(path: str | os.PathLike[str]) -> MagneticField:
    r"""Read a file of magnetic coefficients: ``WMM.COF``, or an SHC file such as ``IGRF14.shc``.

    Parameters
    ----------
    path : path
        The file; its content says which format it has. In a file of the World Magnetic Model the
        first line has the epoch, each other line n, m, g, h, dg, dh, and a line of nines ends it.
        In an SHC file (spherical harmonic coefficients: the IGRF, CHAOS, Swarm's models), lines of
        ``#`` are comments, then come the least and the highest degree, the number of times, the
        order of the spline in time, the steps from one of its knots to the next, then the times in
        decimal years, then lines of n, m and a coefficient for each time, with m < 0 for h.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from archimedes.environment import read_magnetic_coefficients
    >>> lines = ["# a dipole", "1 1 2 2 1", "2020.0 2025.0", "1 0 -29403.4 -29350.0",
    ...          "1 1 -1451.4 -1410.3", "1 -1 4653.4 4545.5"]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "dipole.shc")
    ...     _ = file.write_text("\n".join(lines))
    ...     field = read_magnetic_coefficients(file)
    >>> g, h = field.coefficients(2022.5)
    >>> round(float(g[1, 0]), 3)
    -29376.7
    """
    lines = Path(path).read_text("utf-8", errors="replace").splitlines()
    lines = [line for line in lines if line.strip(" 9\t") and not line.lstrip().startswith("#")]
    header = lines[0].split() if lines else []
    is_shc = len(header) >= 5 and all(word.lstrip("+-").isdigit() for word in header[:5])
    return _read_shc(path, header, lines[1:]) if is_shc else _read_cof(path, lines)


def _read_cof(path: str | os.PathLike[str], lines: list[str]) -> MagneticField:
    """Return the field of the World Magnetic Model's lines."""
    try:
        epoch = float(lines[0].split()[0])
        rows = np.array([line.split() for line in lines[1:]], dtype=float).reshape(-1, 6)
        check_finite(rows, "a coefficient")
    except (IndexError, ValueError):
        raise ValueError(
            f"{path} is not a file of magnetic coefficients: its first line must begin with the "
            "epoch, and each other line must hold n, m, g, h, dg, dh (the first line of an SHC "
            "file begins with five whole numbers)"
        ) from None
    if not len(rows):
        raise ValueError(f"{path} holds no coefficients: lines of n, m, g, h, dg, dh")
    n, m = _check_degrees(path, rows[:, 0], rows[:, 1])
    tables = np.zeros((4, n.max() + 1, n.max() + 1))
    tables[:, n, m] = rows[:, 2:].T
    g, h, dg, dh = tables
    return MagneticField(g, h, dg, dh, epoch)


def _check_degrees(path: object, n: Array, m: Array) -> tuple[Any, Any]:
    """Return degrees and orders as whole numbers; raise where they are not."""
    wrong = (m < 0) | (m > n) | (n != np.rint(n)) | (m != np.rint(m))
    if n.max() > _MOST:
        raise ValueError(f"{path} holds a degree beyond {_MOST}, more than any published model")
    if wrong.any():
        raise ValueError(
            f"{path}: n = {n[wrong][0]}, m = {m[wrong][0]} are not a valid degree and order"
        )
    return n.astype(int), m.astype(int)


def _read_shc(path: str | os.PathLike[str], header: list[str], lines: list[str]) -> MagneticField:
    """Return the field of the lines of an SHC file: snapshots, joined by a spline in time."""
    _, highest, count, order, step = map(int, header[:5])
    try:
        numbers = np.array(" ".join(lines).split(), dtype=float)
        check_finite(numbers, "a coefficient")
        times, rows = numbers[:count], numbers[count:].reshape(-1, count + 2)
        if count < 1 or not len(rows):
            raise ValueError
    except ValueError:
        raise ValueError(
            f"{path} is not an SHC file: after the line {' '.join(header)!r} there must be "
            f"{count} times, and then lines of n, m and {count} coefficients"
        ) from None
    if count > 1:
        check_increasing(times, f"{path}: times")
    if order < 1 or step < 0:
        raise ValueError(f"{path}: order {order} and step {step} of the spline are not valid")
    n, m = _check_degrees(path, rows[:, 0], np.abs(rows[:, 1]))
    if n.max() != highest:
        raise ValueError(
            f"{path}: the coefficients end at degree {n.max()}, but the first line says {highest}: "
            "is the file complete?"
        )
    tables = np.zeros((2, count, n.max() + 1, n.max() + 1))
    tables[(rows[:, 1] < 0).astype(int), :, n, m] = rows[:, 2:]
    if count == 1:
        return MagneticField(tables[0, 0], tables[1, 0], epoch=float(times[0]))
    years = (float(times[0]), float(times[-1]))
    if order == 1:
        return MagneticField(tables[0], tables[1], epoch=times, years=years)
    spline = _spline(times, np.moveaxis(tables, 1, 0), order - 1, max(step, 1))
    start, end = np.unique(spline.t)[:-1], float(spline.t[-1])
    factors = [spline.derivative(j)(start) / math.factorial(j) for j in range(spline.k + 1)]
    g, h = np.moveaxis(np.array(factors), 2, 0)  # powers of time, pieces, degree, order
    dg, dh = (np.moveaxis(x[1:], 0, 1) for x in (g, h))
    return MagneticField(g[0], h[0], dg, dh, start, years=(years[0], end))


def _spline(times: Array, values: Array, degree: int, step: int) -> Any:
    """Return the spline of a degree through snapshots, of which every `step`-th lies at a knot."""
    from scipy.interpolate import make_interp_spline, make_lsq_spline

    knots = times[::step]
    inside = times <= knots[-1]
    times, values = times[inside], values[inside]
    free = len(times) - (len(knots) + degree - 1)  # what is left when the spline is determined
    t = np.r_[np.repeat(knots[0], degree), knots, np.repeat(knots[-1], degree)]
    if free > 0:
        return make_lsq_spline(times, values, t, degree)
    if free == 0:
        return make_interp_spline(times, values, degree, t)
    return make_interp_spline(times, values, min(degree, len(times) - 1))
