"""Bodies in contact: steps in time with exact Coulomb friction and impacts, or compliant forces.

Legend: h is the step, v the velocity before it, a the acceleration without contact, J the rows
(normal, two tangents) of the contacts, G = J M^-1 J'. First the impacts: a contact that closes at
the time s within the step gets an impulse k, which acts from then on. Then the forces: impulses l
so that ``v' = v + M^-1 J' (k + l) + h a`` has normal speeds ``u_n >= -gap / h``. Positions move by
``h v' - s M^-1 J' k``. What is left of a penetration is taken back by moving positions alone, which
gives nobody speed. Velocities of free joints are in axes that stand still (see below). Damping of
joints, ``-D v``, acts with v' in place of v: forces meet M + h D. Limits and dry friction of joints
are rows of J of one number each, and impulses l of their own.

Closed loops are eliminated: everywhere M^-1 stands for how the robot moves with its loops closed,
``M^-1 - M^-1 K' (K M^-1 K')^-1 K M^-1`` with the rows K of the closures. What is left of them is
``K v' = -h/2 K. v``: a step along a chord, which ends on the closed loop and turns speeds without
making them smaller or larger (a step along the tangent would end outside, and lose energy on the
way back). As SHAKE does; velocities are those of chords.
Sources: Moreau, Unilateral contact and dry friction in finite freedom dynamics, 1988; Acary and
Brogliato 2008, chapter 10; Anitescu and Potra, Nonlinear Dynamics 14, 1997; Ryckaert, Ciccotti and
Berendsen, Journal of Computational Physics 23, 1977 (SHAKE).

Axes that stand still: the linear velocity v of a free or planar joint is in the child's axes, which
rotate with w. A body that flies straight on has ``v' = -w x v``, and a step along that makes it
ever faster. In axes that are the child's at the start of the step and then stand still, v changes
by ``v' + w x v`` alone, and a path is straight; at its end velocities are seen from the axes as
they are then, rotated by exp(f).

Compliant forces: s = max(-gap, 0) is how deep shapes are in each other, u the velocity of the first
at the place of contact relative to the second. The normal force is ``k s^1.5 (1 + c s')`` and never
pulls, the friction ``-mu f u_t / sqrt(u_t^2 + slip^2)``. Torsional and rolling friction are moments
of the same form, with ``c w`` in place of u_t for the coefficient c and the angular velocity w.
Source: Hunt and Crossley, J. Applied Mechanics 42, 1975.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.checks import check_positive, check_shape, check_that, check_type
from archimedes.function import compile, vmap
from archimedes.function.recording_store import Current, compile_frozen, find_or_make
from archimedes.multibody.algorithms.configurations import integrate, own_links
from archimedes.multibody.algorithms.inverse_dynamics import rnea
from archimedes.multibody.algorithms.kinematics import frame_jacobian, frame_twist, world_pose
from archimedes.multibody.algorithms.limits import FAR, HeldRows, free_velocities, held_rows
from archimedes.multibody.algorithms.links import Forces, external_forces
from archimedes.multibody.algorithms.mass_matrix import (
    Factors,
    check_inertia_of_joints,
    sweep_from_base,
    sweep_to_base,
)
from archimedes.multibody.algorithms.passive_forces import FRICTION_SPEED, passive_torque
from archimedes.multibody.contact import impulses
from archimedes.multibody.contact.collision import (
    Meeting,
    Touch,
    materials_of,
    meetings_of,
    moving_frames,
    touches,
)
from archimedes.multibody.contact.contact_result import contact_result
from archimedes.multibody.contact.contact_shapes import MATERIAL, Contacts, Ground, Pair
from archimedes.multibody.contact.free_bodies import (
    MANY,
    MOST_BODIES,
    PER_KIND,
    SPEED_UP,
    Bodies,
    ResponseOfMany,
    are_free_bodies,
    body_pose,
    farthest_point,
    find_touches,
    kind_of,
    rows_of,
    unit_mobility,
)
from archimedes.multibody.contact.hulls import tangents
from archimedes.multibody.contact.impulses_of_many import IN_LOOPS
from archimedes.multibody.parts.height_field import HeightField
from archimedes.multibody.parts.joints import LinearMap, Map
from archimedes.multibody.parts.ranges import known_zero
from archimedes.multibody.systems.constraints import (
    Holds,
    check_closures,
    check_single,
    mass_factors,
    solve_mass,
    solve_singular,
)
from archimedes.multibody.systems.dynamics import DrivenState, State, check_is_state
from archimedes.spatial.attitudes.rotvec import rotvec_to_dcm, so3_left_jacobian
from archimedes.spatial.components import cross, skew
from archimedes.tree import replace
from archimedes.typing import Array, ArrayLike, Matrix, Scalar, Vec3, Vector

if TYPE_CHECKING:
    from archimedes.multibody.models.model import Model

__all__ = ["contact_forces", "contact_step"]


#: How fast, in m/s, contacts may part to open what rounding has closed; redundant contacts at rest
#: then agree with each other.
CREEP = 1e-6
#: The most that friction counts, a slope of 89.4 deg: infinity times an impulse of zero is nan, and
#: contacts of a face that brace themselves against each other without limit lift it.
ENDLESS = 100.0
#: A function that returns the normal of a touch and two directions across it, as rows.
Axes: TypeAlias = "Callable[[Touch], Matrix]"


def contact_step(
    model: Model,
    x: State,
    step: float,
    contacts: Sequence[Contacts] = (),
    ground: Ground | None = None,
    u: ArrayLike | None = None,
    forces: Forces = None,
    *,
    pairs: Sequence[Pair] = (),
    restitution: Scalar = 0.0,
    closures: Sequence[Holds] = (),
    recovery: Scalar = 0.2,
    limits: bool = True,
    full_output: bool = False,
) -> Any:
    """Return the state after a step with exact Coulomb friction and without penetration.

    The step is semi-implicit Euler. Impulses are found so that contacts stick or slide as the
    friction cone requires, joints stay within their limits, those with friction stick or move, and
    loops stay closed. They are found together: a foot on the ground carries a knee at its stop.
    Stops do not bounce. Passive forces act; damping of joints acts with the velocity after the
    step. Derivatives are those of the equations that the impulses solve: exact for a step whose
    contacts and joints stay open, sticking or sliding as they are.

    Parameters
    ----------
    model : Model
        The robot.
    x : State
        Configuration and velocity.
    step : float
        Length of the step in s.
    contacts : sequence of Contacts, optional
        Shapes that touch the ground.
    ground : Ground, optional
        The ground. None by default.
    u : array (nv,), optional
        Torques of the joints, zero by default. With `actuators`, their commands (n,).
    forces : mapping or array (..., bodies, 6), optional
        External forces on bodies: by name, or in the order of `body_names`. Each acts at the origin
        of the body, in its axes, linear part first. None by default.
    pairs : sequence of Pair, optional
        Pairs of shapes that touch each other.
    restitution : float, optional
        Coefficient of restitution, 0 by default.
    closures : sequence of Closure or Coupling, optional
        Constraints that hold, such as ``model.closures``. Rows may be redundant.
    recovery : float, optional
        Fraction of a penetration, and of a violation of closures, that is removed in a step, 0.2 by
        default.
    limits : bool, optional
        Whether joints stay within their limits. True by default.
    full_output : bool, optional
        Whether to return a `ContactResult` too: contact forces, what limits and dry friction of
        joints do, and whether all of these laws hold to rounding. False by default.

    Returns
    -------
    State or tuple of State and ContactResult
        The state after the step.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Ground, State, contact_step, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> x = State(neutral(ball) + np.array([0, 0, 0.1, 0, 0, 0, 0]), np.zeros(6))
    >>> x = contact_step(ball, x, 1e-3, [sphere("ball", 0.1)], Ground())
    >>> np.abs(x.v).max() < 1e-12
    np.True_
    """
    check_is_state(x)
    check_positive(step, "step, in s,")
    if isinstance(x, DrivenState):
        why = "contact_step moves no activations; step them and give u=actuator_torque(...)"
        raise TypeError(f"x must be a State(q=x.q, v=x.v), got a DrivenState: {why}")
    for value, name in ((restitution, "restitution"), (recovery, "recovery")):
        check_that(lambda x: (x >= 0.0) & (x <= 1.0), value, name, "must be between 0 and 1")
    check_type(limits, "limits", bool, "False switches the limits of joints off")
    check_type(full_output, "full_output", bool, "True returns a ContactResult too")
    q, v = check_single(model, x.q, "q"), check_single(model, x.v, "v")
    if (many := free_meetings(model, contacts, ground, pairs, closures)) is not None:
        given = FreeStep(model, many, step, restitution, recovery, full_output)
        u = None if u is None else check_single(model, u, "u")
        return step_free_bodies(given, State(q, v), u, forces)
    finish = partial(end_step, model, q, step, full_output)
    held = held_rows(model, q, limits)
    nothing = not contacts and not pairs
    alone = held if nothing else None
    points = []
    if alone is None and not (nothing and closures):
        points = touches(model, q, contacts, ground, pairs)
    check_shape(np.asarray(restitution), "restitution, of all or each point,", (), (len(points),))
    smooth = replace(model, friction=np.where(free_velocities(model), model.friction, 0.0))
    if model.tendons is not None:
        sliding = replace(model.tendons, friction=0.0 * model.tendons.friction)
        smooth = replace(smooth, tendons=sliding)
    torques = passive_torque(smooth, q, v)
    if u is not None:
        torques = check_single(model, u, "u") + torques
    viscous = viscosity(smooth, v)
    loops = loop_rows(model, closures, q, v, step)
    mass = Mobility(mass_factors(model, q, None if viscous is None else step * viscous), loops)
    freely = accelerate_freely(model, q, v, torques, forces, mass, step)
    if loops is not None:
        freely = mass.close(v, freely)
    if alone is not None:
        after, moved, acted = hold_rows(v + step * freely, mass, alone, step, recovery)
        weight = np.sum(model.masses)  # rows have the unit of a root of energy, as `residual` says
        return finish(
            after, moved, acted._replace(scale=np.sqrt(np.where(weight > 0, weight, 1.0)))
        )
    if not points:
        after = v + step * freely
        return finish(after, mass.return_to_loops(step * after, recovery))
    gap = np.stack([touch.gap for touch in points])
    mu = friction_of([touch.material for touch in points])
    m, each = impulses.sizes_of(mu)
    J = contact_rows(model, q, points)
    if each > 3:
        turns = turning_rows(model, q, points)[:, : each - 3]
        J = np.concatenate([J.reshape(m, 3, -1), turns], axis=1).reshape(each * m, -1)
    n = each * m
    scale: Any = 1.0
    if held is not None:  # in the units of its rows
        scale = np.sqrt(np.sum(model.masses))
        J, gap = scale * J, scale * gap
    soft = mass.response(J if held is None else np.concatenate([J, held.J]))
    # A bounce takes no time, in which damping could act; without one both are one implicit step.
    hard = soft if held is None else soft.first(n)
    if viscous is not None and not known_zero(restitution):
        hard = Mobility(mass_factors(model, q), loops).response(J)
    at = Closing(J, J[::each], gap, mu)
    impact = take_impacts(at, hard, v, freely, step, restitution)
    before = impact.before
    if held is None:
        pushes = impulses.cone_impulses(soft.G, impact.open_at, mu)
        solved = impulses.Solved(soft.G, impact.open_at, mu, pushes)
    else:
        both, own = np.concatenate([impact.open_at, held.J @ before]), rates_within(held, step)
        pushes = impulses.mixed_impulses(soft.G, both, mu, own)
        solved = impulses.Solved(soft.G, both, mu, pushes, own)
    after = before + soft.velocities(pushes)
    moved = mass.return_to_loops(step * after - impact.late, recovery)
    if not known_zero(recovery):
        left = reduce_penetration(gap + at.normals @ moved, recovery)
        which = [*range(0, n, each), *range(n, soft.G.shape[0])]
        if held is None:
            lifts = impulses.normal_impulses(soft.normals(each), left)
        else:
            ways = ways_within(held, held.J @ moved, recovery)
            ways = impulses.Rows(
                np.concatenate([-left, ways.low]),
                np.concatenate([0.0 * left + FAR, ways.high]),
                np.concatenate([0.0 * left, ways.friction]),
            )
            lifts = impulses.row_impulses(soft.G[which][:, which], 0.0 * ways.low, ways)
        moved = moved + soft.velocities(lifts, which)
    acted = Acted([*impact.solved, solved], impact.knocked + pushes[:n], mu, scale, points)
    if held is not None:
        acted = acted._replace(torque=held.J.T @ pushes[n:])
    return finish(after, moved, acted)


class Acted(NamedTuple):
    """What acted in a step: the solved problems, and impulses of contacts (n,) and joints (nv,).

    Dividing velocities of the problems by `scale` gives m/s.
    """

    solved: list[impulses.Solved]
    impulse: Any = ()
    mu: Any = None
    scale: Any = 1.0
    points: Sequence[Touch] = ()
    torque: Any = None


def end_step(
    model: Model,
    q: Vector,
    step: float,
    full_output: bool,
    after: Vector,
    moved: Vector,
    acted: Acted | None = None,
) -> Any:
    """Return the state after a step, and a `ContactResult` where it is asked for."""
    x = step_to(model, q, after, moved)
    if not full_output:
        return x
    solved, impulse, mu, scale, points, torque = acted or Acted([])
    m = len(points)
    columns = (
        np.stack([touch.gap for touch in points]) if m else np.zeros(0),
        np.stack([touch.normal for touch in points]) if m else np.zeros((0, 3)),
        np.stack([touch.point for touch in points]) if m else np.zeros((0, 3)),
    )
    axes = np.stack([contact_axes(touch) for touch in points]) if m else np.zeros((0, 3, 3))
    impulse = scale * impulse if m else np.zeros(0)
    torque = 0.0 * after if torque is None else torque
    frames = [(touch.first, touch.second) for touch in points]
    return x, contact_result(solved, columns, axes, impulse, mu, torque, frames, step, scale)


def free_meetings(
    model: Model,
    contacts: Sequence[Contacts],
    ground: Ground | None,
    pairs: Sequence[Pair],
    closures: Sequence[Holds],
) -> list[Meeting] | None:
    """Return what may touch where a model is many free bodies, whose step is made of loops."""
    if not all(isinstance(x, (list, tuple)) for x in (contacts, pairs)):
        return None  # `touches` says so
    if len(contacts) + len(pairs) < MANY or not 1 < len(model.links) <= MOST_BODIES:
        return None
    if closures or not are_free_bodies(model):
        return None
    many = meetings_of(model, contacts, ground, pairs)
    # Which cells of a height field are in reach must be known of each shape by itself.
    fields = [isinstance(getattr(ground, "height", None), HeightField)]
    fields += [x.kind == "heightfield" for one in many for x in one[:2] if x is not None]
    if any(fields):
        return None
    kinds = len({kind_of(one) for one in many})
    return many if len(many) >= max(MANY, PER_KIND * kinds) else None


class FreeStep(NamedTuple):
    """What a step of free bodies needs to know besides their state and what acts on them."""

    model: Model
    many: list[Meeting]
    step: float
    restitution: Scalar
    recovery: Scalar
    full_output: bool


def step_free_bodies(given: FreeStep, x: State, u: Vector | None, forces: Forces) -> Any:
    """Return the state of free bodies after a step, whose program is loops over bodies."""
    n = len(given.model.links)
    each = [x.q.reshape(n, 7), x.v.reshape(n, 6)]
    if u is not None or forces is not None:
        each.append(0.0 * each[1] if u is None else u.reshape(n, 6))
    if forces is not None:
        by_link = external_forces(given.model, forces)
        acting = [by_link[k].array if k in by_link else np.zeros(6) for k in range(n)]
        each.append(np.stack([1.0 * f for f in acting]))

    def run(*each: Array) -> tuple[Any, ...]:
        return one_step_of_free_bodies(given, *each)

    q, v, *result = find_or_make("contact_step", (run,), None, record_in_loops)(*each)
    after = State(q.ravel(), v.ravel())
    return (after, *result) if given.full_output else after


def record_in_loops(current: Current) -> Callable[..., Any]:
    """Return the current function, recorded as loops over arrays."""

    def run(*each: Array) -> Any:
        return current.functions[0](*each)

    return compile_frozen(run, [current], "contact_step", loops_from=IN_LOOPS)


def one_step_of_free_bodies(
    given: FreeStep, q: Matrix, v: Matrix, *acting: Array
) -> tuple[Any, ...]:
    """Return configurations (n, 7) and velocities (n, 6) after a step, as `contact_step` has it.

    Third a `ContactResult` where it is asked for.
    """
    model, many, step, restitution, recovery, full_output = given
    check_inertia_of_joints(model)
    bodies = Bodies(model)
    freely, T, R, p = bodies.each(partial(free_motion, step=step), q, v, *acting)
    extent = farthest_point(model, many)
    fastest = [np.max(length_of(x[:, :3]) + extent * length_of(x[:, 3:])) for x in (v, freely)]
    touched = find_touches(model, many, R, p, SPEED_UP * step * (fastest[0] + step * fastest[1]))
    check_shape(np.asarray(restitution), "restitution, of all or each point,", (), (touched.total,))
    if np.ndim(restitution):
        restitution = np.concatenate([restitution, np.zeros(1)])[touched.places].ravel()
    mu = np.repeat(friction_of(touched.materials), touched.places.shape[1], axis=0)
    J = rows_of(touched, R, p, impulses.sizes_of(mu)[1])
    response = ResponseOfMany(J, T, touched.near)
    at = Closing(J, J.normals(), touched.gaps.ravel(), mu)
    speeds = v.ravel(), freely.ravel()
    impact = take_impacts(at, response, *speeds, step, restitution)
    pushes = impulses.cone_impulses(response.G, impact.open_at, mu)
    after = impact.before + response.velocities(pushes)
    moved = step * after - impact.late
    if not known_zero(recovery):
        left = reduce_penetration(at.gap + at.normals @ moved, recovery)
        lifts = impulses.normal_impulses(response.normals(), left)
        moved = moved + response.normal_velocities(lifts)

    def end(model: Model, q: Vector, after: Vector, moved: Vector) -> tuple[Vector, Vector]:
        x = step_to(model, q, after, moved)
        return x.q, x.v

    ends = bodies.each(end, q, after.reshape(v.shape), moved.reshape(v.shape))
    if not full_output:
        return ends
    solved = [*impact.solved, impulses.Solved(response.G, impact.open_at, mu, pushes)]
    # Contacts as `touches` lists them: where among the places of meetings each of them is.
    order = np.argsort(touched.places, axis=None, kind="stable")[: touched.total]
    normals, points = (x.reshape(-1, 3)[order] for x in (touched.normals, touched.points))
    listed = touched.gaps.ravel()[order], normals, points
    axes = vmap(lambda n: np.stack([n, *tangents(n)]))(normals)
    impulse = (impact.knocked + pushes).reshape(mu.shape[0], -1)[order].ravel()
    friction, torque = mu[: touched.total], 0.0 * after
    result = contact_result(solved, listed, axes, impulse, friction, torque, touched.frames, step)
    return *ends, result


def length_of(x: Matrix) -> Vector:
    """Return the lengths (n,) of vectors (n, 3)."""
    return np.sqrt(np.sum(x * x, axis=1))


def free_motion(
    model: Model, q: Vector, v: Vector, *acting: Vector, step: float
) -> tuple[Any, ...]:
    """Return a body's acceleration without contact in axes that stand still, T and its pose.

    On it act torques (6,) of its joint and an external force (6,), if there are any.
    """
    u = acting[0] if acting else np.zeros(6)
    forces = acting[1][None] if len(acting) > 1 else None
    factors = mass_factors(model, q)
    mass = Mobility(factors, None)
    freely = accelerate_freely(model, q, v, u, forces, mass, step)
    return freely, unit_mobility(factors), *body_pose(model, q)


def accelerate_freely(
    model: Model, q: Vector, v: Vector, torques: Vector, forces: Forces, mass: Mobility, step: float
) -> Vector:
    """Return accelerations (nv,) without contact, in axes that stand still.

    What goes with velocities squared is taken at the middle of the step: at its start it would give
    energy to all that spins, by the square of its speed.
    """
    at_start = rnea(model, q, v, np.zeros(model.nv), forces)
    first = mass.solve(torques - at_start)
    middle = v + 0.5 * step * first
    change = at_start - rnea(model, q, middle, np.zeros(model.nv), forces)
    return standing_still(model, first + mass.solve(change), middle)


class Closing(NamedTuple):
    """Contacts: rows J of velocities, `normals` of these, gaps (m,) and friction (m, ...)."""

    J: Any
    normals: Any
    gap: Any
    mu: Any


class Impacts(NamedTuple):
    """What impacts did: velocities (nv,) after them, but before forces, at which contacts close.

    `late` is the way (nv,) that impacts within the step come too late for, `knocked` their impulses
    (n,).
    """

    before: Any
    open_at: Any
    late: Any
    knocked: Any
    solved: list[impulses.Solved]


def take_impacts(
    at: Closing, hard: Any, v: Vector, freely: Vector, step: float, restitution: Scalar
) -> Impacts:
    """Return impacts; `hard` is how the robot responds to impulses that take no time."""
    _, each = impulses.sizes_of(at.mu)
    falling = step * (at.normals @ freely)
    closing = at.normals @ v
    impact = impulses.impacts(hard.normals(each), closing, at.gap, falling, step, restitution)
    knocked, solved = impulses.knocks(hard.G, at.J @ v, at.mu, impact, restitution)
    before = v + hard.velocities(knocked) + step * freely
    reach = np.where(impact.hit, 0.0, np.maximum(at.gap / step, -CREEP))
    open_at = at.J @ before + impulses.spread(reach, each)
    late = hard.velocities(np.repeat(impact.late, each) * knocked)
    return Impacts(before, open_at, late, knocked, solved)


def reduce_penetration(gaps: Vector, recovery: Scalar) -> Vector:
    """Return gaps (m,) after a way, of which a part is taken back where they are negative."""
    return np.where(gaps > 0.0, gaps, recovery * gaps)


def step_to(model: Model, q: Vector, after: Vector, moved: Vector) -> State:
    """Return the state after a way and with velocities (nv,) in axes that stood still."""
    reached = integrate(model, q, straight_on(model, moved))
    return State(reached, seen_after(model, after, moved))


class LoopRows(NamedTuple):
    """Rows K (k, nv) of closures, by how much (k,) they are violated, and how fast `rate` (k,).

    A step with ``K v' = rate`` ends where the violation is, to the third order of the step.
    """

    K: Any
    error: Any
    rate: Any
    step: float


def loop_rows(
    model: Model, closures: Sequence[Holds], q: Vector, v: Vector, step: float
) -> LoopRows | None:
    """Return the rows of closures, None if there are none."""
    if isinstance(closures, (list, tuple)) and not closures:
        return None
    every = check_closures(model, closures)
    K = np.concatenate([c.rows(q) for c in every])
    bend = np.concatenate([c.bias(q, v) for c in every])
    bend = bend - K @ standing_still(model, np.zeros(model.nv), v)
    return LoopRows(K, np.concatenate([c.error(q) for c in every]), -0.5 * step * bend, step)


class Mobility:
    """The inverse of the mass matrix, of a robot whose loops stay closed."""

    def __init__(self, factors: Factors, loops: LoopRows | None) -> None:
        self.factors = factors
        self.loops: Any = loops
        if loops is not None:
            self.across = solve_mass(factors, loops.K.T)
            self.inverse = solve_singular(loops.K @ self.across, np.eye(loops.K.shape[0]))

    def solve(self, impulse: Vector) -> Vector:
        """Return by how much an impulse (nv,) changes velocities."""
        return self.finish(sweep_to_base(self.factors, list(impulse)))

    def finish(self, half: Sequence[Any]) -> Vector:
        """Return by how much an impulse changes velocities, after the sweep to the base."""
        x = np.stack(sweep_from_base(self.factors, half))
        return x if self.loops is None else self.release(x, self.loops.K @ x)

    def response(self, J: Matrix) -> Response:
        """Return how the robot responds to impulses along rows (n, nv)."""
        half = np.stack(sweep_to_base(self.factors, list(J.T)))
        scaled = np.stack(self.factors.inverse_D)[:, None] * half
        G = symmetric_product(half, scaled)
        if self.loops is not None:
            off = self.across.T @ J.T
            G = G - off.T @ (self.inverse @ off)
        return Response(self, half, G)

    def release(self, x: Array, off: Array) -> Any:
        """Return velocities less the least, in energy, by which their rates in the rows are off."""
        return x - self.across @ (self.inverse @ off)

    def close(self, v: Vector, a: Vector) -> Vector:
        """Return accelerations (nv,) with which a step keeps loops closed, of those without."""
        K, step = self.loops.K, self.loops.step
        return self.release(a, (K @ (v + step * a) - self.loops.rate) / step)

    def return_to_loops(self, moved: Vector, recovery: Scalar) -> Vector:
        """Return a way (nv,) that takes back a part of what loops are violated by at its end."""
        if self.loops is None or known_zero(recovery):
            return moved
        end = self.loops.error + self.loops.K @ moved - self.loops.step * self.loops.rate
        return self.release(moved, recovery * end)


class Response(NamedTuple):
    """How a robot responds to impulses: rates of their rows, G (n, n), and velocities.

    Of each row only what lies between it and the base is in `half` (nv, n), so that G takes few
    products: ``J M^-1 J' = half' D^-1 half``.
    """

    mass: Mobility
    half: Any
    G: Any

    def normals(self, each: int) -> Matrix:
        """Return G of the normals of contacts alone."""
        return self.G[::each, ::each]

    def first(self, n: int) -> Response:
        """Return that of the first n rows."""
        return Response(self.mass, self.half[:, :n], self.G[:n, :n])

    def velocities(self, impulses: Vector, which: Sequence[int] | None = None) -> Vector:
        """Return by how much impulses along all rows, or some, change velocities (nv,)."""
        half = self.half if which is None else self.half[:, which]
        return self.mass.finish(list(half @ impulses))


def hold_rows(
    before: Vector, mass: Mobility, held: HeldRows, step: float, recovery: Scalar
) -> tuple[Vector, Vector, Acted]:
    """Return velocities (nv,) within limits and against dry friction, the way (nv,), what acts."""
    response = mass.response(held.J)
    b, rates = held.J @ before, rates_within(held, step)
    pushes = impulses.row_impulses(response.G, b, rates)
    after = before + response.velocities(pushes)
    moved = mass.return_to_loops(step * after, recovery)
    if not known_zero(recovery):
        own = ways_within(held, held.J @ moved, recovery)
        moved = moved + response.velocities(impulses.row_impulses(response.G, 0.0 * own.low, own))
    solved = impulses.Solved(response.G, b, None, pushes, rates)
    return after, moved, Acted([solved], torque=held.J.T @ pushes)


def rates_within(held: HeldRows, step: float) -> impulses.Rows:
    """Return which rates (n,) lead beyond no limit in a step, and impulses of dry friction."""
    low, high = np.minimum(held.low, 0.0) / step, np.maximum(held.high, 0.0) / step
    return impulses.Rows(low, high, step * held.friction)


def ways_within(held: HeldRows, moved: Vector, recovery: Scalar) -> impulses.Rows:
    """Return how far rows (n,) may go on after a way, and must where they are beyond a limit."""
    low, high = held.low - moved, held.high - moved
    low = np.where(low > 0.0, recovery * low, low)
    high = np.where(high < 0.0, recovery * high, high)
    return impulses.Rows(low, high, 0.0 * low)


#: Products of so many factors are unrolled, and leave out zeros.
UNROLLED = 4000
#: The product as a loop over all entries: the code of larger ones would take long to compile.
matrix_product = compile(lambda a, b: a @ b, name="matrix_product")


def symmetric_product(a: Matrix, b: Matrix) -> Matrix:
    """Return a' b for two matrices (nv, n) whose product is symmetric."""
    nv, n = a.shape
    if n * n * nv > UNROLLED:
        return matrix_product(a.T, b)
    full = np.outer(a[0], b[0])
    for k in range(1, nv):
        full = full + np.outer(a[k], b[k])
    i, j = np.indices((n, n))
    return full[np.maximum(i, j), np.minimum(i, j)]


