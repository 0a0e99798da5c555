"""Whole-body control: torques by which a robot does its tasks best, as a quadratic program.

Legend: unknowns are the joint accelerations a and, for each contact, the force f in its axes
(normal, two tangents), which point from the ground to the robot. M, h, Jc are mass matrix, bias
forces and Jacobian of the contacts, J, b, w, a* rows, bias, weights and wish of a task:

    min  1/2 sum_tasks w (J a + b - a*)^2 + 1/2 eps_a a^2 + 1/2 eps_f f^2
    -limit <= M a + h - Jc' f <= limit        torques; limit 0 where there is no actuator
    Jc a + bc = -c Jc v                       contacts stay where they are
    d . f_t <= mu cos(pi / n) f_n             a pyramid of n sides inside of the friction cone
    0 <= f_n <= most
    d.. + 2 k d. + k^2 (d - least) >= 0       distances, and limits of the joints, as barriers

Torques are what the first line gives for the solution: no unknowns of their own.
Sources: Del Prete et al., Implementing torque control with high-ratio gear boxes and without
joint-torque sensors, Int. J. Humanoid Robotics 13, 2016 (TSID); Ames et al., Control barrier
functions: theory and applications, European Control Conference 2019 (exponential barriers).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import (
    as_array,
    check_not_negative,
    check_positive,
    check_shape,
    check_type,
    check_whole,
    concrete,
)
from archimedes.display import Readable
from archimedes.function import jvp
from archimedes.multibody.algorithms.configurations import integrate
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.kinematics import frame_acceleration, frame_twist, world_pose
from archimedes.multibody.algorithms.limits import free_velocities
from archimedes.multibody.algorithms.links import Forces
from archimedes.multibody.algorithms.mass_matrix import crba
from archimedes.multibody.contact.contact_dynamics import ENDLESS
from archimedes.multibody.contact.contact_shapes import Contacts, Ground, Pair
from archimedes.multibody.contact.hulls import tangents
from archimedes.multibody.systems.dynamics import State
from archimedes.multibody.tasks.control_tasks import Task, fill, state_of
from archimedes.multibody.tasks.inverse_kinematics import straight_limits
from archimedes.multibody.tasks.points import Couple, couples_of, distances, point_jacobian
from archimedes.optimize import QPSolution, solve_qp
from archimedes.spatial.components import cross, matvec
from archimedes.tree import field, struct
from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["ControlResult", "whole_body_control"]


@struct
class ControlResult(Readable):
    """What a controller decided, and whether its program was solved.

    Parameters
    ----------
    torque : array (nv,)
        Torques of the joints in N m, or forces in N; within their limits whatever the status is.
    acceleration : array (nv,)
        Accelerations that follow, in m/s^2 and rad/s^2.
    force : array (n, 3)
        Forces in N of the ground on the contacts, in axes of the world.
    program : QPSolution
        The quadratic program's solution: status, multipliers, what remains. It is the `guess` of
        the next step.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, com=[0.5, 0, 0], inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="hinge", axis=[0, 1, 0])
    >>> arm, x = b.build(), mb.State(np.zeros(1), np.zeros(1))
    >>> found = mb.whole_body_control(arm, x, [mb.posture_task(arm, x, [0.0])])
    >>> bool(found.success), found.torque.round(6)
    (True, array([-9.81]))
    """

    torque: Any = field()
    acceleration: Any = field()
    force: Any = field(units="N")
    program: QPSolution = field()

    @property
    def status(self) -> Any:
        """How the program ended: a number of ``archimedes.optimize.Status``, 0 if solved."""
        return self.program.status

    @property
    def success(self) -> Any:
        """Whether the program was solved."""
        return self.program.success

    @property
    def message(self) -> str:
        """What happened, and what to do about it; of numbers, outside recorded code."""
        return self.program.message


def whole_body_control(
    model: Model,
    x: State,
    tasks: Sequence[Task],
    contacts: Sequence[Contacts] = (),
    ground: Ground | None = None,
    *,
    touching: ArrayLike | None = None,
    torque_limits: ArrayLike | None = None,
    force_limits: ArrayLike = np.inf,
    sides: int = 4,
    contact_damping: Scalar = 0.0,
    avoid: Sequence[Pair | Couple] = (),
    clearance: ArrayLike = 0.0,
    barrier_frequency: Scalar = 20.0,
    limits: bool = True,
    forces: Forces = None,
    passive: bool = False,
    acceleration_weight: Scalar = 1e-6,
    force_weight: Scalar = 1e-6,
    tol: float = 1e-9,
    max_iter: int = 40,
    guess: ControlResult | None = None,
) -> ControlResult:
    """Return torques, accelerations and contact forces that do weighted tasks best.

    A quadratic program decides on all of them together: contacts stay where they are with forces
    inside of the friction cone, torques and joints keep their limits, shapes stay apart. It works
    in the same way on numbers, inside compiled functions, mapped and in C. Look at ``success``:
    where the limits contradict each other there is no solution.

    Parameters
    ----------
    model : Model
        The robot.
    x : State
        Configuration and velocity, of one state; `archimedes.vmap` takes many.
    tasks : sequence of Task
        What it should do.
    contacts : sequence of Contacts, optional
        Points and spheres that stand on the ground, all of each shape. None by default.
    ground : Ground, optional
        The ground, with its friction. By default ``Ground()``.
    touching : array (n,), optional
        Which of the contacts do stand; the others have no force and are free. All by default.
    torque_limits : float or array (nv,), optional
        Largest torques in N m, or forces in N. Zero where there is no actuator. By default
        ``model.effort_limits``, and zero for free joints.
    force_limits : float or array (n,), optional
        Largest normal force in N of each point. inf by default.
    sides : int, optional
        Number of sides of the pyramid inside of the friction cone, 4 by default.
    contact_damping : float, optional
        Rate in 1/s at which velocities of contacts vanish. 0 by default.
    avoid : sequence of Pair or of tuples, optional
        Shapes that stay apart: pairs, or tuples of two shapes, or of a shape and a `Ground`. None
        by default.
    clearance : float or array (k,), optional
        Least distance in m of these shapes. 0 by default.
    barrier_frequency : float, optional
        Rate in rad/s at which shapes may approach each other and joints their limits. 20 by
        default.
    limits : bool, optional
        Whether joints keep their limits of position and speed. True by default.
    forces : mapping or array (bodies, 6), optional
        External forces on bodies that are known, such as those of a load. None by default.
    passive : bool, optional
        Make up for damping, friction and springs of the joints. False by default.
    acceleration_weight : float, optional
        Weight of the squares of all accelerations, small: it decides what no task does.
    force_weight : float, optional
        Weight of the squares of the contact forces, small: it shares the load.
    tol : float, optional
        Tolerance of the program. C code that computes in float needs 1e-5 or more.
    max_iter : int, optional
        Largest number of iterations.
    guess : ControlResult, optional
        Result of the last step, which saves iterations. None by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("box", mass=2.0, inertia=[0.01, 0.01, 0.01])
    >>> corners = [[x, y, -0.1] for x in (-0.1, 0.1) for y in (-0.1, 0.1)]
    >>> model = b.build(base="floating")
    >>> x = mb.rest_state(model, [0, 0, 0.1, 1, 0, 0, 0])
    >>> found = mb.whole_body_control(model, x, [], [mb.Contacts("box", corners)])
    >>> bool(found.success), found.force[0].round(4)  # a quarter of its weight
    (True, array([-0.   ,  0.   ,  4.905]))
    """
    q, v = state_of(model, x)
    for value, name in ((tasks, "tasks"), (contacts, "contacts")):
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"{name} must be a list, got {type(value).__name__}; write [...]")
    for task in tasks:
        check_type(task, "each of tasks", Task, "such as mb.frame_task(model, x, ...)")
        if task.jacobian.shape[1] != model.nv:
            raise ValueError(f"a task has rows {task.jacobian.shape}, not (k, {model.nv})")
    if guess is not None:
        check_type(guess, "guess", ControlResult, "what the last step returned")
    check_positive(barrier_frequency, "barrier_frequency", "rad/s")
    feet = standing(model, q, v, contacts, Ground() if ground is None else ground, touching)
    motion = Motion(crba(model, q), rnea(model, q, v, np.zeros(model.nv), forces, passive), feet)
    limit = read_torque_limits(model, torque_limits)
    rows = [torque_rows(motion, limit)]
    if feet.points:
        rows += [contact_rows(feet, v, contact_damping), friction_rows(feet, sides)]
    if couples := couples_of(avoid):
        least = fill(clearance, len(couples), "clearance")
        rows.append(distance_rows(model, q, v, couples, least, barrier_frequency))
    bounds = [free_bounds(model.nv)]
    if limits:
        bounds = [joint_bounds(model, q, v, barrier_frequency)]
    bounds.append(force_bounds(feet, force_limits))
    P, p = cost(tasks, model.nv, 3 * feet.points, acceleration_weight, force_weight)
    program = solve_qp(
        P,
        p,
        np.concatenate([join(each, model.nv, 3 * feet.points) for each in rows]),
        np.concatenate([each.low for each in rows]),
        np.concatenate([each.high for each in rows]),
        np.concatenate([low for low, _ in bounds]),
        np.concatenate([high for _, high in bounds]),
        tol=tol,
        max_iter=max_iter,
        guess=None if guess is None else guess.program,
    )
    a, f = program.x[: model.nv], program.x[model.nv :]
    torque = np.minimum(np.maximum(motion.torque(a, f), -limit), limit)
    force = np.sum(feet.axes * f.reshape(feet.points, 3, 1), axis=1)
    return ControlResult(torque, a, force, program)


class Feet(NamedTuple):
    """Contacts: rows (3 n, nv) in their axes, bias (3 n,), axes (n, 3, 3), which stand (n,)."""

    jacobian: Matrix
    bias: Vector
    axes: Array
    stand: Vector
    friction: Scalar

    @property
    def points(self) -> int:
        """The number of points."""
        return len(self.axes)


class Motion(NamedTuple):
    """The equations of motion: ``torque = M a + h - J' f``."""

    M: Matrix
    h: Vector
    feet: Feet

    def torque(self, a: Vector, f: Vector) -> Vector:
        """Return the torques (nv,) for accelerations and forces in axes of the contacts."""
        return self.M @ a + self.h - self.feet.jacobian.T @ f


