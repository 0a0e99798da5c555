"""The force that a rigid body needs for its motion, by Newton and Euler.

Legend, all in the axes of the body, about its origin: w, dw are angular velocity and acceleration,
a the acceleration of the origin in the ordinary sense (that of an accelerometer there, with the
world accelerating by minus gravity), m, h, J mass, first and second moment. E is the matrix that
gives the acceleration of a point x of the body relative to the origin,

    E x = dw x x + w x (w x x),   f = m a + E h,   n = h x a + J dw + w x J w.

Against spatial accelerations this saves the linear velocities, which nothing depends on.
Source: Luh, Walker and Paul, On-line computational scheme for mechanical manipulators, J. Dynamic
Systems, Measurement and Control 102, 1980; the form with E is Khalil's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from archimedes.multibody.models.spatial_algebra import Rigid, Spatial
from archimedes.spatial.components import components, cross, expand, join, matrix_components

__all__ = ["Turning", "needed_force", "swept", "turning"]

#: Angular velocity, angular acceleration (None: zero) and E, by components.
Turning = tuple[Sequence[Any], Sequence[Any] | None, list[list[Any]]]


def turning(w: Any, dw: Any = None) -> Turning:
    """Return E of an angular velocity and acceleration (..., 3), with these."""
    x, y, z = parts = components(w, 3)
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    if dw is None:
        return parts, None, [[-(yy + zz), xy, xz], [xy, -(xx + zz), yz], [xz, yz, -(xx + yy)]]
    p, q, r = rates = components(dw, 3)
    E = [
        [-(yy + zz), xy - r, xz + q],
        [xy + r, -(xx + zz), yz - p],
        [xz - q, yz + p, -(xx + yy)],
    ]
    return parts, rates, E


def swept(turning: Turning, x: Any) -> Any:
    """Return ``E x`` (..., 3)."""
    a, b, c = components(x, 3)
    return join([row[0] * a + row[1] * b + row[2] * c for row in turning[2]])


def needed_force(I: Rigid, turning: Turning, a: Any = None) -> Spatial:
    """Return force and moment at the origin of a body whose origin accelerates by a (..., 3)."""
    linear, angular = swept(turning, I.h), spin_moment(I.J, turning)
    if a is None:
        return Spatial(linear, angular)
    return Spatial(linear + expand(I.m) * a, angular + cross(I.h, a))


def spin_moment(J: Any, turning: Turning) -> Any:
    """Return ``J dw + w x J w`` (..., 3), of products that E has already."""
    (x, y, z), rates, E = turning
    (Jxx, Jxy, Jxz), (_, Jyy, Jyz), (_, _, Jzz) = matrix_components(J)
    # Each line: what a turn about the other two axes does to the products of inertia.
    moments = [
        (Jzz - Jyy) * (y * z) + Jyz * (E[1][1] - E[2][2]) + (Jxz * E[1][0] - Jxy * E[2][0]),
        (Jxx - Jzz) * (x * z) + Jxz * (E[2][2] - E[0][0]) + (Jxy * E[2][1] - Jyz * E[0][1]),
        (Jyy - Jxx) * (x * y) + Jxy * (E[0][0] - E[1][1]) + (Jyz * E[0][2] - Jxz * E[1][2]),
    ]
    if rates is not None:
        moments = [n + D * r for n, D, r in zip(moments, (Jxx, Jyy, Jzz), rates, strict=True)]
    return join(moments)