def viscosity(model: Model, v: Vector) -> Vector | None:
    """Return d (nv,) with ``-d v`` the damping and smooth friction of joints, or None for none.

    Taken with the velocity after the step they slow joints down however large they are, where with
    that before it they would turn them back, faster and faster.
    """
    if known_zero(model.friction):
        return None if known_zero(model.damping) else model.damping + 0.0 * v
    slow = np.abs(v) < 1e-9 * FRICTION_SPEED
    speed = np.where(slow, 1.0, v)
    rate = np.where(slow, 1.0 / FRICTION_SPEED, np.tanh(speed / FRICTION_SPEED) / speed)
    return model.damping + model.friction * rate


def friction_of(materials: Sequence[Any]) -> Array:
    """Return the friction (m,) of contacts, (m, 2) with torsional, (m, 3) with rolling friction."""
    keys = ["friction"]
    if not all(known_zero(x.torsional) and known_zero(x.rolling) for x in materials):
        keys.append("torsional")
    if not all(known_zero(x.rolling) for x in materials):
        keys.append("rolling")
    columns = []
    for key in keys:
        each = [np.asarray(getattr(material, key)) * 1.0 for material in materials]
        columns.append(np.stack([np.minimum(friction, ENDLESS) for friction in each]))
    return columns[0] if len(columns) == 1 else np.stack(columns, axis=1)


