"""Pulls: a spring from a point of a body to the cursor, as an input of a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.multibody import Model, frame_pose, frame_twist
from archimedes.spatial.components import cross, matvec
from archimedes.tree import field, struct
from archimedes.typing import Array, Vec3

__all__ = ["Pull"]


@struct
class Pull:
    """A spring from a point of a body to the cursor: a reader drags the body with it.

    Put one among the inputs of a model and let its force act. In the page the mouse or a finger
    takes hold of a body and sets `on`, `point` and `target`; otherwise `on` is zero.

    Parameters
    ----------
    bodies : tuple of str
        Names of the bodies that can be dragged. Of a robot those of its links; ``""`` is a vehicle
        as a whole.
    stiffness : float
        Stiffness of the spring in N/m.
    damping : float
        Damping of the point's velocity in N s/m.
    limit : float
        Largest force in N.
    on : array (n,), optional
        1 for the body that is held. Zeros by default.
    point : array (3,), optional
        Point that is held in m, in the axes of the body.
    target : array (3,), optional
        Where the spring pulls it, in m in the axes of the model's world.
    relative : bool, optional
        Whether `target` is counted from the origin of the body, as for one that moves fast along
        its orbit. False by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.viewer import Pull
    >>> pull = Pull(("",), stiffness=100.0, damping=10.0, limit=50.0)
    >>> held = pull.replace(on=np.ones(1), target=np.array([0.1, 0.0, 0.0]))
    >>> held.force(np.zeros(3), np.zeros(3))
    array([10.,  0.,  0.])
    """

    bodies: tuple[str, ...] = field(static=True)
    stiffness: Any = field(units="N/m")
    damping: Any = field(units="N s/m")
    limit: Any = field(units="N")
    on: Any = None
    point: Any = field(units="m", default_factory=lambda: np.zeros(3))
    target: Any = field(units="m", default_factory=lambda: np.zeros(3))
    relative: bool = field(static=True, default=False)

    def __post_init__(self) -> None:
        """Hold nothing at first."""
        if self.on is None:
            object.__setattr__(self, "on", np.zeros(len(self.bodies)))

    def force(self, position: Vec3, velocity: Vec3, body: int = 0) -> Any:
        """Return the force in N on a body at the point that is held, in the axes of the world.

        Parameters
        ----------
        position : array (3,)
            Position of the point in m, in the axes of the world.
        velocity : array (3,)
            Velocity of the point in m/s, in the axes of the world.
        body : int, optional
            Number of the body in `bodies`.
        """
        pull = self.stiffness * (self.target - position) - self.damping * velocity
        size = np.sqrt(np.sum(pull * pull))
        return self.on[body] * pull * (self.limit / np.maximum(size, self.limit))

    def wrench(self, p_W: Vec3, v_W: Vec3, R_WB: Array, w_B: Vec3, body: int = 0) -> Any:
        """Return force in N and moment in N m about the body's origin (6,), in its axes.

        Parameters
        ----------
        p_W : array (3,)
            Position of the body's origin in m, in the axes of the world.
        v_W : array (3,)
            Velocity of the origin in m/s, in the axes of the world.
        R_WB : array (3, 3)
            Rotation from the axes of the body to those of the world.
        w_B : array (3,)
            Angular velocity in rad/s, in the axes of the body.
        body : int, optional
            Number of the body in `bodies`.
        """
        at = p_W + matvec(R_WB, self.point)
        force = self.force(at, v_W + matvec(R_WB, cross(w_B, self.point)), body)
        F_B = matvec(R_WB.T, force)
        return np.concatenate([F_B, cross(self.point, F_B)])

    def forces(self, model: Model, q: Any, v: Any) -> dict[str, Any]:
        """Return the wrenches on the links of a robot by body, for `forces` of its dynamics.

        Parameters
        ----------
        model : Model
            The robot.
        q : array (nq,)
            Configuration.
        v : array (nv,)
            Velocity.
        """
        wrenches = {}
        for k, name in enumerate(self.bodies):
            pose, twist = frame_pose(model, q, name), frame_twist(model, q, v, name)
            R_WB = pose.r.as_matrix()
            wrenches[name] = self.wrench(pose.t, matvec(R_WB, twist[:3]), R_WB, twist[3:], k)
        return wrenches
