"""Configurations that put frames where they should be, within the limits of the joints.

Legend: e = log(X_F^-1 X_T) is the twist, in axes of F, that leads from a frame to its target, and
``de = -Jl^-1(e) J dq`` its derivative along the tangent space (Jl the left Jacobian of SE(3), J
that of F in its own axes). Levenberg-Marquardt steps ``(A'A + lambda) d = A'e``, A = Jl^-1 J, are
made on the manifold, lambda in units of the largest entry of A'A; joints at a limit that would be
pushed beyond it do not take part. What was found is moved by two more steps with next to no lambda:
its first and second derivatives in the target are then those of the solution, not of how far the
steps had come (none where the search starts at the solution).
Source: Nocedal and Wright, Numerical Optimization, 2006, sections 10.3 and 16.7; Sola, Deray and
Atchuthan, A micro Lie theory, 2018, for derivatives on the manifold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import as_array, check_finite, check_not_negative, check_shape, check_type
from archimedes.display import Readable
from archimedes.function import fori_loop, while_loop
from archimedes.multibody.algorithms.configurations import integrate, neutral
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.links import check_coordinates
from archimedes.spatial.se3 import homogeneous, se3_left_jacobian, se3_log
from archimedes.spatial.transformation import Transformation, check_pose
from archimedes.tree import field, struct
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


@struct
class KinematicsResult(Readable):
    """How a search for a configuration ended.

    Parameters
    ----------
    q : array (nq,)
        Configuration.
    error : array (6,) per target
        Twist that is still missing.
    success : bool
        Whether all of it, weighted, is below the tolerance.
    iterations : int
        Number of iterations.

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


def inverse_kinematics(
    model: Model,
    frame: str | Sequence[str],
    target: Transformation | Sequence[Transformation],
    q0: ArrayLike | None = None,
    *,
    weights: ArrayLike = 1.0,
    tolerance: float = 1e-10,
    max_iterations: int = 100,
) -> KinematicsResult:
    """Find a configuration in which frames are at given poses.

    The result is within the limits of the joints. Compiled, and mapped with :func:`vmap`, it finds
    many targets at once.

    Parameters
    ----------
    model : Model
        The robot.
    frame : str or sequence of str
        Name of a frame or body, or several.
    target : Transformation or list
        Pose that each frame should have: ``pose(position, attitude)``, or what `frame_pose`
        returned. It takes coordinates in the frame to coordinates in the world.
    q0 : array (nq,), optional
        Where the search starts. By default neutral.
    weights : array (6,), optional
        Weights of the parts of the error, linear first. Zeros leave them free. 1 by default.
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
    q = neutral(model) if q0 is None else check_coordinates(model, q0, "q0")
    if q.ndim != 1:
        raise ValueError("inverse_kinematics takes one q0 (nq,); use arc.vmap for many targets")
    check_finite(q, "q0")
    check_not_negative(tolerance, "tolerance")
    scale = as_array(weights, "weights")
    check_shape(scale, "weights, linear part first,", (), (6,))
    check_finite(scale, "weights")
    scale = np.zeros(6) + scale
    scale = np.concatenate([scale[:3], ANGLE_WEIGHT * scale[3:]])
    offsets, lower, upper = straight_limits(model)

    def missing(q: Vector) -> Array:
        parts = [apart(model, q, f, goal) for f, goal in zip(frames, goals, strict=True)]
        return np.stack(parts)

    def square(errors: Array) -> Scalar:
        return np.sum((errors * scale) ** 2)

    def slope(q: Vector, errors: Array) -> Matrix:
        rows = []
        for k, f in enumerate(frames):
            J = frame_jacobian(model, q, f)
            rows.append(scale[:, None] * (se3_left_jacobian(errors[k], inverse=True) @ J))
        return np.concatenate(rows)

    def move(q: Vector, errors: Array, damping: Scalar) -> tuple[Vector, Array]:
        A = slope(q, errors)
        down = A.T @ (errors * scale).ravel()
        at = q[offsets]
        held = ((at <= lower) & (down < 0.0)) | ((at >= upper) & (down > 0.0))
        free = np.where(held, 0.0, 1.0)
        H = (A.T @ A) * free[:, None] * free
        size = np.maximum(np.max(np.diagonal(H)), SMALLEST)
        H = H + np.eye(model.nv) * (damping * size * free + (1.0 - free))
        move = np.linalg.solve(H, down * free)
        move = np.minimum(np.maximum(move, lower - at), upper - at)
        trial = integrate(model, q, move)
        return trial, missing(trial)

    def step(state: tuple[Any, ...]) -> tuple[Any, ...]:
        q, errors, damping, count = state
        trial, after = move(q, errors, damping)
        better = square(after) < square(errors)
        damping = np.where(better, damping * SHRINK, damping * GROW)
        q, errors = np.where(better, trial, q), np.where(better, after, errors)
        return q, errors, np.maximum(damping, LEAST), count + 1

    def settle(_: Scalar, state: tuple[Any, ...]) -> tuple[Any, ...]:
        q, errors, success = state
        trial, after = move(q, errors, LEAST)
        good = success & (square(after) <= tolerance**2)
        return np.where(good, trial, q), np.where(good, after, errors), success

    def goes_on(state: tuple[Any, ...]) -> Any:
        _, errors, damping, count = state
        return (square(errors) > tolerance**2) & (count < max_iterations) & (damping < MOST)

    q = np.minimum(np.maximum(q, model.lower), model.upper)
    start = (q, missing(q), np.float64(START), np.int64(0))
    q, errors, _, count = while_loop(goes_on, step, start, max_steps=max_iterations)
    success = square(errors) <= tolerance**2
    q, errors, _ = fori_loop(0, 2, settle, (q, errors, success))
    return KinematicsResult(q, errors[0] if isinstance(frame, str) else errors, success, count)


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
        check_shape(each.as_matrix(), "the matrix of a target (arc.vmap takes many)", (4, 4))
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