def contact_rows(
    model: Model, q: Vector, points: Sequence[Touch], axes_of: Axes | None = None
) -> Matrix:
    """Return the matrix (3 m, nv) of the velocities of the first shapes relative to the second.

    Along the normals, and `tangents` unless `axes_of` returns other axes (3, 3), as rows.
    """
    axes_of = axes_of or contact_axes
    jacobians: dict[str, Any] = {}
    rows = []
    for touch in points:
        at_point = np.zeros((3, model.nv))
        for frame, sign in moving_frames(model, touch):
            if frame not in jacobians:
                jacobians[frame] = frame_jacobian(model, q, frame, "aligned")
            arm = touch.point - world_pose(model, q, frame).p
            J = jacobians[frame]
            at_point = at_point + sign * (J[:3] - skew(arm) @ J[3:])
        rows.append(axes_of(touch) @ at_point)
    return np.concatenate(rows)


def contact_axes(touch: Touch) -> Matrix:
    """Return the normal of a touch and two tangents, as rows."""
    return np.stack([touch.normal, *tangents(touch.normal)])


def turning_rows(
    model: Model, q: Vector, points: Sequence[Touch], axes_of: Axes | None = None
) -> Array:
    """Return the matrices (m, 3, nv) of the angular velocities of the first shapes to the second.

    About the axes of `contact_rows`.
    """
    axes_of = axes_of or contact_axes
    jacobians: dict[str, Any] = {}
    rows = []
    for touch in points:
        turn = np.zeros((3, model.nv))
        for frame, sign in moving_frames(model, touch):
            if frame not in jacobians:
                jacobians[frame] = frame_jacobian(model, q, frame, "aligned")[3:]
            turn = turn + sign * jacobians[frame]
        rows.append(axes_of(touch) @ turn)
    return np.stack(rows)


