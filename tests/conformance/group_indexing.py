"""Indexing, assignment, views, in-place operators, ``out=``, iteration and unpacking."""

from __future__ import annotations

import numpy as np

from .forms import EXACT, SUMS, forms

__all__ = ["FORMS"]

READS = """
x[0]
x[-1]
x[1:4]
x[::-1]
x[::2]
x[3:0:-1]
x[10:]
x[:]
x[...]
x[None]
x[:, np.newaxis]
A[1]
A[1, 2]
A[-1, -2]
A[:, 0]
A[1:, :2]
A[..., 1]
A[::-1, ::2]
A[1, None]
T[1]
T[1, 2, 3]
T[:, 1]
T[..., 0]
T[0, ..., 1]
T[:, :, ::-1]
T[:, None, 1:, None]
H[1, :, 0]
H[..., 1, 0]
H[:, 1:, ::-1, 1]
H[0, 1, 1, 0]
x[[0, 2, 2]]
x[np.array([[0, 1], [3, -1]])]
A[[0, 2]]
A[[0, 2], [1, 1]]
A[:, [2, 0]]
A[[[0], [2]], [0, 1]]
A[np.ix_([0, 2], [1, 2])]
T[[0, 1], :, [2, 3]]
T[:, [0, 2], 1]
T[0, [0, 2]]
T[np.array([1, 0])[:, None], [0, 1, 2], 3]
T[..., [0, 0, 1]]
H[[1, 0], [2, 0]]
H[:, [0, 2], :, [1, 0]]
x[np.array([True, False, True, False, True])]
A[np.eye(3, dtype=bool)]
A[[True, False, True]]
T[:, [True, False, True]]
T[np.arange(24).reshape(2, 3, 4) % 3 == 0]
x[np.int64(2)]
x[slice(1, 3)]
A[(0, 1)]
x[[]]
x[()]
s[()]
A[np.tril_indices(3)]
A[np.triu_indices(3, 1)]
A[np.diag_indices(3)]
np.take(x, [1, 4])
np.take(T, [2, 0], axis=1)
np.take(x, [7, -9], mode="clip")
np.take(x, [7, 9], mode="wrap")
np.take_along_axis(M, np.array([[1], [0], [3]]), axis=1)
np.compress([True, False, True], A, axis=0)
np.extract(np.array([True, False, True, True, False]), x)
np.diagonal(T, axis1=0, axis2=1)
np.delete(x, 2)
np.delete(M, [0, 2], axis=1)
np.insert(x, 2, 9.0)
np.insert(x, [1, 3], s)
np.insert(M, 1, a, axis=1)
np.append(x, y)
np.append(A, B, axis=1)
np.append(x, 1.0)
np.trim_zeros(np.array([0.0, 1.0, 0.0])) + a[0]
np.select([b, c], [x, y], 0.5)
np.choose([0, 1, 0, 1, 1], [x, y])
np.unravel_index(5, A.shape)
np.resize(x, (2, 4))
np.lib.stride_tricks.sliding_window_view(x, 3)
# traced integer indices
x[k]
A[k, 1]
x[l]
T[:, k]
np.take(x, l)
np.take_along_axis(x, np.argsort(x), axis=0)
x[np.argmax(y)]
x[np.argsort(x)]
"""


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


def inplace_add(x, y):
    x += y
    return x


def inplace_all_operators(x, p):
    x -= p
    x *= 2.0
    x /= p
    x **= 2
    x //= 0.3
    x %= 1.7
    return x


def inplace_int_operators(i, j):
    i += j
    i *= 3
    i //= 2
    i %= 7
    i &= 6
    i |= 1
    i ^= j
    i <<= 1
    i >>= 2
    return i


def inplace_bool_operators(b, c):
    b &= c
    b |= ~c
    b ^= c
    return b


def inplace_slice(x, a):
    x[1:4] += a
    x[::2] *= 0.5
    return x


def inplace_fancy(x):
    x[[0, 0, 2]] += 1.0
    return x


def inplace_3d(T, M):
    T[:, 1] *= 2.0
    T[0] -= M
    return T


def inplace_zeros_accumulate(x):
    total = np.zeros(())
    for value in x:
        total = total + value
    return total


