"""Problems of CUTEst (N. Gould, D. Orban, P. Toint, Comput. Optim. Appl. 60, 2015), by the formulas
and data that its files publish; minima are those files' or those that follow by hand.
"""

from __future__ import annotations

import numpy as np

from tests.optimize.catalogue.problem import least_squares, make, vector

__all__ = ["PROBLEMS"]

#: M. Palmer's data: angles (rad) and energies (kJ/mol), symmetric about 0.
PALMER1 = (
    np.array(
        [
            *(1.788963, 1.745329, 1.658063, 1.570796, 1.483530, 1.396263, 1.308997, 1.218612),
            *(1.134464, 1.047198, 0.872665, 0.698132, 0.523599, 0.349066, 0.174533),
        ]
    ),
    np.array(
        [
            *(78.596218, 65.77963, 43.96947, 27.038816, 14.6126, 6.2614, 1.538330, 0.0),
            *(1.188045, 4.6841, 16.9321, 33.6988, 52.3664, 70.1630, 83.4221),
        ]
    ),
    88.3995,
)
PALMER4 = (
    np.array(
        [
            *(1.658063, 1.570796, 1.396263, 1.221730, 1.047198, 0.872665, 0.741119, 0.698132),
            *(0.523599, 0.349066, 0.174533),
        ]
    ),
    np.array(
        [
            *(67.27625, 52.8537, 30.2718, 14.9888, 5.5675, 0.92603, 0.0, 0.085108, 1.867422),
            *(5.014768, 8.263520),
        ]
    ),
    9.8046208,
)


def palmer(data, model, size, best, bounded, **more):
    """Return a fit of ``model(X**2, *unknowns)``; unknowns from ``bounded`` on are positive."""
    angles, energies, top = data
    squares = np.concatenate([angles**2, angles**2, [0.0]])
    values = np.concatenate([energies, energies, [top]])
    low = [None] * bounded + [1e-5] * (size - bounded)
    return vector(
        lambda x: np.sum((model(squares, *x) - values) ** 2),
        np.ones(size),
        best,
        bounds=(low, None),
        **more,
    )


def quotient(s, a, b, c, d):
    return a * s + b / (c + s / d)


def fraction(s, a, b, c, d):
    return a * s + b * s**2 + c / (d + s)


def sextic(s, a, b, c, d, e, f):
    return a + b * s + c * s**2 + d * s**3 + e / (f + s)


#: ANTWERP: households of a town by size and kind (Toint 2006).
SIZES = np.array([23844.0, 16323, 6613, 2535, 1109, 1667])
FAMILIES = np.array([16405.0, 13647, 9895])
MOTHERS, FATHERS = np.array([10966.0, 4566, 1921]), np.array([4041.0, 1634, 637])
N0, N1, N2, N3, N4, NINF, NINN = 15866.0, 59832.0, 61929.0, 32321.0, 73650.0, 180055.0, 47677.0


