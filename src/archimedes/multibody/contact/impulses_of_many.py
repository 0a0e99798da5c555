"""Impulses of contacts between many bodies: every contact touches two, and most touch nothing.

Legend: a meeting is up to four contacts of the same two bodies a and b. A body's velocity is in
units in which its mass matrix is one, so that the rows Y (contacts, 12) of a meeting, six columns
for each body, are all there is: ``G = Y Y'``, which is never formed. Impulses l change velocities
by z = Y' l, the sum over a body's meetings, and contacts close at the rates Y z. A sweep carries z
from meeting to meeting; those that are far apart are left out.

Newton's method: the slope of Coulomb's law is ``A = P + Q G`` with a block of P and Q for each
contact. With D = P + damping and y = Y' dl, ``(P + damping + Q Y Y') dl = r`` becomes
``(1 + Y' D^-1 Q Y) y = Y' D^-1 r`` and ``dl = D^-1 (r - Q Y y)``: as many unknowns as bodies have
velocities, however many contacts they have (the matrix inversion lemma). D is tiny where contacts
stick; what rounding then leaves is taken off by refinement. The matrix of a robot of n bodies is
put together of one block for each two that meet.
Sources: as `impulses`; Golub and Van Loan, Matrix Computations, 4th edition, section 2.1.4 (the
lemma of Sherman, Morrison and Woodbury).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from archimedes.function import compile, cond, custom_jvp, fori_loop, scan, vmap
from archimedes.multibody.contact import impulses
from archimedes.typing import Array, Matrix, Scalar, Vector

#: So often rounding is taken off a step of Newton's method, and off derivatives.
REFINEMENTS, MORE_REFINEMENTS = 1, 3
#: Arrays over bodies and contacts are loops however few there are; what is done for one of them
#: is unrolled.
IN_LOOPS, UNROLLED = 2, 64


def for_each(f: Callable[..., Any], in_axes: Any = 0) -> Callable[..., Any]:
    """Return a map over rows whose body is unrolled."""
    return vmap(compile(f, loops_from=UNROLLED), in_axes=in_axes)


class Meetings:
    """Which bodies meet: their numbers a, b (p,), of n bodies; n stands for the world.

    Never changed. `ends` (n, k) are the meetings of each body: twice the number of the meeting, and
    one more where the body is its second. `own` (n, k) and `across` (layers, n, n) are the blocks
    of Newton's matrix, four of each meeting. The last one, 2 p or 4 p, is none.
    """

    __slots__ = ("a", "across", "b", "digest", "ends", "n", "own")

    def __init__(self, a: Array, b: Array, n: int) -> None:
        self.a, self.b, self.n = a, b, n
        p = len(a)
        ends: list[list[int]] = [[] for _ in range(n)]
        across: dict[tuple[int, int], list[int]] = {}
        for k, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
            for end, body in enumerate((i, j)):
                if body < n:
                    ends[body].append(2 * k + end)
            if max(i, j) < n:  # of meeting k the blocks are aa, ab, ba, bb
                across.setdefault((i, j), []).append(4 * k + 1)
                across.setdefault((j, i), []).append(4 * k + 2)
        most = max(map(len, ends))
        self.ends = np.array([own + [2 * p] * (most - len(own)) for own in ends])
        self.own = np.where(self.ends < 2 * p, 4 * (self.ends // 2) + 3 * (self.ends % 2), 4 * p)
        self.across = np.full((max(map(len, across.values()), default=0), n, n), 4 * p)
        for (i, j), layers in across.items():
            self.across[: len(layers), i, j] = layers
        self.digest = hashlib.blake2b(
            repr((n, p)).encode() + a.tobytes() + b.tobytes(), digest_size=16
        ).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Meetings) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __content__(self) -> tuple[bytes]:
        return (self.digest,)


class MobilitiesOfMany(impulses.Mobilities):
    """``G = Y Y'``: rows Y (p, c each, 12) of meetings, and which are `near` (p,), 1 or 0."""

    def __init__(self, meetings: Meetings, Y: Array, near: Array, each: int) -> None:
        self.meetings, self.Y, self.near, self.each = meetings, Y, near, each

    def diagonal(self) -> Vector:
        """Return the diagonal (n,)."""
        return np.sum(self.Y * self.Y, axis=-1).ravel()

    def scale(self, w: Vector) -> MobilitiesOfMany:
        """Return that in other units (n,) of impulses."""
        Y = w.reshape(self.Y.shape[:2])[:, :, None] * self.Y
        return MobilitiesOfMany(self.meetings, Y, self.near, self.each)

    def normals(self) -> MobilitiesOfMany:
        """Return that of the normals alone."""
        return MobilitiesOfMany(self.meetings, self.Y[:, :: self.each], self.near, 1)

    def __matmul__(self, l: Vector) -> Vector:
        """Return velocities (n,) of impulses (n,)."""
        return rates(self.meetings, self.Y, changes(self.meetings, self.Y, l))

    def cone_impulses(self, b: Vector, mu: Array) -> Vector:
        """Return impulses (n,) in cones of friction, in units in which the diagonal is one."""
        return kernels(self.meetings)[0](self.Y, self.near, b, mu)

    def off_law(self, b: Vector, mu: Array, l: Vector) -> Matrix:
        """Return by how much impulses of contacts (m, each) are off Coulomb's law."""
        own = own_blocks(self.Y, self.each)
        u = (self @ l + b).reshape(-1, self.each)
        return impulses.off_law(u, l.reshape(-1, self.each), mu, paces(own))

    def normal_impulses(self, b: Vector) -> Vector:
        """Return normal impulses (n,), in units in which the diagonal is one."""
        return kernels(self.meetings)[1](self.Y, self.near, b)


