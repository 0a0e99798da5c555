"""What is asked of a linear system: poles, zeros, gains, norms, bandwidth, sensitivities.

Peak gains are exact: a gain is exceeded between two frequencies at which a Hamiltonian matrix has
eigenvalues on the axis (N. Bruinsma, M. Steinbuch, "A fast algorithm to compute the H-infinity norm
of a transfer function matrix", Systems & Control Letters 14, 1990). Disk margins: P. Seiler,
A. Packard, P. Gahinet, "An introduction to disk margins", IEEE Control Systems 40, 2020.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.checks import is_traced
from archimedes.control.linear.balancing import gramians
from archimedes.control.linear.frequency_response import find_unit_crossings
from archimedes.control.linear.interconnection import feedback
from archimedes.control.linear.invariant_zeros import balance_system
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.linear.transfer_function import TransferFunction, ss
from archimedes.control.matrix_checks import matrix
from archimedes.typing import Array, ArrayLike

__all__ = [
    "DiskMargins",
    "LoopFunctions",
    "bandwidth",
    "ctrb",
    "damp",
    "dcgain",
    "disk_margins",
    "h2_norm",
    "hinf_norm",
    "loop_functions",
    "obsv",
    "peak_gain",
    "poles",
    "rlocus",
    "root_locus",
    "sensitivity",
    "zeros",
]

System = StateSpace | TransferFunction


def _known(system: System) -> System:
    """Return a system; raise where it has delays, and thereby poles without end."""
    return system if isinstance(system, TransferFunction) else ss(system)


def poles(system: System) -> Any:
    """Return the poles of a system, complex.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> poles(tf([1.0], [1.0, 3.0, 2.0]))
    array([-2.+0.j, -1.+0.j])
    """
    return _known(system).poles()


def zeros(system: System) -> np.ndarray:
    """Return the zeros of a system, complex: of a `StateSpace` its invariant zeros.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system.

    Examples
    --------
    >>> from archimedes.control import ss, tf
    >>> zeros(ss(tf([1.0, 4.0], [1.0, 3.0, 2.0]))).round(9)
    array([-4.+0.j])
    """
    return _known(system).zeros()


def dcgain(system: System) -> Any:
    """Return the gain at the frequency zero: (p, m) of a `StateSpace`.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> float(dcgain(tf([6.0], [1.0, 3.0, 2.0])))
    3.0
    """
    return system.dcgain()


def damp(system: System) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return natural frequencies, damping ratios and poles of a system.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system, of numbers.

    Returns
    -------
    (array (n,), array (n,), array (n,))
        Natural frequencies in rad/s, damping ratios, poles. In discrete time the first two are
        those of the poles in continuous time.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> wn, zeta, _ = damp(tf([1.0], [1.0, 0.4, 4.0]))
    >>> wn.round(6), zeta.round(6)
    (array([2., 2.]), array([0.1, 0.1]))
    """
    values = np.asarray(poles(system)).astype(complex)
    with np.errstate(divide="ignore"):
        rates = values if system.dt is None else np.log(values) / system.dt
    size = np.abs(rates)
    return size, np.where(size > 0.0, -rates.real / np.where(size > 0.0, size, 1.0), 1.0), values


def ctrb(A: ArrayLike, B: ArrayLike) -> Array:
    """Return the controllability matrix [B, AB, A^2 B, ...].

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    B : array (n, m)
        Input matrix.

    Examples
    --------
    >>> ctrb([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]])
    array([[0., 1.],
           [1., 0.]])
    """
    n = matrix(A, "A").shape[0]
    A, block = matrix(A, "A", n, n), matrix(B, "B", n)
    blocks = [block]
    for _ in range(n - 1):
        blocks.append(A @ blocks[-1])
    return np.concatenate(blocks, axis=1)


def obsv(A: ArrayLike, C: ArrayLike) -> Array:
    """Return the observability matrix [C; CA; CA^2; ...].

    Parameters
    ----------
    A : array (n, n)
        State matrix.
    C : array (p, n)
        Output matrix.

    Examples
    --------
    >>> obsv([[0.0, 1.0], [0.0, 0.0]], [[1.0, 0.0]])
    array([[1., 0.],
           [0., 1.]])
    """
    n = matrix(A, "A").shape[0]
    return ctrb(matrix(A, "A", n, n).T, matrix(C, "C", None, n).T).T


def is_stable(system: StateSpace) -> bool:
    """Return whether all poles are on the stable side."""
    values = np.linalg.eigvals(np.asarray(system.A, dtype=float))
    return bool(np.all(values.real < 0.0 if system.dt is None else np.abs(values) < 1.0))


