"""Impulses in friction cones: sweeps over the contacts, Newton's method, and exact derivatives.

Legend: contact i has the impulse l = (n, t), a normal and two tangents, and the velocity
u = G l + b. Coulomb's law: ``n = max(n - r u_n, 0)`` and t is the point of the disk of radius mu n
nearest to ``z = t - s u_t``, for any r, s > 0. So a contact is open (l = 0), sticks (u = 0) or
slides (u_n = 0, t = mu n z / |z|), and in each case F = 0 is smooth: its slope A in l makes steps
of Newton's method, ``A dl = -dF`` the derivatives of the solution (implicit function theorem).
Contacts of a flat face are redundant, and A is singular: any solution gives the same velocities.

Where materials have it, spinning about the normal and rolling are resisted as sliding is: l is
(n, t, s, r) with a moment s about the normal, within mu_s n, and two of rolling r, within a disk of
radius mu_r n. Each obeys a law of its own, as that of t, with its own angular velocities for u_t.

Joints are rows of one number each: u stays between low and high, and dry friction resists with up
to d. With z = u - r l the velocity that a row would have by itself, r its mobility, it has
``u = clip(soft(z, r d), low, high)``, where soft moves a number towards zero by so much, and l is
what that takes. A row is held (u is 0, low or high) or moves (l = -d or d, 0 without friction).
Sources: Alart and Curnier, Computer Methods in Applied Mechanics and Engineering 92, 1991; Acary
and Brogliato, Numerical Methods for Nonsmooth Dynamical Systems, 2008, sections 3.9, 13.3 and 13.7.

Elastic impacts: how fast contacts come apart, of many bodies at once.

Legend: r = J v are normal speeds, of which those that close within the step are reflected, all at
once; whoever closes then is reflected next, and so on until nobody does (generalised reflections).
A ball that hits a row of balls at rest so sends off the last one, and the others stay; two balls
that hit from both sides are treated alike. With friction such a speed may need more energy than
there was (Kane's puzzle): impulses then go back towards those of an impact without a bounce, which
only take energy, as far as needed.
Sources: Smith, Kaufman, Vouga, Tamstorf and Grinspun, Reflections on simultaneous impact, ACM
Transactions on Graphics 31, 2012; Kane and Levinson, Dynamics: Theory and Applications, 1985,
section 5.8 (a bounce that gains energy).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from archimedes.function import (
    compile,
    custom_jvp,
    fori_loop,
    scan,
    stop_gradient,
    vmap,
    while_loop,
)
from archimedes.multibody.parts.ranges import known_zero
from archimedes.optimize.small.linear_algebra import times
from archimedes.spatial.components import cross
from archimedes.typing import Array, Matrix, Scalar, Vector

#: Done when Coulomb's law holds up to this part of the largest impulse, or after so many sweeps,
#: in rounds with one step of Newton's method each, which is kept where it is nearer. Where it is
#: not, the next one goes to where the first impulse ends only, or is damped.
SETTLED, MOST_SWEEPS = 1e-13, 4800
#: Sweeps in a round: fewer where a few contacts make Newton's method cheap beside them.
SWEEPS, FEW_SWEEPS = 8, 4
#: Given up after so many sweeps in which it has not come nearer by a tenth. Where contacts are
#: about to slide they come nearer slowly, but all the way.
PATIENCE, NEARER = 480, 0.9
#: What counts as nothing, in m/s times the root of kg: impulses that small make no difference.
FLOOR = 3e-12
#: So much is added to the diagonal of equations of size one, and taken off again so often.
DAMPING, REFINEMENTS = 1e-10, 3
#: Where that leads away, redundant contacts contradict each other, and so much is added: the step
#: goes on until one of them opens.
PROXIMAL = 1e-3
#: The least that a contact's mobility counts, of the largest: one that cannot move stays as it is.
LEAST = 1e-12
#: Sweeps over more contacts, and elimination of more blocks, are loops, not written out.
WRITTEN_OUT = 4
#: A contact whose friction is within so much of its most slides already.
AT_THE_EDGE = 1e-9
#: How far Newton's method goes: all the way, until the first impulse ends, or damped.
FULL, TO_FIRST, DAMPED = 0.0, 1.0, 2.0
#: A function of impulses.
Step: TypeAlias = "Callable[..., Any]"


#: Where of an impulse what resists is: sliding, spinning about the normal, rolling.
GROUPS = ((1, 3), (3, 4), (4, 6))


def sizes_of(mu: Array) -> tuple[int, int]:
    """Return how many contacts there are, and how many numbers each has.

    Of sliding alone `mu` is (m,), else it is (m, 2) with spinning and (m, 3) with rolling too.
    """
    return mu.shape[0], GROUPS[0 if mu.ndim == 1 else mu.shape[1] - 1][1]


def resistances(mu: Array) -> list[tuple[int, int, Any]]:
    """Return of what resists where it is of an impulse, first and end, and its coefficients."""
    columns = [mu] if mu.ndim == 1 else [mu[..., k] for k in range(mu.shape[-1])]
    return [(*where, each) for where, each in zip(GROUPS, columns)]


def cone_impulses(G: Matrix | Mobilities, b: Vector, mu: Array) -> Vector:
    """Return impulses (3 m,) in cones of friction `mu` (m,) with velocities ``G l + b``.

    With `mu` (m, 2) or (m, 3) they have 4 or 6 numbers each.
    """
    if isinstance(G, Mobilities):
        w, mu = contact_units(G.diagonal(), mu)
        return w * G.scale(w).cone_impulses(w * b, mu)
    w, mu = contact_units(np.diag(G), mu)
    return w * cone_kernel(w[:, None] * G * w, w * b, mu)


class Mobilities:
    """A matrix G that is known by its products: what solvers ask of it.

    `impulses_of_many` has one of many bodies, of which each contact touches two.
    """

    def diagonal(self) -> Vector:
        """Return the diagonal (n,)."""
        raise NotImplementedError

    def scale(self, w: Vector) -> Mobilities:
        """Return that in other units (n,) of impulses."""
        raise NotImplementedError

    def __matmul__(self, l: Vector) -> Vector:
        """Return velocities (n,) of impulses (n,)."""
        raise NotImplementedError

    def cone_impulses(self, b: Vector, mu: Array) -> Vector:
        """Return impulses (n,) in cones of friction, in units in which the diagonal is one."""
        raise NotImplementedError

    def off_law(self, b: Vector, mu: Array, l: Vector) -> Matrix:
        """Return by how much impulses (m, each) are off Coulomb's law, in these units."""
        raise NotImplementedError

    def normal_impulses(self, b: Vector) -> Vector:
        """Return normal impulses (n,), in units in which the diagonal is one."""
        raise NotImplementedError


