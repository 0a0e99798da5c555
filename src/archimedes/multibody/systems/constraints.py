"""Closed loops and held points: constrained dynamics, impulses, projection.

Legend: a closure holds frame B to frame A as a joint would. s is the twist of B relative to A in
axes of B, T the rows that span what the joint forbids: the rate of the violation c is ``T s = J v``
where it is small (see `ClosureEquations`). With M the mass matrix and h the other torques,
``M a = h + J' f`` and ``J a = g``; G = J M^-1 J'.
Sources: Featherstone 2008, chapter 8; Baumgarte, Computer Methods in Applied Mechanics and
Engineering 1, 1972, with g such that ``c'' + 2 z w c' + w^2 c = 0`` for the violation c.

What joints whose motions form a group forbid: everywhere on it, also far from where they began.

Legend: X is frame B in frame A, s the twist of B relative to A in axes of B, P the projection on
the joint's motions and T the rows that span the rest. ``X = exp(m) exp(d)`` with ``m = P log X``
the joint's own motion and d what is left: the violation is ``c = T d``, in axes of B, and its rate
``T s + O(d)``, whatever m is. (``T log X`` vanishes with it, but its rate turns with m: by a
quarter at half a turn, where what should die out grows.) A turn of a screw is known up to whole
turns only: taken are those at which it would be nearest to where it is along its axis.

What spherical and universal joints forbid: equations that are exact wherever the frames are.

Legend: (R, p) is frame B in frame A, s = (v, w) the twist of B relative to A in axes of B, (s', w')
its rate; a is the first axis in A, b the second in B. Both joints hold ``p = 0``, in axes of A; its
rate is ``R v``, however fast B turns. A universal one also holds the angle between its axes,
``a . R b = const``; with d = R' a its rate is ``w . (b x d)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from archimedes.checks import check_finite, check_not_negative, check_whole
from archimedes.function import jvp
from archimedes.multibody.algorithms.configurations import integrate
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.kinematics import frame_jacobian, frame_motion, world_pose
from archimedes.multibody.algorithms.lengths import length_of
from archimedes.multibody.algorithms.links import Forces, check_coordinates, offsets_of
from archimedes.multibody.algorithms.mass_matrix import Factors, factorize, mass_entries, solve_rows
from archimedes.multibody.algorithms.passive_forces import passive_torque
from archimedes.multibody.parts.closures import Closure, Coupling
from archimedes.multibody.parts.joints import KINDS
from archimedes.multibody.parts.ranges import known_zero
from archimedes.multibody.systems.dynamics import State, check_is_state, drive, rates_of
from archimedes.spatial.se3 import homogeneous, se3_adjoint, se3_exp, se3_log, se3_right_jacobian
from archimedes.spatial.spatial_algebra import Pose
from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = [
    "constrained_acceleration",
    "constrained_dynamics",
    "constraint_error",
    "constraint_jacobian",
    "project_configuration",
    "project_velocity",
]


Holds = Closure | Coupling

#: Redundant rows make G singular: so much is added to its diagonal of ones, then taken off again by
#: refinement, so that consistent systems are solved as if it were not there.
SOFTENING, REFINEMENTS = 1e-10, 3
#: What a row counts that can move nothing, of the largest: it is rounding, and stays so.
LEAST = 1e-16


def constraint_error(model: Model, closures: Sequence[Holds], q: ArrayLike) -> Vector:
    """Return by how much constraints are violated.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    q : array (..., nq)
        Configuration.

    Returns
    -------
    array (m,)
        Violations in m and rad.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, constraint_error
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[1, 0, 0])
    >>> stop = Closure("world", "bob", "spherical", place=(0.5, 0.0, 0.0))
    >>> np.abs(constraint_error(b.build(), [stop], np.zeros(1))).max()
    np.float64(0.5)
    """
    q = check_single(model, q, "q")
    return np.concatenate([c.error(q) for c in check_closures(model, closures)])


def constraint_jacobian(model: Model, closures: Sequence[Holds], q: ArrayLike) -> Matrix:
    """Return the Jacobian (m, nv) of constraints.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    q : array (..., nq)
        Configuration.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, constraint_jacobian
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[1, 0, 0])
    >>> held = Closure("world", "bob", "spherical")
    >>> np.abs(constraint_jacobian(b.build(), [held], np.zeros(1))).sum()
    np.float64(1.0)
    """
    q = check_single(model, q, "q")
    return np.concatenate([c.rows(q) for c in check_closures(model, closures)])


# ---- the equations of closures and couplings ----------------------------------------------------


class CouplingEquations:
    """A sum of coordinates that is held at a number."""

    def __init__(self, model: Model, c: Coupling) -> None:
        self.c, self.row = c, np.zeros((1, model.nv))
        one = "a Coupling is of joints with one coordinate"
        self.offsets = [offsets_of(model, name, one) for name, _ in c.arms]
        for (_, v), (_, arm) in zip(self.offsets, c.arms, strict=True):
            self.row[0, v] += arm

    def error(self, q: Vector) -> Vector:
        """Return by how much (1,) it is violated."""
        pairs = zip(self.offsets, self.c.arms, strict=True)
        return np.stack([sum(arm * q[..., at] for (at, _), (_, arm) in pairs) - self.c.offset])

    def rows(self, q: Vector) -> Matrix:
        """Return the row (1, nv) of the velocities that it forbids."""
        return self.row

    slope = rows

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return its second rate (1,) at zero joint accelerations."""
        return np.zeros(1)


