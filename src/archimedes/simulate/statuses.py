"""How a solve can end: numbers, messages that say what to do, and the error odeint raises."""

from __future__ import annotations

import math
from typing import Any

from archimedes.errors import ArchimedesError
from archimedes.tree import struct

__all__ = ["SimulationError", "SolveInfo"]


class Status:
    """How a solve ended: as in SciPy, 0 and 1 are good ends and negative numbers failures.

    ``RUNNING`` and ``SETTLED`` (still running, right after an event) are carried by loops that are
    not done; they are never seen in a result.
    """

    FINISHED = 0
    EVENT = 1
    RUNNING = 2
    SETTLED = 3
    STEP_UNDERFLOW = -1
    NON_FINITE = -2
    TOO_MANY_STEPS = -3
    INTERRUPTED = -4
    CHATTERING = -5
    UNORDERED = -6
    RESET_NON_FINITE = -7


_MESSAGES = {
    Status.FINISHED: "the end of the time span was reached",
    Status.EVENT: "a terminal event occurred at t = {t:.17g}",
    Status.STEP_UNDERFLOW: (
        "the step size became too small at t = {t:.17g}: the solution may be singular or "
        "discontinuous there, the tolerances too tight for double precision, or the system stiff"
        "{remedy}{origin}"
    ),
    Status.NON_FINITE: (
        "the derivative, the state or an event function became nan or infinite right after "
        "t = {t:.17g}. The trajectory is valid up to there"
    ),
    Status.TOO_MANY_STEPS: (
        "the limit of max_steps = {max_steps} steps was reached at t = {t:.17g}: raise max_steps, "
        "loosen the tolerances{remedy}"
    ),
    Status.CHATTERING: (
        "infinitely many events happen at t = {t:.17g}: they accumulate "
        "(Zeno) or chatter. Give a band between on and off, end the motion with a terminal event, "
        "or model what happens there. The trajectory is valid up to there"
    ),
    Status.RESET_NON_FINITE: (
        "{reset} at t = {t:.17g}, so that the solve cannot go on. The trajectory is valid up to "
        "there"
    ),
    Status.UNORDERED: "t_eval is not sorted in the direction of t_span, or outside it",
    Status.INTERRUPTED: "interrupted at t = {t:.17g}. The trajectory is valid up to there",
}
#: Times beyond this are so sparse that a fast motion may not fit between them.
FAR = 1e4
_FAR = (
    ". Neighbouring times are {spacing:.2g} apart there: if the motion is only fast, count time "
    "from a nearer origin"
)
_STIFF = ", or use a method for stiff systems (method='rodas5p')"


#: With fewer steps than this no other method is advised.
MANY_STEPS = 1000
_LOOKS = (
    "; the system looks stiff, which is why there were so many steps: method='rodas5p' (or "
    "'auto') would take far fewer"
)


def message_of(
    status: int,
    t: float,
    max_steps: int = 0,
    stiff: bool = False,
    looks: bool = False,
    reset: str = "the reset of an event gave nan or infinity",
) -> str:
    """Return the message of a status at the time t; ``stiff`` if the method already is.

    ``looks``: the method noticed that the system is. ``reset``: which reset gave what.

    >>> message_of(Status.FINISHED, 1.0)
    'the end of the time span was reached'
    """
    remedy = "" if stiff else _STIFF
    origin = _FAR.format(spacing=math.ulp(t)) if abs(t) > FAR else ""
    text = _MESSAGES[status].format(
        t=t, max_steps=max_steps, remedy=remedy, origin=origin, reset=reset
    )
    return text + _LOOKS if looks else text


@struct
class SolveInfo:
    """How a solution ended.

    Parameters
    ----------
    success : bool
        Whether the end of the span or a terminal event was reached.
    status : int
        0: end of the span. 1: terminal event. -1: step size too small. -2: nan or infinity. -3: too
        many steps. -5: infinitely many events at one time. -6: `t_eval` not in order. -7: a reset
        returned nan or infinity.
    t : float
        Time that was reached.
    steps : int
        Number of steps taken.

    Examples
    --------
    >>> import archimedes as arc
    >>> _, info = arc.odeint(lambda t, x: -x, (0.0, 1.0), 1.0, full_output=True)
    >>> bool(info.success)
    True
    """

    success: Any
    status: Any
    t: Any
    steps: Any


class SimulationError(ArchimedesError, RuntimeError):
    """A solve failed where only arrays can be returned.

    ``trajectory`` is the part that was computed, with status and message.

    >>> import archimedes as arc
    >>> try:
    ...     arc.odeint(lambda t, x: x**2, (0.0, 2.0), [1.0])
    ... except arc.SimulationError as error:
    ...     print(error.trajectory.success, round(float(error.trajectory.t[-1]), 6))
    False 1.0
    """

    def __init__(self, message: str, trajectory: Any = None) -> None:
        super().__init__(message)
        self.trajectory = trajectory
