"""Programs that write into arrays, as conformance forms: parameters carry sample names."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["PROGRAMS"]


def put_at_traced(x, k):
    x[k] = 9.0
    return x


def put_at_traced_pair(A, k, q):
    A[k, k - q] = 7.0
    return A


def put_at_traced_array(x, j):
    x[j[1:4] % 5] = [1.0, 2.0, 3.0]
    return x


def put_at_traced_repeats(x, j):
    x[j // 3] = x.copy()
    return x


def put_row_at_traced(A, k, a):
    A[k] = a
    A[:, k - 1] += a
    return A


def put_at_traced_negative(x, k):
    x[-k] = 4.0
    return x


def put_masked_row(A, a):
    A[A[:, 0] > 0] = a
    return A


def put_masked_float32(f):
    f[f > 0] = 0.5
    return f


def put_cycles(M, a):
    np.put(M, [0, 3, 7, 11], a)
    return M


def put_clips(x):
    np.put(x, [-9, 9], [1.0, 2.0], mode="clip")
    return x


def put_along(M):
    np.put_along_axis(M, np.array([[1], [0], [3]]), 9.0, axis=1)
    return M


def place_cycles(M, a):
    np.place(M, np.arange(12).reshape(3, 4) % 2 == 0, a)
    return M


def place_traced(x):
    np.place(x, x > 0, [5.0])
    return x


def putmask_traced(x, a):
    np.putmask(x, x > 0, a)
    return x


def putmask_same(M, F):
    np.putmask(M, M > 0, F)
    return M


def fill_diagonals(A, a, N):
    np.fill_diagonal(A, a)
    np.fill_diagonal(N, 5.0, wrap=True)
    return A, N


def add_at_repeats(x, a):
    np.add.at(x, [0, 0, 3], a)
    np.subtract.at(x, np.array([1]), 2.0)
    np.negative.at(x, [2])
    return x


def add_at_pairs(A):
    np.multiply.at(A, ([0, 0], [1, 1]), 3.0)
    np.add.at(A, (slice(None), 1), 1.0)
    return A


def flat_assignment(A, a):
    A.flat[1] = 5.0
    A.flat[[2, 3]] = a[:2]
    A.flat[4:] = a
    return A


def flat_of_a_view(A, s):
    A.T.flat[1] = s
    return A


def flat_whole(M, s):
    M.flat = s
    return M


def shape_assignment(M):
    view = M.view()
    view.shape = (4, 3)
    view[0] = 1.0
    return M, view


def partition_method(x):
    x.partition(2)
    return x[2]


def nan_to_num_in_place(z):
    np.nan_to_num(z, copy=False)
    return z


def copyto_where(x, y):
    np.copyto(x, y, where=x > 0)
    return x


def out_of_functions(M, a):
    result = np.zeros((2, 4))
    np.concatenate([M[:1], M[1:2]], out=result)
    np.clip(result, -0.5, 0.5, out=result)
    np.round(result, 1, out=result)
    total = np.zeros(4)
    np.max(result, axis=0, out=total)
    np.take(M, [1], axis=0, out=result[:1])
    return result, total


def reduction_of_one_row_does_not_alias(A):
    row = A[:1].sum(axis=0)
    row[0] = 99.0
    return A, row


def clip_without_bounds_does_not_alias(x):
    y = np.clip(x, None, None)
    y[0] = 99.0
    return x


def einsum_is_writable(A, a):
    y = np.einsum("i,j->ij", a, a)
    y[0] = 0.0
    z = np.select([a > 0], [1.0])
    z[0] = 5.0
    return y, z


def whole_numbers(s, x):
    return math.floor(s), math.ceil(s), math.trunc(s), round(x[1])


def running_insertion_sort(x):
    y = x.copy()
    for stop in range(len(y) - 1, 0, -1):
        for k in range(stop):
            low, high = np.minimum(y[k], y[k + 1]), np.maximum(y[k], y[k + 1])
            y[k], y[k + 1] = low, high
    return y


PROGRAMS = [
    value
    for value in list(globals().values())
    if callable(value) and getattr(value, "__module__", "") == __name__
]
