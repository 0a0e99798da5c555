"""Min-max problems, written with a bound u on all functions, and problems with a maximum.

Sources are named beside each; most are also in CUTEst (N. Gould, D. Orban, P. Toint, 2015), whose
files give the minima.
"""

from __future__ import annotations

import numpy as np

from tests.optimize.catalogue.hock_schittkowski import PROBLEMS as BOOK
from tests.optimize.catalogue.problem import make, min_max, vector

__all__ = ["PROBLEMS"]


def polak3(x):
    i, j = np.arange(10)[:, None], np.arange(1, 12)
    return x[11] - np.sum(np.exp((x[:11] - np.sin(i + 2 * j)) ** 2) / j, axis=1)


def both(*values):
    return [*values, *(-v for v in values)]


def spiral(a, b):
    r = np.sqrt(a**2 + b**2)
    bent = 0.005 * (a**2 + b**2)
    return [(a - r * np.cos(r)) ** 2 + bent, (b - r * np.sin(r)) ** 2 + bent]


def shifted43(a, b, c, d):
    x = np.array([a, b, c, d])
    f = BOOK[43].obj(x)
    return [f, *(f - 10 * g for g in BOOK[43].positive(x))]


def nearest(a, b):
    return (2 - a) ** 2 + (2 - b) ** 2


PROBLEMS = {
    # M. Makela, "Nonsmooth optimization", thesis, Jyvaskyla 1990.
    "MAKELA1": min_max(lambda a, b: [-a - b, -a - b + a**2 + b**2 - 1], [-0.5, -0.5], -np.sqrt(2)),
    "MAKELA2": min_max(
        lambda a, b: [
            a**2 + b**2,
            a**2 + b**2 - 40 * a - 10 * b + 40,
            a**2 + b**2 - 10 * a - 20 * b + 60,
        ],
        [-1, 5],
        7.2,
    ),
    "MAKELA3": min_max(
        lambda *x: [v**2 for v in x], [*range(1, 11), *(-k for k in range(11, 21))], 0.0
    ),
    "MAKELA4": min_max(both, [*range(1, 11), *(-k for k in range(11, 21))], 0.0),
    # C. Charalambous, A. Conn, SIAM J. Numer. Anal. 15, 1978; the starts are CUTEst's CHACONN.
    "CB2": min_max(
        lambda a, b: [a**2 + b**4, nearest(a, b), 2 * np.exp(b - a)], [2, 2], 1.952224494, 1.0
    ),
    "CB3": min_max(lambda a, b: [a**4 + b**2, nearest(a, b), 2 * np.exp(b - a)], [2, 2], 2.0, 1.0),
    "CHACONN1": min_max(
        lambda a, b: [a**2 + b**4, nearest(a, b), 2 * np.exp(b - a)], [1, -0.1], 1.952224494
    ),
    "CHACONN2": min_max(
        lambda a, b: [a**4 + b**2, nearest(a, b), 2 * np.exp(b - a)], [1, -0.1], 2.0
    ),
    # E. Polak, D. Mayne, J. Higgins, J. Optim. Theory Appl. 69, 1991.
    "POLAK1": min_max(
        lambda a, b: [
            np.exp(1e-3 * a**2 + (b - 1) ** 2),
            np.exp(1e-3 * a**2 + (b + 1) ** 2),
        ],
        [50, 0.05],
        np.e,
    ),
    "POLAK3": vector(lambda x: x[11], np.ones(12), 5.93300252, positive=polak3),
    "POLAK5": min_max(
        lambda a, b: [
            3 * a**2 + 50 * (a - b**4 - 1) ** 2,
            3 * a**2 + 50 * (a - b**4 + 1) ** 2,
        ],
        [0.1, 0.1],
        50.0,
    ),
    # K. Madsen, in "Nondifferentiable optimization", IIASA 1978.
    "MADSEN": min_max(
        lambda a, b: both(a**2 + b**2 + a * b, np.sin(a), np.cos(b)), [3, 1], 0.6164324356, 1.0
    ),
    # J. Rosen, S. Suzuki (problem 43) as a min-max problem by C. Charalambous, 1977.
    "ROSENMMX": min_max(shifted43, [0, 0, 0, 0], -44.0),
    # R. Womersley, R. Fletcher, J. Optim. Theory Appl. 50, 1986.
    "WOMFLET": min_max(
        lambda a, b: [
            0.5 * (a + 10 * a / (a + 0.1) + 2 * b**2),
            0.5 * (-a + 10 * a / (a + 0.1) + 2 * b**2),
            0.5 * (a - 10 * a / (a + 0.1) + 2 * b**2),
        ],
        [3, 1],
        0.0,
        1.0,
        others=(6.05,),
    ),
    # K. Kiwiel, "Methods of descent for nondifferentiable optimization", Springer 1985.
    "KIWCRESC": min_max(
        lambda a, b: [a**2 + (b - 1) ** 2 + b - 1, -(a**2) - (b - 1) ** 2 + b + 1],
        [-1.5, 2],
        0.0,
    ),
    # R. Mifflin, in "Nonsmooth optimization", IIASA 1977, and Kiwiel's book.
    "MIFFLIN1": make(
        lambda a, b, u: -a + 20 * u,
        [0.8, 0.6, 1.0],
        -1.0,
        positive=lambda a, b, u: [u - a**2 - b**2 + 1],
        bounds=([None, None, 0], None),
    ),
    "MIFFLIN2": make(
        lambda a, b, u: -a + 2 * (a**2 + b**2 - 1) + 1.75 * u,
        [-1, -1, 1.0],
        -1.0,
        positive=lambda a, b, u: [u - a**2 - b**2 + 1, u + a**2 + b**2 - 1],
    ),
    # V. Demyanov, V. Malozemov, "Introduction to minimax", Wiley 1974.
    "DEMYMALO": min_max(lambda a, b: [5 * a + b, -5 * a + b, a**2 + b**2 + 4 * b], [1, 1], -3.0),
    # M. Overton's spiral, by R. Womersley, R. Fletcher.
    "SPIRAL": min_max(spiral, [1.411831, -4.79462], 0.0),
}
