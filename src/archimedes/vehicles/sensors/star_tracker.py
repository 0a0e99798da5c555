"""A star tracker: the attitude itself, with a small turn as error."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes import random
from archimedes.checks import as_array
from archimedes.spatial import Quaternion, quaternion_exp, quaternion_multiply
from archimedes.tree import field, struct
from archimedes.vehicles.parts.limits import check_not_negative

__all__ = ["StarTracker"]


@struct
class StarTracker:
    """A star tracker, which reads the attitude.

    Parameters
    ----------
    noise : array (3,), optional
        Standard deviation in rad of the error about each body axis, largest about the line of
        sight.
    misalignment : array (3,), optional
        Constant rotation in rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.vehicles.sensors import StarTracker
    >>> StarTracker(noise=np.array([1e-5, 1e-5, 8e-5])).noise
    array([1.e-05, 1.e-05, 8.e-05])
    """

    noise: Any = field(units="rad", default_factory=lambda: np.array([3e-5, 3e-5, 2e-4]))
    misalignment: Any = field(units="rad", default_factory=lambda: np.zeros(3))

    def __post_init__(self) -> None:
        """Check the sizes where they are known."""
        check_not_negative(self.noise, "StarTracker.noise", "rad")

    def measure(self, att: Any, key: Any) -> Any:
        """Return the attitude that is read, as a `Quaternion`.

        Parameters
        ----------
        att : attitude
            True attitude.
        key : array (2,)
            Random key of `arc.random`.
        """
        error = as_array(self.misalignment) + as_array(self.noise) * random.normal(key, (3,))
        true = att.as_quat().array
        return Quaternion(quaternion_multiply(true, quaternion_exp(error)))
