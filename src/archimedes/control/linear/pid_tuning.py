"""PID gains from a model: a phase margin at a crossover frequency.

At the crossover w the loop must have the gain one and the phase -180 deg plus the margin. So the
controller is known there, C(jw) = exp(j phi) / |G(jw)|: kp is its real part, kd w - ki / w its
imaginary part (K. Astrom, T. Hagglund, "Advanced PID control", 2006, sect. 4.4). If no crossover is
given, the fastest one is taken for which the controller can give the phase that is missing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from archimedes.control.blocks.compensators import PID
from archimedes.control.linear.analysis import is_stable
from archimedes.control.linear.frequency_response import Margins, frequency_response, margins
from archimedes.control.linear.interconnection import feedback
from archimedes.control.linear.transfer_function import TransferFunction, ss, tf

__all__ = ["PIDTuning", "pidtune"]

#: The phase in deg that each kind of controller is asked for at a crossover of its own choice, and
#: the least and most it can give.
PHASES = {"p": (0.0, -1.0, 1.0), "i": (-90.0, -91.0, -89.0), "pi": (-20.0, -90.0, 0.0)}
PHASES |= {"pd": (45.0, 0.0, 80.0), "pid": (30.0, -80.0, 80.0)}
#: The integral of a PID controller works below this part of the crossover.
INTEGRAL = 0.2
#: The derivative is filtered above this multiple of the crossover.
FILTER = 20.0


class PIDTuning(NamedTuple):
    """Gains of a PID controller, and what they reach.

    Parameters
    ----------
    kp : float
        Proportional gain.
    ki : float
        Integral gain in 1/s.
    kd : float
        Derivative gain in s.
    filter_time : float
        Time constant in s of the derivative's filter.
    crossover : float
        Crossover frequency in rad/s.
    margins : Margins
        Margins of the loop.

    Examples
    --------
    >>> from archimedes.control import pidtune, tf
    >>> tuned = pidtune(tf([1.0], [1.0, 2.0, 1.0]), "pi")
    >>> pid = tuned.block(dt=0.01, lower=-1.0, upper=1.0)
    >>> bool(pid.kp == tuned.kp), tuned.margins.stable
    (True, True)
    """

    kp: float
    ki: float
    kd: float
    filter_time: float
    crossover: float
    margins: Margins

    def __repr__(self) -> str:
        names = ("kp", "ki", "kd", "filter_time")
        gains = ", ".join(f"{name} {getattr(self, name):.5g}" for name in names)
        return f"PIDTuning: {gains}, crossover {self.crossover:.4g} rad/s\n{self.margins}"

    def controller(self) -> TransferFunction:
        """Return the controller kp + ki / s + kd s / (filter_time s + 1)."""
        s = tf("s")
        parts = tf([self.kp], [1.0])
        if self.ki:
            parts = parts + self.ki / s
        if self.kd:
            parts = parts + self.kd * s / (self.filter_time * s + 1.0)
        return parts

    def block(self, dt: float, **limits: Any) -> PID:
        """Return the controller as a block that steps, with limits and anti-windup.

        Parameters
        ----------
        dt : float
            Length of a step in s.
        **limits
            ``lower``, ``upper``, ``rate`` and ``tracking`` of `PID`.
        """
        return PID(self.kp, self.ki, self.kd, filter_time=self.filter_time, dt=dt, **limits)


def pidtune(
    system: Any,
    kind: str = "pid",
    crossover: float | None = None,
    phase_margin: float = np.pi / 3.0,
) -> PIDTuning:
    """Return gains of a controller that give a loop a crossover frequency and a phase margin.

    Parameters
    ----------
    system : StateSpace or TransferFunction
        Plant in continuous time with one input and one output, of numbers.
    kind : {"p", "i", "pi", "pd", "pid"}, optional
        Parts of the controller.
    crossover : float, optional
        Frequency in rad/s at which the loop has a gain of one. By default as high as the phase of
        the plant allows.
    phase_margin : float, optional
        Phase margin in rad, 60 deg by default.

    Examples
    --------
    >>> s = tf("s")
    >>> tuned = pidtune(1 / (s * (s + 1)), "pd", crossover=2.0)
    >>> round(tuned.margins.phase_frequency, 3), round(float(np.rad2deg(tuned.margins.phase)), 1)
    (2.0, 60.0)
    """
    kind = kind.lower()
    if kind not in PHASES:
        raise ValueError(f"pidtune: kind={kind!r} is not one of {', '.join(map(repr, PHASES))}")
    G = ss(system)
    if G.dt is not None or G.D.shape != (1, 1):
        raise ValueError(
            "pidtune: the plant must be in continuous time, with one input and one output"
        )
    if not 0.0 < phase_margin < np.pi / 2.0:
        raise ValueError(f"phase_margin must be between 0 and pi / 2 rad, got {phase_margin}")
    tries = [crossover] if crossover is not None else _crossovers(G, kind, phase_margin)
    for w in tries:
        tuned = _tune(G, kind, float(w), phase_margin)
        if tuned is not None and tuned.margins.stable:
            return tuned
    where = f"with crossover = {crossover} rad/s" if crossover is not None else "with this margin"
    raise ValueError(
        f"pidtune: no stable loop was found for a {kind!r} controller {where}: try another kind, "
        "crossover or phase_margin"
    )


def _crossovers(G: Any, kind: str, margin: float) -> list[float]:
    """Return frequencies to try, the one at which the plant has the phase for it first."""
    values = np.abs(np.concatenate([np.asarray(G.poles()), G.zeros()]))
    values = values[values > 1e-9]
    low, high = (values.min(), values.max()) if len(values) else (1.0, 1.0)
    w = np.logspace(np.log10(low) - 2.0, np.log10(high) + 2.0, 1500)
    response = frequency_response(G, w)
    phase = np.rad2deg(response.phase[0, 0])
    wanted = -180.0 + np.rad2deg(margin) - PHASES[kind][0]
    start = np.round((phase[0] + 90.0) / 360.0) * 360.0
    crossing = np.flatnonzero(np.diff(np.sign(phase - start - wanted)))
    first = [float(w[k]) for k in crossing[::-1]]
    return first + [float(x) for x in np.logspace(np.log10(high) + 1.0, np.log10(low) - 1.0, 25)]


def _tune(G: Any, kind: str, w: float, margin: float) -> PIDTuning | None:
    value = complex(frequency_response(G, [w]).values[0, 0, 0])
    if not np.isfinite(value) or value == 0.0:
        return None
    filter_time = 1.0 / (FILTER * w) if "d" in kind else 0.0
    wanted = np.exp(1j * (margin - np.pi)) / value  # what the controller must be at w
    angle = np.rad2deg(np.angle(wanted))
    _, least, most = PHASES[kind]
    if not least <= angle <= most and kind not in ("p", "i"):
        return None
    kp, ki, kd = wanted.real if "p" in kind else 0.0, 0.0, 0.0
    if kind == "i":
        ki = w * abs(wanted)
    elif kind == "p":
        kp = abs(wanted)
    elif kind == "pi":
        ki = -w * wanted.imag
    else:
        # The filter makes the derivative act as d = j w kd / (1 + j w filter).
        turn = 1j * w / (1.0 + 1j * w * filter_time)
        integral = INTEGRAL * w if kind == "pid" else 0.0
        # kp (1 + integral / (j w)) + kd turn = wanted, two real equations.
        left = 1.0 + integral / (1j * w)
        M = np.array([[left.real, turn.real], [left.imag, turn.imag]])
        kp, kd = np.linalg.solve(M, [wanted.real, wanted.imag])
        ki = kp * integral
    if kp < 0.0 or kd < 0.0 or ki < 0.0:
        return None
    tuned = PIDTuning(float(kp), float(ki), float(kd), filter_time, w, Margins(0, 0, 0, 0, 0))
    loop = G * ss(tuned.controller())
    reached = margins(loop)
    if not is_stable(feedback(loop)):
        return None
    return tuned._replace(margins=reached, crossover=reached.phase_frequency)
