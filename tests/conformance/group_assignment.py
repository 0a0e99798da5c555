"""Item assignment, into arguments, into arrays made inside, and through views."""

from __future__ import annotations

import numpy as np

from .forms import EXACT, forms, programs_of

__all__ = ["FORMS"]


def assign_item(x):
    x[1] = 5.0
    return x


def assign_traced_item(x, s):
    x[1] = s
    return x


def assign_slice(x, a):
    x[1:4] = a
    return x


def assign_broadcast(A, s):
    A[:, 1] = s
    return A


def assign_reversed(x):
    x[::-1] = x.copy()
    return x


def assign_fancy(x, a):
    x[[0, 2, 4]] = a
    return x


def assign_mask(x):
    x[np.array([True, False, True, False, False])] = 0.0
    return x


def assign_traced_mask(x):
    x[x > 0] = 0.0
    return x


def assign_4d(H, s):
    H[:, 1, ..., 0] = s
    return H


def assign_3d_matrix(T, M):
    T[1] = M
    return T


def assign_ellipsis(T):
    T[..., 2] = T[..., 0] + T[..., 1]
    return T


def assign_int_truncates(i, x):
    i[:] = np.trunc(x)
    return i


def assign_into_zeros(x):
    y = np.zeros(3)
    y[1] = x[0]
    return y


def assign_into_zeros_2d(a):
    skew = np.zeros((3, 3))
    skew[0, 1], skew[0, 2] = -a[2], a[1]
    skew[1, 0], skew[1, 2] = a[2], -a[0]
    skew[2, 0], skew[2, 1] = -a[1], a[0]
    return skew


def assign_into_empty(x, y):
    z = np.empty(2)
    z[0] = x[0]
    z[1] = y[1]
    return z


def assign_into_ones(a):
    m = np.ones((2, 3))
    m[0] = a
    return m


def assign_into_full(s):
    m = np.full((2, 2), 7.0)
    m[1, :] = s
    return m


def assign_into_eye(a):
    m = np.eye(4)
    m[:3, 3] = a
    return m


def assign_into_zeros_like(T, s):
    m = np.zeros_like(T)
    m[1, :, 2] = s
    return m


def assign_into_array_literal(s):
    m = np.array([1.0, 2.0, 3.0])
    m[2] = s
    return m


def assign_into_float32_zeros(f):
    m = np.zeros(3, dtype=np.float32)
    m[:2] = f[:2]
    return m


def assign_into_int_zeros(i):
    m = np.zeros(3, dtype=int)
    m[0] = i[0]
    return m


def assign_into_zeros_4d(A):
    m = np.zeros((2, 2, 3, 3))
    m[1, 0] = A
    m[0, 1] = A.T
    return m


def write_through_view(x):
    head = x[:2]
    head[0] = 9.0
    return x


def write_through_reshape(A):
    row = A.reshape(9)
    row[4] = -1.0
    return A


def write_through_transpose(A):
    A.T[0, 2] = 4.5
    return A


def write_through_row_loop(A, a):
    for row in A:
        row += a
    return A


def copy_does_not_alias(x):
    y = x.copy()
    y[0] = 1.0
    return x, y


def fancy_does_not_alias(x):
    y = x[[0, 1]]
    y[0] = 1.0
    return x, y


FORMS = forms("assignment", EXACT, programs_of(globals()))