def inplace_zeros_array(x, y):
    total = np.zeros(5)
    total += x
    total -= y
    return total


def out_argument(x, y):
    result = np.zeros(5)
    np.add(x, y, out=result)
    return result


def out_argument_traced(x, y):
    result = np.empty_like(x)
    returned = np.multiply(x, y, out=result)
    return result, returned


def out_tuple(x):
    result = np.empty_like(x)
    np.negative(x, out=(result,))
    return result


def out_slice(x, y):
    result = np.zeros((2, 5))
    np.subtract(x, y, out=result[1])
    return result


def out_where(x, y, b):
    result = np.zeros_like(x)
    np.add(x, y, out=result, where=b)
    return result


def out_divide_where(x, y):
    return np.divide(x, y, out=np.zeros_like(x), where=y != 0)


def out_matmul(A, B):
    result = np.zeros((3, 3))
    np.matmul(A, B, out=result)
    return result


def out_dot(A, B):
    result = np.zeros_like(A)
    np.dot(A, B, out=result)
    return result


def out_sum(T):
    result = np.zeros((2, 4))
    np.sum(T, axis=1, out=result)
    return result


def out_clip(x):
    np.clip(x, -0.5, 0.5, out=x)
    return x


def put_function(x):
    np.put(x, [0, 2], [1.0, 2.0])
    return x


def copyto(x, y):
    np.copyto(x, y)
    return x


def copyto_where(x, y):
    np.copyto(x, y, where=np.array([True, False, True, False, True]))
    return x


def fill_diagonal(A, s):
    np.fill_diagonal(A, s)
    return A


def put_along_axis(M):
    np.put_along_axis(M, np.array([[1], [0], [3]]), 9.0, axis=1)
    return M


def place(x):
    np.place(x, np.array([True, False, True, False, True]), [1.0, 2.0])
    return x


def putmask(x, y):
    np.putmask(x, np.array([True, False, True, False, True]), y)
    return x


def add_at(x):
    np.add.at(x, [0, 0, 3], 1.0)
    return x


def unpack(a):
    first, second, third = a
    return third - first, second


def unpack_rest(x):
    first, *rest, last = x
    return first, rest, last


def unpack_rows(A):
    top, middle, bottom = A
    return np.stack([bottom, top, middle])


def unpack_call(a):
    return (lambda first, second, third: first + second * third)(*a)


def iterate_sum(x):
    return sum(value * value for value in x)


def iterate_rows(T):
    return [row.T for row in T]


def iterate_zip(x, y):
    return np.array([left * right for left, right in zip(x, y)])


def iterate_enumerate(x):
    return np.array([index * value for index, value in enumerate(x)])


def iterate_reversed(x):
    return np.array(list(reversed(x)))


def iterate_range(A, a):
    out = np.zeros(3)
    for row in range(3):
        for column in range(3):
            out[row] += A[row, column] * a[column]
    return out


def iterate_ndenumerate(A):
    return np.array([value * sum(index) for index, value in np.ndenumerate(A)])


def iterate_ndindex(A):
    return np.array([A[index] for index in np.ndindex(A.shape)])


def python_max_min_free_list(x):
    items = [x[0], 2.0, x[1]]
    items.append(x[2] * 3)
    return np.array(items)


def swap_elements(x):
    x[0], x[1] = x[1], x[0]
    return x


def swap_rows(A):
    A[[0, 2]] = A[[2, 0]]
    return A


def nested_function(x):
    def scaled(value, factor=2.0):
        return value * factor

    return scaled(x) + scaled(x, factor=0.5)


def dictionary_result(x):
    parts = {"head": x[:2], "tail": x[2:]}
    return [parts["tail"], parts["head"]]


EXACT_PROGRAMS = [
    value
    for name, value in list(globals().items())
    if callable(value)
    and getattr(value, "__module__", "") == __name__
    and name not in ("iterate_sum", "out_matmul", "out_dot", "out_sum")
]
SUM_PROGRAMS = [iterate_sum, out_matmul, out_dot, out_sum]

FORMS = [
    *forms("indexing", EXACT, READS),
    *forms("assignment and iteration", EXACT, EXACT_PROGRAMS),
    *forms("assignment and iteration", SUMS, SUM_PROGRAMS),
]
