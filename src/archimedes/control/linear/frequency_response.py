"""Linear systems in frequency: responses in real arithmetic, so that they record and map.

With s = sigma + j omega, (s I - A) X = B is a real system of twice the size,
[[sigma I - A, -omega I], [omega I, sigma I - A]] [Re X; Im X] = [B; 0]; in steps s is exp(j w dt).

Stability margins of a loop: exact crossings, not those of a grid.

L(jw) has size one where 1 - L(-s) L(s) has a zero at s = jw, and is real where L(s) - L(-s) has
one: generalised eigenvalues of system pencils (A. Emami-Naeini, P. Van Dooren, Automatica 18,
1982), in units in which the system is balanced. Systems in steps become continuous ones by
z = (1 + s) / (1 - s), which keeps the circle: w dt / 2 = arctan of the new frequency, and z = -1
is at infinity. Every loop is real at the frequencies zero and infinity, which are looked at by
themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_finite, is_traced
from archimedes.control.linear.interconnection import DelaySystem, as_system, feedback
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.linear.transfer_function import TransferFunction, ss
from archimedes.control.matrix_checks import vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import vmap
from archimedes.function.matrix_exponential import balancing_units
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Scalar

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FrequencyResponse", "Margins", "frequency_response", "margins"]


@struct
class FrequencyResponse:
    """The response G(j w) of a system, frequencies last.

    ``real`` and ``imag`` give the Nyquist plot; ``magnitude``, ``decibels`` and ``phase`` the Bode
    plot.

    Parameters
    ----------
    omega : array (N,)
        Frequencies in rad/s.
    real : array (p, m, N)
        Real part of G(j w).
    imag : array (p, m, N)
        Imaginary part of G(j w).
    inputs : tuple of str, optional
        Names of the inputs.
    outputs : tuple of str, optional
        Names of the outputs.

    Examples
    --------
    >>> from archimedes.control import StateSpace, frequency_response
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> frequency_response(lag, [0.1, 1.0, 10.0]).decibels[0, 0].round(2)
    array([ -0.04,  -3.01, -20.04])
    """

    omega: Array = field(units="rad/s")
    real: Array
    imag: Array
    inputs: tuple[str, ...] = field(static=True, default=())
    outputs: tuple[str, ...] = field(static=True, default=())

    @property
    def magnitude(self) -> Array:
        """Sizes (p, m, N)."""
        return np.hypot(self.real, self.imag)

    @property
    def decibels(self) -> Array:
        """Sizes in dB (p, m, N); of nothing -inf."""
        with np.errstate(divide="ignore"):
            return 20.0 * np.log10(self.magnitude)

    @property
    def phase(self) -> Array:
        """Phases in rad (p, m, N); of numbers without jumps along the frequencies."""
        angle = np.arctan2(self.imag, self.real)
        return angle if is_traced(angle) else np.apply_along_axis(_unwrap, -1, angle)

    @property
    def values(self) -> np.ndarray:
        """Complex numbers (p, m, N), outside recorded code."""
        return np.asarray(self.real) + 1j * np.asarray(self.imag)

    def plot(self, *, title: str | None = None, file: Any = None) -> Figure:
        """Draw Bode's diagrams of all channels; returns the matplotlib figure.

        Parameters
        ----------
        title : str, optional
            Title.
        file : path, optional
            File to save the figure to. Its ending determines the format.
        """
        import matplotlib.pyplot as plt

        figure, (above, below) = plt.subplots(2, 1, sharex=True)
        for i, y in enumerate(self.outputs):
            for j, u in enumerate(self.inputs):
                above.semilogx(self.omega, self.decibels[i, j], label=f"{u} to {y}")
                below.semilogx(self.omega, np.rad2deg(self.phase[i, j]))
        above.set_ylabel("magnitude (dB)")
        below.set_ylabel("phase (deg)")
        below.set_xlabel("frequency (rad/s)")
        above.legend(fontsize="small")
        if title is not None:
            figure.suptitle(title)
        if file is not None:
            figure.savefig(file)
        return figure


def frequency_response(system: Any, omega: ArrayLike) -> FrequencyResponse:
    """Return the frequency response of a system.

    All frequencies are computed in one native batch. The result is differentiable with respect to
    the matrices and the frequencies. At a pole on the axis the magnitude is infinite and the phase
    nan. Delays are exact.

    Parameters
    ----------
    system : StateSpace, TransferFunction or DelaySystem
        The linear system. Transfer functions need not be proper.
    omega : array (N,) or float
        Frequencies in rad/s.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> response = frequency_response(lag, [0.0, 1.0])
    >>> response.magnitude.round(4), np.rad2deg(response.phase).round(2)
    (array([[[1.    , 0.7071]]]), array([[[  0., -45.]]]))
    """
    omega = vector(np.reshape(omega, (1,)) if np.ndim(omega) == 0 else omega, "omega")
    if omega.shape[0] == 0:
        raise ShapeDtypeError("omega must hold at least one frequency")
    check_finite(omega, "omega")
    if isinstance(system, TransferFunction):
        parts = [
            [_evaluate_fraction(n, d, omega, system.dt) for n, d in zip(*rows)]
            for rows in zip(system.num, system.den)
        ]
        real, imag = (np.stack([np.stack([e[k] for e in row]) for row in parts]) for k in (0, 1))
        return FrequencyResponse(omega, real, imag, system.inputs, system.outputs)
    system = as_system(system, "system")
    plant, dt = getattr(system, "plant", system), system.dt
    real, imag = _responses(omega, plant.A, plant.B, plant.C, plant.D, dt)
    if isinstance(system, DelaySystem):
        real, imag = _with_delays(omega, real, imag, system.delays)
    real, imag = (np.moveaxis(part, 0, -1) for part in (real, imag))
    return FrequencyResponse(omega, real, imag, system.inputs, system.outputs)


def _evaluate_fraction(
    num: Array, den: Array, omega: Array, dt: Scalar | None
) -> tuple[Array, Array]:
    """Return real and imaginary part (N,) of a fraction, by Horner's rule."""
    a, b = (
        (np.zeros(omega.shape), omega) if dt is None else (np.cos(omega * dt), np.sin(omega * dt))
    )
    values = []
    for p in (num, den):
        real, imag = np.zeros(omega.shape), np.zeros(omega.shape)
        for c in p:
            real, imag = real * a - imag * b + c, real * b + imag * a
        values += [real, imag]
    x, y, u, v = values
    size = np.hypot(u, v)
    at_pole, size = size == 0.0, np.where(size == 0.0, 1.0, size)
    u, v = u / size, v / size
    real, imag = (x * u + y * v) / size, (y * u - x * v) / size
    return np.where(at_pole, np.inf, real), np.where(at_pole, np.nan, imag)


