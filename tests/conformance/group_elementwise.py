"""Operators and ufuncs."""

from __future__ import annotations

from .forms import ELEMENTARY, EXACT, forms

__all__ = ["FORMS"]

OPERATORS = """
+x
-x
abs(x)
x + y
x - y
x * y
x / y
x // y
x % y
x % 1.5
x // -0.7
-7.5 % x
3.0 // x
divmod(x, y)
divmod(x, 2.0)
divmod(i, j)
x ** 2
x ** -1
p ** 0.5
2.0 - x
1.0 / x
x < y
x <= y
x > y
x >= y
x == x
x != y
0.5 < x
i + j
i - j
i * j
i // j
i % j
i / j
i ** 2
i ** 3
-i
abs(i)
~i
i & j
i | j
i ^ j
i << 2
i >> 1
l << l
100 >> l
i == j
i < j
b & c
b | c
b ^ c
~b
b == c
b < c
b + c
b * c
b * x
b + i
A * B
A + a
A - a[:, None]
T + U
T * U
T - T[0]
T / U[:, :1]
H * H[0]
H + H[:, :, :1]
s + t
s * x
s - A
k * x
k + i
"""

EXACT_UFUNCS = """
np.add(x, y)
np.subtract(x, y)
np.multiply(x, y)
np.divide(x, y)
np.true_divide(i, j)
np.floor_divide(x, y)
np.floor_divide(i, j)
np.remainder(x, y)
np.remainder(i, j)
np.mod(T, U)
np.fmod(x, y)
np.fmod(i, j)
np.negative(x)
np.positive(x)
np.abs(x)
np.absolute(i)
np.fabs(x)
np.sign(x)
np.sign(i)
np.rint(x)
np.floor(x)
np.ceil(x)
np.trunc(x)
np.fix(x)
np.round(x)
np.round(x, 1)
np.around(x, 2)
np.round(T * 10)
np.floor(T)
np.sqrt(p)
np.square(x)
np.square(i)
np.reciprocal(x)
np.maximum(x, y)
np.minimum(x, y)
np.fmax(x, 0.5)
np.fmin(x, y)
np.maximum(i, j)
np.minimum(T, 0.25)
np.clip(x, -0.5, 0.5)
np.clip(x, None, 1.0)
np.clip(x, y - 1, y + 1)
np.clip(i, -3, 5)
np.clip(T, -1.0, 1.0)
np.copysign(x, y)
np.copysign(1.0, x)
np.signbit(x)
np.heaviside(x, 0.5)
np.nan_to_num(x)
np.isnan(x)
np.isinf(x)
np.isfinite(x)
np.isfinite(i)
np.isposinf(x)
np.isneginf(x)
np.isclose(x, x + 1e-9)
np.isclose(x, y, atol=1.0)
np.allclose(x, x)
np.array_equal(x, y)
np.logical_and(b, c)
np.logical_or(x > 0, c)
np.logical_xor(b, c)
np.logical_not(b)
np.logical_not(x)
np.logical_and(x, i)
np.bitwise_and(i, j)
np.bitwise_or(b, c)
np.bitwise_xor(i, 5)
np.invert(i)
np.left_shift(i, 3)
np.right_shift(i, 1)
np.greater(x, y)
np.greater_equal(T, U)
np.less(x, 0.0)
np.less_equal(x, y)
np.equal(i, 3)
np.not_equal(x, y)
np.gcd(i, j)
np.lcm(i, j)
np.modf(x)
np.real(x)
np.imag(x)
np.conj(x)
np.iscomplexobj(x)
np.isreal(x)
np.deg2rad(x)
np.rad2deg(x)
np.radians(T)
np.degrees(x)
np.add(x, y, dtype=np.float64)
np.maximum.reduce(x)
np.add.reduce(i)
np.multiply.reduce(I, axis=1)
np.logical_and.reduce(K, axis=0)
np.add.outer(a, d)
np.multiply.outer(x, i)
np.minimum.outer(a, d)
np.maximum.accumulate(x)
np.add.accumulate(i)
np.multiply.accumulate(I, axis=1)
"""

ELEMENTARY_UFUNCS = """
np.sin(x)
np.cos(x)
np.tan(x)
np.arcsin(u)
np.arccos(u)
np.arctan(x)
np.arctan2(x, y)
np.atan2(T, U)
np.sinh(x)
np.cosh(x)
np.tanh(x)
np.arcsinh(x)
np.arccosh(p + 1)
np.arctanh(u)
np.asin(u)
np.acos(u)
np.atan(x)
np.exp(x)
np.exp2(x)
np.expm1(x)
np.log(p)
np.log2(p)
np.log10(p)
np.log1p(p)
np.cbrt(x)
np.hypot(x, y)
np.power(p, y)
np.pow(p, 2.5)
np.float_power(p, 2.0)
p ** y
p ** 1.5
2.0 ** x
x ** 3
x ** i
np.logaddexp(x, y)
np.logaddexp2(x, y)
np.sinc(x)
np.i0(x)
np.sin(T)
np.exp(H)
np.tanh(E)
np.hypot(T, U)
np.arctan2(H, H[::-1])
np.sin(i)
np.exp(k)
np.sqrt(i * i)
np.sin(s) + np.cos(t)
np.unwrap(x)
np.angle(x)
"""

FORMS = [
    *forms("operators", EXACT, OPERATORS),
    *forms("exact ufuncs", EXACT, EXACT_UFUNCS),
    *forms("elementary ufuncs", ELEMENTARY, ELEMENTARY_UFUNCS),
]
