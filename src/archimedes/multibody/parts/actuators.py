"""Actuators: motors with gears and a torque-speed line, servos, and MuJoCo's general drives.

Legend: tau_m, w_m are torque and speed of a motor's shaft, g the ratio of its gear: the joint gets
g tau_m and turns at w_m / g. A motor gives at most ``stall (1 - w_m / w_0)`` in the direction it
turns, the line of a direct-current motor at full voltage. An actuator names the `joints` of one
coordinate that it acts on; ``torques(q, v, command)`` are those at them, for their q and v. One
with a state of its own also has ``activation_rate(activation, command)``: its torques are those of
the activation in place of the command.
What is a joint here may as well be a tendon or a transmission of the model: its coordinate is then
a length, and a torque a force along it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from archimedes import checks
from archimedes.tree import field, replace, struct
from archimedes.typing import ArrayLike, Scalar, Vector

__all__ = ["Delayed", "Drive", "Lagged", "Motor", "Muscle", "Servo"]


class OneJoint:
    """What actuators on one joint share."""

    joint: str

    @property
    def joints(self) -> tuple[str, ...]:
        """The joint, for all that takes actuators."""
        return (self.joint,)

    def renamed(self, prefix: str) -> Self:
        """Return the same for a joint whose name has a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        return replace(self, joint=prefix + self.joint)


@struct
class Motor(OneJoint):
    """A motor on a joint of one velocity. Its command is the torque of its shaft in N m.

    Parameters
    ----------
    joint : str
        Name of the joint.
    gear : float, optional
        Gear ratio, 1 by default.
    stall_torque : float, optional
        Stall torque of the shaft in N m. inf by default.
    no_load_speed : float, optional
        No-load speed of the shaft in rad/s. inf by default.
    rotor_inertia : float, optional
        Inertia of the rotor in kg m^2, which counts with the square of `gear`; see `with_rotors`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> motor = mb.Motor("hinge", gear=10.0, stall_torque=0.5)
    >>> mb.actuator_torque(b.build(), [motor], np.zeros(1), np.zeros(1), np.array([0.2]))
    array([2.])
    """

    joint: str = field(static=True)
    gear: Any = 1.0
    stall_torque: Any = field(units="N m", default=np.inf)
    no_load_speed: Any = field(units="rad/s", default=np.inf)
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        where = f"Motor of {self.joint!r}"
        check_gear(self.gear, where)
        for name in ("stall_torque", "rotor_inertia"):
            checks.check_not_negative(getattr(self, name), f"{where}: {name}")
        checks.check_that(
            lambda x: x > 0.0, self.no_load_speed, f"{where}: no_load_speed", "must be positive"
        )
        if is_infinite(self.stall_torque) and not is_infinite(self.no_load_speed):
            raise ValueError(f"{where}: a no_load_speed needs a stall_torque: the line is of both")

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the torque at the joint.

        Parameters
        ----------
        q : list of arrays
            Coordinates of the joints.
        v : list of arrays
            Velocities of the joints.
        command : float
            Command.
        """
        if is_infinite(self.stall_torque):
            return [self.gear * command]
        share = self.gear * v[0] / self.no_load_speed
        most = self.stall_torque * np.minimum(1.0 - share, 1.0)
        least = -self.stall_torque * np.minimum(1.0 + share, 1.0)
        # Beyond the speed without load the motor can only brake.
        return [self.gear * np.minimum(np.maximum(command, least), most)]


@struct
class Servo(OneJoint):
    """A servo on a joint of one coordinate. Its command is the desired coordinate.

    The torque is ``stiffness (command - q) - damping v``, limited.

    Parameters
    ----------
    joint : str
        Name of the joint.
    stiffness : float
        Stiffness at the joint in N m/rad or N/m.
    damping : float, optional
        Damping at the joint.
    effort_limit : float, optional
        Largest torque or force at the joint. inf by default.
    gear : float, optional
        Gear ratio, 1 by default.
    rotor_inertia : float, optional
        Inertia of the rotor in kg m^2, which counts with the square of `gear`; see `with_rotors`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> servo = mb.Servo("hinge", stiffness=50.0, damping=2.0, effort_limit=5.0)
    >>> mb.actuator_torque(b.build(), [servo], np.zeros(1), np.array([1.0]), np.array([0.1]))
    array([3.])
    """

    joint: str = field(static=True)
    stiffness: Any = field(units="N m")
    damping: Any = field(units="N m s", default=0.0)
    effort_limit: Any = field(units="N m", default=np.inf)
    gear: Any = 1.0
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        where = f"Servo of {self.joint!r}"
        check_gear(self.gear, where)
        for name in ("stiffness", "damping", "effort_limit", "rotor_inertia"):
            checks.check_not_negative(getattr(self, name), f"{where}: {name}")

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the torque at the joint.

        Parameters
        ----------
        q : list of arrays
            Coordinates of the joints.
        v : list of arrays
            Velocities of the joints.
        command : float
            Command.
        """
        wanted = self.stiffness * (command - q[0]) - self.damping * v[0]
        return [np.minimum(np.maximum(wanted, -self.effort_limit), self.effort_limit)]


