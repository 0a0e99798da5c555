"""Limits, dry friction, contact and closures as soft constraints, all at once, as MuJoCo has them.

Legend: J are the rows of what is beyond a limit, has dry friction, touches, or is held together; r
is a gap, negative beyond a limit and in contact, or a violation. A constraint wants
``a_ref = -b J v - k d r`` with ``b = 2 z f / d_max``, ``k = f^2 / d_max^2`` for the frequency f and
the damping ratio z of its stop, and is as soft as ``R = m (1 - d) / d``, where m is its mobility,
what a unit of force accelerates, where the springs are at rest. Rows of limits and friction are
scaled so that m is one. The impedance d grows with ``|r|`` over a way. Forces l solve
``(J M^-1 J' + R) l + J a - a_ref >= 0``, ``l >= 0``, one of both zero; those of friction are
between -F and F, those of closures have any sign, and are eliminated first. How rows change with
the configuration, ``dJ/dt v``, counts for frames that are held together, and for nothing else.

A contact has the normal n, directions t_j across it (two to slide, one to spin about the normal,
two to roll) and coefficients mu_j. R is that of the normal; with an elliptic cone that of t_j is
``R (mu_1 / mu_j)^2 / i`` (i is ``impratio``), and the spring is along n alone. A pyramid has two
edges ``n + mu_j t_j`` and ``n - mu_j t_j`` in place of each t_j, forces of one sign, and
``2 mu_1^2 R (1 + mu_1^2) / i`` for all of them. m is what the centres of mass of both bodies add up
to, the mean of all directions. Accelerations are those of MuJoCo's coordinates, whose free joints
have linear velocities in axes that stand still.

Two frames that are held together have the violation ``p = p_2 - p_1``, in axes of the world, and
``e = s u``, where u is the vector part of the quaternion of the first frame in the second and s how
much turning counts; its rate is ``s / 2 (w + [w] u)`` for the relative angular velocity.
Source: MuJoCo documentation, "Computation", constraint model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from archimedes.checks import (
    as_array,
    check_choice,
    check_positive,
    check_shape,
    check_that,
    concrete,
)
from archimedes.function import jvp
from archimedes.multibody.algorithms.configurations import integrate, own_links
from archimedes.multibody.algorithms.forward_dynamics import aba
from archimedes.multibody.algorithms.kinematics import frame_jacobian, world_pose
from archimedes.multibody.algorithms.limits import HeldRows, held_rows, joint_inertias
from archimedes.multibody.algorithms.links import Forces, SameModel, has_known_numbers
from archimedes.multibody.algorithms.mass_matrix import inverse_mass_matrix
from archimedes.multibody.contact.collision import Touch, link_of, moving_frames, touches
from archimedes.multibody.contact.contact_dynamics import (
    contact_axes,
    contact_rows,
    standing_still,
    turning_rows,
)
from archimedes.multibody.contact.contact_shapes import Contacts, Ground, Pair
from archimedes.multibody.contact.soft_forces import Springs, soft_forces
from archimedes.multibody.parts.closures import Closure, Softness
from archimedes.multibody.parts.joints import Free
from archimedes.multibody.parts.ranges import known_zero
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
from archimedes.spatial.components import cross, skew
from archimedes.tree import replace
from archimedes.typing import ArrayLike, Matrix, Scalar, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["soft_dynamics"]

#: Impedances are within these; ways and masses below the second count as none, as in MuJoCo.
LEAST_IMPEDANCE, LEAST = 1e-4, 1e-15
#: A row is no stiffer than this, of what a unit of its force accelerates it.
STIFFEST = 1e8
#: Coefficients of friction are no smaller, as in MuJoCo.
LEAST_FRICTION = 1e-5
#: Which coefficient each direction across a normal has.
ACROSS = ("friction", "friction", "torsional", "rolling", "rolling")
CONES = ("pyramidal", "elliptic")
#: Numbers of a softness that make its reference.
STOP = ("frequency", "damping")
#: A capsule stands on end up to this angle in rad.
UPRIGHT = 1e-6


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
    contacts: Sequence[Contacts] = (),
    ground: Ground | None = None,
    pairs: Sequence[Pair] = (),
    cone: str = "pyramidal",
    impratio: float = 1.0,
) -> State:
    """Return the rates of a state with limits, dry friction, contact and closures as MuJoCo's.

    Where `dynamics` has a spring for each limit and smooth friction, here all of them are one
    optimization, which takes most of a load off a limit and lets friction hold. Motions are
    MuJoCo's; energy may grow a little, and what sticks creeps. Each evaluation solves for the
    forces, which takes longer.

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
    contacts : sequence of Contacts, optional
        Shapes that touch the ground.
    ground : Ground, optional
        The ground, with its `softness` and `margin`. None by default.
    pairs : sequence of Pair, optional
        Pairs of shapes that touch each other, each with its `softness` and `margin`.
    cone : {"pyramidal", "elliptic"}, optional
        Cones of friction. MuJoCo's default, a pyramid of four sides, is less than a cone between
        its edges.
    impratio : float, optional
        How much stiffer friction is than the normal, 1 by default. A larger one creeps less.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes import multibody as mb
    >>> b = mb.Builder()
    >>> b.add_body("bob", mass=2.0, inertia=[0.1, 0.1, 0.1])
    >>> b.attach("bob", joint="rail", kind="prismatic", axis=[0, 0, 1], lower=0.0)
    >>> x = mb.State(np.array([-0.01]), np.zeros(1))
    >>> mb.soft_dynamics(b.build(), 0.0, x).v.round(2)  # 0.95 (50 rad/s)^2 0.01 m - 0.05 g
    array([24.51])
    """
    check_is_state(x)
    check_choice(cone, "cone", CONES)
    check_positive(impratio, "impratio")
    torques, rates = commanded(model, x, u, actuators)
    q, v = check_single(model, x.q, "q"), check_single(model, x.v, "v")
    held = held_rows(model, q, True)
    smooth = replace(model, friction=0.0 * model.friction)
    if model.tendons is not None:
        sliding = replace(model.tendons, friction=0.0 * model.tendons.friction)
        smooth = replace(smooth, tendons=sliding)
    a = aba(smooth, q, v, torques, forces, True)
    touching = bool(contacts or pairs)
    flying = friction_of_free_joints(model, q, v, impedance)
    if held is None and not flying and not closures and not touching:
        return rates_of(model, x, a, rates)
    factors = mass_factors(model, q)
    ties = tie(model, closures, q, v, factors) if closures else None
    if ties is not None:
        a = a + ties.react(ties.wanted - ties.J @ a)
    parts = flying if held is None else soft_limits(held, v, impedance) + flying
    cones = None
    if touching:
        points = touches(model, q, contacts, ground, pairs)
        flat, cones = soft_contacts(model, q, v, points, cone, impratio)
        parts += flat
    if not parts and cones is None:
        return rates_of(model, x, a, rates)
    J, wanted, springs = join_rows(parts, cones)
    across = solve_mass(factors, J.T)
    if ties is not None:
        across = across - ties.react(ties.J @ across)
    springs = springs._replace(stiffness=keep_soft(J, across, springs))
    l = soft_forces(J, across, J @ a - wanted, springs)
    return rates_of(model, x, a + across @ l, rates)


def keep_soft(J: Matrix, across: Matrix, springs: Springs) -> Vector:
    """Return stiffnesses no larger than rounding allows: of rows whose mobility is none at rest.

    Two edges of a pyramid may push against each other without moving anything.
    """
    n = springs.least.shape[0]
    size = np.sum(J[:n] * across[:, :n].T, axis=1)
    rows = np.minimum(springs.stiffness[:n], STIFFEST / np.maximum(size, LEAST))
    return np.concatenate([rows, springs.stiffness[n:]])


# ---- limits and friction -------------------------------------------------------------------------


class SoftRows(NamedTuple):
    """Rows (n, nv), what they want (n,), how stiff they are, and which forces they take."""

    J: Any
    wanted: Any
    stiffness: Any
    least: Any
    most: Any


class SoftCones(NamedTuple):
    """Contacts with elliptic cones: rows (m, dim, nv), and what `Springs` has of them."""

    J: Any
    wanted: Any
    stiffness: Any
    mu: Any
    friction: Any


def join_rows(parts: Sequence[SoftRows], cones: SoftCones | None) -> tuple[Any, Any, Springs]:
    """Return all rows (n, nv), what they want (n,), and what their forces are made of."""
    own = [np.concatenate(each) for each in zip(*parts)] or [np.zeros(0)] * 5
    J, wanted, stiffness, least, most = own
    mu, friction = np.zeros(0), np.zeros((0, 2))
    if cones is not None:
        whole = cones.J.reshape(-1, cones.J.shape[2])
        J = np.concatenate([J, whole]) if parts else whole
        wanted = np.concatenate([wanted, cones.wanted.ravel()])
        stiffness = np.concatenate([stiffness, cones.stiffness.ravel()])
        mu, friction = cones.mu, cones.friction
    return J, wanted, Springs(stiffness, least, most, mu, friction)


def soft_limits(held: HeldRows, v: Vector, impedance: ArrayLike | None) -> list[SoftRows]:
    """Return the rows of limits, of each its nearer end, and those of friction."""
    solimp, creep = held.impedance, held.creep
    if impedance is not None:
        solimp = 0.0 * solimp + check_impedance(impedance)
        creep = np.concatenate([creep[:, :2], solimp], axis=1)
    below = -held.low < held.high
    gap = np.where(below, -held.low, held.high)
    side = np.where(below, 1.0, -1.0)
    speed = held.J @ v
    d = impedance_at(gap / held.scale, solimp)
    beyond = np.minimum(gap, 0.0)  # a row that is not active has no reference, but is far from it
    pull = reference(held.frequency, held.damping, solimp, d, side * speed, beyond)
    stiffness = np.where(gap < 0.0, d / (1.0 - d), 0.0)
    stops = pushing(side[:, None] * held.J, pull, stiffness)
    friction = concrete(held.friction)
    rough = [k for k in range(len(side)) if friction is None or friction[k] != 0.0]
    if not rough:
        return [stops]
    return [stops, soft_friction(held.J[rough], speed[rough], creep[rough], held.friction[rough])]


def soft_friction(J: Matrix, speed: Vector, creep: Matrix, most: Vector) -> SoftRows:
    """Return rows of dry friction of at most so much, whose softness is `creep` (n, 7)."""
    zero = 0.0 * speed
    dry = impedance_at(zero, creep[:, 2:])
    drag = reference(creep[:, 0], creep[:, 1], creep[:, 2:], dry, speed, zero)
    return SoftRows(J, drag, dry / (1.0 - dry), -most, most)


def check_impedance(impedance: ArrayLike) -> Vector:
    """Return the impedance (5,) of all limits and friction that a user gives."""
    one = as_array(impedance, "impedance")
    check_shape(one, "impedance", (5,))
    check_that(lambda d: (d[:2] > 0.0) & (d[:2] < 1.0), one, "impedance", "must be in (0, 1)")
    return one


def friction_of_free_joints(
    model: Model, q: Vector, v: Vector, impedance: ArrayLike | None
) -> list[SoftRows]:
    """Return rows of dry friction of free joints: along axes of the world, about the child's."""
    parts = []
    for link in own_links(model):
        own = link.v_slice
        if not isinstance(link.kind, Free) or known_zero(model.friction[own]):
            continue
        R = world_pose(model, q, link.body).R
        zero, one = np.zeros((3, 3)), np.eye(3)
        axes = np.concatenate([np.concatenate([R, zero]), np.concatenate([zero, one])], axis=1)
        turning = np.concatenate([R @ cross(v[own][3:], v[own][:3]), np.zeros(3)])
        scale = np.sqrt(joint_inertias(model)[own])
        J = (scale[:, None] * axes) @ np.eye(model.nv)[own]
        creep = model.friction_softness[own]
        if impedance is not None:
            solimp = 0.0 * creep[:, 2:] + check_impedance(impedance)
            creep = np.concatenate([creep[:, :2], solimp], axis=1)
        rows = soft_friction(J, J @ v, creep, model.friction[own] / scale)
        parts.append(rows._replace(wanted=rows.wanted - scale * turning))
    return parts


