"""Methods and attributes of arrays."""

from __future__ import annotations

import numpy as np

from .forms import EXACT, SUMS, forms

__all__ = ["FORMS"]

STRUCTURAL = """
A.T
x.T
T.T
T.mT
x.real
A.flat[4]
x.size * x
x.shape[0] + x
A.ndim * A
len(A) * A
A.ravel()
A.ravel(order="F")
A.flatten()
A.flatten("F")
x.reshape(5, 1)
T.reshape(6, 4)
T.reshape(4, -1)
T.reshape((3, 8))
M.reshape(2, 6, order="F")
H.reshape(-1)
A.transpose()
T.transpose(1, 0, 2)
T.transpose((2, 0, 1))
H.transpose(0, 2, 3, 1)
T.swapaxes(0, 2)
H.swapaxes(-1, 1)
x[None].squeeze()
x[None, :, None].squeeze(axis=0)
x.copy()
x.astype(np.float64)
A.astype(int)
x.view()
A.diagonal()
A.diagonal(1)
T.diagonal(axis1=1, axis2=2)
x.take([3, 0, 0])
M.take([1, 2], axis=1)
T.take(np.array([[2, 0], [1, 1]]), axis=1)
x.repeat(2)
M.repeat(2, axis=0)
x.repeat([1, 0, 2, 1, 1])
M.compress([True, False, True], axis=0)
x.clip(-1, 1)
x.clip(min=0.0)
x.round()
x.round(1)
x.conj()
x.max()
M.max(axis=0)
T.max(axis=(0, 2))
T.min(axis=1, keepdims=True)
x.min()
i.sum()
I.sum(axis=1)
I.prod(axis=0)
i.cumsum()
I.cumsum(axis=0)
l.cumprod()
x.argmax()
M.argmax(axis=1)
T.argmin(axis=0)
M.argmin()
x.argsort()
M.argsort(axis=0)
b.any()
b.all()
K.any(axis=0)
K.all(axis=1, keepdims=True)
L.any(axis=(0, 2))
x.item(2)
A.item(1, 2)
x.tolist()
s.copy()
s.reshape(1)
np.ptp(x)
i.dot(j)
x.nbytes * x
b.sum()
b.astype(int).sum()
x.__abs__()
x.__neg__()
T.squeeze()
H.ravel()
H.max(axis=(1, 3))
H.min()
J.sum(axis=(0, 2))
J.argmax()
"""

SUMMING = """
x.sum()
x.mean()
x.std()
x.var()
x.var(ddof=1)
M.std(axis=0, ddof=1)
T.mean(axis=(0, 2))
T.sum(axis=1)
T.sum(axis=-1, keepdims=True)
H.sum(axis=(1, 2))
H.mean()
T.var(axis=2)
x.prod()
T.prod(axis=1)
x.cumsum()
T.cumsum(axis=1)
x.cumprod()
x.dot(y)
A.dot(B)
A.dot(a)
A.trace()
A.trace(offset=1)
T.trace()
b.mean()
f.sum()
f.mean()
F.std(axis=1)
"""


def sort_method(x):
    copied = x.copy()
    copied.sort()
    return copied


def sort_method_axis(M):
    copied = M.copy()
    copied.sort(axis=0)
    return copied


def fill_method(x):
    filled = np.empty_like(x)
    filled.fill(x[2])
    return filled


def put_method(x):
    copied = x.copy()
    copied.put([0, 3], [7.0, 8.0])
    return copied


def resize_free_shape_change(T):
    copied = T.copy()
    copied.shape = (6, 4)
    return copied


def flat_iteration(A):
    return [e * 2 for e in A.flat]


PROGRAMS = [
    sort_method,
    sort_method_axis,
    fill_method,
    put_method,
    resize_free_shape_change,
    flat_iteration,
]

FORMS = [
    *forms("methods", EXACT, STRUCTURAL),
    *forms("methods", SUMS, SUMMING),
    *forms("methods", EXACT, PROGRAMS),
]
