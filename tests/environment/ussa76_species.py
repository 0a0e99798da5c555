"""The U.S. Standard Atmosphere 1976 above 86 km, integrated from its equations: an oracle.

Numbers and equation numbers are those of NOAA-S/T 76-1562, section 1.3 and tables 6 to 9.
"""

from __future__ import annotations

import numpy as np

GAS, AVOGADRO, BOLTZMANN = 8314.32, 6.022169e26, 1.380622e-23
MEAN = 28.9644
MASS = {"N2": 28.0134, "O": 15.9994, "O2": 31.9988, "Ar": 39.948, "He": 4.0026, "H": 1.00797}
AT_86_KM = {"N2": 1.129794e20, "O": 8.6e16, "O2": 3.030898e19, "Ar": 1.3514e18, "He": 7.5817e14}
THERMAL = {"He": -0.40, "H": -0.25}
#: Diffusion coefficients: a / N * (T / 273.15)^b.
DIFFUSION = {
    "O": (6.986e20, 0.750),
    "O2": (4.863e20, 0.750),
    "Ar": (4.487e20, 0.870),
    "He": (1.700e21, 0.691),
    "H": (3.305e21, 0.500),
}
#: Vertical transport, eq. 37: Q, U, W in km^-3 and km.
TRANSPORT = {
    "O": (-5.809644e-4, 56.90311, 2.706240e-5),
    "O2": (1.366212e-4, 86.0, 8.333333e-5),
    "Ar": (9.434079e-5, 86.0, 8.333333e-5),
    "He": (-2.457369e-4, 86.0, 6.666667e-4),
}


def temperature(z):
    km = z / 1e3
    xi = (km - 120.0) * (6356.766 + 120.0) / (6356.766 + km)
    pieces = [
        186.8673 + 0.0 * km,
        263.1905 - 76.3232 * np.sqrt(np.maximum(0.0, 1.0 - ((km - 91.0) / 19.9429) ** 2)),
        240.0 + 12.0 * (km - 110.0),
        1000.0 - 640.0 * np.exp(-0.01875 * xi),
    ]
    return np.select([km < 91.0, km < 110.0, km < 120.0], pieces[:3], pieces[3])


def gravity(z):
    return 9.80665 * (6356766.0 / (6356766.0 + z)) ** 2


def eddies(z):
    inside = np.maximum(400.0 - (z / 1e3 - 95.0) ** 2, 1e-6)
    mixed = 120.0 * np.exp(1.0 - 400.0 / inside)
    return np.select([z < 95e3, z < 115e3], [120.0 + 0.0 * z, mixed], 0.0)


def transport(name, z):
    Q, U, W = TRANSPORT[name]
    km = z / 1e3
    flow = Q * (km - U) ** 2 * np.exp(-W * (km - U) ** 3)
    if name == "O":
        below = np.clip(97.0 - km, 0.0, None)
        flow = flow - 3.416248e-3 * below**2 * np.exp(-5.008765e-4 * below**3)
    return 1e-3 * flow


def atmosphere(step=10.0):
    """Return heights in m, temperature, pressure and density from 86 to 1,000 km."""
    z = np.concatenate([np.arange(86e3, 200e3, step), np.arange(200e3, 1e6 + 1.0, 5 * step)])
    T, g, K = temperature(z), gravity(z), eddies(z)
    slope = np.gradient(T, z)
    mean = np.where(z <= 100e3, MEAN, MASS["N2"])

    def integral(values):
        return np.concatenate([[0.0], np.cumsum(np.diff(z) * (values[1:] + values[:-1]) / 2)])

    def species(name, background):
        a, b = DIFFUSION[name]
        D = a / background * (T / 273.15) ** b
        drift = MASS[name] + mean * K / D + THERMAL.get(name, 0.0) * GAS / g * slope
        rate = g / (GAS * T) * D / (D + K) * drift + transport(name, z)
        return AT_86_KM[name] * T[0] / T * np.exp(-integral(rate))

    n = {"N2": AT_86_KM["N2"] * T[0] / T * np.exp(-integral(mean * g / (GAS * T)))}
    n |= {name: species(name, n["N2"]) for name in ("O", "O2")}
    heavy = n["N2"] + n["O"] + n["O2"]
    n |= {name: species(name, heavy) for name in ("Ar", "He")}
    n["H"] = hydrogen(z, T, heavy + n["Ar"] + n["He"], integral)
    total = sum(n.values())
    rho = sum(count * MASS[name] for name, count in n.items()) / AVOGADRO
    return z, T, total * BOLTZMANN * T, rho


def hydrogen(z, T, background, integral):
    """Number density of hydrogen, eq. 39: flux below 500 km, equilibrium above."""
    at = int(np.searchsorted(z, 500e3))
    a, b = DIFFUSION["H"]
    power = 1.0 + THERMAL["H"]
    tau = integral(gravity(z) * MASS["H"] / (GAS * T))
    tau = tau - tau[at]
    D = a / background * (T / 273.15) ** b
    flux = integral(7.2e11 / D * (T / T[at]) ** power * np.exp(tau))
    below = 8e10 - np.where(z < 500e3, flux - flux[at], 0.0)
    return np.where(z < 150e3, 0.0, below * (T[at] / T) ** power * np.exp(-tau))
