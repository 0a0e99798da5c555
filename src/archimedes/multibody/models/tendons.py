"""Tendons: springs and dampers along sums of coordinates."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array
from archimedes.tree import field, struct

__all__ = ["Tendons"]


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
            array = as_array(getattr(self, name), f"Tendons {name}")
            if tuple(array.shape) != shape:
                raise ValueError(f"Tendons {name} must have shape {shape}, got {array.shape}")
            self.__dict__[name] = array

    def stretched(self, q: Any) -> Any:
        """Return by how much (..., t) tendons are longer or shorter than where they are slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        length = np.matmul(q, self.arms.T)
        over = np.maximum(length - self.rest[:, 1], 0.0)
        return over + np.minimum(length - self.rest[:, 0], 0.0)

    def torques(self, q: Any, v: Any) -> Any:
        """Return what tendons do at the joints (..., n), for their q and v.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        v : array (..., n)
            Velocities of the joints.
        """
        pull = self.stiffness * self.stretched(q) + self.damping * np.matmul(v, self.arms.T)
        return -np.matmul(pull, self.arms)

    def stiff(self, q: Any) -> Any:
        """Return the stiffness (..., t) of tendons where they are: none where slack.

        Parameters
        ----------
        q : array (..., n)
            Coordinates of the joints.
        """
        return np.where(self.stretched(q) == 0.0, 0.0, self.stiffness)