def contact_units(size: Vector, mu: Array, rows: int = 0) -> tuple[Vector, Array]:
    """Return `units` of contacts, and of rows after them, and friction in these units.

    `size` is the diagonal of G. Impulses of one contact have one unit, but for moments, which have
    theirs.
    """
    m, each = sizes_of(mu)
    own = size[: each * m : each]
    if each == 3 and not rows:
        return np.repeat(units(own), 3), mu
    if each == 3:
        return units(np.concatenate([np.repeat(own, 3), size[3 * m :]])), mu
    columns = [own, own, own, size[3 : each * m : each]]
    if each == 6:
        columns += [np.maximum(size[4 : 6 * m : 6], size[5 : 6 * m : 6])] * 2
    w = units(np.concatenate([np.stack(columns, axis=1).ravel(), size[each * m :]]))
    first = w[: each * m : each]
    scaled = [c * first / w[at : each * m : each] for at, _, c in resistances(mu)]
    return w, np.stack(scaled, axis=1)


def normal_impulses(G: Matrix | Mobilities, b: Vector) -> Vector:
    """Return impulses l (m,) >= 0 with ``G l + b`` zero where l is not, else not negative."""
    if isinstance(G, Mobilities):
        w = units(G.diagonal())
        return w * G.scale(w).normal_impulses(w * b)
    w = units(np.diag(G))
    return w * normal_kernel(w[:, None] * G * w, w * b)


def units(size: Vector) -> Vector:
    """Return units (m,) of impulses in which the diagonal of G is one: masses may differ much."""
    least = np.maximum(size, LEAST * np.max(size))
    return 1.0 / np.sqrt(np.where(least > 0.0, least, 1.0))  # one where no contact can move


class Rows(NamedTuple):
    """Of rows of one number each: bounds of their velocities (n,) and the most of dry friction."""

    low: Any
    high: Any
    friction: Any


class Solved(NamedTuple):
    """Impulses l that were found for velocities ``G l + b``, friction and rows (None for none)."""

    G: Any
    b: Any
    mu: Any
    l: Any
    rows: Any = None

    def speed_off(self) -> Scalar:
        """Return by how much velocities are off the laws of contacts and rows, in units of b."""
        G, b, mu, l, rows = self
        m, each = (0, 3) if mu is None else sizes_of(mu)
        size, n = G.diagonal() if isinstance(G, Mobilities) else np.diag(G), each * m
        w = units(size)
        if mu is not None:
            w, mu = contact_units(size, mu, size.shape[0] - n)
        l, b = l / w, w * b
        off: list[Any] = []
        if isinstance(G, Mobilities):
            off = [(G.scale(w).off_law(b, mu, l) / w[:n:each, None]).ravel()]
        else:
            G = w[:, None] * G * w
            u = times(G, l) + b
            if mu is not None:
                off = [(cones_off(u, l, mu, paces(G, mu)) / w[:n:each, None]).ravel()]
            if rows is not None:
                own = w[n:]
                limits = Rows(own * rows.low, own * rows.high, rows.friction / own)
                off.append(row_slopes(u[n:], l[n:], limits)[1] / own)
        return np.max(np.abs(np.concatenate(off)))


def row_impulses(G: Matrix, b: Vector, rows: Rows) -> Vector:
    """Return impulses (n,) of rows with velocities ``G l + b``."""
    w = units(np.diag(G))
    low, high, friction = rows
    return w * row_kernel(w[:, None] * G * w, w * b, w * low, w * high, friction / w)


