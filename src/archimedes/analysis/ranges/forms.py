"""Affine forms: values as linear functions of noise symbols, with what is left as a radius.

A form says ``x = c + sum(a[i] * e[i]) + d`` with symbols ``-1 <= e[i] <= 1`` that several values
share and ``-r <= d <= r`` of its own. Inputs have a symbol each; so what several values owe to one
input is not counted twice (de Figueiredo and Stolfi, Affine arithmetic, 2004). Forms enclose what
is computed, not only what is exact: each operation adds its rounding error to ``r``.

Legend: ``a`` coefficients (symbols, boxes, ...), ``c`` centres and ``r`` radii (boxes, ...),
``mag`` the sum of the magnitudes of all of them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray
Symbols = tuple[int, ...]

#: Error of a few roundings of float64, as a share of the magnitudes involved.
SLOP = 2.0**-50
_TINY = 1e-320
#: Forms of larger numbers say nothing: products of two of them are still finite.
_LARGEST = 1e150


class Form(NamedTuple):
    """An affine form over many boxes."""

    symbols: Symbols
    a: Array
    c: Array
    r: Array
    mag: Array

    @property
    def radius(self) -> Array:
        """How far values can be from the centre."""
        return (self.mag - np.abs(self.c)) * (1.0 + _share(self)) + SLOP * np.abs(self.c)

    def ends(self) -> Array:
        """Return the interval of the form."""
        radius = self.radius * (1.0 + SLOP) + SLOP * np.abs(self.c)
        return np.stack([self.c - radius, self.c + radius])


def _share(form: Form) -> float:
    """Return a bound for the relative error of sums over the symbols."""
    return (len(form.symbols) + 8) * 2.0**-51


def make_form(symbols: Symbols, a: Array, c: Array, r: Array) -> Form:
    """Return a form; where numbers are not finite, or too large, it says nothing."""
    mag = np.abs(a).sum(axis=0) + (np.abs(c) + r)
    good = mag < _LARGEST
    if not good.all():
        a, c = np.where(good, a, 0.0), np.where(good, c, 0.0)
        r = np.where(good, r, np.inf)
        mag = np.where(good, mag, np.inf)
    return Form(symbols, a, c, r, mag)


def constant_form(ends: Array) -> Form:
    """Return the form of an interval that shares nothing with others."""
    c = 0.5 * ends[0] + 0.5 * ends[1]
    r = np.maximum(ends[1] - c, c - ends[0]) * (1.0 + SLOP) + _TINY
    return make_form((), np.zeros((0, *c.shape)), c, np.where(ends[0] == ends[1], 0.0, r))


@lru_cache(maxsize=4096)
def _union(x: Symbols, y: Symbols) -> tuple[Symbols, Any, Any]:
    """Return the symbols of two forms, and where those of each are among them."""
    if x == y:
        return x, slice(None), slice(None)
    symbols = tuple(sorted({*x, *y}))
    at = {symbol: k for k, symbol in enumerate(symbols)}
    return symbols, [at[s] for s in x], [at[s] for s in y]


def align(x: Form, y: Form) -> tuple[Symbols, Array, Array]:
    """Return the coefficients of two forms over the symbols of both."""
    symbols, at_x, at_y = _union(x.symbols, y.symbols)
    if x.symbols == y.symbols:
        return symbols, x.a, y.a
    shape = np.broadcast_shapes(x.c.shape, y.c.shape)
    a, b = np.zeros((2, len(symbols), *shape))
    a[at_x], b[at_y] = x.a, y.a
    return symbols, a, b


def scale(x: Form, alpha: Any, beta: Any, delta: Any) -> Form:
    """Return ``alpha x + beta`` with an error of up to ``delta``."""
    size = np.abs(alpha)
    r = size * x.r + delta + SLOP * (size * x.mag + np.abs(beta))
    return make_form(x.symbols, alpha * x.a, alpha * x.c + beta, r * (1.0 + SLOP) + _TINY)


def combine(x: Form, alpha: Any, y: Form, gamma: Any, beta: Any, delta: Any) -> Form:
    """Return ``alpha x + gamma y + beta`` with an error of up to ``delta``."""
    symbols, a, b = align(x, y)
    total = np.abs(alpha) * x.mag + np.abs(gamma) * y.mag + np.abs(beta)
    r = np.abs(alpha) * x.r + np.abs(gamma) * y.r + delta + SLOP * total
    c = alpha * x.c + gamma * y.c + beta
    return make_form(symbols, alpha * a + gamma * b, c, r * (1.0 + SLOP) + _TINY)


def multiply(x: Form, y: Form, delta: Any) -> Form:
    """Return the product with an error of up to ``delta``.

    Of ``(cx + u)(cy + v)`` only ``u v`` is not affine. It is bounded in two ways: squares of a
    symbol are not negative; and ``u v = ((u + v)**2 - (u - v)**2) / 4``.
    """
    size_x, size_y = x.radius, y.radius
    if x is y:
        low, high = 0.0 * size_x, size_x * size_x
    else:
        _, a, b = align(x, y)
        products = a * b
        signed, plain = products.sum(axis=0), np.abs(products).sum(axis=0)
        rest = size_x * size_y - plain
        plus = np.abs(a + b).sum(axis=0) + x.r + y.r
        minus = np.abs(a - b).sum(axis=0) + x.r + y.r
        low = np.maximum(0.5 * (signed - plain) - rest, -0.25 * minus * minus)
        high = np.minimum(0.5 * (signed + plain) + rest, 0.25 * plus * plus)
    slop = (_share(x) + _share(y)) * size_x * size_y
    half = 0.5 * (high - low) + 2.0 * slop
    beta = 0.5 * (low + high) - x.c * y.c
    return combine(x, y.c, y, x.c, beta, delta + half)


def divide(x: Form, y: Form, inverse: Form, delta: Any) -> Form:
    """Return the quotient, given the form of ``1 / y``, with an error of up to ``delta``.

    ``x / y = q + (x - q y) / y`` with the quotient q of the centres: the form in parentheses has
    lost what numerator and denominator have in common.
    """
    q = x.c / y.c
    return scale(multiply(combine(x, 1.0, y, -q, 0.0, 0.0), inverse, 0.0), 1.0, q, delta)


def choose(true: Array, false: Array, x: Form, y: Form) -> Form:
    """Return x where a condition holds, y where it does not, and a form for both elsewhere."""
    symbols, a, b = align(x, y)
    unknown = ~(true | false)

    def pick(p: Array, q: Array) -> Array:
        return np.where(true, p, np.where(false, q, 0.5 * p + 0.5 * q))

    r = pick(x.r, y.r)
    if unknown.any():
        between = np.abs(a - b).sum(axis=0) + np.abs(x.c - y.c)
        extra = 0.5 * between * (1.0 + _share(x) + _share(y)) + SLOP * (x.mag + y.mag)
        r = np.where(unknown, np.maximum(x.r, y.r) + extra, r)
    return make_form(symbols, pick(a, b), pick(x.c, y.c), r * (1.0 + SLOP))


def total(x: Form, unit: float) -> Form:
    """Return the sum over the last axis, added in any order with a roundoff of ``unit``."""
    n = x.c.shape[-1]
    error = 2.0 * n * (unit + 2.0**-52) * x.mag.sum(axis=-1)
    return make_form(x.symbols, x.a.sum(axis=-1), x.c.sum(axis=-1), x.r.sum(axis=-1) + error)


def index(x: Form, key: Any) -> Form:
    """Return the form with its arrays indexed along their last axes."""
    return Form(x.symbols, x.a[key], x.c[key], x.r[key], x.mag[key])


def take_boxes(x: Form, boxes: Array) -> Form:
    """Return the form for some of the boxes."""
    return Form(x.symbols, x.a[:, boxes], x.c[boxes], x.r[boxes], x.mag[boxes])


def rescale(x: Form, middle: Array, half: Array) -> Form:
    """Return the form with each symbol e replaced by ``middle + half * e``."""
    rows = list(x.symbols)
    extra = (slice(None), slice(None), *(None,) * (x.c.ndim - 1))
    m, h = middle[rows][extra], half[rows][extra]
    c = x.c + (x.a * m).sum(axis=0)
    return make_form(x.symbols, x.a * h, c, (x.r + (_share(x) + SLOP) * x.mag) * (1.0 + SLOP))


def release(x: Form, symbol: int) -> Form:
    """Return the form with its radius as the coefficient of a new symbol, which sorts last."""
    a = np.concatenate([x.a, x.r[None]])
    return Form((*x.symbols, symbol), a, x.c, np.zeros_like(x.r), x.mag)


def condense(x: Form, first: int, most: int) -> Form:
    """Return the form with at most so many symbols from ``first`` on, those that matter most."""
    old = [k for k, symbol in enumerate(x.symbols) if symbol >= first]
    if len(old) <= most:
        return x
    size = np.abs(x.a[old])
    share = (size / np.maximum(x.mag, _TINY)).reshape(len(old), -1).max(axis=1)
    order = np.argsort(-share, kind="stable")
    lost = {old[k] for k in order[most // 2 :].tolist()}
    kept = [k for k in range(len(x.symbols)) if k not in lost]
    r = (x.r + np.abs(x.a[sorted(lost)]).sum(axis=0)) * (1.0 + _share(x))
    return make_form(tuple(x.symbols[k] for k in kept), x.a[kept], x.c, r)
