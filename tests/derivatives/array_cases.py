"""Derivative cases: reductions, products, linear algebra, indexing and in-place programs."""

from __future__ import annotations

import numpy as np

from .cases import Case
from .elementwise_cases import ANY, MATRIX, PAIR, POSITIVE, TENSOR, from_rows

__all__ = ["CASES", "MATRIX_POSITIVE"]

SQUARE = np.array([[2.0, -0.3, 0.5], [0.1, 1.6, -0.7], [-0.4, 0.2, 1.1]])
MATRIX_POSITIVE = np.array([[2.0, 0.4, -0.3], [0.4, 1.5, 0.2], [-0.3, 0.2, 0.9]])
MASK = np.array([[True, False, True], [False, True, False]])
TALL = np.array([[0.4, -1.2], [1.5, 0.3], [-0.8, 0.7]])

REDUCTIONS = """
np.sum(x)
np.sum(x ** 2, axis=0)
np.sum(np.sin(x), axis=1, keepdims=True)
np.mean(x ** 3)
np.mean(np.exp(x), axis=-1)
np.prod(x)
np.prod(x, axis=0)
np.var(x)
np.std(x)
np.std(x, axis=1, ddof=1)
np.max(x) ** 2
np.min(x, axis=1) ** 2
np.max(x, axis=0) * np.min(x, axis=0)
np.cumsum(x ** 2)
np.cumsum(x ** 2, axis=1)
np.cumprod(x[0])
np.log(np.sum(np.exp(x)))
np.max(x) + np.log(np.sum(np.exp(x - np.max(x))))
np.exp(x) / np.sum(np.exp(x), axis=1, keepdims=True)
np.diff(x ** 2)
np.sort(x[0]) ** 2
np.median(x[0]) ** 3
np.trapezoid(x ** 2)
np.average(x ** 2, weights=np.array([[0.2, 0.5, 0.3], [0.1, 0.7, 0.2]]))
np.ptp(x) ** 2
np.linalg.norm(x)
np.linalg.norm(x, axis=1)
np.linalg.norm(x[0], 1)
np.linalg.norm(x[0], 3)
np.linalg.norm(x[0], np.inf) ** 2
x / np.linalg.norm(x)
np.sqrt(np.sum(x ** 2, axis=0))
"""

PRODUCTS = """
x @ x.T
np.dot(x, x[0])
np.einsum("ij,kj->ik", x, x)
np.einsum("ij,ij->i", x, np.sin(x))
np.einsum("ij,kj,kl->il", x, x, x)
np.tensordot(x, x, axes=([0], [0]))
np.kron(x[0], x[1])
np.cross(x[0], x[1])
np.cross(x[0], np.cross(x[0], x[1]))
np.inner(x, x ** 2)
np.vdot(x, np.cos(x))
np.outer(x[0], x[1]) @ x[0]
np.convolve(x[0], x[1])
np.polyval(x[0], x[1])
np.interp(x, np.array([-1.5, -0.5, 0.6, 2.0]), np.array([0.3, 1.0, -0.6, 2.0])) * x
np.gradient(x[0] ** 2)
np.trace(x @ x.T)
np.linspace(x[0, 0], x[1, 2], 4) ** 2
"""

INDEXING = """
x[0] * x[1]
x[::-1, 1:] ** 2
x[[0, 1, 1], [2, 0, 0]] ** 2
x[:, [2, 0, 2]] * x
np.concatenate([x[0] ** 2, x[1]])
np.stack([x, x ** 2], axis=1)
np.roll(x, 1, axis=1) * x
np.flip(x) * x
np.tile(x, (1, 2)) ** 2
np.repeat(x, 2, axis=0) ** 2
np.pad(x, 1) ** 2
np.tril(x) * x
np.diag(x[0]) @ x[1]
x.reshape(3, 2) @ x
x.ravel() ** 2
np.array([x[0, 0] * x[1, 1], 1.0, np.sin(x[0, 1])])
np.array([[x[0, 0], 0.0], [1.0, x[1, 1]]]) @ x[:, 1]
np.where(np.array([[True, False, True], [False, True, False]]), x ** 2, x ** 3)
np.moveaxis(np.expand_dims(x, 0), 0, 2) ** 2
np.broadcast_to(x[0], (2, 3)) * x
"""

SQUARES = """
np.linalg.solve(x, x[0] * x[1])
np.linalg.solve(x, x.T)
np.linalg.solve(x, np.eye(3)) ** 2
np.linalg.inv(x)
np.linalg.inv(x) @ x[0]
np.linalg.det(x)
np.linalg.slogdet(x)[1]
np.linalg.slogdet(-x)[1]
np.log(np.linalg.det(x @ x.T))
np.linalg.matrix_power(x, 3)
np.linalg.matrix_power(x, -2)
np.linalg.norm(x, "fro")
np.linalg.norm(x, 1) ** 2
np.linalg.norm(x, np.inf) ** 2
np.linalg.norm(x, 2)
np.linalg.norm(x, "nuc")
np.linalg.pinv(x)
np.linalg.multi_dot([x, x.T, x])
np.linalg.svd(x, compute_uv=False)
x @ x @ x[0]
np.linalg.eigvalsh(x + x.T)
np.linalg.cholesky(x @ x.T)
np.linalg.inv(np.stack([x, x @ x + np.eye(3)]))
"""