def mixed_impulses(G: Matrix, b: Vector, mu: Array, rows: Rows) -> Vector:
    """Return impulses (3 m + n,) of contacts and of rows with velocities ``G l + b``."""
    m, each = sizes_of(mu)
    w, mu = contact_units(np.diag(G), mu, rows.low.shape[0])
    own = w[each * m :]
    low, high, friction = rows
    bounds = own * low, own * high, friction / own
    return w * mixed_kernel(w[:, None] * G * w, w * b, mu, *bounds)


@custom_jvp
def unit_cone_impulses(G: Matrix, b: Vector, mu: Array) -> Vector:
    """Return `cone_impulses` where the diagonal of G is one at the normals."""
    rows, pace = roll_rows(G, sizes_of(mu)[1]), paces(G, mu)
    return solve_cones(
        lambda l: times(G, l) + b,
        lambda l, u: sweep_contacts(rows, mu, pace, l, u),
        lambda l, u, way: newton_step(G, u, mu, l, way, pace),
        lambda l, u: np.max(np.abs(cones_off(u, l, mu, pace))),
        b,
        mu.shape[0],
    )


@custom_jvp
def unit_normal_impulses(G: Matrix, b: Vector) -> Vector:
    """Return `normal_impulses` where the diagonal of G is one."""
    rows = roll_rows(G, 1)

    def step(l: Vector, u: Vector, way: Scalar) -> Vector:
        shut = l - u > 0.0
        A, off = normal_rows(G, shut), np.where(shut, -u, -l)
        change = solve_by_blocks(A, off, damping_of(way))
        return np.maximum(l + part_of(way, ends_of_pushes(l, change)) * change, 0.0)

    return solve_cones(
        lambda l: times(G, l) + b,
        lambda l, u: sweep_contacts(rows, None, [], l, u),
        step,
        lambda l, u: np.max(np.abs(l - np.maximum(l - u, 0.0))),
        b,
        b.shape[0],
    )


@custom_jvp
def unit_row_impulses(G: Matrix, b: Vector, low: Vector, high: Vector, friction: Vector) -> Vector:
    """Return `row_impulses` where the diagonal of G is one."""
    rows, own = roll_rows(G, 1), Rows(low, high, friction)

    def step(l: Vector, u: Vector, way: Scalar) -> Vector:
        moves, off = row_slopes(u, l, own)
        change = solve_by_blocks(held_rows(G, moves), -off, damping_of(way))
        return l + part_of(way, ends_of_rows(l, change, own)) * change

    return solve_cones(
        lambda l: times(G, l) + b,
        lambda l, u: sweep_rows(rows, own, l, u),
        step,
        lambda l, u: np.max(np.abs(row_slopes(u, l, own)[1])),
        b,
        b.shape[0],
    )


@custom_jvp
def unit_mixed_impulses(
    G: Matrix, b: Vector, mu: Array, low: Vector, high: Vector, friction: Vector
) -> Vector:
    """Return `mixed_impulses` where the diagonal of G is one at normals and rows."""
    (m, each), own = sizes_of(mu), Rows(low, high, friction)
    m3 = each * m
    contacts, rows = roll_rows(G, each, m3), roll_rows(G, 1, first=m3)
    pace = paces(G, mu)

    def sweep(l: Vector, u: Vector) -> tuple[Vector, Vector]:
        return sweep_rows(rows, own, *sweep_contacts(contacts, mu, pace, l, u))

    def step(l: Vector, u: Vector, way: Scalar) -> Vector:
        at = linearise(G, u, mu, l, pace)
        moves, off = row_slopes(u[m3:], l[m3:], own)
        A = np.concatenate([at.A.reshape(m3, -1), held_rows(G, moves, m3)])
        right = -np.concatenate([at.F.ravel(), off])
        change = solve_by_blocks(A, right, damping_of(way), (m, each))
        ends = ends_of_contacts(l[:m3], change[:m3], mu)
        ends = np.concatenate([ends, ends_of_rows(l[m3:], change[m3:], own)])
        moved = l + part_of(way, ends) * change
        L = moved[:m3].reshape(-1, each)
        return np.concatenate([np.where(L[:, :1] > 0.0, L, 0.0).ravel(), moved[m3:]])

    def off(l: Vector, u: Vector) -> Scalar:
        left = np.max(np.abs(row_slopes(u[m3:], l[m3:], own)[1]))
        return np.maximum(np.max(np.abs(cones_off(u, l, mu, pace))), left)

    return solve_cones(lambda l: times(G, l) + b, sweep, step, off, b, m + low.shape[0])