def rates(meetings: Meetings, Y: Array, z: Matrix) -> Vector:
    """Return the rates (n,) at which contacts close with velocities z (bodies, 6)."""
    return products(meetings)[0](Y, z)


def changes(meetings: Meetings, Y: Array, l: Vector) -> Matrix:
    """Return by how much (bodies, 6) impulses (n,) change velocities."""
    return products(meetings)[1](Y, l)


@lru_cache(maxsize=64)
def products(meetings: Meetings) -> tuple[Any, ...]:
    """Return the programs of `rates`, `changes` and the last part of `newton_matrix`.

    Many call them, and share their code.
    """

    def rates(Y: Array, z: Matrix) -> Vector:
        z = np.concatenate([z, np.zeros((1, 6))])
        ends = np.concatenate([z[meetings.a], z[meetings.b]], axis=1)
        return np.sum(Y * ends[:, None, :], axis=2).ravel()

    def changes(Y: Array, l: Vector) -> Matrix:
        each = np.sum(l.reshape(Y.shape[:2])[:, :, None] * Y, axis=1)
        parts = np.concatenate([each.reshape(-1, 6), np.zeros((1, 6))])
        return np.sum(parts[meetings.ends], axis=1)

    def assemble(S: Array) -> Matrix:
        S = S.reshape(-1, 2, 6, 2, 6).transpose(0, 1, 3, 2, 4).reshape(-1, 6, 6)
        S = np.concatenate([S, np.zeros((1, 6, 6))])
        n = meetings.n
        H = np.sum(S[meetings.own], axis=1)[:, None] * np.eye(n)[:, :, None, None]
        for layer in meetings.across:
            H = H + S[layer]
        return H.transpose(0, 2, 1, 3).reshape(6 * n, 6 * n) + np.eye(6 * n)

    return tuple(compile(f, loops_from=IN_LOOPS) for f in (rates, changes, assemble))


def own_blocks(Y: Array, each: int) -> Array:
    """Return the blocks (m, each, each) of contacts by themselves."""
    rows = Y.reshape(-1, each, Y.shape[-1])
    return np.sum(rows[:, :, None, :] * rows[:, None, :, :], axis=3)


def sweep(
    meetings: Meetings,
    Y: Array,
    own: Array,
    near: Array,
    b: Array,
    friction: Sequence[Array],
    l: Vector,
) -> Vector:
    """Return impulses after each contact in turn has taken the others' as given.

    `own` (p, c, each, each) are the blocks of contacts, b (p, c, each). `friction` is the
    coefficient, (p, c) or (p, c, k), and `paces` (p, c); it is empty for normals alone.
    """
    numbers = np.arange(meetings.n)[:, None]
    count, each = b.shape[1:]

    def one(z: Matrix, item: tuple[Any, ...]) -> tuple[Any, Any]:
        def settle(z: Matrix, rest: tuple[Any, ...]) -> tuple[Any, Any]:
            Y, own, free, l, i, j, *friction = rest
            last = meetings.n - 1
            ends = [np.take(z, np.minimum(k, last), axis=0) for k in (i, j)]
            at = start = np.concatenate(ends)  # what is taken for the world has no effect
            after = []
            for k in range(count):
                rows = Y[each * k : each * (k + 1)]
                most, *pace = [x[k] for x in friction] or [None]
                new = impulses.settle_contact(rows @ at + free[k], own[k], l[k], most, pace)
                at = at + (new - l[k]) @ rows
                after.append(new)
            change = at - start
            z = z + np.where(numbers == i, change[:6], 0.0)
            return z + np.where(numbers == j, change[6:], 0.0), np.stack(after)

        is_near, *rest = item
        return cond(is_near > 0.5, settle, lambda z, rest: (z, 0.0 * rest[3]), z, tuple(rest))

    items = [near, Y, own, b, l.reshape(b.shape), meetings.a, meetings.b, *friction]
    unrolled = compile(one, loops_from=UNROLLED)
    return scan(unrolled, changes(meetings, Y, l), tuple(items))[1].ravel()