# ---- velocities in axes that stand still during a step -------------------------------------------


def standing_still(model: Model, a: Vector, v: Vector) -> Vector:
    """Return the rates (nv,) of velocities in axes that stand still, of those in the child's."""
    return a + map_velocities(model, v, v, lambda v, w: cross(w, v), lambda v: 0.0 * v)


def straight_on(model: Model, moved: Vector) -> Vector:
    """Return what `integrate` takes (nv,) for a way (nv,) in axes that stand still."""
    return map_velocities(model, moved, moved, lambda v, f: so3_left_jacobian(f, inverse=True) @ v)


def seen_after(model: Model, v: Vector, moved: Vector) -> Vector:
    """Return velocities (nv,) in the child's axes after a way (nv,), of those that stood still."""
    return map_velocities(model, v, moved, lambda v, f: rotvec_to_dcm(f) @ v)


def map_velocities(
    model: Model, v: Vector, turn: Vector, linear: LinearMap, other: Map = lambda v: v
) -> Vector:
    """Return velocities (nv,): linear ones in axes that rotate by `linear`, others by `other`.

    A linear velocity of a free or planar joint is in the axes of the child, which rotate by `turn`.
    """
    parts = []
    for link in own_links(model):
        own = link.v_slice
        parts += link.kind.map_linear(v[own], turn[own], linear, other)
    return np.concatenate(parts)