@struct
class Drive:
    """A force along a length that is a sum of coordinates, as in MuJoCo.

    ``force = (gain . s) command + bias . s`` with s = (1, length, speed). A position servo has gain
    (k, 0, 0) and bias (0, -k, -d); its length is the coordinate of a joint or the length of a
    tendon.

    Parameters
    ----------
    joints : tuple of str
        Names of the joints.
    arms : array (n,)
        Moment arms: the length is ``arms . q``.
    gain : array (3,), optional
        Gain of the command: ``gain . s``.
    bias : array (3,), optional
        Force without a command: ``bias . s``.
    command_range : array (2,), optional
        Limits of the command.
    force_range : array (2,), optional
        Limits of the force.
    gear : float, optional
        Gear ratio, 1 by default.
    rotor_inertia : float, optional
        Inertia of the rotor in kg m^2, which counts with the square of `gear`; see `with_rotors`.
    period : float, optional
        Lengths that differ by this are one, so that a servo goes the shorter way, as on a spherical
        joint. inf, the default, for none.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> servo = mb.Drive(("hinge",), [1.0], gain=[50.0, 0.0, 0.0], bias=[0.0, -50.0, -2.0])
    >>> mb.actuator_torque(b.build(), [servo], np.array([0.1]), np.zeros(1), np.array([0.3]))
    array([10.])
    """

    joints: tuple[str, ...] = field(static=True)
    arms: Any = field()
    gain: Any = field(default=np.array([1.0, 0.0, 0.0]))
    bias: Any = field(default=np.zeros(3))
    command_range: Any = field(default=np.array([-np.inf, np.inf]))
    force_range: Any = field(default=np.array([-np.inf, np.inf]))
    gear: Any = 1.0
    rotor_inertia: Any = field(units="kg m^2", default=0.0)
    period: Any = np.inf

    def __post_init__(self) -> None:
        """Check the shapes, and the ranges that are known."""
        where = f"Drive of {', '.join(map(repr, self.joints))}"
        sizes = {"arms": len(self.joints), "gain": 3, "bias": 3}
        for name, size in {**sizes, "command_range": 2, "force_range": 2}.items():
            checks.check_last(checks.as_array(getattr(self, name)), size, f"{where}: {name}")
        for name in ("command_range", "force_range"):
            check_range(getattr(self, name), f"{where}: {name}")

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the torques at the joints.

        Parameters
        ----------
        q : list of arrays
            Coordinates of the joints.
        v : list of arrays
            Velocities of the joints.
        command : float
            Command.
        """
        length, speed = (sum(self.arms[k] * x[k] for k in range(len(x))) for x in (q, v))
        command = clamp(command, self.command_range)
        if not is_infinite(self.period):
            turns = np.floor((command - length) / self.period + 0.5)
            command = command - self.period * turns
        force = self._sum(self.gain, length, speed) * command + self._sum(self.bias, length, speed)
        force = clamp(force, self.force_range)
        return [self.arms[k] * force for k in range(len(q))]

    def renamed(self, prefix: str) -> Self:
        """Return the same for joints whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        return replace(self, joints=tuple(prefix + name for name in self.joints))

    @staticmethod
    def _sum(c: Vector, length: Scalar, speed: Scalar) -> Scalar:
        return c[0] + c[1] * length + c[2] * speed


