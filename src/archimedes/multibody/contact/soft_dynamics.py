"""Limits, dry friction and closures as soft constraints, all at once, as MuJoCo has them.

Legend: J are the rows of what is beyond a limit, has dry friction, or is held together; r is a gap,
negative beyond a limit, or a violation. A constraint wants the acceleration
``a_ref = -b J v - k d r`` with ``b = 2 z f / d_max``, ``k = f^2 / d_max^2`` for the frequency f and
the damping ratio z of its stop, and is as soft as ``R = m (1 - d) / d``, where m is its mobility,
what a unit of force accelerates, where the springs are at rest. Rows of limits and friction are
scaled so that m is one. The impedance d grows with ``|r|`` over a way. Forces l solve
``(J M^-1 J' + R) l + J a - a_ref >= 0``, ``l >= 0``, one of both zero; those of friction are
between -F and F, those of closures have any sign, and are eliminated first. How rows change with
the configuration, ``dJ/dt v``, counts for frames that are held together, and for nothing else.

Two frames that are held together have the violation ``p = p_2 - p_1``, in axes of the world, and
``e = s u``, where u is the vector part of the quaternion of the first frame in the second and s how
much turning counts; its rate is ``s / 2 (w + [w] u)`` for the relative angular velocity.
Source: MuJoCo documentation, "Computation", constraint model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import as_array, check_shape, check_that
from archimedes.function import jvp
from archimedes.multibody.algorithms.configurations import integrate
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.limits import FAR, HeldRows, held_rows
from archimedes.multibody.algorithms.links import Forces
from archimedes.multibody.contact import impulses
from archimedes.multibody.parts.closures import Closure, Softness
from archimedes.multibody.systems.constraints import (
    Holds,
    check_closures,
    check_single,
    mass_factors,
    solve_mass,
)
from archimedes.multibody.systems.dynamics import State, check_is_state, commanded, rates_of
from archimedes.portable_numpy import matmul
from archimedes.spatial.attitudes.quaternions import dcm_to_quaternion
from archimedes.spatial.components import skew
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["soft_dynamics"]

#: Impedances are within these; ways and masses below the second count as none, as in MuJoCo.
LEAST_IMPEDANCE, LEAST = 1e-4, 1e-15


def soft_dynamics(
    model: Model,
    t: Scalar,
    x: State,
    u: ArrayLike | None = None,
    forces: Forces = None,
    *,
    actuators: Sequence[Any] | None = None,
    closures: Sequence[Holds] = (),
    impedance: ArrayLike | None = None,
) -> State:
    """Return the rates of a state with limits, dry friction and closures as MuJoCo has them.

    Where `dynamics` has a spring for each limit and smooth friction, here all of them are one
    optimization, which takes most of a load off a limit and lets friction hold. Motions are
    MuJoCo's; energy may grow a little. Each evaluation solves for the forces, which takes longer.

    Parameters
    ----------
    model : Model
        The robot.
    t : float
        Time in s. The equations do not depend on it.
    x : State or DrivenState
        State.
    u : array (nv,), optional
        Torques of the joints, zero by default. With `actuators`, their commands (n,).
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    actuators : sequence, optional
        Actuators, such as ``model.actuators``. None by default.
    closures : sequence of Closure or Coupling, optional
        What is held together, as softly as their `softness` says, such as ``model.closures``.
    impedance : array (5,), optional
        MuJoCo's ``solimp`` for all limits and friction. None, the default: those of the model.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1], lower=0.0)
    >>> x = mb.State(np.array([-0.01]), np.zeros(1))
    >>> mb.soft_dynamics(b.build(), 0.0, x).v.round(3)  # 0.95 (50 rad/s)^2 0.01 m - 0.05 g
    array([24.51])
    """
    check_is_state(x)
    torques, rates = commanded(model, x, u, actuators)
    q, v = check_single(model, x.q, "q"), check_single(model, x.v, "v")
    held = held_rows(model, q, True)
    smooth = replace(model, friction=0.0 * model.friction)
    if model.tendons is not None:
        sliding = replace(model.tendons, friction=0.0 * model.tendons.friction)
        smooth = replace(smooth, tendons=sliding)
    a = aba(smooth, q, v, torques, forces, True)
    if held is None and not closures:
        return rates_of(model, x, a, rates)
    factors = mass_factors(model, q)
    ties = tie(model, closures, q, v, factors) if closures else None
    if ties is not None:
        a = a + ties.react(ties.wanted - ties.J @ a)
    if held is None:
        return rates_of(model, x, a, rates)
    limits = solve_limits(held, v, impedance)
    across = solve_mass(factors, limits.J.T)
    if ties is not None:
        across = across - ties.react(ties.J @ across)
    G = limits.J @ across + limits.softness[:, None] * np.eye(limits.J.shape[0])
    l = impulses.row_impulses(G, limits.J @ a - limits.wanted, limits.bounds)
    return rates_of(model, x, a + across @ l, rates)


# ---- limits and friction -------------------------------------------------------------------------


class SoftRows(NamedTuple):
    """Rows (n, nv), what they want (n,), how soft they are (n,), and which forces they take."""

    J: Any
    wanted: Any
    softness: Any
    bounds: impulses.Rows


def solve_limits(held: HeldRows, v: Vector, impedance: ArrayLike | None) -> SoftRows:
    """Return the rows of limits, of each its nearer end, followed by those of friction."""
    solimp, creep = held.impedance, held.creep
    if impedance is not None:
        one = as_array(impedance, "impedance")
        check_shape(one, "impedance", (5,))
        check_that(lambda d: (d[:2] > 0.0) & (d[:2] < 1.0), one, "impedance", "must be in (0, 1)")
        solimp = 0.0 * solimp + one
        creep = np.concatenate([creep[:, :2], solimp], axis=1)
    below = -held.low < held.high
    gap = np.where(below, -held.low, held.high)
    side = np.where(below, 1.0, -1.0)
    speed = held.J @ v
    d = impedance_at(gap / held.scale, solimp)
    beyond = np.minimum(gap, 0.0)  # a row that is not active has no reference, but is far from it
    pull = reference(held.frequency, held.damping, solimp, d, side * speed, beyond)
    dry = impedance_at(0.0 * gap, creep[:, 2:])
    drag = reference(creep[:, 0], creep[:, 1], creep[:, 2:], dry, speed, 0.0 * gap)
    zero, far = 0.0 * gap, 0.0 * gap + FAR
    bounds = impulses.Rows(
        np.concatenate([np.where(gap < 0.0, 0.0, -FAR), -far]),
        np.concatenate([far, far]),
        np.concatenate([zero, held.friction]),
    )
    J = np.concatenate([side[:, None] * held.J, held.J])
    softness = np.concatenate([(1.0 - d) / d, (1.0 - dry) / dry])
    return SoftRows(J, np.concatenate([pull, drag]), softness, bounds)


def reference(
    frequency: Any, damping: Any, solimp: Vector, d: Any, rate: Vector, gap: Vector
) -> Vector:
    """Return the acceleration that constraints want, of their rates and gaps."""
    most = within(solimp[..., 1])
    return -2.0 * damping * frequency / most * rate - (frequency / most) ** 2 * d * gap


def within(d: Any) -> Any:
    """Return impedances moved to between zero and one."""
    return np.minimum(np.maximum(d, LEAST_IMPEDANCE), 1.0 - LEAST_IMPEDANCE)


def impedance_at(gap: Vector, solimp: Vector) -> Vector:
    """Return the impedance (n,) of constraints at gaps, for numbers (n, 5) or (5,)."""
    low, high, width, middle, power = (solimp[..., k] for k in range(5))
    low, high, middle, power = within(low), within(high), within(middle), np.maximum(power, 1.0)
    flat = (width <= LEAST) | (low == high)
    x = np.minimum(np.abs(gap) / np.where(flat, 1.0, width), 1.0)
    first = x**power / middle ** (power - 1.0)
    second = 1.0 - (1.0 - x) ** power / (1.0 - middle) ** (power - 1.0)
    grown = low + (high - low) * np.where(x <= middle, first, second)
    return np.where(flat, 0.5 * (low + high), grown)


# ---- closures ------------------------------------------------------------------------------------


class Ties(NamedTuple):
    """Rows (n, nv) that hold with forces of any sign, what they want (n,), and their reaction.

    `across` is M^-1 J' (nv, n) and `G` the matrix (n, n) of the forces' own effects, softness
    included.
    """

    J: Any
    wanted: Any
    across: Any
    G: Any

    def react(self, missing: Any) -> Any:
        """Return the accelerations (nv, ...) that add to the rows what is missing (n, ...)."""
        return matmul(self.across, np.linalg.solve(self.G, missing))


def tie(model: Model, closures: Sequence[Holds], q: Vector, v: Vector, factors: Any) -> Ties:
    """Return the rows of closures."""
    each = rows_of(model, closures, q)
    J = np.concatenate([rows for rows, _, _ in each])
    across = solve_mass(factors, J.T)
    G = matmul(J, across)
    wanted, soft, start = [], [], 0
    # Those of couplings do not count in MuJoCo either.
    bends = [c for c in closures if isinstance(c, Closure)]
    bias = rates_of_rows(model, bends, q, v) if bends else None
    bent = 0
    for c, (rows, error, mobility) in zip(closures, each, strict=True):
        count, own = rows.shape[0], c.softness
        solimp = np.array(own.impedance)
        d = impedance_at(np.sqrt(np.sum(error * error)), solimp)
        if mobility is None and own.mobility is not None:
            mobility = np.full(count, own.mobility[0])
        if mobility is None:
            mobility = np.diag(G)[start : start + count]
        goal = reference(own.frequency, own.damping, solimp, d, matmul(rows, v), error)
        if isinstance(c, Closure) and bias is not None:
            goal, bent = goal - bias[bent : bent + count], bent + count
        wanted.append(goal)
        soft.append(np.maximum((1.0 - d) / d * mobility, LEAST))
        start += count
    softness = np.concatenate(soft)
    return Ties(J, np.concatenate(wanted), across, G + softness[:, None] * np.eye(len(softness)))


def rows_of(model: Model, closures: Sequence[Holds], q: Vector) -> list[tuple[Any, Any, Any]]:
    """Return rows, violation and mobility, where it is given, of closures."""
    return [
        point_rows(model, c, equations, q)
        if isinstance(c, Closure) and c.kind in ("fixed", "spherical")
        else (equations.rows(q), equations.error(q), None)
        for c, equations in zip(closures, check_closures(model, closures), strict=True)
    ]


def rates_of_rows(model: Model, closures: Sequence[Holds], q: Vector, v: Vector) -> Vector:
    """Return dJ/dt v (n,) of closures."""

    def rates(e: Vector) -> Vector:
        J = [rows for rows, _, _ in rows_of(model, closures, integrate(model, q, e))]
        return matmul(np.concatenate(J), v)

    return jvp(rates)(0.0 * v, v)


def point_rows(
    model: Model, c: Closure, equations: Any, q: Vector
) -> tuple[Matrix, Vector, np.ndarray | None]:
    """Return rows, violation and mobility of frames that are held together."""
    own: Softness = c.softness
    J, at = frame_jacobian(model, q, c.second, "aligned"), world_pose(model, q, c.second)
    p, R = np.array(c.place), np.eye(3)
    if not equations.on_world:
        first = world_pose(model, q, c.first)
        p, R = first.p, first.R
        J = J - frame_jacobian(model, q, c.first, "aligned")
    mobility = None if own.mobility is None else np.repeat(own.mobility, 3)
    if c.kind == "spherical":
        return J[:3], at.p - p, None if mobility is None else mobility[:3]
    quaternion = dcm_to_quaternion(matmul(at.R.T, R).T)
    u = quaternion[1:]
    turn = -0.5 * own.turning * (quaternion[0] * np.eye(3) - skew(u))
    rows = np.concatenate([J[:3], matmul(turn, matmul(at.R.T, J[3:]))])
    return rows, np.concatenate([at.p - p, own.turning * u]), mobility
