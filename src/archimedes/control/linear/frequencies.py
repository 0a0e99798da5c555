"""Linear systems in frequency: responses in real arithmetic, so that they record and map.

With s = sigma + j omega, (s I - A) X = B is a real system of twice the size,
[[sigma I - A, -omega I], [omega I, sigma I - A]] [Re X; Im X] = [B; 0]; in steps s is exp(j w dt).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.control.linear.state_space import StateSpace
from archimedes.control.matrix_checks import vector
from archimedes.errors import ShapeDtypeError
from archimedes.function import holds_traced, vmap
from archimedes.tree import field, struct

__all__ = ["FrequencyResponse", "frequency_response"]


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

    omega: Any = field(units="rad/s")
    real: Any
    imag: Any
    inputs: tuple[str, ...] = field(static=True, default=())
    outputs: tuple[str, ...] = field(static=True, default=())

    @property
    def magnitude(self) -> Any:
        """Sizes (p, m, N)."""
        return np.hypot(self.real, self.imag)

    @property
    def decibels(self) -> Any:
        """Sizes in dB (p, m, N); of nothing -inf."""
        with np.errstate(divide="ignore"):
            return 20.0 * np.log10(self.magnitude)

    @property
    def phase(self) -> Any:
        """Phases in rad (p, m, N); of numbers without jumps along the frequencies."""
        angle = np.arctan2(self.imag, self.real)
        return angle if holds_traced(angle) else np.apply_along_axis(_unwrapped, -1, angle)

    @property
    def values(self) -> np.ndarray:
        """Complex numbers (p, m, N), outside recorded code."""
        return np.asarray(self.real) + 1j * np.asarray(self.imag)

    def plot(self) -> Any:
        """Draw Bode's diagrams of all channels; returns the matplotlib figure."""
        import matplotlib.pyplot as plt

        figure, (above, below) = plt.subplots(2, 1, sharex=True)
        for i, y in enumerate(self.outputs):
            for j, u in enumerate(self.inputs):
                above.semilogx(self.omega, self.decibels[i, j], label=f"{u} to {y}")
                below.semilogx(self.omega, np.rad2deg(self.phase[i, j]))
        above.set_ylabel("magnitude [dB]")
        below.set_ylabel("phase [deg]")
        below.set_xlabel("frequency [rad/s]")
        above.legend(fontsize="small")
        return figure


def frequency_response(system: StateSpace, omega: Any) -> FrequencyResponse:
    """Return the frequency response of a system.

    All frequencies are computed in one native batch. The result is differentiable with respect to
    the matrices and the frequencies. At a pole on the axis the magnitude is infinite and the phase
    nan.

    Parameters
    ----------
    system : StateSpace
        The linear system.
    omega : array (N,)
        Frequencies in rad/s.

    Examples
    --------
    >>> lag = StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    >>> found = frequency_response(lag, [0.0, 1.0])
    >>> found.magnitude.round(4), np.rad2deg(found.phase).round(2)
    (array([[[1.    , 0.7071]]]), array([[[  0., -45.]]]))
    """
    if not isinstance(system, StateSpace):
        raise TypeError(f"system must be a control.StateSpace, got {type(system).__name__}")
    omega = vector(omega, "omega")
    if omega.shape[0] == 0:
        raise ShapeDtypeError("omega must hold at least one frequency")
    if not holds_traced(omega) and not np.all(np.isfinite(omega)):
        raise ValueError(f"omega must hold finite frequencies, got {omega}")
    real, imag = _responses(omega, system.A, system.B, system.C, system.D, system.dt)
    real, imag = (np.moveaxis(part, 0, -1) for part in (real, imag))
    return FrequencyResponse(omega, real, imag, system.inputs, system.outputs)


def _response(w: Any, A: Any, B: Any, C: Any, D: Any, dt: Any) -> tuple[Any, Any]:
    """Return real and imaginary part (p, m) at one frequency."""
    n = A.shape[0]
    sigma, turn = (0.0, w) if dt is None else (np.cos(w * dt), np.sin(w * dt))
    near, far = sigma * np.eye(n) - A, turn * np.eye(n)
    M = np.concatenate([np.concatenate([near, -far], axis=1), np.concatenate([far, near], axis=1)])
    X = np.linalg.solve(M, np.concatenate([B, np.zeros(B.shape)]))
    at_pole = ~np.all(np.isfinite(X))
    return np.where(at_pole, np.inf, C @ X[:n] + D), np.where(at_pole, np.nan, C @ X[n:])


def _unwrapped(angles: np.ndarray) -> np.ndarray:
    """Return phases without jumps; a missing one, at a pole, does not touch the others."""
    known = np.isfinite(angles)
    found = np.array(angles)
    found[known] = np.unwrap(angles[known])
    return found


_responses = vmap(_response, in_axes=(0, None, None, None, None, None))