class Slope(NamedTuple):
    """The blocks P and Q (m, each, each) of the slope ``P + Q G`` of Coulomb's law.

    `law` is what `impulses.Linearised` has.
    """

    P: Any
    Q: Any
    law: impulses.Linearised


def slope_at(u: Matrix, l: Matrix, mu: Array, own: Array) -> Slope:
    """Return the slope at impulses l (m, each) and velocities u; `own` are blocks of contacts."""
    each = l.shape[1]
    eye, none = np.eye(each), np.zeros((each, each))
    rows, ones = np.concatenate([eye, none], axis=1), np.concatenate([none, eye], axis=1)
    slope = for_each(impulses.contact_slope, in_axes=(None, None, 0, 0, 0, 0, 0))
    law = impulses.Linearised(*slope(rows, ones, l, u, mu, paces(own), own[:, 0, :3]))
    return Slope(law.A[:, :, each:], law.A[:, :, :each], law)


def paces(own: Array) -> list[Vector]:
    """Return `impulses.paces` of the blocks (m, each, each) of contacts."""
    each = own.shape[-1]
    found = [impulses.pace_of(own[:, 1, 1], own[:, 2, 2], own[:, 1, 2])]
    if each > 3:
        found.append(1.0 / np.maximum(own[:, 3, 3], impulses.LEAST))
    if each > 4:
        found.append(impulses.pace_of(own[:, 4, 4], own[:, 5, 5], own[:, 4, 5]))
    return found


def normal_slope(shut: Array) -> tuple[Array, Array]:
    """Return P and Q (m, 1, 1) of normals, of which some are shut."""
    P = np.where(shut, 0.0, 1.0)[:, None, None]
    return P, 1.0 - P


def solve_many(
    meetings: Meetings,
    Y: Array,
    near: Array,
    P: Array,
    Q: Array,
    right: Vector,
    damping: Scalar,
    last: bool = False,
) -> Vector:
    """Return x with ``(P + Q G + damping) x = right``; the `last` time without damping."""
    p, each = Y.shape[0], P.shape[-1]
    inverse = for_each(impulses.invert_block)(P + damping * np.eye(each))
    K = np.sum(inverse[:, :, :, None] * Q[:, None, :, :], axis=2)
    H = newton_matrix(meetings, Y, near, K.reshape(p, -1, each, each))

    def times_blocks(B: Array, x: Vector) -> Vector:
        return np.sum(B * x.reshape(-1, 1, each), axis=2).ravel()

    def refine(_: Scalar, x: Vector) -> Vector:
        Gx = rates(meetings, Y, changes(meetings, Y, x))
        off = right - times_blocks(P, x) - times_blocks(Q, Gx)
        off = off if last else off - damping * x
        half = times_blocks(inverse, off)
        y = np.linalg.solve(H, changes(meetings, Y, half).ravel()).reshape(-1, 6)
        return x + half - times_blocks(K, rates(meetings, Y, y))

    count = MORE_REFINEMENTS if last else REFINEMENTS
    return fori_loop(0, 1 + count, refine, 0.0 * right)


def newton_matrix(meetings: Meetings, Y: Array, near: Array, K: Array) -> Matrix:
    """Return ``1 + Y' K Y`` (6 bodies, 6 bodies) for blocks K (p, c, each, each) of contacts."""
    rows = Y.reshape(*K.shape[:3], 12)
    KY = np.sum(K[..., None] * rows[:, :, None, :, :], axis=3).reshape(Y.shape)

    def one(_: Scalar, item: tuple[Any, ...]) -> tuple[Any, Any]:
        is_near, *rest = item

        def product(Y: Matrix, KY: Matrix) -> Matrix:
            return np.sum(Y[:, :, None] * KY[:, None, :], axis=0)

        return 0.0, cond(is_near > 0.5, product, lambda Y, KY: np.zeros((12, 12)), *rest)

    S = scan(one, 0.0, (near, Y, KY))[1]
    return products(meetings)[2](S)


def where_needed(newton: impulses.Step, off: impulses.Step) -> impulses.Step:
    """Return the step of Newton's method where sweeps are not there yet: elimination takes long."""

    def step(l: Vector, u: Vector, way: Scalar) -> Any:
        settled = off(l, u) <= impulses.settled_at(l)
        return cond(settled, lambda l, u, way: l, newton, l, u, way)

    return step


