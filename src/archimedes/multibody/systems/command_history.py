"""Commands that arrive late: a history of them, which steps write and dynamics read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import check_positive
from archimedes.multibody.parts.actuators import Delayed
from archimedes.multibody.systems.dynamics import COMMANDS, check_row, find_stateful
from archimedes.tree import field, replace, struct
from archimedes.typing import Array, ArrayLike, Scalar, Vector

__all__ = ["CommandHistory", "command_history"]

#: Times that differ by less than this part of the spacing of samples are the same.
SAME = 1e-6


@struct
class CommandHistory:
    """The commands of the last steps, of which some arrive late; `command_history` makes it.

    It is a state of its own beside that of the robot, and constant within a step: `read` what
    arrives, take the step, and `record` what was commanded at its beginning.

    Parameters
    ----------
    times : array (s,)
        Times of the samples in s, ascending.
    commands : array (s, n)
        Commands at these times.
    delays : array (n,)
        Delays in s, zero for commands that arrive at once.
    samples : tuple of int
        How many of the last samples each actuator knows.
    holds : tuple of str
        What each command is between two samples, see `Delayed`.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> motors = [mb.Delayed(mb.Motor("hinge"), delay=0.02, samples=2), mb.Motor("wheel")]
    >>> history = mb.command_history(motors, step=0.01)
    >>> for k in range(4):
    ...     u = [float(k), float(k)]
    ...     arriving = history.read(0.01 * k, u)
    ...     history = history.record(0.01 * k, u)
    >>> arriving
    array([1., 3.])
    """

    times: Any = field(units="s")
    commands: Any = field()
    delays: Any = field(units="s")
    samples: tuple[int, ...] = field(static=True)
    holds: tuple[str, ...] = field(static=True)

    def read(self, t: Scalar, u: ArrayLike) -> Vector:
        """Return the commands (n,) that arrive at a time.

        Before the first sample a command is the first, after the last it is the last.

        Parameters
        ----------
        t : float
            Time in s, perhaps within a step.
        u : array (n,)
            Commands of this step, which arrive where there is no delay.
        """
        u = check_row(u, len(self.samples), COMMANDS)
        arriving = [u[..., k] for k in range(len(self.samples))]
        for k, (count, hold) in enumerate(zip(self.samples, self.holds, strict=True)):
            if count:
                times, values = self.times[-count:], self.commands[-count:, k]
                arriving[k] = value_at(t - self.delays[k], times, values, hold)
        return np.stack(arriving, axis=-1)

    def record(self, t: Scalar, u: ArrayLike) -> CommandHistory:
        """Return the history with the commands of a step, without its oldest sample.

        Parameters
        ----------
        t : float
            Time in s at the beginning of the step, later than that of any sample.
        u : array (n,)
            Commands of the step.
        """
        u = check_row(u, len(self.samples), COMMANDS)
        times = np.concatenate([self.times[1:], np.stack([1.0 * t])])
        return replace(self, times=times, commands=np.concatenate([self.commands[1:], u[None]]))


def command_history(
    actuators: Sequence[Any], step: float, commands: ArrayLike | None = None
) -> CommandHistory:
    """Return the history of commands before the time zero, of actuators, some of them `Delayed`.

    Parameters
    ----------
    actuators : sequence
        Actuators, such as ``model.actuators``.
    step : float
        Length of the steps in s that will be recorded.
    commands : array (n,), optional
        Commands before the time zero. Zero by default, as in MuJoCo.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> motor = mb.Delayed(mb.Motor("hinge"), delay=0.02, samples=2)
    >>> mb.command_history([motor], step=0.01).times
    array([-0.02, -0.01])
    """
    find_stateful(actuators)  # an error where they are no list
    check_positive(step, "step, in s,")
    n = len(actuators)
    u = check_row(np.zeros(n) if commands is None else commands, n, COMMANDS)
    late = [isinstance(a, Delayed) for a in actuators]
    samples = tuple(a.samples if is_late else 0 for a, is_late in zip(actuators, late))
    delays = [1.0 * a.delay if is_late else 0.0 for a, is_late in zip(actuators, late)]
    count = max(samples, default=0)
    times = -step * np.arange(count, 0.0, -1.0)
    held = np.broadcast_to(u, (count, n)) + 0.0
    holds = tuple(a.hold if is_late else "zoh" for a, is_late in zip(actuators, late))
    return CommandHistory(times, held, np.stack(delays) if n else np.zeros(0), samples, holds)


def value_at(t: Scalar, times: Array, values: Array, hold: str) -> Any:
    """Return the value at a time, of samples (s,) that are constant beyond both ends."""
    count = times.shape[0]
    if count == 1:
        return values[0]
    t = np.minimum(np.maximum(t, times[0]), times[-1])
    near = SAME * (times[-1] - times[-2])
    k = np.minimum(np.sum(np.where(times[1:] <= t + near, 1, 0)), count - 1)
    if hold == "zoh":
        return values[k]
    k = np.minimum(k, count - 2)
    width = times[k + 1] - times[k]
    s = (t - times[k]) / width
    first, last = values[k], values[k + 1]
    if hold == "foh":
        return first + s * (last - first)
    inner = (values[2:] - values[:-2]) / (times[2:] - times[:-2])
    slopes = width * np.concatenate([np.zeros(1), inner, np.zeros(1)])
    bend = s * (1.0 - s)
    even = first + s * s * (3.0 - 2.0 * s) * (last - first)
    return even + bend * ((1.0 - s) * slopes[k] - s * slopes[k + 1])