TALLS = """
np.linalg.lstsq(x, np.array([1.0, -0.5, 2.0]))[0]
np.linalg.pinv(x)
np.linalg.solve(x.T @ x, x.T @ np.array([1.0, -0.5, 2.0]))
np.linalg.norm(x, 2)
"""


def expm(np, arc, x):
    return arc.expm(x)


def expm_oracle(np, x):
    import mpmath

    from .multiprecision import _from_matrix, _to_matrix

    return _from_matrix(mpmath.expm(_to_matrix(x), method="taylor"))


def expm_large(np, arc, x):
    return arc.expm(4.0 * x)


def expm_large_oracle(np, x):
    return expm_oracle(np, 4.0 * x)


def qr_r(np, x):
    r = np.linalg.qr(x)[1]
    return r * np.sign(np.diagonal(r))[:, None]


def qr_r_oracle(np, x):
    return np.linalg.cholesky(x.T @ x).T


def eigh_first_vector(np, x):
    vectors = np.linalg.eigh(x + x.T)[1]
    return np.outer(vectors[:, 0], vectors[:, 0])


def eigh_first_vector_oracle(np, x):
    values = np.linalg.eigvalsh(x + x.T)
    others = [(x + x.T - v * np.eye(3)) / (values[0] - v) for v in values[1:]]
    return others[0] @ others[1]


def inplace_assign(np, x):
    out = np.zeros(4)
    out[0] = x[0] * x[1]
    out[1:] = x**2
    out[2] *= x[0]
    return out


def inplace_accumulate(np, x):
    total = np.zeros(3)
    for k in range(3):
        total += x * x[k]
        total[k] -= np.sin(total[0])
    return total


def inplace_view(np, x):
    matrix = np.zeros((3, 3))
    diagonal = matrix.reshape(9)[::4]
    diagonal += x**2
    matrix[0] += x
    return matrix @ x


def inplace_argument(np, x):
    y = x.copy()
    y[1:] *= y[:-1].copy()
    y[0] = np.exp(y[2])
    return y


def skew_program(np, x):
    skew = np.zeros((3, 3))
    skew[0, 1], skew[0, 2] = -x[2], x[1]
    skew[1, 0], skew[1, 2] = x[2], -x[0]
    skew[2, 0], skew[2, 1] = -x[1], x[0]
    return skew @ skew @ np.array([1.0, 2.0, 3.0])


def rodrigues(np, x):
    angle = np.linalg.norm(x)
    axis = x / angle
    v = np.array([0.3, -0.2, 0.9])
    along = axis * (axis @ v)
    return along + np.cos(angle) * (v - along) + np.sin(angle) * np.cross(axis, v)


def runge_kutta_pendulum(np, x):
    def rate(s):
        return np.array([s[1], -9.81 * np.sin(s[0]) - x[2] * s[1]])

    state, h = x[:2], 0.1
    for _ in range(4):
        k1 = rate(state)
        k2 = rate(state + 0.5 * h * k1)
        k3 = rate(state + 0.5 * h * k2)
        k4 = rate(state + h * k3)
        state = state + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return state


def rosenbrock(np, x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def two_link_mass_solve(np, x):
    c = np.cos(x[1])
    mass = np.array([[3.0 + 2.0 * c, 1.0 + c], [1.0 + c, 1.0]])
    return np.linalg.solve(mass, np.array([x[2] - np.sin(x[0]), np.sin(x[1]) * x[0] ** 2]))


def gaussian_log_likelihood(np, x):
    s = x @ x.T + np.eye(3)
    return -0.5 * np.linalg.slogdet(s)[1] - 0.5 * x[0] @ np.linalg.solve(s, x[0])


CASES = [
    *from_rows(REDUCTIONS, MATRIX),
    *from_rows(PRODUCTS, MATRIX),
    *from_rows(INDEXING, MATRIX),
    *from_rows(SQUARES, SQUARE),
    *(
        Case(f"tall {case.name}", case.fn, case.x, case.smooth, case.jax)
        for case in from_rows(TALLS, TALL)
    ),
    Case("expm", expm, SQUARE, oracle=expm_oracle),
    Case("expm_large", expm_large, SQUARE, oracle=expm_large_oracle),
    Case("qr_r", qr_r, SQUARE, oracle=qr_r_oracle),
    Case("eigh_first_vector", eigh_first_vector, SQUARE, oracle=eigh_first_vector_oracle),
    Case("inplace_assign", inplace_assign, ANY),
    Case("inplace_accumulate", inplace_accumulate, ANY),
    Case("inplace_view", inplace_view, ANY),
    Case("inplace_argument", inplace_argument, POSITIVE),
    Case("skew_program", skew_program, ANY),
    Case("rodrigues", rodrigues, ANY, jax=True),
    Case("runge_kutta_pendulum", runge_kutta_pendulum, ANY, jax=True),
    Case("rosenbrock", rosenbrock, PAIR, jax=True),
    Case("two_link_mass_solve", two_link_mass_solve, ANY, jax=True),
    Case("gaussian_log_likelihood", gaussian_log_likelihood, SQUARE, jax=True),
    Case("boolean_mask", lambda np, x: x[MASK] ** 2, MATRIX),
    Case("tensor_contraction", lambda np, x: np.einsum("ijk,ikl->jl", x, x), TENSOR, jax=True),
    Case("tensor_norms", lambda np, x: np.sqrt(np.sum(x**2, axis=(1, 2))), TENSOR, jax=True),
]
