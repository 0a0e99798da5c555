"""Poles and modes with names.

Participation of state k in mode i is the size of v[k, i] w[i, k], right and left eigenvectors,
with the shares of a mode summing to one; unlike the eigenvector alone it does not depend on the
units of the states (I. Perez-Arriaga, G. Verghese, F. Schweppe, "Selective modal analysis ...",
IEEE Trans. Power App. Syst. 101, 1982). The modes of aircraft are named by it (flight_modes.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from archimedes.checks import check_choice, check_finite, is_traced
from archimedes.control.linear.flight_modes import flight_mode_names
from archimedes.control.linear.state_space import StateSpace
from archimedes.control.matrix_checks import matrix
from archimedes.display import LINES, brief, text_table

__all__ = ["Mode", "ModeTable", "modes"]

#: Poles are printed as zero if they are smaller than this, relative to the fastest.
ROUNDING = 1e-11


@dataclass(frozen=True)
class Mode:
    """A pole, or a pair of conjugate poles, of a linear system.

    ``frequency`` (rad/s) is its magnitude, ``damping`` the damping ratio (1: no oscillation,
    negative: unstable), and ``time_constant`` (s) the time to decay by a factor of e (negative: to
    grow).

    Parameters
    ----------
    pole : complex
        The pole in 1/s, in continuous time also for discrete systems; of a conjugate pair the one
        with a positive imaginary part.
    participation : dict
        Participation of each state, largest first. The sum is one.
    name : str, optional
        Name of the mode of an aircraft: "short period", "phugoid", "Dutch roll", "roll", "spiral".
        Empty for others.

    Examples
    --------
    >>> from archimedes.control import modes
    >>> slow, fast = modes([[-1.0, 0.0], [0.0, -4.0]])
    >>> slow.pole, slow.time_constant, fast.frequency, fast.damping
    ((-1+0j), 1.0, 4.0, 1.0)
    """

    pole: complex
    participation: dict[str, float]
    name: str = ""

    @property
    def frequency(self) -> float:
        """Natural frequency in rad/s."""
        return abs(self.pole)

    @property
    def damping(self) -> float:
        """Damping ratio; nan for a pole at zero."""
        return -self.pole.real / abs(self.pole) if self.pole else float("nan")

    @property
    def time_constant(self) -> float:
        """Seconds to fall by a factor e; negative where it grows, inf where it does neither."""
        return -1.0 / self.pole.real if self.pole.real else float("inf")

    @property
    def main_states(self) -> tuple[str, ...]:
        """States that together have 80 % of the mode."""
        totals = accumulate(self.participation.values())
        count = next((k for k, total in enumerate(totals, 1) if total >= 0.8), None)
        return tuple(self.participation)[:count]

    @property
    def stable(self) -> bool:
        """Whether it dies away."""
        return self.pole.real < 0.0


@dataclass(frozen=True)
class ModeTable:
    """Modes, slowest first: iterate, index by number or by name, or print them.

    Parameters
    ----------
    modes : tuple of Mode
        The modes, slowest first.

    Examples
    --------
    >>> from archimedes.control import modes
    >>> table = modes([[0.0, 1.0], [-4.0, -0.4]])
    >>> len(table), round(table[0].frequency, 6), round(table[0].damping, 6)
    (1, 2.0, 0.1)
    """

    modes: tuple[Mode, ...]

    def __iter__(self) -> Iterator[Mode]:
        return iter(self.modes)

    def __len__(self) -> int:
        return len(self.modes)

    def __getitem__(self, k: int | str) -> Mode:
        if not isinstance(k, str):
            return self.modes[k]
        named = {mode.name: mode for mode in reversed(self.modes) if mode.name}
        check_choice(k, "mode", named, error=KeyError)
        return named[k]

    def __str__(self) -> str:
        lines = self.report().splitlines()
        rest = [f"... {len(lines) - LINES + 1} more: report()"] if len(lines) > LINES else []
        return "\n".join([*lines[: LINES - 1 if rest else None], *rest])

    __repr__ = __str__

    def report(self) -> str:
        """Return a line of text for each mode, with its name and the states in which it is seen."""
        rows = [["pole (1/s)", "frequency (rad/s)", "damping", "time constant (s)", "  states"]]
        fastest = max((m.frequency for m in self.modes), default=0.0)
        for m in self.modes:
            if m.frequency < ROUNDING * fastest:
                m = replace(m, pole=0j)
            sign = f" +-{m.pole.imag:.4g}j" if m.pole.imag else ""
            states = ", ".join(f"{k} {m.participation[k]:.0%}" for k in m.main_states)
            numbers = [f"{m.frequency:.4g}", f"{m.damping:.3f}", f"{m.time_constant:.3g}"]
            rows.append(
                [f"{m.pole.real:.4g}{sign}", *numbers, f"  {brief(states, 26 if m.name else 36)}"]
            )
        width = max(len(row[-1]) for row in rows)
        if any(m.name for m in self.modes):
            rows = [
                [name, *row] for name, row in zip(("mode", *(m.name for m in self.modes)), rows)
            ]
        return text_table([*row[:-1], row[-1].ljust(width)] for row in rows)


def modes(system: Any, dt: float | None = None) -> ModeTable:
    """Return the modes of a system.

    A conjugate pair is one mode. Those of an aircraft have names, found by the states that take
    part in them: longitudinal (alt, V, alpha, pitch, q, ...) or lateral (beta, roll, yaw, p, r),
    fast or slow. The guide to vehicles has the rules. This runs on numbers, since eigenvectors
    cannot be recorded; poles can: ``system.poles()``.

    Parameters
    ----------
    system : StateSpace, TransferFunction or array (n, n)
        The system, or its state matrix A.
    dt : float, optional
        Length of a step in s, for a matrix A of a discrete system. None, the default, for
        continuous time.

    Examples
    --------
    >>> pendulum = StateSpace([[0.0, 1.0], [-4.0, -0.4]], np.eye(2, 1), np.eye(2), np.zeros((2, 1)),
    ...                       states=("angle", "rate"))
    >>> print(modes(pendulum))
    pole (1/s)    frequency (rad/s)  damping  time constant (s)    states
    -0.2 +-1.99j                  2    0.100                  5    angle 50%, rate 50%
    """
    if hasattr(system, "to_ss"):
        system = system.to_ss()
    if not isinstance(system, StateSpace):
        A = matrix(system, "system")
        n = A.shape[0]
        system = StateSpace(A, np.zeros((n, 0)), np.zeros((0, n)), np.zeros((0, 0)), dt)
    if is_traced(system.A):
        raise TypeError("modes runs on numbers; in recorded code use system.poles()")
    check_finite(system.A, "modes: A")
    poles, V = np.linalg.eig(system.A)
    # Of equal poles the eigenvectors may be dependent: shares are then those of the pseudo-inverse.
    shares = np.abs(V.T * np.linalg.pinv(V))
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    if system.dt is not None:
        with np.errstate(divide="ignore"):
            poles = np.log(poles.astype(complex)) / system.dt
    table = []
    for k in np.argsort(np.abs(poles), kind="stable"):
        if np.imag(poles[k]) >= 0.0:
            order = np.argsort(-shares[k], kind="stable")
            named = {system.states[i]: float(shares[k, i]) for i in order}
            table.append(Mode(complex(poles[k]), named))
    names = flight_mode_names(table)
    return ModeTable(tuple(replace(mode, name=name) for mode, name in zip(table, names)))