def h2_norm(system: System) -> Any:
    """Return the H2 norm: the root mean square of the outputs for white noise at the inputs.

    It has derivatives with respect to the matrices, and works in recorded code.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system. The norm is infinite if it is unstable, or continuous with a feedthrough.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> round(float(h2_norm(tf([1.0], [1.0, 1.0]))), 6)
    0.707107
    """
    G = ss(system)
    if not is_traced(G.A, G.B, G.C, G.D) and (
        not is_stable(G) or (G.dt is None and np.any(np.asarray(G.D)))
    ):
        return np.inf
    reach = gramians(G)[0] if G.nstates else np.zeros((0, 0))
    squares = np.sum((G.C @ reach) * G.C) + (0.0 if G.dt is None else np.sum(G.D * G.D))
    return np.sqrt(np.maximum(squares, 0.0))


class _Gains:
    """Largest singular values of a continuous system, balanced, along the axis."""

    def __init__(self, system: StateSpace) -> None:
        A, B, C, D = (np.asarray(getattr(system, k), dtype=float) for k in "ABCD")
        self.dt = None if system.dt is None else float(system.dt)
        if self.dt is not None:
            # z = (1 + s) / (1 - s) maps the circle onto the axis.
            inverse = np.linalg.inv(np.eye(len(A)) + A)
            root = np.sqrt(2.0)
            A, B, C, D = (
                inverse @ (A - np.eye(len(A))),
                root * inverse @ B,
                root * C @ inverse,
                D - C @ inverse @ B,
            )
        A, B, C = balance_system(A, B, C)
        self.A, self.B, self.C, self.D = A, B, C, D

    def at(self, w: float) -> float:
        """Return the largest singular value at a frequency."""
        if not self.D.size:
            return 0.0
        if np.isinf(w):
            return float(np.linalg.norm(self.D, 2))
        try:
            M = self.C @ np.linalg.solve(1j * w * np.eye(len(self.A)) - self.A, self.B) + self.D
        except np.linalg.LinAlgError:
            return np.inf
        return float(np.linalg.norm(M, 2))

    def frequency(self, w: float) -> float:
        """Return a frequency in rad/s of the system that was given."""
        return float(w if self.dt is None else 2.0 * np.arctan(w) / self.dt)

    def crossings(self, gain: float) -> np.ndarray:
        """Return the frequencies at which some singular value is ``gain``, ascending."""
        A, B, C, D = self.A, self.B, self.C, self.D
        R = gain**2 * np.eye(D.shape[1]) - D.T @ D
        S = gain**2 * np.eye(D.shape[0]) - D @ D.T
        F = A + B @ np.linalg.solve(R, D.T @ C)
        H = np.block(
            [
                [F, gain * B @ np.linalg.solve(R, B.T)],
                [-gain * C.T @ np.linalg.solve(S, C), -F.T],
            ]
        )
        values = np.linalg.eigvals(H)
        size = np.abs(values).max(initial=0.0)
        near = np.abs(values.real) <= 1e-8 * (np.abs(values) + 1e-4 * size)
        return np.unique(np.abs(values[near].imag))


def peak_gain(system: System, tol: float = 1e-9) -> tuple[float, float]:
    """Return the largest gain of a system over all frequencies, and where it is.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system, of numbers. Stability is not asked for.
    tol : float, optional
        Relative error of the gain.

    Returns
    -------
    (float, float)
        Largest singular value of the frequency response, and its frequency in rad/s.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> gain, omega = peak_gain(tf([1.0], [1.0, 0.1, 1.0]))
    >>> round(gain, 4), round(omega, 4)
    (10.0125, 0.9975)
    """
    G = ss(system)
    if is_traced(G.A, G.B, G.C, G.D):
        raise TypeError("peak_gain runs on numbers: call it outside recorded functions")
    gains = _Gains(G)
    values = np.linalg.eigvals(gains.A)
    on_axis = np.abs(values.real) < 1e-12 * np.maximum(np.abs(values), 1e-300)
    if np.any(on_axis & (np.abs(values) >= 0.0)) and len(values):
        w = float(np.abs(values[on_axis][0].imag))
        if gains.at(w + 1e-9 * max(w, 1.0)) > 1e6 * max(gains.at(2.0 * w + 1.0), 1e-300):
            return np.inf, gains.frequency(w)
    tries = [0.0, np.inf, *np.abs(values), *np.abs(values.imag)]
    best, where = max((gains.at(w), w) for w in tries)
    for _ in range(60):
        if best == 0.0:
            break
        crossings = gains.crossings(best * (1.0 + 2.0 * tol))
        if not len(crossings):
            break
        # The gain may also be higher below the first crossing and above the last.
        middles = 0.5 * (np.append(0.0, crossings[:-1]) + crossings)
        higher, at = max(
            (gains.at(w), w) for w in [*middles, 2.0 * crossings[-1], 10.0 * crossings[-1]]
        )
        if higher <= best * (1.0 + tol):
            break
        best, where = higher, at
    return best, gains.frequency(where)


