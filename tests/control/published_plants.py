"""Plants from the literature, what was published about their controllers, and what we find."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from archimedes import control as ac

s = ac.tf("s")

#: x' = u + w, z = (x, u), y = x + v. X = Y = gamma / sqrt(gamma^2 - 1), and X Y < gamma^2 is
#: gamma > sqrt(2); in the H2 norm it is 1 + 1, squared.
INTEGRATOR = ac.StateSpace(
    [[0.0]],
    [[1.0, 0.0, 1.0]],
    [[1.0], [0.0], [1.0]],
    [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
)

#: The example of SLICOT's SB10 routines that python-control tests with: K = -1 / (s + 3), which
#: cancels the disturbance altogether.
FIRST_ORDER = ac.StateSpace([[-1.0]], [[1.0, 1.0]], [[1.0], [1.0]], [[0.0, 1.0], [1.0, 0.0]])

#: S. Skogestad, I. Postlethwaite, "Multivariable feedback control", 2nd ed., 2005: the disturbance
#: process of examples 2.8, 2.17 and 9.3.
PROCESS = 200 / ((10 * s + 1) * (0.05 * s + 1) ** 2)
WEIGHTS = {
    1.37: (s / 1.5 + 10) / (s + 10 * 1e-4),
    2.19: (s / 1.5**0.5 + 10) ** 2 / (s + 10 * 1e-4**0.5) ** 2,
}


def doyle(q: float, sigma: float) -> tuple[ac.StateSpace, float]:
    """J. Doyle, "Guaranteed margins for LQG regulators", IEEE Trans. AC 23, 1978.

    The plant with weights sqrt(q) (x1 + x2) and u, and noises sqrt(sigma) (1, 1) and 1. The gains
    are f = 2 + sqrt(4 + q), d = 2 + sqrt(4 + sigma). The norm follows from them: the cost is
    tr(X W) + f^2 (1 1) Y (1 1)', with the closed forms of X and Y that these gains give.
    """
    A, B, C = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[0.0], [1.0]]), np.array([[1.0, 0.0]])
    one = np.ones((2, 1))
    plant = ac.StateSpace(
        A,
        np.concatenate([np.sqrt(sigma) * one, np.zeros((2, 1)), B], axis=1),
        np.concatenate([np.sqrt(q) * one.T, np.zeros((1, 2)), C]),
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    )
    f, d = 2.0 + np.sqrt(4.0 + q), 2.0 + np.sqrt(4.0 + sigma)
    # X B = f (1, 1)' gives x12 = x22 = f; the first equation x11 = (f^2 - q) / 2 ... = 2 f.
    X = np.array([[2.0 * f, f], [f, f]])
    Y = np.array([[d, d], [d, 2.0 * d]])
    cost = sigma * (one.T @ X @ one)[0, 0] + f * f * (one.T @ Y @ one)[0, 0]
    return plant, float(np.sqrt(cost))


#: x1' = x2, x2' = u + w, z = (x1, u), y = x1 + v.
DOUBLE_INTEGRATOR = ac.StateSpace(
    [[0.0, 1.0], [0.0, 0.0]],
    [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]],
    [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]],
    [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]],
)


def four_blocks(G: ac.StateSpace) -> ac.StateSpace:
    """The plant whose H-infinity norm loop shaping minimizes, [K; I] (I - G K)^-1 [I, G]."""
    A, B, C, _ = G
    n = len(A)
    return ac.StateSpace(
        A,
        np.concatenate([np.zeros((n, 1)), B, B], axis=1),
        np.concatenate([np.zeros((1, n)), C, C]),
        np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]),
    )


def h2(plant: ac.StateSpace) -> float:
    return float(ac.h2_norm(ac.lft(plant, ac.h2syn(plant, 1, 1))))


def hinf(plant: ac.StateSpace) -> float:
    return ac.hinfsyn(plant, 1, 1, tol=1e-6).norm


def results() -> Iterator[tuple[str, float, float, str]]:
    """Name, published and found norm, and source of each plant."""
    slicot = "SLICOT SB10FD and SB10HD, python-control's tests"
    hand = "by hand, after Doyle, Glover, Khargonekar, Francis, IEEE Trans. AC 34, 1989"
    book = "Skogestad, Postlethwaite, Multivariable feedback control, 2005, example"
    yield "hinfsyn: first-order plant", 0.0, hinf(FIRST_ORDER), slicot
    yield "hinfsyn: integrator", np.sqrt(2.0), hinf(INTEGRATOR), hand
    for gamma, weight in WEIGHTS.items():
        found = hinf(ac.augw(PROCESS, weight, 1.0))
        yield f"hinfsyn: disturbance process, weight {gamma}", gamma, found, f"{book} 2.17"
    shaped = ac.ss(PROCESS * (s + 2) / s)
    yield "hinfsyn: disturbance process, shaped", 2.34, hinf(four_blocks(shaped)), f"{book} 9.3"
    yield "ncfsyn: disturbance process, shaped", 2.34, ac.ncfsyn(shaped).norm, f"{book} 9.3"
    yield "h2syn: first-order plant", 0.0, h2(FIRST_ORDER), slicot
    yield "h2syn: integrator", np.sqrt(2.0), h2(INTEGRATOR), hand
    norm = np.sqrt(6.0 * np.sqrt(2.0))
    yield (
        "h2syn: double integrator",
        norm,
        h2(DOUBLE_INTEGRATOR),
        "by hand: X = Y = [[r, 1], [1, r]], r = sqrt(2)",
    )
    for q in (60.0, 1000.0):
        plant, norm = doyle(q, q)
        yield f"h2syn: Doyle's plant, q = {q:g}", norm, h2(plant), "Doyle, IEEE Trans. AC 23, 1978"
