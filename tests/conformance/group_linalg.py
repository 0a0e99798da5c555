"""Products, einsum and linear algebra."""

from __future__ import annotations

import numpy as np

from .forms import EXACT, LINALG, SUMS, forms

__all__ = ["FORMS"]

EXACT_PRODUCTS = """
i @ j
I @ I.T
np.dot(i, j)
np.inner(i, j)
np.einsum("i,i", i, j)
np.einsum("ij->ji", M)
np.einsum("ii->i", A)
np.einsum("ijk->kji", T)
np.einsum("i,j->ij", x, y)
np.outer(i, j)
np.tensordot(I, I, axes=([0, 1], [0, 1]))
np.linalg.diagonal(E)
np.linalg.outer(a, d)
"""

PRODUCTS = """
x @ y
A @ B
A @ a
a @ A
M @ N
A @ M @ N
E @ E
E @ a
a @ E
E @ A
A @ E
T @ N
H @ H
H @ np.swapaxes(H, -1, -2)
np.matmul(A, B)
np.matmul(E, a)
np.matmul(H, H[0])
np.matmul(H[:, :, None], H[:, None])
np.matvec(E, a)
np.vecmat(a, E)
np.vecdot(T, U)
np.dot(x, y)
np.dot(A, a)
np.dot(T, N)
np.dot(E, A)
np.dot(s, x)
np.vdot(A, B)
np.inner(x, y)
np.inner(A, B)
np.inner(T, U[0])
np.tensordot(A, B)
np.tensordot(A, B, axes=1)
np.tensordot(T, U, axes=([0, 2], [0, 2]))
np.tensordot(T, M, axes=([1], [0]))
np.tensordot(T, N, 1)
np.tensordot(a, d, 0)
np.linalg.multi_dot([A, B, S])
np.linalg.multi_dot([a, A, M])
np.linalg.tensordot(A, B, axes=1)
np.linalg.vecdot(A, B)
np.linalg.matmul(A, B)
np.einsum("ij,jk->ik", A, B)
np.einsum("ij,jk", A, B)
np.einsum("ij,j", A, a)
np.einsum("ii", A)
np.einsum("ij->", A)
np.einsum("ij->j", M)
np.einsum("i,i->", x, y)
np.einsum("ij,ij->i", A, B)
np.einsum("ijk,ijk->ij", T, U)
np.einsum("ijk,kl->ijl", T, N)
np.einsum("...ij,...jk->...ik", E, E)
np.einsum("...i,i", T, x[:4])
np.einsum("...ij->...ji", T)
np.einsum("i...,i...->...", T, U)
np.einsum("bij,bj->bi", E, E[:, 0])
np.einsum("i,ij,j->", a, A, d)
np.einsum("i,ij,j", a, A, d)
np.einsum("ij,jk,kl->il", A, B, S)
np.einsum("ij,jk,ki", A, B, S, optimize=True)
np.einsum("ijkl,kl->ij", H, H[0, 0])
np.einsum("ijkk->ij", H)
np.einsum("ijkl->lkij", H)
np.einsum("ijk,ilm,njm,nlk,abc->", T[:, :2, :2], T[:, :2, :2], T[:, :2, :2], T[:, :2, :2], T)
np.einsum("ij, jk -> ik", A, B)
np.einsum(A, [0, 1], a, [1])
np.trace(A)
np.trace(T, offset=1, axis1=1, axis2=2)
np.linalg.trace(E)
np.cross(A[0], A[1]) @ A[2]
"""