def antwerp(x):
    pf, pw, pm = x[0:5], x[5:8], x[8:11]
    qf, qw, qm = x[11:14], x[14:17], x[17:20]
    nf, nw, nm, nc2, na2, nc3, na3 = (x[k] for k in range(20, 27))

    def sizes(p, q):
        """Probabilities of p children and q further adults, by their sum."""
        count = p.shape[0]
        return [
            sum(p[i] * q[k - i] for i in range(count) if 0 <= k - i < 3) for k in range(count + 2)
        ]

    of_families, of_mothers, of_fathers = sizes(pf, qf), sizes(pw, qw), sizes(pm, qm)
    # A family of 1 child has 3 members, a mother's or father's household 2.
    members = [
        of_families[k] * nf
        + (of_mothers[k + 1] * nw + of_fathers[k + 1] * nm if k + 1 < 5 else 0.0)
        for k in range(6)
    ]
    children = nf * np.sum(np.arange(1, 6) * pf)
    alone = nw * np.sum(np.arange(1, 4) * pw) + nm * np.sum(np.arange(1, 4) * pm)
    adults = nf * np.sum(np.arange(2, 5) * qf)
    others = nw * np.sum(np.arange(1, 4) * qw) + nm * np.sum(np.arange(1, 4) * qm)
    half = 0.5 * (N2 + N3)
    rows = [
        *((m - n, n) for m, n in zip(members, SIZES)),
        *((pf[k] * nf - FAMILIES[k], FAMILIES[k]) for k in range(2)),
        ((pf[2] + pf[3] + pf[4]) * nf - FAMILIES[2], FAMILIES[2]),
        *((pw[k] * nw - MOTHERS[k], MOTHERS[k]) for k in range(3)),
        *((pm[k] * nm - FATHERS[k], FATHERS[k]) for k in range(3)),
        (children + alone - nc2 - nc3 - N0 - N1, 100 * (N0 + N1 + half)),
        (adults + others - na2 - na3 - N4, 100 * (N4 + half)),
        (children + adults - NINF, 1.0),
        (alone + others - NINN, 1.0),
    ]
    return sum(r**2 / scale for r, scale in rows)


def antwerp_rows(x):
    sums = [x[0:5], x[5:8], x[8:11], x[11:14], x[14:17], x[17:20]]
    return np.array([x[23] + x[24] - N2, x[25] + x[26] - N3, *(np.sum(s) - 1 for s in sums)])


ANTWERP0 = [
    *(FAMILIES[:2] / np.sum(FAMILIES)),
    *(0.15, 0.1, 0.05),
    *(MOTHERS / np.sum(MOTHERS)),
    *(FATHERS / np.sum(FATHERS)),
    *[0.6, 0.3, 0.1] * 3,
    *(np.sum(FAMILIES), np.sum(MOTHERS), np.sum(FATHERS), 0.0, N2, 0.0, N3),
]


