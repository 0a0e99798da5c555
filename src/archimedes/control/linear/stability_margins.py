"""Stability margins of a loop: exact crossings, not those of a grid.

|L(jw)| = 1 where a Hamiltonian matrix has the eigenvalue jw (S. Boyd, V. Balakrishnan, P. Kabamba,
"A bisection method for computing the H-infinity norm ...", Math. Control Signals Systems 2, 1989,
theorem 2); L(jw) is real where L(s) - L(-s) has a zero at jw. Systems in steps become continuous
ones by z = (1 + s) / (1 - s), which keeps the circle: w dt / 2 = arctan of the new frequency.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from archimedes.control.linear.state_space import StateSpace
from archimedes.function import holds_traced

__all__ = ["Margins", "margins"]

#: How far from the axis, relative to its size, an eigenvalue may be to count as on it.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Margins:
    """How far a loop is from instability.

    ``gain`` is the factor (above or below 1) nearest to 1 at which the loop would become unstable,
    at ``gain_frequency``; ``phase`` (rad) the least lag that does, at ``phase_frequency``;
    ``delay`` (s) the least delay; infinite, with a frequency of nan, where nothing does. Where
    the closed loop is not ``stable`` to begin with, they say how far it is from becoming so.

    >>> from archimedes.control import StateSpace, margins
    >>> loop = StateSpace([[0.0, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    >>> found = margins(loop)
    >>> found.gain, round(found.delay, 4)
    (inf, 1.1506)
    """

    gain: float
    phase: float
    delay: float
    gain_frequency: float
    phase_frequency: float
    stable: bool = True


def margins(loop: StateSpace) -> Margins:
    """Return the margins of an open loop L with one input and output, closed as 1 / (1 + L).

    >>> integrators = StateSpace([[0.0, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    >>> found = margins(integrators)
    >>> round(float(np.rad2deg(found.phase)), 2), round(found.phase_frequency, 4)
    (51.83, 0.7862)
    """
    if not isinstance(loop, StateSpace):
        raise TypeError(f"loop must be a control.StateSpace, got {type(loop).__name__}")
    if loop.D.shape != (1, 1):
        raise ValueError(
            f"loop must have one output and one input, got {loop.D.shape}; choose them with "
            "loop.part(output, input)"
        )
    if holds_traced((loop.A, loop.B, loop.C, loop.D)):
        raise TypeError("margins runs on numbers; frequency_response can be recorded")
    continuous, frequency = _on_the_axis(loop)
    gain, gain_w = _gain_margin(continuous)
    found = [(w, _at(continuous, w)) for w in _unit_crossings(continuous)]
    leads = [(float((np.angle(v) + np.pi) % (2.0 * np.pi)), w) for w, v in found]
    lags = [(min(lead, 2.0 * np.pi - lead), w) for lead, w in leads]
    phase, phase_w = min(lags, default=(np.inf, np.nan))
    delays = [lead / frequency(w) for lead, w in leads if w > 0.0]
    delay = min(delays, default=np.inf)
    stable = _is_stable(continuous)
    return Margins(gain, phase, delay, frequency(gain_w), frequency(phase_w), stable)


def _is_stable(system: Any) -> bool:
    """Whether the loop, closed, has all its poles on the left."""
    A, B, C, D = system
    ahead = 1.0 + float(D[0, 0])
    return ahead != 0.0 and bool(np.all(np.linalg.eigvals(A - B @ C / ahead).real < 0.0))


def _on_the_axis(loop: StateSpace) -> Any:
    """Return a continuous system with the same values, and its frequencies in rad/s."""
    A, B, C, D = (np.asarray(getattr(loop, k)) for k in "ABCD")
    if loop.dt is None:
        return (A, B, C, D), float
    ahead = np.eye(len(A)) + A
    try:
        inverse = np.linalg.inv(ahead)
    except np.linalg.LinAlgError:
        raise ValueError("loop has a pole at -1, the highest frequency: no margins there") from None
    root = np.sqrt(2.0)
    parts = (inverse @ (A - np.eye(len(A))), root * inverse @ B, root * C @ inverse)
    dt = float(loop.dt)
    return (*parts, D - C @ inverse @ B), lambda w: float(2.0 * np.arctan(w) / dt)


def _at(system: Any, w: float) -> complex:
    A, B, C, D = system
    return complex((C @ np.linalg.solve(1j * w * np.eye(len(A)) - A, B) + D)[0, 0])


def _unit_crossings(system: Any) -> list[float]:
    A, B, C, D = system
    d = float(D[0, 0])
    r = 1.0 - d * d
    if r == 0.0:
        r = 1e-15  # the response ends on the circle: the crossing is at infinity
    F = A + B @ C * (d / r)
    H = np.block([[F, B @ B.T / r], [-C.T @ C * (1.0 + d * d / r), -F.T]])
    return _on_axis(np.linalg.eigvals(H), lambda w: abs(_at(system, w)) - 1.0)


def _real_crossings(system: Any) -> list[float]:
    from scipy.linalg import eigvals

    A, B, C, _ = system
    n, none = len(A), np.zeros_like(A)
    pencil = np.block([[A, none, B], [none, -A, B], [C, C, np.zeros((1, 1))]])
    mass = np.diag(np.append(np.ones(2 * n), 0.0))
    values = eigvals(pencil, mass)
    return _on_axis(values[np.isfinite(values)], lambda w: _at(system, w).imag)


def _on_axis(values: np.ndarray, function: Any) -> list[float]:
    """Return the frequencies of eigenvalues on the axis, polished by secant steps."""
    near = np.abs(values.real) <= ROUNDING * (1.0 + np.abs(values))
    found: list[float] = []
    for w in sorted(values[near & (values.imag > 0.0)].imag):
        w = float(w)
        if found and abs(w - found[-1]) <= 1e-6 * w:
            continue
        found.append(_polished(function, w))
    return found


def _polished(function: Any, w: float) -> float:
    h = 1e-7 * w
    for _ in range(3):
        slope = (function(w + h) - function(w - h)) / (2.0 * h)
        step = function(w) / slope if slope else 0.0
        if not abs(step) < 1e-4 * w:
            break
        w -= step
    return w


def _gain_margin(system: Any) -> tuple[float, float]:
    candidates = [(w, _at(system, w).real) for w in _real_crossings(system)]
    with contextlib.suppress(np.linalg.LinAlgError):  # an integrator is infinite there
        candidates.append((0.0, _at(system, 0.0).real))
    found = [(-1.0 / v, w) for w, v in candidates if v < 0.0]
    return min(found, key=lambda pair: abs(np.log(pair[0])), default=(np.inf, np.nan))