def hinf_norm(system: System, tol: float = 1e-9) -> float:
    """Return the H-infinity norm: the largest gain over all frequencies; infinite if unstable.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        The linear system, of numbers.
    tol : float, optional
        Relative error.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> round(hinf_norm(tf([1.0], [1.0, 0.1, 1.0])), 4)
    10.0125
    """
    G = ss(system)
    return peak_gain(G, tol)[0] if not G.nstates or is_stable(G) else np.inf


def bandwidth(system: System, dbdrop: float = -3.0) -> float:
    """Return the first frequency in rad/s at which the gain has dropped from its value at zero.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        System with one input and one output, of numbers.
    dbdrop : float, optional
        Drop in dB, -3 by default.

    Returns
    -------
    float
        The frequency; infinite if the gain never drops so far, nan if it is zero or infinite at
        the frequency zero.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> round(bandwidth(tf([1.0], [1.0, 1.0])), 4)
    0.9976
    """
    G = ss(system)
    level = abs(float(np.squeeze(G.dcgain()))) * 10.0 ** (dbdrop / 20.0)
    if not np.isfinite(level) or level == 0.0:
        return np.nan
    crossings = [w for w in find_unit_crossings(G * (1.0 / level)) if w > 0.0]
    return min(crossings, default=np.inf)


class LoopFunctions(NamedTuple):
    """The closed-loop functions of a plant and a controller with negative feedback.

    Parameters
    ----------
    L : StateSpace
        Loop at the plant's output, P K.
    S : StateSpace
        Sensitivity (I + P K)^-1: disturbances at the output to the output.
    T : StateSpace
        Complementary sensitivity P K (I + P K)^-1: references to the output.
    PS : StateSpace
        Disturbances at the plant's input to the output.
    KS : StateSpace
        References to the controls.
    Li : StateSpace
        Loop at the plant's input, K P.
    Si : StateSpace
        Sensitivity at the plant's input.
    Ti : StateSpace
        Complementary sensitivity at the plant's input.

    Examples
    --------
    >>> from archimedes.control import hinf_norm, loop_functions, tf
    >>> loop = loop_functions(tf([1.0], [1.0, 0.0]), tf([2.0], [1.0]))
    >>> round(hinf_norm(loop.S), 6)
    1.0
    """

    L: StateSpace
    S: StateSpace
    T: StateSpace
    PS: StateSpace
    KS: StateSpace
    Li: StateSpace
    Si: StateSpace
    Ti: StateSpace

    def __repr__(self) -> str:
        peaks = [f"{name} {hinf_norm(G):.4g}" for name, G in zip(self._fields, self)]
        return f"LoopFunctions, largest gains: {', '.join(peaks)}"


def loop_functions(plant: System, controller: System) -> LoopFunctions:
    """Return sensitivities and other functions of a loop with negative feedback.

    Parameters
    ----------
    plant : StateSpace or TransferFunction
        The plant P.
    controller : StateSpace or TransferFunction
        The controller K.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> loop = loop_functions(tf([1.0], [1.0, 0.0]), tf([2.0], [1.0]))
    >>> float(loop.T.dcgain()[0, 0]), loop.S.poles()
    (1.0, array([-2.]))
    """
    P, K = ss(plant), ss(controller)
    L, Li = P * K, K * P
    return LoopFunctions(
        L,
        sensitivity(L),
        feedback(L),
        feedback(P, K),
        feedback(K, P),
        Li,
        sensitivity(Li),
        feedback(Li),
    )


def sensitivity(loop: System) -> StateSpace:
    """Return the sensitivity (I + L)^-1 of a loop.

    Parameters
    ----------
    loop : StateSpace or TransferFunction
        Open loop L, with as many outputs as inputs, closed with negative feedback.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> sensitivity(tf([2.0], [1.0, 0.0])).poles()
    array([-2.])
    """
    L = ss(loop)
    if L.ninputs != L.noutputs:
        raise ValueError(f"loop must have as many outputs as inputs, got {L.D.shape}")
    return feedback(np.eye(L.ninputs), L)