@struct
class Lagged:
    """An actuator that follows its command with a lag: ``a' = (command - a) / time_constant``.

    Its torques are those of `actuator` with the activation a as its command. At an end of their
    range, activations do not move outward. `dynamics` takes it, with states of `driven_state`.

    Parameters
    ----------
    actuator : actuator
        The actuator that gets the activation as its command.
    time_constant : float, optional
        Time constant in s. None, the default: the activation is the integral of the command.
    command_range : array (2,), optional
        Limits of the command.
    activation_range : array (2,), optional
        Limits of the activation.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> bob, motor = b.build(), mb.Lagged(mb.Motor("hinge", gear=10.0), time_constant=0.05)
    >>> x = mb.driven_state(bob, [motor])
    >>> mb.dynamics(bob, 0.0, x, np.array([0.2]), actuators=[motor]).activations
    array([4.])
    """

    actuator: Any = field()
    time_constant: Any = field(units="s", default=None)
    command_range: Any = field(default=np.array([-np.inf, np.inf]))
    activation_range: Any = field(default=np.array([-np.inf, np.inf]))

    def __post_init__(self) -> None:
        """Check the lag if it is known."""
        if isinstance(self.actuator, (Lagged, Delayed)):
            inner = type(self.actuator).__name__
            raise TypeError(
                f"Lagged actuator must be one without a lag or delay, got {inner}, which would not "
                "act; a delay goes outside: Delayed(Lagged(...), ...)"
            )
        if self.time_constant is not None:
            checks.check_positive(self.time_constant, "Lagged time_constant, in s,")
        check_range(self.command_range, "Lagged command_range")
        check_range(self.activation_range, "Lagged activation_range")

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints of its actuator."""
        return self.actuator.joints

    @property
    def gear(self) -> Any:
        """The gear of its actuator."""
        return self.actuator.gear

    @property
    def rotor_inertia(self) -> Any:
        """The rotor of its actuator."""
        return self.actuator.rotor_inertia

    def renamed(self, prefix: str) -> Self:
        """Return the same for joints whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        return replace(self, actuator=self.actuator.renamed(prefix))

    def activation_rate(self, activation: Scalar, command: Scalar) -> Scalar:
        """Return the rate of the activation.

        Parameters
        ----------
        activation : float
            Activation.
        command : float
            Command.
        """
        rate = clamp(command, self.command_range)
        if self.time_constant is not None:
            rate = (rate - activation) / self.time_constant
        low, high = self.activation_range[0], self.activation_range[1]
        least = np.where(activation <= low, 0.0, -np.inf)
        most = np.where(activation >= high, 0.0, np.inf)
        return np.minimum(np.maximum(rate, least), most)

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the torques at the joints, of an activation.

        Parameters
        ----------
        q : list of arrays
            Coordinates of the joints.
        v : list of arrays
            Velocities of the joints.
        command : float
            Activation.
        """
        return self.actuator.torques(q, v, clamp(command, self.activation_range))


#: What commands are between two samples of a history.
DELAYED_HOLDS = (*checks.HOLDS, "cubic")


@struct
class Delayed:
    """An actuator whose commands arrive late, through a `CommandHistory`.

    By itself it is its `actuator`: what delays the commands is the history.

    Parameters
    ----------
    actuator : actuator
        The actuator that gets the commands.
    delay : float
        Delay in s. A delay of less than a step counts as one step.
    samples : int
        How many commands of the past are kept: at least the delay over the step.
    hold : {"zoh", "foh", "cubic"}, optional
        What a command is between two samples: the earlier one, on the straight line, or on the
        curve of Catmull and Rom. ``"zoh"`` by default.

    Examples
    --------
    >>> from archimedes.multibody import Delayed, Motor
    >>> Delayed(Motor("hinge"), delay=0.02, samples=20).joints
    ('hinge',)
    """

    actuator: Any = field()
    delay: Any = field(units="s")
    samples: int = field(static=True)
    hold: str = field(static=True, default="zoh")

    def __post_init__(self) -> None:
        """Check the delay if it is known."""
        if isinstance(self.actuator, Delayed):
            raise TypeError("Delayed actuator must not be Delayed itself: add both delays")
        checks.check_positive(self.delay, "Delayed delay, in s,")
        checks.check_whole(self.samples, "Delayed samples", 1)
        checks.check_choice(self.hold, "Delayed hold", DELAYED_HOLDS)

    @property
    def joints(self) -> tuple[str, ...]:
        """The joints of its actuator."""
        return self.actuator.joints

    @property
    def gear(self) -> Any:
        """The gear of its actuator."""
        return self.actuator.gear

    @property
    def rotor_inertia(self) -> Any:
        """The rotor of its actuator."""
        return self.actuator.rotor_inertia

    @property
    def activation_rate(self) -> Callable[[Scalar, Scalar], Scalar]:
        """The rate of the activation of its actuator, where that has a state of its own."""
        return self.actuator.activation_rate

    def renamed(self, prefix: str) -> Self:
        """Return the same for joints whose names have a prefix.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        """
        return replace(self, actuator=self.actuator.renamed(prefix))

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the torques at the joints.

        Parameters
        ----------
        q : list of arrays
            Coordinates of the joints.
        v : list of arrays
            Velocities of the joints.
        command : float
            Command that arrives now, or activation.
        """
        return self.actuator.torques(q, v, command)


