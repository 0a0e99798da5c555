"""The Earth's magnetic field: a dipole, and fields of spherical harmonics.

Legend: B_E is the field in tesla in Earth-fixed axes; g and h are Schmidt semi-normalised
coefficients, as the World Magnetic Model and the IGRF publish them, in nT.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_struct
from archimedes.environment.gravity import check_away_from_centre, length_squared
from archimedes.environment.spherical_harmonics import check_coefficients, harmonic_gradient
from archimedes.tree import field, struct
from archimedes.typing import Scalar, Vec3

__all__ = ["MagneticDipole", "MagneticField", "read_magnetic_coefficients"]

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
        raise ValueError(f"{path}: n = {n[wrong][0]}, m = {m[wrong][0]} is no degree and order")
    tables = np.zeros((4, int(n.max()) + 1, int(n.max()) + 1))
    tables[:, n.astype(int), m.astype(int)] = rows[:, 2:].T
    return MagneticField(*tables, epoch)
