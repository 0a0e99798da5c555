"""Configurations that put frames where they should be, within the limits of the joints.

Legend: e = log(X_F^-1 X_T) is the twist, in axes of F, that leads from a frame to its target, and
``de = -Jl^-1(e) J dq`` its derivative along the tangent space (Jl the left Jacobian of SE(3), J
that of F in its own axes). Levenberg-Marquardt steps ``(A'A + lambda) d = A'e``, A = Jl^-1 J, are
made on the manifold, lambda in units of the largest entry of A'A; joints at a limit that would be
pushed beyond it do not take part. What was found is moved by two more steps with next to no lambda:
its first and second derivatives in the target are then those of the solution, not of how far the
steps had come (none where the search starts at the solution).

Where shapes must stay apart, steps are quadratic programs: the same sum of squares, within the box
of the limits, with ``D d + s >= clearance - distance`` for the rows D of the distances. The slack
s >= 0, one for all, costs PENALTY each m, so that there always is a step; a step is taken if the
sum of squares and the penalty of the smallest distance together become less.
Source: Nocedal and Wright, Numerical Optimization, 2006, sections 10.3, 16.7 and 18.5 (Sl1QP);
Sola, Deray and Atchuthan, A micro Lie theory, 2018, for derivatives on the manifold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes import tree
from archimedes.checks import (
    as_array,
    check_finite,
    check_not_negative,
    check_positive,
    check_shape,
    check_type,
)
from archimedes.display import Readable
from archimedes.function import fori_loop, stop_gradient, vmap, while_loop
from archimedes.multibody.algorithms.configurations import difference, integrate, neutral
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.multibody.contact.contact_shapes import Pair
from archimedes.multibody.tasks.points import Couple, couples_of, distances
from archimedes.optimize import solve_qp
from archimedes.spatial.se3 import homogeneous, se3_exp, se3_left_jacobian, se3_log
from archimedes.spatial.transformation import Transformation, check_pose
from archimedes.tree import field, replace, struct
from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["KinematicsResult", "inverse_kinematics"]

#: Damping: where it starts, by how much it grows after a step that failed, and shrinks otherwise.
START, GROW, SHRINK, LEAST, MOST = 1e-2, 4.0, 0.1, 1e-13, 1e12
#: In place of the largest entry of A'A where nothing moves.
SMALLEST = 1e-300
#: An error of 1 rad counts as much as one of so many m.
ANGLE_WEIGHT = 1.0
#: What 1 m less than the clearance costs, beside half the sum of squares.
PENALTY = 1e3
#: Steps aim at so many m more than the clearance, so that rounding does not miss it.
MARGIN = 1e-8
#: The least damping of quadratic programs.
LEAST_CLEAR = 1e-9
#: Steps are computed in units of what is missing, or of so many m if that is more.
LEAST_UNIT = 1e-9
#: Steps that gain less than this part of what is left end the search for a way between obstacles.
GAIN = 1e-9


@struct
class KinematicsResult(Readable):
    """How a search for a configuration ended: numbers of the configuration that is returned.

    Parameters
    ----------
    q : array (..., nq)
        Configuration.
    error : array (..., 6), or (..., k, 6) for k frames
        Twist that is still missing, in axes of the frame: m and rad.
    success : bool
        Whether all of it, weighted, is below the tolerance, and all shapes keep their clearance.
    iterations : int
        Number of iterations.
    distance : float, optional
        Smallest distance in m of shapes that should be apart, less their clearance: not negative
        where all keep it. inf where there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bar", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bar", joint="hinge")
    >>> b.add_frame("tip", "bar", position=[1.0, 0.0, 0.0])
    >>> arm = b.build()
    >>> goal = mb.frame_pose(arm, np.array([0.4]), "tip")
    >>> found = mb.inverse_kinematics(arm, "tip", goal, q0=[0.1])
    >>> bool(found.success), found.q.round(6)
    (True, array([0.4]))
    """

    q: Any = field()
    error: Any = field()
    success: Any = field(units="")
    iterations: Any = field(units="")
    distance: Any = field(units="m", default=np.inf)

    @property
    def position_error(self) -> Any:
        """How far frames are from where they should be, in m."""
        return np.sqrt(np.sum(se3_exp(self.error)[..., :3, 3] ** 2, axis=-1))

    @property
    def attitude_error(self) -> Any:
        """By which angles frames are turned from how they should be, in rad."""
        return np.sqrt(np.sum(self.error[..., 3:] ** 2, axis=-1))


def inverse_kinematics(
    model: Model,
    frame: str | Sequence[str],
    target: Transformation | Sequence[Transformation],
    q0: ArrayLike | None = None,
    *,
    weights: ArrayLike = 1.0,
    avoid: Sequence[Pair | Couple] = (),
    clearance: ArrayLike = 0.0,
    dt: Scalar | None = None,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> KinematicsResult:
    """Find a configuration in which frames are at given poses, and shapes are apart.

    The result is within the limits of the joints. Leading axes of targets and of `q0` are many
    problems, which run as one kernel. It searches from `q0` downhill and plans no way around
    obstacles: several starts find more.

    Parameters
    ----------
    model : Model
        The robot.
    frame : str or sequence of str
        Name of a frame or body, or several.
    target : Transformation or list
        Pose that each frame should have: ``pose(position, attitude)``, or what `frame_pose`
        returned. It takes coordinates in the frame to coordinates in the world.
    q0 : array (..., nq), optional
        Where the search starts. By default neutral.
    weights : array (6,) or (k, 6), optional
        Weights of the parts of the error, linear first, for all frames or for each. Zeros leave
        them free. 1 by default.
    avoid : sequence of Pair or of tuples, optional
        Shapes that stay apart: pairs, or tuples of two shapes, or of a shape and a `Ground`. None
        by default.
    clearance : float or array (n,), optional
        Least distance in m of these shapes, for all or for each. 0 by default.
    dt : float, optional
        Time in s in which the robot moves from `q0` to the result, within the speed limits of its
        joints. By default it has as long as it takes.
    tolerance : float, optional
        Largest weighted error of a solution.
    max_iterations : int, optional
        Largest number of iterations.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, inverse_kinematics, pose
    >>> from archimedes.spatial import EulerAngles
    >>> b = Builder()
    >>> for name, parent in (("upper", "world"), ("lower", "upper")):
    ...     b.add_body(name, mass=1.0, inertia=[0.1, 0.1, 0.1])
    ...     b.attach(name, parent, joint=name, position=[float(name == "lower"), 0, 0])
    >>> b.add_frame("tip", "lower", position=[1.0, 0.0, 0.0])
    >>> arm = b.build()
    >>> target = pose([0.0, 2**0.5, 0.0], EulerAngles(3 * np.pi / 4, "z"))
    >>> np.rad2deg(inverse_kinematics(arm, "tip", target, q0=[0.1, 0.5]).q).round(6)
    array([45., 90.])
    """
    frames, goals = frames_and_goals(frame, target)
    q0 = neutral(model) if q0 is None else check_coordinates(model, q0, "q0")
    check_finite(q0, "q0")
    q0 = q0 + np.zeros(model.nq)  # a search in single precision would stop above the tolerance
    check_not_negative(tolerance, "tolerance")
    scale = as_array(weights, "weights")
    each = [] if isinstance(frame, str) else [(len(frames), 6)]
    check_shape(scale, "weights, linear part first,", (), (6,), *each)
    check_finite(scale, "weights")
    check_not_negative(scale, "weights")
    scale = np.zeros((len(frames), 6)) + scale
    scale = np.concatenate([scale[:, :3], ANGLE_WEIGHT * scale[:, 3:]], axis=1)
    couples = couples_of(avoid)
    least = as_array(clearance, "clearance")
    check_shape(least, "clearance", (), (len(couples),))
    check_finite(least, "clearance")
    if dt is not None:
        check_positive(dt, "dt", "s")
    least = np.zeros(len(couples)) + least
    box = Box(model, dt)

    def find(q0: Vector, goals: Array) -> KinematicsResult:
        search = Search(model, box, q0, frames, goals, scale, couples, least)
        found = search.run(tolerance, max_iterations)
        return replace(found, error=found.error[0]) if isinstance(frame, str) else found

    leading = np.broadcast_shapes(q0.shape[:-1], *(goal.shape[:-2] for goal in goals))
    if not leading:
        return find(q0, np.stack(goals))
    starts = np.broadcast_to(q0, (*leading, model.nq)).reshape(-1, model.nq)
    targets = np.stack([np.broadcast_to(goal, (*leading, 4, 4)) for goal in goals], axis=-3)
    found = vmap(find)(starts, targets.reshape(-1, len(goals), 4, 4))
    return tree.map(lambda x: x.reshape(*leading, *x.shape[1:]), found)


class Sight(NamedTuple):
    """A configuration, the twists (k, 6) to its goals, distances (n,) and their rows (n, nv)."""

    q: Vector
    errors: Array
    distances: Vector
    rows: Matrix


def choose(test: Any, first: Sight, second: Sight) -> Sight:
    """Return one of two configurations and what there is to see in it."""
    return Sight(*(np.where(test, a, b) for a, b in zip(first, second, strict=True)))


class Box:
    """How far velocities may lead from a configuration: limits of joints, and of their speeds."""

    def __init__(self, model: Model, dt: Scalar | None) -> None:
        self.model = model
        self.offsets, self.lower, self.upper = straight_limits(model)
        self.reach = None if dt is None else dt * model.speed_limits

    def ends(self, q0: Vector, q: Vector) -> tuple[Vector, Vector]:
        """Return the least and the most (nv,) that a step from q, in a search from q0, may be.

        A joint that starts beyond a limit comes back as fast as it may.
        """
        at = q[self.offsets]
        low, high = self.lower - at, self.upper - at
        if self.reach is None:
            return low, high
        back, ahead = (way - difference(self.model, q0, q) for way in (-self.reach, self.reach))
        return np.minimum(np.maximum(low, back), ahead), np.maximum(np.minimum(high, ahead), back)

    def enter(self, q0: Vector, q: Vector) -> Vector:
        """Return the configuration nearby that speed limits allow: turns do not add up."""
        if self.reach is None:
            return q
        moved = difference(self.model, q0, q)
        return integrate(self.model, q0, np.minimum(np.maximum(moved, -self.reach), self.reach))


class Search:
    """A search from `q0` for a configuration in which frames are at their goals (k, 4, 4)."""

    def __init__(
        self,
        model: Model,
        box: Box,
        q0: Vector,
        frames: list[str],
        goals: Array,
        scale: Array,
        couples: list[Couple],
        least: Vector,
    ) -> None:
        self.model, self.box, self.q0 = model, box, q0
        self.frames, self.goals, self.scale = frames, goals, scale
        self.couples, self.least = couples, least

    def missing(self, q: Vector) -> Array:
        """Return the twists (k, 6) to the goals."""
        goals = enumerate(self.frames)
        return np.stack([apart(self.model, q, frame, self.goals[k]) for k, frame in goals])

    def square(self, errors: Array) -> Scalar:
        """Return the weighted sum of squares."""
        return np.sum((errors * self.scale) ** 2)

    def slope(self, q: Vector, errors: Array) -> Matrix:
        """Return the weighted derivative (6 k, nv) of what has been reached of the goals."""
        rows = []
        for k, frame in enumerate(self.frames):
            J = frame_jacobian(self.model, q, frame)
            rows.append(self.scale[k][:, None] * (se3_left_jacobian(errors[k], inverse=True) @ J))
        return np.concatenate(rows)

    def look(self, q: Vector) -> Sight:
        """Return what there is to see in a configuration."""
        errors = self.missing(q)
        if not self.couples:
            return Sight(q, errors, np.zeros(0), np.zeros((0, self.model.nv)))
        return Sight(q, errors, *distances(self.model, q, self.couples))

    def shortage(self, sight: Sight) -> Scalar:
        """Return by how much the worst distance is below its clearance, in m."""
        if not self.couples:
            return np.float64(0.0)
        return np.maximum(np.max(self.least - sight.distances), 0.0)

    def unit(self, sight: Sight) -> Scalar:
        """Return the size of what is missing, in units of the weighted errors."""
        weight = np.max(np.abs(self.scale))
        short = weight * np.maximum(self.shortage(sight), LEAST_UNIT)
        return stop_gradient(np.sqrt(self.square(sight.errors) + short**2 + SMALLEST))

    def cost(self, sight: Sight, unit: Scalar) -> Scalar:
        """Return what steps make less."""
        return self.square(sight.errors) + 2.0 * PENALTY * unit * self.shortage(sight)

    def move(self, sight: Sight, damping: Scalar) -> Sight:
        """Return what there is to see after a step."""
        q, errors = sight.q, sight.errors
        A = self.slope(q, errors)
        down = A.T @ (errors * self.scale).ravel()
        low, high = self.box.ends(self.q0, q)
        step = self.clear_step if self.couples else self.free_step
        trial = integrate(self.model, q, step(sight, A.T @ A, down, low, high, damping))
        return self.look(self.box.enter(self.q0, trial))

    def free_step(
        self, _: Sight, H: Matrix, down: Vector, low: Vector, high: Vector, damping: Scalar
    ) -> Vector:
        """Return a step (nv,) within limits."""
        held = ((low >= 0.0) & (down < 0.0)) | ((high <= 0.0) & (down > 0.0))
        free = np.where(held, 0.0, 1.0)
        H = H * free[:, None] * free
        size = np.maximum(np.max(np.diagonal(H)), SMALLEST)
        H = H + np.eye(self.model.nv) * (damping * size * free + (1.0 - free))
        step = np.linalg.solve(H, down * free)
        return np.minimum(np.maximum(step, low), high)

    def clear_step(
        self, sight: Sight, H: Matrix, down: Vector, low: Vector, high: Vector, damping: Scalar
    ) -> Vector:
        """Return a step (nv,) within limits that keeps shapes apart."""
        nv, count, unit = self.model.nv, len(self.couples), self.unit(sight)
        size = np.maximum(np.max(np.diagonal(H)), SMALLEST)
        P = np.zeros((nv + 1, nv + 1))
        P[:nv, :nv] = H + np.eye(nv) * (np.maximum(damping, LEAST_CLEAR) * size)
        found = solve_qp(
            P,
            np.concatenate([-down / unit, np.full(1, PENALTY)]),
            np.concatenate([sight.rows, np.ones((count, 1))], axis=1),
            (self.least + MARGIN - sight.distances) / unit,
            None,
            np.concatenate([low / unit, np.zeros(1)]),
            np.concatenate([high / unit, np.full(1, np.inf)]),
        )
        step = unit * np.where(np.isfinite(found.x[:nv]), found.x[:nv], 0.0)
        return np.minimum(np.maximum(step, low), high)

    def run(self, tolerance: float, max_iterations: int) -> KinematicsResult:
        """Return what was found."""

        def arrived(sight: Sight) -> Any:
            return (self.square(sight.errors) <= tolerance**2) & (self.shortage(sight) <= 0.0)

        def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
            sight, damping, count = state
            after = self.move(sight, damping)
            unit = self.unit(sight)
            before, cost = self.cost(sight, unit), self.cost(after, unit)
            better = cost < before
            damping = np.where(better, damping * SHRINK, damping * GROW)
            if self.couples:
                stays = better & (before - cost <= GAIN * before) & ~arrived(after)
                damping = np.where(stays, MOST, damping)
            return choose(better, after, sight), np.maximum(damping, LEAST), count + 1

        def settle(_: Scalar, state: tuple[Any, ...]) -> tuple[Any, ...]:
            sight, success = state
            after = self.move(sight, LEAST)
            return choose(success & arrived(after), after, sight), success

        def goes_on(state: tuple[Any, ...]) -> Any:
            sight, damping, count = state
            return ~arrived(sight) & (count < max_iterations) & (damping < MOST)

        low, high = self.box.ends(self.q0, self.q0)
        q = integrate(
            self.model, self.q0, np.minimum(np.maximum(np.zeros(self.model.nv), low), high)
        )
        start = (self.look(q), np.float64(START), np.int64(0))
        sight, _, count = while_loop(goes_on, step, start, max_steps=max_iterations)
        sight, success = fori_loop(0, 2, settle, (sight, arrived(sight)))
        least = np.min(sight.distances) if self.couples else np.float64(np.inf)
        return KinematicsResult(sight.q, sight.errors, success, count, least)


def frames_and_goals(frame: str | Sequence[str], target: Any) -> tuple[list[str], list[Matrix]]:
    """Return the frames and, for each, the matrix (4, 4) of its target."""
    frames = [frame] if isinstance(frame, str) else list(frame)
    if not frames:
        raise ValueError("inverse_kinematics: frame must be a name or a list of names, got none")
    if not isinstance(frame, str) and isinstance(target, Transformation):
        raise TypeError("target must be a list of Transformations where frame is a list of names")
    targets = [target] if isinstance(frame, str) else list(target)
    if len(targets) != len(frames):
        raise ValueError(f"inverse_kinematics: {len(frames)} frames and {len(targets)} targets")
    for each in targets:
        check_type(each, "target", Transformation, "write mb.pose(position, attitude)")
        check_pose(each, "target")
    return frames, [each.as_matrix() for each in targets]


def apart(model: Model, q: Vector, frame: str, goal: Matrix) -> Vector:
    """Return the twist (6,) in the frame's axes that leads from the frame to its goal."""
    X = world_pose(model, q, frame)
    return se3_log(homogeneous(X.R.T @ goal[:3, :3], X.R.T @ (goal[:3, 3] - X.p)))


def straight_limits(model: Model) -> tuple[list[int], Vector, Vector]:
    """Return, per velocity, the coordinate whose rate it is, and that one's limits.

    Velocities of attitudes have no such coordinate: any stands in, without limits.
    """
    offsets = [0] * model.nv
    bounded = np.zeros(model.nv)
    for link in model.links:
        if link.kind.straight and not link.mimic:
            for k in range(link.kind.nv):
                offsets[link.v + k] = link.q + k
                bounded[link.v + k] = 1.0
    lower = np.where(bounded > 0.0, model.lower[offsets], -np.inf)
    upper = np.where(bounded > 0.0, model.upper[offsets], np.inf)
    return offsets, lower, upper
