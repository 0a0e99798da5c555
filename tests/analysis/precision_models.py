"""Models that lose digits, each with the same model written as the advice says."""

from __future__ import annotations

import numpy as np

import archimedes as arc


def larger_root(a, b, c):
    d = b * b - 4.0 * a * c
    return (-b + np.sqrt(d)) / (2.0 * a)


def larger_root_by_conjugate(a, b, c):
    """Goldberg (1991), equation 5."""
    d = b * b - 4.0 * a * c
    q = -(b + np.copysign(np.sqrt(d), b)) / 2.0
    return c / q


def variance(x):
    m = np.mean(x)
    return np.mean(x * x) - m * m


def variance_about_mean(x):
    """Higham (2002), section 1.9: two passes."""
    return np.mean((x - np.mean(x)) ** 2)


def angle_between(a, b):
    c = a @ b / np.sqrt((a @ a) * (b @ b))
    return np.arccos(c)


def angle_by_arctan2(a, b):
    n = np.cross(a, b)
    return np.arctan2(np.sqrt(n @ n), a @ b)


def log_sum_exp(x):
    return np.log(np.sum(np.exp(x)))


def log_sum_exp_shifted(x):
    m = np.max(x)
    return m + np.log(np.sum(np.exp(x - m)))


def clock(dt):
    """An hour at 100 Hz."""

    def step(k, t):
        return t + dt

    return arc.fori_loop(0, 360_000, step, 0.0)


def clock_by_count(dt):
    def step(k, n):
        return n + 1

    return arc.fori_loop(0, 360_000, step, 0) * dt


def one_minus_cosine(x):
    return 1.0 - np.cos(x)


def one_minus_cosine_by_half_angle(x):
    return 2.0 * np.sin(x / 2.0) ** 2


def growth(x):
    return np.exp(x) - 1.0


def growth_by_expm1(x):
    return np.expm1(x)


def log_of_sum(x):
    return np.log(1.0 + x)


def log_by_log1p(x):
    return np.log1p(x)


def length(x, y):
    return np.sqrt(x * x + y * y)


def length_by_hypot(x, y):
    return np.hypot(x, y)


def height(p_E, p_ref_E):
    """Distance from a point near by: both are Earth-centred, in metres."""
    d_E = p_E - p_ref_E
    return np.sqrt(d_E @ d_E)


def covariance(P, q, r):
    """A thousand updates of a scalar covariance that starts uncertain."""

    def step(k, P):
        P = P + q
        K = P / (P + r)
        return P - K * P

    return arc.fori_loop(0, 1000, step, P)


def covariance_by_joseph(P, q, r):
    def step(k, P):
        P = P + q
        S = P + r
        K = P / S
        L = r / S
        return L * P * L + K * r * K

    return arc.fori_loop(0, 1000, step, P)


def low_pass(u, alpha):
    """A filter with a pole at 1 - alpha, run for 20 minutes at 1 kHz."""

    def step(k, y):
        return y + alpha * (u - y)

    return arc.fori_loop(0, 1_200_000, step, 0.0)


def low_pass_compensated(u, alpha):
    def step(k, state):
        y, rest = state
        add = alpha * (u - y) + rest
        new = y + add
        return new, add - (new - y)

    return arc.fori_loop(0, 1_200_000, step, (0.0, 0.0))[0]


_DT, _R = 0.01, 0.01
_F = np.array([[1.0, _DT], [0.0, 1.0]])
_Q = 1e-4 * np.array([[_DT**3 / 3, _DT**2 / 2], [_DT**2 / 2, _DT]])
_HEIGHTS = 500.0 + 5.0 * _DT * np.arange(20.0)


def _predict(state):
    x, P = state
    x, P = _F @ x, _F @ P @ _F.T + _Q
    return x, P, P[:, 0] / (P[0, 0] + _R)


def _filter(step, z):
    start = np.zeros(2), np.diag([1e8, 1e4])
    return arc.scan(step, start, z)[0]


def altitude(z):
    """A Kalman filter of height and speed that knows nothing at its start."""

    def step(state, z):
        x, P, K = _predict(state)
        x = x + K * (z - x[0])
        P = P - np.outer(K, P[0])
        return (x, P), None

    return _filter(step, z)


def altitude_by_joseph(z):
    """Bierman (1977), section II.8: the stabilized form."""

    def step(state, z):
        x, P, K = _predict(state)
        x = x + K * (z - x[0])
        L = np.eye(2) - np.outer(K, np.array([1.0, 0.0]))
        P = L @ P @ L.T + _R * np.outer(K, K)
        return (x, P), None

    return _filter(step, z)


#: Model, the part of the line that is to blame, words of the advice, mended model, arguments.
CASES = {
    "quadratic": (
        *(larger_root, "(-b + np.sqrt(d))", "conjugate", larger_root_by_conjugate),
        (1.0, 1e4, 1.0),
    ),
    "variance": (
        *(variance, "np.mean(x * x)", "subtract the mean", variance_about_mean),
        (1000.0 + np.linspace(0.0, 1.0, 40),),
    ),
    "long variance": (
        *(variance, "np.mean(x * x)", "subtract the mean", variance_about_mean),
        (1000.0 + np.linspace(0.0, 1.0, 400),),
    ),
    "angle": (
        *(angle_between, "np.arccos(c)", "arctan2", angle_by_arctan2),
        (np.array([1.0, 0.0, 0.0]), np.array([1.0, 1e-3, 2e-4])),
    ),
    "log-sum-exp": (
        *(log_sum_exp, "np.exp(x)", "subtract the largest exponent", log_sum_exp_shifted),
        (np.array([90.0, 91.0, 89.5]),),
    ),
    "clock": (clock, "t + dt", "in an integer and multiply", clock_by_count, (0.01,)),
    "cosine": (
        *(one_minus_cosine, "1.0 - np.cos(x)", "2*np.sin(x/2)**2", one_minus_cosine_by_half_angle),
        (1e-3,),
    ),
    "expm1": (growth, "np.exp(x) - 1.0", "np.expm1", growth_by_expm1, (1e-5,)),
    "log1p": (log_of_sum, "np.log(1.0 + x)", "np.log1p", log_by_log1p, (1e-5,)),
    "hypot": (length, "x * x", "np.hypot", length_by_hypot, (3e25, 4e25)),
    "covariance": (
        *(covariance, "P - K * P", "Joseph", covariance_by_joseph),
        (1e8, 1e-9, 1e-2),
    ),
    "Kalman filter": (
        *(altitude, "P - np.outer(K, P[0])", "Joseph", altitude_by_joseph),
        (_HEIGHTS,),
    ),
    "low pass": (
        *(low_pass, "alpha * (u - y)", "compensation", low_pass_compensated),
        (1.0, 2e-6),
    ),
}
