"""The dynamics of trees by the book's 6x6 matrices, for any kind of number: an oracle.

Numbers may be floats, complex (for complex steps) or mpmath's; sin and cos are given with them.
Nothing is shared with the package but the model's numbers. Angular part first, as in Featherstone
2008, tables 2.1 and 5.1; the mass matrix is the derivative of the torques in the accelerations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

__all__ = ["Numbers", "complex_steps", "in_mpmath", "torques"]


class Numbers:
    """How to compute: a conversion, sine, cosine and square root."""

    def __init__(self, one: Callable[[Any], Any], functions: Any, dtype: Any) -> None:
        self.one, self.dtype = one, dtype
        self.sin, self.cos, self.sqrt = functions.sin, functions.cos, functions.sqrt

    def array(self, x: Any) -> np.ndarray:
        flat = [self.one(y) for y in np.asarray(x, dtype=object).ravel()]
        return np.array(flat, dtype=self.dtype).reshape(np.shape(x))


COMPLEX = Numbers(complex, np, complex)
EXACT = Numbers(mpmath.mpmathify, mpmath, object)


def skew(n: Numbers, v: Any) -> np.ndarray:
    return n.array([[0, -v[2], v[1]], [v[2], 0, -v[0]], [-v[1], v[0], 0]])


def rotation(n: Numbers, axis: Any, angle: Any) -> np.ndarray:
    K = skew(n, n.array(axis))
    return n.array(np.eye(3)) + n.sin(angle) * K + (1 - n.cos(angle)) * (K @ K)


def placed(n: Numbers, link: Any, q: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rotation, position and columns S (6, nv), angular part first."""
    axis, zero = n.array(link.screw.axis), n.array(np.zeros(3))
    if link.kind.name in ("revolute", "continuous"):
        return rotation(n, axis, q[0]), zero, np.concatenate([axis, zero])[:, None]
    if link.kind.name == "prismatic":
        return n.array(np.eye(3)), q[0] * axis, np.concatenate([zero, axis])[:, None]
    assert link.kind.name == "free"
    w, x, y, z = q[3:]
    size = w * w + x * x + y * y + z * z
    K = skew(n, [x, y, z])
    R = n.array(np.eye(3)) + (2 / size) * (w * K + K @ K)
    S = n.array(np.eye(6))
    return R, n.array(q[:3]), np.concatenate([S[:, 3:], S[:, :3]], axis=1)


def torques(n: Numbers, model: Any, q: Any, v: Any, a: Any) -> np.ndarray:
    """Return inverse dynamics (nv,), armature included."""
    zero3 = n.array(np.zeros((3, 3)))
    motions: list[Any] = []
    tau = n.array(np.zeros(model.nv))
    for i, link in enumerate(model.links):
        R0, p0 = n.array(model.rotations[i]), n.array(model.positions[i])
        R1, p1, S = placed(n, link, q[link.q : link.q + link.kind.nq])
        E, p = (R0 @ R1).T, p0 + R0 @ p1
        X = np.block([[E, zero3], [-E @ skew(n, p), E]])
        own = slice(link.v, link.v + link.kind.nv)
        if link.parent < 0:
            v_up, a_up = n.array(np.zeros(6)), -n.array([0, 0, 0, *model.gravity])
        else:
            v_up, a_up = motions[link.parent][1:3]
        vJ = S @ v[own]
        v_i = X @ v_up + vJ
        crm = np.block([[skew(n, v_i[:3]), zero3], [skew(n, v_i[3:]), skew(n, v_i[:3])]])
        a_i = X @ a_up + S @ a[own] + crm @ vJ
        m, c = n.one(model.masses[i]), skew(n, n.array(model.centers[i]))
        J = n.array(model.inertias[i]) - m * (c @ c)
        inertia = np.block([[J, m * c], [-m * c, m * n.array(np.eye(3))]])
        motions.append([X, v_i, a_i, inertia @ a_i - crm.T @ (inertia @ v_i), S, own])
    for i in reversed(range(len(model.links))):
        X, _, _, f, S, own = motions[i]
        tau[own] = tau[own] + S.T @ f
        if model.links[i].parent >= 0:
            above = motions[model.links[i].parent]
            above[3] = above[3] + X.T @ f
    for link in model.links:
        if link.kind.name in ("free", "planar"):
            own = slice(link.v, link.v + link.kind.nv)
            tau[own] = tau[own] + flying_armature(n, link, n.array(model.armature)[own], v[own])
    return tau + n.array(model.armature) * a