def _close_delays(w: Scalar, real: Array, imag: Array, delays: Array) -> tuple[Array, Array]:
    """Return the response at one frequency of a system whose last channels are delayed."""
    k = delays.shape[0]
    c, s = np.cos(w * delays), -np.sin(w * delays)
    # Columns of delayed inputs turn by exp(-j w delay).
    x, y = real[:, -k:] * c - imag[:, -k:] * s, real[:, -k:] * s + imag[:, -k:] * c
    eye = np.eye(k)
    a, b = eye - x[-k:], -y[-k:]
    M = np.concatenate([np.concatenate([a, -b], axis=1), np.concatenate([b, a], axis=1)])
    z = np.linalg.solve(M, np.concatenate([real[-k:, :-k], imag[-k:, :-k]]))
    x, y = x[:-k], y[:-k]
    return (
        real[:-k, :-k] + x @ z[:k] - y @ z[k:],
        imag[:-k, :-k] + x @ z[k:] + y @ z[:k],
    )


_with_delays = vmap(_close_delays, in_axes=(0, 0, 0, None))


def _respond(
    w: Scalar, A: Array, B: Array, C: Array, D: Array, dt: Scalar | None
) -> tuple[Array, Array]:
    """Return real and imaginary part (p, m) at one frequency."""
    n = A.shape[0]
    sigma, turn = (0.0, w) if dt is None else (np.cos(w * dt), np.sin(w * dt))
    near, far = sigma * np.eye(n) - A, turn * np.eye(n)
    M = np.concatenate([np.concatenate([near, -far], axis=1), np.concatenate([far, near], axis=1)])
    X = np.linalg.solve(M, np.concatenate([B, np.zeros(B.shape)]))
    at_pole = ~np.all(np.isfinite(X))
    return np.where(at_pole, np.inf, C @ X[:n] + D), np.where(at_pole, np.nan, C @ X[n:])