def reference(
    frequency: Any, damping: Any, solimp: Vector, d: Any, rate: Vector, gap: Vector
) -> Any:
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


# ---- contact -------------------------------------------------------------------------------------


def soft_contacts(
    model: Model, q: Vector, v: Vector, points: Sequence[Touch], cone: str, impratio: Scalar
) -> tuple[list[SoftRows], SoftCones | None]:
    """Return contacts as rows that push, and as elliptic cones."""
    across = [coefficients(touch) for touch in points]
    soft: list[Softness] = [touch.material.softness for touch in points]
    solimp = np.array([own.impedance for own in soft])
    frequency, damping = (np.array([getattr(own, key) for own in soft]) for key in STOP)
    gap = np.stack([touch.gap - touch.material.margin for touch in points])
    beyond = np.minimum(gap, 0.0)
    d = impedance_at(beyond, solimp)
    mobility = np.stack([mobility_of(model, touch) for touch in points])
    stiffness = np.stack([touch.share * 1.0 for touch in points])
    stiffness = np.where(gap < 0.0, stiffness, 0.0) / np.maximum((1.0 - d) / d * mobility, LEAST)

    middle = [halfway(touch) for touch in points]
    J = contact_rows(model, q, middle, cross_axes).reshape(len(points), 3, -1)
    if any(len(own) > 2 for own in across):
        J = np.concatenate([J, turning_rows(model, q, middle, cross_axes)], axis=1)
    bent = standing_still(model, 0.0 * v, v)

    def wanted(which: list[int], rows: Any, gap: Vector) -> Any:
        """Return what rows (..., nv) of some contacts want."""
        goal = reference(
            frequency[which], damping[which], solimp[which], d[which], rows @ v, gap[which]
        )
        return goal - rows @ bent

    parts = []
    plain = [k for k, own in enumerate(across) if not own]
    if plain:
        parts.append(pushing(J[plain, 0], wanted(plain, J[plain, 0], beyond), stiffness[plain]))
    rough = [k for k, own in enumerate(across) if own]
    if cone == "pyramidal":
        for k in range(max(map(len, across))):
            some = [n for n in rough if len(across[n]) > k]
            first, own = (np.stack([across[n][j] for n in some]) for j in (0, k))
            size = stiffness[some] * impratio / (2.0 * first**2 * (1.0 + first**2))
            for side in (own, -own):
                edge = J[some, 0] + side[:, None] * J[some, k + 1]
                parts.append(pushing(edge, wanted(some, edge, beyond), size))
        return parts, None
    if not rough:
        return parts, None
    most = max(map(len, across))
    rows = [J[rough, k] for k in range(most + 1)]
    goals = [wanted(rough, row, 0.0 * gap if k else beyond) for k, row in enumerate(rows)]
    # One that lacks directions that others have has no friction along them.
    friction = np.stack([np.stack([*across[n], *[0.0] * (most - len(across[n]))]) for n in rough])
    first = friction[:, :1]
    sizes = np.concatenate([0.0 * first + 1.0, impratio * (friction / first) ** 2], axis=1)
    return parts, SoftCones(
        np.stack(rows, axis=1), np.stack(goals, axis=1), stiffness[rough][:, None] * sizes,
        first[:, 0] / np.sqrt(impratio), friction,
    )  # fmt: skip