class DiskMargins(NamedTuple):
    """How far gain and phase of a loop may change together, in all its channels at once.

    Parameters
    ----------
    disk : float
        Size alpha of the disk of perturbations that the loop tolerates.
    gain : pair of float
        Factors of the gain between which the loop stays stable.
    phase : float
        Change of phase in rad up to which it stays stable.
    frequency : float
        Frequency in rad/s at which the loop is weakest.

    Examples
    --------
    >>> from archimedes.control import disk_margins, tf
    >>> disk_margins(tf([1.0], [1.0, 0.0])).phase.__round__(4)  # 90 deg
    1.5708
    """

    disk: float
    gain: tuple[float, float]
    phase: float
    frequency: float


def disk_margins(loop: System, skew: float = 0.0) -> DiskMargins:
    """Return the disk margins of a loop.

    Parameters
    ----------
    loop : StateSpace or TransferFunction
        Open loop L, with as many outputs as inputs, closed with negative feedback; of numbers.
    skew : float, optional
        0, the default, for S - T: the same decrease and increase of gain. 1 for S, -1 for T.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> margins = disk_margins(tf([25.0], [1.0, 10.0, 10.0, 10.0]))
    >>> round(margins.disk, 3), [round(g, 3) for g in margins.gain]
    (0.458, [0.627, 1.594])
    """
    S = sensitivity(loop)
    if not is_stable(S):
        return DiskMargins(0.0, (1.0, 1.0), 0.0, np.nan)
    peak, omega = peak_gain(S + 0.5 * (skew - 1.0) * np.eye(S.ninputs))
    disk = 1.0 / peak if peak else np.inf
    low = (2.0 - disk * (1.0 - skew)) / (2.0 + disk * (1.0 + skew))
    below = 2.0 - disk * (1.0 + skew)
    high = (2.0 + disk * (1.0 - skew)) / below if below > 0.0 else np.inf
    low = max(low, 0.0) if np.isfinite(low) else 0.0
    cosine = (1.0 + low * high) / (low + high) if np.isfinite(high) else low
    phase = float(np.arccos(np.clip(cosine, -1.0, 1.0)))
    return DiskMargins(disk, (low, high), phase, omega)


def root_locus(system: System, gains: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the poles of a closed loop as its gain grows.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        Loop with one input and one output, of numbers, closed with negative feedback.
    gains : array (k,), optional
        Gains. By default from zero until the poles have come near the zeros or are far away.

    Returns
    -------
    (array (k,), array (k, n))
        Gains, and the poles for each, complex.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> gains, roots = root_locus(tf([1.0], [1.0, 2.0, 0.0]), [0.0, 1.0])
    >>> np.sort(roots[1].real).round(6)
    array([-1., -1.])
    """
    G = ss(system)
    if G.D.shape != (1, 1):
        raise ValueError(
            f"root_locus: the loop must have one input and one output, got {G.D.shape}"
        )
    points = _locus_gains(G) if gains is None else np.asarray(gains, dtype=float)
    d = float(G.D[0, 0])
    roots = []
    for k in points:
        if abs(1.0 + k * d) < 1e-12:
            roots.append(np.full(G.nstates, np.nan + 0j))
            continue
        roots.append(np.linalg.eigvals(G.A - k / (1.0 + k * d) * G.B @ G.C).astype(complex))
    return points, np.stack(roots)


def rlocus(system: System, gains: ArrayLike | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the root locus: another name of `root_locus`.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        Loop with one input and one output, of numbers, closed with negative feedback.
    gains : array (k,), optional
        Gains.

    Examples
    --------
    >>> from archimedes.control import tf
    >>> rlocus(tf([1.0], [1.0, 2.0]), [0.0, 1.0])[1].real
    array([[-2.],
           [-3.]])
    """
    return root_locus(system, gains)


def _locus_gains(system: StateSpace) -> np.ndarray:
    """Return gains that go from the poles of a loop to its zeros."""
    start, end = np.asarray(system.poles()), system.zeros()
    size = max([1e-3, *np.abs(start), *np.abs(end)])
    # The gain at which the poles that go away are some sizes of the system from it.
    at = 4.0 * size * np.exp(1j * np.linspace(0.1, np.pi, 7))
    values = [
        abs(
            complex(
                (system.C @ np.linalg.solve(s * np.eye(system.nstates) - system.A, system.B))[0, 0]
                + system.D[0, 0]
            )
        )
        for s in at
    ]
    most = 1.0 / max(min(values), 1e-300)
    if len(end) == len(start):
        most *= 1e3
    return np.concatenate([[0.0], np.logspace(-5.0, 0.0, 600) * most])
