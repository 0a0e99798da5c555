"""Transformations of coordinates between frames: a rotation and a translation.

Legend: X_BA takes coordinates in frame A to coordinates in frame B, ``p_B = t + R_BA p_A``: r is
the attitude of B in A, and t the position of A's origin from B's, in B.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from archimedes.checks import as_array, as_scalar, check_matrix, check_type, check_vector, concrete
from archimedes.spatial.attitudes.attitude_base import quaternion_of
from archimedes.spatial.attitudes.attitude_classes import Quaternion, RotationMatrix, compose
from archimedes.spatial.attitudes.quaternions import quaternion_exp, quaternion_log
from archimedes.spatial.attitudes.rotvec import so3_left_jacobian
from archimedes.spatial.components import cross, expand, matvec
from archimedes.spatial.se3 import homogeneous, se3_adjoint
from archimedes.spatial.spatial_vectors import Force, Motion
from archimedes.spatial.validation import check_rotation
from archimedes.tree import field, struct
from archimedes.typing import ArrayLike, Scalar

__all__ = ["Transformation"]

#: Marks what `from_pose` returned: it leads to the body, and no pose does.
TO_BODY = "_to_body"


@struct
class Transformation:
    """X_BA, which takes coordinates in frame A to coordinates in frame B, or a batch.

    Products read like those of matrices: ``X_CA = X_CB @ X_BA``.

    Parameters
    ----------
    t : array (..., 3)
        Position of the origin of A from that of B in m, in B.
    r : attitude
        Attitude of B in A, of any class with the methods of `Attitude`.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.spatial import EulerAngles, Transformation
    >>> X_BA = Transformation(t=np.array([0.0, 0.0, 1.0]), r=EulerAngles(np.pi / 2, "z"))
    >>> X_BA.apply(np.array([1.0, 0.0, 0.0])).round(15)
    array([ 0., -1.,  1.])
    """

    t: Any = field(units="m")
    r: Any = field(units="")

    def __post_init__(self) -> None:
        """Check the translation, and that `r` is an attitude."""
        self.__dict__["t"] = check_vector(self.t, 3, "Transformation t")
        if not hasattr(self.r, "as_matrix"):
            actual = f"{type(self.r).__qualname__}; for a matrix write RotationMatrix(matrix)"
            raise TypeError(f"Transformation r must be an attitude (Quaternion, ...), got {actual}")

    # ---- factories -----------------------------------------------------------------------

    @classmethod
    def identity(cls) -> Transformation:
        """Return the transformation that leaves coordinates as they are."""
        return cls(np.zeros(3), Quaternion.identity())

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Transformation:
        """Make one of a homogeneous matrix (..., 4, 4), with a `RotationMatrix`.

        Parameters
        ----------
        matrix : array (..., 4, 4)
            Homogeneous matrix.
        """
        T = check_matrix(matrix, 4, "matrix")
        R = check_rotation(T[..., :3, :3], "the rotation part of matrix")
        last = concrete(T[..., 3, :])
        if last is not None and np.any(last != [0.0, 0.0, 0.0, 1.0]):
            raise ValueError(f"matrix must have the last row [0, 0, 0, 1], got {last}")
        return cls(T[..., :3, 3], RotationMatrix.make(R))

    @classmethod
    def from_pose(cls, pos: ArrayLike, att: Any) -> Transformation:
        """Return X_BA for a body B at position `pos` in A with attitude `att` in A.

        It takes coordinates in A to coordinates in B. The pose of B, which `inverse_kinematics` and
        ``add_frame(pose=...)`` take, is its inverse: ``multibody.pose(pos, att)``.

        Parameters
        ----------
        pos : array (..., 3)
            Position of B in m, in A.
        att : attitude
            Attitude of B in A.
        """
        made = cls(-att.rotate(check_vector(pos, 3, "pos")), att)
        made.__dict__[TO_BODY] = True  # for `check_pose`; products and inverses do not have it
        return made

    @classmethod
    def exp(cls, xi: Any) -> Transformation:
        """Return the exponential of a twist (..., 6), linear part first, or a `Motion`.

        Parameters
        ----------
        xi : array (..., 6) or Motion
            Twist, linear part first.
        """
        xi = check_vector(xi.array if isinstance(xi, Motion) else xi, 6, "xi")
        rho, phi = xi[..., :3], xi[..., 3:]
        return cls(matvec(so3_left_jacobian(phi), rho), Quaternion.make(quaternion_exp(-phi)))

    # ---- accessors -----------------------------------------------------------------------

    def as_matrix(self) -> Any:
        """Return the homogeneous matrix (..., 4, 4)."""
        return homogeneous(self.r.as_matrix(), self.t)

    def log(self) -> Any:
        """Return the twist (..., 6), linear part first, whose exponential this is."""
        phi = -quaternion_log(quaternion_of(self.r))
        rho = matvec(so3_left_jacobian(phi, inverse=True), self.t)
        return np.concatenate([rho, phi], axis=-1)

    def adjoint(self) -> Any:
        """Return the matrix (..., 6, 6) that takes motion vectors from A to B."""
        return se3_adjoint(self.as_matrix())

    # ---- operations ----------------------------------------------------------------------

    def apply(self, pos: ArrayLike) -> Any:
        """Return points in B for points in A: (3,) or (3, N); batches take (..., 3).

        Parameters
        ----------
        pos : array (3,), (3, N) or (..., 3)
            Points in A in m. A batch of transformations takes (..., 3).
        """
        points = as_array(pos, "pos")
        if points.ndim < 2:
            return self.apply_vec(points) + self.t
        matrix = self.r.as_matrix()
        if self.t.ndim == 1 and matrix.ndim == 2:  # one transformation: points are columns
            return self.apply_vec(points) + self.t[:, None]
        return matvec(matrix, points) + self.t

    def apply_vec(self, vec: ArrayLike) -> Any:
        """Return free vectors in B for vectors in A: the rotation alone.

        Parameters
        ----------
        vec : array (3,), (3, N) or (..., 3)
            Free vectors in A.
        """
        return self.r.rotate(as_array(vec, "vec"))

    def apply_motion(self, motion: Motion) -> Motion:
        """Return a motion vector (twist) given in A in the coordinates of B.

        Parameters
        ----------
        motion : Motion
            Motion vector (twist) in A.
        """
        w = self.apply_vec(motion.angular)
        return Motion(self.apply_vec(motion.linear) + cross(self.t, w), w)

    def apply_force(self, force: Force) -> Force:
        """Return a force vector (wrench) given in A in the coordinates of B.

        Parameters
        ----------
        force : Force
            Force vector (wrench) in A.
        """
        f = self.apply_vec(force.linear)
        return Force(f, self.apply_vec(force.angular) + cross(self.t, f))

    def inv(self) -> Transformation:
        """Return X_AB, which takes coordinates in B to coordinates in A."""
        return Transformation(-self.r.rotate(self.t, inverse=True), self.r.inv())

    def __matmul__(self, other: Transformation) -> Transformation:
        hint = "to transform points use .apply, vectors .apply_vec"
        check_type(other, "the operand of @", Transformation, hint)
        t = self.t + self.apply_vec(other.t)
        return Transformation(t, compose(other.r, self.r))

    def interpolate(self, other: Transformation, s: Scalar) -> Transformation:
        """Return the transformation at `s` from this (0) to `other` (1) along a screw motion.

        Parameters
        ----------
        other : Transformation
            The transformation at ``s = 1``.
        s : array_like
            Fraction of the way, 0 to 1. It broadcasts against the batch of attitudes.
        """
        step = (other @ self.inv()).log()
        return Transformation.exp(expand(as_scalar(s, "s")) * step) @ self


def check_pose(X: Transformation, name: str) -> None:
    """Raise for what `from_pose` returned: it takes coordinates the other way round."""
    if TO_BODY in X.__dict__:
        raise ValueError(
            f"{name} is the inverse of a pose: Transformation.from_pose(position, attitude) takes "
            "world coordinates to the body, a pose takes those of the body to the world. Write "
            "multibody.pose(position, attitude)"
        )