LINEAR_ALGEBRA = """
np.linalg.solve(A, a)
np.linalg.solve(A, B)
np.linalg.solve(E, B)
np.linalg.solve(E, E[:, :, :2])
np.linalg.solve(A[:1, :1], a[:1])
np.linalg.solve(F[:, :3] + 3 * np.eye(3, dtype=np.float32), F[:, 0])
np.linalg.inv(A)
np.linalg.inv(E)
np.linalg.inv(A) @ a
np.linalg.det(A)
np.linalg.det(E)
np.linalg.det(A[:2, :2])
np.linalg.slogdet(A)
np.linalg.slogdet(-A)
np.linalg.slogdet(E)
np.linalg.cholesky(S)
np.linalg.cholesky(S, upper=True)
np.linalg.cholesky(E @ np.swapaxes(E, 1, 2))
np.linalg.lstsq(M.T, x[:4])[0]
np.linalg.lstsq(N, N[:, :1])[0]
np.linalg.lstsq(M.T, N, rcond=None)[0]
np.linalg.eigvalsh(S)
np.linalg.eigvalsh(S[:2, :2])
np.linalg.svd(A, compute_uv=False)
np.linalg.svd(M, compute_uv=False)
np.linalg.svdvals(A)
np.linalg.pinv(A)
np.linalg.pinv(M)
np.linalg.pinv(N)
np.linalg.matrix_power(A, 0)
np.linalg.matrix_power(A, 1)
np.linalg.matrix_power(A, 3)
np.linalg.matrix_power(A, -2)
np.linalg.matrix_power(E, 2)
np.linalg.cond(S)
np.linalg.cond(A, 1)
np.linalg.norm(x)
np.linalg.norm(x, 1)
np.linalg.norm(x, 2)
np.linalg.norm(x, 3)
np.linalg.norm(x, 0)
np.linalg.norm(x, np.inf)
np.linalg.norm(x, -np.inf)
np.linalg.norm(x, -1)
np.linalg.norm(x, 2.5)
np.linalg.norm(x, keepdims=True)
np.linalg.norm(A)
np.linalg.norm(A, "fro")
np.linalg.norm(A, 1)
np.linalg.norm(A, -1)
np.linalg.norm(A, np.inf)
np.linalg.norm(A, -np.inf)
np.linalg.norm(A, 2)
np.linalg.norm(A, -2)
np.linalg.norm(A, "nuc")
np.linalg.norm(A, axis=0)
np.linalg.norm(M, axis=1, keepdims=True)
np.linalg.norm(T, axis=2)
np.linalg.norm(T, 1, axis=-1)
np.linalg.norm(T, axis=(1, 2))
np.linalg.norm(T)
np.linalg.norm(H, np.inf, axis=(2, 3))
np.linalg.vector_norm(T, axis=(0, 2))
np.linalg.vector_norm(x, ord=3)
np.linalg.matrix_norm(E)
np.linalg.tensorinv(E[:, :, :].reshape(2, 3, 3)[0].reshape(3, 3), ind=1)
np.linalg.tensorsolve(A, a)
a / np.linalg.norm(a)
"""


def qr_normalised(A):
    q, r = np.linalg.qr(A)
    signs = np.sign(np.diagonal(r))
    return q * signs, r * signs[:, None]


def qr_tall(N):
    q, r = np.linalg.qr(N)
    signs = np.sign(np.diagonal(r))
    return q * signs, r * signs[:, None]


def qr_wide(M):
    q, r = np.linalg.qr(M)
    return q @ r


def qr_r_only(N):
    r = np.linalg.qr(N, mode="r")
    return np.abs(r)


def qr_batched(E):
    q, r = np.linalg.qr(E)
    return q @ r, np.abs(r)


def eigh_reconstruct(S):
    values, vectors = np.linalg.eigh(S)
    return values, vectors @ np.diag(values) @ vectors.T, vectors.T @ vectors


def eigh_signs(S):
    vectors = np.linalg.eigh(S).eigenvectors
    return vectors * np.sign(vectors[0])


def svd_reconstruct(A):
    left, values, right = np.linalg.svd(A)
    return left @ np.diag(values) @ right, values, left.T @ left


def svd_reduced(M):
    left, values, right = np.linalg.svd(M, full_matrices=False)
    return (left * values) @ right, values


def svd_tall(N):
    left, values, right = np.linalg.svd(N, full_matrices=False)
    return (left * values) @ right, values


def normal_equations(M, x):
    design = M.T
    return np.linalg.solve(design.T @ design, design.T @ x[:4])


def quadratic_form(S, a):
    return 0.5 * a @ S @ a + a.sum()


PROGRAMS = [
    qr_normalised,
    qr_tall,
    qr_wide,
    qr_r_only,
    qr_batched,
    eigh_reconstruct,
    eigh_signs,
    svd_reconstruct,
    svd_reduced,
    svd_tall,
    normal_equations,
    quadratic_form,
]

FORMS = [
    *forms("products", EXACT, EXACT_PRODUCTS),
    *forms("products", SUMS, PRODUCTS),
    *forms("linear algebra", LINALG, LINEAR_ALGEBRA),
    *forms("linear algebra", LINALG, PROGRAMS),
]