@lru_cache(maxsize=64)
def kernels(meetings: Meetings) -> tuple[Any, Any]:
    """Return the programs of impulses in cones and of normal impulses."""

    @custom_jvp
    def cone(Y: Array, near: Array, b: Vector, mu: Array) -> Vector:
        m, each = impulses.sizes_of(mu)
        p, own = Y.shape[0], own_blocks(Y, each)
        by_meeting = own.reshape(p, -1, each, each), near, b.reshape(p, -1, each)
        pace = paces(own)
        friction = mu.reshape(p, m // p, *mu.shape[1:]), *(r.reshape(p, m // p) for r in pace)

        def velocities(l: Vector) -> Vector:
            return rates(meetings, Y, changes(meetings, Y, l)) + b

        def newton(l: Vector, u: Vector, way: Scalar) -> Vector:
            slope = slope_at(u.reshape(-1, each), l.reshape(-1, each), mu, own)
            damping = impulses.damping_of(way)
            off = -slope.law.F.ravel()
            change = solve_many(meetings, Y, near, slope.P, slope.Q, off, damping)
            part = impulses.part_of(way, impulses.ends_of_contacts(l, change, mu))
            L = (l + part * change).reshape(-1, each)
            return np.where(L[:, :1] > 0.0, L, 0.0).ravel()

        def off(l: Vector, u: Vector) -> Scalar:
            return np.max(np.abs(impulses.cones_off(u, l, mu, pace)))

        def one_sweep(l: Vector, u: Vector) -> tuple[Vector, Vector]:
            return sweep(meetings, Y, *by_meeting, friction, l), u

        step = where_needed(newton, off)
        return impulses.solve_cones(velocities, one_sweep, step, off, b, m)

    @cone.defjvp
    def cone_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        (Y, near, b, mu), (dY, _, db, dmu) = primals, tangents
        l, (_, each) = cone(Y, near, b, mu), impulses.sizes_of(mu)
        z = changes(meetings, Y, l)
        u = (rates(meetings, Y, z) + b).reshape(-1, each)
        slope = slope_at(u, l.reshape(-1, each), mu, own_blocks(Y, each))
        du = velocity_tangent(meetings, Y, dY, l, z) + db
        dF = impulses.contact_tangent(slope.law, du, dmu)
        return l, solve_many(meetings, Y, near, slope.P, slope.Q, -dF, impulses.DAMPING, last=True)

    @custom_jvp
    def normal(Y: Array, near: Array, b: Vector) -> Vector:
        p = Y.shape[0]
        own = own_blocks(Y, 1)
        by_meeting = own.reshape(p, -1, 1, 1), near, b.reshape(p, -1, 1)

        def velocities(l: Vector) -> Vector:
            return rates(meetings, Y, changes(meetings, Y, l)) + b

        def newton(l: Vector, u: Vector, way: Scalar) -> Vector:
            shut = l - u > 0.0
            off = np.where(shut, -u, -l)
            damping = impulses.damping_of(way)
            change = solve_many(meetings, Y, near, *normal_slope(shut), off, damping)
            part = impulses.part_of(way, impulses.ends_of_pushes(l, change))
            return np.maximum(l + part * change, 0.0)

        def off(l: Vector, u: Vector) -> Scalar:
            return np.max(np.abs(l - np.maximum(l - u, 0.0)))

        def one_sweep(l: Vector, u: Vector) -> tuple[Vector, Vector]:
            return sweep(meetings, Y, *by_meeting, (), l), u

        step = where_needed(newton, off)
        return impulses.solve_cones(velocities, one_sweep, step, off, b, b.shape[0])

    @normal.defjvp
    def normal_tangent(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        (Y, near, b), (dY, _, db) = primals, tangents
        l = normal(Y, near, b)
        shut = l > 0.0
        du = velocity_tangent(meetings, Y, dY, l, changes(meetings, Y, l)) + db
        off = np.where(shut, -du, 0.0)
        P, Q = normal_slope(shut)
        return l, solve_many(meetings, Y, near, P, Q, off, impulses.DAMPING, last=True)

    return compile(cone, loops_from=IN_LOOPS), compile(normal, loops_from=IN_LOOPS)


def velocity_tangent(meetings: Meetings, Y: Array, dY: Array, l: Vector, z: Matrix) -> Vector:
    """Return by how much ``Y Y' l`` (n,) changes with rows; ``z = Y' l``."""
    return rates(meetings, dY, z) + rates(meetings, Y, changes(meetings, dY, l))