def _unwrap(angles: np.ndarray) -> np.ndarray:
    """Return phases without jumps; a missing one, at a pole, does not touch the others."""
    known, phases = np.isfinite(angles), np.array(angles)
    phases[known] = np.unwrap(angles[known])
    return phases


_responses = vmap(_respond, in_axes=(0, None, None, None, None, None))


#: How far from the axis, relative to its size, an eigenvalue may be to be looked at: double ones
#: are off by the root of the precision.
NEAR = 1e-5
#: How well a crossing must hold there.
HOLDS = 1e-9

#: A loop of this size has a pole on the axis, but for rounding.
POLE = 1e12

System = tuple[np.ndarray, np.ndarray, np.ndarray, float]


@dataclass(frozen=True)
class Margins:
    """How far a loop is from instability.

    Frequencies range from zero to the highest one: infinite in continuous time, pi / dt (z = -1) in
    discrete time. Both ends count: a negative feedthrough D passes through -1 at infinite frequency
    with the gain -1 / D. In continuous time, a feedthrough of magnitude one or more leaves no delay
    margin.

    Parameters
    ----------
    gain : float
        Gain margin: the factor nearest to 1, above or below it, that makes the loop pass through
        -1. Infinite if there is none.
    phase : float
        Phase margin in rad: the least change of phase that makes the loop pass through -1.
    delay : float
        Delay margin in s: the least delay that does.
    gain_frequency : float
        Frequency of the gain margin in rad/s, nan if there is none.
    phase_frequency : float
        Frequency of the phase margin in rad/s, nan if there is none.
    stable : bool, optional
        Whether the closed loop is stable. If it is not, the margins say how far it is from becoming
        so.

    Examples
    --------
    >>> from archimedes.control import StateSpace, margins
    >>> loop = StateSpace([[0.0, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    >>> m = margins(loop)
    >>> m.gain, round(m.delay, 4)
    (inf, 1.1506)
    """

    gain: float
    phase: float
    delay: float
    gain_frequency: float
    phase_frequency: float
    stable: bool = True

    def __repr__(self) -> str:
        parts = ["no gain margin", "no phase margin"]
        if np.isfinite(self.gain):
            decibels = 20.0 * np.log10(self.gain)
            parts[0] = (
                f"gain {self.gain:.4g} ({decibels:.3g} dB) at {self.gain_frequency:.4g} rad/s"
            )
        if np.isfinite(self.phase):
            degrees = np.rad2deg(self.phase)
            parts[1] = f"phase {degrees:.4g} deg at {self.phase_frequency:.4g} rad/s"
        if np.isfinite(self.delay):
            parts.append(f"delay {self.delay:.4g} s")
        return f"Margins: {', '.join(parts)}; {'stable' if self.stable else 'unstable'}"


def _check_single(loop: Any) -> None:
    if (loop.noutputs, loop.ninputs) != (1, 1):
        raise ValueError(
            f"loop must have one output and one input, got {(loop.noutputs, loop.ninputs)}; choose "
            "them with loop.part(output, input)"
        )


def margins(loop: Any) -> Margins:
    """Return the stability margins of an open loop.

    Parameters
    ----------
    loop : StateSpace, TransferFunction or DelaySystem
        Open loop L with one input and one output, closed as 1 / (1 + L); of numbers. With delays
        crossings are looked for on a fine grid of frequencies, and ``stable`` is decided by the
        Nyquist criterion.

    Examples
    --------
    >>> integrators = StateSpace([[0.0, 1.0], [0.0, -1.0]], [[0.0], [1.0]], [[1.0, 0.0]], [[0.0]])
    >>> m = margins(integrators)
    >>> round(float(np.rad2deg(m.phase)), 2), round(m.phase_frequency, 4)
    (51.83, 0.7862)
    """
    if isinstance(loop, DelaySystem):
        return _margins_with_delays(loop)
    loop = ss(loop)
    _check_single(loop)
    if is_traced(loop.A, loop.B, loop.C, loop.D):
        raise TypeError("margins runs on numbers; frequency_response can be recorded")
    system, frequency = _as_continuous(loop)
    crossings = _find_unit_crossings(system)
    gain, gain_w = _find_gain_margin(system, crossings)
    values = [(frequency(w), _evaluate(system, w)) for w in crossings]
    phase, phase_w, delay = _find_phase_margin(values)
    if loop.dt is None and abs(system[3]) >= 1.0:
        delay = 0.0
    A, B, C, d = system
    stable = d != -1.0 and bool(np.all(np.linalg.eigvals(A - B @ C / (1.0 + d)).real < 0.0))
    return Margins(gain, phase, delay, frequency(gain_w), phase_w, stable)