def flying_armature(n: Numbers, link: Any, armature: Any, v: Any) -> Any:
    """Return torques of a mass, by its armature, that flies straight on while its axes turn."""
    flat = link.kind.name == "planar"
    v = n.array([v[0], v[1], 0, 0, 0, v[2]]) if flat else v
    a = n.array([armature[0], armature[1], 0]) if flat else armature[:3]
    p = a * v[:3]
    both = np.concatenate([skew(n, v[3:]) @ p, skew(n, v[:3]) @ p])
    return both[[0, 1, 5]] if flat else both


def accelerations(n: Numbers, model: Any, q: Any, v: Any, tau: Any) -> np.ndarray:
    """Return forward dynamics (nv,), by elimination with mpmath."""
    zero = n.array(np.zeros(model.nv))
    units = n.array(np.eye(model.nv))
    rest = torques(n, model, q, zero, zero)
    M = np.stack([torques(n, model, q, zero, e) - rest for e in units], axis=1)
    right = tau - torques(n, model, q, v, zero)
    found = mpmath.lu_solve(mpmath.matrix(M.tolist()), mpmath.matrix(right.tolist()))
    return n.array(list(found))


def moved(n: Numbers, model: Any, q: Any, e: Any) -> np.ndarray:
    """Return q moved along a small e (nv,), to first order: quaternions need no length of one."""
    q = n.array(q)
    for link in model.links:
        d = e[link.v : link.v + link.kind.nv]
        own = q[link.q : link.q + link.kind.nq]
        if link.kind.name != "free":
            q[link.q : link.q + link.kind.nq] = own + d
            continue
        R = placed(n, link, own)[0]
        w, (x, y, z) = own[3], own[4:]
        a, b, c = d[3:] / 2
        turned = [w - x * a - y * b - z * c, x + w * a + y * c - z * b,
                  y + w * b + z * a - x * c, z + w * c + x * b - y * a]  # fmt: skip
        q[link.q : link.q + 7] = np.concatenate([own[:3] + R @ d[:3], n.array(turned)])
    return q


def complex_steps(model: Any, q: Any, v: Any, a: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the derivatives of the torques in the tangent space of q, in v and a."""
    n, h = COMPLEX, 1e-100
    steps = 1j * h * np.eye(model.nv)
    f = lambda q, v, a: torques(n, model, q, v, a).imag / h
    by_q = [f(moved(n, model, q, e), n.array(v), n.array(a)) for e in steps]
    by_v = [f(n.array(q), v + e, n.array(a)) for e in steps]
    by_a = [f(n.array(q), n.array(v), a + e) for e in steps]
    return tuple(np.stack(x, axis=1) for x in (by_q, by_v, by_a))


def in_mpmath(model: Any, q: Any, v: Any, tau: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the derivatives of the accelerations, by differences of 50 digits."""
    n = EXACT
    with mpmath.workdps(60):
        h = mpmath.mpf(10) ** -20
        q, v, tau = n.array(q), n.array(v), n.array(tau)
        steps = h * n.array(np.eye(model.nv))
        f = lambda q, v, t: accelerations(n, model, q, v, t)
        by_q = [(f(moved(n, model, q, e), v, tau) - f(moved(n, model, q, -e), v, tau)) / (2 * h)
                for e in steps]  # fmt: skip
        by_v = [(f(q, v + e, tau) - f(q, v - e, tau)) / (2 * h) for e in steps]
        by_tau = [(f(q, v, tau + e) - f(q, v, tau - e)) / (2 * h) for e in steps]
        return tuple(np.stack(x, axis=1).astype(float) for x in (by_q, by_v, by_tau))
