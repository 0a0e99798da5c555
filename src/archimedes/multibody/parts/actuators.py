"""Actuators: motors with gears and a torque-speed line, servos, and MuJoCo's general drives.

Legend: tau_m, w_m are torque and speed of a motor's shaft, g the ratio of its gear: the joint gets
g tau_m and turns at w_m / g. A motor gives at most ``stall (1 - w_m / w_0)`` in the direction it
turns, the line of a direct-current motor at full voltage. An actuator names the `joints` of one
coordinate that it acts on; ``torques(q, v, command)`` are those at them, for their q and v. One
with a state of its own also has ``activation_rate(activation, command)``: its torques are those of
the activation in place of the command.
Tendons are springs and dampers along sums of coordinates.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from archimedes import checks
from archimedes.multibody.parts.ranges import read_only
from archimedes.tree import field, replace, struct
from archimedes.typing import ArrayLike, Scalar, Vector

__all__ = ["Drive", "Lagged", "Motor", "Servo", "Tendons"]


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


@struct
class Tendons:
    """Tendons over joints of one coordinate.

    Parameters
    ----------
    names : tuple of str
        Names of the tendons.
    joints : tuple of str
        Names of the joints.
    arms : array (t, n)
        Moment arms: ``length = arms @ q``.
    stiffness : array (t,)
        Stiffness in N/m.
    damping : array (t,)
        Damping in N s/m.
    rest : array (t, 2)
        Lengths in m between which each tendon is slack.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge")
    >>> b.add_tendon("spring", {"hinge": 0.5}, stiffness=8.0)
    >>> arm = b.build()
    >>> arm.tendons.names, mb.passive_torque(arm, np.array([0.1]), np.zeros(1))
    (('spring',), array([-0.2]))
    """

    names: tuple[str, ...] = field(static=True)
    joints: tuple[str, ...] = field(static=True)
    arms: Any = field()
    stiffness: Any = field(units="N/m")
    damping: Any = field(units="N s/m")
    rest: Any = field(units="m")

    def __post_init__(self) -> None:
        """Check the shapes."""
        t = len(self.names)
        wanted: dict[str, tuple[int, ...]] = {
            "arms": (t, len(self.joints)), "stiffness": (t,), "damping": (t,), "rest": (t, 2),
        }  # fmt: skip
        for name, shape in wanted.items():
            self.__dict__[name] = read_only(checks.as_array(getattr(self, name), f"Tendons {name}"))
            checks.check_shape(self.__dict__[name], f"Tendons {name}", shape)

    def stretch(self, q: Vector) -> Vector:
        """Return by how much (..., t) tendons are longer or shorter than where they are slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        length = np.matmul(q, self.arms.T)
        over = np.maximum(length - self.rest[:, 1], 0.0)
        return over + np.minimum(length - self.rest[:, 0], 0.0)

    def torques(self, q: Vector, v: Vector) -> Vector:
        """Return what tendons do at the joints (..., n), for their q and v.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        v : array (..., n)
            Velocities of the joints.
        """
        pull = self.stiffness * self.stretch(q) + self.damping * np.matmul(v, self.arms.T)
        return -np.matmul(pull, self.arms)

    def slack_stiffness(self, q: Vector) -> Vector:
        """Return the stiffness (..., t) of tendons where they are: none where slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        return np.where(self.stretch(q) == 0.0, 0.0, self.stiffness)