# ---- compliant forces, for solvers that choose their own steps ----------------------------------


def contact_forces(
    model: Model,
    q: ArrayLike,
    v: ArrayLike,
    contacts: Sequence[Contacts] = (),
    ground: Ground | None = None,
    *,
    pairs: Sequence[Pair] = (),
) -> dict[str, Vector]:
    """Return the compliant contact forces on bodies, for `forces` of `rnea`, `aba`, `dynamics`.

    Each contact point is a spring of its own: a box on a face has four, a capsule along a box
    three. The forces are smooth in q and v, except where shapes first touch (the first derivative
    is continuous there) and where a box is touched at another of its faces.

    Parameters
    ----------
    model : Model
        The robot.
    q : array (..., nq)
        Configuration.
    v : array (..., nv)
        Velocity in m/s and rad/s.
    contacts : sequence of Contacts, optional
        Shapes that touch the ground.
    ground : Ground, optional
        The ground. None by default.
    pairs : sequence of Pair, optional
        Pairs of shapes that touch each other.

    Returns
    -------
    dict
        Forces (6,) by the name of the body.

    Examples
    --------
    >>> import numpy as np
    >>> from archimedes.multibody import Builder, Ground, contact_forces, neutral, sphere
    >>> b = Builder()
    >>> b.add_body("ball", mass=1.0, inertia=[0.1, 0.1, 0.1])
    >>> ball = b.build(base="floating")
    >>> q = neutral(ball)
    >>> q[2] = 0.1 - 1e-4
    >>> contact_forces(ball, q, np.zeros(6), [sphere("ball", 0.1)], Ground())["ball"].round(6)
    array([0., 0., 1., 0., 0., 0.])
    """
    q, v = check_single(model, q, "q"), check_single(model, v, "v")
    for material in materials_of(ground, pairs):
        for key in MATERIAL:
            name, rigid = f"{type(material).__name__} {key}", "contact_step is for rigid bodies"
            check_that(np.isfinite, getattr(material, key), name, f"must be finite here ({rigid})")
    total: dict[str, Any] = {}
    twists: dict[str, Any] = {}
    for touch in touches(model, q, contacts, ground, pairs):
        moving = moving_frames(model, touch)
        speed, spin = np.zeros(3), np.zeros(3)
        for frame, sign in moving:
            if frame not in twists:
                twists[frame] = frame_twist(model, q, v, frame, "aligned")
            arm = touch.point - world_pose(model, q, frame).p
            speed = speed + sign * (twists[frame][:3] + cross(twists[frame][3:], arm))
            spin = spin + sign * twists[frame][3:]
        push = touch.share * compliant(touch.gap, touch.normal, speed, touch.material)
        moment = resisting_moment(np.sum(push * touch.normal), touch.normal, spin, touch.material)
        for frame, sign in moving:
            name = body_of(model, frame)
            body = world_pose(model, q, name)
            f = sign * push
            turning = cross(touch.point - body.p, f)
            if moment is not None:
                turning = turning + sign * moment
            force = np.concatenate([body.R.T @ f, body.R.T @ turning])
            total[name] = total[name] + force if name in total else force
    return total