def pushing(J: Matrix, wanted: Vector, stiffness: Vector) -> SoftRows:
    """Return rows whose forces are not negative."""
    return SoftRows(J, wanted, stiffness, 0.0 * stiffness, np.full(J.shape[:1], np.inf))


def coefficients(touch: Touch) -> list[Any]:
    """Return the coefficients of friction across the normal of a touch: 0, 2, 3 or 5 of them."""
    own = [getattr(touch.material, key) for key in ACROSS]
    count = max((k + 1 for k, mu in enumerate(own) if not known_zero(mu)), default=0)
    for key, mu in zip(ACROSS, own, strict=True):
        remedy = "must be finite in soft_dynamics, where a large one makes pyramids soft"
        check_that(np.isfinite, mu, f"{type(touch.material).__name__} {key}", remedy)
    return [np.maximum(mu, LEAST_FRICTION) for mu in own[:count]]


def halfway(touch: Touch) -> Touch:
    """Return a touch whose point is in the middle of the gap; on the ground it is on the shape."""
    if touch.second is not None:
        return touch
    return touch._replace(point=touch.point - 0.5 * touch.gap * touch.normal)


def cross_axes(touch: Touch) -> Matrix:
    """Return the normal of a touch and the two tangents of MuJoCo's pyramids, as rows.

    One is along the y axis or, where the normal is near that, the z axis; or along a capsule.
    """
    n, usual = touch.normal, contact_axes(touch)
    steep = np.abs(n[1]) >= 0.5
    first = np.where(steep, np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    if touch.along is not None:
        upright = np.sum(np.cross(n, touch.along) ** 2) < UPRIGHT**2 * np.sum(touch.along**2)
        first = np.where(upright, usual[1], touch.along)
    first = first - np.sum(first * n) * n
    first = first / np.sqrt(np.sum(first * first))
    return np.stack([n, first, np.cross(n, first)])


def mobility_of(model: Model, touch: Touch) -> Scalar:
    """Return what a unit of force accelerates the bodies of a touch, at rest of the springs."""
    given = touch.material.softness.mobility
    if given is not None:
        return np.asarray(float(given[0]))
    return sum(
        body_mobility(model, link_of(model, name)) for name, _ in moving_frames(model, touch)
    )


def body_mobility(model: Model, link: int) -> Scalar:
    """Return the mean, of all directions, of what a unit of force at its centre moves a body."""
    known = has_known_numbers(model) and concrete(model.rest) is not None
    if known and np.ndim(model.masses) == 1:
        return find_known_mobility(SameModel(model), link)
    return find_body_mobility(model, link)


@lru_cache(maxsize=1024)
def find_known_mobility(same: SameModel, link: int) -> Scalar:
    """Return `body_mobility` of a model whose numbers are known; those asked last are kept."""
    return find_body_mobility(same.model, link)


def find_body_mobility(model: Model, link: int) -> Scalar:
    """Return `body_mobility`."""
    body = model.links[link].body
    R = world_pose(model, model.rest, body).R
    J = frame_jacobian(model, model.rest, body, "aligned")
    J = J[:3] - matmul(skew(matmul(R, model.centers[link])), J[3:])
    return np.sum(J * matmul(J, inverse_mass_matrix(model, model.rest))) / 3.0


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
