"""Discrete Fourier transforms of traced arrays, unrolled for their fixed size.

Decimation in time by the smallest prime factor (Cooley and Tukey, Math. Comp. 19, 1965); a prime
size is a product with a matrix. Results are pairs (``complex_pairs.py``). Eager transforms are
NumPy's own: they differ by rounding.
"""

from __future__ import annotations

import math

import numpy as np

from archimedes.graph.elementary import evaluate
from archimedes.symbolic.core.conversion import floats
from archimedes.symbolic.core.registry import FUNCTIONS, implements
from archimedes.symbolic.core.trace import trace_error
from archimedes.symbolic.core.traced_value import Operand, Traced
from archimedes.symbolic.numpy_functions.complex_pairs import PAIR_FUNCTIONS, ComplexPair

__all__: list[str] = []

#: Most multiplications of one transform, which are all recorded.
_MAX_WORK = 100_000


def _units(powers: np.ndarray, n: int, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """cos and sin of 2 pi powers / n, exact at multiples of an eighth of a turn where they can be.

    By functions of our own: those of the C library have other bits on other machines.
    """
    quarter, rest = np.divmod(4 * (powers % n), n)
    mirrored = 2 * rest > n  # nearer to the next quarter
    angle = math.pi / 2 * np.where(mirrored, n - rest, rest) / n
    near, far = evaluate("cos", angle), evaluate("sin", angle)
    c, s = np.where(mirrored, far, near), np.where(mirrored, near, far)
    return np.choose(quarter, [c, -s, -c, s]), sign * np.choose(quarter, [s, c, -s, -c])


def _factor(n: int) -> int:
    return next((p for p in range(2, math.isqrt(n) + 1) if n % p == 0), n)


def _work(n: int) -> int:
    total, rest = 0, n
    while rest > 1:
        p = _factor(rest)
        total, rest = total + 4 * n * p, rest // p
    return total


def _transform(z: ComplexPair, sign: int) -> ComplexPair:
    """Sum over j of z_j exp(sign 2 pi i j k / n), over the last axis."""
    n = z.shape[-1]
    if n == 1:
        return z
    p = _factor(n)
    m = n // p
    parts = []
    for r in range(p):
        part = _transform(z[..., r::p], sign)
        c, s = _units(r * np.arange(m), n, sign)
        parts.append(_rotate(part, c, s) if r else part)
    outputs = []
    for q in range(p):
        turned = (_rotate(parts[r], *_units(np.array(r * q), p, sign)) for r in range(1, p))
        outputs.append(sum(turned, parts[0]))
    return ComplexPair(*(np.concatenate([getattr(f, w) for f in outputs], -1) for w in _BOTH))


_BOTH = ("real", "imag")


def _rotate(z: ComplexPair, c: Operand, s: Operand) -> ComplexPair:
    return ComplexPair(z.real * c - z.imag * s, z.real * s + z.imag * c)


def _prepare(name: str, a: Operand, n: int | None, axis: int) -> tuple[ComplexPair, int]:
    """Return the operand with its axis last and cut or filled to n elements."""
    if isinstance(a, ComplexPair):
        real, imag = floats(a.real, a.imag)
    else:
        (real,) = floats(a)
        imag = np.zeros_like(real)
    if real.ndim == 0:
        raise ValueError(f"np.fft.{name} needs an array of at least one axis, got a number")
    axis = range(real.ndim)[axis]
    n = real.shape[axis] if n is None else int(n)
    if n < 1:
        raise ValueError(f"Invalid number of FFT data points ({n}) specified.")
    if _work(n) > _MAX_WORK:
        raise trace_error(
            f"np.fft.{name} of {n} points is too large to record",
            "Use fewer points, or a number that is a product of small primes, or wrap the call "
            "in arc.callback.",
        )
    real, imag = (_resize(np.moveaxis(x, axis, -1), n) for x in (real, imag))
    return ComplexPair(real, imag), axis


def _resize(x: Operand, n: int) -> Traced:
    have = x.shape[-1]
    if have >= n:
        return x[..., :n]
    return np.concatenate([x, np.zeros_like(x, shape=(*x.shape[:-1], n - have))], axis=-1)


def _scale(n: int, norm: str | None, inverse: bool) -> float:
    """The factor of a transform, as NumPy's ``norm`` defines it."""
    if norm not in (None, "backward", "ortho", "forward"):
        raise ValueError(f'Invalid norm value {norm}; should be "backward", "ortho" or "forward".')
    if norm == "ortho":
        return 1 / math.sqrt(n)
    return 1 / n if inverse == (norm != "forward") else 1.0


def _finish(z: ComplexPair, factor: float, axis: int) -> ComplexPair:
    scaled = z if factor == 1.0 else z * factor
    return ComplexPair(*(np.moveaxis(getattr(scaled, w), -1, axis) for w in _BOTH))


def _complex_transform(name: str, sign: int) -> Traced:
    def transform(
        a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None
    ) -> Traced:
        z, axis = _prepare(name, a, n, axis)
        factor = _scale(z.shape[-1], norm, inverse=sign > 0)
        return _finish(_transform(z, sign), factor, axis)

    return transform


implements(np.fft.fft)(_complex_transform("fft", -1))
implements(np.fft.ifft)(_complex_transform("ifft", 1))


@implements(np.fft.rfft)
def _rfft(a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None) -> Traced:
    if isinstance(a, ComplexPair):
        raise TypeError("np.fft.rfft takes real input: use np.fft.fft")
    z, axis = _prepare("rfft", a, n, axis)
    size = z.shape[-1]
    half = _transform(z, -1)[..., : size // 2 + 1]
    return _finish(half, _scale(size, norm, inverse=False), axis)


@implements(np.fft.irfft)
def _irfft(a: Operand, n: int | None = None, axis: int = -1, norm: str | None = None) -> Traced:
    have = a.shape[range(a.ndim)[axis]]
    size = 2 * (have - 1) if n is None else int(n)
    if size < 1:
        raise ValueError(f"Invalid number of data points ({size}) specified.")
    z, axis = _prepare("irfft", a, size // 2 + 1, axis)
    # The rest of the spectrum is the conjugate of its mirror image; zero and half frequency, which
    # are their own, are real whatever is given.
    own = [0] + ([size // 2] if size % 2 == 0 else [])
    keep = np.array([0.0 if k in own else 1.0 for k in range(size // 2 + 1)])
    z = ComplexPair(z.real, z.imag * keep)
    back = z[..., 1 : (size + 1) // 2][..., ::-1].conj()
    full = ComplexPair(*(np.concatenate([getattr(p, w) for p in (z, back)], -1) for w in _BOTH))
    signal = _transform(full, 1).real * _scale(size, norm, inverse=True)
    return np.moveaxis(signal, -1, axis)


for _function in (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft):
    PAIR_FUNCTIONS[_function] = FUNCTIONS[_function]