def _find_phase_margin(values: list[tuple[float, complex]]) -> tuple[float, float, float]:
    """Return phase margin, its frequency and delay margin of L at frequencies where |L| is one."""
    leads = [(float((np.angle(v) + np.pi) % (2.0 * np.pi)), float(w)) for w, v in values]
    phases = [(min(lead, 2.0 * np.pi - lead), w) for lead, w in leads]
    phase, phase_w = min(phases, default=(np.inf, np.nan))
    return phase, phase_w, min((lead / w for lead, w in leads if w > 0.0), default=np.inf)


def _margins_with_delays(loop: DelaySystem) -> Margins:
    """Return the margins of a loop with delays, whose crossings are found from a grid."""
    _check_single(loop)
    if is_traced(loop):
        raise TypeError("margins runs on numbers; frequency_response can be recorded")
    rates = np.abs(np.linalg.eigvals(np.asarray(loop.plant.A, dtype=float)))
    rates = np.concatenate([rates[rates > 1e-9 * rates.max(initial=0.0)], 1.0 / loop.delays])
    low, high = 1e-3 * rates.min(), 1e3 * rates.max()
    grid = np.geomspace(low, high, 4000)
    grid = np.unique(np.append(grid, np.linspace(low, 60.0 / loop.delays.min(), 4000)))

    def value(w: np.ndarray) -> np.ndarray:
        return frequency_response(loop, w).values[0, 0]

    crossings = _refine(lambda w: np.abs(value(w)) - 1.0, grid)
    phase, phase_w, delay = _find_phase_margin(list(zip(crossings, value(crossings))))
    reals = np.append(0.0, _refine(lambda w: value(w).imag, grid))
    at = value(reals).real
    gains = [(-1.0 / v, w) for v, w in zip(at, reals) if -POLE < v < 0.0]
    gain, gain_w = min(gains, key=lambda pair: abs(np.log(pair[0])), default=(np.inf, np.nan))
    # Up to the last crossing such an approximation is exact, and above it the loop is small.
    order = int(np.ceil(max(crossings, default=0.0) * loop.delays.max())) + 6
    closed = feedback(loop.pade(min(order, 30)))
    stable = bool(np.all(np.linalg.eigvals(closed.A).real < 0.0))
    return Margins(float(gain), phase, delay, float(gain_w), phase_w, stable)


def _refine(function: Callable[[np.ndarray], np.ndarray], grid: np.ndarray) -> np.ndarray:
    """Return where a function of a vector changes its sign, by bisection from a grid."""
    values = function(grid)
    found = np.flatnonzero((values[:-1] < 0.0) != (values[1:] < 0.0))
    low, high, below = grid[found], grid[found + 1], values[found] < 0.0
    if not len(found):
        return low
    for _ in range(60):
        middle = 0.5 * (low + high)
        same = (function(middle) < 0.0) == below
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    return low


def _as_continuous(loop: StateSpace) -> tuple[System, Callable[[float], float]]:
    """Return a continuous system with the same values, balanced, and its frequencies in rad/s."""
    A, B, C, D = (np.asarray(getattr(loop, k), dtype=float) for k in "ABCD")
    A, B, C = _balance(A, B, C)
    if loop.dt is None:
        return (A, B, C, float(D[0, 0])), float
    eye = np.eye(len(A))
    try:
        inverse = np.linalg.inv(eye + A)
    except np.linalg.LinAlgError:
        raise ValueError(
            "loop has a pole at z = -1, the Nyquist frequency, where margins are not defined"
        ) from None
    root, dt = np.sqrt(2.0), float(loop.dt)
    A, B, C, D = inverse @ (A - eye), root * inverse @ B, root * C @ inverse, D - C @ inverse @ B
    A, B, C = _balance(A, B, C)
    return (A, B, C, float(D[0, 0])), lambda w: float(2.0 * np.arctan(w) / dt)


