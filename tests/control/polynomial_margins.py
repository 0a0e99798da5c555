"""Stability margins of transfer functions by roots of polynomials, in 50 digits.

L = num / den. Along s = jw, or z = exp(jw dt), L is real where num den* is, and its size is one
where num num* = den den*; den* is den on the mirror image, den(-s) or den(1/z). Roots on the axis,
or on the circle, are where these hold; zero and the highest frequency (infinite, or z = -1), where
every L is real, are looked at by themselves.
"""

from __future__ import annotations

from typing import NamedTuple

import mpmath
import numpy as np

__all__ = ["PolynomialMargins", "polynomial_margins"]

DIGITS = 50


class PolynomialMargins(NamedTuple):
    """The same as `archimedes.control.Margins`, but for the delay."""

    gain: float
    phase: float
    gain_frequency: float
    phase_frequency: float


def _trim(p):
    """Leave out leading zeros."""
    while len(p) > 1 and abs(p[0]) < mpmath.mpf(10) ** (-DIGITS + 10):
        p = p[1:]
    return p


def _add(a, b, sign):
    n = max(len(a), len(b))
    a, b = [0] * (n - len(a)) + a, [0] * (n - len(b)) + b
    return [x + sign * y for x, y in zip(a, b)]


def _times(a, b):
    out = [mpmath.mpf(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            out[i + j] += x * y
    return out


def _mirror(p, discrete):
    """p(-s), or z^n p(1/z)."""
    return p[::-1] if discrete else [c * (-1) ** (len(p) - 1 - k) for k, c in enumerate(p)]


def _on_curve(p, discrete):
    """Frequencies above zero (and below that of z = -1) of the roots on the axis or the circle."""
    p = _trim(p)
    if len(p) < 2:
        return []
    roots = mpmath.polyroots(p, maxsteps=500, extraprec=400)
    near = mpmath.mpf(10) ** -15
    if discrete:
        w = [mpmath.arg(r) for r in roots if abs(abs(r) - 1) < near]
        return [x for x in w if near < x < mpmath.pi - near]
    return [mpmath.im(r) for r in roots if abs(mpmath.re(r)) < near * abs(r) and mpmath.im(r) > 0]


def polynomial_margins(num, den, dt=None) -> PolynomialMargins:
    """Return margins; powers highest first, num not longer than den, dt None in continuous time."""
    discrete = dt is not None
    with mpmath.workdps(DIGITS):
        den = [mpmath.mpf(float(x)) for x in den]
        num = [mpmath.mpf(0)] * (len(den) - len(num)) + [mpmath.mpf(float(x)) for x in num]
        a, b = _mirror(num, discrete), _mirror(den, discrete)

        def at(w):
            if not discrete and w == mpmath.inf:
                return num[0] / den[0]
            x = mpmath.exp(1j * w) if discrete else 1j * w
            below = mpmath.polyval(den, x)
            # Coefficients are rounded numbers: so is a pole at z = 1.
            pole = abs(below) < mpmath.mpf("1e-13") * sum(abs(c) for c in den)
            return mpmath.mpc(mpmath.inf) if pole else mpmath.polyval(num, x) / below

        ends = [mpmath.mpf(0), mpmath.pi if discrete else mpmath.inf]
        real = ends + _on_curve(_add(_times(num, b), _times(a, den), -1), discrete)
        gains = [(-1 / mpmath.re(v), w) for w in real for v in [at(w)] if _is_negative(v)]
        gain = min(gains, key=lambda pair: abs(mpmath.log(pair[0])), default=(np.inf, np.nan))
        sizes = _on_curve(_add(_times(num, a), _times(den, b), -1), discrete)
        sizes += [w for w in ends if abs(abs(at(w)) - 1) < mpmath.mpf(10) ** -30]
        phases = []
        for w in sizes:
            lead = mpmath.fmod(mpmath.arg(at(w)) + mpmath.pi, 2 * mpmath.pi)
            phases.append((min(lead, 2 * mpmath.pi - lead), w))
        phase = min(phases, default=(np.inf, np.nan))
        step = dt if discrete else 1.0
        return PolynomialMargins(
            float(gain[0]), float(phase[0]), float(gain[1]) / step, float(phase[1]) / step
        )


def _is_negative(v) -> bool:
    return bool(mpmath.isfinite(v)) and mpmath.re(v) < 0