def solve_cones(
    velocities: Step, sweep: Step, newton: Step, off: Step, b: Vector, blocks: int
) -> Vector:
    """Return impulses of so many contacts and rows at which Coulomb's law holds, from zero on.

    All functions take impulses l, and all but the first their velocities u too. A sweep returns
    both as they are after it, but for rounding.
    """
    sweeps = SWEEPS if blocks > WRITTEN_OUT else FEW_SWEEPS

    def one_round(state: tuple[Any, ...]) -> tuple[Any, ...]:
        before, u, _, way, reached, waited = state
        l, _ = fori_loop(0, sweeps, lambda _, x: sweep(*x), (before, u))
        u = velocities(l)
        other = newton(l, u, way)
        other_u = velocities(other)
        left, other_left = off(l, u), off(other, other_u)
        nearer = other_left < left
        l, u, left = (
            np.where(nearer, x, y) for x, y in ((other, l), (other_u, u), (other_left, left))
        )
        way = np.where(nearer | (way == DAMPED), FULL, way + 1.0)
        gained = left < NEARER * reached
        reached, waited = np.where(gained, left, reached), np.where(gained, 0.0, waited + sweeps)
        return l, u, left, way, reached, waited

    def goes_on(state: tuple[Any, ...]) -> Any:
        l, _, left, _, _, waited = state
        return (left > settled_at(l)) & (waited < PATIENCE)

    start, none = 0.0 * b, 0.0 * b[0]
    first = off(start, b)
    state = (start, b, first, none + FULL, first, none)
    return while_loop(goes_on, one_round, state, max_steps=MOST_SWEEPS // sweeps)[0]


def damping_of(way: Scalar) -> Any:
    """Return what is added to the diagonal of the equations of Newton's method."""
    return np.where(way == DAMPED, PROXIMAL, DAMPING)


def part_of(way: Scalar, ends: Vector) -> Any:
    """Return which part of a step of Newton's method is gone, given those where impulses end.

    Of constraints that are nearly redundant, all feet on the ground and all knees at their stops,
    the step is long and many impulses would pull at its end. Only the first should go.
    """
    return np.where(way == TO_FIRST, np.min(ends), 1.0)


def ends_of_pushes(l: Vector, change: Vector) -> Vector:
    """Return the part of a change at which each impulse (m,) along a normal is zero, at most 1."""
    ends = (l > 0.0) & (l + change < 0.0)
    return np.where(ends, l / np.where(ends, -change, 1.0), 1.0)


def ends_of_contacts(l: Vector, change: Vector, mu: Array) -> Vector:
    """Return the part of a change at which each contact opens, or begins to slide, spin or roll."""
    sizes = sizes_of(mu)
    L, D = l.reshape(sizes), change.reshape(sizes)
    ends = [ends_of_pushes(L[:, 0], D[:, 0])]
    for first, stop, most in resistances(mu):
        # Where |t + s dt| = mu (n + s dn): a s^2 + 2 b s + c = 0, with c < 0 within the cone.
        t, dt, n, dn = L[:, first:stop], D[:, first:stop], most * L[:, 0], most * D[:, 0]
        a = np.sum(dt * dt, axis=1) - dn * dn
        b = np.sum(t * dt, axis=1) - n * dn
        c = np.sum(t * t, axis=1) - n * n
        sticks = c < -AT_THE_EDGE * n * n
        root = b + np.sqrt(np.maximum(b * b - a * c, 0.0))
        leaves = sticks & (root > -c)
        ends.append(np.where(leaves, -c / np.where(leaves, root, 1.0), 1.0))
    return np.concatenate(ends)


def ends_of_rows(l: Vector, change: Vector, own: Rows) -> Vector:
    """Return the part of a change at which each row (n,) leaves its bound or begins to slide."""
    side = np.where(np.abs(l) > own.friction, np.sign(l), np.sign(change))
    left = side * own.friction - l
    ends = (left * change > 0.0) & (np.abs(left) < np.abs(change))
    return np.where(ends, left / np.where(ends, change, 1.0), 1.0)


def settled_at(l: Vector) -> Scalar:
    """Return by how much impulses may be off Coulomb's law."""
    return np.maximum(SETTLED * np.max(np.abs(l)), FLOOR)


def roll_rows(G: Matrix, size: int, stop: int | None = None, first: int = 0) -> Array:
    """Return the rows (m, size, n) of each contact, its own columns first, in a round."""
    n = G.shape[0]
    rows = np.arange(n)[first:stop].reshape(-1, size, 1)
    columns = (rows[:, :1] + np.arange(n)) % n
    return G[rows, columns]


def sweep_contacts(
    rows: Array, mu: Any, pace: list[Vector], l: Vector, u: Vector
) -> tuple[Vector, Vector]:
    """Return impulses and velocities after each contact in turn has taken the others' as given.

    The contact whose turn it is comes first, and then goes to the end. `pace` is that of `paces`,
    and `mu` is None of normals alone.
    """
    count, size, _ = rows.shape

    def one(state: tuple[Any, Any], item: tuple[Any, ...]) -> tuple[Any, Any]:
        (l, u), (R, *own) = state, item
        most, *own_pace = own or [None]
        new = settle_contact(u[:size], R[:, :size], l[:size], most, own_pace)
        u = u + (new - l[:size]) @ R
        return tuple(np.concatenate([x[size:], y]) for x, y in ((l, new), (u, u[:size]))), None

    items = (rows, *(() if mu is None else (mu, *pace)))
    if count > WRITTEN_OUT:
        return scan(one, (l, u), items)[0]
    for i in range(count):
        (l, u), _ = one((l, u), tuple(x[i] for x in items))
    return l, u


def settle_contact(u: Vector, own: Matrix, l: Vector, mu: Any, pace: Sequence[Any]) -> Vector:
    """Return the impulse of a contact with velocity u, the others' as they are.

    First along its normal, then across it. `own` is its block of G; without `mu` it is a normal.
    """
    parts: list[Any] = [np.maximum(l[0] - u[0], 0.0)]
    if mu is None:
        return np.stack(parts)
    for (first, stop, most), r in zip(resistances_of_one(mu), pace, strict=True):
        moved = np.stack(parts) - l[:first]
        across = u[first:stop] + own[first:stop, :first] @ moved
        parts += in_ball(l[first:stop] - r * across, most * parts[0])
    return np.stack(parts)


def resistances_of_one(mu: Array) -> list[tuple[int, int, Any]]:
    """Return `resistances` of one contact, () or (2,) or (3,)."""
    columns = [mu] if np.ndim(mu) == 0 else [mu[k] for k in range(mu.shape[0])]
    return [(*where, each) for where, each in zip(GROUPS, columns)]


def in_ball(z: Vector, radius: Scalar) -> tuple[Any, ...]:
    """Return the numbers nearest to one or two (n,) that are within a radius around zero."""
    if z.shape[0] == 1:
        return (np.minimum(np.maximum(z[0], -radius), radius),)
    return in_disk(z[0], z[1], radius)


def sweep_rows(rows: Array, own: Rows, l: Vector, u: Vector) -> tuple[Vector, Vector]:
    """Return what `sweep_contacts` does, of rows."""

    def one(state: tuple[Any, Any], item: tuple[Any, ...]) -> tuple[Any, Any]:
        (l, u), (row, *limits) = state, item
        z = u[0] - l[0]
        new = row_velocity(z, Rows(*limits)) - z
        u = u + (new - l[0]) * row[0]
        return tuple(np.concatenate([x[1:], y[None]]) for x, y in ((l, new), (u, u[0]))), None

    if rows.shape[0] > WRITTEN_OUT:
        return scan(one, (l, u), (rows, *own))[0]
    for i in range(rows.shape[0]):
        (l, u), _ = one((l, u), (rows[i], *(x[i] for x in own)))
    return l, u


def row_velocity(z: Scalar, own: Rows) -> Any:
    """Return the velocities of rows that would have z by themselves."""
    slowed = z - np.minimum(np.maximum(z, -own.friction), own.friction)
    return np.minimum(np.maximum(slowed, own.low), own.high)


def row_slopes(u: Vector, l: Vector, own: Rows) -> tuple[Vector, Vector]:
    """Return which rows move, not held by friction or at a bound, and by how much l is off."""
    z = u - l
    slowed = z - np.minimum(np.maximum(z, -own.friction), own.friction)
    # At z = 0 a row without friction moves: friction of zero holds nothing.
    moves = (np.abs(z) >= own.friction) & (slowed > own.low) & (slowed < own.high)
    return moves, u - row_velocity(z, own)


def held_rows(G: Matrix, moves: Array, first: int = 0) -> Matrix:
    """Return the slope (n, N) of what rows are off, in all impulses."""
    return np.where(moves[:, None], np.eye(G.shape[0])[first:], G[first:])


def row_tangent(du: Vector, l: Vector, u: Vector, own: Rows, change: Rows) -> Vector:
    """Return by how much rows are off for changes of their velocities and limits."""
    moves, _ = row_slopes(u, l, own)
    z = u - l
    slowed = z - np.minimum(np.maximum(z, -own.friction), own.friction)
    bound = np.where(slowed <= own.low, change.low, 0.0)
    bound = np.where(slowed >= own.high, change.high, bound)
    return np.where(moves, np.sign(z) * change.friction, du - bound)


def pace_of(p: Scalar, q: Scalar, r: Scalar) -> Any:
    """Return the inverse of the larger eigenvalue of [[p, r], [r, q]]: the pace that settles."""
    # Solutions do not depend on it, and a root of zero has no derivative.
    half, apart, r = (stop_gradient(x) for x in (0.5 * (p + q), 0.5 * (p - q), r))
    return 1.0 / np.maximum(half + np.sqrt(apart * apart + r * r), LEAST)


def in_disk(x: Scalar, y: Scalar, radius: Scalar) -> tuple[Any, Any]:
    """Return the point of a disk around zero nearest to (x, y)."""
    size = np.sqrt(np.maximum(x * x + y * y, 1e-300))
    shrink = np.minimum(radius / size, 1.0)
    return shrink * x, shrink * y


def cones_off(u: Vector, l: Vector, mu: Array, pace: list[Vector]) -> Matrix:
    """Return by how much impulses of contacts (m, 3) are off Coulomb's law."""
    m, each = sizes_of(mu)
    m3 = each * m
    if m3 < u.shape[0]:
        u, l = u[:m3], l[:m3]
    return off_law(u.reshape(-1, each), l.reshape(-1, each), mu, pace)


def off_law(u: Matrix, L: Matrix, mu: Array, pace: list[Vector]) -> Matrix:
    """Return by how much impulses L (m, 3) of contacts with velocities u (m, 3) are off."""
    push = np.maximum(L[:, 0] - u[:, 0], 0.0)
    columns = [push]
    for (first, stop, most), r in zip(resistances(mu), pace, strict=True):
        z = L[:, first:stop] - r[:, None] * u[:, first:stop]
        columns += in_ball(z.T, most * push)
    return L - np.stack(columns, axis=1)


def paces(G: Matrix, mu: Array) -> list[Vector]:
    """Return `pace_of` (m,) of what resists of each contact, for each way in which it does."""
    m, each = sizes_of(mu)
    G = G[: each * m, : each * m] if each * m < G.shape[0] else G
    size, beside = np.diag(G), np.diag(G, 1)
    all_paces = [pace_of(size[1::each], size[2::each], beside[1::each])]
    if each > 3:
        all_paces.append(1.0 / np.maximum(size[3::each], LEAST))
    if each > 4:
        all_paces.append(pace_of(size[4::each], size[5::each], beside[4::each]))
    return all_paces


class Linearised(NamedTuple):
    """Of each contact F (3,), its slope A (3, n) in all impulses, and what dF is made of.

    The last three are lists, of sliding and, where there are, of spinning and rolling.
    """

    A: Any
    F: Any
    shut: Any
    slides: Any
    bend: Any
    along: Any


def linearise(G: Matrix, u: Vector, mu: Array, l: Vector, pace: list[Vector]) -> Linearised:
    """Return F and its slope at impulses with velocities u; arrays with a row per contact."""
    n, (m, each) = u.shape[0], sizes_of(mu)
    m3, eye = each * m, np.eye(n)
    if m3 < n:  # rows of joints follow the contacts
        u, l, eye = u[:m3], l[:m3], eye[:m3]
    rows = G[:m3] if m3 < n else G
    blocks = (rows.reshape(-1, each, n), eye.reshape(-1, each, n), l.reshape(-1, each))
    rest: tuple[Any, ...] = (u.reshape(-1, each), mu, pace, normal_rates(G, mu))
    return Linearised(*vmap(contact_slope)(*blocks, *rest))


def normal_rates(G: Matrix, mu: Array) -> Matrix:
    """Return the normal velocity (m, 3) per impulse of each contact along its normal and across."""
    m, each = sizes_of(mu)
    return np.stack([np.diag(G, k)[: each * m : each] for k in range(3)], axis=1)


def contact_slope(
    rows: Matrix, eye: Matrix, l: Vector, u: Vector, mu: Array, pace: list[Scalar], own: Vector
) -> tuple[Any, ...]:
    """Return what `Linearised` has of one contact, whose rows of G and of ones are (3, n).

    `own` is its row of `normal_rates`.
    """
    push = l[0]
    shut = push - u[0] > 0.0
    A, F = [rows[:1]], [u[:1]]
    parts: list[tuple[Any, Any, Any]] = []
    for (first, stop, most), r in zip(resistances_of_one(mu), pace, strict=True):
        part = slice(first, stop)
        z = l[part] - r * u[part]
        length = np.sqrt(np.maximum(np.sum(z * z), 1e-300))
        slides = length > most * push
        inverse = 1.0 / length
        w = inverse * z
        if first == 1:  # where sliding presses it on by more than it is pushed away, it jams
            slides = slides & (own[0] + most * np.sum(own[1:] * w) > 0.0)
        bend = most * push * inverse * (np.eye(stop - first) - w[:, None] * w[None, :])
        sliding = eye[part] - most * w[:, None] * eye[:1] - bend @ (eye[part] - r * rows[part])
        A.append(np.where(slides, sliding, rows[part]))
        F.append(np.where(slides, l[part] - most * push * w, u[part]))
        parts.append((slides, r * bend, push * w))
    slope, off = np.where(shut, np.concatenate(A), eye), np.where(shut, np.concatenate(F), l)
    return slope, off, shut, *([*part] for part in zip(*parts))


def newton_step(G: Matrix, u: Vector, mu: Array, l: Vector, way: Scalar, pace: list[Vector]) -> Any:
    """Return impulses after a step of Newton's method; pulls are cut off."""
    at, sizes = linearise(G, u, mu, l, pace), sizes_of(mu)
    change = solve_by_blocks(at.A.reshape(G.shape), -at.F.ravel(), damping_of(way), sizes)
    L = (l + part_of(way, ends_of_contacts(l, change, mu)) * change).reshape(sizes)
    return np.where(L[:, :1] > 0.0, L, 0.0).ravel()


@unit_cone_impulses.defjvp
def cone_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    """Return dl of dG, db, dmu."""
    (G, b, mu), (dG, db, dmu) = primals, tangents
    l = unit_cone_impulses(G, b, mu)
    at = linearise(G, times(G, l) + b, mu, l, paces(G, mu))
    dF = contact_tangent(at, times(dG, l) + db, dmu)
    return l, solve_damped(at.A.reshape(G.shape), -dF)


def contact_tangent(at: Linearised, du: Vector, dmu: Array) -> Vector:
    """Return by how much contacts (3 m,) are off for changes of velocities and friction."""
    m, each = sizes_of(dmu)
    du = du.reshape(m, each)
    parts = [du[:, :1]]
    found = zip(resistances(dmu), at.slides, at.bend, at.along, strict=True)
    for (first, stop, change), slides, bend, along in found:
        own = du[:, first:stop]
        across = (bend @ own[:, :, None])[:, :, 0] - change[:, None] * along
        parts.append(np.where(slides[:, None], across, own))
    return np.where(at.shut[:, None], np.concatenate(parts, axis=1), 0.0).ravel()


@unit_row_impulses.defjvp
def rows_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    """Return dl of dG, db and the limits of rows."""
    (G, b, *limits), (dG, db, *changes) = primals, tangents
    l, own = unit_row_impulses(G, b, *limits), Rows(*limits)
    u = times(G, l) + b
    dF = row_tangent(times(dG, l) + db, l, u, own, Rows(*changes))
    return l, solve_damped(held_rows(G, row_slopes(u, l, own)[0]), -dF)


@unit_mixed_impulses.defjvp
def mixed_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    """Return dl of dG, db, dmu and the limits of rows."""
    (G, b, mu, *limits), (dG, db, dmu, *changes) = primals, tangents
    l, own = unit_mixed_impulses(G, b, mu, *limits), Rows(*limits)
    m, each = sizes_of(mu)
    m3 = each * m
    u, du = times(G, l) + b, times(dG, l) + db
    at = linearise(G, u, mu, l, paces(G, mu))
    dF = [contact_tangent(at, du[:m3], dmu)]
    dF.append(row_tangent(du[m3:], l[m3:], u[m3:], own, Rows(*changes)))
    A = [at.A.reshape(m3, -1), held_rows(G, row_slopes(u[m3:], l[m3:], own)[0], m3)]
    return l, solve_damped(np.concatenate(A), -np.concatenate(dF))


@unit_normal_impulses.defjvp
def normal_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Vector, Vector]:
    """Return dl of dG, db."""
    (G, b), (dG, db) = primals, tangents
    l = unit_normal_impulses(G, b)
    shut = l > 0.0
    du = np.where(shut, -(times(dG, l) + db), 0.0)
    return l, solve_damped(normal_rows(G, shut), du)


