"""Ufuncs, operators, dtype promotion and special values."""

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

# Promotion: float32 stays float32 beside Python scalars and goes to float64 beside int64.
DTYPES_EXACT = """
f + g
f * g
f / g
f // g
f % g
-f
f + 1
f * 2.5
f + x
f + i
f * b
i + 1.5
i * True
b + 1
b + 1.0
b * b
f > g
f ** 2
np.sqrt(np.abs(f))
np.floor(f)
np.round(f, 1)
np.maximum(f, g)
np.clip(f, -1, 1)
np.where(b, f, g)
np.where(b, f, i)
np.where(b, f, 1.0)
np.where(b, i, 2)
np.abs(F)
F.T + F.reshape(4, 3)
r * f
r * x
r + 1
k / 3
x.astype(np.float32)
f.astype(np.float64)
x.astype(int)
x.astype(bool)
i.astype(float)
i.astype(np.float32)
b.astype(int)
b.astype(np.float64)
T.astype(np.int64)
np.add(f, g, dtype=np.float64)
np.array([f[0], x[1]])
np.array([i[0], x[1]])
np.array([b[0], i[1]])
np.array([i[0], 2])
np.concatenate([f, x])
np.concatenate([i, b])
np.stack([f, g])
np.sum(b)
np.sum(i)
i.mean()
i.sum(dtype=np.int64)
np.prod(b)
np.cumsum(b)
np.max(f)
np.sort(f)
np.zeros_like(f)
np.full_like(i, 2.7)
np.float64(2.0) * f
np.float32(2.0) * x
np.asarray(x, dtype=np.float32)
np.array(i, dtype=float)
np.astype(x, np.float32)
"""

DTYPES_ELEMENTARY = """
np.sin(f)
np.cos(f)
np.exp(f)
np.tanh(F)
np.log(np.abs(f))
np.arctan2(f, g)
np.power(np.abs(f), g)
np.hypot(f, g)
np.cbrt(f)
np.sin(b)
np.exp(i * 0.1)
np.deg2rad(f)
"""

NASTY = """
-z
z + w
z - w
z * w
z / w
z % w
z // w
z < w
z == z
z != w
abs(z)
np.sqrt(z)
np.sign(z)
np.floor(z)
np.rint(z)
np.trunc(z)
np.maximum(z, w * 2 + 0.25)
np.fmax(z, 0.75)
np.fmin(0.75, z)
np.copysign(2.0, z)
np.signbit(n)
np.heaviside(z, 0.5)
np.isnan(z)
np.isinf(z)
np.isfinite(z)
np.isposinf(z)
np.nan_to_num(z)
np.nan_to_num(z, nan=1.0, posinf=9.0, neginf=-9.0)
np.clip(z, -1.0, 1.0)
np.where(np.isnan(z), 0.5, z)
np.where(z > 0, z, w)
np.logical_not(z)
np.reciprocal(n)
0.0 / n
np.zeros(7) / z
np.square(z)
z ** 2
np.max(z)
np.min(n)
np.nanmax(z)
np.nanmin(z)
np.argmax(z)
np.argmin(z)
np.nanargmax(Z, axis=0)
np.sort(np.abs(z))
np.sort(Z, axis=0)
np.argsort(w, kind="stable")
np.sum(z)
np.any(z)
np.all(z)
np.isclose(z, z, equal_nan=True)
np.isclose(n, n)
np.fmod(z, w)
divmod(z, 2.0)
np.maximum(h, np.float32(0.5))
-h * h
np.cumsum(z[::-1])
z[::-1][:3]
np.concatenate([z, w])
np.median(z)
np.nansum(z[3:])
np.ptp(n)
np.array_equal(z, z, equal_nan=True)
"""

NASTY_ELEMENTARY = """
np.sin(z)
np.cos(z)
np.tan(n)
np.exp(z)
np.expm1(z)
np.log(np.abs(z))
np.log(z)
np.log1p(n)
np.log10(n)
np.tanh(z)
np.sinh(z)
np.cosh(z)
np.arctan(z)
np.arcsin(z)
np.arccosh(z)
np.arctanh(n)
np.arctan2(z, w)
np.arctan2(n, -n)
np.hypot(z, w)
np.cbrt(z)
np.power(n, 3.0)
np.power(np.abs(z), w)
n ** -1.0
n ** 0.5
np.logaddexp(z, w)
np.exp(h)
np.sin(h)
np.arctan2(h, -h)
"""

FORMS = [
    *forms("operators", EXACT, OPERATORS),
    *forms("exact ufuncs", EXACT, EXACT_UFUNCS),
    *forms("elementary ufuncs", ELEMENTARY, ELEMENTARY_UFUNCS),
    *forms("dtypes", EXACT, DTYPES_EXACT),
    *forms("dtypes", ELEMENTARY, DTYPES_ELEMENTARY),
    *forms("nasty values", EXACT, NASTY),
    *forms("nasty values", ELEMENTARY, NASTY_ELEMENTARY),
]
