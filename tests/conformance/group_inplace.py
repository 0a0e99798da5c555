"""In-place operators, ``out=``, functions that write, iteration and unpacking."""

from __future__ import annotations

import numpy as np

from .forms import EXACT, SUMS, forms, programs_of

__all__ = ["FORMS"]


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


INEXACT = [iterate_sum, out_matmul, out_dot, out_sum]

FORMS = [
    *forms("in place and iteration", EXACT, programs_of(globals(), INEXACT)),
    *forms("in place and iteration", SUMS, INEXACT),
]