def normal_rows(G: Matrix, shut: Array) -> Matrix:
    """Return the matrix of the equations of dl."""
    return np.where(shut[:, None], G, np.eye(G.shape[0]))


def solve_damped(A: Matrix, right: Vector) -> Any:
    """Return x with ``A x = right``, one of them where A is singular."""
    eye = np.eye(A.shape[0])
    inverse = np.linalg.solve(A + DAMPING * eye, eye)
    x = times(inverse, right)
    for _ in range(REFINEMENTS):
        x = x + times(inverse, right - times(A, x))
    return x


def solve_by_blocks(
    A: Matrix, right: Vector, damping: Scalar, sizes: tuple[int, int] = (0, 1)
) -> Any:
    """Return x with ``(A + damping I) x = right``, for a step of Newton's method.

    The first rows are those of contacts, `sizes` (their number, numbers each); the others are
    blocks of their own. Blocks are eliminated in turn and no rows exchanged: a contact by itself,
    or a row, has a solution, and where others spoil it, sweeps go on alone.
    """
    (m, each), n = sizes, A.shape[0]
    A = A + damping * np.eye(n)
    spans = [slice(each * k, each * (k + 1)) for k in range(m)]
    spans += [slice(k, k + 1) for k in range(each * m, n)]
    if len(spans) > WRITTEN_OUT:
        W = np.concatenate([A, right[:, None]], axis=1)
        W = eliminate_in_loop(W, 0, m, each)
        return eliminate_in_loop(W, each * m, n - each * m, 1)[:, n]
    rows = [[A[i, j] for j in spans] + [right[i, None]] for i in spans]
    for k, own in enumerate(rows):
        inverse = invert_block(own[k])
        own[k + 1 :] = [inverse @ block for block in own[k + 1 :]]
        for row in rows[k + 1 :]:
            row[k + 1 :] = [x - row[k] @ y for x, y in zip(row[k + 1 :], own[k + 1 :], strict=True)]
    x: list[Any] = []
    for k, own in reversed(list(enumerate(rows))):
        x.insert(0, own[-1] - sum(B @ y for B, y in zip(own[k + 1 : -1], x, strict=True)))
    return np.concatenate(x)[:, 0]


