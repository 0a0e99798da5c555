"""Rotations in 50-digit arithmetic, written from their definitions: the oracle of derivatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np

DIGITS = 60
STEP = mp.mpf(10) ** -15
AXIS = {"x": 0, "y": 1, "z": 2}


def lift(x) -> list:
    return [mp.mpf(float(v)) for v in np.ravel(x)]


@mp.workdps(DIGITS)
def differences(f: Callable[[list], Sequence], x) -> np.ndarray:
    """Jacobian by central differences with 60 digits: good to about 30."""
    base = lift(x)
    columns = []
    for k in range(len(base)):
        up, down = list(base), list(base)
        up[k] += STEP
        down[k] -= STEP
        pairs = zip(f(up), f(down), strict=True)
        columns.append([float((a - b) / (2 * STEP)) for a, b in pairs])
    return np.array(columns).T


def multiply(p, q) -> list:
    a, b, c, d = p
    w, x, y, z = q
    return [
        a * w - b * x - c * y - d * z,
        a * x + b * w + c * z - d * y,
        a * y - b * z + c * w + d * x,
        a * z + b * y - c * x + d * w,
    ]


def normalize(q) -> list:
    n = mp.sqrt(sum(v * v for v in q))
    return [v / n for v in q]


def conjugate(q) -> list:
    return [q[0], -q[1], -q[2], -q[3]]


def exp(v) -> list:
    angle = mp.sqrt(sum(c * c for c in v))
    scale = mp.mpf(1) / 2 if angle == 0 else mp.sin(angle / 2) / angle
    return [mp.cos(angle / 2), *(scale * c for c in v)]


def log(q) -> list:
    """Rotation vector on the branch that is continuous through half turns."""
    n = mp.sqrt(sum(c * c for c in q[1:]))
    scale = 2 / q[0] if n == 0 else 2 * mp.atan2(n, q[0]) / n
    return [scale * c for c in q[1:]]


def matrix(q) -> list:
    """Passive matrix, row by row: column k is the vector part of q* e_k q."""
    q = normalize(q)
    columns = []
    for k in range(3):
        e = [mp.mpf(0)] * 4
        e[1 + k] = mp.mpf(1)
        columns.append(multiply(multiply(conjugate(q), e), q)[1:])
    return [columns[j][i] for i in range(3) for j in range(3)]


def euler_quaternion(angles, seq: str) -> list:
    """Active composition: extrinsic turns multiply from the left, intrinsic from the right."""
    q = [mp.mpf(1), mp.mpf(0), mp.mpf(0), mp.mpf(0)]
    for letter, angle in zip(seq, angles, strict=True):
        turn = [mp.cos(angle / 2), mp.mpf(0), mp.mpf(0), mp.mpf(0)]
        turn[1 + AXIS[letter.lower()]] = mp.sin(angle / 2)
        q = multiply(turn, q) if seq.islower() else multiply(q, turn)
    return q


def mrp(q) -> list:
    q = normalize(q)
    return [c / (1 + q[0]) for c in q[1:]]


def mrp_quaternion(s) -> list:
    n = sum(c * c for c in s)
    return [(1 - n) / (1 + n), *(2 * c / (1 + n) for c in s)]


def slerp(q0, q1, s) -> list:
    q0, q1 = normalize(q0), normalize(q1)
    return multiply(q0, exp([s * c for c in log(multiply(conjugate(q0), q1))]))


def passive_factors(angles, seq: str) -> list:
    """Elementary passive matrices of a sequence, from left to right in R_BE."""
    out = []
    for letter, p in zip(seq.lower(), angles, strict=True):
        i = AXIS[letter]
        j, k = (i + 1) % 3, (i + 2) % 3
        m = mp.eye(3)
        m[j, j] = m[k, k] = mp.cos(p)
        m[j, k], m[k, j] = mp.sin(p), -mp.sin(p)
        out.append(m)
    return out if seq.islower() else out[::-1]


def body_rate(angles, rates, seq: str) -> list:
    """w_B from angle rates, by differentiating the matrix product: [w]x = -R' R^T."""
    h = mp.mpf(10) ** -20

    def product(s):
        m = mp.eye(3)
        for f in passive_factors([a + s * r for a, r in zip(angles, rates)], seq):
            m = m * f
        return m

    S = -((product(h) - product(-h)) / (2 * h)) * product(mp.mpf(0)).T
    return [S[2, 1], S[0, 2], S[1, 0]]


def differences_mp(f: Callable[[list], Sequence], x) -> list:
    """Gradient of a one-element function, kept in mpmath, to be differenced again."""
    out = []
    h = mp.mpf(10) ** -25
    for k in range(len(x)):
        up, down = list(x), list(x)
        up[k] += h
        down[k] -= h
        out.append((f(up)[0] - f(down)[0]) / (2 * h))
    return out


def directional(f: Callable) -> list:
    """Derivative at zero of a vector function of one number, kept in mpmath."""
    h = mp.mpf(10) ** -25
    return [(a - b) / (2 * h) for a, b in zip(f(h), f(-h), strict=True)]