def compliant(d: Scalar, n: Vec3, speed: Vec3, material: Ground | Pair) -> Vec3:
    """Return the force (3,) on the first shape."""
    inside = np.maximum(-d, 0.0)
    along = np.sum(speed * n)
    push = material.stiffness * inside * np.sqrt(np.where(inside > 0.0, inside, 1.0))
    push = push * np.maximum(1.0 - material.dissipation * along, 0.0)
    sliding = speed - along * n
    size = np.sqrt(np.sum(sliding * sliding) + material.slip_speed**2)
    return push * (n - material.friction * sliding / size)


def resisting_moment(push: Scalar, n: Vec3, spin: Vec3, material: Ground | Pair) -> Vec3 | None:
    """Return the moment (3,) on the first shape of torsional and rolling friction, if any."""
    about = np.sum(spin * n) * n
    parts = []
    for arm, turn in ((material.torsional, about), (material.rolling, spin - about)):
        if not known_zero(arm):
            size = np.sqrt(np.sum(turn * turn) * arm**2 + material.slip_speed**2)
            parts.append(-(push * arm**2) * turn / size)
    return sum(parts[1:], parts[0]) if parts else None


def body_of(model: Model, frame: str) -> str:
    """Return the body that a frame is on."""
    link = model.frames[model.frame(frame)].link
    if not model.links[link].body:
        raise ValueError(f"contacts of frame {frame!r}: its body does not move")
    return model.links[link].body