def eliminate_in_loop(W: Matrix, first: int, count: int, each: int) -> Matrix:
    """Return rows (n, columns) in which so many blocks from a row on are eliminated."""
    if not count:
        return W
    numbers = np.arange(W.shape[0])

    def one(W: Matrix, k: Array) -> tuple[Matrix, None]:
        own = first + each * k + np.arange(each)
        beside, pivots = np.take(W, own, axis=1), np.take(W, own, axis=0)
        pivots = invert_block(np.take(pivots, own, axis=1)) @ pivots
        return W - (beside - (numbers[:, None] == own)) @ pivots, None

    return scan(one, W, np.arange(count))[0]


def invert_block(B: Matrix) -> Matrix:
    """Return the inverse of the block of a contact (3, 3), (4, 4), (6, 6), or of a row (1, 1)."""
    if B.shape[0] == 1:
        return 1.0 / B
    if B.shape[0] > 3:
        return np.linalg.inv(B)
    columns = np.stack([cross(B[1], B[2]), cross(B[2], B[0]), cross(B[0], B[1])], axis=1)
    return columns / (B[0] @ columns[:, 0])


#: Numbers take the way that recordings take: the loops are native code.
cone_kernel, normal_kernel = compile(unit_cone_impulses), compile(unit_normal_impulses)
row_kernel, mixed_kernel = compile(unit_row_impulses), compile(unit_mixed_impulses)