class LengthEquations:
    """A sum of lengths that is held at a polynomial of another one."""

    def __init__(self, model: Model, c: Coupling) -> None:
        self.model, self.c = model, c

    def error(self, q: Vector) -> Vector:
        """Return by how much (1,) it is violated."""
        total = sum(arm * length_of(self.model, name, q).value for name, arm in self.c.arms)
        return np.stack([total - self.c.offset - self.polynomial(q, 0)])

    def rows(self, q: Vector) -> Matrix:
        """Return the row (1, nv) of the velocities that it forbids."""
        row = sum(arm * length_of(self.model, name, q).arms for name, arm in self.c.arms)
        if self.c.follows is not None:
            row = row - self.polynomial(q, 1) * length_of(self.model, self.c.follows, q).arms
        return row[None]

    slope = rows

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return its second rate (1,) at zero joint accelerations."""

        def rate(e: Vector) -> Vector:
            return self.rows(integrate(self.model, q, e)) @ v

        return jvp(rate)(0.0 * v, v)

    def polynomial(self, q: Vector, order: int) -> Any:
        """Return the polynomial, or its derivative, of what the sum follows."""
        if self.c.follows is None:
            return 0.0
        p = length_of(self.model, self.c.follows, q).value - self.c.start
        powers = enumerate(self.c.polynomial, start=1)
        return sum(c * (p**n if order == 0 else n * p ** (n - 1)) for n, c in powers)


class ClosureEquations:
    """A closure whose joint's motions form a group."""

    def __init__(self, model: Model, c: Closure) -> None:
        self.model, self.c = model, c
        self.on_world = c.first == "world" and "world" not in model.frame_names
        first = -1 if self.on_world else model.frames[model.frame(c.first)].link
        if first == model.frames[model.frame(c.second)].link:
            where = "both fixed to the world" if first < 0 else "on one body"
            raise ValueError(f"Closure of {c.first!r} and {c.second!r}: they are {where}")

    # ---- frame B relative to frame A -----------------------------------------------------

    def pose(self, q: Vector) -> Pose:
        """Return the pose of B in A."""
        A = Pose(np.eye(3), np.array(self.c.place, dtype=float))
        if not self.on_world:
            A = world_pose(self.model, q, self.c.first)
        B = world_pose(self.model, q, self.c.second)
        return Pose(A.R.T @ B.R, A.R.T @ (B.p - A.p))

    def jacobian(self, q: Vector) -> Matrix:
        """Return the matrix (6, nv) of the relative twist in axes of B."""
        J = frame_jacobian(self.model, q, self.c.second)
        if self.on_world:
            return J
        X = self.pose(q)
        back = se3_adjoint(homogeneous(X.R.T, -(X.R.T @ X.p)))
        return J - back @ frame_jacobian(self.model, q, self.c.first)

    def acceleration(self, q: Vector, v: Vector) -> Vector:
        """Return the relative acceleration (6,) in axes of B at zero joint accelerations."""
        still = np.zeros(self.model.nv)
        v_B, a_B = frame_motion(self.model, q, v, still, self.c.second)
        if self.on_world:
            return a_B.array
        v_A, a_A = frame_motion(self.model, q, v, still, self.c.first)
        X = self.pose(q)
        carried = X.motion_to_child(v_A)
        along = (v_B - carried).cross(carried)
        return (a_B - X.motion_to_child(a_A) + along).array

    # ---- the equations -------------------------------------------------------------------

    def error(self, q: Vector) -> Vector:
        """Return by how much (m,) it is violated, in m and rad."""
        return self.c.rows @ self.split_motion(self.pose(q))[2]

    def rows(self, q: Vector) -> Matrix:
        """Return the rows (m, nv) of the velocities that it forbids."""
        return self.c.rows @ self.jacobian(q)

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return the second rate (m,) at zero joint accelerations."""
        return self.c.rows @ self.acceleration(q, v)

    def slope(self, q: Vector) -> Matrix:
        """Return the derivative (m, nv) of `error`, violated or not."""
        e, m, d = self.split_motion(self.pose(q))
        back = np.eye(6)
        if self.c.kind != "fixed":
            own = se3_right_jacobian(m) @ self.own_motions
            moving = own @ se3_right_jacobian(e, inverse=True)
            back = back - se3_adjoint(se3_exp(-d)) @ moving
        slope = self.c.rows @ (se3_right_jacobian(d, inverse=True) @ back)
        return slope @ self.jacobian(q)

    def split_motion(self, X: Pose) -> tuple[Vector, Vector, Vector]:
        """Return log X, m and d, each (6,)."""
        T = homogeneous(X.R, X.p - self.whole_turns(X))
        e = se3_log(T)
        if self.c.kind == "fixed":
            return e, np.zeros(6), e
        m = self.own_motions @ e
        return e, m, se3_log(se3_exp(-m) @ T)

    @property
    def own_motions(self) -> np.ndarray:
        """P (6, 6)."""
        return np.eye(6) - self.c.rows.T @ self.c.rows

    def whole_turns(self, X: Pose) -> Vec3:
        """Return how far (3,) a screw has gone in whole turns."""
        pitch, axis = self.c.pitch, np.array(self.c.axis)
        lead = 2.0 * np.pi * pitch
        if lead == 0.0:
            return np.zeros(3)
        e = se3_log(homogeneous(X.R, X.p))
        return lead * np.floor((axis @ e[:3] - pitch * (axis @ e[3:])) / lead + 0.5) * axis


class PointEquations(ClosureEquations):
    """A closure that holds a point, and an angle between axes if it has two: they are exact."""

    def error(self, q: Vector) -> Vector:
        """Return by how much (3,) or (4,) it is violated."""
        X = self.pose(q)
        if self.c.second_axis is None:
            return X.p
        a, b = np.array(self.c.axis), np.array(self.c.second_axis)
        return np.concatenate([X.p, np.stack([a @ (X.R @ b) - a @ b])])

    def rows(self, q: Vector) -> Matrix:
        """Return the rates (3, nv) or (4, nv) of the equations."""
        R = self.pose(q).R
        rates = np.concatenate([R, np.zeros((3, 3))], axis=1)
        if self.c.second_axis is not None:
            b, d = np.array(self.c.second_axis), R.T @ np.array(self.c.axis)
            turn = np.concatenate([np.zeros(3), np.cross(b, d)])
            rates = np.concatenate([rates, turn[None]])
        return rates @ self.jacobian(q)

    slope = rows

    def bias(self, q: Vector, v: Vector) -> Vector:
        """Return the second rates (3,) or (4,) at zero joint accelerations."""
        rate, s, R = self.acceleration(q, v), self.jacobian(q) @ v, self.pose(q).R
        w = s[3:]
        along = R @ (rate[:3] + np.cross(w, s[:3]))
        if self.c.second_axis is None:
            return along
        b, d = np.array(self.c.second_axis), R.T @ np.array(self.c.axis)
        turned = np.cross(rate[3:], b) + np.cross(w, np.cross(w, b))
        return np.concatenate([along, np.stack([d @ turned])])


def equations_of(
    model: Model, c: Closure | Coupling
) -> CouplingEquations | LengthEquations | ClosureEquations:
    """Return the equations of a constraint."""
    if isinstance(c, Coupling):
        joints = {link.joint for link in model.links}
        lengths = {t.name for t in model.transmissions} - joints
        if model.tendons is not None:
            lengths |= {*model.tendons.names} - joints
        beyond = c.follows is not None or c.names & lengths
        return (LengthEquations if beyond else CouplingEquations)(model, c)
    return (PointEquations if KINDS[c.kind].holds_point else ClosureEquations)(model, c)


def constrained_acceleration(
    model: Model,
    closures: Sequence[Holds],
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    forces: Forces = None,
    *,
    passive: bool = False,
    frequency: float = 0.0,
    damping_ratio: float = 1.0,
) -> tuple[Vector, Vector]:
    """Return the accelerations under constraints, and the forces that enforce them.

    Rows may be redundant, as those of a planar mechanism that is closed in space. A closure that
    holds a point (``"spherical"``, ``"universal"``) has the force on the second frame first, (3,)
    in axes of the first.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    tau : array (..., nv)
        Torques of the joints in N m, or forces in N.
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    passive : bool, optional
        Include damping, friction and springs of the joints. False by default.
    frequency : float, optional
        Frequency in rad/s with which violations decay. 0 does not correct them.
    damping_ratio : float, optional
        Damping ratio of that decay, 1 (critical) by default.

    Returns
    -------
    (array (nv,), array (m,))
        Accelerations and constraint forces.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, constrained_acceleration
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> held = Closure("world", "bob", "spherical")
    >>> a, f = constrained_acceleration(b.build(), [held], *np.zeros((3, 1)))
    >>> abs(float(a[0])) < 1e-12, round(float(np.abs(f).max()), 9)
    (True, 19.62)
    """
    q, v = check_single(model, q, "q"), check_single(model, v, "v")
    torques = check_single(model, tau, "tau")
    for value, name in ((frequency, "frequency, in rad/s,"), (damping_ratio, "damping_ratio")):
        check_not_negative(value, name)
        check_finite(value, name)
    if passive:
        torques = torques + passive_torque(model, q, v)
    J = constraint_jacobian(model, closures, q)
    rest = torques - rnea(model, q, v, np.zeros(model.nv), forces)
    wanted = -np.concatenate([c.bias(q, v) for c in check_closures(model, closures)])
    if not known_zero(frequency):
        error = constraint_error(model, closures, q)
        wanted = wanted - 2.0 * damping_ratio * frequency * (J @ v) - frequency**2 * error
    freely, across, G = condense(model, q, J, rest)
    f = solve_singular(G, wanted - J @ freely)
    return freely + across @ f, f


def condense(model: Model, q: Vector, J: Matrix, right: Vector) -> tuple[Vector, Matrix, Matrix]:
    """Return M^-1 times a vector, M^-1 J', and J M^-1 J'."""
    both = solve_mass(mass_factors(model, q), np.concatenate([right[:, None], J.T], axis=1))
    return both[:, 0], both[:, 1:], J @ both[:, 1:]


def mass_factors(model: Model, q: Vector, added: Vector | None = None) -> Factors:
    """Return the factors of M, with what is `added` (nv,) to its diagonal."""
    entries = mass_entries(model, q)
    if added is not None:
        for k in range(model.nv):
            entries[k, k] = entries[k, k] + added[k]
    return factorize(model, entries)


def solve_mass(factors: Factors, right: Matrix) -> Matrix:
    """Return M^-1 times a matrix (nv, n)."""
    return np.stack(solve_rows(factors, [right[k] for k in range(right.shape[0])]))


def solve_singular(G: Matrix, right: Array) -> Any:
    """Return a solution (n,) or (n, k) of a consistent, perhaps singular, symmetric system.

    In units in which its diagonal is one: rows of a light body count as much as those of a heavy.
    """
    size = np.diag(G)
    w = 1.0 / np.sqrt(np.where(size > LEAST * np.max(size), size, np.max(size)))
    units = w if right.ndim == 1 else w[:, None]
    G, right = w[:, None] * G * w, units * right
    softened = G + SOFTENING * np.eye(G.shape[0])
    f = np.linalg.solve(softened, right)
    for _ in range(REFINEMENTS):
        f = f + np.linalg.solve(softened, right - G @ f)
    return units * f


def check_single(model: Model, x: ArrayLike, name: str) -> Vector:
    """Return an argument as an array (nq,) or (nv,)."""
    array = check_coordinates(model, x, name)
    if array.ndim != 1:
        raise ValueError(f"{name} must have shape {array.shape[-1:]} here; use arc.vmap for many")
    check_finite(array, name)
    return array


def check_closures(
    model: Model, closures: Sequence[Holds]
) -> list[CouplingEquations | LengthEquations | ClosureEquations]:
    """Return the equations of closures, of which there must be one or more."""
    if not isinstance(closures, (list, tuple)) or not all(
        isinstance(c, (Closure, Coupling)) for c in closures
    ):
        raise TypeError(f"closures must be a list of Closure and Coupling, got {closures!r:.80}")
    if not len(closures):
        raise ValueError("closures is empty: for a model without closures use aba or dynamics")
    return [equations_of(model, c) for c in closures]


def project_velocity(model: Model, closures: Sequence[Holds], q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the velocity after the impulse that makes constraints hold: the nearest one in energy.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.

    Returns
    -------
    array (nv,)
        Velocity.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, project_velocity
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> stopped = project_velocity(b.build(), [Closure("world", "bob")], np.zeros(1), np.ones(1))
    >>> abs(float(stopped[0])) < 1e-12
    True
    """
    q, v = check_single(model, q, "q"), check_single(model, v, "v")
    J = constraint_jacobian(model, closures, q)
    _, across, G = condense(model, q, J, v)
    return v - across @ solve_singular(G, J @ v)