def himmelblau(a, b):
    return (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2


def pairs(a, b, c, d):
    return np.array([a + b, a + c, a + d, b + c, b + d, c + d])


PROBLEMS = {
    "PALMER1": palmer(PALMER1, quotient, 4, 11754.6025, 1),
    "PALMER4": palmer(PALMER4, quotient, 4, 2285.383227, 1),
    "PALMER4A": palmer(PALMER4, sextic, 6, 0.0406062, 4),
    "PALMER4B": palmer(PALMER4, fraction, 4, 6.83514, 2),
    "ANTWERP": vector(
        antwerp,
        ANTWERP0,
        3245.241855,
        equal=antwerp_rows,
        positive=lambda x: np.array([x[24] - x[23], x[26] - x[25]]),
        bounds=(0, [1] * 20 + [None] * 3 + [N2, N2, N3, N3]),
    ),
    # P. Boggs, J. Tolle, "A strategy for global convergence in a sequential quadratic programming
    # algorithm", SIAM J. Numer. Anal. 26, 1989.
    "BT1": make(
        lambda a, b: 100 * a**2 + 100 * b**2 - a - 100,
        [0.08, 0.06],
        -1.0,
        equal=lambda a, b: [a**2 + b**2 - 1],
    ),
    "BT2": make(
        lambda a, b, c: (a - 1) ** 2 + (a - b) ** 2 + (b - c) ** 4,
        [10, 10, 10],
        0.0325682,
        equal=lambda a, b, c: [a * (1 + b**2) + c**4 - 8.2426407],
    ),
    "BT4": make(
        lambda a, b, c: a - b + b**3,
        [4.0382, -2.9470, -0.09115],
        -45.510552,
        equal=lambda a, b, c: [a**2 + b**2 + c**2 - 25, a + b + c - 1],
        others=(-3.704768179,),
    ),
    "BT7": make(
        lambda a, b, c, d, e: 100 * (b - a**2) ** 2 + (a - 1) ** 2,
        [-2, 1, 1, 1, 1],
        306.5,
        equal=lambda a, b, c, d, e: [a * b - c**2 - 1, b**2 - d**2 + a, e**2 + a - 0.5],
        others=(360.379767,),
    ),
    "BT8": make(
        lambda a, b, c, d, e: a**2 + b**2 + c**2,
        [1, 1, 1, 0, 0],
        1.0,
        equal=lambda a, b, c, d, e: [a - 1 - d**2 + b**2, a**2 + b**2 - e**2 - 1],
    ),
    "BT10": make(lambda a, b: -a, [2, 2], -1.0, equal=lambda a, b: [b - a**3, a**2 - b]),
    "BT12": make(
        lambda a, b, c, d, e: 0.01 * a**2 + b**2,
        [15.811, 1.5811, 0, 15.083, 3.7164],
        6.188118812,
        equal=lambda a, b, c, d, e: [*(a + b - c**2 - 25, a**2 + b**2 - d**2 - 25, a - e**2 - 2)],
    ),
    # N. Maratos, thesis, London 1978.
    "MARATOS": make(
        lambda a, b: -a + 1e-6 * (a**2 + b**2 - 1),
        [1.1, 0.1],
        -1.0,
        equal=lambda a, b: [a**2 + b**2 - 1],
    ),
    "BYRDSPHR": make(
        lambda a, b, c: -a - b - c,
        [5, 1e-4, -1e-4],
        -4.68330013,
        equal=lambda a, b, c: [a**2 + b**2 + c**2 - 9, (a - 1) ** 2 + b**2 + c**2 - 9],
    ),
    "ALSOTAME": make(
        lambda a, b: np.exp(a - 2 * b),
        [0, 0],
        np.exp(-2.5),
        equal=lambda a, b: [np.sin(-a + b - 1)],
        bounds=([-2, -1.5], [2, 1.5]),
    ),
    "TWOBARS": make(
        lambda a, b: a * np.sqrt(1 + b**2),
        [1, 1],
        1.508652,
        positive=lambda a, b: [
            1 - 0.124 * np.sqrt(1 + b**2) * (8 / a + 1 / (a * b)),
            1 - 0.124 * np.sqrt(1 + b**2) * (8 / a - 1 / (a * b)),
        ],
        bounds=([0.2, 0.1], [4, 1.6]),
    ),
    "CANTILVR": make(
        lambda a, b, c, d, e: 0.0624 * (a + b + c + d + e),
        [1.0] * 5,
        1.339956,
        positive=lambda a, b, c, d, e: [
            1 - 61 / a**3 - 37 / b**3 - 19 / c**3 - 7 / d**3 - 1 / e**3
        ],
        bounds=(1e-6, None),
    ),
    "BIGGSC4": make(
        lambda a, b, c, d: -a * c - b * d,
        [0, 0, 0, 0],
        -24.5,
        positive=lambda a, b, c, d: np.concatenate(
            [
                pairs(a, b, c, d) - np.array([2.5, 2.5, 2.5, 2, 2, 1.5]),
                np.array([7.5, 7.5, 7.5, 7, 7, 6.5]) - pairs(a, b, c, d),
                np.array([a + b + c + d - 5]),
            ]
        ),
        bounds=(0, 5),
    ),
    # J. Dennis, R. Schnabel, "Numerical methods for unconstrained optimization", 1983.
    "DENSCHNA": least_squares(lambda a, b: (a**2, a + b, np.exp(b) - 1), [1, 1], 0.0),
    "DENSCHNB": least_squares(lambda a, b: (a - 2, (a - 2) * b, b + 1), [1, 1], 0.0),
    "DENSCHNC": least_squares(
        lambda a, b: (a**2 + b**2 - 2, np.exp(a - 1) + b**3 - 2),
        [2, 3],
        0.0,
        others=(0.1833616551,),
    ),
    "DENSCHND": least_squares(
        lambda a, b, c: (*(a**2 + b**3 - c**4, 2 * a * b * c, 2 * a * b - 3 * b * c + a * c),),
        [10, 10, 10],
        0.0,
    ),
    "DENSCHNE": least_squares(
        lambda a, b, c: (a, b + b**2, np.exp(c) - 1), [2, 3, -8], 0.0, others=(1.0,)
    ),
    "DENSCHNF": least_squares(
        lambda a, b: (2 * (a + b) ** 2 + (a - b) ** 2 - 8, 5 * a**2 + (b - 3) ** 2 - 9),
        [2, 0],
        0.0,
    ),
    # D. Himmelblau, "Applied nonlinear programming", McGraw-Hill 1972.
    "HIMMELBLAU": make(himmelblau, [1, 1], 0.0, bounds=(-5, 5)),
    "HIMMELBG": make(lambda a, b: np.exp(-a - b) * (2 * a**2 + 3 * b**2), [0.5, 0.5], 0.0),
    "ZANGWIL2": make(
        lambda a, b: (16 * a**2 + 16 * b**2 - 8 * a * b - 56 * a - 256 * b + 991) / 15,
        [3, 8],
        -18.2,
    ),
    "CUBE": make(lambda a, b: (a - 1) ** 2 + 100 * (b - a**3) ** 2, [-1.2, 1], 0.0),
    "CLIFF": make(
        lambda a, b: ((a - 3) / 100) ** 2 - (a - b) + np.exp(20 * (a - b)),
        [0, -1],
        0.199786613,
    ),
    "SISSER": make(lambda a, b: 3 * a**4 - 2 * a**2 * b**2 + 3 * b**4, [1, 0.1], 0.0),
    "EXPFIT": least_squares(
        lambda a, b: (a * np.exp(b * t) - t for t in np.arange(1, 11) / 4), [0, 0], 0.2405106
    ),
    "ENGVAL2": least_squares(
        lambda a, b, c: (
            *(a**2 + b**2 + c**2 - 1, a**2 + b**2 + (c - 2) ** 2 - 1, a + b + c - 1),
            *(a + b - c + 1, 3 * b**2 + a**3 + (5 * c - a + 1) ** 2 - 36),
        ),
        [1, 2, 0],
        0.0,
    ),
    "LOGROS": make(
        lambda a, b: np.log(1 + 1e4 * (b - a**2) ** 2 + (1 - a) ** 2),
        [1.2, 1],
        0.0,
        bounds=(0, None),
    ),
    "HATFLDA": least_squares(
        lambda a, b, c, d: (a - 1, a - np.sqrt(b), b - np.sqrt(c), c - np.sqrt(d)),
        [0.1] * 4,
        0.0,
        bounds=(1e-7, None),
    ),
    "HATFLDB": least_squares(
        lambda a, b, c, d: (a - 1, a - np.sqrt(b), b - np.sqrt(c), c - np.sqrt(d)),
        [0.1] * 4,
        0.005573,
        bounds=(1e-7, [None, 0.8, None, None]),
    ),
    "HATFLDC": vector(
        lambda x: (x[0] - 1) ** 2 + (x[-1] - 1) ** 2 + np.sum((x[1:-1] - x[:-2] ** 2) ** 2),
        np.full(25, 0.9),
        0.0,
        bounds=(0, 10),
    ),
    # L. Dixon, G. Szego, "Towards global optimisation 2", North-Holland 1978.
    "SIX-HUMP CAMEL": make(
        lambda a, b: (4 - 2.1 * a**2 + a**4 / 3) * a**2 + a * b + 4 * (b**2 - 1) * b**2,
        [1, 0.5],
        -1.031628453,
        bounds=([-3, -1.5], [3, 1.5]),
        others=(-0.2154638, 2.1042503),
    ),
    # A minimum without curvature, from far away: the published (x - 1)^4.
    "QUARTIC 1e4": make(lambda a: (a - 1) ** 4, [1e4], 0.0),
    "QUARTIC 1e6": make(lambda a: (a - 1) ** 4, [1e6], 0.0),
}