#: Reflections per contact at most; a row of n balls takes n.
REFLECTIONS = 4
#: What comes together more slowly than anything falls in so many steps does not bounce: it lands.
SLOW = 2.0
#: A speed that never closes.
NEVER = 1e30
#: A gain of energy that is rounding, of what an impact exchanges.
ROUNDING = 1e-12


class Impact(NamedTuple):
    """Of each contact whether it is hit, its speed after that, what it fell till then, and when."""

    hit: Any
    parting: Any
    fallen: Any
    late: Any


def impacts(
    G: Matrix | Mobilities,
    speeds: Vector,
    gaps: Vector,
    falling: Vector,
    step: float,
    restitution: Scalar,
) -> Impact:
    """Return which contacts (m,) are hit within a step, how fast they part, what falls, and when.

    `G` (m, m) are normal speeds per normal impulse, `speeds` (m,) those before the step, and
    `falling` (m,) is by how much they change in it by themselves. Until the impact a contact falls
    on, and that speed, which the step adds once more, is given back with the impact: a bounce keeps
    its energy to the second order of the step.
    """
    pulled = np.where(gaps > 0.0, np.minimum(falling, 0.0), 0.0)
    hit = closing(speeds, gaps, falling, step)
    arriving = np.where(hit, -speeds, 0.0)
    parting = 0.0 * speeds
    if not known_zero(restitution):
        hit, arriving, parting = rebounds(G, speeds, gaps, falling, step)
    hit = hit & (arriving > -SLOW * np.minimum(np.min(falling), 0.0))
    speed = arriving - pulled
    moving = hit & (gaps > 0.0) & (speed > 0.0)
    late = np.where(moving, gaps, 0.0) / np.where(moving, speed, 1.0)
    late = np.minimum(late, step)
    fallen = -pulled * late / step
    return Impact(hit, restitution * (parting + fallen), fallen, late)


