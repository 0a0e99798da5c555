"""Actuators: what a command becomes, with lag and limits on position and rate.

Each gives `initial(position)`, `rates(x, command)` (the derivative of its state) and `position(x)`.
Commands beyond the limits of position are cut off; the limits of rate hold for the motion. Below
are the checks and limits that parts share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_limits, check_struct, concrete
from archimedes.errors import StructError
from archimedes.spatial import RigidBody
from archimedes.spatial.validation import check_inertia
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar, Tree

__all__ = ["FirstOrderActuator", "SecondOrderActuator"]

#: What every vehicle asks of its world.
WORLD = ("state", "flight", "surroundings", "rates")


def check_axes(axes: ArrayLike, name: str) -> Any:
    """Return unit vectors (n, 3), checked where they are known."""
    axes = as_array(axes, name)
    if axes.ndim != 2 or axes.shape[1] != 3:
        raise ValueError(f"{name} must have shape (n, 3), a unit vector per row, got {axes.shape}")
    values = concrete(axes)
    if values is not None and np.any(np.abs(np.linalg.norm(values, axis=1) - 1.0) > 1e-9):
        raise ValueError(f"{name} must be unit vectors, got {values}")
    return axes


def check_part(part: object, name: str, needed: Sequence[str]) -> None:
    """Raise if a part lacks what the whole asks of it."""
    missing = ", ".join(wanted for wanted in needed if not hasattr(part, wanted))
    if missing:
        kind = type(part).__qualname__
        raise StructError(f"{name} must have {', '.join(needed)}; {kind} lacks {missing}")


def check_body(vehicle: Any) -> None:
    """Raise if a vehicle has no world or an impossible mass or inertia."""
    name = type(vehicle).__name__
    check_struct(vehicle, positive="mass")
    check_inertia(vehicle.inertia, f"{name}.inertia")
    check_part(vehicle.world, f"{name}.world", WORLD)


def check_flat(world: object, name: str) -> None:
    """Raise if a world has no level ground below: its states are not those of a `FlatEarth`."""
    if getattr(world, "State", None) is not RigidBody.State:
        raise StructError(f"{name} needs level world=FlatEarth(), got {type(world).__name__}")


def limited(value: Any, limit: Scalar) -> Any:
    """Hold values within plus or minus a limit."""
    limit = as_array(limit, "limit")
    return np.maximum(np.minimum(value, limit), -limit)


@struct
class FirstOrderActuator:
    """A first-order lag. Its state is the position.

    Parameters
    ----------
    time_constant : float
        Time constant in s.
    rate_limit : float, optional
        Largest rate. inf by default.
    lower : float, optional
        Lower limit of the position.
    upper : float, optional
        Upper limit of the position.

    Examples
    --------
    >>> from archimedes.vehicles.parts import FirstOrderActuator
    >>> servo = FirstOrderActuator(time_constant=0.5, rate_limit=1.0, lower=-1.0, upper=1.0)
    >>> float(servo.rates(0.0, 5.0)), float(servo.rates(0.75, 5.0))
    (1.0, 0.5)
    """

    time_constant: Any = field(units="s")
    rate_limit: Any = np.inf
    lower: Any = -np.inf
    upper: Any = np.inf

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_struct(self, "time_constant", "rate_limit")
        check_limits(self.lower, self.upper, "FirstOrderActuator")

    def initial(self, position: Scalar) -> Any:
        """Return the state at rest at a position.

        Parameters
        ----------
        position : float
            Position.
        """
        return np.clip(as_array(position), self.lower, self.upper)

    def position(self, x: Tree) -> Any:
        """Return the position.

        Parameters
        ----------
        x : float
            State.
        """
        return x

    def rates(self, x: Tree, command: Scalar) -> Any:
        """Return the rate of the position for a command.

        Parameters
        ----------
        x : float
            State.
        command : float
            Commanded position.
        """
        goal = np.clip(command, self.lower, self.upper)
        return limited((goal - x) / self.time_constant, self.rate_limit)


@struct
class SecondOrderActuator:
    """A second-order lag. Its state is position and rate.

    Parameters
    ----------
    frequency : float
        Natural frequency in rad/s.
    damping : float, optional
        Damping ratio.
    rate_limit : float, optional
        Largest rate. inf by default.
    lower : float, optional
        Lower limit of the position.
    upper : float, optional
        Upper limit of the position.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.parts import SecondOrderActuator
    >>> fin = SecondOrderActuator(frequency=30.0, lower=-0.4, upper=0.4)
    >>> fin.upper
    0.4
    """

    frequency: Any = field(units="rad/s")
    damping: Any = field(units="", default=0.7)
    rate_limit: Any = np.inf
    lower: Any = -np.inf
    upper: Any = np.inf

    def __post_init__(self) -> None:
        """Check the parameters where they are known."""
        check_struct(self, "frequency", "damping rate_limit")
        check_limits(self.lower, self.upper, "SecondOrderActuator")

    @struct
    class State:
        """Position and rate.

        Parameters
        ----------
        position : float
            Position.
        rate : float
            Rate.
        """

        position: Any = field()
        rate: Any = field()

    def initial(self, position: Scalar) -> Any:
        """Return the state at rest at a position.

        Parameters
        ----------
        position : float
            Position.
        """
        position = np.clip(as_array(position), self.lower, self.upper)
        return SecondOrderActuator.State(position, 0.0 * position)

    def position(self, x: Tree) -> Any:
        """Return the position, within its limits.

        Parameters
        ----------
        x : SecondOrderActuator.State
            State.
        """
        return np.clip(x.position, self.lower, self.upper)

    def rates(self, x: Tree, command: Scalar) -> Any:
        """Return the rates of position and rate for a command.

        Parameters
        ----------
        x : SecondOrderActuator.State
            State.
        command : float
            Commanded position.
        """
        position, rate = x.position, x.rate
        goal = np.clip(command, self.lower, self.upper)
        push = self.frequency**2 * (goal - position) - 2.0 * self.damping * self.frequency * rate
        # At a limit the actuator stands: it can leave, not go on.
        at_low = (position <= self.lower) & (rate < 0.0)
        at_high = (position >= self.upper) & (rate > 0.0)
        fast = (np.abs(rate) >= self.rate_limit) & (push * rate > 0.0)
        moving = np.where(at_low | at_high, 0.0, limited(rate, self.rate_limit))
        return SecondOrderActuator.State(moving, np.where(fast, 0.0, push))
