"""Joints of your own: a transform and a motion subspace, both functions of the coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from archimedes.checks import as_array, check_type, check_whole, concrete
from archimedes.function import jac
from archimedes.multibody.parts.joints import JointKind, Screw
from archimedes.spatial import Transformation
from archimedes.spatial.components import join
from archimedes.spatial.spatial_algebra import Pose, Spatial
from archimedes.typing import Array, Matrix, Vector

__all__ = ["user_joint"]

#: By how much a coordinate moves to see how its child does.
STEP = 1e-5


def user_joint(
    name: str,
    size: int,
    transform: Callable[[Array], Transformation],
    subspace: Callable[[Array], Array],
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
    check_whole(size, f"user_joint {name!r}: size", 1)
    kind = UserKind(name, size=size, transform=transform, subspace=subspace)
    check_motion(kind)
    return kind


@dataclass(frozen=True, repr=False)
class UserKind(JointKind):
    """A kind of joint that is known by what `user_joint` made it of: two of the same are equal."""

    size: int = 1
    transform: Any = None
    subspace: Any = None

    varies = True

    @property
    def nq(self) -> int:  # type: ignore[override]
        """The number of coordinates."""
        return self.size

    nv = nq

    @cached_property
    def subspace_slope(self) -> Any:
        """The derivative (6, nv, nq) of S, a function of q."""
        return jac(self.subspace)

    def pose(self, screw: Screw, q: Sequence[Any]) -> Pose:
        """Return the transform."""
        X = self.transform(self.join_one(q))
        return Pose(X.r.as_matrix(), X.t)

    def columns(self, screw: Screw, q: Sequence[Any]) -> list[Spatial]:
        """Return the columns of the subspace."""
        return split_columns(self.subspace(self.join_one(q)), self.size, self.name)

    def bias(self, screw: Screw, q: Sequence[Any], v: Sequence[Any]) -> Spatial:
        """Return dS/dt v."""
        speeds = self.join_one(v)
        total = np.matmul(np.matmul(self.subspace_slope(self.join_one(q)), speeds), speeds)
        return Spatial(total[:3], total[3:])

    def column_rates(self, q: Sequence[Any], v: Sequence[Any]) -> list[Spatial]:
        """Return dS/dt."""
        return split_columns(np.matmul(self.subspace_slope(join(q)), join(v)), self.size, self.name)

    def join_one(self, q: Sequence[Any]) -> Array:
        """Return the coordinates of one configuration as an array."""
        array = join(q)
        if array.ndim > 1:
            raise ValueError(
                f"joint kind {self.name!r} takes one configuration at a time; use arc.vmap for many"
            )
        return array

    def __content__(self) -> tuple[Any, ...]:
        return self.name, self.size, self.transform, self.subspace

    def __reduce__(self) -> tuple[Any, ...]:
        # Pickled if its functions can be: those of a module, not of another function.
        return user_joint, self.__content__()


def check_motion(kind: UserKind) -> None:
    """Raise if the subspace is not how the transform moves, at a q without symmetry."""
    name, q = kind.name, 0.137 + 0.119 * np.arange(kind.size)
    columns = split_columns(kind.subspace(q), kind.size, name)
    S = concrete(as_array(np.stack([column.array for column in columns], axis=-1)))
    middle = known_pose(kind.transform(q), name)
    for k, step in enumerate(STEP * np.eye(kind.size)):
        ends = [known_pose(kind.transform(q + sign * step), name) for sign in (1.0, -1.0)]
        if S is None or middle is None or ends[0] is None or ends[1] is None:
            return
        (R, p), (R_back, p_back) = ends[0], ends[1]
        W = middle[0].T @ (R - R_back) / (2.0 * STEP)
        shift = middle[0].T @ (p - p_back) / (2.0 * STEP)
        motion = np.array([*shift, W[2, 1], W[0, 2], W[1, 0]])
        if np.abs(motion - S[:, k]).max() > 1e-4 * (1.0 + np.abs(motion).max()):
            raise ValueError(
                f"joint kind {name!r}: at q = {q.round(3).tolist()} the child moves along "
                f"{motion.round(4).tolist()} (linear, angular, in its own axes) for coordinate "
                f"{k}, and column {k} of subspace is {S[:, k].round(4).tolist()}"
            )


def known_pose(X: Transformation, name: str) -> tuple[Matrix, Vector] | None:
    """Return rotation and position of a transform, or None if they are not known."""
    check_type(X, f"joint kind {name!r}: what transform(q) returns", Transformation)
    R, p = concrete(X.r.as_matrix()), concrete(as_array(X.t))
    return None if R is None or p is None else (R, p)


def split_columns(S: Array, size: int, name: str) -> list[Spatial]:
    """Return the columns of a motion subspace."""
    if tuple(np.shape(S)) != (6, size):
        raise ValueError(f"joint kind {name!r}: subspace must be (6, {size}), got {np.shape(S)}")
    return [Spatial(S[:3, k], S[3:, k]) for k in range(size)]