def knocks(
    G: Matrix | Mobilities, u: Vector, mu: Array, impact: Impact, restitution: Scalar
) -> tuple[Vector, list[Solved]]:
    """Return the impulses (3 m,) of impacts at velocities `u` (3 m,), which never give energy.

    `impact` is that of `impacts`. Second what was solved for them.
    """

    (hit, parting, fallen, _), (_, each) = impact, sizes_of(mu)
    solved: list[Solved] = []

    def impulses(speeds: Vector, wanted: Array) -> Vector:
        b = u - spread(np.where(wanted, speeds + fallen, -NEVER), each)
        solved.append(Solved(G, b, mu, cone_impulses(G, b, mu)))
        return solved[-1].l

    k = impulses(parting, hit)
    if known_zero(restitution):
        return k, solved
    arriving = u - spread(fallen, each)
    gains = energy_gain(G, arriving, k) > ROUNDING * np.sum(np.abs(k * arriving))
    # Where nothing is gained no contact is hit, and there is nothing to solve.
    dull = impulses(0.0 * parting, hit & gains)
    rest = k - dull
    # Of the gain, convex along the way from dull to k, the zero: c <= 0 and a >= 0.
    a, c = 0.5 * np.sum(rest * (G @ rest)), np.minimum(energy_gain(G, arriving, dull), 0.0)
    b = np.sum(rest * (arriving + G @ dull))
    root = np.sqrt(np.where(gains, b * b - 4.0 * a * c, 1.0))
    # The same root twice, each without a difference of what is nearly equal.
    above, below = np.where(b < 0.0, root - b, -2.0 * c), np.where(b < 0.0, 2.0 * a, b + root)
    share = np.where(gains, above / np.where(gains, below, 1.0), 1.0)
    return dull + share * rest, solved


def energy_gain(G: Matrix | Mobilities, u: Vector, k: Vector) -> Scalar:
    """Return the energy that impulses (n,) give at velocities `u` (n,) before them."""
    return np.sum(k * (u + 0.5 * (G @ k)))


def spread(normals: Vector, each: int = 3) -> Vector:
    """Return numbers (m,) as the normal parts of (3 m,), or of `each` numbers a contact."""
    zero = 0.0 * normals
    return np.stack([normals] + (each - 1) * [zero], axis=1).ravel()


def closing(speeds: Vector, gaps: Vector, falling: Vector, step: float) -> Array:
    """Return which contacts (m,) come together and close within the step."""
    return (speeds < 0.0) & (gaps + step * (speeds + np.minimum(falling, 0.0)) < 0.0)


def rebounds(
    G: Matrix | Mobilities, speeds: Vector, gaps: Vector, falling: Vector, step: float
) -> tuple[Array, Vector, Vector]:
    """Return which contacts are hit, how fast they came together, and how fast they part."""

    def reflect(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        r, hit, arriving = state
        now = closing(r, gaps, falling, step)
        arriving = np.where(now & (hit < 0.5), -r, arriving)
        impulses = normal_impulses(G, np.where(now, r, NEVER))
        return r + 2.0 * (G @ impulses), np.where(now, 1.0, hit), arriving

    def anybody(state: tuple[Any, Any, Any]) -> Any:
        return np.any(closing(state[0], gaps, falling, step))

    start = (speeds, 0.0 * speeds, 0.0 * speeds)
    r, hit, arriving = while_loop(anybody, reflect, start, max_steps=REFLECTIONS * gaps.shape[0])
    return hit > 0.5, arriving, np.maximum(r, 0.0)
