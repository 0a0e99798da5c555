"""Forms whose result or control flow depends on values: each must raise ``TraceError``."""

from __future__ import annotations

import math

import numpy as np

from .forms import EXACT, Form, forms

__all__ = ["UNTRACEABLE"]

VALUE_DEPENDENT = """
np.unique(x)
np.nonzero(x)
np.flatnonzero(x > 0)
np.argwhere(x > 0)
np.where(x > 0)
x[x > 0]
A[A > 0.5]
x.nonzero()
np.extract(x > 0, x)
np.compress(x > 0, x)
np.roots(x)
np.union1d(x, y)
np.intersect1d(x, y)
np.setdiff1d(x, y)
np.trim_zeros(x)
np.bincount(l)
np.histogram(x)
np.repeat(x, l)
np.arange(k)
np.zeros(k)
float(s)
int(s)
int(k)
bool(s)
complex(s)
[1.0, 2.0, 3.0][k]
range(k)
round(float(s), 2)
str(float(s))
1.0 if s > 0 else 2.0
s > 0 and t > 0
0 < s < 1
not s
max(s, t)
min(x)
s in [1.0, 2.0]
sorted(x)
any(x > 0)
all(b)
np.reshape(x, (k - 1, -1))
x[:k]
x[k:]
np.tile(x, k)
np.split(x[:4], k)
np.linalg.eig(A)
np.fft.fft2(A)
np.exp(1j * x)
"""


def branch_on_array(x):
    if x[0] > 0:
        return x
    return -x


def loop_while(s):
    count = 0
    while s < 10:
        s = s * 2
        count += 1
    return count


def assert_on_value(s):
    assert s > 0
    return s


def truth_of_array(x):
    return bool(np.any(x > 0))


def format_value(s):
    return f"{s:.3f}"


def math_module(s):
    return math.sin(s)


def count_by_value(x):
    return sum(1 for value in x if value > 0)


PROGRAMS = [
    branch_on_array,
    loop_while,
    assert_on_value,
    truth_of_array,
    format_value,
    math_module,
    count_by_value,
]

UNTRACEABLE: list[Form] = [
    *forms("value-dependent", EXACT, VALUE_DEPENDENT),
    *forms("value-dependent", EXACT, PROGRAMS),
]
