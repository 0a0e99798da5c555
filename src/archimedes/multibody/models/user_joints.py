"""Joints of your own: a transform and a motion subspace, both functions of the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from archimedes.checks import as_array, concrete
from archimedes.function import jac
from archimedes.multibody.models.joint_motions import fields_of
from archimedes.multibody.models.joints import JointKind, Screw, straight
from archimedes.multibody.models.model import Link
from archimedes.multibody.models.spatial_algebra import Pose, Spatial
from archimedes.spatial import Transformation
from archimedes.spatial.components import join

__all__ = ["column_rates", "user_joint"]

#: By how much a coordinate moves to see how its child does.
STEP = 1e-5


def user_joint(
    name: str, size: int, transform: Callable[[Any], Any], subspace: Callable[[Any], Any]
) -> JointKind:
    """Return a kind of joint that is defined by two functions.

    Both are plain NumPy; the derivative of the second is taken where needed. That they belong
    together is checked at one q. Such a joint takes one configuration at a time: use :func:`vmap`
    for many.

    Parameters
    ----------
    name : str
        Name of the kind.
    size : int
        Number of coordinates q, whose rates are the velocities.
    transform : callable
        ``transform(q)`` returns the `Transformation` from the child to the parent.
    subspace : callable
        ``subspace(q)`` returns the matrix (6, size) that gives the velocity of the child in its own
        axes, linear part first, for dq/dt.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import user_joint
    >>> from archimedes.spatial import Quaternion, Transformation
    >>> def on_circle(q):
    ...     place = np.stack([np.cos(q[0]), np.sin(q[0]), 0.0 * q[0]])
    ...     return Transformation(place, Quaternion.identity())
    >>> def along(q):
    ...     return np.stack([-np.sin(q), np.cos(q), *[0.0 * q] * 4])
    >>> user_joint("on a circle", 1, on_circle, along)
    <on a circle joint>
    """
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"user_joint {name!r}: size must be 1 or more coordinates, got {size!r}")
    check_motion(name, size, transform, subspace)
    rates = jac(subspace)

    def pose(screw: Screw, q: Sequence[Any]) -> Pose:
        found = transform(one(q))
        return Pose(found.r.as_matrix(), found.t)

    def columns(screw: Screw, q: Sequence[Any]) -> list[Spatial]:
        return split(subspace(one(q)), size, name)

    def bias(screw: Screw, q: Sequence[Any], v: Sequence[Any]) -> Spatial:
        speeds = one(v)
        total = np.matmul(np.matmul(rates(one(q)), speeds), speeds)
        return Spatial(total[:3], total[3:])

    def one(q: Sequence[Any]) -> Any:
        array = join(q)
        if array.ndim > 1:
            raise ValueError(
                f"joint kind {name!r} takes one configuration at a time; use arc.vmap for many"
            )
        return array

    plain = straight(name, size, pose, columns, bias=bias, column_rates=rates)
    values: list[Any] = [*fields_of(plain), (name, size, transform, subspace)]
    return UserKind(*values)


@dataclass(frozen=True, repr=False)
class UserKind(JointKind):
    """A kind of joint known by what `user_joint` made it of: two of the same are equal."""

    pose: Any = field(compare=False)
    columns: Any = field(compare=False)
    bias: Any = field(default=None, compare=False)
    column_rates: Any = field(default=None, compare=False)
    source: tuple[Any, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled where its functions can be: those of a module, not of another function.
        return user_joint, self.source

    def __content__(self) -> tuple[Any, ...]:
        return self.source


def check_motion(name: str, size: int, transform: Any, subspace: Any) -> None:
    """Raise where the subspace is not how the transform moves, at a q of no symmetry."""
    q = 0.137 + 0.119 * np.arange(size)
    S = concrete(as_array(join_columns(split(subspace(q), size, name))))
    middle = known_pose(transform(q), name)
    for k, step in enumerate(STEP * np.eye(size)):
        ends = [known_pose(transform(q + sign * step), name) for sign in (1.0, -1.0)]
        if S is None or middle is None or ends[0] is None or ends[1] is None:
            return
        (R, p), (R_back, p_back) = ends[0], ends[1]
        W = middle[0].T @ (R - R_back) / (2.0 * STEP)
        moved = middle[0].T @ (p - p_back) / (2.0 * STEP)
        found = np.array([*moved, W[2, 1], W[0, 2], W[1, 0]])
        if np.abs(found - S[:, k]).max() > 1e-4 * (1.0 + np.abs(found).max()):
            raise ValueError(
                f"joint kind {name!r}: at q = {q.round(3).tolist()} the child moves along "
                f"{found.round(4).tolist()} (linear, angular, in its own axes) for coordinate {k}, "
                f"and column {k} of subspace is {S[:, k].round(4).tolist()}"
            )


def known_pose(found: Any, name: str) -> tuple[Any, Any] | None:
    """Return rotation and place of a transform, None where they are not known."""
    if not isinstance(found, Transformation):
        raise TypeError(
            f"joint kind {name!r}: transform(q) must return a Transformation, got "
            f"{type(found).__name__}"
        )
    R, p = concrete(found.r.as_matrix()), concrete(as_array(found.t))
    return None if R is None or p is None else (R, p)


def join_columns(columns: list[Spatial]) -> Any:
    """Return the columns of a motion subspace as a matrix (6, n)."""
    return np.stack([column.array for column in columns], axis=-1)


def split(S: Any, size: int, name: str) -> list[Spatial]:
    """Return the columns of a motion subspace."""
    if tuple(np.shape(S)) != (6, size):
        raise ValueError(f"joint kind {name!r}: subspace must be (6, {size}), got {np.shape(S)}")
    return [Spatial(S[:3, k], S[3:, k]) for k in range(size)]


def column_rates(link: Link, q: Sequence[Any], v: Sequence[Any]) -> list[Spatial]:
    """Return dS/dt of a joint whose columns are not constant, in the child's axes."""
    assert link.kind.column_rates is not None
    return split(np.matmul(link.kind.column_rates(join(q)), join(v)), link.kind.nv, link.kind.name)