class Rows(NamedTuple):
    """Limits ``low <= A a + F f <= high``; None for a matrix of zeros."""

    A: Matrix | None
    F: Matrix | None
    low: Vector
    high: Vector


def join(rows: Rows, n: int, m: int) -> Matrix:
    """Return [A F] for n accelerations and m forces."""
    k = rows.low.shape[0]
    A = np.zeros((k, n)) if rows.A is None else rows.A
    F = np.zeros((k, m)) if rows.F is None else rows.F
    return np.concatenate([A, F], axis=1)


def standing(
    model: Model,
    q: Vector,
    v: Vector,
    contacts: Sequence[Contacts],
    ground: Ground,
    touching: ArrayLike | None,
) -> Feet:
    """Return the points where contacts stand on the ground.

    The point of a sphere is the one below its centre, also while it rolls: its acceleration is
    that of the centre and of an arm that keeps its direction. Points of a body that turns cannot
    all stand; those of one shape have the centripetal acceleration of their mean, so that there is
    a solution.
    """
    stands = np.ones(len(contacts), dtype=bool)
    if touching is not None:
        stands = as_array(touching, "touching")
        check_shape(stands, "touching", (len(contacts),))
        stands = stands != 0
    jacobians, biases, axes, owners = [], [], [], []
    for k, shape in enumerate(contacts):
        check_type(shape, "each of contacts", Contacts, "such as mb.sphere(frame, 0.02)")
        if shape.kind != "points":
            remedy = f'write mb.Contacts("{shape.frame}", centers=...) with the points that stand'
            raise ValueError(f"contacts: a {shape.kind} on {shape.frame!r}; {remedy}")
        X = world_pose(model, q, shape.frame)
        twist = frame_twist(model, q, v, shape.frame, "aligned")
        rate = frame_acceleration(model, q, v, np.zeros(model.nv), shape.frame, "aligned")
        middle = matvec(X.R, np.sum(shape.centers, axis=0) / len(shape.centers))
        spin = cross(twist[3:], cross(twist[3:], middle))
        for center in shape.centers:
            arm = matvec(X.R, center)
            _, n = ground.gap(X.p + arm)
            B = np.stack([n, *tangents(n)])
            down = -shape.radius * n
            jacobians.append(B @ point_jacobian(model, q, shape.frame, X.p + arm + down))
            biases.append(B @ (rate[:3] + cross(rate[3:], arm + down) + spin))
            axes.append(B)
            owners.append(k)
    friction = np.minimum(ground.friction, ENDLESS)
    if not axes:
        empty = np.zeros((0, model.nv)), np.zeros(0), np.zeros((0, 3, 3)), stands
        return Feet(*empty, friction)
    points = np.concatenate(jacobians), np.concatenate(biases), np.stack(axes)
    return Feet(*points, stands[owners], friction)


