"""A Hill-type muscle: a fibre that pulls by its activation, length and speed, on a rigid tendon.

Legend: l is the length of the fibre as a part of the optimal one, v its rate in optimal lengths per
second as a part of the top speed, negative while it shortens. A fibre at the angle alpha to the
tendon keeps its thickness, ``l sin(alpha)``. The force along the tendon is
``peak (a FL(l) FV(v) + FP(l) + d v) cos(alpha)``, and never pushes.
Source: De Groote, Kinney, Rao and Fregly, Annals of Biomedical Engineering 44, 2016, for FL, FP and
FV; FP is shifted so that it is zero at the shortest length, as in OpenSim.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import checks
from archimedes.multibody.parts.actuators import Muscle, OneJoint, check_gear
from archimedes.tree import field, struct
from archimedes.typing import Scalar

#: Peaks of FL: their height, where they are, their width and how it grows with the length.
PEAKS = ((0.814, 1.06, 0.162, 0.0633), (0.433, 0.717, -0.0299, 0.2), (0.1, 1.0, 0.354, 0.0))
#: FV is ``a arsinh(b v + c) + d``.
SPEED = (-0.318, -8.149, -0.374, 0.886)
#: FP grows as ``exp(4 (l - 1) / 0.6)``, and is one at 1.6 optimal lengths.
GROWTH, STRAIN = 4.0, 0.6
#: The shortest length of a fibre for which the curves are meant.
SHORTEST = 0.2


@struct
class HillMuscle(OneJoint):
    """A Hill-type muscle on a rigid tendon, for biomechanics.

    The force of the fibre grows with its activation, is largest at its optimal length, falls with
    its speed, and pulls passively where it is stretched; see the source for the curves. It acts
    along what the muscle is named for: a tendon through space, a joint, or a transmission. The
    activation follows its command as that of `Muscle`. `dynamics` takes it with states of
    `driven_state`.

    Parameters
    ----------
    joint : str
        Name of a tendon, a joint of one coordinate, or a transmission.
    peak : float
        Largest active force of the fibre in N, at the optimal length and at rest.
    optimal_length : float
        Length of the fibre in m at which it is strongest.
    tendon_length : float
        Length in m of the tendon, which does not stretch. The fibre takes up the rest of the
        length of what it acts on.
    pennation : float, optional
        Angle in rad of the fibre to the tendon at the optimal length, 0 by default.
    top_speed : float, optional
        Speed of shortening, in optimal lengths per s, at which it does not pull. 10 by default.
    damping : float, optional
        Force against the speed of the fibre, as a part of `peak` at the top speed. 0 by default.
    time_constants : array (2,), optional
        Time constants in s of activation and deactivation, (0.01, 0.04) by default.
    smoothing : float, optional
        Width of the change between both, as a difference of command and activation. 0 by default.
    gear : float, optional
        Length of muscle and tendon per length of what it acts on, 1 by default.
    rotor_inertia : float, optional
        Zero: a muscle has no rotor.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("forearm", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("forearm", joint="slide", kind="prismatic")
    >>> biceps = mb.HillMuscle("slide", peak=600.0, optimal_length=0.12, tendon_length=0.25)
    >>> half = np.array([0.5])  # activation
    >>> mb.actuator_torque(b.build(), [biceps], np.array([0.37]), np.zeros(1), half).round(1)
    array([-309.9])
    """

    joint: str = field(static=True)
    peak: Any = field(units="N")
    optimal_length: Any = field(units="m")
    tendon_length: Any = field(units="m")
    pennation: Any = field(units="rad", default=0.0)
    top_speed: Any = field(default=10.0)
    damping: Any = field(default=0.0)
    time_constants: Any = field(units="s", default=np.array([0.01, 0.04]))
    smoothing: Any = field(default=0.0)
    gear: Any = 1.0
    rotor_inertia: Any = field(units="kg m^2", default=0.0)

    def __post_init__(self) -> None:
        """Check the numbers that are known."""
        where = f"HillMuscle of {self.joint!r}"
        check_gear(self.gear, where)
        checks.check_last(checks.as_array(self.time_constants), 2, f"{where}: time_constants")
        for name in ("optimal_length", "top_speed", "time_constants"):
            checks.check_positive(getattr(self, name), f"{where}: {name}")
        for name in ("peak", "tendon_length", "damping", "smoothing"):
            checks.check_not_negative(getattr(self, name), f"{where}: {name}")
        checks.check_that(np.isfinite, self.peak, f"{where}: peak", "must be finite")
        checks.check_that(
            lambda x: (x >= 0.0) & (x < 0.5 * np.pi), self.pennation, f"{where}: pennation",
            "must be between 0 and pi/2 rad",
        )  # fmt: skip

    #: The activation of a muscle, from its command.
    activation_rate = Muscle.activation_rate

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
        along = (self.gear * q[0] - self.tendon_length) / self.optimal_length
        # A fibre that would be shorter than nothing is slack.
        along = np.maximum(along, SHORTEST * np.cos(self.pennation))
        across = np.sin(self.pennation)
        length = np.sqrt(along * along + across * across)
        cosine = along / length
        speed = self.gear * v[0] * cosine / (self.optimal_length * self.top_speed)
        pull = command * self.active_force(length) * self.speed_factor(speed)
        pull = pull + self.passive_force(length) + self.damping * speed
        return [-self.gear * self.peak * cosine * np.maximum(pull, 0.0)]

    def active_force(self, length: Scalar) -> Scalar:
        """Return FL, the active force at rest, as a part of the peak.

        Parameters
        ----------
        length : float
            Length of the fibre, as a part of the optimal one.
        """
        length = np.maximum(length, SHORTEST)
        away = [(h, (length - at) / (width + more * length)) for h, at, width, more in PEAKS]
        return sum(height * np.exp(-0.5 * x * x) for height, x in away)

    def speed_factor(self, speed: Scalar) -> Scalar:
        """Return FV, what the active force counts at a speed: 0 at -1, 1 at rest.

        Parameters
        ----------
        speed : float
            Speed of the fibre as a part of the top speed, positive where it gets longer.
        """
        a, b, c, d = SPEED
        return a * np.arcsinh(b * speed + c) + d

    def passive_force(self, length: Scalar) -> Scalar:
        """Return FP, the force of a fibre that is not active, as a part of the peak.

        Parameters
        ----------
        length : float
            Length of the fibre, as a part of the optimal one.
        """
        least = np.exp(GROWTH * (SHORTEST - 1.0) / STRAIN)
        return (np.exp(GROWTH * (length - 1.0) / STRAIN) - least) / (np.exp(GROWTH) - least)