@struct
class Muscle(OneJoint):
    """A muscle as MuJoCo's: it pulls by its activation, its length, its speed, and passively.

    Lengths count from ``length_range`` as parts of the optimal length: there they are
    ``operating_range``. ``force = -peak (FL(L) FV(V) a + FP(L))``, of the activation a, along the
    tendon, joint or transmission that it is named for. The activation follows its command faster up
    (``time_constants[0]``) than down, as in Millard et al. 2013. `dynamics` takes it with states of
    `driven_state`.

    Parameters
    ----------
    joint : str
        Name of a tendon, a joint of one coordinate, or a transmission.
    peak : float
        Active force in N at the optimal length.
    length_range : array (2,)
        Shortest and longest length of the muscle in m, times `gear`.
    operating_range : array (2,), optional
        These lengths as parts of the optimal one, (0.75, 1.05) by default.
    active_range : array (2,), optional
        Parts of the optimal length between which the muscle can pull, (0.5, 1.6) by default.
    top_speed : float, optional
        Speed of shortening, in optimal lengths per s, at which it cannot pull. 1.5 by default.
    passive_peak : float, optional
        Passive force at the upper end of `active_range`, as a part of `peak`. 1.3 by default.
    eccentric_peak : float, optional
        Force while it is pulled out, as a part of `peak`. 1.2 by default.
    time_constants : array (2,), optional
        Time constants in s of activation and deactivation, (0.01, 0.04) by default.
    smoothing : float, optional
        Width of the change between both, as a difference of command and activation. 0 by default.
    gear : float, optional
        Length of the muscle per length of what it acts on, 1 by default.
    force_range : array (2,), optional
        Limits of the force.
    rotor_inertia : float, optional
        Zero: a muscle has no rotor.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> muscle = mb.Muscle("hinge", peak=100.0, length_range=[-1.0, 1.0])
    >>> mb.actuator_torque(b.build(), [muscle], np.zeros(1), np.zeros(1), np.array([0.5])).round(3)
    array([-46.])
    """

    joint: str = field(static=True)
    peak: Any = field(units="N")
    length_range: Any = field(units="m")
    operating_range: Any = field(default=np.array([0.75, 1.05]))
    active_range: Any = field(default=np.array([0.5, 1.6]))
    top_speed: Any = field(default=1.5)
    passive_peak: Any = field(default=1.3)
    eccentric_peak: Any = field(default=1.2)
    time_constants: Any = field(units="s", default=np.array([0.01, 0.04]))
    smoothing: Any = field(default=0.0)
    gear: Any = 1.0
    force_range: Any = field(default=np.array([-np.inf, np.inf]))
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        where = f"Muscle of {self.joint!r}"
        for name in ("length_range", "operating_range", "active_range", "time_constants"):
            checks.check_last(checks.as_array(getattr(self, name)), 2, f"{where}: {name}")
        for name in ("length_range", "operating_range"):
            checks.check_that(
                lambda x: x[..., 0] < x[..., 1], getattr(self, name), f"{where}: {name}",
                "must be (lower, upper) and not empty",
            )  # fmt: skip
        checks.check_that(
            lambda x: (x[..., 0] < 1.0) & (x[..., 1] > 1.0), self.active_range,
            f"{where}: active_range", "must have 1, the optimal length, inside",
        )  # fmt: skip
        for name in ("time_constants", "top_speed"):
            checks.check_positive(getattr(self, name), f"{where}: {name}")
        for name in ("peak", "passive_peak", "smoothing"):
            checks.check_not_negative(getattr(self, name), f"{where}: {name}")
        for name in ("peak", "passive_peak"):
            checks.check_that(
                np.isfinite, getattr(self, name), f"{where}: {name}", "must be finite"
            )
        check_gear(self.gear, where)
        check_range(self.force_range, f"{where}: force_range")

    def torques(self, q: list[Any], v: list[Any], command: Scalar) -> list[Any]:
        """Return the force along what it acts on, of an activation.

        Parameters
        ----------
        q : list of arrays
            Length.
        v : list of arrays
            Its rate.
        command : float
            Activation.
        """
        (low, high), (start, end) = self.length_range, self.operating_range
        optimal = (high - low) / (end - start)
        L = start + (self.gear * q[0] - low) / optimal
        V = self.gear * v[0] / (optimal * self.top_speed)
        pull = self.active_force(L) * self.speed_factor(V) * command + self.passive_force(L)
        return [self.gear * clamp(-self.peak * pull, self.force_range)]

    def active_force(self, length: Scalar) -> Scalar:
        """Return the active force at a length, as parts of those at the optimum.

        Parameters
        ----------
        length : float
            Length.
        """
        low, high = self.active_range
        # Four parabolas: up from the ends, down from the optimum, which meet half way.
        rise = np.where(length < 1.0, length - low, high - length)
        half = 0.5 * np.where(length < 1.0, 1.0 - low, high - 1.0)
        foot = np.maximum(rise, 0.0) / half
        top = (2.0 * half - rise) / half
        return np.where(rise <= half, 0.5 * foot * foot, 1.0 - 0.5 * top * top)

    def speed_factor(self, speed: Scalar) -> Scalar:
        """Return what the active force counts at a speed, 1 at rest, of parts of the top speed.

        Parameters
        ----------
        speed : float
            Speed, positive where it gets longer.
        """
        shorter = np.maximum(1.0 + speed, 0.0) ** 2
        y = self.eccentric_peak - 1.0
        some = np.maximum(y, 1e-15)
        longer = self.eccentric_peak - np.maximum(y - speed, 0.0) ** 2 / some
        return np.where(speed <= 0.0, shorter, longer)

    def passive_force(self, length: Scalar) -> Scalar:
        """Return the passive force at a length, as a part of the peak.

        Parameters
        ----------
        length : float
            Length, as a part of the optimal one.
        """
        half = 0.5 * (self.active_range[1] - 1.0)
        x = np.maximum(length - 1.0, 0.0) / half
        return self.passive_peak * np.where(x <= 1.0, 0.5 * x * x, x - 0.5)

    def activation_rate(self, activation: Scalar, command: Scalar) -> Scalar:
        """Return the rate of the activation.

        Parameters
        ----------
        activation : float
            Activation.
        command : float
            Command, between 0 and 1.
        """
        unit = np.array([0.0, 1.0])
        excess = clamp(command, unit) - activation
        slower = 0.5 + 1.5 * clamp(activation, unit)
        up, down = self.time_constants[0] * slower, self.time_constants[1] / slower
        width = np.where(self.smoothing > 0.0, self.smoothing, 1.0)
        x = clamp(excess / width + 0.5, unit)
        smooth = x * x * x * (x * (6.0 * x - 15.0) + 10.0)
        sharp = np.where(excess > 0.0, 1.0, 0.0)
        return excess / (down + (up - down) * np.where(self.smoothing > 0.0, smooth, sharp))


def clamp(x: Scalar, limits: Vector) -> Scalar:
    """Return a number moved into a range (2,)."""
    return np.minimum(np.maximum(x, limits[0]), limits[1])


def check_gear(gear: Scalar, where: str) -> None:
    """Raise if a known gear is zero or not finite."""
    checks.check_that(
        lambda x: np.isfinite(x) & (x != 0.0), gear, f"{where}: gear", "must be finite and not zero"
    )


def check_range(limits: ArrayLike, name: str) -> None:
    """Raise if a known range is not (lower, upper)."""
    checks.check_that(lambda x: x[..., 0] <= x[..., -1], limits, name, "must be (lower, upper)")


def is_infinite(x: Scalar) -> bool:
    """Return whether a limit is known to be none."""
    known = checks.concrete(checks.as_array(x))
    return known is not None and bool(np.isinf(known).all())