def project_configuration(
    model: Model, closures: Sequence[Holds], q: ArrayLike, steps: int = 3
) -> Vector:
    """Return the nearest configuration at which constraints hold, by Newton's method.

    Distances are measured by the mass matrix. Check `constraint_error` afterwards: if the
    constraints cannot hold, or the start is far away, it does not vanish.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    q : array (..., nq)
        Configuration.
    steps : int, optional
        Number of Newton steps, each of which squares the error. 3 by default.

    Returns
    -------
    array (nq,)
        Configuration.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, project_configuration
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[1, 0, 0])
    >>> place = Closure("world", "bob", "spherical", place=(0.5, 0.0, 0.0))
    >>> project_configuration(b.build(), [place], np.zeros(1)).round(12)
    array([0.5])
    """
    q = check_single(model, q, "q")
    for _ in range(check_whole(steps, "steps", 0)):
        J = np.concatenate([c.slope(q) for c in check_closures(model, closures)])
        error = constraint_error(model, closures, q)
        _, across, G = condense(model, q, J, np.zeros(model.nv))
        q = integrate(model, q, -(across @ solve_singular(G, error)))
    return q


def constrained_dynamics(
    model: Model,
    closures: Sequence[Holds],
    t: Scalar,
    x: State,
    u: ArrayLike | None = None,
    forces: Forces = None,
    *,
    actuators: Sequence[Any] | None = None,
    frequency: float = 20.0,
    limits: bool = True,
) -> State:
    """Return the rates of a state under constraints, for `arc.solve_ode`.

    Passive forces of the joints act, and stops at their limits. Violations decay with critical
    damping. For none at all, make fixed steps, and follow each by `project_configuration` and
    `project_velocity`.

    Parameters
    ----------
    model : Model
        The robot.
    closures : sequence of Closure or Coupling
        Constraints that hold, such as ``model.closures``.
    t : float
        Time in s. The equations do not depend on it.
    x : State
        Configuration and velocity.
    u : array (nv,), optional
        Torques of the joints, zero by default. With `actuators`, their commands (n,).
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    actuators : sequence, optional
        Actuators, such as ``model.actuators``. None by default.
    frequency : float, optional
        Frequency in rad/s with which violations decay. 0 does not correct them.
    limits : bool, optional
        Whether joints have stops at their limits, see `limit_torque`. True by default.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Closure, constrained_dynamics, rest_state
    >>> b = Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1])
    >>> bob = b.build()
    >>> rates = constrained_dynamics(bob, [Closure("world", "bob")], 0.0, rest_state(bob))
    >>> bool(np.abs(rates.v).max() < 1e-12)
    True
    """
    check_is_state(x)
    torques, rates = drive(model, x, u, actuators, limits)
    a, _ = constrained_acceleration(
        model, closures, x.q, x.v, torques, forces, passive=True, frequency=frequency
    )
    return rates_of(model, x, a, rates)