def read_torque_limits(model: Model, limits: ArrayLike | None) -> Vector:
    """Return the largest torques (nv,)."""
    if limits is None:
        return np.where(free_velocities(model), 0.0, model.effort_limits)
    limit = as_array(limits, "torque_limits")
    check_shape(limit, "torque_limits", (), (model.nv,))
    check_not_negative(limit, "torque_limits")
    return np.zeros(model.nv) + limit


def torque_rows(motion: Motion, limit: Vector) -> Rows:
    """Return the rows of the torques; those without a limit are left out where that is known."""
    known = concrete(limit)
    own = np.arange(len(limit)) if known is None else np.flatnonzero(np.isfinite(known))
    h, limit = motion.h[own], limit[own]
    return Rows(motion.M[own], -motion.feet.jacobian.T[own], -limit - h, limit - h)


def contact_rows(feet: Feet, v: Vector, damping: Scalar) -> Rows:
    """Return the rows by which contacts stay where they are."""
    still = -feet.bias - damping * (feet.jacobian @ v)
    on = np.repeat(feet.stand, 3)
    return Rows(feet.jacobian, None, np.where(on, still, -np.inf), np.where(on, still, np.inf))


def friction_rows(feet: Feet, sides: int) -> Rows:
    """Return the rows of pyramids inside of the friction cones."""
    if check_whole(sides, "sides") < 3:
        raise ValueError(f"sides must be 3 or more, got {sides}")
    angles = 2.0 * np.pi * np.arange(sides) / sides
    slope = np.zeros(sides) - feet.friction * np.cos(np.pi / sides)
    block = np.stack([slope, np.cos(angles), np.sin(angles)], axis=1)
    F = np.eye(feet.points)[:, None, :, None] * block[None, :, None, :]
    high = np.where(np.repeat(feet.stand, sides), 0.0, np.inf)
    low = np.full(high.shape[0], -np.inf)
    return Rows(None, F.reshape(sides * feet.points, 3 * feet.points), low, high)


