"""Dtype promotion, and nan, infinities and signed zeros."""

from __future__ import annotations

from .forms import ELEMENTARY, EXACT, forms

__all__ = ["FORMS"]

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
    *forms("dtypes", EXACT, DTYPES_EXACT),
    *forms("dtypes", ELEMENTARY, DTYPES_ELEMENTARY),
    *forms("nasty values", EXACT, NASTY),
    *forms("nasty values", ELEMENTARY, NASTY_ELEMENTARY),
]
