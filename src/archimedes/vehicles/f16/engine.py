"""The afterburning turbofan of the F-16: thrust by power, altitude and Mach number, with its lag.

Legend: power is in percent, 0 idle, 50 military, 100 full afterburner; throttle from 0 to 1.
Source: Stevens, Lewis and Johnson, Aircraft Control and Simulation, 3rd edition, section 3.5 and
appendix A.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.function import interpolant
from archimedes.tree import field, struct
from archimedes.vehicles.f16.aerodynamics import TABLES as T
from archimedes.vehicles.surroundings import Surroundings

__all__ = ["F16Engine"]

FOOT, POUND = 0.3048, 4.4482216152605


def _of(values: np.ndarray) -> Any:
    return interpolant([T.MACH, T.ALTITUDE * FOOT], values * POUND, outside="extrapolate")


IDLE, MILITARY, MAXIMUM = _of(T.IDLE), _of(T.MILITARY), _of(T.MAXIMUM)


@struct
class F16Engine:
    """A jet engine with thrust along the x axis of the body, through the centre of mass.

    Parameters
    ----------
    angular_momentum : float, optional
        Angular momentum of the rotor about the x axis in kg m^2/s: 160 slug ft^2/s in the source,
        zero in NASA's check cases.
    lag : bool, optional
        Whether the power lags behind the throttle. True by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles import F16Engine
    >>> engine = F16Engine()
    >>> round(float(engine.commanded(0.5)), 2)
    32.47
    """

    angular_momentum: float = field(units="kg m^2/s", default=216.9309)
    lag: bool = field(static=True, default=True)

    def commanded(self, throttle: Any) -> Any:
        """Return the power in percent that a throttle setting asks for.

        Parameters
        ----------
        throttle : float
            Throttle from 0 to 1.
        """
        return np.where(throttle <= 0.77, 64.94 * throttle, 217.38 * throttle - 117.38)

    def power_rate(self, power: Any, throttle: Any) -> Any:
        """Return the rate of the power in percent per second: a lag that depends on the difference.

        Parameters
        ----------
        power : float
            Power of the engine in percent.
        throttle : float
            Throttle from 0 to 1.
        """
        command = self.commanded(throttle)
        high = command >= 50.0
        burning = power >= 50.0
        target = np.where(high, np.where(burning, command, 60.0), np.where(burning, 40.0, command))
        gap = target - power
        slow = np.clip(1.9 - 0.036 * gap, 0.1, 1.0)
        return np.where(burning, 5.0, slow) * gap

    def thrust(self, power: Any, around: Surroundings) -> Any:
        """Return the thrust in N.

        Parameters
        ----------
        power : float
            Power of the engine in percent.
        around : Surroundings
            Air, and motion relative to it.
        """
        mach, alt = around.mach, around.alt
        military = MILITARY(mach, alt)
        below = IDLE(mach, alt) + (military - IDLE(mach, alt)) * power / 50.0
        above = military + (MAXIMUM(mach, alt) - military) * (power - 50.0) / 50.0
        return np.where(power < 50.0, below, above)
