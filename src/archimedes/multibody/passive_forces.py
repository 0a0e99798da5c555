"""What joints do by themselves: damping, friction and springs.

Legend: d damping, f Coulomb friction, k stiffness, each (nv,); the displacement of a spring is the
velocity that leads from rest to q, so that springs of turning joints have no seam. Friction is
``f tanh(v / FRICTION_SPEED)``: smooth, and within 1 % of f beyond 3 mm/s or 3 mrad/s.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody.configurations import difference
from archimedes.multibody.links import check_coordinates
from archimedes.multibody.model import Model
from archimedes.spatial.validation import concrete

__all__ = ["FRICTION_SPEED", "passive_torque"]

#: Where the friction of a joint changes its sign, in m/s or rad/s.
FRICTION_SPEED = 1e-3


def passive_torque(model: Model, q: Any, v: Any) -> Any:
    """Return the torques (nv,) of damping, friction and springs at `q` (nq,), `v` (nv,).

    >>> from archimedes.multibody import Builder, passive_torque
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", damping=0.5, stiffness=3.0)
    >>> passive_torque(b.build(), q=[0.1], v=[2.0])
    array([-1.3])
    """
    v = check_coordinates(model, v, "v", model.nv)
    total = -(model.damping * v)
    if present(model.friction):
        total = total - model.friction * np.tanh(v / FRICTION_SPEED)
    if present(model.stiffness):
        total = total - model.stiffness * difference(model, model.rest, q)
    return total


def present(values: Any) -> bool:
    """Whether values are not known to be zero."""
    known = concrete(values)
    return known is None or bool(known.any())