def distance_rows(
    model: Model, q: Vector, v: Vector, couples: list[Couple], least: Vector, frequency: Scalar
) -> Rows:
    """Return the rows that keep shapes apart."""

    def approach(q: Vector, v: Vector, step: Vector) -> Vector:
        return distances(model, integrate(model, q, step), couples)[1] @ v

    d, rows = distances(model, q, couples)
    bias = jvp(approach, argnums=2)(q, v, np.zeros(model.nv), v)
    low = frequency**2 * (least - d) - 2.0 * frequency * (rows @ v) - bias
    return Rows(rows, None, low, np.full(len(couples), np.inf))


def free_bounds(n: int) -> tuple[Vector, Vector]:
    """Return no limits."""
    return np.full(n, -np.inf), np.full(n, np.inf)


def joint_bounds(model: Model, q: Vector, v: Vector, frequency: Scalar) -> tuple[Vector, Vector]:
    """Return the accelerations (nv,) that keep limits of position and of speed."""
    offsets, lower, upper = straight_limits(model)
    at, slowing = q[offsets], 2.0 * frequency * v
    low, high = frequency**2 * (lower - at) - slowing, frequency**2 * (upper - at) - slowing
    back, ahead = (frequency * (way - v) for way in (-model.speed_limits, model.speed_limits))
    return np.minimum(np.maximum(low, back), ahead), np.maximum(np.minimum(high, ahead), back)


def force_bounds(feet: Feet, limits: ArrayLike) -> tuple[Vector, Vector]:
    """Return the limits (3 n,) of the forces: contacts push, and those in the air do not."""
    most = as_array(limits, "force_limits")
    check_shape(most, "force_limits", (), (feet.points,))
    check_not_negative(most, "force_limits", "N")
    normal = np.where(feet.stand, most + np.zeros(feet.points), 0.0)
    side = np.where(feet.stand, np.inf, 0.0)
    low = np.stack([np.zeros(feet.points), -side, -side], axis=1)
    return low.ravel(), np.stack([normal, side, side], axis=1).ravel()


def cost(
    tasks: Sequence[Task], n: int, m: int, acceleration_weight: Scalar, force_weight: Scalar
) -> tuple[Matrix, Vector]:
    """Return the matrix and the linear part of the sum of squares."""
    check_not_negative(acceleration_weight, "acceleration_weight")
    check_not_negative(force_weight, "force_weight")
    H, g = np.eye(n) * acceleration_weight, np.zeros(n)
    for task in tasks:
        weighted = task.weights[:, None] * task.jacobian
        H = H + task.jacobian.T @ weighted
        g = g - weighted.T @ (task.acceleration - task.bias)
    P = np.zeros((n + m, n + m))
    P[:n, :n] = H
    P[n:, n:] = np.eye(m) * force_weight
    return P, np.concatenate([g, np.zeros(m)])