def _balance(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return the same system with states in units that suit it, the input and the output."""
    units = balancing_units(np.block([[A, B], [C, np.zeros((1, 1))]]))
    units = (units[:-1] / units[-1])[:, None]
    return A * units.T / units, B / units, C * units.T


def _evaluate(system: System, w: float) -> complex:
    A, B, C, d = system
    if np.isinf(w):
        return complex(d)
    try:
        value = complex((C @ np.linalg.solve(1j * w * np.eye(len(A)) - A, B))[0, 0] + d)
    except np.linalg.LinAlgError:
        return complex(np.inf)
    return value if abs(value) < POLE else complex(np.inf)


def find_unit_crossings(loop: StateSpace) -> list[float]:
    """Return the frequencies in rad/s at which a system with one channel has a gain of one."""
    system, frequency = _as_continuous(loop)
    return sorted(frequency(w) for w in _find_unit_crossings(system))


def _find_unit_crossings(system: System) -> list[float]:
    """Return the frequencies, zero and infinity among them, at which |L| is one."""
    A, B, C, d = system
    none = np.zeros_like(A)
    pencil = np.block([[A, none, B], [-C.T @ C, -A.T, -d * C.T], [-d * C, -B.T, 1.0 - d * d]])

    def excess(w: float) -> float:
        return abs(_evaluate(system, w)) - 1.0

    ends = [w for w in (0.0, np.inf) if abs(excess(w)) < 1e-14]
    return _find_zeros(pencil, excess, lambda w: 1.0) + ends


def _find_real_crossings(system: System) -> list[float]:
    """Return the frequencies between zero and infinity at which L is real."""
    A, B, C, _ = system
    none = np.zeros_like(A)
    pencil = np.block([[A, none, B], [none, -A, B], [C, C, np.zeros((1, 1))]])
    value = partial(_evaluate, system)
    return _find_zeros(pencil, lambda w: value(w).imag, lambda w: abs(value(w)))


def _find_zeros(
    pencil: np.ndarray, function: Callable[[float], float], scale: Callable[[float], float]
) -> list[float]:
    """Return the zeros of a pencil on the axis, where ``function`` is zero relative to ``scale``.

    The last row of the pencil is an equation without a derivative.
    """
    from scipy.linalg import eigvals

    mass = np.diag(np.append(np.ones(len(pencil) - 1), 0.0))
    eigenvalues: Any = eigvals(pencil, mass)
    values = eigenvalues[np.isfinite(eigenvalues)]
    near = np.abs(values.real) <= NEAR * np.abs(values)
    zeros: list[float] = []
    for w in sorted(values[near & (values.imag > 0.0)].imag):
        w = _polish(function, float(w))
        holds = abs(function(w)) <= HOLDS * scale(w)  # false for nan, at a pole
        if holds and not any(abs(w - other) <= 1e-7 * w for other in zeros):
            zeros.append(w)
    return zeros


def _polish(function: Callable[[float], float], w: float) -> float:
    """Return w after secant steps, each of which must bring the function nearer to zero."""
    value = function(w)
    for _ in range(4):
        h = 1e-6 * w
        slope = (function(w + h) - function(w - h)) / (2.0 * h)
        after = w - value / slope if slope else w
        if not (abs(after - w) < 1e-3 * w and abs(function(after)) < abs(value)):
            break
        w, value = after, function(after)
    return w


def _find_gain_margin(system: System, crossings: list[float]) -> tuple[float, float]:
    frequencies = [0.0, np.inf, *_find_real_crossings(system)]
    # A loop that is real everywhere, such as 1 / s^2, has no crossing of its own.
    frequencies += [w for w in crossings if abs(_evaluate(system, w).imag) <= HOLDS]
    values = [(w, _evaluate(system, w).real) for w in frequencies]
    gains = [(-1.0 / v, w) for w, v in values if -np.inf < v < 0.0]
    return min(gains, key=lambda pair: abs(np.log(pair[0])), default=(np.inf, np.nan))
