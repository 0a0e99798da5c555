"""What a controller should do: accelerations of frames, of joints and of the centre of mass.

Legend: a task has rows J and a bias with ``rate of velocity = J a + bias``, where the bias is what
remains without joint accelerations a. It asks for ``acceleration + 2 z f e. + f^2 e``, with the
error e, its rate e., the frequency f and the damping ratio z: the error then obeys
``e.. + 2 z f e. + f^2 e = 0``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_not_negative, check_shape
from archimedes.multibody.algorithms.configurations import difference
from archimedes.multibody.algorithms.inverse_dynamics import link_forces, torques_of
from archimedes.multibody.algorithms.kinematics import (
    center_of_mass,
    centroidal_matrix,
    frame_acceleration,
    frame_jacobian,
    frame_twist,
    world_pose,
)
from archimedes.multibody.algorithms.limits import free_velocities
from archimedes.multibody.algorithms.links import read_tree
from archimedes.multibody.systems.constraints import check_single
from archimedes.multibody.systems.dynamics import State, check_is_state
from archimedes.spatial.se3 import homogeneous, se3_log
from archimedes.spatial.transformation import Transformation, check_pose
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["Task", "center_of_mass_task", "frame_task", "posture_task"]


@struct
class Task:
    """A wish of a controller: ``jacobian @ a + bias`` should be ``acceleration``.

    `frame_task`, `posture_task` and `center_of_mass_task` make tasks; this class takes those of
    your own.

    Parameters
    ----------
    jacobian : array (k, nv)
        Rows of the task.
    bias : array (k,)
        Its acceleration where that of the joints is zero, in m/s^2 or rad/s^2.
    acceleration : array (k,)
        Acceleration that it asks for, in m/s^2 or rad/s^2.
    weights : array (k,), optional
        Weights of the squares of what is missing. 1 by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Task
    >>> Task(np.eye(2), np.zeros(2), np.array([1.0, 0.0])).weights
    array([1., 1.])
    """

    jacobian: Any = field()
    bias: Any = field()
    acceleration: Any = field()
    weights: Any = field(units="", default=1.0)

    def __post_init__(self) -> None:
        """Check the shapes."""
        rows = as_array(self.jacobian, "Task jacobian")
        if rows.ndim != 2:
            raise ValueError(f"Task jacobian must have shape (k, nv), got {tuple(rows.shape)}")
        self.__dict__["jacobian"], size = rows, (rows.shape[0],)
        for name in ("bias", "acceleration", "weights"):
            self.__dict__[name] = fill(getattr(self, name), size[0], f"Task {name}")
        check_not_negative(self.weights, "Task weights")


def frame_task(
    model: Model,
    x: State,
    frame: str,
    target: ArrayLike | Transformation,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
    *,
    frequency: ArrayLike = 10.0,
    damping: ArrayLike = 1.0,
    weights: ArrayLike = 1.0,
) -> Task:
    """Return the task that moves a frame to a position or a pose.

    All parts are in axes of the world: errors, velocities, weights. An error of attitude is the
    rotation vector that leads to the target.

    Parameters
    ----------
    model : Model
        The robot.
    x : State
        Configuration and velocity.
    frame : str
        Name of a frame or body.
    target : array (3,) or Transformation
        Position of its origin in m, or its pose: ``pose(position, attitude)``.
    velocity : array (3,) or (6,), optional
        Velocity of the target, linear part first, in m/s and rad/s. 0 by default.
    acceleration : array (3,) or (6,), optional
        Acceleration of the target, in m/s^2 and rad/s^2. 0 by default.
    frequency : float or array (3,) or (6,), optional
        Natural frequency in rad/s by which errors vanish. 10 by default; 0 asks for the
        acceleration alone.
    damping : float or array (3,) or (6,), optional
        Damping ratio. 1 by default.
    weights : float or array (3,) or (6,), optional
        Weights; ``[0, 0, 0, 1, 1, 1]`` leaves the position free. 1 by default.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bar", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bar", joint="hinge", axis=[0, 0, 1])
    >>> b.add_frame("tip", "bar", position=[1.0, 0.0, 0.0])
    >>> arm = b.build()
    >>> task = mb.frame_task(arm, mb.State([0.0], [2.0]), "tip", [1.0, 0.1, 0.0])
    >>> task.jacobian.T, task.bias, task.acceleration.round(12)
    (array([[0., 1., 0.]]), array([-4.,  0.,  0.]), array([  0., -30.,   0.]))
    """
    q, v = state_of(model, x)
    X = world_pose(model, q, frame)
    if isinstance(target, Transformation):
        check_pose(target, "target")
        goal = target.as_matrix()
        turn = se3_log(homogeneous(goal[:3, :3] @ X.R.T, np.zeros(3)))[3:]
        error = np.concatenate([goal[:3, 3] - X.p, turn])
    else:
        place = as_array(target, "target")
        check_shape(place, "target, a position or a pose,", (3,))
        error = place - X.p
    n = error.shape[0]
    J = frame_jacobian(model, q, frame, "aligned")[:n]
    bias = frame_acceleration(model, q, v, np.zeros(model.nv), frame, "aligned")[:n]
    rate = fill(velocity, n, "velocity") - frame_twist(model, q, v, frame, "aligned")[:n]
    wanted = feedback(error, rate, acceleration, frequency, damping)
    return Task(J, bias, wanted, weights)


def posture_task(
    model: Model,
    x: State,
    target: ArrayLike,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
    *,
    frequency: ArrayLike = 10.0,
    damping: ArrayLike = 1.0,
    weights: ArrayLike = 1.0,
) -> Task:
    """Return the task that moves all joints to a configuration, but for free joints.

    Parameters
    ----------
    model : Model
        The robot.
    x : State
        Configuration and velocity.
    target : array (nq,)
        Configuration. What it says of free joints, such as that of a floating base, does not
        count.
    velocity : array (nv,), optional
        Velocity of the target in m/s and rad/s. 0 by default.
    acceleration : array (nv,), optional
        Acceleration of the target in m/s^2 and rad/s^2. 0 by default.
    frequency : float or array (nv,), optional
        Natural frequency in rad/s by which errors vanish. 10 by default.
    damping : float or array (nv,), optional
        Damping ratio. 1 by default.
    weights : float or array (nv,), optional
        Weights. 1 by default.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bar", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bar", joint="hinge", axis=[0, 0, 1])
    >>> mb.posture_task(b.build(), mb.State([0.0], [0.0]), [0.5], frequency=2.0).acceleration
    array([2.])
    """
    q, v = state_of(model, x)
    goal = check_single(model, target, "q of the target")
    rate = fill(velocity, model.nv, "velocity") - v
    wanted = feedback(difference(model, q, goal), rate, acceleration, frequency, damping)
    own = np.flatnonzero(~free_velocities(model))
    weights = fill(weights, model.nv, "weights")
    return Task(np.eye(model.nv)[own], np.zeros(len(own)), wanted[own], weights[own])


def center_of_mass_task(
    model: Model,
    x: State,
    target: ArrayLike,
    velocity: ArrayLike = 0.0,
    acceleration: ArrayLike = 0.0,
    *,
    frequency: ArrayLike = 10.0,
    damping: ArrayLike = 1.0,
    weights: ArrayLike = 1.0,
) -> Task:
    """Return the task that moves the centre of mass, in axes of the world.

    Parameters
    ----------
    model : Model
        The robot.
    x : State
        Configuration and velocity.
    target : array (3,)
        Position in m.
    velocity : array (3,), optional
        Velocity of the target in m/s. 0 by default.
    acceleration : array (3,), optional
        Acceleration of the target in m/s^2. 0 by default.
    frequency : float or array (3,), optional
        Natural frequency in rad/s by which errors vanish. 10 by default.
    damping : float or array (3,), optional
        Damping ratio. 1 by default.
    weights : float or array (3,), optional
        Weights. 1 by default.

    Examples
    --------
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 0, 1])
    >>> task = mb.center_of_mass_task(b.build(), mb.State([0.0], [2.0]), [0.5, 0.0, 0.0])
    >>> task.jacobian.T, task.bias.round(12)
    (array([[0. , 0.5, 0. ]]), array([-2.,  0.,  0.]))
    """
    q, v = state_of(model, x)
    mass = np.sum(model.masses)
    place = as_array(target, "target")
    check_shape(place, "target", (3,))
    J = centroidal_matrix(model, q)[:3] / mass
    rate = fill(velocity, 3, "velocity") - J @ v
    wanted = feedback(place - center_of_mass(model, q), rate, acceleration, frequency, damping)
    return Task(J, center_of_mass_bias(model, q, v), wanted, weights)


def center_of_mass_bias(model: Model, q: Vector, v: Vector) -> Vec3:
    """Return the acceleration (3,) of the centre of mass where that of the joints is zero.

    It is what the forces on all bodies, which lead from the world through the first joints, and
    gravity give to the mass.
    """
    links, forces = link_forces(read_tree(model), q, v, np.zeros(model.nv))
    _, total = torques_of(model, links, forces)
    roots = [i for i, link in enumerate(model.links) if link.parent < 0]
    force = sum(links.X[i].rotate(total[i].linear) for i in roots)
    return force / np.sum(model.masses) + model.gravity


def state_of(model: Model, x: State) -> tuple[Vector, Vector]:
    """Return configuration (nq,) and velocity (nv,) of one state."""
    check_is_state(x)
    return check_single(model, x.q, "q"), check_single(model, x.v, "v")


def fill(value: ArrayLike, size: int, name: str) -> Vector:
    """Return a number or an array as an array (size,)."""
    array = as_array(value, name)
    check_shape(array, name, (), (size,))
    check_finite(array, name)
    return np.zeros(size) + array


def feedback(
    error: Vector, rate: Vector, acceleration: ArrayLike, frequency: ArrayLike, damping: ArrayLike
) -> Vector:
    """Return the acceleration by which an error vanishes."""
    n = error.shape[0]
    f, z = fill(frequency, n, "frequency"), fill(damping, n, "damping")
    check_not_negative(f, "frequency", "rad/s")
    check_not_negative(z, "damping")
    return fill(acceleration, n, "acceleration") + f * f * error + 2.0 * z * f * rate
